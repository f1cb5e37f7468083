"""Green steps that need not run again, one small file each. Losing one costs a run, never a wrong verdict."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.gate import StepVerdict

MOST = 5_000
"""More than this, and the oldest half is forgotten."""


class _Remembered(Record):
    verdict: StepVerdict
    run_id: str
    at: float


class FileVerdicts:
    """`kept` tells whether an artifact still exists: a verdict without its log and report is none."""

    def __init__(self, folder: Path, kept: Callable[[str], bool]) -> None:
        self._folder = folder
        self._kept = kept

    async def find(self, key: str, not_before: float, now: float) -> tuple[StepVerdict, str] | None:
        return await asyncio.to_thread(self._find, key, not_before, now)

    def _find(self, key: str, not_before: float, now: float) -> tuple[StepVerdict, str] | None:
        try:
            told: Json = json.loads((self._folder / key).read_bytes())
            found = _Remembered.model_validate(told)
        except (OSError, ValueError):
            return None
        evidence = self._kept(found.verdict.log) and self._kept(found.verdict.report)
        # One from the future was written before the clock was set back: nobody knows how old it is.
        return (found.verdict, found.run_id) if not_before <= found.at <= now and evidence else None

    async def put(self, key: str, verdict: StepVerdict, run_id: str, at: float) -> None:
        if not verdict.green:
            raise ValueError(f"only a green is remembered, and {verdict.step} is {verdict.color}")
        await asyncio.to_thread(self._put, key, _Remembered(verdict=verdict, run_id=run_id, at=at))

    def _put(self, key: str, remembered: _Remembered) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        new = self._folder / f".{key}.{os.getpid()}"
        with new.open("w", encoding="utf-8") as file:
            file.write(remembered.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._folder / key)
        self._forget_old()

    def _forget_old(self) -> None:
        names = [entry for entry in os.scandir(self._folder) if not entry.name.startswith(".")]
        if len(names) > MOST:
            names.sort(key=lambda entry: entry.stat().st_mtime)
            for entry in names[: len(names) // 2]:
                Path(entry.path).unlink(missing_ok=True)
