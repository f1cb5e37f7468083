"""`becket doctor`: finds what is wrong, and names the command that fixes it."""
