"""Contract of the set-up port: how a tree gets to see what was built, in each sandbox, without looking changed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from process_stage import KINDS
from setup_stage import World, setup

from becket.kernel.contract.process import SandboxKind
from becket.kernel.contract.removal import remove
from becket.parts.gates.ports.setup import SetupClash


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def links_of(tree: Path) -> dict[str, str]:
    found = (path for path in tree.rglob("*") if path.is_symlink())
    return {path.relative_to(tree).as_posix(): str(path.readlink()) for path in found}


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_reads_the_set_up_and_cannot_change_it(kind: SandboxKind, tmp_path: Path) -> None:
    """Mounted read-only, although the state folder around it is hidden; `none` holds nothing."""
    world = World(tmp_path, kind)
    sha = world.commit({"lock": "one\n", "sub/lock": "two\n"})
    run = "mkdir -p .venv/bin sub/node_modules && cp lock .venv/data && cp sub/lock sub/node_modules && pwd > .venv/at"
    ready = world.ready(sha, setup(run, "lock", "sub/lock"))
    workspace = world.provided(sha, ready)
    result, text = world.step(workspace, ready, 'cat .venv/data sub/node_modules/lock; cd "$(cat .venv/at)"; cat lock')
    assert result.ok, text
    assert text == "one\ntwo\none\n"
    result, text = world.step(workspace, ready, "echo bad > .venv/data")
    assert result.ok is (kind is SandboxKind.none)
    if kind is not SandboxKind.none:
        assert (ready.folder / ".venv/data").read_text() == "one\n"
        result, text = world.step(workspace, ready, f"test -e {ready.folder} && ! cat {ready.folder.parent}/setup.json")
        assert result.ok, text
    assert world.clean(workspace)


@pytest.mark.parametrize("kind", KINDS)
def test_tools_keep_their_caches_beside_the_packages_and_the_set_up_stays_as_built(
    kind: SandboxKind, tmp_path: Path
) -> None:
    """nyc, xo, babel-loader and vite write below node_modules: into a folder of the tree, which goes with it."""
    world = World(tmp_path, kind)
    sha = world.commit({"lock": "one\n", "sub/lock": ""})
    make = "mkdir -p node_modules/dep node_modules/.cache/made sub/node_modules/dep"
    ready = world.ready(sha, setup(f"{make} && cp lock node_modules/dep && cp lock node_modules/.cache/made", "**lock"))
    workspace = world.provided(sha, ready)
    caches = ("node_modules/.cache/tool", "node_modules/.vite-temp", "sub/node_modules/.cache")
    for cache in caches:
        result, text = world.step(workspace, ready, f"mkdir -p {cache} && echo worked-out > {cache}/result")
        assert result.ok, (cache, text)
    _, text = world.step(workspace, ready, "cat node_modules/.cache/tool/result node_modules/.cache/made/lock")
    assert text == "worked-out\none\n"
    assert world.clean(workspace)
    assert not [cache for cache in caches if (ready.folder / cache).exists()]
    assert not (world.checkout(sha).tree / "node_modules").exists()


def test_links_do_not_make_the_tree_look_changed(world: World) -> None:
    """`.gitignore` says `.venv/`, which does not match a link: the runtime's and the tree's own git overlook it."""
    sha = world.commit({"lock": "", ".gitignore": ".venv/\n", "sub/lock": ""})
    run = "mkdir .venv 'odd [x]*? name' sub/inner && touch .venv/file sub/inner/file '#hash' '!bang' 'end '"
    ready = world.ready(sha, setup(run, "lock", "sub/lock"))
    workspace = world.provided(sha, ready)
    assert set(ready.paths) == {".venv", "odd [x]*? name", "sub/inner", "#hash", "!bang", "end "}
    assert world.clean(workspace)
    assert asyncio.run(world.git.rescue(workspace, "run_1", "rescue")) is None
    (workspace.tree / "sub/new").write_text("")
    assert asyncio.run(world.git.status(workspace)).untracked == ("sub/new",)


def test_the_next_checkout_takes_the_links_away_and_leaves_the_set_up(world: World) -> None:
    sha = world.commit({"lock": "one\n"})
    ready = world.ready(sha, setup("mkdir deps && cp lock deps"))
    workspace = world.provided(sha, ready)
    assert (workspace.tree / "deps/lock").read_text() == "one\n"
    workspace = world.checkout(sha)
    assert not os.path.lexists(workspace.tree / "deps")
    assert (ready.folder / "deps/lock").read_text() == "one\n"
    world.setups.provide(workspace, ready)
    world.setups.provide(workspace, ready)
    assert world.clean(workspace)


def test_what_the_commit_has_is_never_replaced(world: World) -> None:
    sha = world.commit({"lock": "one\n", "deps": "the commit's own\n"})
    failed = world.failed(sha, setup("mkdir deps"))
    assert "makes deps, but commit" in failed.reason
    assert not failed.environment


def test_a_tree_that_differs_from_its_commit_is_not_overwritten(world: World) -> None:
    sha = world.commit({"lock": "one\n"})
    ready = world.ready(sha, setup("mkdir deps"))
    workspace = world.checkout(sha)
    (workspace.tree / "deps").write_text("somebody's\n")
    with pytest.raises(SetupClash, match="deps is in the way"):
        world.setups.provide(workspace, ready)
    assert (workspace.tree / "deps").read_text() == "somebody's\n"


def test_a_folder_of_both_gets_links_for_the_new_parts_only(world: World) -> None:
    """One entry serves commits with other folders: the links are those of the commit being proven."""
    run = setup("mkdir -p src/gen && cp lock src/gen/a && cp lock src/b")
    ready = world.ready(world.commit({"lock": "one\n"}), run)
    assert [link.path for link in ready.links] == ["src/b", "src/gen"]
    assert [link.path for link in world.ready(world.remove("src"), run).links] == ["src"]
    more = world.commit({"src/gen/own.py": ""})
    assert [link.path for link in world.ready(more, run).links] == ["src/b", "src/gen/a"]
    workspace = world.provided(more, world.ready(more, run))
    assert (workspace.tree / "src/gen/a").read_text() == "one\n"
    assert world.clean(workspace)


def test_a_link_to_the_projects_own_code_leads_into_the_tree_being_proven(world: World) -> None:
    """What `npm ci` makes of a workspace: the member must be the candidate's, not an empty folder beside the cache."""
    sha = world.commit({"lock": "", "packages/b/lock": "", "packages/b/index.js": "candidate"})
    run = """
    mkdir -p node_modules/@me node_modules/other/lib node_modules/.bin packages/b/node_modules
    ln -s ../../packages/b node_modules/@me/b
    ln -s .. node_modules/self
    ln -s ../other/lib node_modules/.bin/tool
    ln -s /bin/sh node_modules/.bin/sh
    ln -s ../../../node_modules/other packages/b/node_modules/other
    """
    ready = world.ready(sha, setup(run, "lock", "packages/b/lock"))
    assert ready.paths == ("node_modules", "packages/b/node_modules")
    workspace = world.provided(sha, ready)
    assert links_of(workspace.tree) == {
        "node_modules/@me/b": "../../packages/b",
        "node_modules/self": "..",
        "node_modules/other": f"{ready.folder}/node_modules/other",
        "node_modules/.bin": f"{ready.folder}/node_modules/.bin",
        "packages/b/node_modules/other": f"{ready.folder}/packages/b/node_modules/other",
    }
    assert (workspace.tree / "node_modules/@me/b/index.js").read_text() == "candidate"
    assert (workspace.tree / "node_modules/.bin/tool").is_dir()
    assert world.clean(workspace)
    workspace = world.checkout(sha)
    assert not (workspace.tree / "node_modules").exists()


