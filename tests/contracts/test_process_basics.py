"""Contract of the process port: what a child is given, what it leaves in its log, and how its start can fail."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from pathlib import Path

import pytest
from process_stage import KINDS, Ground

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import NEUTRAL, ChildEnd, ChildRef, SandboxKind
from becket.kernel.contract.toolchains import find
from becket.kernel.process import choose

ALLOWED = {"PATH", "LANG", "TZ", "HOME", "TMPDIR", "TERM", "BECKET_CHILD"}
LIBC_SIGNALS = 1 << 31 | 1 << 32  # 32 and 33: the C library lets nobody change what was inherited for them
GIT_SET = {"GIT_CEILING_DIRECTORIES", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT"}


@pytest.fixture(params=KINDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(choose(request.param), tmp_path)


class Witness:
    """A watcher that remembers, in order, what it was told and what it saw of the child's own mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark
        self.events: list[str] = []
        self.ref: ChildRef | None = None
        self.argv: tuple[str, ...] = ()

    async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
        await asyncio.sleep(0.05)  # a slow journal: the child must wait for it
        self.ref, self.argv = child, argv
        self.events.append(f"started, ran={self.mark.exists()}")

    async def ended(self, child: ChildRef) -> None:
        assert child == self.ref
        alive = Path(f"/proc/{child.pid}").exists()
        self.events.append(f"ended, ran={self.mark.exists()}, alive={alive}")


class Refusing(Witness):
    async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
        raise RuntimeError("the journal is closed")


def test_exit_code_and_merged_output(ground: Ground) -> None:
    """Both streams land in one log, in order; the exit code is the program's own."""
    result = ground.shell("echo one; echo two >&2; echo three; exit 7")
    assert (result.end, result.exit_code) == (ChildEnd.exited, 7)
    assert not result.ok
    assert ground.said == "one\ntwo\nthree\n"
    assert result.output_bytes == len(ground.said)
    assert (result.left_running, result.output_capped, result.message) == (0, False, "")
    assert result.sandbox is ground.processes.kind


def test_death_by_a_signal(ground: Ground) -> None:
    """A signal that ends the program is -N, as in subprocess."""
    result = ground.shell("kill -SEGV $$")
    assert (result.end, result.exit_code) == (ChildEnd.killed, -11)


