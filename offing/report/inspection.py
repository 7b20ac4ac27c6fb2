"""What is in a log, for people: tables for a terminal, and a page that stands alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from ..data.facts import Clock, Controllers, EpisodeFacts, Facts, ObservationFacts, Spread
from .inspection_figures import pictures
from .page import _reason, environment
from .store import write, write_json
from .verdict import number, percent

RESULT = "inspect.json"
PAGE = "inspect.html"
TONES = {"SOReL": "go", "TOReL": "unsure", "neither yet": "stop"}
ADVICE = {
    "SOReL": "Diverse enough to learn worlds from, to plan in them, and to have the policy's value predicted.",
    "TOReL": "Tune an offline planner on it and have its policies ranked; it does not carry a promise of what "
    "they will earn.",
    "neither yet": "Neither SOReL nor TOReL can use it as it is.",
}
NUMBERS = {
    "mean": "mean",
    "std": "std",
    "min": "min",
    "q25": "25%",
    "median": "median",
    "q75": "75%",
    "max": "max",
}
LISTED = 24  # columns that a terminal lists
PRINTED = 200  # columns that the page lists


class Listing(NamedTuple):
    """A table of texts."""

    head: list[str]
    rows: list[list[str]]


def save_inspection(out: Path, facts: Facts) -> None:
    """Writes the page, then `inspect.json`."""
    write(out / PAGE, page(facts).encode())
    write_json(out / RESULT, facts)


def page(facts: Facts) -> str:
    """The HTML page of what `inspect.json` holds."""
    return (
        environment()
        .get_template("inspection.html.jinja")
        .render(
            facts=facts,
            tone=TONES[facts.answer.system],
            advice=ADVICE[facts.answer.system],
            reasons=[_reason(text) for text in facts.answer.reasons],
            lines=lines(facts),
            tables=tables(facts),
            most=PRINTED,
            pictures=pictures(facts),
        )
    )


def lines(facts: Facts) -> list[tuple[str, str]]:
    """Sizes, ends, returns and what was measured, a line each."""
    space = f"{facts.action_width} {'choices' if facts.action_kind == 'discrete' else 'continuous'}"
    return [
        ("rows", f"{facts.rows:,} ({facts.bytes / 1e6:,.1f} MB)"),
        *([("units", _units(facts))] if facts.units else []),
        *([("time", _time(facts.clock)), ("gaps", _gaps(facts.clock))] if facts.clock is not None else []),
        ("observations", f"{facts.obs_width}"),
        *([("no action changes", ", ".join(facts.exogenous[:24]))] if facts.exogenous else []),
        *([("what no action seems to change", _untouched(facts))] if facts.effects else []),
        ("actions", space),
        ("horizon, discount", f"{facts.horizon:,}, {facts.discount:g}"),
        *_episodes(facts, facts.episodes),
        *_jumps(facts),
        *_acting(facts),
        *_rows(facts),
    ]


def _units(facts: Facts) -> str:
    most, least = facts.units[0].rows, facts.units[-1].rows
    each = f"{most:,}" if most == least else f"{least:,} to {most:,}"
    some = ", ".join(unit.name for unit in facts.units[:6]) + (", …" if facts.unit_count > 6 else "")
    return f"{facts.unit_count:,} ({some}), {each} rows each"


def _time(clock: Clock) -> str:
    if not clock.dated:
        return f"{clock.first:.12g} to {clock.last:.12g}, usual step {number(clock.usual)}"
    first, last = (
        datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%d %H:%M") for each in (clock.first, clock.last)
    )
    return f"{first} to {last}, usual step {duration(clock.usual)}"


def _gaps(clock: Clock) -> str:
    longest = duration(clock.longest) if clock.dated else number(clock.longest)
    gaps = f"{clock.gaps:,}, the longest {longest}" if clock.gaps else "none"
    return f"{gaps}; {percent(clock.other)} of the steps differ from the usual one"


def duration(seconds: float) -> str:
    """A length of time in the largest unit that it fills."""
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{number(seconds / size)} {word}"
    return f"{number(seconds)} s"


def _untouched(facts: Facts) -> str:
    free = [effect.name for effect in facts.effects if effect.exogenous]
    return (", ".join(free[:24]) + (", …" if len(free) > 24 else "")) or "nothing"


def _episodes(facts: Facts, episodes: EpisodeFacts | None) -> Iterator[tuple[str, str]]:
    if episodes is None:
        yield "episodes", f"none: a bag of transitions, of which {facts.ends:,} end an episode"
        return
    ended, full, cut = episodes.terminated, episodes.at_horizon, episodes.cut
    yield "episodes", f"{episodes.count:,}: {ended:,} ended, {full:,} ran to the horizon, {cut:,} cut short"
    broken = "cannot be checked: next observations were inferred" if facts.inferred else percent(facts.broken)
    yield "steps that do not follow", broken


def _jumps(facts: Facts) -> Iterator[tuple[str, str]]:
    jumps = facts.jumps
    if jumps is not None:
        far = f"; {percent(jumps.share)} are over ten times that" if jumps.share else ""
        yield (
            "usual step",
            f"{number(jumps.usual)} standard deviations (rows at random: {number(jumps.chance)}){far}",
        )


def _acting(facts: Facts) -> Iterator[tuple[str, str]]:
    acts, discrete = facts.actions, facts.action_kind == "discrete"
    yield f"{'choices' if discrete else 'actions'} predicted by the state", percent(acts.predicted)
    yield (
        "left over in similar states",
        f"{percent(acts.left_over)} {'of choices' if discrete else 'of the range'}",
    )
    yield "who drove it", controllers(acts.controllers)
    if facts.alignment is not None:
        words = {
            "aligned": "its own row's",
            "late": "that of the row after: actions seem to stand a row too late",
            "early": "that of the row before: actions seem to stand a row too early",
            "unknown": "unknown: no action tells where a step leads",
        }
        yield "the action that moves a step", words[facts.alignment.word]
    if facts.leak is not None:
        leak = facts.leak
        yield "rewards explained", f"{percent(leak.step)} by a step, {percent(leak.after)} with the row after it"


def _rows(facts: Facts) -> Iterator[tuple[str, str]]:
    cover, copies, drift = facts.coverage, facts.copies, facts.drift
    near, far = number(cover.median_distance), number(cover.far_distance)
    yield "nearest row of another episode", f"{near} standard deviations a column (1 in 100: {far})"
    yield "directions it spreads in", f"{number(cover.directions)} of {cover.width}"
    again = f"; {copies.episodes:,} whole episodes" if copies.episodes else ""
    yield "rows that repeat another", f"{percent(copies.exact)}, nearly {percent(copies.near)}{again}"
    if drift is None:
        yield "drift", "not measured: too few rows, or drawn in random order"
        return
    parts = {"observations": drift.observations, "actions": drift.actions, "rewards": drift.rewards}
    moved = ", ".join(f"{name} {number(part.moved)}" for name, part in parts.items())
    how = "time" if drift.by == "time" else "the log's order"
    yield f"drift by {how}, first to last quarter", f"{moved} standard deviations"


def controllers(drivers: Controllers | None) -> str:
    """How many ways of acting there are, in words."""
    if drivers is None:
        return "unknown: too few long episodes"
    if drivers.count is not None:
        share = percent(drivers.predicted[drivers.count - 1])
        what = "one controller explains" if drivers.count == 1 else f"{drivers.count} controllers by turns explain"
        return f"{what} {share}"
    what = "several ways of acting: " if drivers.alone > drivers.predicted[0] + 0.1 else ""
    one, each = percent(drivers.predicted[0]), percent(drivers.alone)
    return f"{what}one controller explains {one}, one an episode {each}"


def tables(facts: Facts) -> dict[str, Listing]:
    """Head and rows of every table, cells as text."""
    episodes, acts = facts.episodes, facts.actions
    sums: dict[str, Spread] = {"reward of a step": facts.rewards}
    if episodes is not None:
        sums |= {"length": episodes.lengths, "return": episodes.returns}
        if episodes.whole_returns is not None:
            sums["return of whole episodes"] = episodes.whole_returns
        sums["discounted return"] = episodes.discounted
    made = {"Rewards and episodes": _listing(sums, {})}
    if facts.reward_parts:
        parts = [[part.text, number(part.mean), number(part.std)] for part in facts.reward_parts]
        made["What the reward adds up"] = Listing(["", "mean of a step", "std"], parts)
    if facts.units:
        rows = [[u.name, f"{u.rows:,}", f"{u.episodes:,}", number(u.reward)] for u in facts.units]
        made["Units"] = Listing(["", "rows", "episodes", "reward of a step"], rows)
    if facts.action_kind == "discrete":
        shares = zip(facts.action_names, acts.shares, strict=True)
        made["Actions"] = Listing(["", "taken"], [[name, percent(share)] for name, share in shares])
    else:
        left = [percent(amount.left_over) for amount in acts.amounts]
        allowed = [f"{number(amount.low)} to {number(amount.high)}" for amount in acts.amounts]
        columns = dict(zip(facts.action_names, acts.amounts, strict=True))
        made["Actions"] = _listing(columns, {"allowed": allowed, "left over": left})
    seen = dict(zip(facts.names, facts.observations, strict=True))
    made["Observations"] = _listing(seen, {"": [", ".join(_remarks(column)) for column in facts.observations]})
    return made


def _listing(columns: Mapping[str, Spread], more: dict[str, Sequence[str]]) -> Listing:
    rows = [
        [name, *(number(getattr(column, key)) for key in NUMBERS), *(texts[i] for texts in more.values())]
        for i, (name, column) in enumerate(columns.items())
    ]
    return Listing(["", *NUMBERS.values(), *more], rows)


def _remarks(column: ObservationFacts) -> Iterator[str]:
    if column.constant:
        yield "constant"
    elif column.values <= 20:
        yield f"{column.values} values"
    for wall in column.walls:
        if wall is not None:
            yield f"stops at {number(wall)}"


def printed(facts: Facts) -> Iterator[Table]:
    """The tables for a terminal."""
    head = Table(box=None, pad_edge=False, show_header=False, title_justify="left")
    head.add_column(style="dim", no_wrap=True)
    head.add_column()
    for name, value in lines(facts):
        head.add_row(_plain(name), _plain(value))
    yield head
    for title, content in tables(facts).items():
        table = Table(box=None, pad_edge=False, header_style="bold")
        for i, name in enumerate(content.head):
            left = i == 0 or not name
            table.add_column(title if i == 0 else name, justify="left" if left else "right", no_wrap=not left)
        for row in content.rows[:LISTED]:
            table.add_row(*map(_plain, row))
        if len(content.rows) > LISTED:
            table.add_row(f"… and {len(content.rows) - LISTED} more")
        yield table


def _plain(text: str) -> Text:
    return Text(text)  # brackets are not markup


def summary(facts: Facts) -> list[str]:
    """Notes, warnings and the answer with its reasons, the answer last."""
    answer = facts.answer
    return [
        *(f"note: {note}" for note in facts.notes),
        *(f"look: {warning}" for warning in answer.warnings),
        f"SOReL or TOReL? {answer.system}. {ADVICE[answer.system]}",
        *(f"  {reason}" for reason in answer.reasons),
    ]
