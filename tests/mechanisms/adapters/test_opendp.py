"""OpenDP measurements as mechanisms: the claim in its unit, the neighbours of the metric, independent draws."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import cloudpickle
import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import (
    AddRemove,
    ApproxDP,
    PrivacyProfile,
    PureDP,
    RenyiDP,
    Replace,
    Within,
    ZeroConcentratedDP,
    check,
    find_worst_pair,
)
from dpaudit.audit.datasets.adjacency import Local
from dpaudit.audit.errors import AdjacencyError, AuditError, ClaimError, DatasetError, MechanismError, OptionError
from dpaudit.audit.events.outputs import Raised
from dpaudit.mechanisms import gaussian_delta
from dpaudit.mechanisms.adapters import OpenDPMechanism, from_opendp
from dpaudit.mechanisms.adapters.opendp import Hamming, InsertDelete, Monotonic, Steps, claim_of, neighbours_under

_ALPHA = 1e-6
# OpenDP cannot be seeded. With this many runs, the audits here miss a wrong claim less than once in 1e9 times.
_PLENTY = 2_500


@pytest.fixture(scope="module")
def dp() -> Any:
    library = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
    library.enable_features("contrib", "honest-but-curious")
    return library


def _numbers(dp: Any, kind: type) -> tuple[Any, Any]:
    domain = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=kind)
    return domain, dp.absolute_distance(T=kind)


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _audit(mechanism: OpenDPMechanism, x: Any, y: Any, claim: Any = None, **options: Any) -> Any:
    options = {"runs": 700, "alpha": _ALPHA, "jobs": 1, "bits": False} | options
    claim = mechanism.claim if claim is None else claim
    return check(mechanism, x, y, claim=claim, adjacency=mechanism.adjacency, **options)


# Without the library.


def test_the_library_is_asked_for_by_name_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(AuditError, match=r"pip install 'dpaudit\[opendp\]'"):
        from_opendp(object())


def test_each_measure_is_read_in_its_unit() -> None:
    assert claim_of("MaxDivergence", 0.5) == PureDP(0.5)
    assert claim_of("ZeroConcentratedDivergence", 0.5) == ZeroConcentratedDP(0.5)
    assert claim_of("Approximate(MaxDivergence)", (0.5, 1e-6)) == ApproxDP(0.5, 1e-6)
    assert claim_of("FixedSmoothedMaxDivergence", (0.5, 1e-6)) == ApproxDP(0.5, 1e-6)
    assert claim_of("RenyiDivergence", lambda order: 0.5 * order, 4.0) == RenyiDP(4.0, 2.0)
    assert claim_of("Approximate(ZeroConcentratedDivergence)", (0.5, 0.0)) == ZeroConcentratedDP(0.5)


@pytest.mark.parametrize("measure", ["TotalVariation", "Approximate(TotalVariation)", "maxdivergence"])
def test_an_unknown_measure_is_named(measure: str) -> None:
    with pytest.raises(ClaimError, match=r"the measure .* is unknown"):
        claim_of(measure, (0.5, 0.1) if "Approximate" in measure else 0.5)


@pytest.mark.parametrize("rho", [0.01, 0.125, 0.5, 8.0])
def test_a_profile_by_divergences_allows_the_gaussian_and_not_much_more(rho: float) -> None:
    curve = claim_of("RenyiDivergence", lambda order: rho * order)
    assert isinstance(curve, PrivacyProfile)
    approximate = claim_of("Approximate(ZeroConcentratedDivergence)", (rho, 0.01))
    assert isinstance(approximate, PrivacyProfile)
    mu = (2 * rho) ** 0.5  # the Gaussian mechanism with this rho
    exact = np.array([gaussian_delta(epsilon, 1.0 / mu) for epsilon in curve.epsilons])
    assert np.all(np.array(curve.deltas) >= exact)
    assert np.all(np.array(curve.deltas)[exact > 1e-9] <= 12 * exact[exact > 1e-9])
    assert np.allclose(approximate.deltas, np.minimum(np.array(curve.deltas) + 0.01, 1.0), rtol=1e-12)


def test_each_metric_has_its_neighbours() -> None:
    assert neighbours_under("SymmetricDistance()", 1) == AddRemove()
    assert neighbours_under("InsertDeleteDistance()", 1) == InsertDelete()
    assert neighbours_under("ChangeOneDistance()", 1) == Replace()
    assert neighbours_under("HammingDistance()", 1) == Hamming()
    assert neighbours_under("AbsoluteDistance(f64)", 0.5) == Within("l1", 0.5)
    assert neighbours_under("L1Distance(i32)", 2) == Within("l1", 2.0)
    assert neighbours_under("L2Distance(f64)", 1) == Within("l2")
    assert neighbours_under("LInfDistance(T=f64)", 1) == Within("linf")
    assert neighbours_under("LInfDistance(monotonic, T=f64)", 1) == Monotonic("linf")
    assert neighbours_under("DiscreteDistance()", 1) == Local()
    assert neighbours_under("L01InfDistance(AbsoluteDistance(i32))", (1, 1, 1)) is None
    assert neighbours_under("user distance", 1) is None


def test_order_matters_where_the_metric_says_so() -> None:
    moved = [1, 2, 3, 4], [2, 3, 4, 1]
    assert AddRemove().distance(*moved) == Replace().distance(*moved) == 0
    assert InsertDelete().distance(*moved) == 2
    assert Hamming().distance(*moved) == 4
    assert Hamming().distance([1, 2], [1, 2, 3]) == np.inf
    assert Hamming().distance(np.array([[1.0, np.nan]]), np.array([[1.0, np.nan]])) == 0


def test_edits_are_the_fewest() -> None:
    def longest_common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        kept = [{tuple(part) for n in range(len(s) + 1) for part in itertools.combinations(s, n)} for s in (a, b)]
        return max(map(len, kept[0] & kept[1]))

    words = [word for n in range(5) for word in itertools.product((0, 1), repeat=n)]
    for a, b in itertools.product(words, words):
        assert InsertDelete().distance(a, b) == len(a) + len(b) - 2 * longest_common(a, b)


def test_monotonic_answers_all_move_the_same_way() -> None:
    assert Monotonic("linf").distance([0, 0, 0], [1, 0, 1]) == 1
    assert Monotonic("linf").distance([1, 0, 1], [0, 0, 0]) == 1
    assert Monotonic("linf").distance([0, 0], [1, -1]) == np.inf


def test_several_rows_at_once_are_one_step() -> None:
    two = neighbours_under("SymmetricDistance()", 2)
    assert two == Steps(AddRemove(), 2)
    assert two.check([1, 2], [], 1) == 1
    assert two.check([1], [], 1) == 0.5
    with pytest.raises(AdjacencyError, match="up to 2 times"):
        two.check([1, 2, 3], [], 1)


# With the library.


def test_laplace_keeps_its_claim_and_half_of_it_is_refuted(dp: Any) -> None:
    mechanism = from_opendp(dp.m.make_laplace(*_numbers(dp, float), scale=1.0))
    assert mechanism.claim(1) == PureDP(1.0)
    held = _audit(mechanism, 0.0, 1.0, bits=True, runs=1_500)
    assert held.verdict.value == "not refuted"
    assert (held.findings, held.is_replayable, held.mechanism) == ((), False, "make_laplace")
    assert _audit(mechanism, 0.0, 1.0, PureDP(0.5), runs=_PLENTY).is_refuted


def test_rho_is_read_as_rho(dp: Any) -> None:
    mechanism = from_opendp(dp.m.make_gaussian(*_numbers(dp, float), scale=1.0))
    assert mechanism.claim(1) == ZeroConcentratedDP(0.5)
    assert "ZeroConcentratedDivergence on AbsoluteDistance(f64)" in mechanism.claim_source


@pytest.mark.evidence
@pytest.mark.usefixtures("without_resolution")
def test_rho_is_not_epsilon(dp: Any) -> None:
    mechanism = from_opendp(dp.m.make_gaussian(*_numbers(dp, float), scale=1.0))
    assert not _audit(mechanism, 0.0, 1.0, runs=1_000).is_refuted
    assert _audit(mechanism, 0.0, 1.0, PureDP(0.5), runs=_PLENTY).is_refuted  # the false alarm
    assert _audit(mechanism, 0.0, 1.0, ZeroConcentratedDP(0.1), runs=_PLENTY).is_refuted


def test_a_distance_is_mapped_and_not_grouped(dp: Any) -> None:
    mechanism = from_opendp(dp.m.make_laplace(*_numbers(dp, int), scale=2.0), d_in=2)
    assert mechanism.adjacency == Within("l1", 2.0)
    result = _audit(mechanism, 0, 6, distance=3, runs=1_000)
    assert result.claim == PureDP(3.0)
    with pytest.raises(AdjacencyError, match="not at 2"):
        _audit(mechanism, 0, 6, distance=2)
    squared = from_opendp(dp.m.make_gaussian(*_numbers(dp, float), scale=1.0))
    assert squared.claim(3) == ZeroConcentratedDP(4.5)


@pytest.mark.parametrize("draws", ["together", "singly", "vectors"])
def test_draws_are_those_of_the_measurement(dp: Any, draws: Any) -> None:
    mechanism = from_opendp(dp.m.make_geometric(*_numbers(dp, int), scale=1.0), draws=draws)
    outputs = np.array(mechanism.sample(5, 2_500, _rng()))
    assert outputs.shape == (2_500,)
    zero = np.tanh(0.5)  # (1 − a)/(1 + a) with a = e⁻¹
    low, high = binom.ppf([1e-7, 1 - 1e-7], 2_500, zero)
    assert low <= np.count_nonzero(outputs == 5) <= high
    assert len({tuple(outputs[i : i + 50]) for i in range(0, 2_500, 50)}) == 50


def test_draws_together_use_the_name_of_a_composition_before_0_14(dp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    combinators = sys.modules["opendp.combinators"]
    measurement = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    made = combinators.make_composition
    monkeypatch.delattr(combinators, "make_composition")
    monkeypatch.setattr(combinators, "make_basic_composition", made, raising=False)
    assert len(from_opendp(measurement).sample(0, 5, np.random.default_rng(0))) == 5


def test_vectors_keep_every_parameter(dp: Any) -> None:
    fine = from_opendp(dp.m.make_laplace(*_numbers(dp, float), scale=1.0, k=-2), draws="vectors")
    outputs = np.array(fine.sample(0.0, 1_500, _rng()))
    assert np.all(outputs * 4 == np.round(outputs * 4))
    assert np.any(outputs != np.round(outputs))
    with pytest.raises(MechanismError, match="not for make_randomized_response_bool"):
        from_opendp(dp.m.make_randomized_response_bool(prob=0.75), draws="vectors")
    with pytest.raises(MechanismError, match="not for make_laplace"):  # already over vectors
        from_opendp(
            dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=1.0),
            draws="vectors",
        )
    with pytest.raises(OptionError, match="draws='twice'"):
        from_opendp(dp.m.make_randomized_response_bool(prob=0.75), draws="twice")  # type: ignore[arg-type]


@pytest.mark.usefixtures("without_resolution")
def test_chains_are_audited_with_their_rows(dp: Any) -> None:
    bounded = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0)))
    chain = (bounded, dp.symmetric_distance()) >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)
    mechanism = from_opendp(chain)
    assert (mechanism.adjacency, str(mechanism).split()[-1]) == (AddRemove(), "make_laplace")
    assert not _audit(mechanism, np.array([0.5, 1.0]), [0.5]).is_refuted
    with pytest.raises(
        DatasetError, match=r"not in the measurement's domain VectorDomain\(AtomDomain\(bounds=\[0.0, 1.0"
    ):
        mechanism.sample([0.5, 7.0], 10, _rng())


def test_other_neighbours_can_be_declared(dp: Any) -> None:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    mechanism = from_opendp(space >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0), d_in=2, adjacency=Replace())
    assert mechanism.adjacency == Replace()
    assert mechanism.claim(1) == PureDP(1.0)
    assert mechanism.claim_source.endswith("neighbours as declared (replace one row)")
    with pytest.raises(ClaimError, match="not whole"):
        mechanism.claim(0.25)
    mechanism.check_pair([1, 2], [1, 3], 1)


def _bounded_sum(dp: Any) -> Any:
    """With noise of scale 1, an added or removed row changes the answer by 1, a replaced row by 2."""
    space = dp.vector_domain(dp.atom_domain(bounds=(-1, 1))), dp.symmetric_distance()
    return space >> dp.t.then_sum() >> dp.m.then_laplace(scale=1.0)


@pytest.mark.usefixtures("without_resolution")
def test_a_pair_farther_apart_than_the_map_was_asked_is_refused(dp: Any) -> None:
    """The wrong twin: without the check these pairs refute the claim, although it does not cover them."""
    total, replaced = _bounded_sum(dp), ([0, 1], [0, -1])
    message = r"2 apart in SymmetricDistance\(\), and measurement.map is claimed at 1 .*; use d_in=2, or pass a closer"
    with pytest.raises(AdjacencyError, match=message):
        _audit(from_opendp(total, adjacency=Replace()), *replaced)
    with pytest.raises(AdjacencyError, match=message):
        check(from_opendp(total), *replaced, adjacency=Replace(), runs=1_000)
    twice = from_opendp(total, d_in=2, adjacency=Replace())
    assert _audit(twice, *replaced).claim == PureDP(2.0)
    assert check(twice.sample, *replaced, claim=PureDP(1.0), runs=_PLENTY, alpha=_ALPHA, jobs=1).is_refuted
    with pytest.raises(AdjacencyError, match=r"2 apart .* claimed at 1\.5"):
        from_opendp(total, adjacency=Replace()).check_pair(*replaced, 1.5)
    vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    gaussian = from_opendp(dp.m.make_gaussian(*vectors, scale=1.0), adjacency=Within("linf", 1))
    with pytest.raises(AdjacencyError, match=r"3 apart in L2Distance\(f64\), .* use d_in=3"):
        _audit(gaussian, [0.0] * 9, [1.0] * 9)
    with pytest.raises(AdjacencyError, match="at no finite distance in L2Distance"):
        gaussian.check_pair([0.0], [0.0, 0.0], 1)
    far = from_opendp(dp.m.make_laplace(*_numbers(dp, float), scale=1.0), d_in=0.5, adjacency=Within("l1", 3.0))
    far.check_pair(0.0, 1.0, 2)
    with pytest.raises(AdjacencyError, match=r"3 apart .* claimed at 1 \(d_in=0.5 at distance 2\); use d_in=1.5"):
        far.check_pair(0.0, 3.0, 2)


def test_the_search_keeps_to_pairs_that_the_map_was_asked_about(dp: Any) -> None:
    total, pairs = from_opendp(_bounded_sum(dp), adjacency=Local()), [([0, 1], [0, -1]), ([0], [0, 1])]
    found = find_worst_pair(total, pairs, runs=1_000, search_runs=1_000, jobs=1)
    assert (found.x, found.y) == pairs[1]
    assert any("use d_in=2" in str(tried) for tried in found.ranking)


@pytest.mark.usefixtures("without_resolution")
def test_responses_and_selections(dp: Any) -> None:
    coin = from_opendp(dp.m.make_randomized_response_bool(prob=0.75))
    assert (coin.adjacency, coin.claim(1)) == (Local(), PureDP(float(np.log(3))))
    assert not _audit(coin, True, False).is_refuted
    die = from_opendp(dp.m.make_randomized_response(["a", "b", "c"], prob=0.5))
    assert not _audit(die, "a", "b", runs=500).is_refuted
    scores = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    selection = from_opendp(dp.m.make_noisy_max(*scores, dp.max_divergence(), scale=1.0))
    assert not _audit(selection, [0.0, 1.0], [1.0, 0.0]).is_refuted
    assert _audit(selection, [0.0, 1.0], [1.0, 0.0], PureDP(0.5), runs=_PLENTY).is_refuted


@pytest.mark.usefixtures("without_resolution")
def test_a_selection_of_monotonic_scores_is_not_audited_on_others(dp: Any) -> None:
    scores = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=True)
    selection = from_opendp(dp.m.make_noisy_max(*scores, dp.max_divergence(), scale=1.0))
    assert selection.claim(1) == PureDP(1.0)
    assert check(selection.sample, [0, 1], [1, 0], claim=selection.claim, runs=_PLENTY, alpha=_ALPHA, jobs=1).is_refuted
    with pytest.raises(AdjacencyError, match="no finite distance"):
        _audit(selection, [0, 1], [1, 0])


@pytest.mark.usefixtures("without_resolution")
def test_profiles_and_thresholds(dp: Any) -> None:
    gaussian = dp.m.make_gaussian(*_numbers(dp, float), scale=1.0)
    profile = from_opendp(dp.c.make_zCDP_to_approxDP(gaussian))
    assert isinstance(profile.claim(1), PrivacyProfile)
    fixed = from_opendp(dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)).claim(1)
    assert isinstance(fixed, ApproxDP)
    assert fixed.delta == 1e-6
    counts = (
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)),
        dp.l01inf_distance(dp.absolute_distance(T=int)),
    )
    partitions = from_opendp(dp.m.make_laplace_threshold(*counts, scale=1.0, threshold=10), d_in=(1, 1, 1))
    assert isinstance(partitions.claim(1), ApproxDP)
    assert partitions.adjacency is None
    assert "pairs are not checked" in partitions.claim_source
    assert not _audit(partitions, {"a": 12, "b": 12}, {"b": 12, "a": 11}, runs=1_000).is_refuted
    with pytest.raises(ClaimError, match="cannot be multiplied"):
        partitions.claim(2)
    partitions.check_pair({"a": 12}, {}, 1)  # no relation is known for it


@pytest.mark.usefixtures("without_resolution")
def test_outputs_that_are_dictionaries_tell_which_keys_are_there(dp: Any) -> None:
    """A threshold that single rows nearly always pass, under the claim of one that they hardly ever pass."""
    words = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()

    def counts(threshold: int) -> Any:
        return words >> dp.t.then_count_by() >> dp.m.then_laplace_threshold(scale=1.0, threshold=threshold)

    low = from_opendp(counts(2))
    assert low.sample([], 3, _rng()) == [("",)] * 3
    assert {len(output) for output in low.sample(["b", "a"], 500, _rng())} == {1, 2, 3}
    keys = {output[0] for output in low.sample(["b"] * 9 + ["a"] * 9 + ["a, b"] * 9, 50, _rng())}
    assert "'a', 'a, b', 'b'" in keys
    promised = from_opendp(counts(5)).claim(1)
    assert _audit(low, ["b"], ["b", "a"], promised, runs=1_000).is_refuted
    both = from_opendp(dp.c.make_composition([counts(2), counts(2)]))
    assert both.sample([], 2, _rng()) == [(("",), ("",))] * 2


def test_measures_of_the_users_own(dp: Any) -> None:
    space = _numbers(dp, float)

    def measurement(measure: Any, function: Any, privacy_map: Any) -> Any:
        return dp.m.make_user_measurement(*space, measure, function, privacy_map, TO="f64")

    def curve(d_in: float) -> Any:
        return lambda order: d_in**2 * order / 2

    assert from_opendp(measurement(dp.renyi_divergence(), abs, curve), order=4.0).claim(2) == RenyiDP(4.0, 8.0)
    whole = from_opendp(measurement(dp.renyi_divergence(), abs, curve)).claim(1)
    assert isinstance(whole, PrivacyProfile)

    def up_to_64(d_in: float) -> Any:
        return lambda order: d_in**2 * order / 2 if order < 64 else 1 / 0

    assert from_opendp(measurement(dp.renyi_divergence(), abs, up_to_64), order=4.0).claim(2) == RenyiDP(4.0, 8.0)
    with pytest.raises(ClaimError, match="curve raised OpenDPException at order 100; pass order="):
        from_opendp(measurement(dp.renyi_divergence(), abs, up_to_64), order=100.0)
    with pytest.raises(ClaimError, match=r"no finite value at orders from 1\.01 to .*; pass order="):
        from_opendp(measurement(dp.renyi_divergence(), abs, lambda d_in: lambda order: 1 / 0))
    cut = from_opendp(measurement(dp.renyi_divergence(), abs, up_to_64)).claim(1)
    assert np.all(np.array(cut.deltas) >= np.array(whole.deltas))
    assert np.any(np.array(cut.deltas) == np.array(whole.deltas))
    with pytest.raises(ClaimError, match="the measure tv is unknown"):
        from_opendp(measurement(dp.user_divergence("tv"), abs, abs))
    with pytest.raises(ClaimError, match="omit order"):
        from_opendp(measurement(dp.max_divergence(), abs, abs), order=2.0)
    with pytest.raises(ClaimError, match="epsilon=inf"):
        from_opendp(measurement(dp.max_divergence(), abs, lambda d_in: float("inf")))
    copied = from_opendp(measurement(dp.max_divergence(), lambda value: value, abs))  # no noise at all
    assert _audit(copied, 0.0, 1.0, runs=500).is_refuted


def test_runs_that_raise(dp: Any) -> None:
    space = _numbers(dp, float)
    broken = dp.m.make_user_measurement(*space, dp.max_divergence(), lambda value: 1.0 / value, abs, TO="f64")
    with pytest.raises(MechanismError, match=r'raised OpenDPException: .*ZeroDivisionError.* use draws="singly"'):
        from_opendp(broken).sample(0.0, 10, _rng())
    singly = from_opendp(broken, draws="singly")
    assert singly.sample(0.0, 2, _rng()) == [Raised("OpenDPException")] * 2


@pytest.mark.parametrize("dataset", ["a", None, [1.0], 1.5, 2**40, True])
def test_datasets_outside_the_domain_are_refused(dp: Any, dataset: Any) -> None:
    mechanism = from_opendp(dp.m.make_laplace(*_numbers(dp, int), scale=1.0))
    with pytest.raises(DatasetError, match=r"not in the measurement's domain AtomDomain\(T=i32\)"):
        mechanism.sample(dataset, 10, _rng())


def test_numbers_of_numpy_are_taken(dp: Any) -> None:
    mechanism = from_opendp(dp.m.make_laplace(*_numbers(dp, int), scale=1.0), d_in=np.int64(2))
    assert mechanism.claim(1) == PureDP(2.0)
    assert len(mechanism.sample(np.int64(3), 7, _rng())) == 7


def test_what_is_no_measurement_is_refused(dp: Any) -> None:
    with pytest.raises(MechanismError, match="chain a partial constructor"):
        from_opendp(dp.m.then_laplace(scale=1.0))
    with pytest.raises(MechanismError, match="not a Measurement"):
        from_opendp(dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()))
    interactive = dp.c.make_adaptive_composition(*_numbers(dp, int), dp.max_divergence(), d_in=1, d_mids=[1.0])
    with pytest.raises(MechanismError, match="returned a queryable"):
        from_opendp(interactive).sample(1, 1, _rng())
    laplace = dp.m.make_laplace(*_numbers(dp, int), scale=1.0)
    for d_in in (0, -1, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="not a distance of neighbours"):
            from_opendp(laplace, d_in=d_in)
    with pytest.raises(ClaimError, match=r"map\('far'\) raised TypeError"):
        from_opendp(laplace, d_in="far")


def test_a_copy_for_another_process_is_the_same(dp: Any) -> None:
    bounded = dp.vector_domain(dp.atom_domain(bounds=(0, 3)))
    chain = (bounded, dp.symmetric_distance()) >> dp.t.then_sum() >> dp.m.then_laplace(scale=0.7)
    mechanism = from_opendp(chain, adjacency=Replace(), draws="singly")
    copy = cloudpickle.loads(cloudpickle.dumps(mechanism))
    assert (repr(copy.measurement), copy.claim(2)) == (repr(chain), mechanism.claim(2))
    for name in ("claim_source", "adjacency", "draws"):
        assert getattr(copy, name) == getattr(mechanism, name)
    own = dp.m.make_user_measurement(*_numbers(dp, float), dp.max_divergence(), abs, abs, TO="f64")
    with pytest.raises(Exception, match="does not handle"):  # threads then draw, as for every block sampler
        cloudpickle.dumps(from_opendp(own))
    assert check(from_opendp(own), 0.0, 1.0, claim=PureDP(1.0), runs=500, jobs=2).is_refuted
