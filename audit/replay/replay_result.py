"""The result of a replay: the calls of noise primitives on x and on y, what was found, and what the losses say.

Proof: docs/proofs/replay.md
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, NoReturn, Self

import numpy as np

from ..claims.claim import Claim
from ..claims.renyi import ZeroConcentratedDP
from ..datasets.contents import distance_of, output_distance
from ..errors import ExcessError, MechanismError, OptionError
from ..printing import shorten
from ..records.suite import ReplayRow, ReplayTable
from ..results.result import Result
from ..results.verdict import ReplayVerdict
from .distributions import (
    SLACK,
    Distribution,
    are_alike,
    gaussian_mu,
    is_within,
    moved,
    number_words,
    realised_loss,
    worst_loss,
)
from .tape import Declared, Drawn, Line, Place, Tape

_NORMS: Final = {"normal": 2, "gumbel": math.inf}
_CONTRADICTION: Final = 1e-6  # by which a realised loss may lie beyond the worst one, relative: rounding


class FindingKind(enum.Enum):
    """What differs; the values are the words of the text."""

    BEYOND_SENSITIVITY = "moved beyond the declared sensitivity"
    LOSS_ABOVE_CLAIM = "loss above the claim"
    SUM_ABOVE_CLAIM = "sum of losses above the claim"
    SCALE_DIFFERS = "scale differs"
    PARAMETERS_DIFFER = "parameters differ"
    DISTRIBUTION_DIFFERS = "distribution differs"
    CALLS_DIFFER = "calls differ"
    SEED_DIFFERS = "seed differs"
    RAISES = "raises on one dataset"
    NEAR_THE_VALUES = "loss above the claim near the recorded values"
    PUBLIC_DIFFERS = "public value differs"
    WITHOUT_NOISE = "output moved without noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference between the runs on x and on y that noise does not cover, or that the replay cannot follow.

    Attributes
    ----------
    place : Place or None
        The line of the call; None if the finding concerns the whole run.
    seen, cost, remedy : str
        What was seen, its loss beside the claim, and what an excess needs; may be empty.
    loss : float or None
        The privacy loss of it, in nats: the worst case over values of the call; None if unknown.
    is_excess : bool
        Whether the claim, or the sensitivity that the primitive declares, is exceeded on this path.
    call : int or None
        The place of the call in `ReplayResult.calls`; None if the finding concerns the whole run.
    """

    kind: FindingKind
    place: Place | None
    seen: str
    cost: str = ""
    remedy: str = ""
    loss: float | None = None
    is_excess: bool = False
    call: int | None = None

    @property
    def message(self) -> str:
        """What was seen, and what it costs."""
        return "; ".join(filter(None, (self.seen, self.cost)))

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place is not None else self.message


