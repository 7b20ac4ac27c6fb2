"""What every planner of the folder keeps to, beyond what `test_planner` asks: spaces of any size, both kinds of
action, settings that do not touch each other, rows out of use, policies that outlive the program.
"""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from test_planner import HASTE, SOME, S, close, shapes, tiny, worlds_of
from test_planner import log_of as noise_of

from offing import planner as planners
from offing.hypers import asdict, groups, names, stack
from offing.planner import _parts, space
from offing.report.results import RESULT, load_policy
from offing.report.store import keep, write_json
from offing.types import BadInput, Box, Dataset, Discrete, Seen, Task

ODD = {
    "narrow": Box((-0.1, 7.3, 1e-3), (0.3, 7.7, 3e-3)),  # none of which is a round number in binary
    "lone": Box((-2.0,), (2.0,)),
    "five": Discrete(5),
}
MORE = {"steps": 4, "every": 2, "retain": 2, "critics": 3, "draws": 2}  # of these a planner takes what it has
COMPILED = {(name, kind) for name, kind, _ in SOME}
OTHERS = [(name, k) for name in planners.names() for k in ("box", "discrete") if (name, k) not in COMPILED]
OF_ROWS = [name for name in planners.names() if not planners.get(name).remembers]
KINDS = {"box": Box((-3.0, 0.25), (5.0, 0.5)), "discrete": Discrete(2)}


def actions_of(actions):
    """A space of actions as `result.json` has it."""
    return {"choices": actions.n} if hasattr(actions, "n") else actions._asdict()


def small(name: str):
    """The planner's settings with every size small."""
    has = names(planners.get(name).Hypers)
    return replace(tiny(name), **{k: v for k, v in MORE.items() if k in has and (k != "steps" or "every" in has)})


def log_of(actions, **rest) -> Dataset:
    """A log of noise whose choices are choices."""
    data = noise_of(actions)
    if isinstance(actions, Discrete):
        pick = lambda rows: np.eye(actions.n, dtype=np.float32)[rows.argmax(-1)]
        steps = data.steps
        data = data._replace(steps=steps._replace(action=pick(steps.action), next_action=pick(steps.next_action)))
    return data._replace(**rest)


def wild_policy(name: str, hypers, task: Task):
    """A policy of the planner's shape, with parameters drawn at random."""
    blank = planners.get(name).blank(hypers, S, task)
    leaves, tree = jax.tree.flatten(blank.params)
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=leaf.shape).astype(leaf.dtype) for leaf in leaves]
    return replace(blank, params=jax.tree.unflatten(tree, drawn))


def acted(policy, task: Task, how, rows: int = 101):
    rng = np.random.default_rng(1)
    seen = Seen(
        rng.normal(0, 5, (rows, S)).astype(np.float32),
        np.zeros((rows, task.actions.width), np.float32),
        np.zeros(rows, np.float32),
        np.zeros(rows, np.float32),
    )
    act = jax.jit(lambda params, key: policy.act(params, policy.begin(rows), seen, key)[0], compiler_options=HASTE)
    return np.asarray(act(policy.params, how))


@pytest.mark.parametrize("kind", ["lone", "five"])
@pytest.mark.parametrize("name", planners.names())
def test_any_number_of_choices_and_amounts(name, kind):
    planner, actions = planners.get(name), ODD[kind]
    posterior, data, hypers, key = worlds_of(actions), log_of(actions), small(name), jax.random.key(0)
    state = jax.eval_shape(planner.init, key, hypers, data, posterior)
    after, metrics = jax.eval_shape(planner.update, key, hypers, state, data, posterior)
    assert shapes(after) == shapes(state)
    assert {leaf.shape for leaf in metrics.values()} == {()}
    found = jax.eval_shape(lambda state: planner.policy(hypers, state, posterior.task), state)
    assert shapes(found) == shapes(planner.blank(hypers, S, posterior.task))


ALTERNATING = [(name, ("narrow", "five")[i % 2]) for i, name in enumerate(planners.names())]


