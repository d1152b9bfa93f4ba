"""Forms of clients of pure-ldp and multi-freq-ldpy: each public callable has targets or a reason."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.audit.datasets.domains import Values
from dpaudit.experiments.libraries.installed import is_installed
from dpaudit.experiments.library_suites.audited_library import NotCovered, PublicCallable
from dpaudit.experiments.library_suites.library_names import library_named
from dpaudit.experiments.library_suites.multi_freq_forms import multi_freq_form
from dpaudit.experiments.library_suites.plan import plan_of
from dpaudit.experiments.library_suites.pure_ldp_forms import pure_ldp_form
from dpaudit.experiments.library_suites.run_target import example_of, run_target

needs_pure_ldp = pytest.mark.skipif(not is_installed("pure-ldp"), reason="pure-ldp is not installed")
needs_multi_freq = pytest.mark.skipif(not is_installed("multi-freq-ldpy"), reason="multi-freq-ldpy is not installed")


class Leaky:
    """A client that returns its value."""

    def __init__(self, epsilon, d):
        self.epsilon, self.d = epsilon, d

    def privatise(self, value):
        return value


def form_of(name, function):
    return pure_ldp_form(PublicCallable(f"frequency_oracles.{name}", function))


def test_a_new_client_of_pure_ldp_is_picked_up_and_its_leak_is_found():
    targets = form_of("NewClient", Leaky)
    assert [target.point for target in targets] == ["epsilon=1", "epsilon=3"]
    assert targets[1].make().claim == PureDP(3.0)
    small = dataclasses.replace(targets[0], runs=600, search_runs=400)
    outcome = run_target(small, alpha=1e-6, seed=0, seconds=1e3, with_bits=False)
    assert outcome.is_refuted_by_values
    assert not outcome.unconfirmed


def test_what_pure_ldp_has_beside_clients_is_not_covered():
    class NewServer:
        pass

    class Hashed(Leaky):
        def __init__(self, epsilon, d, salt):
            super().__init__(epsilon, d)

    assert "reports" in form_of("NewServer", NewServer).reason
    assert "not a client" in form_of("Mapper", NewServer).reason
    assert "abstract" in form_of("FreqOracleClient", Leaky).reason
    assert "for every value" in form_of("ZeroOracleClient", Leaky).reason
    assert "sees no data" in form_of("generate_hash", len).reason
    assert form_of("HashedClient", Hashed) == NotCovered("its parameters (salt) fit no known form")


def new_oracle(input_data, k, epsilon, optimal=True):
    return input_data


def new_longitudinal(input_data, k, eps_perm, eps_1):
    return input_data


def new_solution(input_tuple, lst_k, d, epsilon):
    return input_tuple


@pytest.mark.parametrize(
    ("function", "points", "claim", "example"),
    [
        (new_oracle, 4, PureDP(1.0), 0),
        (new_longitudinal, 2, PureDP(1.0), 0),
        (new_solution, 2, PureDP(1.0), (0, 0)),
    ],
)
def test_a_new_client_of_multi_freq_ldpy_is_picked_up_by_its_parameters(function, points, claim, example):
    targets = multi_freq_form(PublicCallable("module.New_Client", function))
    assert len({target.point for target in targets}) == points
    mechanism = targets[0].make()
    assert mechanism.claim == claim
    assert isinstance(targets[0].domain, Values)
    assert mechanism.sample(example_of(targets[0].domain), 2, np.random.default_rng(0)) == [example, example]
    assert all(("eps_1" in target.note) == (function is new_longitudinal) for target in targets)


def test_what_multi_freq_ldpy_has_beside_clients_is_not_covered():
    def reason(name, function=new_oracle):
        return multi_freq_form(PublicCallable(f"module.{name}", function)).reason

    assert "reports" in reason("GRR_Aggregator_MI")
    assert "formula" in reason("VAR_Pure")

    def other(input_data, k, epsilon, salt):
        raise AssertionError

    assert reason("Other_Client", other) == "its parameters (epsilon, k, salt) fit no known form"


def is_refuted_at(library, point, **sizes):
    """Whether a small audit of a point refutes it by values."""
    (target,) = (each for each in plan_of(library_named(library)).targets if each.name.endswith(point))
    small = dataclasses.replace(target, **sizes)
    outcome = run_target(small, alpha=1e-6, seed=0, seconds=1e3, with_bits=False)
    assert not outcome.failure
    return outcome.is_refuted_by_values


def all_run(targets):
    """Whether each target gives as many outputs as are asked for."""
    samples = (target.make().sample(example_of(target.domain), 2, np.random.default_rng(0)) for target in targets)
    return all(len(sample) == 2 for sample in samples)


@needs_pure_ldp
def test_every_callable_of_pure_ldp_has_targets_that_run_or_a_reason():
    library = library_named("pure-ldp")
    plan = plan_of(library)
    assert {"frequency_oracles.RAPPORClient", "heavy_hitters.PEMClient"} <= {each.callable for each in plan.targets}
    assert all("fit no known form" not in each.reason for each in plan.excluded)
    assert all_run(plan.targets)


@needs_pure_ldp
@pytest.mark.parametrize(
    ("point", "is_refuted"),
    [
        ("RAPPORClient: 1 hash function, epsilon=1", True),
        ("HadamardMechClient: as returned, epsilon=1", True),
        ("HadamardMechClient: as the server reads it, epsilon=1", False),
        ("UEClient: optimised, epsilon=1", False),
    ],
)
def test_known_defects_of_pure_ldp_are_found_and_others_are_not(point, is_refuted):
    assert is_refuted_at("pure-ldp", point, runs=2_000, search_runs=600) == is_refuted


@needs_multi_freq
def test_every_callable_of_multi_freq_ldpy_has_targets_that_run_or_a_reason():
    plan = plan_of(library_named("multi-freq-ldpy"))
    assert sum("_Client" in each for each in plan.callables) == len({target.callable for target in plan.targets})
    assert all_run(plan.targets)


@needs_multi_freq
@pytest.mark.parametrize(
    ("point", "is_refuted"),
    [
        ("SS.SS_Client: epsilon=1", True),
        ("RSpFD_GRR_Client: epsilon=2.5", True),
        ("GRR.GRR_Client: epsilon=1", False),
    ],
)
def test_known_defects_of_multi_freq_ldpy_are_found_and_others_are_not(point, is_refuted):
    assert is_refuted_at("multi-freq-ldpy", point, runs=5_000, search_runs=2_000) == is_refuted
