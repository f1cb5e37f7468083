"""Writes docs/reference from the code: `python docs/_generate.py`. With --check it only says what is stale."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from becket.app.sections import config_model
from becket.cli import words
from becket.cli.front import typer_of
from becket.cli.verbs import all_verbs
from becket.kernel.contract import condition, effect, events, handoff, process, reasons, run, spec, template
from becket.kernel.contract.action import ActionDef, Registry, VerifierDef
from becket.kernel.contract.base import Record
from becket.kernel.contract.condition import RUNTIME_CONDITIONS, RUNTIME_HANDOFFS
from becket.kernel.contract.made import object_of, taken
from becket.kernel.contract.part import Verb
from becket.kernel.spec.schema import config_schema, spec_schema
from becket.testing.crashes import every_point
from becket.testing.world import World

sys.path.insert(0, str(Path(__file__).parent))
from _lint_rules import RULES
from _tables import Book, code, codes, default_of, prose, table

VERBS = [verb for verb in all_verbs() if verb.target.startswith("becket.")]
REFERENCE = Path(__file__).parent / "reference"
HEAD = "<!-- Made by docs/_generate.py from the code. Do not edit. -->\n\n"

EXIT_CODES = {
    "0": "Done. A run that waits for somebody also ends the command with 0.",
    "1": "The thing itself failed: a run ended without its goal, a check found an error, a record does not hold.",
    "2": "Usage or configuration: a wrong option, an unknown name, findings in a file. Nothing was changed.",
    "130": "Interrupted by Ctrl-C. Nothing is lost; the run goes on where it stopped.",
}

EVENTS = {
    "run.created": "The run was asked for; it is queued.",
    "run.claimed": "A worker took it.",
    "run.requeued": "Its worker is gone, or gave it back; it is queued again.",
    "run.waiting": "It waits; the event says for what and until when.",
    "run.woken": "A signal, a due time, the deadline or a cancellation woke it.",
    "run.ended": "The last status, with its reason.",
    "run.held": "A person keeps it from going on.",
    "run.unheld": "The person let it go.",
    "run.migrated": "It follows another version of its spec from here on.",
    "run.cancel_asked": "A person wants it to stop.",
    "iteration.started": "The next pass through the phases begins.",
    "phase.entered": "The first step of a phase was recorded.",
    "step.done": "An action did its work, or a verifier passed.",
    "step.skipped": "A step was left out, with the reason.",
    "step.failed": "An action failed, or a verifier did not pass.",
    "decided": "What follows the iteration, and why.",
    "effect.intended": "The door wrote down what is about to leave.",
    "effect.settled": "How it ended: done, failed, refused, unknown or dry_run.",
    "signal.received": "A signal arrived; it woke the run or is kept for it.",
    "approval.asked": "A question to a person, bound to a hash.",
    "approval.decided": "A person said yes or no, or took it back, or it expired.",
    "approval.used": "The approval was spent.",
    "handoff.opened": "The rest was given to a person.",
    "handoff.changed": "The handoff was taken, finished or has expired.",
    "child.started": "A contained process began.",
    "child.ended": "Everything that process started is gone.",
    "call.booked": "Leave to call an agent, with what it may use; it counts as used until it is settled.",
    "call.settled": "How the call ended, what it used, and whose word that is; also after the run's end.",
    "spent": "An action used something of a budget, without a call.",
    "artifacts.dropped": "Retention dropped its logs and other artifacts; the record itself stays.",
    "clock.leapt": "The clock jumped, or the machine was suspended; deadline, waits and questions were moved along.",
    "note": "A remark for people.",
}

ENUMS: tuple[type[StrEnum], ...] = (
    spec.Phase, spec.Autonomy, spec.OnBusy, spec.Missed, spec.Edge, spec.InputType, spec.WaitThen, spec.OnError,
    spec.EffectClass, spec.CommandFolder, process.Network, condition.Lifetime,
)  # fmt: skip


def cli_page() -> str:
    parts = [HEAD, "# Command line\n\n", "```text\n", words.USAGE, "\n\n", words.GLOBAL_OPTIONS, "\n```\n\n"]
    parts += ["## Exit codes\n\n", table(("code", "meaning"), ((code(key), text) for key, text in EXIT_CODES.items()))]
    for section in dict.fromkeys(verb.section for verb in VERBS if verb.section):
        parts.append(f"## {section}\n\n")
        for verb in VERBS:
            if verb.section == section:
                parts += _verb(verb)
    return "".join(parts).rstrip() + "\n"


def _verb(verb: Verb) -> Iterator[str]:
    command = typer.main.get_command(typer_of(verb))
    yield f"### becket {verb.name}\n\n{verb.help}\n\n"
    inner = getattr(command, "commands", {})
    for name, sub in inner.items():
        yield f"#### becket {verb.name} {name}\n\n{_first(sub.help)}\n\n"
        yield from _usage(f"becket {verb.name} {name}", sub.params)
    if not inner:
        yield from _usage(f"becket {verb.name}", command.params)


def _first(text: str | None) -> str:
    return inspect.cleandoc(text or "")


def _usage(name: str, params: Sequence[Any]) -> Iterator[str]:
    arguments = [param for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option" and param.name != "help"]
    shown = " ".join([name, "[OPTIONS]", *(_metavar(param) for param in arguments)])
    yield f"```text\n{shown}\n```\n\n"
    told = [(code(_metavar(param)), getattr(param, "help", "") or "") for param in arguments]
    told += [(codes(_spellings(param)), _option_help(param)) for param in options]
    yield table(("argument or option", "meaning"), told)


def _metavar(param: Any) -> str:
    word = str(param.metavar or (param.name or "").upper())
    return word if param.required or word.startswith("[") else f"[{word}]"


def _spellings(param: Any) -> list[str]:
    value = "" if param.is_flag else f" {param.metavar or ('NUMBER' if isinstance(param.default, int) else 'TEXT')}"
    return [f"{name}{value}" for name in (*param.opts, *param.secondary_opts)]


def _option_help(param: Any) -> str:
    plain = isinstance(param.default, int | str) and not isinstance(param.default, bool) and param.default != ""
    return f"{param.help or ''}{f' Default: {param.default}.' if plain else ''}"


def enums() -> Iterator[str]:
    yield "## Values\n\n"
    for enum in ENUMS:
        yield f"### {enum.__name__}\n\n"
        yield prose(own_docstring(enum))
        told = comments_of(enum)
        if any(told.values()):
            yield table(("value", "meaning"), ((code(value), text) for value, text in told.items()))
        else:
            yield codes(told) + "\n\n"


def own_docstring(enum: type[StrEnum]) -> str | None:
    """Without one of its own a class shows that of its base."""
    (definition,) = ast.parse(inspect.getsource(enum)).body
    assert isinstance(definition, ast.ClassDef)
    return ast.get_docstring(definition)


def comments_of(enum: type[StrEnum]) -> dict[str, str]:
    """The remark behind each value, where its author left one."""
    found = re.findall(r'^    \w+ = "([\w-]+)"(?:  # (.*))?$', inspect.getsource(enum), re.MULTILINE)
    assert [value for value, _ in found] == [item.value for item in enum], enum
    return dict(found)


def spec_page(registry: Registry) -> str:
    parts = [
        HEAD,
        "# Loop specs\n\n",
        "A loop is one YAML file in `.becket/loops/`. `becket loops lint` checks it, `becket loops schema` prints its ",
        "JSON Schema. Unknown keys are errors. How the parts work together is told in [Concepts](../concepts.md).\n\n",
        *Book(spec_schema(), "The file", [enum.__name__ for enum in ENUMS]).sections("##"),
        *enums(),
        *_fields(),
        *_conditions(),
        *_actions(registry.actions),
        *_verifiers(registry.verifiers),
        "## Effects\n\n",
        "What the door can let out. A `run` action with `effects:` adds its own.\n\n",
        table(
            ("effect", "class", "needs autonomy"),
            ((code(item.name), code(item.class_), code(item.needs)) for _, item in sorted(registry.effects.items())),
        ),
        *_lint(),
    ]
    return "".join(parts).rstrip() + "\n"


def _fields() -> Iterator[str]:
    yield "## Fields\n\n"
    yield "A `{field}` in a text is filled in when it is used; for a brace that is not one, write it twice.\n\n"
    rows = [("`subject`, `group` and every step", codes(template.ALWAYS) + ", and the loop's inputs")]
    rows += [(f"runs started by `{kind}`", codes(names)) for kind, names in template.OF_TRIGGER.items() if names]
    rows += [("every step", codes(template.OF_STEP) + ", and `ID.OUTPUT` of earlier steps")]
    rows += [("steps of notify", codes(template.OF_NOTIFY))]
    yield table(("where", "fields"), rows)
    yield (
        "In `run:` and `look_up:` a field becomes an environment variable and never a part of the command. "
        'Quote it as a variable: `"{base.sha}"`.\n\n'
        "All other braces there are the shell's and stay as they are, single or double: `f() { ls; }`, "
        "`${A:-${B}}`, `'{\"a\": {}}'`, `'{{.Id}}'`. Only where a field could stand, `{{name}}` gives `{name}`.\n\n"
    )


def _conditions() -> Iterator[str]:
    yield "## Conditions of the runtime\n\nAny spec may use them.\n\n"
    yield table(("condition", "raised when"), ((code(name), text) for name, text in RUNTIME_CONDITIONS.items()))
    yield "## Handoffs of the runtime\n\nThey hand a run to a person in every loop, listed or not.\n\n"
    yield table(("reason", "meaning"), ((code(name), text) for name, text in RUNTIME_HANDOFFS.items()))


def _actions(actions: Mapping[str, ActionDef]) -> Iterator[str]:
    yield "## Actions\n\n"
    yield (
        "A parameter with `made: KIND` may be left out: then it is what earlier steps made of that kind, whatever "
        "they are called. What `with` says counts. Kept outputs need no `persist_outputs`.\n\n"
    )
    for name, action in sorted(actions.items()):
        yield f"### {name}\n\n{action.summary}"
        yield " It calls an agent: a dry run leaves it out.\n\n" if action.calls_agent else "\n\n"
        yield from _params(action.params)
        groups = action.groups(action.params.model_construct())
        raised = "; ".join(codes(group.refs) for group in groups) or "nothing"
        if callable(action.raises) and "of" in action.params.model_fields:
            raised += " (with another `of`, about that object)"
        yield f"- Raises: {raised}\n- Outputs: {codes(action.outputs) or 'none'}"
        yield f"; kinds: `{object_of(action.about, action.params, {})}.OUTPUT`" if action.about else ""
        yield f"; kept: {'all' if action.keeps == action.outputs else codes(action.keeps)}\n" if action.keeps else "\n"
        yield f"- Effects: {codes(action.effects) or 'none'}\n\n"


def _verifiers(verifiers: Mapping[str, VerifierDef]) -> Iterator[str]:
    yield "## Verifiers\n\nEach raises `ID.pass`, `ID.fail` or `ID.undecided`.\n\n"
    for name, verifier in sorted(verifiers.items()):
        yield f"### {name}\n\n{verifier.summary}\n\n"
        yield from _params(verifier.params)


def _params(model: type[Record]) -> Iterator[str]:
    schema = model.model_json_schema(by_alias=True)
    if not schema.get("properties"):
        return
    book = Book({"$defs": {}, **schema})
    yield prose(inspect.getdoc(model) if model.__doc__ and model.__doc__ != Record.__doc__ else "")
    required, made = schema.get("required", ()), {key: f"made: {mark.told}" for key, _, mark in taken(model, {})}
    rows = [
        (code(key), book.type_of(value), made.get(key) or ("required" if key in required else default_of(value)))
        for key, value in schema["properties"].items()
    ]
    yield table(("parameter", "type", "default"), rows)


def _lint() -> Iterator[str]:
    yield "## Lint rules\n\n"
    yield "A finding carries file, line, column, rule, message and the fix. One finding is exit code 2.\n\n"
    for theme, rules in RULES.items():
        yield f"### {theme}\n\n" + table(("rule", "meaning"), ((code(rule), text) for rule, text in rules.items()))


def config_page() -> str:
    committed = codes(config_model().committed_keys)
    parts = [
        HEAD,
        "# becket.yaml\n\n",
        "The repository's own settings. `becket init` writes a first one, `becket doctor` checks it.\n\n",
        f"{committed} count as committed; the other keys count as they stand in the working copy. ",
        "`${VAR}`, `${VAR:-default}` and the literal `$${` work everywhere but in `gates`. ",
        "Unknown keys are errors.\n\n",
        *Book(config_schema(config_model()), "The file").sections("##"),
    ]
    return "".join(parts).rstrip() + "\n"


def records_page() -> str:
    """Statuses, events and the other closed sets that a program meets in --json."""
    moves = [(code(old), code(move), code(new)) for (old, move), new in run.TRANSITIONS.items()]
    points = sorted(every_point().items())
    parts = [
        HEAD,
        "# Records\n\nThe closed sets behind `--json`.\n\n",
        "## Status of a run\n\n",
        table(("status", "said as"), ((code(item), words.STATUS[item.value]) for item in run.RunStatus)),
        "Every legal move:\n\n",
        table(("from", "move", "to"), moves),
        "## Reasons\n\nBesides the names of a loop's own handoff conditions:\n\n",
        table(("reason", "meaning"), ((code(name), text) for name, text in reasons.REASONS.items())),
        "## Events\n\nNumbered from 1 without a hole; each carries the digest of the one before.\n\n",
        table(("event", "meaning"), ((code(kind.value), EVENTS[kind.value]) for kind in events.EventKind)),
        "## States of an effect\n\n",
        table(("state", "meaning"), ((code(key), text) for key, text in comments_of(effect.EffectState).items())),
        "## States of people's records\n\n",
        f"- Handoff: {codes(handoff.HandoffState)}\n- Approval: {codes(handoff.ApprovalState)}\n\n",
        "## Crash points\n\nWhere `BECKET_CRASH_AT=NAME` or `NAME@3` kills the process; see ",
        "[Development](../development.md#crash-points).\n\n",
        table(
            ("point", "why it is worth a test"),
            ((code(name), point.why) for name, point in points),
        ),
    ]
    return "".join(parts).rstrip() + "\n"


def registry() -> Registry:
    """What a real repository offers."""
    with tempfile.TemporaryDirectory() as folder:
        return World(Path(folder)).app.registry


def pages() -> dict[str, str]:
    return {
        "cli.md": cli_page(), "spec.md": spec_page(registry()), "config.md": config_page(),
        "records.md": records_page(),
    }  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    stale = []
    for name, text in pages().items():
        path = REFERENCE / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    if stale:
        print(f"{'stale' if '--check' in arguments else 'written'}: {', '.join(stale)}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
