"""What the packages hold: `python tests/packages/content.py dist` names everything that is too much, missing or wrong.

The lists are of what may be there: a new kind of file stays out until somebody puts it on them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.metadata import Metadata
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
ROOMS = "app|cli|kernel|parts"
MAY_BE_INSTALLED = re.compile(
    rf"""becket/(?:
        __init__\.py | py\.typed | (?:{ROOMS})/.+\.py
        | testing/(?:(?:__init__|agent|clock|crashes|effects|loopback|people|ports|receiver|world)\.py | model/.+\.py)
        | parts/(?:\w+/)+(?:loop\.yaml | README\.md | prompts/\w+\.md) | parts/agents/skills/[\w-]+/SKILL\.md
        | parts/agents/adapters/prices\.yaml | kernel/store/migrations/(?:script\.py\.mako | README\.md)
        | parts/front/(?:templates/\w+\.html | static/\w+\.(?:css|js|svg))
        | app/record/report/page\.css | parts/guard/reading/classes/tables/\w+\.toml
    ) | becket-[\w.]+\.dist-info/(?:METADATA | WHEEL | RECORD | entry_points\.txt | licenses/LICENSE)""",
    re.VERBOSE,
)


def wheel_problems(names: Iterable[str], tracked: Iterable[str]) -> Iterator[str]:
    held = set(names)
    source = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    for name in sorted(held):
        if not MAY_BE_INSTALLED.fullmatch(name):
            yield f"{name} is not on the list of what people install"
        elif name.startswith("becket/") and name not in source:
            yield f"{name} is not tracked by git"
    yield from (f"{name} is in the tree and not in the wheel" for name in sorted(source - held))


def sdist_problems(names: Iterable[str], tracked: Iterable[str]) -> Iterator[str]:
    held = {name.partition("/")[2] for name in names}
    yield from (f"{name} is not tracked by git" for name in sorted(held - set(tracked) - {"PKG-INFO"}))
    yield from (f"{name} is not in the sdist" for name in sorted(set(tracked) - held))


def metadata_problems(text: bytes, project: dict[str, object]) -> Iterator[str]:
    """Raises what is wrong with the fields themselves."""
    found = Metadata.from_email(text, validate=True)
    for ours, theirs in (
        (project["name"], found.name),
        (project["version"], str(found.version)),
        (project["license"], found.license_expression),
        (project["requires-python"], str(found.requires_python)),
        ("text/markdown", found.description_content_type),
        (None, found.project_urls or None),
    ):
        if ours != theirs:
            yield f"the metadata says {theirs!r} where {ours!r} is meant"
    for target in re.findall(r"\]\((?!https?:)[^)]*\)", found.description or ""):
        yield f"the description has a link that leads nowhere outside the repository: {target}"
    for requirement in found.requires_dist or ():
        if requirement.name in dev_tools():
            yield f"{requirement} is a development tool"


def dev_tools() -> set[str]:
    """What only developers need, by pyproject.toml."""
    told = _pyproject()
    wanted = [*told["project"]["dependencies"], *told["project"]["optional-dependencies"]["postgres"]]
    groups = [item for group in told["dependency-groups"].values() for item in group]
    return {Requirement(item).name for item in groups} - {Requirement(item).name for item in wanted}


def problems(folder: Path) -> list[str]:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        found = [*wheel_problems(archive.namelist(), tracked)]
        info = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        found += metadata_problems(archive.read(info), _pyproject()["project"])
    with tarfile.open(sdist) as archive:
        return [*found, *sdist_problems(archive.getnames(), tracked)]


def _pyproject() -> dict[str, dict[str, object]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


if __name__ == "__main__":
    told = problems(Path(sys.argv[1]))
    print("\n".join(told) or "the packages hold what they should, and nothing else")
    sys.exit(int(bool(told)))
