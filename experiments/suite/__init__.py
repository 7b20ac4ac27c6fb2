"""Twenty-two true tasks, nine of them sealed; `python -m experiments.suite` runs them."""
