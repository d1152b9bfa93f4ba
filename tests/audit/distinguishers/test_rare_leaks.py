"""What a reader has to be told, and what is rare: leaks, repeated values, exceptions, outputs that never vary."""

import numpy as np
import pytest

from dpaudit import ApproxDP, PureDP, Verdict, check, check_outputs
from dpaudit.audit.errors import MechanismError
from dpaudit.experiments.benchmarks.detection.rare_leaks import LeakyLaplace

RARE = 1e-6  # alpha where a correct mechanism has to pass


def leaking(share, at):
    """Laplace noise well within epsilon 1, which with probability `share` gives `at(d)` instead."""

    def mechanism(d, size, rng):
        values = d + rng.laplace(scale=1 / 0.9, size=size)
        values[rng.random(size) < share] = at(d)
        return values

    return mechanism


def test_a_leak_in_the_far_tail_is_found():
    """About 50 of 50,000 pilot runs: rare, but against none on the other side."""
    result = check(leaking(1e-3, lambda d: 1000 + d), 0, 1, claim=PureDP(1.0), runs=1_000_000)
    assert result.is_refuted
    assert result.bound > 2


def test_a_value_that_comes_again_inside_continuous_noise_is_found():
    result = check(leaking(5e-3, float), 0, 1, claim=PureDP(1.0), runs=1_000_000)
    assert result.is_refuted
    assert "output = " in result.event_in_words


def test_the_same_value_on_both_sides_is_no_leak():
    result = check(leaking(5e-3, lambda d: 0.5), 0, 1, claim=PureDP(1.0), runs=400_000, alpha=RARE)
    assert not result.is_refuted


def test_exceptions_are_noted():
    def fragile(d, rng):
        if d and rng.random() < 0.02:
            raise KeyError
        return d + rng.laplace()

    result = check(fragile, 0, 1, claim=PureDP(1.0), runs=3_000, jobs=1)
    assert result.is_refuted
    assert any(note.startswith("KeyError was raised in ") and note.endswith("on y") for note in result.notes)
    assert "note: KeyError was raised" in str(result)


def test_outputs_that_never_vary_are_noted():
    result = check(lambda d: None, 0, 1, claim=PureDP(1.0), runs=2_000, jobs=1)
    assert result.verdict is Verdict.INCONCLUSIVE  # nothing was seen of the mechanism
    assert len(result.notes) == 2
    assert "gave the same output, None; is a return missing?" in result.notes[0]
    (note,) = check(lambda d, rng: rng.random(), 0, 1, claim=PureDP(1.0), runs=20_000, jobs=1).notes
    assert note == "no event told x from y in these runs; does the mechanism use its data?"


def test_outputs_made_elsewhere_have_to_be_independent():
    rng = np.random.default_rng(1)
    xs, ys = rng.laplace(0, 1, 20_000), rng.laplace(1, 1, 20_000)
    result = check_outputs(np.repeat(xs, 10), np.repeat(ys, 10), claim=PureDP(1.5))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "successive runs on x are correlated" in str(result)
    silenced = ("serial-dependence", "repeated-blocks")
    assert check_outputs(np.repeat(xs, 10), ys, claim=PureDP(1.5), ignore=silenced).findings == ()
    assert check_outputs(np.sort(xs), np.sort(ys), claim=PureDP(1.5), alpha=RARE).verdict is Verdict.NOT_REFUTED


def test_large_integers_are_counted_as_they_were_chosen():
    """Beyond 2**53 neighbouring integers fall together as doubles; single outcomes still tell x from y."""

    def ring(d, size, rng):
        return 2**60 + d + rng.geometric(0.9, size) - rng.geometric(0.9, size)

    assert check(ring, 0, 1, claim=PureDP(1.0), runs=200_000).bound > 2


@pytest.mark.parametrize("code", [0, 3])
def test_a_mechanism_that_exits_does_not_end_the_audit(code):
    def leaves(d, rng):
        raise SystemExit(code)

    with pytest.raises(MechanismError, match="called exit"):
        check(leaves, 0, 1, claim=PureDP(1.0), runs=1_000, jobs=1)


def test_a_mechanism_that_nearly_always_raises_is_audited():
    """Exceptions are outputs: only a mechanism that never returns cannot be run."""

    def mostly(d, rng):
        if rng.random() < 0.995:
            raise ValueError
        return d

    assert check(mostly, 0, 1, claim=PureDP(1.0), runs=6_000, jobs=1).is_refuted


@pytest.mark.parametrize("place", ["beyond", "one value"])
def test_a_hundred_hits_on_one_side_are_found_by_an_audit_of_fixed_size(place):
    """The pilot, a twentieth of the runs, sees about five of them."""
    options = {"claim": PureDP(1.0), "runs": 100_000, "bits": False, "jobs": 1}
    audits = (check(LeakyLaplace(0.001, place), 0.0, 1.0, seed=seed, **options) for seed in range(5))
    assert sum(audit.is_refuted for audit in audits) >= 2  # of 200 others .98; fewer than 2 with probability 1e-6


def test_two_hundred_nans_on_one_side_are_found_at_a_small_alpha():
    laplace = leaking(0.002, lambda d: np.nan if d else 0.5)
    assert check(laplace, 0, 1, claim=PureDP(1.0), runs=100_000, alpha=1e-5, seed=0, jobs=1).is_refuted


def test_what_delta_allows_does_not_hide_a_rare_violation():
    """Outputs that delta allows on one dataset only must not displace the event that contradicts the claim."""

    def leaks(d, size, rng):
        value, u = d + rng.laplace(size=size), rng.random(size)
        value = np.where(u < (0.01 if d else 0.002), 50.0 + rng.random(size), value)
        return np.where(rng.random(size) < 1e-3, (1 if d else -1) * (1_000 + 10 * rng.random(size)), value)

    audits = (
        check(leaks, 1, 0, claim=ApproxDP(1.0, 1e-3), runs=130_000, seed=seed, jobs=1, bits=False) for seed in range(8)
    )
    assert any(audit.is_refuted for audit in audits)  # of 110 others .80; none with probability 3e-6
