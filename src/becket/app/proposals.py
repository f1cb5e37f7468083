"""Ready repairs: which there are, what a person says about them, and how a yes reaches the branch.

A yes is a row of the journal before anything starts. A run of the loop that left the repair takes it from there: it
promotes the proven commit by the usual door, or carries it over and proves it again where the branch has moved. So is
the wish for changes, of which a run makes another repair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from becket.app.compose import App
from becket.app.record.patch import Comment, Patch, read_patch, written
from becket.app.record.settling import close_if_merged, holds
from becket.kernel.contract.base import Json
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.errors import ActionFailed, NotFound, UsageError
from becket.kernel.contract.handoff import UNSETTLED, Handoff, HandoffState
from becket.kernel.contract.naming import alone
from becket.kernel.contract.ready import ACCEPT, CHANGES, REASONS, SAID_NO
from becket.kernel.contract.run import OPEN, Run, Started, Step
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import RunFilter, Store
from becket.kernel.dispatch.bell import ring
from becket.kernel.engine.intake import StartRequest
from becket.kernel.engine.triggers import declined_about

DECLINED = (
    "{by} declined the repair that {run_id} left of {subject}, so nobody is called for it again; ask for a new one "
    "with `becket runs retry {run_id}`"
)
MAY = ("approver", "owner")
"""The roles that decide about ready repairs, as about approvals."""


@dataclass(frozen=True, slots=True)
class SeenProposal:
    """What a page showed: the repair, and where its branch was."""

    sha: str
    head: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A ready repair and where it stands. `target` is the branch it is for, `head` where that is now; `held`: the
    branch holds the commit that was judged.
    """

    handoff: Handoff
    run: Run
    target: str
    head: str
    held: bool

    @property
    def sha(self) -> str:
        return str(self.handoff.evidence.get("candidate", ""))

    @property
    def base(self) -> str:
        return str(self.handoff.evidence.get("base", ""))

    @property
    def moved(self) -> bool:
        return self.head != self.base


async def all_open(app: App) -> tuple[Proposal, ...]:
    """Those that still have to be decided or taken to their branch; one that was merged by hand is closed first."""
    found = [item for item in await app.store.handoffs(UNSETTLED) if item.reason in REASONS]
    proposals = [await _read(app, item) for item in found]
    return tuple([one for one in proposals if not await _merged(app, one)])


async def _merged(app: App, one: Proposal) -> bool:
    """Into its branch or the watched one; where its own does not hold the judged commit, into any that does."""
    places = {f"refs/heads/{one.target}", f"refs/heads/{app.config.branch}"}
    own = f"refs/heads/{one.handoff.evidence.get('branch')}"
    for ref, head in (await app.git.refs()).items():
        elsewhere = not one.held and ref.startswith("refs/heads/") and ref != own
        if (ref in places or (elsewhere and await holds(app, head, one.base))) and await close_if_merged(
            app, one.handoff, head
        ):
            return True
    return False


async def _read(app: App, handoff: Handoff) -> Proposal:
    run = await app.store.get_run(handoff.run_id)
    target = str(run.subject.fields.get("branch") or app.config.branch)
    head = await app.git.resolve(f"refs/heads/{target}")
    held = head is not None and await holds(app, head, str(handoff.evidence.get("base", "")))
    return Proposal(handoff, run, target, head or "", held)


async def standing(app: App, run_id: str) -> Proposal:
    """The one that this run left, settled or not, as it stands: nothing is closed by it. Raises NotFound."""
    left = await _left_by(app, run_id)
    if left is None:
        raise NotFound(f"{run_id[:60]} left no ready repair; see `becket proposals list`")
    return await _read(app, left)


async def listed(app: App, most: int) -> tuple[Handoff, ...]:
    """Those that nobody has settled, the newest first: nothing is closed by it."""
    found = [item for item in await app.store.handoffs(UNSETTLED) if item.reason in REASONS]
    return tuple(reversed(found[-most:]))


async def _left_by(app: App, run_id: str) -> Handoff | None:
    run = await app.store.get_run(run_id)
    left = [item for item in await app.store.handoffs((), run.run_id) if item.reason in REASONS]
    return left[-1] if left else None


async def find(app: App, name: str | None) -> Proposal:
    """By the beginning of its run's, its handoff's or its commit's id; without a name, the only one."""
    known = await all_open(app)
    found = [one for one in known if name is None or _named(one, name)]
    if len(found) == 1:
        return found[0]
    if name is not None and not found and (said := await _settled(app, name)):
        raise UsageError(said)
    if not known:
        raise UsageError("there is no ready repair; `becket runs list` shows how runs ended")
    listed = ", ".join(one.run.run_id for one in known)
    wrong = "say which one you mean" if name is None else f"{name!r} means {len(found) or 'none'} of them"
    raise UsageError(f"there are ready repairs of {listed}: {wrong}; see `becket proposals list`")


