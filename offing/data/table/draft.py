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
from ..schema import ALIASES, Schema
from ..sources import First
from .cells import Cells, Rows, mostly_numbers, with_sign
from .encode import LEVELS, words_of
from .hints import Draft, ending_column, fill_empty, mark_exogenous
from .words import ACTED, EARNED, EPISODES, LADDERS, PLACES, SPENT, UNITS

FEW = 0.1  # of the rows: a unit has at least ten


def _word(name: str) -> str:
    """A column's name as names of kinds are written: without units in brackets, without `id`."""
    plain = re.sub(r"[(\[].*", "", name).strip().lower()
    return re.sub(r"[\s_-]*(id|no|number|nr)$", "", re.sub(r"[\s-]+", "_", plain)) or plain


def draft_table(first: First) -> tuple[Schema, list[str]]:
    """A schema for the cells of a table, and a note `key: reason` for each thing that it says or asks."""
    cells, time, notes = first.cells, first.time, list(first.notes)
    drafted: Draft = {}
    free = [name for name in cells if name != time]
    episode = _episode(cells, notes)
    if time is not None and episode is not None and _shared(cells[episode], cells[time]):
        notes.append(
            f"column {time!r}: not used; rows of an episode share a time, so they stand in the file's order"
        )
        time = None
    if time is not None:
        drafted["time"] = time
        what = "moments" if cells[time].kind == "time" else "numbers, which may be seconds or steps"
        zone = f" of the zone {cells[time].zone}, counted in UTC" if cells[time].zone else ""
        notes.append(f"time: its cells are {what}{zone}; rows are put in its order, within units")
    if episode is not None:
        drafted["episode"] = episode
        free.remove(episode)
    step = None if episode is None else _step(cells, free, cells[episode], notes)
    if step is not None:
        drafted["step"] = step
        free.remove(step)
    unit = () if episode is not None else _unit(cells, time, notes)
    if unit:
        drafted["unit"] = unit if len(unit) > 1 else next(iter(unit))
        free = [name for name in free if name not in unit]
    rows = _rows(cells, time, unit or ((episode,) if episode is not None else ()))
    _rule(rows, drafted, notes)
    ending = ending_column(rows, free, drafted, notes) if unit or episode is not None else None
    free = [name for name in free if name != ending]
    action = _action(cells, free, drafted, notes)
    paid = _reward(free, drafted, notes)
    seen = [name for name in free if name not in (action, paid) and _useful(cells[name], name, notes)]
    if seen:
        drafted["obs"] = tuple(seen)
        acts = "" if action else ", and the column that you decide on, once you have named it as action"
        notes.append(
            f"obs: every column that nothing else uses. A guess: leave out what is not known when you act{acts}"
        )
    _encodings(cells, seen, drafted, notes)
    fill_empty(rows, [*seen, *([action] if action else [])], drafted, notes)
    mark_exogenous(rows, seen, action, drafted, notes)
    return replace(Schema(), **drafted), notes


def _episode(cells: Mapping[str, Cells], notes: list[str]) -> str | None:
    """The column that numbers episodes, if one is called so."""
    named = [name for name in cells if _word(name) in EPISODES and not cells[name].empty.any()]
    if len(named) != 1:
        return None
    notes.append(f"episode: {named[0]!r}, by its name; each of its values is an episode. Check it")
    return named[0]


def _step(cells: Mapping[str, Cells], free: list[str], episode: Cells, notes: list[str]) -> str | None:
    """The column that counts the steps of each episode, if one is called so and does."""
    named = [name for name in free if _word(name) in ALIASES["step"] and not cells[name].empty.any()]
    if len(named) != 1 or cells[named[0]].kind != "number":
        return None
    code, count = np.unique(episode.array, return_inverse=True)[1], cells[named[0]].array
    order = np.lexsort((count, code))
    inside = code[order][1:] == code[order][:-1]
    if not np.all(np.diff(count[order])[inside] == 1):
        return None
    notes.append(f"step: {named[0]!r}, by its name; it counts the steps of each episode. Check it")
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
    count = next(iter(cells.values())).count
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
    free = [name for name in free if not _constant(cells[name]) and len(cells[name].levels) <= LEVELS]
    free = [name for name in free if mostly_numbers(cells[name]) is None]
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


def _constant(cell: Cells) -> bool:
    """Whether it is empty, or always the same where it is not."""
    full = cell.stored[~cell.empty]
    return not len(full) or bool((full == full[0]).all())


def _useful(cell: Cells, name: str, notes: list[str]) -> bool:
    if cell.kind == "time":
        notes.append(f"column {name!r}: not used; it holds dates")
    elif _constant(cell):
        notes.append(f"column {name!r}: not used; it is empty or always the same")
    elif (sign := with_sign(cell)) is not None:
        notes.append(f"column {name!r}: not used; {sign}")
    elif (odd := mostly_numbers(cell)) is not None:
        what = "such as a second row of names, or a mark for an empty cell"
        notes.append(
            f"column {name!r}: not used; most cells are numbers, and {odd[:40]!r} is not ({what}); repair it"
        )
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


def _whole(array: np.ndarray) -> bool:
    return bool((np.isfinite(array) & (array == np.round(array))).all())
