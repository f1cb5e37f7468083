"""The documentation is true: its reference is fresh, its loops lint clean, its examples run, its commands exist."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from becket.app.sections import load_config
from becket.cli.front import typer_of
from becket.cli.verbs import find_verb
from becket.kernel.contract.action import Registry
from becket.kernel.contract.config import Names
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.spec.lint import lint_text
from becket.kernel.spec.load import load_spec
from becket.testing.world import World, commit_all, make_repository

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md"))])

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\$ )?becket +(.*)$", re.MULTILINE)


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])
        for page in PAGES
        for text in [page.read_text(encoding="utf-8")]
        for match in _BLOCK.finditer(text)
        if match[1] in languages
    ]


def is_loop(block: Block) -> bool:
    return block.text.startswith("version: 1") and "\nloop_id:" in block.text


LOOPS = [block for block in blocks("yaml") if is_loop(block)]
CONFIGS = [block for block in blocks("yaml") if block.text.startswith("version: 1") and not is_loop(block)]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    """What a real repository offers, not what a test would like to have."""
    return World(tmp_path_factory.mktemp("docs")).app.registry


def test_the_reference_is_fresh() -> None:
    """In a process of its own: crash points that tests declare are not Becket's."""
    done = subprocess.run(
        [sys.executable, str(DOCS / "_generate.py"), "--check"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nrun `python docs/_generate.py` and commit what it writes"


def test_a_stale_reference_is_noticed(tmp_path: Path) -> None:
    for name in ("_generate.py", "_tables.py", "_lint_rules.py"):
        (tmp_path / name).write_text((DOCS / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "reference").mkdir()
    for page in (DOCS / "reference").glob("*.md"):
        (tmp_path / "reference" / page.name).write_text(page.read_text(encoding="utf-8") + "\nOld.\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "_generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "stale: cli.md, spec.md, config.md, records.md\n")


def test_every_lint_rule_is_explained(registry: Registry) -> None:
    """L45: a finding that nobody can look up helps nobody."""
    named = {"unraisable-stop", "unraisable-handoff", "unraisable-wait", "unknown-action", "unknown-verifier"}
    for file in Path(inspect.getfile(lint_text)).parent.rglob("*.py"):
        words = r'"((?:[a-z0-9]+-)+[a-z0-9]+|anchor|tag|tab|contradiction|unreachable|unreadable)"'
        named |= set(re.findall(words, file.read_text(encoding="utf-8")))
    for definition in (*registry.actions.values(), *registry.verifiers.values()):
        marks = [mark for field in definition.params.model_fields.values() for mark in field.metadata]
        named |= {mark.rule for mark in marks if isinstance(mark, Names)}
    explained = re.findall(
        r"^\| `([a-z0-9-]+)` \|", (DOCS / "reference/spec.md").read_text().partition("## Lint rules")[2], re.MULTILINE
    )
    assert set(explained) == named - {"utf-8", "utf-8-sig"}
    assert len(explained) == len(set(explained))


def _loop(block: Block) -> LoadedLoop:
    return LoadedLoop(spec=load_spec(block.text, str(block)), text=block.text, digest=str(block), source=str(block))


@pytest.mark.parametrize("block", LOOPS, ids=str)
def test_every_loop_in_the_docs_lints_clean(block: Block, registry: Registry) -> None:
    others = [_loop(other) for other in LOOPS if other.page == block.page and other != block]
    unique = {loop.spec.loop_id: loop for loop in others}
    spec, findings = lint_text(block.text, str(block), registry, tuple(unique.values()))
    assert findings == []
    assert spec is not None


@pytest.mark.parametrize("block", CONFIGS, ids=str)
def test_every_becket_yaml_in_the_docs_loads(block: Block) -> None:
    known = {"BECKET_DATABASE": "postgresql://db.example/becket", "USER": "ada", "CI_HOOK_SECRET": "a-secret-of-a-hook"}
    load_config(block.text, str(block), known)


def test_every_whole_yaml_document_is_checked() -> None:
    """A block that forgot `version: 1` would pass vacuously."""
    loose = [str(block) for block in blocks("yaml") if block not in LOOPS and block not in CONFIGS]
    assert loose == []
    assert len(LOOPS) >= 8


def commands() -> Iterator[tuple[str, str]]:
    for block in blocks("console"):
        for match in _COMMAND.finditer(block.text):
            yield str(block), match[1]


@pytest.mark.parametrize(("where", "line"), sorted(set(commands())), ids=lambda value: str(value)[:60])
def test_every_command_in_the_docs_exists(where: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] == "-C" else words[1:]
    if not words:  # `becket --help`
        return
    verb = find_verb(words[0])
    assert verb is not None, f"{where}: there is no `becket {words[0]}`"
    command: Any = typer.main.get_command(typer_of(verb))
    inner = getattr(command, "commands", None)
    if inner is not None:
        assert words[1] in inner, f"{where}: there is no `becket {words[0]} {words[1]}`"
        command = inner[words[1]]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"-h", "--help"}
    for option in (word.split("=")[0] for word in words[1:] if word.startswith("-")):
        assert option in known, f"{where}: `becket {words[0]}` has no {option}"


def test_there_are_commands_to_check() -> None:
    assert len({line.split()[0] for _, line in commands()}) >= 12


PLUGIN = DOCS / "howto" / "python-plugin.md"
PLAYED = """\
import sys
from pathlib import Path
from test_my_becket import *
test_a_large_checkout_is_handed_to_a_person(Path(sys.argv[1]))
"""


def test_the_files_of_the_part_in_the_manual_are_a_part(tmp_path: Path) -> None:
    """Saved as their first lines say, and found as an installed package is, by what stands beside it on the path."""
    files = {
        block.text.splitlines()[0].removeprefix("# "): block.text for block in blocks("python") if block.page == PLUGIN
    }
    loop = re.search(r'LOOP = """\n(.*?)"""', files["test_my_becket.py"], re.DOTALL)
    points = next(block.text for block in blocks("toml") if block.page == PLUGIN)
    entry = points.partition('[project.entry-points."becket.parts"]')[2].split("[")[0].replace('"', "")
    assert loop is not None
    files |= {
        "my_becket/__init__.py": "",
        "my_becket/loop.yaml": loop[1],
        "my_becket-0.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: my-becket\nVersion: 0.1\n",
        "my_becket-0.1.dist-info/entry_points.txt": f"[becket.parts]{entry}",
    }
    for name, text in files.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text, encoding="utf-8")
    make_repository(tmp_path / "repo")
    (tmp_path / "repo" / "becket.yaml").write_text(
        "version: 1\ntree: {most: 77}\ngates: {fast: [{name: unit, run: 'true'}]}\n"
    )
    commit_all(tmp_path / "repo", "A repository")

    def becket(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "becket.cli", "-C", str(tmp_path / "repo"), *words], capture_output=True, text=True,
            check=False, env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout

    assert "my-becket 0.1" in becket("parts", "list")
    assert becket("weigh").strip() == "77"
    assert "at most 77 bytes" in becket("doctor")
    becket("loops", "lint")
    run = json.loads(becket("run", "diet", "--json"))["run"]["run_id"]
    assert "the checkout had" in becket("runs", "report", run)
    done = subprocess.run(
        [sys.executable, "-c", PLAYED, str(tmp_path / "world")],
        capture_output=True, text=True, check=False, cwd=tmp_path / "site",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def python_examples() -> Iterator[Any]:
    """The Python blocks of a page are one program; each of its tests is a test here."""
    for page in sorted({block.page for block in blocks("python")} - {PLUGIN}):
        program = "\n\n".join(block.text for block in blocks("python") if block.page == page)
        for name in re.findall(r"^def (test_\w+)", program, re.MULTILINE):
            yield pytest.param(page, program, name, id=f"{page.stem}-{name}")


@pytest.mark.parametrize(("page", "program", "name"), list(python_examples()))
def test_every_python_example_runs(page: Path, program: str, name: str, tmp_path: Path) -> None:
    """Imported from a file, because annotations are looked up in their module."""
    module = tmp_path / f"example_{page.stem.replace('-', '_')}.py"
    module.write_text(f"{program}\n\nif __name__ == '__main__':\n    import sys\n    {name}(Path(sys.argv[1]))\n")
    done = subprocess.run(
        [sys.executable, str(module), str(tmp_path / "world")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_picture_needs_nothing_from_outside() -> None:
    picture = (DOCS / "assets/story.svg").read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\"'\s)]+", picture.replace("http://www.w3.org/2000/svg", "")) == []
    assert "@import" not in picture


def test_every_relative_link_outside_the_site_leads_to_a_file() -> None:
    """MkDocs checks the pages of the site; these are read on a forge."""
    for page in (path for path in PAGES if path.parent == ROOT):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
