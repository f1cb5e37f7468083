"""The command line: one file per verb group, no logic. Nothing heavy is imported before the verb is known."""

from __future__ import annotations


def main() -> None:
    """The `becket` program."""
    import sys

    from becket.cli.front import run

    sys.exit(run(sys.argv[1:]))
