"""One world: what it is made of, and how a transition is drawn from it, whole.

First the next observation, of which columns that follow from others come last (`_derived`), then whether the
episode ends, given state, action and next observation, then the reward, given all of these. What is chance in them
comes from the log: a row that the world had not seen is drawn, and every output is as far from what the world says
as it was in that row,

    amount   mean + sqrt(share) * std * z       z the row's residual in units of its standard deviation
    gate     left where u > 1 - P(left)         u the row's place in what the world thought possible, uniform where
    choice   the value at which P reaches u     that was right

so that chance has the log's own shape (jumps, tails, two humps) and columns move together as they did. `share` is
how much of the squared residual is chance, column by column (`pil.evidence`); the rest is the worlds' error, and
that the worlds show by differing. What a step earned that ended its episode has the chance of rows that did.

An episode has left what the log supports where a world expects it to: its mean lies beyond the log's range, and
is held there. What chance alone carries beyond, an outlier or a level that wanders, is held too, and no reason to
stop. Where the same always led to the same, chance is drawn once for each state and action (`_settled`). And where
the log's range ends because episodes did, at a limit or a goal, a state beyond has ended as those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..nets import Layer, dense, hidden, mlp
from ..types import Array, Dataset, Drawn, Key, Moments, Posterior, Task
from . import _history, _magnitude
from ._category import written
from ._forest import Forest, draw, reads
from ._head import Chances, chances, read
from ._history import EPISODE, Innovate, Memory
from ._kinds import STAYS, Block, Kinds, Values
from ._known import Scale
from ._settled import once

SLACK = 0.01  # of the largest reward: clipping by less than this is not worth a mention
SURE = 0.01  # least scale of the logits of ends: the likelier is certain
ROUNDED = 1e-6  # share of a clock's range by which a value may be off and still be one of its own
CERTAIN = 30.0  # logit of an end beyond an edge at which episodes end


class Net(NamedTuple):
    """One net of a world and what it starts from."""

    net: tuple[Layer, ...]  # trained: in -> means and raw log-variances
    extra: Layer | tuple[()]  # trained: last hidden features -> logits of gates and choices
    low: Array  # [D]  soft bounds of the log-variance
    high: Array
    linear: Layer  # frozen: the least-squares map
    prior: tuple[Layer, ...]  # frozen; () if silent
    prior_scale: Array  # [D]
    floor: Array  # []  least log-variance


class Chance(NamedTuple):
    """Rows of the log that a world had not seen, in terms of what it thought of them."""

    z: Array  # [R, S + 1]
    low: Array  # [R, Q]  place in what was thought possible, from
    high: Array  # [R, Q]  to
    share: Array  # [S + 1]  of the squared residual that is chance
    ends: Array  # []  1: ends are as likely as worlds say; near 0: the likelier is certain
    last: Paid  # rows that ended their episodes; if hardly any did, those above


class Paid(NamedTuple):
    """What rows earned, in terms of what a world thought of it."""

    z: Array  # [R, 1]
    low: Array  # [R, Q]
    high: Array  # [R, Q]


class Support(NamedTuple):
    """What the log supports."""

    low: Array  # [S + 1]  of observations and rewards
    high: Array
    margin: Array  # []  widths of that range by which a state may leave it
    earned: Array  # [2, 2]  least and most of a step after which its episode goes on, and of one that ends it


class Theta(NamedTuple):
    """One world; in a posterior every leaf has a leading axis [M]."""

    state: Net  # (obs, action, history, change of columns that lead) -> change of state
    reward: Net  # the same, the change and the end -> reward
    ends: tuple[Layer, ...]  # (obs, action, history, next_obs) -> logit of the end; () if nothing in the log ended
    scale: Scale
    values: Values
    chance: Chance
    support: Support
    innovate: Innovate | tuple[()]  # () if worlds remember nothing
    forest: Forest | tuple[()] = ()  # of what ends earn; () where nets tell it as well


class Heads(NamedTuple):
    """What one net says, in the log's own units."""

    mean: Array  # [..., D]  of amounts
    std: Array
    chances: Chances


