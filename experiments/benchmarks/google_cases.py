"""Statistical test cases of google/differential-privacy, and what their tests are designed to reject.

The cases are those of the folder proto/testing of google/differential-privacy. There, a case draws 10⁶ outputs (of
quantiles a quarter of them) on each of two neighbouring datasets, compares histograms of them with (ε, δ + tolerance),
and takes the majority of nine such votes.

References
----------
Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson (2020), Differentially private SQL with bounded user
contribution (stochastic testing).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...audit.claims.claim import ApproxDP, Claim, PureDP
from ...mechanisms.aggregates import Noise

LN3: Final = math.log(3)
SAMPLES: Final = 1_000_000
"""Outputs on each dataset of one vote, except for quantiles."""
VOTES: Final = 9
"""Votes of a case; the majority decides."""

Row = tuple[int, float]
"""A user and a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _InFile:
    """A case of a file; delta is 0 for Laplace noise. A user contributes to at most `partitions` partitions."""

    file: str
    name: str
    epsilon: float
    delta: float = 0.0
    partitions: int = 1
    tolerance: float
    granularity: float = 0.0
    samples: int = SAMPLES

    @property
    def noise(self) -> Noise:
        """Gaussian noise where there is a delta."""
        return "gaussian" if self.delta else "laplace"

    @property
    def key(self) -> str:
        return f"{self.file}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case(_InFile):
    """A case of one of the files on aggregations, named by noise, dataset and setting.

    A user contributes at most `per_partition` values to each partition. `rows` are the values of the first dataset (of
    counts, numbers of values), and `extra` those of one user that the second has in addition. The test adds `tolerance`
    to `tested_delta`, and compares histograms whose cells have the width `granularity`, or other cells if it is 0.
    `tree` is the height and the branching factor of a quantile tree, and `note` says what the file does differently.
    """

    tested_delta: float
    per_partition: int = 1
    lower: float = 0.0
    upper: float = 1.0
    rows: tuple[float, ...]
    extra: tuple[float, ...]
    tree: tuple[int, int] = (2, 5)
    ranks: tuple[float, ...] = ()
    note: str = ""

    @property
    def claim(self) -> Claim:
        """Claim that the test checks, without its tolerance."""
        return ApproxDP(self.epsilon, self.tested_delta) if self.tested_delta else PureDP(self.epsilon)

    def pair(self, users: int = 1, extra: tuple[float, ...] | None = None) -> tuple[list[Row], list[Row]]:
        """Return the datasets as rows (user, value), with the extra values of this many users in the second one."""
        x = list(enumerate(self.rows))
        added = self.extra if extra is None else extra
        return x, x + [(len(x) + user, value) for user in range(users) for value in added]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosenessCase(_InFile):
    """A case of one of the two files on the distribution of the noise.

    A user changes at most `partitions` coordinates (the L₀ sensitivity) by at most `change` (L∞). `variance` is what
    the file states, `tolerance` the allowed distance of histograms with cells of width `granularity`.
    """

    change: float = 1.0
    answer: float = 0.0
    variance: float


# Cases of the distribution of the noise.
#
# Source: laplace_closeness_test_cases and gaussian_closeness_test_cases in proto/testing of
# google/differential-privacy. The cases of both files that differ in one parameter from the first are written here by
# that parameter.

