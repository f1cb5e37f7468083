"""The demo's story fits a screen of 24 rows and 80 columns, whatever sandbox a machine has."""

from __future__ import annotations

from itertools import product

import pytest

from becket.kernel.contract.process import Holds, SandboxKind
from becket.parts.demo.verbs.telling import contained, paragraph


@pytest.mark.parametrize("kind", SandboxKind)
def test_what_the_sandbox_holds_is_one_line_and_names_all_three(kind: SandboxKind) -> None:
    for files, processes, network in product((True, False), repeat=3):
        said = contained(Holds(kind=kind, files=files, processes=processes, network=network))
        (only,) = paragraph(said, "  - ").splitlines()
        assert all(name in only for name in ("files", "processes", "network")), only


def test_what_is_not_held_is_said() -> None:
    part = contained(Holds(kind=SandboxKind.landlock, files=True, processes=False, network=False))
    assert part == "Sandbox landlock: the agent was kept off files, not processes and network."
    nothing = contained(Holds(kind=SandboxKind.none, files=False, processes=False, network=False))
    assert nothing == "No sandbox works here: files, processes and network were open to the agent."
    everything = contained(Holds(kind=SandboxKind.bwrap, files=True, processes=True, network=True))
    assert everything == "Sandbox bwrap: the agent was kept off your files, processes and network."
