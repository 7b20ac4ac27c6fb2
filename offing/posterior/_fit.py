"""Training the ensemble's members: all of a fold, and all folds, as one program."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..data import Split
from ..nets import Layer, cross_entropy, dense, hidden, hidden_half, mlp, student_nll
from ..optim import Adam, Learner, adam, cosine, descend, start
from ..types import Array, Dataset, Fitted, Key
from ._head import Batch, extra_loss, head_loss, read, residual
from ._init import Ready, init
from ._kinds import Block, Kinds, Targets
from ._known import Fold, Known, Scale, gain_of, least_squares, moments
from ._masks import masked, masks
from ._world import Net, Theta, leads_to, paid_for, with_leads

ROUNDS = 20  # how often a member is compared with its best so far
CHUNK = 50  # updates whose minibatches are gathered at once: keeps random numbers and gathers off the hot path
HALF = {"gpu": True}  # where gradients of hidden layers are kept in bfloat16
BLOCK = 8_192  # rows that priors are read on at once: all of a long log, for all members, would not fit a GPU
TRAINED = ("net", "extra", "low", "high")  # of each net


class Rows(NamedTuple):
    """What of the rows all members see alike."""

    targets: Targets
    unit: Array  # [N]  episodes, which the bootstrap weighs
    after: Array  # [N, S]
    done: Array  # [N]  where it ended short of any edge at which episodes end


class View(NamedTuple):
    """Every row as one member sees it."""

    state: Batch
    reward: Batch
    ends: tuple[Array, Array] | tuple[()]  # what the net of ends reads, and whether it ended


Params = dict[str, Any]  # trained parts: of `state`, of `reward`, and `ends`


class Gears(NamedTuple):
    """Units that a member's nets are trained in."""

    gain: dict[str, Array]  # [D]  of what is left for a net to say, by net
    lens: dict[str, Array]  # [X]  how large a member sees each of a net's inputs, by net


def fit_folds(key: Key, hypers: Any, data: Dataset, split: Split, ready: Ready, kinds: Kinds) -> Fitted:
    """The ensemble for one setting, its best members, and how well each predicts held-out rows.

    `data` is the log as worlds read it.
    """
    steps = data.steps
    x = jnp.concatenate([steps.obs, steps.action, ready.past], -1)  # [N, X]
    y = jnp.concatenate([steps.next_obs - steps.obs, steps.reward[:, None]], -1)  # [N, S + 1]
    unit = jnp.where(data.episode >= 0, data.episode, jnp.arange(x.shape[0]))  # what the bootstrap weighs
    others = jnp.where(ready.values.beyond(jnp.asarray(steps.next_obs)), 0.0, jnp.asarray(steps.done))
    every = Rows(ready.targets, unit, jnp.asarray(steps.next_obs), others)

    def fold(key: Key, rows: Array, size: Array) -> tuple[Theta, Array]:
        common, key = jax.random.split(key)
        key = jax.random.fold_in(key, jnp.asarray(hypers.block).astype(jnp.uint32))
        at = Fold(rows, size)
        scale = Scale(*moments(x, at), *moments(y, at, ready.targets.amount))
        inside = (x - scale.in_mean) / scale.in_std
        target = (y - scale.out_mean) / scale.out_std
        led = (jnp.asarray(steps.obs), jnp.asarray(steps.next_obs), jnp.asarray(steps.done))
        reads = with_leads(scale, kinds, inside, y[:, :-1])
        inputs = (reads, paid_for(scale, kinds, ready.values, inside, *led))
        known = maps(inputs, target, ready.targets.amount, at, hypers, kinds)
        key, paced = jax.random.split(key)
        pace = paces(paced, hypers.span, hypers.members)

        def member(key: Key, pace: Array) -> tuple[Theta, Array]:
            k1, k2, k3 = jax.random.split(key, 3)
            theta = init(k1, common, hypers, kinds, scale, known, ready)
            view = view_of(k2, hypers, theta, kinds, inputs, target, every)
            valid = jax.tree.map(lambda leaf: leaf[split.valid], view)
            count = (jnp.arange(split.valid.shape[0]) < split.valid_size).astype(jnp.float32)
            valid = valid._replace(
                state=valid.state._replace(weight=count), reward=valid.reward._replace(weight=count)
            )
            keys = (k3, jax.random.fold_in(common, 1))
            gain = lambda k: gain_of(k) * jnp.sqrt(1 + jnp.square(hypers.prior_scale))
            seen = lenses(jax.random.fold_in(k1, 1), hypers.lens, theta)
            gears = Gears({"state": gain(known[0]), "reward": gain(known[1])}, seen)
            mine = replace(hypers, lr=hypers.lr * pace)
            params, nll = train(keys, mine, (theta, kinds, gears), view, valid, at)
            return put(theta, params), nll

        return jax.vmap(member)(jax.random.split(key, hypers.members), pace)

    keys = jax.random.split(key, hypers.folds)
    theta, nll = jax.vmap(fold)(keys, jnp.asarray(split.train), jnp.asarray(split.sizes))
    order = jnp.argsort(nll, axis=1)[:, : hypers.elites]  # [F, elites]
    pick = jax.vmap(lambda leaf, index: leaf[index])
    theta = jax.tree.map(
        lambda leaf: pick(leaf, order).reshape(leaf.shape[0] * hypers.elites, *leaf.shape[2:]), theta
    )
    return Fitted(theta, nll)


