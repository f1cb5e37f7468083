"""The Candidates port: commits made by the runtime from files and from other commits, in real repositories."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, planted_script, write

from becket.kernel.contract.candidate import Barred, Candidates, CommitMade, Conflict
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import Workspace
from becket.kernel.git.candidates import GitCandidates
from becket.kernel.git.repository import discover
from becket.parts.guard.reading.examine import bar

TOKEN = "ghp_" + "Zk3Qw9Lm2Xv7Bn5Tc8Rf1Hd6Js4Py0Ga2VuE7"
LINES = "".join(f"line {number}\n" for number in range(1, 30))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


@pytest.fixture
def workspace(home: Path, tmp_path: Path) -> Workspace:
    return asyncio.run(discover(home).open_workspace(tmp_path / "runs" / "run_1", "main"))


def port(home: Path) -> GitCandidates:
    return discover(home).candidates()


def worked(
    home: Path, workspace: Workspace, message: str = "Mend it", keep: str = "candidate/run_1"
) -> CommitMade | None:
    result = asyncio.run(port(home).commit_work(workspace, message, keep))
    assert not isinstance(result, Barred)
    return result


def made(result: CommitMade | Conflict | None) -> CommitMade:
    assert isinstance(result, CommitMade), result
    return result


def files(home: Path, revision: str) -> set[str]:
    return set(git(home, "ls-tree", "-r", "--name-only", revision).splitlines())


def show(home: Path, revision: str, path: str) -> str:
    return git(home, "show", f"{revision}:{path}")


def test_the_adapter_is_a_candidates(home: Path) -> None:
    found: Candidates = port(home)
    assert asyncio.run(found.rescued()) == ()


def test_nothing_done_is_no_commit(home: Path, workspace: Workspace) -> None:
    write(workspace.tree, {"stale.pyc": "ignored", "build/out": "ignored"})
    os.utime(workspace.tree / "app.py")
    assert worked(home, workspace) is None
    assert git(home, "for-each-ref", "refs/becket") == ""


def test_work_made_only_of_new_files_is_committed(home: Path, workspace: Workspace) -> None:
    """L5: `git diff --quiet` would see nothing; ignored files stay out."""
    write(workspace.tree, {"new/deep/file.py": "z = 1\n", "stale.pyc": "ignored"})
    before = git(home, "status", "--porcelain"), git(home, "rev-parse", "main")
    candidate = made(worked(home, workspace))
    assert files(home, candidate.sha) == {".gitignore", "app.py", "src/lib.py", "new/deep/file.py"}
    assert candidate.parent == workspace.sha == git(home, "rev-parse", f"{candidate.sha}^")
    assert candidate.tree == git(home, "rev-parse", f"{candidate.sha}^{{tree}}")
    assert git(home, "rev-parse", "refs/becket/candidate/run_1") == candidate.sha
    assert before == (git(home, "status", "--porcelain"), git(home, "rev-parse", "main"))


def test_changes_deletions_modes_and_links_are_committed(home: Path, workspace: Workspace) -> None:
    tree = workspace.tree
    write(tree, {"app.py": "x = 2\n"})
    (tree / "src/lib.py").unlink()
    (tree / "src").rmdir()
    (tree / "src").symlink_to("app.py")
    (tree / ".gitignore").chmod(0o755)
    (tree / "näme\nwith break").write_bytes(b"\0\xff")
    candidate = made(worked(home, workspace))
    listing = git(home, "ls-tree", "-r", "-z", candidate.sha)
    assert "120000 blob" in listing
    assert "100755 blob" in listing
    assert "näme\nwith break" in listing
    assert show(home, candidate.sha, "app.py") == "x = 2"
    assert "src/lib.py" not in listing


def test_the_same_work_is_the_same_commit(home: Path, workspace: Workspace, tmp_path: Path) -> None:
    """Whoever does it, whenever: author, committer and date depend on the parent alone."""
    git(home, "config", "user.name", "Somebody")
    git(home, "config", "i18n.commitEncoding", "latin1")
    other = asyncio.run(discover(home).open_workspace(tmp_path / "other", "main"))
    for tree in (workspace.tree, other.tree):
        write(tree, {"app.py": "x = 2\n", "new.py": ""})
    first = made(worked(home, workspace, "Mend it"))
    assert worked(home, workspace, "Mend it\n\n") == first
    assert worked(home, other, "Mend it\n", "candidate/run_2") == first
    told = git(home, "log", "-1", "--format=%an <%ae> %cn %at %ct %B", first.sha)
    at = int(git(home, "log", "-1", "--format=%ct", "main")) + 1
    assert told == f"Becket <becket@localhost> Becket {at} {at} Mend it"


def test_the_workspace_stays_usable(home: Path, workspace: Workspace) -> None:
    write(workspace.tree, {"app.py": "x = 2\n", "new.py": ""})
    before = asyncio.run(discover(home).status(workspace))
    first = made(worked(home, workspace))
    assert asyncio.run(discover(home).status(workspace)) == before
    write(workspace.tree, {"app.py": "x = 3\n"})
    second = made(worked(home, workspace))
    assert second.sha != first.sha
    assert git(home, "rev-parse", "refs/becket/candidate/run_1") == second.sha
    assert sorted(path.name for path in workspace.git_dir.glob("work-*")) == []


def test_commits_by_hand_do_not_count_only_files_do(home: Path, workspace: Workspace, tmp_path: Path) -> None:
    """L21: an agent that commits, rewrites history, hides files or plants programs in the tree's own `.git`."""
    tree, marker = workspace.tree, tmp_path / "ran"
    script = planted_script(tmp_path, marker)
    by_hand = commit(tree, {"app.py": "x = 2\n"}, "by hand")
    git(tree, "update-index", "--assume-unchanged", "src/lib.py")
    write(tree, {"src/lib.py": "y = 2\n", ".git/info/exclude": "secret.py\n", "secret.py": "s = 1\n"})
    for key in ("core.fsmonitor", "filter.evil.clean", "core.hooksPath"):
        git(tree, "config", key, str(script))
    write(tree, {".gitattributes": "* filter=evil\n"})
    candidate = made(worked(home, workspace))
    assert candidate.parent == workspace.sha
    assert show(home, candidate.sha, "src/lib.py") == "y = 2"
    assert "secret.py" in files(home, candidate.sha)
    assert git(home, "cat-file", "-t", by_hand, ok=(128,)) == ""
    assert not marker.exists()


