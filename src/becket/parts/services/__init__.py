"""Services: released, watched and rolled back by the watchdog."""
