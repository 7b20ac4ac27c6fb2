"""PIL against the size of the log: what `offing posterior SAMPLE --rows N --seed S` finds, for every N and S.

    python experiments/pil_against_rows.py

One process, so that programs are compiled once and serve every size and seed. Runs that are finished are kept
in results/ and not run again. prints the table that stands in docs/results/worlds.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

import offing
from offing.posterior.models.ensemble import space as world_space
from offing.report.store import pil_dict, write
from offing.tune.choose import choose_posterior

DIFFER = ("width", "lr", "own", "shared", "prior_scale", "bootstrap", "decay")
RESULTS = Path(__file__).parent / "results" / "pil_against_rows.json"


def one(sample: str, rows: int, seed: int, scale: str) -> dict[str, Any]:
    """One run's row of the table."""
    began = time.perf_counter()
    log = offing.load(sample, rows, seed)
    choice = choose_posterior(jax.random.key(seed), log, world_space(scale, log.data.rows), seed)
    point = choice.points[choice.index]
    return {
        "sample": sample,
        "rows": rows,
        "seed": seed,
        "scale": scale,
        "settings": len(choice.points),
        "calibrated_settings": sum(score.calibrated for score in choice.scores),
        "chosen": {
            k: getattr(point, k)
            for k in ("width", "depth", "updates", "own", "shared", "prior_scale", "bootstrap", "decay")
        },
        "nll": choice.nll[choice.index],
        "noise_scale": float(np.mean(choice.share)),
        **cast(dict, pil_dict(choice.pil, log.task)),
        "tried": [
            {"error": score.e, "spread": score.v, "nll": nll, **{k: getattr(h, k) for k in DIFFER}}
            for score, nll, h in zip(choice.scores, choice.nll, choice.points, strict=True)
        ],
        "seconds": round(time.perf_counter() - began, 1),
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "python": platform.python_version(),
    }


def table(runs: list[dict[str, Any]]) -> str:
    """The runs as Markdown."""
    lines = [
        "| log | rows | seed | E | V | PIL | imbalance | | noise scale | chosen |",
        "|---|--:|--:|--:|--:|--:|--:|---|--:|---|",
    ]
    for r in sorted(runs, key=lambda r: (r["sample"], r["rows"], r["seed"])):
        chosen = ", ".join(f"{k} {v:g}" for k, v in r["chosen"].items())
        name = r["sample"].removeprefix("offing:")
        lines.append(
            f"| {name} | {r['rows']:,} | {r['seed']} | {r['error']:.3g} | {r['spread']:.3g} | {r['total']:.3g} "
            f"| {r['imbalance']:+.2f} | {r['word']} | {r['noise_scale']:g} | {chosen} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", nargs="+", default=["offing:pendulum", "offing:cartpole"])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 5_000, 20_000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--scale", default="standard")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    runs = json.loads(given.out.read_text()) if given.out.exists() else []
    for sample in given.samples:
        for rows in given.rows:
            for seed in given.seeds:
                if any(
                    (r["sample"], r["rows"], r["seed"], r["scale"]) == (sample, rows, seed, given.scale)
                    for r in runs
                ):
                    continue
                runs.append(one(sample, rows, seed, given.scale))
                write(given.out, (json.dumps(runs, indent=1) + "\n").encode())
                last = runs[-1]
                print(
                    f"{sample} {rows} {seed}: PIL {last['total']:.3g} {last['word']} {last['seconds']} s",
                    flush=True,
                )
    print(table(runs))


if __name__ == "__main__":
    main()
