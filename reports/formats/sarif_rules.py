"""The rules of SARIF files: one for each family of claims, one for statements, one for low bits."""

from __future__ import annotations

from typing import Any, Final

from ...audit.claims.claim import Claim, GroupClaim
from ...audit.records.suite import Checked
from ...audit.results.statement_result import StatementResult

_FAMILIES: Final = {
    "PureDP": ("pure differential privacy (ε)", "Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S]"),
    "ApproxDP": ("approximate differential privacy (ε, δ)", "Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] + δ"),
    "GaussianDP": ("Gaussian differential privacy (μ)", "the trade-off curve of two normal laws at distance μ"),
    "RenyiDP": ("Rényi differential privacy", "a limit on the Rényi divergence of one order"),
    "ZeroConcentratedDP": ("zero-concentrated differential privacy (ρ)", "limits on all Rényi divergences"),
    "PrivacyProfile": ("a privacy profile", "a limit on δ for each of several ε"),
    "TradeOffCurve": ("a trade-off curve", "a limit on the power of every test of x against y"),
    "ProbabilityPreservation": ("probability preservation under Rényi privacy", "Mironov (2017), proposition 10"),
    "NFoldComposition": ("a composition of pure differential privacy", "Mironov (2017), proposition 4"),
}
"""Name and boundary of each family, by the name of its type."""

STATEMENT, LOW_BITS = "Statement", "LowBits"

_HELP: Final = (
    "An audit runs the mechanism on two datasets and tests whether the observed counts of one event contradict the "
    "claim. An error says that they do: if the claim were true, this would happen with probability at most alpha. A "
    "warning says that the audit decided nothing: too few runs, or a failed health check. A result of kind pass says "
    "that the claim is not refuted on this pair by this event. It does not say that the claim is true. A result of "
    "kind review says the same with a caution, such as a detectable excess larger than the claim."
)


def rule_id(result: Checked) -> str:
    """Return the rule of a result: the family of its claim, without parameters and distance."""
    return STATEMENT if isinstance(result, StatementResult) else family(result.claim)


def family(claim: Claim) -> str:
    """Return the name of the family of a claim; that of the claim for neighbours if the claim is for a group.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> family(PureDP(1.0)), family(PureDP(2.0).group(3))
    ('PureDP', 'PureDP')
    """
    return type(claim.base if isinstance(claim, GroupClaim) else claim).__name__


def rule(name: str) -> dict[str, Any]:
    """Return the reporting descriptor of a rule."""
    if name == STATEMENT:
        short = "Statement about a mechanism"
        full = (
            "Audited: whether the interval of every number of the statement meets the range that the statement allows."
        )
        text = (
            "A statement is refuted if an interval lies outside the range that it allows; all intervals hold together "
            "with probability 1 − alpha. A statement is not a privacy claim."
        )
    elif name == LOW_BITS:
        short = "Low bits of floating-point outputs"
        full = (
            "Examined: whether the low bits or the sign of zero of the outputs of the pilot runs contradict the claim."
        )
        text = (
            "The verdict of the audit is about values. This warning is about the floating-point representation of the "
            "outputs, examined in the pilot runs; audit with bits=True for a verdict, or release rounded outputs."
        )
    else:
        title, boundary = _FAMILIES.get(name, (f"the type {name}", "the boundary of the claim"))
        short, full, text = f"Claim of {title}", f"Audited claim: {boundary}, for all events S.", _HELP
        if name not in ("PureDP", "ApproxDP"):
            full = f"Audited claim: {boundary}."
    return {
        "id": name,
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": text},
        "defaultConfiguration": {"level": "warning" if name == LOW_BITS else "error"},
        "properties": {"tags": ["privacy", "differential-privacy"]},
    }
