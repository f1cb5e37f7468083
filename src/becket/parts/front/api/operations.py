"""Every operation of the API. The routes and the OpenAPI document are made from this table; requests and answers are
what the functions take and give.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, get_type_hints

from becket.app.parts import load
from becket.kernel.contract.base import Record
from becket.kernel.contract.part import Target
from becket.parts.front.accounts import PageRole

BELOW = "/api/v1"
LARGE = 262_144


class Operation(NamedTuple):
    method: Literal["GET", "POST", "DELETE"]
    path: str
    needs: PageRole
    target: Target
    """Beside this module."""
    says: str
    also: str = ""
    """Its name, where one function serves two paths."""
    body: int = 16_384

    @property
    def name(self) -> str:
        return self.also or self.target.partition(":")[2]

    @property
    def run(self) -> Callable[..., Awaitable[Any]]:
        return load(f"{__package__}.{self.target}")  # type: ignore[no-any-return]  # as the table has it

    @property
    def asks(self) -> type[Record]:
        return get_type_hints(self.run)["given"]  # type: ignore[no-any-return]  # as it is written there

    @property
    def answers(self) -> Any:
        return get_type_hints(self.run)["return"]

    @property
    def params(self) -> list[str]:
        return re.findall(r"\{(\w+)\}", self.path)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/status", "viewer", "machine:status", "What is asked of people, what is going on, how things are"
    ),
    Operation("GET", "/runs", "viewer", "runs:list_runs", "Runs, the newest first"),
    Operation("POST", "/runs", "member", "runs:start_run", "Start a run, or find the one that answers", body=LARGE),
    Operation("GET", "/runs/{run}", "viewer", "runs:show_run", "A run with all its records"),
    Operation("GET", "/runs/{run}/report", "viewer", "runs:report_run", "Its verdict and proof"),
    Operation("GET", "/runs/{run}/events", "viewer", "runs:list_events", "Its journal"),
    Operation("GET", "/runs/{run}/steps", "viewer", "runs:list_steps", "Its steps"),
    Operation("GET", "/runs/{run}/receipts", "viewer", "runs:list_receipts", "Its receipts"),
    Operation("GET", "/runs/{run}/logs/{step}", "viewer", "runs:read_log", "The end of what a step printed"),
    Operation("GET", "/runs/{run}/verify", "viewer", "runs:verify_run", "Check every digest that it rests on"),
    Operation("POST", "/runs/{run}/cancel", "member", "runs:cancel_run", "Cancel it"),
    Operation("POST", "/runs/{run}/retry", "member", "runs:retry_run", "Start a new one on the same subject"),
    Operation("POST", "/runs/{run}/hold", "member", "runs:hold_run", "Keep it from going on"),
    Operation("POST", "/runs/{run}/release", "member", "runs:release_run", "Let it go on"),
    Operation("POST", "/runs/{run}/drop", "member", "runs:drop_run", "Give it up, if it is not at work"),
    Operation("POST", "/runs/{run}/migrate", "member", "runs:migrate_run", "Move it to its loop's current spec"),
    Operation("POST", "/runs/{run}/tell", "member", "runs:tell_agent", "Say something to its agent", body=65_536),
    Operation("GET", "/approvals", "viewer", "people:list_approvals", "Questions that wait for a decision"),
    Operation(
        "GET", "/approvals/{approval}", "viewer", "people:show_approval", "A question with the change it is about"
    ),
    Operation("POST", "/approvals/{approval}/approve", "member", "people:approve", "Say yes, if your role is enough"),
    Operation("POST", "/approvals/{approval}/deny", "member", "people:deny", "Say no, if your role is enough"),
    Operation("POST", "/approvals/{approval}/revoke", "member", "people:revoke_approval", "Take a yes back"),
    Operation("GET", "/handoffs", "viewer", "people:list_handoffs", "What only a person can finish"),
    Operation("GET", "/handoffs/{handoff}", "viewer", "people:show_handoff", "One of them, with its evidence"),
    Operation("POST", "/handoffs/{handoff}/take", "member", "people:take_handoff", "Say that you are on it"),
    Operation("POST", "/handoffs/{handoff}/settle", "member", "people:settle_handoff", "Say that it is finished"),
    Operation("GET", "/proposals", "viewer", "people:list_proposals", "Ready repairs"),
    Operation("GET", "/proposals/{run}", "viewer", "people:show_proposal", "One of them, with its patch and proof"),
    Operation("POST", "/proposals/{run}/accept", "approver", "people:accept_proposal", "Take it to its branch"),
    Operation("POST", "/proposals/{run}/decline", "approver", "people:decline_proposal", "Say that nobody takes it"),
    Operation("GET", "/loops", "viewer", "machine:list_loops", "The loops of this repository"),
    Operation("GET", "/loops/{loop}", "viewer", "machine:show_loop", "A loop's contract"),
    Operation("GET", "/lint", "viewer", "machine:lint", "What is wrong with the loops, with place and fix"),
    Operation("GET", "/controls", "viewer", "machine:list_controls", "What is paused"),
    Operation("POST", "/pause", "member", "machine:pause", "Keep all loops from starting anything", "pause_all"),
    Operation("POST", "/resume", "member", "machine:resume", "Let all loops start again", "resume_all"),
    Operation("POST", "/loops/{loop}/pause", "member", "machine:pause", "Keep it from starting anything", "pause_loop"),
    Operation("POST", "/loops/{loop}/resume", "member", "machine:resume", "Let it start again", "resume_loop"),
    Operation("POST", "/events", "member", "machine:post_event", "Something happened that loops may hear", body=LARGE),
    Operation("GET", "/spend", "viewer", "machine:spend", "What agents used, and what the budgets leave"),
    Operation("GET", "/services", "viewer", "machine:list_services", "The services"),
    Operation("GET", "/services/{service}", "viewer", "machine:show_service", "How a service stands"),
    Operation("POST", "/services/{service}/start", "approver", "machine:start_service", "Start it"),
    Operation("POST", "/services/{service}/stop", "approver", "machine:stop_service", "Stop it"),
    Operation("POST", "/services/{service}/restart", "approver", "machine:restart_service", "Start it anew"),
    Operation("GET", "/alerts", "viewer", "machine:list_alerts", "Open alarms"),
    Operation("GET", "/tokens", "owner", "machine:list_tokens", "The tokens, without their secrets"),
    Operation("DELETE", "/tokens/{token}", "owner", "machine:revoke_token", "Revoke a token at once"),
    Operation("GET", "/audit", "owner", "machine:list_audit", "Who decided what"),
)
BY_NAME = {one.name: one for one in OPERATIONS}
