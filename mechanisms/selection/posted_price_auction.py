"""Posted-price auction: the exponential mechanism chooses a price with the revenue as utility."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...audit.errors import ClaimError, DatasetError
from ..laws.discrete_law import DiscreteLaw
from ..laws.reference_mechanism import PureMechanism
from ..noise_samplers import Floats
from ..queries import as_numbers
from .exponential import ExponentialMechanism

PUMPKIN_BIDS: Final = (1.00, 1.00, 1.00, 3.01)
"""The bids of A, F, I and K."""


@dataclass(frozen=True, slots=True)
class Revenue:
    """Query that returns the revenue from the bids at each price, price · #{bids ≥ price}; shape (n_prices,).

    Adding a bid raises each revenue by at most its price and lowers none, so the query is monotone and its sensitivity
    is the highest price. Replacing a bid also moves all revenues in one direction.

    Examples
    --------
    At a price of 1.00, K buys as well, so the revenue is at its maximum of 4.00; at 3.02 nobody buys.

    >>> Revenue((1.00, 1.01, 3.00, 3.01, 3.02))(PUMPKIN_BIDS).tolist()
    [4.0, 1.01, 3.0, 3.01, 0.0]
    """

    prices: tuple[float, ...]

    def __call__(self, bids: Any) -> Floats:
        sold = len(bids := bids_of(bids)) - np.searchsorted(bids, self.prices, side="left")
        revenue: Floats = np.asarray(self.prices) * sold
        return revenue


def bids_of(dataset: Any) -> Floats:
    """Return the bids in ascending order, shape (n_bids,); raise a `DatasetError` if they are not finite numbers."""
    bids = as_numbers(dataset)
    if bids.ndim != 1 or not np.isfinite(bids).all():
        raise DatasetError(
            f"the dataset {dataset!r:.60} is not a list of bids; use one finite number for each bidder.",
            dataset=dataset,
        )
    return np.sort(bids)


@dataclass(frozen=True, slots=True)
class PostedPriceAuction(PureMechanism):
    """A price, drawn from a fixed list by the exponential mechanism with the revenue as utility: epsilon-DP.

    The dataset is the list of bids. Neighbours differ by one bid that is added, removed or replaced.

    Parameters
    ----------
    epsilon : float
        In nats, positive.
    prices : sequence of float
        Positive, in ascending order, the same for all datasets.
    monotone : bool
        Use the saving for monotone utilities such as revenue: half the noise at the same epsilon.

    References
    ----------
    Dwork & Roth (2014), The algorithmic foundations of differential privacy, Example 3.5; McSherry & Talwar (2007),
    Mechanism design via differential privacy.

    Examples
    --------
    >>> auction = PostedPriceAuction(epsilon=10.0, prices=[cents / 100 for cents in range(1, 501)])
    >>> law = auction.law(PUMPKIN_BIDS)
    >>> auction.prices[law.probabilities.argmax()]
    1.0
    """

    prices: Sequence[float]
    monotone: bool = False

    def __post_init__(self) -> None:
        prices = tuple(float(price) for price in self.prices)
        if not prices or not prices[0] > 0 or not prices[-1] < math.inf or not np.all(np.diff(prices) > 0):
            raise ClaimError(
                f"prices={self.prices!r:.60} is not a list of prices; use positive numbers in ascending order, "
                "at least one.",
                prices=self.prices,
            )
        object.__setattr__(self, "prices", prices)
        self._choice  # noqa: B018  # checks the epsilon

    def __str__(self) -> str:
        ending = ", monotone" if self.monotone else ""
        return f"PostedPrice(epsilon={self.epsilon:g}, {len(self.prices)} prices to {self.prices[-1]:g}{ending})"

    def law(self, dataset: Any) -> DiscreteLaw:
        """The exact law of the price."""
        return DiscreteLaw(tuple(self.prices), self._choice.law(dataset).log_probabilities)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """`size` independent prices, shape (size,)."""
        return np.asarray(self.prices).take(self._choice.sample(dataset, size, rng))

    @property
    def _choice(self) -> ExponentialMechanism:
        """The mechanism that chooses the index of a price."""
        prices = tuple(self.prices)
        return ExponentialMechanism(self.epsilon, prices[-1], self.monotone, Revenue(prices))
