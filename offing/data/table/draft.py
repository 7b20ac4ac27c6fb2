"""A first schema for a table as people have it: what its cells say, and questions where they cannot know.

Every key comes with the reason for it. Nothing here is used without a person having read it: a draft is written to
a file, and a log is loaded by that file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..clock import DAY, HOUR
from ..schema import Schema
from .cells import Cells, Rows
from .encode import LEVELS, words_of

PLACES = ("site", "plant", "location", "building", "region", "ward", "store", "line", "area", "hall", "country")
ACTED = ("action", "control", "setting", "mode", "command", "level", "speed", "compressor", "valve", "pump", "fan")
ACTED += ("heater", "dose", "treatment", "throttle", "power", "order", "bid", "offer", "discount", "campaign")
UNITS = (
    "unit",
    "machine",
    "patient",
    "customer",
    "user",
    "vehicle",
    "robot",
    "turbine",
    "well",
    "device",
    "subject",
)
EPISODES = ("episode", "session", "trip", "batch", "run", "visit", "trial", "stay")
SPENT = ("cost", "costs", "energy_cost", "loss", "penalty", "expense", "expenses", "waste")
EARNED = ("reward", "profit", "revenue", "income", "earnings", "score", "margin", "sales", "output", "yield")
LADDERS = (
    ("low", "mid", "high"),
    ("low", "medium", "high"),
    ("off", "on"),
    ("off", "low", "high"),
    ("small", "large"),
)
LADDERS += (("slow", "fast"), ("off", "low", "mid", "high"), ("low", "high"), ("none", "low", "medium", "high"))
LEAST = 100  # steps that show what an action changes
FEW = 0.1  # of the rows: a unit has at least ten

Draft = dict[str, object]  # the schema's keys that are settled so far


def _word(name: str) -> str:
    """A column's name as names of kinds are written: without units in brackets, without `id`."""
    plain = re.sub(r"[(\[].*", "", name).strip().lower()
    return re.sub(r"[\s_-]*(id|no|number|nr)$", "", re.sub(r"[\s-]+", "_", plain)) or plain


def draft_table(cells: Mapping[str, Cells], time: str | None) -> tuple[Schema, list[str]]:
    """A schema for the cells of a table, and a note `key: reason` for each thing that it says or asks."""
    drafted: Draft = {}
    notes: list[str] = []
    free = [name for name in cells if name != time]
    episode = _episode(cells, notes)
    if time is not None and episode is not None and _shared(cells[episode], cells[time]):
        notes.append(
            f"column {time!r}: not used; rows of an episode share a time, so they stand in the file's order"
        )
        time = None
    if time is not None:
        drafted["time"] = time
        notes.append("time: its cells are moments; rows are put in its order, within units")
    if episode is not None:
        drafted["episode"] = episode
        free.remove(episode)
    unit = () if episode is not None else _unit(cells, time, notes)
    if unit:
        drafted["unit"] = unit if len(unit) > 1 else next(iter(unit))
        free = [name for name in free if name not in unit]
    rows = _rows(cells, time, unit or ((episode,) if episode is not None else ()))
    _rule(rows, drafted, notes)
    action = _action(cells, free, drafted, notes)
    paid = _reward(free, drafted, notes)
    seen = [name for name in free if name not in (action, paid) and _useful(cells[name], name, notes)]
    if seen:
        drafted["obs"] = tuple(seen)
        notes.append("obs: every column that nothing else uses. A guess: leave out what is not known when you act")
    _encodings(cells, seen, drafted, notes)
    _fills(rows, [*seen, *([action] if action else [])], drafted, notes)
    _outside(rows, seen, action, drafted, notes)
    return replace(Schema(), **drafted), notes


def _episode(cells: Mapping[str, Cells], notes: list[str]) -> str | None:
    """The column that numbers episodes, if one is called so."""
    named = [name for name in cells if _word(name) in EPISODES and not cells[name].empty.any()]
    if len(named) != 1:
        return None
    notes.append(f"episode: {named[0]!r}, by its name; each of its values is an episode. Check it")
    return named[0]


def _shared(episode: Cells, time: Cells) -> bool:
    """Whether several rows of one episode have the same time."""
    pairs = np.stack([np.unique(cell.array, return_inverse=True)[1] for cell in (episode, time)], -1)
    return len(np.unique(pairs, axis=0)) < len(pairs)


