"""What is wrong in the source documents, a paragraph each; a case's name in braces stands for what it finds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Erratum:
    """An error: what is printed, what is right, and the runs that tell them apart."""

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
        title="Exponential noise does not give the exponential mechanism",
        source=f"{_EXPONENTIAL}, Theorem 3.13",
        text=(
            "Report one-sided noisy arg-max with exponential noise of rate ε/(2Δu) is said to have the law of the "
            "exponential mechanism. It has that of permute-and-flip (McKenna & Sheldon 2020; Ding et al. 2021): with "
            "two candidates a distance c apart, the worse one wins with probability ½e^{−cε/2}, against "
            "e^{−cε/2}/(1 + e^{−cε/2}). An audit of the two laws against the claim that they are equal, 0-DP, tells "
            "them apart {E10-exponential}. Gumbel noise of scale 2Δu/ε gives the exponential mechanism exactly "
            "{E10-gumbel}."
        ),
    ),
    Erratum(
        title="The best price of the pumpkins is 1.00",
        source=f"{_EXPONENTIAL}, Example 3.5",
        text=(
            "A, F and I bid 1.00, K bids 3.01. The best price is said to be 3.01, with revenue 3.01; but at 1.00 K "
            "buys too, and the revenue is 4.00. The exponential mechanism, which prefers what is worth more, shows it: "
            "that 3.01 is drawn at least as often as 1.00 is refuted {E5-best-is-3.01}, the reverse is not "
            "{E5-best-is-1.00}. The example's point, that a little more than the best price can lose everything, needs "
            "other bids."
        ),
    ),
    Erratum(
        title="The wrong answer under one-sided noise",
        source=f"{_EXPONENTIAL}, Example 3.6",
        text=(
            "The probability of the worse of two candidates, c apart, is said to be distributed as an exponential of "
            "rate cε. At the monotone rate ε it is ½e^{−cε}: equality with e^{−cε} is refuted {E7-noisy-equal}, "
            "equality with half of it is not {E7-noisy-half}."
        ),
    ),
    Erratum(
        title="The program for the analytic Gaussian mechanism",
        source=_GAUSSIAN,
        text=(
            "Three bugs. The generator is given the variance σ² where it expects the standard deviation: too little "
            "noise when σ < 1 {G3-variance-under}, too much when σ > 1 {G3-scale-variance-over}. √(x² + 1) is "
            "hard-coded where √(x² + ε) belongs, and the solver's failure is not looked at: too little noise at ε = "
            "1.1 {G3-one-for-epsilon-at-1.1}. The text's Newton iteration has a misprinted derivative, e^{2x²} for "
            "e^{−x²}, with which it creeps; stopped near its start it leaves too little noise {G3-newton}. The "
            "derivative should be e^ε e^{−x²−ε} x/√(x² + ε) − e^{−x²}. The remark that the published reference code "
            "does not match the lemma is wrong: both give the same σ, which is attained {G1-attained}."
        ),
    ),
    Erratum(
        title="The error function",
        source=_GAUSSIAN,
        text=(
            "erf(x) is written as an integral from 0 to infinity, which is 1 for every x; the integral runs from 0 to "
            "x. With the printed one the equation for χ would read 0 = 2δ and have no solution."
        ),
    ),
    Erratum(
        title="The proof of Proposition 4",
        source=_RENYI,
        text=(
            "From D_α ≤ 2αnε² with α = √L/(ε√n), L = ln(1/q), the exponent is 3ε√(nL) − L − 2ε²n, not the 2ε√(nL) − L "
            "of the last step; it is larger once L > 4ε²n. The statement is true all the same: with the tight "
            "D_α ≤ αε²/2 of each mechanism (Bun & Steinke 2016) the exponent is at most √2 ε√(nL) − L. Compositions "
            "keep it {R3-response-10}; one of four times as many mechanisms does not {R3-four-times}."
        ),
    ),
    Erratum(
        title="The Bayesian reading with correlated rows",
        source=f"{_DEFINITION}, section 1",
        text=(
            "That the posterior of a row changes by at most e^{±ε} when the row is removed is stated for every prior. "
            "It holds for independent rows under replacement {D1-independent}. With X = (b, b) the second row tells "
            "the first, and the ratio can approach e^{2ε}: e^{±ε} is refuted {D1-correlated}, e^{±2ε} is not "
            "{D1-correlated-twice}."
        ),
    ),
    Erratum(
        title="The inverse of the Laplace distribution function",
        source=_LAPLACE,
        text=(
            "The second branch is written with ln(2(1 − μ)) for ln(2(1 − ξ)), and the unified formula mixes ξ and ξ'. "
            "The formula as it should read draws Laplace noise {L1-inverse}; the first misprint does not "
            "{L1-second-branch}, nor does the second {L1-mixed}."
        ),
    ),
    Erratum(
        title="The parts of a partition",
        source=f"{_LAPLACE}, parallel composition",
        text=(
            "The domain is written as the intersection of its parts, which is empty; it is their union. Disjoint parts "
            "give the largest ε of the parts under add/remove {L5-disjoint}; overlapping parts do not "
            "{L5-overlapping}, and under replace a row may leave one part and enter another {L5-replace}."
        ),
    ),
    Erratum(
        title="The proof of Theorem 3.10",
        source=_EXPONENTIAL,
        text=(
            "The exponent of the first factor uses the bound variable r' of the sum where it must use r, as the "
            "document itself corrects; the lower bound follows by symmetry. Measured apart, "
            "the factor with r, the numerator, and the normaliser each keep within ε/2 {E1-halves}; without the 2 they "
            "do not {E1-halves-missing-2}."
        ),
    ),
    Erratum(
        title="(ε, δ)-DP is not ε-DP with probability 1 − δ",
        source=f"{_DEFINITION}, section 3",
        text=(
            "The analytic Gaussian mechanism at ε = 1 and δ = 1e-5 is (ε, δ)-DP, yet its privacy loss exceeds ε with "
            "sixteen times that probability {D5-loss-tail}; that it does so with at most δ is refuted "
            "{D5-loss-at-most-delta}."
        ),
    ),
    Erratum(
        title="The privacy loss is not ε/2, and the 2 is needed",
        source=f"{_EXPONENTIAL}, introduction and first supplement to Theorem 3.10",
        text=(
            "The first supplement takes the normalised ratio of probabilities for its numerator, so that the loss "
            "would be at most ε/2. With 50 candidates, one up and the rest down, it is nearly ε {E2-half-loss}. The "
            "introduction says that weights exp(εu/Δu) lose ε, for the same reason; without the 2 the loss there is "
            "nearly 2ε {E2-one-up-missing-2}, and with it at most ε {E2-one-up}."
        ),
    ),
    Erratum(
        title="A definition by points",
        source=f"{_LAPLACE}, definition",
        text=(
            "Pr[A(D) = O] ≤ e^ε Pr[A(D') = O] for every output O says nothing for continuous noise, where both sides "
            "are 0. It has to be read over events, as every audit here does {L3-group-1}."
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
