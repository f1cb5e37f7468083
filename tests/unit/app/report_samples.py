"""Reports of several kinds, made by hand: what a page must show well, whatever a run left."""

from __future__ import annotations

from becket.app.record.report import model as told
from becket.app.record.report.diff import files_of, shortened
from becket.kernel.contract.trust import ALL_TRUSTED

BASE, CANDIDATE, DIGEST = "b" * 40, "c" * 40, "d" * 64
BEGAN = 1_700_000_000.0


def patch(*files: tuple[str, int]) -> str:
    return "".join(
        f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1,{count} +1,{count} @@ f\n"
        + "".join(f"-    old = {line}\n+    new = {line} * 2\n     same = {line}\n" for line in range(count))
        for path, count in files
    )


def step(name: str, seconds: float, state: str = "done", **more: object) -> told.StepFacts:
    empty = {"attempts": 1, "raised": (), "note": "", "error": ""}
    return told.StepFacts.model_validate({**empty, "id": name, "state": state, "seconds": seconds, **more})


def phase(name: str, *steps: told.StepFacts, iteration: int = 1, decision: str = "") -> told.PhaseFacts:
    return told.PhaseFacts(
        iteration=iteration, phase=name, objective=f"Do what {name} is for.", seconds=sum(one.seconds for one in steps),
        steps=steps, decision=decision,
    )  # fmt: skip


def call(agent: str, outcome: str, usd: float = 0.0, priced: str = "vendor", **more: object) -> told.CallFacts:
    facts = {
        "iteration": 1, "action": "fix", "agent": agent, "driver": "command", "model": "large-1", "version": "1.2",
        "outcome": outcome, "reason": "", "began_at": BEGAN, "seconds": 93.4, "turns": 12, "input_tokens": 184_220,
        "cached_tokens": 150_000, "output_tokens": 9_120, "usd": usd, "priced": priced, "over": (),
    }  # fmt: skip
    return told.CallFacts.model_validate({**facts, **more})


def change(text: str) -> told.ChangeFacts:
    diff, left_out = shortened(text)
    return told.ChangeFacts(
        iteration=1, action="cand", kind="repair", commit=CANDIDATE, parent=BASE, patch=DIGEST,
        files=tuple(files_of(text)), diff=diff, left_out=left_out,
    )  # fmt: skip


def gate(
    of: str, color: str, *, failing: tuple[str, ...] = (), summary: str = "", name: str = "fast"
) -> told.GateFacts:
    only = told.GateStepFacts(
        step="unit", color=color, tests_run=214, seconds=12.3, exit_code=0, end="exited",
        failing=failing, failed=len(failing),
        reasons=(f"{len(failing)} of 214 fail",) if failing else (), receipt=DIGEST, log=DIGEST, reused_from="",
    )  # fmt: skip
    return told.GateFacts(
        iteration=1, action="gate", of=of, gate=name, commit=BASE, defined_by=BASE, color=color, receipt=DIGEST,
        steps=(only,), summary=summary,
    )  # fmt: skip


def run(status: str, reason: str = "", **more: object) -> told.RunFacts:
    facts = {
        "run_id": "run_1m7hddegfsyrkje7", "loop_id": "heal", "goal": "The head of main is proven green.",
        "subject": f"main@{BASE}", "status": status, "reason": reason, "detail": {}, "trigger": "commit",
        "by": "becket", "dry_run": False, "autonomy": None, "iterations": 1, "began_at": BEGAN,
        "ended_at": BEGAN + 5025, "seconds": 5025.0, "worked": 611.0, "retry_of": None, "spec_digest": DIGEST,
        "chain_head": DIGEST,
    }  # fmt: skip
    return told.RunFacts.model_validate({**facts, **more})


def report(facts: told.RunFacts, **parts: object) -> told.Report:
    return told.Report.model_validate({"made_at": BEGAN + 6000, "run": facts, **parts})


