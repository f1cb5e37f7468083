"""Everything that init and doctor say to people."""

from __future__ import annotations

# Tools

_INSTALL = {
    "autoreconf": "sudo apt-get install -y autoconf automake libtool",
    "bundle": "sudo apt-get install -y bundler",
    "cmake": "sudo apt-get install -y cmake",
    "meson": "sudo apt-get install -y meson",
    "ninja": "sudo apt-get install -y ninja-build",
    "ruby": "sudo apt-get install -y ruby",
    "rspec": "gem install rspec",
    "rake": "sudo apt-get install -y rake",
    "cargo": "sudo apt-get install -y cargo",
    "go": "sudo apt-get install -y golang-go",
    "gradle": "sudo apt-get install -y gradle",
    "java": "sudo apt-get install -y default-jdk-headless",
    "make": "sudo apt-get install -y make",
    "mvn": "sudo apt-get install -y maven",
    "node": "sudo apt-get install -y nodejs",
    "npm": "sudo apt-get install -y npm",
    "pnpm": "npm install --global pnpm",
    "yarn": "npm install --global yarn",
    "python3": "sudo apt-get install -y python3 python3-venv",
    "mypy": "python3 -m pip install mypy",
    "poetry": "python3 -m pip install poetry",
    "pytest": "python3 -m pip install pytest",
    "ruff": "python3 -m pip install ruff",
    "uv": "python3 -m pip install uv",
    "git-lfs": "sudo apt-get install -y git-lfs",
    "git": "sudo apt-get install -y git",
    "bwrap": "sudo apt-get install -y bubblewrap",
}


def install(tool: str, version: str = "") -> str:
    """The command that brings a tool, or the plain advice where we know none. `version` is for npm's tools only."""
    known = _INSTALL.get(tool, f"install {tool} and put it on PATH")
    return f"{known}@{version}" if version else known


# What detection found

NO_FOLDER = "{path} is not a folder; run this inside the repository"
CANNOT_LIST = "{path} cannot be listed ({why}); check its permissions"
CANNOT_READ = "{file} cannot be read ({why}); what it says was left out"
NOT_AN_OBJECT = "it does not hold an object"
TOO_MANY_FOLDERS = "only the first {most} folders were looked at; add the steps of the others to becket.yaml yourself"
NO_TESTS = "{kind} was found, but no tests; add a step to gates.fast when there are some"
SEEN = "these were seen, and no command that runs their tests is known: {names}"
NO_TESTS_YET = "no test files were found: the gate stays red until there is one"
NO_COUNT = (
    "{steps}: no tests are counted, only the exit code decides; where the test program can write a report, name it in "
    "becket.yaml (`report: junit:FILE`, or pytest, go, cargo, tap)"
)
NO_TESTS_BELOW = (
    "{file}: no tests were found in this module, so it has no gate; add a step to gates.fast when there are"
)
NO_GO_MOD = "there are Go files and no go.mod: `go mod init NAME` makes it; commit it, then `becket init --force`"
NO_LOCK = "{file} has dependencies but no lock file; make one (`{command}`) and commit it, then add `setup`"
UNLOCKED = "`setup` installs what fits {file} on the day; a lock file (`{command}`, committed) would keep it the same"
COPIED = "`setup` lists what {file} asks for today; a lock file (`uv lock`) would keep the two in step"
OWN_SCRIPTS = "`setup` leaves out the install scripts of {file} itself: it has only the key files, not the sources"
PLUG_AND_PLAY = "yarn's Plug'n'Play does not work from a shared set-up; write `nodeLinker: node-modules` in .yarnrc.yml"
INSTALLS_ITSELF = "{file} installs the project itself, which would prove another tree; it was left out of `setup`"
PYTEST_UNPINNED = "pytest is in no requirements file, so `setup` installs its newest version; pin it in {file}"
PYTEST_ABSENT = "pytest is in no requirements file and these have hashes; add it there, or the gate cannot run"
CANNOT_FAIL = "{what} can never fail (`{command}`), so it proves nothing and was left out"
WATCHES = "the test script watches files and never ends (`{command}`); add a step that runs the tests once"
ONLINE_HOOKS = (
    "{hooks} of {file} fetch what they need and are left out of the tests: give one a step of its own with "
    "`network: full`, if it is to decide"
)
BUILT_HERE = (
    "{folder} is the project as built from this very commit, beside its sources (git need not ignore it); the variable "
    "SETUPTOOLS_SCM_PRETEND_VERSION stands in for tags, which a checkout need not have."
)
OWN_PNPM = "The project names {pin}: the variables keep another pnpm from fetching that one at each gate."
NETWORK_IN_GATE = "{tool} fetches what it needs during the gate, so its step has the network"

