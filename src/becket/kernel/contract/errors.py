"""One root for every error Becket raises on purpose. The message is the advice: what happened, what to do next."""

from __future__ import annotations

from dataclasses import dataclass


class BecketError(Exception):
    """Something failed that Becket knows about. The CLI prints the message and exits with `exit_code`."""

    exit_code = 1


class UsageError(BecketError):
    """The person's input or configuration is wrong; nothing was changed."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong in a file, with the place and the way out."""

    file: str
    line: int
    column: int
    rule: str
    message: str
    fix: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.rule}: {self.message} ({self.fix})"


class InvalidDocument(UsageError):
    """A YAML document (a spec or becket.yaml) has findings; all of them are listed, not only the first."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in findings))


class PartFailed(BecketError):
    """A part's own code failed; the message names the part, its function, and what it said."""


class Fenced(BecketError):
    """This worker's claim on a run is gone (lease lost, run cancelled or taken over); it must write nothing more."""


class WorkerDeclaredDead(BecketError):
    """The store says this worker is dead: its runs were given to others. The process must exit."""


class NotFound(UsageError):
    """No object of that name; the message says how to list the existing ones."""


class StoreUnavailable(BecketError):
    """The database cannot be reached, or is of a newer version than this Becket."""

    exit_code = 2


class StoreBusy(StoreUnavailable):
    """It cannot be written now: another process holds it for long, or its disk is full. Nothing was written, so the
    same call may be made again.
    """


class StoreDamaged(StoreUnavailable):
    """The journal is not the one it was: damaged, gone, replaced, or an older copy. Nothing was written over it, and
    waiting does not help; a process that works on it ends before its next effect.
    """


class UnfitTables(StoreUnavailable):
    """A part's tables and the part do not fit together. The journal is whole, and nothing was changed."""


class StartRefused(BecketError):
    """A machine may not start this run. `too_deep`: its chain of causes is too long, now and later. Otherwise its loop
    is started too often, and the same start may be tried again in a minute.
    """

    def __init__(self, message: str, *, too_deep: bool) -> None:
        super().__init__(message)
        self.too_deep = too_deep

    @property
    def kind(self) -> str:
        return "chain_too_long" if self.too_deep else "started_too_often"


class EffectRefused(BecketError):
    """The door did not let an effect out: autonomy, a missing approval, a cap, or a secret in the payload."""


class EffectFailed(BecketError):
    """The outside said no, or could not be reached; `retryable` says whether the same call may succeed later.

    `ambiguous` means the outside may have acted although no answer came back. `retry_after` is how many seconds the
    outside asked to be left alone.
    """

    def __init__(
        self, message: str, *, retryable: bool = False, ambiguous: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.ambiguous = ambiguous
        self.retry_after = retry_after


class ActionFailed(BecketError):
    """An action could not do its work. `kind` is a short stable code; it is part of the failure's signature.

    `retryable` says that the same action may succeed at once (a crash, a model error), so that `retry:` applies.
    """

    def __init__(self, message: str, *, kind: str = "error", retryable: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


class GitFailed(BecketError):
    """A git command failed; the message holds the command and what git said."""


class PlaceTaken(GitFailed):
    """Something that is not Becket's lies where a tree of Becket's belongs: only a person can decide about it."""
