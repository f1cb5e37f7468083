"""`driver: acp`: every agent that speaks the Agent Client Protocol on its standard input and output."""

from becket.adapters.agents.acp.agent import AcpAgent

__all__ = ["AcpAgent"]