_ANSWERS = {
    "Small positive raw input": 1.0,
    "Large positive raw input": 1e6,
    "Very large positive raw input": 1e12,
    "Small negative raw input": -1.0,
    "Large negative raw input": -1e6,
    "Very large negative raw input": -1e12,
    "Fractional positive raw input": 6.48074069840786023096,
    "Fractional negative raw input": -125773.181179024284936,
}
# Name, epsilon, L₀ and L∞ sensitivity, tolerance, exponent of the granularity; the variance is 2(L₀ L∞/ε)².
_LAPLACE = (
    ("Default parameters", LN3, 1, 1.0, 0.00065, -8),
    ("Low l_inf sensitivity", LN3, 1, 0.05, 0.00075, -12),
    ("Very low l_inf sensitivity", LN3, 1, 0.0005, 0.00075, -18),
    ("High l_inf sensitivity", LN3, 1, 10.0, 0.00075, -4),
    ("Very high l_inf sensitivity", LN3, 1, 1_000.0, 0.00075, 2),
    ("High l_0 sensitivity", LN3, 2, 1.0, 0.00075, -6),
    ("Very high l_0 sensitivity", LN3, 500, 1.0, 0.00075, 2),
    ("Small epsilon", 0.01, 1, 1.0, 0.00075, -1),
    ("Very small epsilon", 1e-6, 1, 1.0, 0.00065, 13),
    ("Large epsilon", 2 * LN3, 1, 1.0, 0.00075, -8),
    ("Very large epsilon", 5.0, 1, 1.0, 0.00065, -10),
)
# Name, epsilon, delta, L₀ and L∞ sensitivity, variance, tolerance, exponent of the granularity.
_DEFAULT_VARIANCE: Final = 11.73597717285156
_GAUSSIAN = (
    ("Default parameters", LN3, 1e-5, 1, 1.0, _DEFAULT_VARIANCE, 0.00065, -7),
    ("Low l_inf sensitivity", LN3, 1e-5, 1, 0.05, 0.029339942932129, 0.00075, -10),
    ("Very low l_inf sensitivity", LN3, 1e-5, 1, 0.0005, 0.000002933994293, 0.0016, -14),
    ("High l_inf sensitivity", LN3, 1e-5, 1, 2.0, 46.94390869140625, 0.00065, -6),
    ("Very high l_inf sensitivity", LN3, 1e-5, 1, 250.0, 733498.5733032227, 0.00055, 1),
    ("High l_0 sensitivity", LN3, 1e-5, 2, 1.0, 23.47195434570314, 0.00065, -6),
    ("Very high l_0 sensitivity", LN3, 1e-5, 1_000, 1.0, 11735.97717285156, 0.00055, -2),
    ("Small epsilon", 0.01, 1e-5, 1, 1.0, 59475.015625, 0.0007, 0),
    ("Very small epsilon", 1e-6, 1e-5, 1, 1.0, 1447650304.0, 0.005, 14),
    ("Large epsilon", 2 * LN3, 1e-5, 1, 1.0, 3.363498687744140, 0.00065, -8),
    ("Very large epsilon", 5.0, 1e-5, 1, 1.0, 0.795824289321899, 0.00065, -9),
    ("Small delta", LN3, 1e-6, 1, 1.0, 15.00049209594727, 0.00065, -6),
    ("Very small delta", LN3, 1e-10, 1, 1.0, 28.76478576660156, 0.00075, -6),
    ("Large delta", LN3, 1e-4, 1, 1.0, 8.605972290039062, 0.00055, -7),
    ("Very large delta", LN3, 1e-3, 1, 1.0, 5.668491363525391, 0.00065, -7),
)


def closeness_cases() -> Iterator[ClosenessCase]:
    """Yield the 19 cases of the distribution of Laplace noise, and the 23 of Gaussian noise."""
    laplace = [
        (name, epsilon, 0.0, partitions, change, 2 * (partitions * change / epsilon) ** 2, *rest)
        for name, epsilon, partitions, change, *rest in _LAPLACE
    ]
    for file, usual in (("Laplace closeness", laplace), ("Gaussian closeness", _GAUSSIAN)):
        rows: list[Any] = [(*setting, 0.0) for setting in usual]
        rows += [(name, *usual[0][1:], answer) for name, answer in _ANSWERS.items()]
        names = ("name", "epsilon", "delta", "partitions", "change", "variance", "tolerance")
        for *settings, exponent, answer in rows:
            given = dict(zip(names, settings, strict=True))
            yield ClosenessCase(file=file, answer=answer, granularity=2.0**exponent, **given)


