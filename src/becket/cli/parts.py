"""`becket parts`: what is installed, and what each part brings."""

from __future__ import annotations

from becket.cli.output import columns, emit
from becket.cli.shape import AsJson, group
from becket.kernel.contract.part import Part

parts = group("List the parts that are installed, and what each brings.", bare="list")


@parts.command("list")
def list_parts(as_json: AsJson = False) -> None:
    """List the parts that are installed, and what each brings."""
    from becket.app.parts import installed, part_names

    found = [(part, part_names(part.name)) for part in installed()]
    if as_json:
        emit([{"part": part.name, "from": home, "needs": list(part.needs), **_brings(part)} for part, home in found])
        return
    rows = [[part.name, home, ", ".join(part.needs) or "-", _told(part)] for part, home in found]
    columns(("PART", "FROM", "NEEDS", "BRINGS"), rows)


def _brings(part: Part) -> dict[str, list[str]]:
    """By name where a name says more than a number; nothing is loaded for it."""
    said = {
        "verbs": [verb.name for verb in part.verbs],
        "loops": list(part.loops),
        "sections": list(part.sections),
        "checks": list(part.checks),
        "residents": [target.rpartition(":")[2] for target in part.residents],
        "chores": [chore.target.rpartition(":")[2] for chore in part.chores],
    }
    for name in (
        "actions",
        "verifiers",
        "effects",
        "ports",
        "recover",
        "watched",
        "greeting",
        "channel",
        "tables",
        "secrets",
        "evidence",
    ):
        if getattr(part, name):
            said[name] = []
    return {name: names for name, names in said.items() if names or name not in _NAMED}


_NAMED = ("verbs", "loops", "sections", "checks", "residents", "chores")


def _told(part: Part) -> str:
    return "; ".join(name + (f" {' '.join(names)}" if names else "") for name, names in _brings(part).items())
