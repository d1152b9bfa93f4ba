"""OpenDP measurements: the claim in its unit, the neighbours of the metric, independent draws, and replays.

OpenDP cannot be seeded. With `PLENTY` runs, the audits here miss a wrong claim less than once in 1e9 times.
"""

import itertools
import math

import cloudpickle
import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import (
    AddRemove,
    ApproxDP,
    GaussianDP,
    PrivacyProfile,
    PureDP,
    RenyiDP,
    Replace,
    ZeroConcentratedDP,
    check,
    find_worst_pair,
    replay,
)
from dpaudit.audit.datasets.adjacency import Local
from dpaudit.audit.errors import AdjacencyError, ClaimError, DatasetError, MechanismError, OptionError
from dpaudit.audit.events.outputs import Raised
from dpaudit.audit.replay.replay_result import FindingKind
from dpaudit.audit.results.verdict import ReplayVerdict
from dpaudit.domains import Within
from dpaudit.mechanisms import gaussian_delta
from dpaudit.mechanisms.adapters import from_opendp
from dpaudit.mechanisms.adapters.opendp import Monotonic, Steps, claim_of, neighbours_under

dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
dp.enable_features("contrib", "honest-but-curious")

ALPHA, PLENTY = 1e-6, 2_500
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
WORDS = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
VECTORS = dp.vector_domain(dp.atom_domain(T=float, nan=False))
KEYED = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), dp.l01inf_distance(dp.absolute_distance(T=int))


def rng():
    return np.random.default_rng(0)


def noisy_max(distance, number=float):
    domain = VECTORS if number is float else ROWS[0]
    return from_opendp(dp.m.make_noisy_max(domain, distance, dp.max_divergence(), scale=1.0))


def user_measurement(measure, function, privacy_map):
    return dp.m.make_user_measurement(*REAL, measure, function, privacy_map, TO="f64")


def bounded_sum():
    """With noise of scale 1, an added or removed row changes the answer by 1, a replaced row by 2."""
    space = dp.vector_domain(dp.atom_domain(bounds=(-1, 1))), dp.symmetric_distance()
    return space >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)


# Claims in the unit of the measure, and neighbours under the metric.


@pytest.mark.parametrize(
    ("measure", "distance", "claim"),
    [
        ("MaxDivergence", 0.5, PureDP(0.5)),
        ("ZeroConcentratedDivergence", 0.5, ZeroConcentratedDP(0.5)),
        ("Approximate(MaxDivergence)", (0.5, 1e-6), ApproxDP(0.5, 1e-6)),
        ("FixedSmoothedMaxDivergence", (0.5, 1e-6), ApproxDP(0.5, 1e-6)),
        ("RenyiDivergence", lambda order: 0.5 * order, RenyiDP(4.0, 2.0)),
        ("Approximate(ZeroConcentratedDivergence)", (0.5, 0.0), ZeroConcentratedDP(0.5)),
        ("TotalVariation", 0.5, None),
    ],
)
def test_each_measure_is_read_in_its_unit_and_an_unknown_one_is_named(measure, distance, claim):
    if claim is None:
        with pytest.raises(ClaimError, match=r"the measure .* is unknown"):
            claim_of(measure, distance)
    else:
        assert claim_of(measure, distance, 4.0 if measure == "RenyiDivergence" else None) == claim


@pytest.mark.parametrize("rho", [0.01, 0.5, 8.0])
def test_a_profile_by_divergences_allows_the_gaussian_and_not_much_more(rho):
    curve = claim_of("RenyiDivergence", lambda order: rho * order)
    approximate = claim_of("Approximate(ZeroConcentratedDivergence)", (rho, 0.01))
    mu = (2 * rho) ** 0.5  # the Gaussian mechanism with this rho
    exact = np.array([gaussian_delta(epsilon, 1.0 / mu) for epsilon in curve.epsilons])
    assert np.all(np.array(curve.deltas) >= exact)
    assert np.all(np.array(curve.deltas)[exact > 1e-9] <= 12 * exact[exact > 1e-9])
    assert np.allclose(approximate.deltas, np.minimum(np.array(curve.deltas) + 0.01, 1.0), rtol=1e-12)


