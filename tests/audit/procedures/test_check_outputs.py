"""Outputs drawn elsewhere, counts of cells, bare counts, and claims on divergences."""

import math

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep

import dpaudit as dp
from dpaudit import check
from dpaudit.audit.errors import MechanismError, OptionError
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.results.bin_result import BinCounts

RNG = np.random.default_rng(1)
FRAME = pd.DataFrame({"on_x": RNG.laplace(size=1_000), "on_y": RNG.laplace(size=1_000)})
SHAPES = {
    "column": lambda name: FRAME[name],
    "frame": lambda name: FRAME[[name]],
    "array": lambda name: FRAME[name].to_numpy(),
    "list": lambda name: FRAME[name].tolist(),
    "dictionary": lambda name: {name: FRAME[name].to_numpy()},
    "structured": lambda name: FRAME[name].to_numpy().view([(name, "f8")]),
    "labels": lambda name: FRAME[name].set_axis(range(5, 1_005)),
}


def checked(xs, ys, **options):
    return dp.check_outputs(xs, ys, claim=dp.PureDP(0.5), floating_point="ignore", alpha=1e-6, **options)


def test_outputs_of_any_kind():
    rng = np.random.default_rng(0)
    xs, ys = rng.laplace(1, 1, 8_000), rng.laplace(0, 1, 12_000)
    result = dp.check_outputs(xs, ys, claim=dp.PureDP(0.5))
    assert result.is_refuted
    assert result.counts.runs_x == 8_000 - result.pilot_runs
    assert result.counts.runs_y == 12_000 - result.pilot_runs
    by_order = dp.check_outputs(np.sort(xs), np.sort(ys)[::-1], claim=dp.PureDP(0.5))
    assert by_order.bound == pytest.approx(result.bound, abs=0.1)
    assert not dp.check_outputs(xs, ys, claim=dp.PureDP(1.0), alpha=1e-6).is_refuted
    assert checked(["a"] * 500 + [None] * 500, ["a"] * 900 + [None] * 100).is_refuted
    vectors = rng.normal(size=(400, 2))
    assert checked(vectors + 1, vectors[::-1]).is_refuted


def test_single_columns_are_compared_by_their_values():
    plain = checked(FRAME["on_x"].to_numpy(), FRAME["on_y"].to_numpy())
    for one, other in zip(SHAPES, [*SHAPES][1:], strict=False):
        assert checked(SHAPES[one]("on_x"), SHAPES[other]("on_y")).counts == plain.counts, (one, other)
    assert checked(FRAME["on_x"], FRAME["on_y"], output=0).counts == plain.counts
    named = checked(FRAME["on_x"].rename("v"), FRAME["on_y"].rename("v") + 9.0)
    assert named.event_in_words.startswith("v "), "a name that both have"


@pytest.mark.parametrize("other", [FRAME.rename(columns={"on_x": "u"}), FRAME[["on_y"]], {"on_y": FRAME["on_y"]}])
def test_several_columns_with_other_names_are_refused(other):
    with pytest.raises(MechanismError, match=r"have the columns \(on_x, on_y\) and .*give both the same columns"):
        checked(FRAME, other)


def test_a_function_is_given_all_outputs():
    with pytest.raises(MechanismError, match="it is given the outputs of all runs together"):
        checked(FRAME, FRAME, output=lambda output: output[0] + 1)


def test_sides_of_different_shapes_are_noted():
    values = FRAME["on_x"].to_numpy()
    for width in (1, 2):
        note = f"outputs are vectors of {width} on x and single numbers on y, which by itself distinguishes x and y"
        result = checked(values.reshape(-1, width)[:100], values[:100])
        assert result.is_refuted
        assert any(each.startswith(note) for each in result.notes)
    same = checked(values.reshape(-1, width)[:100], values[::-1].reshape(-1, width)[:100])
    assert not any("which by itself" in each for each in same.notes)


LARGE = (500_000, 1_000_000, 184_000, 1_000_000)


@pytest.mark.parametrize(("method", "theirs"), [("score", "score"), ("log-ratio", "log")])
def test_ratio_intervals_are_those_of_statsmodels_and_hardly_better_than_exact_ones(method, theirs):
    low, _ = confint_proportions_2indep(*LARGE, compare="ratio", method=theirs, alpha=0.1, correction=False)
    approximate, exact = (dp.epsilon_lower(*LARGE, alpha=0.05, method=each) for each in (method, "joint"))
    assert approximate == pytest.approx(math.log(low))
    assert 1.0 < (math.log(LARGE[0] / LARGE[2]) - exact) / (math.log(LARGE[0] / LARGE[2]) - approximate) < 1.06
    for counts in ((0, 10, 0, 10), (10, 10, 0, 10), (0, 10, 10, 10), (10, 10, 10, 10), (1, 10**10, 0, 10**10)):
        for each in ("joint", "clopper-pearson", method):
            assert 0.0 <= dp.epsilon_lower(*counts, alpha=0.05, method=each) < math.inf


