"""SOReL, TOReL or neither yet: the questions asked of what is in a log, their limits and answers."""

from __future__ import annotations

from ._warnings import LEAST, share_of, warnings
from .facts import Answer, Facts

BROKEN = 0.01  # share of the steps inside episodes that may start elsewhere than the step before ended
ROWS = 1_000  # rows that a world can be learned from
EPISODES = 25  # a fold sees less than half, and that worlds are calibrated takes ten unseen ones
FOLLOWS = 0.85  # share of the actions' variance that the state may explain
TAKEN = 0.9  # share of discrete actions that the state may predict
CERTAIN = 0.95  # share that a few controllers explain between them if there is nothing else
SLIVER = 0.06  # of the actions' range that actions in similar states must differ by (standard deviation)
Reason = tuple[str, str]  # the system that it speaks for, and the question with its answer


def decide(facts: Facts) -> Answer:
    """Is the log diverse enough to learn a world and trust it, or should an offline planner be tuned on it?

    SOReL promises a value, so it needs a world that is right wherever a new policy may go, hence a log in which
    similar states were met with different actions; and episodes to hold out, or nothing shows that it is right.
    """
    reasons = [_consistent(facts), _enough(facts)]
    if facts.rows >= LEAST:
        reasons.append(tried := _tried(facts))
        if tried[0] == "SOReL":
            reasons.append(_turns(facts))
    answers = [reason for reason in reasons if reason is not None]
    systems = [system for system, _ in answers]
    system = next((s for s in ("neither yet", "TOReL") if s in systems), "SOReL")
    return Answer(system, tuple(reason for _, reason in answers), tuple(warnings(facts)))


def _answer(system: str, question: str, because: str) -> Reason:
    return system, f"{question} {'Yes' if system == 'SOReL' else 'No'}: {because}."


def _consistent(facts: Facts) -> Reason | None:
    if facts.episodes is None:
        return None
    question, jumps = "Is the log consistent from step to step?", facts.jumps
    if jumps is not None and jumps.interleaved and facts.inferred:
        because = (
            "each row jumps from the row before and goes on from one further back, as where rows of several units "
            'are interleaved; name the column that tells them apart (unit = "COLUMN" in a schema)'
        )
        return _answer("neither yet", question, because)
    if facts.inferred:
        usual = "" if jumps is None else f"; a step leads {_beside(jumps.usual, jumps.chance)} rows at random"
        because = "next observations were inferred from the rows that follow, so they fit whatever the rows are"
        return "SOReL", f"{question} It cannot be checked: {because}{usual}."
    because = f"{share_of(facts.broken)} of the steps inside its episodes do not start where the step before ended"
    if facts.broken <= BROKEN:
        return _answer("SOReL", question, because)
    because += f" (at most {BROKEN:.0%} may), so rows are missing, mixed up or mislabelled; repair that first"
    return _answer("neither yet", question, because)


def _beside(usual: float, chance: float) -> str:
    return f"{usual / max(chance, 1e-12):.2g} times as far as"


def _enough(facts: Facts) -> Reason:
    question, rows = "Is there enough of it?", facts.rows
    count = None if facts.episodes is None else facts.episodes.count
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


def _tried(facts: Facts) -> Reason:
    question, acts = "Were similar states met with different actions?", facts.actions
    share, left = acts.predicted, acts.left_over
    if acts.still:
        return _answer("TOReL", question, "the action is always the same")
    if facts.action_kind == "discrete":
        fit, because = share <= TAKEN, f"the state predicts {share_of(share)} of the choices"
        narrow = f"above {TAKEN:.0%} the log shows what one way of acting leads to, and not what others would"
        return _answer("SOReL" if fit else "TOReL", question, because if fit else f"{because}; {narrow}")
    because = (
        f"the state explains {share_of(share)} of how actions vary, and in similar states they differ by "
        f"{share_of(left)} of their range"
    )
    if share > FOLLOWS:
        why = f"above {FOLLOWS:.0%} the state all but settles the action, and where others lead is not shown"
        return _answer("TOReL", question, f"{because}; {why}")
    if left < SLIVER:
        why = f"under {SLIVER:.0%} little is shown of where other actions lead"
        return _answer("TOReL", question, f"{because}; {why}")
    return _answer("SOReL", question, because)


def _turns(facts: Facts) -> Reason | None:
    drivers = facts.actions.controllers
    if drivers is None:
        return None
    question, count = "Did more than a few controllers drive it?", drivers.count
    what = "the choices" if facts.action_kind == "discrete" else "how actions vary"
    if count is not None:
        share = share_of(drivers.predicted[count - 1])
        because = (
            f"{count} controllers that take turns by episode explain {share} of {what}, so a state was met with "
            f"{count} actions at most"
        )
        if count == 1:
            because = f"one controller explains {share} of {what} in the episodes that it was learned from"
        return _answer("TOReL", question, because)
    share = share_of(max(drivers.predicted))
    several = (
        "and episodes differ in how they act"
        if drivers.alone > drivers.predicted[0] + 0.1
        else "and episodes act alike on the whole, each with much chance"
    )
    because = f"{len(drivers.predicted)} deterministic ones explain no more than {share} of {what}, {several}"
    return _answer("SOReL", question, because)
