"""An agent's program that is on this machine, and that contained programs do not see: told before it is called."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from becket.kernel.checks.shell import program_of
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.process import Processes
from becket.kernel.contract.variables import expanded, place_to_show
from becket.kernel.process.places import unseen

LAUNCHERS = frozenset(
    {"npx", "npm", "node", "bunx", "bun", "deno", "uvx", "uv", "pipx", "python", "python3", "sh", "bash"}
)
"""They start another file, and their own version says nothing about it."""

_OTHER_HOME = "{program} is not found where the agent runs, HOME is another folder there"
_UNSEEN = "{program} is there, but contained programs do not see {what}"
_RUN = "write {path} in its `run`, and "
_MEND = "{run}in becket.yaml: sandbox: {{readable: [{places}]}}"


def unseen_program(
    agent: AgentConfig, processes: Processes, environ: Mapping[str, str], home: Path, readable: Iterable[str]
) -> str:
    """What its `run` starts and cannot start, and after `; ` what to write; empty if nothing is known to be wrong.

    The drivers of known programs show those themselves.
    """
    holds = processes.holds()
    if agent.run is None or not holds.files:
        return ""
    shown = [*holds.readable, *(expanded(written, home) for written in readable)]
    for written, path in _started(agent.run, environ, home):
        hidden = unseen(path, environ.get("PATH", ""), shown)
        if hidden is not None or written.startswith("~/"):
            return _told(written, path, hidden, tuple(readable), home)
    return ""


def _started(run: str, environ: Mapping[str, str], home: Path) -> Iterator[tuple[str, Path]]:
    """As it is written and where it is: the program that a command starts, and the file that a launcher is given."""
    try:
        program = program_of(run, home_too=True)
    except ValueError:
        return
    if program is None:
        return
    names = [program.word]
    if Path(program.word).name in LAUNCHERS:
        names += [word for word in program.arguments[:1] if word.startswith(("/", "~/"))]
    for written in names:
        found = str(expanded(written, home)) if "/" in written else shutil.which(written, path=environ.get("PATH"))
        if found is not None and Path(found).is_absolute() and Path(found).is_file():
            yield written, Path(found)


def _told(written: str, path: Path, hidden: Path | None, readable: tuple[str, ...], home: Path) -> str:
    at_home = written.startswith("~/")
    what = "it" if hidden == path.resolve() else hidden
    said = (_OTHER_HOME if at_home else _UNSEEN).format(program=written, what=what)
    run = _RUN.format(path=path) if at_home else ""
    places = ", ".join((*readable, *([str(place_to_show(hidden, home))] if hidden is not None else [])))
    return f"{said}; {_MEND.format(run=run, places=places)}" if places else f"{said}; write {path} in its `run`"
