"""Dates and times as numbers: what a cell says, and where in its day, week or year a moment lies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MICRO = 1_000_000  # of a second: moments are counted in these, from 1970
HOUR, DAY = 3600 * MICRO, 24 * 3600 * MICRO


def _month(moment: np.ndarray) -> np.ndarray:
    days = moment.astype("datetime64[us]")
    months = days.astype("datetime64[M]")
    length = ((months + 1).astype("datetime64[us]") - months.astype("datetime64[us]")).astype(np.int64)
    return months.astype(np.int64) % 12 + (days - months.astype("datetime64[us]")).astype(np.int64) / length


def _yearday(moment: np.ndarray) -> np.ndarray:
    days = moment.astype("datetime64[us]")
    return (days - days.astype("datetime64[Y]").astype("datetime64[us]")).astype(np.int64) / DAY


PARTS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {  # period, microseconds -> where in it
    "minute": (60.0, lambda moment: (moment % HOUR) / (60 * MICRO)),
    "hour": (24.0, lambda moment: (moment % DAY) / HOUR),
    "weekday": (7.0, lambda moment: ((moment // DAY + 3) % 7) + (moment % DAY) / DAY),
    "month": (12.0, _month),
    "yearday": (366.0, _yearday),
}


def moments(values: np.ndarray) -> np.ndarray:
    """Moments in microseconds from 1970 of dates, or of texts in ISO's form; ValueError if they are not."""
    values = np.asarray(values)
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]").astype(np.int64)
    from datetime import UTC, date, datetime, time

    def one(value: object) -> int:
        if isinstance(value, np.datetime64):
            return int(value.astype("datetime64[us]").astype(np.int64))
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime.combine(value, time())
        if not isinstance(value, datetime):
            raise ValueError(f"{value!r} is no date")
        whole = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return round((whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * MICRO)

    return np.array([one(value) for value in values.reshape(-1).tolist()], np.int64).reshape(values.shape)
