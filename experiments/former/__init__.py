"""Readers of version 0.1's records in `experiments/results/`, until `experiments.paper` has some in their place.

    python -m experiments.former sorel gymnax        what docs/results/sorel.md shows; or brax
    python -m experiments.former torel brax
    python -m experiments.former judged gymnax       or random, brax
    python -m experiments.former posterior

What made them is in the history: `git show 9208b29:experiments/value_against_rows.py` and its neighbours.
"""
