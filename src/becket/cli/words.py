"""Every sentence that the command line says to people. Imports nothing heavy: `becket --help` reads it."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from becket.cli.plain import Paint, safe

if TYPE_CHECKING:
    from becket.kernel.contract.state import StateSeen

USAGE = """\
Usage: becket [-C DIR] VERB [OPTIONS]

Closed engineering loops over a repository: agents claim, Becket proves."""

GLOBAL_OPTIONS = """\
Options before the verb:
  -C DIR         Work in DIR, as with git.
  --debug        Show tracebacks (or set BECKET_DEBUG=1).
  -V, --version  Print the version.
  -h, --help     Print this help; `becket VERB --help` for a verb's own.

Every verb has --json. Exit codes: 0 done, 1 the thing failed, 2 usage or configuration."""

# Errors

INTERRUPTED = "becket: interrupted"
FOLDER_GONE = "the folder that you are in is gone; go to one that is there, or name one: becket -C DIR VERB"
NO_FOLDER_GIVEN = "-C needs a folder: becket -C DIR VERB"


def complaint(error: Exception) -> str:
    """Findings begin with file:line:column, so that editors can jump to them; the rest says who speaks."""
    from becket.kernel.contract.errors import InvalidDocument

    text = safe(error)
    return text if isinstance(error, InvalidDocument) else f"{_name()} {text}"


def _name() -> str:
    import sys

    return Paint(sys.stderr).red("becket:")


def bug(error: Exception) -> str:
    said = safe(f"{type(error).__name__}: {error}")
    advice = "This is a fault in Becket, not in your loop. `becket --debug ...` shows where."
    return f"{_name()} internal error: {said}\n{advice}"


def verb_failed(verb: str, target: str, error: Exception) -> str:
    said = safe(f"{type(error).__name__}: {error}")
    return (
        f"the verb {verb} ({target}) failed: {said}; it comes with a part: mend that part, or remove it "
        f"(`becket parts list`). `becket --debug {verb} ...` shows where"
    )


MACHINE = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room within the quota",
    errno.EROFS: "make it writable again",
    errno.EACCES: "let this user write and read there",
    errno.EIO: "see what the system's log says about that disk",
}
"""What a person does about a file that the system refuses."""


def machine(error: Exception) -> str:
    assert isinstance(error, OSError)
    advice = MACHINE[error.errno or errno.EIO]
    return f"{_name()} {safe(f'{error.filename}: {error.strerror}')}; {advice}, then run the command again"


def unknown_option(option: str) -> str:
    return f"there is no option {option!r} before the verb; see `becket --help`"


REMARKS = ("--note", "--reason")


def empty_option(option: str) -> str:
    return f"{option} is empty; leave it out, or give it a value"


def unknown_verb(name: str, close: list[str]) -> str:
    hint = f"did you mean `becket {close[0]}`?" if close else "see `becket --help`"
    return f"there is no verb {name!r}; {hint}"


def cannot_go(folder: str, why: str) -> str:
    return f"-C {folder}: {why}; give a folder inside the repository"


def not_a_pair(item: str) -> str:
    return f"--with {item!r} is not NAME=VALUE"


def given_twice(name: str) -> str:
    return f"--with {name}=... was given twice"


def no_step(run_id: str, step: str, known: str) -> str:
    return f"{run_id} has no step {step!r} with a log; it has {known or 'none yet'}"


def no_output(run_id: str, name: str, known: str) -> str:
    return f"{run_id} has no output {name!r}; it has {known or 'none yet'}"


def others(count: int) -> str:
    """Said when a command has seen its own run through."""
    return (
        "1 other run waits: `becket up` runs it." if count == 1 else f"{count} other runs wait: `becket up` runs them."
    )


def cannot_write(path: str, why: str) -> str:
    return f"{path} cannot be written: {why}"


SAME_FILE = "--html and --md name the same file; give each its own"
TWO_SUBJECTS = "--base-sha and --subject both say what the run is about; give one of them"

# Runs

_CONDITIONS = {
    "candidate.exists": "a candidate",
    "candidate.holdout_nothing": "no hold-out check",
    "culprit.known": "culprit known",
    "culprit.unknown": "culprit unknown",
    "proposal.stands": "still proven",
    "way.promote": "main may move",
    "way.propose": "a person decides",
}


def condition(ref: str) -> str:
    """What came of a step, for whoever does not know the spec."""
    return _CONDITIONS.get(ref) or ref.rpartition(".")[2].replace("_", " ")


QUEUED_BEHIND_DAEMON = "The daemon works on it; follow it with `becket runs show {run_id} --follow`."
QUEUED_FOR_NOBODY = "It is queued; nothing runs it until `becket up`, or `becket runs show {run_id} --follow`."
LEFT = """\
interrupted; nothing is lost. {run_id} goes on where it stopped:
  becket runs show {run_id} --follow
  becket up"""
LEFT_ALL = "interrupted; nothing is lost. `becket status` shows what is open; `becket up` goes on with it"
OTHER_BRANCH = "This is about {branch} (`branch:` in becket.yaml), not about {here}, which is checked out here{mend}."
OTHER_BRANCH_MEND = "; for that one: becket run {loop} --base-sha HEAD"
ALREADY = "{run_id} already works on this subject ({subject}): {status}."
READY_ALREADY = (
    "Nothing was started: {run_id} left a proven repair of {subject}. Take it: becket proposals accept {run_id}; or "
    "ask for a new one: becket runs retry {run_id}"
)
DROPPED = "Nothing was started: {why}."
SUPERSEDED = "{run_id} was cancelled: a newer start of its group waits instead."
PAUSED = "{run_id} is queued, but {scope} is paused by {by}{note}; resume it with `{command}`."
HELD = "{run_id} is held; release it with `becket hold {run_id} --off`."
BEHIND = (
    "{run_id} waits behind {other} ({subject}), which nobody works on. Go on with that one: becket runs show {other} "
    "--follow; or give it up: becket runs cancel {other}"
)
WAITS_ALONE = (
    "{run_id} waits for {what} and is to be looked at {due}; nobody is there to go on: becket up --detach; or look "
    "now: becket runs show {run_id} --follow"
)
WAITS_FOR_YES = "{run_id} waits for a yes: becket approve {approval_id}   or   becket deny {approval_id}"
NO_RUNS = "No runs yet. Start one with `becket run LOOP`; `becket loops list` shows the loops."
NO_SUCH_RUNS = "No run matches that."
CANCELLED = "{run_id} is cancelled."
ENDED_ALREADY = "{run_id} has already ended: {status}."
STATUS_UNWRITTEN = "nothing could be recorded of it for {took}, as the journal cannot be written"
STATUS_OVERDUE = "it was due {since} and nobody wakes it; go on with it: becket runs show {run_id} --follow"
STATUS_NOBODY_AT_WORK = (
    "nobody has been at work on it for {took}; go on with it: becket runs show {run_id} --follow, "
    "or end it: becket runs cancel {run_id}"
)
STATUS_NOBODY_TAKES_IT = ", and nobody works on it; go on with it: becket runs show {run_id} --follow"
CANCEL_ASKED = "{run_id} is at work and was told to stop; it ends as soon as its action stops."
MIGRATED = "{run_id} follows the current spec of {loop_id} ({digest}) when it wakes."
NEXT = "Next: "
STILL = "{step} at work for {took}{said}"
END_CUT = "... {count} lines more: becket runs show {run_id} --all"
DIFF_CUT = "... {count} lines more; `becket runs report {run_id}` has them"
REPORT_IS = "Its report: {path}"
REPORT_WROTE = "Wrote {path}"
STARTED = "{run_id}  {loop_id}  {subject}"

STATUS = {
    "queued": "queued",
    "running": "at work",
    "waiting": "waits",
    "completed": "completed",
    "completed_dry_run": "completed (dry run)",
    "ready_for_handoff": "handed off",
    "failed": "failed",
    "cancelled": "cancelled",
}

# Agents

CALL_OPEN = "at work, or nobody saw its end"
CALL_OVER = "over its limits: {what}"
AGENT_NONE = "becket.yaml has no agents; the one that `becket init` writes has examples of each kind."
QUOTA_WAIT = "agent.quota_wait"
QUOTA_OF = "the quota of the agent {agent}"
QUOTA_UNTOLD = ", nobody says when it is back"


DOCTOR_AGENT_ALONE = "--agent belongs to --probe: `becket doctor --probe --agent NAME`"
PROBE_NOT_MADE = "{agent}: no call was made"


# People

NO_APPROVALS = "Nothing waits for a decision."
NO_HANDOFFS = "No handoff is open."
ASKED_TEXT = "It is about this text:"
ASKED_ABOUT = "{approval_id} of {run_id} is {state}; for {role}, about {about}, until {until}."
STILL_ASKED = "to be decided"
DECIDE_IT = "Next: becket approve {approval_id}   or   becket deny {approval_id}"
DECIDED = "{approval_id} is {state}; it was about {about}."
TAKEN = "{handoff_id} is yours, {by}. Next: {next_step}"
DONE = "{handoff_id} is done."
PAUSE_ON = "Paused: {scope}. What is at work finishes. Resume with `{command}`."
PAUSE_OFF = "Not paused any more: {scope}."
HOLD_ON = "{run_id} is held: it does not go on until `becket hold {run_id} --off`."
HOLD_OFF = "{run_id} is released."
DROPPED_RUN = "{run_id} is dropped."
WATCH_IT = "See it with `becket runs show {run_id}`."


def pause_command(scope: str) -> str:
    return "becket pause --off" if scope == "all" else f"becket pause {scope.removeprefix('loop:')} --off"


def scope(name: str) -> str:
    return "everything" if name == "all" else name.removeprefix("loop:")


DOCTOR_REMOVED = "removed {ref}, which was at {sha}: {missing}"

NO_RESCUES = "Nothing was rescued: no run left work behind."
RESCUES_TOTAL = "{count}, {size} on disk. Each is dropped {days} after it was saved (`retention.rescues`)."
RESCUE_LEFT_OUT = "left out: {path} ({size}): {why}"
RESCUE_APPLIED = """\
{name} is in {root}: {count}, staged and not committed.
See it with `git diff --cached`; it is kept until `becket rescue drop {name}`."""
RESCUE_DROPPED = """\
{name} is dropped. Until git collects it, this brings it back:
  git update-ref refs/becket/rescue/{name} {sha}"""

# Loops

NO_LOOPS = "No loops yet. Write one in .becket/loops/NAME.yaml; `becket init` brings an example."
LINT_CLEAN = "{count} without a finding."
LINT_NONE = "There is no loop to check: .becket/loops is empty."
LINT_BAD = "{count} in {files}."
BROKEN = "{file} does not run: {count}; see `becket loops lint`."

# Events, verify, init

EVENT_NOBODY = "{event_id}: no loop listens to {name}, or its `match` says otherwise."
EVENT_STARTED = "{event_id} started:"
EVENT_WHERE = "{event_id} was posted before; these runs answer it:"
VERIFIED = "{count} hold."
TAMPERED = (
    "{bad} of {count} do not hold: this record was changed after it was written, its evidence is gone, or nobody can "
    "tell how an effect ended."
)
CHAIN_HEAD = "chain head {head}"
REPEATED = "Commands were repeated in a fresh checkout; only exit codes are compared, logs hold times."


# Daemon and watchdog

UP_FOREGROUND = "becket is up (pid {pid}); Ctrl-C stops it. `becket status` shows what it does."
UP_ALREADY = "Nothing was started: the daemon runs already (pid {pid})."
UP_STARTED = "The daemon is up (pid {pid}), and its watchdog (pid {watchdog})."
UP_UNWATCHED = "The daemon is up (pid {pid}), but its watchdog did not start; see {log}."
UP_REPLACED = "Ended because it did not respond: pid {pids}."
DOWN_KILLED = ", which did not respond and was killed"
DOWN_DONE = "Stopped: {what}."
DOWN_NOTHING = "Nothing was running."

# Status

WATCH_NOTHING = "None: no loop of this repository has a commit trigger."
WATCH_NO_LOG = "There is no log yet: {path}"

STATUS_UP = "up (pid {pid})"
STATUS_DOWN = "down"
STATUS_STARTING = "starting (pid {pid})"
STATUS_DEAF = "not responding: pid {pid} has been silent for {silent}; {next}"
DEAF_KEPT = "its {other} replaces it"
DEAF_ALONE = "`becket up --detach` replaces it"
STATUS_LOST = "down, although it should be up; `becket up --detach` starts it again"
STATUS_SIDE = "down; a command (pid {pid}) drives a run of its own"
STATUS_SPENT = "today {calls}, {used}"
STATUS_KEPT_BY_PAUSE = ", and {what} is paused; let go: {mend}"
STATUS_QUEUE = "Nothing runs what is queued: `becket up --detach`."
STATUS_NO_CONFIG = "There is no becket.yaml here yet: `becket init` writes one."
STATUS_NO_RUNS = "No runs yet: `becket run LOOP`; `becket loops list` shows the loops."

# Services

SERVICE_ALONE = "nobody watches over it: `becket up --detach`"

# Demo

DEMO_REPO = "A small service, its tests and an agent, in a scratch repository."
DEMO_HAPPENED = "What happened"
DEMO_SERVES = "{sha} is proven by its gates, and the service kettle runs it."
DEMO_BUG = """\
Somebody commits a bug: {sha} "{subject}".
From here on nothing is done by hand."""
DEMO_RED = """\
Becket sees {sha}: gate {gate} is red, {bad} of {ran} tests of {step} fail:
{failing}"""
DEMO_REPAIR = """\
The agent {agent} changes {paths}, and says:
"{said}\""""
DEMO_PROMOTED = "The repair is proven; main moves from {old} to {new}."
DEMO_HEALED = "kettle was restarted: it runs {sha}, healthy."
DEMO_BELIEVED = "Why it may be believed (none of it is the agent's word)"
DEMO_HELD = "Sandbox {kind}: the agent was kept off your {held}."
DEMO_HELD_IN_PART = "Sandbox {kind}: the agent was kept off {held}, not {missing}."
DEMO_NOT_HELD = "No sandbox works here: {missing} were open to the agent."
DEMO_CROSSED = "The {count} red tests, unchanged, are green at {new} (receipt {receipt})."
DEMO_GREEN = "At {new} every gate is green: {gates}."
DEMO_GUARD = "The guard read the change, {lines}: class {read_as}, {refusals}."
DEMO_PROOF = "Proof {receipt} binds all that to {new}; without it main does not move."
DEMO_ANSWER = "The service, asked on port {port}, runs {sha}: water boils at {fahrenheit:g} F."
DEMO_CHECKED = "Recomputed from the record just now: {good} of {count} checks hold."
DEMO_FAILED = "The demo did not end as it should: {why}."
DEMO_KEPT = "Kept: `becket -C {folder} runs show {run_id}`."
DEMO_REPORT = "Every step and its evidence: {path}"
DEMO_END = "Your turn: `becket init` in a repository of your own."


