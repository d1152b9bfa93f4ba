"""Guesses about canaries: counts, distributions, and walks that cross a boundary."""

import itertools
import math
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_matrix
from scipy.stats import binom

from dpaudit import ApproxDP, PrivacyProfile
from dpaudit.audit.canaries.canary_tests import tail
from dpaudit.audit.errors import OptionError
from dpaudit.audit.guesses import guess_bets as walks
from dpaudit.audit.guesses.canary_guesses import (
    CanaryGuesses,
    CanaryTest,
    GuessLimit,
    count_tail,
    is_impossible,
    line,
    right_tail,
    steinke_tail,
)
from dpaudit.audit.guesses.guess_bets import (
    bets_tail,
    guess_numbers,
    largest_refuted,
    log_wealth,
    most_telling,
    walk_crossing,
)


def exact(right, guesses, canaries, odds, delta):
    """The closed form of theorem 2 in fractions."""
    sigma = odds / (1 + odds)
    distribution = [comb(guesses, j) * sigma**j * (1 - sigma) ** (guesses - j) for j in range(guesses + 1)]
    tail = sum(distribution[right:])
    return min(1.0, float(tail + canaries * delta * tail * (1 - tail) / (right * distribution[right])))


@pytest.mark.parametrize("odds", [Fraction(1), Fraction(3), Fraction(2000), Fraction(1, 7)])
@pytest.mark.parametrize(("guesses", "canaries"), [(8, 8), (60, 200), (150, 400)])
def test_counts_equal_the_closed_form(odds, guesses, canaries):
    numbers = (1, guesses // 3, guesses // 2, guesses - 2, guesses)
    for right, delta in itertools.product(numbers, (Fraction(0), Fraction(1, 10**5), Fraction(1, 4))):
        found = count_tail(right, guesses, canaries, GuessLimit(math.log(odds), float(delta)))
        assert found == pytest.approx(exact(right, guesses, canaries, odds, delta), rel=1e-9, abs=1e-300)


def test_far_tails_keep_their_factor():
    """Where β and b(v) underflow, their ratio does not: with ε = 0 all guesses right give δ."""
    assert count_tail(5_000, 5_000, 5_000, GuessLimit(0.0, 1e-5)) == pytest.approx(1e-5, rel=1e-9)
    assert count_tail(1_000_000, 1_000_000, 10**6, GuessLimit(2.0, 1e-9)) == pytest.approx(1e-9, rel=1e-9)


def test_recursion_without_slips_is_the_binomial_tail():
    ratio = math.exp(-1.0)

    def inverse(power):
        return max(ratio * power, 1.0 - (1.0 - power) / ratio)

    tails = {right: right_tail(right, 10, GuessLimit(1.0, 0.0)) for right in (8, 9, 10)}
    assert all(is_impossible(1.5 * tails[right], right, 10, 10, inverse) for right in tails)
    # All right: the recursion runs along one line down to no correct guess.
    assert not is_impossible(tails[10] * (1.0 - 1e-6), 10, 10, 10, inverse)
    assert is_impossible(tails[10] * (1.0 + 1e-6), 10, 10, 10, inverse)
    assert not is_impossible(0.5, 0, 10, 10, inverse)
    assert not is_impossible(0.5, 10, 10, 10, lambda power: 0.0)


def test_ceilings():
    assert line(1.0, 0.1, both=True) == GuessLimit(1.0, 0.1)
    inward = line(1.0, 0.1, probability=0.2, both=False)
    assert inward.incorrect == pytest.approx(0.8 / (0.8 + 0.2 * math.e))
    assert inward.delta == pytest.approx(0.02)
    assert inward.slip(10) == pytest.approx(10 * 0.02 * inward.incorrect)
    assert GuessLimit(800.0, 0.0).incorrect == 0.0


@pytest.mark.parametrize(
    ("numbers", "right", "probability"),
    [
        ((), (), 0.5), ((5,), (6,), 0.5), ((5, 5), (1, 1), 0.5), ((5, 6), (1, 3), 0.5), ((5, 11), (3, 3), 0.5),
        ((5,), (3, 3), 0.5), ((5,), (3,), 0.4),
    ],
)  # fmt: skip
def test_impossible_guesses_are_refused(numbers, right, probability):
    with pytest.raises(OptionError, match=r"impossible .*; use increasing numbers"):
        CanaryGuesses(canaries=10, numbers=numbers, correct=right, probability=probability)


ROUNDING = 1e-7


def largest(coins, outputs, is_in_event, lines, probability=0.5):
    """Largest probability that is_in_event(output, coins), over all mechanisms with these outputs that keep the lines.

    A mechanism with other outputs is no better: what an observer does with an output may be its output.
    """
    inputs = list(itertools.product((0, 1), repeat=coins))
    weights = [math.prod(probability if bit else 1.0 - probability for bit in bits) for bits in inputs]
    gain = [-w * is_in_event(output, bits) for w, bits in zip(weights, inputs, strict=True) for output in outputs]
    entries, limits, auxiliary, count = [], [], len(gain), len(outputs)
    for (i, a), (j, b) in itertools.permutations(enumerate(inputs), 2):
        if sum(u != v for u, v in zip(a, b, strict=True)) != 1:
            continue
        for epsilon, delta in lines:  # Σ (P(y | a) − e^ε P(y | b))₊ ≤ δ
            for y in range(count):
                row = len(limits)
                entries += [(row, i * count + y, 1.0), (row, j * count + y, -math.exp(epsilon))]
                entries.append((row, auxiliary + y, -1.0))
                limits.append(0.0)
            entries += [(len(limits), auxiliary + y, 1.0) for y in range(count)]
            limits.append(delta)
            auxiliary += count
    return solved(gain, entries, limits, auxiliary, np.kron(np.eye(len(inputs)), np.ones(count)))


def solved(gain, entries, limits, variables, sums):
    """The least of a linear program in `entries` below `limits`, with `sums` of its first variables equal to 1."""
    rows, columns, values = zip(*entries, strict=True)
    more = variables - len(gain)  # auxiliary variables, which gain nothing
    found = linprog(
        np.append(gain, np.zeros(more)),
        A_ub=coo_matrix((values, (rows, columns)), shape=(len(limits), variables)).tocsr(),
        b_ub=limits,
        A_eq=np.hstack([sums, np.zeros((len(sums), more))]),
        b_eq=np.ones(len(sums)),
        method="highs",
    )
    assert found.status == 0, found.message
    return -found.fun


def fixed_guesses(coins, guesses, answers=(0, 1)):
    """All ways to guess so many of the inclusion bits."""
    return [
        tuple(zip(chosen, said, strict=True))
        for chosen in itertools.combinations(range(coins), guesses)
        for said in itertools.product(answers, repeat=guesses)
    ]


def right_of(output, bits):
    return sum(bits[i] == said for i, said in output)


@lru_cache
def observers(coins):
    """Who reveals which coin next, and guesses what, given the inclusion bits revealed: (coin, guess, if 0, if 1)."""
    if not coins:
        return [None]
    return [
        (coin, guess, *after)
        for coin in coins
        for guess in (0, 1)
        for after in itertools.product(observers(tuple(c for c in coins if c != coin)), repeat=2)
    ]


def crosses(observer, bits, most_wrong):
    """Whether at most most_wrong[k] of the first k + 1 guesses are incorrect, for some k."""
    wrong = 0
    for most in most_wrong:
        coin, guess, *after = observer
        wrong += bits[coin] != guess
        if wrong <= most:
            return True
        observer = after[bits[coin]]
    return False


LINES = [(0.0, 0.05), (0.5, 0.02), (1.0, 0.0), (1.0, 0.3), (2.0, 0.01)]


@pytest.mark.parametrize(("coins", "guesses"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)])
def test_counts_are_the_largest_probability_of_all_mechanisms(coins, guesses):
    for (epsilon, delta), right in itertools.product(LINES, range(1, guesses + 1)):
        outputs = fixed_guesses(coins, guesses)
        best = largest(coins, outputs, lambda y, s, v=right: right_of(y, s) >= v, [(epsilon, delta)])
        assert count_tail(right, guesses, coins, GuessLimit(epsilon, delta)) == pytest.approx(best, abs=ROUNDING)
        assert steinke_tail(right, guesses, coins, GuessLimit(epsilon, delta)) >= best - ROUNDING


