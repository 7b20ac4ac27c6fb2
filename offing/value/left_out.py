"""What is added to a result may fail on its own: it is then left out, with its reason, and the result stands."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..types import BadInput

T = TypeVar("T")


@dataclass(frozen=True)
class LeftOut:
    """Stands where an addition would, and says in a clause why it is not there."""

    left_out: str

    @property
    def reason(self) -> str:
        return self.left_out


def attempt(work: Callable[[], T]) -> T | LeftOut:
    """What the work comes to, or LeftOut if it fails in any way; only a lack of memory goes on upwards."""
    try:
        return work()
    except MemoryError:
        raise
    except Exception as error:  # whatever it is, it must not take away what is already known
        logging.getLogger("offing").debug("left out", exc_info=True)
        return LeftOut(reason(error))


def reason(error: Exception) -> str:
    """Why something failed, on one line: the message of bad input, else the error as Python names it."""
    message = " ".join(str(error).split())
    if isinstance(error, BadInput):
        return message.rstrip(".")
    return f"it failed with {type(error).__name__}{f': {message}' if message else ''}".rstrip(".")