# Cases of counts and bounded sums: sweeps over datasets and settings.
#
# Source: count_dp_test_cases, bounded_sum_dp_test_cases and long_bounded_sum_dp_test_cases in proto/testing of
# google/differential-privacy. The files write every case of the sweeps out.

_COUNTS = {
    "empty count": (),
    "small count": (7, 1, 8, 12),
    "large count": (2147483647, 2146736422, 1383713414, 2146374624, 1989764249),
}
# Setting: epsilon, delta, partitions, values of a user, tolerance.
_LAPLACE_COUNTS = {
    "default parameters": (LN3, 0.0, 1, 1, 0.0025),
    "two partitions contributed": (LN3, 0.0, 2, 2, 0.0035),
    "many partitions contributed": (LN3, 0.0, 250, 250, 0.02),
    "small epsilon": (0.01, 0.0, 1, 1, 0.0131),
    "large epsilon": (2 * LN3, 0.0, 1, 1, 0.0035),
}
_GAUSSIAN_COUNTS = {
    "default parameters": (LN3, 1e-5, 1, 1, 0.0001),
    "two partitions contributed": (LN3, 1e-5, 2, 1, 0.0001),
    "many partitions contributed": (LN3, 1e-5, 250, 15, 0.00031),
    "small epsilon": (0.1, 1e-5, 1, 1, 0.001),
    "large epsilon": (2 * LN3, 1e-5, 1, 1, 0.0001),
    "small delta": (LN3, 1e-6, 1, 1, 0.0001),
    "large delta": (LN3, 1e-4, 1, 1, 0.0005),
}


def _case(
    file: str,
    name: str,
    sizes: Sequence[Any],
    bounds: tuple[float, float],
    rows: tuple[float, ...],
    extra: tuple[float, ...],
    cell: tuple[float, float],
    **rest: Any,
) -> Case:
    """Return a case; its sizes are ε, δ, partitions and values in each, its cell is tolerance and granularity."""
    names = ("epsilon", "delta", "partitions", "per_partition", "lower", "upper", "tolerance", "granularity")
    given = dict(zip(names, (*sizes, *bounds, *cell), strict=True))
    return Case(file=file, name=name, rows=rows, extra=extra, **{"tested_delta": given["delta"], **given, **rest})


def _count_cases() -> Iterator[Case]:
    """Yield the 36 cases of counts; a row is the number of values that are counted at once."""
    for noise, settings in (("Laplace", _LAPLACE_COUNTS), ("Gaussian", _GAUSSIAN_COUNTS)):
        for dataset, rows in _COUNTS.items():
            for setting, (*sizes, added, tolerance) in settings.items():
                name = f"{noise} noise, {dataset}, {setting}"
                yield _case("count", name, (*sizes, 1), (0.0, 1.0), rows, (added,), (tolerance, 1.0))


