"""Steps of environments side by side, as the episodes and the columns of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ..types import Discrete, Task

KEPT = ("obs", "action", "logp", "reward", "next_obs", "terminated")  # of a step; `logp` may be missing


class Piece(NamedTuple):
    """Rows `begin` to `end`, both included, of environment `env`: one episode, or what there is of it."""

    env: int
    begin: int
    end: int
    whole: bool  # it ended or timed out, and was not merely cut off by the last row

    @property
    def rows(self) -> int:
        return self.end - self.begin + 1


def pieces(over: np.ndarray) -> Iterator[Piece]:
    """The episodes of environments side by side [T, N], given where they were over; environment by environment."""
    last = len(over) - 1
    for env in range(over.shape[1]):
        ends = np.flatnonzero(over[:, env])
        ends = ends if len(ends) and ends[-1] == last else np.r_[ends, last]
        for begin, end in zip(np.r_[0, ends[:-1] + 1], ends, strict=True):
            yield Piece(env, int(begin), int(end), bool(over[end, env]))


def taken(whole: dict[str, np.ndarray], parts: Iterable[Piece], rows: int) -> list[dict[str, np.ndarray]]:
    """The columns [T, N, ...] as episodes in the order of `parts`, `rows` rows in all; the last is cut to fit."""
    episodes, count = [], 0
    for part in parts:
        if count >= rows:
            break
        end = min(part.end, part.begin + rows - count - 1)
        episodes.append({name: whole[name][part.begin : end + 1, part.env] for name in KEPT if name in whole})
        count += end - part.begin + 1
    return episodes


def columns(episodes: list[dict[str, np.ndarray]], task: Task) -> dict[str, np.ndarray]:
    """Episodes as one set of columns: last observations apart, time-outs where nothing ended."""
    names = [name for name in KEPT if name in episodes[0] and name != "next_obs"]
    whole = {name: np.concatenate([e[name] for e in episodes]) for name in names}
    ends = np.cumsum([len(e["obs"]) for e in episodes]) - 1
    truncated = np.zeros(len(whole["obs"]), bool)
    truncated[ends] = ~whole["terminated"][ends]
    log = {
        **whole,
        "truncated": truncated,
        "final_obs": np.stack([e["next_obs"][-1] for e in episodes]),
        "horizon": np.int64(task.horizon),
        "discount": np.float64(task.discount),
    }
    if isinstance(task.actions, Discrete):
        kind = np.int8 if task.actions.n <= 128 else np.int32
        log["action"] = whole["action"].argmax(1).astype(kind)
        log["n_actions"] = np.int64(task.actions.n)
    else:
        log["action_low"] = np.array(task.actions.low, np.float32)
        log["action_high"] = np.array(task.actions.high, np.float32)
    return log
