"""Tell a person: a line on a stream, a line in a file."""
