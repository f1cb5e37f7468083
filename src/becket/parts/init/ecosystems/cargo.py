"""Rust crates and workspaces."""

from __future__ import annotations

import posixpath
import shlex
from fnmatch import fnmatch
from typing import Any

from becket.kernel.checks import words
from becket.kernel.contract.process import Network
from becket.parts.gates.section import GateStep, SetupConfig
from becket.parts.init.ecosystem import TEST_TIMEOUT, Ecosystem, Folder, Tools, missing_tools

_HOME = 'CARGO_HOME="$PWD/.cargo-home"'
# Cargo reads no manifest without a target, and a set-up has the manifests only.
_STUBS = "find . -name Cargo.toml -execdir sh -c 'mkdir -p src && touch src/lib.rs' ';'"
_NO_STUBS = "find . -path ./.cargo-home -prune -o -name src -prune -exec rm -r {} +"


def propose(folder: Folder, tools: Tools) -> Ecosystem | None:
    if not folder.has("Cargo.toml"):
        return None
    manifest = folder.toml("Cargo.toml")
    if not manifest.keys() & {"package", "workspace"}:
        return None
    setup, notes = _setup(folder, manifest)
    # A package that is also a workspace tests only itself unless told otherwise.
    whole = " --workspace" if manifest.keys() >= {"package", "workspace"} else ""
    step = GateStep(
        name=folder.step_name("cargo_test"),
        run=folder.command(f"{_HOME + ' ' if setup else ''}cargo test --no-fail-fast{whole}"),
        report="cargo",
        timeout=2 * TEST_TIMEOUT,
        min_tests=1,
    )
    return Ecosystem(
        name="cargo",
        folder=folder.name,
        evidence=folder.below("Cargo.toml"),
        fast=(step,),
        test_side=tuple(folder.glob(pattern) for pattern in ("tests/**", "**/tests/**")),
        setup=setup,
        missing=missing_tools(tools, "cargo"),
        notes=notes,
    )


def covers(root: Folder, sub: Folder) -> bool:
    """Is the folder a member of the root's workspace, by name or as a path dependency of the root package?"""
    manifest = root.toml("Cargo.toml")
    workspace = manifest.get("workspace")
    if not isinstance(workspace, dict):
        return False
    if any(fnmatch(sub.name, str(pattern)) for pattern in workspace.get("exclude", ())):
        return False
    named = any(fnmatch(sub.name, str(pattern)) for pattern in workspace.get("members", ()))
    return named or sub.name in {str(path).strip("./") for path in _path_dependencies(manifest)}


def _other_files(folder: Folder, manifest: dict[str, Any]) -> list[str]:
    """Manifests of members and of path dependencies, and cargo's own settings: all of them decide what is fetched."""
    workspace = manifest.get("workspace")
    members = workspace.get("members", ()) if isinstance(workspace, dict) else ()
    places = [str(place).strip("/") for place in (*members, *_path_dependencies(manifest))]
    patterns = [posixpath.normpath(posixpath.join(folder.name, place, "Cargo.toml")) for place in places]
    root = folder.at()
    found = [pattern for pattern in dict.fromkeys(patterns) if not pattern.startswith("..") and root.names(pattern)]
    return [*found, *(folder.below(name) for name in (".cargo/config.toml", ".cargo/config") if folder.has(name))]


def _path_dependencies(manifest: dict[str, Any]) -> list[Any]:
    return [
        wanted["path"]
        for table in ("dependencies", "dev-dependencies", "build-dependencies")
        for wanted in (manifest.get(table) or {}).values()
        if isinstance(wanted, dict) and "path" in wanted
    ]


def _targets(manifest: dict[str, Any]) -> list[str]:
    """Files of targets that the manifest names: cargo looks for each of them before it fetches anything."""
    places = {"bench": "benches", "bin": "src/bin", "example": "examples", "test": "tests"}
    tables = ((place, table) for kind, place in places.items() for table in manifest.get(kind) or ())
    files = (str(table.get("path") or f"{place}/{table.get('name')}.rs") for place, table in tables)
    return [file for file in dict.fromkeys(files) if not posixpath.normpath(file).startswith(("/", ".."))]


def _stubs(manifest: dict[str, Any]) -> tuple[str, str]:
    """Commands that make what cargo wants to see, and that remove it again."""
    files = [shlex.quote(file) for file in _targets(manifest)]
    folders = dict.fromkeys(shlex.quote(posixpath.dirname(file) or ".") for file in _targets(manifest))
    if not files:
        return _STUBS, _NO_STUBS
    made = f"{_STUBS} && mkdir -p {' '.join(folders)} && touch {' '.join(files)}"
    tops = dict.fromkeys(shlex.quote(file.split("/")[0]) for file in _targets(manifest))
    return made, f"{_NO_STUBS} && rm -rf {' '.join(tops)}"


def _setup(folder: Folder, manifest: dict[str, Any]) -> tuple[SetupConfig | None, tuple[str, ...]]:
    lock = folder.text("Cargo.lock")
    outside = len(manifest.get("dependencies") or {}) + len(manifest.get("dev-dependencies") or {})
    unlocked = not lock and outside > len(_path_dependencies(manifest))
    if "\nsource = " not in lock and not unlocked:
        return None, ()
    files = ("Cargo.toml",) if unlocked else ("Cargo.lock", "Cargo.toml")
    made, gone = _stubs(manifest)
    run = folder.command(f"{made} && {_HOME} cargo fetch{'' if unlocked else ' --locked'} && {gone}")
    key = (*map(folder.below, files), *_other_files(folder, manifest))
    told = words.UNLOCKED.format(file=folder.below("Cargo.toml"), command="cargo generate-lockfile")
    return SetupConfig(run=run, key=key, network=Network.full), (told,) if unlocked else ()
