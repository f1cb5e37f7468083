"""The stores of the contract suite, a real Postgres among them, are used here too."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "contracts"))
