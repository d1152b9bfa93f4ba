"""The counts of an event in separate runs, and a finding that somebody has accepted."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass

from ..errors import RecordError
from ..events.events import Event
from ..inference.counts import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Recount:
    """An event's hits in runs that neither chose it nor tested it.

    Attributes
    ----------
    event : Event or None
        None where the event's outcomes are of types that no file holds; then the forms alone are compared.
    counts : Counts or None
    forms : tuple of (str, int, int)
        What kinds of outputs came, such as "number", "None" or "raises ValueError", and how often on x and on y.
    looked_at : int
        Runs on each dataset whose forms were noted.
    seed : int or None
        None where a file does not say.
    stream : str
        What the runs were for, such as "baseline main". Runs of other seeds or other streams are independent of these.
    """

    event: Event | None
    counts: Counts | None
    forms: tuple[tuple[str, int, int], ...]
    looked_at: int
    seed: int | None = None
    stream: str = ""

    def is_independent_of(self, other: Recount) -> bool:
        """Whether the random numbers were others; false where neither says which they were.

        One that says so and one that does not are taken for others: records that name no stream are older than streams.
        """
        return (self.seed, self.stream) != (other.seed, other.stream)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A finding that somebody has accepted, with the reason, until a day.

    Attributes
    ----------
    reason : str
    until : str
        The last day on which it holds, such as "2027-06-30".
    up_to : float
        Largest bound that is accepted, in the units of the claim's strength.
    """

    reason: str
    until: str
    up_to: float = math.inf

    def __post_init__(self) -> None:
        if not self.up_to > 0.0:  # NaN fails
            raise RecordError(f"up_to={self.up_to!r} accepts nothing; use a positive bound.", up_to=self.up_to)
        if not self.reason.strip():
            raise RecordError("an accepted finding needs a reason; say why it is accepted.")
        try:
            datetime.date.fromisoformat(self.until)
        except (TypeError, ValueError) as error:
            raise RecordError(f"until={self.until!r} is no day; write it like 2027-06-30.", until=self.until) from error

    def covers(self, bound: float, day: datetime.date) -> bool:
        """Whether a refutation with this bound is accepted on a day."""
        return day <= datetime.date.fromisoformat(self.until) and bound <= self.up_to

    def __str__(self) -> str:
        limit = f" up to {self.up_to:g}" if self.up_to < math.inf else ""
        return f"accepted{limit} until {self.until}: {self.reason}"