TEST = "tests/test_orders.py::TestTotals::test_rounding[eur-half-up]"
PHASES = (
    phase("discover", step("base", 0.1), step("gate", 41.2, raised=("base.code_red",))),
    phase("act", step("move", 0.0, "skipped", note="`a` does not hold"), step("fix", 402.0, attempts=2)),
    phase("decide", step("promote", 2.0, raised=("promoted",)), decision="completed: stop_conditions_met"),
)


def proven() -> told.Report:
    """A repair by agents that cost money, with a diff too long to unfold."""
    crossed = told.CrossedTest(gate="fast", step="unit", test=TEST, parent=DIGEST, child=DIGEST, against=())
    crossing = told.CrossingFacts(
        iteration=1, base=BASE, candidate=CANDIDATE, tried=CANDIDATE, says="crossed", receipt=DIGEST, tests=(crossed,)
    )
    proof = told.ProofFacts(
        iteration=1, base=BASE, candidate=CANDIDATE, says="proven", receipt=DIGEST, gates={"fast": DIGEST},
        parts={"guard": DIGEST}, reused={}, against=(),
    )  # fmt: skip
    receipt = told.ReceiptFacts(
        digest=DIGEST, iteration=1, phase="verify", action="gate", kind="gate", command=("python", "-m", "pytest"),
        tree=DIGEST, exit_code=0, log=DIGEST, seconds=12.3,
    )  # fmt: skip
    return report(
        run("completed", "stop_conditions_met"),
        phases=PHASES,
        gates=(
            gate("base", "red", failing=(TEST,), summary=f"FAIL {TEST}\nassert 1 == 2\n"),
            gate("candidate", "green"),
        ),
        crossings=(crossing,),
        proofs=(proof,),
        changes=(change(patch(("src/orders/totals.py", 4), ("src/orders/long.py", 700), ("src/orders/end.py", 300))),),
        calls=(
            call("fixer", "crashed", 0.4211, reason="the program ended with 1"),
            call("fixer", "changed", 1.2083, over=("tokens",)),
            call("second", "changed", priced="unknown"),
        ),
        receipts=(receipt,) * 3,
        spend={"usd": 1.6294, "tokens": 580_020.0, "agent_time": 280.2},
        conditions=(told.ConditionFacts(name="base.code_red", at=BEGAN, evidence={"gate": "fast"}),),
    )


def asking() -> told.Report:
    """It ended at a person: an open handoff, and a question that is bound to a diff."""
    handoff = told.HandoffFacts(
        handoff_id="hnd_1m7hddegfsyrkje8", owner="team-orders", reason="candidate.test_change_asked",
        next_step="Decide whether the test or the code is wrong; then approve or deny.", state="open", taken_by=None,
        commands=("git show refs/becket/candidate/1", "becket runs retry run_1m7hddegfsyrkje7"),
    )  # fmt: skip
    approval = told.ApprovalFacts(
        approval_id="apr_1m7hddegfsyrkje9", bound_to=DIGEST, state="asked", decided_by=None,
        question="May tests/test_orders.py change?\nThe agent says that the old rounding was agreed to be wrong.",
    )  # fmt: skip
    return report(
        run("ready_for_handoff", "candidate.test_change_asked", iterations=2),
        phases=(*PHASES[:2], phase("act", step("fix", 9, "failed", error="timeout: it took too long"), iteration=2)),
        handoffs=(handoff,),
        approvals=(approval,),
        changes=(change(patch(("tests/test_orders.py", 2))),),
        gates=(gate("base", "red", failing=(TEST,)),),
    )


