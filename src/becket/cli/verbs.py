"""The verbs with their one-line helps and where they live, so that `becket --help` imports none of them.

A test compares the lines with the verbs' own help.
"""

from __future__ import annotations

from becket.kernel.contract.part import LOOPS, OPERATIONS, PEOPLE, Verb

CORE = (
    Verb("loops", "becket.cli.loops:loops", "List, show and check the loops of this repository.", LOOPS, 70),
    Verb("run", "becket.cli.run:run", "Start a run of a loop and follow it.", LOOPS, 80),
    Verb("runs", "becket.cli.runs:runs", "Look at runs and their reports; cancel, retry or migrate them.", LOOPS, 90),
    Verb("event", "becket.cli.event:event", "Post an event that loops may listen to.", LOOPS, 110),
    Verb(
        "verify",
        "becket.cli.verify:verify",
        "Check every digest a run rests on; on request, repeat its commands.",
        LOOPS,
        120,
    ),
    Verb(
        "approvals",
        "becket.cli.approvals:approvals",
        "List what waits for a decision, or show what one is about.",
        PEOPLE,
        140,
    ),
    Verb("approve", "becket.cli.approvals:approve", "Say yes to what a run asks.", PEOPLE, 150),
    Verb("deny", "becket.cli.approvals:deny", "Say no to what a run asks.", PEOPLE, 160),
    Verb("revoke", "becket.cli.approvals:revoke", "Take an approval back before it is used.", PEOPLE, 170),
    Verb("handoffs", "becket.cli.handoffs:handoffs", "List and take what only a person can finish.", PEOPLE, 180),
    Verb(
        "rescue",
        "becket.cli.rescue:rescue",
        "See, bring back or drop work that was saved when a run ended.",
        PEOPLE,
        210,
    ),
    Verb("pause", "becket.cli.brakes:pause", "Keep one loop, or all of them, from starting anything.", PEOPLE, 220),
    Verb("hold", "becket.cli.brakes:hold", "Keep one run from going on.", PEOPLE, 230),
    Verb("drop", "becket.cli.brakes:drop", "Give up a run that waits or is queued.", PEOPLE, 240),
    Verb(
        "status",
        "becket.cli.status:status",
        "Show what runs, what waits for whom, and what is wrong.",
        OPERATIONS,
        250,
        quick="becket.cli.status_screen:show_status",
    ),
    Verb("up", "becket.cli.daemon:up", "Run the daemon: triggers, schedules and every queued run.", OPERATIONS, 260),
    Verb("down", "becket.cli.daemon:down", "Stop the daemon and its watchdog, and see them gone.", OPERATIONS, 270),
    Verb(
        "watch",
        "becket.cli.watch:watch",
        "Watch over commits: the daemon as one thing to start, stop and look at.",
        OPERATIONS,
        280,
    ),
    Verb(
        "parts", "becket.cli.parts:parts", "List the parts that are installed, and what each brings.", OPERATIONS, 330
    ),
    Verb("store", "becket.cli.store:store", "Check the journal, copy it, and bring a copy back.", OPERATIONS, 300),
    Verb("watchdog", "becket.cli.daemon:watchdog", "Be the second process that watches over the daemon."),
)
"""What every Becket has. The other verbs come from parts."""

CORE_BY_NAME = {verb.name: verb for verb in CORE}


def all_verbs() -> tuple[Verb, ...]:
    """Also those of parts, in the order in which they are listed."""
    from becket.app.parts import installed, unique

    brought = unique("verb", ((verb.name, verb, part) for part in installed() for verb in part.verbs), CORE_BY_NAME)
    return tuple(sorted((*CORE, *brought.values()), key=lambda verb: verb.rank))


def find_verb(name: str) -> Verb | None:
    """Parts are asked only for what is not there without them: to look for them takes longer than most verbs."""
    return CORE_BY_NAME.get(name) or next((verb for verb in all_verbs() if verb.name == name), None)
