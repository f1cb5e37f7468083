"""The scripts of one server, and which of them a request belongs to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from becket.testing.model.exchange import ModelRequest
from becket.testing.model.steps import Answering, Delay, Loop, Step, Think


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """The next answering step, with what goes before it."""

    step: Answering
    thoughts: tuple[str, ...] = ()
    delay: float = 0.0


class Lane:
    """One script. It belongs to the requests with this API key, or with this text in a prompt, or to all others."""

    def __init__(self, steps: Iterable[Step], key: str | None = None, prompt: str | None = None) -> None:
        self.key = key
        self.prompt = prompt
        self._steps: deque[Step] = deque(steps)

    @property
    def name(self) -> str:
        return f"key {self.key}" if self.key else f"prompt {self.prompt!r}" if self.prompt else "default"

    @property
    def left(self) -> tuple[Step, ...]:
        return tuple(self._steps)

    def add(self, steps: Iterable[Step]) -> None:
        self._steps.extend(steps)

    def takes(self, key: str | None, ask: ModelRequest) -> bool:
        if self.key is not None and self.key != key:
            return False
        return self.prompt is None or any(self.prompt in text for text in ask.prompts)

    def turn(self) -> ScriptedTurn | None:
        """Takes the next turn off the script; None when it is over. The caller holds the server's lock."""
        thoughts: list[str] = []
        delay = 0.0
        while self._steps:
            step = self._steps.popleft()
            if isinstance(step, Loop):
                self._steps.extendleft(reversed((*step.steps, step)))
            elif isinstance(step, Think):
                thoughts.append(step.text)
            elif isinstance(step, Delay):
                delay += step.seconds
            else:
                return ScriptedTurn(step, tuple(thoughts), delay)
        return None


class Lanes:
    """The most particular script wins: by key and prompt, by prompt, by key, the default one."""

    def __init__(self) -> None:
        self._lanes: list[Lane] = []

    def add(self, lane: Lane) -> None:
        same = next((one for one in self._lanes if (one.key, one.prompt) == (lane.key, lane.prompt)), None)
        if same is None:
            self._lanes.append(lane)
            self._lanes.sort(key=lambda one: (one.prompt is None, one.key is None))
        else:
            same.add(lane.left)

    def of(self, key: str | None, ask: ModelRequest) -> Lane | None:
        return next((lane for lane in self._lanes if lane.takes(key, ask)), None)

    @property
    def left(self) -> dict[str, tuple[Step, ...]]:
        return {lane.name: lane.left for lane in self._lanes if lane.left}
