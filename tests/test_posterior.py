"""Posteriors against the exact conjugate one; what a fit may depend on; ways to step through the worlds."""

import time
from dataclasses import dataclass, replace
from functools import partial

import imagined as by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offing.data import Split, load, split
from offing.nets import ACTIVATIONS, Layer, dense, hidden, hidden_half, mlp_init, soft_clamp, student_nll
from offing.posterior import _fit, _head, _init, _kinds, _known, _world, walk
from offing.posterior._space import SCALES as NAMES
from offing.posterior.models import ensemble, linear
from offing.posterior.replay import FEWEST, replay, segments
from offing.tune import choose as choosing
from offing.tune import engine
from offing.tune import sweep as sweeping
from offing.tune.choose import Fitter, abreast, best, narrow, unseen
from offing.tune.run import ALONE, Run
from offing.types import BadInput, Box, Dataset, Moments, Posterior, Task, Transition

space = ensemble.model.space
S, A = 3, 2
TASK = Task(horizon=10, discount=0.9, actions=Box((-1.0,) * A, (1.0,) * A))
TINY = ensemble.Hypers(
    width=7, depth=1, activation="silu", batch_size=11, updates=40, folds=2, members=3, elites=3, bootstrap=0.0
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
_fit_jit = jax.jit(ensemble.fit, static_argnames="shape", compiler_options=HASTE)


def ready(data: Dataset):
    """What the ensemble reads off a log; worlds without memory, so that nothing is asked of trees."""
    return ensemble.prepare(data, TASK, history="none")


def fit(key, hypers, data: Dataset, parts: Split):
    prepared = ready(data)
    return _fit_jit(key, hypers, data, parts, prepared.arrays, shape=prepared.shape)


def posterior_of(fitted, hypers, data: Dataset, task=None) -> Posterior:
    return ensemble.posterior(fitted, hypers, ready(data), data, task or TASK)


def asked(posterior: Posterior, obs, action) -> Moments:
    """What every world expects of steps [M, N, ...]."""
    return jax.vmap(lambda theta: posterior.moments(theta, (), jnp.asarray(obs), jnp.asarray(action)))(
        posterior.theta
    )


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
        bootstrap=0.0,
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
    fitted = fit(jax.random.key(0), hypers, data, everything)
    posterior = posterior_of(fitted, hypers, data)
    say = lambda obs: asked(posterior, obs, jnp.zeros((len(obs), 0))).mean
    weight = np.asarray(say(jnp.eye(inputs)) - say(jnp.zeros((1, inputs))), np.float64)  # [M, in, out]
    priors = linear.Hypers(noise=noise, prior_scale=deviation)
    exact = linear.exact(priors, data, jnp.arange(rows), jnp.asarray(rows))
    return weight[..., :-1], np.asarray(exact.mean)[1:, :-1], np.asarray(exact.covariance)[0, 1:, 1:]


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


THREE = settings(
    lr=(1e-3, 3e-3, 1e-2), prior_scale=(0.0, 0.5, 1.0), init_diversity=(1.0, 0.5, 0.0), jitter=(0.0, 0.1, 0.0)
)


def counted():
    """A run for `sweep` that counts how often it is traced."""
    traces = []

    shape = ready(bent()).shape

    def run(hypers, key, data, split, arrays):
        traces.append(type(hypers.lr).__name__)
        return ensemble.fit(key, hypers, data, split, arrays, shape)

    return run, traces


def close(a, b):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-3, atol=2e-4)


def test_swept_equals_alone_and_padding_is_harmless(monkeypatch):
    monkeypatch.setattr(sweeping, "widest", lambda count, bytes_each=0: 2)  # 3 settings: the last chunk is padded
    run, traces = counted()
    args = (jax.random.key(1), bent(), HALVES, ready(bent()).arrays)
    swept = sweeping.sweep("fit", run, THREE, *args)
    assert [len(c.settings) for group in sweeping.chunks(THREE) for c in group] == [2, 1]
    assert sweeping._program(run, 4)._cache_size() == 1
    alone = [fit(args[0], hypers, *args[1:3]) for hypers in THREE]
    for one, other in zip(swept, alone, strict=True):
        close(one, other)
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
        return {"lr": hypers.lr * x, "of": jnp.full(hypers.width, hypers.init_diversity)}

    mixed = [THREE[0], replace(THREE[0], width=5), THREE[1], replace(THREE[2], width=5), THREE[2]]
    found = sweeping.sweep("fit", run, mixed, np.float32(2), run=Run(progress=lambda *a: told.append(a)))
    assert sweeping._program(run, 1)._cache_size() == 2
    assert sorted(width for width, _ in traces) == [5, 7]  # and none to know what it gives
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
    assert len(traces) == 1
    assert sorted(cache.kept) == ["fit-0-1", "fit-1-1", "fit-2-1"]


