"""Outputs drawn elsewhere, counts of cells, bare counts, and claims on divergences."""

import math

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep

import dpaudit as dp
from dpaudit import check
from dpaudit.audit.errors import AuditError, MechanismError, OptionError
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.results.cell_result import CellCounts

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
    return dp.check_outputs(xs, ys, claim=dp.PureDP(0.5), bits=False, alpha=1e-6, **options)


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


@pytest.mark.parametrize("values", [[1.0] * 39, [], [bytearray()] * 50, 5, None, [1j] * 50])
def test_outputs_that_cannot_be_used_are_refused(values):
    with pytest.raises(AuditError):
        checked(values, values)


@pytest.mark.parametrize(
    ("one", "other"), [*((one, "array") for one in SHAPES), ("column", "frame"), ("list", "dictionary")]
)
def test_single_columns_are_compared_by_their_values(one, other):
    plain = checked(FRAME["on_x"].to_numpy(), FRAME["on_y"].to_numpy())
    assert checked(SHAPES[one]("on_x"), SHAPES[other]("on_y")).counts == plain.counts
    assert one != "column" or checked(FRAME["on_x"], FRAME["on_y"], output=0).counts == plain.counts


def test_a_name_that_both_have_is_said():
    result = checked(FRAME["on_x"].rename("v"), FRAME["on_y"].rename("v") + 9.0)
    assert result.is_refuted
    assert result.event_in_words.startswith("v ")


def test_rows_with_names_and_without():
    frame, reversed_ = FRAME[:200], FRAME[-200:]
    for rows in (reversed_.to_numpy(), list(reversed_.itertuples(index=False, name=None))):
        assert checked(frame, rows).verdict is not dp.Verdict.REFUTED
        assert checked(rows, frame + 9.0).is_refuted
    single = [{"on_x": value} for value in FRAME["on_y"]]
    assert checked(FRAME[["on_x"]], single).verdict is not dp.Verdict.REFUTED


@pytest.mark.parametrize("other", [FRAME.rename(columns={"on_x": "u"}), FRAME[["on_y"]], {"on_y": FRAME["on_y"]}])
def test_several_columns_with_other_names_are_refused(other):
    with pytest.raises(MechanismError, match=r"have the columns \(on_x, on_y\) and .*give both the same columns"):
        checked(FRAME, other)


def test_a_function_is_given_all_outputs():
    with pytest.raises(MechanismError, match="it is given the outputs of all runs together"):
        checked(FRAME, FRAME, output=lambda output: output[0] + 1)


def test_missing_values_of_columns_without_a_name():
    missing = pd.Series(np.where(FRAME["on_x"] > 0.0, 1.5, None), dtype="Float64")
    assert checked(missing, np.where(FRAME["on_y"] > 0.0, 1.5, np.nan)).is_refuted
    assert checked([pd.NA, 1.0] * 500, [1.0, None] * 500).verdict is not dp.Verdict.REFUTED


@pytest.mark.parametrize(("width", "shape"), [(1, "vectors of 1"), (2, "vectors of 2")])
def test_sides_of_different_shapes_are_noted(width, shape):
    values = FRAME["on_x"].to_numpy()
    note = f"outputs are {shape} on x and single numbers on y, which alone tells x from y"
    result = checked(values.reshape(-1, width)[:100], values[:100])
    assert result.is_refuted
    assert any(each.startswith(note) for each in result.notes)
    same = checked(values.reshape(-1, width)[:100], values[::-1].reshape(-1, width)[:100])
    assert not any("which alone tells" in each for each in same.notes)


@pytest.mark.parametrize("name", [3, float("nan"), "a\nb\x1b[31m", " "])
@pytest.mark.parametrize(
    "call",
    [
        lambda name: dp.check_outputs(range(40), range(40), claim=1.0, name=name),
        lambda name: dp.check_noise(
            lambda x, rng: x + rng.laplace(), 0.0, noise=dp.LaplaceNoise(scale=1.0), answer=abs, name=name
        ),
    ],
)
def test_a_name_is_a_line_of_text(call, name):
    with pytest.raises(OptionError, match="is not a name"):
        call(name)


def seeded(answer, size, rng):
    return answer + np.random.default_rng(5).laplace(size=size)


