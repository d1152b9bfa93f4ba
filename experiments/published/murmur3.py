"""MurmurHash3, 32-bit variant, the hash function of the Bloom filters of RAPPOR."""

from __future__ import annotations

from typing import Final

_WORD: Final = 0xFFFFFFFF


def murmur3_32(data: bytes, seed: int = 0) -> int:
    """Return the hash in range(2**32).

    References
    ----------
    Appleby (2010), MurmurHash3_x86_32, in the public domain.

    Examples
    --------
    >>> hex(murmur3_32(b"test"))
    '0xba6bd213'
    """
    state = seed & _WORD
    n_whole = len(data) // 4 * 4
    for start in range(0, n_whole, 4):
        state ^= _scrambled(int.from_bytes(data[start : start + 4], "little"))
        state = (_rotated(state, 13) * 5 + 0xE6546B64) & _WORD
    state ^= _scrambled(int.from_bytes(data[n_whole:], "little"))  # 0 for no bytes
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _WORD
    state = (state ^ state >> 13) * 0xC2B2AE35 & _WORD
    return state ^ state >> 16


def _scrambled(word: int) -> int:
    return _rotated(word * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