# Setting: epsilon, delta, tested delta, partitions, values of a user.
_SETTINGS = {
    "Laplace": {
        "default": (LN3, 0.0, 0.0, 1, 1),
        "many": (LN3, 0.0, 0.0, 25, 25),
        "large bounds": (LN3, 0.0, 0.0, 1, 1),
        "small epsilon": (0.1, 0.0, 0.0, 1, 1),
        "large epsilon": (2 * LN3, 0.0, 0.0, 1, 1),
    },
    "Gaussian": {
        "default": (LN3, 1e-5, 1e-5, 1, 1),
        "many": (LN3, 1e-5, 1e-5, 25, 5),
        "large bounds": (LN3, 1e-5, 1e-5, 1, 1),
        "small epsilon": (0.25, 1e-5, 1e-5, 1, 1),
        "large epsilon": (2 * LN3, 1e-5, 1e-5, 1, 1),
        "small delta": (LN3, 1e-6, 1e-6, 1, 1),
        "small delta, smaller for the noise": (LN3, 1e-7, 1e-6, 1, 1),
    },
}
_WORDS = {"default": "default parameters", "small delta, smaller for the noise": "small delta"}
# Tolerance and granularity of a setting, for values in [0, 1], for values up to 50, and for no values.
_UNIT = {
    "Laplace": {
        "default": (0.02, 2**-6), "many": (0.04, 2**-3), "small epsilon": (0.0135, 2**-4),
        "large epsilon": (0.0135, 2**-4),
    },
    "Gaussian": {
        "default": (0.00117, 2**-7), "many": (0.00242, 2**-6), "small epsilon": (0.0003, 2**-1),
        "large epsilon": (0.00092, 2**-7), "small delta, smaller for the noise": (0.00092, 2**-7),
    },
}  # fmt: skip
_FIFTY = {
    "Laplace": {
        "default": (0.04, 2**-2), "many": (0.04, 1.0), "small epsilon": (0.023, 1.0), "large epsilon": (0.023, 2**-1),
    },
    "Gaussian": {
        "default": (0.00513, 2**-4), "many": (0.006, 2**-2), "small epsilon": (0.00113, 4.0),
        "large epsilon": (0.0035, 2**-4), "small delta": (0.0048, 2**-4),
    },
}  # fmt: skip
_EMPTY = {
    "Laplace": {
        "default": (0.02, 2**-6), "many": (0.04, 2**-3), "large bounds": (0.04, 2**-2),
        "small epsilon": (0.0135, 2**-4), "large epsilon": (0.0135, 2**-5),
    },
    "Gaussian": {
        "default": (0.00117, 2**-7), "many": (0.00242, 2**-6), "large bounds": (0.00513, 2**-4),
        "small epsilon": (0.0003, 2**-1), "large epsilon": (0.00092, 2**-7),
        "small delta, smaller for the noise": (0.00092, 2**-7),
    },
}  # fmt: skip
_FRACTIONS = (0.64872, 0.12707, 0.00128, 0.14684, 0.86507)
_LARGE = (32.43606, 35.35006, 40.73424, 32.53939, 7.081785)
_MIXED = (-32.43606, 35.35006, -40.73424, -32.53939, 7.081785)


def _sum_cases(*, whole: bool) -> Iterator[Case]:
    """Yield the 38 cases of bounded sums of fractions, or of whole numbers."""
    unit = (1.0, 0.0, 0.0, 0.0, 1.0) if whole else _FRACTIONS
    large, mixed = ((32.0, 35.0, 41.0, 33.0, 7.0), (-32.0, 35.0, -41.0, -33.0, 7.0)) if whole else (_LARGE, _MIXED)
    signed = (-50.0, 50.0 if whole else 49.9, -50_000.0)
    datasets = {  # rows; bounds and the extra value; tolerances
        "empty sum": ((), (0.0, 1.0, 1_000.0), _EMPTY),
        "small positive sum": (unit, (0.0, 1.0, 1_000.0), _UNIT),
        "large positive sum": (large, (0.0, 50.0, 50_000.0), _FIFTY),
        "large mixed sum": (mixed, signed, _FIFTY),
    }
    for noise in ("Laplace", "Gaussian"):
        for dataset, (rows, usual, tolerances) in datasets.items():
            for setting, cell in tolerances[noise].items():
                epsilon, delta, tested, partitions, added = _SETTINGS[noise][setting]
                *bounds, value = signed if setting == "large bounds" else usual
                words = _WORDS.get(setting, setting)
                if setting == "many":
                    is_turned = noise == "Gaussian" and dataset.startswith("large")
                    words = "many contributed partitions" if is_turned else "many partitions contributed"
                name, sizes = f"{noise} noise, {dataset}, {words}", (epsilon, delta, partitions, 1)
                file, extra = "long bounded sum" if whole else "bounded sum", (value,) * added
                yield _case(file, name, sizes, (bounds[0], bounds[1]), rows, extra, cell, tested_delta=tested)