def proposed() -> told.Report:
    """Proven, and yet a person's: what it newly can do, the hold-out checks, and a trust that is told everywhere."""
    handoff = told.HandoffFacts(
        handoff_id="hnd_1m7hddegfsyrkjea", owner="team-orders", reason="proposed", state="open", taken_by=None,
        next_step="the loop stopped at `proposed`; look at `becket runs show run_1m7hddegfsyrkje7`",
        commands=("git diff bbbbbbbbbbbb..becket/heal/cccccccccccc",),
        because=("a person should look at it", "powerful: adds the power to read the environment: gcd.py:9"),
    )  # fmt: skip
    guard = told.GuardFacts(
        iteration=1, says="candidate.guard_ok, candidate.powerful", refusals=(), change_class="powerful",
        findings=(
            finding("powerful", "environment", 9, "adds the power to read the environment", 'os.environ["CI"]'),
            *(finding("ordinary", "new-function", line, "adds a new function") for line in range(20, 80)),
        ),
        promote="powerful",
    )  # fmt: skip
    check = told.HeldOutCheck(name="check_1.py", artifact="d" * 12, oracle=(0, 0), parent=(1,), candidate=(1, 1))
    held = told.HoldoutFacts(
        iteration=1, candidate="c" * 40, oracle="a" * 40, agent="judge", says="holdout_failed", receipt="e" * 12,
        checks=(check,), left_out={"check_2.py": "it uses a test framework"},
    )  # fmt: skip
    return proven().model_copy(
        update={
            "run": run("ready_for_handoff", "proposed"), "handoffs": (handoff,), "guards": (guard,),
            "holdouts": (held,), "trust": ALL_TRUSTED,
        }
    )  # fmt: skip


def finding(kind: str, power: str, line: int, message: str, shown: str = "") -> told.FindingFacts:
    return told.FindingFacts(kind=kind, power=power, path="gcd.py", line=line, message=message, shown=shown)


def running() -> told.Report:
    return report(
        run("running", ended_at=None), phases=PHASES[:1], calls=(call("fixer", "", priced="unknown", turns=0),)
    )


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><svg onload=alert(1)></style></pre></details></main>"
    "<!-- &lt;b&gt; ]]> \x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \u202egnp.exe \x00 \ud800 "
    "שלום ไทย 東京 javascript:alert(1) " + "W" * 700
)


def hostile(word: str = HOSTILE) -> told.Report:
    """Every text that a run could hold is an attack; the states too, as if somebody wrote the database."""
    text = f"diff --git a/x b/x\n--- a/x\n+++ b/{word}\n@@ -1 +1 @@ {word}\n-{word}\n+{word}\n"
    whole = proposed().model_copy(update={"approvals": asking().approvals})
    guard = whole.guards[0].model_copy(update={"refusals": (_remark(),)})
    claim = told.AgentClaim(iteration=1, action="fix", agent="fixer", judged="x", said="x")
    culprit = told.CulpritFacts(iteration=1, commit=BASE, subject="x", why="x", confidence=1, runs=1)
    effect = told.EffectFacts(key="x", name="x", target="x", state="done", reason="x", attempts=1, at=BEGAN)
    of_part = told.PartFacts(part="x", lines=("x",))
    more = {"guards": (guard,), "claims": (claim,), "culprits": (culprit,), "effects": (effect,), "lost": ("x",)}
    more["parts"] = (of_part,)
    poisoned = told.Report.model_construct(**_poisoned(dict(whole.model_copy(update=more)), word))  # type: ignore[arg-type]
    return poisoned.model_copy(update={"changes": (change(text),)})


def _remark() -> told.RemarkFacts:
    return told.RemarkFacts(rule="x", path="x", line=1, message="x", more="x")


def _poisoned(value: object, word: str) -> object:
    """The same shape, with every string replaced."""
    if isinstance(value, str):
        return word
    if isinstance(value, dict):
        return {key: _poisoned(one, word) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_poisoned(one, word) for one in value)
    if isinstance(value, told.Record):
        fields = {name: _poisoned(getattr(value, name), word) for name in type(value).model_fields}
        return type(value).model_construct(**fields)  # type: ignore[arg-type]
    return value


ALL = (proven, asking, proposed, running, hostile)
