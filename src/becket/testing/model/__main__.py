"""The server as a program: `python -m becket.testing.model script.yaml --port 8080`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from becket.testing.model.script_file import BadScript, load
from becket.testing.model.scripted import ScriptedModel


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m becket.testing.model", description=__doc__)
    parser.add_argument("script", type=Path, help="a YAML file: a list of steps")
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1; a free one if not given")
    given = parser.parse_args(arguments)
    try:
        parts = load(given.script)
    except BadScript as error:
        print(error, file=sys.stderr)
        return 2
    try:
        model = ScriptedModel(port=given.port)
    except OSError as error:
        print(f"port {given.port}: {error.strerror}; choose another with --port", file=sys.stderr)
        return 2
    except OverflowError:
        print(f"port {given.port}: no such port; choose one up to 65535 with --port", file=sys.stderr)
        return 2
    for part in parts:
        model.script(*part.steps, key=part.key, prompt=part.prompt)
    return _serve(model)


def _serve(model: ScriptedModel) -> int:
    """Until SIGINT or SIGTERM. 1 if a request broke the contract."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with model:
        print(model.url, flush=True)
        stop.wait()
    for violation in model.violations:
        print(violation, file=sys.stderr)
    return 1 if model.violations else 0


if __name__ == "__main__":
    sys.exit(main())
