"""The flags of every command, as dataclasses whose docstrings are its help."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import Positional

from . import planner as planners
from .data import help_text
from .value.estimators import methods as _methods

Planners = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(
        help=f"Which algorithm to tune ({', '.join(planners.names())}); give it several times, and the algorithm "
        "is chosen too."
    ),
]

if TYPE_CHECKING:
    Method = Judge = str
else:  # what is in the folder of estimators, and what other packages add to it
    Judge, Method = Literal[_methods()], Literal[("all", *_methods())]


Candidates = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(
        help=f"Which planners compete ({', '.join(planners.names())}); give it several times (default: those of "
        "the scale). A clone of the logged behaviour always does."
    ),
]


@dataclass(frozen=True, kw_only=True)
class Output:
    """What every command prints, and where."""

    json: bool = False
    """Print one JSON object on stdout, and words on stderr."""
    quiet: bool = False
    """Print no progress and no table, only the last lines of the summary."""
    timings: bool = False
    """Say at the end, on stderr, what the time went to."""


@dataclass(frozen=True)
class Collect:
    """Make a log in a true environment, for samples, tests and experiments (needs the extra `envs`)."""

    kind: Positional[str]
    """An environment by its name (gymnasium:ID, gymnax:ID, brax-hopper, or a plain ID), or one of the kinds that
    samples and experiments were made by: gymnax-pendulum-random, gymnax-cartpole-random,
    brax-halfcheetah-full-replay, brax-hopper-full-replay, brax-walker2d-full-replay."""
    rows: int
    """Steps to log."""
    out: Path
    """Where to write it: an .npz file, or without an ending the folder of a Minari dataset."""
    seed: int = 0
    """Same seed, same log."""
    policy: str | None = None
    """Who acts: random, an ensemble of randomly initialised policies that take turns (the default); trained, an
    agent while it learns; or MODULE:FUNCTION, which takes observations [N, numbers] and gives actions."""
    steps: int | None = None
    """How long the trained agent learns; the log holds as many of these steps as it has rows (default: all)."""
    noise: float = 0.0
    """On what MODULE:FUNCTION does: the share of choices drawn at random, or the standard deviation of amounts, in
    half-widths of their range."""
    horizon: int | None = None
    """Cut episodes after so many steps (default: where the environment does)."""
    format: Literal["npz", "minari"] | None = None
    """What to write (default: as the name of OUT says)."""


@dataclass(frozen=True, kw_only=True)
class OfALog(Output):
    """Options of every command that reads a log."""

    data: Annotated[Positional[str], tyro.conf.arg(help=help_text())]
    schema: Path | None = None
    """A TOML file that says which column is what (`offing inspect DATA --write-schema FILE` drafts one)."""
    rows: int | None = None
    """Use this many rows of it (default: all)."""
    seed: int = 0
    """Same seed, same result."""


def plain_name(data: str) -> str:
    """What a log is called in the name of a folder."""
    return PurePath(data.split("?")[0].split(":")[-1]).name.split(".")[0] or "log"


@dataclass(frozen=True, kw_only=True)
class ALongRun(OfALog):
    """Options of every command that works for long and resumes where it was."""

    out: Path | None = None
    """Folder for what comes of it (default: in `out`, by the command and the log's name)."""
    fresh: bool = False
    """Start anew, even if OUT holds a finished or an interrupted run."""

    @property
    def folder(self) -> Path:
        """Where it writes to and resumes from."""
        if self.out is not None:
            return self.out
        return Path("out") / f"{type(self).__name__.lower()}-{plain_name(self.data)}"


@dataclass(frozen=True, kw_only=True)
class Posterior(ALongRun):
    """Learn a posterior over worlds from a log, choose its settings by PIL, and say if it is calibrated.

    Writes posterior.json and the posterior itself."""

    scale: Literal["smoke", "quick", "standard", "large", "paper"] = "standard"
    """How much to try: smoke, whether the log goes through (its numbers mean nothing); quick, 12 small settings;
    standard, 24, a few minutes on two cores; large, 4, and paper, 48, for a GPU."""
    model: str = "ensemble"
    """What worlds are made of: ensemble, linear, neighbours, or a world model that another package adds."""


@dataclass(frozen=True, kw_only=True)
class Sorel(ALongRun):
    """A log in; a policy, what it will earn, and GO, NO-GO or NOT-ENOUGH-EVIDENCE out (exit code 0, 3 or 4).

    Writes result.json, report.html, the policy and the posterior."""

    new: Annotated[
        Positional[tuple[str, ...]],
        tyro.conf.arg(
            help="Later logs with the same columns, to learn from together; the page says what changed."
        ),
    ] = ()
    before: Path | None = None
    """Of several logs: the folder of the run on the first one alone, whose promise is set beside the new one
    (default: the folder that such a run writes to by itself, where it has a result)."""
    baseline: float | None = None
    """The return that the policy must beat (default: what the logged behaviour earned)."""
    scale: Literal["smoke", "quick", "standard", "large", "paper"] = "quick"
    """How much to try: smoke, whether the log goes through (its numbers mean nothing); quick, a few minutes on two
    cores; standard, more settings and longer plans; large, for logs of 10,000 rows and more on a GPU; paper, the
    paper's sizes and ranges, on a GPU."""
    candidates: Candidates = ()
    paper: bool = False
    """The paper's own system: recurrent PPO alone, chosen by the median over held-out worlds."""
    core: Literal["linear", "gru", "none"] | None = None
    """How the policy remembers: linear, by a recurrence that is parallel in time; gru, as in the paper; none
    (default: what the scale tries)."""
    level: float = 0.9
    """Of the interval, and how probable it must be that the policy beats the baseline."""
    engine: Literal["here", "devices", "ray"] = "here"
    """Where settings train: this process; all devices of this machine; or a Ray cluster (extra `ray`)."""
    model: str = "ensemble"
    """What worlds are made of: ensemble, linear, neighbours, or a world model that another package adds."""

    @property
    def folder(self) -> Path:
        """Where it writes to and resumes from; of several logs, by all of their names."""
        folder = super().folder
        if self.out is not None or not self.new:
            return folder
        return folder.with_name("-".join([folder.name, *map(plain_name, self.new)]))

    @property
    def earlier(self) -> Path | None:
        """The folder of the run on the first log alone, if one is named or there by itself."""
        if self.before is not None or not self.new:
            return self.before
        usual = replace(self, new=(), out=None).folder
        return usual if (usual / "result.json").exists() else None


@dataclass(frozen=True, kw_only=True)
class Torel(ALongRun):
    """A log in; any offline RL algorithm's settings ranked without trying them, and the best policy out.

    Writes result.json, report.html, the chosen policy and the posterior."""

    planner: Planners
    space: str = "default"
    """Which settings to try: default (or standard) and quick, for a CPU; large, for a GPU; paper, the
    paper's grids; smoke, two that train for a moment; or a TOML file that describes a space of one planner."""
    updates: int | None = None
    """Train each setting this long (default: what its space says)."""
    search: Literal["grid", "random", "optuna"] = "grid"
    """How to walk through a space from a file: all of it, random draws, or Optuna's sampler (extra `optuna`)."""
    tries: int = 32
    """Settings that a random or Optuna's search may try."""
    select: Judge = "predictive"
    """What to rank by: the posterior predictive median, or another estimator, for comparison."""
    engine: Literal["here", "devices", "ray"] = "here"
    """Where to run: in this process, over all local devices, or on a Ray cluster (extra `ray`)."""
    seeds: int = 1
    """Train each setting this many times."""
    halve: bool = False
    """Stop the worse half of all trials after a quarter of their updates, and again after a half."""
    scale: Literal["smoke", "quick", "standard", "large", "paper"] = "quick"
    """How many settings of the worlds to try, as in `offing posterior`."""
    level: float = 0.9
    """Of the intervals."""
    model: str = "ensemble"
    """What worlds are made of: ensemble, linear, neighbours, or a world model that another package adds."""


@dataclass(frozen=True, kw_only=True)
class Evaluate(ALongRun):
    """A log and policies from anywhere in; what each will earn, by several methods side by side, out.

    Writes evaluation.json and evaluation.html."""

    policy: tyro.conf.UseAppendAction[tuple[str, ...]]
    """Which policy: a folder that `offing sorel` or `torel` left, MODULE:FUNCTION (observations in, actions out),
    or a file of another library; give it several times to compare."""
    methods: tuple[Method, ...] = ("all",)
    """What to judge by, beside the posterior predictive, which always is."""
    scale: Literal["smoke", "quick", "standard", "large", "paper"] = "quick"
    """How many settings of the worlds to try, as in `offing posterior`, and how long the other methods train."""
    judge: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Worlds of another kind to ask beside the ensemble (neighbours, linear, or what another package adds): they
    share none of its errors. Give it several times for several."""
    level: float = 0.9
    """Of the intervals."""
    within: float | None = None
    """How near you need to be: the report says how many more rows an interval of this much either way takes
    (default: half of what it is)."""
    sampled: bool = False
    """Sample actions instead of taking the best."""
    forget: bool = False
    """Let FQE and DualDICE judge a policy that remembers with its memory emptied before every step, which is
    another policy (default: they leave it out)."""
    engine: Literal["here", "devices", "ray"] = "here"
    """Where worlds are fitted: in this process, over all local devices, or on a Ray cluster (extra `ray`)."""
    model: str = "ensemble"
    """What worlds are made of: ensemble, linear, neighbours, or a world model that another package adds."""


@dataclass(frozen=True, kw_only=True)
class Play(Output):
    """Play a policy in its true environment, beside what was predicted for it (needs the extra `envs`)."""

    folder: Positional[Path | None] = None
    """Where `offing sorel` or `torel` left it."""
    policy: str | None = None
    """Or any policy, as `offing evaluate` takes it: MODULE:FUNCTION or a file of another library."""
    env: str
    """A name that gymnax or gymnasium knows (Pendulum-v1, gymnasium:Hopper-v5), or brax-halfcheetah and kin."""
    episodes: int = 200
    """How many to play."""
    seed: int = 0
    """Same seed, same episodes."""
    sampled: bool = False
    """Sample actions instead of taking the best."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write the policy of a finished run for where it will act, with names, bounds, memory and verdict."""

    folder: Positional[Path]
    """Where `offing sorel` or `torel` left it."""
    to: Literal["onnx", "numpy", "stablehlo", "c", "mlflow"]
    """onnx: one file, checked by onnxruntime (extra `onnx`); numpy: one file for `offing-runtime`; stablehlo: for
    JAX and XLA; c: one header and one source file; mlflow: the run and its policy, logged to where MLflow's own
    settings say (extra `mlflow`, and `offing-runtime`)."""
    out: Path | None = None
    """Folder for the files (default: `export` in the run's own)."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Rows that a deployed policy made: does it earn what was promised, and is the world still the same?"""

    folder: Positional[Path]
    """Where `offing sorel` or `torel` left the policy."""
    data: Positional[str]
    """The new rows: a log, as other commands take it."""
    log: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """The log that the policy was learned from (default: what the run names); several times for several."""
    schema: Path | None = None
    """A TOML file that says which column is what, of both logs."""
    out: Path | None = None
    """Folder for watch.json and watch.html (default: the run's own)."""


@dataclass(frozen=True, kw_only=True)
class Explain:
    """What the policy of a finished run does, where it departs from the log, and what its promise hangs on."""

    folder: Positional[Path]
    """Where `offing sorel` or `torel` left it; explain.html and explain.json are written there, and its page gets
    the same section."""
    log: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """The log that the policy was learned from (default: what the run names); several times for several."""
    schema: Path | None = None
    """A TOML file that says which column is what."""


@dataclass(frozen=True)
class Sample:
    """Write one of the logs that come with the package as a file, to try things on."""

    name: Positional[str]
    """Which: coldstore (a table as companies have it), pendulum or cartpole."""
    out: Path | None = None
    """The file to write (default: its name, here)."""


@dataclass(frozen=True, kw_only=True)
class Inspect(OfALog):
    """What is in a log, what is wrong with it, and whether it is diverse enough for SOReL or calls for TOReL."""

    out: Path | None = None
    """Folder for inspect.json and inspect.html (default: write nothing)."""
    write_schema: Path | None = None
    """Draft a schema of the log into this file, with what was inferred and why, and stop there."""


Command = (
    Annotated[Sorel, tyro.conf.subcommand("sorel")]
    | Annotated[Torel, tyro.conf.subcommand("torel")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Play, tyro.conf.subcommand("play")]
    | Annotated[Export, tyro.conf.subcommand("export")]
    | Annotated[Watch, tyro.conf.subcommand("watch")]
    | Annotated[Explain, tyro.conf.subcommand("explain")]
    | Annotated[Posterior, tyro.conf.subcommand("posterior")]
    | Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[Sample, tyro.conf.subcommand("sample")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
)
