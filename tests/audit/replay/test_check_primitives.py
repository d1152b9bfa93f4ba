"""The primitives of a replay, each audited against the loss that its law states."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import GaussianDP, Law, PureDP, ReplayVerdict, Verdict, check_primitives, noise_primitive, replay
from dpaudit.audit.errors import OptionError
from dpaudit.mechanisms.adapters.replay_accounting import pld_from_replay

FEW = {"runs": 2_000, "alpha": 1e-3}


RNG = np.random.default_rng(7)


def half_of_it(value, scale):
    return value + RNG.laplace(scale=scale / 2)


def all_of_it(value, scale):
    return value + RNG.laplace(scale=scale)


@pytest.mark.parametrize(("noise", "is_refuted"), [(half_of_it, True), (all_of_it, False)])
def test_noise_that_is_weaker_than_its_law_is_refuted(noise, is_refuted):
    stated = noise_primitive("laplace", location="value", scale="scale")(noise)
    found = check_primitives(replay(lambda rows: stated(len(rows), 1.0), [1, 1], [1], claim=1.0), **FEW)
    assert found.is_refuted == is_refuted
    assert found.verdict is (Verdict.REFUTED if is_refuted else Verdict.NOT_REFUTED)
    (one,) = found.checks
    assert (one.claim, one.calls, one.audit.alpha) == (PureDP(1.0), 1, 1e-3)
    assert str(found).startswith(f"{found.verdict.value.upper()}: 1 primitive of")


def test_calls_alike_are_audited_once_and_alpha_is_shared():
    def noisy(rows, rng):
        counts = [rng.normal(len(rows), 5.0) for _ in range(3)]
        scaled = rng.laplace(0.0, 1.0 + len(rows))
        return counts, rng.laplace(sum(rows), 2.0), rng.laplace(7.0), scaled

    found = check_primitives(replay(noisy, [1, 2], [1], claim=9.0), **FEW)
    assert [one.claim for one in found.checks] == [GaussianDP(0.2), None, PureDP(1.0)]
    assert [one.calls for one in found.checks] == [3, 1, 1]
    assert [None if one.audit is None else one.audit.alpha for one in found.checks] == [5e-4, None, 5e-4]
    assert found.unmoved == 1
    assert found.verdict is Verdict.INCONCLUSIVE, "one of them could not be audited"
    assert "not audited: its loss is unknown or infinite" in str(found)
    assert "1 call was given the same on x and y" in str(found)


def test_false_alarms_are_as_rare_as_promised():
    """Twenty audits at alpha .05 each; more than 6 refute with probability 3e-5."""

    def noisy(rows, rng):
        return [rng.laplace(len(rows), 2.0 + place) for place in range(20)]

    found = check_primitives(replay(noisy, [1, 2], [1], claim=20.0), runs=400, alpha=0.9999)
    assert sum(one.audit.is_refuted for one in found.checks) <= 6


def test_it_is_no_truth_value_and_refuses_what_it_cannot_do():
    result = replay(lambda rows, rng: rng.laplace(len(rows)), [1, 1], [1], claim=1.0)
    with pytest.raises(TypeError, match="neither true nor false"):
        assert check_primitives(result, runs=400)
    with pytest.raises(OptionError, match="runs=3 is not a number of runs"):
        check_primitives(result, runs=3)


def test_noise_that_is_added_afterwards_is_not_passed():
    def shown(rows, rng):
        return len(rows) + rng.laplace(scale=1.0)

    def hidden(rows, rng):
        return (len(rows) + rng.laplace(scale=1.0)) / (1.0 + abs(rng.laplace()))

    found = check_primitives(replay(shown, [1, 1], [1], claim=1.0), runs=400)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "not audited: the noise is added afterwards; put noise_primitive" in str(found)
    found = check_primitives(replay(hidden, [1, 1], [1], claim=1.0), runs=400)
    assert (found.verdict, found.checks, found.unmoved, found.bare) == (Verdict.INCONCLUSIVE, (), 0, 2)
    assert "2 calls were given nothing that depends on the data" in str(found)
    found = check_primitives(replay(lambda rows, rng: rng.laplace(2.0), [1, 1], [1], claim=1.0), runs=400)
    assert (found.verdict, found.unmoved) == (Verdict.INCONCLUSIVE, 1), "no primitive was audited"


@pytest.mark.parametrize(
    ("law", "says"),
    [
        (Law("normal", {"location": 0.0, "sigma": 1.0}), "has the parameters location, scale, not location, sigma"),
        ("normal", "is 'normal', not a Law"),
    ],
)
def test_a_law_function_is_told_what_it_returned(law, says):
    noise = noise_primitive(lambda value: law)(lambda value: value + RNG.normal())
    with pytest.raises(OptionError, match=says):
        replay(lambda rows: noise(len(rows)), [1, 1], [1], claim=1.0)


def test_other_names_of_laws_are_known():
    with pytest.raises(OptionError, match="its name here is 'normal'"):
        noise_primitive("Gaussian", location="value", scale="scale")


@pytest.mark.parametrize("use", [check_primitives, pld_from_replay])
def test_only_the_result_of_a_replay_is_taken(use):
    with pytest.raises(OptionError, match="3 is not the result of a replay"):
        use(3)


def test_the_reason_in_the_sentence_is_not_repeated():
    found = replay(lambda rows: len(rows) + sum(np.random.default_rng().laplace(size=2)), [1, 1], [1], claim=1.0)
    assert found.verdict is ReplayVerdict.OPEN
    assert str(found).count(found.open_reasons[0]) == 1
