"""Audits find what is rare or small, in both directions, and say what a reader has to know."""

import math
import random
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpaudit import AddRemove, ApproxDP, PureDP, Verdict, check, check_outputs
from dpaudit.audit.inference.event_test import directed, joint_test
from dpaudit.audit.inference.guess_test import guess_test, share_that_fits
from dpaudit.audit.records.json_codec import from_json, to_json
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.experiments.benchmarks.small_excesses import CrowdedNoise
from dpaudit.mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism
from dpaudit.results import FixedSizeResult

RARE = 1e-6  # alpha where a correct mechanism has to pass


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (
            lambda d, rng: {}["no"] if d and rng.random() < 0.02 else d + rng.laplace(),
            "KeyError was raised in .* on y$",
        ),
        (lambda d: None, "all 1,000 pilot runs on x and on y gave the same output, None; is a return missing"),
        (lambda d, rng: math.nan if rng.random() < 0.5 else d + rng.laplace(), r"[45]\d\.?\d?% of the .* are NaN on x"),
        (lambda d, rng: [0.0, math.nan if d else rng.laplace()], "all 1,000 pilot runs on y"),
        (
            lambda d, size, rng: np.where(rng.random((size, 2)) < 0.5, math.nan, d + rng.laplace(size=(size, 2))),
            r"7\d\.?\d?% of the outputs have a NaN on x, 7\d\.?\d?% on y; unless NaN is meant, look for",
        ),
        (lambda d, rng: None if d and rng.random() < 0.5 else rng.laplace(), r"0% of the outputs are None on x, \d"),
        (lambda d, size, rng: d + rng.laplace(size=size), ""),
    ],
)
def test_exceptions_and_outputs_without_noise_or_values_are_noted(mechanism, said):
    """Of a mechanism that always returns None an audit sees nothing; one that has nothing odd has no note."""
    result = check(mechanism, 0, 1, claim=PureDP(9.0), runs=2_000, jobs=1)
    assert any(re.match(said, note) for note in result.notes) if said else result.notes == ()
    assert all(f"note: {note.split()[0]}" in str(result) for note in result.notes)
    assert bool(result.findings) == ("None; is a return missing" in said)


def _global_seed(d, size=None):
    random.seed(0)
    noise = [random.gauss(0.0, 1.0) for _ in range(size or 1)]
    return {"count": d + np.array(noise), "noise": np.array(noise)} if size else d + noise[0]


class _OwnSeedInChunks:
    def sample(self, dataset, size, rng):
        return [f"{dataset + each:.3f}" for each in np.random.default_rng(0).laplace(size=size)]


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(
    ("mechanism", "is_block"),
    [
        (lambda d: d + np.random.default_rng(0).laplace(), False), (lambda d: _global_seed(d), False),
        (lambda d, size, rng: d + np.random.default_rng(0).laplace(size=size), True),
        (lambda d, size: _global_seed(d, size), True), (_OwnSeedInChunks(), True),
    ],
)  # fmt: skip
def test_noise_from_a_fixed_seed_is_refuted_in_every_form_of_mechanism(mechanism, is_block, sequential, monkeypatch):
    """Each single run is then the same, and so is each call of a vectorised mechanism for one run."""
    monkeypatch.setattr("dpaudit.audit.procedures.check.time.sleep", lambda _: None)  # until the clock moves on
    result = check(mechanism, 0, 1, claim=PureDP(1.0), runs=2_000, jobs=1, sequential=sequential)
    assert result.verdict is Verdict.REFUTED
    assert any(note.endswith("no noise is added, or it is drawn from a fixed seed") for note in result.notes)
    assert result.next_step.startswith("draw new noise in every run, from a parameter rng, not from a fixed seed; ")
    assert is_block == any("each run was drawn by a call with size=1" in note for note in result.notes)


def test_outputs_made_elsewhere_have_to_be_independent():
    rng = np.random.default_rng(1)
    xs, ys = rng.laplace(0, 1, 2_000), rng.laplace(1, 1, 2_000)
    result = check_outputs(np.repeat(xs, 10), np.repeat(ys, 10), claim=PureDP(1.5))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "successive runs on x are correlated" in str(result)
    silenced = ("serial-dependence", "duplicate-outputs")
    assert check_outputs(np.repeat(xs, 10), ys, claim=PureDP(1.5), ignore=silenced).findings == ()
    assert check_outputs(np.sort(xs), np.sort(ys), claim=PureDP(1.5), alpha=RARE).verdict is Verdict.NOT_REFUTED


