"""Replays of functions that add noise with PyDP."""

import pytest

from dpaudit import GaussianDP, replay
from dpaudit.audit.replay.replay_result import ReplayVerdict
from dpaudit.audit.replay.replayed_call import FindingKind

mechanisms = pytest.importorskip("pydp.algorithms.numerical_mechanisms", reason="PyDP is an optional library")


def laplace(value, sensitivity=1.0):
    return mechanisms.LaplaceMechanism(1.0, sensitivity).add_noise(value)


@pytest.mark.parametrize("number", [float, int])
def test_an_input_that_moves_beyond_its_sensitivity(number):
    def noisy_sum(rows):
        return laplace(number(sum(rows)))

    result = replay(noisy_sum, [1, 3], [1], claim=1.0)
    (call,) = result.calls
    assert (call.moved, call.sensitivity, call.worst_loss) == (3.0, 1.0, 3.0)
    assert [finding.kind for finding in result.findings] == [FindingKind.BEYOND_SENSITIVITY]
    assert "in laplace: the input of LaplaceMechanism moved by 3, and its sensitivity is 1" in str(result)


def test_what_keeps_its_sensitivity_is_bounded():
    result = replay(lambda rows: laplace(len(rows)), [1, 3], [1], claim=1.0)
    assert result.verdict is ReplayVerdict.BOUNDED


def test_gaussian_noise_has_the_scale_of_the_library():
    noise = mechanisms.GaussianMechanism(1.0, 1e-5, 2.0)
    result = replay(lambda rows: noise.add_noise(float(sum(rows))), [1.0, 2.0], [1.0], claim=GaussianDP(1.0))
    assert result.calls[0].mu == pytest.approx(2.0 / noise.std)
    assert result.verdict is ReplayVerdict.BOUNDED


def test_aggregates_are_said_to_draw_elsewhere():
    algorithms = pytest.importorskip("pydp.algorithms.laplacian", reason="PyDP is an optional library")

    def total(rows):
        return algorithms.BoundedSum(epsilon=1.0, lower_bound=0.0, upper_bound=5.0, dtype="float").quick_result(rows)

    result = replay(total, [1.0, 3.0], [1.0], claim=1.0)
    assert not result.calls
    assert result.unrecorded
    assert result.verdict is ReplayVerdict.OPEN
