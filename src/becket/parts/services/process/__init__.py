"""Services as real processes: started to outlive us, known by a marker, tried contained beforehand."""

from becket.parts.services.process.environment import service_environment
from becket.parts.services.process.host import ProcessHost
from becket.parts.services.process.shared import link_shared
from becket.parts.services.process.smoke import ContainedSmokes

__all__ = ["ContainedSmokes", "ProcessHost", "link_shared", "service_environment"]
