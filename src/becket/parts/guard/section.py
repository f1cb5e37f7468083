"""Its keys of becket.yaml."""

from __future__ import annotations

from pydantic import Field

from becket.kernel.contract.base import Record, Size
from becket.kernel.contract.config import Section
from becket.kernel.contract.guard import ChangeClass
from becket.kernel.contract.naming import Glob


class GuardConfig(Record):
    """`promote` is how far classes of changes are trusted; an `ordinary` one needs its hold-out proof all the same."""

    protected: tuple[Glob, ...] = ()
    max_deleted_share: float = Field(default=0.2, ge=0, le=1)
    max_file: Size = 5_000_000
    promote: ChangeClass = ChangeClass.ordinary
    pure: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # by language: modules that only compute


GUARD = Section(GuardConfig, GuardConfig, committed=True)
TEST_SIDE: Section[tuple[str, ...]] = Section(tuple[Glob, ...], tuple, committed=True)
