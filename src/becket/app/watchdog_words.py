"""The watchdog's messages about processes: what is wrong, and the one command to type."""

from __future__ import annotations

from pathlib import Path

from becket.kernel.engine.deadman import Alarm, AlarmKind

LONGEST_WORDS = 160


def gave_up(times: int, window: float, why: str, logs: Path) -> Alarm:
    said = f" Its last words: {_short(why)}" if why else ""
    return Alarm(
        case=AlarmKind.gave_up,
        text=(
            f"The watchdog gave up: the daemon was started again {times} times within {window / 60:.0f} minutes and "
            f"did not stay. Mend the cause (see {logs / 'daemon.log'}), then type `becket up --detach`.{said}"
        ),
        well="Becket's daemon stays up again; the watchdog looks after it.",
        data={"restarts": times, "why": why},
    )


def stuck(pid: int) -> Alarm:
    return Alarm(
        case=AlarmKind.stuck,
        text=(
            f"Becket's daemon (pid {pid}) does not respond and does not end, even by SIGKILL: it hangs in the kernel, "
            "most likely on a disk that does not answer. Mend that, or restart the machine; then it is started again."
        ),
        well="Becket's daemon that did not end is gone.",
        data={"pid": pid},
    )


def engine_deaf(text: str) -> Alarm:
    return Alarm(case=AlarmKind.engine_deaf, text=text, well="No unresponsive process drives a run any more.")


def unwritable(text: str) -> Alarm:
    said = f"{text[:1].upper()}{text[1:]}"
    return Alarm(case=AlarmKind.unwritable, text=said, well="The journal can be written again.")


def hangs(text: str, well: str) -> Alarm:
    return Alarm(case=AlarmKind.services_hang, text=text, well=well)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_WORDS else text[: LONGEST_WORDS - 3] + "..."
