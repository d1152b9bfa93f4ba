"""Private mechanisms of which a replay must not say excess: what the output hides costs less than it says."""

import math
import os

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, find_worst_pair, noise_primitive, replay
from dpaudit.audit.replay.replay_result import FindingKind
from dpaudit.audit.results.verdict import ReplayVerdict
from dpaudit.mechanisms import GroupTightMechanism


def run(mechanism, x, y, claim=1.0, **options):
    return replay(mechanism, x, y, claim=claim, **options)


def scores(rows):
    return np.array(rows).reshape(-1, 4).sum(axis=0)


def largest(rows, rng):
    return int(np.argmax(rng.laplace(scores(rows), 2.0)))


def largest_with_its_score(rows, rng):
    noisy = rng.laplace(scores(rows), 2.0)
    return int(np.argmax(noisy)), float(np.max(noisy))


def sparse_vector(rows, rng):
    threshold, held = rng.laplace(20.0, 2.0), scores(rows)
    return next((place for place in range(4) if rng.laplace(held[place], 4.0) >= threshold), None)


@noise_primitive("gumbel", location="utilities", scale=2.0, sensitivity=1.0)
def gumbel_noise(utilities):
    return np.array(utilities) + np.random.default_rng().gumbel(scale=2.0, size=len(utilities))


def test_the_reason_is_said():
    result = run(largest, [[3, 3, 3, 3], [0, 1, 0, 1]], [[0, 1, 0, 1]])
    assert result.findings[0].kind is FindingKind.LOSS_ABOVE_CLAIM
    assert "the output does not show the value" in str(result)


@pytest.mark.parametrize(
    ("mechanism", "is_handed"),
    [
        (lambda rows, rng: rng.laplace(np.array(rows)[rng.random(len(rows)) < 0.5].sum(), 1.0), True),
        (lambda rows, rng: np.array(rows)[rng.random(len(rows)) < 0.5].sum() + rng.laplace(), False),
        (lambda rows, rng: rng.laplace(sum(row for row in rows if rng.choice(2, p=[0.5, 0.5])), 1.0), True),
        (lambda rows, rng: rng.laplace(np.array(rows)[: rng.binomial(len(rows), 0.5)].sum(), 1.0), True),
    ],
)
def test_noise_on_a_sample_costs_less(mechanism, is_handed):
    claim = math.log(1.0 + 0.5 * (math.e - 1.0))
    results = [run(mechanism, [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], claim, seed=seed) for seed in (0, 1)]
    assert not any(result.has_excess for result in results)
    assert any(result.findings for result in results) is is_handed


def truncated(rows, rng):
    while True:
        value = rng.laplace(min(sum(rows), 10.0), 1.0)
        if 0.0 <= value <= 10.0:
            return value


def median(rows, rng):
    ends = np.concatenate([[0.0], np.sort(rows), [10.0]])
    weights = np.diff(ends) * np.exp(-np.abs(np.arange(len(rows) + 1) - len(rows) / 2) / 2)
    place = rng.choice(len(weights), p=weights / weights.sum())
    return rng.uniform(ends[place], ends[place + 1])


