"""Every verb with its one-line help and where it lives, so that `becket --help` imports none of them.

A test compares the lines with the verbs' own help.
"""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    name: str
    target: str  # module:attribute
    help: str
    section: str = ""  # empty: not listed
    quick: str = ""  # what to call instead where --json is the only option given: Typer takes longer than the answer


BEGIN, LOOPS, PEOPLE, HOUSE = "Begin", "Loops and runs", "People", "The house"

VERBS: tuple[Verb, ...] = (
    Verb(
        "init", "becket.parts.init.verbs:init", "Look at the repository, write a first becket.yaml and try it.", BEGIN
    ),
    Verb(
        "doctor",
        "becket.cli.doctor:doctor",
        "Check machine, repository and configuration; say how to mend them.",
        BEGIN,
    ),
    Verb("demo", "becket.cli.demo:demo", "Watch a bug in a running service be healed: no key, no network.", BEGIN),
    Verb("gates", "becket.parts.gates.verbs.gates:gates", "List the gates' steps, and try them once.", BEGIN),
    Verb(
        "shell",
        "becket.parts.gates.verbs.shell:shell",
        "Open a shell on a clean tree of a commit, as a gate's step would see it.",
        BEGIN,
    ),
    Verb(
        "tests",
        "becket.parts.guard.verbs.tests:list_tests",
        "List the files that count as tests, each with the reason.",
        BEGIN,
    ),
    Verb("loops", "becket.cli.loops:loops", "List, show and check the loops of this repository.", LOOPS),
    Verb("run", "becket.cli.run:run", "Start a run of a loop and follow it.", LOOPS),
    Verb("runs", "becket.cli.runs:runs", "Look at runs and their reports; cancel, retry or migrate them.", LOOPS),
    Verb(
        "agent",
        "becket.parts.agents.verbs.agent:agent",
        "Call an agent, watch it, talk to it, and see what agents used.",
        LOOPS,
    ),
    Verb("event", "becket.cli.event:event", "Post an event that loops may listen to.", LOOPS),
    Verb(
        "verify",
        "becket.cli.verify:verify",
        "Check every digest a run rests on; on request, repeat its commands.",
        LOOPS,
    ),
    Verb(
        "guard",
        "becket.parts.guard.verbs.guard:guard",
        "Say what a change newly can do, and what it would have to prove.",
        LOOPS,
    ),
    Verb(
        "approvals",
        "becket.cli.approvals:approvals",
        "List what waits for a decision, or show what one is about.",
        PEOPLE,
    ),
    Verb("approve", "becket.cli.approvals:approve", "Say yes to what a run asks.", PEOPLE),
    Verb("deny", "becket.cli.approvals:deny", "Say no to what a run asks.", PEOPLE),
    Verb("revoke", "becket.cli.approvals:revoke", "Take an approval back before it is used.", PEOPLE),
    Verb("handoffs", "becket.cli.handoffs:handoffs", "List and take what only a person can finish.", PEOPLE),
    Verb(
        "proposals",
        "becket.parts.promote.verbs.proposals:proposals",
        "List, show, accept or decline ready repairs.",
        PEOPLE,
    ),
    Verb("notify", "becket.parts.notify.verbs:notify", "Try the `notify` command of becket.yaml.", PEOPLE),
    Verb("rescue", "becket.cli.rescue:rescue", "See, bring back or drop work that was saved when a run ended.", PEOPLE),
    Verb("pause", "becket.cli.brakes:pause", "Keep one loop, or all of them, from starting anything.", PEOPLE),
    Verb("hold", "becket.cli.brakes:hold", "Keep one run from going on.", PEOPLE),
    Verb("drop", "becket.cli.brakes:drop", "Give up a run that waits or is queued.", PEOPLE),
    Verb(
        "status",
        "becket.cli.status:status",
        "Show what runs, what waits for whom, and what is wrong.",
        HOUSE,
        "becket.cli.glance:glance",
    ),
    Verb("up", "becket.cli.daemon:up", "Run the daemon: triggers, schedules and every queued run.", HOUSE),
    Verb("down", "becket.cli.daemon:down", "Stop the daemon and its watchdog, and see them gone.", HOUSE),
    Verb(
        "watch",
        "becket.cli.watch:watch",
        "Watch over commits: the daemon as one thing to start, stop and look at.",
        HOUSE,
    ),
    Verb(
        "service",
        "becket.parts.services.verbs:service",
        "Start, stop, watch and build the services of becket.yaml.",
        HOUSE,
    ),
    Verb("store", "becket.cli.store:store", "Check the journal, copy it, and bring a copy back.", HOUSE),
    Verb(
        "worktree",
        "becket.parts.gates.verbs.worktree:worktree",
        "Make or reset the test tree `.worktrees/base`.",
        HOUSE,
    ),
    Verb("bench", "becket.cli.bench:bench", "Measure the loops against scripted agents.", HOUSE),
    Verb("watchdog", "becket.cli.daemon:watchdog", "Be the second process that watches over the daemon."),
)

BY_NAME = {verb.name: verb for verb in VERBS}