# What was tried and failed

LIKELY_TIMEOUT = "it did not end in time: raise it, or see in the log where it hangs"
LIKELY_HANGS = (
    "`{command}` did not end in time: see what it waits for (a step has no network, unless it says so), or raise it"
)
LIKELY_REPORT = "the command wrote no report {report}: let it, or name the file that it writes"
LIKELY_NO_TESTS = "the command ran no test: see that it finds them in a clean checkout"
LIKELY_NETWORK = "it needs the network: write `full`"
LIKELY_MODULE = "the set-up does not install what the tests import ({line})"
LIKELY_TOOL = (
    "a program is missing where the step runs ({line}): install it on this machine or in `setup`, or leave it out"
)
LIKELY_HELD = (
    "it writes where a step may only read, as in what `setup` made ({line}): let the tool write elsewhere or turn off "
    "what writes there, or let `setup.run` make that file"
)
LIKELY_VARIABLE = "it wants the variable {name}, which a step is not given"
LIKELY_OWN_FILE = "it judges {file}, which Becket wrote: leave becket.yaml and .becket out in its own settings"
LIKELY_MACHINE = "its log blames the machine ({line})"
LIKELY_CODE = "it fails at this commit: mend the code, or leave out here what is known to fail"
LIKELY_PNPM = (
    "pnpm fetches the version that `packageManager` names: install that one, or begin the command with "
    "`NPM_CONFIG_MANAGE_PACKAGE_MANAGER_VERSIONS=false pnpm_config_pm_on_fail=ignore`"
)
LIKELY_REGISTRY = "the registry refused: it may need a certificate or a token from your environment"
LIKELY_UNREACHABLE = (
    "it has the network, and a host is not reached from here ({line}): name what leads there, as in "
    "`env: [HTTPS_PROXY]` or a registry's variable, or see whether this machine reaches it at all"
)
LIKELY_ABSENT = (
    "the registry does not have what is asked for ({line}): see the name and the version, or name in `setup.env` the "
    "registry that has it"
)
LIKELY_KEY = "the set-up sees only its key files: name every file that its command reads"
LIKELY_UNTRACKED = (
    "{names}: here, but git ignores it or does not track it, so no checkout has it. Commit it (`git add --force`), "
    "or take it out of `setup.key` and out of what needs it (`--locked`)"
)
LIKELY_UNSEEN = (
    "a contained program may not read {place}: write `sandbox: {{readable: [{place}]}}`, if nothing there is secret"
)
LIKELY_SETUP = "the command failed in a clean folder that holds only the key files"
DROPPED = "left out by `becket init`: {why}"

# Writing becket.yaml

CONFIG_EXISTS = "{path} exists already and was not touched; edit it, or use --force to keep it as a .bak and start anew"
CONFIG_IS_FOLDER = "{path} is a folder; move it away, Becket needs a file of that name"
TOO_MANY_BACKUPS = "there are too many backups of {path}; remove some of its .bak files"
CANNOT_WRITE = "{path} cannot be written ({why}); check the permissions and the free space"
NO_TEST_COMMAND = "no test command was found; write one under `gates` in becket.yaml"
AGENT_PROPOSED = "{program} is on this machine: becket.yaml has it as `fixer`, commented out; choose its login there"
EXAMPLE_EXISTS = "{path} exists already and was kept"
NETWORK_COMMENT = "fetches what it needs while it runs"

CONFIG_HEAD = """\
# What Becket may do in this repository. Check it with `becket doctor`, then commit it.
# Lines that begin with `#` and no space are examples: remove the `#` to use them."""

