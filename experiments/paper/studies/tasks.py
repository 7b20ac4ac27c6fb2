"""The logs that studies learn from: where each comes from, and the true environment it was made in."""

from __future__ import annotations

from typing import NamedTuple

import offing
from offing.data import Log
from offing.data.large import fewer

from ..parts import Place


class Source(NamedTuple):
    """A log by name."""

    name: str
    env: str  # what its policies are played in
    file: str = ""  # under the work folder; none: an embedded sample
    made_by: str = ""  # the part that makes the file; none: a reader brings it
    paper: str = ""  # what the paper calls its own
    schema: offing.Schema | None = None  # what a file in D4RL's layout does not say

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.made_by,) if self.made_by else ()

    @property
    def brought(self) -> tuple[str, ...]:
        return (self.file,) if self.file and not self.made_by else ()

    def load(self, place: Place, rows: int | None, seed: int) -> Log:
        """Its rows, or so many of them; all of a file in D4RL's layout that holds fewer."""
        where = place.work / self.file if self.file else f"offing:{self.name}"
        if self.schema is None:
            return offing.load(where, rows, seed)
        whole = offing.load(where, None, seed, schema=self.schema)
        return fewer(whole, None if rows is None else min(rows, whole.data.rows), seed)


def _brax(name: str, paper: str) -> Source:
    return Source(name, f"brax-{name}", f"logs/{name}.npz", f"logs/{name}", f"brax-{paper}-full-replay")


def d4rl_schema(horizon: int, edge: float = 1.0) -> offing.Schema:
    """The range of actions and the time limit of D4RL's tasks; the discount is that of the paper's grids."""
    return offing.Schema(actions="box", low=-edge, high=edge, horizon=horizon, discount=0.99)


def _d4rl(name: str, env: str, paper: str) -> Source:
    file, schema = f"logs/{name}.hdf5", d4rl_schema(1000)
    return Source(name, f"gymnasium:{env}", file, f"logs/{name}", f"d4rl-{paper}-v2", schema)


def _adroit(name: str, env: str, horizon: int) -> Source:
    paper = f"d4rl-{name.replace('_', '-')}-v1"
    return Source(name, f"gymnasium:{env}", f"logs/{name}.hdf5", "", paper, d4rl_schema(horizon))


GYMNAX = (
    Source("cartpole", "cartpole", paper="gymnax-cartpole-random-v1"),
    Source("pendulum", "pendulum", paper="gymnax-pendulum-random-v1"),
)
BRAX = (_brax("halfcheetah", "half-cheetah"), _brax("hopper", "hopper"), _brax("walker2d", "walker2d"))
# The names of D4RL's files. Ours are made; the originals, put in their place, are read as they are.
MUJOCO = (
    _d4rl("halfcheetah_medium_expert", "HalfCheetah-v5", "half-cheetah-medium-expert"),
    _d4rl("hopper_medium", "Hopper-v5", "hopper-medium"),
    _d4rl("walker2d_medium_replay", "Walker2d-v5", "walker2d-medium-replay"),
)
# Nobody can make these here: experts of theirs were trained on demonstrations of people.
ADROIT = (
    _adroit("pen_expert", "AdroitHandPen-v1", 100),
    _adroit("hammer_expert", "AdroitHandHammer-v1", 200),
)
SMOKE = (  # the same ways at toy size: a replay, and a file in D4RL's layout
    Source("toy", "pendulum", "logs/toy.npz", "logs/toy"),
    _d4rl("toy_medium_expert", "InvertedPendulum-v5", "toy")._replace(schema=d4rl_schema(1000, 3.0)),
)
EVERY = {source.name: source for source in (*GYMNAX, *BRAX, *MUJOCO, *ADROIT, *SMOKE)}
