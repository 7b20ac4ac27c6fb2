"""The nouns that cross rooms: Transition, Dataset, Task, Posterior, Policy, Planner."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import jax
import numpy as np

Array = jax.Array | np.ndarray
Key = jax.Array
Step = Callable[[Key, Array, Array], tuple[Array, Array, Array]]  # key, obs, action -> next_obs, reward, done
STATIC = {"static": True}  # dataclass fields that are tree structure, not leaves
Tree = Array | float | None | tuple["Tree", ...] | list["Tree"] | dict[str, "Tree"]  # what `jax.tree` walks
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Memory = Tree  # what a world or a policy remembers of episodes: () if nothing
Progress = Callable[[str, int, int], None]  # what, done so far, of how many
H = TypeVar("H")  # hyperparameters
S = TypeVar("S")  # the state of a planner
R = TypeVar("R")  # what a function gives
Theta = TypeVar("Theta")  # what worlds are made of
Params = TypeVar("Params")  # what a policy is made of
Remembered = TypeVar("Remembered")  # of an episode, by a world or a policy
OfWorlds = TypeVar("OfWorlds", contravariant=True)
OfEpisodes = TypeVar("OfEpisodes", contravariant=True)


class BadInput(ValueError):
    """Something the user gave cannot be used; the message is the one line that says what and where."""


class BadPolicy(BadInput):
    """A policy that somebody gave failed, or did what is no action; the log is not to blame."""


class Box(NamedTuple):
    """Continuous actions: one low and one high per dimension, in the log's own units."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def width(self) -> int:
        return len(self.low)


class Discrete(NamedTuple):
    """One of n choices; inside, an action is a one-hot row of n."""

    n: int

    @property
    def width(self) -> int:
        return self.n


class Transition(NamedTuple):
    """Rows of a log; all fields share their leading axes."""

    obs: Array  # [N, S]
    action: Array  # [N, A]
    reward: Array  # [N]
    next_obs: Array  # [N, S]
    next_action: Array  # [N, A]  the action logged next in the same episode; the row's own at its end
    done: Array  # [N]  1 where the episode truly ended, never at a time-out


class Dataset(NamedTuple):
    """A log in memory: rows in time order, episode after episode."""

    steps: Transition  # [N, ...]
    starts: Array  # [E, S]  observations that episodes began in
    episode: Array  # [N]  which episode a row belongs to (-1: unknown)
    size: Array  # []  rows in use: traced, so one program covers every data size

    @property
    def rows(self) -> int:
        return int(self.size)


class Task(NamedTuple):
    """What is known of the problem without touching the environment; hashable, so it may be static."""

    horizon: int
    discount: float  # of the reported value; a planner trains with its own
    actions: Box | Discrete
    done: Callable[[Array, Array, Array], Array] | None = None  # (obs, action, next_obs) -> ended, if known
    exogenous: tuple[int, ...] = ()  # columns of the observation that no action changes, where that is known


class Drawn(NamedTuple):
    """A transition, drawn whole: whether it ends knows where it led, and what it earned knows both."""

    next_obs: Array  # [..., S]
    reward: Array  # [...]
    terminated: Array  # [...]
    out_of_support: Array  # [...]  whether the state had to be held to what the log supports
    clipped: Array  # [...]  whether the reward's mean had to be held to the log's range


class Moments(NamedTuple):
    """What one world expects of one step: the change of state and the reward, and whether it ends."""

    mean: Array  # [..., S + 1]  of (next_obs - obs, reward)
    std: Array  # [..., S + 1]
    terminated: Array  # [...]  probability that the episode ends here


class Sampler(Protocol[OfWorlds, Remembered]):
    """Draws a step of one world: obs [C, S] and action [C, A] of its copies, and the memory of their episodes."""

    def __call__(
        self, key: Key, theta: OfWorlds, memory: Remembered, obs: Array, action: Array, /
    ) -> tuple[Drawn, Remembered]: ...