def test_what_delta_allows_does_not_hide_a_rare_violation():
    """Outputs that delta allows on one dataset only must not displace the event that contradicts the claim."""

    def leaks(d, size, rng):
        value, u = d + rng.laplace(size=size), rng.random(size)
        value = np.where(u < (0.01 if d else 0.002), 50.0 + rng.random(size), value)
        return np.where(rng.random(size) < 1e-3, (1 if d else -1) * (1_000 + 10 * rng.random(size)), value)

    result = check(leaks, 1, 0, claim=ApproxDP(1.0, 1e-3), runs=130_000, seed=0, jobs=1, floating_point="ignore")
    assert result.is_refuted  # of 110 other seeds with .80


@pytest.mark.parametrize("where", ["beyond", "in a narrow interval", "at one value", "without a number"])
def test_a_rare_leak_is_found(where):
    """Probability .003 in 100,000 runs at alpha 1e-5: fifteen pilot runs show it."""

    def leaky(dataset, size, rng):
        leaks = {"beyond": 50.0 + rng.random(size), "in a narrow interval": 0.3 + 1e-4 * rng.random(size)}
        leak = leaks.get(where, math.nan if where == "without a number" else 0.3)
        return np.where((rng.random(size) < 0.003) & (dataset == 1), leak, dataset + rng.laplace(size=size))

    result = check(leaky, 0, 1, claim=PureDP(1.0), runs=100_000, alpha=1e-5, seed=0, jobs=1, floating_point="ignore")
    assert result.is_refuted
    assert result.more_likely_on == "y"
    assert result.bound > 1.5


# Both directions together.


def laplace(dataset, size, rng):
    return dataset + rng.laplace(size=size)


def test_the_ledger_adds_up_and_the_bound_is_nearer():
    result = check(laplace, 0, 1, claim=PureDP(1.0), runs=100_000, jobs=1, floating_point="ignore")
    assert isinstance(result, FixedSizeResult)
    assert dict(result.error_budget.shares) == pytest.approx(
        {"event test": 0.04, f"{result.net_events:,} plain events together": 0.01}
    )
    assert result.error_budget.total == 0.05
    assert result.opposite is not None
    # The oracle test of one event has a gap of .0124 at 95,000 runs; the test of both one of .0106, with its learning.
    assert 1.0 - result.bound < 0.0135


@pytest.mark.parametrize("cells", [0, 8])
def test_pvalues_are_those_of_the_event_test_scaled_from_its_share_to_all_of_alpha(cells):
    def coin(d, size, rng):
        return rng.random(size) < (0.11 if d else 0.03)

    def noisy(d, size, rng):
        return d + rng.laplace(scale=0.8, size=size)

    of_one, of_both = (
        check(mechanism, 1, 0, claim=1.0, runs=4_000, seed=0, jobs=1, floating_point="ignore", bins=cells)
        for mechanism in (coin, noisy)
    )
    share = dict(of_one.test_shares)["event test"]
    held = directed(of_one.claim, of_one.counts, of_one.more_likely_on)
    pvalue, bound = joint_test(held.counts, held.claim, alpha=share)
    assert (of_one.pvalue, of_one.bound) == pytest.approx((pvalue * of_one.alpha / share, bound), rel=1e-12)
    # Of both directions together: the coins that guesses are drawn with fit both datasets with a probability below 1.
    share, fits = dict(of_both.test_shares)["event test"], share_that_fits(of_both.counts.runs_x)
    pvalue, bound = guess_test(of_both.opposite.guesses, of_both.claim, alpha=share, fits=fits)
    assert (of_both.pvalue, of_both.bound) == pytest.approx((pvalue * of_both.alpha / share, bound), rel=1e-12)
    assert pvalue > 1.001 * guess_test(of_both.opposite.guesses, of_both.claim, alpha=share)[0]


