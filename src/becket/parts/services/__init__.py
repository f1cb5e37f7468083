"""Services: released, supervised and rolled back by the watchdog."""