def test_unknown_or_unfit_methods():
    for options, message in (
        ({"method": "wald"}, "unknown"), ({"delta": 0.1, "method": "score"}, "delta must be 0"),
        ({"alpha": 0.6, "method": "score"}, "too large"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=message):
            dp.epsilon_lower(*LARGE, **options)


CLAIM = dp.ZeroConcentratedDP(0.5)


def noisy(answer, size, rng):
    """Gaussian noise with ρ = 0.625 for a sensitivity of 1."""
    return answer + rng.normal(scale=0.8**0.5, size=size)


@pytest.mark.parametrize(
    "options", [{"runs": 6_000, "bins": 16, "distance": 2}, {"runs": 3_000, "sequential": True}], ids=str
)
def test_gaussian_noise(options):
    """At distance 2 and sensitivity 2 it has the same bound per step."""
    y = float(options.get("distance", 1))
    result = check(noisy, 0.0, y, claim=CLAIM, floating_point="ignore", jobs=1, **options)
    assert result.is_refuted
    assert 0.5 < result.bound < 0.625
    assert result.by_divergence is not None
    assert result.observation.startswith("Rényi divergence of order 1 ")
    assert sum(share for _, share in result.test_shares) == pytest.approx(0.05)


def test_a_small_alpha_is_refused_by_the_number_passed():
    alpha = 1.05e-9  # of which one test has less than the least level
    xs = np.random.default_rng(0).normal(size=100)
    for refused in (
        lambda: dp.check_outputs(xs, xs[::-1], claim=CLAIM, alpha=alpha),
        lambda: check(noisy, 0.0, 1.0, claim=CLAIM, alpha=alpha, jobs=1),
        lambda: dp.check_equivalence(noisy, noisy, 0.0, margin=0.1, alpha=alpha, jobs=1),
    ):
        with pytest.raises(OptionError, match=f"alpha={alpha:g} is too small for the exact test"):
            refused()


def test_intervals_of_cells_refute():
    names, on_x, on_y = ("a", "b", "c"), (7_000, 2_000, 1_000), (2_000, 3_000, 5_000)
    counts = BinCounts(names=names, count_x=on_x, count_y=on_y, alpha=0.05, n_known=3, scope="s")
    largest = np.log(5.0)
    assert 1.4 < counts.parameter_lower(dp.PureDP(1.0)) < largest
    assert counts.parameter_lower(dp.PureDP(1.0)) >= counts.maximum().lower
    assert counts.parameter_lower(dp.RenyiDP(2.0, 0.1)) >= counts.renyi_lower(2.0)
    mirrored = BinCounts(names=names, count_x=on_y[::-1], count_y=on_x[::-1], alpha=0.05, n_known=3, scope="s")
    delta = max(float(each.band().profile(1.0)[0]) for each in (counts, mirrored))
    assert counts.parameter_lower(dp.ApproxDP(1.0, 1e-3, bound_on="delta")) == pytest.approx(delta, rel=1e-6)
    for claim in (dp.PureDP(1.0), dp.ZeroConcentratedDP(0.5), dp.ApproxDP(1.0, 1e-3)):
        assert mirrored.parameter_lower(claim) == pytest.approx(counts.parameter_lower(claim), rel=1e-9)


def test_a_refutation_by_cells_is_said():
    """Four outcomes: one has a ratio beyond the claim, which the chosen event may not be."""

    def weights(answer, size, rng):
        return rng.choice(4, p=(0.4, 0.3, 0.2, 0.1) if answer else (0.1, 0.2, 0.3, 0.4), size=size)

    result = check(weights, 0, 1, claim=dp.PureDP(1.0), runs=40_000, bins=4, jobs=1)
    assert result.is_refuted
    assert result.bound >= result.bins.parameter_lower(result.claim) > 1.0
    shares = dict(result.error_budget.shares)
    assert shares.keys() == {"event test", f"{result.net_events:,} plain events together", "intervals of bins"}
    assert sum(shares.values()) == pytest.approx(0.05)


def test_a_frequent_plain_event_is_told_by_its_complement():
    """A third answer, None, is rare on x and absent on y; the pilot, a random part of the outputs, barely shows it."""
    rng = np.random.default_rng(0)
    xs, ys = ([bool(answer) for answer in rng.random(40_000) < share] for share in (0.5, 0.5))
    xs[:60] = [None] * 60
    result = dp.check_outputs(xs, ys, claim=dp.PureDP(1.0), seed=0)
    assert result.is_refuted
    assert result.more_likely_on == "x"
    assert result.counts.count_y == 0
    assert result.event.contains(as_outputs([None, True, False], 3, "m")).tolist() == [True, False, False]
