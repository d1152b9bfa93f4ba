"""Cases of quantiles and of approximate bounds.

Source: bounded_quantiles_dp_test_cases and approximate_bounds_dp_test_cases in proto/testing of
google/differential-privacy. The first file is a sweep over datasets and settings; it writes every case out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .case import LN3, Case

_WIDE: Final = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_NARROW: Final = (0.0, 0.01, 0.05, 0.45, 0.49, 0.5, 0.51, 0.55, 0.95, 0.99, 1.0)
BUCKETS: Final = 32
"""Cells into which the tests divide the bounds of a quantile."""
_TENTHS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_TREE, _OTHER_TREE = (2, 5), (3, 3)
# Setting: epsilon, delta, partitions, values in each, values of a user, tree, tolerance.
_SETTINGS = {
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


def quantile_cases() -> Iterator[Case]:
    """Yield the 39 cases of quantiles."""
    for noise, settings in _SETTINGS.items():
        for dataset in ("empty", "binary", "linear"):
            for setting, (epsilon, delta, partitions, per_partition, added, tree, tolerance) in settings.items():
                is_narrow = setting == "small delta" or (dataset == "empty" and tree == _TREE)
                rows: tuple[float, ...] = {"empty": (), "binary": (-1_000.0,) * added, "linear": _TENTHS}[dataset]
                value = {"empty": 0.5, "binary": 1_000.0, "linear": 0.0}[dataset]
                yield Case(
                    file="quantiles",
                    name=f"{noise} noise, {dataset} distribution, {setting}",
                    epsilon=epsilon,
                    delta=delta,
                    tested_delta=delta,
                    partitions=partitions,
                    per_partition=per_partition,
                    lower=-1.0 if dataset == "linear" else 0.0,
                    upper=2.0 if dataset == "linear" else 1.0,
                    rows=rows,
                    extra=(value,) * added,
                    tolerance=tolerance,
                    tree=tree,
                    ranks=_NARROW if is_narrow else _WIDE,
                    samples=250_000,
                )


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


def bounds_cases() -> Iterator[Case]:
    """Yield the 14 cases of approximate bounds: five bins of each sign, base 2, first edge 1."""
    for name, epsilon, values, counts, value, tolerance in _BOUNDS:
        yield Case(
            file="approximate bounds",
            name=name,
            epsilon=epsilon,
            tested_delta=0.0,
            per_partition=values,
            rows=tuple(row for row, number in counts.items() for _ in range(number)),
            extra=(value,) * values,
            tolerance=tolerance,
        )
