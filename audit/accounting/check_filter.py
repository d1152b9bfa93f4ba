"""Check a privacy filter or an odometer: an adversary spends until the budget ought to be gone.

Proof: docs/proofs/accountants.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

from ..claims.claim import ApproxDP, check_number
from ..errors import MechanismError, OptionError
from ..exact.exact_result import Interval
from ..options import checked_seed
from ..printing import one_line, shorten
from ..random_streams import Stream, sequence_of
from ..results.result import Result
from ..results.verdict import Verdict
from ..sampling.object_identity import versions
from .privacy_loss import Case, Mechanism, true_epsilon


class _Plan(NamedTuple):
    """How long the adversary tries."""

    tolerance: float = 1e-9  # relative excess that is ignored: filters allow for the rounding of their own sums
    requests: int = 400  # of a sequence: a filter that takes 1/100 of its budget 400 times does not count it
    rounds: int = 12  # random sequences, each in three orders


_PLAN: Final = _Plan()


class Request(NamedTuple):
    """A request to spend (ε, δ): as a budget, and as what the worst mechanism with this guarantee costs."""

    epsilon: float
    delta: float = 0.0

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.6g})"


Asked: TypeAlias = Request | Mechanism
Asking: TypeAlias = tuple[tuple[Asked, int], ...]
"""Requests, and to whom each is made: 0 is the object, 1 and 2 are its children."""


class Violation(NamedTuple):
    """A sequence after which the object is wrong.

    Attributes
    ----------
    requests : tuple of (request, int)
        The requests in their order, and to whom each was made: 0 is the object, 1 and 2 are its children.
    accepted : tuple of request
        Those that were accepted.
    stated : Request
        The budget, or what the odometer reports.
    is_budget : bool
        Whether `stated` is the budget.
    true : Interval
        Certain limits of the smallest ε of the accepted requests at the stated δ.
    """

    requests: Asking
    accepted: tuple[Asked, ...]
    stated: Request
    is_budget: bool
    true: Interval


@dataclass(frozen=True, kw_only=True, repr=False)
class FilterResult(Result):
    """What the adversary found.

    Attributes
    ----------
    filter : str
        Name of the filter or odometer.
    budget : Request, optional
        The stated budget.
    violation : Violation, optional
        The shortest sequence found that spends more than stated.
    sequences, requests, accepted : int
        Sequences of requests, requests in all, and those that were accepted.
    """

    kind: ClassVar = "filter"
    _subject_field: ClassVar = "filter"
    _claim_field: ClassVar = "budget"
    _dict_fields: ClassVar = ("filter", "sequences", "requests", "accepted", "seed")
    filter: str
    budget: Request | None
    violation: Violation | None
    sequences: int
    requests: int
    accepted: int

    @property
    def verdict(self) -> Verdict:
        """REFUTED by a violation, which is certain; INCONCLUSIVE if no request was accepted."""
        if self.violation is not None:
            return Verdict.REFUTED
        return Verdict.NOT_REFUTED if self.accepted else Verdict.INCONCLUSIVE

    @property
    def _limits(self) -> tuple[float, float]:
        return Interval(0.0, math.inf) if self.violation is None else self.violation.true

    def to_dict(self) -> dict[str, Any]:
        budget = {} if self.budget is None else {"epsilon": self.budget.epsilon, "delta": self.budget.delta}
        return Result.to_dict(self) | budget


def check_filter(
    make: Callable[[], Any],
    budget: float | tuple[float, float] | None = None,
    *,
    mechanisms: Sequence[Mechanism] = (),
    seed: int = 0,
    name: str = "",
) -> FilterResult:
    """Ask a privacy filter or an odometer for more than its budget, and compare what it accepts with the certain cost.

    Parameters
    ----------
    make : callable
        Makes a new object with a method ``spend(request)``, which refuses a request by an exception or by returning
        False. If it has ``spent()``, this returns (ε, δ) spent so far, or ε at the δ of the budget. If it has
        ``child()``, this returns an object that spends from the same budget; two are made.
    budget : float or (float, float), optional
        The ε, or (ε, δ), that all accepted requests together may cost. Without one only ``spent()`` is checked. With
        an ε alone no request has a δ.
    mechanisms : sequence of mechanisms, optional
        Requests to draw from, such as ``[Gaussian(10.0)]``; by default (ε, δ) pairs `Request` for the budget.
    seed : int
        Random seed of the orders.
    name : str
        Name of the object; by default that of `make`.

    Returns
    -------
    FilterResult
        REFUTED with a sequence of requests, shortened by dropping requests, that costs more than the budget or than
        ``spent()`` reports.

    Raises
    ------
    OptionError
        If there is neither a budget nor a method ``spent``.
    MechanismError
        If the object has no method ``spend``, or ``spent`` returns no number.

    See Also
    --------
    check_accountant : Functions of a whole composition.
    true_epsilon : The cost.

    Notes
    -----
    A request of (ε, δ) costs what the worst (ε, δ)-DP mechanism costs, and requests that are not positive numbers cost
    nothing themselves. The sequences: equal, tiny and random requests in three orders; requests that end exactly at the
    border; requests after a refusal; zero, negative, infinite and NaN requests; and all of these made to the
    object and to two children. An excess below 1e-9 of the budget is ignored.

    References
    ----------
    Rogers, Roth, Ullman & Vadhan (2016), Privacy odometers and filters: pay-as-you-go composition.
    Kairouz, Oh & Viswanath (2017), The composition theorem for differential privacy, Theorems 3.3 and 3.5.

    Examples
    --------
    >>> from dpaudit.accountants import check_filter
    >>> class Forgetful:
    ...     left = 1.0
    ...     def spend(self, request):
    ...         if request.epsilon > self.left:
    ...             return False
    ...         self.left -= request.epsilon
    >>> print(check_filter(Forgetful, 1.0))
    REFUTED  Forgetful: 2 accepted requests cost epsilon >= 1.999 at delta 0, the budget is 1 (certain)
      requests: 2 x (1, 0), 1 x (-1, 0)
      note: accepted requests that are not positive numbers
    """
    first = make()
    if not callable(getattr(first, "spend", None)):
        raise MechanismError(f"make() returned {shorten(first)} without a method spend(request); wrap it in a class.")
    whole = None if budget is None else _checked(budget)
    if whole is None and not hasattr(first, "spent"):
        raise OptionError("budget is missing and the object has no method spent(), so there is nothing to check.")
    rng = np.random.default_rng(sequence_of(checked_seed(seed), Stream.REQUESTS))
    driver = _Driver(make, whole)
    pairs = _of_pairs(whole or Request(1.0, 1e-6), isinstance(budget, tuple), rng)
    plain = list(_of_mechanisms(tuple(mechanisms), rng) if mechanisms else pairs)
    askers = [(0,), (0, 1, 2)] if hasattr(first, "child") else [(0,)]
    sequences = [tuple((asked, who) for asked in each for who in several) for several in askers for each in plain]
    found, tried = None, 0
    while found is None and tried < len(sequences):
        found = driver.play(sequences[tried])
        tried += 1
    return FilterResult(
        filter=name or getattr(make, "__name__", str(make)),
        budget=whole,
        violation=None if found is None else driver.shortened(found),
        sequences=tried,
        requests=driver.asked,
        accepted=driver.accepted,
        notes=tuple(sorted(driver.notes))[:3],
        versions=versions(),
        seed=seed,
    )


def _checked(budget: float | tuple[float, float]) -> Request:
    epsilon, delta = budget if isinstance(budget, tuple) else (budget, 0.0)
    return Request(
        check_number("epsilon", epsilon, 0, math.inf, "1 is usual", closed=False),
        check_number("delta", delta, 0, 1, "0 for pure DP"),
    )


# The adversary.


def _of_mechanisms(mechanisms: tuple[Mechanism, ...], rng: np.random.Generator) -> Iterator[Sequence[Asked]]:
    yield from ([one] * _PLAN.requests for one in mechanisms)
    for _ in range(_PLAN.rounds):
        yield [mechanisms[place] for place in rng.integers(len(mechanisms), size=_PLAN.requests // 4)]


def _of_pairs(budget: Request, has_delta: bool, rng: np.random.Generator) -> Iterator[Sequence[Asked]]:
    epsilon, delta = budget
    if has_delta and delta == 0.0:
        yield [Request(epsilon / 4, 1e-6)]  # any leak is more than a budget without δ
    one, without = Request(epsilon, delta), Request(epsilon)
    yield [one] * 3
    yield [without] * 3
    for parts in (2, 3, 10):
        yield [Request(epsilon / parts, delta / parts)] * (3 * parts)
    yield [Request(epsilon / 100, delta / 100)] * _PLAN.requests
    yield [Request(epsilon / 100)] * _PLAN.requests
    yield [Request(epsilon / 4, delta), *[Request(epsilon / 4)] * 8]
    yield [Request(0.0, delta / 4)] * 12
    above = math.nextafter(epsilon, math.inf)
    yield [Request(above, delta), one, Request(2 * epsilon), one]
    yield [Request(2 * epsilon, delta), *[Request(epsilon / 3, delta / 3)] * 6]
    yield [Request(0.0, 0.0), one, Request(0.0, 0.0), one]
    yield [Request(epsilon / 10_000, delta / 10_000)] * 3
    for odd in (-epsilon, math.nan, math.inf, -math.inf):
        yield [one, Request(odd), without, Request(odd), without]
        yield [Request(odd), one, without]
    yield [one, Request(epsilon, -delta), one, Request(epsilon, math.nan), one]
    for _ in range(_PLAN.rounds):
        sizes = 10.0 ** rng.uniform(-2.0, 0.0, (2, 30))
        pairs = [Request(epsilon * e, delta * d * (rng.random() < 0.5)) for e, d in sizes.T]
        yield pairs
        yield sorted(pairs)
        yield sorted(pairs, reverse=True)


@dataclass(slots=True)
class _Driver:
    """Plays sequences of requests on new objects, and compares what was accepted with what is stated."""

    make: Callable[[], Any]
    budget: Request | None
    asked: int = 0
    accepted: int = 0
    notes: set[str] = field(default_factory=set)

    def play(self, requests: Asking) -> Violation | None:
        """Return the first violation of a sequence; one of the budget is looked for at the end."""
        actors = [self.make()]
        try:
            while len(actors) <= max(who for _, who in requests):
                actors.append(actors[0].child())
        except Exception as error:  # of an object that has fewer children, or none
            self.notes.add(f"child() raised {one_line(f'{type(error).__name__}: {error}')}")
        taken: list[Asked] = []
        for place, (asked, who) in enumerate(requests, 1):
            self.asked += 1
            try:
                answer = actors[min(who, len(actors) - 1)].spend(asked)
            except Exception:  # a filter may refuse with any exception
                continue
            if isinstance(answer, (bool, np.bool_)) and not answer:
                continue
            self.accepted += 1
            if _has_cost(asked):
                taken.append(asked)
            elif asked != (0.0, 0.0):
                self.notes.add("accepted requests that are not positive numbers")
            is_looked_at = len(taken) <= 3 or len(taken) & (len(taken) - 1) == 0
            if is_looked_at and (found := self._reported(actors[0], taken, requests[:place])):
                return found
        if self.budget is not None and (found := _violation(taken, self.budget, True, requests)):
            return found
        return self._reported(actors[0], taken, requests)

    def _reported(self, parent: Any, taken: list[Asked], requests: Asking) -> Violation | None:
        if not hasattr(parent, "spent"):
            return None
        try:
            said = parent.spent()
        except Exception as error:  # of an object that reports nothing once it is spent
            self.notes.add(f"spent() raised {one_line(f'{type(error).__name__}: {error}')}")
            return None
        try:
            alone = 0.0 if self.budget is None else self.budget.delta
            pair = Request(*map(float, said)) if isinstance(said, tuple) else Request(float(said), alone)
        except (TypeError, ValueError) as error:
            raise MechanismError(f"spent() returned {shorten(said)}; return epsilon, or (epsilon, delta).") from error
        return _violation(taken, pair, False, requests)

    def shortened(self, found: Violation) -> Violation:
        """Drop requests while a violation remains: halves at first, single ones at last."""
        size = max(len(found.requests) // 2, 1)
        while size:
            place = 0
            while place < len(found.requests):
                shorter = found.requests[:place] + found.requests[place + size :]
                again = self.play(shorter) if shorter else None
                if again is None:
                    place += size
                else:
                    found = again
            size //= 2
        return found


def _has_cost(asked: Asked) -> bool:
    """Whether a request is one for a mechanism: its numbers are finite, not negative, and not both 0."""
    if not isinstance(asked, Request):
        return True
    return math.isfinite(asked.epsilon) and asked.epsilon >= 0.0 and 0.0 <= asked.delta < 1.0 and any(asked)


def _violation(taken: Sequence[Asked], stated: Request, is_budget: bool, requests: Asking) -> Violation | None:
    """Return a violation if the accepted requests certainly cost more than is stated."""
    if not taken or not stated.delta < 1.0 or stated.epsilon == math.inf:
        return None
    counts = Counter(ApproxDP(*asked) if isinstance(asked, Request) else asked for asked in taken)
    delta = max(stated.delta, 0.0) * (1.0 + _PLAN.tolerance)  # NaN is not a δ, and 0 the least that it can mean
    case = Case(tuple(sorted(counts.items(), key=str)), delta=0.0 if math.isnan(delta) else delta)
    enough = stated.epsilon * (1.0 + _PLAN.tolerance) if stated.epsilon >= 0.0 else 0.0  # likewise
    claims = [(claim, count) for claim, count in case.mechanisms if isinstance(claim, ApproxDP)]
    if len(claims) == len(case.mechanisms):  # the sum of ε, at the probability of any leak, is a bound
        leak = -math.expm1(math.fsum(count * math.log1p(-claim.delta) for claim, count in claims))
        if math.fsum(count * claim.epsilon for claim, count in claims) <= enough and leak <= case.delta:
            return None
    for tolerance in (0.1, 0.01, 1e-3):
        true = true_epsilon(case, tolerance=tolerance)
        if not true.lower <= enough < true.upper:
            break
    return Violation(requests, tuple(taken), stated, is_budget, true) if true.lower > enough else None
