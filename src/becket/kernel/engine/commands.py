"""`run:` actions and verifiers by command: what people write instead of Python.

Text from outside never becomes shell code: `{id.output}` in a command turns into a reference to an environment
variable, which the shell expands but does not parse again (L24).
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from becket.kernel.contract.action import CommandEnd, Conclusion, Result, RunCommand, Verdict
from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.condition import Condition, split_ref
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit
from becket.kernel.contract.errors import ActionFailed, EffectFailed
from becket.kernel.contract.git import OBJECTS
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.spec import ActionSpec, Autonomy, Command, CommandFolder, EffectClass, RunEffect
from becket.kernel.contract.template import in_shell
from becket.kernel.engine.context import StepContext, text_of
from becket.kernel.engine.excerpts import value_of
from becket.kernel.engine.junit_xml import read_xml

REPORT_LIMIT = 64_000_000
KILL_ROOM = 10.0
"""A command is killed at its own time limit; the door gives it this much longer to be gone."""


def bind(context: StepContext, text: str) -> tuple[str, dict[str, str]]:
    """The command with its `{fields}` turned into variable references, and those variables."""
    shell = in_shell(text)
    return shell.text, {variable: context.fill(f"{{{name}}}") for variable, name in shell.variables.items()}


async def prepare(context: StepContext, spec: Command, text: str) -> RunCommand:
    bound, variables = bind(context, text)
    in_tree = spec.in_ is CommandFolder.tree
    return RunCommand(
        text=bound,
        cwd=await (context.workspace() if in_tree else context.scratch()),
        timeout=spec.timeout,
        env={
            "BECKET_RUN": context.run.run_id,
            "BECKET_LOOP": context.run.loop_id,
            "BECKET_SUBJECT": context.run.subject.name,
            "BECKET_ITERATION": str(context.run.iteration),
            **{f"BECKET_INPUT_{name.upper()}": text_of(value) for name, value in context.run.inputs.items()},
            **{name: context.fill(value) for name, value in spec.env.items()},
            **variables,
        },
        network=spec.network.value,
        tree=await context.clean_commit() if in_tree else None,
        readable=(context.folder(OBJECTS),) if in_tree else (),
    )


async def run_command(context: StepContext, spec: ActionSpec) -> Result:
    """One `run:` action: the command, then its exit code, outputs and conditions."""
    assert spec.run is not None
    command = await prepare(context, spec, spec.run)
    if spec.effects is not None:
        return await _as_effect(context, spec, spec.effects, command)
    return _result(spec, await context.command(command), command.cwd)


async def verify_by_command(context: StepContext, spec: Command) -> Verdict:
    """Exit 0 pass, 1 fail; anything else, a time-out and a crash cannot tell."""
    assert spec.run is not None
    end = await context.command((await prepare(context, spec, spec.run)).model_copy(update={"kind": "verifier"}))
    says = Conclusion.undecided
    if end.end == "exited" and end.exit_code in (0, 1):
        says = Conclusion.passed if end.exit_code == 0 else Conclusion.failed
    return Verdict(says, {"exit_code": end.exit_code, "end": end.end, "log": end.log, "said": _excerpt(end.tail)})


async def _as_effect(context: StepContext, spec: ActionSpec, effect: RunEffect, command: RunCommand) -> Result:
    adapter = CommandEffect(context, spec, effect, command)
    payload = {"command": spec.run, "values": digest_of(command.env)}
    call = EffectCall(name=effect.name, target=f"command:{spec.id}", payload=payload)
    report = await context.perform_by(call, adapter)
    if report.state == "dry_run":
        return Result(nothing_to_do=f"dry run: would have run {effect.name}")
    if report.state == "unknown":
        return Result(nothing_to_do="whether it happened is not known")
    if report.result.get("observed"):
        if not context.receipts:  # whoever looked it up died before the step was written: look again, for the receipt
            await adapter.look_up(call, report.key)
        return Result(nothing_to_do="it had happened already", conditions=_conditions(spec, 0, None, observed=True))
    _adopt_proof(context, report.result)
    return _result(spec, CommandEnd.model_validate(report.result["end"]), command.cwd)


def _adopt_proof(context: StepContext, result: dict[str, Json]) -> None:
    """What an earlier life of this run did and could not write down any more, unless redaction changed it."""
    proof = StoredReceipt.model_validate(result["receipt"])
    if not context.receipts and proof.receipt.digest == proof.digest:
        context.receipts.append(proof)
        context.artifacts.append(proof.receipt.log or result["end"]["log"])


class CommandEffect:
    """A declared effect of a `run:` action, for the door."""

    def __init__(self, context: StepContext, spec: ActionSpec, effect: RunEffect, command: RunCommand) -> None:
        self.name: str = effect.name
        self.class_: EffectClass = effect.class_
        self.needs: Autonomy = effect.needs
        self.timeout: float = spec.timeout + KILL_ROOM
        self._context = context
        self._spec = spec
        self._look_up = effect.look_up
        self._command = command.model_copy(update={"kind": "effect"})

    def check(self, call: EffectCall) -> str | None:
        return None

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        if not permit.covers(call):
            raise EffectFailed("the permit is for another call")
        end = await self._context.command(self._command)
        if end.end == "timeout":
            raise EffectFailed(f"it did not end within {self._command.timeout:g} s", ambiguous=True)
        if end.end != "exited":
            raise EffectFailed(f"the command {end.end}: {end.message}", ambiguous=end.end == "killed")
        if end.exit_code and not _mapped(self._spec, end.exit_code):
            # Nobody knows how far it came. What that means is for the door to say, by the effect's class.
            raise EffectFailed(f"exit code {end.exit_code}: {_excerpt(end.tail)}", retryable=True, ambiguous=True)
        dumped = end.model_dump(mode="json")
        proof = self._context.receipts[-1].model_dump(mode="json")
        return {"end": dumped, "exit_code": end.exit_code, "receipt": proof}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        if self._look_up is None:
            return LookUpResult.cannot_tell
        text, variables = bind(self._context, self._look_up)
        env = self._command.env | variables
        end = await self._context.command(
            self._command.model_copy(update={"text": text, "env": env, "kind": "look_up"})
        )
        if end.end != "exited" or end.exit_code not in (0, 1):
            return LookUpResult.cannot_tell
        return LookUpResult.yes if end.exit_code == 0 else LookUpResult.no


def _result(spec: ActionSpec, end: CommandEnd, cwd: Path) -> Result:
    if end.end == "not_started":
        raise ActionFailed(end.message or "the command could not be started", kind="not_started")
    if end.end != "exited":
        raise ActionFailed(
            f"the command did not end by itself ({end.end}); log {end.log[:12]}", kind=end.end, retryable=True
        )
    code = end.exit_code if end.exit_code is not None else -1
    parsed = _parse(spec, end, cwd) if code == 0 or _mapped(spec, code) else None
    conditions = _conditions(spec, code, parsed)
    if code != 0 and not _mapped(spec, code):
        raise ActionFailed(
            f"exit code {code}: {_excerpt(end.tail) or 'see the log'}", kind=f"exit_{code}", retryable=True
        )
    return Result(outputs=_outputs(spec, end, parsed, cwd), conditions=conditions)


def _parse(spec: ActionSpec, end: CommandEnd, cwd: Path) -> Json:
    if spec.parse is None and not any(source.startswith("json:") for source in spec.outputs.values()):
        return None
    if spec.parse and spec.parse.startswith("junit:"):
        return _junit(_inside(cwd, spec.parse.removeprefix("junit:")))
    if end.unfit:
        raise ActionFailed(f"its standard output, to be read as JSON, {end.unfit}", kind="bad_output")
    try:
        return json.loads(end.stdout)
    except ValueError as error:
        raise ActionFailed(f"its standard output is not JSON: {error}", kind="bad_output") from None


def _junit(path: Path) -> Json:
    """Counts of a JUnit report. No report and no test are failures, never silence (L11)."""
    try:
        with _opened(path) as file:
            data = file.read(REPORT_LIMIT + 1)
        if len(data) > REPORT_LIMIT:
            raise ActionFailed(f"{path.name} has more than {REPORT_LIMIT} bytes", kind="bad_report")
    except OSError as error:
        raise ActionFailed(f"no readable JUnit report at {path.name}: {error}", kind="bad_report") from None
    report = read_xml(data)
    if report.problem:
        raise ActionFailed(f"no readable JUnit report at {path.name}: {report.problem}", kind="bad_report")
    failed = [case for case in report.cases if case.failed]
    skipped = [case for case in report.cases if case.first("skipped") and not case.failed]
    if len(report.cases) == len(skipped):
        raise ActionFailed("the report has no executed test", kind="no_tests")
    names = [f"{case.attributes.get('classname', '')}::{case.attributes.get('name', '')}" for case in failed]
    return {"tests": len(report.cases), "failed": len(failed), "skipped": len(skipped), "failing": names[:200]}


def _outputs(spec: ActionSpec, end: CommandEnd, parsed: Json, cwd: Path) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for name, source in spec.outputs.items():
        kind, _, path = source.partition(":")
        if kind == "stdout":
            if end.unfit:
                raise ActionFailed(f"the output `{name}` (standard output) {end.unfit}", kind="bad_output")
            made[name] = end.stdout.rstrip("\n")  # as the shell's own $(...) does
        elif kind == "json" and (value := _dig(parsed, path)) is not None:
            made[name] = _writable(name, value)
        elif kind == "file" and (file := _inside(cwd, path)).exists():
            made[name] = _text(name, file)
    return made


def _writable(name: str, value: Json) -> Json:
    """JSON can spell what no file and no variable can hold."""
    text = text_of(value)
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ActionFailed(
            f"the output `{name}` is not text: it has a zero byte or half a character", kind="bad_output"
        )
    return value


def _dig(value: Json, path: str) -> Json:
    for part in path.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _text(name: str, path: Path) -> str:
    with _opened(path) as file:
        text, unfit = value_of(file)
    if unfit:
        raise ActionFailed(f"the output `{name}` (the file {path.name}) {unfit}", kind="bad_output")
    return text


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file that a contained program made: never a pipe that blocks us."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise ActionFailed(f"{path.name} is not a regular file", kind="bad_output")
    with os.fdopen(file, "rb") as stream:
        yield stream


def _inside(cwd: Path, name: str) -> Path:
    """A file of the command's own tree; a symlink out of it is refused."""
    path = (cwd / name).resolve()
    if not path.is_relative_to(cwd.resolve()):
        raise ActionFailed(f"{name} leads out of the tree", kind="escape")
    return path


