"""Reading what test tools report, comparing two reports, and the colour of a step. Pure: no process, no clock."""
