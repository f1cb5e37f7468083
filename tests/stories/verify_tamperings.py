"""Every change to a finished run that `becket verify` must find: what is done, and what the finding is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verify_stage import RICH, Copy

from becket.kernel.contract.base import canonical
from becket.kernel.contract.events import SEALS, EventKind, event_digest
from becket.kernel.contract.receipt import Receipt
from becket.kernel.store.sealing import seal


def forge_receipt(copy: Copy) -> None:
    """The exit code of the failed verifier becomes 0, and the receipt gets the name that goes with it."""
    for row in copy.all("SELECT * FROM receipts WHERE action_id = 'look'"):
        forged = Receipt.model_validate_json(row["receipt"]).model_copy(update={"exit_code": 0})
        copy.sql(
            "UPDATE receipts SET digest = :digest, receipt = :receipt WHERE number = :number",
            digest=forged.digest, receipt=canonical(forged.model_dump(mode="json")), number=row["number"],
        )  # fmt: skip


def forge_receipt_and_step(copy: Copy) -> None:
    old = copy.one("SELECT digest FROM receipts WHERE action_id = 'look' AND iteration = 3")["digest"]
    forge_receipt(copy)
    new = copy.one("SELECT digest FROM receipts WHERE action_id = 'look' AND iteration = 3")["digest"]
    copy.sql(
        "UPDATE steps SET state = 'done', error = '', error_kind = '', receipts = replace(receipts, :old, :new) "
        "WHERE id = 'look' AND iteration = 3",
        old=old, new=new,
    )  # fmt: skip


def other_spec(copy: Copy) -> None:
    """A spec that was never this run's, stored in order under its own digest."""
    text = RICH.replace("max_iterations: 2", "max_iterations: 9")
    digest = hashlib.sha256(text.encode()).hexdigest()
    copy.sql(
        "INSERT INTO specs VALUES (:digest, :text, 0)",
        "UPDATE runs SET spec_digest = :digest",
        digest=digest,
        text=text,
    )


def swap_steps(copy: Copy) -> None:
    first, second = copy.all("SELECT number FROM steps WHERE iteration = 2 ORDER BY number LIMIT 2")
    a, b = first["number"], second["number"]
    copy.sql(
        "UPDATE steps SET number = -1 WHERE number = :a", "UPDATE steps SET number = :a WHERE number = :b",
        "UPDATE steps SET number = :b WHERE number = -1", a=a, b=b,
    )  # fmt: skip


def cut_the_end(copy: Copy) -> None:
    """The last events go, and the run's row is made to fit what is left."""
    kept = copy.one("SELECT * FROM events WHERE kind = 'decided' ORDER BY seq DESC LIMIT 1")
    copy.sql(
        "DELETE FROM events WHERE seq > :seq", "UPDATE runs SET event_count = :seq, head = :digest",
        seq=kept["seq"], digest=kept["digest"],
    )  # fmt: skip


def add_event(copy: Copy, kind: EventKind, data: dict[str, Any], at: float | None = None) -> None:
    """A well-formed event at the end of the chain."""
    run = copy.one("SELECT * FROM runs")
    event = {
        "run_id": copy.run_id, "seq": run["event_count"] + 1, "at": at or run["updated_at"], "kind": kind.value,
        "data": canonical(data), "previous": run["head"],
    }  # fmt: skip
    values = (copy.run_id, event["seq"], event["at"], event["kind"], json.loads(event["data"]), event["previous"])
    event["digest"] = event_digest(*values)
    copy.sql(
        "INSERT INTO events VALUES (:run_id, :seq, :at, :kind, :data, :previous, :digest)",
        "UPDATE runs SET event_count = :seq, head = :digest",
        **event,
    )


def retell_a_step(copy: Copy) -> None:
    """The failed verifier is told anew as passed, by a well-formed event that carries the seal of the changed row."""
    copy.sql("UPDATE steps SET state = 'done' WHERE id = 'look' AND iteration = 3")
    row = copy.one("SELECT * FROM steps WHERE id = 'look' AND iteration = 3")
    add_event(copy, EventKind.step_done, {"phase": "verify", "id": "look", SEALS: seal("step", [row])})


