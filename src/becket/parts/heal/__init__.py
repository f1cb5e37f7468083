"""From a red commit to a proven, running main."""
