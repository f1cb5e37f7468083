"""Does the output blame the machine rather than the code (L13)? Conservative: only shapes that tools themselves print.

A wrong yes keeps a real failure from the fixer, so a line that could be a test's own words does not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum

from becket.kernel.contract.base import Record
from becket.parts.gates.ports.report import Message
from becket.parts.gates.reports.text import clean
from becket.parts.gates.reports.tree import ReadFile, Tree

MOST_HITS = 2_000
_NOT_FOUND = 127
LONGEST = 600


class EnvironmentKind(StrEnum):
    """What the machine lacks."""

    tool = "tool"
    module = "module"
    library = "library"
    permission = "permission"
    held = "read-only"
    network = "network"
    service = "service"
    disk = "disk"
    memory = "memory"
    port = "port"


class EnvironmentReason(Record):
    """`what` names the missing thing where the line does; `line` is the line that said so."""

    kind: EnvironmentKind
    what: str
    line: Message

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}" if self.what else str(self.kind)


_K = EnvironmentKind
_PROGRAMS = (
    "bash|bun|cargo|cc|clang|cmake|curl|deno|docker|dotnet|ffmpeg|g\\+\\+|gcc|git|go|gradle|helm|java|javac|jq|kubectl"
    "|make|mvn|mysql|mysqld|ninja|node|npm|npx|openssl|perl|php|pip|pnpm|poetry|postgres|protoc|psql|python3?|redis-server"
    "|ruby|rustc|sqlite3|ssh|terraform|unzip|uv|wget|yarn|zip"
)
_SYSTEM = "bin|dev|etc|home|lib|opt|proc|root|run|sbin|sys|usr|var"

_SHAPES: tuple[tuple[EnvironmentKind, re.Pattern[str]], ...] = (
    (_K.tool, re.compile(r"(?:^|[/\s])(?:ba|da|z|k)?sh: (?:line )?\d+: ([\w.+@/-]{1,80}): (?:command )?not found$")),
    (_K.tool, re.compile(r"(?:^|[/\s])[\w.-]{1,80}: line \d+: ([\w.+@/-]{1,80}): command not found$")),
    (_K.tool, re.compile(r"^(?:bash|zsh): (?:command not found: )?([\w.+@-]{1,80})(?:: command not found)?$")),
    (_K.tool, re.compile(r"^(?:/usr/bin/)?env: [‘'\"]?([\w.+-]{1,80})[’'\"]?: No such file or directory$")),
    (_K.tool, re.compile(r"^g?make(?:\[\d+\])?: ([\w.+-]{1,80}): (?:No such file or directory|Command not found)$")),
    (_K.tool, re.compile(r'exec: "([\w.+/-]{1,80})": executable file not found in \$PATH')),
    (_K.tool, re.compile(rf"\bspawn ({_PROGRAMS}) ENOENT\b")),
    (_K.tool, re.compile(rf"^(?:E\s+)?FileNotFoundError: \[Errno 2\] No such file or directory: '({_PROGRAMS})'$")),
    (_K.tool, re.compile(r"^error: linker `([\w.+-]{1,80})` not found")),
    (_K.tool, re.compile(r"\b(JAVA_HOME) (?:is not set|environment variable is not (?:set|defined correctly))")),
    (_K.tool, re.compile(r"^error: (rustup) could not choose a version of ")),
    (_K.tool, re.compile(r"^error: could not create [\w ]{1,40}:? ?'?(/[^\s':]{1,200})'?: Read-only file system")),
    (
        _K.tool,
        re.compile(r"^(?:pyenv|rbenv): (?:version [`'\"])?([\w.+-]{1,80})(?:' is not installed|: command not found)"),
    ),
    (_K.tool, re.compile(r"\bNo version is set for (?:command|shim:) ([\w.+-]{1,80})")),
    (_K.tool, re.compile(r"^error: toolchain '([\w.-]{1,80})' is not installed")),
    (_K.tool, re.compile(r"^(?:/\S{1,200}/)?python[\d.]*: No module named ([\w.]{1,80})$")),
    (_K.library, re.compile(r"error while loading shared libraries: ([^\s:]{1,120}): cannot open shared object file")),
    (_K.library, re.compile(r"(?:ImportError|OSError): ([^\s:]{1,120}\.so[\d.]*): cannot open shared object file")),
    (_K.permission, re.compile(rf"PermissionError: \[Errno 13\] Permission denied: '(/(?:{_SYSTEM})/[^']{{0,200}})'$")),
    (_K.permission, re.compile(rf"\bEACCES: permission denied, \w+ '(/(?:{_SYSTEM})/[^']{{0,200}})'")),
    (_K.permission, re.compile(rf"\[Errno 30\] Read-only file system: '(/(?:{_SYSTEM})/[^']{{0,200}})'$")),
    (_K.permission, re.compile(r"permission denied while trying to connect to the (Docker) ")),
    (_K.service, re.compile(r"Cannot connect to the (Docker) daemon")),
    (
        _K.service,
        re.compile(
            r"\b(?:127\.0\.0\.1|localhost|::1)\b\W{1,3}(?:port )?"
            r"(1433|2181|3306|5432|5672|6379|9042|9092|9200|11211|27017)\b.{0,60}\brefused\b",
            re.IGNORECASE,
        ),
    ),
    (_K.network, re.compile(r"\bCould not resolve host: ([\w.-]{1,200})")),
    (_K.network, re.compile(r"\b(Temporary failure in name resolution)\b")),
    (_K.network, re.compile(r"\bgetaddrinfo (?:ENOTFOUND|EAI_AGAIN) ([\w.-]{1,200})")),
    (
        _K.network,
        re.compile(r"\bdial tcp: lookup ([\w.-]{1,200})\b.{0,80}: (?:no such host|server misbehaving|i/o timeout)"),
    ),
    (_K.network, re.compile(r"\b(?:ENETUNREACH|EHOSTUNREACH)\b|: (Network is unreachable|No route to host)$")),
    (_K.network, re.compile(r"Failed to establish a new connection: \[Errno -?\d+\] ([\w ]{1,60})")),
    (_K.network, re.compile(r"^(?:npm (?:ERR!|error)) network (.{1,120})$")),
    (_K.network, re.compile(r"\b(API rate limit exceeded)\b|\b(429 Too Many Requests)\b")),
    (_K.network, re.compile(r"The requested URL returned error: (50[0-9])\b")),
    (_K.network, re.compile(r"^error: [Ee]rror while fetching .{1,80} from '(https?://[^'\s]{1,200})'")),
    (
        _K.network,
        re.compile(
            r"Could not transfer artifact .{1,300}(timed out|Connection reset|Unknown host|refused|status code: 5\d\d)"
        ),
    ),
    (_K.disk, re.compile(r"\b(No space left on device|Disk quota exceeded|ENOSPC)\b")),
    (_K.memory, re.compile(r"\b(Cannot allocate memory|ENOMEM)\b")),
    (_K.memory, re.compile(r"\bfork: (?:retry: )?(Resource temporarily unavailable)$")),
    (_K.memory, re.compile(r"^(?:g?make(?:\[\d+\])?: \*\*\* \[.{1,200}\] )?(Killed)$")),
    (_K.port, re.compile(r"\bEADDRINUSE\b.{0,40}?(:\d{2,5})\b|\bbind: (address already in use)$")),
    (_K.port, re.compile(r"^(?:E\s+)?OSError: \[Errno 98\] (Address already in use)$")),
    (_K.port, re.compile(r"\b[Pp]ort (\d{2,5}) is already (?:allocated|in use)\b")),
)
_MODULE = re.compile(r"^(?:E\s+)?ModuleNotFoundError: No module named '([\w.]{1,120})'$")
_PACKAGE = re.compile(r"\bCannot find (?:module|package) '((?:@[\w.-]{1,80}/)?[\w-][\w.-]{0,80})(?:/[^']{0,200})?'")
_MARKS = re.compile(
    rb"not found|No such file or dir|ENOENT|No module named|Cannot find (?:module|package)|shared (?:object|libraries)"
    rb"|ermission denied|[Rr]ead-only file|EACCES|Cannot connect to|refused|Could not (?:resolve|transfer)"
    rb"|name resolution|getaddrinfo|dial tcp|UNREACH|unreachable|No route to host|new connection"
    rb"|npm (?:ERR!|error) network|rate limit"
    rb"|Too Many Requests|returned error: 50|while fetching|No space left|quota exceeded|ENOSPC|allocate memory"
    rb"|ENOMEM|fork: |Killed|EADDRINUSE|already (?:in use|allocated)|JAVA_HOME|not installed"
    rb"|could not choose|No version is set"
)
_REFUSED = re.compile(r"\bE(?:ROFS|ACCES)\b|(?:read-only file system|permission denied)\b", re.IGNORECASE)
_PATHS = re.compile(
    r"['\"`‘]([^'\"`’]{0,300}/[^'\"`’]{0,300})['\"`’]|(?<![^\s'\"`‘(])([^\s'\"`‘(]{0,300}/[^\s'\"`’:,;)]{1,300})"
)
# A line of source, an assertion or a made-up error says nothing about this machine.
_OWN_WORDS = re.compile(
    r"^\s*(?:>|//|#(?!#)|\*)|\b(?:assert\w*|expect\w*|raises|toThrow\w*|mock\w*|fake\w*|simulat\w*)\b", re.IGNORECASE
)
_STAMP = re.compile(r"^(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}Z |\[\d\d:\d\d:\d\d\] |##\[error\])+")


def mentions_environment(
    output: bytes | str, read_file: ReadFile | None = None, held: Callable[[str], bool] = lambda path: False
) -> EnvironmentReason | None:
    """The first line that blames the machine, or None.

    A missing module counts only with `read_file`, which tells whether the repository itself should have had it. `held`
    tells of a path whether the sandbox lets nobody write there.
    """
    raw = output.encode("utf-8", "replace") if isinstance(output, str) else output
    tree = Tree(read_file) if read_file else None
    for line in _suspects(raw):
        if (refused := _refused(line, held)) is not None:
            return refused
        if _OWN_WORDS.search(line):
            continue
        reason = _reason(line) or (_missing_module(line, tree) if tree else None)
        if reason is not None:
            return reason
    return None


def not_found(exit_code: int | None) -> EnvironmentReason | None:
    """The shell's own word for a program that is not there, where its line was sent elsewhere."""
    if exit_code != _NOT_FOUND:
        return None
    return EnvironmentReason(kind=_K.tool, what="", line=f"exit code {_NOT_FOUND}: a program was not found")


