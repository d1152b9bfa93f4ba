"""Events by the values of single keys in outputs that are histograms, tables or selections of hundreds of keys.

Where rows come in any order and number, a leak of one key shows in no place of the output. The values of each key are
compared, and only the keys whose values or counts differ clearly become columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..events.features import leave_out
from ..events.leaves import KeyedValues, Name, named_values, same_name
from ..events.outputs import Outputs, outcome_list
from .learned_scores import chosen_columns
from .number_families import Family
from .pilot_split import PilotSplit

_LEARNED, _MOST_NUMBERS = 20_000, 200_000  # most outputs on each dataset on which keys are compared, and numbers
_LOOKED_AT, _SAMPLED = 200, 20  # outputs on each dataset that show whether there are keys, and how many
_FEW_NAMES = 64  # of outputs whose numbers are looked at singly
_MOST_OF_ONE = 2_500  # numbers of an output: reading them takes milliseconds
_MOST_KEYS = 4_000  # keys that are compared, the commonest
_LEAST_HITS = 8
_CLEAR = 4.5  # standard errors; of 300 keys that are alike, the largest difference is 3.8 on average
_SINGLE, _TOGETHER = 3, 24  # keys with half-lines of their own, and those of a sum


def keyed_value_families(split: PilotSplit) -> Iterator[Family[Any]]:
    """Events by the value or the count of a key, for keys with a clear difference in the first half."""
    if not _have_keys(split):
        return
    chosen = clear_keys(split.learn_x, split.learn_y)
    if chosen:
        columns = KeyedValues(tuple(chosen[:_TOGETHER]))
        yield from chosen_columns(columns, split.map(columns.read), single=_SINGLE)


def _have_keys(split: PilotSplit) -> bool:
    """Whether outputs name keys, or more numbers than have columns of their own."""
    names: set[Any] = set()
    for output in outcome_list(split.learn_x[:_LOOKED_AT]) + outcome_list(split.learn_y[:_LOOKED_AT]):
        for name, _ in named_values(output):
            names.add(same_name(name))
            if name[0] or len(names) > _FEW_NAMES:
                return True
    return False


def clear_keys(x: Outputs, y: Outputs) -> list[Name]:
    """Return the keys whose values or counts clearly differ, the clearest first.

    The distance of a key is the largest difference between the numbers of values up to a value, or beyond it, on x and
    on y, in standard errors.

    Parameters
    ----------
    x, y : ndarray
        Outputs on each dataset, of which equally many are compared.
    """
    numbers: dict[Any, int] = {}
    named: list[Name] = []
    found: list[tuple[array[int], array[float]]] = []
    runs = _affordable(x, y)
    for side in (x[:runs], y[:runs]):
        numbered, values = array("q"), array("d")
        for output in outcome_list(side):
            for name, value in named_values(output):
                number = numbers.setdefault(same_name(name), len(named))
                if number == len(named):
                    named.append(name)
                numbered.append(number)
                values.append(value)
        found.append((numbered, values))
    if not named:
        return []
    names = np.concatenate([np.array(numbered, dtype=np.int64) for numbered, _ in found])
    values_of_both = np.concatenate([np.array(values, dtype=np.float64) for _, values in found])
    is_on_x = np.arange(len(names)) < len(found[0][0])
    if len(named) > _MOST_KEYS:
        leave_out("keys", f"of {len(named):,} keys in outputs, the {_MOST_KEYS:,} commonest were examined singly")
    commonest = np.argsort(-np.bincount(names, minlength=len(named)), kind="stable")[:_MOST_KEYS]
    place_of = np.full(len(named), -1)
    place_of[commonest] = np.arange(len(commonest))
    distance = _distances(place_of[names], values_of_both, is_on_x, len(commonest))
    order = np.argsort(-distance, kind="stable")
    return [named[commonest[place]] for place in order.tolist() if distance[place] >= _CLEAR]


def _affordable(x: Outputs, y: Outputs) -> int:
    """Outputs on each dataset that are compared, by the numbers in the first few; none if these have too many."""
    few = outcome_list(x[:_SAMPLED]) + outcome_list(y[:_SAMPLED])
    numbers = max(1.0, sum(sum(1 for _ in named_values(output)) for output in few) / max(len(few), 1))
    if numbers > _MOST_OF_ONE:
        leave_out("keys", f"outputs have more than {_MOST_OF_ONE:,} numbers, so these were not examined by their keys")
        return 0
    return min(len(x), len(y), _LEARNED, int(_MOST_NUMBERS / numbers))


def _distances(
    names: npt.NDArray[np.int64], values: npt.NDArray[np.float64], is_on_x: npt.NDArray[np.bool_], count: int
) -> npt.NDArray[np.float64]:
    """Distance of each name 0, …, count − 1 from its values; −1 stands for names that are not compared."""
    order = np.lexsort((values, names))
    order = order[np.searchsorted(names[order], 0) :]
    names, values, signs = names[order], values[order], np.where(is_on_x[order], 1, -1)
    if len(names) == 0:
        return np.zeros(count)
    starts = np.searchsorted(names, np.arange(count))
    sizes = np.diff(np.append(starts, len(names)))
    totals = np.add.reduceat(signs, starts)
    up_to = np.cumsum(signs)
    up_to -= np.repeat(up_to[starts] - signs[starts], sizes)
    hits = np.arange(len(names)) - np.repeat(starts, sizes) + 1
    # Equal values are on the same side of every cut.
    is_cut = np.append((names[1:] != names[:-1]) | (values[1:] != values[:-1]), True)
    distance = np.zeros(len(names))
    for ahead, runs in ((up_to, hits), (np.repeat(totals, sizes) - up_to, np.repeat(sizes, sizes) - hits)):
        is_counted = is_cut & (runs >= _LEAST_HITS)
        distance = np.maximum(distance, np.where(is_counted, np.abs(ahead) / np.sqrt(np.maximum(runs, 1)), 0.0))
    return np.maximum.reduceat(distance, starts)