# The journal

STORE_WHOLE = "{where} is whole ({count})"
STORE_DAMAGED = """{where} cannot be trusted: {bad} of {count} failed
  becket store restore   bring back the last good backup
  becket store accept    go on with what is there, knowingly"""
STORE_NO_BACKUP = "no backup yet; the daemon makes one a day, `becket store backup` makes one now"
STORE_BACKUP = "last backup {name} ({when})"
BACKUP_MADE = "{path}, {size} bytes, checked"
RESTORED = "the journal is that of {when} ({name})"
RESTORED_ASIDE = "the one before is kept in {aside}"
RESTORED_LOST = "{count} that it had and this one does not: {runs}"
UNRECORDED = "this journal knows nothing of {what}; look at them, then `becket store accept`, then `becket up -d`"
RESTORED_NEXT = "becket up -d"
ACCEPTED = "the journal counts as it is"
ACCEPTED_ANEW = "a new journal begins"
ACCEPTED_TREE = "the test tree of before is kept in {tree}; a new one is made. Look through it, then remove it"
ACCEPTED_IN_THE_WAY = "files lie where the test tree belongs: look through {tree}, then: mv -- {tree} {tree}.mine"
ACCEPTED_UNRECORDED = "it knows nothing of {what}"

REPAIRED, WAS_GREEN, TRIED, SETTLED = "repaired", "was green", "tried", "settled"
MOVED_ON = "branch moved on"


def state_ref(seen: StateSeen) -> str:
    """What became of a place where a loop's state lives."""
    ref, began, ended = safe(seen.ref), *(safe(str(one))[:12] if one else "absent" for one in (seen.began, seen.ended))
    if not seen.looked:
        return f"{ref}  {began} when the run began"
    return f"{ref}  changed meanwhile: {began} -> {ended}" if seen.changed else f"{ref}  unchanged"


WAKES = {"worktree_changed": "any change of it"}
"""Signals whose names say too little to people."""
WITHOUT_CONFIG = "{why}\nUntil that is mended, only reading and the brakes work."
JSON_BEFORE = "write --json behind `{verb}`"
