"""The loops of the crash matrix: between them they do everything a loop can do.

OUTSIDE is a folder that stands for the world, URL the receiver of the case.
"""

from __future__ import annotations

CONFIG = """
version: 1
autonomy: merge
sandbox: {use: none, without: [files, processes, network]}
people: {owner: {role: owner}}
handoff_to: owner
agents: {fixer: {driver: command, run: "true"}}
"""


def _head(loop_id: str, more: str, trigger: str = "{manual: {}}", limits: str = "") -> str:
    return f"""
version: 1
loop_id: {loop_id}
goal: The crash matrix sees {loop_id} end as it would have ended.
trigger: [{trigger}]
inputs: {{n: {{type: string, optional: true, default: "0"}}}}
autonomy: merge
{limits or "max_iterations: 3" + chr(10) + "deadline: 1h"}
{more.strip()}
"""


LOOK = """
  verify:
    objective: look
    verifiers: [{id: look, run: "true", in: scratch}]
"""

SEND = _head(
    "send",
    """
subject: "send/{n}"
stop_conditions: [sent.pass]
phases:
  discover:
    objective: know the commit
    actions: [{id: base, uses: git.read_base}]
  act:
    objective: one effect of each kind that can be looked up, dropped or repeated
    actions:
      - {id: post, uses: http.post, with: {url: "URLsend/{n}", body: {n: "{n}"}}}
      - {id: line, uses: notify.file, with: {path: sent.jsonl, text: "sent {n}"}}
      - {id: ref, uses: git.update_ref, with: {ref: "refs/heads/proposals/{n}", new: "{base.sha}"}}
      - id: mark
        run: "echo {n} >> OUTSIDE/marks"
        in: scratch
        timeout: 2s
        effects: {name: mark.append, class: queryable, look_up: "grep -qsx {n} OUTSIDE/marks || exit 1"}
      - {id: say, uses: notify.console, with: {text: "sent {n}"}}
  verify:
    objective: all of them are told of
    verifiers: [{id: sent, uses: outputs_present, with: {outputs: [post.effect, line.effect, ref.effect]}}]
  notify:
    objective: tell
    actions:
      - {id: told, uses: notify.file, with: {path: told.jsonl, text: "{decision.outcome} {n}"}}
      - {id: called, uses: http.post, with: {url: "URLtold/{n}", body: {n: "{n}"}}}
""",
)

SHIP = _head(
    "ship",
    """
subject: "ship/{n}"
stop_conditions: [look.pass]
phases:
  act:
    objective: something that nobody can look up
    actions:
      - id: ship
        run: "echo {n} >> OUTSIDE/shipped; echo shipped"
        in: scratch
        timeout: 2s
        outputs: {said: stdout}
        effects: {name: ship.it, class: blind}
  notify:
    objective: tell
    actions: [{id: told, uses: notify.file, with: {path: shipped.jsonl, text: "told of {n}"}}]
"""
    + LOOK,
)

STUBBORN = _head(
    "stubborn",
    """
subject: "stubborn/{n}"
stop_conditions: [look.pass]
phases:
  act:
    objective: a busy outside, and commands whose end is not seen
    actions:
      - {id: post, uses: http.post, with: {url: "URLstubborn/{n}", body: {n: "{n}"}}}
      - id: first
        run: "echo first >> OUTSIDE/slow; sleep 9"
        in: scratch
        timeout: 400ms
        effects: {name: slow.one, class: queryable, look_up: "grep -qsx first OUTSIDE/slow || exit 1"}
      - id: second
        run: "echo second >> OUTSIDE/slow; sleep 9"
        in: scratch
        timeout: 400ms
        effects: {name: slow.two, class: queryable, look_up: "grep -qsx second OUTSIDE/slow || exit 1"}
"""
    + LOOK,
)

ASK = _head(
    "ask",
    """
subject: "ask/{n}"
stop_conditions: [published]
handoff_conditions: [approval.denied, approval.revoked, approval.expired]
wait_conditions:
  approval.asked: {wake: approval, for: 7d, then: handoff}
phases:
  discover:
    objective: draft
    actions:
      - {id: draft, run: "cat README.md", outputs: {text: stdout}, when: not drafted, raises: {"0": drafted}, keep: run}
    persist_outputs: [draft.text]
  plan:
    objective: ask
    actions: [{id: ask, uses: approval.ask, with: {question: "publish {n}?", about: "{draft.text}"}}]
  act:
    objective: publish what was approved
    actions:
      - {id: publish, uses: notify.file, when: approval.approved, with: {path: notes.jsonl, text: "{n} {draft.text}"}}
  verify:
    objective: it is there
    verifiers: [{id: written, uses: outputs_present, with: {outputs: [publish.effect]}, when: approval.approved}]
  decide:
    objective: done when it is out
    actions: [{id: out, run: "true", in: scratch, when: written.pass, raises: {"0": published}, keep: run}]
  notify:
    objective: tell whoever must answer
    actions: [{id: told, uses: notify.file, with: {path: asked.jsonl, text: "{n} {decision.outcome} {iteration}"}}]
""",
)