CONFIG_COMMENTS = {
    "version": "The version of this file's format.",
    "branch": "The branch that loops watch and promote to.",
    "remote": "Where main is fetched from; `push: after_promote` sends promoted commits there.",
    "autonomy": "How far loops go by themselves: observe, propose, merge or release. A loop may ask for less.",
    "gates": "What decides whether a commit is good. Every step of a gate must pass; `fast` runs first.",
    "setup": "What the tests need besides the tree. Runs in it, and is kept while the key files stay the same.",
    "test_side": "Which files are tests. A repair is proven with these files as they were before it.",
    "guard": "Rules for every change: files it must not touch, how much it may delete, how big a file may be.",
    "services": "Programs that Becket keeps running, and restarts on a proven commit.",
    "agents": """\
Who works: coding agents, their logins and their limits. Nothing is called, and nothing costs, before you say so here.
An agent sees only its checkout, the variables in `env` and `key`, and copies of the files in `credentials`.
`becket doctor` looks at them, `becket doctor --probe` calls each once.""",
    "budgets": "What all agents together may use, and those of one loop, in a day and in a month of the calendar.",
    "prices": "US dollars for a million tokens, by model: these win over the ones that Becket knows.",
    "heal": "How the heal loop repairs: by which agent, with how many attempts at once.",
    "sandbox": "How tests and agents are contained: auto, bwrap, landlock or none. `becket doctor` says what holds.",
    "people": "Who may decide. `role` is owner, approver or member; `os_user` is the login on this machine.",
    "handoff_to": "Who gets what Becket cannot finish.",
    "alarms": "Where alarms go besides `becket status`.",
    "notify": "A command that tells you of alarms, handoffs and questions. Try it with `becket notify test`.",
    "retention": "How long finished runs keep their logs, their records, and the work they left.",
    "starts": "How many runs may lead to one another, and how often a minute other runs and events start one loop.",
    "effect_caps": "At most so many effects of one name in a time.",
    "database": "A Postgres database for many workers. Without it: SQLite in the state folder.",
}

CONFIG_RESERVED = "Reserved for later: {keys}."

FAST_EXAMPLE = """\
  fast:
    - {name: unit, run: "make test", timeout: 10m}"""

SLOW_EXAMPLE = """\
  slow:
    - {name: lint, run: "make lint", timeout: 10m}"""

AGENT_EXAMPLES = {
    "claude": """\
    driver: claude
    model: claude-sonnet-4-6
    # One of the two: your subscription's login (renewed by the agent, so written back), or an API key's variable.
    credentials: [{file: "~/.claude/.credentials.json", write_back: true}]
    # key: ANTHROPIC_API_KEY
    limits: {time: 30m, turns: 60, usd: 2}""",
    "codex": """\
    driver: codex
    # One of the two: your subscription's login (renewed by the agent, so written back), or an API key's variable.
    credentials: [{file: "~/.codex/auth.json", write_back: true}]
    # key: OPENAI_API_KEY
    limits: {time: 30m, tokens: 3000000}""",
    "gemini": """\
    driver: acp  # any program that speaks the Agent Client Protocol
    run: "gemini --acp"
    env: [GEMINI_API_KEY]
    hosts: [generativelanguage.googleapis.com]
    limits: {time: 30m}""",
    "command": """\
    driver: command  # any program: the brief comes on its standard input
    run: "my-agent"
    hosts: []  # what it may reach, as [api.example.org]; without any it has no network
    limits: {time: 30m}""",
}
"""By program, in the order in which they are proposed."""

CONFIG_EXAMPLES = {
    "remote": "remote: {name: origin, fetch: 30s, push: after_promote}",
    "gates": f"gates:\n{FAST_EXAMPLE}\n{SLOW_EXAMPLE}",
    "setup": 'setup: {run: "npm ci", key: [package-lock.json, package.json], network: full}',
    "test_side": 'test_side: ["tests/**", "conftest.py"]',
    "services": """\
services:
  main:
    build: "make build"
    start: "./server --port 8080"
    port: 8080
    health: {url: /health, samples: 5, soak: 10s}
    shared: [data, .env]
    env_file: .env""",
    "budgets": """\
budgets:
  day: {usd: 20, tokens: 20000000}
  month: {usd: 200}
  loops: {heal: {day: {usd: 10, agent_time: 4h}}}""",
    "prices": "prices: {my-model: {input: 1.25, cached: 0.125, output: 10}}",
    "heal": "heal: {agent: fixer, attempts: 1}",
    "alarms": "alarms: [{file: alarms.log}]",
    "notify": """notify: {command: 'notify-send "$BECKET_TITLE" "$BECKET_TEXT"'}""",
    "retention": "retention: {artifacts: 30d, runs: 365d, rescues: 30d}",
    "starts": "starts: {depth: 10, per_minute: 120}",
    "effect_caps": "effect_caps: {git.push: {count: 20, per: 1h}}",
    "database": 'database: "${BECKET_DATABASE}"',
}