def test_a_planted_link_leads_nobody_out_of_the_tree(world: World, tmp_path: Path) -> None:
    """A program that ran in the tree before cannot redirect what the runtime writes there."""
    sha = world.commit({"lock": "", "sub/lock": ""})
    ready = world.ready(sha, setup("mkdir sub/deps", "lock", "sub/lock"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "exclude").write_text("kept")
    for planted in ("sub", ".git/info"):
        workspace = world.checkout(sha)
        path = workspace.tree / planted
        path.rename(tmp_path / f"moved-{planted.replace('/', '-')}")
        path.symlink_to(outside)
        with pytest.raises(SetupClash):
            world.setups.provide(workspace, ready)
    assert [path.name for path in outside.iterdir()] == ["exclude"]
    assert (outside / "exclude").read_text() == "kept"
    workspace = world.checkout(sha)
    (workspace.tree / ".git/info/exclude").symlink_to(outside / "exclude")
    world.setups.provide(workspace, ready)
    assert (outside / "exclude").read_text() == "kept"


def test_a_repository_made_by_the_set_up_is_not_offered(world: World) -> None:
    sha = world.commit({"lock": ""})
    ready = world.ready(sha, setup("git init --quiet . && mkdir deps"))
    assert ready.paths == ("deps",)


def test_names_that_no_record_can_hold_are_left_out(world: World) -> None:
    sha = world.commit({"lock": ""})
    ready = world.ready(sha, setup("mkdir deps && touch \"$(printf 'caf\\351')\" \"$(printf 'deps/caf\\351')\""))
    assert ready.paths == ("deps",)


DEEP = """python3 - << 'END'
import os
os.makedirs("deps")
os.symlink("../lock", "deps/link")
os.chdir("deps")
for _ in range(1200):
    os.mkdir("d")
    os.chdir("d")
os.symlink("../lock", "link")
END
"""


def test_folders_in_folders_without_an_end_are_looked_at_so_far(world: World) -> None:
    """A package of a lock file chooses how many."""
    sha = world.commit({"lock": "x"})
    try:
        ready = world.ready(sha, setup(DEEP))
        tree = world.provided(sha, ready).tree
        assert (tree / "deps/link").read_text() == "x"
        assert (tree / "deps/d").is_symlink()
    finally:
        remove(world.state)  # what tidies up after tests calls itself for each folder


def test_a_name_with_a_line_break_hides_nothing_of_the_tree(world: World) -> None:
    sha = world.commit({"lock": "", "src/app.py": "x = 1\n"})
    ready = world.ready(sha, setup("mkdir deps \"$(printf 't\\nsrc')\""))
    assert ready.paths == ("deps",)
    workspace = world.provided(sha, ready)
    (workspace.tree / "src/planted.py").touch()
    assert not world.clean(workspace)
