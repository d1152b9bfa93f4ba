"""Replays of mechanisms by hand: what is found at which line, and with which loss."""

from __future__ import annotations

import inspect
import math
import os
import random
import secrets
import threading

import numpy as np
import pytest
from scipy import stats

from dpaudit import AddRemove, ApproxDP, GaussianDP, PureDP, ReplayResult, ZeroConcentratedDP, noise_primitive, replay
from dpaudit.audit.errors import AdjacencyError, ExcessError, MechanismError, OptionError
from dpaudit.audit.replay.replay_result import ReplayVerdict
from dpaudit.audit.replay.replayed_call import FindingKind
from dpaudit.audit.replay.tape import active_tape

X, Y = [1.0, 5.0], [1.0]


def run(mechanism, x=X, y=Y, claim=1.0, **options) -> ReplayResult:
    return replay(mechanism, x, y, claim=claim, **options)


def clipped(rows, high):
    return float(np.clip(rows, 0.0, high).sum())


def kinds(result):
    return [finding.kind for finding in result.findings]


def test_an_input_that_moves_too_far_is_found_at_its_line():
    def handed(rows, rng):
        return rng.laplace(clipped(rows, 2.0), 1.0)

    result = run(handed, adjacency="add-remove")
    (call,) = result.calls
    assert (call.moved, call.worst_loss, call.realised_loss is not None) == (2.0, 2.0, True)
    assert result.verdict is ReplayVerdict.EXCESS
    assert kinds(result) == [FindingKind.LOSS_ABOVE_CLAIM]
    place = result.findings[0].place
    assert (place.file, place.function) == (__file__, "handed")
    assert place.line == inspect.getsourcelines(handed)[1] + 1
    assert f"{os.path.basename(__file__)}:{place.line} in handed" in str(result)
    assert "REFUTED" not in str(result)


def test_a_right_mechanism_is_bounded_by_its_exact_loss():
    result = run(lambda rows, rng: rng.laplace(clipped(rows, 1.0), 1.0))
    assert result.verdict is ReplayVerdict.BOUNDED
    assert result.findings == result.open_reasons == ()
    assert result.loss.worst == result.loss.epsilon == 1.0
    assert run(lambda rows, rng: rng.laplace(clipped(rows, 1.0), 1.0), claim=0.999).has_excess


@pytest.mark.parametrize(
    ("draw", "worst"),
    [
        (lambda rng, at: rng.laplace(at, 2.0), 2.0),
        (lambda rng, at: rng.logistic(at, 2.0), 2.0),
        (lambda rng, at: rng.gumbel(at, 2.0), math.inf),
        (lambda rng, at: rng.uniform(at, at + 9.0), math.inf),
        (lambda rng, at: rng.poisson(at), math.inf),
        (lambda rng, at: rng.exponential(at), math.inf),
        (lambda rng, at: rng.geometric(1.0 / (1.0 + at)), math.inf),
        (lambda rng, at: rng.binomial(3, at / 10.0), 3 * math.log(6.0)),
        (lambda rng, at: rng.choice(2, p=[at / 10.0, 1.0 - at / 10.0]), math.log(6.0)),
        (lambda rng, at: rng.laplace(at, 2.0, size=3), 6.0),
        (lambda rng, at: rng.laplace([at, 0.0], [2.0, 1.0]), 2.0),
        (lambda rng, at: stats.laplace.rvs(at, 2.0, random_state=rng), 2.0),
        (lambda rng, at: stats.dlaplace(0.5, loc=int(at)).rvs(), 2.0),
    ],
)
def test_the_loss_of_each_law(draw, worst):
    """The location, rate or weight is 6 on x and 2 on y, or 6 in 10 and 1 in 10."""
    low = 1.0 if abs(worst - math.log(6.0)) < 1e-9 or abs(worst - 3 * math.log(6.0)) < 1e-9 else 2.0
    (call,) = run(lambda at, rng: draw(rng, at), 6.0, low).calls
    assert call.worst_loss == pytest.approx(worst, rel=1e-12)
    value = np.asarray(call.value)
    if call.law_on_x.name == "discrete":
        densities = [law.parameters["probabilities"][call.value] for law in (call.law_on_x, call.law_on_y)]
    else:
        law = {
            "laplace": lambda p: stats.laplace(p["location"], p["scale"]).pdf,
            "logistic": lambda p: stats.logistic(p["location"], p["scale"]).pdf,
            "gumbel": lambda p: stats.gumbel_r(p["location"], p["scale"]).pdf,
            "uniform": lambda p: stats.uniform(p["low"], p["high"] - p["low"]).pdf,
            "poisson": lambda p: stats.poisson(p["rate"]).pmf,
            "exponential": lambda p: stats.expon(0.0, p["scale"]).pdf,
            "geometric": lambda p: stats.geom(p["p"]).pmf,
            "binomial": lambda p: stats.binom(p["n"], p["p"]).pmf,
            "two-sided geometric": lambda p: stats.dlaplace(0.5, loc=p["location"]).pmf,
        }[call.law_on_x.name]
        densities = [np.prod(law(side.parameters)(value)) for side in (call.law_on_x, call.law_on_y)]
    with np.errstate(divide="ignore"):
        assert call.realised_loss == pytest.approx(float(np.log(densities[0]) - np.log(densities[1])), abs=1e-9)


