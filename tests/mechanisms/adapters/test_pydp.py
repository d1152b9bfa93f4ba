"""PyDP's mechanisms, aggregates and partition strategies: claims are read and hold, and replays see added noise."""

import cloudpickle
import numpy as np
import pytest

from dpaudit import AddRemove, ApproxDP, GaussianDP, PureDP, UserLevel, check, replay
from dpaudit.audit.errors import AdjacencyError, ClaimError, MechanismError
from dpaudit.audit.replay.replay_result import FindingKind
from dpaudit.audit.results.verdict import ReplayVerdict
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.domains import Within
from dpaudit.mechanisms.adapters import from_pydp

numerical = pytest.importorskip("pydp.algorithms.numerical_mechanisms", reason="PyDP is not installed")
aggregates = pytest.importorskip("pydp.algorithms.laplacian")
selection = pytest.importorskip("pydp.algorithms.partition_selection")


def laplace():
    return numerical.LaplaceMechanism(1.0, 2.0)


def gaussian():
    return numerical.GaussianMechanism(1.0, 0.1, 2.0)


def count(**options):
    return aggregates.Count(**{"epsilon": 1.0, **options})


def total(**options):
    bounds = {"lower_bound": 0.0, "upper_bound": 2.0, "dtype": "float"}
    return aggregates.BoundedSum(**{"epsilon": 1.0, **bounds, **options})


def mean():
    return aggregates.BoundedMean(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float")


def partition(strategy="laplace"):
    return selection.create_partition_strategy(strategy, 1.0, 0.01, 1)


def by_user(made, rows):
    return made.quick_result([value for _, value in rows])


@pytest.mark.parametrize(
    ("make", "claim", "adjacency", "said"),
    [
        (laplace, PureDP(1.0), Within("l1", 2.0), "epsilon of LaplaceMechanism, python-dp "),
        (gaussian, ApproxDP(1.0, 0.1), Within("l2", 2.0), "epsilon and delta of GaussianMechanism, python-dp "),
        (count, PureDP(1.0), AddRemove(), "epsilon of Count, python-dp "),
        (partition, ApproxDP(1.0, 0.01), Within("l1", 1.0), "epsilon and delta of LaplacePartition"),
    ],
)
def test_claim_and_neighbours_are_read_from_the_object(make, claim, adjacency, said):
    for source in (make, make()):
        adapter = from_pydp(source)
        assert (adapter.claim, adapter.adjacency) == (claim, adjacency)
        assert adapter.claim_source.startswith(said)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: from_pydp(3), MechanismError, "make=3 gives int, which has none of add_noise, quick_result"),
        (lambda: from_pydp(count(linf_sensitivity=3)), AdjacencyError, r"contributes 3 values to each of 1 partitions"),
        (lambda: from_pydp(count(l0_sensitivity=2)), AdjacencyError, r"1 values to each of 2 partitions of Count"),
        (
            lambda: from_pydp(numerical.GaussianMechanism.create_from_standard_deviation(1.0)),
            ClaimError,
            r"epsilon=0.0 of GaussianMechanism is not a claim; pass claim=",
        ),
    ],
)
def test_what_the_object_does_not_say_is_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    ("make", "options", "x", "y"),
    [
        (laplace, {}, 0.0, 2.0),
        (total, {}, np.array([1.0, 2.0]), np.array([1.0])),
        pytest.param(gaussian, {}, 0.0, 2.0, marks=pytest.mark.evidence),
        (
            lambda: count(linf_sensitivity=2),
            {"adjacency": UserLevel(0), "release": by_user},
            [(0, 1), (1, 1), (1, 1)],
            [(0, 1)],
        ),
    ],
)
def test_they_break_half_of_their_claim(make, options, x, y):
    """PyDP cannot be seeded: with these runs, the bound is seven standard deviations above half of the claim."""
    adapter = from_pydp(make, **options)
    half = adapter.claim.with_parameter(adapter.claim.parameter / 2)
    options = {"claim": half, "adjacency": adapter.adjacency, "alpha": 1e-6, "jobs": 1, "floating_point": "ignore"}
    result = check(adapter, x, y, runs=10_000, **options)
    assert result.is_refuted
    assert not result.is_reproducible


def test_a_strategy_decides_and_a_mean_splits_its_budget():
    assert set(as_sampler(from_pydp(partition)).draw(5, 200, np.random.default_rng(1))) == {False, True}
    assert (from_pydp(mean).claim, from_pydp(mean).adjacency) == (PureDP(1.0), AddRemove())


def test_functions_can_be_sent_to_workers_and_objects_cannot():
    sent = cloudpickle.loads(cloudpickle.dumps(from_pydp(count)))
    assert len(sent.sample([1], 3, np.random.default_rng(1))) == 3
    with pytest.raises(TypeError, match="pickle"):
        cloudpickle.dumps(from_pydp(count()))


def test_exceptions_are_outputs_and_mistakes_are_errors():
    guessing = from_pydp(lambda: total(lower_bound=None, upper_bound=None))  # too few rows to infer bounds
    outputs = as_sampler(guessing).draw([1.0, 2.0], 5, np.random.default_rng(1))
    assert {str(output) for output in outputs} == {"raises RuntimeError"}
    with pytest.raises(MechanismError, match="TypeError"):
        as_sampler(from_pydp(count)).draw(["one"], 5, np.random.default_rng(1))


# Replays of functions that add noise with PyDP.


def noised(value, sensitivity=1.0):
    return numerical.LaplaceMechanism(1.0, sensitivity).add_noise(value)


@pytest.mark.parametrize("number", [float, int])
def test_an_input_that_moves_beyond_its_sensitivity(number):
    result = replay(lambda rows: noised(number(sum(rows))), [1, 3], [1], claim=1.0)
    (call,) = result.calls
    assert (call.moved, call.sensitivity, call.worst_loss) == (3.0, 1.0, 3.0)
    assert [finding.kind for finding in result.findings] == [FindingKind.BEYOND_SENSITIVITY]
    assert "in noised: the input of LaplaceMechanism moved by 3, and its sensitivity is 1" in str(result)


def test_gaussian_noise_has_the_scale_of_the_library():
    noise = numerical.GaussianMechanism(1.0, 1e-5, 2.0)
    (call,) = replay(lambda rows: noise.add_noise(float(sum(rows))), [1.0, 2.0], [1.0], claim=GaussianDP(1.0)).calls
    assert call.mu == pytest.approx(2.0 / noise.std)


def test_aggregates_are_said_to_draw_elsewhere():
    result = replay(lambda rows: total().quick_result(rows), [1.0, 3.0], [1.0], claim=1.0)
    assert not result.calls
    assert result.unrecorded
    assert result.verdict is ReplayVerdict.UNDETERMINED
