"""The stores of the contract suite, a real Postgres among them, and the stories' small disk are used here too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent.parent / name) for name in ("contracts", "stories")]