FLAT, STEEP = [0.5, 0.5], [0.9, 0.1]


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "claim"),
    [
        # draws that do not show
        (truncated, [1.0], [], 2.0),
        (median, [3.0, 3.5, 4.0], [3.0, 9.0, 4.0], 1.0),
        (median, [3.0, 3.0, 4.0], [3.0, 5.0, 4.0], 1.0),
        (lambda rows, rng: (rng.laplace(100.0 * len(rows), 1.0), rng.laplace(len(rows), 1.0))[1], [1, 2], [1], 1.0),
        # another number is released instead with probability 0.5, 0.025: epsilon is 1, 1.943
        (lambda rows, rng: rng.laplace([rows[0], 2.0])[int(rng.laplace() < 0.0)], [3.0], [1.0], 1.1),
        (lambda rows, rng: rng.laplace([rows[0], 2.0])[int(rng.laplace() > 3.0)], [3.0], [1.0], 1.95),
        # answers that a draw may flip
        (lambda rows, rng: 1 - rows[0] if rng.integers(10) == 3 else rows[0], [1], [0], math.log(9.0)),
        (lambda rows, rng: 1 - rows[0] if rng.integers(0, 2, size=20).sum() > 11 else rows[0], [1], [0], 1.0891),
        (lambda rows, rng: 1 - rows[0] if rng.random(5).min() > 0.1 else rows[0], [1], [0], 0.4),
        (lambda rows, rng: 1 - rows[0] if min(rng.laplace(), rng.laplace()) > 0 else rows[0], [1], [0], math.log(3.0)),
        (lambda rows, rng: (1 - rows[0] if rng.laplace() > 1.0 else rows[0], 7.0), [1], [0], 2.0),
        (lambda rows, rng: 1 - rows[0] if 0.25 < rng.random() < 0.45 else rows[0], [1], [0], math.log(4.0)),
        (lambda rows, rng: rows[0] ^ int(rng.bit_generator.random_raw() % 4 == 0), [1], [0], math.log(3.0)),
        # a bounded part of the draw
        (lambda rows, rng: int(np.clip(round(rng.normal(rows[0])), 1, 5)), [3.0], [3.5], 3.0),
        (lambda rows, rng: float(np.clip(rng.normal(rows[0]), 0, 6)), [3.0], [3.5], 3.0),
        (lambda rows, rng: int(min(rng.poisson(rows[0]), 20)), [11.0], [10.0], 3.0),
        (lambda rows, rng: rng.normal(rows[0]) % 1.0, [0.5], [0.0], 1.0),
        (lambda rows, rng: int(100.0 * rng.laplace(rows[0])) % 10, [3.0], [1.0], 1.0),
        (lambda rows, rng: rng.laplace([rows[0], 2.0])[int(rng.laplace() > 0.0)], [3.0], [1.0], 1.5),
        (lambda rows, rng: [int(rng.choice(2, p=p)) for p in (FLAT, STEEP)[:: int(rows[0])]], [1], [-1], 2.5),
    ],
)
def test_what_shows_in_part_keeps_its_claim(mechanism, x, y, claim):
    result = run(mechanism, x, y, claim + 1e-9, seed=1)
    assert not result.has_excess, str(result)


def forked(rows):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, repr(float(len(rows) + np.random.laplace())).encode())  # noqa: NPY002
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return float(pipe.read())


MEMO: dict[tuple[int, ...], float] = {}


def memoised(rows, rng):
    noise = rng.laplace()
    return MEMO.setdefault(tuple(rows), len(rows) + noise)


@pytest.mark.parametrize(
    "mechanism",
    [
        forked,
        memoised,
        lambda rows, rng: len(rows) + type(rng).__mro__[1](rng.bit_generator).laplace(),
        lambda rows, rng: len(rows) + rng.laplace() * 0.0 + np.random.Generator(np.random.PCG64()).laplace(),
        lambda rows: len(rows) + np.random.default_rng().beta(2.0, 3.0),
    ],
)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_noise_from_elsewhere(mechanism):
    assert not run(mechanism, [1], [1, 2]).has_excess


def test_what_a_draw_may_decide_about_is_a_finding_only():
    """Of two numbers one is clipped away, and the other moves by 6 scales; a value is rounded; a scale is 0."""

    def histogram(rows, rng):
        return np.maximum(rng.laplace([6.0 * len(rows), -50.0 + len(rows)], 1.0), 0.0)

    assert not run(histogram, [1, 1], [1], 6.5).has_excess
    assert run(histogram, [1, 1], [1], 5.0).has_excess
    assert run(lambda rows, rng: round(rng.laplace(4.0 * len(rows), 1.0)), [1, 1], [1]).has_excess
    assert not run(lambda rows, rng: 100.0 * round(rng.laplace(4.0 * len(rows)) / 100.0), [1, 1], [1]).has_excess
    assert run(lambda rows, rng: rng.normal(len(rows), 0.0), [1, 1], [1], GaussianDP(1.0)).has_excess


@noise_primitive("laplace", location="value", scale="scale", sensitivity="sensitivity")
def calibrated(value, scale=1.0, sensitivity=1.0):
    return value + np.random.default_rng().laplace(scale=scale)


def test_a_declared_sensitivity_counts_whatever_shows():
    result = run(
        lambda rows, rng: calibrated(3.0 * len(rows), 9.0) > 50.0 + rng.random(), [1, 1], [1], ApproxDP(1.0, 0.1)
    )
    assert [finding.kind for finding in result.findings if finding.is_excess] == [FindingKind.BEYOND_SENSITIVITY]


