"""Mechanisms, tools and models of diffprivlib: claims are read, correct ones hold, and noise is reproducible."""

import functools
import math

import cloudpickle
import numpy as np
import pytest

from dpaudit import ApproxDP, Local, PureDP, Replace, Verdict, check
from dpaudit.audit.errors import AdjacencyError, ClaimError, DatasetError, MechanismError, OptionError
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.domains import Within
from dpaudit.mechanisms.adapters import from_diffprivlib, from_diffprivlib_tool
from dpaudit.mechanisms.adapters.diffprivlib import _are_doubles

try:
    from diffprivlib import mechanisms, models, tools
    from diffprivlib.mechanisms import transforms
except ImportError as error:  # absent, or installed with an incompatible scikit-learn
    needs_diffprivlib = pytest.mark.skipif(True, reason=f"diffprivlib cannot be imported: {error}")
    mechanisms = models = tools = transforms = None
else:
    needs_diffprivlib = pytest.mark.skipif(False, reason="")

STEP = Within("l1", 1.0)


def laplace(**options):
    return mechanisms.Laplace(**{"epsilon": 1.0, "sensitivity": 1.0, **options})


def choose(utilities, epsilon=1.0):
    return mechanisms.Exponential(epsilon=epsilon, sensitivity=1.0, utility=list(utilities))


def draw(adapter, dataset=0.0, size=50, seed=1):
    return as_sampler(adapter).draw(dataset, size, np.random.default_rng(seed)).tolist()


def audit(adapter, x, y, claim=None, **options):
    options = {"alpha": 1e-6, "runs": 10_000, "jobs": 1, "floating_point": "ignore", **options}
    return check(adapter, x, y, claim=claim or adapter.claim, adjacency=adapter.adjacency, **options)


@needs_diffprivlib
@pytest.mark.parametrize(
    ("make", "claim", "said"),
    [
        (laplace, PureDP(1.0), "epsilon of Laplace, diffprivlib "),
        (lambda: laplace(delta=0.1), ApproxDP(1.0, 0.1), "epsilon and delta of Laplace, diffprivlib "),
        (
            lambda: mechanisms.Uniform(delta=0.1, sensitivity=1.0),
            ApproxDP(0.0, 0.1, bound_on="delta"),
            "epsilon and delta of Uniform, ",
        ),
        (
            lambda: transforms.IntToString(mechanisms.Binary(epsilon=0.5, value0="0", value1="1")),
            PureDP(0.5),
            "epsilon of Binary, ",
        ),
    ],
)
def test_claims_are_read_from_the_object(make, claim, said):
    adapter = from_diffprivlib(make(), adjacency=STEP)
    assert adapter.claim == claim
    assert adapter.claim_source.startswith(said)
    assert adapter.adjacency == STEP


@needs_diffprivlib
@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: from_diffprivlib(laplace(sensitivity=2)), AdjacencyError, r'use adjacency=Within\("l1", 2\), as its'),
        (
            lambda: from_diffprivlib(mechanisms.Binary(epsilon=1, value0="a", value1="b")),
            AdjacencyError,
            r"use adjacency=Local\(\)",
        ),
        (lambda: from_diffprivlib(laplace(), query=len), AdjacencyError, r"AddRemove\(\) or Replace\(\) for rows"),
        (lambda: from_diffprivlib(mechanisms.Laplace, adjacency=STEP), MechanismError, "is not a mechanism"),
        (lambda: from_diffprivlib(choose, adjacency=STEP), ClaimError, "example=None: a function has no epsilon"),
        (lambda: from_diffprivlib(len, adjacency=STEP, example=[1]), MechanismError, "returned int for the example"),
        (lambda: from_diffprivlib(laplace(epsilon=math.inf), adjacency=STEP), ClaimError, "epsilon=inf is not allowed"),
        (lambda: from_diffprivlib_tool(tools.mean, adjacency=Replace()), ClaimError, "example=None: mean states"),
        (lambda: from_diffprivlib_tool(tools.mean, example=[1], bounds=(0, 1)), AdjacencyError, r"Replace\(\), or"),
        (lambda: from_diffprivlib_tool(models.PCA, example=[1]), MechanismError, "output=None does not say which part"),
    ],
)
def test_what_is_missing_is_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@needs_diffprivlib
@pytest.mark.parametrize("random_state", [None, 7])
def test_noise_follows_the_audits_generator(random_state):
    mechanism = laplace(random_state=random_state)
    adapter = from_diffprivlib(mechanism, adjacency=STEP)
    assert draw(adapter) == draw(adapter)
    assert draw(adapter) != draw(adapter, seed=2)
    assert draw(cloudpickle.loads(cloudpickle.dumps(adapter))) == draw(adapter)
    own = from_diffprivlib(mechanism, adjacency=STEP, seeded=False)
    assert draw(own) != draw(own)
    assert mechanism.random_state is random_state
    assert isinstance(mechanism.randomise(0.0), float)  # the user's object keeps its own generator


