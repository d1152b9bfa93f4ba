"""Low bits: a leak is found without being told where, warned of by default, and never seen in gridded outputs."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, check, check_outputs
from dpaudit.audit.errors import OptionError
from dpaudit.audit.records import Entry, Suite, from_json, to_json
from dpaudit.mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism

RUNS = 200_000


def naive(answer, size, rng):
    return answer + rng.laplace(size=size)


def naive_gaussian(answer, size, rng):
    return answer + 4 * rng.normal(size=size)


def gridded_noise(answer, size, rng):
    """The noise is on a grid and the answer is not."""
    return answer + np.round(rng.laplace(size=size) * 1024) / 1024


def naive_vector(answers, size, rng):
    return np.asarray(answers) + rng.laplace(size=(size, len(answers)))


def naive_pair(answer, rng):
    return ("count", float(answer + rng.laplace()))


@pytest.mark.parametrize(
    ("mechanism", "x", "y", "claim"),
    [
        (naive, 0.0, 1.0, 1.0),
        (naive_gaussian, 0.0, 1.0, 3.0),
        (gridded_noise, 0.3, 0.7, 1.0),
        (naive_vector, [5.0, 0.0], [5.0, 1.0], 1.0),
    ],
)
def test_the_default_warns_and_the_option_refutes(mechanism, x, y, claim):
    warned = check(mechanism, x, y, claim=PureDP(claim), runs=RUNS, alpha=1e-7, jobs=1)
    assert warned.verdict is Verdict.NOT_REFUTED
    assert warned.low_bits is not None
    assert warned.low_bits.bound > claim
    assert "WARNING: the low bits break the claim" in str(warned)
    audited = check(mechanism, x, y, claim=PureDP(claim), runs=RUNS, bits=True, jobs=1)
    assert audited.is_refuted
    assert audited.bound > 5
    assert "never occurred on" in str(audited)
    assert "so the point estimate is infinite" in str(audited)
    silent = check(mechanism, x, y, claim=PureDP(claim), runs=RUNS, alpha=1e-7, bits=False, jobs=1)
    assert silent.low_bits is None
    assert "WARNING" not in str(silent)


def test_a_number_among_other_things_has_bits_too():
    result = check(naive_pair, 0.0, 1.0, claim=PureDP(1.0), runs=20_000, bits=True, jobs=1)
    assert result.is_refuted
    assert "lowest set bit of output[1]" in str(result.event) or "modulo" in str(result.event)


@pytest.mark.parametrize("bits", ["warn", True])
@pytest.mark.parametrize(
    ("mechanism", "x", "y"),
    [
        (LaplaceMechanism(1.0), 0.0, 1.0),
        (LaplaceMechanism(1.0), 0.3, 0.7),
        (LaplaceMechanism(1.0), 1e6, 1e6 + 1),
        (GeometricMechanism(1.0), 0, 1),
        (GaussianMechanism(1.0, 0.01), 0.0, 1.0),
    ],
)
def test_gridded_mechanisms_pass(mechanism, x, y, bits):
    """False alarms: at most 1e-7 for a verdict, and 1e-6 for a warning, ten times."""
    result = check(mechanism, x, y, claim=mechanism.claim, runs=RUNS, alpha=1e-7, bits=bits, jobs=1)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.low_bits is None


def test_bits_are_no_news_where_the_values_say_as_much():
    """A geometric mechanism with half of its noise: its lowest bits differ as its values do, and nobody is warned."""
    result = check(GeometricMechanism(2.0), 0, 1, claim=PureDP(1.0), runs=RUNS, jobs=1)
    assert result.is_refuted
    assert result.low_bits is None


def test_sequential_audits_and_outputs_from_elsewhere_look_as_well():
    sequential = check(naive, 0.0, 1.0, claim=PureDP(1.0), runs=20_000, alpha=1e-7, sequential=True, jobs=1)
    assert sequential.low_bits is not None
    found = check(naive, 0.0, 1.0, claim=PureDP(1.0), runs=20_000, sequential=True, bits=True, jobs=1)
    assert found.stopped == "refuted"
    assert found.runs < 2_000
    rng = np.random.default_rng(0)
    given = [naive(answer, 20_000, rng) for answer in (0.0, 1.0)]
    assert check_outputs(*given, claim=PureDP(1.0), alpha=1e-7).low_bits is not None
    assert check_outputs(*given, claim=PureDP(1.0), bits=True).is_refuted


def test_the_warning_is_stored():
    result = check(naive, 0.0, 1.0, claim=PureDP(1.0), runs=20_000, alpha=1e-7, jobs=1)
    suite = Suite(title="bits", entries=(Entry(name="naive", result=result),))
    assert from_json(to_json(suite)) == suite


@pytest.mark.parametrize("bits", ["yes", None, 1, "true"])
def test_an_unknown_mode_is_refused(bits):
    with pytest.raises(OptionError, match=r'use "warn", True or False'):
        check(naive, 0.0, 1.0, claim=PureDP(1.0), runs=100, bits=bits)
