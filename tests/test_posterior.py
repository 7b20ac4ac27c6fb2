"""Posteriors against the exact conjugate one; what a fit may depend on; ways to step through the worlds."""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from offing.posterior._levels import levels, snapped
from offing.posterior.spaces import SCALES as NAMES
from offing.posterior.spaces import space
from offing.tune._held import certain, unseen

from offing.data import Split, load, split
from offing.nets import ACTIVATIONS, Layer, dense, hidden, hidden_half, mlp_init, soft_clamp, student_nll
from offing.posterior import _known, _world, ensemble, linear, walk
from offing.posterior.replay import FEWEST, SCALES, replay, segments
from offing.tune import sweep as sweeping
from offing.tune.choose import best, rated
from offing.tune.run import Run
from offing.types import BadInput, Box, Dataset, Posterior, Predict, Task, Transition

S, A = 3, 2
TASK = Task(horizon=10, discount=0.9, actions=Box((-1.0,) * A, (1.0,) * A))
TINY = ensemble.Hypers(
    width=7, depth=1, activation="silu", batch_size=11, updates=40, folds=2, members=3, elites=3
)


def log_of(obs, action, next_obs, reward, done=None, episode=None) -> Dataset:
    obs, action, next_obs, reward = (np.asarray(a, np.float32) for a in (obs, action, next_obs, reward))
    done = np.zeros(len(obs), np.float32) if done is None else np.asarray(done, np.float32)
    steps = Transition(obs, action, reward, next_obs, action, done)
    episode = np.full(len(obs), -1) if episode is None else np.asarray(episode)
    return Dataset(steps, obs[:5], episode, np.asarray(len(obs), np.int32))


def bent(rows=60, seed=0, noise=0.1) -> Dataset:
    """Rows of a system that is not linear."""
    rng = np.random.default_rng(seed)
    obs, action = rng.normal(size=(rows, S)), rng.uniform(-1, 1, size=(rows, A))
    after = obs + 0.3 * np.tanh(obs[:, [1, 2, 0]]) + action[:, :1] + noise * rng.normal(size=obs.shape)
    return log_of(obs, action, after, np.cos(obs[:, 0]) + action[:, 1])


def parts(folds, valid, rows, pad=0) -> Split:
    """Each fold's rows, then `pad` places that are not in use."""
    width = max(map(len, folds)) + pad
    train = np.stack(
        [np.r_[f, np.full(width - len(f), rows - 1)].astype(np.int32) for f in map(np.asarray, folds)]
    )
    sizes = np.array([len(f) for f in folds], np.int32)
    return Split(
        train, sizes, np.asarray(valid, np.int32), np.asarray(len(valid), np.int32), np.zeros(0, np.int32)
    )


HALVES = parts([range(20), range(20, 45)], range(45, 58), 60, pad=4)
# Optimised, a program takes four times as long to compile, and these run for a moment.
HASTE = {"xla_backend_optimization_level": 0}
fit = jax.jit(ensemble.fit, static_argnames="terminates", compiler_options=HASTE)


def same(a, b) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def worlds(theta, fold, folds=2):
    """The theta of one fold."""
    return jax.tree.map(lambda leaf: np.split(np.asarray(leaf), folds)[fold], theta)


# ---- randomised priors are exact draws in the linear case


@pytest.fixture(scope="module")
def draws():
    """Linear members fitted with prior, jitter and ridge on 16 standardised rows; and the exact posterior."""
    inputs, rows, noise, prior_scale = 2, 16, 0.6, 0.7
    rng = np.random.default_rng(0)
    unit = lambda a: (a - a.mean(0)) / a.std(0)
    x = unit(rng.normal(size=(rows, inputs)) @ np.array([[1.0, 0.6], [0.0, 1.0]]))
    y = unit(x @ rng.normal(size=(inputs, inputs + 1)) + 0.7 * rng.normal(size=(rows, inputs + 1)))
    data = log_of(x, np.zeros((rows, 0)), x + y[:, :-1], y[:, -1])
    deviation = prior_scale / np.sqrt(inputs)  # of the prior's weights: LeCun's
    hypers = ensemble.Hypers(
        depth=0,
        linear=0.0,
        prior_scale=prior_scale,
        jitter=noise,
        ridge=noise**2 / deviation**2,
        decay=0.0,
        lr=0.05,
        final_lr=1e-3,
        batch_size=16,
        updates=600,
        folds=3,  # of the same rows: 3 x 200 members, so that sampling is 4 % of the covariance, not 7 %
        members=200,
        elites=200,
    )
    everything = parts([range(rows)] * 3, range(rows), rows)
    fitted = fit(jax.random.key(0), hypers, data, everything, terminates=False)
    posterior = ensemble.posterior(fitted, hypers, data, TASK)
    say = lambda obs: (
        jax.vmap(posterior.predict, (0, None, None))(posterior.theta, obs, jnp.zeros((len(obs), 0))).mean
    )
    weight = np.asarray(say(jnp.eye(inputs)) - say(jnp.zeros((1, inputs))), np.float64)  # [M, in, out]
    exact = linear.moments(linear.Hypers(noise=noise, prior_scale=deviation), data)
    return weight, np.asarray(exact.mean)[1:], np.asarray(exact.covariance)[1:, 1:]


def test_members_have_the_exact_posterior_mean(draws):
    weight, mean, covariance = draws
    off = weight.mean(0) - mean
    assert np.linalg.norm(off) < 0.1 * np.linalg.norm(mean)
    # and in the posterior's own units: a standard error is 0.04, of 600 members
    assert np.abs(off / np.sqrt(np.diag(covariance))[:, None]).max() < 0.15


def test_members_have_the_exact_posterior_covariance(draws):
    weight, _, covariance = draws
    off = weight - weight.mean(0)
    pooled = np.einsum("mio,mjo->ij", off, off) / (len(off) - 1) / off.shape[-1]  # outputs share it
    assert np.linalg.norm(pooled - covariance) < 0.1 * np.linalg.norm(covariance)


def test_members_are_independent_across_outputs(draws):
    weight, _, covariance = draws
    off = (weight - weight.mean(0))[:, 0] / np.sqrt(covariance[0, 0])
    across = off.T @ off / len(off)
    assert np.abs(across - np.diag(np.diag(across))).max() < 4 / np.sqrt(len(off))


# ---- one program per static group


def settings(**axes):
    return [replace(TINY, **{k: v[i] for k, v in axes.items()}) for i in range(3)]


THREE = settings(lr=(1e-3, 3e-3, 1e-2), prior_scale=(0.0, 0.5, 1.0), own=(1.0, 0.5, 0.0), jitter=(0.0, 0.1, 0.0))


def counted():
    """A run for `sweep` that counts how often it is traced."""
    traces = []

    def run(hypers, key, data, split):
        traces.append(type(hypers.lr).__name__)
        return ensemble.fit(key, hypers, data, split, terminates=False, at_walls=False)

    return run, traces