def test_gaussian_noise_has_mu_and_is_judged_by_the_claim():
    def noisy(rows, rng):
        return rng.normal(clipped(rows, 1.0), 2.0)

    assert run(noisy, claim=GaussianDP(0.5)).verdict is ReplayVerdict.BOUNDED
    assert run(noisy, claim=GaussianDP(0.49)).verdict is ReplayVerdict.EXCESS
    assert run(noisy, claim=ZeroConcentratedDP(0.125)).verdict is ReplayVerdict.BOUNDED
    assert run(noisy, claim=PureDP(50.0)).verdict is ReplayVerdict.EXCESS
    result = run(noisy, claim=ApproxDP(1.0, 1e-5))
    assert result.calls[0].mu == 0.5
    needed = GaussianDP(0.5)
    delta = stats.norm.cdf(-2.0 + 0.25) - math.e * stats.norm.cdf(-2.0 - 0.25)  # of μ = ½ at ε = 1
    assert result.has_excess
    assert run(noisy, claim=ApproxDP(1.0, delta * 1.001)).verdict is ReplayVerdict.BOUNDED
    assert run(noisy, claim=ApproxDP(1.0, delta * 0.98)).has_excess
    assert needed.mu == result.loss.mu


def test_two_calls_add_up():
    def twice(rows, rng):
        return rng.laplace(clipped(rows, 1.0), 1.0), rng.laplace(len(rows), 1.0)

    assert run(twice, claim=2.0).verdict is ReplayVerdict.BOUNDED
    result = run(twice, claim=1.5)
    assert kinds(result) == [FindingKind.SUM_ABOVE_CLAIM]
    assert result.loss.worst == 2.0
    assert result.loss.realised == pytest.approx(sum(call.realised_loss for call in result.calls))

    def squares(rows, rng):
        return rng.normal(clipped(rows, 1.0), 1.0), rng.normal(len(rows), 1.0)

    assert run(squares, claim=GaussianDP(1.4)).has_excess
    assert run(squares, claim=GaussianDP(1.42)).verdict is ReplayVerdict.BOUNDED

    def mixed(rows, rng):
        return rng.normal(clipped(rows, 1.0), 1.0), rng.laplace(len(rows), 1.0)

    assert run(mixed, claim=ApproxDP(3.0, 0.1)).verdict is ReplayVerdict.BOUNDED
    assert run(mixed, claim=ApproxDP(1.5, 1e-9)).verdict is ReplayVerdict.EXCESS  # of the normal draw alone


def test_a_value_fed_back_is_the_same_on_both():
    """The second query asks for what the first answer chose: its location moves by what the data move."""

    def adaptive(rows, rng):
        first = rng.laplace(len(rows), 1.0)
        return first, rng.laplace(first * sum(rows), abs(first))

    result = run(adaptive, claim=5.0)
    assert result.calls[1].moved == pytest.approx(abs(result.calls[0].value) * 5.0)
    assert result.loss.worst == pytest.approx(6.0)
    assert kinds(result) == [FindingKind.SUM_ABOVE_CLAIM]