@pytest.mark.parametrize(
    ("metric", "d_in", "neighbours"),
    [
        ("SymmetricDistance()", 1, AddRemove()),
        ("SymmetricDistance()", 2, Steps(AddRemove(), 2)),
        ("InsertDeleteDistance()", 1, AddRemove(ordered=True)),
        ("ChangeOneDistance()", 1, Replace()),
        ("HammingDistance()", 1, Replace(ordered=True)),
        ("AbsoluteDistance(f64)", 0.5, Within("l1", 0.5)),
        ("L1Distance(i32)", 2, Within("l1", 2.0)),
        ("L2Distance(f64)", 1, Within("l2")),
        ("LInfDistance(T=f64)", 1, Within("linf")),
        ("LInfDistance(monotonic, T=f64)", 1, Monotonic("linf")),
        ("DiscreteDistance()", 1, Local()),
        ("L01InfDistance(AbsoluteDistance(i32))", (1, 1, 1), None),
        ("user distance", 1, None),
    ],
)
def test_each_metric_has_its_neighbours(metric, d_in, neighbours):
    assert neighbours_under(metric, d_in) == neighbours


@pytest.mark.parametrize(
    ("relation", "x", "y", "distance"),
    [
        (Replace(ordered=True), [1, 2, 3, 4], [2, 3, 4, 1], 4),
        (Replace(ordered=True), [1, 2], [1, 2, 3], np.inf),
        (Replace(ordered=True), np.array([[1.0, np.nan]]), np.array([[1.0, np.nan]]), 0),
        (Monotonic("linf"), [0, 0, 0], [1, 0, 1], 1),
        (Monotonic("linf"), [0, 0], [1, -1], np.inf),
        (Steps(AddRemove(), 2), [1, 2], [], 1),
        (Steps(AddRemove(), 2), [1], [], 0.5),
    ],
)
def test_order_direction_and_steps_count_where_the_metric_says_so(relation, x, y, distance):
    assert relation.distance(x, y) == distance


def test_more_steps_than_the_relation_has_are_refused():
    with pytest.raises(AdjacencyError, match="up to 2 times"):
        Steps(AddRemove(), 2).check([1, 2, 3], [], 1)


def test_edits_are_the_fewest():
    def longest_common(a, b):
        kept = [{tuple(part) for n in range(len(s) + 1) for part in itertools.combinations(s, n)} for s in (a, b)]
        return max(map(len, kept[0] & kept[1]))

    words = [word for n in range(4) for word in itertools.product((0, 1), repeat=n)]
    for a, b in itertools.product(words, words):
        assert AddRemove(ordered=True).distance(a, b) == len(a) + len(b) - 2 * longest_common(a, b)


GAUSSIAN = dp.m.make_gaussian(*REAL, scale=1.0)


@pytest.mark.parametrize(
    ("made", "distance", "claim", "adjacency"),
    [
        (from_opendp(dp.m.make_laplace(*REAL, scale=1.0)), 1, PureDP(1.0), Within("l1")),
        (from_opendp(GAUSSIAN), 1, ZeroConcentratedDP(0.5), Within("l1")),
        (from_opendp(GAUSSIAN), 3, ZeroConcentratedDP(4.5), Within("l1")),  # mapped and not grouped
        (from_opendp(dp.m.make_laplace(*WHOLE, scale=2.0), d_in=2), 3, PureDP(3.0), Within("l1", 2.0)),
        (from_opendp(dp.m.make_laplace(*WHOLE, scale=1.0), d_in=np.int64(2)), 1, PureDP(2.0), Within("l1", 2.0)),
        (from_opendp(dp.m.make_randomized_response_bool(prob=0.75)), 1, PureDP(math.log(3)), Local()),
        (noisy_max(dp.linf_distance(T=float)), 1, PureDP(2.0), Within("linf")),
        (noisy_max(dp.linf_distance(T=int, monotonic=True), int), 1, PureDP(1.0), Monotonic("linf")),
        (
            from_opendp(ROWS >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0), d_in=2, adjacency=Replace()),
            1,
            PureDP(1.0),
            Replace(),
        ),
    ],
)
def test_claim_and_neighbours_are_those_of_the_measurement(made, distance, claim, adjacency):
    assert made.adjacency == adjacency
    found = made.claim(distance)
    assert type(found) is type(claim)
    assert found.parameter == pytest.approx(claim.parameter, rel=1e-12)


