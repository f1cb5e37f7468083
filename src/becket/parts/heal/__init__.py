"""The heal loop: from a red commit to a proven, running main."""
