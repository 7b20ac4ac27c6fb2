"""Cells in as few bytes as tell them apart, without loss: most numbers of a table are short decimals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

NEVER = np.iinfo(np.int64).min  # the moment of an empty cell
SCALES = (1, 10, 100, 1_000, 10_000)  # that decimals are multiplied by to become whole
SECOND = 1_000_000  # microseconds, in which moments are counted
GLANCE = 256  # cells that say which scale is worth a try
KINDS = (np.int8, np.int16, np.int32)


def compact(array: np.ndarray, kind: str, first: int = 1) -> tuple[np.ndarray, int]:
    """Numbers or moments as whole numbers of few bytes, and their scale; 0, and as they are, where that loses.

    The least whole number stands for an empty cell, the one above it for -0.0. `first` is a scale to try first.
    """
    if kind == "time":
        return _seconds(array)
    array = np.asarray(array, np.float64)
    empty = np.isnan(array)
    for scale in (first, *(scale for scale in SCALES if scale > first)):
        if len(array) > 4 * GLANCE and _scaled(array[:GLANCE], empty[:GLANCE], scale) is None:
            continue
        if (whole := _scaled(array, empty, scale)) is not None:
            return _stored(array, whole, empty), scale
    with np.errstate(over="ignore"):
        short = array.astype(np.float32)
    exact = ((short == array) | np.isnan(array)).all()
    return (short if exact else array), 0


def _scaled(array: np.ndarray, empty: np.ndarray, scale: int) -> np.ndarray | None:
    """The numbers multiplied by the scale, if they are whole then, and divided by it again what they were."""
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.rint(array * scale)
        same = (whole / scale == array) & (np.abs(whole) < np.iinfo(np.int32).max)
    return whole if (same | empty).all() else None


def _stored(array: np.ndarray, whole: np.ndarray, empty: np.ndarray) -> np.ndarray:
    whole[empty] = 0
    minus = np.signbit(array) & (array == 0)
    stored = whole.astype(_kind(int(max(whole.max(initial=0.0), -whole.min(initial=0.0)))))
    least = np.iinfo(stored.dtype).min
    stored[empty], stored[minus] = least, least + 1
    return stored


def _kind(largest: int) -> type[np.signedinteger]:
    return next((kind for kind in KINDS if largest < np.iinfo(kind).max), np.int64)


def _seconds(moments: np.ndarray) -> tuple[np.ndarray, int]:
    empty = moments == NEVER
    seconds = np.where(empty, 0, moments) // SECOND
    largest = int(np.abs(seconds).max(initial=0))
    if largest >= np.iinfo(np.int32).max or ((seconds * SECOND != moments) & ~empty).any():
        return moments, 0
    stored = seconds.astype(np.int8 if empty.all() else np.int32)
    stored[empty] = np.iinfo(stored.dtype).min
    return stored, SECOND


def expanded(stored: np.ndarray, scale: int, kind: str) -> np.ndarray:
    """What `compact` was given."""
    if not scale:
        return stored if kind == "time" else stored.astype(np.float64, copy=False)
    least = np.iinfo(stored.dtype).min
    if kind == "time":
        moments = stored.astype(np.int64) * scale
        moments[stored == least] = NEVER
        return moments
    array = stored.astype(np.float64)
    if scale != 1:
        array /= scale
    array[stored == least] = np.nan
    array[stored == least + 1] = -0.0
    return array


def joined(pieces: Sequence[tuple[np.ndarray, int]], kind: str) -> tuple[np.ndarray, int]:
    """Pieces of a column, each with its scale, as one."""
    scales = {scale for _, scale in pieces}
    if len(scales) == 1:
        scale = scales.pop()
        if not scale or len({part.dtype for part, _ in pieces}) == 1:
            return np.concatenate([part for part, _ in pieces]), scale
    elif 0 in scales or kind == "time":
        short = kind == "number" and all(part.dtype == np.float32 for part, scale in pieces if not scale)
        parts = [expanded(part, scale, kind) for part, scale in pieces]
        return _as_float32(parts) if short else (np.concatenate(parts), 0)
    else:
        scale = max(scales)
    return _rescaled(pieces, scale)


def _as_float32(parts: list[np.ndarray]) -> tuple[np.ndarray, int]:
    short = [part.astype(np.float32) for part in parts]
    exact = all(((few == part) | np.isnan(part)).all() for few, part in zip(short, parts, strict=True))
    return np.concatenate(short if exact else parts), 0


def _rescaled(pieces: Sequence[tuple[np.ndarray, int]], scale: int) -> tuple[np.ndarray, int]:
    """Whole numbers of several scales and sizes as those of one; the ratio of two scales is whole."""
    parts = []
    for part, own in pieces:
        least = np.iinfo(part.dtype).min
        whole = part.astype(np.int64) * (scale // own)
        parts.append((whole, part == least, part == least + 1))
    full = [whole[~(empty | minus)] for whole, empty, minus in parts]
    kind = _kind(max(int(np.abs(part).max(initial=0)) for part in full))
    least = np.iinfo(kind).min
    stored = np.concatenate([np.where(e, least, np.where(m, least + 1, w)).astype(kind) for w, e, m in parts])
    return stored, scale
