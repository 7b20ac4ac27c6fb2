"""One style for all pictures: panels, in the colours and axes of `offing.report.canvas`; and plain tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from offing.report import canvas
from offing.report.canvas import BLUE, GREEN, INK, LINE, MUTED, ORANGE

__all__ = [
    "BLUE", "GREEN", "INK", "LINE", "MUTED", "ORANGE", "Paint", "Panel", "against", "legend", "number",
    "panels", "strips", "table",
]  # fmt: skip

WIDE, HIGH, ACROSS = 260, 230, 3
Paint = Callable[[Axes], None]
Panel = tuple[str, Paint]


def panels(name: str, title: str, each: Sequence[Panel], across: int = ACROSS) -> str:
    """A picture of several panels, as a file of its own."""
    across = min(across, len(each))
    down = -(-len(each) // across)

    def paint(figure: Canvas) -> None:
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for axis in axes[len(each) :]:
            axis.set_axis_off()
        for axis, (head, draw) in zip(axes, each, strict=False):
            canvas.grid(axis)
            draw(axis)
            axis.set_title(head, fontsize=10, color=INK)

    svg = canvas.svg(name, title, WIDE * across, HIGH * down, paint)
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def legend(axis: Axes) -> None:
    """Labels, where there are any."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(frameon=False, fontsize=8)


def against(
    groups: Sequence[tuple[str, Sequence[float], Sequence[float], str]], x: str, y: str, same: bool = True
) -> Paint:
    """Points of several kinds (label, x, y, colour); with `same` a line where the two are equal."""

    def draw(axis: Axes) -> None:
        for label, across, up, colour in groups:
            axis.plot(across, up, "o", ms=4, alpha=0.7, color=colour, mec="none", label=label or None)
        if same and groups and len(groups[0][1]):
            axis.axline((groups[0][1][0], groups[0][1][0]), slope=1, color=MUTED, lw=1, ls=":")
        axis.set(xlabel=x, ylabel=y)
        canvas.plain_axis(axis.xaxis)
        canvas.plain_axis(axis.yaxis)
        legend(axis)

    return draw


def strips(
    rows: Sequence[tuple[str, Sequence[float], Sequence[tuple[str, float, str]]]],
) -> Paint:
    """A line of small marks for each row, and named ones among them (label, place, colour)."""

    def draw(axis: Axes) -> None:
        named: set[str] = set()
        for place, (_, values, marks) in enumerate(rows):
            axis.plot(values, [place] * len(values), "|", ms=9, color=MUTED, alpha=0.6)
            for label, at, colour in marks:
                axis.plot(at, place, "o", ms=6, color=colour, label=None if label in named else label)
                named.add(label)
        axis.set_yticks(range(len(rows)), [name for name, _, _ in rows])
        axis.set(ylim=(len(rows) - 0.5, -0.5), xlabel="true return")
        canvas.plain_axis(axis.xaxis)
        legend(axis)

    return draw


def number(value: object, digits: int = 3) -> str:
    """A number as tables have it; a dash where there is none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.{digits}g}"
    return str(value)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as Markdown; columns of numbers to the right."""
    right = [all(isinstance(row[i], int | float | None) for row in rows) for i in range(len(head))]
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("--:" if one else "---" for one in right) + "|"]
    lines += ["| " + " | ".join(number(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)