def maps(
    inputs: tuple[Array, Array], target: Array, amount: Array, fold: Fold, hypers: Any, kinds: Kinds
) -> tuple[Known, Known]:
    """The least-squares maps of state and reward; every column of the state reads what it may."""
    fit = partial(least_squares, fold=fold, share=hypers.linear, alike=not kinds.gates)
    changes, paid = slice(0, kinds.width), slice(kinds.width, None)
    state = fit(inputs[0], target[:, changes], amount[:, changes])
    sorts = masks(kinds, inputs[0].shape[1], hypers.width, hypers.depth).sorts if kinds.parted else []
    for reads, columns in sorts:
        alone = fit(inputs[0] * reads, target[:, changes], amount[:, changes])
        either = lambda a, b, of=columns: jnp.where(of.reshape(-1, *[1] * (a.ndim - 1)), a, b)
        state = jax.tree.map(either, alone, state)
    return state, fit(inputs[1], target[:, paid], amount[:, paid])


def paces(key: Key, span: float | Array, members: int) -> Array:
    """Members' own shares of the learning rate [M]: one from each of as many equal parts of 1 / span to span."""
    place = jnp.arange(members) + jax.random.uniform(key, (members,))
    return jnp.power(span, 2 * place / members - 1)


def lenses(key: Key, spread: float | Array, theta: Theta) -> dict[str, Array]:
    """How large a member sees each input of its nets [X]: drawn at random, 1 in the mean square.

    Few rows agree with many explanations, by this column or by that one, and nets that see all columns alike agree
    on one of them. With `spread` they do not; many rows settle it, however large a column is seen.
    """
    nets = {"state": theta.state.net, "reward": theta.reward.net, "ends": theta.ends}
    each = {}
    for number, (name, net) in enumerate(nets.items()):
        if net:
            size = jnp.exp(spread * jax.random.normal(jax.random.fold_in(key, number), net[0].weight.shape[1:]))
            each[name] = size / jnp.sqrt(jnp.mean(jnp.square(size)))
    return each


# ---- one member


def view_of(
    key: Key,
    hypers: Any,
    theta: Theta,
    kinds: Kinds,
    inputs: tuple[Array, Array],
    target: Array,
    rows: Rows,
) -> View:
    """Every row as one member sees it. Frozen priors are read here, once, and not at every update."""
    k1, k2 = jax.random.split(key)
    targets, unit = rows.targets, rows.unit
    weight = 1 - hypers.bootstrap + hypers.bootstrap * jax.random.exponential(k1, unit.shape)[unit]
    noisy = target + hypers.jitter * jax.random.normal(k2, target.shape)
    width = target.shape[1] - 1
    gates, choices = len(kinds.of_state().gates), len(kinds.of_state().choices)

    def one(net: Net, x: Array, part: slice, gate: slice, choice: slice, held: Array) -> Batch:
        prior = lambda x: mlp(net.prior, x, hypers.activation)
        prior_out = prior(x) if len(x) <= BLOCK else jax.lax.map(prior, x, batch_size=BLOCK)
        y = noisy[:, part] - dense(net.linear, x) - net.prior_scale * prior_out
        return Batch(
            x, y, weight, targets.amount[:, part], targets.moved[:, gate], targets.chosen[:, choice], held
        )

    held = targets.held
    return View(
        one(
            theta.state,
            inputs[0],
            slice(0, width),
            slice(0, gates),
            slice(0, choices),
            held[:, :-1] if held.shape[1] else held,
        ),
        one(
            theta.reward,
            inputs[1],
            slice(width, None),
            slice(gates, None),
            slice(choices, None),
            jnp.zeros((len(held), 0)),
        ),
        (leads_to(theta.scale, inputs[0][:, : theta.scale.in_mean.shape[0]], rows.after), rows.done)
        if theta.ends
        else (),
    )


