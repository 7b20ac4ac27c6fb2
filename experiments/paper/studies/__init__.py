"""What is computed. Every module in STUDIES has `parts(scale)`; their names are those of the record folders."""

from __future__ import annotations

from ..parts import Part
from . import ablations, judges, logs, posterior, sorel, theory, torel

STUDIES = {
    "theory": theory,
    "logs": logs,
    "posterior": posterior,
    "sorel": sorel,
    "torel": torel,
    "judges": judges,
    "ablations": ablations,
}


def every(scale: str) -> dict[str, Part]:
    """All parts by their ids, in the order in which they run."""
    return {part.id: part for study in STUDIES.values() for part in study.parts(scale)}
