"""Which files of a commit are tests, or belong to them, and why. Start reading at `find.py`.

Reads text by patterns, never by a parser: it looks at every source file of a repository.
"""
