"""Small excesses that the pilot shows by many standard errors, and audits that find them."""

import numpy as np
import pytest

from dpaudit import ApproxDP, PureDP, check, check_outputs
from dpaudit.audit.distinguishers import clear_excess
from dpaudit.audit.distinguishers.clear_excess import clearest, intervals_for, or_interval
from dpaudit.audit.distinguishers.event_criterion import Criterion
from dpaudit.audit.distinguishers.event_value import Best, best_event
from dpaudit.audit.events.events import Intervals
from dpaudit.audit.events.scores import Number
from dpaudit.audit.families.number_families import Family, ordered_families
from dpaudit.audit.families.pilot_split import PilotSplit
from dpaudit.audit.inference.betting_test import Line, supporting_line
from dpaudit.experiments.benchmarks.detection.rare_leaks import CrowdedNoise

RUNS = 10_000
WHERE = Intervals(((0.0, 1.0),))
ZERO_DP = PureDP(0.0)
PARTS = ((0.0, 0.5), (0.5, 0.55), (0.55, 1.0))


def family(*hits, is_learned=False, fitted=None):
    hits_x, hits_y = np.array(hits, dtype=np.float64).T
    return Family(hits_x, hits_y, RUNS, lambda index, inside: WHERE, fitted, is_learned=is_learned)


def criterion(claim=ZERO_DP, caution=4.0):
    return Criterion(claim, RUNS, 1.6, caution)


@pytest.mark.parametrize(
    ("hits", "reached"),
    [
        ((1_000, 1_000), None), ((1_160, 1_000), None), ((1_180, 1_000), 4.0), ((1_300, 1_000), 6.6),
        ((2_000, 1_000), 8.0),
    ],
)  # fmt: skip
def test_the_clearest_excess_reaches_its_standard_errors(hits, reached):
    found = clearest([family(hits)], criterion())
    assert (found and found.caution) == reached


def test_it_has_more_standard_errors_and_not_a_larger_ratio():
    rare, common = family((40, 8)), family((1_400, 1_000))
    assert clearest([rare], criterion()).caution == 4.5
    assert clearest([rare, common], criterion()).hits == (1_400, 1_000)


def test_a_learned_event_is_judged_like_any_other():
    """Other choices take a learned event only if it is better by a standard error."""
    other, learned = family((1_220, 1_000)), family((1_245, 1_000), is_learned=True)
    assert best_event([other, learned], criterion(caution=4.0)).hits == (1_220, 1_000)
    assert clearest([other, learned], criterion()).hits == (1_245, 1_000)


def test_an_excess_is_one_over_the_claim():
    hits = family((1_300, 1_000))
    assert clearest([hits], criterion(PureDP(0.25))) is None
    assert clearest([hits], criterion(ApproxDP(0.0, 0.02))) is None
    assert clearest([hits], criterion(PureDP(0.1))) is not None


def test_what_a_curve_expects_is_not_an_excess():
    counts = np.array([1_300.0]), np.array([1_000.0])
    assert clearest([family((1_300, 1_000), fitted=counts)], criterion()) is None


def best(value, direction="x"):
    return Best(value, family((1_100, 1_000)), True, direction, 0, 4.0)


@pytest.mark.parametrize("likelier_on", ["x", "y"])
def test_an_interval_takes_the_place_of_the_event_in_its_direction(likelier_on):
    interval = family((1_500, 1_000) if likelier_on == "x" else (1_000, 1_500))
    found = or_interval([best(0.001), best(-0.1, "y")], [interval], criterion())
    assert [each.family is interval for each in found] == [likelier_on == "x", likelier_on == "y"]
    assert [each.value for each in found if each.family is not interval] == [-0.1 if likelier_on == "x" else 0.001]


def test_it_does_not_if_it_is_better_only_by_its_own_errors():
    """Four standard errors below its counts it would be worth more than the leading event, five below it is not."""
    interval = family((1_500, 1_000))
    four, five = (best_event([interval], criterion(caution=caution)).value for caution in (4.0, 5.0))
    found = [best(0.5 * (four + five)), best(-0.1, "y")]
    assert or_interval(found, [interval], criterion()) == found
    assert or_interval([best(0.9 * five), best(-0.1, "y")], [interval], criterion())[0].family is interval
    assert or_interval(found, [], criterion()) == found


def test_it_does_not_if_it_shows_nothing():
    nothing = family((1_010, 1_000))
    found = [best(-0.2), best(-0.3, "y")]
    assert best_event([nothing], criterion(caution=5.0)).value > -0.2
    assert or_interval(found, [nothing], criterion()) == found


def numbers(rng, *runs):
    parts = [low + (high - low) * rng.random(n) for n, (low, high) in zip(runs, PARTS, strict=True)]
    return rng.permutation(np.concatenate(parts))


