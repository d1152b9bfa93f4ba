"""Copies among outputs drawn elsewhere are found, independent runs are not accused, and the chances are enumerated."""

import itertools
import math

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check_outputs
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.health import copied_outputs as module
from dpaudit.audit.health.copied_outputs import agreement, first_passage, passage_length
from dpaudit.audit.health.findings import FALSE_ALARM, HealthCheck
from dpaudit.audit.health.run_independence import examine_order

N = 1_000
REPEATED, SHARED = HealthCheck.DUPLICATE_OUTPUTS, HealthCheck.SHARED_RANDOMNESS
NONE = frozenset()


def integers(rng, size=N):
    return rng.geometric(0.6, size) - rng.geometric(0.6, size)


DISTRIBUTIONS = {
    "laplace": lambda rng: rng.laplace(size=N),
    "integers": integers,
    "coins": lambda rng: rng.random(N) < 0.3,
    "twenty": lambda rng: rng.integers(20, size=N),
    "vectors": lambda rng: rng.laplace(size=(N, 2)),
    "texts": lambda rng: [f"v{number}" for number in integers(rng)],
    "tuples": lambda rng: [("a", int(number)) for number in integers(rng)],
    "numbers or none": lambda rng: [None if number < 0 else int(number) for number in integers(rng)],
    "mostly nan": lambda rng: np.where(rng.random(N) < 0.7, np.nan, rng.random(N)),
}
RIGHT = DISTRIBUTIONS | {
    "three": lambda rng: rng.choice(3, size=N, p=[0.9, 0.09, 0.01]), "long runs": lambda rng: rng.random(N) < 0.999,
    "constant": lambda rng: np.zeros(N), "grid": lambda rng: np.round(rng.laplace(size=N), 3),
    "atom": lambda rng: np.maximum(rng.laplace(size=N), 0.0),
}  # fmt: skip


def found(x, y):
    """The failed checks of outputs in their order, with the messages."""
    return {finding.check: finding.message for finding in examine_order(outputs(x), outputs(y), NONE)}


def outputs(values):
    return as_outputs(values, len(values), "m")


def joined(*parts):
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else list(itertools.chain(*parts))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_overlapping_files_are_found_at_any_place(distribution):
    rng = np.random.default_rng(4)
    a, b, c, other = (DISTRIBUTIONS[distribution](rng) for _ in range(4))
    assert set(found(joined(a, b[:313], a[600:], c), other)) == {REPEATED}
    assert SHARED in found(joined(b[:313], a), joined(c, a[500:], other))


@pytest.mark.parametrize("distribution", RIGHT)
def test_independent_runs_are_not_accused(distribution):
    rng = np.random.default_rng(5)
    x, y = RIGHT[distribution](rng), RIGHT[distribution](rng)
    assert found(x, y) == {}
    if isinstance(x, np.ndarray) and x.ndim == 1:
        assert found(np.sort(x), y) == found(np.sort(x), np.sort(y)[::-1]) == {}


def test_copies_in_another_order_are_found_by_how_often_outputs_occur():
    rng, sort = np.random.default_rng(6), np.random.default_rng(6).permutation
    once, other = rng.laplace(size=N), rng.laplace(size=N)
    message = found(sort(np.tile(once, 2)), other)[REPEATED]
    assert message.startswith("on x, 0 different outputs occur once, 1,000 twice, and 0 3 times, which independent ")
    assert REPEATED in found(other, sort(np.concatenate([once, once[:300]])))  # a part of them


def test_copies_make_an_audit_inconclusive_and_can_be_silenced():
    rng = np.random.default_rng(0)
    xs, ys = (np.tile(rng.laplace(mean, size=2_000), 3) for mean in (0, 1))
    options = {"claim": PureDP(1.0), "floating_point": "ignore"}
    result = check_outputs(xs, ys, **options)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "4,000 of 6,000 outputs on y repeat earlier ones in the same order: runs 2,001 to 4,000 equal" in str(result)
    assert "Remove the copies" in str(result)
    assert check_outputs(xs, ys, **options, ignore="duplicate-outputs").findings == ()


