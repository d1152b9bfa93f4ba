"""A call of a noise primitive on x and on y, with its loss; and what a replay finds."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from ..claims.claim import Claim
from ..claims.renyi import ZeroConcentratedDP
from .laws import Law, gaussian_mu, moved, realised_loss, worst_loss
from .parameters import difference
from .places import Place
from .tape import Declared, Drawn, Tape

Line: TypeAlias = tuple[str, Place]
"""A primitive, and where it is called."""

_NORMS: Final = {"normal": 2, "gumbel": math.inf}
_CONTRADICTION: Final = 1e-6  # by which a realised loss may lie beyond the worst one, relative: rounding


class FindingKind(enum.Enum):
    """What differs; the values are the words of the text."""

    BEYOND_SENSITIVITY = "moved beyond the declared sensitivity"
    LOSS_ABOVE_CLAIM = "loss above the claim"
    SUM_ABOVE_CLAIM = "sum of losses above the claim"
    SCALE_DIFFERS = "scale differs"
    PARAMETERS_DIFFER = "parameters differ"
    LAW_DIFFERS = "law differs"
    CALLS_DIFFER = "calls differ"
    SEED_DIFFERS = "seed differs"
    RAISES = "raises on one dataset"
    NEAR_THE_VALUES = "loss above the claim near the recorded values"
    WITHOUT_NOISE = "output moved without noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference between the runs on x and on y that noise does not cover, or that the replay cannot follow.

    Attributes
    ----------
    place : Place or None
        The line of the call; None if the finding concerns the whole run.
    loss : float or None
        The privacy loss of it, in nats: the worst case over values of the call; None if unknown.
    is_excess : bool
        Whether the claim, or the sensitivity that the primitive declares, is exceeded on this path.
    call : int or None
        The place of the call in `ReplayResult.calls`; None if the finding concerns the whole run.
    """

    kind: FindingKind
    place: Place | None
    message: str
    loss: float | None = None
    is_excess: bool = False
    call: int | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place is not None else self.message


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplayedCall:
    """A call with its law on x and on y, where y was given the value of x.

    Attributes
    ----------
    place, place_on_y : Place
        The line of the user's or the library's code that called the primitive.
    law_on_x, law_on_y : Law
        The laws. For noise that is added outside of the primitive (`is_inferred`) the locations follow from the
        outputs.
    value : Any
        What the primitive returned; for noise whose factors differ between x and y, the output that it made.
    draw_on_x : callable
        Makes the call again, with the arguments of that run.
    """

    primitive: str
    place: Place
    place_on_y: Place
    law_on_x: Law
    law_on_y: Law
    value: Any = field(repr=False)
    declared_on_x: Declared | None = None
    declared_on_y: Declared | None = None
    is_inferred: bool = False
    draw_on_x: Callable[[], Any] | None = field(default=None, repr=False)

    @property
    def is_bare(self) -> bool:
        """Whether the call was given nothing that may depend on the data, so its laws do not show what it protects."""
        if self.is_inferred or self.law_on_x.name == "discrete":
            return False
        if self.declared_on_x is not None and self.moved is not None:
            return False
        if self.law_on_x.name != self.law_on_y.name or self.law_on_x.differing(self.law_on_y):
            return False
        location = self.law_on_x.location
        return location is None or not np.any(location)

    @property
    def _promised(self) -> tuple[float, Claim] | None:
        """How far the inputs are apart and what the primitive promises for that, if it is the same primitive."""
        x, y = self.declared_on_x, self.declared_on_y
        if x is None or y is None or x.promise is None or self.law_on_x.name != self.law_on_y.name:
            return None
        if set(self.law_on_x.differing(self.law_on_y)) - {"input", "location"}:
            return None
        return x.promise(x.input, y.input)

    @property
    def promised(self) -> Claim | None:
        """The claim that the primitive promises for the move of its input; None if it promises none."""
        promised = self._promised
        return None if promised is None else promised[1]

    @property
    def moved(self) -> float | None:
        """How far the input moved: the ℓ2 norm of the locations' difference for normal noise, the ℓ1 norm for others.

        For Gumbel noise, which chooses by utilities, the largest move of a location.

        For a primitive with another input, such as utilities, the largest move of one of its numbers. None if unknown.
        """
        if self.declared_on_x is not None and self.declared_on_x.promise is not None:
            promised = self._promised
            return None if promised is None else promised[0]
        if self.declared_on_x is not None and self.declared_on_y is not None and self.declared_on_x.input is not None:
            apart = difference(self.declared_on_x.input, self.declared_on_y.input)
            return None if apart is None else float(np.max(apart, initial=0.0))
        distance = moved(self.law_on_x, self.law_on_y)
        if distance is None:
            return None
        return float(np.linalg.norm(distance.reshape(-1), _NORMS.get(self.law_on_x.name, 1)))

    @property
    def sensitivity(self) -> float | None:
        """The sensitivity that the primitive declares on x."""
        return None if self.declared_on_x is None else self.declared_on_x.sensitivity

    @property
    def realised_loss(self) -> float | None:
        """ln of the density of the value on x over that on y; None if a law is unknown."""
        return realised_loss(self.law_on_x, self.law_on_y, self.value)

    @property
    def worst_loss(self) -> float | None:
        """The supremum over values of the absolute loss; infinite for Gaussian noise that moves; None if unknown.

        For a primitive whose law is not known, such as diffprivlib's `LaplaceBoundedDomain`, the epsilon that it
        promises, if it promises pure privacy, the sensitivity is the same on both and its input moved no further. For
        a measurement of OpenDP, the epsilon of its map.
        """
        found, realised = worst_loss(self.law_on_x, self.law_on_y), self.realised_loss
        if found is not None and realised is not None and abs(realised) > found * (1.0 + _CONTRADICTION) + 1e-9:
            return None  # the value is not of the law that the primitive states
        if found is not None or self.law_on_x.is_known or self.law_on_x.name != self.law_on_y.name:
            return found
        if (promised := self.promised) is not None:
            return promised.log_ratio
        promise, other, distance = self.declared_on_x, self.declared_on_y, self.moved
        if promise is None or other is None or promise.epsilon is None or promise.delta or distance is None:
            return None
        is_same = (promise.epsilon, promise.sensitivity) == (other.epsilon, other.sensitivity)
        is_same = is_same and not set(self.law_on_x.differing(self.law_on_y)) - {"input", "location"}
        is_covered = promise.sensitivity is not None and distance <= promise.sensitivity * (1.0 + 1e-9)
        return promise.epsilon if is_same and is_covered else None

    @property
    def is_promise(self) -> bool:
        """Whether the loss is what the primitive states about itself, a map or an epsilon, and not that of its laws."""
        is_stated = self.worst_loss is not None or self.promised is not None
        return is_stated and worst_loss(self.law_on_x, self.law_on_y) is None

    @property
    def rho(self) -> float | None:
        """A bound on the zero-concentrated divergence, in both directions; None if unknown."""
        promised, mu, worst = self.promised, self.mu, self.worst_loss
        if isinstance(promised, ZeroConcentratedDP):
            return promised.rho
        loss = worst if mu is None else mu
        return None if loss is None else loss * loss / 2.0

    @property
    def mu(self) -> float | None:
        """The μ of normal noise of equal scales; None for other laws."""
        return gaussian_mu(self.law_on_x, self.law_on_y)


