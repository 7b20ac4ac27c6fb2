"""Beyond the paper: what each study took on which machine, beside the paper's four L40S for a week."""

from __future__ import annotations

from ..drawing import table
from ..published import GPUS, WEEK
from .figure import Drawn, Figure, Record, Records


def draw(records: Records) -> Drawn:
    spent: dict[tuple[str, str, str], list[Record]] = {}
    for record in records.values():
        spent.setdefault((record["study"], record["phase"], record["device"]), []).append(record)
    if not spent:
        return Drawn("")
    total = lambda each, name: sum(record[name] for record in each)
    gpu = lambda device: "cpu" not in device.lower()
    cells = [
        [*key, len(each), total(each, "seconds"), total(each, "core_seconds"), max(r["seconds"] for r in each)]
        for key, each in sorted(spent.items())
    ]
    on_gpu = sum(total(each, "seconds") for (_, _, device), each in spent.items() if gpu(device))
    head = ["study", "phase", "device", "parts", "seconds", "core-seconds", "longest"]
    said = (
        f"Together {on_gpu / 3600:.2f} GPU-hours so far, counted part by part as if each had run alone; the paper "
        f"names {GPUS} L40S within a week, {GPUS * WEEK / 3600:.0f} GPU-hours at most. Other work on a machine "
        "makes seconds long and leaves core-seconds as they are."
    )
    return Drawn(table(head, cells) + "\n\n" + said)


figure = Figure(
    "cost", "What it costs", ("theory/", "logs/", "posterior/", "sorel/", "torel/", "judges/", "ablations/"), draw
)
