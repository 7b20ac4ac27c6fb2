"""Bars and histograms, as the pictures of an inspection have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import canvas

LONGEST = 30  # letters of a label
WIDTH = 350  # of a picture


def bars(
    name: str,
    title: str,
    bars: Sequence[tuple[str, float, str]],
    colours: Sequence[str] | None = None,
    most: float | None = None,
) -> str:
    """Lying bars, each with its name and its number in words."""
    places = np.arange(len(bars))
    sizes = [size for _, size, _ in bars]
    top = most if most is not None else max(max(map(abs, sizes), default=0.0), 1e-9)
    low = -top if min(sizes, default=0.0) < 0 else 0.0

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.barh(places, sizes, color=list(colours or [canvas.BLUE] * len(bars)), alpha=0.6, height=0.6)
        for place, (_, size, text) in zip(places, bars, strict=True):
            axes.text(
                max(size, 0.0) + (0.05 if low < 0 else 0.015) * top,
                float(place),
                text,
                va="center",
                color=canvas.INK,
            )
        axes.set_yticks(places, [short(label) for label, _, _ in bars])
        axes.set(xlim=(1.05 * low, 1.3 * top), ylim=(len(bars) - 0.4, -0.6), xticks=[])
        axes.tick_params(left=False)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)

    return canvas.svg(name, title, WIDTH, 50 + 26 * len(bars), paint)


def short(label: str) -> str:
    """A label, cut where it would take the picture's room."""
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def stairs(
    axes: Axes, counts: Sequence[float], edges: Sequence[float], colour: str = canvas.BLUE, label: str = ""
) -> None:
    """A histogram as filled stairs."""
    axes.stairs(counts, edges, fill=True, color=colour, alpha=0.5, label=label or None)