def test_the_source_names_measure_metric_and_release():
    source = from_opendp(GAUSSIAN).claim_source
    assert "ZeroConcentratedDivergence on AbsoluteDistance(f64)" in source
    declared = from_opendp(bounded_sum(), d_in=2, adjacency=Replace())
    assert declared.claim_source.endswith("neighbours as declared (replace one row)")
    with pytest.raises(ClaimError, match="not whole"):
        declared.claim(0.25)


def test_profiles_and_thresholds():
    profile = dp.c.make_zCDP_to_approxDP(GAUSSIAN)
    assert isinstance(from_opendp(profile).claim(1), PrivacyProfile)
    fixed = from_opendp(dp.c.make_fix_delta(profile, 1e-6)).claim(1)
    assert isinstance(fixed, ApproxDP)
    assert fixed.delta == 1e-6
    partitions = from_opendp(dp.m.make_laplace_threshold(*KEYED, scale=1.0, threshold=10), d_in=(1, 1, 1))
    assert isinstance(partitions.claim(1), ApproxDP)
    assert partitions.adjacency is None
    assert "pairs are not checked" in partitions.claim_source
    with pytest.raises(ClaimError, match="cannot be multiplied"):
        partitions.claim(2)
    partitions.check_pair({"a": 12}, {}, 1)  # no relation is known for it


def curve(d_in):
    return lambda order: d_in**2 * order / 2


def up_to_64(d_in):
    return lambda order: d_in**2 * order / 2 if order < 64 else 1 / 0


RENYI, PURE = dp.renyi_divergence(), dp.max_divergence()


def test_renyi_curves_at_an_order_or_at_all_at_which_they_hold():
    for measured in (curve, up_to_64):
        assert from_opendp(user_measurement(RENYI, abs, measured), order=4.0).claim(2) == RenyiDP(4.0, 8.0)
    whole, cut = (from_opendp(user_measurement(RENYI, abs, measured)).claim(1) for measured in (curve, up_to_64))
    assert np.all(np.array(cut.deltas) >= np.array(whole.deltas))
    assert np.any(np.array(cut.deltas) == np.array(whole.deltas))


@pytest.mark.parametrize(
    ("measure", "privacy_map", "order", "message"),
    [
        (RENYI, up_to_64, 100.0, "curve raised OpenDPException at order 100; pass order="),
        (RENYI, lambda d_in: lambda order: math.inf, None, r"no finite value at orders from 1\.01 to .*; pass order="),
        (dp.user_divergence("tv"), abs, None, "the measure tv is unknown"),
        (PURE, abs, 2.0, "omit order"),
        (PURE, lambda d_in: math.inf, None, "epsilon=inf"),
    ],
)
def test_a_map_that_states_no_claim_is_refused(measure, privacy_map, order, message):
    with pytest.raises(ClaimError, match=message):
        from_opendp(user_measurement(measure, abs, privacy_map), order=order)


def test_what_is_no_measurement_is_refused():
    with pytest.raises(MechanismError, match="chain a partial constructor"):
        from_opendp(dp.m.then_laplace(scale=1.0))
    with pytest.raises(MechanismError, match="not a Measurement"):
        from_opendp(dp.t.make_count(*ROWS))
    interactive = dp.c.make_adaptive_composition(*WHOLE, PURE, d_in=1, d_mids=[1.0])
    with pytest.raises(MechanismError, match="returned a queryable"):
        from_opendp(interactive).sample(1, 1, rng())