def close(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4)


def test_swept_equals_alone_and_padding_is_harmless(monkeypatch):
    monkeypatch.setattr(sweeping, "widest", lambda count, bytes_each=0: 2)  # 3 settings: the last chunk is padded
    run, traces = counted()
    args = (jax.random.key(1), bent(), HALVES)
    swept = sweeping.sweep("fit", run, THREE, *args)
    assert [len(c.settings) for group in sweeping.chunks(THREE) for c in group] == [2, 1]
    assert sweeping._program(run, 3)._cache_size() == 1
    alone = [fit(args[0], hypers, *args[1:], terminates=False) for hypers in THREE]
    for one, other in zip(swept, alone, strict=True):
        close(one._replace(best=0), other._replace(best=0))
    assert not np.allclose(swept[0].nll, swept[1].nll, rtol=0.01)  # settings that differ do differ
    before = len(traces)
    again = sweeping.sweep("fit", run, [replace(h, lr=2e-3) for h in THREE], *args)
    assert len(traces) == before  # floats are traced: other values, the same program
    assert not np.allclose(again[2].nll, swept[2].nll)


def test_one_trace_per_static_group(monkeypatch):
    traces, told, vmap = [], [], jax.vmap
    slow = lambda *args, **rest: (time.sleep(0.05), vmap(*args, **rest))[1]
    monkeypatch.setattr(jax, "vmap", slow)  # so that groups which start side by side do meet where it is made

    def run(hypers, x):
        traces.append((hypers.width, type(hypers.lr).__name__))
        return {"lr": hypers.lr * x, "of": jnp.full(hypers.width, hypers.own)}

    mixed = [THREE[0], replace(THREE[0], width=5), THREE[1], replace(THREE[2], width=5), THREE[2]]
    found = sweeping.sweep("fit", run, mixed, np.float32(2), run=Run(progress=lambda *a: told.append(a)))
    assert sweeping._program(run, 1)._cache_size() == 2
    assert sorted(width for width, kind in traces if kind == "BatchTracer") == [5, 7]
    assert len(traces) <= 4  # and at most once each for the shape of what comes out
    assert [f["of"].shape for f in found] == [(7,), (5,), (7,), (5,), (7,)]  # in the order of the settings
    assert [float(f["lr"]) for f in found] == pytest.approx([2e-3, 2e-3, 6e-3, 2e-2, 2e-2])
    assert told == [("fit", n, 5) for n in range(6)]


def test_a_kept_chunk_is_not_run_again():
    class Kept:
        def __init__(self):
            self.kept = {}

        def get(self, name):
            return self.kept.get(name)

        def put(self, name, arrays):
            self.kept[name] = list(arrays)

    run, traces, cache = (lambda hypers, x: {"lr": hypers.lr * x}), [], Kept()
    first = sweeping.sweep("fit", run, THREE, np.float32(2), run=Run(cache))
    spy = lambda hypers, x: traces.append(type(hypers.lr).__name__) or {"lr": hypers.lr * x}
    del cache.kept["fit-1-1"]  # as if killed before the second was done
    again = sweeping.sweep("fit", spy, THREE, np.float32(2), run=Run(cache))
    assert same(first, again)
    assert traces.count("BatchTracer") == 1
    assert sorted(cache.kept) == ["fit-0-1", "fit-1-1", "fit-2-1"]


# ---- what a fit may depend on


@pytest.fixture(scope="module")
def plain():
    hypers = replace(TINY, bootstrap=0.5, jitter=0.1, prior_scale=0.5)
    return hypers, fit(jax.random.key(3), hypers, bent(), HALVES, terminates=False)


def changed(data: Dataset, rows) -> Dataset:
    steps = jax.tree.map(np.copy, data.steps)
    for leaf in (steps.obs, steps.next_obs, steps.reward):
        leaf[rows] += 3.0 * (1 + np.arange(len(rows))).reshape(-1, *[1] * (leaf.ndim - 1))
    return data._replace(steps=steps)


def test_rates_are_drawn_one_from_each_part_of_their_span():
    found = np.stack([ensemble.paces(jax.random.key(i), jnp.asarray(9.0), 6) for i in range(4)])
    place = (np.log(found) / np.log(9.0) + 1) * 3  # from 0 to 6
    np.testing.assert_array_equal(np.floor(place), np.broadcast_to(np.arange(6), (4, 6)))
    assert len(np.unique(found)) == 24  # other ones for every key, and so in every fold
    np.testing.assert_array_equal(ensemble.paces(jax.random.key(0), jnp.asarray(1.0), 6), np.ones(6))


def test_members_of_a_span_learn_at_rates_of_their_own():
    """Members that start alike and see the same rows differ by their rates, and by nothing else."""
    alike = replace(TINY, own=0.0, shared=1.0, lr=1e-2, members=6, elites=6)
    trained = lambda hypers: np.asarray(
        fit(jax.random.key(3), hypers, bent(), HALVES, terminates=False).theta.net[0].weight
    ).reshape(2, 6, -1)
    one, own = trained(alike), trained(replace(alike, span=9.0))
    np.testing.assert_allclose(one, np.broadcast_to(one[:, :1], one.shape), atol=1e-6)
    apart = np.linalg.norm(own[:, :, None] - own[:, None], axis=-1)  # [F, M, M]
    assert apart[:, *np.triu_indices(6, 1)].min() > 1e-4  # no two of a fold alike


def test_size_is_traced(plain):
    hypers, large = plain
    compiled = fit._cache_size()
    less = HALVES._replace(sizes=np.array([12, 9], np.int32), valid_size=np.asarray(6, np.int32))
    small = fit(jax.random.key(3), hypers, bent()._replace(size=np.asarray(50, np.int32)), less, terminates=False)
    assert fit._cache_size() == compiled  # the same program
    assert not np.allclose(large.nll, small.nll)
    assert not np.allclose(large.theta.scale.in_mean, small.theta.scale.in_mean)


def test_rows_out_of_use_do_not_matter(plain):
    hypers, before = plain
    after = fit(
        jax.random.key(3), hypers, changed(bent(), [58, 59]), HALVES, terminates=False
    )  # 59 is the padding
    assert same(before, after)


def test_a_fold_does_not_see_the_rows_of_another(plain):
    hypers, before = plain
    after = fit(jax.random.key(3), hypers, changed(bent(), list(range(20, 45))), HALVES, terminates=False)
    assert same(worlds(before.theta, 0), worlds(after.theta, 0))
    assert not same(worlds(before.theta, 1).net, worlds(after.theta, 1).net)
    assert np.array_equal(before.nll[0], after.nll[0])


def test_validation_rows_do_not_train():
    move = lambda d: fit(jax.random.key(4), TINY, d, HALVES, terminates=False)
    before, after = move(bent()), move(changed(bent(), list(range(45, 58))))
    assert same(before.theta.scale, after.theta.scale)
    assert same(before.theta.linear, after.theta.linear)
    assert not np.array_equal(before.nll, after.nll)


