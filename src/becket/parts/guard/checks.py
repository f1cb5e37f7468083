"""What the doctor looks at: how far changes are trusted."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.checks import words
from becket.kernel.checks.configuration import place_of
from becket.kernel.checks.facts import Diagnosis, Exam, Level
from becket.kernel.contract.config import Config
from becket.kernel.contract.globs import matches
from becket.kernel.contract.guard import ChangeClass
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.trust import trust_words
from becket.parts.gates.section import GATES
from becket.parts.guard.section import GUARD, TEST_SIDE

NO_FILE = ("\x01", "\x01/\x01/\x01")
"""Paths that only a pattern which names everything names too."""
EVERYTHING = "`{key}` names every file with {pattern}: {so}"
EVERYTHING_MEND = "name only what is meant, such as `{key}: [{example}]`"
MEANS = {
    "guard.protected": ("no repair can be let through", "LICENSE"),
    "test_side": ("every change counts as a change of tests", "tests/**"),
}
PATTERNS_OK = "no pattern of becket.yaml names every file"


def trust(exam: Exam) -> Iterator[Diagnosis]:
    """Which classes of changes are promoted by themselves; the widest trust is told in so many words."""
    config = exam.config
    if config is None:
        return
    if words_of_trust := trust_words(config.section(GUARD).promote):
        where = place_of(exam, "promote: powerful")
        yield Diagnosis(name="trust", level=Level.warn, what=words_of_trust, mend=words.TRUST_MEND, where=where)
    elif _has_nobody_for_ordinary(config) and (why := _held_out_by_nobody(exam, config)):
        what, mend = words.NO_HOLD_OUT_EVER.format(autonomy=config.autonomy, why=why), words.NO_HOLD_OUT_EVER_MEND
        yield Diagnosis(name="trust", level=Level.warn, what=what, mend=mend, where=place_of(exam, "gates:"))
    elif _has_nobody_for_ordinary(config):
        yield Diagnosis(
            name="trust",
            level=Level.warn,
            what=words.NO_HOLD_OUT.format(autonomy=config.autonomy),
            mend=words.NO_HOLD_OUT_MEND.format(agent=next(iter(config.agents))),
            where=place_of(exam, "heal:"),
        )
    else:
        yield Diagnosis(name="trust", level=Level.ok, what=words.TRUST_OK.format(promote=config.section(GUARD).promote))


def patterns(exam: Exam) -> Iterator[Diagnosis]:
    """A pattern that names all there is leaves nothing that a repair may touch."""
    config = exam.config
    if config is None:
        return
    told = {"guard.protected": config.section(GUARD).protected, "test_side": config.section(TEST_SIDE)}
    wide = [
        (key, each) for key, each_of in told.items() for each in each_of if all(matches(no, [each]) for no in NO_FILE)
    ]
    for key, pattern in wide:
        so, example = MEANS[key]
        what, mend = (
            EVERYTHING.format(key=key, pattern=pattern, so=so),
            EVERYTHING_MEND.format(key=key, example=example),
        )
        yield Diagnosis(name="patterns", level=Level.warn, what=what, mend=mend, where=place_of(exam, pattern))
    if not wide:
        yield Diagnosis(name="patterns", level=Level.ok, what=PATTERNS_OK)


def _has_nobody_for_ordinary(config: Config) -> bool:
    """May main move by itself, and nobody writes the checks that an ordinary repair needs for that?"""
    promotes = config.autonomy.allows(Autonomy.merge) and config.section(GUARD).promote is ChangeClass.ordinary
    return promotes and bool(config.agents) and config.heal.hold_out is None


def _held_out_by_nobody(exam: Exam, config: Config) -> str:
    """Why an agent that writes checks would not help either."""
    if all(step.report == "plain" for steps in config.section(GATES).values() for step in steps):
        return words.NO_NAMES
    return exam.facts.not_held_out()
