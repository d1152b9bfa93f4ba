"""Cases of bounded means and of standard deviations: sweeps over datasets and settings.

Source: bounded_mean_dp_test_cases and bounded_stdv_dp_test_cases in proto/testing of google/differential-privacy. The
files write every case of the sweeps out. A standard deviation is the root of the variance, so one case is a case of
both.
"""

from __future__ import annotations

from collections.abc import Iterator

from .case import LN3, Case

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


def mean_cases() -> Iterator[Case]:
    """Yield the 47 cases of bounded means."""
    for (noise, dataset), cells in _MEAN_CELLS.items():
        bounds, rows, value, several, other = _DATASETS[dataset]
        for setting, (tolerance, granularity) in cells.items():
            words, epsilon, delta, partitions, per_partition, added = _MEANS[noise][setting]
            lower, upper = (-50.0, 50.0) if setting == "bounds" else bounds
            at = {"bounds": -50_000.0, "entries": other}.get(setting, value)
            yield Case(
                file="bounded mean",
                name=f"{noise} noise, {dataset}, {words}",
                epsilon=epsilon,
                delta=delta,
                tested_delta=delta,
                partitions=partitions,
                per_partition=per_partition,
                lower=lower,
                upper=upper,
                rows=several if setting == "entries" else rows,
                extra=(at,) * added,
                tolerance=tolerance,
                granularity=granularity,
            )


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
MORE_VALUES_THAN_ALLOWED = "the file adds 25 values to one partition, five times the L₂ sensitivity of 25 partitions"


def deviation_cases() -> Iterator[Case]:
    """Yield the 42 cases of standard deviations."""
    for noise, settings in _DEVIATIONS.items():
        for dataset, (usual, large) in _SPREAD.items():
            for words, epsilon, delta, partitions, per_partition, added, tolerance, granularity in settings:
                rows, value = large if words == "large bounds" else usual
                extra = (value,) * added
                if dataset == "empty stdv" and per_partition > 1:  # half of the values at each bound
                    extra = (value,) * (added // 2) + (-value,) * (added // 2)
                yield Case(
                    file="standard deviation",
                    name=f"{noise} noise, {dataset}, {words}",
                    epsilon=epsilon,
                    delta=delta,
                    tested_delta=delta,
                    partitions=partitions,
                    per_partition=per_partition,
                    lower=-50.0 if words == "large bounds" else 0.0,
                    upper=50.0 if words == "large bounds" else 2.0,
                    rows=rows,
                    extra=extra,
                    tolerance=tolerance,
                    granularity=granularity,
                    note=MORE_VALUES_THAN_ALLOWED if delta and partitions > 1 else "",
                )
