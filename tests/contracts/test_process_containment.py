"""Contract of the process port: what a sandbox publishes is what it holds, tried by real escapes on decoys."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import process_stage
import pytest
from process_stage import KINDS, LANDLOCK_WORKS, Ground, Stage, play

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildEnd, Network, SandboxKind
from becket.kernel.process import ContainedProcesses, choose
from becket.kernel.process.keeper import landlock

NOBODY = 65534
WRITE = "import sys; open(sys.argv[1], 'w').write('x')"
READ = "import sys; print(open(sys.argv[1]).read())"


@pytest.fixture(params=KINDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(choose(request.param), tmp_path)


WAYS = [pytest.param(False, id="none"), pytest.param(True, id="reach")]


@pytest.mark.parametrize("reach", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_escapes_end_as_published(kind: SandboxKind, reach: bool, tmp_path: Path) -> None:
    """Every attempt is held or escapes exactly as the table says (L1, L12, L19, L25)."""
    played = play(kind, sys.executable, tmp_path, reach=reach)
    assert played.outcomes == played.published, played.said


@pytest.mark.slow
@pytest.mark.parametrize("reach", WAYS)
@pytest.mark.parametrize("kind", ["none", "landlock", "bwrap"])
def test_escapes_end_as_published_for_an_ordinary_user(kind: str, reach: bool) -> None:
    """The same when Becket runs as an ordinary user. Run the slow tests as root: this one drops to `nobody` itself."""
    with tempfile.TemporaryDirectory(prefix="becket-decoys-") as base:
        Path(base).chmod(0o755)
        command = [sys.executable, process_stage.__file__, kind, str(NOBODY), base, "reach" if reach else "none"]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    played = json.loads(answer.stdout)
    assert played["outcomes"] == played["published"], played["said"]


def test_table_of_each_kind(ground: Ground) -> None:
    """bwrap holds all three, landlock only files, none nothing; whoever lacks something says so in a note."""
    holds = ground.processes.holds()
    held = {"none": (), "landlock": ("files",), "bwrap": ("files", "processes", "network")}[holds.kind]
    assert tuple(name for name in ("files", "processes", "network") if getattr(holds, name)) == held
    assert holds.notes


def test_tree_and_private_folders_are_writable(ground: Ground) -> None:
    """The child works in its tree, and has a home and a temporary folder that are gone afterwards."""
    result = ground.shell('pwd; echo a > made; echo b > "$HOME/b"; echo c > "$TMPDIR/c"; echo "$HOME"; mktemp')
    assert result.ok, ground.said
    cwd, home, temporary = ground.said.split()
    assert cwd == str(ground.tree)
    assert (ground.tree / "made").read_text() == "a\n"
    assert not Path(home).exists()
    assert not Path(temporary).exists()


def test_left_folders_without_permissions_are_removed(ground: Ground) -> None:
    """A read-only folder (a module cache, say) in the private home does not stay on the disk."""
    scratch = ground.base / "scratch"
    scratch.mkdir()
    ground.processes = ContainedProcesses(ground.processes.kind, scratch=scratch)
    assert ground.shell(
        'mkdir -p "$HOME/cache/deep"; touch "$HOME/cache/deep/x"; chmod 0 "$HOME/cache/deep" "$HOME/cache"'
    ).ok
    assert list(scratch.iterdir()) == []


def test_readable_can_be_read_and_not_written(ground: Ground) -> None:
    """`readable` is read-only where files are held."""
    store = ground.base / "store"
    store.mkdir()
    (store / "object").write_text("stored")
    assert ground.python(READ, str(store / "object"), readable=(store,)).ok
    assert ground.said.strip() == "stored"
    written = ground.python(WRITE, str(store / "new"), readable=(store,)).ok
    assert written is not ground.processes.holds().files


def test_writable_can_be_written(ground: Ground) -> None:
    """`writable` is what the child may change beside its tree."""
    cache = ground.base / "cache"
    cache.mkdir()
    assert ground.python(WRITE, str(cache / "new"), writable=(cache,)).ok, ground.said
    assert (cache / "new").read_text() == "x"


def test_hidden_inside_readable(ground: Ground) -> None:
    """A hidden folder does not show through a readable one above it."""
    shown, hidden = ground.base / "shown", ground.base / "shown" / "state"
    hidden.mkdir(parents=True)
    (hidden / "token").write_text("secret")
    (shown / "config").write_text("open")
    assert ground.python(READ, str(shown / "config"), readable=(shown,), hidden=(hidden,)).ok, ground.said
    seen = ground.python(READ, str(hidden / "token"), readable=(shown,), hidden=(hidden,)).ok
    assert seen is not ground.processes.holds().files
    assert ("secret" in ground.said) is seen


def test_tree_below_hidden(ground: Ground) -> None:
    """The tree may lie inside a hidden folder: only what is around it disappears."""
    state = ground.base / "state"
    tree = state / "trees" / "one"
    tree.mkdir(parents=True)
    (state / "token").write_text("secret")
    assert ground.python(WRITE, "made", tree=tree, hidden=(state,)).ok, ground.said
    seen = ground.python(READ, str(state / "token"), tree=tree, hidden=(state,)).ok
    assert seen is not ground.processes.holds().files


def test_tree_reached_by_a_link(ground: Ground) -> None:
    """A tree named through a symbolic link works under that name."""
    (ground.base / "real").mkdir()
    (ground.base / "link").symlink_to(ground.base / "real")
    named = ground.base / "link" / "tree"
    named.mkdir()
    assert ground.python(WRITE, str(named / "made"), tree=named).ok, ground.said
    assert (ground.base / "real" / "tree" / "made").exists()


def test_place_that_leads_out_of_the_tree_is_refused(ground: Ground) -> None:
    """A link that an earlier child planted cannot widen the next child's sandbox."""
    (ground.base / "private").mkdir()
    (ground.tree / "cache").symlink_to(ground.base / "private")
    with pytest.raises(UsageError, match="symbolic link"):
        ground.run("true", writable=(ground.tree / "cache",))


