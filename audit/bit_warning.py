"""The warning that the low bits of outputs break a claim, from a look at the pilot."""

from __future__ import annotations

from dataclasses import dataclass

from .bits import bit_families
from .claims import Claim
from .distinguishers import Choice, Direction, choose_among, expected_excess
from .events import Event
from .inference.counts import Counts
from .inference.joint import joint_test
from .outputs import Outputs
from .rounding import rounded_down

_LOOK = 20_000  # pilot runs on each side that a warning is based on, half of them to choose its event
_GRIDS = 2  # powers of two that outputs are looked at modulo: enough to see that something is there
_LOOK_ALPHA = 1e-6  # of a warning, which is outside the audit's alpha


@dataclass(frozen=True, slots=True)
class LowBits:
    """What the low bits of the pilot outputs say, where that is more than the claim allows and the values show.

    Attributes
    ----------
    event : Event
    likelier_on : {"x", "y"}
    counts : Counts
        Of pilot runs that the event was not chosen on.
    bound : float
        Lower bound on the strength of the claim's family, false with probability at most 1e-6.
    strength_name : str
    """

    event: Event
    likelier_on: Direction
    counts: Counts
    bound: float
    strength_name: str

    def __str__(self) -> str:
        return (
            f"the low bits break the claim: {self.strength_name} >= {rounded_down(self.bound, 3):g} by {self.event} "
            f"({self.counts}, pilot runs). The verdict is about values; bits=True audits the bits too, bits=False "
            "silences this."
        )


def look_at_bits(x: Outputs, y: Outputs, claim: Claim, choice: Choice) -> LowBits | None:
    """A warning, where the low bits of pilot outputs contradict the claim, and by more than the chosen event does."""
    x, y = x[:_LOOK], y[:_LOOK]
    runs = min(len(x), len(y)) // 2
    quarter = runs // 2
    parts = (x[:quarter], y[:quarter], x[quarter:runs], y[quarter:runs])
    found = choose_among(list(bit_families(parts, grids=_GRIDS)), claim, runs, _LOOK_ALPHA)
    enough = max(claim.strength, _suggested(choice, claim))
    if found is None or _suggested(found, claim) <= enough:
        return None
    counts = Counts(
        hits_x=found.event.count(x[runs:]),
        runs_x=len(x) - runs,
        hits_y=found.event.count(y[runs:]),
        runs_y=len(y) - runs,
    )
    directed, tested = (counts, claim) if found.likelier_on == "x" else (counts.swapped(), claim.reversed())
    bound = joint_test(directed, tested, alpha=_LOOK_ALPHA)[1]
    if bound <= enough:
        return None
    return LowBits(found.event, found.likelier_on, counts, bound, claim.strength_name)


def _suggested(choice: Choice, claim: Claim) -> float:
    """The strength that the pilot's frequencies of an event suggest, with nothing taken off."""
    return claim.strength + expected_excess(choice, claim, choice.pilot_runs, 0.5, caution=0.0)
