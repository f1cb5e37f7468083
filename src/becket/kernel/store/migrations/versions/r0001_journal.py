"""The journal's first shape."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _maybe_text(name: str) -> sa.Column[str | None]:
    return sa.Column(name, sa.Text, nullable=True)


def _int(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, autoincrement=False)


def _big(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, autoincrement=False)


def _time(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=False)


def _maybe_time(name: str) -> sa.Column[float | None]:
    return sa.Column(name, sa.Double, nullable=True)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False)


def _number() -> sa.Column[int]:
    return sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True)


def _key(*columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns)


def _index(name: str, table: str, *columns: str, unique: bool = False, where: str | None = None) -> None:
    condition = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def upgrade() -> None:
    _runs()
    _evidence()
    _people()
    _house()


def _runs() -> None:
    op.create_table("specs", _text("digest"), _text("text"), _time("at"), _key("digest"))
    op.create_table(
        "runs",
        _number(),
        _text("run_id"),
        _text("loop_id"),
        _text("subject"),
        _text("subject_key"),
        _text("fields"),
        _text("status"),
        _int("segment"),
        _int("epoch"),
        _int("iteration"),
        _int("counted"),
        _text("spec_digest"),
        _text("inputs"),
        _text("trigger_kind"),
        _maybe_text("group_name"),
        _flag("dry_run"),
        _flag("held"),
        _flag("cancel_asked"),
        _maybe_text("autonomy"),
        _maybe_text("parent"),
        _maybe_text("retry_of"),
        _int("chain"),
        _text("reason"),
        _text("detail"),
        _text("waiting_on"),
        _text("waits_since"),
        _time("wall_used"),
        _maybe_text("worker"),
        _maybe_time("lease_until"),
        _maybe_text("lost_by"),
        _text("started_by"),
        _time("created_at"),
        _time("updated_at"),
        _time("deadline_at"),
        _maybe_time("ended_at"),
        _maybe_time("follow_since"),
        _int("event_count"),
        _text("head"),
        _maybe_text("open_subject"),
    )
    _index("ix_runs_run_id", "runs", "run_id", unique=True)
    _index("ix_runs_open_subject", "runs", "open_subject", unique=True)
    _index("ix_runs_subject", "runs", "loop_id", "subject_key", "status")
    _index("ix_runs_spec", "runs", "spec_digest")
    _index("ix_runs_open", "runs", "number", where="ended_at IS NULL")
    _index("ix_runs_queued", "runs", "number", where="status = 'queued'")
    _index("ix_runs_group", "runs", "group_name", "number", where="ended_at IS NULL")
    _index("ix_runs_deadline", "runs", "deadline_at", where="status = 'waiting'")
    _index("ix_runs_running", "runs", "number", where="status = 'running'")
    _index("ix_runs_lost", "runs", "lost_by", where="lost_by IS NOT NULL")
    _index("ix_runs_ended", "runs", "ended_at", where="ended_at IS NOT NULL")
    _index("ix_runs_follow", "runs", "follow_since", where="follow_since IS NOT NULL")
    op.create_table("origins", _text("origin_key"), _text("run_id"), _key("origin_key"))
    _index("ix_origins_run", "origins", "run_id")
    op.create_table("links", _text("parent"), _text("child"), _time("at"), _key("parent", "child"))
    _index("ix_links_child", "links", "child")
    op.create_table("carried", _text("run_id"), _text("value"), _key("run_id"))
    op.create_table(
        "events",
        _text("run_id"),
        _int("seq"),
        _time("at"),
        _text("kind"),
        _text("data"),
        _text("previous"),
        _text("digest"),
        _key("run_id", "seq"),
    )
    op.create_table(
        "steps",
        _number(),
        _text("run_id"),
        _int("iteration"),
        _text("phase"),
        _text("id"),
        _text("state"),
        _int("attempts"),
        _text("outputs"),
        _text("conditions"),
        _text("receipts"),
        _text("artifacts"),
        _text("error_kind"),
        _text("error"),
        _text("note"),
        _text("progress"),
        _time("started_at"),
        _time("ended_at"),
    )
    _index("ix_steps_key", "steps", "run_id", "iteration", "phase", "id", unique=True)


def _evidence() -> None:
    op.create_table(
        "conditions",
        _text("run_id"),
        _text("object"),
        _text("name"),
        _text("group_names"),
        _text("life"),
        _text("evidence"),
        _int("iteration"),
        _time("at"),
        _key("run_id", "object", "name"),
    )
    op.create_table(
        "receipts",
        _number(),
        _text("run_id"),
        _int("iteration"),
        _text("phase"),
        _text("action_id"),
        _text("digest"),
        _text("receipt"),
        _time("started_at"),
        _time("ended_at"),
    )
    _index("ix_receipts_key", "receipts", "run_id", "iteration", "phase", "action_id", "digest", unique=True)
    op.create_table(
        "artifact_refs",
        _number(),
        _text("run_id"),
        _int("iteration"),
        _text("phase"),
        _text("action_id"),
        _text("digest"),
        _text("name"),
        _big("size"),
        _time("at"),
    )
    _index(
        "ix_artifact_refs_key",
        "artifact_refs",
        "run_id",
        "iteration",
        "phase",
        "action_id",
        "digest",
        "name",
        unique=True,
    )
    _index("ix_artifact_refs_digest", "artifact_refs", "digest")
    op.create_table(
        "effects",
        _number(),
        _text("key"),
        _text("run_id"),
        _int("iteration"),
        _text("phase"),
        _text("action_id"),
        _text("name"),
        _text("target"),
        _text("payload"),
        _text("label"),
        _maybe_text("approval"),
        _flag("defer"),
        _text("digest"),
        _text("class"),
        _text("state"),
        _int("attempts"),
        _time("settle_at"),
        _maybe_time("next_at"),
        _text("result"),
        _text("reason"),
        _time("created_at"),
        _time("updated_at"),
    )
    _index("ix_effects_key", "effects", "key", unique=True)
    _index("ix_effects_run", "effects", "run_id")
    _index("ix_effects_name", "effects", "name", "created_at")
    _index("ix_effects_retrying", "effects", "next_at", where="state = 'retrying'")
    _index("ix_effects_intended", "effects", "settle_at", where="state = 'intended'")
    op.create_table("facts", _number(), _text("fact"), _text("subject_key"), _text("run_id"), _time("at"))
    _index("ix_facts_subject", "facts", "fact", "subject_key")
    _index("ix_facts_run", "facts", "run_id")
    op.create_table(
        "spending",
        _text("key"),
        _text("kind"),
        _text("run_id"),
        _text("loop_id"),
        _time("amount"),
        _time("at"),
        _key("key", "kind"),
    )
    _index("ix_spending_run", "spending", "run_id")
    _index("ix_spending_loop", "spending", "loop_id", "at")
    _index("ix_spending_at", "spending", "at")


def _people() -> None:
    op.create_table(
        "handoffs",
        _text("handoff_id"),
        _text("run_id"),
        _text("loop_id"),
        _text("subject"),
        _text("owner"),
        _text("reason"),
        _text("evidence"),
        _text("next_step"),
        _text("state"),
        _maybe_text("taken_by"),
        _text("note"),
        _time("created_at"),
        _maybe_time("expires_at"),
        _time("updated_at"),
        _key("handoff_id"),
    )
    _index("ix_handoffs_run", "handoffs", "run_id")
    _index("ix_handoffs_due", "handoffs", "expires_at", where="state = 'open'")
    op.create_table(
        "approvals",
        _text("approval_id"),
        _text("run_id"),
        _text("ask_key"),
        _text("question"),
        _text("bound_to"),
        _text("role"),
        _text("state"),
        _time("asked_at"),
        _time("expires_at"),
        _maybe_text("decided_by"),
        _maybe_text("decided_role"),
        _maybe_time("decided_at"),
        _text("note"),
        _maybe_text("used_by"),
        _key("approval_id"),
    )
    _index("ix_approvals_ask", "approvals", "run_id", "ask_key", unique=True)
    _index("ix_approvals_due", "approvals", "expires_at", where="state IN ('asked', 'approved')")
    op.create_table("controls", _text("scope"), _text("set_by"), _text("note"), _time("at"), _key("scope"))


def _house() -> None:
    op.create_table("leases", _text("name"), _text("run_id"), _text("worker"), _time("until"), _key("name"))
    _index("ix_leases_run", "leases", "run_id")
    _index("ix_leases_worker", "leases", "worker")
    op.create_table(
        "wakeups",
        _number(),
        _text("run_id"),
        _text("condition"),
        _text("wake"),
        _time("due"),
        _time("expires"),
    )
    _index("ix_wakeups_run", "wakeups", "run_id")
    _index("ix_wakeups_due", "wakeups", "due")
    op.create_table(
        "signals",
        _number(),
        _text("signal_id"),
        _text("run_id"),
        _text("name"),
        _text("payload"),
        _time("at"),
        _flag("kept"),
    )
    _index("ix_signals_id", "signals", "signal_id", unique=True)
    _index("ix_signals_run", "signals", "run_id")
    op.create_table(
        "workers",
        _text("worker_id"),
        _int("pid"),
        _text("host"),
        _text("role"),
        _text("version"),
        _time("started_at"),
        _time("beat_at"),
        _flag("dead"),
        _key("worker_id"),
    )
    op.create_table("cursors", _text("name"), _text("value"), _maybe_time("due_at"), _time("updated_at"), _key("name"))
    _index("ix_cursors_due", "cursors", "due_at", where="due_at IS NOT NULL")
    op.create_table(
        "alerts",
        _text("key"),
        _text("text"),
        _text("data"),
        _text("state"),
        _int("count"),
        _time("first_at"),
        _time("last_at"),
        _maybe_time("told_at"),
        _key("key"),
    )
    op.create_table(
        "children",
        _text("boot"),
        _int("pid"),
        _big("started"),
        _text("run_id"),
        _text("argv"),
        _time("at"),
        _key("boot", "pid", "started"),
    )
    _index("ix_children_run", "children", "run_id")
