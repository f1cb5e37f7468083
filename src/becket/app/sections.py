"""becket.yaml with the sections that parts bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import Field, create_model

from becket.app.parts import installed, load
from becket.kernel.contract.base import Record
from becket.kernel.contract.config import Config, Section
from becket.kernel.contract.errors import UsageError
from becket.kernel.spec import load as kernel_load


def load_config(text: str | bytes, file: str, env: Mapping[str, str]) -> Config:
    """The Config that `text` says, with `${VAR}` from `env`; raises InvalidDocument."""
    return kernel_load.load_config(text, file, env, config_model())


@cache
def config_model() -> type[Config]:
    """Raises UsageError where two want the same key, or one is no section."""
    found: dict[str, type[Record] | Section[Any]] = {}
    for name, kind, part in _brought():
        if name in Config.model_fields or name in found:
            raise UsageError(f"the part {part} wants `{name}` of becket.yaml, which is taken; remove that part")
        found[name] = kind
    if not found:
        return Config
    sections = {name: kind if isinstance(kind, Section) else Section(kind, kind) for name, kind in found.items()}
    fields = {name: (section.kind, _default(section)) for name, section in sections.items()}
    model: type[Config] = create_model("Config", __base__=Config, __doc__=Config.__doc__, **fields)  # type: ignore[call-overload]  # by name
    model.of_parts = MappingProxyType({kind: name for name, kind in found.items()})
    model.committed_keys += tuple(name for name, section in sections.items() if section.committed)
    model.literal += tuple((name, *one.literal) for name, one in sections.items() if one.literal is not None)
    return model


def _brought() -> Iterator[tuple[str, type[Record] | Section[Any], str]]:
    for part in installed():
        for name, target in part.sections.items():
            kind = load(target)
            if not (isinstance(kind, Section) or (isinstance(kind, type) and issubclass(kind, Record))):
                raise UsageError(f"the part {part.name} ({target}) brings {kind!r}, neither Record nor Section")
            yield name, kind, part.name


def _default(section: Section[Any]) -> Any:
    return Field(default_factory=dict) if section.default is dict else section.default()
