"""Contract of the process port: the sandbox that is chosen is the best that works, and a refusal says what to do."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from process_stage import LANDLOCK_WORKS

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import SandboxKind
from becket.kernel.process import available, choose
from becket.kernel.process.choice import SandboxUnavailable, SandboxUndecided, answer_of


def test_every_kind_is_offered_or_explained() -> None:
    """Doctor hears of each kind what it holds here, or why it does not work (L37)."""
    offers = available()
    assert [offer.kind for offer in offers] == [SandboxKind.bwrap, SandboxKind.landlock, SandboxKind.none]
    for offer in offers:
        assert (offer.holds is None) is bool(offer.reason)


def test_auto_takes_the_best_that_works() -> None:
    best = next(offer for offer in available() if offer.holds is not None)
    assert choose("auto").holds() == best.holds


def test_missing_bubblewrap_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for what is not installed is a usage error that names the package; auto goes on without it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"`bwrap` cannot be used: .*apt install bubblewrap"):
        choose(SandboxKind.bwrap)
    assert choose("auto").kind is (SandboxKind.landlock if LANDLOCK_WORKS else SandboxKind.none)


def test_broken_bubblewrap_is_refused_with_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bwrap that cannot make namespaces is not taken for a sandbox."""
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"No permissions to create new namespace.* Allow user namespaces"):
        choose(SandboxKind.bwrap)
    assert choose("auto").kind is not SandboxKind.bwrap


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)
    return path


SLOW_ONCE = """
import pathlib, sys, time
been = pathlib.Path(sys.argv[0] + ".been")
if not been.exists():
    been.touch()
    time.sleep({seconds})
"""


def test_a_probe_that_is_slow_once_is_made_again(tmp_path: Path) -> None:
    slow = program(tmp_path / "slow", SLOW_ONCE.format(seconds=60))
    assert answer_of([str(slow)], (1.0, 30.0)).returncode == 0


def test_slowness_is_no_answer(tmp_path: Path) -> None:
    """Only the program itself can say that it does not work; else the step fails by its environment."""
    slow = program(tmp_path / "slow", "import time; time.sleep(60)")
    with pytest.raises(SandboxUndecided, match="2 tries gave no answer") as caught:
        answer_of([str(slow)], (0.1, 0.1))
    assert caught.value.kind == "environment"


def test_a_program_that_cannot_be_run_is_an_answer(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/nowhere/at/all\n")
    broken.chmod(0o755)
    with pytest.raises(SandboxUnavailable, match="No such file"):
        answer_of([str(broken)])


@pytest.mark.slow
def test_a_slow_bubblewrap_is_not_left_for_a_weaker_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bwrap", SLOW_ONCE.format(seconds=7))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose("auto").kind is SandboxKind.bwrap


def test_landlock_works_or_is_refused_with_advice() -> None:
    """Where the kernel has landlock it is taken; elsewhere the refusal names the kernel that has."""
    if LANDLOCK_WORKS:
        assert choose(SandboxKind.landlock).kind is SandboxKind.landlock
    else:
        with pytest.raises(UsageError, match=r"Linux 5\.13|lsm="):
            choose(SandboxKind.landlock)


def test_none_always_works_and_holds_nothing() -> None:
    holds = choose(SandboxKind.none).holds()
    assert holds.missing == ("files", "processes", "network")


@pytest.mark.slow
def test_probing_is_cheap() -> None:
    """A start of Becket may probe every kind (the best of five tries, as other work may be going on)."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        available()
        seconds.append(time.perf_counter() - began)
    assert min(seconds) < 0.3