@pytest.mark.parametrize(("name", "kind"), ALTERNATING)
def test_a_saved_policy_does_the_same_and_stays_in_range(name, kind, tmp_path):
    hypers, task = small(name), Task(17, 0.9, ODD[kind])
    policy = wild_policy(name, hypers, task)
    arrays = keep(tmp_path, "policy", {f"a{i}": leaf for i, leaf in enumerate(jax.tree.leaves(policy.params))})
    told = {
        "planner": name,
        "settings": [asdict(hypers)],
        "chosen": 0,
        "width": S,
        "arrays": arrays,
        "task": {"horizon": 17, "discount": 0.9, "actions": actions_of(task.actions)},
    }
    write_json(tmp_path / RESULT, {"policy": told})
    loaded, again = load_policy(tmp_path)
    assert again == task
    assert jax.tree.structure(loaded) == jax.tree.structure(policy)  # so that programs are shared
    before = acted(policy, task, jax.random.key(2))
    np.testing.assert_array_equal(before, acted(loaded, task, jax.random.key(2)))
    if isinstance(task.actions, Box):
        assert (before >= np.float32(task.actions.low)).all()
        assert (before <= np.float32(task.actions.high)).all()
        assert np.ptp(before, 0).min() > 0
    else:
        assert len(set(before.argmax(-1))) > 1
        np.testing.assert_array_equal(np.sort(before, -1), np.eye(5)[[4] * 101])


# ---- the kind of action that `test_planner` does not compile


@pytest.fixture(scope="module", params=OTHERS, ids="-".join)
def swept(request):
    """Three settings in one program, and again in another order, with other rows out of use."""
    name, kind = request.param
    planner, actions = planners.get(name), KINDS[kind]
    data, posterior, hypers = log_of(actions), worlds_of(actions), small(name)
    traces = []

    def run(hypers, data):
        traces.append(1)
        k1, k2 = jax.random.split(jax.random.key(4))
        state = planner.init(k1, hypers, data, posterior)
        one = lambda state, key: planner.update(key, hypers, state, data, posterior)
        state, metrics = jax.lax.scan(one, state, jax.random.split(k2, 2))
        return planner.policy(hypers, state, posterior.task).params, metrics

    program = jax.jit(jax.vmap(run, (0, None)), compiler_options=HASTE)
    settings = [replace(hypers, lr=lr) for lr in (1e-2, 3e-3, 1e-4)]
    junk = jax.tree.map(
        lambda leaf: np.where(
            np.arange(len(leaf)).reshape(-1, *[1] * (leaf.ndim - 1)) < data.size, leaf, 1e6
        ).astype(leaf.dtype),
        data.steps,
    )
    return SimpleNamespace(
        first=program(stack(settings), data),
        turned=program(stack([settings[i] for i in (2, 0, 1)]), data),
        unused=program(stack(settings), data._replace(steps=junk)),
        traces=traces,
    )


def test_settings_do_not_touch_each_other_and_share_a_program(swept):
    for place, i in enumerate((2, 0, 1)):
        close(
            jax.tree.map(lambda leaf, place=place: leaf[place], swept.turned),
            jax.tree.map(lambda leaf, i=i: leaf[i], swept.first),
        )
    assert len(swept.traces) == 1
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(swept.first))
    params = jax.tree.leaves(swept.first[0])
    assert any(np.abs(leaf[0] - leaf[2]).max() > 1e-3 for leaf in params if leaf.size)  # and they do differ


def test_rows_out_of_use_do_not_matter(swept):
    close(swept.unused, swept.first)
    assert jax.tree.leaves(swept.unused)  # there was something to compare


# ---- parts


def test_minibatches_are_even_over_the_rows_in_use():
    data = noise_of(KINDS["box"])
    rows = np.asarray(jax.jit(lambda key: _parts.drawn(key, data, (190, 101)))(jax.random.key(0)))
    counts = np.bincount(rows.ravel(), minlength=23)
    np.testing.assert_array_equal(counts[19:], 0)  # 19 of 23 rows are in use
    np.testing.assert_allclose(counts[:19], 1010, rtol=0.13)