def test_writable_that_is_absent_is_refused(ground: Ground) -> None:
    with pytest.raises(UsageError, match="make it first"):
        ground.run("true", writable=(ground.base / "absent",))


def test_hidden_and_given_is_refused(ground: Ground) -> None:
    """A contradiction is an error, not a guess."""
    with pytest.raises(UsageError, match="cannot be hidden"):
        ground.run("true", hidden=(ground.tree,))


def test_shared_clone_works_and_main_stays(ground: Ground) -> None:
    """A child commits in its shared clone over main's read-only objects; main's refs and objects stay (L1)."""
    (ground.base / "stage").mkdir()
    stage = Stage(ground.base / "stage")
    try:
        clone = ground.base / "clone"
        subprocess.run(["git", "clone", "-q", "--shared", str(stage.main), str(clone)], check=True)
        identity = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        objects = stage.main / ".git" / "objects"
        before = sorted(objects.rglob("*"))
        script = "git log --oneline; echo x > x; git add x; git commit -qm three; git log --oneline | wc -l"
        assert ground.shell(script, tree=clone, readable=(objects,), env=identity).ok, ground.said
        assert ground.said.split()[-1] == "3"
        assert stage.outcomes("")["move_ref"] == process_stage.HELD
        assert sorted(objects.rglob("*")) == before
    finally:
        stage.close()


def test_own_loopback_works(ground: Ground) -> None:
    """With `loopback`, a server and a client inside the child find each other."""
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname());"
        "c.sendall(b'hello'); print(s.accept()[0].recv(5).decode())"
    )
    assert ground.python(script, network=Network.loopback).ok, ground.said
    assert ground.said.strip() == "hello"


def test_full_network_reaches_the_host(ground: Ground) -> None:
    """With `full`, the host's network is there in every kind; the refusals elsewhere are no accident."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), timeout=5)"
        assert ground.python(script, network=Network.full).ok, ground.said


def test_kernel_settings_are_out_of_reach(ground: Ground) -> None:
    """Not even root opens a kernel setting for writing, where files are held. Nothing is written to it."""
    script = "import os; os.close(os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY))"
    opened = ground.python(script).ok
    assert opened is (os.geteuid() == 0 and not ground.processes.holds().files)


def test_child_inherits_three_descriptors(ground: Ground) -> None:
    """No descriptor of Becket or of the keeper reaches the child."""
    script = "import os; print(len(os.listdir('/proc/self/fd')))"
    assert ground.python(script).ok
    assert ground.said.strip() == "4"  # the fourth is the listing itself


def test_confined_root_has_no_powers(ground: Ground) -> None:
    """Where files are held, not even root keeps a capability, or makes a device to reach the disk by."""
    assert ground.shell("grep CapEff /proc/self/status").ok
    powerless = int(ground.said.split()[1], 16) == 0
    script = "import os, stat; os.mknod('disk', stat.S_IFBLK | 0o600, os.makedev(7, 250))"
    made = ground.python(script).ok
    assert powerless is (ground.processes.holds().files or os.geteuid() != 0)
    assert made is (os.geteuid() == 0 and not ground.processes.holds().files)


def test_keeper_cannot_be_made_to_lie(ground: Ground) -> None:
    """The child may not reach into its keeper, which knows its exit code; without a sandbox, root still may."""
    script = "import os; os.close(os.open(f'/proc/{os.getppid()}/mem', os.O_RDWR))"
    opened = ground.python(script).ok
    assert opened is (ground.processes.kind is SandboxKind.none and os.geteuid() == 0)


def test_program_that_only_the_host_sees(ground: Ground) -> None:
    """A program outside of all that is readable does not start, where files are held."""
    tool = ground.base / "hidden-tools" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexit 0\n")
    tool.chmod(0o755)
    result = ground.run(str(tool))
    assert (result.end is ChildEnd.not_started) is ground.processes.holds().files


def test_tools_on_path_are_readable(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of PATH is readable wherever it lies, with the libraries beside it."""
    prefix = ground.base / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "words").write_text("found")
    tool = prefix / "bin" / "becket-test-tool"
    tool.write_text(f"#!/bin/sh\ncat {prefix}/lib/words\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{prefix}/bin:{os.environ['PATH']}")
    assert ground.run("becket-test-tool").ok, ground.said
    assert ground.said == "found"


CONFINED = """
import os, sys
from becket.kernel.process.keeper.landlock import restrict
version, inside, outside = int(sys.argv[1]), *sys.argv[2:]
restrict([(inside, "write"), ("/usr", "read")], True, version, [443])
open(os.path.join(inside, "made"), "w").write("x")
try:
    open(os.path.join(outside, "made"), "w")
except PermissionError:
    os._exit(0)
os._exit(1)
"""


@pytest.mark.parametrize("version", range(1, landlock.abi() + 1 if LANDLOCK_WORKS else 1))
def test_every_version_of_landlock_confines(version: int, tmp_path: Path) -> None:
    """On an older kernel the rules are written in its own version, and still hold writes outside."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    command = [sys.executable, "-c", CONFINED, str(version), str(inside), str(outside)]
    assert subprocess.run(command, check=False).returncode == 0
    assert (inside / "made").exists()
    assert not (outside / "made").exists()
