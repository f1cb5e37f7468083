"""Go modules."""

from __future__ import annotations

import posixpath
import re

from becket.kernel.checks import words
from becket.kernel.contract.process import Network
from becket.parts.gates.section import GateStep, SetupConfig
from becket.parts.init.ecosystem import TEST_TIMEOUT, Ecosystem, Folder, Tools, UnreadableProject, missing_tools

_CACHE = 'GOMODCACHE="$PWD/.gomodcache"'


def propose(folder: Folder, tools: Tools) -> Ecosystem | None:
    if not folder.has("go.mod"):
        if not folder.name and folder.names("*.go") and not folder.names("*/go.mod"):
            raise UnreadableProject(words.NO_GO_MOD)
        return None
    has_tests = any(folder.named("*_test.go"))
    if folder.name and not has_tests:
        raise UnreadableProject(words.NO_TESTS_BELOW.format(file=folder.below("go.mod")))
    setup = _setup(folder)
    prefix = f"{_CACHE} " if setup else ""
    fast = GateStep(
        name=folder.step_name("go_test"),
        run=folder.command(f"{prefix}go test -json ./..."),
        report="go",
        timeout=TEST_TIMEOUT,
        min_tests=1,
    )
    slow = GateStep(name=folder.step_name("go_vet"), run=folder.command(f"{prefix}go vet ./..."), timeout=TEST_TIMEOUT)
    return Ecosystem(
        name="go",
        folder=folder.name,
        evidence=folder.below("go.mod"),
        fast=(fast,),
        slow=(slow,),
        test_side=tuple(folder.glob(pattern) for pattern in ("*_test.go", "**/*_test.go", "**/testdata/**")),
        setup=setup,
        missing=missing_tools(tools, "go"),
        notes=() if has_tests else (words.NO_TESTS_YET,),
    )


def covers(root: Folder, sub: Folder) -> bool:
    """Never: `./...` stops at a nested go.mod."""
    del root, sub
    return False


def _setup(folder: Folder) -> SetupConfig | None:
    """Modules go to a cache inside the tree, because a contained step has no home folder. Vendored code needs none."""
    if not folder.text("go.sum").strip() or folder.has("vendor/modules.txt"):
        return None
    # -modcacherw: otherwise nobody but root could remove the cache again.
    run = folder.command(f"GOFLAGS=-modcacherw {_CACHE} go mod download")
    key = (folder.below("go.sum"), folder.below("go.mod"), *_replaced(folder))
    return SetupConfig(run=run, key=key, network=Network.full)


def _replaced(folder: Folder) -> list[str]:
    """The go.mod of every module that is taken from a folder of the tree: go reads them all before it downloads."""
    places = re.findall(r"=>\s*(\.\.?/[^\s]*)", folder.text("go.mod"))
    files = [posixpath.normpath(posixpath.join(folder.name, place, "go.mod")) for place in places]
    return [file for file in dict.fromkeys(files) if folder.at().has(file)]
