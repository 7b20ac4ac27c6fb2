"""A finished run, logged to MLflow: parameters, metrics and page, and its policy as a model that can be served."""

from __future__ import annotations

import importlib.util
import math
import tempfile
from pathlib import Path

from ..report.reports import Predicted, SorelReport
from ..report.results import PAGE, read_result
from ..types import BadInput
from .export import shipment, write_shipment

METRICS = ("median", "mean", "epistemic", "aleatoric", "stderr")


def log_run(folder: Path, experiment: str = "offing") -> str:
    """Logs to where MLflow's own settings say; gives the address of the model."""
    try:
        import mlflow
        import mlflow.pyfunc
    except ImportError:
        raise BadInput("--to mlflow: mlflow is not installed: pip install 'offing[mlflow]'") from None
    runtime = importlib.util.find_spec("offing_runtime")
    if runtime is None or not runtime.submodule_search_locations:
        raise BadInput("--to mlflow: offing-runtime is not installed: pip install offing-runtime")
    sent, report = shipment(folder), read_result(folder)
    assert report is not None  # a policy comes with what its run reported
    mlflow.set_experiment(experiment)
    with tempfile.TemporaryDirectory() as scratch, mlflow.start_run(run_name=report.data):
        (file,) = write_shipment(sent, "numpy", Path(scratch))
        mlflow.log_params(parameters(report))
        mlflow.log_metrics(metrics(report))
        mlflow.set_tags({name: str(value) for name, value in sent.about.items() if value is not None})
        for name in (PAGE, "result.json", "explain.html"):
            if (folder / name).is_file():
                mlflow.log_artifact(str(folder / name))
        model = mlflow.pyfunc.log_model(
            name="policy",
            python_model=str(Path(__file__).with_name("served.py")),
            artifacts={"policy": str(file)},
            code_paths=[str(next(iter(runtime.submodule_search_locations)))],
            pip_requirements=["mlflow-skinny", "numpy", "pandas"],
        )
    return str(model.model_uri)


def parameters(report: Predicted) -> dict[str, int | float | str]:
    """What the run was given, and the chosen policy's settings."""
    run = {name: getattr(report, name) for name in ("system", "data", "rows", "seed", "scale", "version")}
    plain = {n: v for n, v in report.planned.setting.items() if isinstance(v, (int, float, str))}
    return run | {f"policy.{name}": value for name, value in plain.items()}


def metrics(report: Predicted) -> dict[str, float]:
    """What it promised, in numbers."""
    numbers: dict[str, float | None] = {f"return.{name}": getattr(report.returns, name) for name in METRICS}
    low, high = report.returns.interval
    numbers |= {
        "return.low": low,
        "return.high": high,
        "behaviour": report.behaviour.mean,
        "pil": report.pil.total,
    }
    if isinstance(report, SorelReport):
        numbers["probability"] = report.probability
    return {name: float(value) for name, value in numbers.items() if value is not None and math.isfinite(value)}