def resettle_an_effect(copy: Copy) -> None:
    copy.sql("UPDATE effects SET result = '{}' WHERE iteration = 3")
    row = copy.one("SELECT * FROM effects WHERE iteration = 3")
    row["defer"] = bool(row["defer"])
    add_event(copy, EventKind.effect_settled, {"key": row["key"], "state": "done", SEALS: seal("effect", [row])})


MADE = "agent_calls WHERE call_id LIKE '%:3:act:mark:1:2:made'"


def resettle_a_call(copy: Copy) -> None:
    """Its usd is lowered everywhere, and a well-formed event with the seals of the changed rows says so."""
    call_id = copy.one(f"SELECT call_id FROM {MADE}")["call_id"]
    copy.sql(
        "UPDATE agent_calls SET result = replace(result, '\"usd\":0.125', '\"usd\":0.025') WHERE call_id = :call",
        "UPDATE spending SET amount = 0.025 WHERE kind = 'usd' AND key = :call",
        call=call_id,
    )
    seals = seal("call", copy.all(f"SELECT * FROM {MADE}"))
    seals |= seal("spending", copy.all("SELECT * FROM spending WHERE key = :call", call=call_id))
    told = json.loads(
        copy.one("SELECT data FROM events WHERE kind = 'call.settled' AND data LIKE '%:3:act%made%'")["data"]
    )
    used = {**told["used"], "usd": 0.025}
    add_event(
        copy, EventKind.call_settled, {**told, "used": used, "usage": {**told["usage"], "usd": 0.025}, SEALS: seals}
    )


def settle_a_call_again(copy: Copy) -> None:
    """Word for word."""
    told = copy.one("SELECT data FROM events WHERE kind = 'call.settled' AND data LIKE '%:3:act%made%'")
    add_event(copy, EventKind.call_settled, json.loads(told["data"]))


def book_after_the_end(copy: Copy) -> None:
    """A call that was never made, complete with its row, its booking and their seals."""
    copy.sql(
        "INSERT INTO agent_calls SELECT 9999, 'new', run_id, iteration, phase, step_id, loop_id, agent, driver, model, "
        f"limits, began_at, NULL, NULL FROM {MADE}",
        "INSERT INTO spending SELECT 'new', kind, run_id, loop_id, amount, at FROM spending WHERE key LIKE '%:3:%made'",
    )
    seals = seal("call", copy.all("SELECT * FROM agent_calls WHERE call_id = 'new'"))
    seals |= seal("spending", copy.all("SELECT * FROM spending WHERE key = 'new'"))
    booked = {"agent_time": 7.5, "tokens": 15.0, "usd": 0.125}
    add_event(copy, EventKind.call_booked, {"call": "new", "booked": booked, SEALS: seals})


def artifact(copy: Copy) -> Path:
    digest = copy.one("SELECT digest FROM artifact_refs WHERE name = 'mark/of.txt' AND iteration = 3")["digest"]
    return copy.state / "artifacts" / digest[:2] / digest[2:]


def write_artifact(copy: Copy) -> None:
    artifact(copy).chmod(0o600)
    artifact(copy).write_text("another mark")


Tamper = str | Callable[[Copy], None]

