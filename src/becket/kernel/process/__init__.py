"""Contained children: one port, three sandboxes, one keeper per child."""

from becket.kernel.process.child import KeeperProgram
from becket.kernel.process.choice import SandboxOffer, available
from becket.kernel.process.contained import ContainedProcesses, choose

__all__ = ["ContainedProcesses", "KeeperProgram", "SandboxOffer", "available", "choose"]
