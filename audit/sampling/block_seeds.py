"""Seeds of blocks: those of numpy's `SeedSequence`, in a third of the time.

An audit makes a generator for each block, and small audits have hundreds of small blocks, most of whose time
`SeedSequence` would take. The keys of a phase differ in their last word only, so all before it is hashed once. Beyond
the first few blocks of a phase, the words of many blocks are computed together.

References
----------
numpy, `SeedSequence`, whose words are the same in every version; O'Neill (2015), Developing a seed_seq alternative.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISpawnableSeedSequence

# Constants of the hash functions on the way into the pool of four words, out of it, and between its words.
_IN, _IN_FACTOR, _OUT, _OUT_FACTOR = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
_LEFT, _RIGHT = 0xCA01F9DD, 0x4973F715
_POOL, _WORD, _SHIFT = 4, 0xFFFFFFFF, 16
_NEEDED = 3  # words of 64 bits that SFC64 asks for
_SINGLY, _TOGETHER = 4, 64  # first blocks of a phase, whose words are computed one by one, and blocks of one table


class BlockSeed(ISpawnableSeedSequence):
    """Seed sequence of one block, equal to ``SeedSequence(seed, spawn_key=(*phase, number))``.

    Parameters
    ----------
    seed : int
    phase : tuple of int
        The first words of the spawn key, which many blocks share; each below 2³².
    number : int
    """

    def __init__(self, seed: int, phase: tuple[int, ...], number: int) -> None:
        self._key = seed, phase, number
        self._known: np.random.SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: npt.DTypeLike = np.uint32) -> Any:
        """The first words, as `SeedSequence` has them."""
        if n_words == _NEEDED and dtype is np.uint64 and self._key[2] <= _WORD and self._known is None:
            seed, phase, number = self._key
            if number < _SINGLY:
                return _first_words(seed, phase, number)
            return _table(seed, phase, number // _TOGETHER)[number % _TOGETHER].copy()
        return self._whole.generate_state(n_words, dtype)  # type: ignore[arg-type]

    def spawn(self, n_children: int) -> list[Any]:
        """Seed sequences of children, as `SeedSequence` has them; no two calls give the same."""
        return self._whole.spawn(n_children)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # asked for by a copy before it has its attributes
            raise AttributeError(name)
        return getattr(self._whole, name)

    @property
    def _whole(self) -> np.random.SeedSequence:
        if self._known is None:
            seed, phase, number = self._key
            self._known = np.random.SeedSequence(seed, spawn_key=(*phase, number))
        return self._known


def _first_words(seed: int, phase: tuple[int, ...], number: int) -> npt.NDArray[np.uint64]:
    # With `_hashed` and `_mixed` written out: calls would take most of the time.
    pool = []
    for left, constant, factor in _pool_before(seed, phase):
        word = (number ^ constant) * factor & _WORD
        word = (left - _RIGHT * (word ^ word >> _SHIFT)) & _WORD
        pool.append(word ^ word >> _SHIFT)
    found = []
    for word, constant, factor in zip(pool + pool, _OUT_CONSTANTS, _OUT_FACTORS, strict=False):
        word = (word ^ constant) * factor & _WORD
        found.append(word ^ word >> _SHIFT)
    a, b, c, d, e, f = found
    return np.array((a | b << 32, c | d << 32, e | f << 32), dtype=np.uint64)


@lru_cache(maxsize=16)  # a phase of each dataset, in several threads
def _table(seed: int, phase: tuple[int, ...], number: int) -> npt.NDArray[np.uint64]:
    """`_first_words` of the blocks in a table, shape (blocks, 3); arithmetic is modulo 2⁶⁴, which 2³² divides."""
    before = np.array([[each & _DOUBLE for each in word] for word in _pool_before(seed, phase)], np.uint64)
    left, constant, factor = before.T[..., None]
    pool = ((np.arange(_TOGETHER, dtype=np.uint64) + np.uint64(number * _TOGETHER)) ^ constant) * factor & _WORD_64
    pool = (left - np.uint64(_RIGHT) * (pool ^ pool >> _SHIFT_64)) & _WORD_64
    pool ^= pool >> _SHIFT_64
    words = (np.concatenate([pool, pool[:2]]) ^ _OUT_TABLE[0]) * _OUT_TABLE[1] & _WORD_64
    words ^= words >> _SHIFT_64
    return np.ascontiguousarray((words[::2] | words[1::2] << np.uint64(32)).T)


@lru_cache(maxsize=64)
def _pool_before(seed: int, phase: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """The left part of each word of the pool with the number of a block, and the constants that hash the number."""
    words = _words_of(seed)
    words += [0] * (_POOL - len(words)) + list(phase)
    constants = _constants(_IN, _IN_FACTOR, _POOL * (_POOL + len(words)))
    hashes = pairwise(constants)
    pool = [_hashed(word, *next(hashes)) for word in words[:_POOL]]
    for source in range(_POOL):
        for place in range(_POOL):
            if place != source:
                pool[place] = _mixed(pool[place], _hashed(pool[source], *next(hashes)))
    for word in words[_POOL:]:
        pool = [_mixed(each, _hashed(word, *next(hashes))) for each in pool]
    return tuple((_LEFT * each, *next(hashes)) for each in pool)


def _words_of(seed: int) -> list[int]:
    words = [seed & _WORD]
    while seed := seed >> 32:
        words.append(seed & _WORD)
    return words


def _constants(first: int, factor: int, count: int) -> list[int]:
    found = [first]
    for _ in range(count):
        found.append(found[-1] * factor & _WORD)
    return found


def _hashed(word: int, constant: int, factor: int) -> int:
    word = (word ^ constant) * factor & _WORD
    return word ^ word >> _SHIFT


def _mixed(one: int, other: int) -> int:
    word = (_LEFT * one - _RIGHT * other) & _WORD
    return word ^ word >> _SHIFT


_OUT_CONSTANTS = _constants(_OUT, _OUT_FACTOR, 2 * _NEEDED - 1)
_OUT_FACTORS = _constants(_OUT * _OUT_FACTOR & _WORD, _OUT_FACTOR, 2 * _NEEDED - 1)
_OUT_TABLE = np.array([_OUT_CONSTANTS, _OUT_FACTORS], np.uint64)[..., None]
_WORD_64, _SHIFT_64, _DOUBLE = np.uint64(_WORD), np.uint64(_SHIFT), (1 << 64) - 1
