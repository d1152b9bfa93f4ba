"""Audits from end to end, at small size: verdicts and refusals."""

import math
import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from dpaudit import AddRemove, ApproxDP, PureDP, Verdict, check, epsilon_lower
from dpaudit.audit.errors import AdjacencyError, ClaimError, DatasetError, MechanismError, OptionError
from dpaudit.audit.inference.event_test import Counts, Directed, directed, parameter_lower
from dpaudit.audit.printing import rounded_down
from dpaudit.audit.sampling.block_plan import Plan
from dpaudit.domains import Within

X, Y = [1, 1, 1], [1, 1]
RARE = 1e-6  # alpha where a mechanism that only just keeps its claim has to pass


def laplace(scale=1.0):
    """A count with Laplace noise: 1/scale-DP under adding or removing a row, and no less."""
    return lambda rows, size, rng: len(rows) + rng.laplace(scale=scale, size=size)


def test_refuted():
    result = check(laplace(0.5), X, Y, claim=PureDP(1.0), adjacency=AddRemove(), runs=100_000)
    assert result.verdict is Verdict.REFUTED
    assert 1.9 < result.bound <= 2.0
    assert result.pvalue < 1e-8
    assert result.counts.runs_x == result.counts.runs_y == 100_000 - result.pilot_runs
    named = rf"REFUTED  lambda at test_check\.py:\d+: epsilon >= {rounded_down(result.bound):g}, "
    assert re.match(named, str(result))
    assert "claimed 1 (95% confidence)" in str(result)
    assert "times as likely on" in result.event_in_words
    assert check(laplace(0.2), X, Y, claim=PureDP(1.0), runs=5_000, detect=1e-6).is_refuted, "for any excess"


def test_not_refuted_says_what_would_have_been_found():
    result = check(laplace(), X, Y, claim=PureDP(1.0), runs=100_000, detect=0.1, alpha=RARE)
    assert result.verdict is Verdict.NOT_REFUTED
    assert 0.9 < result.bound <= 1.0
    assert result.pvalue > RARE
    assert 0 < result.min_detectable_excess < 0.1
    assert f"minimum detectable excess: {result.min_detectable_excess:.2g}" in str(result)
    assert result.pair.adjacency == "declared neighbours by the caller"


@pytest.mark.parametrize(("detect", "stated"), [(0.5, None), (1.5, 1.5)])
def test_an_audit_sized_for_an_excess_never_calls_itself_too_small(detect, stated):
    """It states the request only if that is more than an audit may have without being inconclusive."""
    result = check(laplace(), X, Y, claim=PureDP(1.0), detect=detect, alpha=RARE)
    assert (result.verdict, result.detect) == (Verdict.NOT_REFUTED, stated)
    assert result.min_detectable_excess <= 1.1 * detect


def test_an_audit_that_misses_its_request_by_a_factor_of_two_states_it():
    """The pilot that sized it saw none of the rare outputs."""
    result = check(lambda d, size, rng: rng.random(size) < 1e-4, X, Y, claim=PureDP(1.0), detect=0.5)
    assert (result.verdict, result.detect) == (Verdict.INCONCLUSIVE, 0.5)
    assert result.min_detectable_excess > 1.0


@pytest.mark.parametrize("detect", [1e-4, 1e-6])
def test_an_excess_that_takes_too_many_runs_is_refused_by_its_own_number(detect):
    with pytest.raises(OptionError, match=f"^detect={detect:g} takes more than 10,000,000,000 runs; .*set runs=.$"):
        check(lambda d, size, rng: rng.random(size) < (0.3 if d is X else 0.2), X, Y, claim=PureDP(1.0), detect=detect)


@pytest.mark.parametrize(("runs", "detect"), [(5_000, 0.001), (40, None)])
def test_too_few_runs_are_inconclusive(runs, detect):
    claim = PureDP(1.0) if detect else PureDP(5.0)
    result = check(laplace(), X, Y, claim=claim, runs=runs, detect=detect)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert f"too few runs for 95% confidence ({runs:,} per dataset)" in str(result)
    assert ("requested: 0.001" in str(result)) == (detect is not None)
    assert ("use about 140,000,000 runs" if detect else "use another pair") in result.sentence
    assert ("accept this with detect=" in result.sentence) == math.isfinite(result.min_detectable_excess)
    assert math.isinf(result.min_detectable_excess) == (detect is None)