def line_of(call: ReplayedCall | Drawn) -> Line:
    """Return the line of code that makes a call."""
    return call.primitive, call.place


def calls_of(line: Line, tape: Tape) -> list[Drawn]:
    """Return the calls that a line makes in a run."""
    return [call for call in tape.calls if line_of(call) == line]


def paired_calls(x: Tape, y: Tape) -> tuple[ReplayedCall, ...]:
    """Return the calls that both runs made, up to where their paths part."""
    number = len(y.calls) if y.parted_at is None else y.parted_at
    return tuple(map(paired, x.calls[:number], y.calls[:number]))


def paired(x: Drawn, y: Drawn) -> ReplayedCall:
    """Return the call that both runs made."""
    return ReplayedCall(
        primitive=x.primitive,
        place=x.place,
        place_on_y=y.place,
        law_on_x=x.law,
        law_on_y=y.law,
        value=x.value,
        declared_on_x=x.declared,
        declared_on_y=y.declared,
        draw_on_x=x.draw,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLoss:
    """The loss of all paired calls together.

    Attributes
    ----------
    realised : float or None
        ln of the density of the recorded values on x over that on y; None if a law is unknown.
    epsilon : float or None
        The sum of the worst cases of all calls but those of normal noise; None if one is unknown.
    mu : float
        The μ of all normal noise together: the root of the sum of squares.
    rho : float or None
        The sum of bounds on the zero-concentrated divergences; None if one is unknown.
    """

    realised: float | None
    epsilon: float | None
    mu: float
    rho: float | None = None

    @property
    def worst(self) -> float | None:
        """The sum of the worst cases of all calls, infinite if normal noise moved."""
        return math.inf if self.mu > 0.0 else self.epsilon


def total_loss(calls: tuple[ReplayedCall, ...]) -> TranscriptLoss:
    """Return the loss of the calls together."""
    gaussian = [call.mu for call in calls if call.mu is not None]
    others = [call.worst_loss for call in calls if call.mu is None]
    realised = [call.realised_loss for call in calls]
    rhos = [call.rho for call in calls]
    return TranscriptLoss(
        realised=None if None in realised else math.fsum(each for each in realised if each is not None),
        epsilon=None if None in others else sum(each for each in others if each is not None),
        mu=math.hypot(*gaussian),
        rho=None if None in rhos else math.fsum(each for each in rhos if each is not None),
    )