# ---- training


def trained(theta: Theta) -> Params:
    """The parts of a world that are trained."""
    of = lambda net: {name: getattr(net, name) for name in TRAINED}
    return {"state": of(theta.state), "reward": of(theta.reward), "ends": theta.ends}


def put(theta: Theta, params: Params) -> Theta:
    """The world with its trained parts in place."""
    return theta._replace(
        state=theta.state._replace(**params["state"]),
        reward=theta.reward._replace(**params["reward"]),
        ends=params["ends"],
    )


def geared(params: Params, gears: Gears) -> Params:
    """The trained parts as they work: nets say means in units of their gain, and see inputs by their lens."""

    def through(layers: tuple[Layer, ...], name: str) -> tuple[Layer, ...]:
        first, *rest = layers
        return (Layer(first.weight * gears.lens[name], first.bias), *rest)

    def one(name: str) -> dict[str, Any]:
        *rest, last = through(params[name]["net"], name)
        gain = gears.gain[name]
        both = jnp.concatenate([gain, jnp.ones_like(gain)])  # log-variances are in their own units
        return {**params[name], "net": (*rest, Layer(last.weight * both[:, None], last.bias * both))}

    ends = through(params["ends"], "ends") if params["ends"] else ()
    return {"state": one("state"), "reward": one("reward"), "ends": ends}


def within(params: Params, kinds: Kinds) -> Params:
    """The trained parts, of which every column's read what it may."""
    if not kinds.parted:
        return params
    state = params["state"]
    first = state["net"][0].weight
    mask = masks(kinds, first.shape[1], first.shape[0], len(state["net"]) - 1)
    extra = masked([state["extra"]], [mask.extra])[0] if isinstance(state["extra"], Layer) else state["extra"]
    return {**params, "state": {**state, "net": masked(state["net"], mask.net), "extra": extra}}


def loss(
    params: Params, world: tuple[Theta, Kinds, Gears], hypers: Any, b: View, rows: Array
) -> tuple[Array, None]:
    """One member's loss on its own minibatch; `params` are its trained parts, in units of their gears."""
    theta, kinds, gears = world
    theta = put(theta, within(geared(params, gears), kinds))
    total = jnp.zeros(())
    nets = ((theta.state, kinds.of_state(), b.state), (theta.reward, kinds.of_reward(), b.reward))
    for net, block, batch in nets:
        through: Any = hidden_half if HALF.get(jax.default_backend()) else hidden
        features = through(net.net, batch.x, hypers.activation)
        total += head_loss(net.net[-1], net.low, net.high, features, batch, hypers.beta, net.floor)
        if isinstance(net.extra, Layer):
            total += jnp.mean(batch.weight * extra_loss(block, dense(net.extra, features), batch))
        total += hypers.clamp * jnp.sum(net.high - net.low)
        total += hypers.ridge / rows * sum(jnp.sum(jnp.square(layer.weight)) for layer in net.net)
    if b.ends:
        total += jnp.mean(b.state.weight * cross_entropy(mlp(theta.ends, b.ends[0], "silu")[..., 0], b.ends[1]))
    return total, None


