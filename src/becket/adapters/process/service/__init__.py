"""Services as real processes: started to outlive us, known by a marker, tried contained beforehand."""

from becket.adapters.process.service.environment import service_environment
from becket.adapters.process.service.host import ProcessHost
from becket.adapters.process.service.shared import link_shared
from becket.adapters.process.service.smoke import ContainedSmokes

__all__ = ["ContainedSmokes", "ProcessHost", "link_shared", "service_environment"]
