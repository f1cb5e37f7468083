"""The front desk: global options, help, errors, and how little it imports."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import becket
from becket import __version__
from becket.cli.front import overview, read, run, typer_of
from becket.cli.verbs import all_verbs
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.part import Verb

VERBS = all_verbs()
BY_NAME = {verb.name: verb for verb in VERBS}
HEAVY = ("pydantic", "sqlalchemy", "rich", "typer", "httpx", "alembic", "watchfiles")


def imported(cwd: Path, *arguments: str) -> set[str]:
    """Top-level packages that a spawned becket imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "becket.cli", *arguments], cwd=cwd, check=True, capture_output=True,
        text=True,
    )  # fmt: skip
    return {row.rpartition("|")[2].strip().partition(".")[0] for row in done.stderr.splitlines() if "|" in row}


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    found = imported(tmp_path, "--help")
    assert "becket" in found
    assert found.isdisjoint(HEAVY)


def test_status_imports_nothing_heavy(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    (tmp_path / "becket.yaml").write_text("version: 1\n")
    (tmp_path / ".git" / "becket").mkdir()
    imported(tmp_path, "status")  # a becket.yaml that nobody has read yet is read whole, once
    for arguments in (("status",), ("status", "--json")):
        assert imported(tmp_path, *arguments).isdisjoint(HEAVY)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_table_of_verbs_says_what_the_verbs_say(verb: Verb) -> None:
    command = typer.main.get_command(typer_of(verb))
    assert command.help is not None
    assert command.help.splitlines()[0] == verb.help


def commands(verb: Verb) -> list[object]:
    command = typer.main.get_command(typer_of(verb))
    return list(getattr(command, "commands", {"": command}).values())


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_command_has_json_and_a_line_of_help(verb: Verb) -> None:
    for command in commands(verb):
        options = {name for param in command.params for name in param.opts}  # type: ignore[attr-defined]
        assert "--json" in options
        assert command.help  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_number_has_its_bounds(verb: Verb) -> None:
    for command in commands(verb):
        for param in command.params:  # type: ignore[attr-defined]
            if param.type_descriptor and param.type_descriptor.annotation in (int, float):
                assert None not in (param.min, param.max), param.name


def said(tree: ast.Module) -> Iterator[str]:
    """The texts of a module without its title, and with `X` where something is filled in."""
    for node in (node for statement in tree.body[1:] for node in ast.walk(statement)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not node.value.endswith(" "):
            yield re.sub(r"\{[^{}]*\}", "X", node.value)


def advised() -> set[str]:
    """Every command that Becket tells somebody to type, in backticks or as a text of its own."""
    found: set[str] = set()
    sources = (file.read_text() for file in Path(becket.__file__).parent.rglob("*.py"))
    for source in (source for source in sources if re.search('[`"]becket ', source)):
        for text in said(ast.parse(source)):
            found.update(re.findall(r"`becket ([^`]+)`", text) or re.findall(r"\Abecket ([^,(]+)", text))
    return {words for words in found if words.split()[0] in BY_NAME}


def wrong_in(words: str) -> str:
    verb, *rest = words.split()
    command = typer.main.get_command(typer_of(BY_NAME[verb]))
    if hasattr(command, "commands"):
        name = rest[0] if rest else ""
        if name != "X" and name not in command.commands:
            return f"`{words}`: {name!r} is none of {', '.join(command.commands)}"
        command = command.commands.get(name, command)
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    strange = {word.partition("=")[0] for word in rest if word.startswith("-") and word != "--"} - options
    return f"`{words}`: no option {strange}" if strange else ""


def test_every_command_that_is_advised_exists() -> None:
    found = advised()
    assert len(found) > 60
    assert [wrong for words in sorted(found) if (wrong := wrong_in(words))] == []


def test_help_lists_every_verb_but_the_hidden_one() -> None:
    text = overview()
    for verb in VERBS:
        assert (f"  {verb.name} " in text) == bool(verb.section)


def test_global_options_come_before_the_verb() -> None:
    call = read(["-C", "a", "-C", "b", "--debug", "runs", "list", "-C", "x"])
    assert (call.folder, call.debug, call.verb, call.rest) == ("a/b", True, "runs", ("list", "-C", "x"))
    assert read(["-C", "a", "-C", "/b", "status"]).folder == "/b"
    assert read(["help", "run"]).rest == ("--help",)
    assert read(["help"]).help
    with pytest.raises(UsageError):
        read(["--nope"])
    with pytest.raises(UsageError):
        read(["-C"])


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"becket {__version__}\n"


def test_no_verb_is_a_usage_error_that_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Usage: becket" in capsys.readouterr().err


def test_a_mistyped_verb_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["statsu"]) == 2
    assert "did you mean `becket status`?" in capsys.readouterr().err


def test_outside_a_repository_says_so_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(tmp_path), "status", "--json"]) == 2
    told = capsys.readouterr()
    assert "is not inside a git work tree" in told.err
    assert json.loads(told.out)["error"]["kind"] == "UsageError"


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(tmp_path / "none"), "status"]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_folder_that_is_gone_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(["status"]) == 2
    assert "the folder that you are in is gone" in capsys.readouterr().err


def test_a_wrong_option_is_a_usage_error_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "x", "--nope"]) == 2
    assert run(["runs", "nope"]) == 2
    assert run(["run", "greet", "--autonomy", "all"]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "x", "--subject", ""), "--subject is empty"),
        (("runs", "list", "--loop="), "--loop is empty"),
        (("event", "x.y", "--id", ""), "--id is empty"),
        (("runs", "report", "x", "--html", "a", "--md", "./a"), "the same file"),
        (("runs", "events", "x", "--after", "9" * 23), "--after"),
    ],
)
def test_what_would_be_taken_for_something_else_is_refused(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_remark_may_be_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("-C", str(tmp_path), "pause", "--note", "")) != 0
    assert "is empty" not in capsys.readouterr().err