def test_failed_checks_of_cells_are_said_and_can_be_silenced():
    options = {"cells": 4, "runs": 4_000, "jobs": 1}
    counts = dp.count_cells(seeded, 0.0, 0.0, **options)
    assert "repeated-blocks" in [finding.check.value for finding in counts.findings]
    assert str(counts).startswith("INCONCLUSIVE: failed health check")
    assert "so the intervals need not hold" in str(counts)
    left = dp.count_cells(seeded, 0.0, 0.0, ignore="repeated-blocks", **options).findings
    assert "repeated-blocks" not in [finding.check.value for finding in left]

    def changing(rows, rng):
        rows.append(0)
        return int(rng.integers(2))

    counts = dp.count_cells(changing, [1], [1, 1], runs=600, jobs=1)
    assert [finding.check.value for finding in counts.findings] == ["dataset-mutated"]


def test_equal_outputs_are_noted():
    counts = dp.count_cells(lambda answer, size: np.full(size, 3), 0, 1, runs=1_000, jobs=1)
    assert counts.findings == ()
    assert "gave the same output, 3" in str(counts)


LARGE = (500_000, 1_000_000, 184_000, 1_000_000)


@pytest.mark.parametrize(("method", "theirs"), [("score", "score"), ("log-ratio", "log")])
def test_ratio_intervals_are_those_of_statsmodels(method, theirs):
    low, _ = confint_proportions_2indep(*LARGE, compare="ratio", method=theirs, alpha=0.1, correction=False)
    assert dp.epsilon_lower(*LARGE, alpha=0.05, method=method) == pytest.approx(math.log(low))


@pytest.mark.parametrize("method", ["score", "log-ratio"])
def test_with_many_hits_the_exact_bound_is_as_good_as_the_approximate_ones(method):
    exact, approximate = dp.epsilon_lower(*LARGE, alpha=0.05), dp.epsilon_lower(*LARGE, alpha=0.05, method=method)
    estimate = math.log(LARGE[0] / LARGE[2])
    assert 1.0 < (estimate - exact) / (estimate - approximate) < 1.06


@pytest.mark.parametrize("method", ["joint", "clopper-pearson", "score", "log-ratio"])
@pytest.mark.parametrize(
    "counts", [(0, 10, 0, 10), (10, 10, 0, 10), (0, 10, 10, 10), (10, 10, 10, 10), (1, 10**10, 0, 10**10)]
)
def test_corner_counts_give_a_bound(method, counts):
    bound = dp.epsilon_lower(*counts, alpha=0.05, method=method)
    assert 0.0 <= bound < math.inf


def test_unknown_or_unfit_methods():
    with pytest.raises(OptionError, match="unknown"):
        dp.epsilon_lower(*LARGE, alpha=0.05, method="wald")
    with pytest.raises(OptionError, match="delta must be 0"):
        dp.epsilon_lower(*LARGE, alpha=0.05, delta=0.1, method="score")
    with pytest.raises(OptionError, match="too large"):
        dp.epsilon_lower(*LARGE, alpha=0.6, method="score")


CLAIM = dp.ZeroConcentratedDP(0.5)


def noisy(answer, size, rng):
    """Gaussian noise with ρ = 0.625 for a sensitivity of 1."""
    return answer + rng.normal(scale=0.8**0.5, size=size)


@pytest.mark.parametrize(
    ("options", "least"),
    [({"cells": 16}, 0.5), ({"distance": 2}, 0.5), ({"sequential": True}, 0.5), ({"claim": 0.625}, 0.0)],
    ids=str,
)
def test_gaussian_noise(options, least):
    """At distance 2 and sensitivity 2 it has the same bound per step; at its own ρ it is refuted once in a million."""
    claim, y = dp.ZeroConcentratedDP(options.get("claim", 0.5)), float(options.get("distance", 1))
    errors = {"alpha": 0.05 if least else 1e-6}
    options = {name: value for name, value in options.items() if name != "claim"} | errors
    result = check(noisy, 0.0, y, claim=claim, runs=40_000, bits=False, jobs=1, **options)
    assert result.is_refuted == (least > 0.0)
    assert least < result.bound < 0.625
    if least:
        assert result.by_divergence is not None
        assert result.evidence.startswith("Rényi divergence of order 1 ")
        assert sum(share for _, share in result.test_shares) == pytest.approx(0.05)
    else:
        assert 0.0 < result.resolution < 0.2