def test_the_pvalue_of_all_tests_together_decides():
    """On claims that are attained; the sizes of the tests are enumerated elsewhere, and their shares add up above."""

    def response(dataset, size, rng):
        return (rng.random(size) < 1 / (1 + math.e)) ^ bool(dataset)

    options = {"runs": 1_000, "alpha": 0.2, "jobs": 1, "floating_point": "ignore"}
    found = [
        check(mechanism, 0, 1, claim=claim, seed=seed, **options)
        for mechanism, claim in ((laplace, PureDP(1.0)), (response, PureDP(1.0)), (response, ApproxDP(1.0, 1e-6)))
        for seed in range(5)
    ]
    assert {result.is_refuted for result in found} == {True, False}
    assert all((result.pvalue <= result.alpha) == result.is_refuted for result in found)


def clamped_mean(rows, size, rng):
    """1-DP is claimed; the likeliest output, 1, is e times as likely on y, and outputs near 0.5 e^1.19 times on x."""
    return np.clip((np.sum(rows) + rng.laplace(size=size)) / len(rows), 0.0, 1.0)


@pytest.mark.parametrize("sequential", [False, True])
def test_an_excess_beside_an_event_of_the_other_direction_at_the_claim_is_found(sequential):
    """One stretch exceeds the claim by seven standard errors of these runs."""
    options = {"claim": 1.0, "adjacency": AddRemove(), "runs": 70_000, "jobs": 1, "floating_point": "ignore"}
    result = check(clamped_mean, [1.0, 0.0], [1.0], seed=0, sequential=sequential, **options)
    assert result.is_refuted
    assert result.more_likely_on == "x"


# Small excesses, by eight to thirty standard errors of all runs.


@pytest.mark.parametrize(
    ("place", "epsilon", "p", "seed", "options"),
    [
        ("interval of a coordinate", 0.0, 0.06235, 5, {}), ("interval", 0.1, 0.0685, 0, {}),
        ("interval of a difference", 0.0, 0.0666, 0, {}), ("interval", 0.0, 0.06235, 41, {"sequential": True}),
    ],
)  # fmt: skip
def test_a_small_excess_in_an_interval_is_found(place, epsilon, p, seed, options):
    """By twelve standard errors, of a difference by sixteen, where no half-line and no set of cells shows it."""
    mechanism = CrowdedNoise(place, p, 0.05)
    found = check(mechanism, 1, 0, claim=epsilon, runs=100_000, seed=seed, jobs=1, floating_point="ignore", **options)
    assert found.is_refuted
    assert place != "interval of a difference" or "(coordinate 1 − coordinate 0)" in str(found.event)
    if options:
        assert found.is_closed
        assert dict(found.error_budget.shares) == pytest.approx(
            {"betting test": 0.025, "final test": 0.02, f"{found.net_events:,} plain events together": 0.005}
        )


# Texts and digits.


@pytest.mark.parametrize(
    ("within", "sequential"),
    [(lambda text: text, True), (lambda text: {"mean": text}, False)],
    ids=["alone", "in a dictionary"],
)
def test_numbers_that_are_printed_are_read(within, sequential):
    def text(answer, rng):
        return within(f"{answer + rng.laplace(scale=0.02):.6f}")  # nearly always with the same first character

    result = check(text, 5.50, 5.54, claim=PureDP(1.0), runs=1_500, alpha=1e-6, jobs=1, sequential=sequential)
    assert result.is_refuted
    assert sequential or "float(output" in result.event_in_words


def _decimal(data, rng):
    return Decimal(int(rng.integers(10**6))) + Decimal(data) / Decimal(10**20)


BEYOND = {
    "part of a tuple": lambda data, rng: (_decimal(data, rng), "a"),
    "coordinate of a vector": lambda data, rng: (Fraction(int(rng.integers(10**6)) * 10**25 + data, 10**25), 1),
    "block of long doubles": lambda data, size, rng: (
        rng.integers(1, 10**6, size).astype(np.longdouble) + np.longdouble(data) * np.longdouble(2) ** -40
    ),
    "large integers": lambda data, size, rng: 2**60 + data + rng.geometric(0.9, size) - rng.geometric(0.9, size),
}


@pytest.mark.parametrize("name", BEYOND)
def test_digits_beyond_those_of_a_double_are_read(name):
    """Doubles of all these numbers are the same on both datasets; the verdict and the event are by the digits."""
    options = {"runs": 1_000, "alpha": 1e-6, "seed": 1, "floating_point": "ignore", "jobs": 1}
    result = check(BEYOND[name], 0, 1, claim=PureDP(1.0), **options)
    assert result.is_refuted
    assert name != "large integers" or check(BEYOND[name], 0, 1, claim=PureDP(1.0), runs=20_000).bound > 2


