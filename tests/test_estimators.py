"""Estimators as parts: each says all about itself, and another package adds its own by an entry point."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import offing
from offing.types import BadInput, Policy
from offing.value import estimators
from offing.value.estimate import Estimate, ValueEstimate
from offing.value.estimator import SCALES

OWN = ("dr", "dualdice", "fqe", "is")


def lean(params, memory, seen, key):
    return jax.nn.one_hot((seen.obs @ params > 0).astype(int), 2), memory


@pytest.fixture(scope="module")
def log():
    log = offing.load("offing:cartpole", 200)
    return log._replace(task=log.task._replace(horizon=20))


def contract(name, log):
    """What holds of every estimator, whoever wrote it."""
    part = estimators.get(name)
    assert part.name == name
    assert part.words
    assert set(part.presets) == set(SCALES)
    pool = [Policy(jnp.array(w), (), lean) for w in ([0.0, 0.1, 1.0, 0.5], [0.0, 0.0, -1.0, 0.0])]
    found = part.estimate(jax.random.key(0), pool, log.data, log.task, part.hypers("smoke"))
    assert len(found) == len(pool)
    for one in found:
        assert np.isfinite([one.estimate.median, *one.estimate.interval(0.9)]).all()
        assert set(one.health) <= set(part.health)
        assert all(isinstance(each, str) and each for each in part.faults(one))
    return part, found


@pytest.mark.parametrize("name", OWN)
def test_an_estimator_keeps_the_contract(name, log):
    part, found = contract(name, log)
    bad = {"converged": 0.0, "left": 9.0, "bellman": 3.0, "clipped": 1.0, "effective": 1.0, "episodes": 50.0}
    bad |= {"critics_left": 1.0, "mean_zeta": 4.0, "negative": 1.0}
    worse = found[0]._replace(health={**found[0].health, **bad}, notes=("the mean of zeta is off",))
    assert len(part.faults(worse)) >= 2
    sound = {"converged": 1.0, "left": 0.0, "bellman": 0.0, "clipped": 0.0, "effective": 99.0, "critics_left": 0.0}
    assert part.faults(worse._replace(health={**bad, **sound, "negative": 0.0}, notes=())) == []


def test_names_and_words():
    assert set(OWN) <= set(estimators.names())
    assert estimators.methods()[0] == "predictive"
    assert estimators.words("fqe") == "FQE"
    assert estimators.words("predictive") == "the posterior"
    with pytest.raises(BadInput, match="oracle: no such estimator; there are dr, dualdice, fqe, is"):
        estimators.get("oracle")
    with pytest.raises(BadInput, match="galactic: fqe has no such scale"):
        estimators.get("fqe").hypers("galactic")
    assert estimators.get("is").hypers("quick", sampled=True).sampled


MINE = '''"""The mean reward of the log, for every policy: the smallest estimator there is."""

from dataclasses import dataclass

import numpy as np

from offing.value.estimate import Estimate, ValueEstimate
from offing.value.estimator import SCALES, Estimator


@dataclass(frozen=True)
class Hypers:
    replicates: int = 20


def constant(key, policies, data, task, hypers):
    reward = np.asarray(data.steps.reward)[: data.rows]
    drawn = np.random.default_rng(0).choice(reward, (hypers.replicates, len(reward))).mean(1)
    value = ValueEstimate(drawn[:, None] / (1 - task.discount))
    return [Estimate(value, {"rows": float(len(reward))}, ("it knows no policy",)) for _ in policies]


estimator = Estimator(
    name="constant",
    words="the log's mean",
    estimate=constant,
    presets=dict.fromkeys(SCALES, Hypers()),
    health={"rows": "rows of the log"},
    faults=lambda estimate: ["it knows no policy"],
)
'''


def test_another_package_adds_one(tmp_path, log, monkeypatch):
    assert len(MINE.splitlines()) < 80
    (tmp_path / "strange.py").write_text(MINE)
    dist = tmp_path / "strange-1.0.dist-info"
    dist.mkdir()
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
    (dist / "entry_points.txt").write_text("[offing.estimators]\nconstant = strange:estimator\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "constant" in estimators.names()
    contract("constant", log)
    root = str(Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{root}")
    for command in ("evaluate", "torel"):
        asked = [sys.executable, "-m", "offing", command, "--help"]
        shown = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        assert "constant" in shown


def test_health_may_be_anything_and_an_estimate_is_still_one():
    for number in (np.nan, np.inf, -np.inf, 0.0, 1e300):
        one = Estimate(
            ValueEstimate(np.full((2, 3), number)), dict.fromkeys(("effective", "episodes", "clipped"), number), ()
        )
        assert isinstance(estimators.get("is").faults(one), list)
        assert replace(estimators.get("is"), faults=lambda e: []).faults(one) == []
