"""Projects with a package.json, run by npm, pnpm or yarn."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from becket.kernel.checks import words
from becket.kernel.checks.shell import cannot_fail
from becket.kernel.contract.process import Network
from becket.parts.gates.section import GateStep, SetupConfig
from becket.parts.init.ecosystem import (
    TEST_TIMEOUT,
    Ecosystem,
    Folder,
    Tools,
    UnreadableProject,
    missing_tools,
    skipped,
)
from becket.parts.init.ecosystems.node_hooks import inner_script, online_hooks, only_lints

_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
_MOST_MEMBERS = 200
_DEFAULT_SCRIPT = "no test specified"
_NODE_TEST = re.compile(r"^node((?:\s+--?[\w-]+(?:=\S+)?)*?)\s+--test(?=\s|$)(.*)$")
_WATCHES = re.compile(r"--watch(All)?(?!=false)\b|\bnodemon\b")
_WATCHES_UNLESS_CI = re.compile(r"\b(react-scripts|jest|vitest)\b")
_INSTALL_SCRIPTS = ("preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare")
_PATCHES = re.compile(r"^patch-package\b")
_SETTINGS = (".npmrc", "pnpm-workspace.yaml", ".pnpmfile.cjs", ".yarnrc", ".yarnrc.yml")
_SETTINGS_FOLDERS = (".yarn/releases", ".yarn/plugins", ".yarn/patches")
_OWN_PNPM = "NPM_CONFIG_MANAGE_PACKAGE_MANAGER_VERSIONS=false pnpm_config_pm_on_fail=ignore "
"""pnpm 9 and 10 heed the first, later ones the second. In capitals: pnpm keeps `npm_` from what it starts."""
_CHANGES_FILES = re.compile(r"--fix\b|--write\b")


@dataclass(frozen=True)
class _Package:
    folder: Folder

    @cached_property
    def data(self) -> dict[str, Any]:
        return self.folder.json("package.json")

    def script(self, name: str) -> str:
        scripts = self.data.get("scripts")
        text = scripts.get(name) if isinstance(scripts, dict) else None
        return text.strip() if isinstance(text, str) else ""

    @cached_property
    def lock(self) -> str | None:
        return next((name for name in _LOCKS if self.folder.has(name)), None)

    @cached_property
    def manager(self) -> str | None:
        """By the project's own word, else by its lock; None if neither says."""
        declared = str(self.data.get("packageManager", "")).partition("@")[0]
        return declared if declared in _LOCKS.values() else _LOCKS.get(self.lock or "")

    @property
    def refused(self) -> str | None:
        """Why the test script is no gate."""
        script = self.script("test")
        if not script or _DEFAULT_SCRIPT in script:
            return words.NO_TESTS.format(kind="package.json")
        if cannot_fail(script, stops_at_error=False):
            return words.CANNOT_FAIL.format(what=self.folder.below("package.json") + " scripts.test", command=script)
        if _WATCHES.search(script):
            return words.WATCHES.format(command=script)
        return None

    @property
    def pin(self) -> str:
        """The pnpm that the project names, which another one would fetch at each call."""
        declared = str(self.data.get("packageManager", "")).partition("+")[0]
        return declared if declared.startswith("pnpm@") else ""

    @cached_property
    def workspaces(self) -> tuple[str, ...]:
        """The globs of the packages that live below this one."""
        found = self.data.get("workspaces")
        found = found.get("packages") if isinstance(found, dict) else found
        globs = [item for item in found if isinstance(item, str)] if isinstance(found, list) else []
        listed = re.findall(r"^\s*-\s*['\"]?([^'\"#\s]+)", self.folder.text("pnpm-workspace.yaml"), re.MULTILINE)
        return tuple(item.removeprefix("./").rstrip("/") for item in (*globs, *listed))


def propose(folder: Folder, tools: Tools) -> Ecosystem | None:
    if not folder.has("package.json"):
        return None
    package = _Package(folder)
    owner = package if package.lock or not folder.name else _owner(package)
    manager = owner.manager or package.manager or "npm"
    notes = (package.refused,) if package.refused else ()
    pin = (package.pin or owner.pin) if manager == "pnpm" else ""
    step = _test_step(package, manager) if not package.refused else _workspace_step(package, manager)
    if step is not None:
        notes = ()
        step = _of_this_machine(step) if pin else step
    lint = tuple(_of_this_machine(one) if pin else one for one in _lint_step(package, manager))
    setup = _setup(owner, manager)
    if setup is not None and _own_scripts(owner):
        notes = (*notes, words.OWN_SCRIPTS.format(file=owner.folder.below("package.json")))
    if setup is not None and manager == "yarn" and _plugs_and_plays(owner.folder):
        notes = (*notes, words.PLUG_AND_PLAY)
    if setup is not None and owner.lock is None:
        notes = (*notes, words.UNLOCKED.format(file=folder.below("package.json"), command=f"{manager} install"))
    online = online_hooks(package.data) if step else {}
    hooks = " and ".join(f"`{name}` ({script})" for name, script in online.items())
    said = words.ONLINE_HOOKS.format(file=folder.below("package.json"), hooks=hooks) if hooks else ""
    if step and _OWN_PNPM in step.run:
        said = f"{said} {words.OWN_PNPM.format(pin=pin)}".strip()
    needed = ("node",) if step and "node --test" in step.run and setup is None else ("node", manager)
    return Ecosystem(
        name=manager,
        folder=folder.name,
        evidence=folder.below("package.json"),
        fast=(step,) if step else (),
        slow=lint,
        test_side=_test_side(folder),
        setup=setup if step or lint else None,
        missing=missing_tools(tools, *needed),
        notes=notes,
        comments={step.run: said} if step and said else {},
    )