def test_environment_is_an_allow_list(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Host variables do not reach the child; what the caller gives does (L12, L25)."""
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("LD_PRELOAD", "")
    assert ground.run("env", "-0", env={"GIVEN": "yes", "PYTHONHASHSEED": "0"}).ok
    env = dict(entry.split("=", 1) for entry in ground.said.split("\0") if entry)
    assert env["GIVEN"] == "yes"
    assert env["TERM"] == "dumb"
    others = {name for name in env if not name.startswith("LC_")} - ALLOWED - GIT_SET
    assert others - find(os.environ).variables.keys() == {"GIVEN", "PYTHONHASHSEED"}


def test_no_git_variable_of_ours_reaches_the_child(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook's GIT_DIR stays with the hook; git inside asks nobody and reads no configuration of ours (L1)."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_COUNT"):
        monkeypatch.setenv(name, str(ground.base / "elsewhere"))
    assert ground.shell("env | grep ^GIT_ | sort").ok
    seen = dict(line.split("=", 1) for line in ground.said.splitlines())
    assert seen == {
        "GIT_CEILING_DIRECTORIES": str(ground.base),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def test_a_tree_is_seen_at_a_place_that_misleads_no_tool_where_the_sandbox_can(ground: Ground) -> None:
    """Only bubblewrap can. What the child writes there is in the tree; where the tree really is, it sees nothing."""
    moves = ground.processes.kind is SandboxKind.bwrap
    ground.shell(f"pwd; echo made > made; ls {ground.tree} >/dev/null && echo there", at=NEUTRAL)
    assert ground.said.splitlines()[0] == str(NEUTRAL if moves else ground.tree)
    assert ("there" in ground.said.splitlines()) is not moves
    assert (ground.tree / "made").read_text() == "made\n"


def test_git_does_not_find_a_repository_above_the_tree(ground: Ground) -> None:
    """A git command in a tree that is no repository fails, instead of working on the one around it (L1)."""
    result = ground.shell(
        "git init -q inner && git -C inner rev-parse --git-dir && mkdir -p inner/tree && git rev-parse --git-dir"
    )
    assert result.exit_code == 128, ground.said
    inner = ground.tree / "inner"
    result = ground.shell("git rev-parse --git-dir", tree=inner / "tree", readable=(inner,))
    assert result.exit_code == 128, ground.said


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_CONFIG_GLOBAL", "GIT_CEILING_DIRECTORIES", "BECKET_CHILD"])
def test_reserved_variables_are_refused(ground: Ground, name: str) -> None:
    """A caller cannot hand a child what points git elsewhere, or Becket's own mark."""
    with pytest.raises(UsageError, match=name):
        ground.run("true", env={name: "x"})


def test_author_and_committer_are_allowed(ground: Ground) -> None:
    assert ground.shell('test "$GIT_AUTHOR_NAME" = x && test "$GIT_COMMITTER_DATE" = y', env={
        "GIT_AUTHOR_NAME": "x", "GIT_COMMITTER_DATE": "y"}).ok  # fmt: skip


def test_stdin_of_any_size(ground: Ground) -> None:
    """Stdin is delivered whole, also when it is larger than a pipe; without any, reading ends at once."""
    data = os.urandom(3_000_000)
    assert ground.python(
        "import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())", stdin=data
    ).ok
    assert ground.said.strip() == hashlib.sha256(data).hexdigest()
    assert ground.shell("cat").ok
    assert ground.said == ""


def test_binary_output_is_kept(ground: Ground) -> None:
    """Not a byte is changed, encoded or dropped below the cap."""
    data = bytes(range(256)) * 1000
    assert ground.run("cat", stdin=data).ok
    assert ground.output.read_bytes() == data


def test_output_cap(ground: Ground) -> None:
    """Beyond the cap the child goes on; beginning and end are kept, and a whole line between them says so."""
    program = "print('ä' * 4000); print('the last word'); open('after', 'w')"
    result = ground.python(program, output_cap=1000, env={"PYTHONUTF8": "1"})
    assert result.ok
    assert result.output_capped
    assert (ground.tree / "after").exists()
    text = ground.output.read_bytes().decode()  # no half character
    assert result.output_bytes == len(text.encode()) <= 1000
    assert "ä\n[becket: the output was capped at 1000 bytes, what stood here is dropped]\nä" in text
    assert text.endswith("ä\nthe last word\n")


def test_output_of_exactly_the_cap(ground: Ground) -> None:
    result = ground.shell("printf 0123456789", output_cap=10)
    assert (result.output_capped, ground.said) == (False, "0123456789")


def test_huge_output(ground: Ground) -> None:
    """A child that floods its output neither blocks nor fills the disk."""
    result = ground.shell("head -c 200000000 /dev/zero; echo done >&2; exit 3", output_cap=1_000_000)
    assert (result.end, result.exit_code, result.output_capped) == (ChildEnd.exited, 3, True)
    assert ground.output.stat().st_size == result.output_bytes <= 1_000_000


def test_child_that_closes_its_output(ground: Ground) -> None:
    """The end of the output is not the end of the child."""
    result = ground.shell("echo before; exec >&- 2>&-; sleep 0.2; exit 5")
    assert (result.exit_code, ground.said) == (5, "before\n")


def test_child_that_removes_its_log(ground: Ground) -> None:
    """Where a caller lets the log lie in the tree, a child that removes it still ends with a result."""
    result = ground.shell("echo said; rm step.log; exit 6", output=ground.tree / "step.log")
    assert (result.exit_code, result.output_bytes) == (6, 5)


def test_log_is_always_a_new_file(ground: Ground) -> None:
    """A log that exists is replaced, and one prepared as a link is not followed."""
    victim = ground.base / "victim"
    victim.write_text("kept")
    ground.output.parent.mkdir()
    ground.output.symlink_to(victim)
    assert ground.shell("echo new").ok
    assert (victim.read_text(), ground.said) == ("kept", "new\n")
    assert ground.shell("true").ok
    assert ground.said == ""


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("no-such-program-here",), "cannot run no-such-program-here"),
        (("./plain",), "cannot run ./plain: Permission denied"),
        (("./no-interpreter",), "cannot run ./no-interpreter: No such file or directory"),
        (("nul\0byte",), "cannot run nul"),
    ],
)
def test_program_that_cannot_start(ground: Ground, argv: tuple[str, ...], reason: str) -> None:
    """It is a result with the reason, never an exception, and never mistaken for an exit code (L13)."""
    (ground.tree / "plain").write_text("")
    script = ground.tree / "no-interpreter"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    result = ground.run(*argv)
    assert (result.end, result.exit_code) == (ChildEnd.not_started, None)
    assert result.message.startswith(reason)


