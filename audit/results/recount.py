"""Counts of an event in separate runs, for comparison with later runs; and accepted findings."""

from __future__ import annotations

import datetime
import enum
import math
from dataclasses import dataclass

from ..errors import RecordError
from ..events.events import Event
from ..inference.boundary_test import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """Hits of an event in runs that neither chose nor tested it.

    Attributes
    ----------
    event : Event or None
        None if a file cannot hold the types of the event's outcomes; then only the forms are compared.
    counts : Counts or None
    forms : tuple of (str, int, int)
        Kinds of outputs, such as "number", "None" or "raises ValueError", with their counts on x and on y.
    looked_at : int
        Runs on each dataset whose forms were recorded.
    seed : int or None
        None if the file does not say.
    stream : str
        Purpose of the runs, such as "baseline main". Runs of other seeds or streams are independent of these.
    """

    event: Event | None
    counts: Counts | None
    forms: tuple[tuple[str, int, int], ...]
    looked_at: int
    seed: int | None = None
    stream: str = ""

    def is_independent_of(self, other: Recount) -> bool:
        """Whether the random numbers were different: another seed or stream.

        False if neither recount records them; a recount without a stream counts as different from one with a stream.
        """
        return (self.seed, self.stream) != (other.seed, other.stream)


class Uncovered(enum.Enum):
    """Why an acceptance does not cover a refutation, as reports state it."""

    EXPIRED = "expired"
    LARGER = "bound above the accepted one"
    STOPPED = "stopped early, so up_to does not cover it"
    BOUNDLESS = "a statement has no bound, so up_to does not cover it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A refutation that is accepted for a stated reason until a date.

    Attributes
    ----------
    reason : str
    until : str
        Last day of the acceptance, such as "2027-06-30".
    up_to : float
        Largest accepted bound, in the units of the claim's strength. The bound of an audit that stopped at its
        refutation lies just above the claim, however large the loss is, so a finite limit does not cover it.
    """

    reason: str
    until: str
    up_to: float = math.inf

    def __post_init__(self) -> None:
        if not self.up_to > 0.0:  # NaN fails
            raise RecordError(f"up_to={self.up_to!r} accepts nothing; use a positive bound.", up_to=self.up_to)
        if not self.reason.strip():
            raise RecordError("an accepted finding needs a reason; state it.")
        try:
            datetime.date.fromisoformat(self.until)
        except (TypeError, ValueError) as error:
            raise RecordError(
                f"until={self.until!r} is not a date; write it like 2027-06-30.", until=self.until
            ) from error

    @property
    def is_limited(self) -> bool:
        """Whether there is a largest accepted bound."""
        return self.up_to < math.inf

    def uncovered(self, bound: float | None, day: datetime.date, *, has_stopped_early: bool) -> Uncovered | None:
        """Return why a refutation is not accepted on a day, or None if it is.

        Parameters
        ----------
        bound : float or None
            None for a statement, which has no bound.
        day : date
        has_stopped_early : bool
            Whether the audit stopped at its refutation, before all runs were made.
        """
        if day > datetime.date.fromisoformat(self.until):
            return Uncovered.EXPIRED
        if not self.is_limited:
            return None
        if bound is None:
            return Uncovered.BOUNDLESS
        if bound > self.up_to:
            return Uncovered.LARGER
        return Uncovered.STOPPED if has_stopped_early else None

    def __str__(self) -> str:
        limit = f" up to {self.up_to:g}" if self.is_limited else ""
        return f"accepted{limit} until {self.until}: {self.reason}"
