"""A red suite stays red: the examples of the property tests are the same in every run.

`BECKET_SEED=n` looks at others; a failure prints the steps that lead to it.
"""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

# No deadline: what one example takes depends on who else is at work on the machine.
settings.register_profile(
    "becket", derandomize="BECKET_SEED" not in os.environ, database=None, print_blob=True, deadline=None
)
settings.load_profile("becket")


def pytest_runtest_setup() -> None:
    """`becket -C` in the process of a test goes into that test's folder, which is removed when the test has passed."""
    if not Path(os.curdir).exists():
        os.chdir(Path(__file__).parent)
