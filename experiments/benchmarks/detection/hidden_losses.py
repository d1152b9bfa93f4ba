"""Losses that show only in a relation of outputs or in a few row values: the share of the loss that an audit bounds.

Mechanisms take whether the dataset is the second of its pair. Where odds are said to tell, they are those of
`likelier`, and the loss is 1; values of a key are three scales of Laplace noise apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import Claim, GaussianDP, PureDP
from ....audit.datasets.adjacency import AddRemove
from ....audit.datasets.domains import Rows
from ....audit.procedures.check import check
from ....audit.results.audit_result import AuditResult
from ....audit.search.find_worst_pair import find_worst_pair
from ..core.bench_json import Figures, at_least, columns, timed
from ..core.page import Bench, Effort, one_row_each, seeds_of

_ROW_KEYS, _KEY, _ROWS, _SHIFT = 300, 117, 8, 3.0


def likelier(is_one: bool, size: int, rng: np.random.Generator) -> Array:
    """Return bits that are 1 with odds e to 1 on one dataset and 1 to e on the other: the loss is 1."""
    return rng.random(size) < 1.0 / (1.0 + math.exp(-1.0 if is_one else 1.0))


def first_above(is_one: bool, size: int, rng: np.random.Generator) -> Array:
    """Return thirty bits; the odds tell whether the first 1 is among the first four bits or among the next six."""
    bits = rng.random((size, 30)) < 0.3
    first = np.where(likelier(is_one, size, rng), rng.integers(0, 4, size), rng.integers(4, 10, size))
    bits &= np.arange(30) >= first[:, None]
    bits[np.arange(size), first] = True
    return bits


def switches(is_one: bool, size: int, rng: np.random.Generator) -> Array:
    """Return forty bits; the odds tell whether neighbours differ with probability 0.75 or 0.25."""
    rate = np.where(likelier(is_one, size, rng), 0.75, 0.25)
    changes = rng.random((size, 39)) < rate[:, None]
    return (
        np.concatenate([np.zeros((size, 1), int), changes.cumsum(axis=1)], axis=1) + rng.integers(0, 2, (size, 1)) & 1
    )


def number_released(is_one: bool, size: int, rng: np.random.Generator) -> list[list[float]]:
    """Return lists of normals; the odds tell whether there are at most four or more."""
    counts = np.where(likelier(is_one, size, rng), rng.integers(5, 9, size), rng.integers(1, 5, size))
    values = rng.normal(size=(size, 8)).tolist()
    return [row[:count] for row, count in zip(values, counts.tolist(), strict=True)]


def last_released(is_one: bool, size: int, rng: np.random.Generator) -> list[list[float]]:
    """Return lists of Laplace noise of scale 1, of different lengths; the last number is moved by 1."""
    counts = rng.integers(1, 8, size)
    values = rng.laplace(size=(size, 8))
    values[np.arange(size), counts - 1] += is_one
    return [row[:count] for row, count in zip(values.tolist(), counts.tolist(), strict=True)]


def transcripts(is_one: bool, size: int, rng: np.random.Generator) -> list[list[str]]:
    """Return questions and answers in turns; the odds tell whether most answers are yes."""
    rate = np.where(likelier(is_one, size, rng), 0.9, 0.1)
    questions, is_yes = rng.integers(0, 100, (size, 6)).tolist(), (rng.random((size, 6)) < rate[:, None]).tolist()
    lengths = rng.integers(3, 7, size).tolist()
    return [
        [
            text
            for question, yes in zip(row[:n], said[:n], strict=True)
            for text in (f"{question}?", "yes" if yes else "no")
        ]
        for row, said, n in zip(questions, is_yes, lengths, strict=True)
    ]


def rows_of_pairs(is_one: bool, size: int, rng: np.random.Generator) -> list[list[tuple[str, float]]]:
    """Return eight rows of a key, one of 300, and its noisy value; the values of one key are moved."""
    keys = rng.integers(0, _ROW_KEYS, (size, _ROWS))
    values = rng.laplace(size=keys.shape) + _SHIFT * is_one * (keys == _KEY)
    return [
        [(f"key{key}", value) for key, value in zip(*row, strict=True)]
        for row in zip(keys.tolist(), values.tolist(), strict=True)
    ]


def rows_of_dictionaries(is_one: bool, size: int, rng: np.random.Generator) -> list[list[dict[str, Any]]]:
    """Return these rows as dictionaries."""
    return [[{"key": key, "count": value} for key, value in rows] for rows in rows_of_pairs(is_one, size, rng)]


def lists_side_by_side(is_one: bool, size: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return these rows as a list of keys and one of values."""
    return [
        {"keys": [key for key, _ in rows], "counts": [value for _, value in rows]}
        for rows in rows_of_pairs(is_one, size, rng)
    ]


