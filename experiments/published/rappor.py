"""RAPPOR: the noisy bits of the Bloom filter of one person's value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import PureDP, check_number
from ...audit.errors import ClaimError
from ...mechanisms import FiniteLaw, ProductLaw
from ...mechanisms.noise_samplers import pieces
from ...mechanisms.parameter_checks import check_count
from ...mechanisms.queries import identity, whole_answer
from .murmur3 import murmur3_32


@dataclass(frozen=True, slots=True)
class Rappor:
    """The bits of the Bloom filter of a value, each reported by randomised response: h ln(odds ratio)-DP.

    The permanent step keeps a bit with probability 1 − f and otherwise replaces it by a fair coin. The report is 1 with
    probability `report_one` after a 1 and `report_zero` after a 0. Every run is the first report of a person, so that
    the two steps are equivalent to one coin for each bit. A value sets at most h bits, so two values differ in at most
    2h bits, h in each direction; one bit of each direction together costs the log odds ratio of a reported 1.

    The dataset is the value, an integer. Its i-th hash is MurmurHash3 of its decimal digits with seed i, as a signed
    32-bit integer, modulo the number of bits.

    Parameters
    ----------
    f : float
        Probability in [0, 1] that the permanent step replaces a bit.
    report_zero, report_one : float
        Probabilities in [0, 1]; 0 and 1 report the permanent bits unchanged (one-time RAPPOR).
    n_bits, n_hashes : int

    Raises
    ------
    ClaimError
        For parameters outside these ranges, or without noise.

    References
    ----------
    Erlingsson, Pihur & Korolova (2014), RAPPOR: randomized aggregatable privacy-preserving ordinal response, Section
    3 (the claim is the epsilon of one report).

    Examples
    --------
    >>> Rappor(f=0.75).set_bits(1)
    (3, 10, 13)
    >>> round(Rappor(f=0.75).epsilon, 4)
    0.4001
    """

    f: float
    report_zero: float = 0.45
    report_one: float = 0.55
    n_bits: int = 20
    n_hashes: int = 4

    def __post_init__(self) -> None:
        for name in ("f", "report_zero", "report_one"):
            check_number(name, getattr(self, name), 0, math.nextafter(1, 2), "a probability")
        check_count("n_bits", self.n_bits, "bits")
        check_count("n_hashes", self.n_hashes, "hashes")
        if not 0 < self.probability_of_one(False) <= self.probability_of_one(True) < 1:
            raise ClaimError(
                f"f={self.f!r} with reports {self.report_zero!r} and {self.report_one!r} leaves bits without noise or "
                "inverts them; use f > 0, or 0 < report_zero <= report_one < 1.",
                f=self.f,
            )

    def __str__(self) -> str:
        steps = f"f={self.f:g}, reports {self.report_zero:g} and {self.report_one:g}"
        return f"Rappor({steps}, {self.n_hashes} of {self.n_bits} bits)"

    @property
    def epsilon(self) -> float:
        """h times the log odds ratio of a reported 1 after a 1 and after a 0: the epsilon of one report."""
        one, zero = self.probability_of_one(True), self.probability_of_one(False)
        return self.n_hashes * math.log(one * (1 - zero) / (zero * (1 - one)))

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def probability_of_one(self, bit: bool) -> float:
        """Return the probability of reporting a 1 for this bit."""
        permanent = self.f / 2 + (1 - self.f) * bit
        return permanent * self.report_one + (1 - permanent) * self.report_zero

    def set_bits(self, value: int) -> tuple[int, ...]:
        """Return the positions of the 1s in the Bloom filter of the value, ascending."""
        digits = str(value).encode()
        hashes = (murmur3_32(digits, seed) for seed in range(self.n_hashes))
        return tuple(sorted({((number ^ 2**31) - 2**31) % self.n_bits for number in hashes}))

    def law(self, dataset: Any) -> ProductLaw:
        """Return the exact law of the reported bits."""
        marginals = (FiniteLaw((math.log1p(-one), math.log(one))) for one in self._probabilities(dataset))
        return ProductLaw(tuple(marginals))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
        """Draw `size` independent reports of 0 and 1, shape (size, n_bits), uint8."""
        probabilities = np.array(self._probabilities(dataset))
        reports = np.empty((size, self.n_bits), dtype=np.uint8)
        for piece in pieces(size):
            part = reports[piece]
            np.less(rng.random(part.shape), probabilities, out=part.view(np.bool_))
        return reports

    def _probabilities(self, dataset: Any) -> list[float]:
        """Return the probability of a 1 at each position."""
        bits = self.set_bits(whole_answer(identity, dataset))
        return [self.probability_of_one(place in bits) for place in range(self.n_bits)]
