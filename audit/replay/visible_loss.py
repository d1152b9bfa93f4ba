"""How large a loss of two recorded runs looks, for a search that ranks pairs of datasets by it.

The worst-case loss of a call does not rank: it is infinite for Gaussian noise that moves by a hair, and for scales that
differ in their last digit. The visible loss is finite, and grows with what a statistical audit would see: the largest
log ratio at values that one run in a thousand goes beyond. It proposes pairs and proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy.special import ndtri

from .laws import Array, Law
from .output_values import difference, numbers_of, same_output
from .recorded_run import RecordedRun
from .replayed_call import Line, ReplayedCall, calls_of, line_of, paired, paired_calls
from .tape import Tape

_RARE: Final = 1e-3
_DEVIATIONS: Final = -float(ndtri(_RARE))
_QUANTILES: Final = np.concatenate([np.geomspace(_RARE, 0.5, 20), 1.0 - np.geomspace(_RARE, 0.5, 20)[-2::-1]])
_CERTAIN: Final = 20.0  # of what every run shows; far beyond the losses that claims allow
_MOST_MATCHED: Final = 16  # calls of a line
_OTHERWISE: Final = 1.0  # of another path, or of a call of which nothing is known: worth a look


def visible_loss(
    on_x: RecordedRun,
    on_y: RecordedRun,
    hides: Callable[[int], bool] = lambda number: False,
    *,
    otherwise: float = _OTHERWISE,
) -> float:
    """Return the sum over the calls, and over what moved without them; finite, and 0 for equal runs.

    The run on y had the values of the run on x put back. A call whose value the output hides counts little, and
    another path as `otherwise`.
    """
    parted, calls = on_y.tape.parted_at, paired_calls(on_x.tape, on_y.tape)
    losses, is_reordered = _of_calls(calls, on_x.tape, on_y.tape)
    loss = math.fsum(min(each, _OTHERWISE) if each and hides(number) else each for number, each in losses)
    if on_x.end != on_y.end:
        return loss + _CERTAIN
    if is_reordered or parted is not None or len(on_x.tape.calls) != len(on_y.tape.calls):
        return loss + otherwise
    return loss + _of_outputs([call.law_on_x for call in calls if call.is_bare], on_x.output, on_y.output)


def _of_calls(calls: Sequence[ReplayedCall], x: Tape, y: Tape) -> tuple[list[tuple[int, float]], bool]:
    """Return the visible losses of calls, each with the number of a call of its line, and whether any were reordered.

    Where groups come and go with the rows (leaves of a tree, keys of a dictionary), the first call of a line on x may
    be for another group than the first on y. So the calls of a line are matched in the order with the least loss.
    """
    from scipy.optimize import linear_sum_assignment  # takes a tenth of a second; only searches need it

    lines: dict[Line, list[tuple[int, float]]] = {}
    for number, call in enumerate(calls):
        lines.setdefault(line_of(call), []).append((number, _of_call(call)))
    found, is_reordered = [], False
    for line, losses in lines.items():
        on_x, on_y = calls_of(line, x), calls_of(line, y)
        if 1 < max(len(on_x), len(on_y)) <= _MOST_MATCHED and any(loss > 0.0 for _, loss in losses):
            costs = np.array([[_of_call(paired(a, b)) for b in on_y] for a in on_x])
            least = [float(loss) for loss in costs[linear_sum_assignment(costs)]]
            is_reordered = is_reordered or sum(least) < sum(loss for _, loss in losses) - 1e-9
            found += [(losses[0][0], loss) for loss in least]
        else:
            found += losses
    return found, is_reordered


def _of_call(call: ReplayedCall) -> float:
    """Return the visible loss of a call that is given something of the data."""
    x, y, worst, mu = call.law_on_x, call.law_on_y, call.worst_loss, call.mu
    if call.is_bare or worst == 0.0:
        return 0.0
    if mu is not None and math.isfinite(mu):
        return mu * (_DEVIATIONS + mu / 2.0)
    if worst is not None and math.isfinite(worst):
        return worst
    promise, moved = call.declared_on_x, call.moved
    if promise is not None and promise.sensitivity is not None and moved is not None:
        far = moved / promise.sensitivity if promise.sensitivity and math.isfinite(moved) else math.inf
        return min((promise.epsilon or 1.0) * far, _CERTAIN) if moved else 0.0
    if not (x.is_known and x.name == y.name and x.shape == y.shape):
        return _OTHERWISE
    return _log_ratio(x, y)


def _log_ratio(x: Law, y: Law) -> float:
    """Return the largest log ratio at values that are not rare under either law, the sum over independent draws."""
    with np.errstate(all="ignore"):
        if x.name == "discrete":
            p, q = (np.asarray(law.parameters["probabilities"], np.float64) for law in (x, y))
            if p.shape != q.shape:
                return _CERTAIN
            return float(np.max(np.abs(np.log(np.maximum(p, _RARE)) - np.log(np.maximum(q, _RARE))), initial=0.0))
        first, second = x.frozen(), y.frozen()
        levels = _QUANTILES.reshape(-1, *(1,) * len(x.shape))
        values = np.concatenate([np.asarray(law.ppf(levels), np.float64) for law in (first, second)])
        name = "logpmf" if x.is_integer_valued else "logpdf"
        ratios = np.abs(getattr(first, name)(values) - getattr(second, name)(values))
    ratios = np.minimum(np.where(np.isnan(ratios), 0.0, ratios), _CERTAIN)
    return float(np.sum(ratios.max(axis=0)))


def _of_outputs(noise: Sequence[Law], x: object, y: object) -> float:
    """Return how far the outputs moved, in scales of the noise that was not handed the data."""
    if same_output(x, y):
        return 0.0
    a, b = numbers_of(x), numbers_of(y)
    if a is None or b is None or a.shape != b.shape:
        return _OTHERWISE
    moved = np.abs(difference(a, b))
    scales = np.concatenate([np.empty(0), *(np.ravel(_scale(law)) for law in noise)])
    if not len(scales):
        return _CERTAIN if np.any(moved > 0.0) else 0.0
    with np.errstate(all="ignore"):
        relative = moved / (scales if len(scales) == len(moved) else np.max(scales))
    return float(np.sum(np.minimum(np.nan_to_num(relative, nan=_CERTAIN), 1e6)))


def _scale(law: Law) -> Array:
    """Return the scale of each draw, or 1 for laws without one: uniform numbers, coins, permutations."""
    scale = law.scale
    return np.ones(law.shape) if scale is None else scale
