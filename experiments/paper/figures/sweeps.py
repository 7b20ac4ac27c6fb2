"""What TOReL's figures share: its sweeps, and what other selectors say of the same policies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from offing.value import metrics

from .figure import Record, Records, pairs

NAMES = {"predictive": "TOReL", "fqe": "FQE", "dualdice": "DualDICE", "dr": "DR", "is": "IS"}
D4RL = ("halfcheetah_medium_expert", "hopper_medium", "walker2d_medium_replay", "toy_medium_expert")
ADROIT = ("pen_expert", "hammer_expert")
STRONG, SURE = 0.5, 0.05  # of |r| and p, as the paper has it
FLAT = 0.05  # a sweep whose returns differ by less than this share of the best has no spread


class Sweep(NamedTuple):
    """A sweep that was played: what was said of every policy, and what it earned."""

    task: str
    planner: str
    seed: int
    said: dict[str, np.ndarray]  # by selector
    true: np.ndarray
    chosen: int
    row: Record

    @property
    def name(self) -> str:
        return f"{self.task} {self.planner}" + (f" {self.seed}" if self.seed else "")

    @property
    def flat(self) -> bool:
        """Whether its policies earn about the same, so that there is nothing to rank."""
        return bool(np.ptp(self.true) < FLAT * max(abs(self.true).max(), 1e-9))

    def choice(self, selector: str) -> int:
        """The policy that a selector puts first; TOReL's own rule counts all seeds of a setting."""
        if selector == "predictive":
            return self.chosen
        return int(np.nanargmax(np.where(np.isfinite(self.said[selector]), self.said[selector], -np.inf)))

    def correlation(self, selector: str) -> metrics.Figure | None:
        """Pearson's r with true returns; None where fewer than three could be judged, or none differ."""
        said, true = self.kept(selector)
        return metrics.pearson(said, true) if len(said) > 2 and np.ptp(said) > 0 and np.ptp(true) > 0 else None

    def kept(self, selector: str) -> tuple[np.ndarray, np.ndarray]:
        good = np.isfinite(self.said[selector]) & np.isfinite(self.true)
        return self.said[selector][good], self.true[good]

    def by_setting(self) -> metrics.Figure | None:
        """TOReL's r over means of each setting's policies, which are independent; None where each has one."""
        settings = [str({k: v for k, v in one.items()}) for one in self.row["policies"]]
        _, index = np.unique(settings, return_inverse=True)
        if index.max() + 1 == len(index) or index.max() < 2 or not np.isfinite(self.said["predictive"]).all():
            return None
        mean = lambda column: np.bincount(index, column) / np.bincount(index)
        return metrics.pearson(mean(self.said["predictive"]), mean(self.true))


def sweeps(records: Records) -> list[Sweep]:
    """All sweeps that were played."""
    found = []
    for row in pairs(records, "torel"):
        numbers = lambda values: np.array([np.nan if v is None else v for v in values], float)
        said = {"predictive": numbers(row["predicted"])}
        for selector in NAMES:
            judged = records.get(f"judges/{row['task']}-{row['planner']}-{row['seed']}-{selector}")
            if judged is not None and selector != "predictive":
                said[selector] = numbers(judged["numbers"]["value"]["median"])
        true = numbers(row["true"]["return"])
        found.append(Sweep(row["task"], row["planner"], row["seed"], said, true, row["chosen"], row))
    return found


def strong(figure: metrics.Figure | None) -> bool:
    return figure is not None and figure.value > STRONG and figure.p < SURE
