"""Which key of becket.yaml a person will most likely change, for a step that was tried and is not green."""

from __future__ import annotations

import re

from becket.kernel.checks import words
from becket.kernel.contract.base import Record
from becket.kernel.contract.config import Config
from becket.kernel.contract.gate import StepTrouble, TriedStep
from becket.kernel.contract.process import Network
from becket.kernel.contract.text import cap_text
from becket.parts.gates.section import GATES, SET_UP

Path = tuple[str | int, ...]
LONGEST_LINE = 160

_NETWORK = re.compile(
    r"resolve host|name resolution|ENOTFOUND|EAI_AGAIN|no such host|[Nn]etwork is unreachable|new connection"
    r"|[Cc]onnection (refused|timed out|error)|getaddrinfo|[Tt]emporary failure|dns error",
)
_CERTIFICATE = re.compile(r"certificate|SSLError|x509|CERT_|self.signed", re.IGNORECASE)
_FORBIDDEN = re.compile(r"\b(401|403)\b|[Uu]nauthori[sz]ed|authentication failed|[Ff]orbidden")
_ABSENT = re.compile(r"\bE?404\b|No matching distribution found|[Nn]o matching version found", re.MULTILINE)
_PNPM_ITSELF = re.compile(r"\bpnpm add pnpm@|META_FETCH_FAIL\b.{0,20}\bGET \S+/pnpm: ")
_VARIABLE = re.compile(r"KeyError: '([A-Z][A-Z0-9_]{2,})'|\b([A-Z][A-Z0-9_]{2,}) must be set")
_OWN_FILE = re.compile(r"\bbecket\.yaml\b|(?<![\w.])\.becket/")
_NO_FILE = re.compile(r"[Nn]o such file or directory|does not exist|not found", re.IGNORECASE)


_UNSEEN = re.compile(
    r"[Pp]ermission denied: '(?!/(?:usr|s?bin|lib\w*|etc|dev|proc|sys|var|tmp|run)/|[^'\n]*/becket/setups/)"
    r"(/[^'\n]{1,300})'"
    r"|\bLocation '(?:file://)?(/[^'\n]{1,300})' is ignored"
)
"""A place outside that a contained program may not read: a tool's own settings may name one."""


class LikelyKey(Record):
    """`path` leads to the key in the file; the nearest thing above it counts where it is not written yet."""

    path: Path
    say: str

    @property
    def key(self) -> str:
        """As a person writes it: `gates.fast[0].run`."""
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return text.removeprefix(".")


def likely(step: TriedStep, config: Config, said: str, absent: tuple[str, ...] = ()) -> LikelyKey:
    """`said` is what the step's log says of its failure; `absent` are key files that git does not track."""
    if not step.gate:
        return _of_absent(absent) if absent else _of_setup(step, config, said)
    steps = config.section(GATES)[step.gate]
    place: Path = ("gates", step.gate, next(n for n, one in enumerate(steps) if one.name == step.step))
    if step.trouble is StepTrouble.timeout and step.at_work:
        return LikelyKey(path=(*place, "timeout"), say=words.LIKELY_HANGS.format(command=step.at_work))
    if step.trouble is StepTrouble.timeout:
        return LikelyKey(path=(*place, "timeout"), say=words.LIKELY_TIMEOUT)
    if step.trouble is StepTrouble.no_report:
        return LikelyKey(path=(*place, "report"), say=words.LIKELY_REPORT.format(report=steps[int(place[2])].report))
    if step.trouble is StepTrouble.no_tests:
        return LikelyKey(path=(*place, "run"), say=words.LIKELY_NO_TESTS)
    return _of_machine(step, config, place, said)


