"""Low bits of floating-point outputs, which a textbook proof over the real numbers ignores: columns, and a warning.

Noise from a floating-point generator lies on a grid, and adding an answer moves or coarsens that grid. So nearly every
mechanism with floating-point noise leaves traces of its dataset in the lowest bits. The verdict keeps this question
apart from that of the values: by default an audit only looks at the bits of the first outputs that it keeps, and warns.

The number of outputs may depend on the outputs: a sequential audit stops because of what it saw, and a pilot may be
made longer. So the check is made on a prefix of one of a few fixed lengths, each with a share of the error
probability.

Proof: docs/proofs/multiplicity.md

References
----------
Mironov (2012), On significance of the least significant bits for differential privacy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..claims.claim import Claim
from ..events.events import Event
from ..events.leaves import learn_leaves
from ..events.outputs import Outputs
from ..events.scores import Column as ColumnScore
from ..events.scores import Coordinate, LowestBit, NegativeZero, Number, Residue, Score
from ..inference.event_test import Counts, Direction, directed, parameter_lower
from ..printing import rounded_down
from .cells import SINGLY, Array, Column, cut_columns
from .choice import DOUBT, Choice, choose_among, expected_excess

_RESIDUES = 8  # number of grids between the finest of the outputs and their spread


def bit_columns(x: Outputs, y: Outputs, *, grids: int = _RESIDUES) -> Iterator[Column]:
    """Columns by the low bits of floating-point parts: lowest bit, residues of so many powers, sign of zero."""
    parts = [*_float_parts(x, y)]
    if x.dtype.kind == "f":  # parts of nested outputs are read alike if they are equal, so not there
        for score, on_x, on_y in parts:
            zero = NegativeZero(score)
            signs = zero.of_values(on_x), zero.of_values(on_y)
            if any((side == 1.0).any() for side in signs):
                yield Column(zero, *signs, curve="each")
    for score, on_x, on_y in parts:
        if not _is_fractional(on_x):
            continue
        lowest = LowestBit(score)
        bits_x, bits_y = lowest.of_values(on_x), lowest.of_values(on_y)
        yield Column(lowest, bits_x, bits_y, curve="each")
        for exponent in _exponents(on_x, int(np.nanmin(bits_x)), grids):
            one = Residue(score, exponent)
            yield Column(one, one.of_values(on_x), one.of_values(on_y), curve="each")


def _float_parts(x: Outputs, y: Outputs) -> Iterator[tuple[Score, Array, Array]]:
    """Scores that read the numbers of floating-point arrays, or of parts of objects, and these numbers."""
    if x.dtype.kind == "f":
        width = x.shape[1] if x.ndim == 2 else 0
        for place in range(min(width, SINGLY) or 1):
            score = Coordinate(place, width) if width else Number()
            yield score, score.values(x), score.values(y)
    elif x.dtype == object and (leaves := learn_leaves(x, y)).paths:
        on_x, on_y = leaves.read(x), leaves.read(y)
        for place, path in enumerate(leaves.paths[:SINGLY], start=1):
            yield (ColumnScore(leaves, place) if path else Number()), on_x[place], on_y[place]


def _is_fractional(values: Array) -> bool:
    values = values[np.isfinite(values)]
    return bool((values != np.rint(values)).any())


def _exponents(values: Array, finest: int, grids: int) -> list[int]:
    """Exponents of the grids to try, evenly from the finest grid of the numbers to their spread."""
    spread = float(np.subtract(*np.quantile(values[np.isfinite(values)], [0.75, 0.25])))
    coarsest = int(np.frexp(spread)[1]) - 1 if spread > 0 else finest
    return sorted({int(k) for k in np.linspace(finest, coarsest, grids + 2)[1:-1].round()})


FALSE_WARNING = 1e-6
"""Upper bound on the probability of a false warning, outside the audit's alpha."""

# Lengths of the prefix on each dataset, the longest that fits; half of the prefix chooses the event.
_LENGTHS = (20_000, 10_000, 5_000, 2_000, 1_000, 500, 200, 100, 50)
_KINDS = 2  # outputs after the prefix may decide whether the array holds numbers or objects
_HARDLY = 1e-3  # level at which the approximate bound of an event worth the exact test exceeds the claim
_GRIDS = 2  # powers of two whose residues are looked at: enough for a warning


@dataclass(frozen=True, slots=True)
class FloatingPointLeak:
    """A violation shown by the low bits of outputs: beyond the claim, and beyond what the values show.

    Attributes
    ----------
    event : Event
    more_likely_on : {"x", "y"}
    counts : Counts
        Counts in the second half of the first runs on each dataset, at most 20,000, of a pilot or a sequential audit.
        The first half chose the event.
    bound : float
        Lower bound on the privacy parameter of the claim's family, false with probability at most 1e-6 wherever the
        audit stops.
    parameter_name : str
    """

    event: Event
    more_likely_on: Direction
    counts: Counts
    bound: float
    parameter_name: str

    def __str__(self) -> str:
        least, runs = rounded_down(self.bound, 3), self.counts.runs_x
        return (
            f"a floating-point leak breaks the claim: {self.parameter_name} >= {least:g} by {self.event} "
            f"({self.counts}, after {runs:,} runs on each that chose the event; false with probability at most "
            f"{FALSE_WARNING:g}). The verdict is about values; floating_point='test' audits leaks too, "
            "floating_point='ignore' silences this."
        )


def floating_point_leak_in(x: Outputs, y: Outputs, claim: Claim, choice: Choice) -> FloatingPointLeak | None:
    """A warning if the low bits of the first outputs contradict the claim, and by more than the chosen event does.

    A mechanism that keeps its claim causes a warning with probability at most 1e-6, however the number of outputs
    depends on them. Runs on x must be independent of runs on y, even in a sequential audit, whose bets do not need it.
    Outputs are in the order drawn; fewer than 50 are not looked at.
    """
    fitting = [length for length in _LENGTHS if length <= min(len(x), len(y))]
    if not fitting:
        return None
    length, share = fitting[0], FALSE_WARNING / (_KINDS * len(_LENGTHS))
    x, y = x[:length], y[:length]
    runs = length // 2
    cuts = cut_columns(bit_columns(x[:runs], y[:runs], grids=_GRIDS))
    found = choose_among(cuts, claim, runs, share, (DOUBT,))
    enough = max(claim.parameter, _suggested(choice, claim, alpha=_HARDLY))
    if not found or _suggested(found[0], claim) <= enough:
        return None
    fresh = found[0].counted_on(x[runs:], y[runs:])
    if _suggested(fresh, claim, alpha=_HARDLY) <= enough:
        return None
    tested = directed(claim, fresh.pilot_counts, fresh.more_likely_on)
    bound = parameter_lower(tested.counts, tested.claim, alpha=share)
    if bound <= enough:
        return None
    return FloatingPointLeak(fresh.event, fresh.more_likely_on, fresh.pilot_counts, bound, claim.parameter_name)


def _suggested(choice: Choice, claim: Claim, *, alpha: float = 0.5) -> float:
    """The privacy parameter that the frequencies of an event suggest, or about its lower bound at a smaller alpha."""
    return claim.parameter + expected_excess(choice, claim, choice.pilot_runs, alpha, penalty=0.0)
