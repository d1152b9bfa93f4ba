"""Outputs drawn on a pair before its audit, with which the pilot begins.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from ..events.outputs import Outputs
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
    """

    plan: Plan
    blocks_x: list[Outputs]
    blocks_y: list[Outputs]

    @property
    def runs(self) -> int:
        """Runs on each dataset."""
        return sum(map(len, self.blocks_x))

    def __str__(self) -> str:
        """What determines the outputs, apart from mechanism and datasets."""
        sizes = ", ".join(map(str, dict.fromkeys(map(len, self.blocks_x))))
        return f"{self.runs:,} in blocks of {sizes} by seed {self.plan.seed}"

    def at_most(self, runs: int) -> EarlierDraws | None:
        """The first whole blocks of at most `runs` runs on each dataset; None if even the first has more."""
        fitting = sum(total <= runs for total in accumulate(map(len, self.blocks_x)))
        if fitting == 0:
            return None
        return EarlierDraws(self.plan, self.blocks_x[:fitting], self.blocks_y[:fitting])
