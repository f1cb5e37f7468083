"""What becket.yaml and this machine allow a run, asked anew at each step."""

from __future__ import annotations

from collections.abc import Callable

from becket.app.keyboard import at_keyboard
from becket.app.sandboxes import Sandboxes
from becket.app.settings import LiveSettings
from becket.kernel.contract.calls import CallLimits, CallRequest
from becket.kernel.contract.config import Budgets
from becket.kernel.contract.loop import Loops
from becket.kernel.contract.run import Run
from becket.kernel.contract.spec import Autonomy, Budget, LoopSpec


class ConfiguredPolicy:
    """The engine's port; what it reads changes under its hands."""

    def __init__(
        self, settings: LiveSettings, sandboxes: Sandboxes, loops: Callable[[], Loops], limits: Callable[[], CallLimits]
    ) -> None:
        self._settings = settings
        self._sandboxes = sandboxes
        self._loops = loops
        self._limits = limits

    def autonomy(self, spec: LoopSpec, run: Run | None = None) -> Autonomy:
        wished = run.autonomy if run is not None and run.autonomy is not None else Autonomy.release
        now = self._settings.now()
        if now.trouble:
            return Autonomy.observe  # what a person wanted to change is not known
        capped = Autonomy.propose if self.uncontained() else Autonomy.release
        return Autonomy.lowest(now.config.autonomy, spec.autonomy, wished, capped)

    def uncontained(self) -> str:
        """Above `propose`, files, processes and network must be contained, or given up in so many words."""
        config = self._settings.now().config
        if config.autonomy.rank <= Autonomy.propose.rank:
            return ""  # nothing to cap; do not probe for it
        return self._sandboxes.missing(config)

    def capped_by(self) -> str:
        return "becket.yaml does not load" if self._settings.now().trouble else self.uncontained()

    def budget(self, run: Run, stored: Budget) -> Budget:
        for loop in self._loops().all():
            if loop.spec.loop_id == run.loop_id:
                return loop.spec.budget
        return stored

    def budgets(self) -> Budgets:
        return self._settings.now().config.budgets

    def why_unenforceable(self, run: Run, wish: CallRequest) -> str:
        return self._limits().why_unenforceable(wish.agent, run.loop_id)

    def owner(self) -> str:
        config = self._settings.now().config
        return config.handoff_to or at_keyboard(config).name
