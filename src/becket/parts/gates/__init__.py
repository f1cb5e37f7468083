"""Gates: runs the test steps of becket.yaml on exact commits, judges and caches the results; set-ups, reports."""
