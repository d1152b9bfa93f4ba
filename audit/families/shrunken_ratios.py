"""Log-likelihood ratios of many outcomes, each shrunk towards what a model of all outcomes predicts for it.

The raw log ratio of an outcome with ten hits has a standard error of 0.6, so an order by raw ratios puts rare outcomes
first and last, regardless of the truth. Here outcome i with n_i hits, a_i of them on x, has

    a_i ~ Bin(n_i, σ(m_i + u_i)),  u_i ~ Σ_k π_k N(0, τ_k²),

where m_i is the prediction of the model, σ the logistic function, and the τ_k are a fixed grid from 0 to 5. The shares
π_k are estimated from all outcomes by maximum likelihood (EM), so u_i is shrunk much where most outcomes follow the
model and little where they do not. A single outcome that is far off keeps its ratio, because the prior has a heavy
tail. The estimate is m_i + Σ_k Pr[k | a_i] û_ik, where û_ik solves a_i − n_i σ(m_i + û) = û / τ_k²; for outcomes near
the model it is about m_i + w_i τ_k² / (1 + w_i τ_k²) (L_i − m_i), with the raw log ratio L_i and the weight
w_i = n_i σ(m_i) (1 − σ(m_i)). The likelihood of each k is a Laplace approximation.

References
----------
Stephens (2017), False discovery rates: a new deal, Section 2 (a scale mixture of normals, its shares by EM). Breslow &
Clayton (1993), Approximate inference in generalized linear mixed models, Section 2 (the approximation for counts).
Efron & Morris (1973), Stein's estimation rule and its competitors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Array = npt.NDArray[np.float64]

_DEVIATIONS = tuple(0.01 * 2.0**power for power in range(10))  # τ_k beside 0
_ROUNDS = 60
_STEPS = 8
_STEEPEST = 30.0  # beyond it, a share is 0 or 1 in double precision


def shrunken_log_ratios(predicted: Array, hits_x: Array, hits_y: Array) -> Array:
    """Log-likelihood ratio of each outcome, shrunk towards the predicted one.

    Parameters
    ----------
    predicted : ndarray, shape (outcomes,)
        Log ratios according to a model.
    hits_x, hits_y : ndarray, shape (outcomes,)
        Hits in equally many runs on each dataset.

    Examples
    --------
    Four outcomes with nearly equal frequencies, and one that never occurs on x:

    >>> hits_x, hits_y = np.array([101.0, 99.0, 103.0, 97.0, 0.0]), np.array([99.0, 101.0, 97.0, 103.0, 30.0])
    >>> (shrunken_log_ratios(np.zeros(5), hits_x, hits_y).round(1) + 0.0).tolist()
    [0.0, 0.0, 0.0, 0.0, -5.0]
    """
    predicted = np.clip(predicted, -_STEEPEST, _STEEPEST)
    hits = hits_x + hits_y
    modes = np.zeros((1 + len(_DEVIATIONS), len(predicted)))
    evidence = np.zeros_like(modes)  # log marginal likelihood, less that of τ = 0
    at_zero = predicted * hits_x - np.logaddexp(0.0, predicted) * hits
    for k, deviation in enumerate(_DEVIATIONS, start=1):
        precision = deviation**-2
        own = modes[k - 1].copy()
        for _ in range(_STEPS):
            share = expit(predicted + own)
            step = (hits_x - hits * share - own * precision) / (hits * share * (1.0 - share) + precision)
            own += np.clip(step, -1.5, 1.5)
            if float(np.abs(step).max(initial=0.0)) < 1e-4:
                break
        share, log_ratio = expit(predicted + own), predicted + own
        likelihood = log_ratio * hits_x - np.logaddexp(0.0, log_ratio) * hits
        sharpness = np.log1p(hits * share * (1.0 - share) / precision)
        modes[k], evidence[k] = own, likelihood - at_zero - 0.5 * (own**2 * precision + sharpness)
    return np.asarray(predicted + (_posterior(evidence) * modes).sum(axis=0))


def _posterior(evidence: Array) -> Array:
    """Probability of each deviation for each outcome, with shares estimated from all outcomes."""
    likelihood = np.exp(evidence - evidence.max(axis=0))
    shares = np.full(len(evidence), 1.0 / len(evidence))
    for _ in range(_ROUNDS):
        weights = 1.0 / (shares @ likelihood)
        before, shares = shares, shares * (likelihood @ weights)
        shares = (shares + 1.0 / len(shares)) / (shares.sum() + 1.0)  # as if one more outcome were spread evenly
        if float(np.abs(shares - before).max()) < 1e-3:
            break
    return np.asarray(shares[:, None] * likelihood / (shares @ likelihood))


def calibrated(scores: Array, hits_x: Array, hits_y: Array) -> tuple[float, float]:
    """a and b of the log-likelihood ratio a + b·score of largest likelihood; b = 0 if the scores do not vary."""
    spread, middle = float(np.std(scores)), float(np.mean(scores))
    if not 0.0 < spread < np.inf:
        return 0.0, 0.0
    columns = np.column_stack([np.ones(len(scores)), (scores - middle) / spread])
    weights, hits = np.zeros(2), hits_x + hits_y
    for _ in range(_STEPS):
        share = expit(columns @ weights)
        information = columns.T @ ((hits * share * (1.0 - share))[:, None] * columns) + 1e-9 * np.eye(2)
        step = np.linalg.solve(information, columns.T @ (hits_x - hits * share))
        weights += np.clip(step, -1.5, 1.5)
        if float(np.abs(step).max()) < 1e-6:
            break
    slope = float(weights[1]) / spread
    return float(weights[0]) - slope * middle, slope


def log_likelihood(log_ratios: Array, hits_x: Array, hits_y: Array) -> float:
    """Log-likelihood of the datasets of the outputs, given their outcomes, up to a constant."""
    return float(log_ratios @ hits_x - np.logaddexp(0.0, log_ratios) @ (hits_x + hits_y))