def heads(net: Net, block: Block, x: Array, activation: str, centre: Array, width: Array) -> Heads:
    """What a net says of x [..., X], with the map and the prior behind it."""
    features = hidden(net.net, x, activation)
    mean, logvar = read(dense(net.net[-1], features), net.low, net.high, net.floor)
    mean = mean + dense(net.linear, x)
    if net.prior:
        mean = mean + net.prior_scale * mlp(net.prior, x, activation)
    extra = dense(net.extra, features) if isinstance(net.extra, Layer) else jnp.zeros((*x.shape[:-1], 0))
    return Heads(mean * width + centre, jnp.exp(0.5 * logvar) * width, chances(block, extra))


@dataclass(frozen=True)
class World:
    """How a Theta is read; static, and equal for equal architectures, so that programs are shared."""

    activation: str
    kinds: Kinds

    def begin(self, theta: Theta) -> Memory | tuple[()]:
        """The memory of one episode before its first step."""
        if self.kinds.history != EPISODE or not isinstance(theta.innovate, Innovate):
            return ()
        width = self.kinds.width
        return _history.empty(width, theta.innovate.centre.shape[-1] - width)

    def read(self, theta: Theta, obs: Array) -> Array:
        """Observations as worlds read them: some columns by their logarithm."""
        return _magnitude.into(self.kinds.logs, theta.values.unit, obs)

    def write(self, theta: Theta, q: Array) -> Array:
        """Observations in the log's own units again, whole numbers where the log has no others."""
        obs = _magnitude.back(self.kinds.logs, theta.values.unit, q)
        if not self.kinds.whole:
            return obs
        return jnp.where(np.isin(np.arange(self.kinds.width), self.kinds.whole), jnp.round(obs), obs)

    def enter(self, theta: Theta, memory: Memory | tuple[()], obs: Array, action: Array) -> Array:
        """The nets' input, in normalised units, from what worlds read."""
        parts = [obs, action, *([_history.features(memory, obs)] if isinstance(memory, Memory) else [])]
        if self.kinds.logs:
            parts.append(_magnitude.raw(self.kinds.logs, theta.values.unit, obs))
        return (jnp.concatenate(parts, -1) - theta.scale.in_mean) / theta.scale.in_std

    def says(self, theta: Theta, x: Array, change: Array | None = None) -> Heads:
        """What it says of the next observation; of columns that follow from others, given the others' change."""
        scale, width = theta.scale, self.kinds.width
        centre, unit = scale.out_mean[:width], scale.out_std[:width]
        x = with_leads(scale, self.kinds, x, change)
        return heads(theta.state, self.kinds.of_state(), x, self.activation, centre, unit)

    def pays(self, theta: Theta, x: Array, obs: Array, after: Array, ended: Array) -> Heads:
        """What it says of the reward, given where the step led."""
        scale, width = theta.scale, self.kinds.width
        x = paid_for(scale, self.kinds, theta.values, x, obs, after, ended)
        centre, unit = scale.out_mean[width:], scale.out_std[width:]
        return heads(theta.reward, self.kinds.of_reward(), x, self.activation, centre, unit)

    def ending(self, theta: Theta, x: Array, after: Array) -> Array:
        """Logit that the step ended the episode, from the step and from where it led.

        Beyond an edge at which episodes end they have; the net knows of other ends only.
        """
        others = mlp(theta.ends, leads_to(theta.scale, x, after), "silu")[..., 0]
        return jnp.where(theta.values.beyond(after), CERTAIN, others)


def with_leads(scale: Scale, kinds: Kinds, x: Array, change: Array | None) -> Array:
    """What the state's net reads: x [..., X], and of the columns that lead how they changed, if that is known."""
    if not kinds.derived:
        return x
    if change is None:
        return jnp.concatenate([x, jnp.zeros((*x.shape[:-1], len(kinds.leads)))], -1)
    width, leads = kinds.width, np.array(kinds.leads)
    inside = (change - scale.out_mean[:width]) / scale.out_std[:width]
    return jnp.concatenate([x, inside[..., leads]], -1)