async def ready_for(app: App, ask: StartRequest) -> Run | None:
    """The run that left a ready repair of exactly what is asked for, while nobody is at work on that."""
    if ask.dry_run or ask.inputs.get(ACCEPT) or ask.inputs.get(CHANGES):
        return None
    left = [one.run for one in await all_open(app) if one.run.loop_id == ask.loop_id]
    subject = (await app.intake.prepare(ask)).subject.name if left else ""
    found = next((run for run in left if run.subject.name == subject), None)
    open_ones = RunFilter(loop_id=ask.loop_id, subject=subject, statuses=tuple(OPEN), limit=1)
    return None if found is None or await app.store.list_runs(open_ones) else found


async def declined_for(app: App, ask: StartRequest) -> str:
    """What a person said about exactly what is asked for: a no is an answer. Empty where nobody said one."""
    if ask.dry_run or ask.inputs.get(ACCEPT) or ask.inputs.get(CHANGES):
        return ""
    subject = (await app.intake.prepare(ask)).subject.name
    said = await declined_about(app.store, ask.loop_id, subject)
    return "" if said is None else DECLINED.format(by=said.taken_by, run_id=said.run_id, subject=subject)


async def _settled(app: App, name: str) -> str:
    """What became of the repair of this run, where nobody has to decide about it any more."""
    try:
        left = await _left_by(app, name)
    except (NotFound, UsageError):
        return ""
    if left is None or left.state in UNSETTLED:
        return ""
    by = f" by {left.taken_by}" if left.taken_by else ""
    return f"the repair that {left.run_id} left is settled{by}: {left.note or left.state}; nothing was changed"


def _named(one: Proposal, name: str) -> bool:
    return any(each.startswith(name) for each in (one.run.run_id, one.handoff.handoff_id, one.sha))


async def patch(app: App, one: Proposal) -> bytes:
    return await app.git.candidates().patch(one.base, one.sha)


async def accept(
    app: App, caller: Caller, name: str | None, note: str, seen: SeenProposal | None = None
) -> tuple[Proposal, Started]:
    """Record the yes, and start the run that takes it to the branch; one that is under way is found again. What was
    `seen` must still be so.
    """
    one = await find(app, name)
    await _can_be_taken(app, caller, one, ACCEPT)
    if seen is not None and seen != SeenProposal(one.sha, one.head):
        raise UsageError(
            f"{one.target} was at {seen.head[:12]} when you looked, and is at {one.head[:12]} now: look at the repair "
            "again, then decide; nothing was changed"
        )
    if one.handoff.state is HandoffState.changing:
        await _not_at_work(app, one, CHANGES)
        taken_back = f"taken back, and accepted as it is; {one.handoff.note}"
        await app.store.change_handoff(one.handoff.handoff_id, HandoffState.open, caller, taken_back)
    if one.handoff.state is not HandoffState.accepted:
        said = app.redactor.text(note) or f"accepted {one.sha[:12]}"
        await app.store.change_handoff(one.handoff.handoff_id, HandoffState.accepted, caller, said)
    return one, await _under_way(app, caller, one, ACCEPT)


async def changes(app: App, caller: Caller, name: str | None, comments: Sequence[Comment]) -> tuple[Proposal, Started]:
    """Record what shall be otherwise, and start the run that makes another repair with that in its brief. Without
    comments, what was recorded before goes on.
    """
    one = await find(app, name)
    await _can_be_taken(app, caller, one, CHANGES)
    said = app.redactor.text(written(await lines(app, one), comments))
    if one.handoff.state is HandoffState.changing:
        if said not in ("", one.handoff.note):
            raise UsageError(
                f"{one.handoff.taken_by} asked for changes already; what comes of them is another ready repair, and "
                "you can ask for changes of that"
            )
    elif not said:
        raise UsageError("say what shall be otherwise: `--note TEXT`, or `--on PATH:LINE=TEXT`")
    else:
        await app.store.change_handoff(one.handoff.handoff_id, HandoffState.changing, caller, said)
    return one, await _under_way(app, caller, one, CHANGES)


async def lines(app: App, one: Proposal) -> Patch:
    return read_patch(await patch(app, one))


