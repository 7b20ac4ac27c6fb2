"""Files in D4RL's layout: what its datasets hold, and under which names."""

from __future__ import annotations

import io
from pathlib import Path

import h5py
import numpy as np

from offing.report.store import write


def save(path: Path, episodes: list[dict[str, np.ndarray]], about: dict[str, str]) -> None:
    """Episodes as one file: rows side by side, `timeouts` where an episode was cut off."""
    join = lambda name: np.concatenate([one[name] for one in episodes])
    lengths = np.array([len(one["reward"]) for one in episodes])
    terminals, ends = join("terminated").astype(bool), np.cumsum(lengths) - 1
    timeouts = np.zeros(len(terminals), bool)
    timeouts[ends] = ~terminals[ends]  # what was cut off to fit does not go on in the row after it either
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for ours, theirs in (("obs", "observations"), ("action", "actions"), ("reward", "rewards")):
            file.create_dataset(theirs, data=join(ours).astype(np.float32), compression="gzip")
        file.create_dataset("next_observations", data=join("next_obs").astype(np.float32), compression="gzip")
        file.create_dataset("terminals", data=terminals)
        file.create_dataset("timeouts", data=timeouts)
        if "logp" in episodes[0]:
            file.create_dataset("infos/action_log_probs", data=join("logp").astype(np.float32))
        for name, value in about.items():
            file.create_dataset(f"metadata/{name}", data=np.bytes_(value))
    write(path, buffer.getvalue())