def _not_kept() -> NoReturn:
    raise MechanismError("a copy of a replay cannot make its calls again; replay again.")


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayedCall:
    """A call with its distribution on x and on y, where y was given the value of x.

    Attributes
    ----------
    place, place_on_y : Place
        The line of the user's or the library's code that called the primitive.
    distribution_on_x, distribution_on_y : Distribution
        The distributions. For noise that is added outside of the primitive the locations are those to which the run
        added it (`is_added`), or follow from the outputs (`is_inferred`).
    value : Any
        What the primitive returned; for noise whose factors differ between x and y, the output that it made.
    draw_on_x : callable
        Makes the call again, with the arguments of that run; not in a copy of the result.
    """

    primitive: str
    place: Place
    place_on_y: Place
    distribution_on_x: Distribution
    distribution_on_y: Distribution
    value: Any = field(repr=False)
    declared_on_x: Declared | None
    declared_on_y: Declared | None
    draw_on_x: Callable[[], Any] = field(repr=False)
    is_inferred: bool = False
    is_added: bool = False
    is_shared: bool = False

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"draw_on_x": _not_kept}

    @property
    def both(self) -> tuple[Distribution, Distribution]:
        """The distributions on x and on y."""
        return self.distribution_on_x, self.distribution_on_y

    def given(self, x: Distribution, y: Distribution, **changes: Any) -> ReplayedCall:
        """Return the call with these distributions, and other changes."""
        return replace(self, distribution_on_x=x, distribution_on_y=y, **changes)

    @property
    def line(self) -> Line:
        """The line of code that makes the call."""
        return self.primitive, self.place

    @property
    def words(self) -> str:
        """The primitive and its place as text."""
        return f"{self.primitive} at {self.place}"

    @cached_property
    def differing(self) -> frozenset[str] | None:
        """The parameters of the distribution that differ between x and y; None if these are two distributions."""
        x, y = self.both
        return frozenset(x.differing(y)) if x.name == y.name else None

    @cached_property
    def is_unmoved(self) -> bool:
        """Whether the call is given the same on x and on y, so that its value may decide something elsewhere."""
        is_same = self.differing == frozenset() and self.distribution_on_x.shape == self.distribution_on_y.shape
        return is_same and not self.is_inferred and not self.moved

    @cached_property
    def is_shifted(self) -> bool:
        """Whether the value is noise about a location that can be any number, on x and on y."""
        has_scales = all(each.scale is not None and each.has_noise for each in self.both)
        return has_scales and all(each.is_shifted and not each.after for each in self.both)

    @property
    def is_bare_noise(self) -> bool:
        """Whether the call is noise about 0 on x and on y, to be added to something or to decide something."""
        is_at_0 = self.is_shifted and not np.any(self.distribution_on_x.location)
        return is_at_0 and self.is_unmoved and not self.is_added and not self.is_shared

    @cached_property
    def is_bare(self) -> bool:
        """Whether the call was given nothing that may depend on the data, so they do not show what it protects."""
        is_seen = self.is_inferred or self.is_added or self.is_shared
        if is_seen or self.distribution_on_x.name == "discrete" or self.differing != frozenset():
            return False
        if self.declared_on_x is not None and self.moved is not None:
            return False
        location = self.distribution_on_x.location
        return location is None or not np.any(location)

    @cached_property
    def _promised(self) -> tuple[float, Claim] | None:
        """How far the inputs are apart and what the primitive promises for that, if it is the same primitive."""
        x, y = self.declared_on_x, self.declared_on_y
        if x is None or y is None or x.promise is None or not self._differs_in_input:
            return None
        return x.promise(x.input, y.input)

    @property
    def _differs_in_input(self) -> bool:
        """Whether the distributions have one name and differ in nothing but the input."""
        return self.differing is not None and self.differing <= {"input", "location"}

    @property
    def promised(self) -> Claim | None:
        """The claim that the primitive promises for the move of its input; None if it promises none."""
        return None if self._promised is None else self._promised[1]

    @cached_property
    def moved(self) -> float | None:
        """How far the input moved: the ℓ2 norm of the locations' difference for normal noise, the ℓ1 norm for others.

        For Gumbel noise, which chooses by utilities, the largest move of a location. For a primitive with another
        input, such as utilities, the largest move of one of its numbers. None if unknown.
        """
        x, y = self.declared_on_x, self.declared_on_y
        if x is not None and x.promise is not None:
            return None if self._promised is None else self._promised[0]
        if x is not None and y is not None and x.input is not None:
            apart = distance_of(x.input, y.input)
            return None if apart is None else float(np.max(apart, initial=0.0))
        distance = moved(*self.both)
        if distance is None:
            return None
        return float(np.linalg.norm(distance.reshape(-1), _NORMS.get(self.distribution_on_x.name, 1)))

    @property
    def sensitivity(self) -> float | None:
        """The sensitivity that the primitive declares on x."""
        return None if self.declared_on_x is None else self.declared_on_x.sensitivity

    @cached_property
    def realised_loss(self) -> float | None:
        """ln of the density of the value on x over that on y; None if a distribution is unknown."""
        return realised_loss(*self.both, self.value)

    @cached_property
    def worst_loss(self) -> float | None:
        """The supremum over values of the absolute loss; infinite for Gaussian noise that moves; None if unknown.

        For a primitive whose distribution is not known, such as diffprivlib's `LaplaceBoundedDomain`, the epsilon that
        it promises, if it promises pure privacy, the sensitivity is the same on both and its input moved no further.
        For a measurement of OpenDP, the epsilon of its map.
        """
        found, realised = worst_loss(*self.both), self.realised_loss
        if found is not None and realised is not None and abs(realised) > found * (1.0 + _CONTRADICTION) + 1e-9:
            return None  # the value is not of the distribution that the primitive states
        if found is not None or self.distribution_on_x.is_known or self.differing is None:
            return found
        if self.promised is not None:
            return self.promised.log_ratio
        x, y = self.declared_on_x, self.declared_on_y
        if x is None or y is None or x.epsilon is None or x.delta or self.moved is None or x.sensitivity is None:
            return None
        is_same = (x.epsilon, x.sensitivity) == (y.epsilon, y.sensitivity) and self._differs_in_input
        return x.epsilon if is_same and self.moved <= x.sensitivity * (1.0 + SLACK) else None

    @property
    def is_promise(self) -> bool:
        """Whether the loss is what the primitive states about itself, a map or an epsilon."""
        is_stated = self.worst_loss is not None or self.promised is not None
        return is_stated and worst_loss(*self.both) is None

    @property
    def rho(self) -> float | None:
        """A bound on the zero-concentrated divergence, in both directions; None if unknown."""
        if isinstance(self.promised, ZeroConcentratedDP):
            return self.promised.rho
        loss = self.worst_loss if self.mu is None else self.mu
        return None if loss is None else loss * loss / 2.0

    @cached_property
    def mu(self) -> float | None:
        """The μ of normal noise of equal scales; None for other distributions."""
        return gaussian_mu(*self.both)


