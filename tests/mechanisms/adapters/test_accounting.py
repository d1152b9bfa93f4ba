"""Claims from dp-accounting's events, and privacy losses from replayed noise."""

import math
import os

import dp_accounting
import numpy as np
import pytest

import dpaudit.mechanisms as m
from dpaudit import PrivacyProfile, replay
from dpaudit.audit.errors import ClaimError
from dpaudit.mechanisms.adapters import claim_from_event, pld_from_replay

# Claims from the events of dp_accounting.

LAPLACE = dp_accounting.LaplaceDpEvent(noise_multiplier=2.0)
GAUSSIAN = dp_accounting.GaussianDpEvent(noise_multiplier=2.0)


def laplace_delta(epsilon, scale):
    return max(0.0, -np.expm1((epsilon - 1 / scale) / 2))


@pytest.mark.parametrize(
    ("event", "exact"),
    [
        (LAPLACE, lambda epsilon: laplace_delta(epsilon, 2.0)),
        (GAUSSIAN, lambda epsilon: m.gaussian_delta(epsilon, 2.0)),
        (dp_accounting.SelfComposedDpEvent(GAUSSIAN, 4), lambda epsilon: m.gaussian_delta(epsilon, 1.0)),
        (
            dp_accounting.ComposedDpEvent([dp_accounting.NoOpDpEvent(), GAUSSIAN]),
            lambda epsilon: m.gaussian_delta(epsilon, 2.0),
        ),
    ],
)
def test_the_profile_is_the_exact_one_and_never_below_it(event, exact):
    claim = claim_from_event(event)
    assert isinstance(claim, PrivacyProfile)
    for epsilon, delta in zip(claim.epsilons, claim.deltas, strict=True):
        assert exact(epsilon) - 1e-12 <= delta <= exact(epsilon) + 1e-3


def test_the_relation_matters():
    replaced = claim_from_event(GAUSSIAN, neighbours="replace_one", discretization=1e-3)
    assert replaced.deltas[0] == pytest.approx(m.gaussian_delta(0.0, 1.0), abs=1e-3)  # two steps
    event = dp_accounting.PoissonSampledDpEvent(0.1, GAUSSIAN)
    assert claim_from_event(event, discretization=1e-3).deltas[0] == pytest.approx(
        0.1 * m.gaussian_delta(0.0, 2.0), abs=1e-3
    )
    with pytest.raises(ClaimError, match=r"LaplaceDpEvent has no privacy loss distribution .* by replace_one \(Unsupp"):
        claim_from_event(LAPLACE, neighbours="replace_one")


def test_the_renyi_accountant_knows_other_events_and_has_larger_deltas():
    by_divergences = claim_from_event(GAUSSIAN, accountant="rdp")
    for epsilon, delta in zip(by_divergences.epsilons, by_divergences.deltas, strict=True):
        assert delta >= m.gaussian_delta(epsilon, 2.0)
    assert by_divergences.deltas[50] < 0.5
    event = dp_accounting.dp_event.RepeatAndSelectDpEvent(GAUSSIAN, 3.0, 1.0)
    with pytest.raises(ClaimError, match=r'RepeatAndSelectDpEvent .* \(Unsupported .*; use accountant="rdp", or write'):
        claim_from_event(event)
    accountant = dp_accounting.rdp.RdpAccountant().compose(event)
    claim = claim_from_event(event, accountant="rdp", points=9, max_epsilon=8.0)
    for epsilon, delta in zip(claim.epsilons, claim.deltas, strict=True):
        assert delta == accountant.get_delta(epsilon)  # no stronger than what the accountant says
    with pytest.raises(ClaimError, match=r"has no Rényi divergence in dp_accounting .*; use another relation"):
        claim_from_event(dp_accounting.UnsupportedDpEvent(), accountant="rdp")
    with pytest.raises(ClaimError, match="accountant='gdp' is unknown"):
        claim_from_event(GAUSSIAN, accountant="gdp")


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
        (lambda: claim_from_event(dp_accounting.NonPrivateDpEvent()), "NonPrivateDpEvent has delta 1 at every epsilon"),
    ],
)
def test_what_is_no_claim_is_refused(call, message):
    with pytest.raises(ClaimError, match=message):
        call()


# The losses of a replay's calls, composed by dp_accounting.


def composed(mechanism, claim=50.0):
    return pld_from_replay(replay(mechanism, [1, 1], [1], claim=claim))


def test_gaussian_calls_add_up_to_one():
    loss = composed(lambda rows, rng: [rng.normal(len(rows), 2**0.5) for _ in range(2)])
    assert loss.get_delta_for_epsilon(1.0) == pytest.approx(m.gaussian_delta(1.0, 1.0), rel=1e-3)


def test_pure_losses_of_few_calls_add_up_and_many_cost_less():
    two = composed(lambda rows, rng: (rng.laplace(len(rows), 4.0), rng.laplace([len(rows), 2.0], 2.0)))  # 1/4 and 1/2
    assert two.get_epsilon_for_delta(1e-12) == pytest.approx(0.75, abs=1e-3)
    many = composed(lambda rows, rng: [rng.laplace(len(rows), 10.0) for _ in range(20)])
    assert 1.5 < many.get_epsilon_for_delta(1e-6) < 1.9  # pure losses of 2 in all


def test_choices_count_with_their_worst_case():
    loss = composed(lambda rows, rng: rng.choice(2, p=[0.5, 0.5] if len(rows) > 1 else [0.25, 0.75]))
    assert loss.get_epsilon_for_delta(1e-12) == pytest.approx(math.log(2.0), abs=1e-3)


def test_a_loss_that_is_unknown_or_infinite_composes_to_no_budget():
    with pytest.raises(ClaimError, match=r"the loss of Generator\.laplace at .* is infinite"):
        composed(lambda rows, rng: rng.laplace(0.0, len(rows)))


def test_noise_that_is_added_to_something_unknown_composes_to_no_budget():
    with pytest.raises(ClaimError, match=r"what the noise of Generator\.laplace at .* is added to is not known"):
        composed(lambda rows, rng: (len(rows) + rng.laplace()) / (1.0 + abs(rng.laplace())))


def test_an_open_result_is_composed_only_by_request():
    result = replay(lambda rows, rng: (rng.laplace(len(rows), 2.0), os.urandom(1)[0]), [1, 1], [1], claim=50.0)
    with pytest.raises(ClaimError, match=r"the replay is open \(.*partial=True composes only these"):
        pld_from_replay(result)
    assert pld_from_replay(result, partial=True).get_epsilon_for_delta(1e-12) == pytest.approx(0.5, abs=1e-3)