def groups(factor):
    return lambda rows, rng: {name: calibrated(factor * rows.count(name)) for name in sorted(set(rows))}


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("a" + "c" * 9, "c" * 9),  # the first count on x is that of a, on y that of c
        ("c" * 9, "c" * 9 + "d"),
        ("a" + "c" * 9, "b" + "c" * 9),
        ("a" + "c" * 9, "c" * 9 + "d"),
    ],
)
def test_groups_that_come_and_go_are_not_compared_with_each_other(x, y, monkeypatch):
    assert not run(groups(1), list(x), list(y)).has_excess
    monkeypatch.setattr(
        "dpaudit.audit.replay.replay_findings._MOST_MATCHED", 1
    )  # too many calls to compare all with all
    assert run(groups(1), list(x), list(y)).has_excess is (x[0] != "c" and y[-1] == "d")


def test_a_group_that_moves_too_far_is_an_excess_in_any_order():
    assert run(groups(3), list("ab" + "c" * 9), list("abb" + "c" * 9)).has_excess
    assert not run(groups(1), list("ab" + "c" * 9), list("abb" + "c" * 9)).has_excess


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_large_sensitivity_covers_no_move_of_another_query(is_swapped):
    """The first column moves by 3 at sensitivity 1; 4 to 5 and, at sensitivity 10, 9 to 7 would seem covered."""

    def columns(rows, rng):
        return [calibrated(each, scale, scale) for each, scale in zip(rows, (1.0, 10.0), strict=True)]

    x, y = [4.0, 9.0], [7.0, 5.0]
    assert run(columns, *((y, x) if is_swapped else (x, y)), 9.0).has_excess


def test_a_search_passes_over_draws_that_are_not_used():
    def decoy(rows, rng):
        rng.laplace(100.0 * sum(rows), 1.0)
        rng.laplace(size=0)
        return rng.laplace(len(rows) + (5.0 if rows == [2, 2] else 0.0), 1.0)

    pairs = [([a], [a, b]) for a in range(4) for b in range(4)]
    options = {
        "claim": 1.0, "adjacency": "add-remove", "runs": 2_000, "search_runs": 2_000, "floating_point": "ignore",
        "jobs": 1,
    }  # fmt: skip
    found = find_worst_pair(decoy, pairs, guide="replay", **options)
    assert (found.x, found.y) == ([2], [2, 2])
    assert found.is_refuted


def noisy_by_name(rows, rng):
    return dict(sorted((name, rng.laplace(rows.count(name))) for name in dict.fromkeys(rows)))


def told_apart_by_none(rows, rng):
    place = rng.choice(3, p=[0.5, 0.49, 0.01] if rows == [1.0] else [0.5, 0.01, 0.49])
    return "first" if place == 0 else "other"


ONES = [1.0] * 25


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "claim"),
    [
        (lambda rows, rng: rng.laplace(rows[0], 2.0) % 360.0, [1.0], [359.0], 1.0),
        (lambda rows, rng: abs(rng.laplace(rows[0])), [1.0], [-1.0], 1.0),
        (lambda rows, rng: rng.normal(rows[0]) ** 2, [1.0], [-1.0], GaussianDP(1.0)),
        (lambda rows, rng: float(rng.laplace([rows.count(0), rows.count(1)]).sum()), [0, 0, 1], [0, 1, 1], 1.0),
        (lambda rows, rng: rng.laplace(sum(rows)) - rng.laplace(len(rows)), [1, 1], [1], 1.0),
        (lambda rows, rng: sum(rng.normal(row) for row in rows), ONES, [*ONES[1:], 0.0], GaussianDP(0.25)),
        (lambda rows, rng: rng.laplace(sum(rows)) + rng.laplace(0.0, 100.0), [1, 5], [1, 0], 1.0),
        (lambda rows, rng: sum(int(rng.choice(2, p=[0.7, 0.3][:: 2 * row - 1])) for row in rows), [0, 1], [1, 1], 0.5),
        (lambda rows, rng: len(rows) + rng.laplace(-len(rows)), [1, 1, 1], [1], 1.0),
        (lambda rows, rng: np.sort(rng.laplace(rows)), [1.0, 3.0], [3.0, 1.0], 1.0),
        (lambda rows, rng: {rng.laplace(row) for row in rows}, [1.0, 3.0], [3.0, 1.0], 1.0),
        (noisy_by_name, [1, 1, 3], [3, 1, 1], 1.0),
        (told_apart_by_none, [1.0], [2.0], 1.0),
        # selections show a place and not the scores
        *((mechanism, [[1, 1, 1, 1], [0, 1, 0, 1]], [[0, 1, 0, 1]], 1.0) for mechanism in [
            largest,
            lambda rows, rng: max(range(4), key=lambda place: rng.laplace(scores(rows)[place], 2.0)),
            lambda rows, rng: int(np.argmax(rng.gumbel(scores(rows) / 2.0))),
            largest_with_its_score,
            sparse_vector,
            lambda rows: int(np.argmax(gumbel_noise(scores(rows).astype(float)))),
        ]),
    ],
)  # fmt: skip
def test_what_other_noise_folds_and_orders_hide(mechanism, x, y, claim):
    result = run(mechanism, x, y, claim, seed=1)
    assert result.verdict is ReplayVerdict.UNDETERMINED, str(result)


