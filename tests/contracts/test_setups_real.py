"""Set-ups by the real package managers, without a network: what `becket init` proposes works from a read-only cache."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from git_repos import git, write
from process_stage import KINDS
from setup_stage import World, setup

from becket.kernel.contract.process import Network, SandboxKind
from becket.parts.gates.section import SetupConfig
from becket.parts.init.detect import Detected, detect

pytestmark = pytest.mark.slow


def zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def put(folder: Path, name: str, content: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def offline(detected: Detected, before: str = "", *more_key: str) -> SetupConfig:
    """The proposal, with what a registry would give taken from files of the repository."""
    proposed = detected.setup
    assert proposed is not None
    return SetupConfig(run=before + proposed.run, key=(*proposed.key, *more_key), network=Network.none)


def prove(world: World, wanted: SetupConfig, command: str) -> str:
    """Build, link and run one step; what it said."""
    sha = git(world.home, "rev-parse", "HEAD")
    ready = world.ready(sha, wanted)
    workspace = world.provided(sha, ready)
    assert world.clean(workspace)
    result, text = world.step(workspace, ready, command)
    assert result.ok, text
    assert world.clean(workspace)
    return text


@pytest.mark.parametrize("kind", KINDS)
def test_a_virtual_environment_with_a_wheel(kind: SandboxKind, tmp_path: Path) -> None:
    """Built where it stays: the paths inside its scripts are right, and modules and scripts are found by the link."""
    world = World(tmp_path, kind)
    wheel = {
        "dep.py": "def main(): print('the script of dep')\n",
        "dep-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n",
        "dep-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "dep-1.0.dist-info/entry_points.txt": "[console_scripts]\ndep = dep:main\n",
    }
    record = "".join(f"{name},,\n" for name in (*wheel, "dep-1.0.dist-info/RECORD"))
    put(world.home, "wheels/dep-1.0-py3-none-any.whl", zipped({**wheel, "dep-1.0.dist-info/RECORD": record}))
    world.commit({"requirements.txt": "dep==1.0\n", ".gitignore": ".venv/\n*.pyc\n", "src/mine.py": "import dep\n"})
    install = "PIP_CONFIG_FILE=/dev/null .venv/bin/python -m pip install"  # not where this machine's settings lead
    run = f"python3 -m venv .venv && {install} --no-index --find-links wheels -r requirements.txt"
    step = ".venv/bin/dep; PYTHONPATH=src .venv/bin/python -c 'import mine; print(mine.dep.__file__)'"
    said = prove(world, setup(run, "requirements.txt", "wheels/*.whl"), step).splitlines()
    assert said[0] == "the script of dep"
    assert said[1].endswith("site-packages/dep.py")


def test_an_editable_install_fails_with_a_hint(tmp_path: Path) -> None:
    """L6: the project's own code must come from the tree being proven, never from a cache."""
    world = World(tmp_path)
    backend = """
import zipfile
def _wheel(folder, name):
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        info = {"METADATA": "Metadata-Version: 2.1\\nName: app\\nVersion: 1.0\\n", "RECORD": "",
                "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
        for file, text in info.items():
            wheel.writestr(f"app-1.0.dist-info/{file}", text)
    return name
def build_editable(folder, config_settings=None, metadata_directory=None):
    return _wheel(folder, "app-1.0-py3-none-any.whl")
"""
    manifest = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    manifest += '[project]\nname = "app"\nversion = "1.0"\n'
    sha = world.commit({"pyproject.toml": manifest, "backend.py": backend})
    run = "python3 -m venv .venv && .venv/bin/python -m pip install --no-build-isolation -e ."
    failed = world.failed(sha, setup(run, "pyproject.toml", "backend.py"))
    assert "as editable" in failed.reason, (failed, failed.log and failed.log.read_text())
    failed = world.failed(sha, setup(run, "pyproject.toml"))
    assert failed.exit_code
    assert "PYTHONPATH=src" in failed.reason


