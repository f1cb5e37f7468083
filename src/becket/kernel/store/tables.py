"""The journal's tables. Times are seconds since 1970 (UTC), JSON is canonical text; both databases hold the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

metadata = sa.MetaData()
T = TypeVar("T")

VERSION = "0005"
"""The newest revision under `migrations`; `create_all` of this module builds exactly that."""


def _text(name: str, *, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, primary_key=primary_key)


def _maybe_text(name: str) -> sa.Column[str | None]:
    return sa.Column(name, sa.Text, nullable=True)


def _int(name: str, *, primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, primary_key=primary_key, autoincrement=False)


def _time(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=False)


def _maybe_time(name: str) -> sa.Column[float | None]:
    return sa.Column(name, sa.Double, nullable=True)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _number() -> sa.Column[int]:
    """The order of writing. On SQLite an INTEGER primary key is the row's own id."""
    return sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True)


def _each(column: Callable[[str], sa.Column[T]], *names: str) -> list[sa.Column[T]]:
    """Neighbours of one kind."""
    return [column(name) for name in names]


def _step_key() -> tuple[sa.Column[str], sa.Column[int], sa.Column[str]]:
    return _text("run_id"), _int("iteration"), _text("phase")


def _where(name: str, table: sa.Table, *columns: str, where: str) -> None:
    """A partial index. Its queries must say the condition in the same literal words, or SQLite will not use it."""
    sa.Index(name, *(table.c[column] for column in columns), sqlite_where=sa.text(where), info={"where": where})


def tell_postgres() -> None:
    """Give the partial indexes their condition on Postgres too. Not at import: it loads that dialect (90 ms)."""
    for table in metadata.tables.values():
        for index in table.indexes:
            if "where" in index.info:
                index.dialect_options["postgresql"]["where"] = sa.text(index.info["where"])


specs = sa.Table("specs", metadata, _text("digest", primary_key=True), _text("text"), _time("at"))

runs = sa.Table(
    "runs",
    metadata,
    _number(),
    *_each(_text, "run_id", "loop_id", "subject", "subject_key", "fields", "status"),
    *_each(_int, "segment", "epoch", "iteration", "counted"),
    *_each(_text, "spec_digest", "inputs", "trigger_kind"),
    _maybe_text("group_name"),
    *_each(_flag, "dry_run", "held", "cancel_asked"),
    *_each(_maybe_text, "autonomy", "parent", "retry_of"),
    _int("chain"),
    *_each(_text, "reason", "detail", "waiting_on", "waits_since"),
    _time("wall_used"),
    _maybe_text("worker"),
    _maybe_time("lease_until"),
    _text("started_by"),
    *_each(_time, "created_at", "updated_at", "deadline_at"),
    *_each(_maybe_time, "ended_at", "follow_since"),
    _int("event_count"),
    _text("head"),
    _maybe_text("open_subject"),
    sa.Index("ix_runs_run_id", "run_id", unique=True),
    sa.Index("ix_runs_open_subject", "open_subject", unique=True),
    sa.Index("ix_runs_subject", "loop_id", "subject_key", "status"),
    sa.Index("ix_runs_spec", "spec_digest"),
)
# No index begins with `status`: SQLite would prefer it to the partial ones, which hold only the rows that matter.
_where("ix_runs_open", runs, "number", where="ended_at IS NULL")
_where("ix_runs_queued", runs, "number", where="status = 'queued'")
_where("ix_runs_group", runs, "group_name", "number", where="ended_at IS NULL")
_where("ix_runs_deadline", runs, "deadline_at", where="status = 'waiting'")
_where("ix_runs_running", runs, "number", where="status = 'running'")
_where("ix_runs_ended", runs, "ended_at", where="ended_at IS NOT NULL")
_where("ix_runs_follow", runs, "follow_since", where="follow_since IS NOT NULL")

