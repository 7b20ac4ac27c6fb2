"""What else to know before using a log: a sentence for each thing that is odd, with what to write or look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._glance import TIES
from ._guess import VALUES
from .facts import Facts, Moved

LEAST = 100  # rows: with fewer nothing can be said
COPIES = 0.05  # share of the rows that may be copies of others
JUMPS = 0.001  # share of the steps that may be jumps
OTHER = 0.2  # share of the steps of time that may have another length than the usual one
TOUCHED = 0.05  # of what the state leaves open: so much explained by the action is no accident


def warnings(facts: Facts) -> Iterator[str]:
    """Every warning, those about rows and time first."""
    for part in (_of_time, _of_rows, _of_columns, _of_rewards, _of_actions, _of_episodes):
        yield from part(facts)


def _of_time(facts: Facts) -> Iterator[str]:
    clock = facts.clock
    if clock is not None and clock.backwards:
        yield (
            f"the clock goes back {clock.backwards:,} times within a unit, as when summer time ends or files are "
            "joined; rows were sorted by time, so look at the rows there"
        )
    if clock is not None and clock.other > OTHER:
        yield (
            f'{share_of(clock.other)} of the steps of time differ from the usual one; every = "15min" in the '
            "schema resamples them"
        )
    drift = facts.drift
    if drift is None:
        return
    when = "of its time" if drift.by == "time" else "of the log"
    for name, moved in (
        ("observations", drift.observations),
        ("actions", drift.actions),
        ("rewards", drift.rewards),
    ):
        if moved.sure:
            yield (
                f"{name} drift: {_which(facts, name, moved)}by {moved.moved:.1f} standard deviations from the "
                f"first quarter {when} to the last, as when a learner learns, a world changes, or a log is sorted"
            )


def _which(facts: Facts, name: str, moved: Moved) -> str:
    names = {"observations": facts.names, "actions": facts.action_names}.get(name)
    return "" if names is None else f"{names[moved.column]} "


def _of_rows(facts: Facts) -> Iterator[str]:
    jumps, copies = facts.jumps, facts.copies
    if jumps is not None and jumps.interleaved and not facts.inferred:
        yield "rows jump from the row before and go on from one further back, as where units are interleaved"
    if jumps is not None and jumps.share > JUMPS:
        yield (
            f"{share_of(jumps.share)} of the steps are more than ten times the usual one, {jumps.worst} most of "
            "all: a reset, a sensor that failed, or rows of another unit"
        )
    if copies.dropped:
        yield f"{copies.dropped:,} rows were copies of the row before, and were dropped"
    if copies.exact > COPIES:
        yield f"{share_of(copies.exact)} of the rows are exact copies of other rows"
    elif copies.near > COPIES:
        yield f"{share_of(copies.near)} of the rows nearly repeat other rows"
    if copies.episodes:
        yield f"{copies.episodes:,} episodes are copies of others: held out, they prove nothing"


def _of_columns(facts: Facts) -> Iterator[str]:
    columns = list(zip(facts.names, facts.observations, strict=True))
    if same := [name for name, column in columns if column.constant]:
        yield f"{_listed(same)}: constant, and says nothing"
    few = min(VALUES, facts.rows // 10)
    if labels := [name for name, column in columns if not column.constant and column.values <= few]:
        yield f"{_listed(labels)}: few values, like a switch or a label"
    if walls := [name for name, column in columns if any(wall is not None for wall in column.walls)]:
        yield f"{_listed(walls)}: stops at a value that {TIES} rows or more share, as at the end of a rail"
    moved = [effect.name for effect in facts.effects if effect.named and effect.share > TOUCHED]
    if moved:
        yield f"{_listed(moved)}: the schema says that no action changes it, but the action tells its next value"
    if facts.exogenous:
        constant = {name for name, column in columns if column.constant}
        free = [e.name for e in facts.effects if e.exogenous and not e.named and e.name not in constant]
        if free:
            yield (
                f"{_listed(free)}: no action seems to change it within a step; name it in `exogenous` if none ever"
                " does, at once or later (before worlds are learned, a test of its own looks for such columns)"
            )


def _of_rewards(facts: Facts) -> Iterator[str]:
    if facts.rewards.min == facts.rewards.max:
        effect = (
            ": all policies earn alike" if facts.ends == 0 else ", so only when episodes end tells policies apart"
        )
        yield "every reward is the same" + effect
    leak = facts.leak
    if leak is None:
        return
    if leak.of_episode:
        yield (
            "every row of an episode has the same reward, as where an outcome was written into each of its rows: "
            "it is then counted as often as there are rows; pay it once, at the end"
        )
    elif leak.ahead:
        yield (
            f"rewards know what comes later: a step explains {share_of(leak.step)} of them, and with the row "
            f"after it {share_of(leak.after)}; pay for a step what was known when it ended"
        )
    if leak.column:
        yield (
            f"{leak.column}: is the reward itself; if it is measured after acting, a policy cannot see it, so "
            "leave it out of the observation"
        )


def _of_actions(facts: Facts) -> Iterator[str]:
    acts, line = facts.actions, facts.alignment
    if line is not None and line.word == "late":
        yield (
            f"actions seem to stand a row too late: steps of {line.column} follow the action of the row after, "
            'not their own; write action_at = "next row" in the schema if an action is logged with what it led to'
        )
    if line is not None and line.word == "early":
        yield (
            f"actions seem to follow the next observation: steps of {line.column} depend on the action of the "
            "row before more than on their own, so actions stand a row too early, or work with a delay (then "
            "name lags)"
        )
    if not acts.still and acts.unchanging is not None and acts.unchanging > 0.5 and facts.rows >= LEAST:
        yield f"in {share_of(acts.unchanging)} of the episodes the action never changes"
    if facts.action_kind == "discrete" and acts.used < 1:
        never = [n for n, share in zip(facts.action_names, acts.shares, strict=True) if share == 0]
        yield f"choices that were never taken: {', '.join(name.split('=')[-1] for name in never[:20])}"
    if facts.action_kind == "continuous" and acts.used < 0.5 and facts.rows >= LEAST:
        yield f"only {share_of(acts.used)} of the actions' allowed range was used"


def _of_episodes(facts: Facts) -> Iterator[str]:
    episodes = facts.episodes
    if episodes is not None and facts.ends == 0:
        yield "no episode ended by itself: learned worlds will end at the horizon alone"
    if episodes is not None and episodes.cut > episodes.count // 2:
        yield (
            f"{episodes.cut:,} of {episodes.count:,} episodes are cut short: their returns are parts of returns"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def share_of(share: float) -> str:
    """A share in per cent, with as many digits as it takes."""
    return f"{share:.0%}" if share == 0 or share >= 0.1 else f"{share:.1%}" if share >= 0.001 else "under 0.1%"
