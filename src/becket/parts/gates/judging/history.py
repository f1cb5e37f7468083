"""What earlier runs proved about the commits before this one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.git import Git
from becket.kernel.contract.project import Projects

MOST_COMMITS = 64


FactLookup = Callable[[str, str], Awaitable[bool]]
"""Whether a run has recorded this fact about this subject."""


async def since_proven(context: ActionContext, branch: str, sha: str) -> tuple[str, list[str]] | None:
    """The newest proven commit before `sha`, and the commits after it up to `sha`, oldest first.

    None if none is proven, or it lies too far back.
    """
    watched = context.port(Projects).current().branch
    return await newest_proven(context.port(Git), context.known, {branch, watched}, sha)


async def newest_proven(
    git: Git, known: FactLookup, branches: Collection[str], sha: str
) -> tuple[str, list[str]] | None:
    """The same, for whoever is not in a run."""
    new: list[str] = []
    for commit in await git.commits(None, sha, MOST_COMMITS + 1):
        for name in branches if commit != sha else ():
            if await known("proven", f"{name}@{commit}"):
                return commit, list(reversed(new))
        new.append(commit)
    return None