def test_missing_tree_and_impossible_log(ground: Ground) -> None:
    result = ground.run("true", tree=ground.base / "absent")
    assert result.end is ChildEnd.not_started
    assert "absent does not exist" in result.message
    (ground.base / "file").write_text("")
    result = ground.run("true", output=ground.base / "file" / "log")
    assert result.end is ChildEnd.not_started
    assert "cannot be made" in result.message


def test_exit_127_of_a_shell_is_an_exit(ground: Ground) -> None:
    """A missing command inside a shell is the shell's exit code: the program did start."""
    result = ground.shell("no-such-program-here")
    assert (result.end, result.exit_code) == (ChildEnd.exited, 127)


def test_child_has_its_own_session_and_no_terminal(ground: Ground) -> None:
    """A child shares neither session nor process group with Becket (L27)."""
    assert ground.python("import os; print(os.getsid(0) == os.getpid() == os.getpgrp())").ok
    assert ground.said.strip() == "True"
    assert ground.python("import os; os.open('/dev/tty', os.O_RDWR)").exit_code == 1


def test_child_starts_with_default_signals(ground: Ground) -> None:
    """Nothing is ignored or blocked: a pipeline ends by SIGPIPE as it does in a shell."""
    assert ground.shell("grep -E 'Sig(Blk|Ign)' /proc/self/status").ok
    masks = [int(line.split()[1], 16) & ~LIBC_SIGNALS for line in ground.said.splitlines()]
    assert masks == [0, 0]


def test_watcher_hears_before_and_after(ground: Ground) -> None:
    """`started` returns before the program runs, `ended` is called when nothing of it is alive (L19, L26)."""
    mark = ground.tree / "mark"
    witness = Witness(mark)
    assert ground.run("sh", "-c", "touch mark", watcher=witness).ok
    assert witness.events == ["started, ran=False", "ended, ran=True, alive=False"]
    assert witness.argv == ("sh", "-c", "touch mark")


def test_watcher_that_refuses(ground: Ground) -> None:
    """If the journal cannot take the child, its program never runs."""
    refusing = Refusing(ground.tree / "mark")
    with pytest.raises(RuntimeError, match="journal is closed"):
        ground.run("sh", "-c", "touch mark", watcher=refusing)
    assert not refusing.mark.exists()
    assert refusing.events == []


def test_twenty_children_side_by_side(ground: Ground) -> None:
    """Children do not mix up their output, environment or ends."""

    async def all_of_them() -> list[str]:
        specs = [
            ground.spec(
                "sh", "-euc", 'echo "$NUMBER"; exit "$NUMBER"',
                env={"NUMBER": str(number)}, output=ground.base / f"log{number}",
            )
            for number in range(20)
        ]  # fmt: skip
        results = await asyncio.gather(*(ground.processes.run(spec) for spec in specs))
        return [f"{result.exit_code} {spec.output.read_text()}" for result, spec in zip(results, specs, strict=True)]

    assert asyncio.run(all_of_them()) == [f"{number} {number}\n" for number in range(20)]


def test_no_descriptor_is_left_open(ground: Ground) -> None:
    """A daemon that runs children for weeks does not run out of descriptors, however they end."""

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    ground.run("true")
    before = descriptors()
    for argv in (("true",), ("no-such-program-here",), ("sh", "-c", "kill -9 $$")):
        ground.run(*argv)
    with pytest.raises(RuntimeError):
        ground.run("true", watcher=Refusing(ground.tree / "mark"))
    assert descriptors() <= before


def test_python_of_becket_runs_inside(ground: Ground) -> None:
    """The interpreter that runs Becket, with what is installed beside it, works in every sandbox."""
    assert ground.run(sys.executable, "-c", "import pydantic, sys; print(sys.prefix)").ok, ground.said
    assert ground.said.strip() == sys.prefix


def test_standard_output_can_be_had_apart_while_the_log_holds_both(ground: Ground, tmp_path: Path) -> None:
    apart = tmp_path / "apart.out"
    result = ground.shell("echo one; echo two >&2; echo three", stdout=apart)
    assert result.ok
    assert apart.read_text() == "one\nthree\n"
    assert sorted(ground.said.split()) == ["one", "three", "two"]


def test_the_copy_of_standard_output_is_capped_too(ground: Ground, tmp_path: Path) -> None:
    apart = tmp_path / "apart.out"
    result = ground.shell("yes | head -c 100000", stdout=apart, output_cap=5000)
    assert result.output_capped
    assert apart.stat().st_size <= 5000
