"""What people decide on the page: the desk's functions, with who asks; then where it goes on, and what is said."""

from __future__ import annotations

from urllib.parse import quote

from becket.app import desk, proposals
from becket.app.proposals import Proposal
from becket.app.record.patch import LONGEST_COMMENT, Comment, place_of
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.contract.run import ENDED, Started
from becket.parts.front.asked import Asked
from becket.parts.front.comments import add_comment, drop_comment, mark_sent, unsent
from becket.parts.front.routes import Go
from becket.parts.front.server import own_path

LONGEST_NOTE = 2_000


def _text(asked: Asked, name: str = "note", most: int = LONGEST_NOTE) -> str:
    text = asked.form.get(name, "").strip()
    if len(text) > most:
        raise UsageError(f"this may have {most:,} characters; it has {len(text):,}")
    return text


async def approve(asked: Asked) -> Go:
    return await _decide(asked, approve=True)


async def deny(asked: Asked) -> Go:
    return await _decide(asked, approve=False)


async def _decide(asked: Asked, *, approve: bool) -> Go:
    """About exactly what the page showed."""
    item = await asked.app.store.get_approval(asked.params["approval"])
    about = asked.form.get("bound_to", "")
    if about != item.bound_to:
        raise UsageError("the page that this was sent from is about something else; look at the question again")
    done = await desk.decide(asked.app, asked.caller(), item.approval_id, approve, about, _text(asked))
    return Go(f"/asks/approvals/{done.approval_id}", f"It is {done.state.value}.")


async def revoke(asked: Asked) -> Go:
    done = await desk.revoke(asked.app, asked.caller(), asked.params["approval"], _text(asked))
    return Go(f"/asks/approvals/{done.approval_id}", "It is taken back.")


async def take(asked: Asked) -> Go:
    return await _change(asked, HandoffState.taken, "It is yours. The commands below enter its tree.")


async def settle(asked: Asked) -> Go:
    return await _change(asked, HandoffState.done, "It is settled.")


async def _change(asked: Asked, state: HandoffState, said: str) -> Go:
    done = await desk.change_handoff(asked.app, asked.caller(), asked.params["handoff"], state, _text(asked))
    return Go(f"/asks/handoffs/{done.handoff_id}", said)


async def accept(asked: Asked) -> Go:
    seen = proposals.SeenProposal(asked.form.get("sha", ""), asked.form.get("head", ""))
    run_id = await asked.run_id()
    one, started = await proposals.accept(asked.app, asked.caller(), run_id, _text(asked), seen)
    at_work = started.run.run_id if started.run else ""
    if not started.created:
        return Go(f"/proposals/{run_id}", f"It was accepted already, by {one.handoff.taken_by}: {at_work} takes it.")
    how = "carries it over and proves it again first" if one.moved else "takes the proven commit itself"
    return Go(f"/proposals/{run_id}", f"Accepted: {at_work} {how}.")


async def decline(asked: Asked) -> Go:
    one = await proposals.decline(asked.app, asked.caller(), await asked.run_id(), _text(asked))
    return Go(f"/proposals/{one.run.run_id}", "Declined.")


async def comment(asked: Asked) -> Go:
    """Keep one; it is sent with the others. A note that stands beside it is still there afterwards."""
    one, place = await _kept(asked)
    note = f"?note={quote(_text(asked))}" if _text(asked) else ""
    return Go(f"/proposals/{one.run.run_id}{note}", f"Kept, about {place}; it is sent with your other comments.")


async def _kept(asked: Asked) -> tuple[Proposal, str]:
    text = asked.app.redactor.text(_text(asked, "text", LONGEST_COMMENT))
    path, line = _place(asked.form.get("at", ""))
    one = await proposals.standing(asked.app, await asked.run_id())
    if not text:
        raise UsageError("a comment is a text about a line of the change")
    if (await proposals.lines(asked.app, one)).line(path, line) is None:
        raise UsageError("the change has no such line; look at it again")
    await asked.tables.write(add_comment, one.run.run_id, one.sha, path, line, text, asked.who.name)
    return one, place_of(path, line)


