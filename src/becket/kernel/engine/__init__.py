"""Moves a run: from a trigger through its phases to an honest end. The journal is its only memory."""
