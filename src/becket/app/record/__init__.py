"""What can be told of runs and of the house: read models, rendered from records."""