def _mapped(spec: ActionSpec, code: int) -> bool:
    return any(_matches(key, code) for key in spec.raises)


def _matches(key: str, code: int) -> bool:
    if key == "*":
        return code >= 0
    low, dash, high = key.partition("-")
    if not low.isdigit():
        return False
    return int(low) <= code <= int(high) if dash else code == int(low)


def _conditions(spec: ActionSpec, code: int, parsed: Json, observed: bool = False) -> tuple[Condition, ...]:
    """The most exact exit-code key wins, and replaces the other exit codes' conditions; so do the values of one JSON
    path among themselves.
    """
    exact = [key for key in spec.raises if _matches(key, code)]
    exact.sort(key=lambda key: (key == "*", "-" in key))
    chosen = exact[:1] + [key for key in spec.raises if key.startswith("json:") and _json_holds(key, parsed)]
    raised = []
    for key in chosen:
        object_, name = split_ref(spec.raises[key])
        siblings = (split_ref(ref) for other, ref in spec.raises.items() if _source(other) == _source(key))
        group = tuple(dict.fromkeys(sibling for owner, sibling in siblings if owner == object_))
        evidence: dict[str, Json] = {"by": spec.id, **({"observed": True} if observed else {"exit_code": code})}
        if key.startswith("json:"):
            evidence["matched"] = key
        raised.append(Condition(object=object_, name=name, group=group, life=spec.keep, evidence=evidence))
    return tuple(raised)


def _source(key: str) -> str:
    """What a key of `raises` looks at: the exit code, or one path of the JSON."""
    return key.partition("=")[0] if key.startswith("json:") else "exit code"


def _json_holds(key: str, parsed: Json) -> bool:
    path, _, wanted = key.removeprefix("json:").partition("=")
    found = _dig(parsed, path)
    return found is not None and text_of(found) == wanted


def _excerpt(said: str) -> str:
    """The end of what it said, in one line."""
    return " ".join(said.split())[-200:]
