"""Codex: `codex exec --json`, one child per turn, the thread resumed by its id."""

from __future__ import annotations

import json
from pathlib import Path

from becket.kernel.contract.agent import Usage
from becket.parts.agents.adapters.call_environment import CallEnvironment, ProgramNeeds
from becket.parts.agents.adapters.codex_dialect import CodexDialect
from becket.parts.agents.adapters.codex_ledger import CodexLedger
from becket.parts.agents.adapters.dialect import Dialect
from becket.parts.agents.adapters.headless import AgentTurn, HeadlessAgent
from becket.parts.agents.adapters.hearing import Ledger

HOSTS = ("api.openai.com", "auth.openai.com", "chatgpt.com")
_VENDORS_ENDPOINT = "https://api.openai.com/v1"
_REQUEST_RETRIES, _STREAM_RETRIES = 0, 2
"""They multiply, and a run has its own patience with a model that does not work."""
_QUIET = ("--disable", "plugins", "--disable", "apps", "-c", "analytics.enabled=false")
"""Only together do these keep it from waiting seconds for hosts that it cannot reach."""

_CONTAINED = ("-s", "danger-full-access")
"""Inside a sandbox of ours: its own does not nest in landlock, and would hold nothing that ours does not."""

_UNCONTAINED = (
    "-s",
    "workspace-write",
    "-c",
    "sandbox_workspace_write.exclude_slash_tmp=true",
    "-c",
    "sandbox_workspace_write.exclude_tmpdir_env_var=true",
)


class CodexAgent(HeadlessAgent):
    """`driver: codex`. What it prints has tokens only at the end of a turn; until then its own record of the thread
    is read, which the agent could falsify: time is the limit that always holds.
    """

    vendor = "codex"

    def wants(self) -> ProgramNeeds:
        return ProgramNeeds(program="codex", skills=".agents/skills", hosts=HOSTS)

    def command(self, environment: CallEnvironment, turn: AgentTurn) -> tuple[str, ...]:
        sandbox = _CONTAINED if self.driver_context.processes.holds().files else _UNCONTAINED
        model = ("-m", self.config.model) if self.config.model else ()
        options = (*sandbox, "--skip-git-repo-check", *_QUIET, *model, *self._provider(), *self.config.args)
        # `-`: the prompt comes on standard input, where its length has no limit. Options must stand before `resume`.
        asked = ("resume", turn.session, "-") if turn.session else ("-",)
        return (str(environment.program), "exec", "--json", *options, *asked)

    def dialect(self, tree: Path, before: Usage) -> Dialect:
        return CodexDialect(tree, before, model=self.config.model or "")

    def ledger(self, environment: CallEnvironment) -> Ledger:
        return CodexLedger(environment.home)

    def _provider(self) -> tuple[str, ...]:
        if not self.config.endpoint and not self.config.key:
            return ()
        table = [
            'name="becket"',
            f"base_url={json.dumps(self.config.endpoint or _VENDORS_ENDPOINT)}",
            'wire_api="responses"',
            f"request_max_retries={_REQUEST_RETRIES}",
            f"stream_max_retries={_STREAM_RETRIES}",
            "supports_websockets=false",
        ]
        if self.config.key:
            table.append(f"env_key={json.dumps(self.config.key)}")
        return (
            "-c",
            'model_provider="becket"',
            "-c",
            f"model_providers.becket={{{','.join(table)}}}",
            *self._hide_key(),
        )

    def _hide_key(self) -> tuple[str, ...]:
        """The commands that it runs need no key; it gives them its whole environment otherwise."""
        return ("-c", f"shell_environment_policy.exclude={json.dumps([self.config.key])}") if self.config.key else ()
