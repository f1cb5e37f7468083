"""Templates in specs: `{subject}`, `{id.output}`, `{branch}@{sha}`. A brace that is no field is written twice.

`{id.output?}` is empty where that action was left out, instead of an error.

In shell text (`run:`, `look_up:`) other braces are the shell's own, single or double: `}}` ends `${A:-${B}}`, and
`{{.Id}}` is another program's. Only `{{name}}` gives `{name}`. A field never becomes part of the command: it turns into
a variable, so that no output, message or file name can choose what is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from becket.kernel.contract.base import Json

ALWAYS = ("loop_id", "start", "trigger", "repo", "branch", "sha")
"""What `subject`, `group` and every step may use, besides the loop's inputs. A start that is not about a commit takes
branch and sha from the head of the configured branch."""

OF_TRIGGER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "manual": (),
        "commit": ("old",),
        "schedule": ("time", "cron"),
        "event": ("name", "id", "data.*"),
        "after": ("loop", "run", "subject", "outcome"),
    }
)
"""What a trigger adds; `data.*` is any key of the event's data."""

OF_STEP = ("subject", "run_id", "iteration")
"""What steps may use on top; there `subject` is the run's own."""

OF_NOTIFY = ("decision.outcome", "decision.reason", "decision.why")
"""What the steps of notify may use besides."""


LONGEST_READ_BACK = 500
"""Longer texts are not read back: several open fields in one could be cut in too many ways."""


class TemplateError(ValueError):
    """The text is not a template. `column` is 1-based within the text."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a template; `column` is that of its brace, 1-based."""

    name: str
    column: int


@dataclass(frozen=True, slots=True)
class ShellText:
    """A command whose fields became variables: `text` for the shell, and which field each variable holds."""

    text: str
    variables: Mapping[str, str]


_NAME = r"[a-z][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*"
_PIECE = re.compile(rf"\{{\{{|\}}\}}|\{{({_NAME})(\?)?\}}|[{{}}]")
# A `$` before the brace makes it the shell's; a doubled brace around a name makes it text.
_SHELL_FIELD = re.compile(rf"\{{\{{({_NAME})\}}\}}|(?<![${{])\{{({_NAME})\}}(?!\}})")
# In the order in which a shell reads: an escaped character, a comment, a text in double quotes, one in single quotes.
_SHELL_QUOTED = re.compile(r"""\\.|(?:(?<=\s)|^)\#[^\n]*|"(?:\\.|[^"\\])*"?|('[^']*'?)""", re.DOTALL | re.MULTILINE)


def fields(text: str) -> tuple[Field, ...]:
    """The fields of a template in the order of the text; raises TemplateError for a brace that is not one."""
    found = []
    for match in _PIECE.finditer(text):
        if match[1]:
            found.append(Field(match[1], match.start() + 1))
        elif match[0] in "{}":
            raise TemplateError(
                f"a lone {match[0]!r}: fields look like {{subject}} or {{id.output}}; double it to mean the brace",
                match.start() + 1,
            )
    return tuple(found)


def is_field(text: str) -> bool:
    """Whether the whole text is one field, so that it may stand for a value of any type."""
    match = _PIECE.fullmatch(text)
    return match is not None and bool(match[1])


def fill(text: str, look_up: Callable[[str], str], known: Callable[[str], bool] = lambda name: True) -> str:
    """The text with every field replaced; what `look_up` returns is never read as a template again.

    `known` tells which names there are: a field with a question mark is empty where there is none.
    """
    fields(text)

    def replaced(match: re.Match[str]) -> str:
        if not match[1]:
            return match[0][0]
        return "" if match[2] and not known(match[1]) else look_up(match[1])

    return _PIECE.sub(replaced, text)


def name_of(field: str) -> str:
    """The name in a text that is one field."""
    return field[1:-1].removesuffix("?")


def read_back(text: str, template: str, patterns: Mapping[str, str]) -> dict[str, str] | None:
    """The fields with which the template gives this text; None if there are none. A field without a pattern of its own
    is as much of a line as it can be.
    """
    if len(text) > LONGEST_READ_BACK:
        return None
    groups: dict[str, str] = {}
    pattern, at = "", 0
    for match in _PIECE.finditer(template):
        pattern += re.escape(template[at : match.start()])
        at = match.end()
        if not match[1]:
            pattern += re.escape(match[0][0])
        elif match[1] in groups:
            pattern += f"(?P={groups[match[1]]})"
        else:
            groups[match[1]] = f"field{len(groups)}"
            pattern += f"(?P<{groups[match[1]]}>{patterns.get(match[1], '.+')})"
    found = re.fullmatch(pattern + re.escape(template[at:]), text)
    return None if found is None else {name: found[group] for name, group in groups.items()}


def shell_fields(text: str) -> tuple[Field, ...]:
    """The fields of a shell text. Never an error: what is not a field belongs to the shell."""
    return tuple(Field(match[2], match.start() + 1) for match in _SHELL_FIELD.finditer(text) if match[2])


def in_single_quotes(text: str) -> tuple[Field, ...]:
    """The fields of a shell text that stand in single quotes, where no shell expands a variable.

    None where a here-document may be: in it quotes mean nothing.
    """
    if "<<" in text:
        return ()
    quoted = [False] * (len(text) + 1)
    for match in _SHELL_QUOTED.finditer(text):
        if match[1]:
            quoted[match.start() : match.end()] = [True] * len(match[0])
    return tuple(field for field in shell_fields(text) if quoted[field.column - 1])


def in_shell(text: str) -> ShellText:
    """The command with each field as `${BECKET_FIELD_n}`. It is quoted as any variable is: `"{base.sha}"`."""
    names = tuple(dict.fromkeys(field.name for field in shell_fields(text)))
    variables = {name: f"BECKET_FIELD_{number}" for number, name in enumerate(names, 1)}

    def replaced(match: re.Match[str]) -> str:
        return f"${{{variables[match[2]]}}}" if match[2] else f"{{{match[1]}}}"

    return ShellText(_SHELL_FIELD.sub(replaced, text), MappingProxyType({v: k for k, v in variables.items()}))


def plain_text(value: Json) -> str | None:
    """A text without fields, so that it is known before the run."""
    try:
        return value if isinstance(value, str) and not fields(value) else None
    except TemplateError:
        return None