FAR = r"2 apart in SymmetricDistance\(\), and measurement.map is claimed at 1 .*; use d_in=2, or pass a closer"
LINE = from_opendp(dp.m.make_laplace(*REAL, scale=1.0), d_in=0.5, adjacency=Within("l1", 3.0))
PLANE = from_opendp(dp.m.make_gaussian(VECTORS, dp.l2_distance(T=float), scale=1.0), adjacency=Within("linf", 1))


@pytest.mark.parametrize(
    ("made", "x", "y", "distance", "message"),
    [
        (from_opendp(bounded_sum(), adjacency=Replace()), [0, 1], [0, -1], 1, FAR),
        (from_opendp(bounded_sum(), adjacency=Replace()), [0, 1], [0, -1], 1.5, r"2 apart .* claimed at 1\.5"),
        (from_opendp(bounded_sum(), d_in=2, adjacency=Replace()), [0, 1], [0, -1], 1, None),
        (PLANE, [0.0] * 9, [1.0] * 9, 1, r"3 apart in L2Distance\(f64\), .* use d_in=3"),
        (PLANE, [0.0], [0.0, 0.0], 1, "at no finite distance in L2Distance"),
        (LINE, 0.0, 1.0, 2, None),
        (LINE, 0.0, 3.0, 2, r"3 apart .* claimed at 1 \(d_in=0.5 at distance 2\); use d_in=1.5"),
    ],
)
def test_a_pair_farther_apart_than_the_map_was_asked_is_refused(made, x, y, distance, message):
    if message is None:
        made.check_pair(x, y, distance)
        return
    with pytest.raises(AdjacencyError, match=message):
        made.check_pair(x, y, distance)


def test_audits_and_searches_keep_to_pairs_that_the_map_was_asked_about():
    total, replaced = from_opendp(bounded_sum(), adjacency=Local()), ([0, 1], [0, -1])
    with pytest.raises(AdjacencyError, match=FAR):
        check(from_opendp(bounded_sum()), *replaced, adjacency=Replace(), runs=1_000)
    found = find_worst_pair(total, [replaced, ([0], [0, 1])], runs=1_000, search_runs=1_000, jobs=1)
    assert (found.x, found.y) == ([0], [0, 1])
    assert any("use d_in=2" in str(tried) for tried in found.ranking)


# Draws.


