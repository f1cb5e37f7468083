"""What earlier runs proved about the commits before this one."""

from __future__ import annotations

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.git import Git
from becket.kernel.contract.project import Projects

MOST_COMMITS = 64


async def since_proven(context: ActionContext, branch: str, sha: str) -> tuple[str, list[str]] | None:
    """The newest proven commit before `sha`, and the commits after it up to `sha`, oldest first.

    None if none is proven, or it lies too far back.
    """
    watched = context.port(Projects).current().branch
    new: list[str] = []
    for commit in await context.port(Git).commits(None, sha, MOST_COMMITS + 1):
        for name in {branch, watched} if commit != sha else ():
            if await context.known("proven", f"{name}@{commit}"):
                return commit, list(reversed(new))
        new.append(commit)
    return None