@needs_diffprivlib
def test_mechanisms_inside_transformers_are_seeded_too():
    inner = mechanisms.Binary(epsilon=1.0, value0="0", value1="1")
    adapter = from_diffprivlib(transforms.IntToString(inner), adjacency=Local())
    assert draw(adapter, 0) == draw(adapter, 0) != draw(adapter, 0, seed=2)
    assert set(draw(adapter, 0)) == {0, 1}
    for kind in (mechanisms.Bingham, mechanisms.Staircase):  # their generator is not the system's entropy
        own = from_diffprivlib(kind(epsilon=1.0, sensitivity=1.0), adjacency=STEP, seeded=False)
        value = np.eye(2) if kind is mechanisms.Bingham else 0.0
        assert draw(own, value, 3) != draw(own, value, 3)


CORRECT = {
    "laplace": (laplace, {}, 0.0, 1.0),
    "own entropy": (laplace, {"seeded": False}, 0.0, 1.0),
    "exponential": (lambda: choose, {"adjacency": Within("linf"), "example": [0.0]}, [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]),
    "query": (
        lambda: mechanisms.Geometric(epsilon=1.0),
        {"adjacency": Replace(), "query": lambda rows: int(sum(rows)), "output": lambda noisy: min(noisy, 5)},
        [1, 0],
        [1, 1],
    ),
}


@needs_diffprivlib
@pytest.mark.parametrize("case", CORRECT)
def test_correct_mechanisms_keep_their_claim_and_break_half_of_it(case):
    make, options, x, y = CORRECT[case]
    adapter = from_diffprivlib(make(), **{"adjacency": STEP, **options})
    result = audit(adapter, x, y)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.is_reproducible == options.get("seeded", True)
    assert audit(adapter, x, y, adapter.claim.with_parameter(adapter.claim.parameter / 2)).is_refuted


@needs_diffprivlib
def test_the_object_at_hand_is_audited_and_not_one_made_anew():
    mechanism = mechanisms.GaussianAnalytic(epsilon=1.0, delta=0.01, sensitivity=1.0)
    adapter = from_diffprivlib(mechanism, adjacency=STEP)
    mechanism._scale *= 0.01
    assert not audit(adapter, 0.0, 1.0).is_refuted  # the audit copied the mechanism
    assert audit(from_diffprivlib(mechanism, adjacency=STEP), 0.0, 1.0).is_refuted


@needs_diffprivlib
def test_exceptions_are_outputs_and_mistakes_are_errors():
    """A dataset that a mechanism always rejects is outside its claim and refutes nothing. A dataset that it rejects
    sometimes is inside, and so is every dataset of a tool, because an adversary sees its rejections."""
    adapter = from_diffprivlib(mechanisms.Binary(epsilon=1.0, value0="a", value1="b"), adjacency=Local())
    for size in (1, 50):
        with pytest.raises(DatasetError, match=r"'c' is outside the domain of diffprivlib Binary \(Value to be .*no "):
            draw(adapter, "c", size)
    with pytest.raises(DatasetError, match="no claim covers it"):
        audit(adapter, "a", "c")
    with pytest.raises(MechanismError, match=r"TypeError.* must be a string"):
        draw(adapter, 3)

    def fail(noisy):
        raise ValueError

    refusing = from_diffprivlib(laplace(), adjacency=STEP, output=lambda noisy: fail(noisy) if noisy > 0 else 0)
    assert audit(refusing, 0.0, 50.0, distance=50, claim=PureDP(0.1)).is_refuted
    mean = from_diffprivlib_tool(
        lambda rows, **options: fail(rows) if 1.0 in rows else tools.mean(rows, bounds=(0, 1), **options),
        example=[0.0],
        adjacency=Replace(),
        epsilon=1.0,
    )
    assert audit(mean, [0.0], [1.0], runs=2_000).is_refuted