# Cases of bounded means and of standard deviations: sweeps over datasets and settings.
#
# Source: bounded_mean_dp_test_cases and bounded_stdv_dp_test_cases in proto/testing of google/differential-privacy.
# The files write every case of the sweeps out. A standard deviation is the root of the variance, so one case is a case
# of both.

# Setting: its words, epsilon, delta, partitions, values in each, values of a user.
_MEANS = {
    "Laplace": {
        "default": ("default parameters", LN3, 0.0, 1, 1, 1),
        "partitions": ("many partitions contributed", LN3, 0.0, 25, 1, 25),
        "values": ("many contributions per partition", LN3, 0.0, 1, 10, 10),
        "bounds": ("large bounds", LN3, 0.0, 1, 1, 1),
        "small": ("small epsilon", 0.1, 0.0, 1, 1, 1),
        "large": ("large epsilon", 2 * LN3, 0.0, 1, 1, 1),
        "entries": ("multiple entries", LN3, 0.0, 1, 1, 1),
    },
    "Gaussian": {
        "default": ("default parameters", LN3, 1e-5, 1, 1, 1),
        "partitions": ("many partitions contributed", LN3, 1e-5, 25, 1, 5),
        "values": ("many contributions per partition", LN3, 1e-5, 1, 10, 10),
        "bounds": ("large bounds", LN3, 1e-5, 1, 1, 1),
        "small": ("small epsilon", 0.275, 1e-5, 1, 1, 1),
        "large": ("large epsilon", 2 * LN3, 1e-5, 1, 1, 1),
        "delta": ("small delta", LN3, 1e-6, 1, 1, 1),
        "entries": ("multiple entries", LN3, 1e-5, 1, 1, 1),
    },
}
# Dataset: bounds, rows, the extra value, and rows and extra value of the setting with several rows.
_DATASETS = {
    "empty mean": ((0.0, 1.0), (), 1_000.0, (), 0.0),
    "small positive mean": ((0.0, 1.0), (1.0,), -1_000.0, (0.64872, 0.12707, 0.00128, 0.14684, 0.86507), 1_000.0),
    "large positive mean": (
        (0.0, 50.0), (50.0,), -1_000.0, (32.43606, 35.35006, 40.73424, 32.53939, 7.081785), -1_000.0,
    ),
    "large mixed mean": (
        (-50.0, 50.0), (-50.0,), 50_000.0, (-32.43606, 35.35006, -40.73424, -32.53939, 7.081785), 50_000.0,
    ),
}  # fmt: skip
# Tolerance and granularity, by noise, dataset and setting.
_MEAN_CELLS = {
    ("Laplace", "empty mean"): {
        "default": (0.003, 2**-7), "partitions": (0.0075, 2**-2), "values": (0.004, 2**-2), "bounds": (0.007, 2**-2),
        "small": (0.008, 2**-4), "large": (0.0009, 2**-5),
    },
    ("Laplace", "small positive mean"): {
        "default": (0.003, 2**-6), "partitions": (0.0075, 2**-2), "values": (0.004, 2**-2), "small": (0.008, 2**-4),
        "large": (0.0009, 2**-4), "entries": (0.003, 2**-6),
    },
    ("Laplace", "large positive mean"): {
        "default": (0.004, 2**-2), "partitions": (0.025, 2.0), "values": (0.014, 1.0), "small": (0.0105, 2.0),
        "large": (0.002, 2**-1), "entries": (0.004, 2**-2),
    },
    ("Laplace", "large mixed mean"): {
        "default": (0.004, 2**-1), "partitions": (0.026, 2.0), "values": (0.014, 2.0), "entries": (0.004, 2**-1),
    },
    ("Gaussian", "empty mean"): {
        "default": (0.00112, 2**-8), "partitions": (0.00145, 2**-6), "values": (0.00141, 2**-5),
        "bounds": (0.0035, 2**-3), "small": (0.0016, 2**-5), "large": (0.00123, 2**-9), "delta": (0.0012, 2**-8),
    },
    ("Gaussian", "small positive mean"): {
        "default": (0.00112, 2**-8), "partitions": (0.00145, 2**-6), "values": (0.00141, 2**-5),
        "small": (0.0016, 2**-5), "large": (0.00123, 2**-9), "delta": (0.0012, 2**-8), "entries": (0.00112, 2**-8),
    },
    ("Gaussian", "large positive mean"): {
        "default": (0.00725, 2**-5), "partitions": (0.00935, 2**-3), "values": (0.00935, 2**-2),
        "small": (0.00535, 2**-1), "large": (0.00725, 2**-6), "delta": (0.00785, 2**-5), "entries": (0.00725, 2**-5),
    },
    ("Gaussian", "large mixed mean"): {
        "default": (0.0035, 2**-3), "partitions": (0.0045, 2**-1), "values": (0.00475, 1.0), "entries": (0.0035, 2**-3),
    },
}  # fmt: skip


