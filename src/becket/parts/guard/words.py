"""What guard says to people."""

from __future__ import annotations

GUARD_TWO = "--staged compares the index with HEAD; leave out one of them"
GUARD_EMPTY = "the commit is empty; name one, or A..B, or leave it out for HEAD"
GUARD_NOTHING = "Nothing differs."
SIDE_COUNTED = "{count} of {total} files of {commit} count as tests."
SIDE_USUAL = "where test runners usually look (the committed becket.yaml declares no test_side)"
SIDE_REASONS = {
    "declared": "declared by test_side in becket.yaml",
    "ran": "named by a report for a test that ran",
    "framework": "import or call a test framework",
    "gate": "run by a gate by name",
    "only-from-tests": "imported or read only from tests",
    "sits-with": "lie among tests",
    "named": "taken by a test runner for their name",
}
SIDE_FILES = "  {count} files"
SIDE_MORE = "  ... {count} files more; --json lists all of them"
SIDE_NEXT = "What is missing, add to `test_side` in becket.yaml."
SIDE_EMPTY = "Tests within source files are judged where they stand; others are named by `test_side` in becket.yaml."