def paid_for(
    scale: Scale, kinds: Kinds, values: Values, x: Array, obs: Array, after: Array, ended: Array
) -> Array:
    """What the reward's net reads."""
    width, logs = kinds.width, len(kinds.logs)
    change = (after - obs - scale.out_mean[:width]) / scale.out_std[:width]
    parts = [x, change, ended[..., None].astype(jnp.float32)]
    if logs:
        raw = _magnitude.raw(kinds.logs, values.unit, after)
        parts.append((raw - scale.in_mean[-logs:]) / scale.in_std[-logs:])
    return jnp.concatenate(parts, -1)


def leads_to(scale: Scale, x: Array, after: Array) -> Array:
    """What the net of ends reads."""
    width = after.shape[-1]
    return jnp.concatenate([x, (after - scale.in_mean[:width]) / scale.in_std[:width]], -1)


# ---- drawing


@dataclass(frozen=True)
class Sample:
    """Draws a transition of one world: (key, theta, memory, obs [C, S], action) -> Drawn, memory."""

    world: World
    task: Task
    terminates: bool

    def __call__(
        self, key: Key, theta: Theta, memory: Memory | tuple[()], obs: Array, action: Array
    ) -> tuple[Drawn, Memory | tuple[()]]:
        if not self.world.kinds.settled:
            return self._drawn(key, theta, memory, obs, action)
        each = lambda *of: self._drawn(of[0], theta, *of[1:])
        return jax.vmap(each)(once(theta, obs, action), memory, obs, action)

    def _drawn(
        self, key: Key, theta: Theta, memory: Memory | tuple[()], obs: Array, action: Array
    ) -> tuple[Drawn, Memory | tuple[()]]:
        world, kinds, chance = self.world, self.world.kinds, theta.chance
        k1, k2, k3, k4 = jax.random.split(key, 4)
        row = jax.random.randint(k1, obs.shape[:-1], 0, chance.z.shape[0])
        z = chance.z[row] * jnp.sqrt(chance.share)  # [C, S + 1]
        u = between(k2, chance.low[row], chance.high[row])  # [C, Q]
        seen, obs = obs, world.read(theta, obs)
        x = world.enter(theta, memory, obs, action)
        state, block = world.says(theta, x), kinds.of_state()

        def drawn(state: Heads, z: Array) -> Array:
            amounts = jnp.clip(obs + state.mean + state.std * z, *theta.values.walls)
            return draw_choices(block, theta.values, state.chances, u[..., : block.ways], amounts, obs)

        def after(z: Array) -> Array:
            new = drawn(state, z)
            if not kinds.derived:
                return new
            led = world.read(theta, world.write(theta, supported(theta.support, edges, new).held))
            return drawn(world.says(theta, x, led - obs), z)

        edges = theta.values.edges
        held = supported(theta.support, edges, after(z[..., :-1])).held
        out = supported(theta.support, edges, after(jnp.zeros(())), kinds.exogenous).out
        next_obs = world.write(theta, held)
        held = world.read(theta, next_obs)
        ended = self._ended(k3, theta, x, (seen, next_obs), action, held) | (out & self.terminates)
        own = self._paid(k4, chance, ended, z[..., -1:], u[..., block.ways :])
        reward, clipped = self._reward(theta, x, obs, held, ended, *own)
        if isinstance(theta.forest, Forest):
            like = draw(jax.random.fold_in(k4, 1), theta.forest, reads(seen, action, next_obs))
            reward, clipped = jnp.where(ended, like, reward), clipped & ~ended
        reward = jnp.where(out, theta.support.low[-1], reward)
        if isinstance(memory, Memory) and isinstance(theta.innovate, Innovate):
            memory = _history.remember(memory, theta.innovate, obs, action, held, reward)
        return Drawn(next_obs, reward, ended, out, clipped), memory

    def earns(
        self, key: Key, theta: Theta, memory: Memory | tuple[()], obs: Array, action: Array, after: Array
    ) -> Array:
        """What steps earn that led to `after` and ended their episodes, as nets have it."""
        now, led = self.world.read(theta, obs), self.world.read(theta, after)
        ended, ways = jnp.ones(obs.shape[:-1], bool), self.world.kinds.of_reward().ways
        none = jnp.zeros((*ended.shape, 1)), jnp.zeros((*ended.shape, ways))
        own = self._paid(key, theta.chance, ended, *none)
        return self._reward(theta, self.world.enter(theta, memory, now, action), now, led, ended, *own)[0]

    def _ended(
        self, key: Key, theta: Theta, x: Array, seen: tuple[Array, Array], action: Array, after: Array
    ) -> Array:
        """Whether the step ends the episode; `seen` are its observations in the log's own units."""
        if self.task.done is not None:
            return self.task.done(seen[0], action, seen[1])
        if not theta.ends:
            return jnp.zeros(after.shape[:-1], bool)
        logit = self.world.ending(theta, x, after) / jnp.maximum(theta.chance.ends, SURE)
        return jax.random.bernoulli(key, jax.nn.sigmoid(logit))

    def _paid(self, key: Key, chance: Chance, ended: Array, z: Array, u: Array) -> tuple[Array, Array]:
        """The reward's chance: of a step that ended its episode that of rows which did.

        Rows that went on are most of a log and often sure of what they earn. Worlds that are too sure whether an
        end is a good one, which few rows tell, are found out by those rows alone.
        """
        k1, k2 = jax.random.split(key)
        row = jax.random.randint(k1, ended.shape, 0, chance.last.z.shape[0])
        last_z = chance.last.z[row] * jnp.sqrt(chance.share[-1:])
        last_u = between(k2, chance.last.low[row], chance.last.high[row])
        over = ended[..., None]
        return jnp.where(over, last_z, z), jnp.where(over, last_u, u)

    def _reward(
        self, theta: Theta, x: Array, obs: Array, after: Array, ended: Array, z: Array, u: Array
    ) -> tuple[Array, Array]:
        """The reward, and whether its mean had to be held to the log's range; chance may carry it somewhat beyond.

        What only ends of episodes earned (a goal's reward, a limit's cost) is earned by no step that goes on.
        """
        paid, kinds, support = self.world.pays(theta, x, obs, after, ended), self.world.kinds, theta.support
        low, high = support.low[-1], support.high[-1]
        reach = jnp.where(ended[..., None], support.earned[1], support.earned[0])  # [..., 2]
        mean = jnp.clip(jnp.clip(paid.mean, low, high), reach[..., :1], reach[..., 1:])
        values = of_reward(kinds, theta.values)
        reward = draw_choices(kinds.of_reward(), values, paid.chances, u, mean + paid.std * z, mean)[..., 0]
        reward = jnp.clip(reward, reach[..., 0], reach[..., 1])
        size = jnp.maximum(jnp.abs(low), jnp.abs(high))
        amount = not kinds.of_reward().choices  # a reward that chooses is one of the log's
        beyond = paid.mean - jnp.clip(paid.mean, low, high)
        return reward, (jnp.abs(beyond)[..., 0] > SLACK * size) & amount


