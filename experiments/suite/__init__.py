"""Eighteen true tasks to learn from, half of them sealed; `python -m experiments.suite` runs them."""
