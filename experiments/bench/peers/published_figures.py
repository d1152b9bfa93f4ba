"""What other testers of differential privacy publish, or were measured to do: figures and where each is from.

"Measured" means: the tester's own code, run on a machine of 2 cores, with few repetitions and noisy times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What peers do about one question.

    Attributes
    ----------
    question : str
    peers : str
        Who, with which figures.
    source : str
        Where the figures are from, or how they were measured.
    """

    question: str
    peers: str
    source: str


ERROR: Final = Figure(
    question="smallest error of the noise found, 1 claimed",
    peers="StatDP: ε = 1.02 in 5 of 6 audits, 1.05 in 6 of 6; 1.4·10⁶ runs in all, 4 to 5 s",
    source="measured: StatDP on its own histogram at p < .05, which it refuted in 0 of 20 audits at ε = 1",
)
ALARMS: Final = Figure(
    question="false alarms at a nominal .05",
    peers="StatDP's test: .089 on equal laws, .035 at ε = .1, .008 at ε = .7; TF-privacy's largest of many thresholds: "
    ".93 on equal laws",
    source="measured: StatDP's `test_statistics` with its swap of sides after the fact, 3,000 repetitions with 3,000 "
    "runs at p₂ = .2; TensorFlow Privacy's maximum over thresholds without a correction",
)
TIGHT: Final = Figure(
    question="gap between bound and truth, as a multiple of that of the best event with every run counted; 10⁶ runs",
    peers="two Clopper-Pearson limits (DP-Sniper, Delta-Siege, jax-privacy): {two_limits}",
    source="their formula on the hits of our audits, in the same table as ours",
)
TWENTY: Final = Figure(
    question="DP-Sniper's 20 mechanisms, lower bounds at confidence .9",
    peers="DP-Sniper: 6.1·10⁸ to 1.3·10⁹ runs each, .57 h (logistic regression) or 3.1 h (neural network) in all; "
    "StatDP: 16 h",
    source="published: the logs in DP-Sniper's repository; its runs follow from its settings",
)
ELEVEN: Final = Figure(
    question="StatDP's 11 mechanisms, claim .7",
    peers="StatDP: 11 of 11 verdicts right, 1.4·10⁶ to 2.6·10⁶ runs and 1.7 to 14 s each, one 43 s",
    source="measured: StatDP at its own settings, one audit of each; the 43 s were beside another program",
)
BITS: Final = Figure(
    question="low bits of textbook Laplace noise",
    peers="DP-Sniper: ε ≥ .252, 2·10⁸ runs, 35 min",
    source="DP-Sniper on floating-point noise, whose features are not the bits themselves; an event made by hand from "
    "the true bits gives 5.6 at 2·10⁷ runs, in 3 s",
)
LEAK: Final = Figure(
    question="a leak in .2% of outputs, ε = ∞",
    peers="StatDP and the four testers of DP-Auditorium: missed, at 10⁵ runs",
    source="measured: DP-Auditorium by hockey-stick, histogram, Rényi and MMD testers, and StatDP",
)
OUTPUTS: Final = Figure(
    question="outputs of any length, strings, Enums, None; DP-Auditorium's sparse vectors",
    peers="StatDP, DP-Auditorium: an error; with outputs coded as numbers DP-Auditorium missed 2 of 3 violations, "
    "10⁵ runs on each dataset",
    source="measured: DP-Auditorium, hockey-stick tester, c = 2; variants 4 and 6 missed, 5 found, 1 and 2 passed; "
    "what is true of variant 3 at these settings was not known",
)
EARLY: Final = Figure(
    question="stopping early",
    peers="no peer has a test that stays valid",
    source="those named on this page were looked at",
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One audit by StatDP of one of its mechanisms: runs in millions, p-value at .7, seconds."""

    runs: float
    p_value: str
    seconds: float


STATDP_TRIALS: Final[dict[str, Trial]] = {
    "noisy_max_v1a": Trial(2.6, ".998", 11.3),
    "noisy_max_v2a": Trial(2.6, ".511", 8.6),
    "histogram": Trial(1.4, ".076", 3.8),
    "SVT": Trial(2.6, ".9996", 9.9),
    "noisy_max_v1b": Trial(2.6, "0", 7.8),
    "noisy_max_v2b": Trial(2.6, "0", 4.9),
    "histogram_eps": Trial(1.4, "0", 1.7),
    "iSVT1": Trial(2.6, "0", 5.7),
    "iSVT2": Trial(2.6, "0", 42.5),
    "iSVT3": Trial(2.6, "2e-152", 14.1),
    "iSVT4": Trial(2.6, "6e-103", 11.3),
}
"""Measured with StatDP's code; refuted where p is below .05."""
