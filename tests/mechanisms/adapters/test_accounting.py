"""Claims from the events of dp_accounting."""

import sys

import dp_accounting
import numpy as np
import pytest

from dpaudit import PrivacyProfile, Verdict, Within, check
from dpaudit.audit.errors import AuditError, ClaimError
from dpaudit.mechanisms import gaussian_delta
from dpaudit.mechanisms.adapters import claim_from_event

LAPLACE = dp_accounting.LaplaceDpEvent(noise_multiplier=2.0)
GAUSSIAN = dp_accounting.GaussianDpEvent(noise_multiplier=2.0)


def laplace_delta(epsilon, scale):
    return max(0.0, -np.expm1((epsilon - 1 / scale) / 2))


@pytest.mark.parametrize(
    ("event", "exact"),
    [
        (LAPLACE, lambda epsilon: laplace_delta(epsilon, 2.0)),
        (GAUSSIAN, lambda epsilon: gaussian_delta(epsilon, 2.0)),
        (dp_accounting.SelfComposedDpEvent(GAUSSIAN, 4), lambda epsilon: gaussian_delta(epsilon, 1.0)),
        (
            dp_accounting.ComposedDpEvent([dp_accounting.NoOpDpEvent(), GAUSSIAN]),
            lambda epsilon: gaussian_delta(epsilon, 2.0),
        ),
    ],
)
def test_the_profile_is_the_exact_one_and_never_below_it(event, exact):
    claim = claim_from_event(event)
    assert isinstance(claim, PrivacyProfile)
    for epsilon, delta in zip(claim.epsilons, claim.deltas, strict=True):
        assert exact(epsilon) - 1e-12 <= delta <= exact(epsilon) + 1e-3


def test_the_relation_matters():
    replaced = claim_from_event(GAUSSIAN, neighbours="replace_one")
    assert replaced.deltas[0] == pytest.approx(gaussian_delta(0.0, 1.0), abs=1e-3)  # two steps
    event = dp_accounting.PoissonSampledDpEvent(0.1, GAUSSIAN)
    assert claim_from_event(event).deltas[0] == pytest.approx(0.1 * gaussian_delta(0.0, 2.0), abs=1e-3)
    with pytest.raises(ClaimError, match=r"LaplaceDpEvent has no privacy loss distribution .* by replace_one \(Unsupp"):
        claim_from_event(LAPLACE, neighbours="replace_one")


def test_a_mechanism_keeps_the_claim_of_its_event_and_breaks_that_of_more_noise():
    def noisy(answer, size, rng):
        return answer + rng.normal(scale=2.0, size=size)

    for scale, verdict in ((2.0, Verdict.NOT_REFUTED), (3.0, Verdict.REFUTED)):
        claim = claim_from_event(dp_accounting.GaussianDpEvent(noise_multiplier=scale), points=41)
        result = check(noisy, 0.0, 1.0, claim=claim, adjacency=Within("l2"), runs=50_000, alpha=1e-6, bits=False)
        assert result.verdict is verdict


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: claim_from_event(2.0), "event=2.0 is not an event of dp_accounting; use one"),
        (
            lambda: claim_from_event(GAUSSIAN, neighbours="rows"),
            r"neighbours='rows' is not a relation .* add_or_remove_one",
        ),
        (lambda: claim_from_event(GAUSSIAN, discretization=0), "discretization=0 is not allowed"),
        (lambda: claim_from_event(dp_accounting.UnsupportedDpEvent()), "UnsupportedDpEvent has no privacy loss"),
        (lambda: claim_from_event(dp_accounting.ZCDpEvent(0.1)), "ZCDpEvent has no privacy loss"),
        (lambda: claim_from_event(dp_accounting.NonPrivateDpEvent()), "NonPrivateDpEvent has delta 1 at every epsilon"),
    ],
)
def test_what_is_no_claim_is_refused(call, message):
    with pytest.raises(ClaimError, match=message):
        call()


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(AuditError, match=r"pip install 'dpaudit\[accounting\]'"):
        claim_from_event(GAUSSIAN)