def _unit(cells: Mapping[str, Cells], time: str | None, notes: list[str]) -> tuple[str, ...]:
    """Columns that tell units apart: with them, every time is there once."""
    if time is None:
        return ()
    moment = cells[time].array
    places = tuple(n for n in cells if n.lower() in PLACES and cells[n].kind == "word")
    named = [name for name in cells if _word(name) in UNITS and name != time and not cells[name].empty.any()]
    if len(named) == 1 and len(np.unique(cells[named[0]].array)) > 1:
        notes.append(f"unit: {named[0]!r}, by its name; rows are ordered within each, never across. Check it")
        return (*places, named[0])
    if len(np.unique(moment)) == len(moment):
        return ()
    for name, cell in cells.items():
        if name == time or cell.empty.any() or (cell.kind == "number" and not _whole(cell.array)):
            continue
        code = np.unique(cell.array, return_inverse=True)[1]
        if code.max() >= FEW * len(code):
            continue
        pairs = np.unique(np.stack([code, np.unique(moment, return_inverse=True)[1]], -1), axis=0)
        if len(pairs) == len(moment):
            notes.append(f"unit: rows share their time with others, and with {name!r} each time is there once")
            return (*(place for place in places if place != name), name)
    notes.append(
        "unit: rows share their time with others, and no column tells them apart; which is it? "
        '(unit = "COLUMN" or unit = ["SITE", "MACHINE"])'
    )
    return ()


def _rows(cells: Mapping[str, Cells], time: str | None, unit: tuple[str, ...]) -> Rows:
    """The rows in order, as far as it is known."""
    count = len(next(iter(cells.values())).array)
    code = np.zeros(count, np.int64)
    for name in unit:
        part = np.unique(cells[name].array, return_inverse=True)[1]
        code = code * (int(part.max()) + 1) + part
    moment = cells[time].array if time is not None else None
    order = np.lexsort((moment, code)) if moment is not None else np.arange(count)
    code = code[order]
    return Rows(
        {name: cell.at(order) for name, cell in cells.items()},
        code,
        None if moment is None else moment[order],
        order,
        np.r_[code[1:] != code[:-1], True],
        time is not None and cells[time].kind == "time",
    )


def _rule(rows: Rows, drafted: Draft, notes: list[str]) -> None:
    if "episode" in drafted:
        return
    if rows.time is None:
        notes.append('episodes: which column says where one ends? (episode = "COLUMN", or window = 100)')
        return
    steps = np.diff(rows.time)[~rows.last[:-1]]
    usual = float(np.median(steps)) if len(steps) else 0.0
    if rows.dated and 0 < usual <= 6 * HOUR:
        drafted["per"] = "day"
        notes.append("per: a day is taken for an episode, cut at midnight; is a shift, a batch or a week one?")
        drafted["cyclic"] = {"hour": 24}
        notes.append("cyclic: the hour, as sine and cosine, since steps are shorter than a day")
    else:
        drafted["window"] = 50
        notes.append("window: a long run is cut into episodes of 50 steps; how far ahead do you plan?")
        if rows.dated and usual <= 2 * DAY:
            drafted["cyclic"] = {"weekday": 7}
            notes.append("cyclic: the day of the week, as sine and cosine")


def _action(cells: Mapping[str, Cells], free: list[str], drafted: Draft, notes: list[str]) -> str | None:
    ladders = [name for name in free if _ladder(cells[name]) is not None]
    named = [name for name in free if _word(name) in ACTED or name.lower().startswith(("action", "set_"))]
    both = [name for name in named if name in ladders] or named or [n for n in ladders if not cells[n].yes_no]
    if len(both) != 1:
        some = ", ".join(map(repr, both)) or "no name speaks for it"
        notes.append(f'action: which column is it that you decide on? ({some}; write action = "COLUMN")')
        return None
    name = both[0]
    drafted["action"] = name
    notes.append(f"action: {name!r}, by its name or its words. A guess; check it")
    if cells[name].kind == "word" or cells[name].boolean:
        order = _ladder(cells[name]) or tuple(words_of(cells[name])[0])
        drafted["choices"] = {name: order}
        notes.append("choices: all that were taken; are there others that could be?")
    elif _whole(cells[name].array):
        notes.append('actions: whole numbers: choices or amounts? Write actions = "discrete" or actions = "box"')
    return name


def _ladder(cell: Cells) -> tuple[str, ...] | None:
    lower = {level.lower(): level for level in cell.levels}
    for ladder in LADDERS:
        if cell.kind == "word" and len(lower) > 1 and set(lower) == set(ladder):
            return tuple(lower[word] for word in ladder)
    return None


