"""The pictures of docs/concepts, drawn by seed: python -m tools.figures writes docs/concepts/img/*.svg.

Each is a small experiment of its own in numpy, so that a picture shows what happens and not what was wished for.
"""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

OUT = Path(__file__).parents[1] / "docs" / "concepts" / "img"
INK, WORLD, TRUTH, PLAN = "#37474f", "#26a69a", "#37474f", "#ef6c00"
STYLE: Any = {  # matplotlib names its keys by a type of its own
    "svg.hashsalt": "offing",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "white",
}


def truth(state: np.ndarray) -> np.ndarray:
    """What the next state truly is, of a world with one state."""
    return np.sin(2.2 * state) + 0.3 * state


def features(state: np.ndarray, waves: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Random cosines of the state: a smooth regression that knows nothing beforehand."""
    return np.cos(state[:, None] * waves + shifts) * np.sqrt(2 / len(waves))


def worlds(rng: np.random.Generator, seen: np.ndarray, grid: np.ndarray, noise: float, count: int) -> np.ndarray:
    """`count` draws from a Bayesian regression on what was seen, over the grid: [count, len(grid)]."""
    waves, shifts = rng.normal(0, 1.6, 200), rng.uniform(0, 2 * np.pi, 200)
    rows = features(seen, waves, shifts)
    outcome = truth(seen) + rng.normal(0, noise, len(seen))
    covariance = np.linalg.inv(rows.T @ rows / noise**2 + np.eye(200) / 2.0)
    mean = covariance @ rows.T @ outcome / noise**2
    weights = rng.multivariate_normal(mean, covariance, size=count, method="eigh")
    return weights @ features(grid, waves, shifts).T


def log_of(rng: np.random.Generator) -> np.ndarray:
    """States that a behaviour visited: two regions, and hardly anything between them."""
    return np.concatenate([rng.uniform(-3, -0.9, 40), rng.uniform(0.9, 2.2, 25)])


def posterior() -> Figure:
    """Worlds that agree where the log has been and part where it has not."""
    rng = np.random.default_rng(3)
    seen, grid = log_of(rng), np.linspace(-3.4, 3.4, 300)
    figure, axes = plt.subplots(figsize=(7, 3.2))
    drawn = worlds(rng, seen, grid, 0.1, 10)
    axes.plot(grid, drawn.T, color=WORLD, alpha=0.7, lw=1)
    axes.plot([], [], color=WORLD, label="ten worlds that all fit the log")
    axes.plot(grid, truth(grid), color=TRUTH, ls="--", lw=1.5, label="the truth, which nobody has")
    axes.plot(seen, truth(seen) + rng.normal(0, 0.1, len(seen)), ".", color=INK, label="the log", ms=5)
    axes.set(xlabel="state", ylabel="next state", ylim=(-3.2, 3.2))
    axes.legend(frameon=False, loc="upper center", ncols=3, fontsize=9)
    return figure


def one_pil(axes: Axes, grid: np.ndarray, drawn: np.ndarray, title: str) -> None:
    """Mean and band of the worlds beside the truth, with E and V in the title."""
    mean, spread = drawn.mean(0), drawn.std(0)
    error, variance = np.mean((mean - truth(grid)) ** 2), np.mean(spread**2)
    axes.fill_between(
        grid, mean - 2 * spread, mean + 2 * spread, color=WORLD, alpha=0.25, lw=0, label="spread (V)"
    )
    axes.fill_between(grid, mean, truth(grid), color=PLAN, alpha=0.5, lw=0, label="error (E)")
    axes.plot(grid, mean, color=WORLD, lw=1.5, label="mean of the worlds")
    axes.plot(grid, truth(grid), color=TRUTH, ls="--", lw=1.2, label="truth")
    axes.set(title=f"{title}: E = {error:.3f}, V = {variance:.3f}", xlabel="state", ylim=(-3.2, 3.2))


def pil() -> Figure:
    """The same error, once with a spread that admits it and once without."""
    rng = np.random.default_rng(3)
    seen, grid = log_of(rng), np.linspace(-3, 2.4, 300)
    drawn = worlds(rng, seen, grid, 0.1, 200)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    mean = drawn.mean(0)
    agree = np.sqrt(np.mean((mean - truth(grid)) ** 2) / np.mean(drawn.std(0) ** 2))
    one_pil(left, grid, mean + agree * (drawn - mean), "calibrated")
    one_pil(right, grid, mean + 0.15 * (drawn - mean), "over-confident")
    left.set_ylabel("next state")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="lower center", ncols=4, fontsize=9)
    figure.subplots_adjust(bottom=0.27)
    return figure


def held_out() -> Figure:
    """Promise less truth of the best of 50 plans, in the worlds that chose it and in worlds that did not."""
    rng = np.random.default_rng(0)
    runs, plans = 4000, 50
    true = rng.normal(0, 1, (runs, plans))
    training, other = (true + rng.normal(0, 0.8, (runs, plans)) for _ in range(2))
    best = training.argmax(1)
    pick = np.arange(runs), best
    figure, axes = plt.subplots(figsize=(7, 3))
    edges = list(np.linspace(-3, 4, 71))
    axes.hist(training[pick] - true[pick], edges, color=PLAN, alpha=0.7, label="in the worlds it was planned in")
    axes.hist(other[pick] - true[pick], edges, color=WORLD, alpha=0.7, label="in held-out worlds")
    axes.axvline(0, color=TRUTH, ls="--", lw=1.2)
    axes.set(xlabel="promised less true return of the chosen plan", yticks=[])
    axes.legend(frameon=False, fontsize=9)
    return figure


def interval() -> Figure:
    """One point per world, and the interval that counts more than they show."""
    rng = np.random.default_rng(5)
    values = rng.normal(62, 3.5, 10)
    figure, axes = plt.subplots(figsize=(7, 2.2))
    axes.plot(values, np.full(10, 1.0), "o", color=WORLD, ms=6)
    middle, wide = np.median(values), 1.83 * np.sqrt(values.var(ddof=1) * 1.1 + 2.5**2 + 2.0**2)
    axes.plot([values.min(), values.max()], [0.5, 0.5], color=WORLD, lw=3)
    axes.plot([middle - wide, middle + wide], [0, 0], color=PLAN, lw=3)
    axes.plot(middle, 0, "o", color=PLAN)
    labels = ["interval: worlds, starts and gap", "range of the worlds alone", "return in each held-out world"]
    axes.set_yticks([0, 0.5, 1], labels)
    axes.set(xlabel="return", ylim=(-0.4, 1.4))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    return figure


QUESTIONS = (
    ("Is the log\nsound?", "NOT-ENOUGH-\nEVIDENCE"),
    ("Have such predictions\nheld where they could\nbe checked?", "NOT-ENOUGH-\nEVIDENCE"),
    ("Does the policy stay\nwhere the log\nhas been?", "NOT-ENOUGH-\nEVIDENCE"),
    ("Will it earn more\nthan the baseline?", "surely less: NO-GO\nunsure: NOT-ENOUGH-\nEVIDENCE"),
)


def verdict() -> Figure:
    """The questions from left to right, GO at the end."""
    figure, axes = plt.subplots(figsize=(9.5, 2.6))
    arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.2}
    for i, (question, no) in enumerate(QUESTIONS):
        box = {"boxstyle": "round,pad=0.5", "facecolor": "#e0f2f1", "edgecolor": WORLD}
        axes.text(2 * i, 1, question, ha="center", va="center", fontsize=8.5, bbox=box)
        axes.annotate("", (2 * i + 1.16, 1), (2 * i + 0.84, 1), arrowprops=arrow)
        axes.text(2 * i + 1, 1.12, "yes", ha="center", fontsize=8)
        axes.annotate("", (2 * i, 0.28), (2 * i, 0.66), arrowprops=arrow)
        axes.text(2 * i + 0.08, 0.45, "no", fontsize=8)
        axes.text(2 * i, 0.2, no, ha="center", va="top", fontsize=8, color=PLAN)
    go = {"boxstyle": "round,pad=0.5", "facecolor": WORLD, "edgecolor": WORLD}
    axes.text(7.6, 1, "GO", ha="center", va="center", color="white", weight="bold", bbox=go)
    axes.set(xlim=(-0.9, 8), ylim=(-0.35, 1.5))
    axes.axis("off")
    return figure


FIGURES = {"posterior": posterior, "pil": pil, "held-out": held_out, "interval": interval, "verdict": verdict}


def main() -> None:
    """Write every figure."""
    OUT.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        for name, draw in FIGURES.items():
            figure = draw()
            figure.savefig(OUT / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
