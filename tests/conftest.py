"""A red suite stays red: the examples of the property tests are the same in every run.

`BECKET_SEED=n` looks at others; a failure prints the steps that lead to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: what one example takes depends on who else is at work on the machine.
settings.register_profile(
    "becket", derandomize="BECKET_SEED" not in os.environ, database=None, print_blob=True, deadline=None
)
settings.load_profile("becket")


@pytest.fixture(autouse=True)
def _back_where_it_began() -> Iterator[None]:
    """`becket -C` in a test's own process goes to a folder that is gone when the test has passed."""
    here = Path.cwd()
    yield
    os.chdir(here)
