"""`becket doctor`: what is wrong, and the command that mends it."""
