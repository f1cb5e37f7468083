"""The port to a remote repository: what its branch is, and a push that never overwrites anybody's commit."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from becket.kernel.contract.base import Record
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.promote import SHA_PATTERN

PUSH = "git.push"


class RemoteTrouble(StrEnum):
    """Why a remote could not be talked to."""

    unknown = "unknown"  # no remote of that name is configured
    login = "login"  # it wants a login that nobody is there to type in
    unreachable = "unreachable"  # nobody answers, or there is no repository; nothing was sent
    timed_out = "timed_out"  # ended by us; a push may have arrived
    broken_off = "broken_off"  # the connection ended on the way; a push may have arrived


class RemoteFailed(BecketError):
    """The remote could not be talked to; the message says what git said and what to do."""

    def __init__(self, trouble: RemoteTrouble, message: str) -> None:
        super().__init__(message)
        self.trouble = trouble


class Fetched(Record):
    """The remote's branch as it was a moment ago."""

    sha: str | None  # None: the remote has no such branch
    moved: bool  # it was not known here to be there


class WhyNotPushed(StrEnum):
    """Why the remote's branch stayed where it was."""

    moved = "moved"  # it holds commits that the pushed one does not, or has another value than expected
    refused = "refused"  # a hook, a protected branch, missing rights
    login = "login"


class PushRequest(Record):
    """What is asked for. Hashes, never names (L3)."""

    remote: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$")  # a configured name, never an address
    branch: str = Field(min_length=1)  # without refs/heads/
    new: str = Field(pattern=SHA_PATTERN)
    expected: str | None = Field(default=None, pattern=SHA_PATTERN)  # None: wherever it is, if `new` contains that

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"


def push_call(request: PushRequest) -> EffectCall:
    """The one form of this effect; a permit for it is good for exactly this push."""
    return EffectCall(name=PUSH, target=f"{request.remote}/{request.branch}", payload=request.model_dump())


class Pushed(Record):
    """The remote's branch has the value, or had it already."""

    new: str
    old: str | None


class NotPushed(Record):
    """The remote's branch was not moved by us. `message` says what to do next."""

    reason: WhyNotPushed
    message: str
    remote: str | None = None  # the value of its branch, as far as known
