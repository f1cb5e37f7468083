"""Contained children: one port, three sandboxes, one keeper per child."""

from becket.adapters.process.child import KeeperProgram
from becket.adapters.process.choice import Offer, available
from becket.adapters.process.contained import ContainedProcesses, choose

__all__ = ["ContainedProcesses", "KeeperProgram", "Offer", "available", "choose"]
