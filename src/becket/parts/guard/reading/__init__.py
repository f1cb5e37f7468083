"""The guard: the rules a change must satisfy before it may be proven.

Start reading at `examine.py`. One module per theme; `languages/` reads tests out of source files.
"""
