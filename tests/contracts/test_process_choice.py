"""Contract of the process port: the sandbox that is chosen is the best that works, and a refusal says what to do."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from process_stage import LANDLOCK_WORKS

from becket.adapters.process import available, choose
from becket.contract.errors import UsageError
from becket.contract.process import SandboxKind


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