class Expects(Protocol[OfWorlds, OfEpisodes]):
    """Moments of a step of one world. Where `after` and `ended` are given, the reward is that of what happened,
    and so are columns that follow from others.
    """

    def __call__(
        self,
        theta: OfWorlds,
        memory: OfEpisodes,
        obs: Array,
        action: Array,
        after: Array | None = None,
        ended: Array | None = None,
        /,
    ) -> Moments: ...


def no_memory(theta: object) -> tuple[()]:
    """The memory of worlds that remember nothing."""
    del theta
    return ()


@dataclass(frozen=True)
class Bound(Generic[R]):
    """A method of a value. Python's own are equal for one and the same object alone, and every posterior would be
    traced anew that was put together anew.
    """

    value: Hashable
    method: Callable[..., R]

    def __call__(self, *args: object) -> R:
        return self.method(self.value, *args)


def bound(function: object) -> object:
    """A method as `Bound`, if it is one of a value that can be compared; all else as it is."""
    if not isinstance(function, MethodType):
        return function
    try:
        hash(function.__self__)
    except TypeError:
        return function
    return Bound(function.__self__, function.__func__)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Posterior(Generic[Theta, Remembered]):
    """A stack of worlds: every leaf of `theta` has a leading axis [M], fold by fold.

    Worlds of one fold saw the same episodes, worlds of two folds saw none in common: one fold plans,
    another judges. All that a world is made of is behind `sample`.
    """

    theta: Theta
    starts: Array  # [E, S]
    low: Array  # [S + 1]  of the log's observations and rewards
    high: Array  # [S + 1]
    sample: Sampler[Theta, Remembered] = field(metadata=STATIC)
    task: Task = field(metadata=STATIC)
    moments: Expects[Theta, Remembered] | None = field(default=None, metadata=STATIC)  # None: estimated by drawing
    begin: Callable[[Theta], Remembered | tuple[()]] = field(default=no_memory, metadata=STATIC)  # of one episode
    recall: Callable[[Theta, Dataset], Remembered] | None = field(
        default=None, metadata=STATIC
    )  # memory at logged rows [N]
    natural: Callable[[Any, Dataset], tuple[Any, Dataset]] | None = field(
        default=None, metadata=STATIC
    )  # worlds and a log in coordinates where chance is alike everywhere; None: in the log's own
    folds: int = field(default=1, metadata=STATIC)
    terminates: bool = field(default=False, metadata=STATIC)  # whether episodes can end before the horizon
    derived: tuple[int, ...] = field(default=(), metadata=STATIC)  # columns that follow from where the others went
    going: Array | None = None  # []  least that a step earned after which its episode went on, where that is known

    def __post_init__(self) -> None:
        for name in ("sample", "moments", "begin", "recall", "natural"):
            object.__setattr__(self, name, bound(getattr(self, name)))

    @property
    def members(self) -> int:
        """Worlds in the stack, all folds together."""
        return int(jax.tree.leaves(self.theta)[0].shape[0])

    def fold(self, index: int) -> Posterior:
        """The worlds of one fold, as a posterior of their own."""
        if not 0 <= index < self.folds:
            raise IndexError(f"fold {index} of {self.folds}")
        each = self.members // self.folds
        theta = jax.tree.map(lambda leaf: leaf[index * each : (index + 1) * each], self.theta)
        return replace(self, theta=theta, folds=1)

    def along(self, data: Dataset) -> Remembered | tuple[()]:
        """The memory that worlds have at the rows of a log [N, ...]; () if they remember nothing."""
        if self.recall is None:
            return ()
        return self.recall(jax.tree.map(lambda leaf: leaf[0], self.theta), data)


class Prepared(NamedTuple):
    """What a world model reads off a log before it is fitted: what shapes its program, and arrays."""

    shape: Hashable
    arrays: Tree


class Fitted(NamedTuple, Generic[Theta]):
    """What one fit leaves behind."""

    theta: Theta  # [F * members, ...]
    nll: Array  # [F, members]  held-out negative log-likelihood of each member


