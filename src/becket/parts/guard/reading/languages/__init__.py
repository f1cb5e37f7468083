"""Readers of source files, one per language, chosen by the file's name and loaded when first needed."""

from __future__ import annotations

from functools import lru_cache

from becket.parts.guard.reading.languages.shape import Language

_SUFFIXES = {
    "py": "python",
    "pyi": "python",
    "go": "go",
    "java": "java",
    "rs": "rust",
    "js": "javascript",
    "jsx": "javascript",
    "mjs": "javascript",
    "cjs": "javascript",
    "ts": "typescript.typescript",
    "mts": "typescript.typescript",
    "cts": "typescript.typescript",
    "tsx": "typescript.tsx",
}


def language_of(path: str) -> str | None:
    return _SUFFIXES.get(path.rpartition("/")[2].rpartition(".")[2].lower())


def language_for(path: str) -> Language | None:
    """The reader for a path; None for a language that we compare as text."""
    language = language_of(path)
    return _tongue(language) if language is not None else None


@lru_cache(maxsize=8)
def _tongue(language: str) -> Language:
    if language == "python":
        from becket.parts.guard.reading.languages.python import PYTHON

        return PYTHON
    if language == "go":
        from becket.parts.guard.reading.languages.go import GO

        return GO
    if language == "java":
        from becket.parts.guard.reading.languages.java import JAVA

        return JAVA
    if language == "rust":
        from becket.parts.guard.reading.languages.rust import RUST

        return RUST
    from becket.parts.guard.reading.languages.javascript import javascript_language

    return javascript_language(language)
