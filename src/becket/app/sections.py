"""becket.yaml with the sections that parts bring."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from pydantic import create_model

from becket.app.parts import installed, load
from becket.kernel.contract.base import Record
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import UsageError
from becket.kernel.spec import load as kernel_load


def load_config(text: str | bytes, file: str, env: Mapping[str, str]) -> Config:
    """The Config that `text` says, with `${VAR}` from `env`; raises InvalidDocument."""
    return kernel_load.load_config(text, file, env, config_model())


@cache
def config_model() -> type[Config]:
    """Raises UsageError where two want the same key, or one is no section."""
    found: dict[str, type[Record]] = {}
    for part in installed():
        for name, target in part.sections.items():
            kind = load(target)
            if name in Config.model_fields or name in found:
                raise UsageError(
                    f"the part {part.name} wants `{name}` of becket.yaml, which is taken; remove that part"
                )
            if not (isinstance(kind, type) and issubclass(kind, Record)):
                raise UsageError(f"the part {part.name} ({target}) brings {kind!r} as a section, not a Record")
            found[name] = kind
    if not found:
        return Config
    fields = {name: (kind, kind()) for name, kind in found.items()}
    model: type[Config] = create_model("Config", __base__=Config, **fields)  # type: ignore[call-overload]  # by name
    model.of_parts = MappingProxyType({kind: name for name, kind in found.items()})
    return model