def _place(text: str) -> tuple[str, int]:
    """As a link names it: `calc.py:3`, or `calc.py:-3` for a line that was removed."""
    path, _, number = text.rpartition(":")
    digits = number.removeprefix("-")
    return (path, int(number)) if digits.isascii() and digits.isdigit() and len(digits) < 10 else (text, 0)


async def uncomment(asked: Asked) -> Go:
    number, run_id = asked.form.get("number", ""), await asked.run_id()
    known = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0
    await asked.tables.write(drop_comment, known, run_id, asked.who.name)
    return Go(f"/proposals/{run_id}", "Removed.")


async def changes(asked: Asked) -> Go:
    """What was written about lines, kept or still open, and a note about the whole. Sent twice, it is the same wish."""
    run_id = await asked.run_id()
    if asked.form.get("text", "").strip():
        await _kept(asked)
    mine = await asked.tables.read(unsent, run_id, asked.who.name)
    said = [Comment(text=_text(asked)), *(Comment(path=one.path, line=one.line, text=one.text) for one in mine)]
    known = await proposals.standing(asked.app, run_id)
    if not any(each.text for each in said) and known.handoff.state is not HandoffState.changing:
        raise UsageError("say what shall be otherwise: write a note, or open a line of the diff by its number")
    one, started = await proposals.changes(asked.app, asked.caller(), run_id, said)
    at_work = started.run.run_id if started.run else ""
    await asked.tables.write(mark_sent, [each.number for each in mine], at_work)
    return Go(f"/proposals/{one.run.run_id}", f"Asked for another repair: {at_work} makes it.")


async def cancel(asked: Asked) -> Go:
    run = await desk.cancel(asked.app, asked.caller(), asked.params["run"], _text(asked))
    said = "It is stopped." if run.status in ENDED else "It is told to stop, and ends by itself."
    return Go(f"/runs/{run.run_id}", said)


async def retry(asked: Asked) -> Go:
    return _started(asked, await desk.retry(asked.app, asked.caller(), asked.params["run"]))


async def hold(asked: Asked) -> Go:
    run = await desk.hold(asked.app, asked.caller(), asked.params["run"], on=True)
    return Go(f"/runs/{run.run_id}", "It is held: nobody starts it until it is let go.")


async def release(asked: Asked) -> Go:
    run = await desk.hold(asked.app, asked.caller(), asked.params["run"], on=False)
    return Go(f"/runs/{run.run_id}", "It is let go.")


async def start(asked: Asked) -> Go:
    """With a subject or a commit, where the loop has one."""
    wish = desk.RunRequest(
        loop_id=asked.params["loop"], subject=_text(asked, "subject", 500) or None, sha=_text(asked, "sha", 200) or None
    )
    return _started(asked, await desk.start(asked.app, asked.caller(), wish))


def _started(asked: Asked, started: Started) -> Go:
    if started.run is None:
        raise UsageError(started.dropped or "nothing was started")
    said = "Started." if started.created else "This run answers already; nothing new was started."
    return Go(f"/runs/{started.run.run_id}", said)


async def pause(asked: Asked) -> Go:
    return await _brake(asked, on=True)


async def resume(asked: Asked) -> Go:
    return await _brake(asked, on=False)


async def _brake(asked: Asked, *, on: bool) -> Go:
    """One loop, or everything where the path names none."""
    loop_id = asked.params.get("loop")
    await desk.pause(asked.app, asked.caller(), loop_id, on, _text(asked))
    what = loop_id or "Everything"
    said = f"{what} is paused; what is at work goes on to its end." if on else f"{what} goes on."
    return Go(own_path(asked.form.get("back") or (f"/loops/{quote(loop_id)}" if loop_id else "/")), said)