class Saved(NamedTuple):
    """A posterior's worlds as they are kept: arrays by name, and the rest as JSON."""

    arrays: dict[str, np.ndarray]
    rest: dict[str, Any]


class WorldModel(NamedTuple, Generic[H]):
    """A way to learn worlds from a log; a file of `offing.posterior`, or anybody's value."""

    name: str
    Hypers: type[H]
    space: Callable[[str, int], list[H]]  # (scale, rows) -> settings to choose from
    prepare: Callable[[Dataset, Task], Prepared]
    fit: Callable[
        ..., Fitted
    ]  # (key, hypers, data, split, arrays, shape) -> Fitted; pure, so that settings are vmapped
    posterior: Callable[..., Posterior]  # (fitted, hypers, prepared, data, task) -> Posterior
    save: Callable[[Posterior], Saved]
    load: Callable[[Saved, Task], Posterior]
    # (posterior, rows that folds saw, rows that they did not, share of chance [S + 1]) -> Posterior; None: as is
    calibrate: Callable[[Posterior, Sequence[Dataset], Sequence[Dataset], np.ndarray], Posterior] | None = None
    # Where settings run one by one: (setting) -> settings of one structure that are fitted by themselves, and
    # (setting, what each gave) -> what it would have given. None: a setting is fitted whole
    parts: Callable[[H], Sequence[H]] | None = None
    join: Callable[[H, Sequence[Fitted]], Fitted] | None = None
    # (shape of what was prepared) -> columns of the observation by the words for how worlds read them
    describe: Callable[[Hashable], Mapping[str, tuple[int, ...]]] | None = None


class Seen(NamedTuple):
    """What a policy sees at one step: enough to tell, over an episode, which world it is in."""

    obs: Array  # [..., S]
    action: Array  # [..., A]  its own, one step ago; zeros at the start
    reward: Array  # [...]  that it earned
    start: Array  # [...]  1 at the first step of an episode: memory is void


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Policy(Generic[Params, Remembered]):
    """What leaves a planner: `act(params, memory, seen, key) -> action, memory`, actions in the log's own units.

    Without a key it does what it thinks best; with one it samples. Memory is () if it remembers nothing.
    """

    params: Params
    memory: Remembered  # of one episode, before its first step
    act: Callable[[Params, Remembered, Seen, Key | None], tuple[Array, Remembered]] = field(metadata=STATIC)

    def begin(self, *shape: int) -> Remembered:
        """Memory for a batch of episodes."""
        return jax.tree.map(lambda leaf: jax.numpy.broadcast_to(leaf, (*shape, *leaf.shape)), self.memory)


@dataclass(frozen=True, eq=False)  # equal to itself alone: compiled programs are found again by it
class Planner(Generic[H, S]):
    """Pure functions, a class of hyperparameters, and all that others need to know of the planner.

    `hypers.updates` is how often `update` is called. Command line, help, pages and tests read what stands here;
    nothing else repeats it.
    """

    name: str
    words: str  # one line that says what it does
    Hypers: type[H]
    init: Callable[[Key, H, Dataset, Posterior], S]
    update: Callable[[Key, H, S, Dataset, Posterior], tuple[S, dict[str, Array]]]  # -> state, metrics
    policy: Callable[[H, S, Task], Policy]
    blank: Callable[[H, int, Task], Policy]  # (hypers, width of obs, task) -> a Policy of that shape, all zeros
    spaces: Mapping[str, Callable[[], Sequence[H]]]  # by scale: settings to choose among, of one structure or few
    reports: tuple[str, ...]  # the metrics that `update` gives
    imagines: bool = True  # whether `update` looks into the posterior: worlds that it saw do not judge it
    remembers: bool = False  # whether its policies can have a memory
    actions: tuple[type, ...] = (Box, Discrete)  # kinds that it can plan for
    label: Callable[[H], str] | None = None  # what a setting is called among candidates; None: its name
    candidate: tuple[str, ...] = ()  # scales at which `sorel` tries it, where nobody says otherwise
    paced: Callable[[H, int], H] | None = None  # (a setting, rows of the log) -> it, no longer than they are worth