# ---- what a fit may depend on


@pytest.fixture(scope="module")
def plain():
    hypers = replace(TINY, bootstrap=0.5, jitter=0.1, prior_scale=0.5)
    return hypers, fit(jax.random.key(3), hypers, bent(), HALVES)


def changed(data: Dataset, rows) -> Dataset:
    steps = jax.tree.map(np.copy, data.steps)
    for leaf in (steps.obs, steps.next_obs, steps.reward):
        leaf[rows] += 3.0 * (1 + np.arange(len(rows))).reshape(-1, *[1] * (leaf.ndim - 1))
    return data._replace(steps=steps)


def test_rates_are_drawn_one_from_each_part_of_their_span():
    found = np.stack([_fit.paces(jax.random.key(i), jnp.asarray(9.0), 6) for i in range(4)])
    place = (np.log(found) / np.log(9.0) + 1) * 3  # from 0 to 6
    np.testing.assert_array_equal(np.floor(place), np.broadcast_to(np.arange(6), (4, 6)))
    assert len(np.unique(found)) == 24  # other ones for every key, and so in every fold
    np.testing.assert_array_equal(_fit.paces(jax.random.key(0), jnp.asarray(1.0), 6), np.ones(6))


def test_members_of_a_span_learn_at_rates_of_their_own():
    """Members that start alike and see the same rows differ by their rates, and by nothing else."""
    alike = replace(TINY, init_diversity=0.0, shared=1.0, lr=1e-2, members=6, elites=6)
    trained = lambda hypers: np.asarray(
        fit(jax.random.key(3), hypers, bent(), HALVES).theta.state.net[0].weight
    ).reshape(2, 6, -1)
    one, own = trained(alike), trained(replace(alike, span=9.0))
    np.testing.assert_allclose(one, np.broadcast_to(one[:, :1], one.shape), atol=1e-6)
    apart = np.linalg.norm(own[:, :, None] - own[:, None], axis=-1)  # [F, M, M]
    assert apart[:, *np.triu_indices(6, 1)].min() > 1e-4  # no two of a fold alike


def test_size_is_traced(plain):
    hypers, large = plain
    compiled = _fit_jit._cache_size()
    less = HALVES._replace(sizes=np.array([12, 9], np.int32), valid_size=np.asarray(6, np.int32))
    small = fit(jax.random.key(3), hypers, bent()._replace(size=np.asarray(50, np.int32)), less)
    assert _fit_jit._cache_size() == compiled  # the same program
    assert not np.allclose(large.nll, small.nll)
    assert not np.allclose(large.theta.scale.in_mean, small.theta.scale.in_mean)


def test_rows_out_of_use_do_not_matter(plain):
    hypers, before = plain
    after = fit(jax.random.key(3), hypers, changed(bent(), [58, 59]), HALVES)  # 59 is the padding
    assert same(before, after)


def test_a_fold_does_not_see_the_rows_of_another(plain):
    hypers, before = plain
    after = fit(jax.random.key(3), hypers, changed(bent(), list(range(20, 45))), HALVES)
    assert same(worlds(before.theta, 0), worlds(after.theta, 0))
    assert not same(worlds(before.theta, 1).state.net, worlds(after.theta, 1).state.net)
    assert np.array_equal(before.nll[0], after.nll[0])


def test_validation_rows_do_not_train():
    move = lambda d: fit(jax.random.key(4), TINY, d, HALVES)
    before, after = move(bent()), move(changed(bent(), list(range(45, 58))))
    assert same(before.theta.scale, after.theta.scale)
    assert same(before.theta.state.linear, after.theta.state.linear)
    assert same(before.theta.reward.linear, after.theta.reward.linear)
    assert not np.array_equal(before.nll, after.nll)


