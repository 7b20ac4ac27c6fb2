"""What all pictures share: an SVG that a page can recolour, its style and colours, axes with plain numbers.

The same numbers give the same text. Numbers that are not finite are left out of a picture.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from typing import Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from matplotlib.typing import RcKeyType
from numpy.typing import ArrayLike

from ..wording import number

# Okabe and Ito's colours, which the colour-blind tell apart; a page may set the variables for the dark.
INK, MUTED, LINE = "#1c2024", "#646b73", "#d3d7dc"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
VARIABLES = {INK: "ink", MUTED: "muted", LINE: "line", BLUE: "blue", ORANGE: "orange", GREEN: "green"}
STYLE: dict[RcKeyType, str | float | bool] = {
    "svg.fonttype": "none",  # text stays text
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": LINE,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
}
Numbers = ArrayLike | Sequence[float | None] | Sequence[tuple[float | None, ...]]
LARGEST = 1e30  # beyond this a number is not drawn


def svg(name: str, title: str, width: int, height: int, paint: Callable[[Figure], None]) -> str:
    """The painted figure as one `<svg>` element: no size, address or date in it, colours as variables."""
    buffer = io.StringIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's own style
        matplotlib.rcParams.update({**STYLE, "svg.hashsalt": name})
        figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
        paint(figure)
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    text = buffer.getvalue()
    text = re.sub(r"<!--.*?-->\s*|<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    body = text[text.index(">") + 1 :].replace("xlink:href", "href")
    used = set(re.findall(r"#([\w-]+)", body))
    body = re.sub(r' id="([\w.-]+)"', lambda match: match[0] if match[1] in used else "", body)
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, f"var(--{variable}, {colour})")
    label = html.escape(title)
    return f'<svg class="{name}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{body.strip()}'


def drawable(values: Numbers) -> np.ndarray:
    """The values as floats, those that cannot be drawn as NaN."""
    array = np.asarray(values, dtype=float)  # None becomes NaN
    return np.where(np.abs(array) <= LARGEST, array, np.nan)


def finite(values: Numbers) -> np.ndarray:
    """The values that can be drawn, in one row."""
    flat = drawable(values).ravel()
    return flat[~np.isnan(flat)]


def limits(values: Sequence[float] | np.ndarray, pad: float = 0.04) -> tuple[float, float]:
    """Where an axis begins and ends that holds the values, with some room either way."""
    kept = finite(values)
    low, high = (float(kept.min()), float(kept.max())) if len(kept) else (0.0, 0.0)
    margin = pad * (high - low) or 0.05 * abs(low) or 1.0
    return low - margin, high + margin


def plain_axis(axis: Axis) -> None:
    """Few ticks, and numbers as people write them."""
    axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
    axis.set_minor_locator(FixedLocator([]))


def grid(axes: Axes, axis: Literal["both", "x", "y"] = "both") -> None:
    """Thin lines behind what is drawn."""
    axes.grid(True, axis=axis, color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