def named(calls: Iterable[ReplayedCall]) -> str:
    """Return the first of some calls as text, and how many others there are, by line of code."""
    first, *more = dict.fromkeys(call.words for call in calls)
    return f"{first} and {len(more)} more" if more else first


def calls_of(line: Line, tape: Tape) -> list[Drawn]:
    """Return the calls that a line makes in a run."""
    return [call for call in tape.calls if (call.primitive, call.place) == line]


def paired_calls(x: Tape, y: Tape) -> tuple[ReplayedCall, ...]:
    """Return the calls that both runs made, up to where their paths part."""
    number = len(y.calls) if y.parted_at is None else y.parted_at
    return tuple(map(paired, x.calls[:number], y.calls[:number]))


def paired(x: Drawn, y: Drawn) -> ReplayedCall:
    """Return the call that both runs made."""
    is_shared = x.is_shared and y.is_shared and are_alike(x.distribution, y.distribution)
    return ReplayedCall(
        primitive=x.primitive,
        place=x.place,
        place_on_y=y.place,
        distribution_on_x=x.distribution,
        distribution_on_y=x.distribution if is_shared else y.distribution,
        value=x.value,
        declared_on_x=x.declared,
        declared_on_y=y.declared,
        draw_on_x=x.draw,
        is_added=x.is_added,
        is_shared=is_shared,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptLoss:
    """The loss of all paired calls together; None where the loss of one of them is unknown."""

    realised: float | None  # ln of the density of the recorded values on x over that on y
    epsilon: float | None  # the sum of the worst cases of all calls but those of normal noise
    mu: float  # of all normal noise together: the root of the sum of squares
    rho: float | None = None  # the sum of bounds on the zero-concentrated divergences

    @property
    def worst(self) -> float | None:
        """The sum of the worst cases of all calls, infinite if normal noise moved."""
        return math.inf if self.mu > 0.0 else self.epsilon

    @property
    def is_known(self) -> bool:
        """Whether ε or ρ is known."""
        return self.epsilon is not None or self.rho is not None

    def __str__(self) -> str:
        if self.epsilon is None and self.rho is not None:
            return f"rho at most {self.rho:.6g}"
        parts = []
        if self.epsilon or not self.mu:
            is_unbounded = self.epsilon is None or math.isinf(self.epsilon)
            parts.append("infinite worst-case loss" if is_unbounded else f"loss at most {self.epsilon:.6g}")
        if self.mu:
            parts.append(f"Gaussian noise of mu {self.mu:.6g}")
        return " and ".join(parts)


def total_loss(calls: tuple[ReplayedCall, ...]) -> TranscriptLoss:
    """Return the loss of the calls together."""
    realised, rho = (_sum(getattr(call, name) for call in calls) for name in ("realised_loss", "rho"))
    epsilon = _sum(call.worst_loss for call in calls if call.mu is None)
    mu = math.hypot(*(call.mu for call in calls if call.mu is not None))
    return TranscriptLoss(realised=realised, epsilon=epsilon, mu=mu, rho=rho)


def _sum(losses: Iterable[float | None]) -> float | None:
    held = list(losses)
    known = [loss for loss in held if loss is not None]
    return math.fsum(known) if len(known) == len(held) else None


_FIRST: Final = 30  # calls that tables show whatever they do


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReplayResult(Result):
    """What `replay` found; neither true nor false.

    Attributes
    ----------
    mechanism : str
        Name of the mechanism.
    claim : Claim or None
        The claim that the losses are compared with.
    findings : tuple of Finding
        Excesses first, in the order of the calls.
    calls : tuple of ReplayedCall
        The calls that both runs made, up to where their paths part.
    unrecorded : bool
        Whether a run with its own recorded values put back gave another output or made other calls, or another thread
        drew: then the recorded values do not determine the output.
    open_reasons : tuple of str
        Why the loss of the calls does not bound that of the output, even on this path.
    output_on_x, output_on_y : Any
        The outputs of the run on x, and of the run on y with the values of x.
    """

    kind: ClassVar = "replay"
    _question: ClassVar = "has_excess"
    _dict_fields: ClassVar = ("mechanism", "loss.epsilon", "loss.mu", "runs")
    mechanism: str
    claim: Claim | None
    calls: tuple[ReplayedCall, ...]
    unrecorded: bool
    open_reasons: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    output_on_x: Any = None
    output_on_y: Any = None

    @property
    def loss(self) -> TranscriptLoss:
        """The loss of all calls together, on this path; it bounds that of the output only without `open_reasons`."""
        return total_loss(self.calls)

    @property
    def output_moved(self) -> float | None:
        """The ℓ1 norm of the difference of the outputs; None if they are not numbers."""
        return output_distance(self.output_on_x, self.output_on_y)

    @property
    def has_excess(self) -> bool:
        """Whether a finding exceeds the claim, or a sensitivity that a primitive declares."""
        return any(finding.is_excess for finding in self.findings)

    @property
    def verdict(self) -> ReplayVerdict:
        """What the replay says of the claim; of an infinite loss and declared sensitivities only, without a claim."""
        if self.has_excess:
            return ReplayVerdict.EXCESS
        if self.claim is None or self.open_reasons or self.findings:
            return ReplayVerdict.UNDETERMINED
        return ReplayVerdict.BOUNDED if is_kept(self.claim, self.calls) else ReplayVerdict.UNDETERMINED

    def __str__(self) -> str:
        return "\n  ".join([self.headline, *self.details])  # lines of code are not wrapped

    @property
    def remedy(self) -> str:
        """What the first excess needs, such as the scale of its noise; empty if that is not known."""
        return self.findings[0].remedy if self.findings else ""

    @property
    def is_refuted(self) -> bool:
        """Missing, because an excess on one path refutes no claim; see `has_excess`."""
        raise AttributeError

    @property
    def _limits(self) -> tuple[float, float]:
        losses = [self.loss.worst, *(finding.loss for finding in self.findings)]
        known = [loss for loss in losses if loss is not None]
        return 0.0, math.inf if self.open_reasons or len(known) < len(losses) else max(known) * (1.0 + SLACK)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, the losses of the recorded calls, which may be infinite, and the calls as texts."""
        return Result.to_dict(self) | asdict(self.tabulated())

    def tabulated(self) -> ReplayTable:
        """Return the calls as texts, the first of them and all with a finding."""
        rows, others = [], [str(finding) for finding in self.findings if finding.call is None]
        for number, call in enumerate(self.calls):
            of_call = [finding for finding in self.findings if finding.call == number]
            found = "; ".join(part for finding in of_call for part in (finding.message, finding.remedy) if part)
            if number < _FIRST or found:
                rows.append(_row(call, found))
        remarks = (*others, *self.open_reasons, *self.notes)
        return ReplayTable(
            sentence=self.sentence, seed=self.seed, rows=tuple(rows), n_calls=len(self.calls), remarks=remarks
        )

    def table(self) -> str:
        """Return the calls as text, a line each: place, distribution on x, move of the input, worst-case loss."""
        lines = []
        for number, (call, row) in enumerate((call, _row(call, "")) for call in self.calls):
            parts = [f"{number}  {row.place}  {row.primitive}: {row.distribution}"]
            if call.is_bare:
                parts.append("given nothing that depends on data")
            else:
                seen = ", as the outputs show" if call.is_inferred else ""
                allowed = f" (sensitivity {row.allowed})" if row.allowed else ""
                parts += [f"moved {row.moved}{allowed}{seen}"] if row.moved else []
                at_most = "" if row.loss in ("", "infinite") else "at most "
                parts.append(row.loss if call.mu else f"loss {at_most}{row.loss or 'unknown'}")
            lines.append("; ".join(parts))
        return "\n".join(lines)

    def raise_if_excess(self) -> Self:
        """Return the result, unless it has an excess.

        Raises
        ------
        ExcessError
            With the result as text; it is an `AssertionError`.
        """
        if self.has_excess:
            raise ExcessError(str(self), result=self)
        return self


def _row(call: ReplayedCall, finding: str) -> ReplayRow:
    # Of noise that was handed nothing that may depend on data, equal distributions do not say what it protects.
    moved, mu, worst = (None, None, None) if call.is_bare else (call.moved, call.mu, call.worst_loss)
    return ReplayRow(
        place=str(call.place),
        source=call.place.source,
        primitive=call.primitive,
        distribution=str(call.distribution_on_x),
        moved=number_words(moved),
        allowed=number_words(call.sensitivity),
        loss=f"mu {number_words(mu)}" if mu else number_words(worst),
        finding=finding,
    )


def check_replay_result(result: ReplayResult) -> ReplayResult:
    """Return what must be the result of a replay."""
    if not isinstance(result, ReplayResult):
        raise OptionError(
            f"{shorten(result)} is not the result of a replay; pass what replay() returns.", result=result
        )
    return result


def is_kept(claim: Claim, calls: tuple[ReplayedCall, ...]) -> bool:
    """Return whether the calls together stay within the claim."""
    loss = total_loss(calls)
    # The locations inferred from outputs are known to about 1e-5 scales.
    rest = 1.0 - (1e-5 if any(call.is_inferred for call in calls) else SLACK)
    if loss.epsilon is None:
        return type(claim) is ZeroConcentratedDP and loss.rho is not None and loss.rho <= claim.rho / rest
    return is_within(claim, loss.epsilon * rest, loss.mu * rest)


def is_larger(one: TranscriptLoss, other: TranscriptLoss) -> bool:
    """Return whether a loss is larger than another one in some way, beyond rounding."""
    pairs = ((one.epsilon, other.epsilon), (one.mu, other.mu), (one.rho, other.rho))
    return any(a is None or (b is not None and a > b * (1.0 + SLACK)) for a, b in pairs)