def test_a_result_names_what_was_not_examined():
    def wide(rows, size, rng):
        return rng.normal(size=(size, 66))

    result = check(wide, [1], [1, 2], claim=PureDP(1.0), runs=400, jobs=1, floating_point="ignore")
    assert any("of 66 parts of outputs" in note for note in result.notes)


# Low bits of floating-point numbers.


def gridded_noise(answer, size, rng):
    """The noise is on a grid and the answer is not."""
    return answer + np.round(rng.laplace(size=size) * 1024) / 1024


def naive_vector(answers, size, rng):
    return np.asarray(answers) + rng.laplace(size=(size, len(answers)))


def naive_pair(answer, rng):
    return ("count", float(answer + rng.laplace()))


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "runs"),
    [
        (laplace, 0.0, 1.0, 10_000), (gridded_noise, 0.3, 0.7, 30_000), (naive_vector, [5.0, 0.0], [5.0, 1.0], 8_000),
        (naive_pair, 0.0, 1.0, 2_000),
    ],
)  # fmt: skip
def test_the_default_warns_and_the_option_refutes(mechanism, x, y, runs):
    options = {"claim": PureDP(1.0), "runs": runs, "jobs": 1}
    warned, audited = (
        check(mechanism, x, y, alpha=a, floating_point=b, **options) for a, b in ((1e-7, "warn"), (0.05, "test"))
    )
    assert warned.verdict is Verdict.NOT_REFUTED
    assert warned.floating_point_leak.bound > 1.0
    assert "WARNING: a floating-point leak breaks the claim" in str(warned)
    suite = Suite(title="leaks", entries=(Entry(name="naive", result=warned),))
    assert from_json(to_json(suite)) == suite
    assert audited.is_refuted
    assert mechanism is naive_pair or audited.bound > 5
    if mechanism is gridded_noise:
        zero = r" and 0 incorrect guesses in [\d,]+ runs$|: .* \b0 of [\d,]+ (?:runs on x, .*|on y)$"
        assert re.search(zero, audited.seen)
    if mechanism is laplace:
        assert check(mechanism, x, y, alpha=1e-7, floating_point="ignore", **options).floating_point_leak is None


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "floating_point"),
    [
        (LaplaceMechanism(1.0), 0.3, 0.7, "test"), (GeometricMechanism(1.0), 0, 1, "test"),
        (GaussianMechanism(1.0, 0.01), 0.0, 1.0, "warn"),
    ],
)  # fmt: skip
def test_gridded_mechanisms_pass(mechanism, x, y, floating_point):
    """False alarms: at most 1e-7 for a verdict, and 1e-6 for a warning, three times."""
    result = check(
        mechanism, x, y, claim=mechanism.claim, runs=50_000, alpha=1e-7, floating_point=floating_point, jobs=1
    )
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.floating_point_leak is None


def test_sequential_audits_and_outputs_from_elsewhere_look_as_well():
    sequential = check(laplace, 0.0, 1.0, claim=PureDP(1.0), runs=4_000, alpha=1e-7, sequential=True, jobs=1)
    assert sequential.floating_point_leak is not None
    found = check(laplace, 0.0, 1.0, claim=PureDP(1.0), runs=4_000, sequential=True, floating_point="test", jobs=1)
    assert found.stopped == "refuted"
    assert found.runs < 2_000
    rng = np.random.default_rng(0)
    given = [laplace(answer, 10_000, rng) for answer in (0.0, 1.0)]
    assert check_outputs(*given, claim=PureDP(1.0), alpha=1e-7).floating_point_leak is not None
    assert check_outputs(*given, claim=PureDP(1.0), floating_point="test").is_refuted


def test_the_sign_of_zero_is_a_low_bit():
    """−0.0 equals 0.0, so the verdict on values ignores it."""

    def sign(answer, size, rng):
        noise = np.rint(rng.laplace(size=size))
        return np.where(noise <= 0.0, -0.0 if answer else 0.0, noise)

    warned, audited = (
        check(sign, 0, 1, claim=PureDP(1.0), runs=3_000, floating_point=b, jobs=1) for b in ("warn", "test")
    )
    assert not warned.is_refuted
    assert "output is −0.0" in str(warned.floating_point_leak)
    assert audited.is_refuted