origins = sa.Table(
    "origins",
    metadata,
    _text("origin_key", primary_key=True),
    _text("run_id"),
    sa.Index("ix_origins_run", "run_id"),
)
"""Which run answered a start. A key keeps its answer even when the run was started by another key."""

links = sa.Table(
    "links",
    metadata,
    _text("parent", primary_key=True),
    _text("child", primary_key=True),
    _time("at"),
    sa.Index("ix_links_child", "child"),
)
"""A child has as many parents as asked for it; `runs.parent` is the one that started it."""

carried = sa.Table("carried", metadata, _text("run_id", primary_key=True), _text("value"))
"""Apart from `runs`, so that its size does not weigh on every write of the run's row."""

events = sa.Table(
    "events",
    metadata,
    _text("run_id", primary_key=True),
    _int("seq", primary_key=True),
    _time("at"),
    *_each(_text, "kind", "data", "previous", "digest"),
)

steps = sa.Table(
    "steps",
    metadata,
    _number(),
    *_step_key(),
    *_each(_text, "id", "state"),
    _int("attempts"),
    *_each(_text, "outputs", "conditions", "receipts", "artifacts", "error_kind", "error", "note", "progress"),
    *_each(_time, "started_at", "ended_at"),
    sa.Index("ix_steps_key", "run_id", "iteration", "phase", "id", unique=True),
)

conditions = sa.Table(
    "conditions",
    metadata,
    _text("run_id", primary_key=True),
    _text("object", primary_key=True),
    _text("name", primary_key=True),
    *_each(_text, "group_names", "life", "evidence"),
    _int("iteration"),
    _time("at"),
)

receipts = sa.Table(
    "receipts",
    metadata,
    _number(),
    *_step_key(),
    *_each(_text, "action_id", "digest", "receipt"),
    *_each(_time, "started_at", "ended_at"),
    sa.Index("ix_receipts_key", "run_id", "iteration", "phase", "action_id", "digest", unique=True),
)

artifact_refs = sa.Table(
    "artifact_refs",
    metadata,
    _number(),
    *_step_key(),
    *_each(_text, "action_id", "digest", "name"),
    sa.Column("size", sa.BigInteger, nullable=False),
    _time("at"),
    sa.Index("ix_artifact_refs_key", "run_id", "iteration", "phase", "action_id", "digest", "name", unique=True),
    sa.Index("ix_artifact_refs_digest", "digest"),
)

effects = sa.Table(
    "effects",
    metadata,
    _number(),
    _text("key"),
    *_step_key(),
    *_each(_text, "action_id", "name", "target", "payload", "label"),
    _maybe_text("approval"),
    _flag("defer"),
    *_each(_text, "digest", "class", "state"),
    _int("attempts"),
    _time("settle_at"),
    _maybe_time("next_at"),
    *_each(_text, "result", "reason"),
    *_each(_time, "created_at", "updated_at"),
    sa.Index("ix_effects_key", "key", unique=True),
    sa.Index("ix_effects_run", "run_id"),
    sa.Index("ix_effects_name", "name", "created_at"),
)
_where("ix_effects_retrying", effects, "next_at", where="state = 'retrying'")
_where("ix_effects_intended", effects, "settle_at", where="state = 'intended'")

handoffs = sa.Table(
    "handoffs",
    metadata,
    _text("handoff_id", primary_key=True),
    *_each(_text, "run_id", "loop_id", "subject", "owner", "reason", "evidence", "next_step", "state"),
    _maybe_text("taken_by"),
    _text("note"),
    _time("created_at"),
    _maybe_time("expires_at"),
    _time("updated_at"),
    sa.Index("ix_handoffs_run", "run_id"),
)
_where("ix_handoffs_due", handoffs, "expires_at", where="state = 'open'")

