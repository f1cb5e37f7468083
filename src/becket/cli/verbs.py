"""Every verb with its one-line help and where it lives, so that `becket --help` imports none of them.

A test compares the lines with the verbs' own help.
"""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    name: str
    target: str  # module:attribute, below becket.cli
    help: str
    section: str = ""  # empty: not listed
    quick: str = ""  # what to call instead where --json is the only option given: Typer takes longer than the answer


BEGIN, LOOPS, PEOPLE, HOUSE = "Begin", "Loops and runs", "People", "The house"

VERBS: tuple[Verb, ...] = (
    Verb("init", "init:init", "Look at the repository, write a first becket.yaml and try it.", BEGIN),
    Verb("doctor", "doctor:doctor", "Check machine, repository and configuration; say how to mend them.", BEGIN),
    Verb("demo", "demo:demo", "Watch a bug in a running service be healed: no key, no network.", BEGIN),
    Verb("gates", "gates:gates", "List the gates' steps, and try them once.", BEGIN),
    Verb("shell", "shell:shell", "Open a shell on a clean tree of a commit, as a gate's step would see it.", BEGIN),
    Verb("tests", "tests:list_tests", "List the files that count as tests, each with the reason.", BEGIN),
    Verb("loops", "loops:loops", "List, show and check the loops of this repository.", LOOPS),
    Verb("run", "run:run", "Start a run of a loop and follow it.", LOOPS),
    Verb("runs", "runs:runs", "Look at runs and their reports; cancel, retry or migrate them.", LOOPS),
    Verb("agent", "agent:agent", "Call an agent, watch it, talk to it, and see what agents used.", LOOPS),
    Verb("event", "event:event", "Post an event that loops may listen to.", LOOPS),
    Verb("verify", "verify:verify", "Check every digest a run rests on; on request, repeat its commands.", LOOPS),
    Verb("guard", "guard:guard", "Say what a change newly can do, and what it would have to prove.", LOOPS),
    Verb("approvals", "approvals:approvals", "List what waits for a decision.", PEOPLE),
    Verb("approve", "approvals:approve", "Say yes to what a run asks.", PEOPLE),
    Verb("deny", "approvals:deny", "Say no to what a run asks.", PEOPLE),
    Verb("revoke", "approvals:revoke", "Take an approval back before it is used.", PEOPLE),
    Verb("handoffs", "handoffs:handoffs", "List and take what only a person can finish.", PEOPLE),
    Verb("proposals", "proposals:proposals", "List, show, accept or decline ready repairs.", PEOPLE),
    Verb("notify", "notify:notify", "Try the `notify` command of becket.yaml.", PEOPLE),
    Verb("rescue", "rescue:rescue", "See, bring back or drop work that was saved when a run ended.", PEOPLE),
    Verb("pause", "brakes:pause", "Keep one loop, or all of them, from starting anything.", PEOPLE),
    Verb("hold", "brakes:hold", "Keep one run from going on.", PEOPLE),
    Verb("drop", "brakes:drop", "Give up a run that waits or is queued.", PEOPLE),
    Verb("status", "status:status", "Show what runs, what waits for whom, and what is wrong.", HOUSE, "glance:glance"),
    Verb("up", "daemon:up", "Run the daemon: triggers, schedules and every queued run.", HOUSE),
    Verb("down", "daemon:down", "Stop the daemon and its watchdog, and see them gone.", HOUSE),
    Verb("watch", "watch:watch", "Watch over commits: the daemon as one thing to start, stop and look at.", HOUSE),
    Verb("service", "service:service", "Start, stop, watch and build the services of becket.yaml.", HOUSE),
    Verb("store", "store:store", "Check the journal, copy it, and bring a copy back.", HOUSE),
    Verb("worktree", "worktree:worktree", "Make or reset the test tree `.worktrees/base`.", HOUSE),
    Verb("bench", "bench:bench", "Measure the loops against scripted agents.", HOUSE),
    Verb("watchdog", "daemon:watchdog", "Be the second process that watches over the daemon."),
)

BY_NAME = {verb.name: verb for verb in VERBS}
