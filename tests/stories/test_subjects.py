"""A run works on what its subject says: a name that was given is read, and not only written on the run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.testing.world import World, run_git

LOOP = """
version: 1
loop_id: story
goal: The file was read.
trigger: [{manual: {}}]
subject: "SUBJECT"
inputs: {part: {type: string, optional: true}}
concurrency: {group: "{branch}@{sha}", on_busy: queue}
max_iterations: 1
deadline: 1h
stop_conditions: [look.pass]
phases:
  act:
    objective: Read.
    actions: [{id: read, run: "cat f; git rev-parse HEAD", outputs: {text: stdout}}]
  verify:
    objective: It was read.
    verifiers: [{id: look, run: "test -n \\"{read.text}\\"", in: scratch}]
"""


class Two:
    """A repository with two commits on main, and one on another branch."""

    def __init__(self, folder: Path, subject: str = "{branch}@{sha}") -> None:
        self.world = World(folder)
        self.old = self.world.commit({"f": "old\n"})
        self.new = self.world.commit({"f": "new\n"})
        run_git(self.world.root, ["branch", "feature/x", self.old])
        self.world.loop(LOOP.replace("SUBJECT", subject))

    def run(self, **ask: Json) -> tuple[Run, str]:
        """The run, and what it read."""

        async def story() -> tuple[Run, str]:
            run = await self.world.run("story", **ask)
            (read,) = [step for step in await self.world.store.steps(run.run_id) if step.id == "read"]
            return run, str(read.outputs["text"])

        return asyncio.run(story())

    def refused(self, **ask: Json) -> str:
        with pytest.raises(UsageError) as refusal:
            asyncio.run(self.world.start("story", **ask))
        return str(refusal.value)


def test_a_run_about_an_old_commit_works_on_the_old_commit(tmp_path: Path) -> None:
    """L4: what is checked out is the subject."""
    two = Two(tmp_path)
    run, read = two.run(subject=f"main@{two.old}")
    assert (run.status, run.subject.name) == (RunStatus.completed, f"main@{two.old}")
    assert (run.subject.fields["branch"], run.subject.fields["sha"], run.group) == (
        "main",
        two.old,
        f"main@{two.old}",
    )
    assert read.split() == ["old", two.old]
    _, read = two.run()
    assert read.split() == ["new", two.new]


@pytest.mark.parametrize("short", [lambda sha: sha[:8], lambda sha: sha[:12].upper()])
def test_a_short_hash_is_the_same_subject_as_the_whole_one(tmp_path: Path, short: object) -> None:
    two = Two(tmp_path)
    run, read = two.run(subject=f"feature/x@{short(two.old)}")  # type: ignore[operator]
    assert run.subject.name == f"feature/x@{two.old}"
    assert read.split() == ["old", two.old]


def test_a_branch_alone_is_taken_at_its_head(tmp_path: Path) -> None:
    two = Two(tmp_path, "{branch}")
    run, read = two.run(subject="feature/x")
    assert (run.subject.name, run.subject.fields["sha"]) == ("feature/x", two.old)
    assert read.split() == ["old", two.old]
    assert "'gone', which is not there" in two.refused(subject="gone")


def test_a_subject_of_another_shape_is_refused_with_the_shape(tmp_path: Path) -> None:
    two = Two(tmp_path, "p/{part}/{branch}@{sha}")
    for name in ("main", f"p/one/main@{two.old}x", "p/one/main@HEAD", f"p/two/main@{two.old}"):
        assert "subjects look like 'p/{part}/{branch}@{sha}'" in two.refused(subject=name, inputs={"part": "one"})
    assert "which is not there" in two.refused(subject=f"p/one/main@{'0' * 40}", inputs={"part": "one"})
    run, _ = two.run(subject=f"p/one/main@{two.old}", inputs={"part": "one"})
    assert run.subject.fields["sha"] == two.old


def test_a_tag_or_branch_that_looks_like_a_hash_is_not_taken_for_one(tmp_path: Path) -> None:
    """L3: a name is never worked on in place of a commit."""
    two = Two(tmp_path)
    run_git(two.world.root, ["branch", "deadbeef", two.old])
    assert "deadbeef, which is not there" in two.refused(subject="main@deadbeef")


def test_a_subject_without_a_commit_in_its_template_is_any_text(tmp_path: Path) -> None:
    two = Two(tmp_path, "{loop_id}/{start}")
    run, read = two.run(subject="whatever @ all")
    assert (run.subject.name, run.subject.fields["sha"]) == ("whatever @ all", two.new)
    assert read.split() == ["new", two.new]


def test_a_retry_works_on_the_same_commit_even_when_the_template_was_changed_since(tmp_path: Path) -> None:
    two = Two(tmp_path)
    run, _ = two.run(subject=f"main@{two.old}")
    two.world.loop(LOOP.replace("SUBJECT", "other/{branch}@{sha}"))

    async def story() -> Run:
        started = await two.world.app.intake.retry(run, "me")
        assert started.run is not None
        return started.run

    again = asyncio.run(story())
    assert (again.subject.name, again.subject.fields["sha"]) == (run.subject.name, two.old)


def test_a_child_works_on_the_commit_its_parent_names(tmp_path: Path) -> None:
    two = Two(tmp_path)
    parent = f"""
    version: 1
    loop_id: parent
    goal: The child has ended.
    trigger: [{{manual: {{}}}}]
    max_iterations: 1
    deadline: 1h
    stop_conditions: [ended.pass]
    wait_conditions:
      children.pending: {{wake: child, for: 1h}}
    phases:
      act:
        objective: Start it.
        actions:
          - {{id: child, uses: run.start, with: {{loop: story, subject: "main@{two.old[:10]}"}}}}
          - {{id: stand, uses: run.gather}}
      verify:
        objective: It ended.
        verifiers: [{{id: ended, uses: children_ended, when: not children.pending}}]
    """
    two.world.loop(parent)

    async def story() -> None:
        run = await two.world.run("parent")
        assert run.status is RunStatus.completed
        (child,) = await two.world.store.list_runs(RunFilter(parent=run.run_id))
        assert (child.subject.name, child.subject.fields["sha"]) == (f"main@{two.old}", two.old)

    asyncio.run(story())