def _reward(free: list[str], drafted: Draft, notes: list[str]) -> str | None:
    for words, sign in ((EARNED, ""), (SPENT, "-")):
        for name in free:
            if _word(name) in words:
                drafted["reward"] = sign + (name if name.isidentifier() else f"`{name}`")
                notes.append(
                    "reward: a guess by a name. What do you want more of? A formula over columns and "
                    'next(COLUMN), such as "-cost - 10 * alarm - 0.1 * abs(next(temp) - 4)"'
                )
                return name
    notes.append(
        'reward: what do you want more of? Write a formula over columns, such as reward = "-cost - 10 * alarm"'
    )
    return None


def _useful(cell: Cells, name: str, notes: list[str]) -> bool:
    full = cell.array[~cell.empty]
    if cell.kind == "time":
        notes.append(f"column {name!r}: not used; it holds dates")
    elif not len(full) or (full == full[0]).all():
        notes.append(f"column {name!r}: not used; it is empty or always the same")
    elif cell.kind == "word" and len(cell.levels) > LEVELS:
        notes.append(f"column {name!r}: not used; {len(cell.levels)} different words")
    else:
        return True
    return False


def _encodings(cells: Mapping[str, Cells], seen: list[str], drafted: Draft, notes: list[str]) -> None:
    yes_no = tuple(name for name in seen if cells[name].yes_no)
    words = tuple(name for name in seen if cells[name].kind == "word" and not cells[name].yes_no)
    if yes_no:
        drafted["yes_no"] = yes_no
        notes.append("yes_no: they hold two words, one for yes and one for no")
    if words:
        drafted["categories"] = words
        levels = "; ".join(f"{name}: {', '.join(cells[name].levels[:6])}" for name in words)
        notes.append(f"categories: words, which become one number each ({levels})")


def _fills(rows: Rows, names: list[str], drafted: Draft, notes: list[str]) -> None:
    fill = {}
    for name in names:
        empty = rows.cells[name].empty
        if empty.any():
            edges = np.flatnonzero(np.diff(np.r_[0, empty.astype(np.int8), 0]))
            fill[name] = f"forward {int((edges[1::2] - edges[::2]).max())}"
            notes.append(
                f"fill: {name!r} has {int(empty.sum())} empty cells; is the last one before them good enough?"
            )
    if fill:
        drafted["fill"] = fill


def _outside(rows: Rows, seen: list[str], action: str | None, drafted: Draft, notes: list[str]) -> None:
    """Columns whose next value the action says nothing about, once all that is observed is known."""
    if action is None or rows.time is None:
        return
    act = rows.cells[action]
    acts = np.eye(len(act.levels) + 1)[act.array][:, :-1] if act.kind == "word" else act.array[:, None]
    now = [_number(rows.cells[name]) for name in seen]
    clock = [np.sin(2 * np.pi * (rows.time % DAY) / DAY), np.cos(2 * np.pi * (rows.time % DAY) / DAY)]
    inside = np.flatnonzero(~rows.last)[:50_000]
    if len(inside) < LEAST:
        return
    base = np.stack([np.ones(rows.count), *now, *(clock if rows.dated else [])], -1)[inside]
    base = base / np.maximum(np.abs(base).max(0), 1e-9)
    whole = np.concatenate([base, np.nan_to_num(acts)[inside]], -1)
    outside = []
    for name, column in zip(seen, now, strict=True):
        after = column[inside + 1]
        left = [after - x @ np.linalg.lstsq(x, after, rcond=None)[0] for x in (base, whole)]
        plain, known = (float(part @ part) for part in left)
        if (
            plain <= 1e-9 * max(float(after @ after), 1.0)
            or 1 - known / plain < 6 * acts.shape[1] / len(inside) + 5e-4
        ):
            outside.append(name)
    clocks = tuple(cyclic) if isinstance(cyclic := drafted.get("cyclic"), dict) else ()
    if outside or clocks:
        drafted["exogenous"] = (*outside, *clocks)
        notes.append("exogenous: what comes next in them does not depend on the action, as far as a line can tell")


def _whole(array: np.ndarray) -> bool:
    return bool((np.isfinite(array) & (array == np.round(array))).all())


def _number(cell: Cells) -> np.ndarray:
    numbers = np.nan_to_num(cell.array.astype(np.float64), posinf=0.0, neginf=0.0)
    return np.where(np.abs(numbers) < 1e12, numbers, 0.0)  # what is larger is refused when the log is loaded