def test_a_scale_that_depends_on_the_data():
    def scaled(rows, rng):
        return rng.laplace(0.0, len(rows))

    result = run(scaled)
    assert kinds(result) == [FindingKind.SCALE_DIFFERS]
    assert result.calls[0].worst_loss == math.inf
    value = result.calls[0].value
    assert result.loss.realised == pytest.approx(-math.log(2.0) + abs(value) / 2.0)
    assert run(lambda rows, rng: rng.laplace(0.0, 1.0 + 1e-13 * len(rows))).findings == ()


@pytest.mark.parametrize("claim", [1.0, None])
def test_a_number_of_calls_that_depends_on_the_data(claim):
    def each(rows, rng):
        return sum(rng.laplace(row, 5.0) for row in rows)

    result = run(each, claim=claim)
    assert kinds(result) == [FindingKind.CALLS_DIFFER]
    assert "2 calls on x and 1 on y" in str(result)
    assert result.verdict is ReplayVerdict.OPEN
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(result)


def test_other_lines_other_laws_and_other_shapes():
    def lines(rows, rng):
        if len(rows) > 1:
            return rng.laplace(len(rows), 1.0)
        return rng.laplace(len(rows), 1.0)

    def laws(rows, rng):
        return getattr(rng, "laplace" if len(rows) > 1 else "normal")(len(rows), 1.0)

    assert kinds(run(lines)) == [FindingKind.CALLS_DIFFER]
    result = run(laws)
    assert kinds(result) == [FindingKind.LAW_DIFFERS]
    value = result.calls[0].value
    expected = stats.laplace(2.0, 1.0).logpdf(value) - stats.norm(1.0, 1.0).logpdf(value)
    assert result.findings[0].loss == pytest.approx(expected)
    assert kinds(run(lambda rows, rng: rng.laplace(rows, 9.0))) == [FindingKind.CALLS_DIFFER]
    assert kinds(run(lambda rows, rng: int(rng.laplace(1.0, 9.0)) // (len(rows) - 1))) == [FindingKind.RAISES]


def test_noise_added_outside_of_its_primitive():
    def one(rows, rng):
        return clipped(rows, 2.0) + 3.0 * rng.laplace(scale=0.5)

    result = run(one)
    assert result.calls[0].is_inferred
    assert result.calls[0].worst_loss == pytest.approx(2.0 / 1.5)
    assert result.output_moved == pytest.approx(2.0)
    value = result.calls[0].value
    assert result.loss.realised == pytest.approx((abs(value + 2.0 / 3.0) - abs(value)) / 0.5)
    assert run(one, claim=1.34).verdict is ReplayVerdict.BOUNDED

    def vector(rows, size, rng):
        return np.array([[len(rows), 0.0, 7.0]]) + rng.laplace(scale=2.0, size=(size, 3))

    assert run(vector).loss.worst == pytest.approx(0.5)
    assert run(lambda rows, rng: np.ones(50) * len(rows) + rng.normal(size=50)).loss.mu == pytest.approx(50**0.5)

    def scaled(rows, rng):
        return len(rows) * (1.0 + rng.laplace())

    assert kinds(run(scaled)) == [FindingKind.SCALE_DIFFERS]
    assert kinds(run(lambda rows, rng: 5.0 + rng.normal() * len(rows), claim=ApproxDP(1.0, 1e-6))) == [
        FindingKind.SCALE_DIFFERS
    ]


def test_noise_that_decides_something_is_left_open():
    def best(rows, rng):
        return int(np.argmax(np.array([sum(rows), 3.0]) + rng.laplace(size=2)))

    def twice(rows, rng):
        return sum(rows) + rng.laplace() + rng.laplace()

    for mechanism in (
        best,
        twice,
        lambda rows, rng: rng.random() < sum(rows) / 9.0,
        lambda rows, rng: rng.exponential(),
    ):
        result = run(mechanism)
        assert result.verdict is ReplayVerdict.OPEN
        assert "not handed what the noise is for" in str(result)


def test_what_is_released_without_noise():
    assert kinds(run(lambda rows, rng: len(rows))) == [FindingKind.WITHOUT_NOISE]
    result = run(lambda rows, rng: (sum(rows) + 9.0 * rng.laplace(), len(rows)))
    assert kinds(result) == [FindingKind.WITHOUT_NOISE]
    assert "coordinate 1 of the output moved by 1" in str(result)
    assert result.findings[0].loss == math.inf
    assert not run(lambda rows, rng: 7).findings
    with pytest.raises(ExcessError, match="EXCESS"):
        result.raise_if_excess()


@pytest.mark.parametrize(
    "draw",
    [lambda: int.from_bytes(os.urandom(4), "big"), lambda: secrets.token_bytes(4)[0], lambda: secrets.randbits(1)],
)
def test_unrecorded_randomness_is_noticed(draw):
    result = run(lambda rows, rng: rng.laplace(len(rows), 1.0) + draw())
    assert result.unrecorded
    assert result.verdict is ReplayVerdict.OPEN
    assert "unrecorded" in str(result)


def test_state_kept_between_runs_is_noticed():
    seen = []

    def counted(rows, rng):
        seen.append(1)
        return rng.laplace(len(rows), 1.0) + len(seen)

    assert run(counted).unrecorded
    own = np.random.default_rng(1)
    assert run(lambda rows: own.laplace(len(rows), 1.0)).unrecorded


def test_other_threads_go_on_and_are_counted():
    drawn = []

    def threaded(rows, rng):
        other = threading.Thread(target=lambda: drawn.append(np.random.laplace()))  # noqa: NPY002
        other.start()
        other.join()
        return rng.laplace(len(rows), 1.0)

    result = run(threaded)
    assert result.unrecorded
    assert "another thread made 1 random call" in str(result)
    assert len(set(drawn)) == len(drawn) == result.runs


@pytest.mark.parametrize(
    "seeded",
    [
        lambda rows: np.random.default_rng(len(rows)).laplace(len(rows)),
        lambda rows: np.random.RandomState(len(rows)).laplace(len(rows)),
        lambda rows: (np.random.seed(len(rows)), np.random.laplace(len(rows)))[1],  # noqa: NPY002
        lambda rows: (random.seed(len(rows)), random.gauss(len(rows), 1))[1],
    ],
)
def test_seeds_from_the_data_are_named(seeded):
    result = run(seeded)
    assert kinds(result)[-1] is FindingKind.SEED_DIFFERS
    assert "seeded with 2 on x and 1 on y" in str(result)
    assert FindingKind.SEED_DIFFERS not in kinds(run(lambda rows: np.random.default_rng(3).laplace(len(rows))))


SOURCES = [np.random.laplace, np.random.default_rng, np.random.RandomState, random.gauss, random.Random.gauss]


def patches_are_undone():
    now = [np.random.laplace, np.random.default_rng, np.random.RandomState, random.gauss, random.Random.gauss]
    assert all(a is b for a, b in zip(now, SOURCES, strict=True))
    assert "getrandbits" not in vars(random.Random)
    assert "random" not in vars(random.Random)
    assert active_tape() is None
    return True


def test_patches_are_undone_whatever_happens():
    def interrupted(rows, rng):
        rng.laplace()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted)
    assert patches_are_undone()
    with pytest.raises(MechanismError, match="raises on both datasets: ZeroDivisionError"):
        run(lambda rows, rng: rng.laplace() / 0)
    assert patches_are_undone()
    state = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    run(lambda rows: np.random.laplace(len(rows)) + random.gauss(0, 1))  # noqa: NPY002
    assert (np.random.get_state()[1].tolist(), random.getstate()) == state  # noqa: NPY002
    assert patches_are_undone()


def test_nested_replays_are_refused():
    with pytest.raises(MechanismError, match="another replay is recording"):
        run(lambda rows, rng: str(run(lambda rows, rng: rng.laplace(len(rows)))))
    assert patches_are_undone()
    assert run(lambda rows, rng: rng.laplace(len(rows))).verdict is ReplayVerdict.BOUNDED


@pytest.mark.parametrize(
    "draw",
    [
        lambda at: np.random.laplace(at, 2.0),  # noqa: NPY002
        lambda at: np.random.default_rng().laplace(at, 2.0),
        lambda at: np.random.default_rng(5).laplace(at, 2.0),
        lambda at: np.random.Generator(np.random.PCG64(3)).laplace(at, 2.0),
        lambda at: np.random.RandomState(4).laplace(at, 2.0),
        lambda at: stats.laplace.rvs(at, 2.0),
        lambda at: stats.laplace(at, 2.0).rvs(random_state=3),
        lambda at: stats.laplace(at, 2.0).rvs(size=(1,))[0],
        lambda at: random.Random(3).gauss(at, 2.0),
        lambda at: random.normalvariate(at, 2.0),
        lambda at: secrets.SystemRandom().gauss(at, 2.0),
    ],
)
def test_every_source_is_recorded(draw):
    result = run(lambda rows: draw(len(rows)))
    assert not result.unrecorded
    assert result.calls[0].moved == 1.0
    assert result.calls[0].place.function == "<lambda>"
    assert max(result.loss.epsilon, result.loss.mu) == 0.5


def test_in_place_draws_choices_and_orders_are_put_back():
    def draws(rows, rng):
        out = np.empty(3)
        rng.standard_exponential(out=out)
        order = list(rows)
        rng.shuffle(order)
        mixed = rng.permutation(np.arange(8.0))
        random.shuffle(order)
        held = rng.choice(["a", "b", "c"], size=2), random.choice("abc"), random.choices("abc", [1, 2, 3], k=2)
        return out.tolist(), order, mixed.tolist(), [str(each) for each in held], random.sample(range(99), 3)

    result = run(draws, [1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    assert not result.unrecorded
    assert {1.0, 2.0} < set(result.output_on_x[1])
    assert [4.0 if row == 3.0 else row for row in result.output_on_x[1]] == result.output_on_y[1]
    for part in (0, 2, 3, 4):
        assert result.output_on_x[part] == result.output_on_y[part]
    assert result.verdict is ReplayVerdict.OPEN


def test_a_decorated_function_is_one_call():
    @noise_primitive("laplace", location="answer", scale="b", sensitivity="bound", epsilon=0.5)
    def own(answer, b, bound=1.0):
        return answer + b * (np.random.default_rng().exponential() - np.random.default_rng().exponential())

    assert isinstance(own(1.0, 2.0), float)
    result = run(lambda rows: own(sum(rows), 2.0), claim=9.0)
    (call,) = result.calls
    assert (call.primitive.rpartition(".")[2], call.moved, call.sensitivity, call.worst_loss) == ("own", 5.0, 1.0, 2.5)
    assert kinds(result) == [FindingKind.BEYOND_SENSITIVITY]
    assert "the input of" in str(result)
    assert run(lambda rows: own(sum(rows), 2.0, 5.0), claim=9.0).verdict is ReplayVerdict.BOUNDED


@pytest.mark.parametrize(
    ("law", "parameters", "message"),
    [
        ("laplac", {"location": "a", "scale": 1.0}, "did you mean 'laplace'"),
        ("laplace", {"location": "a"}, "has the parameters location, scale"),
        ("laplace", {"location": "answer", "scale": 1.0}, "'answer' is not an argument of f"),
    ],
)
def test_a_wrong_decoration_is_refused(law, parameters, message):
    def f(a):
        return a

    with pytest.raises(OptionError, match=message):
        noise_primitive(law, **parameters)(f)


def test_options():
    noisy = lambda rows, rng: {"mean": rng.laplace(len(rows)), "other": object()}  # noqa: E731
    assert "cannot be compared" in str(run(noisy))
    assert run(noisy, output="mean").verdict is ReplayVerdict.BOUNDED
    assert run(lambda rows: np.random.laplace(len(rows)), primitives=["random"]).unrecorded  # noqa: NPY002
    assert run(lambda rows, rng: rng.laplace(len(rows)), primitives=[]).verdict is ReplayVerdict.BOUNDED
    with pytest.raises(OptionError, match="did you mean 'numpy'"):
        run(noisy, primitives="nunpy")
    with pytest.raises(OptionError, match="seed=-1"):
        run(noisy, seed=-1)
    with pytest.raises(AdjacencyError, match="distance 2"):
        run(noisy, [1.0, 2.0, 3.0], [1.0], adjacency=AddRemove())
    seeds = {run(lambda rows, rng: rng.laplace(len(rows)), seed=seed).calls[0].value for seed in (0, 0, 1, None)}
    assert len(seeds) == 3


def test_without_a_claim_the_loss_is_stated():
    result = replay(lambda rows, rng: rng.laplace(sum(rows), 2.0), X, Y)
    assert result.verdict is ReplayVerdict.OPEN
    assert "no claim given; loss at most 2.5" in str(result)
    assert "moved 5" in result.table()
