"""What a report holds: facts of the journal, and what an agent claimed, kept apart from them (L22).

The field names are the keys of `becket runs report --json`. They are stable: a later version may add keys; it raises
`format` when one goes or changes its meaning. Times are seconds since 1970, durations seconds, digests hexadecimal.
"""

from __future__ import annotations

from pydantic import Field

from becket.kernel.contract.base import Json, Record

FORMAT = 1


class RunFacts(Record):
    """The run itself. `chain_head` is what `becket verify RUN --head` takes."""

    run_id: str
    loop_id: str
    goal: str
    subject: str
    status: str
    reason: str
    detail: dict[str, Json]
    trigger: str
    by: str
    dry_run: bool
    autonomy: str | None  # only where a person asked for less
    iterations: int
    began_at: float
    ended_at: float | None
    seconds: float
    worked: float  # without waiting
    retry_of: str | None
    spec_digest: str
    chain_head: str
    repaired_by: str = ""  # the agent whose ready repair a person accepted


class StepFacts(Record):
    """One action or verifier. `raised` are the conditions it raised."""

    id: str
    state: str
    seconds: float
    attempts: int
    raised: tuple[str, ...]
    note: str
    error: str


class PhaseFacts(Record):
    iteration: int
    phase: str
    objective: str
    seconds: float
    steps: tuple[StepFacts, ...]
    decision: str  # what the runtime decided at its end; empty elsewhere


class ConditionFacts(Record):
    """A fact as it stood at the end, with what it rests on."""

    name: str
    at: float
    evidence: dict[str, Json]


class GateStepFacts(Record):
    """One step of a gate. `reused_from` is the run that proved exactly this before, and has the receipt."""

    step: str
    color: str
    tests_run: int
    counts_tests: bool = True
    seconds: float
    exit_code: int | None
    end: str
    failing: tuple[str, ...]
    failed: int
    reasons: tuple[str, ...]
    receipt: str
    log: str
    reused_from: str


class GateFacts(Record):
    """A gate's verdict on one commit. `summary` is why it is not green, in the steps' own words."""

    iteration: int
    action: str
    of: str
    gate: str
    commit: str
    defined_by: str
    color: str
    receipt: str
    steps: tuple[GateStepFacts, ...]
    summary: str


class CrossedTest(Record):
    """One test, or a step as a whole, that failed on the parent; receipts of both sides."""

    gate: str
    step: str
    test: str
    parent: str
    child: str
    against: tuple[str, ...]


class CrossingFacts(Record):
    """`tried` is the candidate with the parent's tests; the candidate itself where it left the tests alone."""

    iteration: int
    base: str
    candidate: str
    tried: str
    says: str
    receipt: str
    tests: tuple[CrossedTest, ...]


class HeldOutCheck(Record):
    """One hold-out check that counted: its artifact, and how it ended on each commit, each time it ran."""

    name: str
    artifact: str
    oracle: tuple[int | str, ...]
    parent: tuple[int | str, ...]
    candidate: tuple[int | str, ...]


class HoldoutFacts(Record):
    """`oracle` is the last proven commit; `left_out` says of each check that did not count why."""

    iteration: int
    candidate: str
    oracle: str
    agent: str
    says: str
    receipt: str
    checks: tuple[HeldOutCheck, ...]
    left_out: dict[str, str]


class ProofFacts(Record):
    iteration: int
    base: str
    candidate: str
    says: str
    receipt: str
    gates: dict[str, Json]
    parts: dict[str, Json]
    reused: dict[str, Json]
    against: tuple[str, ...]


class FileFacts(Record):
    path: str
    added: int
    removed: int


class ChangeFacts(Record):
    """A candidate's change. `diff` is cut to what people read; `patch` is the artifact with all of it. Of one that is
    not `kept_whole` the artifact has a part, and the figures are of that part.
    """

    iteration: int
    action: str
    kind: str
    commit: str
    parent: str
    patch: str
    files: tuple[FileFacts, ...]
    diff: str
    left_out: int  # lines
    kept_whole: bool = True