def test_the_posterior_knows_the_range_of_the_rows_in_use(plain):
    hypers, fitted = plain
    data = changed(bent(), [58, 59])._replace(size=np.asarray(58, np.int32))
    posterior = posterior_of(fitted, hypers, data)
    used = bent().steps
    seen = np.concatenate([used.obs[:58], used.next_obs[:58]])
    np.testing.assert_allclose(posterior.low, np.r_[seen.min(0), used.reward[:58].min()])
    np.testing.assert_allclose(posterior.high, np.r_[seen.max(0), used.reward[:58].max()])
    assert posterior.theta.state.prior  # heard
    quiet = jax.tree.map(jnp.zeros_like, fitted.theta.state.prior_scale)
    silent = fitted.theta._replace(state=fitted.theta.state._replace(prior_scale=quiet))
    silent = posterior_of(fitted._replace(theta=silent), hypers, data)
    assert silent.theta.state.prior == silent.theta.reward.prior == ()


def test_the_linear_yardstick_sees_only_rows_in_use():
    hypers, data = linear.Hypers(noise=0.3, prior_scale=2.0), bent()
    some = data._replace(size=np.asarray(40, np.int32))
    exact = jax.jit(lambda data: linear.exact(hypers, data, jnp.arange(60), data.size))
    found, spoilt = exact(some), exact(changed(some, list(range(40, 60))))
    assert same(found, spoilt)
    phi = np.c_[np.ones(40), data.steps.obs[:40], data.steps.action[:40]].astype(np.float64)
    y = np.c_[(data.steps.next_obs - data.steps.obs)[:40], data.steps.reward[:40]]
    covariance = np.linalg.inv(phi.T @ phi / 0.09 + np.eye(6) / 4)
    np.testing.assert_allclose(found.covariance, np.stack([covariance] * 4), rtol=1e-3, atol=1e-7)
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
    weight, amount = jax.random.exponential(k4, (13,)), (jax.random.uniform(k2, (13, 3)) < 0.8).astype(jnp.float32)
    b = _head.Batch(jnp.zeros((13, 1)), y, weight, amount, none, none, sides)
    stop = jax.lax.stop_gradient

    def formula(last, low, high, features):
        mean = dense(last, features)[:, :3]
        raw = dense(last, stop(features))[:, 3:]
        logvar = jnp.maximum(soft_clamp(raw, low, high), floor)
        off = (y - mean) * amount
        if walled:
            free = ((sides > 0) & (mean > y)) | ((sides < 0) & (mean < y))  # beyond a wall at no cost
            assert float(jnp.mean(stop(free))) > 0
            off = jnp.where(free, 0.0, off)
        squared = jnp.square(off)
        each = squared * stop(jnp.exp((beta - 1) * logvar)) + amount * logvar + stop(squared) * jnp.exp(-logvar)
        return 3 * jnp.mean(b.weight * each.sum(-1))

    ours = lambda last, low, high, features: 3 * _head.head_loss(last, low, high, features, b, beta, floor)
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
    fitted = fit(jax.random.key(9), hypers, data, split)
    return hypers, data, split, fitted, posterior_of(fitted, hypers, data)


def scores(posterior, data, rows, scale):
    """Held-out nats a row of every world, from what it predicts."""
    steps = jax.tree.map(lambda a: a[rows], data.steps)
    y = np.c_[steps.next_obs - steps.obs, steps.reward]
    ask = lambda theta: posterior.moments(theta, (), steps.obs, steps.action, steps.next_obs, steps.done)
    said = jax.vmap(ask)(posterior.theta)
    each = student_nll(said.mean, 2 * jnp.log(said.std), y).sum(-1).mean(-1)
    return np.asarray(each - jnp.log(scale.out_std).sum(-1))


def test_the_best_state_is_kept(overfitted, monkeypatch):
    hypers, data, split, fitted, posterior = overfitted
    again = scores(posterior, data, split.valid, posterior.theta.scale).reshape(2, 3)
    lowest = np.sort(fitted.nll, 1)[:, :3]
    np.testing.assert_allclose(again, lowest, rtol=1e-3)  # what is returned scores as reported, best first
    monkeypatch.setattr(_fit, "ROUNDS", 1)  # so that only the last state is looked at
    prepared = ready(data)
    end = jax.jit(lambda *args: ensemble.fit(*args, prepared.shape), compiler_options=HASTE)
    last = end(jax.random.key(9), hypers, data, split, prepared.arrays)
    assert fitted.nll.mean() < last.nll.mean() - 0.1  # it did get worse


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
    said = asked(posterior, obs, action)
    relative = np.asarray(said.std / posterior.theta.scale.out_std[:, None])
    assert relative.min() >= hypers.floor * (1 - 1e-5)
    assert relative.min() < hypers.floor * 1.5  # and it is reached
    assert not said.terminated.any()


