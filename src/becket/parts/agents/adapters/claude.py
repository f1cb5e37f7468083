"""Claude Code: `claude -p --output-format stream-json`, one child per turn, the session resumed by its id."""

from __future__ import annotations

from pathlib import Path

from becket.kernel.contract.agent import Usage
from becket.parts.agents.adapters.call_environment import CallEnvironment, ProgramNeeds
from becket.parts.agents.adapters.claude_dialect import ClaudeDialect
from becket.parts.agents.adapters.dialect import Dialect
from becket.parts.agents.adapters.headless import AgentTurn, HeadlessAgent

HOSTS = ("api.anthropic.com", "platform.claude.com", "console.anthropic.com")
"""Its models; where a login renews itself, now and in older versions."""

_TOKENS = ("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN")
"""Variables that are no API key and keep their own name."""

_ENV = {
    "CLAUDE_CODE_MAX_RETRIES": "2",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
_TOOLS = "Bash,Edit,NotebookEdit,Read,Skill,Task,Write"
"""Without those that reach the web, wait for a clock, or talk to other agents."""

_UNCONTAINED_TOOLS = "Edit,NotebookEdit,Read,Skill,Write,Bash(git diff:*),Bash(git log:*),Bash(git status:*)"


class ClaudeAgent(HeadlessAgent):
    """`driver: claude`."""

    vendor = "claude"
    tells_money = True

    def wants(self) -> ProgramNeeds:
        env = dict(_ENV)
        if self._contained:
            env["IS_SANDBOX"] = "1"  # without it, it refuses to work without questions as root
        if self.config.endpoint:
            env["ANTHROPIC_BASE_URL"] = self.config.endpoint
        keys = (self.config.key,) if self.config.key in _TOKENS else ("ANTHROPIC_API_KEY",)
        return ProgramNeeds(program="claude", skills=".claude/skills", hosts=HOSTS, env=env, keys=keys)

    def command(self, environment: CallEnvironment, turn: AgentTurn) -> tuple[str, ...]:
        options = ["-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"]
        if self.config.model:
            options += ["--model", self.config.model]
        if turn.session:
            options += ["--resume", turn.session]
        if turn.limits.turns is not None:
            options += ["--max-turns", str(turn.limits.turns)]
        if turn.limits.usd:
            options += ["--max-budget-usd", f"{turn.limits.usd:.6f}"]
        # The options with any number of values come last: they take all that follows them.
        return (str(environment.program), *options, *self.config.args, *self._permissions())

    def dialect(self, tree: Path, before: Usage) -> Dialect:
        return ClaudeDialect(tree, before)

    @property
    def _contained(self) -> bool:
        return self.driver_context.processes.holds().files

    def _permissions(self) -> tuple[str, ...]:
        if self._contained:
            # The project's settings carry its CLAUDE.md; what else is in them works inside the sandbox only.
            return ("--setting-sources", "user,project", "--permission-mode", "bypassPermissions", "--tools", _TOOLS)
        mode = ("--permission-mode", "acceptEdits", "--allowedTools", _UNCONTAINED_TOOLS)
        return ("--setting-sources", "user", "--tools", _TOOLS, *mode)
