"""Reports of runs, made of records only."""
