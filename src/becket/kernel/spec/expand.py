"""`${VAR}`, `${VAR:-default}` and the literal `$${` in becket.yaml. Not where a `$` is the shell's own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import Finding
from becket.kernel.spec.document import Document, Path

_PIECE = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\})?")


def expanded(
    document: Document, env: Mapping[str, str], literal: Collection[Path]
) -> tuple[Document, dict[Path, str], list[Finding]]:
    """The document with its variables filled in, what those values were before, and what could not be filled.

    What stands at `literal` places stays as it is.
    """
    walk = _Walk(document, env, literal)
    data = walk.value((), document.data)
    return replace(document, data=data), walk.written, walk.findings


class _Walk:
    def __init__(self, document: Document, env: Mapping[str, str], literal: Collection[Path]) -> None:
        self._literal = literal
        self._document = document
        self._env = env
        self.written: dict[Path, str] = {}
        self.findings: list[Finding] = []

    def value(self, path: Path, value: Json) -> Json:
        if path in self._literal:
            return value
        if isinstance(value, dict):
            return {key: self.value((*path, key), item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value((*path, index), item) for index, item in enumerate(value)]
        return self._text(path, value) if isinstance(value, str) and "${" in value else value

    def _text(self, path: Path, text: str) -> str:
        self.written[path] = text
        return _PIECE.sub(lambda match: self._filled(path, match), text)

    def _filled(self, path: Path, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if match[0] == "$${":
            return "${"
        if name is None:
            self._refuse(
                path,
                match,
                "bad-variable",
                "`${` does not begin a variable",
                "write ${NAME}, ${NAME:-default}, or $${ for a literal ${",
            )
        elif default is not None:
            return self._env.get(name) or default
        elif name not in self._env:
            self._refuse(
                path,
                match,
                "undefined-variable",
                f"the variable {name} is not set",
                f"set {name}, or write ${{{name}:-default}}, or $${{{name}}} for the literal text",
            )
        else:
            return self._env[name]
        return match[0]

    def _refuse(self, path: Path, match: re.Match[str], rule: str, message: str, fix: str) -> None:
        spot = self._document.inside(path, match.start())
        self.findings.append(self._document.finding(spot, rule, message, fix))
