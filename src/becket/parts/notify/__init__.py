"""Notifications: on the console, in files, and by a command of yours."""