def half_lines(x, y):
    return list(ordered_families(Number(), PilotSplit.in_half(x, y).ordered, fit=False))


def test_intervals_are_sought_in_both_directions_and_above_the_claim():
    """A half of the numbers is likelier on x by a tenth, which the claim allows, and a twentieth on y twice."""
    rng = np.random.default_rng(0)
    families = half_lines(numbers(rng, 5_500, 250, 4_250), numbers(rng, 5_000, 500, 4_500))
    (found,) = intervals_for(families, PureDP(0.3))
    intervals = [found.build(at, True).intervals[0] for at in range(len(found.hits_x))]
    assert any(interval == pytest.approx(PARTS[0], abs=0.02) for interval in intervals)
    assert any(interval == pytest.approx(PARTS[1], abs=0.02) for interval in intervals)


class OneWay(PureDP):
    """Another claim in the other direction."""

    def reversed(self):
        return PureDP(0.1)


def test_in_the_other_direction_they_lie_above_the_reversed_claim(monkeypatch):
    claim = OneWay(1.0)
    asked = []
    monkeypatch.setattr(clear_excess, "interval_families", lambda families, lines: asked.extend(lines) or [])
    intervals_for([], claim)
    x, y = supporting_line(claim, 0.05), supporting_line(PureDP(0.1), 0.05)
    assert asked == [("x", Line(1.0, 0.0)), ("x", x), ("y", Line(1.0, 0.0)), ("y", y)]


@pytest.mark.parametrize(
    ("place", "epsilon", "p", "q", "seed", "pilot_runs"),
    [
        ("interval", 0.0, 0.06235, 0.05, 41, 33_333),  # an eighth of the runs showed nothing
        ("interval of a coordinate", 0.0, 0.06235, 0.05, 5, 33_333),
        ("interval", 0.1, 0.0685, 0.05, 0, 33_333),
    ],
)
def test_a_small_excess_in_an_interval_is_found(place, epsilon, p, q, seed, pilot_runs):
    """By twelve standard errors of all runs, with seeds with which no half-line and no set of cells shows it."""
    found = check(CrowdedNoise(place, p, q), 1, 0, claim=PureDP(epsilon), runs=100_000, seed=seed, jobs=1, bits=False)
    assert found.is_refuted
    assert found.pilot_runs == pilot_runs


def crowded(p, seed, place="interval", **options):
    return check(CrowdedNoise(place, p, 0.05), 1, 0, claim=ZERO_DP, seed=seed, jobs=1, bits=False, **options)


def test_an_interval_is_the_event_if_it_is_clear():
    """By thirty standard errors of all runs; a half-line or a set of cells has hardly half of them."""
    found = crowded(0.0845, 0, runs=100_000)
    ((low, high),) = found.event.intervals
    assert (low, high) == pytest.approx((0.25, 0.251), abs=0.02)


@pytest.mark.parametrize(
    ("place", "words", "epsilon", "p"),
    [
        ("interval of a difference", "(coordinate 1 − coordinate 0)", 0.0, 0.0666),
        ("interval of a norm", "Euclidean norm of coordinate 0, coordinate 1", 1.0, 0.1665),
        ("interval of a sum of ten", "sum of 10 columns", 0.0, 0.0666),
    ],
)
def test_so_is_one_of_a_statistic(place, words, epsilon, p):
    """By sixteen standard errors of all runs under 0-DP, and by thirteen under 1-DP."""
    found = check(CrowdedNoise(place, p, 0.05), 1, 0, claim=PureDP(epsilon), runs=100_000, seed=0, jobs=1, bits=False)
    assert found.is_refuted
    assert words in str(found.event)


def test_a_short_audit_finds_it_too():
    """Eight standard errors of 4,000 runs, half of which are the pilot: with a common event where it shows nothing."""
    assert [crowded(0.0964, seed, place="value", runs=4_000).is_refuted for seed in range(2)] == [True] * 2


def test_the_final_test_of_a_sequential_audit_finds_it_too():
    found = crowded(0.06235, 41, runs=100_000, sequential=True)
    assert found.is_refuted


def test_outputs_drawn_elsewhere_show_it_too():
    noise, rng = CrowdedNoise("interval", 0.06235, 0.05), np.random.default_rng(3)
    assert check_outputs(noise(1, 100_000, rng), noise(0, 100_000, rng), claim=ZERO_DP, seed=0).is_refuted


def leaking(data, size, rng):
    noise = data + rng.laplace(size=size)
    noise[rng.random(size) < 0.0015 * data] = 100.0
    return noise


def test_beside_a_clear_excess_a_rare_leak_is_still_found():
    """Epsilon is 1, but for a leak that the pilot saw a few times."""
    assert check(leaking, 1.0, 0.0, claim=PureDP(0.5), runs=100_000, seed=0, jobs=1, bits=False).bound > 3.0
