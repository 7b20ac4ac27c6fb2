"""The paper's table of contents: every figure and table of it, and what stands for it here."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A figure or table of the paper by its label there."""

    label: str
    shows: str
    figures: tuple[str, ...]  # ours, by name
    why: str = ""  # there is none, if so


CONTENTS = (
    Entry("fig:overview", "a drawing of existing offline RL beside SOReL and TOReL", (), "It has no numbers."),
    Entry(
        "fig:sorel_overall", "SOReL's value beside FQE's and the truth, HalfCheetah and Hopper", ("sorel_overall",)
    ),
    Entry(
        "fig:overall_return_barplot",
        "true returns of the settings that TOReL and other selectors choose",
        ("torel_returns", "selectors_returns"),
    ),
    Entry("fig:torel_barplot", "its upper half: TOReL's choices for four planners", ("torel_returns",)),
    Entry("fig:d4rl_torel_barchart", "its lower half: TOReL and four estimators, D4RL", ("selectors_returns",)),
    Entry("fig:d4rl_torel_regret_sample_efficiency", "an online bandit beside TOReL's choice", ("bandit",)),
    Entry("fig:theoretical_regret_curves", "the regret bound against rows", ("theory",)),
    Entry("fig:sorel_hyper_sweep", "predicted against true over the solver's settings", ("sorel_settings",)),
    Entry(
        "fig:sorel_5_panel", "value against rows on five tasks, and of policies without history", ("sorel_rows",)
    ),
    Entry(
        "tab:fpe_main", "Pearson's r of predicted and true returns, every sweep and selector", ("correlations",)
    ),
    Entry("fig:placeholder", "scatter: TOReL's predictions against true returns", ("torel_scatter",)),
    Entry("fig:ope_all_vertical_1", "scatter: every selector, three D4RL locomotion logs", ("selectors_scatter",)),
    Entry("fig:ope_all_vertical_2", "scatter: every selector, D4RL's pen and hammer", ("adroit_scatter",)),
    Entry("fig:brax_datasets", "training curves of the agents that made the Brax logs", ("training_curves",)),
    Entry("tab:ensemble_dynamics_hyperparams", "settings of the ensemble", ("hyperparameters",)),
    Entry("tab:sorel_ppo_rnn_hyperparameter_sweep", "ranges of the solver's sweep", ("hyperparameters",)),
    Entry("tab:sorel_ppo_rnn_hyperparameters", "settings of the solver, task by task", ("hyperparameters",)),
    Entry("tab:unifloral_orl_hyperparameters", "settings and grids of the four planners", ("hyperparameters",)),
)

BEYOND = {  # what the paper says in its text, or leaves out
    "pil": "PIL, error and spread against rows, and what tuning by PIL chooses: described in the paper, not run",
    "judges": "every estimator on pools of policies of spread quality, and on SOReL's own",
    "ablations": "what each part of the worlds and of the planning is worth",
    "cost": "what each study costs, beside the paper's four L40S for a week",
}


def ours() -> tuple[str, ...]:
    """Names of our figures, in the paper's order, then those beyond it."""
    return tuple(dict.fromkeys([*(name for entry in CONTENTS for name in entry.figures), *BEYOND]))
