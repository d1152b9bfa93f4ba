"""Names that the shell completes, kept here so that completion does not load the experiments.

A test compares them with the suite, the benchmark pages and the library.
"""

from __future__ import annotations

EXPERIMENTS = (
    *(f"E{number}" for number in range(1, 11)),
    *(f"G{number}" for number in range(1, 4)),
    *(f"R{number}" for number in range(1, 4)),
    *(f"D{number}" for number in range(1, 9)),
    *(f"L{number}" for number in range(1, 7)),
    *(f"M{number}" for number in range(1, 10)),
    "reference",
    "all",
)
DOCUMENTS = ("reference", "exponential", "analytic-gaussian", "renyi", "definition", "laplace-composition", "named")
REFERENCE_CASES = (
    "laplace", "geometric", "gaussian-analytic", "gaussian-classical", "randomised-response",
    "randomised-response-5", "exponential", "noisy-max-laplace", "noisy-max-exponential", "noisy-max-gumbel",
    "laplace-half-noise", "laplace-scale-epsilon", "geometric-per-row", "geometric-squared-ratio",
    "gaussian-variance", "gaussian-classical-at-10", "randomised-response-lies", "randomised-response-binary-odds",
    "exponential-missing-2", "noisy-max-missing-2", "noisy-max-value",
)  # fmt: skip
TABLES = {
    "inference": (
        "false-alarms", "sizes", "tightness", "refutation", "coverage", "timing", "dependence", "checks", "power",
    ),
    "detection": (
        "dp-sniper", "dp-sniper-long", "suites", "catalogue", "catalogue-searched", "leaks", "rare-leaks", "outcomes",
        "small-excesses", "hidden", "local", "synthetic", "cost",
    ),
    "regression": ("sessions", "planted", "calibration", "baselines"),
    "scale": ("memory", "large", "suite", "throughput", "scaling", "backends", "start"),
    "faults": ("faults", "kills"),
    "libraries": ("opendp", "diffprivlib", "pydp", "defects", "guided", "library-suites"),
    "google": ("google",),
    "canaries": (
        "canary-false-alarms", "canary-bounds", "canary-methods", "jax-privacy", "dp-sgd", "training-mistakes",
        "canary-cost",
    ),
    "replays": ("false-findings", "composites", "slow-fits"),
    "reports": ("reports",),
}  # fmt: skip
"""Tables of each benchmark page."""
LIBRARIES = ("opendp", "diffprivlib", "pydp", "pure-ldp", "multi-freq-ldpy", "pipeline-dp", "datasynthesizer")
"""Libraries that have suites."""
ADJACENCIES = ("add-remove", "replace", "edge", "node", "local", "l1", "l2", "linf")
CANARY_ADJACENCIES = ("add-remove", "replace")
CANARY_ANSWERS = ("both", "in", "out")
CANARY_COINS = ("independent", "fixed")
CANARY_METHODS = ("auto", "betting", "counts", "steinke", "f-dp")
BITS = ("warn", "true", "false")
HEALTH_CHECKS = (
    "repeated-blocks", "unsteady-hits", "serial-dependence", "shared-randomness", "dataset-mutated", "equal-datasets",
    "constant-output", "idle-event",
)  # fmt: skip