def between(key: Key, low: Array, high: Array) -> Array:
    """Somewhere between low and high, evenly."""
    return low + (high - low) * jax.random.uniform(key, low.shape)


def draw_choices(block: Block, values: Values, chance: Chances, u: Array, drawn: Array, before: Array) -> Array:
    """The outputs [..., D] with gates and choices drawn by u [..., ways], and amounts as they were."""
    for g, (c, kind) in enumerate(block.gates):
        stands = before[..., c] if kind == STAYS else values.usual[g]
        left = u[..., g] > 1 - chance.moved[..., g]
        drawn = _put(drawn, c, jnp.where(left, drawn[..., c], stands))
    for i, (c, n) in enumerate(block.choices):
        below = jnp.cumsum(chance.chosen[..., i, : n - 1], -1) < u[..., len(block.gates) + i, None]
        place, group = below.sum(-1), block.group(c)
        drawn = written(drawn, group, place) if group else _put(drawn, c, jnp.asarray(values.levels)[i][place])
    return certain(block, values, drawn, before)


def certain(block: Block, values: Values, drawn: Array, before: Array) -> Array:
    """The outputs [..., D], those that follow for certain as they do.

    From a value that no clock of the log stood at it goes on as from the nearest, so that a count goes on.
    """
    for c in block.still:
        drawn = _put(drawn, c, before[..., c])
    for i, (c, n) in enumerate(block.clocks):
        now, then = jnp.asarray(values.clocks)[i][:, :n]
        at = jnp.argmin(jnp.abs(before[..., c, None] - now), -1)
        off = before[..., c] - now[at]
        known = jnp.abs(off) <= ROUNDED * (now[-1] - now[0])
        drawn = _put(drawn, c, then[at] + jnp.where(known, 0.0, off))
    return drawn