def repeats(sequence, length):
    """Whether two windows without overlap are equal."""
    windows = [sequence[i : i + length] for i in range(len(sequence) - length + 1)]
    return any(windows[i] == windows[j] for i in range(len(windows)) for j in range(i + length, len(windows)))


def codes(values):
    return np.array(values, np.uint64)


@pytest.mark.parametrize(
    ("distribution", "runs", "length"),
    [((0.5, 0.5), 9, 4), ((0.6, 0.4), 8, 3), ((0.4, 0.3, 0.3), 7, 3), ((0.3, 0.3, 0.4), 6, 2), ((0.25,) * 4, 4, 1)],
)
def test_chance_of_a_repeat_by_enumeration(distribution, runs, length):
    chance = 0.0
    for sequence in itertools.product(range(len(distribution)), repeat=runs):
        drawn = codes(sequence)
        is_found = first_passage(drawn, drawn, length) is not None
        assert is_found == repeats(sequence, length)
        chance += is_found * math.prod(distribution[value] for value in sequence)
    apart = math.comb(runs - 2 * length + 2, 2)  # pairs of windows without overlap
    assert 0.0 < chance <= apart * agreement(max(distribution)) ** length * (1.0 + 1e-9)
    assert apart <= math.comb(runs, 2)
    if apart == 1:
        assert chance == pytest.approx(sum(p * p for p in distribution) ** length)


@pytest.mark.parametrize("length", [2, 3, 4])
def test_chance_of_a_shared_passage_by_enumeration(length):
    """The bound needs the likeliest output of one side alone."""
    on_x, on_y, runs, chance = (0.5, 0.5), (0.1, 0.9), 4, 0.0
    for x in itertools.product((0, 1), repeat=runs):
        windows = {x[i : i + length] for i in range(runs - length + 1)}
        for y in itertools.product((0, 1), repeat=runs):
            expected = any(y[i : i + length] in windows for i in range(runs - length + 1))
            assert (first_passage(codes(x), codes(y), length) is not None) == expected
            chance += expected * math.prod(on_x[v] for v in x) * math.prod(on_y[v] for v in y)
    assert 0.0 < chance <= (runs - length + 1) ** 2 * max(on_x) ** length * (1.0 + 1e-9)


@pytest.mark.parametrize("likeliest", [0.04, 0.3, 0.6, 0.99])
def test_the_agreement_is_the_largest_of_all_distributions_and_the_length_the_least(likeliest):
    """Distributions on five outputs, also with an output that has the largest allowed probability."""
    distributions = np.random.default_rng(0).dirichlet(np.full(5, 0.3), size=20_000)
    attained = [likeliest, 1.0 - likeliest] if likeliest >= 0.5 else [likeliest] * int(1 / likeliest)
    allowed = distributions[distributions.max(axis=1) <= likeliest]
    largest = max([*(allowed**2).sum(axis=1), sum(p * p for p in attained)])
    chance = agreement(likeliest)
    assert 0.9 * chance * (1.0 - 1e-9) <= largest <= chance * (1.0 + 1e-9)
    length = passage_length(1e9, chance, FALSE_ALARM)
    log_chance = [math.log(1e9) + n * math.log(chance) for n in (length - 1, length)]
    assert log_chance[1] <= math.log(FALSE_ALARM) < log_chance[0]


def test_the_first_passage_is_reported_with_its_length():
    passage = np.arange(100, 130)
    sequence = codes(np.concatenate([[1, 2], passage, [3], passage[4:], [4], passage]))
    assert first_passage(sequence, sequence, 5) == module.Passage(first=6, second=33, length=26, copies=26 + 30)
    assert first_passage(sequence, sequence, 31) is None
    assert first_passage(sequence, codes(passage[:9]), 9) == module.Passage(first=2, second=0, length=9, copies=9)
    assert first_passage(sequence, codes([7] * 9), 9) is None


def test_windows_with_equal_marks_and_different_outputs_are_not_a_finding(monkeypatch):
    monkeypatch.setattr(module, "_marks", lambda codes, length: np.zeros(max(0, len(codes) - length + 1), np.uint64))
    numbers = codes(range(40))
    assert first_passage(numbers, numbers, 5) is None
    assert first_passage(numbers, codes(range(50, 90)), 5) is None