def _suspects(raw: bytes) -> Iterator[str]:
    """The lines that hold a mark, each once."""
    at = 0
    for _ in range(MOST_HITS):
        hit = _MARKS.search(raw, at)
        if hit is None:
            return
        start = max(raw.rfind(b"\n", max(0, hit.start() - LONGEST), hit.start()) + 1, hit.start() - LONGEST)
        end = raw.find(b"\n", hit.end(), hit.end() + LONGEST)
        end = min(len(raw), hit.end() + LONGEST) if end < 0 else end
        yield _STAMP.sub("", clean(raw[start:end]).strip())
        at = end


def _reason(line: str) -> EnvironmentReason | None:
    for kind, shape in _SHAPES:
        if match := shape.search(line):
            what = next((group for group in match.groups() if group), "")
            return EnvironmentReason(kind=kind, what=what.strip(), line=line)
    return None


def _refused(line: str, held: Callable[[str], bool]) -> EnvironmentReason | None:
    """A write that the sandbox refused. Names of packages in a path are not the line's own words."""
    if not _REFUSED.search(line) or _OWN_WORDS.search(_PATHS.sub("", line)):
        return None
    paths = (quoted or bare for quoted, bare in _PATHS.findall(line))
    path = next((path for path in paths if held(path)), "")
    return EnvironmentReason(kind=_K.held, what=path, line=line) if path else None


def _missing_module(line: str, tree: Tree) -> EnvironmentReason | None:
    if python := _MODULE.match(line):
        top = python[1].partition(".")[0]
        places = [f"{folder}{top}{end}" for folder in ("", "src/", "lib/", "tests/") for end in (".py", "/__init__.py")]
        if not any(tree.has(place) for place in places):
            return EnvironmentReason(kind=_K.module, what=python[1], line=line)
    elif (node := _PACKAGE.search(line)) and f'"{node[1]}"'.encode() in (tree.read("package.json") or b""):
        return EnvironmentReason(kind=_K.module, what=node[1], line=line)
    return None
