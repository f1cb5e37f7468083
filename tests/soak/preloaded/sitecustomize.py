"""Under libfaketime each `time.sleep` of Python 3.11 is refused (EINVAL of clock_nanosleep): sleep by another call."""

import select
import time

time.sleep = lambda seconds: select.select((), (), (), seconds)  # type: ignore[assignment,misc]