def _mean_cases() -> Iterator[Case]:
    """Yield the 47 cases of bounded means."""
    for (noise, dataset), cells in _MEAN_CELLS.items():
        bounds, rows, value, several, other = _DATASETS[dataset]
        for setting, cell in cells.items():
            words, *sizes, added = _MEANS[noise][setting]
            at = {"bounds": -50_000.0, "entries": other}.get(setting, value)
            ends = (-50.0, 50.0) if setting == "bounds" else bounds
            used, name = several if setting == "entries" else rows, f"{noise} noise, {dataset}, {words}"
            yield _case("bounded mean", name, sizes, ends, used, (at,) * added, cell)


# Setting: its words, epsilon, delta, partitions, values in each, values of a user, tolerance and granularity.
_DEVIATIONS = {
    "Laplace": (
        ("default parameters", LN3, 0.0, 1, 1, 1, 0.00125, 2**-10),
        ("many partitions contributed", LN3, 0.0, 25, 1, 25, 0.0005, 2**-5),
        ("many contributions per partition", LN3, 0.0, 1, 10, 10, 0.0003, 2**-5),
        ("large bounds", LN3, 0.0, 1, 1, 1, 0.002, 2**-5),
        ("small epsilon", 0.1, 0.0, 1, 1, 1, 0.0045, 2**-6),
        ("large epsilon", 2 * LN3, 0.0, 1, 1, 1, 0.0001, 2**-7),
    ),
    "Gaussian": (
        ("default parameters", LN3, 1e-5, 1, 1, 1, 0.00017, 2**-8),
        ("many partitions contributed", LN3, 1e-5, 25, 1, 5, 0.000048, 2**-5),
        ("many contributions per partition", LN3, 1e-5, 1, 10, 10, 0.000074, 2**-5),
        ("large bounds", LN3, 1e-5, 1, 1, 1, 0.00029, 2**-3),
        ("small epsilon", 0.75, 1e-5, 1, 1, 1, 0.000075, 2**-6),
        ("large epsilon", 2 * LN3, 1e-5, 1, 1, 1, 0.0001, 2**-7),
        ("small delta", LN3, 1e-6, 1, 1, 1, 0.000029, 2**-5),
        ("large delta", LN3, 5e-4, 1, 1, 1, 0.0005, 2**-10),
    ),
}
# Dataset: rows and the extra value, with the usual bounds 0 and 2 and with the bounds −50 and 50.
_SPREAD = {
    "empty stdv": (((), 1_000.0), ((), -50_000.0)),
    "one entry": (((-1_000.0,), 1_000.0), ((50_000.0,), -50_000.0)),
    "multiple entries": (
        ((0.0, 0.0, 0.0, 0.01, 0.01, 0.02, 0.03, 0.05, 0.1, 0.1), 2.0),
        ((47.2, 47.2, 47.9, 48.5, 49.1, 49.2, 49.2, 49.8, 49.8, 50.0), -50.0),
    ),
}
_MORE_VALUES = "the file adds 25 values to one partition, five times the L₂ sensitivity of 25 partitions"


