"""What each key means, in the words that an editor shows. A test holds that no key is left out."""

from __future__ import annotations

_ENV = "Names of variables of Becket's own environment that are passed on; what may be a secret is redacted in logs."
_SET = "Variables with their values."

_STEP = {
    "id": "The step's name; its outputs are `{id.output}`.",
    "uses": "A registered name, such as `git.read_base`.",
    "with": "Parameters of what is used. Texts may hold `{id.output}`, `{subject}`, `{sha}` and inputs.",
    "run": 'A shell command, contained. A `{field}` becomes a variable; quote it as one: `"{base.sha}"`.',
    "when": "Only if this holds: `and`, `or`, `not` and parentheses over conditions, like `base.fast_red`.",
    "timeout": "The step is ended after this time.",
    "in": "tree: the run's own checkout; scratch: the run's own empty folder.",
    "env": "Variables of the command. Values may hold `{id.output}` and the other fields.",
    "network": "What the command may reach: none, its own loopback, or everything.",
}

_SPEC = {
    "LoopSpec": {
        "version": "The version of this format: 1.",
        "loop_id": "The loop's name.",
        "replaces_built_in": "The loop stands in for the one of its name that comes with Becket, such as `heal`.",
        "goal": "What is true when the loop is done, for people.",
        "trigger": "What starts a run: manual, schedule, commit, event or after.",
        "subject": "What one run is about; a template such as `{branch}@{sha}`.",
        "state_refs": "Where the loop's state lives: `git:REF` (a branch, HEAD or refs/...), `file:PATH` or `journal`. "
        "A run records the digest of each when it begins and when it ends; `runs show` tells what changed meanwhile.",
        "needs": "Sections of becket.yaml without which the loop sleeps.",
        "concurrency": "Which runs must not be at work at the same time.",
        "inputs": "Typed parameters of a run: `becket run LOOP --with name=value`.",
        "max_iterations": "After so many iterations the run is handed to a person.",
        "deadline": "After this time, waiting included, the run is handed to a person.",
        "autonomy": "How far the loop may go by itself; becket.yaml may lower it.",
        "budget": "What one run may use.",
        "stop_conditions": "The run is completed when all of these hold.",
        "handoff_conditions": "The run is handed to a person when any of these holds.",
        "wait_conditions": "While one of these holds, the run waits.",
        "phases": "What the loop does in each of the seven phases of an iteration.",
    },
    "Trigger": {
        "manual": "A person starts it: `becket run LOOP`.",
        "schedule": "The clock starts it.",
        "commit": "A branch that moved starts it.",
        "event": "An event starts it: `becket event NAME`.",
        "after": "The end of another loop's run starts it.",
    },
    "ScheduleTrigger": {
        "cron": "Minute, hour, day, month, weekday, like `30 2 * * *`; with six fields, seconds come first.",
        "tz": "The time zone, by its IANA name.",
        "missed": "What to do about fires that were due while nobody was there.",
        "grace": "A fire later than this counts as missed.",
    },
    "CommitTrigger": {
        "branch": "The branch; without it, the one of becket.yaml.",
        "debounce": "Moves closer together than this count as one.",
        "edge": "leading: act at once; trailing: wait until it is quiet.",
        "unless": "Not for commits with this recorded fact, `proven`, `moved` or `completed`; asked again "
        "when it is the run's turn.",
        "at_first_sight": "The commit that is there when the branch is first looked at starts a run too.",
        "max_chain": "At most so many runs may lead to one another.",
    },
    "EventTrigger": {
        "name": "The event's name.",
        "match": "Values that the event's data must have.",
        "unless": "Not for subjects with this recorded fact: `completed`, or another of `commit`; asked again "
        "when it is the run's turn.",
        "max_chain": "At most so many runs may lead to one another.",
    },
    "AfterTrigger": {
        "loop": "The other loop.",
        "outcome": "How its run must have ended.",
        "max_chain": "At most so many runs may lead to one another.",
    },
    "Concurrency": {
        "group": "A template; of the runs with the same group one is at work.",
        "on_busy": "What a new run does while its group is taken.",
    },
    "InputSpec": {
        "type": "string, integer, number, boolean, sha or path.",
        "optional": "Whether a run may do without it.",
        "default": "The value of a run that does not give one.",
        "choices": "The values it may have.",
        "description": "What it is, for people.",
    },
    "Budget": {
        "wall": "Time at work; waiting does not count.",
        "agent_time": "Time of agents.",
        "tokens": "Tokens of agents.",
        "usd": "Money for agents, in US dollars.",
    },
    "Wait": {
        "wake": "The signal that wakes the run, such as `approval`, or `clock`.",
        "poll": "Look again after this time even without the signal.",
        "for": "Wait no longer than this.",
        "then": "What happens when the wait was in vain.",
    },
    "PhaseSpec": {
        "objective": "What the phase is for, for people.",
        "actions": "What it does, in this order.",
        "verifiers": "What is checked after its actions, by name or as a command.",
        "persist_outputs": "Outputs that are kept for later iterations: `id.output`.",
    },
    "ActionSpec": {
        **_STEP,
        "retry": "So many further attempts after a crash or a model error.",
        "on_error": "After the last attempt: decide, continue with the next step, or fail the run.",
        "outputs": "Name and source of what a command makes: stdout, json:PATH or file:PATH.",
        "parse": "How to read the output of a command: json, or junit:FILE.",
        "raises": "Which condition an exit code (0, 2-5, *) or a value (json:PATH=VALUE) raises.",
        "keep": "Whether those conditions last for the iteration or for the run.",
        "effects": "Makes the command an effect: it goes through the door.",
    },
    "VerifierSpec": _STEP | {"id": "The verifier's name; its verdict is `id.pass`, `id.fail` or `id.undecided`."},
    "RunEffect": {
        "name": "The effect's name, for policy, caps and people.",
        "class": "What may be done when nobody knows whether it happened.",
        "needs": "The autonomy it needs.",
        "look_up": "A command that tells whether it happened: exit 0 yes, 1 no. Only for queryable.",
    },
}