def covers(root: Folder, sub: Folder) -> bool:
    """A workspace member is tested by the root's command, if the root has one."""
    package = _Package(root)
    if not _is_member(package, sub.name):
        return False
    return not package.refused or _workspace_step(package, package.manager or "npm") is not None


def _is_member(package: _Package, name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in package.workspaces if not pattern.startswith("!"))


def _owner(package: _Package) -> _Package:
    """Who holds the lock of a package without one: the root, if this is a member of its workspace."""
    root = _Package(package.folder.at())
    if root.folder.has("package.json") and root.lock and _is_member(root, package.folder.name):
        return root
    return package


def _test_step(package: _Package, manager: str) -> GateStep:
    if online_hooks(package.data):
        return _without_hooks(package, manager)
    folder, script = package.folder, package.script("test")
    alone = not package.script("pretest") and not package.script("posttest") and not re.search(r"[;&|<>$`]", script)
    node_test = _NODE_TEST.match(script) if alone else None
    if node_test and "--test-reporter" not in script:
        # Newer versions of node print no TAP unless asked, and only options before the first file count.
        run = f"node{node_test[1]} --test --test-reporter=tap{node_test[2]}"
        return _step(folder, "node_test", run, "tap")
    if node_test and re.search(r"--test-reporter[= ]tap\b", script) and "--test-reporter-destination" not in script:
        return _step(folder, "node_test", script, "tap")
    quiet = "CI=true " if _WATCHES_UNLESS_CI.search(script) else ""
    return _step(folder, f"{manager}_test", f"{quiet}{manager} test", "plain")


def _without_hooks(package: _Package, manager: str) -> GateStep:
    """The tests by themselves: what would run before or after them needs the network."""
    inner = inner_script(package.data)
    # npm runs neither what comes before a script nor what comes after it where scripts are ignored.
    alone = f"{manager} run {inner}" if inner else f"{manager} test"
    bare = manager != "npm" or (inner and not package.script(f"pre{inner}") and not package.script(f"post{inner}"))
    before = package.script("pretest")
    needed = before and "pretest" not in online_hooks(package.data) and not only_lints(before)
    quiet = "CI=true " if _WATCHES_UNLESS_CI.search(package.script(inner or "test")) else ""
    run = f"{manager} run pretest && " if needed else ""
    run += f"{quiet}{alone}" if bare else f"{quiet}{alone} --ignore-scripts"
    return _step(package.folder, f"{manager}_test", run, "plain")


def _workspace_step(package: _Package, manager: str) -> GateStep | None:
    """One command for all members, where the manager has one that leaves out members without tests."""
    command = {"npm": "npm test --workspaces --if-present", "pnpm": "pnpm -r test"}.get(manager)
    if command is None or not any(not _Package(member).refused for member in _members(package)):
        return None
    return _step(package.folder, f"{manager}_test", command, "plain")


def _members(package: _Package) -> list[Folder]:
    """The readable ones; a broken one is left to its own finding."""
    return [member for member in _member_folders(package) if _readable(member)]


def _member_folders(package: _Package) -> list[Folder]:
    """The members with a package.json."""
    found: list[Folder] = []
    for pattern in package.workspaces:
        for path in _glob(package.folder.path, pattern):
            inside = path.relative_to(package.folder.path)
            if len(found) == _MOST_MEMBERS or any(skipped(part) for part in inside.parts) or path.is_symlink():
                continue
            member = package.folder.at(package.folder.below(inside.as_posix()))
            if member.has("package.json"):
                found.append(member)
    return found


def _glob(folder: Path, pattern: str) -> list[Path]:
    """Bounded, inside the folder, and empty for what is no pattern at all."""
    if not pattern or pattern.startswith(("!", "/")) or ".." in PurePosixPath(pattern).parts:
        return []
    try:
        return sorted(islice(folder.glob(pattern), 10 * _MOST_MEMBERS))
    except ValueError:
        return []