def test_members_see_different_minibatches():
    hypers = replace(TINY, init_diversity=0.0)
    fitted = fit(jax.random.key(10), hypers, bent(), HALVES)
    weight = np.asarray(fitted.theta.state.net[0].weight)  # [F * M, ...]
    assert not np.allclose(weight[0], weight[1], atol=1e-5)
    assert not np.allclose(weight[1], weight[2], atol=1e-5)


@pytest.mark.parametrize("own", [0.0, 0.3, 1.0])
def test_own_is_the_share_of_first_weights_that_members_do_not_have_in_common(own):
    hypers = replace(TINY, init_diversity=own, width=200)
    scale = _known.Scale(jnp.zeros(S + A), jnp.ones(S + A), jnp.zeros(S + 1), jnp.ones(S + 1))
    kinds, _, _ = _kinds.kinds_of(bent())
    line = lambda width, out: _known.Known(Layer(jnp.zeros((out, width)), jnp.zeros(out)), jnp.full(out, 0.04))
    known = (line(S + A, S), line(2 * S + A + 1, 1))
    values = ready(bent()).arrays
    make = lambda seed: _init.init(jax.random.key(seed), jax.random.key(99), hypers, kinds, scale, known, values)
    one, two = make(0), make(1)
    a, b = (np.asarray(t.state.net[0].weight).ravel() for t in (one, two))
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(1 - own**2, abs=0.1)
    assert a.var() * (S + A) == pytest.approx(1, abs=0.15)  # at every share the same size
    assert not np.array_equal(one.state.prior[0].weight, two.state.prior[0].weight)
    x = jax.random.normal(jax.random.key(11), (4, S + A))
    said = _world.heads(one.state._replace(prior=()), kinds.of_state(), x, "silu", jnp.zeros(S), jnp.ones(S))
    assert not said.mean.any()  # says nothing yet
    np.testing.assert_allclose(said.std, 0.2, rtol=0.05)  # and expects what the linear map left over


def test_the_linear_map_is_least_squares():
    data = bent(rows=200)
    x = jnp.concatenate([data.steps.obs, data.steps.action], -1)
    y = jnp.concatenate([data.steps.next_obs - data.steps.obs, data.steps.reward[:, None]], -1)
    fold = _known.Fold(jnp.arange(200)[::-1], jnp.asarray(150))
    mean, width = _known.moments(x, fold)
    out, unit = _known.moments(y, fold)
    inside, target, every = (x - mean) / width, (y - out) / unit, jnp.ones_like(y)
    known = _known.least_squares(inside, target, every, fold, 1.0, True)
    used = slice(50, 200)
    a, b = (np.asarray((v[used] - v[used].mean(0)) / v[used].std(0), np.float64) for v in (x, y))
    weight, residual = np.linalg.lstsq(a, b, rcond=None)[:2]
    np.testing.assert_allclose(known.linear.weight, weight.T, atol=1e-3)
    np.testing.assert_allclose(known.left, residual / 150, rtol=1e-2)
    half = _known.least_squares(inside, target, every, fold, 0.5, True)
    np.testing.assert_allclose(half.linear.weight, known.linear.weight / 2, rtol=1e-5)
    assert (half.left >= known.left).all()
    apart = _known.least_squares(inside, target, every, fold, 1.0, False)  # output by output, the same
    np.testing.assert_allclose(apart.linear.weight, known.linear.weight, atol=1e-4)
    some = every.at[:, 0].set((jnp.arange(200) % 2).astype(jnp.float32))  # rows that do not count for one output
    part = _known.least_squares(inside, target, some, fold, 1.0, False)
    odd = np.arange(50, 200) % 2 == 1
    np.testing.assert_allclose(part.linear.weight[0], np.linalg.lstsq(a[odd], b[odd, 0], rcond=None)[0], atol=2e-3)


