"""A posted price among candidates that the bids decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ....audit.claims.claim import PureDP
from ....audit.errors import DatasetError
from ...laws.discrete_law import DiscreteLaw
from ...noise_samplers import Floats
from ...selection.posted_price_auction import PostedPriceAuction, bids_of
from ..twin import Twin


@dataclass(frozen=True, slots=True)
class PricesFromTheBids(Twin):
    """The exponential mechanism on the prices that were bid: no finite ε.

    In practice, the candidates are the names, codes or values that occur in the data, since no other can be best. Each
    probability is right, but an outcome that only one bidder makes possible gives the bidder away. The bug shows on
    bids that differ by one that nobody else made.
    """

    epsilon: float

    @property
    def runs_as(self) -> AuctionAmongTheBids:
        return AuctionAmongTheBids(self.epsilon)

    truth = None


@dataclass(frozen=True, slots=True)
class AuctionAmongTheBids:
    """A posted price among the positive bids."""

    epsilon: float

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def law(self, dataset: Any) -> DiscreteLaw:
        return self._auction(dataset).law(dataset)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        return self._auction(dataset).sample(dataset, size, rng)

    def _auction(self, dataset: Any) -> PostedPriceAuction:
        prices = np.unique(bids_of(dataset))
        prices = prices[prices > 0]
        if len(prices) == 0:
            raise DatasetError("there is no positive bid to take a price from; use bids above zero.", dataset=dataset)
        return PostedPriceAuction(self.epsilon, prices.tolist())