def test_the_posterior_knows_the_range_of_the_rows_in_use(plain):
    hypers, fitted = plain
    data = changed(bent(), [58, 59])._replace(size=np.asarray(58, np.int32))
    posterior = ensemble.posterior(fitted, hypers, data, TASK, noise_scale=0.5)
    used = bent().steps
    seen = np.concatenate([used.obs[:58], used.next_obs[:58]])
    np.testing.assert_allclose(posterior.low, np.r_[seen.min(0), used.reward[:58].min()])
    np.testing.assert_allclose(posterior.high, np.r_[seen.max(0), used.reward[:58].max()])
    assert float(posterior.noise_scale) == 0.5
    assert posterior.theta.prior  # heard
    silent = ensemble.posterior(
        fitted._replace(theta=fitted.theta._replace(prior_scale=jnp.zeros(6))), hypers, data, TASK
    )
    assert silent.theta.prior == ()


def test_the_linear_yardstick_sees_only_rows_in_use():
    hypers, data = linear.Hypers(noise=0.3, prior_scale=2.0), bent()
    some = data._replace(size=np.asarray(40, np.int32))
    moments = jax.jit(linear.moments)
    found, spoilt = moments(hypers, some), moments(hypers, changed(some, list(range(40, 60))))
    assert same(found, spoilt)
    phi = np.c_[np.ones(40), data.steps.obs[:40], data.steps.action[:40]].astype(np.float64)
    y = np.c_[(data.steps.next_obs - data.steps.obs)[:40], data.steps.reward[:40]]
    covariance = np.linalg.inv(phi.T @ phi / 0.09 + np.eye(6) / 4)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(found.mean, covariance @ phi.T @ y / 0.09, rtol=1e-3, atol=1e-5)


# ---- gradients written by hand


