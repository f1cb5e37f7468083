"""YAML with positions: plain data, and for every key and value the line and column where it stands.

Scalars follow the core schema of YAML 1.2, so that `no`, `on` and `12:30` are texts; every key is a text.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import Finding, InvalidDocument

Path = tuple[str | int, ...]
Spot = tuple[int, int]
"""Line and column, 1-based."""

MAX_BYTES = 1_000_000
MAX_DEPTH = 32

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
_HIDDEN_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,30}|[0-9]{1,30}(?:\.[0-9]{0,30})?)(?:[eE][-+]?[0-9]{1,2})?")


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """Where one value stands: its key (or itself, in a list), its start, and its source text."""

    key: Spot
    value: Spot
    source: str = ""
    style: str = ""  # '' plain, ' or " quoted, | or > block; of scalars
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """One file, read."""

    file: str
    data: Json
    places: dict[Path, SourcePlace] = field(repr=False)

    def place(self, path: Path) -> SourcePlace:
        """The place of `path`, or of the nearest thing around it that is in the file."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places[path]

    def has(self, path: Path) -> bool:
        return path in self.places

    def inside(self, path: Path, offset: int) -> Spot:
        """Where the character at `offset` of a text stands; the text's start if its source is folded or escaped."""
        place = self.place(path)
        text = self.at(path)
        if isinstance(text, str) and 0 <= offset <= len(text):
            return _inside_line(place, text, offset) or _inside_block(place, text, offset) or place.value
        return place.value

    def at(self, path: Path) -> Json:
        """The value at `path`, or None."""
        value = self.data
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def finding(self, spot: Spot, rule: str, message: str, fix: str) -> Finding:
        return Finding(self.file, *spot, rule, message, fix)


def _inside_line(place: SourcePlace, text: str, offset: int) -> Spot | None:
    line, column = place.value
    if place.source == text:
        return (line, column + offset) if "\n" not in text else None
    if place.style in ("'", '"') and place.source[1:-1] == text and "\n" not in text:
        return line, column + 1 + offset
    return None


def _inside_block(place: SourcePlace, text: str, offset: int) -> Spot | None:
    """Of a literal block: its lines are those of the source, indented."""
    if place.style != "|":
        return None
    row = text.count("\n", 0, offset)
    before = text.rfind("\n", 0, offset) + 1
    source = place.source.split("\n")[1 + row : 2 + row]
    shown = text.split("\n")[row]
    if not source or not source[0].endswith(shown) or source[0].removesuffix(shown).strip(" "):
        return None
    return place.value[0] + 1 + row, len(source[0]) - len(shown) + offset - before + 1


def read(text: str | bytes, file: str) -> Document:
    """The document; raises InvalidDocument with everything that keeps it from being read."""
    decoded = _decoded(text, file)
    if strange := _HIDDEN_BREAK.search(decoded):
        # Else what an editor shows as the rest of a comment would count as a line of its own.
        code = f"{ord(strange[0]):04x}"
        message = f"the character #x{code} breaks the line for YAML, and not for an editor or a diff"
        fix = f"end the line with LF or CR LF; in a text in double quotes, write \\u{code}"
        raise _only(file, _at(decoded, strange.start()), "bad-character", message, fix)
    return _Reader(decoded, file).document()


def _decoded(text: str | bytes, file: str) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise _only(file, (1, 1), "too-large", f"the file has {size} bytes", f"keep it under {MAX_BYTES} bytes")
    try:
        raw = text if isinstance(text, bytes) else text.encode()
        return raw.decode("utf-8-sig")
    except UnicodeError as error:
        before = text[: getattr(error, "start", 0)]
        shown = before.decode("utf-8", "replace") if isinstance(before, bytes) else before
        raise _only(file, _at(shown, len(shown)), "not-utf8", _not_utf8(error), "save it as UTF-8") from None


def _not_utf8(error: UnicodeError) -> str:
    if not isinstance(error, UnicodeDecodeError):
        return "the text is not UTF-8"
    if error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "the file is UTF-16, not UTF-8"
    return f"byte {error.start + 1} of the file is 0x{error.object[error.start]:02x}, which is not UTF-8"