@pytest.mark.parametrize(
    ("made", "x", "y", "claim"),
    [
        (from_opendp(dp.m.make_laplace(*REAL, scale=1.0)), 0.0, 1.0, PureDP(0.5)),
        (noisy_max(dp.linf_distance(T=float)), [0.0, 1.0], [1.0, 0.0], PureDP(0.5)),
        (noisy_max(dp.linf_distance(T=int, monotonic=True), int), [0, 1], [1, 0], None),  # opposite, so not neighbours
        pytest.param(from_opendp(GAUSSIAN), 0.0, 1.0, PureDP(0.5), marks=pytest.mark.evidence),  # rho is not epsilon
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_measurement_breaks_half_of_its_claim_and_its_own_on_other_pairs(made, x, y, claim):
    options = {"runs": PLENTY, "alpha": ALPHA, "jobs": 1, "floating_point": "ignore"}
    result = check(made.sample, x, y, claim=made.claim if claim is None else claim, **options)
    assert result.is_refuted
    assert isinstance(x, list) or not result.is_reproducible  # few outcomes may come twice in the same order
    if claim is None:
        with pytest.raises(AdjacencyError, match="no finite distance"):
            check(made, x, y, claim=made.claim, adjacency=made.adjacency, **options)


@pytest.mark.parametrize("draws", ["together", "singly", "vectors"])
def test_draws_are_those_of_the_measurement(draws):
    made = from_opendp(dp.m.make_geometric(*WHOLE, scale=1.0), draws=draws)
    outputs = np.array(made.sample(5, 2_500, rng()))
    assert outputs.shape == (2_500,)
    zero = np.tanh(0.5)  # (1 − a)/(1 + a) with a = e⁻¹
    low, high = binom.ppf([1e-7, 1 - 1e-7], 2_500, zero)
    assert low <= np.count_nonzero(outputs == 5) <= high
    assert len({tuple(outputs[i : i + 50]) for i in range(0, 2_500, 50)}) == 50
    assert len(made.sample(np.int64(3), 7, rng())) == 7


def test_vectors_keep_every_parameter():
    fine = from_opendp(dp.m.make_laplace(*REAL, scale=1.0, k=-2), draws="vectors")
    outputs = np.array(fine.sample(0.0, 1_500, rng()))
    assert np.all(outputs * 4 == np.round(outputs * 4))
    assert np.any(outputs != np.round(outputs))
    response = dp.m.make_randomized_response_bool(prob=0.75)
    over_vectors = dp.m.make_laplace(ROWS[0], dp.l1_distance(T=int), scale=1.0)
    for measurement, name in ((response, "make_randomized_response_bool"), (over_vectors, "make_laplace")):
        with pytest.raises(MechanismError, match=f"not for {name}"):
            from_opendp(measurement, draws="vectors")
    with pytest.raises(OptionError, match="draws='twice'"):
        from_opendp(response, draws="twice")


def test_outputs_that_are_dictionaries_tell_which_keys_are_there():
    """A threshold that single rows nearly always pass, under the claim of one that they rarely pass."""

    def counts(threshold):
        return WORDS >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=threshold)

    low = from_opendp(counts(2))
    assert low.sample([], 3, rng()) == [("",)] * 3
    assert {len(output) for output in low.sample(["b", "a"], 500, rng())} == {1, 2, 3}
    keys = {output[0] for output in low.sample(["b"] * 9 + ["a"] * 9 + ["a, b"] * 9, 50, rng())}
    assert "'a', 'a, b', 'b'" in keys
    both = from_opendp(dp.c.make_composition([counts(2), counts(2)]))
    assert both.sample([], 2, rng()) == [(("",), ("",))] * 2


def test_runs_that_raise():
    broken = user_measurement(PURE, lambda value: 1.0 / value, abs)
    with pytest.raises(MechanismError, match=r'raised OpenDPException: .*ZeroDivisionError.* use draws="singly"'):
        from_opendp(broken).sample(0.0, 10, rng())
    assert from_opendp(broken, draws="singly").sample(0.0, 2, rng()) == [Raised("OpenDPException")] * 2


@pytest.mark.parametrize("dataset", ["a", [1.0], 1.5, 2**40])
def test_datasets_outside_the_domain_are_refused(dataset):
    with pytest.raises(DatasetError, match=r"not in the measurement's domain AtomDomain\(T=i32\)"):
        from_opendp(dp.m.make_laplace(*WHOLE, scale=1.0)).sample(dataset, 10, rng())


def test_a_copy_for_another_process_is_the_same():
    made = from_opendp(bounded_sum(), adjacency=Replace(), draws="singly")
    copy = cloudpickle.loads(cloudpickle.dumps(made))
    assert (repr(copy.measurement), copy.claim(2)) == (repr(made.measurement), made.claim(2))
    for name in ("claim_source", "adjacency", "draws"):
        assert getattr(copy, name) == getattr(made, name)
    own = from_opendp(user_measurement(PURE, abs, abs))
    with pytest.raises(Exception, match="does not handle"):  # threads then draw, as for every vectorised mechanism
        cloudpickle.dumps(own)


# Replays of user functions that invoke measurements: the input's move, and the loss of the map for it.


def laplace(scale=1.0):
    return dp.m.make_laplace(*WHOLE, scale=scale)


def noisy_sum(rows):
    return laplace()(sum(rows))


COUNT = ROWS >> dp.t.then_count() >> laplace()
ONE = laplace()


def noisy_count(rows):
    return COUNT(rows)


def replayed(function, claim=1.0):
    return replay(function, [1, 3], [1], claim=claim, adjacency="add-remove")


def test_the_map_states_the_loss_of_a_move():
    result = replayed(noisy_sum)
    (call,) = result.calls
    assert (call.moved, call.worst_loss, call.promised) == (3.0, 3.0, PureDP(3.0))
    assert not result.has_excess  # the map bounds the loss from above
    line = noisy_sum.__code__.co_firstlineno + 1
    assert f"test_opendp.py:{line} in noisy_sum: OpenDP measurement: its input moved by 3" in str(result)
    assert "return laplace()(sum(rows))" in str(result)


@pytest.mark.parametrize("function", [noisy_count, lambda rows: ONE.invoke(len(rows))])
def test_a_map_is_stated_and_proves_nothing(function):
    result = replayed(function)
    assert (result.verdict, result.loss.epsilon, result.findings) == (ReplayVerdict.UNDETERMINED, 1.0, ())
    assert "is the one that it states for itself" in str(result)
    (finding,) = replayed(function, claim=0.9).findings
    assert finding.kind is FindingKind.LOSS_ABOVE_CLAIM
    assert "that is what the primitive allows at most" in finding.message


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: laplace()(len(rows)),
        lambda rows: (ONE >> (lambda value: value + 100 * len(rows)))(len(rows)),
        lambda rows: (ROWS >> dp.t.then_count_by_categories(sorted(set(rows))) >> dp.m.then_laplace(1.0))(rows),
    ],
)
def test_a_measurement_that_is_made_in_the_mechanism_is_open(made):
    """What it does with its result may depend on the data."""
    result = replay(made, [1, 3, 3], [1, 3], claim=1.0)
    assert result.verdict is ReplayVerdict.UNDETERMINED
    assert "not the same measurement" in str(result)


