"""Write a first becket.yaml: commented, loadable as it stands, and never over somebody's work."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from becket.kernel.checks import words
from becket.kernel.contract.base import Record, show_duration
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import Network
from becket.parts.gates.section import GateStep, SetupConfig
from becket.parts.init.detect import Detected
from becket.parts.init.yamltext import quoted, scalar

CONFIG_FILE = "becket.yaml"
EXAMPLE_FILE = ".becket/loops/hello.yaml"
_CI_FILES = (".github", ".gitlab-ci.yml", ".circleci", "azure-pipelines.yml", "Jenkinsfile")
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EXDEV, errno.ENOSYS})


class ScaffoldResult(Record):
    """What was written, what was kept, and what the person should still look at."""

    config: Path
    backup: Path | None = None
    example: Path | None = None
    notes: tuple[str, ...] = ()


def write_config(
    root: Path,
    detected: Detected,
    branch: str,
    person: str,
    *,
    force: bool = False,
    with_example: bool = False,
    agent: str | None = None,
) -> ScaffoldResult:
    """Write becket.yaml, and on request an example loop. `force` keeps an existing file as becket.yaml.bak.

    `agent` is a coding agent's program that is on this machine: it is proposed, commented out like all examples.
    """
    target = root / CONFIG_FILE
    if target.is_dir():
        raise UsageError(words.CONFIG_IS_FOLDER.format(path=target))
    if os.path.lexists(target) and not force:
        raise UsageError(words.CONFIG_EXISTS.format(path=target))
    text = render(root, detected, branch, person, agent)
    with _advice(root):
        backup = _keep_old(target)
        _place(target, text, replace=backup is not None)
        example = _write_example(root) if with_example else None
    notes = [*detected.notes, *(note for found in detected.ecosystems for note in found.notes)]
    notes += [] if detected.fast else [words.NO_TEST_COMMAND]
    plain = [step.name for step in detected.fast if step.report == "plain"]
    notes += [words.NO_COUNT.format(steps=", ".join(plain))] if plain else []
    notes += [words.AGENT_PROPOSED.format(program=agent)] if agent else []
    if with_example and example is None:
        notes.append(words.EXAMPLE_EXISTS.format(path=root / EXAMPLE_FILE))
    return ScaffoldResult(config=target, backup=backup, example=example, notes=tuple(dict.fromkeys(notes)))


def render(root: Path, detected: Detected, branch: str, person: str, agent: str | None = None) -> str:
    """The text of becket.yaml. A line that begins with `#` and no space is an example to uncomment."""
    name = person_key(person)
    protected = "".join(f"\n    - {quoted(pattern, 4)}" for pattern in _protected(root))
    active = {
        "version": "version: 1",
        "branch": f"branch: {scalar(branch, 0, 8)}",
        "autonomy": "autonomy: propose",
        "gates": _gates(detected),
        "setup": _setup(detected.setup) if detected.setup else "",
        "test_side": _list("test_side", detected.test_side) if detected.test_side else "",
        "guard": f"guard:\n  protected:{protected}\n  max_deleted_share: 0.2\n  max_file: 5MB",
        "sandbox": "sandbox: auto",
        "people": f"people:\n  {name}:\n    role: owner\n    os_user: {quoted(person, 4, 13)}",
        "handoff_to": f"handoff_to: {name}",
    }
    sections = [words.CONFIG_HEAD]
    for key, comment in words.CONFIG_COMMENTS.items():
        body = active.get(key) or _commented(_agents(agent) if key == "agents" else words.CONFIG_EXAMPLES[key])
        sections.append(f"{_prose(comment)}\n{body}")
    reserved = ", ".join(key for key in Config.model_fields if key not in words.CONFIG_COMMENTS)
    sections.append(_prose(words.CONFIG_RESERVED.format(keys=reserved)))
    return "\n\n".join(sections) + "\n"


def leave_out(config: Path, steps: Mapping[str, str]) -> None:
    """Turn steps of a file that `render` wrote into comments, each with its reason; a gate without a step too."""
    lines: list[str] = []
    reason = ""
    for line in config.read_text("utf-8").splitlines():
        inside = line.startswith("      ")
        if line.startswith("    - name: "):
            reason = steps.get(line.removeprefix("    - name: ").strip('"'), "")
            lines += (
                [f"    # {part}" for part in textwrap.wrap(words.DROPPED.format(why=reason), 100)] if reason else []
            )
        elif not inside:
            reason = ""
        lines.append(f"#{line}" if reason else line)
    for key, inside_it in (("  (fast|slow):", "    -"), ("gates:", "  ")):
        for number, line in enumerate(lines):
            following = (other for other in lines[number + 1 :] if not other.lstrip().startswith("#"))
            if re.fullmatch(key, line) and not next(following, "").startswith(inside_it):
                lines[number] = f"#{line}"
    with _advice(config.parent):
        _place(config, "\n".join(lines) + "\n", replace=True)


def person_key(person: str) -> str:
    """A name for `people` made of an operating-system user: lower case, digits and _, a letter first."""
    slug = re.sub(r"[^a-z0-9]+", "_", person.lower()).strip("_")[:60]
    if not slug:
        return "owner"
    return slug if slug[0].isalpha() else f"p_{slug}"


def _protected(root: Path) -> list[str]:
    """What agents must not touch: the rules of the game, here and on the forge."""
    found = [name for name in _CI_FILES if os.path.lexists(root / name)]
    return [CONFIG_FILE, ".becket/**", *(f"{name}/**" if (root / name).is_dir() else name for name in found)]


def _gates(detected: Detected) -> str:
    if not detected.fast and not detected.slow:
        return ""
    comments = {run: text for found in detected.ecosystems for run, text in found.comments.items()}
    parts = ["gates:"]
    for gate, steps, example in (
        ("fast", detected.fast, words.FAST_EXAMPLE),
        ("slow", detected.slow, words.SLOW_EXAMPLE),
    ):
        shown = "\n".join(_step(step, comments.get(step.run, "")) for step in steps)
        parts.append(f"  {gate}:\n{shown}" if steps else _commented(example))
    return "\n".join(parts)


def _agents(found: str | None) -> str:
    """One of each kind; `fixer`, whom the heal loop calls, is the one that is there."""
    order = sorted(words.AGENT_EXAMPLES, key=lambda program: program != found)
    named = {"fixer": order[0], **{program: program for program in order[1:]}}
    return "\n".join(["agents:", *(f"  {name}:\n{words.AGENT_EXAMPLES[program]}" for name, program in named.items())])


def _step(step: GateStep, comment: str) -> str:
    lines = [f"    # {part}" for part in textwrap.wrap(comment, 110)]
    lines += [f"    - name: {scalar(step.name)}", f"      run: {quoted(step.run, 6, 11)}"]
    if step.report != "plain":
        lines.append(f"      report: {quoted(step.report, 6, 14)}")
    if step.rerun:
        lines.append(f"      rerun: {quoted(step.rerun, 6, 13)}")
    lines.append(f"      timeout: {show_duration(step.timeout)}")
    if step.min_tests:
        lines.append(f"      min_tests: {step.min_tests}")
    if step.network is not Network.none:
        lines.append(f"      network: {step.network.value}  # {words.NETWORK_COMMENT}")
    return "\n".join(lines)


def _setup(setup: SetupConfig) -> str:
    return "\n".join(
        [
            "setup:",
            f"  run: {quoted(setup.run, 2, 7)}",
            "  key:",
            *(f"    - {quoted(name, 4)}" for name in setup.key),
            f"  network: {setup.network.value}",
            f"  timeout: {show_duration(setup.timeout)}",
        ]
    )


def _list(key: str, items: tuple[str, ...]) -> str:
    return "\n".join([f"{key}:", *(f"  - {quoted(item, 2)}" for item in items)])


def _prose(text: str) -> str:
    return "\n".join(f"# {line}" for line in text.splitlines())


def _commented(text: str) -> str:
    return "\n".join(f"#{line}" for line in text.splitlines())


def _keep_old(target: Path) -> Path | None:
    """A second name for the old file, so that no moment exists at which it could be lost."""
    if not os.path.lexists(target):
        return None
    for number in range(1, 1000):
        backup = target.with_name(f"{target.name}.bak" + (str(number) if number > 1 else ""))
        try:
            os.link(target, backup, follow_symlinks=False)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if os.path.lexists(backup):
                continue
            _place(backup, target.read_bytes().decode("utf-8", "surrogateescape"), replace=False)
        return backup
    raise UsageError(words.TOO_MANY_BACKUPS.format(path=target))


def _write_example(root: Path) -> Path | None:
    target = root / EXAMPLE_FILE
    if os.path.lexists(target):
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    _place(target, words.EXAMPLE_LOOP, replace=False)
    return target


def _place(target: Path, text: str, *, replace: bool) -> None:
    """The whole file or none of it, on disk when this returns. Without `replace` an existing file wins."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(target)
        else:
            _link_or_rename(temporary, target)
        _sync_folder(target.parent)
    except FileExistsError as error:
        raise UsageError(words.CONFIG_EXISTS.format(path=target)) from error
    finally:
        temporary.unlink(missing_ok=True)


def _link_or_rename(temporary: Path, target: Path) -> None:
    """A hard link fails if the name was taken meanwhile; rename would overwrite, so it is only the second choice."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from error
        temporary.rename(target)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _advice(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(words.CANNOT_WRITE.format(path=error.filename or root, why=error.strerror)) from error