class CulpritFacts(Record):
    iteration: int
    commit: str
    subject: str
    why: str
    confidence: float
    runs: int


class RemarkFacts(Record):
    """A refusal or a note of the guard."""

    rule: str
    path: str
    line: int
    message: str
    more: str  # a refusal's way out, a note's line


class FindingFacts(Record):
    """A line that raised the class of a change."""

    kind: str
    power: str
    path: str
    line: int
    message: str
    shown: str


class GuardFacts(Record):
    """`change_class` is what the change newly can do, `findings` are the lines that made it so; `promote` is how far
    classes were trusted.
    """

    iteration: int
    says: str
    refusals: tuple[RemarkFacts, ...]
    change_class: str = ""
    findings: tuple[FindingFacts, ...] = ()
    promote: str = ""
    candidate: str = ""  # the commit it was said of


class AgentClaim(Record):
    """What an agent said. `judged` is what the runtime found; `said` is a claim and proves nothing."""

    iteration: int
    action: str
    agent: str
    judged: str
    said: str


class CallFacts(Record):
    """One call of an agent. `outcome` is the runtime's judgement, empty while it is at work or if nobody saw its end.

    `priced` says whose figure `usd` is: `vendor`, `table`, or `unknown` where nobody can tell.
    """

    iteration: int
    action: str
    agent: str
    driver: str
    model: str
    version: str
    outcome: str
    reason: str
    began_at: float
    seconds: float
    turns: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    usd: float
    priced: str
    over: tuple[str, ...]  # limits that it passed before it could be stopped


class ReceiptFacts(Record):
    digest: str
    iteration: int
    phase: str
    action: str
    kind: str
    command: tuple[str, ...]
    tree: str | None
    exit_code: int | None
    log: str | None
    seconds: float


class EffectFacts(Record):
    key: str
    name: str
    target: str
    state: str
    reason: str
    attempts: int
    at: float


class HandoffFacts(Record):
    handoff_id: str
    owner: str
    reason: str
    next_step: str
    state: str
    taken_by: str | None
    commands: tuple[str, ...]
    because: tuple[str, ...] = ()  # what speaks against going on by itself, in plain words
    accepted_by: str = ""  # who said yes to a ready repair
    note: str = ""  # what was said last about it
    settled_at: float | None = None  # nobody has to do anything any more


class ApprovalFacts(Record):
    approval_id: str
    question: str
    bound_to: str
    state: str
    decided_by: str | None


class PartFacts(Record):
    """What a part tells of the run besides, line by line."""

    part: str
    lines: tuple[str, ...]


class EndFacts(Record):
    """An ended run for people. `lines` show what is so, and so does the last change where `change` says it."""

    headline: str
    lines: tuple[str, ...] = ()
    change: bool = False
    next: str  # the one command to type next


class Report(Record):
    """Everything that is told about one run."""

    format: int = FORMAT
    made_at: float
    run: RunFacts
    end: EndFacts | None = None
    phases: tuple[PhaseFacts, ...] = ()
    conditions: tuple[ConditionFacts, ...] = ()
    gates: tuple[GateFacts, ...] = ()
    crossings: tuple[CrossingFacts, ...] = ()
    holdouts: tuple[HoldoutFacts, ...] = ()
    proofs: tuple[ProofFacts, ...] = ()
    changes: tuple[ChangeFacts, ...] = ()
    culprits: tuple[CulpritFacts, ...] = ()
    guards: tuple[GuardFacts, ...] = ()
    claims: tuple[AgentClaim, ...] = ()
    calls: tuple[CallFacts, ...] = ()
    receipts: tuple[ReceiptFacts, ...] = ()
    effects: tuple[EffectFacts, ...] = ()
    handoffs: tuple[HandoffFacts, ...] = ()
    approvals: tuple[ApprovalFacts, ...] = ()
    spend: dict[str, float] = Field(default_factory=dict)
    trust: str = ""  # said where every class of change is promoted by the tests alone
    parts: tuple[PartFacts, ...] = ()
    lost: tuple[str, ...] = ()  # evidence that is gone or was changed, so that nothing is told from it