EXAMPLE_LOOP = """\
# A small loop: it makes a file and ends only when a check has seen it. Start it with `becket run hello`.
version: 1
loop_id: hello
goal: A greeting is written and was seen by a check.
trigger:
  - manual: {}
max_iterations: 2
deadline: 10m
autonomy: propose
budget:
  wall: 5m
stop_conditions: [greeted, greeting.pass]
handoff_conditions: [greeting.fail, greeting.undecided]
phases:
  act:
    objective: Write the greeting into the run's own folder.
    actions:
      - id: greet
        run: echo hello | tee greeting.txt
        in: scratch
        timeout: 1m
        outputs:
          text: stdout
        raises:
          "0": greeted
    persist_outputs: [greet.text]
  verify:
    objective: Check the greeting independently of the step that wrote it.
    verifiers:
      - id: greeting
        run: grep -qx hello greeting.txt
        in: scratch
        timeout: 1m
"""

# The doctor

CHECK_FAILED = "this check itself failed ({kind}: {why})"
CHECK_FAILED_MEND = "run `becket doctor --json` once more; if it fails again, report it with that output"

PYTHON_OK = "Python {have}"
PYTHON_OLD = "Python {have} is too old; {need} or newer is needed"
PYTHON_MEND = "install Python {need} or newer and install Becket with it"
GIT_OK = "git {have}"
GIT_NONE = "git was not found"
GIT_OLD = "git {have} is too old; {need} or newer is needed"
GIT_UNKNOWN = "git's version cannot be read from {text!r}; {need} or newer is needed"
NO_REPOSITORY = "this is not inside a git repository"
NO_REPOSITORY_MEND = "cd into the repository, or `git init`"
REPOSITORY_OK = "repository {root}"

STATE_OK = "the state folder can be written"
STATE_READONLY = "the state folder cannot be written ({why})"
STATE_MEND = 'sudo chown -R "$(id -u)" {path}'
DISK_OK = "{free} GB free"
DISK_LOW = "only {free} GB free; runs need room for checkouts and logs"
DISK_MEND = "free some space on this disk: df -h {path}"
DISK_READONLY_MEND = "see why this disk is read-only, then make it writable: findmnt -T {path}"
SOCKET_OK = "the socket's path has {size} bytes"
SOCKET_LONG = "the socket's path has {size} bytes; the system allows {most}"
SOCKET_MEND = "move the repository to a path that is at least {spare} bytes shorter"
INOTIFY_OK = "file events work"
INOTIFY_NONE = "file events cannot be used here; new commits are found by a poll every 30 s instead"
INOTIFY_NONE_MEND = "run Becket outside this container, or live with the poll"
INOTIFY_BLIND = "the repository is on {kind}, which tells of no changes made elsewhere; a poll every 30 s finds them"
INOTIFY_BLIND_MEND = "move the repository to a local disk, or live with the poll"
INOTIFY_FEW = "{key} is {most}; fewer than {few} run out soon"
INOTIFY_USED = "{used} of {most} {key} are in use"

CONFIG_OK = "becket.yaml can be read"
CONFIG_NONE = "there is no becket.yaml"
NOT_COMMITTED = "becket.yaml is not committed; gates and guard count only as committed"
COMMITTED_OK = "becket.yaml is committed"
COMMITTED_DIFFERS = "{keys} differ from the committed becket.yaml, and the committed ones count"
COMMITTED_BROKEN = "the committed becket.yaml cannot be used ({why}), and it is the one that counts"
COMMIT_MEND = 'git add becket.yaml && git commit -m "Change becket.yaml" -- becket.yaml'
GATES_OK = "gate steps: {names}"
NO_GATE = "no test command: becket.yaml has no gate with a step, so nothing can be proven"
NO_FAST_GATE = "gates.fast has no step, so nothing is proven quickly"
GATE_MEND = 'add to becket.yaml: gates: {fast: [{name: unit, run: "YOUR TEST COMMAND"}]}'
GATE_CANNOT_FAIL = "gates.{gate}.{step} can never fail (`{command}`), so it proves nothing"
GATE_CANNOT_FAIL_MEND = "let the command end with the exit code of the tests"
VARIABLES_OK = "every `${...}` and env file of becket.yaml is there"
UNDEFINED = "${{{name}}} is used but not defined in the environment"
UNDEFINED_MEND = "export {name}=..."
ENV_FILE_NONE = "{what} reads {file}, which is not there"
ENV_FILE_MEND = "create {file}, or remove the `env_file`"
ALARMS_OK = "every alarm file can be made"
ALARM_NONE = "an alarm cannot be written to {file}: it is no file, or its folder is not there"
ALARM_MEND = "make the folder, or correct the path"
NO_HANDOFF = "handoff_to is not set: what Becket cannot finish has no owner"
TRUST_OK = "guard.promote is {promote}: what a change newly can do decides how much it must prove"
TRUST_MEND = "leave it, if the tests are enough for you; else write in becket.yaml: guard: {promote: ordinary}"
NO_HOLD_OUT = (
    "autonomy is {autonomy}, and no agent writes hold-out checks: a repair with a new function, constant, import or "
    "state is proposed to you, not promoted"
)
NO_HOLD_OUT_MEND = (
    "name an agent that writes them in becket.yaml: heal: {{hold_out: {agent}}}; or say that you mean it: guard: "
    "{{promote: plain}}"
)
NO_NAMES = "every gate step has `report: plain`, so that nothing names the tests that fail"
NO_HOLD_OUT_EVER = (
    "autonomy is {autonomy}, and a repair with a new function, constant, import or state is proposed to you, not "
    "promoted; hold-out checks cannot change that here: {why}"
)
NO_HOLD_OUT_EVER_MEND = (
    "where your test program can write a report, say so in becket.yaml: report: junit:FILE (or pytest, go, tap); "
    "else say that you mean it: guard: {promote: plain}"
)
HANDOFF_OK = "handoffs go to {name}"
HANDOFF_MEND = "add to becket.yaml: handoff_to: {name}"
PEOPLE_MEND = 'add to becket.yaml: people: {{{name}: {{role: owner, os_user: "${{USER}}"}}}} and handoff_to: {name}'