def test_published_bound_above_a_half_is_exceeded():
    best = largest(2, fixed_guesses(2, 2), lambda y, s: right_of(y, s) >= 1, [(1.0, 0.02)])
    beta, wrong = 1.0 - 1.0 / (1.0 + math.e) ** 2, 1.0 / (1.0 + math.e) ** 2
    published = beta + 2 * 2 * 0.02 * wrong  # v = 1: i = 1 is the only step
    assert (round(published, 5), round(best, 5)) == (0.93346, 0.9345)
    assert steinke_tail(1, 2, 2, GuessLimit(1.0, 0.02)) == 1.0


@pytest.mark.parametrize(("said", "answer"), [("in", 1), ("out", 0)])
@pytest.mark.parametrize("probability", [0.2, 0.5, 0.8])
def test_guesses_of_one_answer_stay_below_counts_and_recursion(said, answer, probability):
    attained = 0
    for guesses, (epsilon, delta) in itertools.product((1, 2), LINES):
        for right in range(1, guesses + 1):
            outputs, counts = fixed_guesses(2, guesses, (answer,)), {"numbers": (guesses,), "correct": (right,)}
            best = largest(2, outputs, lambda y, s, v=right: right_of(y, s) >= v, [(epsilon, delta)], probability)
            counted = CanaryGuesses(canaries=2, **counts, answer=said, probability=probability)
            for kind in ("counts", "f-dp"):
                found = tail(CanaryTest(kind, guesses, 0.05), ApproxDP(epsilon, delta), counted)
                assert found >= best - ROUNDING
                attained += found < best + 1e-6
    assert attained >= 2  # so the bounds are not merely 1


