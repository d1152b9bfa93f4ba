"""Check an accountant: the ε that it states for a composition against the certain limits of the smallest ε.

Proof: docs/proofs/accountants.md
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from ..claims.claim import ApproxDP, PureDP
from ..clock import now
from ..errors import OptionError
from ..exact.exact_result import Interval
from ..printing import least_beside, one_line
from ..results.result import Result
from ..results.verdict import ExactVerdict
from ..sampling.object_identity import versions
from .privacy_loss import RELATIONS, Case, Gaussian, Laplace, Mechanism, true_delta, true_epsilon


class Outcome(enum.Enum):
    """What a row says of a claim of an accountant."""

    TOO_SMALL = "too small"
    HOLDS = "holds"
    UNDECIDED = "undecided"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountantRow:
    """The claim of an accountant for one case, and the truth.

    Attributes
    ----------
    case : Case
    parameter : {"epsilon", "delta"}
        What was claimed: ε at the δ of the case, or δ at the ε of `at`.
    at : float
        The δ or the ε at which.
    claimed : float
        The claim; NaN if there is none.
    true : Interval
        The certain limits of the smallest value with the guarantee.
    tolerance : float
        Relative shortfall that may stay undecided.
    seconds : float
        Time of the accountant.
    refused : str
        The exception with which the accountant refused the case, or what it returned in place of a number.
    """

    case: Case
    parameter: str
    at: float
    claimed: float
    true: Interval
    tolerance: float
    seconds: float
    refused: str = ""

    @property
    def outcome(self) -> Outcome:
        """TOO_SMALL if the claim is below the lower limit by more than rounding, HOLDS if not by the tolerance."""
        if math.isnan(self.claimed):
            return Outcome.REFUSED if self.refused else Outcome.UNDECIDED
        claimed = max(self.claimed, 0.0)  # an accountant may reach 0 from below
        if claimed < self.true.lower * (1.0 - 1e-9):  # by more than the rounding of sums, as for filters
            return Outcome.TOO_SMALL
        is_close = claimed >= self.true.upper * (1.0 - self.tolerance)
        return Outcome.HOLDS if is_close else Outcome.UNDECIDED

    @property
    def error(self) -> float:
        """The signed error over the truth: below 0 by at least this much, or above by at most this; 0 within limits."""
        low, high = self.true
        if self.outcome is Outcome.TOO_SMALL:
            return self.claimed / low - 1.0 if math.isfinite(low) else -1.0
        if self.claimed > high:
            return self.claimed / high - 1.0 if high > 0.0 else math.inf
        return math.nan if math.isnan(self.claimed) else 0.0

    @property
    def where(self) -> str:
        """The case, and the δ or the ε at which."""
        other = "delta" if self.parameter == "epsilon" else "epsilon"
        case = str(self.case).partition("; delta")
        return f"{case[0]}{''.join(case[2].partition(';')[1:])}; {other} {self.at:.6g}"

    @property
    def found(self) -> tuple[str, str]:
        """The truth and the claimed number, both as text; after a refusal its reason, and an empty text."""
        low, high = self.true
        if self.outcome is Outcome.REFUSED:
            return f"refused, {self.refused}", ""
        if self.outcome is Outcome.TOO_SMALL:
            sign, least, claimed = least_beside(low, self.claimed)
            return f"{self.parameter} {sign} {least}", claimed
        return f"{self.parameter} between {low:.6g} and {high:.6g}", f"{self.claimed:.6g}"

    def __str__(self) -> str:
        found, claimed = self.found
        return f"{self.where}: {found}{claimed and f', claimed {claimed}'}"


@dataclass(frozen=True, kw_only=True, repr=False)
class AccountantResult(Result):
    """What a check of an accountant found, a row for each case.

    Attributes
    ----------
    accountant : str
        Its name.
    rows : tuple of AccountantRow
        In the order of the cases; with a function of δ, two for each case.
    """

    kind: ClassVar = "accountant"
    _subject_field: ClassVar = "accountant"
    _limit_fields: ClassVar = ("worst.true.lower", "worst.true.upper")
    accountant: str
    rows: tuple[AccountantRow, ...]

    def those(self, outcome: Outcome) -> tuple[AccountantRow, ...]:
        """Return the rows with an outcome."""
        return tuple(row for row in self.rows if row.outcome is outcome)

    @property
    def verdict(self) -> ExactVerdict:
        """REFUTED if a claim is too small; VERIFIED, for these cases, if every claim that was made holds."""
        if self.those(Outcome.TOO_SMALL):
            return ExactVerdict.REFUTED
        is_open = self.those(Outcome.UNDECIDED) or not self.those(Outcome.HOLDS)
        return ExactVerdict.UNDETERMINED if is_open else ExactVerdict.VERIFIED

    @property
    def worst(self) -> AccountantRow:
        """The row with the claim that is furthest below the truth, or else the first undecided one, or the highest."""
        wrong = self.those(Outcome.TOO_SMALL) or self.those(Outcome.UNDECIDED)
        if wrong:
            return min(wrong, key=lambda row: row.error if not math.isnan(row.error) else 0.0)
        return max(self.rows, key=lambda row: -1.0 if math.isnan(row.error) else row.error)

    @property
    def not_monotone(self) -> tuple[str, ...]:
        """Pairs of cases of DP-SGD that differ in one parameter and have claims in the wrong order, as sentences."""
        return tuple(_not_monotone(self.rows))

    @property
    def largest_error_above(self) -> float:
        """The largest error of a claim above the truth; NaN if none is."""
        return max((row.error for row in self.rows if row.error >= 0.0), default=math.nan)

    @property
    def largest_error_below(self) -> float:
        """The largest error of a claim below the truth; 0 if none is."""
        return -min((row.error for row in self.rows if row.error < 0.0), default=0.0)

    def table(self) -> str:
        """Return the rows as text, a line each: outcome, error, and the case with claim and truth."""
        errors = ["" if math.isnan(row.error) else f"{row.error:+.2%}" for row in self.rows]
        width = max(map(len, errors))
        return "\n".join(
            f"{row.outcome.value:9}  {error:>{width}}  {row}" for row, error in zip(self.rows, errors, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        counts = {f"n_{outcome.name.lower()}": len(self.those(outcome)) for outcome in Outcome}
        errors = {"largest_error_below": self.largest_error_below, "largest_error_above": self.largest_error_above}
        seconds = sum(row.seconds for row in self.rows)
        return {**Result.to_dict(self), "accountant": self.accountant, **counts, **errors, "seconds": seconds}


_DIRECTIONS: Final = (("noise multiplier", -1), ("sampling rate", 1), ("steps", 1), ("delta", -1))
"""Whether ε must rise or fall with the parameters of `Case.dp_sgd`."""


def _not_monotone(rows: Sequence[AccountantRow]) -> Iterator[str]:
    claims: dict[tuple[Any, ...], float] = {}
    for row in rows:
        (mechanism, count), *others = row.case.mechanisms
        if row.parameter == "epsilon" and isinstance(mechanism, Gaussian) and not others:
            key = (mechanism.noise_multiplier, mechanism.sampling_rate, count, row.case.delta, row.case.adjacency)
            claims[key] = row.claimed
    for one, other in itertools.permutations(claims, 2):
        place, *more = (place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        if not more and place < len(_DIRECTIONS) and one[place] < other[place]:
            name, sign = _DIRECTIONS[place]
            if sign * (claims[other] - claims[one]) < 0.0:  # not for NaN
                shown = Case.dp_sgd(*one)
                yield f"epsilon {claims[one]:.6g} for {shown}, {claims[other]:.6g} at {name} {other[place]:g}"


def _grid() -> tuple[Case, ...]:
    sgd = [
        (0.5, 0.01, 100, 1e-5), (0.7, 0.001, 1000, 1e-6), (0.8, 0.02, 10, 1e-5), (0.8, 0.1, 1, 1e-5),
        (1.0, 0.001, 1000, 1e-5), (1.0, 0.004, 10_000, 1e-5), (1.0, 0.01, 1, 1e-5), (1.0, 0.01, 10, 1e-5),
        (1.0, 0.01, 100, 1e-5), (1.0, 0.01, 1000, 1e-8), (1.0, 0.01, 1000, 1e-6), (1.0, 0.01, 1000, 1e-5),
        (1.0, 0.01, 1000, 1e-3), (1.0, 0.02, 1000, 1e-5), (1.0, 0.1, 1000, 1e-5), (1.0, 0.5, 10, 1e-5),
        (1.1, 0.01, 1000, 1e-5), (2.0, 0.01, 1000, 1e-5), (2.0, 0.01, 10_000, 1e-5), (2.0, 0.2, 50, 1e-10),
        (5.0, 0.05, 2000, 1e-6), (10.0, 0.01, 1000, 1e-5), (20.0, 0.5, 1, 1e-5), (0.3, 1.0, 1, 1e-5),
        (1.0, 1.0, 1, 1e-5), (4.0, 1.0, 16, 1e-6), (100.0, 1.0, 1, 1e-5),
    ]  # fmt: skip
    several: list[tuple[tuple[tuple[Mechanism, int], ...], float]] = [
        (((Laplace(1.0), 1),), 1e-5),
        (((Laplace(10.0), 100),), 1e-5),
        (((Laplace(2.0, 0.1), 50),), 1e-5),
        (((PureDP(1.0), 1),), 0.0),
        (((PureDP(0.5), 4),), 0.0),
        (((PureDP(0.1), 10),), 1e-6),
        (((PureDP(0.1), 200),), 1e-6),
        (((PureDP(1.0), 30),), 1e-6),
        (((ApproxDP(0.1, 1e-8), 50),), 1e-5),
        (((ApproxDP(1.0, 1e-6), 5),), 1e-5),
        (((PureDP(0.1), 30), (PureDP(0.5), 5)), 1e-6),
        (((ApproxDP(0.2, 1e-7), 20), (ApproxDP(0.4, 1e-8), 5)), 1e-5),
        (((Gaussian(4.0), 4), (Laplace(5.0), 4)), 1e-6),
        (((Gaussian(1.0, 0.01), 500), (Gaussian(1.5, 0.02), 500)), 1e-5),
        (((Gaussian(2.0, 0.05), 100), (Laplace(8.0), 2), (PureDP(0.1), 3)), 1e-6),
    ]
    return (*(Case.dp_sgd(*each) for each in sgd), *(Case(*each) for each in several))


GRID: Final = _grid()
"""Cases of DP-SGD, Laplace noise, ε- and (ε, δ)-DP mechanisms, and several mechanisms, all under add-remove."""

OTHER_ADJACENCIES: Final = tuple(
    Case.dp_sgd(*each, relation)
    for relation in RELATIONS[1:]
    for each in ((1.0, 0.01, 1000, 1e-5), (2.0, 0.1, 10, 1e-6), (2.0, 1.0, 4, 1e-5))
)
"""Cases of DP-SGD under replace and zero-out, for accountants that read ``case.adjacency``."""


def check_accountant(
    epsilon: Callable[[Case], float],
    cases: Iterable[Case] = GRID,
    *,
    delta: Callable[[Case, float], float] | None = None,
    tolerance: float = 1e-3,
    name: str = "",
) -> AccountantResult:
    """Compare the ε that an accountant states with certain limits of the smallest ε, for each case.

    Parameters
    ----------
    epsilon : callable
        ``epsilon(case)`` returns the ε that the accountant states at ``case.delta``. It reads
        ``case.noise_multiplier``, ``case.sampling_rate`` and ``case.steps``, or ``case.mechanisms``. An exception
        refuses the case.
    cases : iterable of Case
        By default `GRID`, which takes about ten seconds at first; the limits are kept until Python ends. An accountant
        that knows other adjacencies also takes `OTHER_ADJACENCIES`.
    delta : callable, optional
        ``delta(case, epsilon)`` returns the δ that the accountant states at an ε; it is asked at the upper limit of ε.
    tolerance : float
        Relative shortfall of a claim that may stay undecided, as an ε of 1.001 for 1 changes no decision. A certain
        shortfall is refuted, unless it is below 1e-9 of the truth, as rounding is.
    name : str
        Name of the accountant; by default that of the function.

    Returns
    -------
    AccountantResult
        REFUTED if a claim is below what any accountant can prove, with certainty; VERIFIED, for these cases only, if
        all claims that were made hold.

    Raises
    ------
    OptionError
        If there are no cases, or the tolerance is not between 0 and 1.

    See Also
    --------
    check_filter : Objects that refuse what exceeds a budget.
    true_epsilon : The limits.

    Notes
    -----
    The limits are those of the dominating pair of each mechanism, which actual datasets attain, composed in both
    directions on a grid that is rounded either way. Floating-point errors, truncation and the error of the FFT widen
    them. Nothing is random.

    References
    ----------
    Zhu, Dong & Wang (2022), Optimal accounting of differential privacy via characteristic function, Theorems 10 and 11.
    Doroshenko et al. (2022), Connect the dots: tighter discrete approximations of privacy loss distributions.

    Examples
    --------
    >>> import math
    >>> from dpaudit.accountants import Case, check_accountant
    >>> def classical(case):  # sqrt(2 ln(1.25 / δ)) / σ, which is proven for ε < 1 only
    ...     return math.sqrt(2 * math.log(1.25 / case.delta)) / case.noise_multiplier
    >>> result = check_accountant(classical, [Case.dp_sgd(sigma, 1.0, 1) for sigma in (10.0, 0.5)])
    >>> print(result.worst)
    Gaussian 0.5; delta 1e-05: epsilon >= 9.997, claimed 9.69
    """
    cases = tuple(cases)
    if not cases:
        raise OptionError("cases is empty, so nothing is checked; leave it out for GRID.")
    if not 0.0 < tolerance < 1.0:  # NaN fails
        raise OptionError(f"tolerance={tolerance!r} is not a fraction; use 0 < tolerance < 1, such as 1e-3.")
    rows = []
    for case in cases:
        true = true_epsilon(case, tolerance=0.1 * tolerance)
        rows.append(_row(case, "epsilon", case.delta, true, tolerance, partial(epsilon, case)))
        if delta is not None and math.isfinite(true.upper):
            at, limits = true.upper, true_delta(case, true.upper, tolerance=0.1 * tolerance)
            rows.append(_row(case, "delta", at, limits, tolerance, partial(delta, case, at)))
    who = name or getattr(epsilon, "__name__", str(epsilon))
    return AccountantResult(accountant=who, rows=tuple(rows), versions=versions())


def _row(
    case: Case, parameter: str, at: float, true: Interval, tolerance: float, claim: Callable[[], Any]
) -> AccountantRow:
    refused, start = "", now()
    try:
        returned = claim()
    except Exception as error:  # an accountant may refuse a case with any exception
        returned, refused = math.nan, one_line(f"{type(error).__name__}: {error}", 100)
    seconds = now() - start
    try:
        claimed = float(returned)
    except (TypeError, ValueError):
        claimed, refused = math.nan, f"it returned {one_line(repr(returned), 60)}"
    return AccountantRow(
        case=case, parameter=parameter, at=at, claimed=claimed, true=true, tolerance=tolerance, seconds=seconds,
        refused=refused,
    )  # fmt: skip
