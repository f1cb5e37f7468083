"""A world with a loop that takes one commit somewhere: to main, to a branch of its own, or to the remote."""

from __future__ import annotations

import asyncio
from pathlib import Path

from becket.kernel.contract.base import Json
from becket.kernel.contract.run import Run, Step
from becket.testing.world import World, run_git

OPEN = """
version: 1
autonomy: merge
sandbox: {use: none, without: [files, processes, network]}
"""

LOOP = """
version: 1
loop_id: story
goal: A commit arrives.
trigger: [{manual: {}}]
inputs: {old: {type: sha}, new: {type: sha}}
subject: "{new}"
max_iterations: 6
deadline: 1h
autonomy: merge
stop_conditions: [STOP]
handoff_conditions: [HANDOFF]
phases:
  act:
    objective: take it there
    actions:
      - ACTION
    persist_outputs: [KEPT]
  verify:
    objective: look
    verifiers: [{id: look, run: "true", in: scratch}]
"""

PROMOTION = '{id: go, uses: promote.run, with: {branch: main, old: "{old}", new: "{new}", proof: verdict}}'


class Stage:
    def __init__(self, folder: Path, store: str = "memory", config: str = OPEN) -> None:
        self.world = World(folder, store=store)
        self.world.write("becket.yaml", config)
        self.world.commit({"app.py": "x = 1\n"})

    @property
    def root(self) -> Path:
        return self.world.root

    def git(self, *arguments: str) -> str:
        return run_git(self.root, arguments)

    def main(self) -> str:
        return self.git("rev-parse", "refs/heads/main")

    def candidate(self, text: str = "x = 2\n") -> str:
        """A commit on top of main that no branch knows of."""
        self.git("switch", "--quiet", "--detach")
        sha = self.world.commit({"app.py": text}, "candidate")
        self.git("switch", "--quiet", "main")
        return sha

    def tell(
        self, action: str, stop: str, new: str, handoff: str = "action_error", kept: str = "", old: str = ""
    ) -> tuple[Run, dict[str, Step]]:
        text = LOOP.replace("STOP", stop).replace("HANDOFF", handoff).replace("ACTION", action).replace("KEPT", kept)
        self.world.loop(text)
        self.git("add", "--all")
        inputs: dict[str, Json] = {"old": old or self.main(), "new": new}

        async def story() -> tuple[Run, dict[str, Step]]:
            run = await self.world.run("story", inputs=inputs)
            return run, {step.id: step for step in await self.world.store.steps(run.run_id)}

        return asyncio.run(story())
