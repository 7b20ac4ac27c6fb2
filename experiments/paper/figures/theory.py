"""Counterpart of fig:theoretical_regret_curves; beside it the bound is held to problems whose regret is known."""

from __future__ import annotations

from matplotlib.axes import Axes

from ..drawing import BLUE, GREEN, MUTED, ORANGE, Paint, legend, number, panels, table
from .figure import Drawn, Figure, Record, Records

COLOURS = (BLUE, ORANGE, GREEN, MUTED)


def lines(rows: list[float], named: dict[str, list[float]], log: bool = False) -> Paint:
    """A line for each name, against rows."""

    def draw(axis: Axes) -> None:
        for colour, (name, values) in zip(COLOURS, named.items(), strict=False):
            axis.plot(rows, values, color=colour, label=name)
        axis.set(xscale="log", xlabel="rows")
        if log:
            axis.set_yscale("log")
        legend(axis)

    return draw


def draw(records: Records) -> Drawn:
    each, blocks = [], []
    of = lambda name: records.get(f"theory/{name}", {}).get("numbers")
    if (n := of("curves")) is not None:
        each.append(
            ("bound, by parameters d", lines(n["rows"], {f"d = {k}": v for k, v in n["parameters"].items()}))
        )
        named = {f"discount {k}": v for k, v in n["discounts"].items()}
        each.append(("bound, by discount", lines(n["rows"], named)))
    for name, title in (("tabular", "tabular"), ("linear", "linear")):
        if (n := of(name)) is not None:
            floor = lambda values: [v if v > 0 else float("nan") for v in values]
            named = {"bound": n["bound"], "true regret": floor(n["regret"]), "PIL": n["pil"]}
            each.append((f"{title}: bound and regret", lines(n["rows"], named, log=True)))
    blocks += [bounds(of("tabular"), of("linear"))] if of("tabular") or of("linear") else []
    if (n := of("rate")) is not None:
        named = {"measured": n["pil"], "d / 2N": n["exact"]}
        each.append(("information rate (spread)", lines(n["rows"], named, log=True)))
        rows = [[round(r), v, e, v / e] for r, v, e in zip(n["rows"], n["pil"], n["exact"], strict=True)]
        blocks.append(
            f"Linear worlds of {n['weights']} weights; the fitted slope of their spread against rows is "
            f"{number(n['slope'])} (theory: -1).\n\n" + table(["rows", "spread", "d / 2N", "ratio"], rows)
        )
    if (n := of("wrong")) is not None:
        blocks.append(misspecified(n["each"]))
    pictures = {"theory": panels("theory", "The regret bound, and what is true", each)} if each else {}
    return Drawn("\n\n".join(blocks), pictures)


def bounds(tabular: Record | None, linear: Record | None) -> str:
    """The bound beside the true regret, as shares of the largest regret that there can be."""
    found = [(name, n) for name, n in (("tabular", tabular), ("linear", linear)) if n is not None]
    rows = [
        [name, size, *(n[key][i] for key in ("pil", "bound", "regret", "not_vacuous"))]
        for name, n in found
        for i, size in enumerate(n["rows"])
    ]
    words = [
        f"{name}: {n['violations']} violations in {n['cases']} posteriors, PIL falls with a slope of "
        f"{number(n['slope'])}"
        for name, n in found
    ]
    head = ["problem", "rows", "PIL", "bound", "true regret", "bound below 1 in"]
    return table(head, rows) + "\n\n" + "; ".join(words) + "."


def misspecified(each: list[Record]) -> str:
    """Straight lines for worlds that bend, averaged over seeds."""
    rows = []
    for bend, size in dict.fromkeys((one["bend"], one["rows"]) for one in each):
        mine = [one for one in each if (one["bend"], one["rows"]) == (bend, size)]
        mean = lambda name, mine=mine: sum(one[name] for one in mine) / len(mine)
        words = ", ".join(dict.fromkeys(one["word"] for one in mine))
        rows.append([bend, size, mean("error"), mean("spread"), mean("imbalance"), words])
    head = ["bend", "rows a fold", "error E", "spread V", "imbalance", "said of it"]
    return "Straight lines for worlds that bend, averaged over seeds:\n\n" + table(head, rows)


figure = Figure("theory", "The regret bound, the information rate, and worlds of a wrong form", ("theory/",), draw)