@pytest.mark.parametrize("size", [2e10, 1e12])
def test_noise_that_much_larger_noise_drowns_is_noise_still(size):
    """The rounding of the large one must not pass for a combination without noise."""

    def sum_and_more(rows, rng):
        noisy = rng.laplace(sum(rows), size)
        return [noisy, noisy + rng.laplace(2.0 * len(rows)) + 2.0 * len(rows)]

    assert not run(sum_and_more, [1.0, 1.0], [1.0], 100.0).has_excess


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        # values that the output determines
        (lambda rows, rng: rng.laplace([len(rows), sum(rows)]), 2.0),
        (lambda rows, rng: (n := rng.laplace(len(rows)), rng.laplace(sum(rows)) / max(n, 1.0)), 2.0),
        (lambda rows, rng: np.cumsum(rng.laplace([len(rows), sum(rows)])), 2.0),
        (lambda rows, rng: "abc"[rng.choice(3, p=[0.98, 0.01, 0.01] if 9 in rows else [0.01, 0.01, 0.98])], 2.0),
        (lambda rows, rng: max(0.0, rng.laplace(sum(rows))), 2.0),
        # what noise next to it does not hide: the first number determines the noise, and with it the second one on y
        (lambda rows, rng: (rng.laplace(sum(rows), 9.0), len(rows)), 9.0),
        (lambda rows, rng: (sum(rows) + rng.laplace(scale=9), len(rows) + rng.laplace(sum(rows), 9), sum(rows)), 9.0),
        (lambda rows, rng: np.array([1, 2]) * len(rows) + rng.laplace(scale=1e6), 9.0),
    ],
)
def test_values_that_the_output_determines_count(mechanism, claim):
    assert run(mechanism, [1, 2, 9], [1, 2], claim).has_excess


def test_outputs_without_calls_are_tried_more_often():
    count = [0]

    def seldom_flipped(rows):
        count[0] += 1
        return int(rows[0]) ^ (count[0] % 50 == 0)

    assert not run(seldom_flipped, [1], [0]).has_excess
    assert run(lambda rows: int(rows[0]), [1], [0]).has_excess


def test_a_choice_counts_if_all_of_its_outcomes_were_tried():
    def among(number):
        weights = [np.exp(-5.0 / number * n * np.arange(number)) for n in range(3)]
        return lambda rows, rng: int(rng.choice(number, p=weights[len(rows)] / weights[len(rows)].sum()))

    assert run(among(50), [1], [1, 2], 0.1).has_excess
    result = run(among(1_000), [1], [1, 2], 0.1)
    assert result.verdict is ReplayVerdict.UNDETERMINED
    assert result.runs < 500


@pytest.mark.parametrize("delta", [0.01, 1e-5, 0.1 + 0.2])
def test_exactly_delta_on_one_side_and_never_on_the_other(delta):
    """No epsilon covers a digit more of delta, so rounding must not add one."""
    assert not replay(GroupTightMechanism(1.0, delta), 1, 0).has_excess
    assert replay(GroupTightMechanism(1.0, 2 * delta), 1, 0, claim=ApproxDP(1.0, delta)).has_excess


def test_what_a_clipped_output_tells_apart_is_an_excess_by_its_probabilities():
    """Of the sets {v ≤ 0}, {0 < v < 6} and what is within, the largest log ratio is ln Φ(−3) / Φ(−4) = 3.75."""
    results = [run(lambda rows, rng: float(np.clip(rng.normal(rows[0]), 0, 6)), [3.0], [4.0], e) for e in (3.6, 3.76)]
    assert [result.has_excess for result in results] == [True, False]