TOOLS_OK = "the programs of every gate step and of the set-up are there"
TOOL_MISSING = "{tool}, which {user} starts, was not found"
TOOL_NEEDED = "{tool}, which the gates need, was not found"
TOOL_UNSEEN = "{tool}, which {user} starts, leads to {place}, which contained programs do not see"
TOOL_UNSEEN_MEND = "in becket.yaml: sandbox: {{readable: [{place}]}}; or install it for the whole system"
TOOL_TROUBLE = "{tool}, which {user} starts, does not work when it is contained: {said}"
TOOL_TROUBLE_MEND = "install the version that this repository chooses, or choose one in a file of it that is committed"
TOOLCHAINS_FOUND = "visible to contained programs, read-only: {names}"
TOOLCHAINS_NONE = "no toolchain below HOME; programs of the system are visible"
READABLE_NONE = "sandbox.readable names {place}, which is not there"
READABLE_MEND = "correct it, or remove it"
GIVEN_NONE = "{user} is to be given {name}, which is not set here"
GIVEN_MEND = "export {name}=... before Becket starts (`becket down`, then `becket up`), or remove the name"
CONTENTS_OK = "a checkout of Becket's has everything that git checks out"
SUBMODULES_NONE = "submodules that are not here stay empty in every gate: {names}"
SUBMODULES_MEND = "git submodule update --init --recursive"
LFS_ABSENT = "large files that are not here stay pointers in every gate: {names}"
LFS_MEND = "git lfs pull"
LFS_NONE = "large files stay pointers in every gate, since git-lfs is not installed: {names}"
FILE_MEND = "create {file} and make it executable: chmod +x {file}"
NOT_SHELL = "{user} is not a shell command ({why})"
NOT_SHELL_MEND = "check its quotes"
NOT_THERE = "it is not there"
NO_AGENT = "no agent is configured: a red commit is reported, and nobody repairs it"
NO_AGENT_MEND = "to have one, name it under `agents` in becket.yaml, where an example is commented out"
AGENT_FOUND = "agents.{name}: {driver}, {what}"
AGENT_SHELL = "a shell command"
AGENT_HELD = "contained by {kind}"
AGENT_LOOSE = "in {kind}, which does not contain {parts}"
AGENT_WAYS = "reaches {hosts} and nothing else"
AGENT_WAYS_LOOSE = "is shown the way to {hosts}, but not kept from reaching others"
AGENT_REACHES = {
    "none": "reaches nothing",
    "loopback": "reaches the ports of this machine (`network: loopback`)",
    "full": "reaches every host (`network: full`)",
}
AGENT_NONE_LOOSE = "is given no network, but not kept from using one"
AGENT_HOSTS_HINT = "{told}: `hosts` in becket.yaml names what it may"
AGENT_FALLBACK = "falls back to {names}"
AGENT_UNTESTED = "agents.{name}: {what}"
AGENT_NO_LOGIN = "agents.{name} is to be given {what}: {why}"
AGENT_LOG_IN = "log in with the program itself, then run `becket doctor` again"
AGENT_LOGIN = (
    "agents.{name} is given {given}; whether its login works is not checked: only `becket doctor --probe` tells"
)
AGENT_OFFLINE = "agents.{name} cannot reach its model: `network: {network}` gives it no way out"
AGENT_OFFLINE_MEND = "in becket.yaml, at agents.{name}: remove `network`; it then reaches its model and nothing else"
AGENT_LOGIN_NONE = "agents.{name} is given no credentials and no key, so its model will not know it"
AGENT_LOGIN_MEND = "in becket.yaml, at agents.{name}: `credentials: [{file}]`, or `key: {variable}`"