TAMPERINGS: dict[str, tuple[Tamper, str]] = {
    "a receipt is forged under its new digest": (forge_receipt, "receipt"),
    "a receipt and its step are forged together": (forge_receipt_and_step, "step 3/verify/look"),
    "a receipt's exit code is changed": (
        "UPDATE receipts SET receipt = replace(receipt, '\"exit_code\":1', '\"exit_code\":0')",
        "receipt",
    ),
    "a receipt is deleted": ("DELETE FROM receipts WHERE action_id = 'look' AND iteration = 2", "receipt"),
    "a receipt is made up": (
        (
            "INSERT INTO receipts SELECT 9999, run_id, iteration, phase, 'mark', digest, receipt, started_at, ended_at "
            "FROM receipts LIMIT 1"
        ),
        "receipt",
    ),
    "a receipt is given to another step": (
        "UPDATE receipts SET action_id = 'mark' WHERE action_id = 'look'",
        "receipt",
    ),
    "a receipt's time is moved": ("UPDATE receipts SET ended_at = ended_at + 1", "receipt"),
    "a failed step is done": ("UPDATE steps SET state = 'done' WHERE state = 'failed'", "step 2/verify/look"),
    "a done step is failed": ("UPDATE steps SET state = 'failed' WHERE id = 'say'", "step 1/discover/say"),
    "a step's outputs are changed": ("UPDATE steps SET outputs = '{}' WHERE id = 'say'", "step 1/discover/say"),
    "a step's conditions are changed": ("UPDATE steps SET conditions = '[]' WHERE id = 'look'", "step 2/verify/look"),
    "a step's error is changed": ("UPDATE steps SET error = 'fine' WHERE id = 'look'", "step 2/verify/look"),
    "a step's note is changed": ("UPDATE steps SET note = 'fine' WHERE id = 'mark'", "step 2/act/mark"),
    "a step's attempts are changed": ("UPDATE steps SET attempts = 7 WHERE id = 'say'", "step 1/discover/say"),
    "a step's time is moved": ("UPDATE steps SET started_at = started_at - 1 WHERE id = 'say'", "step 1/discover/say"),
    "a step forgets its receipts": ("UPDATE steps SET receipts = '[]' WHERE id = 'look'", "step 2/verify/look"),
    "a step forgets its artifacts": ("UPDATE steps SET artifacts = '[]' WHERE id = 'mark'", "step 2/act/mark"),
    "a step is deleted": ("DELETE FROM steps WHERE id = 'look' AND iteration = 2", "step 2/verify/look"),
    "a step is made up": (
        (
            "INSERT INTO steps SELECT 9999, run_id, iteration, phase, 'extra', 'done', attempts, outputs, conditions, "
            "receipts, artifacts, '', '', '', '', started_at, ended_at FROM steps WHERE id = 'say' LIMIT 1"
        ),
        "step 1/discover/extra",
    ),
    "a step is moved to another iteration": (
        "UPDATE steps SET iteration = 7 WHERE id = 'say' AND iteration = 1",
        "step",
    ),
    "a skipped step is done": ("UPDATE steps SET state = 'done' WHERE state = 'skipped'", "step 1/act/mark"),
    "steps change places": (swap_steps, "steps"),
    "a decision is changed": (
        "UPDATE steps SET outputs = replace(outputs, 'handoff', 'completed') WHERE id = '@decision'",
        "step 3/decide/@decision",
    ),
    "a condition is deleted": ("DELETE FROM conditions WHERE name = 'fail'", "condition look.fail"),
    "a condition is made up": (
        (
            "INSERT INTO conditions SELECT run_id, object, 'pass', group_names, life, evidence, iteration, at "
            "FROM conditions WHERE name = 'fail'"
        ),
        "condition look.pass",
    ),
    "a condition's evidence is changed": (
        "UPDATE conditions SET evidence = '{\"exit_code\": 0}' WHERE name = 'fail'",
        "condition look.fail",
    ),
    "a condition lives longer": ("UPDATE conditions SET life = 'run' WHERE name = 'fail'", "condition look.fail"),
    "the status is changed": ("UPDATE runs SET status = 'completed'", "status"),
    "the reason is changed": ("UPDATE runs SET reason = 'stop_conditions_met'", "run"),
    "the detail is changed": ("UPDATE runs SET detail = '{}'", "run"),
    "the inputs are changed": ('UPDATE runs SET inputs = \'{"who": "mallory"}\'', "run"),
    "the autonomy is changed": ("UPDATE runs SET autonomy = 'release'", "run"),
    "a real run is called a dry one": ("UPDATE runs SET dry_run = 1", "run"),
    "the subject is changed": ("UPDATE runs SET subject = 'main@another'", "run"),
    "the subject's fields are changed": ('UPDATE runs SET fields = \'{"sha": "another"}\'', "run"),
    "the parent is changed": ("UPDATE runs SET parent = 'run_another'", "run"),
    "who asked for it is changed": ("UPDATE runs SET started_by = 'mallory'", "run"),
    "the trigger is changed": ("UPDATE runs SET trigger_kind = 'commit'", "run"),
    "the loop is changed": ("UPDATE runs SET loop_id = 'another'", "run"),
    "the deadline is moved": ("UPDATE runs SET deadline_at = deadline_at + 1", "run"),
    "its end is moved": ("UPDATE runs SET ended_at = ended_at + 1", "run"),
    "iterations are not counted": ("UPDATE runs SET counted = 1", "run"),
    "an iteration is left out": ("UPDATE runs SET iteration = 2", "run"),
    "time at work is given back": ("UPDATE runs SET wall_used = wall_used + 100", "run"),
    "the spec is another one": (other_spec, "spec"),
    "the spec's text is changed": ("UPDATE specs SET text = replace(text, 'exit 1', 'exit 0')", "spec"),
    "the spec is deleted": ("DELETE FROM specs", "spec"),
    "an event is changed": (
        "UPDATE events SET data = replace(data, 'handoff', 'completed') WHERE kind = 'decided'",
        "events",
    ),
    "an event's time is moved": ("UPDATE events SET at = at - 1 WHERE seq = 5", "events"),
    "an event is of another kind": ("UPDATE events SET kind = 'step.done' WHERE kind = 'step.failed'", "events"),
    "an event in the middle is deleted": ("DELETE FROM events WHERE seq = 5", "events"),
    "the last event is deleted": ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "events"),
    "all events are deleted": ("DELETE FROM events", "events"),
    "the run's head is changed": ("UPDATE runs SET head = 'x'", "events"),
    "the chain is cut and its head fits": (cut_the_end, "status"),
    "a step is told anew, its seal fits": (retell_a_step, "events"),
    "an effect is settled anew, its seal fits": (resettle_an_effect, "events"),
    "an effect ended otherwise": ("UPDATE effects SET state = 'failed', reason = 'no'", "effect"),
    "an effect was never tried": ("UPDATE effects SET state = 'intended'", "effect"),
    "an effect's result is changed": ("UPDATE effects SET result = '{\"delivered\": false}'", "effect"),
    "an effect's payload is changed": ("UPDATE effects SET payload = '{}'", "effect"),
    "an effect's target is changed": ("UPDATE effects SET target = 'https://example.org/'", "effect"),
    "an effect is deleted": ("DELETE FROM effects WHERE iteration = 3", "effect"),
    "an effect is made up": (
        (
            "INSERT INTO effects SELECT 9999, 'made-up', run_id, iteration, phase, action_id, name, target, payload, "
            "label, approval, defer, digest, class, state, attempts, settle_at, next_at, result, reason, created_at, "
            "updated_at FROM effects LIMIT 1"
        ),
        "effect made-up",
    ),
    "another person approved": ("UPDATE approvals SET decided_by = 'mallory'", "approval"),
    "an approval is about something else": ("UPDATE approvals SET bound_to = 'another'", "approval"),
    "a used approval can be used again": ("UPDATE approvals SET state = 'approved', used_by = NULL", "approval"),
    "an approval is deleted": ("DELETE FROM approvals", "approval"),
    "an approval is made up": (
        (
            "INSERT INTO approvals SELECT 'apr_new', run_id, 'other', question, bound_to, role, state, asked_at, "
            "expires_at, decided_by, decided_role, decided_at, note, used_by FROM approvals LIMIT 1"
        ),
        "approval apr_new",
    ),
    "a handoff is done": ("UPDATE handoffs SET state = 'done'", "handoff"),
    "a handoff has another owner": ("UPDATE handoffs SET owner = 'mallory'", "handoff"),
    "a handoff's evidence is changed": ("UPDATE handoffs SET evidence = '{}'", "handoff"),
    "a handoff is deleted": ("DELETE FROM handoffs", "handoff"),
    "a fact is made up": (
        "INSERT INTO facts SELECT 9999, fact, 'main@2', run_id, at FROM facts",
        "fact proven/main@2",
    ),
    "a fact is deleted": ("DELETE FROM facts", "fact proven/main@1"),
    "what is carried over is changed": ("UPDATE carried SET value = '{}'", "carried"),
    "a call is deleted": (f"DELETE FROM {MADE}", "call 3-act-mark-1-2-made"),
    "a call is made up": (
        (
            "INSERT INTO agent_calls SELECT 9999, 'new', run_id, iteration, phase, step_id, loop_id, agent, driver, "
            f"model, limits, began_at, ended_at, result FROM {MADE}"
        ),
        "call new",
    ),
    "a call is another agent's": ("UPDATE agent_calls SET agent = 'other'", "call 2-act-mark-1-2-lost"),
    "a call is another model's": ("UPDATE agent_calls SET model = 'other'", "call 2-act-mark-1-2-lost"),
    "a call is another step's": ("UPDATE agent_calls SET step_id = 'other'", "call 2-act-mark-1-2-lost"),
    "a call is another run's": ("UPDATE agent_calls SET run_id = 'run_other'", "call 2-act-mark-1-2-made"),
    "a call's time is moved": ("UPDATE agent_calls SET began_at = began_at - 1", "call 2-act-mark-1-2-made"),
    "a call's end is moved": ("UPDATE agent_calls SET ended_at = ended_at + 1", "call 3-act-mark-1-2-made"),
    "a call's reason is changed": (
        "UPDATE agent_calls SET result = replace(result, 'done', 'gone')",
        "call 3-act-mark-1-2-made",
    ),
    "a call is settled anew, its seals fit": (resettle_a_call, "events"),
    "a call is settled twice": (settle_a_call_again, "events"),
    "a call is booked after the end": (book_after_the_end, "events"),
    "a call cannot be read": ("UPDATE agent_calls SET result = '{'", "calls"),
    "a call counts for less": ("UPDATE spending SET amount = 0 WHERE key LIKE '%made'", "call 2-act-mark-1-2-made"),
    "a call counts for nothing": ("DELETE FROM spending WHERE key LIKE '%:3:%made'", "call 3-act-mark-1-2-made"),
    "a call counts for another day": ("UPDATE spending SET at = at - 86400", "call 2-act-mark-1-2-lost"),
    "a call counts for another loop": ("UPDATE spending SET loop_id = 'x'", "call 2-act-mark-1-2-lost"),
    "a call counts for another run": ("UPDATE spending SET run_id = 'run_other'", "spent"),
    "something is booked that nobody used": (
        "INSERT INTO spending SELECT 'new', kind, run_id, loop_id, amount, at FROM spending WHERE kind = 'usd' LIMIT 1",
        "spending new",
    ),
    "what was used without a call is lowered": (
        "UPDATE spending SET amount = 0.01 WHERE amount = 0.25",
        "spending run_",
    ),
    "an artifact is changed on disk": (write_artifact, "artifact"),
    "an artifact is removed from disk": (lambda copy: artifact(copy).unlink(), "artifact"),
    "an artifact's reference is deleted": (
        "DELETE FROM artifact_refs WHERE iteration = 2 AND action_id = 'mark'",
        "artifact",
    ),
    "all references are deleted as if by retention": ("DELETE FROM artifact_refs", "artifact"),
    "an artifact is called by another name": (
        "UPDATE artifact_refs SET name = 'x' WHERE action_id = 'mark'",
        "artifact",
    ),
    "a step cannot be read": ("UPDATE steps SET outputs = '{' WHERE id = 'say'", "steps"),
    "an event cannot be read": ("UPDATE events SET kind = 'x' WHERE seq = 3", "events"),
    "the run's own row cannot be read": ("UPDATE runs SET status = 'fine'", "run"),
}


def rewrite(copy: Copy, tell: Callable[[EventKind, dict[str, Any]], dict[str, Any] | None]) -> None:
    """The whole chain anew, with every digest: each event as `tell` wants it, or left out."""
    old = copy.all("SELECT * FROM events ORDER BY seq")
    copy.sql("DELETE FROM events", "UPDATE runs SET event_count = 0, head = ''")
    for event in old:
        data = tell(EventKind(event["kind"]), json.loads(event["data"]))
        if data is not None:
            add_event(copy, EventKind(event["kind"]), data, event["at"])


def write_the_chain_anew(copy: Copy) -> None:
    """What somebody can do who writes the database and knows how: a forged step, its seal, and every digest after."""
    copy.sql("UPDATE steps SET note = 'forged' WHERE id = 'say' AND iteration = 1")
    fits = seal("step", [copy.one("SELECT * FROM steps WHERE id = 'say' AND iteration = 1")])

    def forged(_: EventKind, data: dict[str, Any]) -> dict[str, Any]:
        seals = data.get(SEALS, {})
        return data | ({SEALS: {name: fits.get(name, old) for name, old in seals.items()}} if seals else {})

    rewrite(copy, forged)