def _deviation_cases() -> Iterator[Case]:
    """Yield the 42 cases of standard deviations."""
    for noise, settings in _DEVIATIONS.items():
        for dataset, (usual, large) in _SPREAD.items():
            for words, *sizes, added, tolerance, granularity in settings:
                _, delta, partitions, per_partition = sizes
                rows, value = large if words == "large bounds" else usual
                extra = (value,) * added
                if dataset == "empty stdv" and per_partition > 1:  # half of the values at each bound
                    extra = (value,) * (added // 2) + (-value,) * (added // 2)
                bounds = (-50.0, 50.0) if words == "large bounds" else (0.0, 2.0)
                note, cell = _MORE_VALUES if delta and partitions > 1 else "", (tolerance, granularity)
                name = f"{noise} noise, {dataset}, {words}"
                yield _case("standard deviation", name, sizes, bounds, rows, extra, cell, note=note)


# Cases of quantiles and of approximate bounds.
#
# Source: bounded_quantiles_dp_test_cases and approximate_bounds_dp_test_cases in proto/testing of
# google/differential-privacy. The first file is a sweep over datasets and settings; it writes every case out.

_WIDE: Final = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_NARROW: Final = (0.0, 0.01, 0.05, 0.45, 0.49, 0.5, 0.51, 0.55, 0.95, 0.99, 1.0)
_TENTHS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_TREE, _OTHER_TREE = (2, 5), (3, 3)
# Setting: epsilon, delta, partitions, values in each, values of a user, tree, tolerance.
_QUANTILE_SETTINGS = {
    "Laplace": {
        "default parameters": (LN3, 0.0, 1, 1, 1, _TREE, 0.0036),
        "many partitions contributed": (LN3, 0.0, 9, 1, 9, _TREE, 0.0036),
        "many contributions per partition": (LN3, 0.0, 1, 5, 5, _TREE, 0.0036),
        "small epsilon": (0.1, 0.0, 1, 1, 1, _TREE, 0.0012),
        "large epsilon": (2 * LN3, 0.0, 1, 1, 1, _TREE, 0.0055),
        "different tree parameters": (LN3, 0.0, 1, 1, 1, _OTHER_TREE, 0.0036),
    },
    "Gaussian": {
        "default parameters": (LN3, 1e-5, 1, 1, 1, _TREE, 0.0036),
        "many partitions contributed": (LN3, 1e-5, 9, 1, 3, _TREE, 0.0036),
        "many contributions per partition": (LN3, 1e-5, 1, 5, 5, _TREE, 0.0036),
        "small epsilon": (0.1, 1e-5, 1, 1, 1, _TREE, 0.0012),
        "large epsilon": (2 * LN3, 1e-5, 1, 1, 1, _TREE, 0.0055),
        "small delta": (LN3, 1e-6, 1, 5, 1, _TREE, 0.0036),
        "different tree parameters": (LN3, 1e-5, 1, 1, 1, _OTHER_TREE, 0.0036),
    },
}


def _quantile_cases() -> Iterator[Case]:
    """Yield the 39 cases of quantiles."""
    for noise, settings in _QUANTILE_SETTINGS.items():
        for dataset in ("empty", "binary", "linear"):
            for setting, (*sizes, added, tree, tolerance) in settings.items():
                is_narrow = setting == "small delta" or (dataset == "empty" and tree == _TREE)
                rows: tuple[float, ...] = {"empty": (), "binary": (-1_000.0,) * added, "linear": _TENTHS}[dataset]
                value = {"empty": 0.5, "binary": 1_000.0, "linear": 0.0}[dataset]
                name, bounds = f"{noise} noise, {dataset} distribution, {setting}", (0.0, 1.0)
                if dataset == "linear":
                    bounds = (-1.0, 2.0)
                shape = {"tree": tree, "ranks": _NARROW if is_narrow else _WIDE, "samples": 250_000}
                yield _case("quantiles", name, sizes, bounds, rows, (value,) * added, (tolerance, 0.0), **shape)


# Name, epsilon, values of a user, numbers of equal rows, the extra value, tolerance.
_FAILURE, _LOWER, _UPPER = "bounding failure", "change in lower bound", "change in upper bound"
_MANY = "multiple contributions per individual"
_BOUNDS: tuple[tuple[str, float, int, dict[float, int], float, float], ...] = (
    (f"basic ({_FAILURE})", LN3, 1, {9.0: 14}, 9.0, 0.0025),
    (f"basic ({_LOWER})", LN3, 1, {3.0: 18, 9.0: 18}, 3.0, 0.0025),
    (f"basic ({_UPPER})", LN3, 1, {3.0: 18, 9.0: 18}, 9.0, 0.0025),
    (f"small epsilon ({_FAILURE})", 0.5, 1, {9.0: 32}, 9.0, 0.0015),
    (f"small epsilon ({_LOWER})", 0.5, 1, {3.0: 44, 9.0: 51}, 3.0, 0.0015),
    (f"small epsilon ({_UPPER})", 0.5, 1, {3.0: 51, 9.0: 44}, 9.0, 0.0015),
    (f"large epsilon ({_FAILURE})", 3.0, 1, {-5.0: 5}, -5.0, 0.011),
    (f"large epsilon ({_LOWER})", 3.0, 1, {-5.0: 6, 13.0: 7}, -5.0, 0.011),
    (f"large epsilon ({_UPPER})", 3.0, 1, {-5.0: 7, 13.0: 6}, 13.0, 0.011),
    (f"{_MANY} ({_FAILURE})", LN3, 4, {-1.0: 56}, -1.0, 0.0028),
    (f"{_MANY} ({_UPPER})", LN3, 4, {1.0: 72, 5.0: 72}, 5.0, 0.0028),
    (f"{_MANY} ({_LOWER})", LN3, 4, {1.0: 72, 5.0: 72}, 1.0, 0.0028),
    ("empty dataset", LN3, 1, {}, -4.0, 0.003),
    ("clamped contributions", LN3, 1, {16.0: 14}, 1_000.0, 0.003),
)


def _bounds_cases() -> Iterator[Case]:
    """Yield the 14 cases of approximate bounds: five bins of each sign, base 2, first edge 1."""
    for name, epsilon, values, counts, value, tolerance in _BOUNDS:
        rows = tuple(row for row, number in counts.items() for _ in range(number))
        sizes, extra = (epsilon, 0.0, 1, values), (value,) * values
        yield _case("approximate bounds", name, sizes, (0.0, 1.0), rows, extra, (tolerance, 0.0))


REJECTED: Final = {
    "count": "distance 1.175 times the sensitivity",
    "bounded sum": "distance 1.185 times the sensitivity",
    "long bounded sum": "distance 1.185 times the sensitivity",
    "bounded mean": "distance 1.375 times the sensitivity",
    "standard deviation": "distance 2 times the sensitivity",
    "quantiles": "1.05 ε",
    "approximate bounds": "1.01 ε",
    "Laplace closeness": "variance 1.0625 times that of the distribution",
    "Gaussian closeness": "variance 1.0625 times that of the distribution",
}
"""Smallest fault that one vote of a file's tests is designed to reject, with probability about .9; the files also name
larger failure probabilities, shifts and other distributions."""


def dp_cases() -> Iterator[Case]:
    """Yield the cases of the aggregations, file by file."""
    yield from (*_count_cases(), *_sum_cases(whole=False), *_sum_cases(whole=True), *_mean_cases())
    yield from (*_deviation_cases(), *_quantile_cases(), *_bounds_cases())
