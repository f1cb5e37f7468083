"""The restart policy: pure functions from what was seen to what to do, on a clock that is given.

Backoff per service, a storm limit that holds whatever happens (L28), and health that must be proven over the soak
before anything is kept or forgiven.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from becket.kernel.contract.base import Record
from becket.parts.services.ports import RestartHistory, ServiceObservation
from becket.parts.services.section import HealthConfig


class Rules(Record):
    """All in seconds, but for the counts."""

    samples: int = 5
    soak: float = 10.0
    ready_within: float = 60.0  # from the start to the first good answer
    first_pause: float = 1.0
    growth: float = 3.0
    longest_pause: float = 120.0
    starts: int = 6  # at most so many within the window, healthy in between or not
    window: float = 600.0
    misses: int = 3  # so many bad looks in a row, over `deaf_after`, make a deaf one of a proven service
    deaf_after: float = 10.0

    def of(self, health: HealthConfig) -> Rules:
        return self.model_copy(update={"samples": health.samples, "soak": health.soak})

    def latest(self, started_at: float) -> float:
        """Later than this an unproven service gets no more patience: it never came up, or it flaps."""
        return started_at + self.ready_within + 3 * self.soak


class RestartAction(StrEnum):
    wait = "wait"
    keep = "keep"  # proven healthy just now
    fail = "fail"  # of a trial: back to the last kept release
    restart = "restart"  # of a kept release: end what is left, and start it when `due` says


class NextStart(NamedTuple):
    """When the next start may happen, and whether the storm limit says so."""

    at: float
    storm: bool


def due(life: RestartHistory, now: float, rules: Rules) -> NextStart:
    """The limit counts starts, not deaths: neither health in between nor a restart of the watchdog forgives one."""
    recent = [at for at in life.starts if 0 <= now - at < rules.window]
    if recent and (life.stormed or len(recent) >= rules.starts):
        return NextStart(max(recent) + rules.window, True)
    return NextStart(min(life.ended_at, now) + _pause(life.strikes, rules), False)


def _pause(strikes: int, rules: Rules) -> float:
    if strikes == 0:
        return 0.0
    return float(min(rules.first_pause * rules.growth ** min(strikes - 1, 50), rules.longest_pause))


def started(life: RestartHistory, now: float, rules: Rules) -> RestartHistory:
    recent = tuple(at for at in life.starts if 0 <= now - at < rules.window)
    return RestartHistory(
        starts=(*recent, now)[-4 * rules.starts :], strikes=life.strikes, stormed=life.stormed, started_at=now
    )  # fmt: skip


def adopted(life: RestartHistory, now: float) -> RestartHistory:
    """It was found running. That is no start, and no proof of health either."""
    return RestartHistory(starts=life.starts, strikes=life.strikes, stormed=life.stormed, started_at=now)


def ended(life: RestartHistory, now: float, *, struck: bool) -> RestartHistory:
    """Nothing runs any more; `struck` if nobody wanted that."""
    return RestartHistory(starts=life.starts, strikes=life.strikes + struck, stormed=life.stormed, ended_at=now)


def stormed(life: RestartHistory) -> RestartHistory:
    return life.model_copy(update={"stormed": True})


def seen(
    life: RestartHistory, sight: ServiceObservation, now: float, rules: Rules, *, trial: bool
) -> tuple[RestartHistory, RestartAction]:
    """What one look means. A trial that dies, or shares its port with a stranger, has failed.

    A kept release beside a stranger goes on: ending it would leave the port to the stranger alone. It must prove its
    health again once the stranger is gone.
    """
    if sight is ServiceObservation.stranger and not trial:
        return adopted(life, now), RestartAction.wait
    if sight in (ServiceObservation.gone, ServiceObservation.stranger):
        return life, RestartAction.fail if trial else RestartAction.restart
    if sight is ServiceObservation.healthy:
        return _well(life, now, rules)
    life, hopeless = _ill(life, now, rules)
    return life, (RestartAction.fail if trial else RestartAction.restart) if hopeless else RestartAction.wait


def _well(life: RestartHistory, now: float, rules: Rules) -> tuple[RestartHistory, RestartAction]:
    since = now if life.healthy_since is None else life.healthy_since
    samples = life.samples + 1
    proves = not life.proven and samples >= rules.samples and now - since >= rules.soak
    changed: dict[str, object] = {"healthy_since": since, "samples": samples, "missed_since": None, "misses": 0}
    if proves:
        changed |= {"proven": True, "strikes": 0, "stormed": False}
    return life.model_copy(update=changed), RestartAction.keep if proves else RestartAction.wait


def _ill(life: RestartHistory, now: float, rules: Rules) -> tuple[RestartHistory, bool]:
    """A bad look begins the soak anew. Says whether there is no hope left."""
    since = now if life.missed_since is None else life.missed_since
    changed = {"healthy_since": None, "samples": 0, "missed_since": since, "misses": life.misses + 1}
    life = life.model_copy(update=changed)
    if life.proven:
        return life, life.misses >= rules.misses and now - since >= rules.deaf_after
    began = now if life.started_at is None else life.started_at
    return life, now - since >= rules.ready_within or now >= rules.latest(began)