_CONFIG = {
    "Config": {
        "version": "The version of this format: 1.",
        "branch": "The branch that Becket looks after.",
        "remote": "The remote to fetch from and push to.",
        "autonomy": "How far loops may go by themselves; a spec may lower it.",
        "gates": "Named gates and their steps. `${VAR}` is not expanded here.",
        "setup": "What the tests need besides the tree.",
        "test_side": "Globs of what belongs to the tests.",
        "guard": "What a change must satisfy before it may be proven.",
        "services": "What is released, and how.",
        "agents": "The agents that loops may call.",
        "budgets": "What agents may use in a day and in a month.",
        "prices": "What tokens cost, by model or by the beginning of its name; wins over the prices that Becket knows.",
        "heal": "How the heal loop repairs.",
        "sandbox": "How programs are contained.",
        "people": "Who may decide what.",
        "handoff_to": "Who gets handoffs.",
        "alarms": "Where alarms go besides `becket status`.",
        "notify": "A command that is told of alarms, handoffs and questions, such as notify-send or mail.",
        "starts": "What holds for every start that no person and no schedule asked for.",
        "retention": "How long ended runs, what they left, and backups of the journal are kept.",
        "effect_caps": "How many effects of one name may leave within a time.",
        "database": "A Postgres URL; without it, SQLite in the state folder.",
        "chat": "Reserved.",
        "forge": "Reserved.",
        "knowledge": "Reserved.",
        "flaky": "Reserved.",
        "evolve": "Reserved.",
    },
    "RemoteConfig": {
        "name": "Its name in git.",
        "fetch": "How often to fetch.",
        "push": "When to push.",
    },
    "GateStep": {
        "name": "The step's name, unique in its gate.",
        "run": "The command.",
        "timeout": "The step is red after this time.",
        "network": "What the command may reach.",
        "inputs": "Globs of what it reads; without a change there, an old verdict still holds.",
        "report": "plain, junit:FILE, or the format of the output: pytest, go, cargo, tap.",
        "rerun": "The command for some tests alone; `{tests}` stands for their names.",
        "min_tests": "Fewer executed tests than this are red; needs a `report` that tells of them.",
        "parallel": "Whether it may run beside other steps.",
        "env_file": "A file of variables that only this step sees.",
        "env": _ENV,
        "set": _SET,
    },
    "SetupConfig": {
        "env": _ENV,
        "set": _SET,
        "run": "The command.",
        "key": "The files that decide whether it has to run again.",
        "network": "What the command may reach.",
        "timeout": "It is ended after this time.",
    },
    "NotifyConfig": {
        "command": "For the shell, in the repository's folder. It finds BECKET_TITLE and BECKET_TEXT in its "
        "environment, and the text on standard input.",
        "timeout": "It is ended after this time, and tried again.",
    },
    "HealConfig": {
        "agent": "The agent that repairs; without it `fixer`, or the only one.",
        "attempts": "So many agents work at once; they are proven one after another.",
        "hold_out": "The agent that writes hold-out checks for ordinary changes; without it they are proposed.",
        "on_exhausted": "What becomes of the proven revert when no repair succeeds: a handoff, or main moves to it.",
    },
    "GuardConfig": {
        "protected": "Globs that no candidate may touch.",
        "max_deleted_share": "The largest share of the tree that a candidate may delete.",
        "max_file": "The largest file that a candidate may add.",
        "promote": "The highest class of change that moves main without a person. `ordinary` needs its hold-out proof; "
        "`powerful` means: the tests are enough for me.",
        "pure": "By language, further modules that only compute: importing one is no power.",
    },
    "ServiceConfig": {
        "start": "The command that serves.",
        "build": "The command that builds it: a text, or a mapping with its variables.",
        "stop": "The command that stops it; without it, a signal.",
        "port": "The port it listens on.",
        "health": "How to tell that it is healthy.",
        "shared": "Files and folders that all releases share.",
        "env_file": "A file of variables for the service.",
        "migrates": "Whether a release changes data; then there is no automatic way back.",
    },
    "BuildConfig": {"run": "The command.", "env": _ENV, "set": _SET},
    "HealthConfig": {
        "url": "The path to ask.",
        "samples": "So many good answers in a row.",
        "soak": "Over this time.",
    },
    "AgentConfig": {
        "driver": "command, codex, claude or acp.",
        "run": "The command line of an `acp` or `command` agent.",
        "program": "Where codex or claude is, if not on PATH.",
        "model": "The model to ask for.",
        "endpoint": "The address of its model, if not the vendor's: a gateway, or a server of your own.",
        "key": "The name of the variable that holds the model's API key.",
        "args": "More arguments for codex or claude.",
        "env": "Names of variables that it is given as they are.",
        "set": "Variables with their values.",
        "credentials": "Files of yours that it gets copies of: a path, or a mapping.",
        "network": "Instead of its model and `hosts` alone: none, loopback or full.",
        "hosts": "`host` or `host:port` that it may reach besides its model; without a port 443.",
        "skills": "The skills that it is given; without it, all of them.",
        "limits": "What one call may use.",
        "sandbox": "How the agent is contained.",
        "fallback": "Who is called instead, in this order, when it has no quota, no login or no working model.",
    },
    "Credential": {
        "file": "The file; `~/` is your home.",
        "as": "Where it is put below the agent's HOME; without it, at the same place as below yours.",
        "write_back": "Whether a version that the agent renewed replaces yours.",
    },
    "Budgets": {
        "day": "For all loops together, from midnight to midnight.",
        "month": "For all loops together, from the first of the month.",
        "loops": "The same for single loops, by name.",
    },
    "PeriodBudgets": {
        "day": "From midnight to midnight.",
        "month": "From the first of the month.",
    },
    "BudgetConfig": {
        "agent_time": "At most so much time of agents at work.",
        "tokens": "At most so many tokens.",
        "usd": "At most so much money, in US dollars.",
    },
    "Price": {
        "input": "Dollars for a million tokens that go in.",
        "output": "Dollars for a million tokens that come out.",
        "cached": "The same for input that was read from a cache; without it, as `input`.",
        "cache_write": "The same for input that was written to a cache; without it, as `input`.",
    },
    "AgentLimits": {
        "time": "The call is ended after this time.",
        "turns": "At most so many turns.",
        "tokens": "At most so many tokens.",
        "usd": "At most so much money, in US dollars.",
    },
    "SandboxConfig": {
        "use": "auto, bwrap, landlock or none.",
        "without": "What you accept not to be contained.",
        "readable": "Places beside the system that programs may read, absolute or with `~/`: toolchains not found by "
        "themselves.",
    },
    "PersonConfig": {
        "role": "What the person may decide.",
        "os_user": "The person's user on this machine.",
    },
    "AlarmTarget": {
        "file": "A file that gets a line.",
        "url": "A webhook.",
        "secret": "The key that signs what is sent to the webhook.",
    },
    "Retention": {
        "artifacts": "How long logs and other artifacts are kept.",
        "runs": "How long runs and their events are kept.",
        "rescues": "How long saved work, and the candidates of runs that have ended, are kept.",
        "rescue_file": "A larger file is not saved; the rescue says so.",
        "backups": "How many backups of the journal are kept; the daemon makes one a day.",
        "rescue_size": "At most this much is saved at a time; the rescue says what was left out.",
    },
    "StartLimits": {
        "depth": "So many runs may lead to one another without a person or a schedule in between.",
        "per_minute": "So often may triggers and other runs start one loop; the children of one run count as one.",
    },
    "EffectCap": {
        "count": "At most so many.",
        "per": "Within this time.",
    },
}

DESCRIPTIONS: dict[str, dict[str, str]] = {**_SPEC, **_CONFIG}
"""By model, then by key."""