def score(params: Params, theta: Theta, kinds: Kinds, hypers: Any, b: View) -> Array:
    """Held-out negative log-likelihood of one member, in nats a row, over the rows that `weight` marks: of the
    change, of the reward, and of ends [3].

    Amounts have Student's tails. A row that no world predicts, a collision or a crash, costs a Gaussian thousands
    of nats: a few of them alone would say when to stop, and that is at once.
    """
    theta = put(theta, params)

    def one(net: Net, block: Block, b: Batch) -> Array:
        features = hidden(net.net, b.x, hypers.activation)
        mean, logvar = read(dense(net.net[-1], features), net.low, net.high, net.floor)
        each = jnp.sum(b.amount * student_nll(jnp.zeros(()), logvar, residual(b, mean)), -1)
        if isinstance(net.extra, Layer):
            each += extra_loss(block, dense(net.extra, features), b)
        return jnp.sum(b.weight * each) / jnp.sum(b.weight)

    parts = [one(theta.state, kinds.of_state(), b.state), one(theta.reward, kinds.of_reward(), b.reward)]
    ends = jnp.zeros(())
    if b.ends:
        each = cross_entropy(mlp(theta.ends, b.ends[0], "silu")[..., 0], b.ends[1])
        ends = jnp.sum(b.state.weight * each) / jnp.sum(b.state.weight)
    return jnp.stack([*parts, ends])


def train(
    keys: tuple[Key, Key],
    hypers: Any,
    world: tuple[Theta, Kinds, Gears],
    view: View,
    valid: View,
    fold: Fold,
) -> tuple[Params, Array]:
    """The member's trained parts, each net at its best held-out round, and their score together.

    `keys` are its own and its fold's: which minibatches it sees alone, and which all members see. Means are
    learned in units of gains, what there is left for the net to say: in units of the whole target a step of
    the optimiser would overshoot, where the linear map already says nearly all.
    """
    theta, kinds, gears = world
    params = trained(theta)
    per_round = -(-hypers.updates // ROUNDS)
    chunk = next(c for c in range(min(CHUNK, per_round), 0, -1) if per_round % c == 0)

    def update(learner: Learner, at: tuple[View, Adam]) -> tuple[Learner, None]:
        return descend(learner, at[1], loss, world, hypers, at[0], fold.size)[0], None

    def many(learner: Learner, at: tuple[Key, Key, Array]) -> tuple[Learner, None]:
        key, common, count = at
        shape = (chunk, hypers.batch_size)
        draw = lambda k: (jax.random.bits(k, shape) % fold.size.astype(jnp.uint32)).astype(jnp.int32)
        mine, ours = draw(key), draw(common)
        index = fold.rows[jnp.where(jnp.arange(hypers.batch_size) < hypers.shared * hypers.batch_size, ours, mine)]
        counts = count + jnp.arange(chunk)
        rates = adam(counts, cosine(counts, hypers.lr, hypers.updates, hypers.final_lr), hypers.decay)
        batches = jax.tree.map(lambda leaf: leaf[index], view)
        # A copy of the inputs for each setting: were they shared, XLA would lay out the first layer of all
        # settings as one product and transpose it at every update.
        own = lambda b: b._replace(x=b.x + 0 * hypers.lr)
        batches = batches._replace(state=own(batches.state), reward=own(batches.reward))
        return jax.lax.scan(update, learner, (batches, rates))

    def round_(carry: Any, at: tuple[Key, Key, Array]) -> tuple[Any, None]:
        learner, kept, lowest = carry
        key, common, number = at
        counts = number * per_round + jnp.arange(0, per_round, chunk)
        mine, ours = (jax.random.split(k, per_round // chunk) for k in (key, common))
        learner, _ = jax.lax.scan(many, learner, (mine, ours, counts))
        nll = score(within(geared(learner.params, gears), kinds), theta, kinds, hypers, valid)
        better = nll < lowest  # [3]  every net may be at its best in another round
        kept = {
            name: jax.tree.map(partial(jnp.where, better[i]), learner.params[name], kept[name])
            for i, name in enumerate(("state", "reward", "ends"))
        }
        return (learner, kept, jnp.minimum(nll, lowest)), None

    first = (start(params), params, jnp.full(3, jnp.inf))
    mine, ours = (jax.random.split(k, ROUNDS) for k in keys)
    (_, kept, lowest), _ = jax.lax.scan(round_, first, (mine, ours, jnp.arange(ROUNDS)))
    return within(geared(kept, gears), kinds), lowest.sum()