def test_a_longer_pilot_draws_further_blocks(monkeypatch):
    """Vectors have a quarter of the runs as their pilot, whose first tenth was drawn before they were seen."""
    drawn, real = [], Plan.draw

    def draw(plan, phase, side, number, size, *shape, **options):
        drawn.append((phase, side, number, size))
        return real(plan, phase, side, number, size, *shape, **options)

    monkeypatch.setattr(Plan, "draw", draw)
    result = check(lambda v, size, rng: v + rng.laplace(size=(size, 2)), 0, 1, claim=PureDP(1.0), runs=80_000, jobs=1)
    assert result.pilot_runs == 20_000
    numbers, sizes = zip(*(block[2:] for block in drawn if block[:2] == ("pilot", "y")), strict=True)
    assert sum(sizes) == 20_000
    assert [*numbers] == list(range(len(numbers)))


@pytest.mark.parametrize(("scale", "verdict"), [(1.0, Verdict.NOT_REFUTED), (0.6, Verdict.REFUTED)])
def test_group_privacy_at_distance_two(scale, verdict):
    result = check(
        laplace(scale), X, X[:1], claim=PureDP(1.0), adjacency=AddRemove(), distance=2, runs=40_000, alpha=RARE
    )
    assert result.verdict is verdict
    assert result.bound <= 1 / scale
    assert result.pair.distance == 2
    assert "per step, at distance 2" in str(result)


def test_a_claim_may_be_a_function_of_the_distance():
    asked = []

    def privacy_map(distance):
        asked.append(distance)
        return PureDP(2.0 * distance)

    settings = {"claim": privacy_map, "adjacency": Within("l1", radius=1.0), "distance": 0.5, "runs": 20_000}
    result = check(lambda d, size, rng: d + rng.laplace(size=size), 0.0, 0.5, **settings)
    assert (asked, result.claim, result.is_refuted) == ([0.5], PureDP(1.0), False)


