"""Replays of diffprivlib: the known defects are found at their lines, and the correct variants have no excess."""

import numpy as np
import pytest

from dpaudit import Replace, replay
from dpaudit.audit.replay.replay_result import FindingKind
from dpaudit.audit.results.verdict import ReplayVerdict
from dpaudit.mechanisms.adapters import from_diffprivlib_tool

try:
    from diffprivlib import mechanisms, models, tools
except ImportError as error:  # absent, or installed with an incompatible scikit-learn
    pytest.skip(f"diffprivlib cannot be imported: {error}", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize. The `disp`:DeprecationWarning")
NAN = float("nan")
LARGE = 2.0**52


def tool(function, example, **options):
    return from_diffprivlib_tool(function, example=example, adjacency=Replace(), epsilon=1.0, **options)


def linear(lower):
    options = {"bounds_X": (lower, 1), "bounds_y": (0, 1), "fit_intercept": False, "output": lambda model: model.coef_}
    return tool(models.LinearRegression, [(1.0, 1.0)], **options)


def logistic(norm):
    def fit(rows, **options):
        x, label = np.array([(0.0, 0), (0.0, 1), *rows]).T
        model = models.LogisticRegression(data_norm=norm, fit_intercept=False, **options)
        return model.fit(x[:, None], label.astype(int))

    return tool(fit, [(1.0, 1)], output=lambda model: model.coef_[0, 0])


def with_known_row(name, known):
    return tool(lambda rows, **options: getattr(tools, name)([known, *rows], **options), [1.0], bounds=(0.0, 1.0))


@pytest.mark.parametrize(
    ("make", "x", "y", "file", "moved", "worst"),
    [
        (lambda: linear(0), [(0.1, 0.0)], [(1.0, 1.0)], "linear_regression.py", 0.99, np.inf),
        (lambda: logistic(30.0), [(1.0, 1)], [(30.0, 1)], "logistic_regression.py", 224.75, None),
        (lambda: with_known_row("nanmean", 0.5), [NAN] * 4 + [1.0], [NAN] * 4 + [0.0], "utils.py", 0.5, 3.0),
        (lambda: with_known_row("nanvar", 0.0), [NAN] * 4 + [1.0], [NAN] * 4 + [0.0], "utils.py", 0.25, None),
        (lambda: tool(tools.nansum, [9.0], bounds=(9.0, 10.0)), [10.0, NAN], [10.0, 10.0], "utils.py", 10.0, 10.0),
        (
            lambda: tool(tools.sum, [LARGE], bounds=(LARGE, LARGE + 1)),
            [LARGE + 1] * 3,
            [LARGE, LARGE + 1, LARGE + 1],
            "utils.py",
            4.0,
            4.0,
        ),
    ],
    ids=["LinearRegression", "LogisticRegression", "nanmean", "nanvar", "nansum", "sum"],
)
def test_known_defects_are_found_at_their_lines(make, x, y, file, moved, worst):
    result = replay(make(), x, y)
    assert result.verdict is ReplayVerdict.EXCESS
    finding = result.findings[0]
    assert finding.kind is FindingKind.BEYOND_SENSITIVITY
    assert finding.place.file.endswith(file)
    call = next(call for call in result.calls if call.place == finding.place and call.moved > call.sensitivity)
    assert call.moved == pytest.approx(moved, rel=1e-5)
    assert call.worst_loss == (worst if worst is None else pytest.approx(worst))
    assert not result.unrecorded


def test_a_regression_within_its_norm_is_left_open():
    assert replay(logistic(1.0), [(1.0, 1)], [(-1.0, 0)]).verdict is ReplayVerdict.UNDETERMINED


MECHANISMS = [
    (lambda: mechanisms.Laplace(epsilon=1.0, sensitivity=1.0), 1.0, 1.0),
    (lambda: mechanisms.LaplaceTruncated(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=9.0), 1.0, 1.0),
    (lambda: mechanisms.LaplaceBoundedDomain(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=9.0), 1.0, 1.0),
    (lambda: mechanisms.Staircase(epsilon=1.0, sensitivity=1.0), 1.0, 1.0),
    (lambda: mechanisms.Snapping(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=9.0), 1.0, 1.0),
    (lambda: mechanisms.Geometric(epsilon=1.0, sensitivity=1), 1, 1.0),
    (lambda: mechanisms.GeometricTruncated(epsilon=1.0, sensitivity=1, lower=0, upper=9), 1, 1.0),
]


@pytest.mark.parametrize(
    ("make", "step", "loss"), MECHANISMS, ids=[make().__class__.__name__ for make, _, _ in MECHANISMS]
)
def test_each_mechanism_declares_its_loss(make, step, loss):
    def run(value):
        return float(make().randomise(value))

    assert replay(run, 3 * step, 4 * step, claim=1.0).loss.worst == pytest.approx(loss)
    result = replay(run, 3 * step, 5 * step, claim=1.0)
    assert [finding.kind for finding in result.findings] == [FindingKind.BEYOND_SENSITIVITY]


def test_choices_have_exact_losses():
    def choose(utility, candidates=None):
        return mechanisms.Exponential(
            epsilon=1.0, sensitivity=1.0, utility=list(utility), candidates=candidates
        ).randomise()

    (call,) = replay(choose, [0.0, 1.0, 0.5], [1.0, 0.0, 0.5], claim=1.0).calls
    weights = np.exp(0.5 * np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5]]))
    logs = np.log(weights / weights.sum(axis=1, keepdims=True))
    assert call.worst_loss == pytest.approx(np.max(np.abs(logs[0] - logs[1])))
    assert call.realised_loss == pytest.approx(logs[0][call.value] - logs[1][call.value])
    named = replay(lambda utility: choose(utility, ["a", "b", "c"]), [0.0, 1.0, 0.5], [1.0, 0.0, 0.5])
    assert named.output_on_x == "abc"[named.calls[0].value] == named.output_on_y
    (call,) = replay(lambda bit: mechanisms.Binary(epsilon=1.0, value0="0", value1="1").randomise(bit), "0", "1").calls
    assert call.worst_loss == pytest.approx(1.0)
    flip = replay(
        lambda u: mechanisms.PermuteAndFlip(epsilon=1.0, sensitivity=1.0, utility=list(u)).randomise(), [0, 1], [1, 0]
    )
    assert flip.calls[0].worst_loss == pytest.approx(np.log(2.0 * np.exp(0.5) - 1.0))  # exact, below the promised 1


def test_gaussian_noise_is_judged_by_its_own_claim():
    def run(value):
        return mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-3, sensitivity=1.0).randomise(value)

    assert replay(run, 3.0, 4.0, claim=(1.0, 1.001e-3)).verdict is ReplayVerdict.BOUNDED
    assert replay(run, 3.0, 4.0, claim=(1.0, 0.99e-3)).has_excess


def test_an_unseeded_mechanism_is_recorded_too():
    """Its entropy is the operating system's."""
    result = replay(lambda rows: tools.mean(rows, epsilon=1.0, bounds=(0.0, 1.0)), [0.0, 1.0], [0.0, 0.0], claim=1.0)
    assert result.verdict is ReplayVerdict.BOUNDED