@pytest.mark.parametrize("broken", [False, True], ids=["with a commit", "without a commit"])
def test_a_nested_repository_is_the_files_it_is_made_of(
    home: Path, workspace: Workspace, tmp_path: Path, broken: bool
) -> None:
    """L7, L21: a link to a commit nobody has would lose the work, and git would ask a `.git` that an agent wrote."""
    tree, marker = workspace.tree, tmp_path / "ran"
    script = planted_script(tmp_path, marker)
    for nested in ("vendor/inner", "src", "build/deps"):
        write(tree, {f"{nested}/kept.py": "k = 1\n", f"{nested}/stale.pyc": "ignored"})
        git(tree / nested, "init", "--quiet")
        if not broken:
            commit(tree / nested, {}, "inside")
        git(tree / nested, "config", "core.fsmonitor", str(script))
    write(tree, {"vendor/inner/deeper/.git": "gitdir: /nowhere\n", "vendor/inner/deeper/also.py": ""})
    (tree / "vendor/inner/link").symlink_to("/etc/hostname")
    (tree / "src/lib.py").unlink()
    candidate = made(worked(home, workspace))
    assert files(home, candidate.sha) == {
        ".gitignore", "app.py", "src/kept.py", "vendor/inner/kept.py", "vendor/inner/deeper/also.py",
        "vendor/inner/link",
    }  # fmt: skip
    assert "160000" not in git(home, "ls-tree", "-r", candidate.sha)
    assert not marker.exists()
    saved = asyncio.run(discover(home).rescue(workspace, "run_1", "saved"))
    assert saved is not None
    assert git(home, "rev-parse", f"{saved}^{{tree}}") == candidate.tree