@pytest.mark.parametrize("kind", KINDS)
def test_npm_with_a_workspace_and_a_local_module(kind: SandboxKind, tmp_path: Path) -> None:
    """The member is the tree's own; what npm unpacked comes from the cache."""
    world = World(tmp_path, kind)
    module = {"package.json": '{"name": "dep", "version": "1.0.0"}', "index.js": "module.exports = 'dep';\n"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in module.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    put(world.home, "vendor/dep.tgz", buffer.getvalue())
    manifest = {
        "name": "app",
        "version": "1.0.0",
        "workspaces": ["packages/*"],
        "dependencies": {"dep": "file:vendor/dep.tgz"},
        "scripts": {"test": "node --test", "prepare": "node build.js"},
    }
    write(world.home, {"package.json": json.dumps(manifest), "packages/b/package.json": '{"name": "b"}'})
    env = os.environ | {"HOME": str(tmp_path)}
    subprocess.run(
        ["npm", "install", "--package-lock-only", "--offline", "--ignore-scripts"], cwd=world.home, env=env, check=True
    )
    world.commit(
        {
            ".gitignore": "node_modules/\n",
            "packages/b/index.js": "module.exports = 'b of the tree';\n",
            "app.test.js": "const test = require('node:test');\n"
            "test('both', () => require('node:assert').equal(require('dep') + require('b'), 'depb of the tree'));\n",
        }
    )
    detected = detect(world.home)
    assert "# pass 1" in prove(world, offline(detected), detected.fast[0].run)


@pytest.mark.parametrize("kind", KINDS)
def test_go_with_a_module(kind: SandboxKind, tmp_path: Path) -> None:
    world = World(tmp_path, kind)
    manifest = "module example.org/dep\n\ngo 1.19\n"
    code = {"go.mod": manifest, "dep.go": "package dep\n\nfunc One() int { return 1 }\n"}
    place = "proxy/example.org/dep/@v"
    put(
        world.home,
        f"{place}/v1.0.0.zip",
        zipped({f"example.org/dep@v1.0.0/{name}": text for name, text in code.items()}),
    )
    write(
        world.home,
        {
            f"{place}/v1.0.0.mod": manifest,
            f"{place}/v1.0.0.info": '{"Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}',
            "go.mod": "module example.org/app\n\ngo 1.19\n\nrequire example.org/dep v1.0.0\n",
            "app_test.go": 'package app\n\nimport (\n\t"testing"\n\n\t"example.org/dep"\n)\n\n'
            "func TestOne(t *testing.T) {\n\tif dep.One() != 1 {\n\t\tt.Fatal()\n\t}\n}\n",
        },
    )
    proxy = 'export GOPROXY="file://$PWD/proxy" GONOSUMDB="*" GOFLAGS=-modcacherw; '
    resolve = f'{proxy} GOMODCACHE="{tmp_path}/cache" go mod tidy'
    subprocess.run(["sh", "-euc", resolve], cwd=world.home, check=True)
    world.commit({})
    detected = detect(world.home)
    assert '"Action":"pass"' in prove(world, offline(detected, proxy, "proxy/**"), detected.fast[0].run)
    shutil.rmtree(tmp_path / "cache")


def test_cargo_with_a_crate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bubblewrap, with the toolchain itself on the PATH: rustup's proxies look for it in a home that is hidden."""
    if rustup := shutil.which("rustup"):
        cargo = subprocess.run([rustup, "which", "cargo"], check=True, capture_output=True, text=True).stdout.strip()
        monkeypatch.setenv("PATH", f"{Path(cargo).parent}{os.pathsep}{os.environ['PATH']}")
    world = World(tmp_path, SandboxKind.bwrap)
    code = {"Cargo.toml": '[package]\nname = "dep"\nversion = "1.0.0"\n', "src/lib.rs": "pub fn one() -> i32 { 1 }\n"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in code.items():
            member = tarfile.TarInfo(f"dep-1.0.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    registry = tmp_path / "registry"  # at one path for set-up and step, as a registry of the network is
    world.extra = (registry,)
    put(registry, "dep-1.0.0.crate", buffer.getvalue())
    checksum = hashlib.sha256(buffer.getvalue()).hexdigest()
    index = {"name": "dep", "vers": "1.0.0", "deps": [], "cksum": checksum, "features": {}, "yanked": False}
    put(registry, "index/3/d/dep", json.dumps(index).encode() + b"\n")
    source = f'[source.crates-io]\nreplace-with = "here"\n[source.here]\nlocal-registry = "{registry}"\n'
    crate = '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n'
    write(
        world.home,
        {
            ".cargo/config.toml": source,
            "Cargo.toml": crate.format(name="app")
            + '[workspace]\nmembers = ["crates/*"]\n[dependencies]\ndep = "1.0.0"\nm = {path = "crates/m"}\n',
            "crates/m/Cargo.toml": crate.format(name="m"),
            "crates/m/src/lib.rs": "pub fn two() -> i32 { 2 }\n",
            "src/lib.rs": "#[test]\nfn three() { assert_eq!(dep::one() + m::two(), 3) }\n",
            ".gitignore": "/target\n.cargo-home/\n",
        },
    )
    env = os.environ | {"CARGO_HOME": str(tmp_path / "cargo")}
    subprocess.run(["cargo", "generate-lockfile", "--offline"], cwd=world.home, env=env, check=True)
    world.commit({})
    detected = detect(world.home)
    assert "test three ... ok" in prove(world, offline(detected), detected.fast[0].run)


@pytest.mark.parametrize("kind", KINDS)
def test_bundler_with_gems_that_the_project_brings(kind: SandboxKind, tmp_path: Path) -> None:
    """rake is packed from the system's own files: a registry is not asked."""
    world = World(tmp_path, kind)
    find = "s = Gem::Specification.find_by_name('rake'); puts s.version, s.full_gem_path"
    said = subprocess.run(["ruby", "-e", find], check=True, capture_output=True, text=True).stdout.split()
    version, place = said[0], Path(said[1])
    write(world.home, {"Gemfile": "source 'https://rubygems.org'\ngem 'rake'\ngem 'dep'\n"})
    for name, own in (("rake", place), ("dep", None)):
        folder = tmp_path / name
        if own:
            shutil.copytree(own, folder)
        more = "s.bindir = 'exe'; s.executables = ['rake']" if own else ""
        spec = f"s.name = '{name}'; s.version = '{version}'; s.summary = s.name; s.authors = ['x']; {more}"
        write(folder, {"x.gemspec": f"Gem::Specification.new {{ |s| {spec}; s.files = Dir['lib/**/*', 'exe/*'] }}\n"})
        write(folder, {} if own else {"lib/dep.rb": "DEP = 'of the gem'\n"})
        put(world.home, f"vendor/cache/{name}-{version}.gem", b"")
        target = str(world.home / f"vendor/cache/{name}-{version}.gem")
        subprocess.run(["gem", "build", "--quiet", "x.gemspec", "-o", target], cwd=folder, check=True)
    env = os.environ | {"HOME": str(tmp_path), "BUNDLE_PATH": str(tmp_path / "gems")}
    subprocess.run(["bundle", "install", "--local"], cwd=world.home, env=env, check=True)  # makes the lock
    task = "require 'dep'\ntask :test do\n  puts DEP\nend\n"
    world.commit({"Rakefile": task, ".gitignore": ".gems/\n"})
    detected = detect(world.home)
    assert detected.setup is not None
    assert "of the gem" in prove(world, detected.setup, detected.fast[0].run)
