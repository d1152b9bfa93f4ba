"""Outputs drawn on a pair before its audit, with which the pilot begins.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate

from ..distinguishers.choice import Choice
from ..events.outputs import Outputs, merge
from ..sampling.block_plan import Plan


@dataclass(frozen=True, slots=True)
class EarlierDraws:
    """Outputs that a search drew on its pair after choosing it, equally many on x and on y; they never enter a test.

    Attributes
    ----------
    plan : Plan
        The plan that drew them, with a seed other than the audit's.
    blocks_x, blocks_y : list of ndarray
        Outputs block by block, in the order drawn.
    coupled_x, coupled_y : list of ndarray
        Blocks of the runs that chose the pair, with the same random numbers on x and on y. The event may be chosen on
        them too. Nothing else sees them: they are too like each other, and they are why the pair was chosen.
    suggested : Choice, optional
        The event by which the search ranked the pair, with its hits in coupled runs that it was not chosen on.
    """

    plan: Plan
    blocks_x: list[Outputs]
    blocks_y: list[Outputs]
    coupled_x: list[Outputs] = field(default_factory=list)
    coupled_y: list[Outputs] = field(default_factory=list)
    suggested: Choice | None = None

    @property
    def runs(self) -> int:
        """Runs on each dataset."""
        return sum(map(len, self.blocks_x))

    def __str__(self) -> str:
        """What determines the outputs, apart from mechanism and datasets."""
        sizes = ", ".join(map(str, dict.fromkeys(map(len, self.blocks_x))))
        coupled = sum(map(len, self.coupled_x))
        before = f", after {coupled:,} that were coupled" if coupled else ""
        return f"{self.runs:,} in blocks of {sizes} by seed {self.plan.seed}{before}"

    def at_most(self, runs: int) -> EarlierDraws | None:
        """The first whole blocks, of at most `runs` runs on each dataset together; None if the first one has more."""
        alone = _fitting(self.blocks_x, runs)
        if alone == 0:
            return None
        coupled = _fitting(self.coupled_x, runs - sum(map(len, self.blocks_x[:alone])))
        return EarlierDraws(
            self.plan,
            self.blocks_x[:alone],
            self.blocks_y[:alone],
            self.coupled_x[:coupled],
            self.coupled_y[:coupled],
            self.suggested if coupled else None,
        )

    def before(self, x: Outputs, y: Outputs) -> tuple[Outputs, Outputs]:
        """The coupled outputs followed by these, on x and on y."""
        all_x, all_y = merge([*self.coupled_x, x], [*self.coupled_y, y])
        return all_x, all_y


def _fitting(blocks: list[Outputs], runs: int) -> int:
    """How many of the first blocks have at most `runs` runs together."""
    return sum(total <= runs for total in accumulate(map(len, blocks)))