@pytest.mark.parametrize("actions", [ODD["narrow"], ODD["five"]], ids=str)
def test_rows_are_read_in_units_of_the_log(actions):
    data = log_of(actions)
    scale = _parts.scale_of(data)
    back = lambda: (
        _parts.inner(data.steps, scale, actions),
        _parts.place(_parts.unplace(data.steps.action, actions), actions),
    )
    b, placed = jax.tree.map(np.asarray, jax.jit(back)())
    np.testing.assert_allclose(b.obs[:19].mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(b.obs[:19].std(0), 1, rtol=1e-4)
    np.testing.assert_allclose(np.sqrt(np.mean(b.reward[:19] ** 2)), 1, rtol=1e-5)
    low, high = (actions.low, actions.high) if isinstance(actions, Box) else (0, 1)
    np.testing.assert_allclose(
        placed, np.clip(data.steps.action, np.float32(low), np.float32(high)), rtol=1e-5, atol=1e-6
    )


def test_slow_weights_follow():
    slow = _parts.follow({"a": np.zeros(2)}, {"a": np.ones(2)}, 0.25)
    np.testing.assert_allclose(slow["a"], 0.25)


# ---- named spaces


@pytest.mark.parametrize("name", OF_ROWS)
def test_spaces_are_distinct_settings_of_one_program(name):
    for scale in planners.get(name).spaces:
        found = space(name, scale)
        assert len(set(found)) == len(found) >= 2
        assert {type(setting) for setting in found} == {planners.get(name).Hypers}
        assert len(groups(found)) == 1
    assert len(space(name, "smoke")) == 2
    assert 4 <= len(space(name, "default")) <= 12


@pytest.mark.parametrize("name", planners.names())
def test_a_planner_says_what_it_is(name):
    planner = planners.get(name)
    assert planner.words
    assert planner.words[-1] not in ".!"
    assert {"smoke", "quick", "standard", "large", "paper"} <= set(planner.spaces)
    assert set(planner.candidate) <= set(planner.spaces)
    assert set(planner.actions) <= {Box, Discrete}


def test_the_papers_grids_are_the_papers():
    assert len(space("iql", "paper")) == 9
    assert len(space("rebrac", "paper")) == 56
    assert {s.updates for s in space("iql", "paper") + space("rebrac", "paper")} == {1_000_000}
    assert {(s.beta, s.expectile) for s in space("iql", "paper")} >= {(0.5, 0.5), (10.0, 0.9)}
    assert {s.batch_size for s in space("rebrac", "paper")} == {1024}


@pytest.mark.parametrize("name", [name for name in planners.names() if planners.get(name).paced])
def test_a_short_log_is_trained_on_for_no_longer_than_it_is_worth(name):
    length = lambda scale, rows: [getattr(s, "steps", s.updates) for s in space(name, scale, rows=rows)]
    short, longer, longest = (length("large", rows) for rows in (1_000, 300_000, 10**8))
    assert longest == length("large", None)
    assert all(a < b <= c for a, b, c in zip(short, longer, longest, strict=True))
    assert short == length("large", 2)  # a few rows take some updates too
    for scale in ("smoke", "quick", "standard"):  # which never trained for long
        assert length(scale, 2) == length(scale, None)


def test_rows_are_visited_as_often_whatever_the_minibatch():
    planner = planners.get("rebrac")
    setting = planner.Hypers(batch_size=1024, updates=10**9)
    visits = lambda s, rows: planner.paced(s, rows).updates * s.batch_size / rows
    assert visits(setting, 100_000) == pytest.approx(visits(replace(setting, batch_size=256), 100_000), rel=1e-3)


def test_a_space_takes_what_is_fixed_and_says_what_there_is():
    assert {s.updates for s in space("iql", "default", updates=7)} == {7}
    assert len(space("iql", "default", beta=3.0)) == 2  # what is then alike is there once
    with pytest.raises(BadInput, match="there are bc"):
        space("nobody")
    with pytest.raises(BadInput, match="smoke, quick, standard, large, paper"):
        space("iql", "huge")
    with pytest.raises(BadInput, match="gamma"):
        space("iql", "smoke", gamma=0.9)
