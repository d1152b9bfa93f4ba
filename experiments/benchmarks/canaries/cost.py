"""Seconds and memory of audits of many canaries."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from ....audit.canaries.check_canaries import check_canaries
from ....audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ..core.bench_json import Figures, columns
from ..core.effort import Bench, Effort, Task, once
from ..core.timing import timed
from ..scale.memory import peak_memory
from .known_scores import gaussian_scores

_CLAIMS: dict[str, Claim] = {"pure": PureDP(1.0), "approximate": ApproxDP(1.0, 1e-5), "Gaussian": GaussianDP(0.5)}
_CANARIES, _QUICK = (10**4, 10**5, 10**6), (10**4,)


def audit(name: str, canaries: int) -> float:
    """Audit one run with so many canaries, and return the bound."""
    rng = np.random.default_rng(0)
    included = rng.random(canaries) < 0.5
    scores = gaussian_scores(2.0, included, rng)
    return check_canaries(scores, included, claim=_CLAIMS[name], coins="independent").bound


def _cells(name: str, canaries: int) -> Figures:
    code = f"from {__name__} import audit; audit({name!r}, {canaries})"
    idle = peak_memory([sys.executable, "-c", f"from {__name__} import audit; audit({name!r}, 1000)"])
    peak = peak_memory([sys.executable, "-c", code])
    bound, seconds = timed(audit, name, canaries)
    return {
        "claim": str(_CLAIMS[name]),
        "canaries": canaries,
        "bound": bound,
        "seconds": seconds,
        "memory": peak,
        "more": peak - idle,
    }, []


def _tasks(effort: Effort) -> Iterator[Task]:
    for name in _CLAIMS:
        for canaries in effort.either(_QUICK, _CANARIES):
            if effort.wants(name):
                yield once(f"{name}, {canaries:,}", _cells, name, canaries)


CANARY_COST = Bench(
    name="canary-cost",
    title="Seconds and memory",
    method=(
        "`check_canaries` audits Gaussian scores, μ = 2; the time covers the bound, the smallest detectable excess and "
        "the ceiling. Memory is the peak of a separate process, and the increase over 1,000 canaries."
    ),
    columns=columns(
        "claim | canaries :, | lower bound = bound :.3f | seconds :.2f | peak MiB = memory :.0f | "
        "more than with 1,000 = more :.0f"
    ),
    names=tuple(_CLAIMS),
    tasks=_tasks,
)
