"""Real time: a daemon, a watchdog, people who commit, and faults one after another; `make test-soak`.

After every round of faults the town is left in peace: what was at work must come to an end by itself, and nothing that
tests/faults/properties.py knows of may be broken. Whatever breaks is printed with its seed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from chaos import FAULTS  # noqa: E402
from town import FAKETIME, Town, person  # noqa: E402

DISK = 64 << 20
PEACE_WITHIN = 240.0
"""So long may it take, after the last fault of a round, until nothing is at work any more."""
SWEPT_WITHIN = 150.0
BUSY = ("queued", "running")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--minutes", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=int(time.time()))
    asked.add_argument("--only", action="append", help="names of faults", default=[])
    options = asked.parse_args()
    if os.environ.get("BECKET_SOAK_MOUNTED") is None:
        _in_a_mount_namespace()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="becket-soak-") as folder:
        disk = Path(folder) / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)], check=True)
        try:
            return soak(Town(disk, options.seed, Path(folder) / "clock", _preload()), options.minutes, options.only)
        finally:
            subprocess.run(["umount", "--lazy", str(disk)], check=False)


def _in_a_mount_namespace() -> NoReturn:
    """So that the small file system is seen by nobody else and goes with us."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    os.execvpe(unshare[0], [*unshare, sys.executable, *sys.argv], os.environ | {"BECKET_SOAK_MOUNTED": "1"})


def _preload() -> str:
    found = sorted(Path("/").glob(FAKETIME.lstrip("/")))
    if not found:
        print("faketime is not installed: the clock cannot be moved; `apt-get install faketime`", file=sys.stderr)
        raise SystemExit(2)
    return str(found[0])


def soak(town: Town, minutes: float, only: list[str]) -> int:
    faults = [fault for fault in FAULTS if not only or fault.__name__ in only]
    print(f"seed {town.seed}, {minutes:g} minutes, {len(faults)} kinds of faults", flush=True)
    town.begin()
    until, rounds, wrong = time.monotonic() + 60 * minutes, 0, []
    try:
        while time.monotonic() < until and len(wrong) < 20:
            rounds += 1
            wrong += [f"round {rounds}: {each}" for each in one_round(town, faults)]
    finally:
        town.becket("down", seconds=180.0)
    return tell(town, rounds, wrong)


def one_round(town: Town, faults: list) -> list[str]:  # type: ignore[type-arg]
    begin = time.monotonic()
    town.becket("up", "--detach")  # the advised command, whatever the state of things
    played = []
    for _ in range(town.chance.randint(1, 4)):
        for _ in range(town.chance.randint(0, 3)):
            person(town)
        fault = town.chance.choice(faults)
        played.append(fault.__name__)
        town.did(f"fault: {fault.__name__}")
        try:
            fault(town)
        except AssertionError as error:
            return [f"{fault.__name__}: {error}"]
    wrong = _peace(town) or _broken(town)
    took = time.monotonic() - begin
    print(f"{took:6.1f} s  {', '.join(played)}  {'; '.join(wrong) or 'holds'}", flush=True)
    return [f"{', '.join(played)}: {each}" for each in wrong]


def _peace(town: Town) -> list[str]:
    """Nothing is asked of anybody but `becket up`: where both were killed, and where an alarm says so."""
    if town.daemon is None and town.watchdog is None:
        town.becket("up", "--detach")
    until = time.monotonic() + PEACE_WITHIN
    while busy := _busy(town):
        if town.daemon is None and "becket up" in town.becket("status")[1]:
            town.did("person: becket up, as advised")
            town.becket("up", "--detach")
        if time.monotonic() > until:
            return [f"still at work after {PEACE_WITHIN:g} s of peace: {', '.join(busy)}; {town.becket('status')[1]}"]
        time.sleep(1.0)
    return []


def _broken(town: Town) -> list[str]:
    """What is so at every look until the daemon has swept: the town lives on, and a child may begin amid a look."""
    begin, wrong = time.monotonic(), _look(town)
    first = wrong
    while wrong and time.monotonic() < begin + SWEPT_WITHIN:
        time.sleep(5.0)
        again = _look(town)
        wrong = [each for each in wrong if each in again]
    if first and not wrong:
        print(f"for {time.monotonic() - begin:.1f} s: {'; '.join(first)}", flush=True)
    return wrong


def _look(town: Town) -> list[str]:
    """By a process of its own, whose clock is the town's."""
    look = [sys.executable, str(HERE / "look.py"), str(town.root)]
    done = subprocess.run(look, env=town.environment(), capture_output=True, text=True, check=False, timeout=300)
    return list(json.loads(done.stdout)) if done.returncode == 0 else [f"nobody could look: {done.stderr[-2000:]}"]


def _busy(town: Town) -> list[str]:
    try:
        runs = town.ask("runs", "list", "--limit", "10000")
    except (RuntimeError, ValueError) as error:
        return [str(error)]
    busy = [f"{run['run_id']} ({run['loop_id']}) {run['status']}" for run in runs if run["status"] in BUSY]
    return [each for each in busy if "(tick)" not in each] or (["nobody serves"] if town.daemon is None else [])


def tell(town: Town, rounds: int, wrong: list[str]) -> int:
    runs = town.ask("runs", "list", "--limit", "10000")
    ends = Counter(f"{run['loop_id']}: {run['status']} {run['reason']}" for run in runs)
    promoted = sum("becket" in line for line in town.git("reflog", "show", "main", check=False).splitlines())
    print(json.dumps({
        "seed": town.seed, "rounds": rounds, "deeds": dict(sorted(town.deeds.items())), "runs": len(runs),
        "ends": dict(sorted(ends.items())), "promotions in the reflog": promoted, "broken": wrong,
    }, indent=2))  # fmt: skip
    if not promoted:
        print("nothing was promoted: this hour has tried nothing that matters", flush=True)
    return 1 if wrong or not promoted else 0


if __name__ == "__main__":
    raise SystemExit(main())
