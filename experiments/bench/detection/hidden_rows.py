"""Mechanisms whose outputs are sequences or rows of keys, and whose loss shows in no place of the output alone.

Each takes whether the dataset is the second of its pair. Where odds are said to tell, they are those of
`likelier`, and the loss is 1; values of a key are three scales of Laplace noise apart.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_KEYS, _KEY, _ROWS, _SHIFT = 300, 117, 8, 3.0


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
    keys = rng.integers(0, _KEYS, (size, _ROWS))
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
