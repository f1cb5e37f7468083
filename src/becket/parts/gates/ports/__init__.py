"""Its words and its ports."""
