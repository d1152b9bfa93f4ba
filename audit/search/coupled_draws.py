"""Coupled runs, drawn once on each dataset and shared by all pairs that contain it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..events.outputs import Outputs
from ..sampling.block_plan import SIDES, Plan
from ..sampling.draw import draw_pilot

Ends = tuple[Hashable, Hashable]


@dataclass(slots=True)
class CoupledDraws:
    """Outputs by dataset, in the steps by which pilots grow, which are the same for all pairs.

    Attributes
    ----------
    executions : int
        Runs so far, on all datasets together.
    """

    executions: int = 0
    _steps: dict[tuple[Hashable, int], list[list[Outputs]]] = field(default_factory=dict)  # by dataset and block size

    def step(
        self, plan: Plan, ends: Ends, number: int, runs: int, first_block: int
    ) -> tuple[list[Outputs], list[Outputs]]:
        """Return the blocks of a step of `runs` runs on x and on y; draw only those that no other pair has drawn.

        Parameters
        ----------
        plan : Plan
            The plan of the pair.
        ends : tuple
            Equal for equal datasets, x and y.
        number, first_block : int
            How many steps, and how many blocks, the pair has had before.
        """
        kept = {end: self._steps.setdefault((end, plan.block), []) for end in ends}
        side_of = dict(zip(ends, SIDES, strict=True))
        missing = {end: side_of[end] for end, steps in kept.items() if len(steps) == number}
        self.executions += runs * len(missing)  # if the mechanism fails, too
        drawn = draw_pilot(plan, runs, first_block=first_block, sides=tuple(missing.values()))
        blocks = dict(zip(SIDES, drawn, strict=True))
        for end, side in missing.items():
            kept[end].append(blocks[side])
        x, y = ends
        return kept[x][number], kept[y][number]

    def keep(self, ends: set[Hashable]) -> None:
        """Forget all datasets but these."""
        self._steps = {key: steps for key, steps in self._steps.items() if key[0] in ends}