@pytest.mark.parametrize("alpha", [5e-10, 1.05e-9])
def test_a_small_alpha_is_refused_by_the_number_passed(alpha):
    xs = np.random.default_rng(0).normal(size=100)
    for refused in (
        lambda: dp.check_outputs(xs, xs[::-1], claim=CLAIM, alpha=alpha),
        lambda: check(noisy, 0.0, 1.0, claim=CLAIM, alpha=alpha, jobs=1),
        lambda: dp.check_equivalence(noisy, noisy, 0.0, margin=0.1, alpha=alpha, jobs=1),
        lambda: dp.assert_same_distribution(noisy, noisy, 0.0, margin=0.1, alpha=alpha, jobs=1),
    ):
        with pytest.raises(OptionError, match=f"alpha={alpha:g} is too small for the exact test"):
            refused()


def test_vectors_are_binned_by_the_score_of_the_event():
    def vector(answer, size, rng):
        return rng.normal(size=(size, 2)) + answer * np.sqrt(1.25 / 2)

    assert check(vector, 0.0, 1.0, claim=CLAIM, runs=10_000, bits=False, jobs=1).is_refuted


def test_intervals_of_cells_refute():
    names, on_x, on_y = ("a", "b", "c"), (7_000, 2_000, 1_000), (2_000, 3_000, 5_000)
    counts = CellCounts(names=names, hits_x=on_x, hits_y=on_y, alpha=0.05, n_known=3, scope="s")
    largest = np.log(5.0)
    assert 1.4 < counts.strength_lower(dp.PureDP(1.0)) < largest
    assert counts.strength_lower(dp.PureDP(1.0)) >= counts.maximum().lower
    assert counts.strength_lower(dp.RenyiDP(2.0, 0.1)) >= counts.renyi_lower(2.0)
    mirrored = CellCounts(names=names, hits_x=on_y[::-1], hits_y=on_x[::-1], alpha=0.05, n_known=3, scope="s")
    delta = max(float(each.band().profile(1.0)[0]) for each in (counts, mirrored))
    assert counts.strength_lower(dp.ApproxDP(1.0, 1e-3, bound_on="delta")) == pytest.approx(delta, rel=1e-6)
    for claim in (dp.PureDP(1.0), dp.ZeroConcentratedDP(0.5), dp.ApproxDP(1.0, 1e-3)):
        assert mirrored.strength_lower(claim) == pytest.approx(counts.strength_lower(claim), rel=1e-9)


def test_a_refutation_by_cells_is_said():
    """Four outcomes: one has a ratio beyond the claim, which the chosen event may not be."""

    def weights(answer, size, rng):
        return rng.choice(4, p=(0.4, 0.3, 0.2, 0.1) if answer else (0.1, 0.2, 0.3, 0.4), size=size)

    result = check(weights, 0, 1, claim=dp.PureDP(1.0), runs=40_000, cells=4, jobs=1)
    assert result.cells.strength_lower(result.claim) > 1.0
    assert result.is_refuted
    assert result.bound >= result.cells.strength_lower(result.claim)


def test_the_excess_is_that_of_the_chosen_event_where_a_plain_one_decides():
    """Of sixty outcomes one is rarer on x by a third, which the pilot does not see."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 60, 40_000)
    x = np.where((x == 37) & (rng.random(40_000) < 0.35), 38, x)
    y = rng.integers(0, 60, 40_000)
    result = dp.check_outputs(x, y, claim=dp.PureDP(0.8), seed=0)
    assert result.verdict is dp.Verdict.NOT_REFUTED
    assert result.event.contains(np.arange(60)).sum() == 1
    assert result.bound > 0.1
    assert "an event as frequent as the pilot's" in result.detectable_in_words


def test_a_frequent_plain_event_is_told_by_its_complement():
    """A third answer, None, is rare on x and absent on y; the pilot, a random part of the outputs, hardly shows it."""
    rng = np.random.default_rng(0)
    xs, ys = ([bool(answer) for answer in rng.random(40_000) < share] for share in (0.5, 0.5))
    xs[:60] = [None] * 60
    result = dp.check_outputs(xs, ys, claim=dp.PureDP(1.0), seed=0)
    assert result.is_refuted
    assert result.likelier_on == "x"
    assert result.counts.hits_y == 0
    assert result.event.contains(as_outputs([None, True, False], 3, "m")).tolist() == [True, False, False]