PROFILE = PrivacyProfile((0.0, 1.0, 2.0), (0.3, 0.1, 0.02))


@pytest.mark.parametrize(("coins", "guesses"), [(2, 1), (2, 2), (3, 3)])
def test_recursion_is_attained_where_all_guesses_are_right(coins, guesses):
    for right in range(1, guesses + 1):
        lines = list(zip(PROFILE.epsilons, PROFILE.deltas, strict=True))
        best = largest(coins, fixed_guesses(coins, guesses), lambda y, s, v=right: right_of(y, s) >= v, lines)
        counted = CanaryGuesses(canaries=coins, numbers=(guesses,), correct=(right,))
        found = [tail(CanaryTest(kind, guesses, 0.05), PROFILE, counted) for kind in ("f-dp", "counts")]
        assert min(found) >= best - ROUNDING
        if right == guesses == coins:
            assert found[0] == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("most_wrong", list(itertools.product((-1, 0), (-1, 0, 1))))
def test_guesses_one_after_the_other_stay_below_the_walk(most_wrong):
    observed = observers((0, 1))
    for epsilon, delta in LINES:
        best = largest(2, observed, lambda y, s: crosses(y, s, most_wrong), [(epsilon, delta)])
        limit = line(epsilon, delta, both=True)
        walk = walk_crossing((1, 2), most_wrong, limit.log_odds)
        assert walk - ROUNDING <= best <= walk + limit.slip(2) + ROUNDING


def test_guesses_in_an_order_of_the_output_stay_below_the_walk():
    orders = [
        tuple(zip(order, said, strict=True))
        for order in itertools.permutations(range(3))
        for said in itertools.product((0, 1), repeat=3)
    ]

    def is_in_event(output, bits):
        wrong = np.cumsum([bits[i] != said for i, said in output])
        return bool((wrong <= (0, 0, 1)).any())

    for epsilon, delta in LINES[1:4]:
        best = largest(3, orders, is_in_event, [(epsilon, delta)])
        limit = line(epsilon, delta, both=True)
        assert best <= walk_crossing((1, 2, 3), (0, 0, 1), limit.log_odds) + limit.slip(3) + ROUNDING


def by_distance(canaries, right, lines):
    """`largest` where all coins are guessed: by symmetry the distribution of the correct guesses is all that counts."""
    entries, limits, auxiliary = [], [], canaries + 1
    for epsilon, delta in lines:
        first = auxiliary
        for j, (sign, other) in itertools.product(range(1, canaries + 1), ((0, 1), (1, 0))):
            row = len(limits)
            entries += [
                (row, j - sign, (canaries - j + 1 if sign else j) / canaries),
                (row, j - other, -math.exp(epsilon) * (canaries - j + 1 if other else j) / canaries),
                (row, auxiliary, -1.0),
            ]
            limits.append(0.0)
            auxiliary += 1
        entries += [(len(limits), k, 1.0) for k in range(first, auxiliary)]
        limits.append(delta)
    return solved(-1.0 * (np.arange(canaries + 1) >= right), entries, limits, auxiliary, np.ones((1, canaries + 1)))


@pytest.mark.parametrize("canaries", [5, 20])
def test_counts_of_more_canaries_are_attained(canaries):
    for (epsilon, delta), right in itertools.product([(0.0, 0.01), (1.0, 0.05), (3.0, 0.01)], range(1, canaries + 1)):
        best = by_distance(canaries, right, [(epsilon, delta)])
        assert count_tail(right, canaries, canaries, GuessLimit(epsilon, delta)) == pytest.approx(best, abs=1e-6)