@needs_diffprivlib
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"random_state": 3}, OptionError, "random_state=3 is set by the audit: it seeds every run"),
        ({"accountant": None}, OptionError, "accountant=None is set by the audit: every run has its own"),
        ({"epsilon": -1.0}, ClaimError, "mean raised ValueError on the example .*Epsilon must be non-negative"),
        ({"epsilon": "1"}, MechanismError, "mean raised TypeError on the example .*numeric"),
    ],
)
def test_options_of_a_tool_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        from_diffprivlib_tool(tools.mean, example=[0.0], adjacency=Replace(), bounds=(0, 1), **options)


@needs_diffprivlib
def test_a_model_is_given_as_its_class():
    for model in (models.LinearRegression(), functools.partial(models.LinearRegression, epsilon=1.0)):
        with pytest.raises(MechanismError, match="is neither a function nor a class of models; pass the class itself"):
            from_diffprivlib_tool(model, example=[(0.0, 1.0)], adjacency=Replace(), output=lambda fit: fit.coef_)
    half = functools.partial(tools.mean, bounds=(0, 1))
    assert from_diffprivlib_tool(half, example=[0.0], adjacency=Replace(), epsilon=0.5).claim == PureDP(0.5)


@needs_diffprivlib
def test_a_tool_that_charges_nothing_claims_nothing():
    def unaccounted(rows, *, accountant, **options):
        return tools.mean(rows, bounds=(0, 1), **options)

    with pytest.raises(
        ClaimError, match=r"nothing was charged when unaccounted ran on the example.*pass accountant= on"
    ):
        from_diffprivlib_tool(unaccounted, example=[0.0], adjacency=Replace(), epsilon=1.0)


@needs_diffprivlib
def test_a_claim_that_depends_on_the_data_is_an_error():
    adapter = from_diffprivlib(lambda u: choose(u, epsilon=len(u)), example=[0.0], adjacency=Within("linf"))
    with pytest.raises(ClaimError, match="the mechanism made for a dataset claims 2-DP, the example's 1-DP"):
        draw(adapter, [0.0, 1.0])
    mean = from_diffprivlib_tool(
        lambda rows, epsilon, **rest: tools.mean(rows, epsilon=epsilon * len(rows), bounds=(0, 1), **rest),
        example=[0.0],
        adjacency=Replace(),
        epsilon=0.5,
    )
    assert mean.claim == PureDP(0.5)
    with pytest.raises(ClaimError, match=r"spent 1-DP on a dataset, and 0\.5-DP on the example"):
        draw(mean, [0.0, 1.0])


@needs_diffprivlib
def test_tools_have_the_claim_of_their_accountant():
    mean = from_diffprivlib_tool(tools.mean, example=[0.0, 1.0], adjacency=Replace(), epsilon=2.0, bounds=(0, 1))
    assert mean.claim == PureDP(2.0)
    assert mean.claim_source.startswith("BudgetAccountant().total() after mean, diffprivlib ")
    assert draw(mean, [0.0, 1.0]) == draw(mean, [0.0, 1.0]) != draw(mean, [0.0, 1.0], seed=2)
    own = from_diffprivlib_tool(
        tools.mean, example=[0.0], adjacency=Replace(), seeded=False, epsilon=1.0, bounds=(0, 1)
    )
    assert draw(own, [0.5]) != draw(own, [0.5])


@needs_diffprivlib
def test_models_are_fitted_with_and_without_a_target():
    rows = [(0.2, 0.5), (1.0, 1.0)]
    scaler = from_diffprivlib_tool(
        models.StandardScaler, example=rows, adjacency=Replace(), output=lambda model: model.mean_, bounds=(0, 1)
    )
    assert np.shape(draw(scaler, rows, 3)) == (3, 2)
    assert np.shape(draw(regression(bounds_X=(-1, 1)), rows, 3)) == (3, 1)


def regression(**options):
    options = {"epsilon": 1.0, "bounds_y": (0, 1), "fit_intercept": False, **options}
    rows = [(0.2, 0.5), (1.0, 1.0)]
    return from_diffprivlib_tool(
        models.LinearRegression, example=rows, adjacency=Replace(), output=lambda model: model.coef_, **options
    )


def test_probabilities_that_no_double_holds_are_not_compared():
    """exp(-744) and exp(-746) are the smallest double and 0, whose quotient is infinite; the coins have no such end."""
    assert _are_doubles(np.array([0.0, -700.0, -np.inf]))
    assert not _are_doubles(np.array([0.0, -744.0]))
    assert not _are_doubles(np.array([0.0, -746.0]))
