"""A finished run, logged to MLflow: parameters, metrics and page, and its policy as a model that can be served."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from ..report.results import PAGE, plain_report
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
    sent, report = shipment(folder), dict[str, Any](plain_report(folder))
    mlflow.set_experiment(experiment)
    with tempfile.TemporaryDirectory() as scratch, mlflow.start_run(run_name=str(report.get("data"))):
        (file,) = write_shipment(sent, "numpy", Path(scratch))
        mlflow.log_params(parameters(report))
        mlflow.log_metrics(metrics(report))
        mlflow.set_tags({name: str(value) for name, value in sent.about.items() if value is not None})
        for name in (PAGE, "result.json", "explain.html"):
            if (folder / name).is_file():
                mlflow.log_artifact(str(folder / name))
        model: Any = mlflow.pyfunc.log_model(
            name="policy",
            python_model=str(Path(__file__).with_name("served.py")),
            artifacts={"policy": str(file)},
            code_paths=[str(next(iter(runtime.submodule_search_locations)))],
            pip_requirements=["mlflow-skinny", "numpy", "pandas"],
        )
    return str(model.model_uri)


def parameters(report: dict[str, Any]) -> dict[str, Any]:
    """What the run was asked, and the chosen policy's settings."""
    kept = {name: report.get(name) for name in ("system", "data", "rows", "seed", "scale", "version")}
    policy = report.get("policy", {})
    tried = (policy.get("settings") or [{}])[policy.get("chosen", 0)]
    chosen = tried.get("setting", {})
    plain = {f"policy.{n}": v for n, v in chosen.items() if isinstance(v, (int, float, str)) and n != "score"}
    return {name: value for name, value in {**kept, **plain}.items() if value is not None}


def metrics(report: dict[str, Any]) -> dict[str, float]:
    """What it promised, in numbers."""
    earned = report.get("return", {})
    low, high = earned.get("interval", (None, None))
    told = {f"return.{name}": earned.get(name) for name in METRICS}
    told |= {"return.low": low, "return.high": high, "behaviour": report.get("behaviour", {}).get("mean")}
    told |= {"probability": report.get("probability"), "pil": report.get("pil", {}).get("total")}
    return {name: float(value) for name, value in told.items() if value is not None}