def test_seeds():
    first, again, other = (check(laplace(), X, Y, claim=PureDP(1.0), runs=2_000, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first.counts != other.counts
    fresh = check(laplace(), X, Y, claim=PureDP(1.0), runs=2_000, seed=None)
    assert fresh.is_reproducible
    assert fresh.why_not_reproducible == ""
    assert check(laplace(), X, Y, claim=PureDP(1.0), runs=2_000, seed=fresh.seed, jobs=1) == fresh


def test_exceptions_are_outcomes_unless_every_run_raises_or_exits():
    def fragile(rows, rng):
        if len(rows) == 3:
            raise ValueError("too long")
        return rng.random()

    def leaves(rows, rng):
        raise SystemExit(0)

    result = check(fragile, X, Y, claim=PureDP(1.0), runs=400, jobs=1)
    assert result.is_refuted
    assert [note.split(" was ")[0] for note in result.notes] == ["ValueError"] * 2, "in the pilot and in the main runs"
    with pytest.raises(MechanismError, match=r"fragile raised in every one of .*, ValueError: too long"):
        check(fragile, X, X, claim=PureDP(1.0), runs=400, jobs=1)
    with pytest.raises(MechanismError, match="called exit"):
        check(leaves, X, Y, claim=PureDP(1.0), runs=400, jobs=1)


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("counts", [(670, 1000, 180, 1000), (20, 10**6, 0, 10**6), (0, 10, 5, 10), (10, 10, 10, 10)])
def test_epsilon_lower(counts, delta):
    p, n, q, m = counts
    exact = epsilon_lower(*counts, alpha=0.05, delta=delta)
    claim = ApproxDP(0.0, delta) if delta else PureDP(0.0)
    assert exact == parameter_lower(Counts(count_x=p, runs_x=n, count_y=q, runs_y=m), claim, alpha=0.05)
    peer = epsilon_lower(*counts, alpha=0.05, delta=delta, method="clopper-pearson")
    low = stats.beta.ppf(0.025, p, n - p + 1) if p else 0.0
    high = stats.beta.ppf(0.975, q + 1, m - q) if q < m else 1.0
    lines = [math.log((a - delta) / b) for a, b in ((low, high), (1 - high, 1 - low)) if a > delta and b > 0]
    assert peer == pytest.approx(max([0.0, *lines]), rel=1e-9)
    assert epsilon_lower(*counts, alpha=0.2, delta=delta) >= exact >= peer


def test_epsilon_lower_refuses():
    for name, value in (("alpha", 0.0), ("alpha", math.nan), ("delta", -0.1), ("delta", 1.0), ("method", "w")):
        with pytest.raises((OptionError, ClaimError), match=name):
            epsilon_lower(6, 10, 2, 10, **{"alpha": 0.05, name: value})


@dataclass(frozen=True, slots=True)
class OneWay(PureDP):
    """Pr[M(x) ∈ S] ≤ e^ε Pr[M(y) ∈ S] one way, and with ε + 1 the other way."""

    is_reversed: bool = False

    def with_parameter(self, parameter):
        return OneWay(parameter, self.is_reversed)

    def reversed(self):
        """ε belongs to the family in either direction."""
        return OneWay(self.epsilon + (-1.0 if self.is_reversed else 1.0), not self.is_reversed)


def one_sided(data, size, rng):
    """True has probability .05 on y and .05·e^1.5 on x, False barely differs: 1.5 from x to y, .2 back."""
    return rng.random(size) < (0.05 * math.exp(1.5) if data == "x" else 0.05)


def test_each_direction_is_held_to_its_own_boundary():
    tight = OneWay(1.0)  # 1 from x to y, 2 from y to x
    assert tight.reversed() == OneWay(2.0, is_reversed=True)
    assert tight.reversed().reversed() == tight
    counts = Counts(count_x=1, runs_x=9, count_y=5, runs_y=9)
    assert directed(tight, counts, "y") == Directed(tight.reversed(), counts.swapped())
    assert check(one_sided, "x", "y", claim=tight, runs=60_000).is_refuted
    assert not check(one_sided, "y", "x", claim=tight, runs=60_000).is_refuted  # its 1.5 now stands against 2
    assert not check(one_sided, "x", "y", claim=tight.reversed(), runs=60_000).is_refuted


def test_two_empty_datasets_are_refused_and_one_is_not():
    with pytest.raises(DatasetError, match="both datasets are empty"):
        check(laplace(), [], np.empty(0), claim=PureDP(1.0))
    assert not check(laplace(), [1], [], claim=PureDP(1.0), adjacency=AddRemove(), runs=20_000, alpha=RARE).is_refuted


def _total(dataset, size, rng):
    return dataset[0].sum() + rng.laplace(scale=0.5, size=size)


def test_a_refutation_on_a_list_of_features_and_labels_says_what_it_means():
    """One replaced array is at distance 1, though every row of it differs: the refutation is that of 20 rows."""
    labels = np.arange(20)
    options = {"claim": PureDP(2.0), "adjacency": "replace", "runs": 2_000, "jobs": 1, "floating_point": "ignore"}
    result = check(_total, [np.ones((20, 2)), labels], [np.zeros((20, 2)), labels], **options)
    assert result.is_refuted
    assert any("Each of the 2 parts of the list counts as one row" in note for note in result.notes)
    with pytest.raises(AdjacencyError, match="at distance 20"):
        check(_total, (np.ones((20, 2)), labels), (np.zeros((20, 2)), labels), **options)


def test_features_and_labels_are_one_table_in_a_whole_audit(tmp_path):
    features, labels = np.ones((20, 2)), np.arange(20)
    table = (features, labels), (features[:-1], labels[:-1])
    result = check(
        _total, *table, claim=PureDP(1.0), adjacency="add-remove", runs=2_000, jobs=1, store=tmp_path / "store",
        keep_datasets=True, floating_point="ignore", alpha=RARE,
    )  # fmt: skip
    assert (result.pair.x, result.pair.y) == ("tuple of 2 columns, 20 rows", "tuple of 2 columns, 19 rows")
    assert result.pair.difference == "1 row only in x, 0 only in y"
    assert result.is_refuted
    with pytest.raises(DatasetError, match="both datasets are empty"):
        check(_total, (features[:0], labels[:0]), (features[:0], labels[:0]), claim=PureDP(1.0))
