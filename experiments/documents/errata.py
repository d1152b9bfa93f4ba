"""The page on errors in the source documents.

Every number in the page comes from a run: a text names cases in braces, and `errata_page` replaces each name by the
result of its audit or check.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...audit.printing import percent
from ...audit.records.suite import Checked, Suite
from ...audit.results.statement_result import StatementResult
from ...reports.plain_text import number

# Errors in the source documents, one paragraph each; the name of a case in braces stands for its result.


@dataclass(frozen=True, slots=True)
class Erratum:
    """An error: the printed and the correct statement, and the cases that distinguish them."""

    title: str
    source: str
    text: str


_EXPONENTIAL = "The exponential mechanism, after Dwork & Roth (2014), section 3.4"
_GAUSSIAN = "The analytic Gaussian mechanism, after Balle & Wang (2018)"
_RENYI = "Proposition 4, after Mironov (2017)"
_DEFINITION = "Supplements to the definition, after Vadhan (2017) and Dwork & Roth (2014)"
_LAPLACE = "Laplace noise and composition, after McSherry (2009)"

ERRATA: tuple[Erratum, ...] = (
    Erratum(
        title="Law of noisy max with exponential noise",
        source=f"{_EXPONENTIAL}, Theorem 3.13",
        text=(
            "The document says that report one-sided noisy arg-max with exponential noise of rate ε/(2Δu) has the law "
            "of the exponential mechanism. It has the law of permute-and-flip (McKenna & Sheldon 2020; Ding et al. "
            "2021). With two candidates a distance c apart, the worse one wins with probability ½e^{−cε/2}, against "
            "e^{−cε/2}/(1 + e^{−cε/2}) for the exponential mechanism. An audit of the claim that the two laws are "
            "equal, 0-DP, distinguishes them {E10-exponential}. Gumbel noise of scale 2Δu/ε gives the exponential "
            "mechanism exactly {E10-gumbel}."
        ),
    ),
    Erratum(
        title="Best price for the pumpkins",
        source=f"{_EXPONENTIAL}, Example 3.5",
        text=(
            "A, F and I bid 1.00, K bids 3.01. The document says that the best price is 3.01, with revenue 3.01. At "
            "1.00, however, K buys too, and the revenue is 4.00. The exponential mechanism prefers candidates of "
            "larger utility: an audit refutes that 3.01 is drawn at least as often as 1.00 {E5-best-is-3.01}, but not "
            "the reverse {E5-best-is-1.00}. The point of the example, that a price slightly above the best can lose "
            "everything, needs other bids."
        ),
    ),
    Erratum(
        title="Probability of the worse candidate under one-sided noise",
        source=f"{_EXPONENTIAL}, Example 3.6",
        text=(
            "The document says that the probability of the worse of two candidates, c apart, is distributed as an "
            "exponential of rate cε. At the monotone rate ε this probability is ½e^{−cε}: equality with e^{−cε} "
            "is refuted {E7-noisy-equal}, equality with half of e^{−cε} is not {E7-noisy-half}."
        ),
    ),
    Erratum(
        title="Program for the analytic Gaussian mechanism",
        source=_GAUSSIAN,
        text=(
            "The program has three bugs. First, the random number generator is given the variance σ² instead of the "
            "standard deviation: the noise is too small when σ < 1 {G3-variance-under} and too large when σ > 1 "
            "{G3-scale-variance-over}. Second, √(x² + 1) is hard-coded instead of √(x² + ε), and the failure of the "
            "solver is ignored: the noise is too small at ε = 1.1 {G3-one-for-epsilon-at-1.1}. Third, the Newton "
            "iteration in the text has a misprinted derivative, e^{2x²} for e^{−x²}, and converges very slowly; "
            "stopped near its start, it leaves too little noise {G3-newton}. The derivative is e^ε e^{−x²−ε} "
            "x/√(x² + ε) − e^{−x²}. The remark that the published reference code does not match the lemma is wrong: "
            "both give the same σ, and the delta is attained {G1-attained}."
        ),
    ),
    Erratum(
        title="Definition of the error function",
        source=_GAUSSIAN,
        text=(
            "erf(x) is defined as an integral from 0 to infinity, which is 1 for every x; the integral runs from 0 to "
            "x. With the printed definition the equation for χ would read 0 = 2δ and have no solution."
        ),
    ),
    Erratum(
        title="Proof of Proposition 4",
        source=_RENYI,
        text=(
            "From D_α ≤ 2αnε² with α = √L/(ε√n), L = ln(1/q), the exponent is 3ε√(nL) − L − 2ε²n, and not 2ε√(nL) − L "
            "as in the last step; the exponent is larger if L > 4ε²n. The statement is still true: with the tight "
            "D_α ≤ αε²/2 of each mechanism (Bun & Steinke 2016) the exponent is at most √2 ε√(nL) − L. Compositions "
            "keep the statement {R3-response-10}; a composition of four times as many mechanisms does not "
            "{R3-four-times}."
        ),
    ),
    Erratum(
        title="Bayesian interpretation for dependent rows",
        source=f"{_DEFINITION}, section 1",
        text=(
            "The document states for every prior that removing a row changes the posterior of the row by a factor "
            "of at most e^{±ε}. This holds for independent rows under replacement {D1-independent}. With X = (b, b) "
            "the second row reveals the first, and the ratio can approach e^{2ε}: e^{±ε} is refuted {D1-correlated}, "
            "e^{±2ε} is not {D1-correlated-twice}."
        ),
    ),
    Erratum(
        title="Inverse of the Laplace distribution function",
        source=_LAPLACE,
        text=(
            "The second branch has ln(2(1 − μ)) for ln(2(1 − ξ)), and the unified formula mixes ξ and ξ'. The correct "
            "formula draws Laplace noise {L1-inverse}; the first misprint {L1-second-branch} and the second "
            "{L1-mixed} do not."
        ),
    ),
    Erratum(
        title="Union of the parts of a partition",
        source=f"{_LAPLACE}, parallel composition",
        text=(
            "The domain is written as the intersection of its parts, which is empty; the domain is their union. "
            "Disjoint parts have the largest ε of the parts under add/remove {L5-disjoint}. Overlapping parts do not "
            "{L5-overlapping}, and under replace a row may leave one part and enter another {L5-replace}."
        ),
    ),
    Erratum(
        title="Proof of Theorem 3.10",
        source=_EXPONENTIAL,
        text=(
            "The exponent of the first factor uses the bound variable r' of the sum instead of r, as the document "
            "itself corrects; the lower bound follows by symmetry. Measured separately, the factor with r, the "
            "numerator, and the normaliser are each within ε/2 {E1-halves}; without the factor 2 they are not "
            "{E1-halves-missing-2}."
        ),
    ),
    Erratum(
        title="Difference between (ε, δ)-DP and ε-DP with probability 1 − δ",
        source=f"{_DEFINITION}, section 3",
        text=(
            "The analytic Gaussian mechanism at ε = 1 and δ = 1e-5 is (ε, δ)-DP, yet its privacy loss exceeds ε with "
            "sixteen times the probability δ {D5-loss-tail}; a probability of at most δ is refuted "
            "{D5-loss-at-most-delta}."
        ),
    ),
    Erratum(
        title="Privacy loss of the exponential mechanism and the factor 2",
        source=f"{_EXPONENTIAL}, introduction and first supplement to Theorem 3.10",
        text=(
            "The first supplement treats the normalised ratio of probabilities as if it were its numerator alone, "
            "which would give a loss of at most ε/2. With 50 candidates, one up and the rest down, the loss is nearly "
            "ε {E2-half-loss}. For the same reason the introduction says that weights exp(εu/Δu) lose ε; without the "
            "factor 2 the loss on this pair is nearly 2ε {E2-one-up-missing-2}, and with it at most ε {E2-one-up}."
        ),
    ),
    Erratum(
        title="Pointwise definition of differential privacy",
        source=f"{_LAPLACE}, definition",
        text=(
            "Pr[A(D) = O] ≤ e^ε Pr[A(D') = O] for every output O is an empty condition for continuous noise, where "
            "both sides are 0. The condition has to hold for events, as in every audit here {L3-group-1}."
        ),
    ),
    Erratum(
        title="Misprints",
        source=f"{_DEFINITION}; {_LAPLACE}",
        text=(
            "‖x‖₁ ≤ 1 for ‖x − y‖₁ ≤ 1 in the neighbour relation; (D ⊕ D') ⊕ R_i for (D ⊕ D') ∩ R_i in the proof of "
            "parallel composition; e^{ε1+ε1} for e^{ε1+ε2}."
        ),
    ),
)

_CASE = re.compile(r"\{([A-Z]\d+-[^{}]+)\}")  # does not match the exponents


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of a case as a phrase."""

    result: Checked
    exact: float | None

    def __str__(self) -> str:
        result = self.result
        verdict = f"**{result.verdict.value}**"
        if not isinstance(result, StatementResult):
            claim = result.directed_claim
            text = f"{verdict}: {claim.describe_strength(result.bound)}, claimed {number(claim.strength)}"
        else:
            worst = result.worst
            quantity = f"{result.quantity} at {worst.at}" if worst.at else result.quantity
            text = f"{verdict}: {quantity} in {worst.interval}, {worst.allowed}"
        return text if self.exact is None else f"{text}, exact {number(self.exact)}"