def test_recursion_of_more_canaries():
    lines = list(zip(PROFILE.epsilons, PROFILE.deltas, strict=True))
    for right in range(1, 13):
        counted = CanaryGuesses(canaries=12, numbers=(12,), correct=(right,))
        found = tail(CanaryTest("f-dp", 12, 0.05), PROFILE, counted)
        assert found >= by_distance(12, right, lines) - ROUNDING
    assert found == pytest.approx(by_distance(12, 12, lines), abs=1e-6)


def by_steps(numbers, most_wrong, right):
    """The probability of a crossing in fractions, guess by guess."""
    distribution, crossed = {0: Fraction(1)}, Fraction(0)
    most = dict(zip(numbers, most_wrong, strict=True))
    for number in range(1, numbers[-1] + 1):
        after = {}
        for wrong, mass in distribution.items():
            after[wrong] = after.get(wrong, 0) + mass * right
            after[wrong + 1] = after.get(wrong + 1, 0) + mass * (1 - right)
        crossed += sum(after.pop(wrong) for wrong in list(after) if wrong <= most.get(number, -1))
        distribution = after
    return float(crossed)


@pytest.mark.parametrize("odds", [Fraction(1, 50), Fraction(1), Fraction(3), Fraction(400)])
@pytest.mark.parametrize(
    ("numbers", "most_wrong"),
    [((1, 2, 3), (0, -1, 1)), ((4, 9, 30), (-1, 1, 6)), ((2, 5, 40), (-1, -1, 3)), ((10,), (10,)), ((10,), (-1,))],
)
def test_crossings_are_exact(numbers, most_wrong, odds):
    found = walk_crossing(numbers, most_wrong, math.log(odds))
    assert found == pytest.approx(by_steps(numbers, most_wrong, odds / (1 + odds)), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize(("log_odds", "wrong"), [(800.0, 0.0), (40.0, 4e-18), (-40.0, 1.0), (-800.0, 1.0)])
def test_extreme_odds(log_odds, wrong):
    assert walk_crossing((5, 20), (-1, 0), log_odds) == pytest.approx(1.0 - wrong, abs=1e-15)


@pytest.mark.parametrize("wrong", [0.5, 0.27, 1e-3, 1e-6])
def test_distribution_of_many_guesses_keeps_its_digits(wrong):
    distribution, first = walks._binomial(1_000_000, math.log1p(-wrong) - math.log(wrong))
    expected = binom.pmf(np.arange(first, first + len(distribution)), 1_000_000, wrong)
    kept = expected > 1e-25
    assert distribution[kept] == pytest.approx(expected[kept], rel=1e-10)
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)


def test_transformed_and_direct_sums_agree(monkeypatch):
    numbers = guess_numbers(60_000)
    most_wrong = tuple(int(0.27 * n - 2.2 * math.sqrt(n)) if n > 200 else -1 for n in numbers)
    walk_crossing.cache_clear()
    transformed = walk_crossing(numbers, most_wrong, 1.0)
    monkeypatch.setattr(walks, "_DIRECT", 1 << 30)
    walk_crossing.cache_clear()
    assert transformed == pytest.approx(walk_crossing(numbers, most_wrong, 1.0), rel=1e-10)
    assert 1e-6 < transformed < 1.0


@pytest.mark.parametrize("level", [0.3, 0.05, 1e-9])
def test_largest_refuted_parameter_is_on_the_level(level):
    numbers, right = (10, 40, 200), (10, 38, 150)
    refuted = largest_refuted(right, numbers, level)
    v = np.array(right, dtype=float)
    wealth = [log_wealth(v, np.array(numbers) - v, at).max() for at in (refuted, refuted + 1e-6)]
    assert wealth[0] >= -math.log(level) > wealth[1]
    place = most_telling(right, numbers, level)
    assert log_wealth(v, np.array(numbers) - v, refuted).argmax() == place


def test_tails_of_bets_hold_for_every_sequence_of_guesses():
    numbers, level = guess_numbers(7), 0.1
    sequences = [tuple(itertools.accumulate(guesses)) for guesses in itertools.product((0, 1), repeat=7)]
    refuted = {right: largest_refuted(right, numbers, level) for right in sequences}
    for log_odds in (0.0, 1.0, 3.0):
        sigma = 1.0 / (1.0 + math.exp(-log_odds))
        tails = {right: bets_tail(refuted[right], numbers, level, log_odds) for right in sequences}
        for p in sorted(set(tails.values())):
            as_small = sum(sigma ** r[-1] * (1.0 - sigma) ** (7 - r[-1]) for r in sequences if tails[r] <= p)
            assert as_small <= p + 1e-9
        assert min(tails.values()) == pytest.approx(sigma**7, rel=1e-9)  # all guesses right: nothing refutes more
