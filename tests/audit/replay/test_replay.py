"""Replays of mechanisms by hand: what is found at which line, and with which loss."""

import inspect
import itertools
import json
import math
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpaudit import AddRemove, ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP, noise_primitive, replay
from dpaudit.audit.errors import AdjacencyError, ExcessError, MechanismError, OptionError
from dpaudit.audit.replay.replay_result import FindingKind
from dpaudit.audit.results.verdict import ReplayVerdict
from dpaudit.results import ReplayResult

BOUNDED, EXCESS, UNDETERMINED = ReplayVerdict.BOUNDED, ReplayVerdict.EXCESS, ReplayVerdict.UNDETERMINED
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
    (call,), (finding,) = result.calls, result.findings
    assert (call.moved, call.worst_loss, call.realised_loss is not None) == (2.0, 2.0, True)
    assert (result.verdict, finding.kind) == (EXCESS, FindingKind.LOSS_ABOVE_CLAIM)
    place = finding.place
    assert (place.file, place.function) == (__file__, "handed")
    assert place.line == inspect.getsourcelines(handed)[1] + 1
    assert f"{os.path.basename(__file__)}:{place.line} in handed" in str(result)
    assert "REFUTED" not in str(result)


@pytest.mark.parametrize(
    ("draw", "law", "low", "worst"),
    [
        (lambda rng, at: rng.laplace(at, 2.0), lambda at: stats.laplace(at, 2.0), 2.0, 2.0),
        (lambda rng, at: rng.logistic(at, 2.0), lambda at: stats.logistic(at, 2.0), 2.0, 2.0),
        (lambda rng, at: rng.gumbel(at, 2.0), lambda at: stats.gumbel_r(at, 2.0), 2.0, math.inf),
        (lambda rng, at: rng.uniform(at, at + 9.0), lambda at: stats.uniform(at, 9.0), 2.0, math.inf),
        (lambda rng, at: rng.poisson(at), lambda at: stats.poisson(at), 2.0, math.inf),
        (lambda rng, at: rng.binomial(3, at / 10), lambda at: stats.binom(3, at / 10), 1.0, 3 * math.log(6.0)),
        (
            lambda rng, at: rng.choice(2, p=[at / 10, 1 - at / 10]),
            lambda at: stats.bernoulli(1 - at / 10), 1.0, math.log(6.0),
        ),
        (lambda rng, at: rng.laplace(at, 2.0, size=3), lambda at: stats.laplace(at, 2.0), 2.0, 6.0),
        (
            lambda rng, at: rng.laplace([at, 0.0], [2.0, 1.0]), lambda at: stats.laplace([at, 0.0], [2.0, 1.0]),
            2.0, 2.0,
        ),
        (lambda rng, at: stats.dlaplace(0.5, loc=int(at)).rvs(), lambda at: stats.dlaplace(0.5, loc=at), 2.0, 2.0),
    ],
)  # fmt: skip
def test_the_loss_of_each_distribution(draw, law, low, worst):
    """The location, rate or weight is 6 on x and lower on y."""
    (call,) = run(lambda at, rng: draw(rng, at), 6.0, low).calls
    assert call.worst_loss == pytest.approx(worst, rel=1e-12)
    sides = (law(at) for at in (6.0, low))
    on_x, on_y = (np.sum(getattr(side, "logpdf" if hasattr(side, "pdf") else "logpmf")(call.value)) for side in sides)
    assert call.realised_loss == pytest.approx(on_x - on_y, abs=1e-9)


def noisy_sum(rows, rng, high=1.0):
    return rng.normal(clipped(rows, high), 2.0)


def twice(rows, rng):
    return rng.laplace(clipped(rows, 1.0), 1.0), rng.laplace(len(rows), 1.0)


def squares(rows, rng):
    return rng.normal(clipped(rows, 1.0), 1.0), rng.normal(len(rows), 1.0)