@pytest.mark.parametrize("walled", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_head_loss_has_the_gradient_of_its_formula(beta, walled):
    """With stops where the docstring has them: the variance does not shape the features, nor weigh the mean."""
    k1, k2, k3, k4 = jax.random.split(jax.random.key(5), 4)
    last = Layer(0.7 * jax.random.normal(k1, (6, 5)), jnp.linspace(-1, 0.4, 6))
    low, high, floor = jnp.array([-3.0, -1.5, -0.4]), jnp.array([0.5, 0.2, 1.0]), jnp.asarray(-0.5)
    features, y = jax.random.normal(k2, (13, 5)), jax.random.normal(k3, (13, 3))
    none = jnp.zeros((13, 0))
    sides = jnp.sign(jnp.round(jax.random.normal(k4, (13, 3)))) if walled else none
    b = ensemble.Batch(jnp.zeros((13, 1)), y, jax.random.exponential(k4, (13,)), none, none, sides)
    stop = jax.lax.stop_gradient

    def formula(last, low, high, features):
        mean = dense(last, features)[:, :3]
        raw = dense(last, stop(features))[:, 3:]
        logvar = jnp.maximum(soft_clamp(raw, low, high), floor)
        off = y - mean
        if walled:
            free = ((sides > 0) & (mean > y)) | ((sides < 0) & (mean < y))  # beyond a wall at no cost
            assert float(jnp.mean(stop(free))) > 0
            off = jnp.where(free, 0.0, off)
        squared = jnp.square(off)
        each = squared * stop(jnp.exp((beta - 1) * logvar)) + logvar + stop(squared) * jnp.exp(-logvar)
        return 3 * jnp.mean(b.weight * each.sum(-1))

    ours = lambda last, low, high, features: 3 * ensemble.head_loss(last, low, high, features, b, beta, floor)
    args = (last, low, high, features)
    raw = dense(last, features)[:, 3:]
    held = np.asarray(soft_clamp(raw, low, high) < floor)
    assert 0.05 < held.mean() < 0.95  # the floor bites on some rows and not on others
    value, grads = jax.value_and_grad(ours, (0, 1, 2, 3))(*args)
    value_, grads_ = jax.value_and_grad(formula, (0, 1, 2, 3))(*args)
    assert float(value) == pytest.approx(float(value_), rel=1e-6)
    for mine, theirs in zip(jax.tree.leaves(grads), jax.tree.leaves(grads_), strict=True):
        assert np.linalg.norm(theirs) > 1e-2
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_half_precision_gradients_are_near_and_values_the_same(activation):
    layers = mlp_init(jax.random.key(6), (5, 17, 13, 3))
    x, out = jax.random.normal(jax.random.key(7), (64, 5)), jax.random.normal(jax.random.key(8), (64, 13))
    assert np.array_equal(hidden_half(layers, x, activation), hidden(layers, x, activation))
    loss = lambda through, layers, x: jnp.mean(jnp.square(through(layers, x, activation) - out))
    half, full = (jax.grad(partial(loss, through), (0, 1))(layers, x) for through in (hidden_half, hidden))
    for mine, theirs in zip(jax.tree.leaves(half), jax.tree.leaves(full), strict=True):
        assert mine.dtype == theirs.dtype
        assert np.linalg.norm(mine - theirs) <= 0.01 * np.linalg.norm(theirs)


# ---- training


@pytest.fixture(scope="module")
def overfitted():
    """Many updates on few noisy rows."""
    hypers = replace(TINY, width=32, updates=1500, lr=1e-2, members=5, elites=3, floor=0.2, decay=0.0)
    data, split = bent(noise=0.5), parts([range(12), range(12, 26)], range(30, 60), 60)
    fitted = fit(jax.random.key(9), hypers, data, split, terminates=False)
    return hypers, data, split, fitted, ensemble.posterior(fitted, hypers, data, TASK)


def scores(posterior, data, rows, scale):
    """Held-out nats a row of every world, from what it predicts."""
    steps = jax.tree.map(lambda a: a[rows], data.steps)
    y = np.c_[steps.next_obs - steps.obs, steps.reward]
    said = jax.vmap(posterior.predict, (0, None, None))(posterior.theta, steps.obs, steps.action)
    each = student_nll(said.mean, 2 * jnp.log(said.std), y).sum(-1).mean(-1)
    return np.asarray(each - jnp.log(scale.out_std).sum(-1))


def test_the_best_state_is_kept(overfitted):
    _, data, split, fitted, posterior = overfitted
    assert fitted.nll.mean() < fitted.curve[-1] - 0.1  # it did get worse
    assert fitted.nll.mean() <= fitted.curve.min() + 1e-5
    assert (fitted.best < ensemble.ROUNDS - 1).any()
    assert ((fitted.best >= 0) & (fitted.best < ensemble.ROUNDS)).all()
    again = scores(posterior, data, split.valid, posterior.theta.scale).reshape(2, 3)
    lowest = np.sort(fitted.nll, 1)[:, :3]
    np.testing.assert_allclose(again, lowest, rtol=1e-3)  # what is returned scores as reported, best first


def test_elites_are_kept_fold_by_fold(overfitted):
    hypers, _, _, fitted, posterior = overfitted
    assert fitted.nll.shape == (2, 5)
    assert posterior.members == 6
    assert (np.sort(fitted.nll, 1)[:, 2] < fitted.nll.max(1)).all()
    scale = np.asarray(posterior.theta.scale.in_mean)
    assert (scale[:3] == scale[0]).all()
    assert (scale[3:] == scale[3]).all()
    assert not np.array_equal(scale[0], scale[3])
    assert hypers.elites == 3


def test_no_standard_deviation_is_below_the_floor(overfitted):
    hypers, data, _, _, posterior = overfitted
    obs = jnp.concatenate([data.steps.obs, 30 * data.steps.obs])
    action = jnp.concatenate([data.steps.action] * 2)
    said = jax.vmap(posterior.predict, (0, None, None))(posterior.theta, obs, action)
    relative = np.asarray(said.std / posterior.theta.scale.out_std[:, None])
    assert relative.min() >= hypers.floor * (1 - 1e-5)
    assert relative.min() < hypers.floor * 1.5  # and it is reached
    assert not said.done.any()


def test_members_see_different_minibatches():
    hypers = replace(TINY, own=0.0)
    fitted = fit(jax.random.key(10), hypers, bent(), HALVES, terminates=False)
    weight = np.asarray(fitted.theta.net[0].weight)  # [F * M, ...]
    assert not np.allclose(weight[0], weight[1], atol=1e-5)
    assert not np.allclose(weight[1], weight[2], atol=1e-5)


@pytest.mark.parametrize("own", [0.0, 0.3, 1.0])
def test_own_is_the_share_of_first_weights_that_members_do_not_have_in_common(own):
    hypers = replace(TINY, own=own, width=200)
    scale = _known.Scale(jnp.zeros(S + A), jnp.ones(S + A), jnp.zeros(S + 1), jnp.ones(S + 1))
    flat = Layer(jnp.zeros((S + 1, S + A)), jnp.zeros(S + 1))
    known = _known.Known(scale, flat, jnp.full(S + 1, 0.04), jnp.array([[-jnp.inf], [jnp.inf]]) * jnp.ones(S))
    make = lambda seed: ensemble.init(jax.random.key(seed), jax.random.key(99), hypers, (S, A), known, False)
    one, two = make(0), make(1)
    a, b = (np.asarray(t.net[0].weight).ravel() for t in (one, two))
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(1 - own**2, abs=0.1)
    assert a.var() * (S + A) == pytest.approx(1, abs=0.15)  # at every share the same size
    assert not np.array_equal(one.prior[0].weight, two.prior[0].weight)
    x = jax.random.normal(jax.random.key(11), (4, S + A))
    mean, logvar = _world.gaussian(one, x, "silu")
    assert not mean.any()  # says nothing yet
    np.testing.assert_allclose(logvar, np.log(0.04), atol=0.1)  # and expects what the linear map left over


def test_the_linear_map_is_least_squares():
    data = bent(rows=200)
    x = jnp.concatenate([data.steps.obs, data.steps.action], -1)
    y = jnp.concatenate([data.steps.next_obs - data.steps.obs, data.steps.reward[:, None]], -1)
    rows, size = jnp.arange(200)[::-1], 150
    scale = _known.measure(x, y, rows, size)
    layer, left = _known.least_squares(x, y, scale, rows, size, 1.0)
    used = slice(50, 200)
    a, b = (np.asarray((v[used] - v[used].mean(0)) / v[used].std(0), np.float64) for v in (x, y))
    weight, residual = np.linalg.lstsq(a, b, rcond=None)[:2]
    np.testing.assert_allclose(layer.weight, weight.T, atol=1e-3)
    np.testing.assert_allclose(left, residual / 150, rtol=1e-2)
    half, more = _known.least_squares(x, y, scale, rows, size, 0.5)
    np.testing.assert_allclose(half.weight, layer.weight / 2, rtol=1e-5)
    assert (more >= left).all()


def test_a_constant_column_keeps_its_units():
    x = jnp.stack([jnp.full(9, 1e4), jnp.arange(9.0)], 1)
    scale = _known.measure(x, x, jnp.arange(9), jnp.asarray(9))
    assert scale.in_std[0] == 1
    assert scale.in_std[1] == pytest.approx(np.arange(9).std(), rel=1e-5)


# ---- termination


def test_the_termination_head_learns_an_easy_rule():
    rng = np.random.default_rng(12)
    obs, action = rng.uniform(-2, 2, size=(400, S)), rng.uniform(-1, 1, size=(400, A))
    after = obs + 0.5 * action[:, :1]
    data = log_of(obs, action, after, obs[:, 1], done=after[:, 0] > 1)
    hypers = replace(TINY, folds=1, members=2, elites=2, batch_size=64, updates=600, lr=1e-2)
    split = parts([range(300)], range(300, 400), 400)
    fitted = fit(jax.random.key(12), hypers, data, split, terminates=True)
    posterior = ensemble.posterior(fitted, hypers, data, TASK)
    probe = rng.uniform(-2, 2, size=(500, S)).astype(np.float32)
    push = rng.uniform(-1, 1, size=(500, A)).astype(np.float32)
    said = jax.vmap(posterior.predict, (0, None, None))(posterior.theta, probe, push)
    margin, ends = probe[:, 0] + 0.5 * push[:, 0] - 1, np.asarray(said.done)
    assert ((ends >= 0) & (ends <= 1)).all()
    assert ends[:, margin > 0.3].mean() > 0.95
    assert ends[:, margin < -0.3].mean() < 0.05
    assert (((ends > 0.5) == (margin > 0)).mean(1) > 0.95).all()


# ---- ways to step


@dataclass(frozen=True)
class Drift:
    """Worlds in which every state moves by theta, the reward is ten times that, and the end is even odds."""

    std: float = 0.0
    done: float = 0.5

    def __call__(self, theta, obs, action):
        mean = jnp.concatenate(
            [jnp.broadcast_to(theta, obs.shape), 10 * jnp.broadcast_to(theta, obs[..., :1].shape)], -1
        )
        return Predict(mean, jnp.full_like(mean, self.std), jnp.full(obs.shape[:-1], self.done))


def drifting(members=5, folds=1, noise_scale=1.0, task=TASK, **kind) -> Posterior:
    starts = np.arange(7 * S, dtype=np.float32).reshape(7, S) / 100
    low, high = np.r_[np.full(S, -1.0), 0.0], np.r_[np.full(S, 1.0), 2.5]
    theta = jnp.arange(1.0, members + 1) / 10
    return Posterior(theta, starts, low, high, jnp.asarray(noise_scale), Drift(**kind), task, folds)


def test_fold_takes_its_own_worlds():
    posterior = drifting(members=6, folds=3)
    np.testing.assert_allclose(posterior.fold(1).theta, [0.3, 0.4], rtol=1e-6)
    assert (posterior.fold(2).members, posterior.fold(2).folds) == (2, 1)
    for index in (-1, 3):
        with pytest.raises(IndexError):
            posterior.fold(index)


def test_begin_draws_logged_starts_independently():
    posterior = drifting()
    obs = np.asarray(walk.begin(jax.random.key(0), posterior, 200))
    assert obs.shape == (5, 200, S)
    which = (obs[..., 0] * 100 / S).round().astype(int)
    np.testing.assert_allclose(obs, posterior.starts[which], atol=1e-6)
    assert (np.bincount(which.ravel(), minlength=7) > 1000 / 7 * 0.7).all()
    assert 0 < (which[0] == which[1]).mean() < 0.4  # worlds do not share their starts


def test_fixed_keeps_to_one_world_and_redrawn_does_not():
    posterior, copies = drifting(done=0.0), 40
    obs, action = walk.begin(jax.random.key(1), posterior, copies), jnp.zeros((5, copies, A))
    moved = {}
    for name in ("fixed", "redrawn"):
        after, reward, done = jax.jit(getattr(walk, name)(posterior))(jax.random.key(2), obs, action)
        assert (after.shape, reward.shape, done.shape) == (obs.shape, (5, copies), (5, copies))
        assert not done.any()
        moved[name] = np.asarray((after - obs)[..., 0])
        # next state and reward come from one world
        np.testing.assert_allclose(reward, np.minimum(10 * moved[name], 2.5), rtol=1e-3)
    np.testing.assert_allclose(moved["fixed"], np.broadcast_to(posterior.theta[:, None], (5, copies)), atol=1e-5)
    tenths = (moved["redrawn"] * 10).round().astype(int)
    np.testing.assert_allclose(moved["redrawn"] * 10, tenths, atol=1e-4)
    assert (np.bincount(tenths.ravel())[1:] == copies).all()  # every world is used alike
    assert all(len(set(row)) == 5 for row in tenths)


def test_the_reward_is_clipped_on_the_mean_and_not_on_the_sample():
    posterior = drifting(std=0.4, done=0.0)
    obs, action = jnp.zeros((5, 4000, S)), jnp.zeros((5, 4000, A))
    _, reward, _ = jax.jit(walk.fixed(posterior))(jax.random.key(3), obs, action)
    se = 4 * 0.4 / np.sqrt(4000)
    np.testing.assert_allclose(np.mean(reward, 1), [1.0, 2.0, 2.5, 2.5, 2.5], atol=se)
    np.testing.assert_allclose(np.std(reward, 1), 0.4, rtol=0.06)
    assert 0.45 < (reward[-1] > 2.5).mean() < 0.55  # chance still carries it beyond the log


@pytest.mark.parametrize(("scale", "std"), [(0.0, 0.0), (0.25, 0.2), (1.0, 0.4)])
def test_the_noise_scale_is_of_the_variance(scale, std):
    posterior = drifting(std=0.4, noise_scale=scale)
    after, reward, _ = walk.fixed(posterior)(jax.random.key(4), jnp.zeros((5, 4000, S)), jnp.zeros((5, 4000, A)))
    np.testing.assert_allclose(np.std(after - posterior.theta[:, None, None], (1, 2)), std, rtol=0.05, atol=1e-6)
    np.testing.assert_allclose(np.std(reward, 1), std, rtol=0.08, atol=1e-6)


@pytest.mark.parametrize("terminates", [False, True])
def test_where_the_log_ends_the_world_ends(terminates):
    worlds = replace(drifting(), room=jnp.asarray(1.0), terminates=terminates)
    action = jnp.zeros((5, 2, A))
    obs = jnp.full((5, 2, S), 2.95)  # range -1 to 1, so 3 is the furthest
    least = float(worlds.low[-1])
    for edge, place in ((3.0, obs), (-3.0, obs - 100)):
        after, reward, done = walk.fixed(worlds)(jax.random.key(5), place, action)
        left = np.asarray(walk.watched(worlds)(jax.random.key(5), place, action)[2])
        assert left.any()
        np.testing.assert_allclose(np.asarray(after)[left], edge, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(reward)[left], least)
        alone = walk.fixed(replace(worlds, terminates=False))(jax.random.key(5), place, action)[2]
        np.testing.assert_array_equal(done, left | np.asarray(alone) if terminates else alone)
    after, _, _ = walk.fixed(worlds)(jax.random.key(5), obs - 1.5, action)
    np.testing.assert_allclose(after, jnp.broadcast_to(1.45 + worlds.theta[:, None, None], obs.shape), rtol=1e-5)
    free = walk.fixed(replace(worlds, room=jnp.inf))(jax.random.key(5), obs + 100, action)[0]
    assert (np.asarray(free) > 100).all()


def test_ends_are_as_certain_as_chance_allows():
    chance = jnp.array([0.0, 0.02, 0.5, 0.98, 1.0])
    np.testing.assert_allclose(walk.sharpened(chance, jnp.asarray(1.0)), chance, atol=1e-6)
    np.testing.assert_allclose(walk.sharpened(chance, jnp.asarray(0.0)), [0, 0, 0.5, 1, 1], atol=1e-6)


@pytest.mark.parametrize(
    ("rate", "says", "scale"),
    [(0.1, 0.1, 1.0), (0.5, 0.5, 1.0), (1.0, 0.9, 0.1), (1.0, 0.6, 0.01), (0.0, 0.1, 1.0)],  # none: nothing known
)
def test_ends_are_as_certain_as_held_out_rows_say(rate, says, scale):
    obs, action = np.zeros((2_000, S)), np.zeros((2_000, A))
    done = np.random.default_rng(0).random(2_000) < rate
    held = log_of(obs, action, obs, obs[:, 0], done=done)
    assert float(certain(drifting(done=says), held).ends_scale) == pytest.approx(scale)


def test_walls_are_where_a_column_stops_and_predictions_stop_there():
    values = np.array([[0.1, 5.0, 1.0], [0.9, 5.0, 2.0], [0.4, 5.0, 3.0], [0.2, 3.0, 3.0], [0.3, 1.0, 3.0]])
    found = np.asarray(_known.stops(jnp.asarray(values), jnp.ones(5, bool)))
    np.testing.assert_array_equal(found, [[-np.inf] * 3, [np.inf, 5.0, 3.0]])
    some = np.asarray(_known.stops(jnp.asarray(values), jnp.arange(5) < 3))  # rows in use alone
    np.testing.assert_array_equal(some[:, 1], [5.0, 5.0])
    both = Split(np.array([[0, 1], [2, 0]]), np.array([2, 1]), np.array([3, 0]), np.asarray(1), np.zeros(0))
    np.testing.assert_array_equal(_known.learned_from(both, 5), [True] * 4 + [False])  # folds share their walls
    flat = Layer(jnp.zeros((4, 4)), jnp.array([0.0, 9.0, -9.0, 0.0]))
    scale = _known.Scale(jnp.zeros(4), jnp.ones(4), jnp.zeros(4), jnp.ones(4))
    known = _known.Known(scale, flat, jnp.ones(4), jnp.asarray(found))
    world = ensemble.init(
        jax.random.key(0), jax.random.key(1), replace(TINY, prior_scale=0.0), (3, 1), known, False
    )
    said = _world.World("silu")(world, jnp.array([[0.5, 4.0, 2.0]]), jnp.zeros((1, 1)))
    np.testing.assert_allclose(said.mean[0], [0.0, 1.0, -9.0, 0.0], atol=1e-5)  # held at 5, free below


class Walled(NamedTuple):
    """Worlds of which all that is known is where a column stops."""

    walls: Any  # [M, 2, S]


def test_noise_stops_at_a_wall_and_does_not_leave_the_log_there():
    edge = jnp.stack([jnp.full(S, -jnp.inf), jnp.full(S, jnp.inf).at[0].set(1.0)])
    still = lambda theta, obs, action: Predict(
        jnp.zeros((*obs.shape[:-1], S + 1)), jnp.full((*obs.shape[:-1], S + 1), 0.5), jnp.zeros(obs.shape[:-1])
    )
    worlds = replace(
        drifting(noise_scale=1.0),
        theta=Walled(jnp.broadcast_to(edge, (5, 2, S))),
        predict=still,
        room=jnp.asarray(0.1),
        terminates=True,
    )
    at = jnp.zeros((5, 400, S)).at[..., 0].set(1.0)  # range -1 to 1: noise alone would carry many beyond 1.2
    (after, _, ended), _, left = walk.watched(worlds)(jax.random.key(6), at, jnp.zeros((5, 400, A)))
    open_ = replace(worlds, theta=Walled(jnp.full((5, 2, S), jnp.inf).at[:, 0].set(-jnp.inf)))
    gone = walk.watched(open_)(jax.random.key(6), at, jnp.zeros((5, 400, A)))[2]
    assert float(after[..., 0].max()) == 1.0
    assert 0.4 < (np.asarray(after[..., 0]) == 1.0).mean() < 0.6
    assert np.mean(gone) > np.mean(left) + 0.2
    np.testing.assert_array_equal(ended, left)


def flagged(rows: int) -> Dataset:
    """Rows whose first column is a switch, the second one of three values, the last continuous."""
    rng = np.random.default_rng(3)
    obs, after = (
        np.c_[rng.integers(0, 2, rows), rng.choice([-1, 0, 5], rows), rng.normal(size=rows)] for _ in "ab"
    )
    return log_of(obs, np.zeros((rows, A)), after, np.zeros(rows))


def test_columns_of_few_values_are_found_where_rows_can_tell():
    found = levels(flagged(2_000))
    np.testing.assert_array_equal(found, [[0, 1, 1, np.inf], [-1, 0, 5, np.inf], [np.nan] * 4])
    assert levels(flagged(70)).shape == (3, 3)  # three values in 70 rows may be chance
    assert levels(bent()).size == 0


def test_a_state_lies_at_one_of_few_values():
    found = jnp.asarray(levels(flagged(2_000)))
    state = jnp.array([[0.4, 2.4, 0.3], [0.6, 2.6, -9.0], [-3.0, -0.6, 1e6]])
    np.testing.assert_allclose(snapped(found, state), [[0, 0, 0.3], [1, 5, -9], [0, -1, 1e6]])
    assert snapped((), state) is state


def test_what_is_near_to_the_usual_value_of_a_column_is_at_it():
    rng = np.random.default_rng(4)
    force = np.where(
        rng.random(4_000) < 0.9, 0.0, rng.uniform(2.0, 10.0, 4_000)
    )  # nought unless something touches
    rare = np.where(rng.random(4_000) < 0.4, 0.0, rng.normal(size=4_000))  # nought often, not usually
    after = np.c_[force, rare, rng.normal(size=4_000)]
    data = log_of(after[::-1], np.zeros((4_000, A)), after, np.zeros(4_000))
    found = levels(data)
    np.testing.assert_allclose(found[0], [0.0, 1.2], atol=0.05)  # half of what 5% of the forces lie below
    assert np.isnan(found[1:]).all()
    state = jnp.array([[0.9, 0.01, 0.3], [-0.4, 0.0, 0.0], [1.6, 0.0, 1.0]])
    expected = [[0, 0.01, 0.3], [0, 0, 0], [1.6, 0, 1]]
    np.testing.assert_allclose(snapped(jnp.asarray(found), state), expected)


def test_worlds_step_from_level_to_level_and_end_there():
    data = flagged(1_500)
    fitted = fit(
        jax.random.key(0),
        TINY,
        data._replace(steps=data.steps._replace(done=data.steps.next_obs[:, 0])),
        HALVES,
        terminates=True,
    )
    worlds = ensemble.posterior(fitted, TINY, data, TASK, 1.0)
    obs, action = jnp.asarray(data.steps.obs[None, :7]).repeat(6, 0), jnp.zeros((6, 7, A))
    after = np.asarray(walk.fixed(worlds)(jax.random.key(1), obs, action)[0])
    assert set(np.unique(after[..., 0])) <= {0.0, 1.0}
    assert set(np.unique(after[..., 1])) <= {-1.0, 0.0, 5.0}
    said = jax.vmap(worlds.predict)(worlds.theta, obs, action)
    assert not np.isin(np.asarray(obs + said.mean[..., :-1])[..., 0], [0.0, 1.0]).all()  # PIL still sees the mean
    x = jax.vmap(lambda theta, obs: _world.enter(theta.scale, obs, action[0]))(worlds.theta, obs)
    where = snapped(worlds.levels, obs + said.mean[..., :-1])
    ends = jax.nn.sigmoid(jax.vmap(_world.ending)(worlds.theta, x, where))
    np.testing.assert_allclose(said.done, ends, rtol=1e-5)


def test_ends_are_kept_from_their_own_best_round():
    """Ends are a coin's here: their head is at its best before it knows them by heart, and the rest is not."""
    data, split = bent(rows=400, noise=0.0), parts([range(150), range(150, 300)], range(300, 400), 400)
    done = (np.random.default_rng(5).uniform(size=400) < 0.3).astype(np.float32)
    data = data._replace(steps=data.steps._replace(done=done))
    fitted = fit(jax.random.key(9), replace(TINY, updates=400, lr=1e-2), data, split, terminates=True)
    assert fitted.nll.mean() < fitted.curve.min() - 1e-3  # no one round is as good as the best of each part


def test_a_row_that_nobody_foretells_does_not_stop_a_fit():
    hypers = replace(TINY, updates=400, floor=0.01)
    data, split = bent(rows=400, noise=0.0), parts([range(150), range(150, 300)], range(300, 400), 400)
    jolt = np.array(data.steps.next_obs)
    jolt[350] += 50.0
    jolted = data._replace(steps=data.steps._replace(next_obs=jolt))
    plain, same = (fit(jax.random.key(9), hypers, d, split, terminates=False) for d in (data, jolted))
    assert plain.best.mean() > 10  # there is something to learn in later rounds
    np.testing.assert_allclose(same.best.mean(), plain.best.mean(), atol=1)


def test_a_known_rule_of_termination_overrules_the_head():
    obs, action = jnp.zeros((5, 1000, S)), jnp.zeros((5, 1000, A))
    _, _, done = walk.fixed(drifting(done=0.2))(jax.random.key(6), obs, action)
    assert done.dtype == bool
    np.testing.assert_allclose(done.mean(1), 0.2, atol=0.06)
    known = TASK._replace(done=lambda obs, action, after: after[..., 0] > 0.25)
    _, _, done = walk.fixed(drifting(done=0.2, task=known))(jax.random.key(6), obs, action)
    np.testing.assert_array_equal(done, np.repeat(np.array([0, 0, 1, 1, 1], bool)[:, None], 1000, 1))


def test_roll_runs_on_and_says_who_is_still_alive():
    posterior, copies, steps = drifting(done=0.3), 11, 13
    seen = []

    def act(key, obs, t):
        seen.append((obs.shape, t.shape))
        return jnp.zeros((*obs.shape[:-1], A)) + t

    obs = walk.begin(jax.random.key(7), posterior, copies)
    out = jax.jit(lambda key: walk.roll(key, walk.fixed(posterior), obs, act, steps))(jax.random.key(8))
    assert out["obs"].shape == (steps, 5, copies, S)
    assert {out[name].shape for name in ("reward", "done", "alive")} == {(steps, 5, copies)}
    alive, done = np.asarray(out["alive"]), np.asarray(out["done"])
    assert alive[0].all()
    np.testing.assert_array_equal(alive[1:], np.cumsum(done, 0)[:-1] == 0)
    assert 0 < alive[-1].mean() < 0.2
    assert seen[0] == ((5, copies, S), ())
    np.testing.assert_allclose(out["obs"][0], obs + posterior.theta[:, None, None], rtol=1e-5)


# ---- replay


def system(noise, episodes=30, length=40, seed=13) -> Dataset:
    """A stable linear system under random actions."""
    rng = np.random.default_rng(seed)
    turn = 0.9 * np.array([[0.9, 0.3, 0.0], [-0.3, 0.9, 0.1], [0.0, 0.0, 1.0]])
    push = np.array([[1.0, 0, 0.5], [0, -1, 1]])
    obs, action, after = [], rng.uniform(-1, 1, size=(episodes * length, A)), []
    for row in range(episodes * length):
        at = rng.normal(size=S) if row % length == 0 else after[-1]
        obs.append(at.astype(np.float32))
        after.append((at @ turn + action[row] @ push + noise * rng.normal(size=S)).astype(np.float32))
    obs = np.array(obs)
    return log_of(obs, action, after, obs[:, 0], episode=np.repeat(np.arange(episodes), length))


@pytest.fixture(scope="module")
def replayed():
    """What replay finds where a posterior is told of noise 0.3, and the log has none, or has that."""
    hypers, found = linear.Hypers(noise=0.3, members=6), {}
    for noise in (0.0, 0.3):
        posterior = linear.fit(jax.random.key(14), hypers, system(noise, seed=15), TASK)
        found[noise] = replay(jax.random.key(16), posterior, system(noise, episodes=16), longest=16, count=48)
    return found


def test_noise_that_is_not_in_the_log_is_scaled_away(replayed):
    assert replayed[0.0].scale == 0.0
    assert (replayed[0.0].score[0] < replayed[0.0].score[-1]).all()


def test_noise_that_is_in_the_log_is_kept(replayed):
    assert replayed[0.3].scale >= 0.75
    assert replayed[0.3].score[-1].mean() < 0.9 * replayed[0.3].score[0].mean()


def test_replay_reports_error_and_spread_by_horizon(replayed):
    for found in replayed.values():
        np.testing.assert_array_equal(found.scales, SCALES)
        np.testing.assert_array_equal(found.horizons, [1, 2, 4, 8, 16])
        assert found.error.shape == found.spread.shape == found.score.shape == (5, 5)
        assert (np.diff(found.spread, axis=0) > 0).all()  # more noise, more spread
    ratio = replayed[0.3].spread[-1] / replayed[0.3].error[-1]
    assert (np.abs(np.log(ratio)) < np.log(1.5)).all(), ratio  # a right posterior spreads as it errs
    assert replayed[0.0].error[0].max() < 0.1


def test_a_scale_that_drives_worlds_out_of_the_log_does_not_fit(replayed):
    held = system(0.3, episodes=16)
    posterior = linear.fit(jax.random.key(14), linear.Hypers(noise=0.3, members=6), system(0.3, seed=15), TASK)
    assert replayed[0.3].left.max() == 0.0  # nothing bounds these worlds
    edge = np.abs(held.steps.next_obs).max(0)
    low, high = np.r_[-edge, -9.0].astype(np.float32), np.r_[edge, 9.0].astype(np.float32)
    tight = replace(posterior, low=low, high=high, room=jnp.asarray(-0.1))  # a log that noise would have left
    found = replay(jax.random.key(16), tight, held, longest=16, count=48)
    assert (np.diff(found.left) >= 0).all()
    allowed = found.left <= found.left.min() + 0.02
    assert not allowed.all()
    assert allowed[np.flatnonzero(found.scales == found.scale)[0]]


def test_a_bag_of_transitions_cannot_be_replayed():
    held = system(0.1, episodes=4, length=10)
    posterior = linear.fit(jax.random.key(0), linear.Hypers(members=3), held, TASK)
    assert replay(jax.random.key(0), posterior, held._replace(episode=np.full(40, -1))) is None


def test_segments_end_where_the_log_breaks():
    data = system(0.0, episodes=2, length=6)
    data.steps.next_obs[8] += 1.0  # row 8 does not lead to row 9
    firsts, run = segments(data, longest=5, count=100, seed=0)
    longest = dict(zip(firsts.tolist(), run.tolist(), strict=True))
    expected = {
        0: 5,
        1: 5,
        2: 4,
        3: 3,
        4: 2,
        6: 3,
        7: 2,
        9: 3,
        10: 2,
    }  # ends, and what runs one step, are left out
    assert longest == expected
    firsts, run = segments(data, longest=5, count=4, seed=0)
    assert len(firsts) == len(set(firsts.tolist())) == 4


def test_a_horizon_needs_segments_that_reach_it():
    held = system(0.1, episodes=40, length=5)
    posterior = linear.fit(jax.random.key(0), linear.Hypers(members=3), held, TASK)
    found = replay(jax.random.key(0), posterior, held, longest=16, count=20)
    assert found is not None
    assert found.horizons.tolist() == [1, 2, 4]
    firsts, run = segments(held, 16, 20, seed=0)
    assert np.sum(run >= 4) >= FEWEST
    assert len(firsts) == 20


# ---- which rows worlds are held against


def test_a_fold_is_held_against_rows_that_it_had_no_part_in():
    data = load("offing:cartpole", 1_000).data
    found, _ = split(data, 0)
    for fold, strange in enumerate(unseen(data, found)):
        rows = found.train[fold, : found.sizes[fold]]
        own = {*data.episode[rows], *data.episode[found.valid[: found.valid_size]]}
        assert not own & set(strange.episode.tolist())
        assert strange.rows == len(found.held) + found.sizes[1 - fold]


# ---- which setting is taken


@pytest.mark.parametrize(
    ("totals", "imbalances", "nll", "index"),
    [
        ([3.0, 2.0, 1.0], [0.1, -0.2, 0.9], [0.0, 1.0, 2.0], 1),  # lowest of the calibrated, not of all
        ([3.0, 2.0, 1.0], [0.1, -0.2, -0.05], [0.0, 1.0, 2.0], 2),
        ([1.0, 9.0, 5.0], [0.9, -0.3, 0.5], [3.0, 2.0, 1.0], 2),  # none is: the likeliest
        ([1.0, 9.0, 5.0], [0.9, 0.4, -0.3], [-4.0, -5.0, -3.0], 1),
        ([np.nan, 9.0], [np.nan, 0.4], [np.nan, -5.0], 1),  # a fit that diverged is nobody's choice
        ([4.0], [1.0], [0.0], 0),
    ],
)
def test_best_is_the_lowest_of_the_calibrated_or_else_the_likeliest(totals, imbalances, nll, index):
    assert best(totals, [abs(i) <= 0.25 for i in imbalances], nll) == index


def test_a_balanced_setting_is_not_taken_at_any_price_in_likelihood():
    totals, nll = [9.0, 2.0, 3.0], [-20.0, -5.0, -19.0]
    assert best(totals, [False, True, True], nll, near=2.0) == 2
    assert best(totals, [False, True, False], nll, near=2.0) == 0  # the only balanced one foretells far worse
    assert best(totals, [False, True, False], nll) == 1
    assert best(totals, [True, True, True], [np.nan, np.nan, -19.0], near=2.0) == 2


@pytest.mark.parametrize("scale", NAMES)
def test_a_named_space_is_distinct_settings_in_few_programs(scale):
    found = space(scale)
    assert len({(*jax.tree.leaves(s), jax.tree.structure(s)) for s in found}) == len(found)
    assert len(found) >= (2 if scale == "large" else 4)
    assert len({jax.tree.structure(s) for s in found}) == (
        1 if scale in ("smoke", "large") else 2
    )  # whatever their number
    assert len({s.folds for s in found}) == 1
    assert all(s.elites <= s.members for s in found)


@pytest.mark.parametrize("width", [1, 7, 63])
def test_equations_are_solved_without_the_library(width):
    rng = np.random.default_rng(width)
    x = rng.normal(size=(200, width)) @ rng.normal(size=(width, width))
    x = x / x.std(0)
    a, b = x.T @ x / 200 + 1e-4 * np.eye(width), rng.normal(size=(width, 3)).astype(np.float32)
    found = np.asarray(jax.jit(_known.solve)(jnp.asarray(a, jnp.float32), b))
    np.testing.assert_allclose(a @ found, b, atol=5e-3)


def test_longer_logs_are_learned_for_longer():
    for scale in ("quick", "standard"):
        short, long = space(scale, 19_999), space(scale, 20_000)
        assert [replace(s, updates=2 * s.updates) for s in short] == long
    assert space("large", 10**6) == space("large")


def test_a_target_that_is_all_but_linear_is_learned_as_well_as_one_that_bends():
    """The net learns in units of what the linear map leaves, so the share that it misses does not depend on it."""
    missed = {}
    for size in (1.0, 0.01):
        rng = np.random.default_rng(0)
        obs = rng.uniform(-2, 2, size=(600, 1)).astype(np.float32)
        bends = np.sin(3 * obs[:, 0])
        step = np.float32(obs[:, 0] + size * bends)
        columns = {"obs": obs, "action": rng.uniform(-1, 1, (600, 1)), "reward": np.zeros(600)}
        log = load(
            columns
            | {"next_obs": obs + step[:, None], "truncated": np.arange(600) % 20 == 19}
            | {"action_low": -1.0, "action_high": 1.0}
        )
        hypers = replace(TINY, width=32, depth=2, updates=600, batch_size=64, lr=1e-2, folds=2)
        parts, _ = split(log.data, 0, 2)
        fitted = jax.jit(lambda key, data, parts, h=hypers: ensemble.fit(key, h, data, parts, False))(
            jax.random.key(0), log.data, parts
        )
        worlds = ensemble.posterior(fitted, hypers, log.data, log.task)
        said = jax.vmap(worlds.predict, (0, None, None))(worlds.theta, obs, log.data.steps.action)
        missed[size] = float(np.mean((np.asarray(said.mean)[..., 0] - step) ** 2)) / np.var(size * bends)
    assert missed[1.0] < 0.05
    assert missed[0.01] < 3 * missed[1.0]


def test_a_space_that_does_not_exist_is_told_which_do():
    with pytest.raises(BadInput, match=", ".join(NAMES)):
        space("huge")


def test_a_shape_learns_at_the_rate_at_which_its_plainest_setting_is_likeliest():
    data, split = bent(rows=400, noise=0.0), parts([range(150), range(150, 300)], range(300, 400), 400)
    base = replace(TINY, updates=200, lr=3e-2, rates=(1e-4, 1.0, 1e-2))
    still = replace(base, depth=3, rates=(1.0,))
    apart = [replace(base, depth=1, lr=lr) for lr in (1e-2, 1e-5)]  # whoever varies rates has chosen them
    settings = [replace(base, prior_scale=1.0, lr=3e-2), base, still, *apart]
    found, done = rated(jax.random.key(2), data, split, settings)
    assert [setting.lr for setting in found] == [3e-2, 3e-2, 3e-2, 1e-2, 1e-5]
    assert not done
    slow = [replace(setting, lr=1e-5, rates=(1.0, 3e3)) for setting in settings[:2]]
    found, done = rated(jax.random.key(2), data, split, slow)
    assert list(done) == [1]  # what was fitted to find out is not fitted again
    again = fit(jax.random.key(2), found[1], data, split, terminates=False)
    np.testing.assert_allclose(done[1].nll, again.nll, rtol=1e-3)
    np.testing.assert_allclose([setting.lr for setting in found], 3e-2)
    assert [setting.prior_scale for setting in found] == [1.0, 0.0]
