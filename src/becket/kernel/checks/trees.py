"""Is the resident tree what Becket made?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from becket.kernel.checks import words
from becket.kernel.checks.facts import Diagnosis, Exam, Level, TreeFact
from becket.kernel.contract.git import TreeHealth


def resident(exam: Exam) -> Iterator[Diagnosis]:
    """What contained programs did to it (L9)."""
    fact = exam.facts.look_at_tree()
    if fact is None:
        return
    yield _diagnosis(fact)
    for path in fact.aside:
        mend = f"rm -rf -- {shlex.quote(str(path))}"
        yield Diagnosis(name="tree", level=Level.warn, what=words.TREE_ASIDE, mend=mend, where=str(path))


def _diagnosis(fact: TreeFact) -> Diagnosis:
    place = str(fact.path)
    match fact.health:
        case TreeHealth.none:
            return Diagnosis(name="tree", level=Level.ok, what=words.TREE_NONE)
        case TreeHealth.good:
            return Diagnosis(name="tree", level=Level.ok, what=words.TREE_OK, where=place)
        case TreeHealth.damaged:
            mend = "becket worktree ensure"
            return Diagnosis(name="tree", level=Level.warn, what=words.TREE_DAMAGED, mend=mend, where=place)
        case TreeHealth.pruned:
            mend = "becket worktree ensure"
            return Diagnosis(name="tree", level=Level.warn, what=words.TREE_PRUNED, mend=mend, where=place)
        case TreeHealth.foreign:
            mend = words.TREE_FOREIGN_MEND.format(path=shlex.quote(place))
            return Diagnosis(name="tree", level=Level.error, what=words.TREE_FOREIGN, mend=mend, where=place)
        case TreeHealth.blocked:
            mend = words.TREE_BLOCKED_MEND.format(path=shlex.quote(place))
            return Diagnosis(name="tree", level=Level.error, what=words.TREE_BLOCKED, mend=mend, where=place)
