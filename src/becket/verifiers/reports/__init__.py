"""Reading what test tools report, comparing two reports, and the colour of a step. Pure: no process, no clock."""

from becket.verifiers.reports.compare import Comparison, NotRun, compare, every_id_ran
from becket.verifiers.reports.environment import EnvironmentKind, EnvironmentReason, mentions_environment
from becket.verifiers.reports.folder import ReportFolder
from becket.verifiers.reports.formats import parse
from becket.verifiers.reports.verdict import StepVerdict, verdict_of

__all__ = [
    "Comparison",
    "EnvironmentKind",
    "EnvironmentReason",
    "NotRun",
    "ReportFolder",
    "StepVerdict",
    "compare",
    "every_id_ran",
    "mentions_environment",
    "parse",
    "verdict_of",
]
