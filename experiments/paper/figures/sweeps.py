"""What TOReL's figures share: its sweeps, and what other selectors say of the same policies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from offing.value import metrics

from .figure import Record, Records, pairs

NAMES = {"predictive": "TOReL", "fqe": "FQE", "dualdice": "DualDICE", "dr": "DR", "is": "IS"}
ENDLESS = ("fqe", "dr", "dualdice")  # what these estimate has no time limit, and neither has their truth
D4RL = ("halfcheetah_medium_expert", "hopper_medium", "walker2d_medium_replay", "toy_medium_expert")
ADROIT = ("pen_expert", "hammer_expert")
STRONG, SURE = 0.5, 0.05  # of |r| and p, as the paper has it
FLAT = 0.05  # a sweep whose returns differ by less than this share of the best has no spread


class Held(NamedTuple):
    """What a selector's word is held against: in words, and policy by policy."""

    words: str
    true: np.ndarray


class Sweep(NamedTuple):
    """A sweep that was played: what was said of every policy, and what it earned; NaN where that is not finite."""

    task: str
    planner: str
    seed: int
    said: dict[str, np.ndarray]  # by selector
    true: np.ndarray  # returns
    chosen: int
    row: Record
    held: Mapping[str, Held] = {}  # never written to; of selectors that say no return

    @property
    def name(self) -> str:
        return f"{self.task} {self.planner}" + (f" {self.seed}" if self.seed else "")

    @property
    def played(self) -> np.ndarray:
        """The returns that are finite."""
        return self.true[np.isfinite(self.true)]

    @property
    def flat(self) -> bool:
        """Whether its policies earn about the same, so that there is nothing to rank."""
        true = self.played
        return not len(true) or bool(np.ptp(true) < FLAT * max(abs(true).max(), 1e-9))

    @property
    def settings(self) -> np.ndarray:
        """The number of each policy's setting: policies of one setting differ by their seed alone."""
        words = [json.dumps(one, sort_keys=True) for one in self.row["policies"]]
        return np.unique(words, return_inverse=True)[1].ravel()

    def truth(self, selector: str) -> Held:
        """What a selector's word is held against: returns, unless it says another thing."""
        return self.held.get(selector, Held("return", self.true))

    def choice(self, selector: str) -> list[list[int]]:
        """The policies that a selector puts first, by setting; several where it ties, none where none is finite.

        The rule is TOReL's for all: the setting of the highest mean over its seeds, and of its policies the one
        that is put highest. TOReL's own choice is the one that it made.
        """
        said, settings = self.said[selector], self.settings
        mean = np.bincount(settings, said) / np.bincount(settings)
        if not np.isfinite(mean).any():
            return []
        if selector == "predictive":
            return [[self.chosen]]
        first = [np.flatnonzero(settings == one) for one in np.flatnonzero(mean == np.nanmax(mean))]
        return [policies[said[policies] == said[policies].max()].tolist() for policies in first]

    def earned(self, selector: str) -> float | None:
        """The return of a selector's choice, ties averaged over; None where it makes none or it is not finite."""
        first = self.choice(selector)
        value = np.mean([np.mean(self.true[policies]) for policies in first]) if first else np.nan
        return float(value) if np.isfinite(value) else None

    def regret(self, selector: str) -> float | None:
        """The best return less that of a selector's choice, as a share of the range; None where there is none."""
        earned, true = self.earned(selector), self.played
        return None if earned is None or np.ptp(true) == 0 else float((true.max() - earned) / np.ptp(true))

    def blind(self) -> float | None:
        """The regret of one of its policies at random."""
        true = self.played
        return float((true.max() - true.mean()) / np.ptp(true)) if len(true) and np.ptp(true) > 0 else None

    def correlation(self, selector: str) -> metrics.Figure | None:
        """Pearson's r with the truth; None where fewer than three could be judged, or none differ."""
        return _pearson(*self.kept(selector))

    def kept(self, selector: str) -> tuple[np.ndarray, np.ndarray]:
        """What was said of the policies of which both word and truth are finite, and their truth."""
        said, true = self.said[selector], self.truth(selector).true
        good = np.isfinite(said) & np.isfinite(true)
        return said[good], true[good]

    def by_setting(self, selector: str = "predictive") -> metrics.Figure | None:
        """Pearson's r over means of each setting's policies, which are independent; or None.

        A setting counts if all of its policies are finite; None where these are fewer than three or do not differ.
        """
        count = np.bincount(self.settings)
        said, true = (
            np.bincount(self.settings, column) / count
            for column in (self.said[selector], self.truth(selector).true)
        )
        good = np.isfinite(said) & np.isfinite(true)
        return _pearson(said[good], true[good])


def _pearson(said: np.ndarray, true: np.ndarray) -> metrics.Figure | None:
    return metrics.pearson(said, true) if len(said) > 2 and np.ptp(said) > 0 and np.ptp(true) > 0 else None


def numbers(values: Sequence[float | None]) -> np.ndarray:
    """A column of a record, NaN where a number was not finite."""
    return np.array([np.nan if value is None else value for value in values], float)


def sweeps(records: Records) -> list[Sweep]:
    """All sweeps that were played."""
    found = []
    for row in pairs(records, "torel"):
        said, held = {"predictive": numbers(row["predicted"])}, {}
        for selector in NAMES:
            judged = records.get(f"judges/{row['task']}-{row['planner']}-{row['seed']}-{selector}")
            if judged is not None and selector != "predictive":
                word = judged["numbers"]
                said[selector] = numbers((word["return"] or word["value"])["median"])
                if word["return"] is None:
                    held[selector] = discounted(selector, row["true"])
        true = numbers(row["true"]["return"])
        found.append(Sweep(row["task"], row["planner"], row["seed"], said, true, row["chosen"], row, held))
    return found


def discounted(selector: str, played: Record) -> Held:
    """What an estimate of a discounted value is held against: the true one, as far as the record has it."""
    if selector in ENDLESS and "endless" in played:
        return Held("discounted value without a time limit", numbers(played["endless"]))
    if "value" in played:
        return Held("discounted value", numbers(played["value"]))
    return Held("return", numbers(played["return"]))


def truths(found: Sequence[Sweep]) -> str:
    """A sentence that says what every selector's word is held against."""
    said: dict[str, list[str]] = {}
    for selector, name in NAMES.items():
        for words in dict.fromkeys(one.truth(selector).words for one in found if selector in one.said):
            said.setdefault(words, []).append(name)
    return (
        "Held against the true " + "; ".join(f"{words}: {', '.join(names)}" for words, names in said.items()) + "."
    )


def left_out(found: Sequence[Sweep]) -> str:
    """A sentence that says how many policies are left out as their estimate or truth is not finite; or nothing."""
    said = []
    for selector, name in NAMES.items():
        mine = [one for one in found if selector in one.said]
        whole = sum(len(one.true) for one in mine)
        gone = whole - sum(len(one.kept(selector)[0]) for one in mine)
        if gone:
            said.append(f"{name} {gone} of {whole}")
    return (
        f"Policies left out, since what was said of them or their truth is not finite: {', '.join(said)}."
        * bool(said)
    )


def strong(figure: metrics.Figure | None) -> bool:
    return figure is not None and figure.value > STRONG and figure.p < SURE