def test_a_constant_column_keeps_its_units():
    x = jnp.stack([jnp.full(9, 1e4), jnp.arange(9.0)], 1)
    _, std = _known.moments(x, _known.Fold(jnp.arange(9), jnp.asarray(9)))
    assert std[0] == 1
    assert std[1] == pytest.approx(np.arange(9).std(), rel=1e-5)


# ---- termination


def test_the_termination_head_learns_an_easy_rule():
    rng = np.random.default_rng(12)
    obs, action = rng.uniform(-2, 2, size=(400, S)), rng.uniform(-1, 1, size=(400, A))
    after = obs + 0.5 * action[:, :1]
    data = log_of(obs, action, after, obs[:, 1], done=after[:, 0] > 1)
    hypers = replace(TINY, folds=1, members=2, elites=2, batch_size=64, updates=600, lr=1e-2)
    split = parts([range(300)], range(300, 400), 400)
    fitted = fit(jax.random.key(12), hypers, data, split)
    posterior = posterior_of(fitted, hypers, data)
    probe = rng.uniform(-2, 2, size=(500, S)).astype(np.float32)
    push = rng.uniform(-1, 1, size=(500, A)).astype(np.float32)
    said = asked(posterior, probe, push)
    margin, ends = probe[:, 0] + 0.5 * push[:, 0] - 1, np.asarray(said.terminated)
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
        return Moments(mean, jnp.full_like(mean, self.std), jnp.full(obs.shape[:-1], self.done))


def drifting(members=5, folds=1, noise=1.0, task=TASK, **kind) -> Posterior:
    starts = np.arange(7 * S, dtype=np.float32).reshape(7, S) / 100
    low, high = np.r_[np.full(S, -1.0), 0.0], np.r_[np.full(S, 1.0), 2.5]
    theta = jnp.arange(1.0, members + 1) / 10
    return by_hand.worlds(Drift(**kind), theta, starts, low, high, task, folds=folds, noise=noise)


def test_fold_takes_its_own_worlds():
    posterior = drifting(members=6, folds=3)
    np.testing.assert_allclose(posterior.fold(1).theta, [0.3, 0.4], rtol=1e-6)
    assert (posterior.fold(2).members, posterior.fold(2).folds) == (2, 1)
    for index in (-1, 3):
        with pytest.raises(IndexError):
            posterior.fold(index)


def test_begin_draws_logged_starts_independently():
    posterior = drifting()
    place = walk.begin(jax.random.key(0), posterior, 200)
    obs = np.asarray(place.obs)
    assert place.memory == ()
    assert obs.shape == (5, 200, S)
    which = (obs[..., 0] * 100 / S).round().astype(int)
    np.testing.assert_allclose(obs, np.asarray(posterior.starts)[which], atol=1e-6)
    assert (np.bincount(which.ravel(), minlength=7) > 1000 / 7 * 0.7).all()
    assert 0 < (which[0] == which[1]).mean() < 0.4  # worlds do not share their starts


def test_fixed_keeps_to_one_world_and_redrawn_does_not():
    posterior, copies = drifting(done=0.0), 40
    place, action = walk.begin(jax.random.key(1), posterior, copies), jnp.zeros((5, copies, A))
    moved, obs = {}, place.obs
    for name in ("fixed", "redrawn"):
        _, drawn = jax.jit(getattr(walk, name)(posterior))(jax.random.key(2), place, action)
        after, reward, done = drawn.next_obs, drawn.reward, drawn.terminated
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


def test_ends_are_kept_from_their_own_best_round():
    """Ends are a coin's here: their net is at its best before it knows them by heart, and the others are not."""
    data, split = bent(rows=400, noise=0.0), parts([range(150), range(150, 300)], range(300, 400), 400)
    done = (np.random.default_rng(5).uniform(size=400) < 0.3).astype(np.float32)
    coined = data._replace(steps=data.steps._replace(done=done))
    hypers = replace(TINY, updates=400, lr=1e-2)
    alone, both = (fit(jax.random.key(9), hypers, d, split) for d in (data, coined))
    coin = -0.3 * np.log(0.3) - 0.7 * np.log(0.7)
    assert float((both.nll - alone.nll).mean()) < coin + 0.3  # nats that a coin costs, and hardly more


