"""`becket proposals`: ready repairs. Agents claim, Becket proves, a person takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli.output import columns, emit, note, say, show_patch
from becket.cli.plain import clock, line, safe, short
from becket.cli.run import Follow, see
from becket.cli.shape import AsJson, Note, group, in_app, me
from becket.kernel.contract.errors import UsageError
from becket.parts.promote.verbs import proposal_words as words

if TYPE_CHECKING:
    from becket.app.compose import App
    from becket.app.proposals import Proposal
    from becket.app.record.patch import Comment
    from becket.kernel.contract.run import Run

Which = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="The run that left it, or its beginning; without it: the only one."),
]

proposals = group("List, show, accept, change or decline ready repairs.", bare="list")


@proposals.command("list")
def list_(as_json: AsJson = False) -> None:
    """List ready repairs that nobody has taken yet."""

    async def read(app: App) -> tuple[tuple[Proposal, ...], float]:
        from becket.app.proposals import all_open

        return await all_open(app), await app.store.now()

    found, now = in_app(read, tolerant=True)
    if as_json:
        emit([_document(one) for one in found])
    elif not found:
        note(words.NONE)
    else:
        columns(words.HEAD, [_listed(one, now) for one in found])
        note(words.LOOK.format(run_id=found[0].run.run_id))


def _listed(one: Proposal, now: float) -> tuple[str, ...]:
    return (
        one.run.run_id, _state(one), clock(one.handoff.created_at, now), one.target, short(one.sha),
        str(one.handoff.evidence.get("class", "")), line(one.handoff.evidence.get("why", ""), 100),
    )  # fmt: skip


def _state(one: Proposal) -> str:
    state = one.handoff.state.value
    return f"{state} by {safe(one.handoff.taken_by)}" if one.handoff.taken_by else words.READY


def _document(one: Proposal) -> dict[str, object]:
    from becket.app.record.shown import proposal_shown

    return proposal_shown(one).model_dump(mode="json")


@proposals.command("show")
def show(run_id: Which = None, as_json: AsJson = False) -> None:
    """Show a ready repair: its change, what it newly can do, its proof, and the next command."""

    async def read(app: App) -> tuple[Proposal, bytes, str, float]:
        from becket.app.proposals import find, patch, proof_of

        one = await find(app, run_id)
        return one, await patch(app, one), await proof_of(app.store, one.run.run_id, one.sha), await app.store.now()

    one, diff, proof, now = in_app(read, tolerant=True)
    if as_json:
        emit({**_document(one), "proof": proof, "diff": diff.decode(errors="replace")})
        return
    say(
        words.TITLE.format(
            sha=short(one.sha), branch=safe(one.target), run_id=one.run.run_id, when=clock(one.handoff.created_at, now)
        )
    )
    show_patch(diff)
    for told in _told(one, proof):
        say(told)


def _told(one: Proposal, proof: str) -> list[str]:
    from becket.app.proposals import elsewhere

    evidence = one.handoff.evidence
    lines = [
        words.CLASS.format(kind=evidence.get("class") or "not read"),
        *(f"  {line(each, 200)}" for each in evidence.get("findings", ())),
    ]
    lines.append(words.PROOF.format(proof=short(proof), run_id=one.run.run_id))
    if evidence.get("why"):
        lines.append(words.WHY.format(why=line(evidence["why"], 400)))
    if not one.held:
        return [*lines, words.ELSEWHERE.format(why=elsewhere(one), run_id=one.run.run_id)]
    if one.moved:
        lines.append(words.MOVED.format(branch=safe(one.target), head=short(one.head), base=short(one.base)))
    lines.append(words.NEXT.format(run_id=one.run.run_id))
    return lines


@proposals.command("accept")
def accept(run_id: Which = None, remark: Note = "", follow: Follow = None, as_json: AsJson = False) -> None:
    """Take a ready repair to its branch: the proven commit itself, proven again if the branch has moved."""
    from becket.app import proposals as proposals_desk

    one, started = in_app(lambda app: proposals_desk.accept(app, me(app), run_id, remark))
    if not as_json:
        again = words.ACCEPTED_MOVED if one.moved else words.ACCEPTED
        note(again.format(sha=short(one.sha), branch=safe(one.target)))
    see(started, True if follow is None else follow, as_json, code=_promoted)


def _promoted(run: Run) -> int:
    """0 only where the branch is where the person wanted it."""
    from becket.kernel.contract.run import ENDED, RunStatus

    if run.status not in ENDED:
        note(words.NOT_YET.format(run_id=run.run_id, branch=safe(str(run.subject.fields.get("branch", "")))))
    return int(run.status is not RunStatus.completed)


@proposals.command("changes")
def changes(
    run_id: Which = None,
    remark: Annotated[str, typer.Option("--note", help="What shall be otherwise.")] = "",
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on", metavar="PATH:LINE=TEXT", help="About one line; one that was removed: PATH:-LINE. May be repeated."
        ),
    ] = None,
    follow: Follow = None,
    as_json: AsJson = False,
) -> None:
    """Ask for another repair: what you say becomes part of the agent's next brief."""
    from becket.app import proposals as proposals_desk
    from becket.app.record.patch import Comment

    comments = [Comment(text=remark), *(_comment(each) for each in on or ())]
    one, started = in_app(lambda app: proposals_desk.changes(app, me(app), run_id, comments))
    if not as_json:
        note(words.CHANGING.format(sha=short(one.sha)))
    see(started, True if follow is None else follow, as_json)


def _comment(text: str) -> Comment:
    from becket.app.record.patch import Comment

    where, _, said = text.partition("=")
    path, _, number = where.rpartition(":")
    if not path or not number.removeprefix("-").isdecimal() or not said.strip():
        raise UsageError(f"--on {text[:80]!r} is not PATH:LINE=TEXT; write it like calc.py:3='use a name'")
    return Comment(path=path, line=int(number), text=said)


@proposals.command("decline")
def decline(
    run_id: Which = None,
    why: Annotated[str, typer.Option("--why", help="Kept in the journal.")] = "",
    as_json: AsJson = False,
) -> None:
    """Say that nobody will take it; the handoff closes."""
    from becket.app import proposals as proposals_desk

    one = in_app(lambda app: proposals_desk.decline(app, me(app), run_id, why))
    if as_json:
        emit(_document(one))
    else:
        branch = safe(one.handoff.evidence.get("branch", ""))
        say((words.DECLINED if branch else words.DECLINED_ALONE).format(sha=short(one.sha), branch=branch))
