"""becket.yaml with the sections that parts bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import Field, ValidationError, create_model

from becket.app.parts import installed, loaded, part_names
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
    owners: dict[str, str] = {}
    for name, kind, part in _brought():
        if name in Config.model_fields or name in found:
            by = f"by the part {owners[name]}" if name in owners else "by Becket itself"
            raise UsageError(
                f"the part {part} wants `{name}` of becket.yaml, which is taken {by}; rename it there, or remove "
                f"{part_names(part)}"
            )
        found[name], owners[name] = kind, part
    if not found:
        return Config
    sections = {name: kind if isinstance(kind, Section) else Section(kind, kind) for name, kind in found.items()}
    fields = {name: (section.kind, _default(section, name, owners[name])) for name, section in sections.items()}
    model: type[Config] = create_model("Config", __base__=Config, __doc__=Config.__doc__, **fields)  # type: ignore[call-overload]  # by name
    model.of_parts = MappingProxyType({kind: name for name, kind in found.items()})
    model.committed_keys += tuple(name for name, section in sections.items() if section.committed)
    model.literal += tuple((name, *one.literal) for name, one in sections.items() if one.literal is not None)
    return model


def _brought() -> Iterator[tuple[str, type[Record] | Section[Any], str]]:
    for part in installed():
        for name, target in part.sections.items():
            kind = loaded(part, target)
            if not (isinstance(kind, Section) or (isinstance(kind, type) and issubclass(kind, Record))):
                raise UsageError(f"the part {part.name} ({target}) brings {kind!r}, neither Record nor Section")
            yield name, kind, part.name


def _default(section: Section[Any], name: str, part: str) -> Any:
    if section.default is dict:
        return Field(default_factory=dict)
    try:
        return section.default()
    except Exception as error:  # a key without a default, or a default that its own type refuses
        lacks = error.errors() if isinstance(error, ValidationError) else []
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in lacks) or str(error)
        raise UsageError(
            f"the part {part} has no default for its section `{name}` of becket.yaml: {said}; "
            f"give every key one, or remove {part_names(part)}"
        ) from error
