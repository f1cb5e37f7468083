"""What the supervisor of services says to people."""

from __future__ import annotations

ALREADY = "it is in service already"
DOES_NOT_END = "some of its processes do not end"
NO_RELEASE = "there is no release of it yet"
OLD_DOES_NOT_END = "the old release does not end"
DIED_UNSEEN = "it died in its soak while the watchdog was away"
CUT_OFF = "the watchdog ended before it was started"
CUT_OFF_AGAIN = "it was cut off {tries} times; see the watchdog's log"
CANNOT_START = "it cannot start: {why}"
HELD_BY = "port {port} is held by {who}"
HELD_BY_STRANGER = "port {port} is held by {who}, which is not {name}; end it or move the port"
STOPPED = "{name} was stopped by a person, or left to one; `becket service {name} start` first"
FAILED_BEFORE = "it failed in service before ({why}); a person may start it, no loop releases it again"
NOT_HEALTHY = "it is the release in service, and it is not healthy: {why}"
UNPROVEN = "{sha} is NOT proven: no gate has passed it"
WELL = "{name} is healthy again."

STORM = (
    "{name} dies again and again ({why}): {starts} starts within {window:g} s. From now on it is tried once in that "
    "time. See `becket service {name} logs`; `becket service {name} start` tries at once."
)
BLOCKED = "{name} cannot be started: {why}. End that program, or move the port."
SHARED = "{name} does not have its port to itself: {why}. Its answers may be the stranger's; end that program."
NO_OLD = "{name}: {sha} did not stay healthy ({why}), and there is no earlier release; it is down."
OLD_AGAIN = "{name}: {sha} did not stay healthy ({why}). The old release {old} {how}."
SERVES_AGAIN = "serves again, healthy"
ILL_AGAIN = "was started again and is not healthy either: {why}"
HANDED_OVER = (
    "{name}: {sha} did not stay healthy ({why}). It migrates data, so nothing was rolled back and nothing is "
    "restarted. Look at the data; then `becket service {name} start` starts the last release that was kept."
)

SERVICE_WHAT = "what about {name}? becket service {name} {verbs}"
SERVICE_NONE = "becket.yaml has no services."
SERVICE_NEXT = "next start at {at}"
SERVICE_UNPROVEN = "NOT proven: no gate has passed this commit"
SERVICE_RELEASING = "{sha} is being put into service"
SERVICE_ASKED = "asked for: {what}"
SERVICE_FOLLOW_JSON = "--follow has no end, and --json is one document; use one of them"
SERVICE_FAILED = "{name}: {verb} failed."
SERVICE_DONE = {
    "start": "{name} serves {sha}, healthy.",
    "restart": "{name} serves {sha} again, healthy.",
    "stop": "{name} is stopped.",
    "build": "{name} is built at {sha} and answered on a free port; it is not in service.",
}
HANGS = (
    "The watchdog's part that looks after services hangs: services go on, but nobody restarts them. The daemon "
    "replaces the watchdog; if it is not up, type `becket down`, then `becket up --detach`."
)
GOES_ON = "Somebody looks after the services again."
