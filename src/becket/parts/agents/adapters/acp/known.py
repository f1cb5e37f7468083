"""What is known of agents that speak ACP, by the name of their program. An unknown one works as well, with `hosts`."""

from __future__ import annotations

from dataclasses import dataclass

from becket.parts.agents.adapters import claude, codex

_GOOGLE = (
    "generativelanguage.googleapis.com",
    "cloudcode-pa.googleapis.com",
    "oauth2.googleapis.com",
)


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """`skills` is where below HOME it looks for them; `.agents/skills` is what most of them agree on."""

    hosts: tuple[str, ...] = ()
    skills: str = ".agents/skills"
    tells_money: bool = False


_BY_PROGRAM = {
    "gemini": KnownAgent(_GOOGLE, ".gemini/skills"),
    "codex-acp": KnownAgent(codex.HOSTS),
    "claude-agent-acp": KnownAgent(claude.HOSTS, ".claude/skills", tells_money=True),
    "qwen": KnownAgent(("dashscope.aliyuncs.com", "chat.qwen.ai"), ".qwen/skills"),
}


def known(program: str) -> KnownAgent:
    return _BY_PROGRAM.get(program, KnownAgent())
