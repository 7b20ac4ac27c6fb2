"""SOReL, TOReL or neither yet: the questions asked of what is in a log, their limits, and what else to know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ._glance import TIES
from ._guess import VALUES

BROKEN = 0.01  # share of the steps inside episodes that may start elsewhere than the step before ended
LEAST = 100  # rows: with fewer nothing can be said
ROWS = 1_000  # rows that a world can be learned from
EPISODES = 25  # a fold sees less than half, and that worlds are calibrated takes ten unseen ones
FOLLOWS = 0.85  # share of the actions' variance that the state may explain
TAKEN = 0.9  # share of discrete actions that the state may foretell
CERTAIN = 0.95  # share that a few controllers explain between them if there is nothing else
SLIVER = 0.06  # of the actions' range that actions in alike states must differ by (standard deviation)
DRIFT = 0.5  # standard deviations that a column may move from the first quarter of a log to the last
SURE = 4.0  # standard errors by which a drift must show
COPIES = 0.05  # share of the rows that may be copies of others


class Answer(NamedTuple):
    """SOReL, TOReL or neither yet; why, as answers to questions; and what else to know."""

    system: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


def decide(found: dict[str, Any]) -> Answer:
    """Is the log diverse enough to learn a world and trust it, or should an offline planner be tuned on it?

    SOReL promises a value, so it needs a world that is right wherever a new policy may go, hence a log in which
    alike states were met with different actions; and episodes to hold out, or nothing shows that it is right.
    """
    asked = [_whole(found), _enough(found)]
    if found["rows"] >= LEAST:
        asked.append(tried := _tried(found))
        if tried[0] == "SOReL":
            asked.append(_turns(found))
    answers = [answer for answer in asked if answer is not None]
    systems = [system for system, _ in answers]
    system = next((s for s in ("neither yet", "TOReL") if s in systems), "SOReL")
    return Answer(system, tuple(reason for _, reason in answers), tuple(warn(found)))


def _answer(system: str, question: str, because: str) -> tuple[str, str]:
    return system, f"{question} {'Yes' if system == 'SOReL' else 'No'}: {because}."


def _whole(found: dict[str, Any]) -> tuple[str, str] | None:
    if found["episodes"] is None:
        return None
    share = _percent(found["broken"])
    because = f"{share} of the steps inside its episodes do not start where the step before ended"
    if found["inferred"]:
        why = "next observations were inferred from the rows that follow"
        return "SOReL", f"Does the log hang together? It cannot be checked: {why}."
    if found["broken"] <= BROKEN:
        return _answer("SOReL", "Does the log hang together?", because)
    because += f" (at most {BROKEN:.0%} may), so rows are missing, mixed up or mislabelled; repair that first"
    return _answer("neither yet", "Does the log hang together?", because)


def _enough(found: dict[str, Any]) -> tuple[str, str]:
    question, rows = "Is there enough of it?", found["rows"]
    count = None if found["episodes"] is None else found["episodes"]["count"]
    have = f"{rows:,} rows" + ("" if count is None else f" in {count:,} episode{'s' * (count != 1)}")
    if rows < LEAST or count == 1:
        why = (
            "with one episode none can be held out"
            if rows >= LEAST
            else f"at least {LEAST} rows are needed to tell"
        )
        return _answer("neither yet", question, f"{have}; {why}")
    if rows < ROWS:
        return _answer("TOReL", question, f"{have}; a world that can be trusted takes {ROWS:,} or more")
    if count is None:
        why = "without episodes nothing says where one begins, and rows held out may lie beside rows learned from"
        return _answer(
            "TOReL", question, f"{have} but no episodes; {why}, so a predicted value could not be trusted"
        )
    if count < EPISODES:
        why = f"from {EPISODES} on, enough can be held out to show that learned worlds know how wrong they are"
        return _answer("TOReL", question, f"{have}; {why}")
    return _answer("SOReL", question, have)


def _tried(found: dict[str, Any]) -> tuple[str, str]:
    question, acts = "Were alike states met with different actions?", found["actions"]
    share, left = acts["foretold"], acts["left_over"]
    if acts["still"]:
        return _answer("TOReL", question, "the action is always the same")
    if found["action_kind"] == "discrete":
        fit, because = share <= TAKEN, f"the state foretells {_percent(share)} of the choices"
        narrow = f"above {TAKEN:.0%} the log shows what one way of acting leads to, and not what others would"
        return _answer("SOReL" if fit else "TOReL", question, because if fit else f"{because}; {narrow}")
    because = (
        f"the state explains {_percent(share)} of how actions vary, and in alike states they differ by "
        f"{_percent(left)} of their range"
    )
    if share > FOLLOWS:
        why = f"above {FOLLOWS:.0%} the state all but settles the action, and where others lead is not shown"
        return _answer("TOReL", question, f"{because}; {why}")
    if left < SLIVER:
        why = f"under {SLIVER:.0%} little is shown of where other actions lead"
        return _answer("TOReL", question, f"{because}; {why}")
    return _answer("SOReL", question, because)


def _turns(found: dict[str, Any]) -> tuple[str, str] | None:
    told = found["actions"]["controllers"]
    if told is None:
        return None
    question, count = "Did more than a few controllers drive it?", told["count"]
    what = "the choices" if found["action_kind"] == "discrete" else "how actions vary"
    if count is not None:
        share = _percent(told["foretold"][count - 1])
        because = (
            f"{count} controllers that take turns by episode explain {share} of {what}, so a state was met with "
            f"{count} actions at most"
        )
        if count == 1:
            because = f"one controller explains {share} of {what} in the episodes that it was learned from"
        return _answer("TOReL", question, because)
    one, alone, most = told["foretold"][0], told["alone"], len(told["foretold"])
    share = _percent(max(told["foretold"]))
    several = (
        "and episodes differ in how they act"
        if alone > one + 0.1
        else "and episodes act alike on the whole, each with much chance"
    )
    return _answer(
        "SOReL", question, f"{most} deterministic ones explain no more than {share} of {what}, {several}"
    )


def warn(found: dict[str, Any]) -> Iterator[str]:
    """What else to know before using the log."""
    columns, told = found["observations"], found["episodes"]
    named = lambda these: (
        ", ".join(found["names"][i] for i in these[:8]) + (f" and {len(these) - 8} more" if len(these) > 8 else "")
    )
    if same := [i for i, c in enumerate(columns) if c["constant"]]:
        yield f"{named(same)}: constant, and says nothing"
    if few := [
        i for i, c in enumerate(columns) if not c["constant"] and c["values"] <= min(VALUES, found["rows"] // 10)
    ]:
        yield f"{named(few)}: few values, like a switch or a label"
    if walls := [i for i, c in enumerate(columns) if any(w is not None for w in c["walls"])]:
        yield f"{named(walls)}: stops at a value that {TIES} rows or more share, as at the end of a rail"
    if found["rewards"]["min"] == found["rewards"]["max"]:
        alike = (
            ": all policies earn alike"
            if found["ends"] == 0
            else ", so only when episodes end tells policies apart"
        )
        yield "every reward is the same" + alike
    if found["copies"]["exact"] > COPIES:
        yield f"{_percent(found['copies']['exact'])} of the rows are exact copies of other rows"
    elif found["copies"]["near"] > COPIES:
        yield f"{_percent(found['copies']['near'])} of the rows nearly repeat other rows"
    if found["copies"].get("episodes"):
        yield f"{found['copies']['episodes']:,} episodes are copies of others: held out, they prove nothing"
    for name, moved in (found["drift"] or {}).items():
        if moved["sure"]:
            yield (
                f"{name} drift: by {moved['moved']:.1f} standard deviations from the first quarter of the log "
                "to the last, as when a learner learns, a world changes, or a log is sorted"
            )
    if told is not None and found["ends"] == 0:
        yield "no episode ended by itself: learned worlds will end at the horizon alone"
    if told is not None and told["cut"] > told["count"] // 2:
        yield f"{told['cut']:,} of {told['count']:,} episodes are cut short: their returns are parts of returns"
    if found["action_kind"] == "discrete" and found["actions"]["used"] < 1:
        never = [str(i) for i, share in enumerate(found["actions"]["shares"]) if share == 0]
        yield f"choices that were never taken: {', '.join(never[:20])}"
    if found["action_kind"] == "continuous" and found["actions"]["used"] < 0.5 and found["rows"] >= LEAST:
        yield f"only {_percent(found['actions']['used'])} of the actions' allowed range was used"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == 0 or share >= 0.1 else f"{share:.1%}" if share >= 0.001 else "under 0.1%"
