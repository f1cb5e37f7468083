"""A red suite stays red: the examples of the property tests are the same in every run.

`BECKET_SEED=n` looks at others; a failure prints the steps that lead to it.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("becket", derandomize="BECKET_SEED" not in os.environ, database=None, print_blob=True)
settings.load_profile("becket")

# What is started in the background, or by nohup, ignores these, and so would all that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
