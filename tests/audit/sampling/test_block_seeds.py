"""Seeds of blocks are those of numpy, in every use that a mechanism can make of them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dpaudit.audit.sampling.block_plan import BlockSeed, _first_words

SEEDS = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64, 2**96 - 1, 2**127 + 3, 2**128, 2**160 + 7, 10**60]
NUMBERS = [0, 1, 255, 2**31, 2**32 - 1, 2**32, 2**40 + 5]


def numpys(seed, phase, number):
    return np.random.SeedSequence(seed, spawn_key=(*phase, number))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("phase", [(), (0,), (0, 1), (1, 0), (1, 1), (2**32 - 1, 5, 9)])
def test_words_are_those_of_numpy(seed, phase):
    for number in NUMBERS:
        found = BlockSeed(seed, phase, number).generate_state(3, np.uint64)
        assert found.dtype == np.uint64
        assert found.tolist() == numpys(seed, phase, number).generate_state(3, np.uint64).tolist()


def test_words_are_those_of_numpy_for_a_thousand_keys():
    rng = np.random.default_rng(0)
    for _ in range(1_000):
        seed = int.from_bytes(rng.bytes(int(rng.integers(1, 25))), "little")
        phase, number = (int(rng.integers(2)), int(rng.integers(2))), int(rng.integers(2**32)) >> int(rng.integers(32))
        expected = numpys(seed, phase, number).generate_state(3, np.uint64)
        assert _first_words(seed, phase, number).tolist() == expected.tolist()


def test_other_words_and_types_are_those_of_numpy():
    one, other = BlockSeed(5, (0, 1), 7), numpys(5, (0, 1), 7)
    for n_words, dtype in ((1, np.uint32), (3, np.uint32), (4, np.uint64), (3, "uint64"), (3, np.dtype(np.uint64))):
        assert one.generate_state(n_words, dtype).tolist() == other.generate_state(n_words, dtype).tolist()
    assert (one.entropy, one.spawn_key, one.pool_size) == (other.entropy, other.spawn_key, other.pool_size)
    with pytest.raises(AttributeError, match="missing"):
        _ = one.missing
    assert one.generate_state(3, np.uint64).tolist() == other.generate_state(3, np.uint64).tolist()


def generators(bits=np.random.SFC64):
    return np.random.Generator(bits(BlockSeed(3, (1, 0), 12))), np.random.Generator(bits(numpys(3, (1, 0), 12)))


def draws(rng):
    return rng.random(5).tolist()


@pytest.mark.parametrize("bits", [np.random.SFC64, np.random.PCG64, np.random.Philox, np.random.MT19937])
def test_generators_draw_the_same(bits):
    one, other = generators(bits)
    assert draws(one) == draws(other)


def test_children_are_those_of_numpy_and_never_come_again():
    one, other = generators()
    found = [draws(child) for _ in range(2) for child in one.spawn(2)]
    assert found == [draws(child) for _ in range(2) for child in other.spawn(2)]
    assert len({tuple(each) for each in found}) == 4


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_go_on_as_those_of_numpy(copied):
    one, other = generators()
    one.random(3), other.random(3)
    one.spawn(1), other.spawn(1)
    one, other = copied(one), copied(other)
    assert draws(one) == draws(other)
    assert draws(one.spawn(1)[0]) == draws(other.spawn(1)[0])
    fresh = copied(BlockSeed(3, (1, 0), 12))
    assert fresh.generate_state(3, np.uint64).tolist() == numpys(3, (1, 0), 12).generate_state(3, np.uint64).tolist()
