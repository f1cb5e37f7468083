"""Which key of becket.yaml is named for a step that is red."""

from __future__ import annotations

import pytest

from becket.app.sections import config_model
from becket.kernel.contract.gate import GateColor, StepTrouble, TriedStep
from becket.kernel.contract.process import Network
from becket.parts.gates.likely_key import likely
from becket.parts.gates.section import GateStep, SetupConfig

UNIT, LINT = GateStep(name="unit", run="x", report="junit:r.xml"), GateStep(name="lint", run="y")
CONFIG = config_model()(
    version=1, gates={"fast": (UNIT,), "slow": (UNIT.model_copy(update={"name": "e2e"}), LINT)},
    setup=SetupConfig(run="pip install x", key=("r.txt",)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("gate", "step", "trouble", "problem", "said", "key"),
    [
        ("fast", "unit", StepTrouble.timeout, "", "", "gates.fast[0].timeout"),
        ("fast", "unit", StepTrouble.no_report, "", "", "gates.fast[0].report"),
        ("fast", "unit", StepTrouble.no_tests, "", "", "gates.fast[0].run"),
        ("slow", "lint", StepTrouble.environment, "tool: sh: 1: y: not found", "", "gates.slow[1].run"),
        ("slow", "e2e", StepTrouble.environment, "network: Could not resolve host: a.b", "", "gates.slow[0].network"),
        (
            "fast",
            "unit",
            StepTrouble.environment,
            "network: ERR_PNPM_META_FETCH_FAIL GET https://a.b/pnpm: getaddrinfo",
            "",
            "gates.fast[0].run",
        ),
        ("fast", "unit", StepTrouble.environment, "module: No module named 'six'", "", "setup.run"),
        ("fast", "unit", StepTrouble.environment, "tool: python3: No module named pytest", "", "setup.run"),
        ("fast", "unit", StepTrouble.environment, "read-only: EROFS: open '/s/x'", "", "gates.fast[0].run"),
        ("fast", "unit", StepTrouble.code, "", "E   KeyError: 'DATABASE_URL'", "gates.fast[0].env"),
        ("fast", "unit", StepTrouble.code, "", "E   assert 1 == 2", "gates.fast[0].run"),
        ("slow", "lint", StepTrouble.code, "", "[warn] .becket/loops/hello.yaml", "gates.slow[1].run"),
        ("", "setup", StepTrouble.environment, "", "Temporary failure in name resolution", "setup.network"),
        ("", "setup", StepTrouble.environment, "", "SSLError: CERTIFICATE_VERIFY_FAILED", "setup.env"),
        (
            "",
            "setup",
            StepTrouble.environment,
            "",
            "Could not open requirements: No such file or directory",
            "setup.key",
        ),
        ("", "setup", StepTrouble.environment, "", "error: compiler", "setup.run"),
    ],
)
def test_the_key_to_begin_with(gate: str, step: str, trouble: StepTrouble, problem: str, said: str, key: str) -> None:
    tried = TriedStep(gate=gate, step=step, color=GateColor.red, trouble=trouble, problem=problem, log="l", exit_code=1)
    assert likely(tried, CONFIG, said).key == key


def test_a_step_that_hangs_is_told_with_the_command_that_did() -> None:
    tried = TriedStep(
        gate="slow", step="lint", color=GateColor.red, trouble=StepTrouble.timeout, at_work="npm exec aud"
    )
    assert likely(tried, CONFIG, "").say.startswith("`npm exec aud` did not end in time")


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("PermissionError: [Errno 13] Permission denied: '/srv/wheels'", "sandbox.readable"),
        (
            "WARNING: Location '/srv/wheels' is ignored: it is a non-existing path\nERROR: No matching distribution",
            "sandbox.readable",
        ),
        ("PermissionError: [Errno 13] Permission denied: '/usr/lib/x'", "setup.run"),
        ("PermissionError: [Errno 13] Permission denied: 'made/x'", "setup.run"),
        ("PermissionError: [Errno 13] Permission denied: '/r/.git/becket/setups/a/tree/x'", "setup.run"),
    ],
)
def test_a_place_of_the_tools_own_settings_that_is_not_seen_is_named(said: str, key: str) -> None:
    step = TriedStep(gate="", step="setup", color=GateColor.red, trouble=StepTrouble.environment, log="l", exit_code=1)
    found = likely(step, CONFIG, f"first\n{said}\nlast")
    assert found.key == key
    assert ("`sandbox: {readable: [/srv/wheels]}`" in found.say) == (found.key == "sandbox.readable")


UNRESOLVED = "ssh: Could not resolve hostname git.example.org: Name or service not known"
ONLINE = CONFIG.model_copy(
    update={
        "setup": SetupConfig(run="x", key=("r",), network=Network.full),
        "gates": {"fast": (UNIT.model_copy(update={"network": Network.full}),)},
    }
)


@pytest.mark.parametrize(
    "said", [UNRESOLVED, "Temporary failure in name resolution", "npm error network request to x failed"]
)
def test_a_host_that_is_not_reached_with_the_network_is_told_alike_of_a_set_up_and_a_step(said: str) -> None:
    setup = TriedStep(gate="", step="setup", color=GateColor.red, trouble=StepTrouble.environment, log="l", exit_code=1)
    step = TriedStep(
        gate="fast", step="unit", color=GateColor.red, trouble=StepTrouble.environment, problem=f"network: {said}"
    )
    of_setup, of_step = likely(setup, ONLINE, f"first line\n{said}\nthe end"), likely(step, ONLINE, "")
    assert (of_setup.key, of_step.key) == ("setup.env", "gates.fast[0].env")
    assert of_setup.say == of_step.say
    assert said in of_setup.say
    assert "HTTPS_PROXY" in of_setup.say


@pytest.mark.parametrize(
    "said",
    [
        "npm error 404 Not Found - GET https://registry.example.org/no-such",
        "ERROR: No matching distribution found for no-such",
    ],
)
def test_what_the_registry_does_not_have_is_no_missing_key_file(said: str) -> None:
    tried = TriedStep(gate="", step="setup", color=GateColor.red, trouble=StepTrouble.environment, log="l", exit_code=1)
    found = likely(tried, ONLINE, f"one\n{said}\n")
    assert found.key == "setup.run"
    assert f"the registry does not have what is asked for ({said})" in found.say
