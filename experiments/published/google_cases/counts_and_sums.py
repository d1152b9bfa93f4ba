"""Cases of counts and bounded sums: sweeps over datasets and settings.

Source: count_dp_test_cases, bounded_sum_dp_test_cases and long_bounded_sum_dp_test_cases in proto/testing of
google/differential-privacy. The files write every case of the sweeps out.
"""

from __future__ import annotations

from collections.abc import Iterator

from .case import LN3, Case

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


def count_cases() -> Iterator[Case]:
    """Yield the 36 cases of counts; a row is the number of values that are counted at once."""
    for noise, settings in (("Laplace", _LAPLACE_COUNTS), ("Gaussian", _GAUSSIAN_COUNTS)):
        for dataset, rows in _COUNTS.items():
            for setting, (epsilon, delta, partitions, added, tolerance) in settings.items():
                yield Case(
                    file="count",
                    name=f"{noise} noise, {dataset}, {setting}",
                    epsilon=epsilon,
                    delta=delta,
                    tested_delta=delta,
                    partitions=partitions,
                    rows=rows,
                    extra=(added,),
                    tolerance=tolerance,
                    granularity=1.0,
                )


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
# Tolerance and granularity of a setting, for values in [0, 1] and for values up to 50.
_UNIT = {
    "Laplace": {
        "default": (0.02, 2**-6),
        "many": (0.04, 2**-3),
        "small epsilon": (0.0135, 2**-4),
        "large epsilon": (0.0135, 2**-4),
    },
    "Gaussian": {
        "default": (0.00117, 2**-7),
        "many": (0.00242, 2**-6),
        "small epsilon": (0.0003, 2**-1),
        "large epsilon": (0.00092, 2**-7),
        "small delta, smaller for the noise": (0.00092, 2**-7),
    },
}
_FIFTY = {
    "Laplace": {
        "default": (0.04, 2**-2),
        "many": (0.04, 1.0),
        "small epsilon": (0.023, 1.0),
        "large epsilon": (0.023, 2**-1),
    },
    "Gaussian": {
        "default": (0.00513, 2**-4),
        "many": (0.006, 2**-2),
        "small epsilon": (0.00113, 4.0),
        "large epsilon": (0.0035, 2**-4),
        "small delta": (0.0048, 2**-4),
    },
}
_EMPTY = {
    "Laplace": {
        **{name: _UNIT["Laplace"][name] for name in ("default", "many")},
        "large bounds": (0.04, 2**-2),
        "small epsilon": (0.0135, 2**-4),
        "large epsilon": (0.0135, 2**-5),
    },
    "Gaussian": {
        **{name: _UNIT["Gaussian"][name] for name in ("default", "many")},
        "large bounds": (0.00513, 2**-4),
        **{name: _UNIT["Gaussian"][name] for name in list(_UNIT["Gaussian"])[2:]},
    },
}
_FRACTIONS = (0.64872, 0.12707, 0.00128, 0.14684, 0.86507)
_LARGE = (32.43606, 35.35006, 40.73424, 32.53939, 7.081785)
_MIXED = (-32.43606, 35.35006, -40.73424, -32.53939, 7.081785)


def sum_cases(*, whole: bool) -> Iterator[Case]:
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
            for setting, (tolerance, granularity) in tolerances[noise].items():
                epsilon, delta, tested, partitions, added = _SETTINGS[noise][setting]
                lower, upper, value = signed if setting == "large bounds" else usual
                words = _WORDS.get(setting, setting)
                if setting == "many":
                    is_turned = noise == "Gaussian" and dataset.startswith("large")
                    words = "many contributed partitions" if is_turned else "many partitions contributed"
                yield Case(
                    file="long bounded sum" if whole else "bounded sum",
                    name=f"{noise} noise, {dataset}, {words}",
                    epsilon=epsilon,
                    delta=delta,
                    tested_delta=tested,
                    partitions=partitions,
                    lower=lower,
                    upper=upper,
                    rows=rows,
                    extra=(value,) * added,
                    tolerance=tolerance,
                    granularity=granularity,
                )