approvals = sa.Table(
    "approvals",
    metadata,
    _text("approval_id", primary_key=True),
    *_each(_text, "run_id", "ask_key", "question", "bound_to", "role", "state"),
    *_each(_time, "asked_at", "expires_at"),
    *_each(_maybe_text, "decided_by", "decided_role"),
    _maybe_time("decided_at"),
    _text("note"),
    _maybe_text("used_by"),
    sa.Index("ix_approvals_ask", "run_id", "ask_key", unique=True),
)
_where("ix_approvals_due", approvals, "expires_at", where="state IN ('asked', 'approved')")

leases = sa.Table(
    "leases",
    metadata,
    _text("name", primary_key=True),
    *_each(_text, "run_id", "worker"),
    _time("until"),
    sa.Index("ix_leases_run", "run_id"),
)

wakeups = sa.Table(
    "wakeups",
    metadata,
    _number(),
    *_each(_text, "run_id", "condition", "wake"),
    *_each(_time, "due", "expires"),
    sa.Index("ix_wakeups_run", "run_id"),
    sa.Index("ix_wakeups_due", "due"),
)

signals = sa.Table(
    "signals",
    metadata,
    _number(),
    *_each(_text, "signal_id", "run_id", "name", "payload"),
    _time("at"),
    _flag("kept"),
    sa.Index("ix_signals_id", "signal_id", unique=True),
    sa.Index("ix_signals_run", "run_id"),
)

workers = sa.Table(
    "workers",
    metadata,
    _text("worker_id", primary_key=True),
    _int("pid"),
    *_each(_text, "host", "role", "version"),
    *_each(_time, "started_at", "beat_at"),
    _flag("dead"),
)

cursors = sa.Table(
    "cursors",
    metadata,
    _text("name", primary_key=True),
    _text("value"),
    _maybe_time("due_at"),
    _time("updated_at"),
)
_where("ix_cursors_due", cursors, "due_at", where="due_at IS NOT NULL")

controls = sa.Table(
    "controls",
    metadata,
    _text("scope", primary_key=True),
    *_each(_text, "set_by", "note"),
    _time("at"),
    *_each(_maybe_text, "role", "via"),
)

facts = sa.Table(
    "facts",
    metadata,
    _number(),
    *_each(_text, "fact", "subject_key", "run_id"),
    _time("at"),
    sa.Index("ix_facts_subject", "fact", "subject_key"),
    sa.Index("ix_facts_run", "run_id"),
)

spending = sa.Table(
    "spending",
    metadata,
    _text("key", primary_key=True),
    _text("kind", primary_key=True),
    *_each(_text, "run_id", "loop_id"),
    *_each(_time, "amount", "at"),
    sa.Index("ix_spending_run", "run_id"),
    sa.Index("ix_spending_loop", "loop_id", "at"),
    sa.Index("ix_spending_at", "at"),
)

agent_calls = sa.Table(
    "agent_calls",
    metadata,
    _number(),
    _text("call_id"),
    *_step_key(),
    *_each(_text, "step_id", "loop_id", "agent", "driver", "model", "limits"),
    _time("began_at"),
    _maybe_time("ended_at"),
    _maybe_text("result"),
    sa.Index("ix_agent_calls_id", "call_id", unique=True),
    sa.Index("ix_agent_calls_run", "run_id"),
    sa.Index("ix_agent_calls_began", "began_at"),
)
"""What each of them may use, or used, is in `spending` under its call_id."""

alerts = sa.Table(
    "alerts",
    metadata,
    _text("key", primary_key=True),
    *_each(_text, "text", "data", "state"),
    _int("count"),
    *_each(_time, "first_at", "last_at"),
    _maybe_time("told_at"),
)

children = sa.Table(
    "children",
    metadata,
    _text("boot", primary_key=True),
    _int("pid", primary_key=True),
    sa.Column("started", sa.BigInteger, nullable=False, primary_key=True, autoincrement=False),
    *_each(_text, "run_id", "argv"),
    _time("at"),
    sa.Index("ix_children_run", "run_id"),
)
