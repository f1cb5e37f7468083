"""A repository with a bug to come, an agent that mends it, a question and a failure, and the page on."""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path
from typing import Any

from cli_stage import ASK, FAIL, Stage, wait_for

from becket.app.state import StateFolder, holder
from becket.parts.front.kept import Address, front_of, living_address

CONFIG = """\
version: 1
branch: main
autonomy: AUTONOMY
gates:
  fast: [{name: check, run: "grep -q number.+.1 value.py"}]
  slow: [{name: whole, run: "test -s value.py"}]
test_side: ["tests/**"]
sandbox: {use: none, without: [files, processes, network]}
agents:
  fixer: {driver: command, run: "echo I will mend it; sed -i s/-/+/ value.py", network: none}
services:
  bell: {start: "exec PYTHON -m http.server $PORT --bind 127.0.0.1", port: 1, health: {url: /value.py}}
web: {enabled: true}
"""
GOOD = "def after(number):\n    return number + 1\n"
BUG = "def after(number):\n    return number - 1  # NUMBER\n"
AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 150)).join("; ")}`)"""


class WebHouse(Stage):
    def __init__(self, folder: Path, autonomy: str) -> None:
        super().__init__(folder / "repo")
        self.write("becket.yaml", CONFIG.replace("AUTONOMY", autonomy).replace("PYTHON", sys.executable))
        self.write("value.py", GOOD)
        self.write(".becket/loops/ask.yaml", ASK)
        self.write(".becket/loops/fail.yaml", FAIL)
        self.commit("A value that is one")
        self.paths = StateFolder(root=self.root, common=self.root / ".git")
        self._bugs = 0

    @property
    def front(self) -> int:
        return holder(front_of(self.paths).lock) or 0

    @property
    def head(self) -> str:
        return self.git("rev-parse", "main").strip()

    def served(self, other_than: int = 0) -> Address:
        def look() -> Address | None:
            found = living_address(self.paths)
            return found if found and found.pid != other_than and _answers(found) else None

        found = wait_for(look)
        assert found is not None
        return found

    def bug(self) -> str:
        """Somebody commits one. Its commit."""
        self._bugs += 1
        self.write("value.py", BUG.replace("NUMBER", str(self._bugs)))
        self.commit(f"Bug {self._bugs}")
        return self.head

    def runs(self, loop_id: str, status: str = "") -> list[dict[str, Any]]:
        return [
            run for run in self.json("runs", "list", "--limit", "50")
            if run["loop_id"] == loop_id and status in ("", run["status"])
        ]  # fmt: skip

    def until(self, loop_id: str, status: str) -> dict[str, Any]:
        return wait_for(lambda: self.runs(loop_id, status))[0]


def _answers(address: Address) -> bool:
    try:
        with urllib.request.urlopen(f"{address.url}/login", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def findings(page: Any, axe: str) -> list[str]:
    """What axe-core calls serious or critical."""
    page.evaluate(axe + "\n;0")
    found: list[str] = page.evaluate(AXE)
    return found