def _put(whole: Array, column: int, new: Array | float) -> Array:
    """The outputs [..., D] with one column replaced."""
    return jnp.asarray(whole).at[..., column].set(new)


def of_reward(kinds: Kinds, values: Values) -> Values:
    """The values behind the reward's kinds: they come last."""
    state = kinds.of_state()
    return values._replace(usual=values.usual[len(state.gates) :], levels=values.levels[len(state.choices) :])


class Supported(NamedTuple):
    """A state against what the log supports."""

    held: Array  # [..., S]  the state, held to it
    out: Array  # [...]  whether it had to be


def supported(support: Support, edges: Array, state: Array, exogenous: tuple[int, ...] = ()) -> Supported:
    """The state against what the log supports.

    Columns that no action changes go where they would have gone anyway: a policy that is there when they leave the
    log's range has not left the log. Nor has one that leaves it beyond `edges` [2, S], where episodes end.
    """
    low, high = support.low[:-1], support.high[:-1]
    margin = jnp.where(jnp.isinf(support.margin), jnp.inf, support.margin * (high - low))
    held = jnp.clip(state, low - margin, high + margin)
    counts = ~np.isin(np.arange(low.shape[-1]), exogenous)
    lost = ((held > state) & jnp.isinf(edges[0])) | ((held < state) & jnp.isinf(edges[1]))
    return Supported(held, jnp.any(lost & counts, -1))


# ---- moments


