"""Prints what is broken in a repository as a list; a process of its own, so that its clock may be another's."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from properties import broken_at

print(json.dumps(asyncio.run(broken_at(Path(sys.argv[1]), served=True))))
