"""Numbers of the paper that stand beside ours, as its text and its tables print them."""

from __future__ import annotations

GPUS, WEEK = 4, 7 * 24 * 3600.0  # L40S, and the seconds within which all of its experiments ran
SOREL_ERROR = {"halfcheetah": (120.0, 470.0), "hopper": (70.0, 550.0)}  # SOReL's and FQE's mean absolute error
SETTINGS_R = {"halfcheetah": 0.93, "hopper": 0.70}  # over the solver's settings at 200,000 rows
TIMES_BEST = {"halfcheetah": 1.5}  # SOReL's return over that of the best logged policy
CALIBRATED = 0.25  # its threshold on PIL's imbalance
ONLINE = {  # samples that the bandit needs to match TOReL with ReBRAC; None: it does not
    "halfcheetah_medium_expert": 16_000,
    "hopper_medium": 36_000,
    "walker2d_medium_replay": None,
    "pen_expert": 7_700,
    "hammer_expert": 5_000,
}
SELECTORS = ("predictive", "fqe", "dualdice", "dr", "is")  # the table's columns
_R = """
halfcheetah iql 0.29 0.45
halfcheetah rebrac 0.92 0.00
halfcheetah mopo 0.98 0.00
halfcheetah morel 0.93 0.00
hopper iql 0.18 0.635
hopper rebrac 0.98 0.00
hopper mopo 1.00 0.00
hopper morel 0.98 0.00
walker2d iql 0.32 0.41
walker2d rebrac 0.81 0.02
walker2d mopo -0.68 0.13
walker2d morel 0.99 0.00
halfcheetah_medium_expert iql 0.29 0.44 -0.21 0.59 -0.47 0.20 -0.24 0.54 -0.33 0.39
halfcheetah_medium_expert rebrac 0.90 0.00 0.66 0.00 0.19 0.17 0.32 0.02 -0.44 0.01
halfcheetah_medium_expert mopo 0.02 0.98
halfcheetah_medium_expert morel 0.98 0.00
hopper_medium iql 0.29 0.44 0.16 0.67 0.19 0.62 0.26 0.50 -0.39 0.30
hopper_medium rebrac 0.98 0.00 0.27 0.04 0.34 0.01 0.20 0.16 0.27 0.04
hopper_medium mopo 0.98 0.00
hopper_medium morel 0.94 0.00
walker2d_medium_replay iql 0.65 0.05 0.41 0.28 0.52 0.15 0.19 0.63 -0.06 0.88
walker2d_medium_replay rebrac 0.78 0.00 0.89 0.00 -0.04 0.700 0.82 0.00 0.86 0.00
walker2d_medium_replay mopo 1.00 0.00
walker2d_medium_replay morel -0.53 0.01
pen_expert iql 0.00 0.30 -0.00 0.40 0.49 0.18 0.51 0.23 0.26 0.50
pen_expert rebrac 0.89 0.01 0.91 0.00 -0.01 0.98 0.26 0.06 -0.66 0.00
hammer_expert iql 0.70 0.04 0.74 0.02 -0.12 0.76 -0.35 0.35 -0.40 0.29
hammer_expert rebrac 0.30 0.02 0.11 0.42 -0.14 0.31 -0.04 0.75 -0.66 0.00
"""


def _pearson() -> dict[tuple[str, str, str], tuple[float, float]]:
    table = {}
    for line in _R.strip().splitlines():
        task, planner, *numbers = line.split()
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        for selector, (r, p) in zip(SELECTORS, pairs, strict=False):
            table[task, planner, selector] = (float(r), float(p))
    return table


PEARSON = _pearson()  # (task, planner, selector) -> r, p
# What the paper prints of hyperparameters, table by table: row -> value
ENSEMBLE = {  # Gymnax, then Brax and D4RL
    "layers": ("3", "3"),
    "layer size": ("200", "200"),
    "activation": ("ReLU", "ReLU"),
    "members": ("7", "10"),
    "elites": ("5", "8"),
    "batch size": ("64", "256"),
    "epochs": ("400", "400"),
    "learning rate": ("0.001", "0.001"),
    "schedule": ("cosine to 10%", "cosine to 10%"),
    "weight decay": ("2.5e-05", "2.5e-05"),
    "validation split": ("0.1", "0.1"),
}
SOLVER = {  # as its table of settings has it, task by task
    "cartpole": {
        "lr": 3e-4,
        "envs": 4,
        "segment": 128,
        "steps": 500_000,
        "epochs": 4,
        "minibatches": 4,
        "discount": 0.99,
        "trace": 0.95,
        "clip": 0.2,
        "entropy": 0.01,
        "norm": 0.5,
        "width": 64,
    },
    "pendulum": {
        "lr": 3e-4,
        "envs": 128,
        "segment": 64,
        "steps": 1_000_000,
        "epochs": 8,
        "minibatches": 16,
        "discount": 0.99,
        "trace": 0.95,
        "clip": 0.2,
        "entropy": 0.003,
        "norm": 0.5,
        "width": 128,
    },
    "halfcheetah": {
        "lr": 3e-4,
        "envs": 512,
        "segment": 64,
        "steps": 50_000_000,
        "epochs": 8,
        "minibatches": 16,
        "discount": 0.99,
        "trace": 0.95,
        "clip": 0.2,
        "entropy": 0.003,
        "norm": 0.5,
        "width": 256,
    },
    "hopper": {
        "lr": 3e-4,
        "envs": 512,
        "segment": 32,
        "steps": 50_000_000,
        "epochs": 2,
        "minibatches": 8,
        "discount": 0.998,
        "trace": 0.8,
        "clip": 0.3,
        "entropy": 0.001,
        "norm": 1.0,
        "width": 256,
    },
    "walker2d": {
        "lr": 3e-4,
        "envs": 512,
        "segment": 64,
        "steps": 50_000_000,
        "epochs": 4,
        "minibatches": 8,
        "discount": 0.995,
        "trace": 0.95,
        "clip": 0.2,
        "entropy": 0.001,
        "norm": 0.5,
        "width": 256,
    },
}
SWEEP = {
    "lr": (1e-4, 3e-4),
    "discount": (0.99, 0.995, 0.998),
    "trace": (0.8, 0.9, 0.95),
    "clip": (0.2, 0.3),
    "entropy": (0.0, 0.001, 0.01),
    "norm": (0.5, 1.0),
}
GRIDS = {
    "iql": {"beta": (0.5, 3.0, 10.0), "expectile": (0.5, 0.7, 0.9)},
    "rebrac": {
        "critic_bc": (0.0, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.1),
        "actor_bc": (0.0005, 0.001, 0.002, 0.003, 0.03, 0.1, 0.3, 1.0),
    },
    "mopo": {"length": (1.0, 3.0, 5.0), "penalty": (1.0, 5.0)},
    "morel": {"pessimism": (0.0, 5.0, 10.0, 15.0, 20.0, 25.0), "offset": (-30.0, -50.0, -100.0, -200.0)},
}
