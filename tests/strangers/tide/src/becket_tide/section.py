"""Its key of becket.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from becket.kernel.contract.base import Record
from becket.kernel.contract.config import Config


class TideConfig(Record):
    height: int = Field(default=1, ge=0, le=20, description="How high the water stands.")
    buoy: str | None = Field(default=None, description="What it signs its marks with.")


def secrets(config: Config, environ: Mapping[str, str], home: Path) -> dict[str, str]:
    buoy = config.section(TideConfig).buoy
    return {"tide.buoy": buoy} if buoy else {}