def _readable(folder: Folder) -> bool:
    try:
        folder.json("package.json")
    except UnreadableProject:
        return False
    return True


def _lint_step(package: _Package, manager: str) -> tuple[GateStep, ...]:
    script = package.script("lint")
    if not script or cannot_fail(script, stops_at_error=False) or _CHANGES_FILES.search(script):
        return ()
    return (_step(package.folder, f"{manager}_lint", f"{manager} run lint", "plain"),)


def _step(folder: Folder, name: str, run: str, report: str) -> GateStep:
    return GateStep(
        name=folder.step_name(name),
        run=folder.command(run),
        report=report,
        timeout=TEST_TIMEOUT,
        min_tests=0 if report == "plain" else 1,
    )


def _of_this_machine(step: GateStep) -> GateStep:
    """With the pnpm that is there: a gate has no network to fetch the one that the project names."""
    return step.model_copy(update={"run": re.sub(r"(?<!\S)pnpm (?=test|run|-r)", f"{_OWN_PNPM}pnpm ", step.run)})


def _wanted_modules(package: _Package) -> dict[str, Any]:
    kinds = (package.data.get(kind) for kind in ("dependencies", "devDependencies", "optionalDependencies"))
    return {name: wanted for kind in kinds if isinstance(kind, dict) for name, wanted in kind.items()}


def _setup(package: _Package, manager: str) -> SetupConfig | None:
    """None where there is nothing to install: a set-up that makes nothing has failed."""
    if package.lock is not None and _LOCKS[package.lock] != manager:
        return None
    if not _wanted_modules(package) and not package.workspaces:
        return None
    folder = package.folder
    if package.lock is None:
        command = f"{manager} install --no-{'package-lock' if manager == 'npm' else 'lockfile'}"
    else:
        command = {
            "npm": "npm ci",
            "pnpm": "pnpm install --frozen-lockfile",
            "yarn": "yarn install --immutable" if _modern_yarn(folder) else "yarn install --frozen-lockfile",
        }[manager]
    if dropped := _own_scripts(package):
        command = f"npm pkg delete {' '.join(f'scripts.{name}' for name in dropped)} && {command}"
    key = tuple(folder.below(name) for name in (package.lock, "package.json") if name)
    members = (member.below("package.json") for member in _member_folders(package))
    more = dict.fromkeys((*members, *_local_modules(package), *_settings(package)))
    return SetupConfig(run=folder.command(command), key=(*key, *more), network=Network.full)


def _local_modules(package: _Package) -> list[str]:
    """`file:libs/a` is a link that needs its manifest, `file:a.tgz` an archive."""
    texts = (str(wanted) for wanted in _wanted_modules(package).values())
    places = [match[1].strip("/") for text in texts if (match := re.match(r"(?:file|link):(?:\./)?([^/].*)", text))]
    files = [name for place in places for name in (place, f"{place}/package.json") if package.folder.has(name)]
    found = (posixpath.normpath(package.folder.below(name)) for name in files)
    return [name for name in found if name != "." and not name.startswith("..")]  # `file:../` is the package above


def _modern_yarn(folder: Folder) -> bool:
    return folder.has(".yarnrc.yml") or "__metadata:" in folder.text("yarn.lock")


def _plugs_and_plays(folder: Folder) -> bool:
    return _modern_yarn(folder) and not re.search(
        r"^nodeLinker:\s*(node-modules|pnpm)\b", folder.text(".yarnrc.yml"), re.MULTILINE
    )


def _own_scripts(package: _Package) -> list[str]:
    """The project's own scripts that an install would run: they need its sources, and a set-up has only key files."""
    return [name for name in _INSTALL_SCRIPTS if package.script(name) and not _PATCHES.search(package.script(name))]


def _settings(package: _Package) -> list[str]:
    """Files besides manifest and lock that change what is installed."""
    folder = package.folder
    found = [name for name in _SETTINGS if folder.has(name)]
    found += [
        f"{name}/**" for name in _SETTINGS_FOLDERS if folder.has_folder(name) and any((folder.path / name).glob("*"))
    ]
    if any(_PATCHES.search(package.script(name)) for name in _INSTALL_SCRIPTS) and folder.has_folder("patches"):
        found.append("patches/**")
    return [folder.below(name) for name in found]


def _test_side(folder: Folder) -> tuple[str, ...]:
    folders = tuple(f"{name}/**" for name in ("test", "tests") if folder.has_folder(name))
    settings = tuple(name for kind in ("jest", "vitest", "karma") for name in folder.names(f"{kind}.config.*"))
    patterns = (*folders, "**/__tests__/**", "**/*.test.*", "**/*.spec.*", *settings)
    return tuple(folder.glob(pattern) for pattern in patterns)
