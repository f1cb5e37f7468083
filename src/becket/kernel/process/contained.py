"""The implementation of the `Processes` port: one contained child at a time, any number side by side."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from becket.kernel.contract.outlasting import to_its_end
from becket.kernel.contract.process import (
    ChildControl,
    ChildEnd,
    ChildRef,
    ChildResult,
    ChildSpec,
    ChildWatcher,
    Holds,
    SandboxKind,
)
from becket.kernel.process import environment, identity, words
from becket.kernel.process.child import PATIENCE, Child, KeeperProgram
from becket.kernel.process.choice import SandboxChoice, pick
from becket.kernel.process.keeper.job import ChildReport, Job
from becket.kernel.process.places import Disk
from becket.kernel.process.sandboxes import Confinement
from becket.kernel.process.scratch import Scratch, remove_abandoned
from becket.kernel.process.stdin import StdinWriter, as_file

if TYPE_CHECKING:
    from becket.kernel.process.egress import Egress
    from becket.kernel.process.resolve import Resolve

T = TypeVar("T")

_SIGKILL_CODE = -9
_SLACK = 15.0
"""Seconds beyond timeout and grace after which a silent keeper is killed."""


class ContainedProcesses:
    """Runs children, each under a keeper of its own, in the sandbox that was asked for or is best here.

    `grace` is the time between TERM and KILL at a timeout; `scratch` is where the private folders of children are
    made, if not in the system's temporary folder; `resolve` says where the names of `ChildSpec.reach` are dialled, if
    not at the public addresses that the system knows; `readable` tells, for each child anew, what every child may
    read. The sandbox is probed once, when this is made.
    """

    def __init__(
        self,
        kind: SandboxChoice = "auto",
        *,
        grace: float = 2.0,
        scratch: Path | None = None,
        keeper: KeeperProgram | None = None,
        resolve: Resolve | None = None,
        readable: Callable[[], tuple[Path, ...]] = tuple,
    ) -> None:
        self._sandbox = pick(kind)
        self._holds = self._sandbox.holds()
        self._grace = grace
        self._scratch = scratch
        self._keeper = keeper or KeeperProgram.default()
        self._resolve = resolve
        self._readable = readable
        self._disk = Disk(self._keeper.package)

    @property
    def kind(self) -> SandboxKind:
        return self._holds.kind

    def holds(self) -> Holds:
        readable = self._readable()
        return self._holds.model_copy(update={"readable": readable}) if readable else self._holds

    async def run(
        self, spec: ChildSpec, watcher: ChildWatcher | None = None, control: ChildControl | None = None
    ) -> ChildResult:
        if not os.access(spec.tree, os.X_OK):
            return self._not_started(words.NO_TREE.format(tree=spec.tree))
        call = _Call(spec, watcher, control)
        return await (self._run_with_ways(call) if spec.reach else self._run_with_scratch(call))

    def sweep(self, children: Sequence[ChildRef]) -> list[ChildRef]:
        found, _ = identity.end(children)
        remove_abandoned(self._scratch)
        return found

    async def _run_with_ways(self, call: _Call) -> ChildResult:
        from becket.kernel.process.egress import Egress
        from becket.kernel.process.reach import places_of  # only where it is used, with all that it needs
        from becket.kernel.process.resolve import PublicOnly

        places = places_of(call.spec)
        listed = [address for place in places if place.is_address for address in place.addresses]
        resolve = self._resolve or PublicOnly(listed=listed)
        try:
            ways = Egress(places, resolve, own_network=self._sandbox.own_network)
        except OSError as error:
            return self._not_started(words.NO_DOOR.format(reason=error.strerror))
        try:
            result = await self._run_with_scratch(replace(call, ways=ways))
            return result.model_copy(update={"denied": ways.denied})
        finally:
            await to_its_end(ways.close())

    async def _run_with_scratch(self, call: _Call) -> ChildResult:
        try:
            scratch = Scratch(self._scratch)
        except OSError as error:
            return self._not_started(words.NO_SCRATCH.format(reason=error.strerror))
        try:
            confinement, job = self._plan(call, scratch)
            return await self._run_in(confinement, job, call)
        finally:
            if not scratch.remove_if_empty():
                await to_its_end(asyncio.to_thread(scratch.remove))

    def _plan(self, call: _Call, scratch: Scratch) -> tuple[Confinement, Job]:
        spec, ways = call.spec, call.ways
        home, temporary = self._sandbox.private_folders(scratch, spec.home)
        proxy = None if ways is None else ways.env
        tree = self._sandbox.tree_inside(spec)
        env = environment.build(spec, os.environ, tree=tree, home=home, temporary=temporary, proxy=proxy)
        ports = () if ways is None else ways.ports
        rules = self._disk.rules_of(spec, env, self._readable())
        moved = None if tree == spec.tree.absolute() else (spec.tree.resolve(), tree)
        confinement = Confinement(rules, spec.network, scratch, spec.home, ports, moved)
        return confinement, Job(
            argv=list(spec.argv),
            env=env,
            tree=str(tree),
            timeout=spec.timeout,
            grace=self._grace,
            cap=spec.output_cap,
            tail=spec.output_cap - spec.output_head,
            landlock=self._sandbox.landlock(confinement),
            doors=None if ways is None else ways.doors,
        )

    async def _run_in(self, confinement: Confinement, job: Job, call: _Call) -> ChildResult:
        speech: StdinWriter | None = None
        try:
            speech = None if call.control is None else StdinWriter(call.spec.stdin, call.control)
            child = self._start(confinement, call.spec, speech)
            return await self._attend(child, job, call, speech)
        except _NoFile as error:
            return self._not_started(words.NO_OUTPUT.format(output=error.path, reason=error.reason))
        except _NoProcess as error:
            return self._not_started(words.NO_SPAWN.format(reason=error))
        finally:
            if speech is not None:
                speech.close()

    def _start(self, confinement: Confinement, spec: ChildSpec, speech: StdinWriter | None) -> Child:
        """Start the keeper with the child's files. They are its own then; ours are closed, whatever happens."""
        given: list[int] = [] if speech is None else [speech.reader]
        try:
            if speech is None:
                given.append(as_file(spec.stdin))
            given.append(_fresh_file(spec.output))
            if spec.stdout is not None:
                given.append(_fresh_file(spec.stdout))
            return self._spawn(confinement, *given)
        except OSError as error:
            raise _NoProcess(error.strerror) from error
        finally:
            for descriptor in given:
                os.close(descriptor)

    def _spawn(self, confinement: Confinement, stdin: int, *outputs: int) -> Child:
        control, far_end = socket.socketpair()
        control.setblocking(False)
        try:
            command = self._sandbox.command(self._keeper.command(far_end.fileno(), *outputs), confinement)
            return Child.spawn(command, control, far_end.fileno(), outputs, stdin)
        except BaseException:
            control.close()
            raise
        finally:
            far_end.close()

    async def _attend(self, child: Child, job: Job, call: _Call, speech: StdinWriter | None) -> ChildResult:
        told = call.watcher
        try:
            if told is not None:
                try:
                    await told.started(child.ref, call.spec.argv)
                except Exception:
                    told = None  # it does not know the child, so it need not hear of its end
                    raise
            job.env[environment.MARK] = identity.mark(child.ref)
            report = await self._release(child, job, call, speech)
            seconds = 0.0 if child.ran_from is None else time.monotonic() - child.ran_from
        finally:
            escaped = await to_its_end(self._put_away(child, told))
        return self._result(child, report, call.spec, seconds, escaped)

    async def _release(self, child: Child, job: Job, call: _Call, speech: StdinWriter | None) -> ChildReport | None:
        take_doors = None if call.ways is None else call.ways.answer_at
        try:
            async with asyncio.timeout(job.timeout + job.grace + _SLACK) as limit:
                if call.control is None or speech is None:
                    return await child.release(job, take_doors)
                async with _beside(speech.deliver(), _end_when_asked(child, call.control, limit)):
                    return await child.release(job, take_doors)
        except TimeoutError:
            return None  # the keeper is stuck: whoever puts it away kills it

    async def _put_away(self, child: Child, watcher: ChildWatcher | None) -> int:
        """Nothing of the child lives afterwards; returns how many processes its keeper had not ended."""
        escaped = 0
        if not await child.put_away():
            _, escaped = await asyncio.to_thread(identity.end, [child.ref])
        if watcher is not None:
            await watcher.ended(child.ref)
        return escaped

    def _result(
        self, child: Child, report: ChildReport | None, spec: ChildSpec, seconds: float, escaped: int
    ) -> ChildResult:
        if report is None and child.ran_from is None:
            return self._not_started(words.NO_SANDBOX.format(said=child.last_words or "no reason was given"))
        if report is None or report.end not in ChildEnd.__members__:
            size = spec.output.stat().st_size if os.access(spec.output, os.F_OK) else 0
            report = ChildReport(ChildEnd.killed.value, _SIGKILL_CODE, 0, size, False, words.KEEPER_LOST)
        return ChildResult(
            end=ChildEnd(report.end),
            exit_code=report.code,
            seconds=seconds,
            output_bytes=report.size,
            output_capped=report.capped,
            sandbox=self.kind,
            left_running=report.left + escaped,
            message=report.message,
        )

    def _not_started(self, message: str) -> ChildResult:
        return ChildResult(
            end=ChildEnd.not_started,
            exit_code=None,
            seconds=0.0,
            output_bytes=0,
            output_capped=False,
            sandbox=self.kind,
            message=message,
        )


def choose(kind: SandboxChoice = "auto", readable: Callable[[], tuple[Path, ...]] = tuple) -> ContainedProcesses:
    """The processes of this machine: in the sandbox asked for, or in the best that works.

    A UsageError says what to install or set if the one asked for does not work here.
    """
    return ContainedProcesses(kind, readable=readable)


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of `run`: what was asked, and what goes with the child."""

    spec: ChildSpec
    watcher: ChildWatcher | None
    control: ChildControl | None
    ways: Egress | None = None


class _NoProcess(Exception):
    """No process can be made; the text says why."""


class _NoFile(Exception):
    """A file for the child's output cannot be made."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = path, reason


def _fresh_file(path: Path) -> int:
    """A new file: never one that a child may have prepared as a link to somewhere else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _NoFile(path, error.strerror or str(error)) from error


async def _end_when_asked(child: Child, control: ChildControl, limit: asyncio.Timeout) -> None:
    await control.ended.wait()
    await child.end()
    soon = asyncio.get_running_loop().time() + PATIENCE
    limit.reschedule(min(soon, limit.when() or soon))


@asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do `work` as long as the block lasts."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
