"""The command line: one file per verb group, no logic. Nothing heavy is imported before the verb is known."""

from __future__ import annotations


def main() -> None:
    """The `becket` program."""
    import gc
    import signal
    import sys

    # What is imported stays: to look through it again and again made every start slower.
    gc.set_threshold(50_000, 20, 20)

    # Whoever started us may ignore it, and that is inherited: no exit code would be kept, and every failure of a child
    # would look like success.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    from becket.cli.front import run

    code = run(sys.argv[1:])
    gc.freeze()  # nor is it looked through once more before it is taken apart
    sys.exit(code)