def test_a_row_that_nobody_foretells_does_not_stop_a_fit():
    hypers = replace(TINY, updates=600, floor=0.01, lr=1e-2, width=32, depth=2, batch_size=64)
    data, split = bent(rows=400, noise=0.0), parts([range(150), range(150, 300)], range(300, 400), 400)
    jolt = np.array(data.steps.next_obs)
    jolt[350] += 50.0
    jolted = data._replace(steps=data.steps._replace(next_obs=jolt))
    plain, same = (fit(jax.random.key(9), hypers, d, split) for d in (data, jolted))
    error = lambda fitted: np.mean(
        np.square(
            asked(posterior_of(fitted, hypers, data), data.steps.obs[300:], data.steps.action[300:]).mean[..., :S]
            - (data.steps.next_obs - data.steps.obs)[300:]
        )
    )
    short = fit(jax.random.key(9), replace(hypers, updates=20), data, split)
    assert error(plain) < 0.5 * error(short)  # there is something to learn in later rounds
    assert error(same) < 1.2 * error(plain)


def test_roll_runs_on_and_says_who_is_still_alive():
    posterior, copies, steps = drifting(done=0.2), 11, 13
    seen = []

    def act(key, obs, t):
        seen.append((obs.shape, t.shape))
        return jnp.zeros((*obs.shape[:-1], A)) + t

    place = walk.begin(jax.random.key(7), posterior, copies)
    obs = place.obs
    out = jax.jit(lambda key: walk.roll(key, walk.fixed(posterior), place, act, steps))(jax.random.key(8))
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
    """What replay finds where worlds expect noise of 0.3, and the log has none, or has that."""
    hypers, found = linear.Hypers(noise=0.3, members=6), {}
    for noise in (0.0, 0.3):
        posterior = by_hand.fitted(linear.model, jax.random.key(14), hypers, system(noise, seed=15), TASK)
        found[noise] = replay(jax.random.key(16), posterior, system(noise, episodes=16), longest=16, count=48)
    return found


def test_replay_reports_error_and_spread_by_horizon(replayed):
    for found in replayed.values():
        np.testing.assert_array_equal(found.horizons, [1, 2, 4, 8, 16])
        assert found.error.shape == found.spread.shape == found.score.shape == (1, 5)
        assert (np.diff(found.spread[0]) > 0).all()  # the further, the less is known
    ratio = replayed[0.3].spread[-1] / replayed[0.3].error[-1]
    assert (np.abs(np.log(ratio)) < np.log(1.5)).all(), ratio  # a right posterior spreads as it errs
    assert (replayed[0.0].spread > 1.5 * replayed[0.0].error).all()  # where there is no noise
    assert replayed[0.3].left.max() < 0.05


def test_a_bag_of_transitions_cannot_be_replayed():
    held = system(0.1, episodes=4, length=10)
    posterior = by_hand.fitted(linear.model, jax.random.key(0), linear.Hypers(noise=0.1, members=3), held, TASK)
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
    posterior = by_hand.fitted(linear.model, jax.random.key(0), linear.Hypers(noise=0.1, members=3), held, TASK)
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
    assert len(found) >= (2 if scale in ("smoke", "large") else 4)
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
    updates = [space("large", rows)[0].updates for rows in (300, 20_000, 60_000, 10**6)]
    assert updates == sorted(set(updates))  # and on a GPU too, where a short log is no reason to train for long


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
        fitted = fit(jax.random.key(0), hypers, log.data, parts)
        worlds = posterior_of(fitted, hypers, log.data, log.task)
        said = asked(worlds, obs, log.data.steps.action)
        missed[size] = float(np.mean((np.asarray(said.mean)[..., 0] - step) ** 2)) / np.var(size * bends)
    assert missed[1.0] < 0.05
    assert missed[0.01] < 3 * missed[1.0]


def test_fits_and_refits_are_one_program_where_settings_run_abreast(monkeypatch):
    monkeypatch.setattr("offing.tune.engine.memory", lambda: 1 << 30)  # as on a GPU
    data, split = bent(rows=60, noise=0.1), parts([range(20), range(20, 40)], range(40, 60), 60)
    base = replace(TINY, updates=20, width=7, members=4, elites=4)
    settings = [base, replace(base, prior_scale=1.0)]
    prepared = ready(data)
    fitter = Fitter(jax.random.key(2), data, ensemble.model, prepared, None, abreast(ensemble.model, settings))
    first = fitter("fit", split, settings, ALONE)
    program = engine.program(choosing.program(ensemble.model, prepared.shape), 4)
    made = program._cache_size()
    larger = replace(base, members=6, elites=6)  # three parts, by programs of two
    again = fitter("refit", split, [larger], ALONE)[0]
    assert program._cache_size() == made
    assert again.theta.state.floor.shape[0] == 2 * 6
    assert same(first[0].theta, fitter("fit", split, [base], ALONE)[0].theta)