SANDBOX_USED = "{user}: {kind} holds {held}; autonomy up to `{most}`"
SANDBOX_ACCEPTED = "; you accept not to contain {parts}"
SANDBOX_OPEN = "; not contained: {parts}"
SANDBOX_CAPS = "; `{asked}` is asked for, but only `{most}` counts while these are not contained: {parts}"
SANDBOX_MEND = "{install}; or, to accept it, in becket.yaml: sandbox: {{use: {kind}, without: [{parts}]}}"
SANDBOX_NONE = "{user}: {choice} cannot be used here ({why})"
SANDBOX_UNKNOWN = "this Becket has no such sandbox"
SANDBOX_AUTO_MEND = "in becket.yaml: sandbox: auto"
NOTHING = "nothing"

DATABASE_OK = "the database can be reached"
DATABASE_NEW = "there is no database yet; the first run makes it"
DATABASE_DOWN = "the database cannot be used: {why}"
DATABASE_MEND = "start the database, or correct `database` in becket.yaml"
DATABASE_FILE_MEND = "let this user write {path}, and see what the system's log says about its disk"
DATABASE_RESTORE = "becket store restore"
DATABASE_ACCEPT = "becket store accept"
BACKUP_LAST = "the last good backup of the journal is {name}"
BACKUP_NONE = "there is no good backup of the journal"
DATABASE_NEWER_MEND = "python3 -m pip install --upgrade becket"
DAEMON_OK = "one daemon, pid {pid} on {host}"
DAEMON_NONE = "no daemon is running"
DAEMON_SILENT = "the daemon (pid {pid} on {host}) no longer responds"
TWO_DAEMONS = "two daemons work on one database: {who}"
TWO_DAEMONS_MEND = "stop one of them: kill {pid}  (on {host})"
CLOCK_OK = "this machine and the database agree on the time"
CLOCK_OFF = "this machine's clock is {off} {way} the database's"
AHEAD = "ahead of"
BEHIND = "behind"
CLOCK_MEND = "sudo timedatectl set-ntp true"
TREE_OK = "the test tree is as Becket made it"
TREE_NONE = "there is no test tree yet; the first gate makes it"
TREE_DAMAGED = "the test tree is not as Becket made it; the next gate makes it anew"
TREE_PRUNED = "the repository no longer has the commit that the test tree is at; the next gate takes it to the branch"
TREE_FOREIGN = "holds files that Becket did not make, where the test tree belongs: no gate can judge the branch"
TREE_FOREIGN_MEND = "look through {path}, then: mv -- {path} {path}.mine"
TREE_BLOCKED = "is not a folder, and the test tree belongs there: no gate can judge the branch"
TREE_BLOCKED_MEND = "mv -- {path} {path}.mine"
TREE_ASIDE = "was moved out of the way when the test tree was made anew; look through it"
LOCK_HELD = "held by process {pid}, which is running"
LOCK_STALE = "left behind by process {pid}, which is gone"
LOCK_EMPTY = "names no process that could still want it"
LOCK_NONE = "no lock file has lain for a minute; a younger one is in use"
REFS_OK = "everything that Becket keeps in the repository is whole"
REF_BROKEN = "it is at {sha}, which is not whole: {missing}; `git gc` fails because of it"
REF_MEND = "becket doctor --fix"
RESCUES_MUCH = "{count} rescues take {size} of the repository; each goes by itself after `retention.rescues`"
RESCUES_MEND = "becket rescue list, then becket rescue drop NAME"
LOOPS_OK = "every loop passes lint"
BRANCH_ABSENT = "there is no branch {branch} here yet; its commits start nothing until there is"
BRANCH_ABSENT_MEND = "git branch {branch}, or correct the name"
