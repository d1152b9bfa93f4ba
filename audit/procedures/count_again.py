"""An event counted again in separate runs, which a baseline keeps to compare later runs with.

Proof: docs/proofs/choices.md
"""

from __future__ import annotations

import enum
import hashlib
import math
import numbers
from collections import Counter
from typing import Any

import numpy as np

from ..events.events import Event
from ..events.outputs import Outputs, Raised, merge, number_of, outcome_list
from ..floating_point_errors import with_own_arithmetic
from ..options import checked_seed
from ..random_streams import Stream, seed_of
from ..records.suite import Recount
from ..sampling.draw import count_events, plan_blocks, shapes_of
from ..sampling.sampler import as_sampler
from ..sampling.tasks import total_counts
from ..settings import or_setting
from .fixed_size import draw_checked

_LOOKED_AT = 10_000  # runs on each dataset whose forms are recorded


@with_own_arithmetic
def recount(
    mechanism: Any,
    x: Any,
    y: Any,
    event: Event | None,
    *,
    stream: str,
    runs: int = 100_000,
    seed: int | None = 0,
    jobs: int | None = None,
) -> Recount:
    """Counts an event in fresh runs of a mechanism on x and on y, and the forms of its outputs.

    The runs are independent of the runs of an audit with the same seed, and of those of every other `stream`. Recounts
    to be compared need different streams: with the same random numbers the counts of two versions of a mechanism would
    depend on each other.
    """
    seed = checked_seed(seed)
    text = int.from_bytes(hashlib.sha256(stream.encode()).digest(), "big")
    root, jobs = seed_of((seed, text), Stream.BASELINE), or_setting("jobs", jobs)
    plan = plan_blocks(as_sampler(mechanism, None), x, y, root, jobs, runs=runs)
    looked_at = plan.may_keep(min(runs, _LOOKED_AT))
    blocks_x, blocks_y = draw_checked(plan.for_pilot(looked_at), looked_at)
    forms = [_forms(side) for side in merge(blocks_x, blocks_y)]
    seen = tuple((form, forms[0][form], forms[1][form]) for form in sorted(forms[0] | forms[1]))
    counts = None
    if event is not None:
        counts = total_counts(*count_events(plan, event, shapes_of(plan, blocks_x, blocks_y), runs))
    return Recount(event=event, counts=counts, forms=seen, looked_at=looked_at, seed=seed, stream=stream)


def _forms(outputs: Outputs) -> Counter[str]:
    """Number of outputs of each form."""
    if outputs.dtype == object or outputs.dtype.kind == "b":
        return Counter(map(_form, outcome_list(outputs)))
    vectors = outputs.reshape(len(outputs), -1)
    holds_nan = np.isnan(vectors).any(axis=1) if vectors.shape[1] else np.zeros(len(outputs), np.bool_)
    holds_infinity = ~holds_nan & (np.isinf(vectors).any(axis=1) if vectors.shape[1] else False)
    whole = "number" if outputs.ndim == 1 else f"vector of {outputs.shape[1]}"
    found = {
        whole: len(outputs) - int(holds_nan.sum()) - int(holds_infinity.sum()),
        "NaN" if outputs.ndim == 1 else f"{whole} with NaN": int(holds_nan.sum()),
        "infinity" if outputs.ndim == 1 else f"{whole} with infinity": int(holds_infinity.sum()),
    }
    return Counter({form: times for form, times in found.items() if times})


def _form(output: Any) -> str:
    """Form of an output: its kind, or the value itself for None, exceptions and enum members."""
    if isinstance(output, Raised) or output is None:
        return str(output)
    if isinstance(output, enum.Enum):
        return f"{type(output).__qualname__}.{output.name}"
    if isinstance(output, (bool, np.bool_)):
        return "boolean"
    if isinstance(output, numbers.Real):
        value = number_of(output)
        if math.isnan(value):
            return "NaN"
        return "number" if math.isfinite(value) else "infinity"
    if isinstance(output, str):
        return "text"
    if type(output) is tuple:
        return f"tuple of {len(output)}"
    return type(output).__qualname__
