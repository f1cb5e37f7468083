"""What can be known of the agents of becket.yaml without calling them, and what one trivial call of each says."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from becket.app.compose import App
from becket.app.desk import cancel
from becket.app.foreground import shown
from becket.app.sandboxes import Sandboxes
from becket.kernel.checks.facts import AgentFact, LoginFact
from becket.kernel.checks.shell import Program
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.config import AgentConfig, Config
from becket.kernel.contract.errors import NotFound, UsageError
from becket.parts.agents.adapters import versions
from becket.parts.agents.adapters.call_environment import DriverContext, ways_out
from becket.parts.agents.adapters.prices import prices_with
from becket.parts.agents.checks import program_for
from becket.parts.agents.configured import made, unpriced, why_unenforceable, wrongs
from becket.parts.agents.desk import CallResult, begin, result, see_call, standing
from becket.parts.agents.section import PRICES
from becket.parts.agents.unseen import LAUNCHERS, unseen_program

__all__ = ["AgentFact", "AgentSearch", "fact", "look", "probe", "sandbox_of", "version_of", "works"]

VERSION_SECONDS = 10.0
VERSION_BYTES = 4_000
PROBE = "Answer with the word ok. Change no file."
WORKS = frozenset({AgentOutcome.nothing_done, AgentOutcome.changed})


@dataclass(frozen=True, slots=True)
class AgentSearch:
    """Where agents are looked for: the repository, the environment and the home of whoever asks."""

    config: Config
    root: Path
    environ: Mapping[str, str]
    home: Path


def look(config: Config, root: Path) -> tuple[AgentFact, ...]:
    """Every agent, all at once: a program may take seconds to tell its version."""
    search = AgentSearch(config, root, os.environ, Path.home())
    with ThreadPoolExecutor(max_workers=4) as pool:
        return tuple(pool.map(lambda name: fact(search, name), config.agents))


def sandbox_of(app: App, agent: AgentConfig) -> str:
    """The sandbox that it will really be in."""
    try:
        return app.sandboxes.of(app.config, agent).holds().kind.value
    except UsageError:
        return f"{agent.sandbox} (not to be had here)"


def fact(search: AgentSearch, name: str) -> AgentFact:
    agent = search.config.agents[name]
    program = _program(agent)
    path = _path(program, search) if program is not None else None
    word = Path(program.word).name if program is not None else ""
    asked = path is not None and agent.driver != "command" and word not in LAUNCHERS
    version = version_of(path, search.environ) if asked and path is not None else ""
    driver_context = _driver_context(search, agent)
    driven = made(name, agent, driver_context)
    network, ways = ways_out(agent, driven.wants())
    blind = unpriced(search.config, name, driven)
    return AgentFact(
        name=name,
        program=word,
        path=path,
        version=version,
        untested=versions.warning(word, version),
        install=versions.INSTALL.get(word, ""),
        logins=(*_files(agent, search.home), *_variables(agent, search.environ)),
        network=network.value,
        ways=ways,
        unpriced=blind,
        why_unenforceable="" if blind else why_unenforceable(search.config, name, None),
        wrong=tuple(wrongs(name, agent, search.root, search.home)),
        unseen=unseen_program(
            agent, driver_context.processes, search.environ, search.home, search.config.sandbox.readable
        ),
    )


def _program(agent: AgentConfig) -> Program | None:
    try:
        return program_for(agent)
    except ValueError:
        return None


def _driver_context(search: AgentSearch, agent: AgentConfig) -> DriverContext:
    """Enough of one to ask the driver what it wants."""
    sandboxes = Sandboxes()
    try:
        processes = sandboxes.of(search.config, agent)
    except UsageError:
        processes = sandboxes.get("none")
    return DriverContext(processes, (), {}, prices_with(search.config.section(PRICES)), search.environ, search.home)


def _path(program: Program, search: AgentSearch) -> Path | None:
    word = program.word
    if word.startswith("~/"):
        word = str(search.home / word[2:])
    if "/" in word:
        path = search.root / program.folder / word
        return path if path.is_file() and os.access(path, os.X_OK) else None
    found = shutil.which(word, path=search.environ.get("PATH"))
    return Path(found) if found else None


def version_of(program: Path, environ: Mapping[str, str], seconds: float = VERSION_SECONDS) -> str:
    """What `--version` says, asked with an empty HOME and nothing of our environment but PATH; empty if nothing."""
    with tempfile.TemporaryDirectory(prefix="becket-version-") as empty:
        child = subprocess.Popen(
            [str(program), "--version"], cwd=empty, env={"HOME": empty, "PATH": environ.get("PATH", os.defpath)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            said, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            said = b""
        finally:
            _end(child)
    return versions.parse(said[:VERSION_BYTES].decode(errors="replace"))


def _end(child: subprocess.Popen[bytes]) -> None:
    """Whatever it started goes with it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def _files(agent: AgentConfig, home: Path) -> tuple[LoginFact, ...]:
    """Only asked whether they are there: what they hold is none of the doctor's business (L25)."""
    return tuple(_file(item.file, home / item.file.removeprefix("~/")) for item in agent.credentials)


def _file(named: str, path: Path) -> LoginFact:
    try:
        found = path.stat()
    except OSError as error:
        return LoginFact(named, there=False, trouble=(error.strerror or "it cannot be seen").lower())
    if not stat.S_ISREG(found.st_mode):
        return LoginFact(named, there=True, trouble="it is no file")
    return LoginFact(named, there=True, trouble="" if found.st_size else "it is empty")


def _variables(agent: AgentConfig, environ: Mapping[str, str]) -> tuple[LoginFact, ...]:
    names = dict.fromkeys((*((agent.key,) if agent.key else ()), *agent.env))
    return tuple(LoginFact(f"${name}", there=bool(environ.get(name)), trouble=_unset(environ, name)) for name in names)


def _unset(environ: Mapping[str, str], name: str) -> str:
    return "" if environ.get(name) else "it is empty" if name in environ else "it is not set here"


async def probe(app: App, caller: Caller, name: str) -> CallResult:
    """One trivial call, made, booked and recorded like every other. Raises NotFound."""
    if name not in app.config.agents:
        raise NotFound(f"no agent is called {name!r}; becket.yaml has {', '.join(app.config.agents) or 'none'}")
    head = (await standing(app)).head
    if head is None:
        raise UsageError(f"{app.state.root} has no commit yet, and agents work on a commit; make one first")
    run = await begin(app, caller, name, PROBE, head, alone=True)
    if await see_call(app, caller, run.run_id, lambda call, event: None):
        raise asyncio.CancelledError
    called = await result(app, run.run_id, head)
    if not called.over:  # it waits for a quota: nobody needs its answer then
        await cancel(app, caller, run.run_id, "the probe is over")
    await shown(app, caller, run.run_id)
    return called


def works(called: CallResult, name: str) -> bool:
    """Did this very agent answer? Its fallback's answer does not count."""
    mine = [call.end.outcome for call in called.calls if call.agent == name and call.end is not None]
    return bool(mine) and mine[-1] in WORKS
