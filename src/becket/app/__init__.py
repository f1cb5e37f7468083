"""Puts one repository's configuration, adapters and engine together; the daemon, the watchdog and read models."""
