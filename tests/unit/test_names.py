"""One name, one class: whoever searches for a public class of Becket finds one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from becket.kernel.verifiers.git import VERIFIERS

SOURCE = Path(__file__).parents[2] / "src" / "becket"


def public_classes(text: str) -> list[str]:
    return [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def classes_that_share_a_name(files: dict[str, str]) -> dict[str, list[str]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, text in sorted(files.items()):
        for name in public_classes(text):
            places[name].append(path)
    return {name: found for name, found in places.items() if len(found) > 1}


def test_public_class_names_are_unique() -> None:
    demo = SOURCE / "parts" / "demo" / "kettle"  # a project of its own, as a person might have written it
    files = {
        str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8")
        for path in SOURCE.rglob("*.py")
        if demo not in path.parents
    }
    assert len(files) > 300
    assert classes_that_share_a_name(files) == {}


def test_a_name_that_two_classes_share_is_found() -> None:
    files = {"a.py": "class Same: ...\nclass _Own: ...\n", "b.py": "class _Own: ...\ndef f():\n    class Same: ...\n"}
    assert classes_that_share_a_name(files) == {"Same": ["a.py", "b.py"]}


def test_the_older_name_of_a_verifier_goes_on_working() -> None:
    functions = {each.name: each.run for each in VERIFIERS}
    assert functions["refs_moved_by_nobody"] is functions["refs_moved_only_by_people"]