def cases_of(errata: Sequence[Erratum] = ERRATA) -> list[str]:
    """Return the names of the cases that the texts mention, each once."""
    return list(dict.fromkeys(name for erratum in errata for name in _CASE.findall(erratum.text)))


def errata_page(suite: Suite) -> str:
    """Return the page in Markdown, from a suite with every case of `cases_of`."""
    ids = {entry.name: entry.experiment for entry in suite.entries}
    found = {entry.name: _Found(entry.result, entry.exact) for entry in suite.entries}
    alphas = sorted({entry.result.alpha for entry in suite.entries})
    seed = suite.entries[0].result.seed
    parts = [
        "# Errors in the sources",
        "The source documents of the experiments contain the errors below. Statements that can be run were run as "
        "printed and as corrected. The parentheses give the case (`dpaudit run CASE` repeats it) and its result, at "
        f"{' or '.join(percent(1 - alpha) for alpha in alphas)} confidence with seed {seed}. `dpaudit bench errata` "
        "writes this page.",
    ]
    for place, erratum in enumerate(ERRATA, start=1):
        rows = list(dict.fromkeys(ids[name] for name in _CASE.findall(erratum.text)))
        heading = f"## {place}. {erratum.title}"
        about = f"*{erratum.source}" + (
            f"; experiment{'s' if len(rows) > 1 else ''} {', '.join(rows)}*" if rows else "*"
        )
        text = _CASE.sub(lambda match: f"(`{match[1]}` {found[match[1]]})", erratum.text)
        parts += [heading, about, text]
    return "\n\n".join(parts) + "\n"