def test_a_submodule_stays_a_link_until_somebody_writes_into_it(home: Path, tmp_path: Path) -> None:
    """L21: then it is the files it is made of, and the guard sees them."""
    other = new_repository(tmp_path / "other")
    git(home, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "lib")
    commit(home, {})
    shutil.rmtree(home / ".git/modules")  # so that its folder stays empty
    workspace = asyncio.run(discover(home).open_workspace(tmp_path / "ws", "main"))
    assert worked(home, workspace) is None
    (workspace.tree / "lib/.git").mkdir()
    assert worked(home, workspace) is None
    write(workspace.tree, {"app.py": "x = 2\n"})
    assert "160000" in git(home, "ls-tree", made(worked(home, workspace)).sha, "lib")
    write(workspace.tree, {"lib/planted.py": ""})
    candidate = made(worked(home, workspace))
    assert "lib/planted.py" in files(home, candidate.sha)
    assert "160000" not in git(home, "ls-tree", "-r", candidate.sha)


def objects(home: Path) -> set[str]:
    return set(git(home, "cat-file", "--batch-check", "--batch-all-objects", "--unordered").splitlines())


def barred(home: Path, workspace: Workspace, max_file: int = 5_000_000) -> list[str]:
    result = asyncio.run(port(home).commit_work(workspace, "Mend it", "candidate/run_1", bar(max_file)))
    assert isinstance(result, Barred), result
    return [f"{refusal.path}: {refusal.rule}" for refusal in result.refusals]


@pytest.mark.parametrize("name", ["core.12345", "src/lib.py", "other/core.so"])
def test_a_large_file_is_refused_by_its_size_before_it_is_opened(home: Path, workspace: Workspace, name: str) -> None:
    """Of a terabyte, which no disk here holds: whoever read it would not come back."""
    before = objects(home)
    write(workspace.tree, {"app.py": "x = 2\n", "other/.git/HEAD": "ref: refs/heads/main\n"})
    with (workspace.tree / name).open("r+b" if name == "src/lib.py" else "wb") as file:
        file.truncate(1 << 40)
    assert barred(home, workspace) == [f"{name}: large-file", f"{name}: large-file"]  # by itself, and of the whole
    assert objects(home) == before
    assert git(home, "for-each-ref", "refs/becket") == ""


def test_many_files_are_as_large_as_one(home: Path, workspace: Workspace) -> None:
    write(workspace.tree, {f"data/{number}": "x" * 90 for number in range(5)})
    assert barred(home, workspace, 100) == ["data/0: large-file"]
    assert isinstance(asyncio.run(port(home).commit_work(workspace, "Mend", "candidate/a", bar(120))), CommitMade)


def test_a_large_file_that_was_there_may_move_shrink_and_be_touched(home: Path, tmp_path: Path) -> None:
    names = ("moved", "touched", "shrunk", "grown")
    commit(home, {name: f"{name}\n" * 1000 for name in names})
    work = asyncio.run(discover(home).open_workspace(tmp_path / "runs" / "run_1", "main"))
    (work.tree / "moved").rename(work.tree / "elsewhere")
    os.utime(work.tree / "touched", (1, 1))
    write(work.tree, {"shrunk": "shrunk\n" * 900})
    assert isinstance(asyncio.run(port(home).commit_work(work, "Mend", "candidate/a", bar(1000))), CommitMade)
    write(work.tree, {"grown": "grown\n" * 1001})
    assert barred(home, work, 1000) == ["grown: large-file"]


def test_a_secret_stays_out_of_the_repository(home: Path, workspace: Workspace) -> None:
    """L25: a ref would keep it for weeks, and `git push --mirror` send it."""
    before = objects(home)
    write(workspace.tree, {"app.py": "x = 2\n", "settings.py": f'KEY = "{TOKEN}"\n'})
    (workspace.tree / "leads").symlink_to(f"to/{TOKEN}")
    (workspace.tree / "wide.txt").write_bytes(f"key {TOKEN}\n".encode("utf-16"))
    kinds = ["leads: secret-added", "settings.py: secret-added", "wide.txt: secret-added"]
    assert barred(home, workspace) == kinds
    write(workspace.tree, {f"{TOKEN}.txt": "x\n"})
    assert barred(home, workspace) == ["***.txt: secret-added", *kinds]
    assert objects(home) == before
    assert git(home, "for-each-ref", "refs/becket") == ""
    left = [path for path in (home / ".git" / "becket").rglob("*") if path.is_file() and "objects" in path.parts]
    assert left == []