def mixed(rows, rng, scale=1.0):
    return rng.normal(clipped(rows, 1.0), scale), rng.laplace(len(rows), scale)


def excess_delta(epsilon, mu):
    return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(
    ("mechanism", "claim", "least"),
    [
        (noisy_sum, GaussianDP, 0.5),
        (noisy_sum, ZeroConcentratedDP, 0.125),
        (noisy_sum, partial(ApproxDP, 1.0), excess_delta(1.0, 0.5) * (1 + 1e-9)),
        # one event shows only a part of a divergence: the boundary of 1.056-zCDP already allows every event of this mu
        (partial(noisy_sum, high=3.0), ZeroConcentratedDP, 1.125),
        (partial(noisy_sum, high=3.0), partial(RenyiDP, 4.0), 4.5),
        (twice, PureDP, 2.0),
        (squares, GaussianDP, math.sqrt(2.0)),
        (partial(mixed, scale=2.0), ZeroConcentratedDP, 0.25),
        (partial(mixed, scale=2.0), partial(RenyiDP, 2.0), 0.5),
        (partial(mixed, scale=2.0), partial(RenyiDP, 64.0), 8.5),
    ],
)
def test_losses_are_judged_by_the_claim(mechanism, claim, least):
    """Of losses of both kinds together no replay says that they exceed a claim."""
    assert run(mechanism, claim=claim(least)).verdict is BOUNDED
    too_small = run(mechanism, claim=claim(least * 0.99))
    assert too_small.verdict is (UNDETERMINED if getattr(mechanism, "func", None) is mixed else EXCESS)


def test_normal_noise_keeps_no_pure_claim():
    assert run(noisy_sum, claim=PureDP(50.0)).verdict is EXCESS
    assert run(mixed, claim=ApproxDP(1.5, 1e-9)).verdict is EXCESS  # of the normal draw alone
    assert run(mixed, claim=ApproxDP(3.0, 0.1)).verdict is BOUNDED


def test_two_calls_add_up():
    assert run(noisy_sum).loss.mu == run(noisy_sum).calls[0].mu == 0.5
    result = run(twice, claim=1.5)
    assert kinds(result) == [FindingKind.SUM_ABOVE_CLAIM]
    assert result.loss.worst == 2.0
    assert result.loss.realised == pytest.approx(sum(call.realised_loss for call in result.calls))


def test_a_result_as_plain_values():
    def noisy(rows, rng):
        return rng.laplace(clipped(rows, 5.0), 2.0), rng.laplace(0.0)

    found = json.loads(json.dumps(run(noisy).to_dict()))
    assert (found["verdict"], found["claim"], found["loss_epsilon"], found["n_calls"]) == ("excess", "1-DP", 2.5, 2)
    assert [(row["moved"], row["loss"], bool(row["finding"])) for row in found["rows"]] == [
        ("5", "2.5", True),
        ("0", "0", False),
    ]
    assert "rng.laplace(clipped(rows, 5.0), 2.0)" in found["rows"][0]["source"]


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
    result = run(lambda rows, rng: rng.laplace(0.0, len(rows)))
    assert kinds(result) == [FindingKind.SCALE_DIFFERS]
    assert result.calls[0].worst_loss == math.inf
    assert result.calls[0].realised_loss == pytest.approx(-math.log(2.0) + abs(result.calls[0].value) / 2.0)
    assert run(lambda rows, rng: rng.laplace(0.0, 1.0 + 1e-13 * len(rows))).findings == ()


def other_lines(rows, rng):
    if len(rows) > 1:
        return rng.laplace(len(rows), 1.0)
    return rng.laplace(len(rows), 1.0)


