"""The model that MLflow serves: it runs this file ("models from code", so nothing is pickled) beside `policy.npz`.

A row of the table goes in; its action comes out, by the table's names. A policy that remembers gives a `state`,
to be sent back with the next row, and takes the `reward` that its action earned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mlflow.models import set_model  # pyright: ignore[reportMissingImports]
from mlflow.pyfunc.model import PythonModel  # pyright: ignore[reportMissingImports]


class Served(PythonModel):
    """Rows in, actions out."""

    def load_context(self, context: Any) -> None:
        import offing_runtime  # pyright: ignore[reportMissingImports]

        self.policy = offing_runtime.load(context.artifacts["policy"])

    def predict(self, context, model_input, params=None):  # MLflow would read types as a signature
        del context, params
        return [self._one(row) for row in model_input.to_dict("records")]

    def _one(self, row: dict[str, object]) -> dict[str, object]:
        more = {name: row.pop(name, None) for name in ("state", "reward") if name not in self.policy.columns.known}
        numbers = list(row.values()) if not self.policy.columns.table else row
        action, state = self.policy.predict(numbers, more.get("state"), float(str(more.get("reward") or 0.0)))
        plain = lambda value: value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        named = action if isinstance(action, dict) else {"action": action}
        answer = {name: plain(value) for name, value in named.items()}
        return answer if state is None else {**answer, "state": plain(state)}


set_model(Served())