def _of_machine(step: TriedStep, config: Config, place: Path, said: str) -> LikelyKey:
    kind, _, line = step.problem.partition(": ")
    text = line or said
    if _PNPM_ITSELF.search(f"{line}\n{said}"):
        return LikelyKey(path=(*place, "run"), say=words.LIKELY_PNPM)
    if kind == "network" or (step.trouble is StepTrouble.environment and _NETWORK.search(text)):
        tried = config.section(GATES)[step.gate][int(place[2])]
        return _of_network(place, tried.network, _line_with(_NETWORK, text) or line)
    if kind == "module" or "No module named" in line:
        path = ("setup", "run") if config.section(SET_UP) else ("setup",)
        return LikelyKey(path=path, say=words.LIKELY_MODULE.format(line=text))
    if kind == "read-only":
        return LikelyKey(path=(*place, "run"), say=words.LIKELY_HELD.format(line=cap_text(text, LONGEST_LINE)))
    if kind == "tool":
        return LikelyKey(path=(*place, "run"), say=words.LIKELY_TOOL.format(line=text))
    return _of_code(step, place, said, text)


def _of_code(step: TriedStep, place: Path, said: str, text: str) -> LikelyKey:
    if found := _OWN_FILE.search(said):
        return LikelyKey(path=(*place, "run"), say=words.LIKELY_OWN_FILE.format(file=found[0].rstrip("/")))
    if found := _VARIABLE.search(said):
        return LikelyKey(path=(*place, "env"), say=words.LIKELY_VARIABLE.format(name=found[1] or found[2]))
    if step.trouble is StepTrouble.environment:
        return LikelyKey(path=(*place, "run"), say=words.LIKELY_MACHINE.format(line=text))
    return LikelyKey(path=(*place, "run"), say=words.LIKELY_CODE)


def _of_absent(files: tuple[str, ...]) -> LikelyKey:
    return LikelyKey(path=("setup", "key"), say=words.LIKELY_UNTRACKED.format(names=", ".join(files)))


def _of_setup(step: TriedStep, config: Config, said: str) -> LikelyKey:
    if "setup.timeout" in " ".join(step.reasons):
        return LikelyKey(path=("setup", "timeout"), say=words.LIKELY_TIMEOUT)
    if found := _UNSEEN.search(said):
        place = found[1] or found[2]
        return LikelyKey(path=("sandbox", "readable"), say=words.LIKELY_UNSEEN.format(place=place))
    setup = config.section(SET_UP)
    network = setup.network if setup is not None else Network.none
    refused = network is Network.full and (_CERTIFICATE.search(said) or _FORBIDDEN.search(said))
    if not refused and (blamed := _unreachable(said)):
        return _of_network(("setup",), network, blamed)
    if _CERTIFICATE.search(said) or _FORBIDDEN.search(said):
        return LikelyKey(path=("setup", "env"), say=words.LIKELY_REGISTRY)
    if absent := _line_with(_ABSENT, said):
        return LikelyKey(path=("setup", "run"), say=words.LIKELY_ABSENT.format(line=absent))
    no_file = step.log == "" or (_NO_FILE.search(said) and step.exit_code not in (126, 127))
    key, say = ("key", words.LIKELY_KEY) if no_file else ("run", words.LIKELY_SETUP)
    return LikelyKey(path=("setup", key), say=say)


def _unreachable(said: str) -> str:
    """The line that says that a host cannot be reached, judged as a step's log is."""
    from becket.parts.gates.reports.environment import EnvironmentKind, mentions_environment  # it takes a while to load

    reason = mentions_environment(said)
    return reason.line if reason and reason.kind is EnvironmentKind.network else _line_with(_NETWORK, said)


def _of_network(place: Path, network: Network, line: str) -> LikelyKey:
    """Without the network it is to be given; with it, the machine or a mirror is in question."""
    if network is not Network.full:
        return LikelyKey(path=(*place, "network"), say=words.LIKELY_NETWORK)
    return LikelyKey(path=(*place, "env"), say=words.LIKELY_UNREACHABLE.format(line=cap_text(line, LONGEST_LINE)))


def _line_with(pattern: re.Pattern[str], text: str) -> str:
    return next((cap_text(line.strip(), LONGEST_LINE) for line in text.splitlines() if pattern.search(line)), "")