def test_a_name_that_git_would_refuse_is_refused(home: Path, workspace: Workspace) -> None:
    write(workspace.tree, {"new.py": ""})
    with pytest.raises(GitFailed, match="refs/becket/a b"):
        worked(home, workspace, keep="a b")
    with pytest.raises(GitFailed, match="holds a blank"):
        worked(home, workspace, keep="../heads/main")


def carried(home: Path, sha: str, onto: str, folder: Path, keep: str = "candidate/run_1") -> CommitMade | Conflict:
    return asyncio.run(port(home).carry_over(sha, onto, folder, "Mend it", keep))


def undone(home: Path, sha: str, onto: str, folder: Path) -> CommitMade | Conflict:
    return asyncio.run(port(home).undo(sha, onto, folder, "Undo it", "undo/run_1"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "carry"


def test_a_change_is_carried_over_a_move_of_main(home: Path, folder: Path) -> None:
    """L2: every kind of change at once, merged within a file, and nothing is left behind."""
    base = commit(home, {"long.txt": LINES, "old name.txt": LINES, "gone.txt": "g\n", "kind": "k\n"})
    write(home, {"long.txt": LINES.replace("line 29", "LINE 29"), "new.txt": "n\n"})
    git(home, "mv", "old name.txt", "new name.txt")
    (home / "gone.txt").unlink()
    (home / "kind").unlink()
    (home / "kind").symlink_to("app.py")
    (home / "picture").write_bytes(bytes(range(256)))
    (home / "app.py").chmod(0o755)
    fix = commit(home, {}, "fix")
    git(home, "reset", "--quiet", "--hard", base)
    onto = commit(home, {"long.txt": LINES.replace("line 1\n", "LINE 1\n"), "old name.txt": LINES + "more\n"}, "moved")
    result = made(carried(home, fix, onto, folder))
    assert result.parent == onto
    assert (
        show(home, result.sha, "long.txt") == LINES.replace("line 29", "LINE 29").replace("line 1\n", "LINE 1\n")[:-1]
    )
    assert show(home, result.sha, "new name.txt").endswith("more")
    assert files(home, result.sha) & {"gone.txt", "old name.txt", "new.txt"} == {"new.txt"}
    assert git(home, "rev-parse", f"{result.sha}:picture") == git(home, "rev-parse", f"{fix}:picture")
    assert "120000" in git(home, "ls-tree", result.sha, "kind")
    assert "100755" in git(home, "ls-tree", result.sha, "app.py")
    assert carried(home, fix, onto, folder) == result
    assert not folder.exists()
    assert git(home, "status", "--porcelain") == ""


def test_a_change_that_does_not_fit_is_a_conflict_with_its_paths(home: Path, folder: Path) -> None:
    base = git(home, "rev-parse", "main")
    fix = commit(home, {"app.py": "x = 2\n", "other.py": "fine\n", "new.py": "mine\n"}, "fix")
    git(home, "reset", "--quiet", "--hard", base)
    onto = commit(home, {"app.py": "x = 3\n"}, "moved")
    result = carried(home, fix, onto, folder)
    assert isinstance(result, Conflict)
    assert result.paths == ("app.py",)
    assert "does not fit" in result.message
    git(home, "reset", "--quiet", "--hard", base)
    added = commit(home, {"new.py": "theirs\n"}, "moved")
    result = carried(home, fix, added, folder)
    assert isinstance(result, Conflict)
    assert result.paths == ("new.py",)
    git(home, "reset", "--quiet", "--hard", base)
    git(home, "rm", "--quiet", "app.py")
    result = carried(home, fix, commit(home, {}, "removed"), folder)
    assert isinstance(result, Conflict)
    assert result.paths == ("app.py",)
    assert git(home, "for-each-ref", "refs/becket") == ""
    assert not folder.exists()


def test_a_file_named_like_gits_own_harms_nothing(home: Path, folder: Path) -> None:
    """Git writes a file to its work tree when a new one meets another: it must not be the git directory."""
    base = git(home, "rev-parse", "main")
    fix = commit(home, {"config": "[core]\n\tfsmonitor = false\n", "HEAD": "mine\n"}, "fix")
    git(home, "reset", "--quiet", "--hard", base)
    onto = commit(home, {"config": "theirs\n", "HEAD": "theirs\n"}, "moved")
    result = carried(home, fix, onto, folder)
    assert isinstance(result, Conflict)
    assert result.paths == ("HEAD", "config")


def test_a_change_that_is_already_there_says_so(home: Path, folder: Path) -> None:
    write(home, {"app.py": "x = 2\n", "new.py": "n\n"})
    (home / "src/lib.py").unlink()
    fix = commit(home, {}, "fix")
    for onto in (fix, commit(home, {"more.py": "m\n"}, "later")):
        result = carried(home, fix, onto, folder)
        assert isinstance(result, Conflict)
        assert "already there" in result.message
        assert set(result.paths) == {"app.py", "new.py", "src/lib.py"}
    empty = carried(home, commit(home, {}, "empty"), fix, folder)
    assert isinstance(empty, Conflict)
    assert "changes nothing" in empty.message


def test_a_commit_is_undone(home: Path, folder: Path) -> None:
    commit(home, {"long.txt": LINES})
    write(home, {"long.txt": LINES.replace("line 29", "broken"), "new.txt": "n\n"})
    (home / "app.py").unlink()
    culprit = commit(home, {}, "culprit")
    onto = commit(home, {"long.txt": (home / "long.txt").read_text().replace("line 1\n", "LINE 1\n")}, "later")
    result = made(undone(home, culprit, onto, folder))
    assert show(home, result.sha, "long.txt") == LINES.replace("line 1\n", "LINE 1\n")[:-1]
    assert show(home, result.sha, "app.py") == "x = 1"
    assert "new.txt" not in files(home, result.sha)
    assert result.parent == onto
    assert git(home, "rev-parse", "refs/becket/undo/run_1") == result.sha
    assert isinstance(undone(home, culprit, result.sha, folder), Conflict)


def test_the_first_commit_of_all_and_a_merge_have_a_change_too(home: Path, folder: Path) -> None:
    """A merge is taken against its first parent."""
    first = git(home, "rev-parse", "main")
    git(home, "checkout", "--quiet", "--orphan", "other")
    git(home, "rm", "-rf", "--quiet", ".")
    elsewhere = commit(home, {"z": "z\n"}, "another root")
    assert files(home, made(carried(home, first, elsewhere, folder)).sha) == {"z", ".gitignore", "app.py", "src/lib.py"}
    git(home, "checkout", "--quiet", "main")
    later = commit(home, {"keep.txt": "k\n"})
    assert files(home, made(undone(home, first, later, folder)).sha) == {"keep.txt"}
    git(home, "checkout", "--quiet", "-b", "side", first)
    commit(home, {"side.txt": "s\n"})
    git(home, "checkout", "--quiet", "main")
    git(home, "merge", "--quiet", "--no-ff", "-m", "merge", "side")
    merge = git(home, "rev-parse", "HEAD")
    assert git(home, "diff", "--name-status", merge, made(undone(home, merge, merge, folder)).sha) == "D\tside.txt"


def test_a_leftover_of_a_killed_process_is_no_obstacle_but_foreign_files_are(home: Path, folder: Path) -> None:
    fix = commit(home, {"app.py": "x = 2\n"}, "fix")
    other = commit(home, {"other.py": ""}, "later")
    base = git(home, "rev-parse", f"{fix}^")
    git(home, "checkout", "--quiet", base)
    onto = commit(home, {"z.py": ""}, "elsewhere")
    write(folder, {"workspace.json": '{"state": "making", "sha": ""}', "git/index.lock": "", "tree/x": ""})
    assert made(carried(home, fix, onto, folder)).parent == onto
    assert not folder.exists()
    write(folder, {"tree/precious": "mine\n"})
    with pytest.raises(GitFailed, match="choose another folder"):
        carried(home, other, onto, folder)
    assert (folder / "tree/precious").read_text() == "mine\n"


def test_a_revision_that_leads_nowhere_is_a_clear_failure(home: Path, folder: Path) -> None:
    with pytest.raises(GitFailed, match="names no commit"):
        carried(home, "0" * 40, "main", folder)
    with pytest.raises(GitFailed, match="names no commit"):
        carried(home, "main", "nope", folder)


def is_test(path: str) -> bool:
    return path.startswith("tests/") or path == "conftest.py"


def crossed(home: Path, one: str, other: str) -> CommitMade:
    return asyncio.run(port(home).with_side_of(one, other, is_test, "Crossing", "crossing/run_1"))


def test_the_parents_test_side_exactly(home: Path) -> None:
    """L21: additions removed, deletions restored, edits undone; the rest is the candidate's."""
    parent = commit(home, {"tests/test_a.py": "a\n", "tests/test_b.py": "b\n", "conftest.py": "c\n"}, "parent")
    git(home, "rm", "--quiet", "tests/test_b.py")
    fix = commit(
        home, {"app.py": "x = 2\n", "new.py": "n\n", "tests/test_a.py": "weak\n", "tests/extra.py": "e\n"}, "fix"
    )
    result = crossed(home, fix, parent)
    changed = git(home, "diff", "--name-only", parent, result.sha).split()
    assert changed == ["app.py", "new.py"]
    assert git(home, "diff", "--name-only", fix, result.sha).split() == [
        "tests/extra.py", "tests/test_a.py", "tests/test_b.py"
    ]  # fmt: skip
    assert (result.parent, crossed(home, fix, parent)) == (parent, result)
    assert git(home, "rev-parse", "refs/becket/crossing/run_1") == result.sha
    assert git(home, "status", "--porcelain") == ""
    back = asyncio.run(port(home).with_side_of(parent, fix, is_test, "Other way", "crossing/run_2"))
    assert git(home, "diff", "--name-only", fix, back.sha).split() == ["app.py", "new.py"]


def test_where_the_tests_were_left_alone_it_is_the_candidate_itself(home: Path) -> None:
    parent = commit(home, {"tests/test_a.py": "a\n"}, "parent")
    fix = commit(home, {"app.py": "x = 2\n"}, "fix")
    assert crossed(home, fix, parent).sha == fix
    assert git(home, "for-each-ref", "refs/becket/") == ""


@pytest.mark.parametrize("swapped", [False, True])
def test_where_a_file_and_a_folder_collide_the_side_wins(home: Path, swapped: bool) -> None:
    """L21: a candidate that puts a plain file where the tests' folder was does not get rid of the tests."""
    base = git(home, "rev-parse", "main")
    with_folder = commit(home, {"tests/test_a.py": "a\n", "conftest.py/inner.py": "", "z.py": ""}, "folder")
    git(home, "reset", "--quiet", "--hard", base)
    with_file = commit(home, {"tests": "a file\n", "conftest.py": "c\n", "y.py": ""}, "file")
    one, other = (with_folder, with_file) if swapped else (with_file, with_folder)
    found = files(home, crossed(home, one, other).sha)
    if swapped:
        assert found == {".gitignore", "app.py", "src/lib.py", "z.py", "conftest.py"}
    else:
        assert found == {".gitignore", "app.py", "src/lib.py", "y.py", "tests/test_a.py"}


def test_patch_change_message_and_forget(home: Path, tmp_path: Path) -> None:
    base = git(home, "rev-parse", "main")
    git(home, "config", "diff.noprefix", "true")
    git(home, "config", "color.ui", "always")
    (home / "picture").write_bytes(bytes(range(256)) * 40)
    fix = commit(home, {"app.py": "x = 2\n"}, "Mend it\n\nBecause.\n")
    found = port(home)
    assert asyncio.run(found.message(fix)) == "Mend it\n\nBecause.\n"
    assert asyncio.run(found.paths(base, fix)) == ("app.py", "picture")
    assert {file.path for file in asyncio.run(found.change(base, fix)).files} == {"app.py", "picture"}
    patch = asyncio.run(found.patch(base, fix))
    (tmp_path / "patch").write_bytes(patch)
    git(home, "reset", "--quiet", "--hard", base)
    git(home, "apply", "--index", str(tmp_path / "patch"))
    assert git(home, "write-tree") == git(home, "rev-parse", f"{fix}^{{tree}}")
    cut = asyncio.run(found.patch(base, fix, limit=200))
    assert patch.startswith(cut.rpartition(b"# cut here")[0])
    assert cut.endswith(b"it does not apply\n")
    git(home, "update-ref", "refs/becket/candidate/x", fix)
    asyncio.run(found.forget("candidate/x"))
    asyncio.run(found.forget("candidate/x"))
    assert git(home, "for-each-ref", "refs/becket") == ""


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("süß/文件.py", "x = 2\n", "+++ b/süß/文件.py\n"),
        ("tab\there.py", "x = 2\n", '+++ "b/tab\\there.py"\n'),  # it would not look like what it is
        ("süß.py", "grüße = 1\n".encode("latin-1"), '+++ "b/s\\303\\274\\303\\237.py"\n'),
    ],
)
def test_a_patch_names_files_as_people_write_them_and_still_applies(
    home: Path, tmp_path: Path, path: str, text: str | bytes, named: str
) -> None:
    """Unless its bytes are no text: then a reader's replacement characters must not spoil a name."""
    base = git(home, "rev-parse", "main")
    (home / path).parent.mkdir(exist_ok=True)
    (home / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    fix = commit(home, {}, "Add it")
    patch = asyncio.run(port(home).patch(base, fix))
    assert named.encode() in patch
    (tmp_path / "patch").write_bytes(patch)
    git(home, "reset", "--quiet", "--hard", base)
    git(home, "apply", "--index", str(tmp_path / "patch"))
    assert git(home, "write-tree") == git(home, "rev-parse", f"{fix}^{{tree}}")


def test_what_was_rescued_is_listed_newest_first(home: Path, workspace: Workspace) -> None:
    """L7: work that was never committed is found again, whatever its name."""
    repository = discover(home)
    write(workspace.tree, {"only-new.txt": "n\n"})
    for name in ("run_1", "run/2"):
        asyncio.run(repository.rescue(workspace, name, f"becket: what {name} left"))
    old = git(home, "commit-tree", "-m", "long ago", "-p", "main", "main^{tree}")
    git(home, "update-ref", "refs/becket/rescue/zz", old)
    found = asyncio.run(port(home).rescued())
    assert {item.name for item in found} == {"run_1", "run/2", "zz"}
    assert [item.at for item in found] == sorted((item.at for item in found), reverse=True)
    one = next(item for item in found if item.name == "run_1")
    assert (one.parent, one.subject) == (workspace.sha, "becket: what run_1 left")
    assert asyncio.run(port(home).paths(one.parent, one.sha)) == ("only-new.txt",)


@pytest.mark.parametrize("kind", ["bare", "linked", "sha256"])
def test_every_shape_of_repository(home: Path, tmp_path: Path, kind: str) -> None:
    at = tmp_path / kind
    if kind == "bare":
        git(tmp_path, "clone", "--quiet", "--bare", str(home), str(at))
    elif kind == "linked":
        git(home, "worktree", "add", "--quiet", "-b", "side", str(at))
    else:
        new_repository(at, "--object-format=sha256")
    workspace = asyncio.run(discover(at).open_workspace(tmp_path / "ws", "main"))
    write(workspace.tree, {"app.py": "x = 2\n", "tests/t.py": ""})
    fix = made(worked(at, workspace))
    assert files(at, made(undone(at, fix.sha, fix.sha, tmp_path / "undo")).sha) == {
        ".gitignore", "app.py", "src/lib.py"
    }  # fmt: skip
    assert "tests/t.py" not in files(at, crossed(at, fix.sha, workspace.sha).sha)