def test_a_space_that_does_not_exist_is_told_which_do():
    with pytest.raises(BadInput, match=", ".join(NAMES)):
        space("huge")


def test_a_shape_learns_at_the_rate_at_which_its_plainest_setting_is_likeliest():
    data, split = bent(rows=400, noise=0.0), parts([range(150), range(150, 300)], range(300, 400), 400)
    fitter = Fitter(jax.random.key(2), data, ensemble.model, ready(data))
    base = replace(TINY, updates=200, lr=3e-2, rates=(1e-4, 1.0, 1e-2))
    still = replace(base, depth=3, rates=(1.0,))
    apart = [replace(base, depth=1, lr=lr) for lr in (1e-2, 1e-5)]  # whoever varies rates has chosen them
    settings = [replace(base, prior_scale=1.0, lr=3e-2), base, still, *apart]
    tuned = narrow(fitter, split, settings)
    assert [setting.lr for setting in tuned] == [3e-2, 3e-2, 3e-2, 1e-2, 1e-5]
    slow = [replace(setting, lr=1e-5, rates=(1.0, 3e3)) for setting in settings[:2]]
    tuned = narrow(fitter, split, slow)
    np.testing.assert_allclose([setting.lr for setting in tuned], 3e-2)
    assert [setting.prior_scale for setting in tuned] == [1.0, 0.0]
    assert {setting.members for setting in tuned} == {base.members}  # a few members say it for all


def test_the_less_likely_half_of_the_shapes_is_dropped():
    data, split = bent(rows=400, noise=0.0), parts([range(150), range(150, 300)], range(300, 400), 400)
    fitter = Fitter(jax.random.key(2), data, ensemble.model, ready(data))
    able = replace(TINY, updates=200, lr=3e-2, rates=(1.0, 0.5))
    stuck = replace(able, depth=able.depth + 1, lr=1e-7)
    tuned = narrow(fitter, split, [stuck, able, replace(stuck, prior_scale=1.0), replace(able, prior_scale=1.0)])
    assert [(setting.depth, setting.prior_scale) for setting in tuned] == [(able.depth, 0.0), (able.depth, 1.0)]


def test_members_that_are_fitted_in_pairs_are_an_ensemble_like_any_other():
    data, split = bent(rows=400, noise=0.1), parts([range(150), range(150, 300)], range(300, 400), 400)
    fitter = Fitter(jax.random.key(2), data, ensemble.model, ready(data))
    setting = replace(TINY, updates=100, members=5, elites=4, span=3.0)
    pairs = ensemble.model.parts(setting)
    assert len(pairs) == 3
    assert {(pair.members, pair.elites) for pair in pairs} == {(2, 2)}
    ends = [(pair.lr / pair.span, pair.lr * pair.span) for pair in pairs]  # what members' own rates lie between
    np.testing.assert_allclose([ends[0][0], ends[-1][1]], [setting.lr / 3, setting.lr * 3])
    np.testing.assert_allclose([low for low, _ in ends[1:]], [high for _, high in ends[:-1]])
    fitted = fitter("fit", split, [setting], ALONE)[0]
    assert fitted.nll.shape == (2, 6)
    assert fitted.theta.state.floor.shape[0] == 2 * 4
    first = np.asarray(fitted.theta.state.net[0].weight).reshape(2, 4, -1)
    apart = np.linalg.norm(first[:, :, None] - first[:, None], axis=-1)
    assert apart[:, *np.triu_indices(4, 1)].min() > 1e-3  # no two of a fold alike
    assert (np.sort(fitted.nll, 1)[:, 4] < fitted.nll.max(1)).all()  # the least likely was not kept
    whole = fit(jax.random.key(2), setting, data, split)
    joined = ensemble.model.join(setting, [jax.tree.map(np.asarray, whole)])
    assert same(joined.theta, whole.theta)  # one that was fitted whole stays what it is