@dataclass(frozen=True)
class Expect:
    """Mean and standard deviation of change and reward, and the chance of an end, by one world.

    `after` and `ended` are what the step led to, where that is known: the reward is then that of what happened.
    Otherwise it is the one of the expected next observation; and so with columns that follow from others.
    `natural`: observations come in, and changes go out, as worlds read them; otherwise in the log's own units.
    """

    world: World
    task: Task
    natural: bool = False

    def __call__(
        self,
        theta: Theta,
        memory: Memory | tuple[()],
        obs: Array,
        action: Array,
        after: Array | None = None,
        ended: Array | None = None,
    ) -> Moments:
        world, kinds, seen = self.world, self.world.kinds, obs
        if not self.natural:
            obs, after = world.read(theta, obs), None if after is None else world.read(theta, after)
        x = world.enter(theta, memory, obs, action)
        next_obs, std = self._next(theta, x, obs, None if after is None else after - obs)
        if kinds.derived and after is None:
            next_obs, std = self._following(theta, x, obs, next_obs, std)
        led = next_obs if after is None else after
        if self.task.done is not None:
            end = self.task.done(world.write(theta, obs), action, world.write(theta, led)).astype(jnp.float32)
        else:
            end = jax.nn.sigmoid(world.ending(theta, x, led)) if theta.ends else jnp.zeros(obs.shape[:-1])
        paid = world.pays(theta, x, obs, led, end if ended is None else ended)
        values = of_reward(kinds, theta.values)
        reward, paid_std = mixed(kinds.of_reward(), values, paid, paid.mean, paid.mean)
        change = next_obs - obs
        if not self.natural and kinds.logs:
            change, std = _magnitude.moments(kinds.logs, theta.values.unit, next_obs, std)
            change = change - seen
        mean = jnp.concatenate([change, reward], -1)
        return Moments(mean, jnp.concatenate([std, paid_std], -1), end)

    def _next(self, theta: Theta, x: Array, obs: Array, change: Array | None) -> tuple[Array, Array]:
        """Mean and standard deviation of the next observation, `change` being that of the columns that lead."""
        state = self.world.says(theta, x, change)
        mean = jnp.clip(obs + state.mean, *theta.values.walls)
        return mixed(self.world.kinds.of_state(), theta.values, state, mean, obs)

    def _following(self, theta: Theta, x: Array, obs: Array, led: Array, std: Array) -> tuple[Array, Array]:
        """The same, where the columns that lead are expected at `led`: what is open in each of them counts."""
        next_obs, own = self._next(theta, x, obs, led - obs)
        square = jnp.square(own)
        for c in self.world.kinds.leads:
            moved = self._next(theta, x, obs, _put(led, c, led[..., c] + std[..., c]) - obs)[0]
            square += jnp.square(moved - next_obs)  # of columns that lead this is nought
        return next_obs, jnp.sqrt(square)


def mixed(block: Block, values: Values, says: Heads, mean: Array, before: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the outputs [..., D], over gates and choices too."""
    std = says.std
    for g, (c, kind) in enumerate(block.gates):
        stands = before[..., c] if kind == STAYS else values.usual[g]
        p, off = says.chances.moved[..., g], mean[..., c] - stands
        spread = p * jnp.square(std[..., c]) + p * (1 - p) * jnp.square(off)
        mean, std = _put(mean, c, stands + p * off), _put(std, c, jnp.sqrt(spread))
    for i, (c, n) in enumerate(block.choices):
        p = says.chances.chosen[..., i, :]
        if group := block.group(c):
            mean = jnp.asarray(mean).at[..., np.array(group)].set(p[..., :n])
            std = jnp.asarray(std).at[..., np.array(group)].set(jnp.sqrt(p * (1 - p))[..., :n])
            continue
        level = values.levels[i][: p.shape[-1]]
        expected = jnp.sum(p * level, -1)
        spread = jnp.sum(p * jnp.square(level - expected[..., None]), -1)
        mean, std = _put(mean, c, expected), _put(std, c, jnp.sqrt(jnp.maximum(spread, 0.0)))
    for c in (*block.still, *(c for c, _ in block.clocks)):
        std = _put(std, c, 0.0)
    return certain(block, values, mean, before), std


# ---- along a log


@dataclass(frozen=True)
class Recall:
    """The memory of worlds at the rows of a log."""

    world: World
    natural: bool = False  # whether the log is there as worlds read it

    def __call__(self, theta: Theta, data: Dataset) -> Memory:
        assert isinstance(theta.innovate, Innovate)
        if not self.natural:
            data = _magnitude.read(data, self.world.kinds.logs, theta.values.unit)
        return _history.recall(data, theta.innovate)


def natural(worlds: Posterior, data: Dataset) -> tuple[Posterior, Dataset]:
    """Worlds and a log in the coordinates that the worlds live in, where chance is alike everywhere."""
    expect = worlds.moments
    assert isinstance(expect, Expect)
    recall = None if worlds.recall is None else Recall(expect.world, natural=True)
    inside = replace(worlds, moments=replace(expect, natural=True), recall=recall, natural=None)
    return inside, _magnitude.read(data, expect.world.kinds.logs, worlds.theta.values.unit[0])
