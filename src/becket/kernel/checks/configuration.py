"""Checks of becket.yaml: readable, committed, with gates that can fail, variables and a person."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from becket.kernel.checks import words
from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import InvalidDocument

FILE = "becket.yaml"
_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def readable(exam: Exam) -> Iterator[Diagnosis]:
    if exam.facts.root is None:
        return
    loaded = exam.loaded
    if loaded is None:
        yield Diagnosis(name="config", level=Level.error, what=words.CONFIG_NONE, mend="becket init", where=FILE)
    elif isinstance(loaded, InvalidDocument):
        for found in loaded.findings:
            where = f"{found.file}:{found.line}:{found.column}"
            yield Diagnosis(name="config", level=Level.error, what=found.message, mend=found.fix, where=where)
    elif isinstance(loaded, Exception):
        raise loaded
    else:
        yield Diagnosis(name="config", level=Level.ok, what=words.CONFIG_OK, where=FILE)


def committed(exam: Exam) -> Iterator[Diagnosis]:
    """Gates and the like count as committed, so a difference is a surprise in waiting."""
    if exam.config is None:
        return
    base = exam.committed
    if base is None:
        yield Diagnosis(
            name="committed", level=Level.error, what=words.NOT_COMMITTED, mend=words.COMMIT_MEND, where=FILE
        )
    elif isinstance(base, Exception):
        what = words.COMMITTED_BROKEN.format(why=str(base).splitlines()[0] if str(base) else type(base).__name__)
        yield Diagnosis(name="committed", level=Level.error, what=what, mend=words.COMMIT_MEND, where=f"HEAD:{FILE}")
    elif changed := [key for key in exam.config.committed_keys if getattr(exam.config, key) != getattr(base, key)]:
        line = min((_line_of_key(exam.facts.working_text or "", key) for key in changed), default=1)
        what = words.COMMITTED_DIFFERS.format(keys=", ".join(changed))
        where = f"{FILE}:{line}"
        yield Diagnosis(name="committed", level=Level.warn, what=what, mend=words.COMMIT_MEND, where=where)
    else:
        yield Diagnosis(name="committed", level=Level.ok, what=words.COMMITTED_OK, where=FILE)


def variables(exam: Exam) -> Iterator[Diagnosis]:
    """Secrets that the file refers to and the environment lacks (L37), and files of them that are not there."""
    text = exam.facts.working_text
    if text is None:
        return
    found = list(_undefined(exam, text))
    found += [*_missing_env_files(exam, exam.config), *_missing_variables(exam, exam.config)] if exam.config else []
    yield from found or [Diagnosis(name="variables", level=Level.ok, what=words.VARIABLES_OK)]


def handoff_to(exam: Exam) -> Iterator[Diagnosis]:
    config = exam.config
    if config is None:
        return
    if config.handoff_to is None:
        name = next(iter(config.people), "owner")
        mend = (words.HANDOFF_MEND if config.people else words.PEOPLE_MEND).format(name=name)
        yield Diagnosis(name="people", level=Level.warn, what=words.NO_HANDOFF, mend=mend, where=FILE)
    else:
        yield Diagnosis(name="people", level=Level.ok, what=words.HANDOFF_OK.format(name=config.handoff_to))


def alarms(exam: Exam) -> Iterator[Diagnosis]:
    """A file that cannot be made is found now, not by the alarm that is to be written there."""
    if exam.config is None or exam.facts.root is None:
        return
    named = [target.file for target in exam.config.alarms if target.file]
    missing = [file for file in named if not _could_hold(exam.facts.root / file)]
    for file in missing:
        what, mend = words.ALARM_NONE.format(file=file), words.ALARM_MEND
        yield Diagnosis(name="alarms", level=Level.error, what=what, mend=mend, where=place_of(exam, file))
    if not missing:
        yield Diagnosis(name="alarms", level=Level.ok, what=words.ALARMS_OK)


def _could_hold(file: Path) -> bool:
    return file.is_file() and not file.is_symlink() if os.path.lexists(file) else file.parent.is_dir()


def place_of(exam: Exam, value: str) -> str:
    """becket.yaml with the line where a value begins, if it stands there in so many words."""
    whole = value.splitlines()[0] if value else ""
    text = [line.replace('\\"', '"') for line in (exam.facts.working_text or "").splitlines()]
    for start in (whole, whole[:40]) if whole else ():  # a long command may be folded, and two may begin alike
        for number, line in enumerate(text, 1):
            if start in line and not line.lstrip().startswith("#"):
                return f"{FILE}:{number}"
    return FILE


def _undefined(exam: Exam, text: str) -> Iterator[Diagnosis]:
    told = {found.line for found in exam.loaded.findings} if isinstance(exam.loaded, InvalidDocument) else set()
    inside_gates = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"[A-Za-z_\"']", line):
            inside_gates = re.match(r"[\"']?gates[\"']?\s*:", line) is not None
        for match in _VARIABLE.finditer(_without_comment(line)) if not inside_gates else ():
            if match[1] not in exam.facts.env and number not in told:
                yield Diagnosis(
                    name="variables",
                    level=Level.error,
                    what=words.UNDEFINED.format(name=match[1]),
                    mend=words.UNDEFINED_MEND.format(name=match[1]),
                    where=f"{FILE}:{number}:{match.start() + 1}",
                )


def _missing_env_files(exam: Exam, config: Config) -> Iterator[Diagnosis]:
    for what, file in config.env_files():
        if exam.facts.root is not None and not (exam.facts.root / file).is_file():
            text, mend = words.ENV_FILE_NONE.format(what=what, file=file), words.ENV_FILE_MEND.format(file=file)
            yield Diagnosis(name="variables", level=Level.warn, what=text, mend=mend, where=place_of(exam, file))


def _missing_variables(exam: Exam, config: Config) -> Iterator[Diagnosis]:
    """Names that commands are to be given, and that Becket itself does not have."""
    wanted = ((user, name) for user, one in config.given() for name in one.env)
    for user, name in ((user, name) for user, name in wanted if name not in exam.facts.env):
        what, mend = words.GIVEN_NONE.format(user=user, name=name), words.GIVEN_MEND.format(name=name)
        yield Diagnosis(name="variables", level=Level.warn, what=what, mend=mend, where=place_of(exam, name))


def _without_comment(line: str) -> str:
    """YAML's rule: a `#` outside quotes, at the start or after a blank."""
    quote = ""
    for index, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and (index == 0 or line[index - 1] in " \t"):
            return line[:index]
    return line


def _line_of_key(text: str, key: str) -> int:
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"[\"']?{key}[\"']?\s*:", line):
            return number
    return 1
