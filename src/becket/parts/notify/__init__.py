"""Notices: the console, files and a command of yours."""
