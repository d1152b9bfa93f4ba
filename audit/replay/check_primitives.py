"""Audits of the noise primitives that a replay recorded, each by itself: does the noise protect as its law says?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..claims.claim import Claim, GaussianDP, PureDP
from ..errors import MechanismError
from ..inference.boundary_test import check_test_alpha
from ..known_options import with_known_options
from ..options import checked
from ..procedures.check import check
from ..random_streams import Stream, seed_of
from ..results.audit_result import AuditResult, Verdict
from .replay_result import ReplayResult, check_replay_result
from .replayed_call import ReplayedCall

_SPARE = 2_000  # more draws than an audit makes beside its runs


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitiveCheck:
    """A call, or several calls alike, and the audit of its primitive between its inputs on x and on y.

    Attributes
    ----------
    call : ReplayedCall
        The first of the calls.
    calls : int
        How many calls are alike: the same primitive with the same laws.
    claim : Claim or None
        The loss that the laws state for the move of the input; None if it is unknown or infinite.
    audit : AuditResult or None
        None without a claim.
    """

    call: ReplayedCall
    calls: int
    claim: Claim | None
    audit: AuditResult | None

    def __str__(self) -> str:
        times = f", {self.calls:,} calls" if self.calls > 1 else ""
        said = f"not audited: {self._why_not}" if self.audit is None else self.audit.sentence
        return f"{self.call.place}: {self.call.primitive}{times}: {said}"

    @property
    def _why_not(self) -> str:
        if self.call.is_inferred:
            return "the noise is added afterwards; put noise_primitive on the function that adds it"
        return "its loss is unknown or infinite"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitiveChecks:
    """The primitives of a replay, audited one by one; together they refute what is true with probability `alpha`.

    Attributes
    ----------
    checks : tuple of PrimitiveCheck
    unmoved : int
        Calls whose input is the same on x and y, which there is nothing to audit about.
    bare : int
        Calls that were given nothing that depends on the data, so what they protect is not known.
    """

    mechanism: str
    checks: tuple[PrimitiveCheck, ...]
    unmoved: int
    alpha: float
    bare: int = 0

    @property
    def is_refuted(self) -> bool:
        """Whether a primitive protects less than its law says."""
        return any(one.audit is not None and one.audit.is_refuted for one in self.checks)

    @property
    def verdict(self) -> Verdict:
        """Refuted if a primitive is; inconclusive if an audit is, a primitive could not be audited, or none was."""
        verdicts = {Verdict.INCONCLUSIVE if one.audit is None else one.audit.verdict for one in self.checks}
        if not self.checks:
            return Verdict.INCONCLUSIVE
        order = (Verdict.REFUTED, Verdict.INCONCLUSIVE)
        return next((verdict for verdict in order if verdict in verdicts), Verdict.NOT_REFUTED)

    def __str__(self) -> str:
        number = f"{len(self.checks)} primitive{'s' * (len(self.checks) != 1)}"
        lines = [f"{self.verdict.value.upper()}: {number} of {self.mechanism}, alpha {self.alpha:g}"]
        lines += [f"  {one}" for one in self.checks]
        if self.unmoved:
            were = "call was" if self.unmoved == 1 else "calls were"
            lines.append(f"  {self.unmoved:,} {were} given the same on x and y")
        if self.bare:
            were = "call was" if self.bare == 1 else "calls were"
            lines.append(
                f"  {self.bare:,} {were} given nothing that depends on the data, and not audited; put "
                "noise_primitive on the function that adds the noise"
            )
        return "\n".join(lines)

    def __bool__(self) -> bool:
        raise TypeError("PrimitiveChecks are neither true nor false; use .is_refuted or .verdict.")


@with_known_options()
def check_primitives(
    result: ReplayResult, *, runs: int = 20_000, alpha: float = 0.05, seed: int | None = 0
) -> PrimitiveChecks:
    """Audit each noise primitive of a replay between the inputs that it was given on x and on y.

    A replay takes the law of a primitive as stated. Here each primitive is called again and again with either input,
    and the loss that the law states is the claim; so noise that is weaker than its law says is refuted. Calls alike are
    audited once.

    Parameters
    ----------
    result : ReplayResult
        A replay that was just made: the calls are made again in this process.
    runs : int
        Calls with each of the two inputs, for each primitive.
    alpha : float
        Probability of refuting any of them if all are as stated; divided evenly.
    seed : int or None
        Random seed of the audits; libraries with randomness of their own do not repeat it.

    Returns
    -------
    PrimitiveChecks

    Raises
    ------
    OptionError
        For arguments outside their range.
    MechanismError
        If a primitive cannot be called again.

    Examples
    --------
    >>> from dpaudit import noise_primitive, replay
    >>> @noise_primitive("laplace", location="value", scale="scale")
    ... def add_noise(value, scale):
    ...     return value + np.random.laplace(scale=scale / 2)      # half of what it states
    >>> found = replay(lambda rows: add_noise(len(rows), 1.0), [1, 1], [1], claim=1.0)
    >>> found.verdict.value, check_primitives(found, runs=4_000).is_refuted
    ('bounded on this path', True)
    """
    check_replay_result(result)
    alpha, seed = check_test_alpha(alpha), checked("seed", seed)
    alike: dict[Any, list[ReplayedCall]] = {}
    unmoved = bare = 0
    for call in result.calls:
        if call.is_bare:
            bare += 1
        elif call.worst_loss == 0.0:
            unmoved += 1
        else:
            alike.setdefault(_key(call), []).append(call)
    share = alpha / max(sum(_stated(calls[0]) is not None for calls in alike.values()), 1)
    checks = []
    for number, calls in enumerate(alike.values()):
        claim = _stated(calls[0])
        audit = None if claim is None else _audited(calls[0], claim, runs, share, seed_of(seed, Stream.TRIALS, number))
        checks.append(PrimitiveCheck(call=calls[0], calls=len(calls), claim=claim, audit=audit))
    return PrimitiveChecks(mechanism=result.mechanism, checks=tuple(checks), unmoved=unmoved, alpha=alpha, bare=bare)


def _key(call: ReplayedCall) -> tuple[str, str, str]:
    return call.primitive, _text(call.law_on_x), _text(call.law_on_y)


def _text(law: Any) -> str:
    parameters = {name: np.asarray(value).tolist() for name, value in law.parameters.items()}
    return f"{law.name} {parameters!r} {law.shape} {law.after}"


def _stated(call: ReplayedCall) -> Claim | None:
    """Return the loss of a call as a claim; None if it is unknown or infinite, or the noise is added elsewhere."""
    if call.is_inferred:
        return None
    mu, worst = call.mu, call.worst_loss
    if mu is not None and math.isfinite(mu):
        return GaussianDP(mu)
    if worst is not None and math.isfinite(worst):
        return PureDP(worst)
    return call.promised


def _unlike(draw: Callable[[], Any], runs: int) -> Callable[[], Any]:
    """Return a draw whose generator is far from where the other run's stands: both runs began with the same seed."""
    for _ in range(runs + _SPARE):
        draw()
    return draw


def _audited(call: ReplayedCall, claim: Claim, runs: int, alpha: float, seed: int) -> AuditResult:
    if call.draw_on_x is None or call.draw_on_y is None:
        raise MechanismError(f"{call.primitive} at {call.place} cannot be called again.", call=call)
    draws = {"x": call.draw_on_x, "y": _unlike(call.draw_on_y, runs)}

    def primitive(side: str) -> Any:
        return draws[side]()

    return check(primitive, "x", "y", claim=claim, runs=runs, alpha=alpha, seed=seed, jobs=1, name=call.primitive)