def histograms(is_one: bool, size: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """Return these rows as one dictionary; of rows with the same key the last one counts."""
    return [dict(rows) for rows in rows_of_pairs(is_one, size, rng)]


def selected_keys(is_one: bool, size: int, rng: np.random.Generator) -> list[list[str]]:
    """Return a shuffled list of the keys selected; one of sixty is selected with e times the probability."""
    rates = np.full(60, 0.1)
    rates[7] = 0.1 if is_one else 0.1 / math.e
    places = np.argsort(rng.random((size, 60)), axis=1)
    is_selected = np.take_along_axis(rng.random((size, 60)) < rates, places, axis=1)
    return [[f"key{key}" for key in row[kept]] for row, kept in zip(places, is_selected, strict=True)]


ALPHA = 0.05
RUNS, _FEWER, _QUICK_RUNS = 1_000_000, 200_000, 10_000
_SHARE = 0.9
_KEYS = 200
_WINDOW = (0.970, 0.972)

Array = npt.NDArray[Any]


def _pair_of_key(is_one: bool, size: int, rng: np.random.Generator) -> list[tuple[str, float]]:
    """Return a key drawn evenly, and its count; for one key the counts differ."""
    keys, values = rng.integers(0, _KEYS, size), rng.laplace(size=size)
    values += 3.0 * ((keys == 117) & is_one)
    return [(f"key{key}", value) for key, value in zip(keys.tolist(), values.tolist(), strict=True)]


def _dictionary_of_key(is_one: bool, size: int, rng: np.random.Generator) -> list[dict[str, float]]:
    return [{key: value} for key, value in _pair_of_key(is_one, size, rng)]


def _product(width: int, factors: int) -> Callable[..., Array]:
    """Return normals, of which some have a product whose sign depends on the dataset."""

    def draw(is_one: bool, size: int, rng: np.random.Generator) -> Array:
        values = rng.normal(size=(size, width))
        chosen = np.linspace(0, width - 1, factors).astype(int)
        sign = np.where(likelier(is_one, size, rng), 1.0, -1.0) * np.sign(values[:, chosen]).prod(axis=1)
        values[:, chosen[-1]] *= sign
        return values

    return draw


def _direction(is_one: bool, size: int, rng: np.random.Generator) -> Array:
    """Return fifty normals that are shifted by 1 in a direction of no axis."""
    direction = np.random.default_rng(5).normal(size=50)
    return rng.normal(size=(size, 50)) + is_one * direction / np.linalg.norm(direction)


def _permutation(is_one: bool, size: int, rng: np.random.Generator) -> Array:
    """Return ranks of eight items; which of two items is ranked higher depends on the dataset."""
    ranks = rng.permuted(np.tile(np.arange(8), (size, 1)), axis=1)
    is_wrong = (ranks[:, 2] < ranks[:, 5]) != likelier(is_one, size, rng)
    ranks[is_wrong, 2], ranks[is_wrong, 5] = ranks[is_wrong, 5], ranks[is_wrong, 2]
    return ranks


def _ranking(is_one: bool, size: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Return the items of a permutation in the order of their ranks."""
    order = np.argsort(_permutation(is_one, size, rng), axis=1)
    return [tuple("abcdefgh"[item] for item in items) for items in order.tolist()]


def _gap(is_one: bool, size: int, rng: np.random.Generator) -> Array:
    """Return shuffled numbers, of which the two largest are close or apart."""
    values = np.sort(rng.exponential(size=(size, 8)), axis=1)
    values[:, 7] = values[:, 6] + rng.random(size) + likelier(is_one, size, rng)
    return rng.permuted(values, axis=1)


def _sum_with_window(rows: list[float], size: int, rng: np.random.Generator) -> Array:
    """Return a noisy sum that counts rows of a narrow window threefold."""
    low, high = _WINDOW
    return sum(3.0 if low < row < high else row for row in rows) + rng.laplace(size=size)


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    draw: Callable[..., Any]
    loss: float = 1.0
    claim: Claim = field(default_factory=lambda: PureDP(0.5))
    domain: Rows | None = None  # of the search; a pair is given otherwise
    runs: int = RUNS

    def audit(self, runs: int, seed: int, jobs: int) -> AuditResult:
        options: dict[str, Any] = {"claim": self.claim, "alpha": ALPHA, "runs": runs, "seed": seed, "jobs": jobs}
        if self.domain is not None:
            return find_worst_pair(self.draw, self.domain, adjacency=AddRemove(), bits=False, **options).audit
        return check(self.draw, False, True, bits=False, **options)


_CASES = {
    case.name: case
    for case in (
        _Case("one key of 200, in pairs (key, value)", _pair_of_key, loss=3.0),
        _Case("one key of 200, in dictionaries", _dictionary_of_key, loss=3.0),
        _Case("sign of a product of 2 among 30 normals", _product(30, 2)),
        _Case("sign of a product of 3 among 30 normals", _product(30, 3)),
        _Case("sign of a product of 3 among 10 normals", _product(10, 3)),
        _Case("sign of the product of 10 normals", _product(10, 10)),
        _Case("sign of the product of 30 normals", _product(30, 30)),
        _Case("Gaussian of 50 dimensions, a direction", _direction, claim=GaussianDP(0.5)),
        _Case("order of two items, ranks of eight", _permutation),
        _Case("order of two items, a list of eight", _ranking),
        _Case("gap between the two largest of eight", _gap),
        _Case("rows in (.970, .972), pair searched", _sum_with_window, 3.0, PureDP(1.0), Rows(high=1.0)),
        _Case("place of the first 1 in thirty bits", first_above),
        _Case("how often forty bits switch", switches),
        _Case("number of values released", number_released, runs=_FEWER),
        _Case("last value of a list", last_released, runs=_FEWER),
        _Case("share of yes in a transcript", transcripts, runs=_FEWER),
        _Case("one key of 300, in rows (key, value)", rows_of_pairs, loss=3.0, runs=_FEWER),
        _Case("one key of 300, in rows that are dictionaries", rows_of_dictionaries, 3.0, runs=_FEWER),
        _Case("one key of 300, in lists side by side", lists_side_by_side, loss=3.0, runs=_FEWER),
        _Case("one key of 300, in histograms", histograms, loss=3.0, runs=_FEWER),
        _Case("one key of sixty, in a list of selected keys", selected_keys, runs=_FEWER),
    )
}
_QUICK = ("gap between the two largest of eight",)


def _cells(effort: Effort, place: int, name: str) -> Figures:
    case = _CASES[name]
    audit, seconds = timed(case.audit, effort.either(_QUICK_RUNS, case.runs), seeds_of(27, place, 0, 1)[0], effort.jobs)
    share = audit.bound / case.loss
    targets = [at_least("refuted", audit.is_refuted, 1)]
    if not effort.is_quick:
        targets.append(at_least("share of the loss", share, _SHARE))
    return {
        "name": case.name,
        "claim": str(case.claim),
        "runs": effort.either(_QUICK_RUNS, case.runs),
        "loss": case.loss,
        "bound": audit.bound,
        "share": share,
        "event": str(audit.event),
        "seconds": seconds,
    }, targets


HIDDEN = Bench(
    name="hidden",
    title="Losses in relations of outputs, and in a few row values",
    method=(
        "Default options and alpha .05, runs on each dataset. Where an order or a sign tells, its odds are "
        "e to 1 on one dataset and 1 to e on the other; one key's counts are 3 apart, with Laplace noise; the normals "
        "are shifted by 1 in a direction of no axis (claim and loss as μ). Rows of the window count threefold in a "
        "noisy sum of numbers from 0 to 1; the search has 10⁶ executions. Sequences and rows: "
        "experiments/benchmarks/detection/hidden_losses.py."
    ),
    columns=columns(
        "what tells = name | claim | runs :, | loss :g | lower bound = bound :.4g | share :.3f | event | seconds :.1f"
    ),
    names=tuple(_CASES),
    tasks=one_row_each(_CASES, _cells, _QUICK),
)
