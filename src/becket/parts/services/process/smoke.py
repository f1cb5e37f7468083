"""A trial beside everything else: built and asked once, inside the sandbox, on a port that nobody else uses."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.git import OBJECTS
from becket.kernel.contract.process import ChildEnd, ChildResult, ChildSpec, Network, Processes
from becket.kernel.process.child import KeeperProgram
from becket.parts.services.ports import MARKER, Smoked
from becket.parts.services.process import probe
from becket.parts.services.process.environment import read_env_file
from becket.parts.services.process.shared import copy_shared
from becket.parts.services.section import ServiceConfig

_TAIL, _LOOKED_AT = 2000, 100_000


class ContainedSmokes:
    """`hidden` is as for every contained child; `root` is the person's work tree. Trees are those of workspaces."""

    def __init__(
        self,
        processes: Processes,
        root: Path,
        *,
        hidden: Sequence[Path] = (),
        answer_within: float = 30.0,
        build_within: float = 1800.0,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._redact = redact
        self._processes = processes
        self._root = root
        self._hidden = tuple(hidden)
        self._answer_within, self._build_within = answer_within, build_within

    async def build(self, config: ServiceConfig, tree: Path, log: Path) -> Smoked:
        try:
            copy_shared(self._root, tree, config.shared)
        except (UsageError, OSError) as error:
            return Smoked(ok=False, reason=str(error))
        if config.build is None:
            return Smoked(ok=True)
        argv, env = ("sh", "-euc", config.build.run), config.build.variables(os.environ)
        spec = self._spec(argv, tree, log, env, Network.full, self._build_within)
        return self._judged("build", await self._processes.run(spec), log)

    async def smoke(self, config: ServiceConfig, tree: Path, log: Path) -> Smoked:
        if config.port is None:
            return Smoked(ok=True, reason="it has no port")
        try:
            env = read_env_file(self._root / config.env_file) if config.env_file else {}
        except UsageError as error:
            return Smoked(ok=False, reason=str(error))
        env = {name: value for name, value in env.items() if not name.startswith("GIT_")}
        python = str(KeeperProgram.default().python)
        argv = (
            python, "-I", "-S", "-c", probe.SOURCE, config.start, config.health.url, f"{self._answer_within:g}"
        )  # fmt: skip
        within = self._answer_within + 10.0
        spec = self._spec(argv, tree, log, {**env, MARKER: "smoke"}, Network.loopback, within)
        return self._judged("smoke", await self._processes.run(spec), log)

    def _spec(
        self, argv: tuple[str, ...], tree: Path, log: Path, env: Mapping[str, str], network: Network, within: float
    ) -> ChildSpec:
        return ChildSpec(
            argv=argv, tree=tree, env=env, network=network, timeout=within, output=log, hidden=self._hidden,
            readable=(tree.with_name(OBJECTS),),
        )  # fmt: skip

    def _judged(self, what: str, result: ChildResult, log: Path) -> Smoked:
        if result.ok:
            return Smoked(ok=True)
        how = {
            ChildEnd.exited: f"exit code {result.exit_code}",
            ChildEnd.timeout: f"not done within its time ({result.seconds:.0f} s)",
            ChildEnd.killed: "it was killed",
            ChildEnd.not_started: "it could not be started",
        }[result.end]
        said = " ".join(part for part in (result.message, self._tail(log)) if part)
        return Smoked(ok=False, reason=f"{what}: {how}. {said}".strip())

    def _tail(self, log: Path) -> str:
        """Secrets are taken out before it is cut: half of one is not to be recognised (L25)."""
        try:
            said = log.read_bytes()[-_LOOKED_AT:].decode("utf-8", "replace")
        except OSError:
            return ""
        return self._redact(said)[-_TAIL:].strip()
