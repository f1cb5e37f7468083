"""Contract of the agents' drivers: a model behind TLS is reached through the proxy alone, and no other host is.

The certificate authority is the test's own; the hosts of real vendors are not tried.
"""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_stage import CLAUDE, CODEX, GEMINI, AgentStage, Kind, asks_the_proxy_for_elsewhere, make_stage, repairs

from becket.kernel.contract.agent import AgentOutcome
from becket.testing.model import ScriptedModel

HOST = "model.test"
IN_HOME = "trust/ca.pem"
INSIDE = f"/run/becket/home/{IN_HOME}"
TRUST = {"codex": "SSL_CERT_FILE", "claude": "NODE_EXTRA_CA_CERTS", "gemini": "NODE_EXTRA_CA_CERTS"}
KINDS = [
    *(pytest.param(kind, id=f"real-{kind.program}", marks=pytest.mark.agents) for kind in (CODEX, CLAUDE, GEMINI)),
    *(pytest.param(Kind(name, sandbox=CODEX.sandbox), id=f"fake-{name}", marks=pytest.mark.slow) for name in TRUST),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca.pem`, and `model.pem` and `model.key` of the host that it vouches for."""
    folder = tmp_path_factory.mktemp("authority")
    openssl(folder, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=suite-authority -keyout ca.key -out ca.pem")
    openssl(folder, f"req -newkey rsa:2048 -nodes -subj /CN={HOST} -keyout model.key -out model.csr")
    (folder / "names").write_text(f"subjectAltName=DNS:{HOST}\nbasicConstraints=CA:FALSE\n")
    openssl(folder, "x509 -req -in model.csr -CA ca.pem -CAkey ca.key -days 2 -extfile names -out model.pem")
    return folder


def openssl(folder: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def stage(kind: Kind, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentStage]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "model.pem", authority / "model.key")

    async def resolve(host: str, port: int) -> Sequence[tuple[str, int]]:
        return [("127.0.0.1", port)] if host == HOST else []

    with ScriptedModel(context=context) as model:
        made = make_stage(tmp_path, kind, model, monkeypatch, resolve)
        (made.home / "ca.pem").write_bytes((authority / "ca.pem").read_bytes())
        yield made
    model.check()
    assert made.left() == []


def by_name(stage: AgentStage, *, trusted: bool = True) -> dict[str, Any]:
    """What a user writes whose gateway has a certificate of the company's own authority."""
    place = f"{HOST}:{stage.model.port}"
    trust = {TRUST[stage.kind.program]: INSIDE} if trusted else {}
    given: dict[str, Any] = {"credentials": [{"file": "~/ca.pem", "as": IN_HOME}], "set": trust}
    if stage.kind.program == "gemini":
        return {**given, "hosts": [place], "set": {**trust, "GOOGLE_GEMINI_BASE_URL": f"https://{place}"}}
    return {**given, "endpoint": f"https://{place}{'/v1' if stage.kind.program == 'codex' else ''}"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_behind_tls_is_reached_through_the_proxy(stage: AgentStage) -> None:
    done = stage.call(*repairs(), **by_name(stage))
    assert done.judged.outcome is AgentOutcome.changed, done.report
    assert len(stage.model.requests) >= 2
    assert done.report.denied == ()


@pytest.mark.parametrize("kind", KINDS)
def test_another_host_is_denied_and_named_while_the_model_is_reached(stage: AgentStage) -> None:
    done = stage.call(*asks_the_proxy_for_elsewhere(), **by_name(stage))
    assert "403" in (stage.tree / "told.txt").read_text(), done.report
    assert done.report.denied == ("elsewhere.test:443",)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_certificate_that_nobody_vouches_for_ends_the_call(stage: AgentStage) -> None:
    """The real codex says so only after a minute of trying."""
    done = stage.call(**by_name(stage, trusted=False))
    assert done.judged.outcome in (AgentOutcome.model_error, AgentOutcome.crashed), done.report
    assert stage.model.requests == ()
