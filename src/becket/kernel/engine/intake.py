"""Turns a trigger into a run: resolves the subject, checks the inputs, makes the start idempotent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field

from becket.kernel.contract.base import Json, Record, new_id
from becket.kernel.contract.caller import BECKET, Caller, itself
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.git import Git
from becket.kernel.contract.loop import LoadedLoop, Loops
from becket.kernel.contract.run import NewRun, Run, Started, StartLimits, Subject
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import Store
from becket.kernel.contract.template import fields as template_fields
from becket.kernel.contract.template import fill, read_back
from becket.kernel.engine.state import StateReader

BEGINNINGS = frozenset({"manual", "schedule"})
"""Starts that begin a chain anew: a person and the clock are never held back."""


def _kept_before(by: object) -> object:
    """A start that was held by an earlier Becket names nobody but itself."""
    return itself(by) if isinstance(by, str) else by


class StartRequest(Record):
    """A wish to start a run, from a person, a trigger or another run."""

    loop_id: str
    trigger: str = "manual"
    subject: str | None = None
    inputs: dict[str, Json] = Field(default_factory=dict)
    fields: dict[str, Json] = Field(default_factory=dict)
    origin_key: str | None = None
    unique_subject: bool = False
    dry_run: bool = False
    autonomy: Autonomy | None = None
    parent: str | None = None
    retry_of: str | None = None
    chain: int = 0
    cause: str | None = None  # the run that led to it
    by: Annotated[Caller, BeforeValidator(_kept_before)] = BECKET


class Intake:
    """The only way a run begins."""

    def __init__(
        self,
        store: Store,
        loops: Loops,
        git: Git,
        branch: str,
        kick: Callable[[], None],
        limits: Callable[[], StartLimits] = StartLimits,
        redact: Callable[[Json], Json] = lambda value: value,
    ) -> None:
        self._store = store
        self._loops = loops
        self._git = git
        self._branch = branch
        self._kick = kick
        self._limits = limits
        self.redact = redact

    async def start(self, ask: StartRequest) -> Started:
        started = await self._store.start_run(await self.prepare(ask))
        self._kick()
        return started

    async def retry(self, run: Run, by: Caller) -> Started:
        """A new run on the same subject with the same inputs and the loop's current spec."""
        return await self.start(
            StartRequest(
                loop_id=run.loop_id, trigger="manual", subject=run.subject.name, inputs=run.inputs,
                fields=run.subject.fields, dry_run=run.dry_run, autonomy=run.autonomy, retry_of=run.run_id, by=by,
            )
        )  # fmt: skip

    async def prepare(self, ask: StartRequest) -> NewRun:
        """Everything but the write, so that a trigger can move its cursor in the same transaction."""
        loop = self._loops.get(ask.loop_id)
        run_id = new_id("run")
        inputs = self.redact(check_inputs(loop, ask.inputs))
        subject = await self._subject(loop, ask, inputs, run_id)
        concurrency = loop.spec.concurrency
        return NewRun(
            run_id=run_id,
            loop_id=ask.loop_id,
            spec_digest=loop.digest,
            spec_text=loop.text,
            subject=subject,
            inputs=inputs,
            trigger=ask.trigger,
            origin_key=self.redact(ask.origin_key),
            unique_subject=ask.unique_subject,
            group=_filled(concurrency.group, subject.fields) if concurrency else None,
            on_busy=concurrency.on_busy.value if concurrency else "queue",
            dry_run=ask.dry_run,
            autonomy=ask.autonomy,
            parent=ask.parent,
            retry_of=ask.retry_of,
            chain=ask.chain,
            limits=None if ask.trigger in BEGINNINGS else self._limits(),
            deadline=loop.spec.deadline,
            by=ask.by,
            state=await StateReader(self._store, lambda: self._git, run_id).at(loop.spec.state_refs, subject.fields),
        )

    async def _subject(self, loop: LoadedLoop, ask: StartRequest, inputs: Mapping[str, Json], run_id: str) -> Subject:
        told: dict[str, Json] = {"loop_id": ask.loop_id, "repo": self._git.root.name, **inputs, **ask.fields}
        template, name, said = loop.spec.subject, ask.subject or None, dict[str, str]()
        named = {field.name for field in template_fields(template)} & {"branch", "sha"}
        if name is not None and named - ask.fields.keys():
            said = await self._read_subject(name, loop, told)
            name = fill(template, said.__getitem__)
        known = {**said, "start": run_id, "trigger": ask.trigger, **told}
        known.setdefault("branch", self._branch)
        if "sha" not in known:
            head = await self._git.resolve(f"refs/heads/{known['branch']}")
            if head is None and "branch" in said:
                raise UsageError(f"the subject {name!r} is about the branch {said['branch']!r}, which is not there")
            known |= {} if head is None else {"sha": head}
        return Subject(name=self.redact(name or _filled(template, known)), fields=self.redact(known))

    async def _read_subject(self, name: str, loop: LoadedLoop, told: Mapping[str, Json]) -> dict[str, str]:
        """What a name that was given says: the run must work on what it is called."""
        patterns = {"sha": "[0-9a-fA-F]{4,64}", **{field: re.escape(str(value)) for field, value in told.items()}}
        said = read_back(name, loop.spec.subject, patterns)
        if said is None:
            raise UsageError(
                f"{name!r} is no subject of {loop.spec.loop_id}, whose subjects look like {loop.spec.subject!r} (a sha "
                "may be shortened); write it so, or leave the subject out"
            )
        if "sha" in said and "sha" not in told:
            commit = await self._git.resolve(said["sha"])
            if commit is None or not commit.startswith(said["sha"].lower()):
                raise UsageError(f"the subject {name!r} is about the commit {said['sha']}, which is not there")
            said["sha"] = commit
        return said


def _filled(template: str, fields: Mapping[str, Json]) -> str:
    def look_up(name: str) -> str:
        if name not in fields:
            raise UsageError(f"the template {template!r} needs {{{name}}}; give it with --with {name}=... or --subject")
        return str(fields[name])

    return fill(template, look_up)


def check_inputs(loop: LoadedLoop, given: Mapping[str, Json]) -> dict[str, Json]:
    """The run's parameters, typed; every missing, unknown or ill-typed one is named."""
    declared = loop.spec.inputs
    problems = [
        f"{name}: {loop.spec.loop_id} has no such input; it has {', '.join(declared) or 'none'}"
        for name in given
        if name not in declared
    ]
    values: dict[str, Json] = {}
    for name, spec in declared.items():
        value = given.get(name, spec.default)
        if value is None:
            if not spec.optional:
                problems.append(f"{name}: missing; give it with --with {name}=...")
            continue
        try:
            values[name] = spec.read(value)
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise UsageError("\n".join(problems))
    return values
