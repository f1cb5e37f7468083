"""Whoever decides is handed on: no desk looks at the keyboard, so that a chat or a page can act for somebody else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import becket
from becket.app import compose, desk, proposals
from becket.app.compose import App

SOURCE = Path(becket.__file__).parent

AT_KEYBOARD = {
    "app/keyboard.py",
    "app/policy.py",  # who owns what nobody is named for
    "cli/shape.py",
    "parts/front/mcp.py",  # an editor is started by whoever sits there
    "parts/front/safety.py",  # a link of the command line is opened by whoever typed it
    "parts/services/verbs.py",
    "parts/demo/verbs/__init__.py",
    "parts/init/beginning.py",  # writes its name into a first becket.yaml
}

RECORDS = {
    "ask_cancel": 1, "hold": 1, "migrate": 3, "decide_approval": 2, "revoke_approval": 1, "change_handoff": 2,
    "set_control": 2, "retry": 1,
}  # fmt: skip
"""What of store and intake records somebody, and where it wants to be told whom."""


def desks() -> list[Path]:
    """What people's wishes go through, below the verbs."""
    found = [*SOURCE.glob("app/**/*.py"), *SOURCE.glob("parts/**/*.py")]
    below = [path for path in found if not {"verbs", "adapters"} & {*path.parts, path.stem}]
    return [path for path in below if re.search(rf"\b({'|'.join(RECORDS)}|Ask|post)\(", path.read_text())]


def test_only_the_command_line_looks_at_the_keyboard() -> None:
    looking = {"becket.app.keyboard", "pwd", "getpass"}
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if any(name in path.read_text() for name in looking)
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.ImportFrom) and node.module in looking)
        or (isinstance(node, ast.Import) and looking & {alias.name for alias in node.names})
    }
    assert found == AT_KEYBOARD
    assert not hasattr(App, "person")


def wishes(path: Path) -> Iterator[tuple[ast.AsyncFunctionDef | ast.FunctionDef, str, ast.expr | None]]:
    """Each call that records somebody: the function it is in, what is called, and who it says."""
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef):
            continue
        for call in ast.walk(function):
            if not isinstance(call, ast.Call):
                continue
            by = next((word.value for word in call.keywords if word.arg == "by"), None)
            if isinstance(call.func, ast.Name) and call.func.id == "StartRequest":
                yield function, "StartRequest", by
            elif isinstance(call.func, ast.Attribute):
                owner, name = ast.unparse(call.func.value), call.func.attr
                if owner.endswith(("store", "intake")) and name in RECORDS:
                    yield function, name, by or call.args[RECORDS[name]]
                elif owner.endswith("triggers") and name == "post":
                    yield function, name, by


def test_what_records_somebody_is_told_whom() -> None:
    for path in desks():
        for function, name, by in wishes(path):
            where = f"{path.relative_to(SOURCE)}: {function.name} calls {name}"
            assert by is not None, f"{where} without saying who asks"
            if ast.unparse(by).startswith("itself("):
                continue
            assert ast.unparse(by) == "caller", where
            notes = {each.arg: each.annotation for each in function.args.args}
            note = notes.get("caller")
            assert note is not None, f"{where}, and nobody tells it who asks"
            assert ast.unparse(note) == "Caller", where


def test_the_walk_above_finds_what_the_desks_do() -> None:
    """Without this it could pass by finding nothing."""
    found = {name for path in desks() for _, name, _ in wishes(path)}
    assert found == {*RECORDS, "StartRequest", "post"}


@pytest.mark.parametrize("module", [desk, proposals], ids=lambda module: module.__name__)
def test_every_wish_names_who_has_it_second(module: object) -> None:
    file = Path(str(getattr(module, "__file__", "")))
    for function in ast.parse(file.read_text()).body:
        if isinstance(function, ast.AsyncFunctionDef) and "caller" in (names := [a.arg for a in function.args.args]):
            assert names[:2] == ["app", "caller"], function.name


def test_no_object_knows_everything() -> None:
    """`App` puts parts together; what they do is theirs."""
    classes = [
        node for node in ast.parse(Path(str(compose.__file__)).read_text()).body if isinstance(node, ast.ClassDef)
    ]
    (app,) = [node for node in classes if node.name == "App"]
    assert len([node for node in app.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]) <= 25
