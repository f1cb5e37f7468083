"""Data that only tests read: by a path or a name that stands in their text."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from becket.parts.guard.reading.found.names import folders_of, is_data, is_source, named_for_tests

_TOKEN = re.compile(rb"""["'`/]([\w@+-][\w.@+-]{2,80}(?:/[\w.@+-]{1,80}){0,8})""")
_MOST_TEXT = 4_000_000
_MOST_LOOKED_FOR = 60_000_000  # bytes of product text, times names


class DataFiles:
    """Folders and files without source, that are not known to be tests' yet."""

    def __init__(self, paths: Collection[str], known: Collection[str]) -> None:
        self._files = {path for path in paths if is_data(path) and path not in known}
        with_source = {folder for path in paths if is_source(path) and path not in known for folder in folders_of(path)}
        self._below: dict[str, list[str]] = defaultdict(list)
        for path in self._files:
            for folder in folders_of(path):
                if folder not in with_source:
                    self._below[folder].append(path)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in (*self._files, *self._below):
            self._by_name[path.rpartition("/")[2]].append(path)

    def read_in(self, texts: Mapping[str, bytes]) -> set[str]:
        """Files and folders that these texts name. The smaller texts first, and not without end."""
        found: set[str] = set()
        left = _MOST_TEXT if self._by_name else 0
        for path in sorted(texts, key=lambda path: (len(texts[path]), path)):
            left -= len(texts[path])
            if left < 0:
                break
            for token in set(_TOKEN.findall(texts[path])):
                found.update(self._named(path.rpartition("/")[0], token.decode("utf-8", "replace")))
        return found

    def _named(self, reader: str, token: str) -> Iterator[str]:
        name = token.rpartition("/")[2]
        places = self._by_name.get(name)
        if places is None:
            head = token.partition("/")[0]  # `json_testcases/gcd` of `json_testcases/gcd_%d.json`
            yield from (place for place in self._by_name.get(head, ()) if place == head and place in self._below)
            return
        near = [posixpath.normpath(posixpath.join(root, token)) for root in (reader, reader.rpartition("/")[0], "")]
        exact = [place for place in places if place in near]
        ending = [place for place in places if "/" in token and place.endswith(f"/{token}")]
        yield from exact or ending or (places if len(places) == 1 and places[0] in self._files else ())

    def below(self, place: str) -> list[str]:
        return [place] if place in self._files else self._below[place]

    def is_folder(self, place: str) -> bool:
        return place in self._below


def not_read_by(texts: Iterable[bytes], places: Collection[str]) -> set[str]:
    """Those of the places that no such text names. What a name like `testdata` says by itself is not looked for."""
    named = set(places)
    outermost = {place for place in named if not any(folder in named for folder in folders_of(place))}
    kept = {place for place in outermost if named_for_tests(f"{place}/x")}
    others = sorted(outermost - kept)
    if not others:
        return kept
    whole = b"\n".join(texts)
    most = max(_MOST_LOOKED_FOR // (len(whole) + 1), 4)
    for place in others[:most]:
        name = place.rpartition("/")[2].encode("utf-8", "replace")
        if not any(mark + name in whole for mark in (b'"', b"'", b"/", b"`")):
            kept.add(place)
    return kept
