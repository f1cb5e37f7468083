"""The logs of one step: while they are written, and as they were kept. No name that somebody gives becomes a path."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from becket.app.compose import App
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.run import ENDED, Run
from becket.kernel.contract.spec import PHASES, Phase
from becket.kernel.contract.store import ArtifactRef

LOG = ".log"


@dataclass(frozen=True, slots=True)
class StepPlace:
    """Written as `2/verify/unit`."""

    iteration: int
    phase: Phase
    step: str

    @classmethod
    def read(cls, text: str) -> StepPlace:
        """Raises NotFound."""
        iteration, _, rest = text.partition("/")
        phase, _, step = rest.partition("/")
        if not (iteration.isascii() and iteration.isdigit() and len(iteration) < 7 and phase in PHASES and step):
            raise NotFound("a step is written like 1/verify/unit")
        return cls(int(iteration), Phase(phase), step)

    def __str__(self) -> str:
        return f"{self.iteration}/{self.phase}/{self.step}"


@dataclass(frozen=True, slots=True)
class StepLog:
    """`digest` is empty while it is written. A `path` of None: its content is not kept here any more."""

    name: str
    digest: str
    path: Path | None


async def logs_of(app: App, run: Run, place: StepPlace) -> tuple[StepLog, ...]:
    """In the order in which they were made."""
    refs = [ref for ref in await app.store.artifacts(run.run_id) if _is_of(ref, place) and ref.name.endswith(LOG)]
    written = {step.id for step in await app.store.steps(run.run_id, place.iteration) if step.phase is place.phase}
    found = await asyncio.to_thread(_kept, app, refs)
    if run.status not in ENDED and place.step not in written:
        found |= await asyncio.to_thread(_growing, app.places.of_run(run.run_id) / "logs", place)
    return tuple(found.values())


def _is_of(ref: ArtifactRef, place: StepPlace) -> bool:
    return (ref.iteration, ref.phase, ref.action_id) == (place.iteration, place.phase.value, place.step)


def _kept(app: App, refs: list[ArtifactRef]) -> dict[str, StepLog]:
    """Of several with one name the last."""
    return {ref.name: StepLog(ref.name, ref.digest, _path(app, ref.digest)) for ref in refs}


def _path(app: App, digest: str) -> Path | None:
    try:
        return app.artifacts.path(digest)
    except NotFound:
        return None


def _growing(folder: Path, place: StepPlace) -> dict[str, StepLog]:
    """Named as they are kept later."""
    return {name: StepLog(name, "", path) for name, path in sorted(_files(folder, place))}


def _files(folder: Path, place: StepPlace) -> Iterator[tuple[str, Path]]:
    begins = f"{place.iteration}-{place.phase}-"
    for path in folder.glob(f"*{LOG}"):
        name = path.name.removeprefix(begins)
        if name != path.name and name.startswith((f"{place.step}.", f"{place.step}-")) and not path.is_symlink():
            yield name, path