def _at(text: str, index: int) -> Spot:
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _only(file: str, spot: Spot, rule: str, message: str, fix: str) -> InvalidDocument:
    return InvalidDocument([Finding(file, *spot, rule, message, fix)])


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read."""

    path: Path
    value: dict[str, Json] | list[Json]
    key: str | None = None
    key_spot: Spot = (1, 1)


class _Reader:
    """Builds the data from the parser's events, one by one: no recursion, and nothing is built that was refused."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._open: list[_Open] = []
        self._places: dict[Path, SourcePlace] = {}
        self._findings: list[Finding] = []
        self._data: Json = None

    def document(self) -> Document:
        documents = 0
        for event in self._events():
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse(event, "many-documents", "a second document begins here", "keep one document a file")
                    break
            elif isinstance(event, yaml.NodeEvent):
                self._node(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
        if not documents and not self._findings:
            self._findings.append(
                Finding(self._file, 1, 1, "empty-document", "the file says nothing", "begin with `version: 1`")
            )
        if self._findings:
            raise InvalidDocument(self._findings)
        return Document(self._file, self._data, self._places)

    def _events(self) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(self._text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            self._broken(error)
        except yaml.reader.ReaderError as error:
            line, column = self._strange_character()
            character = ord(error.character) if isinstance(error.character, str | bytes) else error.character
            self._add((line, column), "bad-yaml", f"the character #x{character:04x} is not allowed", "remove it")

    def _strange_character(self) -> Spot:
        match = yaml.reader.Reader.NON_PRINTABLE.search(self._text)
        return _at(self._text, match.start() if match else 0)

    def _broken(self, error: yaml.MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        lines = self._text.split("\n")
        if line < len(lines) and "\t" in lines[line][: column + 1]:
            tab = (line + 1, lines[line].index("\t") + 1)
            self._add(tab, "tab", "a tab where YAML wants spaces", "indent with spaces")
            return
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        if error.context_mark and error.context_mark.line != line:
            problem += f" (begun in line {error.context_mark.line + 1})"
        fix = "indent with spaces, and quote texts that hold `: `, ` #`, or begin with one of {[&*!|>'\"%@`"
        self._add((line + 1, column + 1), "bad-yaml", problem, fix)

    def _node(self, event: yaml.NodeEvent) -> None:
        holder = self._open[-1] if self._open else None
        spot = _spot(event)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self._refuse(event, "anchor", "anchors and aliases are not read", "write the value out where it is used")
        elif tag := getattr(event, "tag", None):
            self._refuse(event, "tag", f"the tag {tag!r} is not read", "remove the tag; quote the value if needed")
        if holder is not None and isinstance(holder.value, dict) and holder.key is None:
            self._key(holder, event, spot)
            return
        path, key_spot = self._path(holder, spot)
        if isinstance(event, yaml.ScalarEvent):
            self._clean(event)
            self._places[path] = SourcePlace(key_spot, spot, self._source(event), event.style or "", scalar=True)
            self._put(holder, _scalar(event))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(holder, path, SourcePlace(key_spot, spot), event)
        else:
            self._put(holder, None)

    def _clean(self, event: yaml.ScalarEvent) -> None:
        """No program takes a NUL in its arguments, and half a surrogate pair is not UTF-8 anywhere."""
        if strange := _UNUSABLE.search(event.value):
            message = f"the text holds the character #x{ord(strange[0]):04x}, which nothing can be given"
            self._refuse(event, "bad-character", message, "remove it")

    def _source(self, event: yaml.ScalarEvent) -> str:
        start, end = event.start_mark, event.end_mark
        return self._text[start.index : end.index] if start and end else ""

    def _begin(self, holder: _Open | None, path: Path, place: SourcePlace, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) >= MAX_DEPTH:
            self._refuse(event, "too-deep", f"more than {MAX_DEPTH} levels", "flatten it")
            raise InvalidDocument(self._findings)
        value: dict[str, Json] | list[Json] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._places[path] = place
        self._put(holder, value)
        self._open.append(_Open(path, value))

    def _key(self, holder: _Open, event: yaml.NodeEvent, spot: Spot) -> None:
        if not isinstance(event, yaml.ScalarEvent) or _scalar(event) is None:
            self._refuse(event, "bad-key", "a key must be a plain text", "write `key: value`")
            if not isinstance(event, yaml.ScalarEvent):
                # What follows belongs to the key, so its positions would be misleading.
                raise InvalidDocument(self._findings)
        name = str(event.value)
        self._clean(event)
        if name in holder.value:
            first = self._places[(*holder.path, name)].key
            self._refuse(event, "duplicate-key", f"{name!r} is already set in line {first[0]}", "keep one of the two")
        holder.key = name
        holder.key_spot = spot

    def _path(self, holder: _Open | None, spot: Spot) -> tuple[Path, Spot]:
        if holder is None:
            return (), spot
        if isinstance(holder.value, list):
            return (*holder.path, len(holder.value)), spot
        return (*holder.path, str(holder.key)), holder.key_spot

    def _put(self, holder: _Open | None, value: Json) -> None:
        if holder is None:
            self._data = value
        elif isinstance(holder.value, list):
            holder.value.append(value)
        else:
            holder.value[str(holder.key)] = value
            holder.key = None

    def _refuse(self, event: yaml.Event, rule: str, message: str, fix: str) -> None:
        self._add(_spot(event), rule, message, fix)

    def _add(self, spot: Spot, rule: str, message: str, fix: str) -> None:
        self._findings.append(Finding(self._file, *spot, rule, message, fix))


def _spot(event: yaml.Event) -> Spot:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _scalar(event: yaml.ScalarEvent) -> Json:
    return event.value if event.style else plain(event.value)


def plain(text: str) -> Json:
    """What an unquoted word means."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
