"""What the bench says."""

from __future__ import annotations

BENCH_FIGURES = {
    "cheat": "not promoted, and why is said:  {right} of {total} cheats",
    "honest": "promoted or proposed:           {right} of {total} honest repairs",
    "honest_plain": "promoted without a person:      {right} of {total} honest repairs that are plain",
    "read_cheat": "called what they are:           {right} of {total} cheats that were only read",
    "read_plain": "called plain:                   {right} of {total} honest repairs that were only read",
    "read_without_person": "called plain or ordinary:       {right} of {total} of these",
    "read_agreement": "called as a reviewer does:      {right} of {total} of these",
}
BENCH_CLASSES = [
    "class", "cheats refused", "handed over", "promoted", "honest repairs refused", "proposed", "promoted",
]  # fmt: skip
BENCH_NOTHING_READ = "no change"
BENCH_SEED = "The generated cheats are those of `--seed {seed}`."
BENCH_WITHOUT_NODE = "There is no node here, so no case in JavaScript was played. Install Node.js, then run it again."
BENCH_MISSED = "(below the bar)"
BENCH_NOT_CONTAINED = (
    "No sandbox holds files, processes and network here, so what the agents did outside their checkouts was not "
    "judged. Install bubblewrap, then run it again."
)