async def _can_be_taken(app: App, caller: Caller, one: Proposal, what: str) -> None:
    must_decide(caller)
    if not app.config.autonomy.allows(Autonomy.propose):
        raise UsageError(f"autonomy is observe, so Becket moves no branch; by hand: {by_hand(one)}")
    if not one.held:
        raise UsageError(elsewhere(one))
    if await app.git.candidates().missing(one.sha):
        raise UsageError(
            f"the commit {one.sha[:12]} is not whole any more: something removed its objects; ask for a new repair: "
            f"`becket runs retry {one.run.run_id}`"
        )
    if what not in app.loops.get(one.run.loop_id).spec.inputs:
        raise UsageError(f"the loop {one.run.loop_id} cannot do that with ready repairs; by hand: {by_hand(one)}")


async def _under_way(app: App, caller: Caller, one: Proposal, what: str) -> Started:
    """The run that does it: started now, or found again."""
    started = await taken_by(app, one, what) or await _start(app, caller, one, what)
    if started.run is None or started.run.inputs.get(what) != one.run.run_id:
        busy = started.run.run_id if started.run else started.dropped
        said = "your yes is" if what == ACCEPT else "your wish is"
        raise UsageError(
            f"{said} recorded, but {busy} is at work on {one.target} as it is now; when that has ended, "
            f"`becket proposals {what} {one.run.run_id}` goes on"
        )
    ring(app.state.bell)
    return started


async def taken_by(app: App, one: Proposal, what: str = ACCEPT) -> Started | None:
    """The run that is at it already: a second yes pays for no second proof."""
    open_ones = RunFilter(loop_id=one.run.loop_id, statuses=tuple(OPEN), limit=None)
    runs = [run for run in await app.store.list_runs(open_ones) if run.inputs.get(what) == one.run.run_id]
    return Started(run=runs[0], created=False) if runs else None


async def _start(app: App, caller: Caller, one: Proposal, what: str) -> Started:
    fields: dict[str, Json] = {"branch": one.target, "sha": one.head}
    inputs: dict[str, Json] = {what: one.run.run_id}
    return await app.intake.start(StartRequest(loop_id=one.run.loop_id, fields=fields, inputs=inputs, by=caller))


async def _not_at_work(app: App, one: Proposal, what: str) -> None:
    """Raises UsageError while a run does what a person said of it."""
    if (taking := await taken_by(app, one, what)) is not None and taking.run is not None:
        said = "it was accepted and {} takes it" if what == ACCEPT else "changes were asked for and {} makes them"
        raise UsageError(f"{said.format(taking.run.run_id)}; `becket runs cancel {taking.run.run_id}` first")


async def decline(app: App, caller: Caller, name: str | None, why: str) -> Proposal:
    """Record the no. The commit stays below refs/becket/ for as long as `retention` says."""
    one = await find(app, name)
    must_decide(caller)
    for what in (ACCEPT, CHANGES):
        await _not_at_work(app, one, what)
    said = f"{SAID_NO}{': ' if why else ''}{app.redactor.text(why)}"
    await app.store.change_handoff(one.handoff.handoff_id, HandoffState.declined, caller, said)
    return one


def must_decide(caller: Caller) -> None:
    """Raises UsageError for whoever may not decide about ready repairs."""
    if caller.role not in MAY:
        raise UsageError(f"{caller.name} is {caller.role}; a ready repair is decided by {' or '.join(MAY)}")


def by_hand(one: Proposal) -> str:
    merge = f"git merge --ff-only {one.handoff.evidence.get('branch') or one.sha}"
    return f"git checkout {one.target} && {merge}" if one.held else merge


def elsewhere(one: Proposal) -> str:
    """Why no branch is moved by a yes, and what takes it instead."""
    where = "no watched branch holds" if one.target == alone(one.base) else f"{one.target} does not hold"
    return f"the repair belongs to the commit {one.base[:12]}, which {where}; where that is checked out: {by_hand(one)}"


async def proof_of(store: Store, run_id: str, sha: str) -> str:
    """The digest of the proof of exactly this commit, whose receipts are there. Raises ActionFailed."""
    receipts = {item.digest for item in await store.receipts(run_id)}
    for step in await store.steps(run_id):
        if _proves(step, sha) and step.receipts and receipts.issuperset(step.receipts):
            return str(step.outputs["digest"])
    raise ActionFailed(f"{run_id} has no proof of {sha[:12]} on record", kind="not_proven")


def _proves(step: Step, sha: str) -> bool:
    return any(item.ref == "candidate.proven" and item.evidence.get("candidate") == sha for item in step.conditions)
