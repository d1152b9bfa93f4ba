"""Pilot outputs on both datasets, split into a half to learn scores on and a half to choose the event on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..events.outputs import Outputs, merge


@dataclass(frozen=True)
class PilotSplit:
    """Pilot outputs on x and y: a half to learn from and a half held out, equally many runs on each dataset.

    Attributes
    ----------
    learn_x, learn_y : ndarray
        Outputs from which scores are learned.
    held_x, held_y : ndarray
        Outputs on which the events of these scores are compared.
    """

    learn_x: Outputs
    learn_y: Outputs
    held_x: Outputs
    held_y: Outputs

    @classmethod
    def in_half(cls, x: Outputs, y: Outputs) -> PilotSplit:
        """The first half to learn from, the rest held out.

        Examples
        --------
        >>> import numpy as np
        >>> split = PilotSplit.in_half(np.arange(5), np.arange(5))
        >>> split.learn_x, split.held_y
        (array([0, 1]), array([2, 3, 4]))
        """
        half = len(x) // 2
        return cls(x[:half], y[:half], x[half:], y[half:])

    def map(self, read: Callable[[Outputs], Outputs]) -> PilotSplit:
        """The four parts as read by a function, such as a score; the result may have other lengths."""
        return PilotSplit(*map(read, self))

    @cached_property
    def ordered(self) -> PilotSplit:
        """The four parts of a pilot of numbers, each sorted."""
        return self.map(ordered)

    @property
    def whole(self) -> tuple[Outputs, Outputs]:
        """All outputs on x and all on y."""
        x, y = merge([self.learn_x, self.held_x], [self.learn_y, self.held_y])
        return x, y

    def __iter__(self) -> Iterator[Outputs]:
        yield from (self.learn_x, self.learn_y, self.held_x, self.held_y)

    @property
    def held_runs(self) -> int:
        """Number of held-out runs on each dataset."""
        return len(self.held_x)


def ordered(values: Outputs) -> Outputs:
    """Values as the doubles that events compare, sorted, NaN last; integers beyond 2⁵³ may coincide, as in events."""
    return np.sort(values.astype(np.float64))
