"""The guard's rules in words, for an agent's brief: an honest agent that reads them can comply."""

from __future__ import annotations

from collections.abc import Sequence

from becket.kernel.contract.config import Config
from becket.parts.guard.reading.side import TestSide
from becket.parts.guard.section import GUARD

_LISTED = 12
_RULES = """\
A guard reads your change before it is proven, and refuses it for any of these:
- Repair the code. Do not delete, rename away, skip, mark as expected to fail, empty or weaken an existing test.
- In an existing test leave every check, expected value, input, tolerance, row, fixture and helper as it is.
- You may add tests, checks, rows, helpers and test data. A new test may not end the run or keep others out.
- Leave conftest.py and the settings of test runners, coverage, linters and type checkers as they are:
  pytest.ini, tox.ini, setup.cfg, [tool.*] of pyproject.toml, test scripts of package.json, jest and vite,
  test targets of Makefiles, test blocks of build files.
- Dependencies, versions and lock files may change; a person decides about those that the set-up is built from.
- Leave CI files, git hooks, .gitattributes, submodules, becket.yaml and scripts that the gates run as they are.
- Product code may not find out whether it is tested, patch a test tool, compare equal to everything,
  or end the process with success while it is loaded or when it ends.
- Do not add files that hide another module: sitecustomize.py, *.pth, pytest.py, modules named like a library.
- Do not add secrets, compiled files, binaries, merge markers, invisible characters, or links out of the tree.
- If a test itself is wrong, leave it, and say which and why in your last message. A person decides.
What your change newly can do decides how much it must prove:
- Best is the smallest edit inside existing functions, of names, calls and modules that the file already uses.
- New functions, classes, constants, source files and imports of modules that only compute need more proof.
- These go to a person: reading the environment, arguments, clock, files, frames or loaded modules; processes, threads,
  network, randomness, exit, signals; code or imports made at run time; patching what is not yours; equality, hash or
  attribute hooks; files that are not source; removing a check. If the repair needs one, say so in your last message.
"""


def rules_in_words(config: Config, side: TestSide) -> str:
    """At most 32 lines. `config` and `side` are base's: what they protect and limit counts."""
    limits = config.section(GUARD)
    share, size = f"{limits.max_deleted_share:.0%}", f"{limits.max_file:,}"
    lines = [f"- Do not delete more than {share} of the files, or add one of more than {size} bytes."]
    if limits.protected:
        lines.append(f"- These paths are protected: {_listed(limits.protected)}.")
    lines.append(f"- These count as tests: {_listed(side.globs)}.")
    if more := _beyond_globs(side):
        lines.append(f"- So do these, found beside them: {_listed(more)}.")
    return _RULES + "\n".join(lines) + "\n"


def _beyond_globs(side: TestSide) -> list[str]:
    """Folders as one, and files that lie in none of them."""
    found = [path for path in sorted(side.found) if not side.declared(path)]
    folders = {folder for path in found if (folder := side.folder_of(path))}
    return [*(f"{folder}/" for folder in sorted(folders)), *(path for path in found if not side.folder_of(path))]


def _listed(globs: Sequence[str]) -> str:
    shown = ", ".join(globs[:_LISTED])
    return shown if len(globs) <= _LISTED else f"{shown} and {len(globs) - _LISTED} more"
