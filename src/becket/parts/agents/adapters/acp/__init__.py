"""`driver: acp`: every agent that speaks the Agent Client Protocol on its standard input and output."""

from becket.parts.agents.adapters.acp.agent import AcpAgent

__all__ = ["AcpAgent"]