@pytest.mark.parametrize(
    ("mechanism", "kind", "words"),
    [
        (lambda rows, rng: sum(rng.laplace(row, 5.0) for row in rows), FindingKind.CALLS_DIFFER, "2 calls on x and 1"),
        (other_lines, FindingKind.CALLS_DIFFER, " on x, "),
        (lambda rows, rng: rng.laplace(rows, 9.0), FindingKind.CALLS_DIFFER, "of shape (2,)"),
        (lambda rows, rng: int(rng.laplace(1.0, 9.0)) // (len(rows) - 1), FindingKind.RAISES, "ZeroDivisionError"),
    ],
)
def test_other_calls(mechanism, kind, words):
    result = run(mechanism)
    assert (kinds(result), result.verdict) == ([kind], UNDETERMINED)
    assert words in str(result)
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(result)


def test_another_distribution():
    result = run(lambda rows, rng: getattr(rng, "laplace" if len(rows) > 1 else "normal")(len(rows), 1.0))
    assert kinds(result) == [FindingKind.DISTRIBUTION_DIFFERS]
    value = result.calls[0].value
    expected = stats.laplace(2.0, 1.0).logpdf(value) - stats.norm(1.0, 1.0).logpdf(value)
    assert result.findings[0].loss == pytest.approx(expected)


def test_noise_added_outside_of_its_primitive():
    def one(rows, rng):
        return clipped(rows, 2.0) + 3.0 * rng.laplace(scale=0.5)

    result = run(one)
    assert "the number that it is added to moved by 0.666667 (in units of the noise as drawn)" in str(result)
    assert result.calls[0].is_inferred
    assert result.calls[0].worst_loss == pytest.approx(2.0 / 1.5)
    assert result.output_moved == pytest.approx(2.0)
    value = result.calls[0].value
    assert result.calls[0].realised_loss == pytest.approx((abs(value + 2.0 / 3.0) - abs(value)) / 0.5)
    assert run(one, claim=1.34).verdict is BOUNDED

    def vector(rows, size, rng):
        return np.array([[len(rows), 0.0, 7.0]]) + rng.laplace(scale=2.0, size=(size, 3))

    assert run(vector).loss.worst == pytest.approx(0.5)
    assert run(lambda rows, rng: np.ones(50) * len(rows) + rng.normal(size=50)).loss.mu == pytest.approx(50**0.5)

    result = run(lambda rows, rng: [len(rows) + rng.laplace(scale=9.0) for _ in range(9)])
    assert result.loss.worst == pytest.approx(1.0)
    many = run(lambda rows, rng: [len(rows) + rng.laplace(scale=99.0) for _ in range(65)])
    assert "more than 64 numbers are drawn" in str(many)
    assert run(lambda rows, rng: [len(rows) / 65 + noise for noise in rng.laplace(size=65)]).verdict is BOUNDED
    assert "given nothing that depends on data" in many.table()

    def scaled(rows, rng):
        return len(rows) * (1.0 + rng.laplace())

    assert kinds(run(scaled)) == [FindingKind.SCALE_DIFFERS]
    assert kinds(run(lambda rows, rng: 5.0 + rng.normal() * len(rows), claim=ApproxDP(1.0, 1e-6))) == [
        FindingKind.SCALE_DIFFERS
    ]


def test_a_vectorised_mechanism_returns_one_output_for_each_run():
    """Its columns may have names; the first of a tuple of columns is not the first run."""

    def columns(rows, size, rng):
        return rng.laplace(size=size), np.full(size, len(rows))

    def named(rows, size, rng):
        return dict(zip("ab", columns(rows, size, rng), strict=True))

    assert run(named).verdict is EXCESS
    with pytest.raises(MechanismError, match="columns returned 2 outputs when asked for 1"):
        run(columns)


def test_what_clips_or_decides_after_the_noise_is_no_excess():
    """The loss is 8 of 10, but the outputs differ and do not change with the noise nearby."""
    x, y = 4.0, -4.0
    for decide in (
        lambda noisy: float(noisy > 0.0),
        lambda noisy: max(noisy, 0.0),
        lambda noisy: 8.0 * round(noisy / 8.0),
        lambda noisy: min(max(noisy, -1.0), 1.0),
    ):
        result = run(lambda at, rng, decide=decide: decide(at + rng.laplace()), x, y, claim=10.0)
        assert result.verdict is UNDETERMINED, str(result)
    result = run(lambda rows, rng: max(clipped(rows, 2.0) + rng.laplace(scale=0.1), 0.0), claim=1.0)
    assert kinds(result) == [FindingKind.NEAR_THE_VALUES]
    assert result.findings[0].loss == pytest.approx(20.0)
    assert not result.has_excess


def test_what_is_released_without_noise():
    assert kinds(run(lambda rows, rng: len(rows))) == [FindingKind.WITHOUT_NOISE]
    result = run(lambda rows, rng: (sum(rows) + 9.0 * rng.laplace(), len(rows)))
    assert kinds(result) == [FindingKind.WITHOUT_NOISE]
    assert "coordinate 1 of the output moved by 1" in str(result)
    assert result.findings[0].loss == math.inf
    assert (result.measured, result.confidence_interval()) == ("infinite worst-case loss", (0.0, math.inf))
    with pytest.raises(AttributeError, match="no attribute 'is_refuted'; did you mean 'has_excess'"):
        assert not result.is_refuted
    assert run(lambda rows, rng: len(rows) + rng.integers(10)).measured == "", "its loss is unknown"
    assert not run(lambda rows, rng: 7).findings
    with pytest.raises(ExcessError, match="EXCESS"):
        result.raise_if_excess()


@pytest.mark.parametrize(
    ("mechanism", "is_excess"),
    [
        (lambda rows, rng: np.array([len(rows), sum(rows)]) + rng.laplace(scale=9.0), True),
        (lambda rows, rng: (z := rng.laplace(sum(rows), 9.0), 2.0 * z + len(rows)), True),  # noise with its location
        (lambda rows, rng: (z := rng.geometric(0.5), [len(rows) + z, 3 * len(rows) + z])[1], False),  # not shifted
        (lambda rows, rng: (z := rng.laplace(), np.clip([len(rows) + z, sum(rows) + z], -99, 99))[1], False),
    ],
)
def test_one_draw_in_two_coordinates(mechanism, is_excess):
    result = run(mechanism, claim=9.0)
    (found,) = result.findings
    assert (found.kind, found.is_excess) == (FindingKind.WITHOUT_NOISE, is_excess)
    assert "coordinates 0, 1 of the output contain the same noise (Generator." in found.message
    assert found.message.endswith("; draw noise for each coordinate")
    assert "no excess" not in str(result)


def test_noise_that_coordinates_share_without_a_loss():
    """Moves that one draw, or two, explain: a combination of the coordinates is without noise, and does not move."""

    def with_total(rows, rng):
        noisy = [len(rows) + rng.laplace(), len(rows) + rng.laplace()]
        return [*noisy, sum(noisy)]

    assert run(with_total, claim=2.0).verdict is BOUNDED
    assert run(lambda rows, rng: (z := rng.laplace() + len(rows), [z, z, z + 1])[1]).verdict is BOUNDED
    powers = run(lambda rows, rng: (v := rng.laplace() + len(rows), [v, v**2, abs(v)])[1])
    assert not powers.findings  # so many coordinates of one draw are not linear in it


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
    assert run(lambda rows: own(sum(rows), 2.0, 5.0), claim=9.0).verdict is BOUNDED
    far = run(lambda rows: own(len(rows), 2.0), [1.0] * 3, [1.0], claim=0.5, adjacency="add-remove", distance=2)
    assert (far.calls[0].moved, far.has_excess) == (2.0, False)


@pytest.mark.parametrize(
    ("distribution", "parameters", "message"),
    [
        ("laplac", {"location": "a", "scale": 1.0}, "did you mean 'laplace'"),
        ("laplace", {"location": "answer", "scale": 1.0}, "'answer' is not an argument of f"),
        ("Gaussian", {"location": "a", "scale": 1.0}, "its name here is 'normal'"),
    ],
)
def test_a_wrong_decoration_is_refused(distribution, parameters, message):
    def f(a):
        return a

    with pytest.raises(OptionError, match=message):
        noise_primitive(distribution, **parameters)(f)


def test_options():
    noisy = lambda rows, rng: {"mean": rng.laplace(len(rows)), "other": object()}  # noqa: E731
    assert "cannot be compared" in str(run(noisy))
    assert run(noisy, output="mean").verdict is BOUNDED
    assert run(noisy).output_moved is None
    assert run(lambda rows: np.random.laplace(len(rows)), primitives=["random"]).unrecorded  # noqa: NPY002
    assert run(lambda rows, rng: rng.laplace(len(rows)), primitives=[]).verdict is BOUNDED
    with pytest.raises(OptionError, match="did you mean 'numpy'"):
        run(noisy, primitives="nunpy")
    with pytest.raises(AdjacencyError, match="distance 2"):
        run(noisy, [1.0, 2.0, 3.0], [1.0], adjacency=AddRemove())
    seeds = {run(lambda rows, rng: rng.laplace(len(rows)), seed=seed).calls[0].value for seed in (0, 0, 1, None)}
    assert len(seeds) == 3


def test_points_and_values_that_are_not_finite():
    at = math.inf
    assert run(lambda value, rng: rng.laplace(value, 0.0), 1.0, 2.0).findings[0].loss == at
    assert run(lambda value, rng: rng.laplace(value, 0.0), 1.0, 1.0 + 1e-15).findings[0].loss == at
    assert run(lambda value, rng: value + rng.laplace(0.0, 0.0), 1.0, 2.0).findings[0].kind is FindingKind.WITHOUT_NOISE
    result = run(lambda value, rng: rng.laplace(value), math.nan, 2.0)
    assert "its location moved infinitely far" in str(result)
    assert run(lambda value, rng: rng.laplace(value), math.nan, math.nan).verdict is BOUNDED


def test_an_answer_and_a_scale_that_both_depend_on_the_data():
    def noisy(rows, rng):
        return np.array([sum(rows), len(rows)]) + rng.laplace(0, [1 / len(rows), 2.0])

    result, same = run(noisy, [1.0, 2.0], [1.0]), run(noisy, [1.0, 2.0], [1.0, 2.0])
    assert result.has_excess
    assert "the scale of" in str(result)
    assert (same.has_excess, same.loss.worst) == (False, 0.0)


def test_words_of_results():
    def noisy(rows, rng):
        return rng.laplace(len(rows))

    far = run(noisy, [1.0] * 3, [1.0], adjacency="add-remove", distance=2)
    assert str(far) == (
        "UNDETERMINED  noisy: loss at most 2 in 1 call, claimed 1-DP at distance 2\n"
        "  open: not shown to be within the claim"
    )
    assert far.sentence.endswith(" at distance 2; not shown to be within the claim")

    def one_of_ten(rows, rng):
        odds = np.ones(10)
        odds[7] += len(rows)
        return int(rng.choice(10, p=odds / odds.sum()))

    found = str(run(one_of_ten, [1.0] * 3, [1.0] * 2, 0.1))
    assert found.startswith("EXCESS  one_of_ten: worst-case loss 0.207639, claimed 0.1 (one path)\n")
    assert "outcome 7 has probability 0.3077 on x and 0.25 on y\n" in found


SUMMED = [1.0, 3.0], [1.0]


@pytest.mark.parametrize(
    ("mechanism", "claim", "remedy"),
    [
        (lambda rows, rng: rng.laplace(sum(rows), 2.0), PureDP(0.7), "scale 4.29 is needed for 0.7-DP"),
        (lambda rows, rng: sum(rows) + rng.logistic(scale=2.0), PureDP(0.5), "scale 6 is needed for 0.5-DP"),
        (lambda rows, rng: rng.normal(sum(rows), 2.0), GaussianDP(0.5), "scale 6 is needed for 0.5-GDP"),
        (lambda rows, rng: rng.normal(sum(rows), 2.0), ZeroConcentratedDP(0.5), "scale 3 is needed for 0.5-zCDP"),
        (lambda rows, rng: rng.normal(sum(rows), 2.0), PureDP(0.5), ""),
        (lambda rows, rng: rng.laplace([sum(rows), 0], [2, 1]), PureDP(0.5), "3 times this scale is needed for 0.5-DP"),
        (
            lambda rows, rng: (rng.laplace(sum(rows), 2.0), rng.laplace(len(rows), 2.0)),
            PureDP(1.0),
            "scale 6 is needed for 1-DP, as the other call loses 0.5",
        ),
        (
            lambda rows, rng: (rng.laplace(sum(rows), 2.0), rng.laplace(len(rows), 1.0)),
            PureDP(1.0),
            "the losses of 2 calls add up to 2.5, claimed 1; give each line a share of the claim",
        ),
        (
            lambda rows, rng: (rng.laplace(sum(rows), 2.0), rng.normal(len(rows), 9.0)),
            PureDP(1.0),
            "the losses of 2 calls are infinite, claimed 1; give each line a share of the claim",
        ),
        (lambda rows, rng: rng.laplace(sum(rows), 2.0), PureDP(0.0), ""),
    ],
)
def test_an_excess_says_what_noise_it_needs(mechanism, claim, remedy):
    """The scale is move/ε for tails of that slope, move/μ and move/√(2ρ) for normal noise."""
    result = run(mechanism, *SUMMED, claim)
    first = next(found for found in result.findings if found.is_excess)
    assert first.remedy == remedy
    assert result.next_step == "; ".join(filter(None, (remedy, "confirm with check on this pair")))


def test_losses_that_add_up_name_the_line_of_the_largest():
    def twice(rows, rng):
        small = rng.laplace(len(rows), 2.0)
        return small, rng.laplace(len(rows), 1.25), rng.laplace(len(rows), 5.0)

    result = run(twice, *SUMMED, PureDP(1.0))
    line = twice.__code__.co_firstlineno + 2
    assert result.headline.endswith(": 3 calls together: epsilon >= 1.5 on this path, claimed 1-DP (one path)")
    assert f"/{Path(__file__).name}:{line} in twice: loss at most 1" in result.remedy
    assert result.remedy.startswith("give each line a share of the claim; the largest is at ")


def test_a_replay_that_takes_longer_than_its_time_limit(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr("dpaudit.audit.replay.recorded_run.now", lambda: float(next(clock)))
    with pytest.raises(MechanismError, match="took longer than seconds=5; allow more seconds") as raised:
        run(lambda rows, rng: rng.laplace(sum(rows), 2.0), seconds=5.0)
    assert raised.value.facts["seconds"] == 5.0
    assert next(clock) < 20
    with pytest.raises(OptionError, match="is not a time limit"):
        run(lambda rows, rng: rng.laplace(), seconds=-1.0)


def test_noise_in_single_precision_has_one_scale_on_x_and_on_y():
    def step(rows, rng, noise):
        gradients = np.clip(rows, -1.0, 1.0)
        return ((gradients.sum(axis=0) + rng.normal(scale=noise, size=3)) / -7.0).astype(np.float32)

    x, y = np.array([[0.3, 0.0, 0.1], [1.0, 0.0, 0.0]]), np.array([[0.3, 0.0, 0.1], [0.0, 0.0, 0.0]])
    for noise, verdict in ((1.0, BOUNDED), (0.5, EXCESS)):
        assert replay(partial(step, noise=noise), x, y, claim=GaussianDP(1.001)).verdict is verdict
