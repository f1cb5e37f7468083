"""What earlier runs proved about the commits before this one."""

from __future__ import annotations

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.git import Git

MOST_COMMITS = 64


async def since_proven(context: ActionContext, branch: str, sha: str) -> tuple[str, list[str]] | None:
    """The newest proven commit before `sha`, and the commits after it up to `sha`, oldest first.

    None if none is proven, or it lies too far back.
    """
    new: list[str] = []
    for commit in await context.port(Git).commits(None, sha, MOST_COMMITS + 1):
        if commit != sha and await context.known("proven", f"{branch}@{commit}"):
            return commit, list(reversed(new))
        new.append(commit)
    return None
