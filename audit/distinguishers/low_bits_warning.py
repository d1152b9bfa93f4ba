"""The warning that the low bits of outputs break a claim, from a look at the first outputs that an audit keeps.

The number of outputs may depend on the outputs: a sequential audit stops because of what it saw, and a pilot may be
made longer. So the look is at a prefix of one of a few fixed lengths, each with a share of the error probability.

Proof: docs/proofs/multiplicity.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..claims.claim import Claim
from ..events.events import Event
from ..events.outputs import Outputs
from ..families.low_bits import bit_families
from ..families.pilot_split import PilotSplit
from ..inference.boundary_test import Counts, Direction, directed, strength_lower
from ..printing import rounded_down
from .choice import Choice
from .event_choice import choose_among, expected_excess

FALSE_WARNING = 1e-6
"""Upper bound on the probability of a false warning, outside the audit's alpha."""

# Lengths of the prefix on each dataset, the longest that fits; half of the prefix chooses the event.
_LENGTHS = (20_000, 10_000, 5_000, 2_000, 1_000, 500, 200, 100, 50)
_KINDS = 2  # outputs after the prefix may decide whether the array holds numbers or objects
_HARDLY = 1e-3  # level at which the approximate bound of an event worth the exact test exceeds the claim
_GRIDS = 2  # powers of two whose residues are looked at: enough for a warning


@dataclass(frozen=True, slots=True)
class LowBits:
    """A violation shown by the low bits of outputs: beyond the claim, and beyond what the values show.

    Attributes
    ----------
    event : Event
    likelier_on : {"x", "y"}
    counts : Counts
        Hits in the second half of the first runs on each dataset, at most 20,000, of a pilot or a sequential audit. The
        first half chose the event.
    bound : float
        Lower bound on the strength of the claim's family, false with probability at most 1e-6 wherever the audit
        stops.
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
            f"({self.counts}, after {self.counts.runs_x:,} runs on each that chose the event; false with probability "
            f"at most {FALSE_WARNING:g}). The verdict is about values; bits=True audits the bits too, bits=False "
            "silences this."
        )


def look_at_bits(
    x: Outputs, y: Outputs, claim: Claim, choice: Choice, *, alpha: float = FALSE_WARNING
) -> LowBits | None:
    """A warning if the low bits of the first outputs contradict the claim, and by more than the chosen event does.

    A mechanism that keeps its claim causes a warning with probability at most `alpha`, however the number of outputs
    depends on them. Runs on x must be independent of runs on y, even in a sequential audit, whose bets do not need it.

    Parameters
    ----------
    x, y : ndarray, shape (runs,) or (runs, n_coords), or of objects
        Outputs in the order drawn; fewer than 50 are not looked at.
    """
    fitting = [length for length in _LENGTHS if length <= min(len(x), len(y))]
    if not fitting:
        return None
    length, share = fitting[0], alpha / (_KINDS * len(_LENGTHS))
    x, y = x[:length], y[:length]
    runs = length // 2
    split = PilotSplit.in_half(x[:runs], y[:runs])
    (found,) = choose_among(list(bit_families(split, grids=_GRIDS)), claim, runs, share)
    enough = max(claim.strength, _suggested(choice, claim))
    if found is None or _suggested(found, claim) <= enough:
        return None
    rest = length - runs
    hits_x, hits_y = found.event.count(x[runs:]), found.event.count(y[runs:])
    fresh = replace(found, pilot_hits_x=hits_x, pilot_hits_y=hits_y, pilot_runs=rest)
    if _suggested(fresh, claim, alpha=_HARDLY) <= enough:
        return None
    counts = Counts(hits_x=hits_x, runs_x=rest, hits_y=hits_y, runs_y=rest)
    tested = directed(claim, counts, found.likelier_on)
    bound = strength_lower(tested.counts, tested.claim, alpha=share)
    if bound <= enough:
        return None
    return LowBits(found.event, found.likelier_on, counts, bound, claim.strength_name)


def _suggested(choice: Choice, claim: Claim, *, alpha: float = 0.5) -> float:
    """The strength that the frequencies of an event suggest, or about its lower bound at a smaller alpha."""
    return claim.strength + expected_excess(choice, claim, choice.pilot_runs, alpha, caution=0.0)
