"""Small charts: bars that a browser draws without a script, with the same figures as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from becket.app.record.report.plain import took
from becket.app.record.trends import Span

HEIGHT = 100
STEP, BAR = 10, 8


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _money(value: float) -> str:
    return f"${value:.2f}" if value >= 0.01 or not value else f"${value:.4f}"


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    title: str
    says: str
    value: Callable[[Span], float | None]
    show: Callable[[float], str]
    most: float | None = None  # of what the bars are a share, if that is known


KINDS = (
    _Kind("time_to_green", "Time to green", "From the start of a run to its proof, on average.",
          lambda span: span.time_to_green, took),
    _Kind("heal_rate", "Heal rate", "Of the runs that had something to repair, those that left a proven repair.",
          lambda span: span.heal_rate, _percent, 1.0),
    _Kind("gate_time", "Gate time", "How long one gate took, on average.", lambda span: span.gate_time, took),
    _Kind("flakes", "Flakes", "Of the gates that ran, those that saw tests which pass and fail.",
          lambda span: span.flakes, _percent, 1.0),
    _Kind("usd_per_change", "Spend per promoted change", "What agents cost, by the repairs that reached the branch.",
          lambda span: span.usd_per_change, _money),
    _Kind("usd", "Spend", "What agents cost, as far as anybody says.", lambda span: span.usd,
          _money),
)  # fmt: skip
SHOWN = ("time_to_green", "heal_rate", "gate_time", "flakes", "usd_per_change")


@dataclass(frozen=True, slots=True)
class Chart:
    """`rows` are what the bars show, in words: the date and the figure, empty where there is none."""

    name: str
    title: str
    says: str
    bars: Markup
    rows: tuple[tuple[str, str], ...]
    top: str
    last: str
    last_at: str

    @property
    def empty(self) -> bool:
        return not self.top


def charts_of(spans: Sequence[Span], only: Sequence[str] = ()) -> list[Chart]:
    """In the order of `only`, or those of the page of trends."""
    kinds = {kind.name: kind for kind in KINDS}
    return [_chart(kinds[name], spans) for name in only or SHOWN]


def _chart(kind: _Kind, spans: Sequence[Span]) -> Chart:
    values = [kind.value(span) for span in spans]
    pairs = list(zip(spans, values, strict=True))
    known = [(span.date, value) for span, value in pairs if value is not None]
    most = kind.most or max((value for _, value in known), default=0.0) or 1.0
    return Chart(
        kind.name, kind.title, kind.says, _bars(values, most),
        tuple((span.date, "" if value is None else kind.show(value)) for span, value in pairs),
        kind.show(most) if known else "", kind.show(known[-1][1]) if known else "", known[-1][0] if known else "",
    )  # fmt: skip


def _bars(values: Sequence[float | None], most: float) -> Markup:
    """Stretched by the page's style: nothing in it is text."""
    bars = "".join(_bar(at, value, most) for at, value in enumerate(values) if value is not None)
    width = STEP * len(values)
    return Markup(  # noqa: S704  # numbers
        f'<svg viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'
    )


def _bar(at: int, value: float, most: float) -> str:
    """Nought is a line: it was measured."""
    height = max(HEIGHT * min(value / most, 1.0), 1.5)
    left, top = STEP * at + (STEP - BAR) / 2, HEIGHT - height
    return f'<rect x="{left:g}" y="{top:.1f}" width="{BAR}" height="{height:.1f}"></rect>'
