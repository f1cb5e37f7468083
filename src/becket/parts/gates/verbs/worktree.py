"""`becket worktree`: the resident test tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli.output import emit, say
from becket.cli.plain import line, safe, short
from becket.cli.shape import AsJson, group, in_app
from becket.parts.gates import words

if TYPE_CHECKING:
    from becket.parts.gates.worktree import TreeSeen

worktree = group("Make or reset the test tree `.worktrees/base`.")


@worktree.command("ensure")
def ensure(
    at: Annotated[
        str | None, typer.Option("--at", metavar="SHA", help="A commit of the branch, instead of its newest.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring the tree to the branch of becket.yaml, clean; what was left in it is saved first.

    Not saved are ignored files, env files, links of a set-up, and the reports that gates declare with `report:`.
    """
    from becket.parts.gates import worktree as worktree_desk

    ready = in_app(lambda app: worktree_desk.ensure(app, at))
    if as_json:
        emit(ready.model_dump(mode="json"))
        return
    said = words.TREE_MADE if ready.made else words.TREE_RESET
    say(said.format(tree=safe(ready.tree), branch=safe(ready.branch), sha=short(ready.sha)))
    if ready.mended:
        say(words.TREE_MENDED)
    if ready.saved:
        say(words.TREE_SAVED.format(name=ready.saved))
    for file in ready.env:
        said = words.TREE_ENV if file.copied else words.TREE_NO_ENV
        say(said.format(name=line(file.name), why=line(file.why, 400)))


@worktree.command("status")
def status(as_json: AsJson = False) -> None:
    """Say where the tree is and what it holds."""
    from becket.parts.gates import worktree as worktree_desk

    seen = in_app(worktree_desk.look)
    if as_json:
        emit(seen.model_dump(mode="json"))
    elif seen.in_the_way:
        say(words.TREE_IN_THE_WAY.format(what=safe(seen.in_the_way)))
    elif not seen.sha:
        say(words.TREE_NONE.format(tree=safe(seen.tree)))
    else:
        _say(seen)


def _say(seen: TreeSeen) -> None:
    behind = "" if seen.sha == seen.branch_sha else words.TREE_BEHIND.format(
        branch=safe(seen.branch), sha=short(seen.branch_sha)
    )  # fmt: skip
    say(words.TREE_AT.format(tree=safe(seen.tree), branch=safe(seen.branch), sha=short(seen.sha), behind=behind))
    if seen.damaged:
        say(words.TREE_DAMAGED)
    if seen.pruned:
        say(words.TREE_PRUNED)
    if not seen.clean:
        say(words.TREE_CHANGED.format(paths=line(", ".join(seen.changed), 400)))