def test_gaussian_noise():
    """The map's rho is compared; a map in rho says nothing of other claims."""
    gaussian = dp.m.make_gaussian(*WHOLE, scale=2.0)
    result = replayed(lambda rows: gaussian(sum(rows)), ZeroConcentratedDP(1.125 * 0.99))
    assert [finding.kind for finding in result.findings] == [FindingKind.LOSS_ABOVE_CLAIM]
    assert (result.calls[0].mu, result.loss.rho) == (None, pytest.approx(1.125))
    assert replayed(lambda rows: gaussian(sum(rows)), GaussianDP(9.0)).verdict is ReplayVerdict.UNDETERMINED


@pytest.mark.parametrize(
    ("function", "claim"),
    [
        # Laplace noise of loss 1 does not keep 1-GDP, though both are 0.5-zCDP; and it keeps 1-DP.
        *((lambda rows: dp.c.make_pureDP_to_zCDP(ONE)(len(rows)), claim) for claim in (GaussianDP(1.0), PureDP(1.0))),
        (lambda rows: sum(rows) + ONE(0) > 50, 1.0),  # noise about zero decides something
        (lambda rows: laplace(1.0 + len(rows))(sum(rows)), 9.0),  # the noise depends on the data
    ],
)
def test_maps_that_say_nothing_of_the_claim_leave_it_open(function, claim):
    assert replayed(function, claim).verdict is ReplayVerdict.UNDETERMINED


def test_whole_numbers_beyond_the_doubles():
    """As floats the two inputs are equal."""
    large = dp.m.make_laplace(dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), scale=1.0)
    assert replay(lambda rows: large(sum(rows)), [2**60, 1], [2**60], claim=0.1).calls[0].worst_loss == 1.0


def test_a_queryable_is_not_recorded_and_said():
    def asked(rows):
        mids = dp.c.make_adaptive_composition(*ROWS, PURE, d_in=1, d_mids=[1.0])
        return mids(rows)(ROWS >> dp.t.then_count() >> laplace()), noisy_count(rows)

    result = replayed(asked)
    assert len(result.calls) == 1, "the count alone"
    assert result.unrecorded
    assert result.verdict is ReplayVerdict.UNDETERMINED
