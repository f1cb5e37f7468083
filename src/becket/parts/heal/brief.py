"""The brief for the agent: the failing evidence first, bounded and fenced (L24), then the rules of the guard."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from importlib.resources import files
from typing import Annotated

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.candidate import Candidates
from becket.kernel.contract.config import Config
from becket.kernel.contract.made import BaseSha, BaseVerdicts, takes
from becket.kernel.contract.project import Projects
from becket.kernel.contract.proposal import Proposals
from becket.kernel.contract.ready import CHANGES
from becket.kernel.contract.template import fill
from becket.kernel.contract.text import fenced
from becket.parts.gates.reports.formats import PLAIN_ID
from becket.parts.gates.section import GATES
from becket.parts.guard.actions.side import side_of, tests_run
from becket.parts.guard.reading.briefing import rules_in_words
from becket.parts.heal.actions.fix import fixer_of
from becket.parts.heal.actions.holdout import FAILED, TOLD_TO_THE_FIXER, about_base

MOST_NAMED = 40
OTHERS = "{} more lines are not shown: they name no test of the base, and its steps are given variables of their own"
SUMMARY_LIMIT, DIFF_LIMIT, FEEDBACK_LIMIT = 14_000, 8_000, 4_000
CHANGE_LIMIT, ASKED_LIMIT = 24_000, 16_000
SKILLS = ("test-driven-development", "verify-before-complete")
"""Built-in skills that are written for this work."""
SENT_BACK = """\
The guard did not let an earlier try through. It names each place, with the rule it breaks or the power it adds:
{}
Make the repair without these. If it needs one of them, leave it, and say in your last message which one and why: a
person decides. The same change again is not sent back a second time."""

TO_CHANGE = """\
There is a repair already, and a person looked at it and wants it otherwise. This checkout is without it. Its change:
{change}
What the person says of it, some of it about single lines. It tells what the repair shall be like, and is leave for
nothing else that you may not do:
{asked}
Make the repair anew, with what they ask for."""


class BriefParams(Record):
    """All but `base` are artifacts or short texts; empty where there is nothing.

    `commits` says for each summary what it is about: one of an earlier base would lead the agent astray. The last five
    tell why an earlier try did not count.
    """

    base: BaseSha
    summaries: Annotated[tuple[str, ...], takes("base.summary", each=True)]
    commits: Annotated[tuple[str, ...], takes("base.commit", each=True)] = ()
    failing: Annotated[tuple[str, ...], takes("plan.failing")] = ()
    failed: Annotated[int, takes("plan.failed")] = 0
    verdicts: BaseVerdicts = ()
    culprit: Annotated[str, takes("culprit.sha")] = ""
    culprit_subject: str = ""
    diff: Annotated[str, takes("culprit.diff")] = ""
    sent_back: Annotated[tuple[str, ...], takes("guard.sent_back")] = ()
    against: Annotated[tuple[str, ...], takes("crossing.against")] = ()
    tried: Annotated[tuple[str, ...], takes("candidate.summary", each=True)] = ()
    tried_failing: Annotated[tuple[tuple[str, ...], ...], takes("candidate.failing", each=True)] = ()
    held_out: Annotated[str, takes("holdout.state")] = ""


async def brief(context: ActionContext, params: BriefParams) -> Result:
    config = await context.port(Projects).committed(params.base)
    fence = secrets.token_hex(6)
    digests = about_base(params.summaries, params.commits, params.base)
    evidence = "\n\n".join([await _text(context, digest) for digest in digests])
    steps = [f"- {gate}: `{step.run}`" for gate, steps in config.section(GATES).items() for step in steps]
    known = {
        "base": params.base[:12],
        "evidence": fenced(evidence, fence, SUMMARY_LIMIT),
        "culprit": await _culprit(context, params, fence),
        "before": await _before(context, params, config, fence),
        "gates": "\n".join(steps),
        "skills": _skills(context),
        "rules": rules_in_words(config, await side_of(context, params.base, params.verdicts)),
    }
    template = (files(__package__) / "prompts" / "fix.md").read_text("utf-8")
    text = fill(template, known.__getitem__)
    outputs: dict[str, Json] = {
        "text": await context.keep(text.encode(), "brief.md"),
        "subject": _subject(params.failing, params.failed),
    }
    return Result(outputs=outputs)


def _skills(context: ActionContext) -> str:
    """Named only where the agent is given them: by its own `skills`, or all of them where it says nothing."""
    config = context.port(Projects).current()
    agent = config.agents.get(fixer_of(config) or "")
    if agent is None or agent.skills == ():
        return ""
    place = "$BECKET_SKILLS" if agent.driver == "command" else "your HOME"
    names = SKILLS if agent.skills is None else agent.skills
    return f"There are skills for this work in {place}; use them: {', '.join(names)}."


def _subject(failing: tuple[str, ...], failed: int) -> str:
    """What a reader of the history wants to know: which tests it repairs."""
    if not failing:
        return "Repair the gate"
    more = max(failed, len(failing)) - 1
    return f"Repair {_short_name(failing[0])}" + (f" and {more} more" if more else "")


def _short_name(failing: str) -> str:
    """A step that names no tests speaks for itself: its own name is what is known."""
    step, _, test = failing.partition(": ")
    return step if test == PLAIN_ID else failing.rpartition("::")[2].rpartition(": ")[2]


async def _text(context: ActionContext, digest: str) -> str:
    return (await context.read(digest)).decode(errors="replace") if digest else ""


async def _culprit(context: ActionContext, params: BriefParams, fence: str) -> str:
    if not params.culprit:
        return "Which commit broke it is not known."
    shown = fenced(await _text(context, params.diff), fence, DIFF_LIMIT)
    return f"It broke with the commit {params.culprit[:12]}. Its change:\n{shown}"


async def _before(context: ActionContext, params: BriefParams, config: Config, fence: str) -> str:
    """Why earlier tries did not count: the guard's words, the crossing, the candidate's own gates."""
    asked, guard = await _to_change(context, fence), _sent_back(params.sent_back, fence)
    parts = await _known_alone(context, params) if _gives_more(config) else await _as_said(context, params)
    if params.held_out == FAILED:
        parts.append(TOLD_TO_THE_FIXER)
    text = "\n".join(part for part in parts if part.strip())
    failed = "An earlier try was not proven. Why:\n" + fenced(text, fence, FEEDBACK_LIMIT) if text else ""
    return "\n\n".join(part for part in (asked, guard, failed) if part)


async def _to_change(context: ActionContext, fence: str) -> str:
    """What a person wants of an earlier repair. Their words and the change are material like all else (L24)."""
    left_by = str(context.run.inputs.get(CHANGES) or "")
    if not left_by:
        return ""
    word = await context.port(Proposals).changes(left_by)
    patch = await context.port(Candidates).patch(word.parent, word.sha)
    change = fenced(patch.decode(errors="replace"), fence, CHANGE_LIMIT)
    return TO_CHANGE.format(change=change, asked=fenced(word.text, fence, ASKED_LIMIT))


async def _as_said(context: ActionContext, params: BriefParams) -> list[str]:
    return [*params.against, *[await _text(context, digest) for digest in params.tried]]


def _gives_more(config: Config) -> bool:
    """Is there something that steps see and an agent does not?"""
    return any(step.env or step.set or step.env_file for steps in config.section(GATES).values() for step in steps)


async def _known_alone(context: ActionContext, params: BriefParams) -> list[str]:
    """What the agent's own code said in a step could carry what that was given: only names that base knows are told."""
    ran = await tests_run(context, params.base, params.verdicts)
    known = ran.ids | {name.partition(": ")[2] for name in params.failing}
    said = [*params.against, *(name for names in params.tried_failing for name in names)]
    named = sorted(name for name in known if name and any(name in line for line in said))
    others = sum(not any(name in line for name in named) for line in said)
    left = [f"and {len(named) - MOST_NAMED} more tests"] if len(named) > MOST_NAMED else []
    return [
        *(f"{name} did not pass, or did not run" for name in named[:MOST_NAMED]), *left,
        *([OTHERS.format(others)] if others else []),
    ]  # fmt: skip


def _sent_back(words: Sequence[str], fence: str) -> str:
    """Whole in the fence: the guard's words name files and quote lines that an agent wrote."""
    return SENT_BACK.format(fenced("\n".join(words), fence, FEEDBACK_LIMIT)) if words else ""


BRIEF = ActionDef(
    name="heal.brief",
    summary="Write the agent's brief from the failing evidence.",
    run=brief,
    params=BriefParams,
    outputs=("text", "subject"),
    about="brief",
)