BELL = _head(
    "bell",
    """
subject: "bell/{n}"
stop_conditions: [outside.ready]
wait_conditions:
  outside.busy: {wake: bell, for: 10m, then: handoff}
phases:
  act:
    objective: ask the outside
    actions:
      - id: ready
        run: "test -e OUTSIDE/rung-{n} && exit 0 || exit 3"
        in: scratch
        raises: {"0": outside.ready, "3": outside.busy}
"""
    + LOOK,
)

LATE = BELL.replace("bell", "late").replace("deadline: 1h", "deadline: 5m")

MEND = _head(
    "mend",
    """
subject: "mend/{n}"
stop_conditions: [mended.pass]
budget: {agent_time: 1h}
phases:
  discover:
    objective: know the commit
    actions: [{id: base, uses: git.read_base}]
  plan:
    objective: the checkout is what it should be
    verifiers: [{id: head, uses: head_is_base}]
  act:
    objective: mend it, at the second try
    actions:
      - {id: fix, uses: agent.work, with: {agent: fixer, brief: "try {iteration}"}}
      - {id: flaky, run: "echo x >> tries; test $(wc -l < tries) -ge 2", in: scratch, retry: 2}
  verify:
    objective: it is mended
    verifiers: [{id: mended, run: "grep -qx good it.txt"}]
  persist:
    objective: keep what was made
    actions: [{id: keep, run: "cat it.txt; cp it.txt copy.txt", outputs: {text: stdout, copy: "file:copy.txt"}}]
    persist_outputs: [keep.text]
""",
)

POOR = _head(
    "poor",
    """
subject: "poor/{n}"
stop_conditions: [mended.pass]
budget: {usd: 0.015}
phases:
  act:
    objective: an agent that never mends it
    actions: [{id: fix, uses: agent.work, with: {agent: fixer, brief: "never {iteration}"}}]
  verify:
    objective: it is mended
    verifiers: [{id: mended, run: "grep -qx good it.txt"}]
""",
)

FAN = _head(
    "fan",
    """
subject: "fan/{n}"
stop_conditions: [children.completed, posted]
handoff_conditions: [children.unfinished]
wait_conditions:
  children.pending: {wake: child, for: 1h, then: handoff}
phases:
  act:
    objective: one child per item, and an event
    actions:
      - {id: each, uses: run.start, with: {loop: leaf, each: [a, b], subject: "leaf/%", inputs: {n: "%"}}}
      - {id: post, uses: event.post, with: {name: fanned.out, data: {n: "{n}"}}, when: not posted}
      - {id: mark, run: "true", in: scratch, raises: {"0": posted}, keep: run, when: not posted}
      - {id: stand, uses: run.gather}
  verify:
    objective: none is forgotten
    verifiers: [{id: all_ended, uses: children_ended, when: not children.pending}]
""",
)

_ONE_LINE = """
subject: "{name}/{{{by}}}"
stop_conditions: [look.pass]
phases:
  act:
    objective: leave one line
    actions: [{{id: line, uses: notify.file, with: {{path: {name}.jsonl, text: "{name} {{{by}}}"}}}}]
"""


def _one_line(name: str, by: str, trigger: str) -> str:
    return _head(name, _ONE_LINE.format(name=name, by=by) + LOOK, trigger)


LEAF = _one_line("leaf", "n", "{manual: {}}")
ECHO = _one_line("echo", "subject", "{after: {loop: leaf, max_chain: 3}}")
HEARD = _one_line("heard", "data.n", "{event: {name: fanned.out, max_chain: 3}}")
HELD = _one_line("held", "data.n", "{event: {name: held.back}}")
TICK = _one_line("tick", "time", '{schedule: {cron: "* * * * *", missed: all}}')
SEEN = _one_line("seen", "sha", "{commit: {branch: main, debounce: 50ms, unless: completed}}")

SLOW = _head(
    "slow",
    """
subject: "slow/{n}"
stop_conditions: [look.pass]
phases:
  act:
    objective: take long
    actions: [{id: long, run: "echo begun; exec sleep 30", in: scratch}]
  notify:
    objective: tell
    actions: [{id: told, uses: notify.file, with: {path: slow.jsonl, text: "{decision.outcome} {n}"}}]
"""
    + LOOK,
)

NOTICE = _head(
    "notice",
    """
subject: "notice/{n}"
stop_conditions: [look.pass]
phases:
  notify:
    objective: tell somebody who is busy
    actions: [{id: called, uses: http.post, with: {url: "URLnotice/{n}", body: {n: "{n}"}}}]
"""
    + LOOK,
)

SHOP = _head(
    "shop",
    """
subject: "shop/{n}"
stop_conditions: [look.pass]
budget: {usd: 3}
phases:
  act:
    objective: two calls, booked and settled, and something that is paid without a call
    actions:
      - {id: buy, uses: shop.buy}
      - {id: tip, uses: shop.tip}
"""
    + LOOK,
)

BY_NAME = {
    "send": SEND, "ship": SHIP, "stubborn": STUBBORN, "ask": ASK, "bell": BELL, "late": LATE, "mend": MEND,
    "poor": POOR, "fan": FAN, "leaf": LEAF, "echo": ECHO, "heard": HEARD, "held": HELD, "tick": TICK, "seen": SEEN,
    "slow": SLOW, "notice": NOTICE, "shop": SHOP,
}  # fmt: skip
