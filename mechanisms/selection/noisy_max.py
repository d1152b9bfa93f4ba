"""Report noisy max: the index of the largest count after noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
from scipy.special import logsumexp

from ...audit.errors import ClaimError, DatasetError
from ..laws.laws import FiniteLaw
from ..noise_samplers import PIECE, Floats, Integers, fill_exponential, fill_laplace, pieces
from ..queries import Query, identity, places_below_leader
from .selection_mechanism import SelectionMechanism

_FILLS: Final = {"laplace": fill_laplace, "exponential": fill_exponential, "gumbel": fill_exponential}


@dataclass(frozen=True, slots=True)
class ReportNoisyMax(SelectionMechanism):
    """The index of the largest count after independent noise of scale 2Δ/ε on each: epsilon-DP.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    sensitivity : float
        Δ, the largest change of a single count between neighbouring datasets, positive.
    monotone : bool
        Use the scale Δ/ε. The claim then holds under add/remove only, and only if adding a row lowers no count.
    noise : {"laplace", "exponential", "gumbel"}
        Exponential noise gives the law of permute-and-flip, Gumbel noise that of the exponential mechanism.
    counts : callable
        Maps the dataset to the candidates' counts, shape (n_candidates,); by default the dataset is that vector.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Claim 3.9 (Laplace, counts) and Section
    3.4 (exponential); McKenna & Sheldon (2020), Permute-and-flip: a new mechanism for differentially private selection;
    Ding et al. (2021), The permute-and-flip mechanism is identical to report-noisy-max with exponential noise.

    Examples
    --------
    >>> ReportNoisyMax(epsilon=2.0, noise="gumbel").law([0.0, 1.0]).probabilities.round(3).tolist()
    [0.269, 0.731]
    """

    noise: Literal["laplace", "exponential", "gumbel"] = "laplace"
    counts: Query = identity

    def __post_init__(self) -> None:
        SelectionMechanism.__post_init__(self)
        if self.noise not in _FILLS:
            raise ClaimError(f"noise={self.noise!r} is unknown; use one of {', '.join(_FILLS)}.", noise=self.noise)

    def __str__(self) -> str:
        ending = ", monotone" if self.monotone else ""
        return f"NoisyMax(epsilon={self.epsilon:g}, sensitivity={self.sensitivity:g}, {self.noise}{ending})"

    def law(self, dataset: Any) -> FiniteLaw:
        """The law of the output, with a relative error of about 1e-12 in every probability.

        With Laplace noise, too many counts, too many scales apart for the integration, raise a `DatasetError`.
        """
        places = places_below_leader(self.counts, dataset, self.scale)
        match self.noise:
            case "laplace":
                return FiniteLaw(tuple(_laplace_winners(places).tolist()))
            case "exponential":
                return FiniteLaw(tuple(_race_winners(places).tolist()))
            case _:
                return FiniteLaw.from_log_weights(places)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """`size` independent indices in range(n_candidates), shape (size,), int64.

        Memory does not grow with the number of candidates: each candidate in turn is compared with the leader so far.
        """
        places = places_below_leader(self.counts, dataset, self.scale)
        # Gumbel noise is −ln E with E exponential; −E e^{−place} orders the candidates as place − ln E does.
        factors = -np.exp(np.minimum(-places, 700.0))
        fill = _FILLS[self.noise]
        index = np.min_scalar_type(len(places) - 1)
        winners = np.empty(size, dtype=np.int64)
        room = min(size, PIECE)
        leads, trials, aheads = np.empty(room), np.empty(room), np.empty(room, dtype=np.bool_)
        indices, marks = np.empty(room, dtype=index), np.empty(room, dtype=index)
        for piece in pieces(size):
            n = piece.stop - piece.start
            lead, trial, is_ahead, winner, mark = leads[:n], trials[:n], aheads[:n], indices[:n], marks[:n]
            lead.fill(-np.inf)
            winner.fill(0)
            for candidate, (place, factor) in enumerate(zip(places, factors, strict=True)):
                fill(trial, rng)
                if self.noise == "gumbel":
                    trial *= factor
                else:
                    trial += place
                # Candidates come in order, so the largest mark is the last leader's; twice as fast as a masked copy.
                np.greater(trial, lead, out=is_ahead)
                np.multiply(is_ahead.view(np.uint8), index.type(candidate), out=mark)
                np.maximum(winner, mark, out=winner)
                np.maximum(lead, trial, out=lead)
            winners[piece] = winner
        return winners


def _race_winners(places: Floats, share: float = 1.0) -> Floats:
    """Return ln of w_i ∫₀¹ ∏_{j≠i} (1 − t w_j) dt, w = share·e^place: i is the largest, above the leader's place.

    With share 1 this is the law of noisy max with exponential noise, because the winning value lies above every place.
    The variable t is the leader's survival function at the winning value. Gauss-Legendre with K/2 nodes is exact for
    the polynomial.
    """
    nodes, weights = _gauss_legendre(max(2, len(places) // 2 + 1))
    t = (nodes + 1) / 2
    factors = np.log1p(-np.multiply.outer(share * np.exp(places), t))
    others = factors.sum(axis=0) - factors
    log_mass: Floats = places + math.log(share) + logsumexp(others, b=weights / 2, axis=1)
    return log_mass


def _laplace_winners(places: Floats) -> Floats:
    """Return ln ∫ f_i ∏_{j≠i} F_j with Laplace densities at the places: the log-probability that i is the largest.

    Below all places the integrand is e^{Kz}, and above them it is the polynomial of `_race_winners`; both integrals are
    exact. Between them, Gauss-Legendre runs on pieces that break at each place and are so short that the error with 24
    nodes is 1e-14.
    """
    n = len(places)
    low = places.min()
    below = np.full(n, n * low - places.sum() - n * math.log(2) - math.log(n))
    above = _race_winners(places, share=0.5)
    longest = min(1.0, 8 / n)
    if -low / longest * 24 * n > 2e7:
        raise DatasetError(
            f"the counts of {n} candidates span {-low:g} scales of the noise, too far to integrate their law; use "
            "counts closer together, or a larger noise scale.",
            n_candidates=n,
        )
    stops = np.unique(places)
    edges = np.concatenate(
        [np.linspace(a, b, math.ceil((b - a) / longest), endpoint=False) for a, b in pairwise(stops)] + [stops[-1:]]
    )
    if len(edges) == 1:
        return np.asarray(np.logaddexp(below, above))
    nodes, weights = _gauss_legendre(24)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    z = (middle[:, None] + half[:, None] * nodes).ravel()
    mass = (half[:, None] * weights).ravel()
    distance = z - places[:, None]
    tail = np.exp(-np.abs(distance)) / 2
    log_cdf = np.where(distance < 0, distance - math.log(2), np.log1p(-tail))
    log_density = -np.abs(distance) - math.log(2)
    between = logsumexp(log_density + log_cdf.sum(axis=0) - log_cdf, b=mass, axis=1)
    log_mass: Floats = logsumexp([below, above, between], axis=0)
    return log_mass


def _gauss_legendre(n_nodes: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return nodes, weights
