"""Batch samplers: correct ones are not refuted, faulty ones are, and the costs are those of the accountants."""

import itertools
import math
from collections import defaultdict

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from scipy.stats import norm

import dpaudit
from dpaudit import Verdict
from dpaudit.audit.errors import AuditError, ClaimError, MechanismError, OptionError, RefutedError
from dpaudit.audit.training import check_batches as module
from dpaudit.audit.training.check_batches import Assumption, _Drawn, _Tests, accountant_of, shuffled_epsilon_at_least
from dpaudit.mechanisms.training.dp_sgd import dp_sgd_claim
from dpaudit.mechanisms.training.train import FixedSizeBatches, FullBatch, PoissonBatches, ShuffledBatches
from dpaudit.training import check_batches

N, Q, ROUNDS = 100, 0.1, 10
FIXED, SHUFFLED, REPLACED = ({"batch_size": 10, "sampling": how} for how in ("fixed", "shuffled", "with replacement"))


def coins(n, rng, q=Q):
    return np.flatnonzero(rng.random(n) < q)


def poisson(n, rng):
    return [coins(n, rng) for _ in range(ROUNDS)]


def fixed(n, rng):
    return [rng.choice(n, 10, replace=False) for _ in range(ROUNDS)]


def shuffled(n, rng):
    return np.array_split(rng.permutation(n), range(10, n, 10))


def replaced(n, rng):
    return rng.integers(n, size=(ROUNDS, 10))


CORRECT = {
    "poisson": (poisson, N, {"q": Q}),
    "expected size": (poisson, N, {"batch_size": 10}),
    "fixed": (fixed, N, {"q": Q, "sampling": "fixed"}),
    "shuffled": (shuffled, N, {"q": Q, "sampling": "shuffled"}),
    "a smaller last batch": (shuffled, 96, SHUFFLED),
    "two epochs": (lambda n, rng: [*shuffled(n, rng), *shuffled(n, rng)], 96, SHUFFLED),
    "with replacement": (replaced, N, REPLACED),
}


@pytest.mark.parametrize(("sampler", "n", "told"), CORRECT.values(), ids=CORRECT)
def test_correct_samplers_are_not_refuted(sampler, n, told):
    result = check_batches(sampler, n, seed=1, **told)
    assert result.verdict is Verdict.NOT_REFUTED, str(result)
    assert result.inclusion[0] < 10 / n < result.inclusion[1]


def wrong_n(n, rng):
    return [coins(n, rng, 10 / 90) for _ in range(ROUNDS)]


def all_outside(n, rng):
    return [coins(n, rng) + n for _ in range(ROUNDS)]


def reseeded_every_epoch(n, rng):
    seed = rng.integers(1 << 30)
    return [batch for _ in range(3) for batch in poisson(n, np.random.default_rng(seed))]


def two_examples_go_together(n, rng):
    masks = rng.random((ROUNDS, n)) < Q
    masks[:, 77] = masks[:, 23]
    return masks


def rate_within_the_minibatches_of_a_loader(n, rng):
    return [batch[rng.random(len(batch)) < Q] for batch in shuffled(n, rng)]


def cut_at_13(n, rng):
    return [rng.permutation(batch)[:13] for batch in poisson(n, rng)]


def drop_last(n, rng):
    return shuffled(n, rng)[:-1]


def one_partition(n, rng):
    return [*rng.permutation(shuffled(n, np.random.default_rng(0)))]


def small_buffer(n, rng):
    order, buffer = [], list(range(30))
    for new in [*range(30, n), *[None] * 30]:
        place = rng.integers(len(buffer))
        order.append(buffer.pop(place))
        buffer += [new] * (new is not None)
    return np.array(order).reshape(-1, 10)


def cyclic(n, rng):
    halves = rng.permutation(n).reshape(2, -1)
    return [halves[t % 2][rng.random(n // 2) < 2 * Q] for t in range(ROUNDS)]


def each_round(draw):
    """A sampler whose batches are drawn alike."""
    return lambda n, rng: [draw(n, rng) for _ in range(ROUNDS)]


CALLS = itertools.count()
ONLY_RATES = {
    "wrong n": wrong_n,
    "never the last": each_round(lambda n, rng: coins(n - 1, rng)),
    "twice as often": each_round(lambda n, rng: np.flatnonzero(rng.random(n) < np.r_[2 * Q, np.full(n - 1, Q)])),
}
FAULTY = {
    **{name: (sampler, {}, ["inclusion"]) for name, sampler in ONLY_RATES.items()},
    "from one": (each_round(lambda n, rng: coins(n, rng) + 1), {}, ["inclusion"]),
    "all outside": (all_outside, {}, ["inclusion"]),
    "all outside, shuffled": (all_outside, SHUFFLED, ["inclusion"]),
    "more at first, fewer later": (
        lambda n, rng: [coins(n, rng, Q * (1.5 if t == 0 else 8.5 / 9)) for t in range(ROUNDS)], {}, ["inclusion"]
    ),
    "reseeded every epoch": (reseeded_every_epoch, {}, ["rounds"]),
    "seed fixed": (lambda n, rng: poisson(n, np.random.default_rng(3)), {}, ["rounds"]),
    "every second seed": (lambda n, rng: poisson(n, np.random.default_rng(next(CALLS) // 2)), {}, ["rounds"]),
    "block of random size": (
        each_round(lambda n, rng: (rng.integers(n) + np.arange(rng.binomial(n, Q))) % n), {}, ["examples"]
    ),
    "coins of pairs": (
        each_round(lambda n, rng: np.flatnonzero(np.repeat(rng.random(n // 2) < Q, 2))), {}, ["size", "examples"]
    ),
    "coins of minibatches": (
        each_round(lambda n, rng: np.flatnonzero(np.repeat(rng.random(n // 10) < Q, 10))), {}, ["size", "examples"]
    ),
    "two workers draw the same": (
        each_round(lambda n, rng: np.tile(coins(n, rng, Q / 2), 2)), {}, ["inclusion", "duplicates"]
    ),
    "two workers share coins": (
        each_round(lambda n, rng: np.add.outer((0, n // 2), coins(n // 2, rng)).ravel()), {}, ["size", "examples"]
    ),
    "two examples go together": (two_examples_go_together, {}, ["examples"]),
    "rate within minibatches": (rate_within_the_minibatches_of_a_loader, {}, ["inclusion"]),
    "rate within minibatches, told": (rate_within_the_minibatches_of_a_loader, {"q": Q**2}, ["rounds"]),
    "never empty": (
        lambda n, rng: [batch if len(batch) else [0] for batch in (coins(n, rng, 0.02) for _ in range(ROUNDS))],
        {"q": 0.02},
        ["size"],
    ),
    "empty are skipped": (
        lambda n, rng: [batch for batch in (coins(n, rng, 0.02) for _ in range(ROUNDS)) if len(batch)] or [[]],
        {"q": 0.02},
        ["size"],
    ),
    "cut at 13": (cut_at_13, {}, ["size"]),
    "shuffled": (shuffled, {}, ["size", "rounds"]),
    "fixed": (fixed, {}, ["size"]),
    "cyclic": (cyclic, {}, ["rounds"]),
    "replaced as fixed": (replaced, FIXED, ["duplicates"]),
    "poisson as fixed": (poisson, FIXED, ["size"]),
    "shuffled as fixed": (shuffled, FIXED, ["rounds"]),
    "fixed as replaced": (fixed, REPLACED, ["duplicates"]),
    "fixed as shuffled": (fixed, SHUFFLED, ["inclusion"]),
    "drop last": (drop_last, SHUFFLED | {"n": 104}, ["inclusion"]),
    "in order": (lambda n, rng: np.array_split(np.arange(n), 10), SHUFFLED, ["inclusion", "examples", "rounds"]),
    "one partition": (one_partition, SHUFFLED, ["examples"]),
    "small buffer": (small_buffer, SHUFFLED, ["inclusion"]),
}  # fmt: skip


@pytest.mark.parametrize(("sampler", "told", "rows"), FAULTY.values(), ids=FAULTY)
def test_faulty_samplers_are_refuted_where_they_are_wrong(sampler, told, rows):
    told = dict(told)
    n = told.pop("n", N)
    result = check_batches(sampler, n, **(told or {"q": Q}))
    refuted = [row.name for row in result.rows if row.verdict is Verdict.REFUTED]
    assert set(rows) <= set(refuted), str(result)
    if sampler in ONLY_RATES.values():  # tests of pairs allow for the rate that was seen
        assert refuted == rows
    assert len(result.notes) >= (len(refuted) > 1)
    with pytest.raises(RefutedError, match="not "):
        result.raise_if_refuted()


def test_full_batches_are_certain():
    result = check_batches(lambda n, rng: [np.arange(n)], N, batch_size=N, sampling="fixed")
    assert result.verdict is Verdict.NOT_REFUTED
    assert 59 <= result.runs <= 64  # 0.95 ** 59 < 0.05
    assert "detects Pr[neighbours in batch] = any value but 1" in result.table()


# The size of every row, over all outcomes of small samplers.


def outcomes(sampling):
    """Every outcome of two runs of two batches of a small sampler, with probabilities: assumption, sizes, outcomes."""
    n, size, q = (3, None, 0.3) if sampling == "poisson" else (4, 2, 0.5)
    told = Assumption(sampling=sampling, n=n, q=q, batch_size=size)
    if sampling == "shuffled":
        orders = [[np.array(order[:2]), np.array(order[2:])] for order in itertools.permutations(range(n))]
        epochs = itertools.product(orders, repeat=2)
        return told, np.array([size, size]), [(list(each), len(orders) ** -2) for each in epochs]
    if sampling == "with replacement":
        batches = [(np.array(pair), n**-2) for pair in itertools.product(range(n), repeat=size)]
    elif sampling == "fixed":
        batches = [(np.array(pair), 1 / math.comb(n, size)) for pair in itertools.combinations(range(n), size)]
    else:
        masks = [np.array(mask) for mask in itertools.product((0, 1), repeat=n)]
        batches = [(np.flatnonzero(mask), math.prod(np.where(mask, q, 1 - q))) for mask in masks]
    cells = itertools.product(batches, repeat=2)
    drawn = [([[batch] for batch, _ in each], math.prod(p for _, p in each)) for each in cells]
    return told, np.array([size]), drawn


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "shuffled", "with replacement"])
def test_p_values_are_valid(sampling):
    told, sizes, drawn = outcomes(sampling)
    assert sum(p for _, p in drawn) == pytest.approx(1.0)
    tests = _Tests(assumed=told, sizes=sizes, runs=len(drawn[0][0]), alpha=0.01)
    of_rows = defaultdict(lambda: defaultdict(float))
    for runs, probability in drawn:
        if not any(len(batch) for run in runs for batch in run):
            continue  # an error: it draws nothing
        for name, pvalue, _ in tests.found(_Drawn.of(runs, len(sizes), told.n)):
            of_rows[name][round(pvalue, 12)] += probability
    assert len(of_rows) == 5
    for name, distribution in of_rows.items():
        below = 0.0
        for pvalue in sorted(distribution):
            below += distribution[pvalue]
            assert below <= pvalue + 1e-9 or pvalue == 1.0, (name, pvalue, below)


# Costs.


def costs(sampler, **told):
    result = check_batches(sampler, told.pop("n", N), **{"noise_multiplier": 1.0} | told)
    return {cost.sign + cost.batches.split(" ")[0]: cost.epsilon for cost in result.costs}, result


def test_a_correct_sampler_costs_what_is_accounted():
    found, _ = costs(poisson, q=Q, rounds=50)
    assert found == {"=as": pytest.approx(dp_sgd_claim(PoissonBatches(Q), 1.0, 50).epsilon)}
    found, _ = costs(fixed, **FIXED)
    claim = dp_sgd_claim(FixedSizeBatches(10, N), 1.0, ROUNDS, neighbours="replace_one")
    assert found == {"=as": pytest.approx(claim.epsilon)}
    for size, n in ((10, N), (7, 25)):  # 7 / 25 * 25 is more than 7 in floating point
        told = Assumption(sampling="fixed", n=n, q=size / n, batch_size=size)
        sampled = dp_accounting.SampledWithoutReplacementDpEvent(n, size, dp_accounting.GaussianDpEvent(0.5))
        accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(dp_accounting.SelfComposedDpEvent(sampled, ROUNDS))
        assert accountant_of(told, 1.0, ROUNDS).get_epsilon(1e-5) == accountant.get_epsilon(1e-5)


def test_shuffled_batches_cost_between_two_bounds():
    for told in ({"q": Q}, SHUFFLED):
        found, result = costs(shuffled, **told, rounds=30)
        assert "for 3 shuffled epochs" in str(result)
        claim = dp_sgd_claim(ShuffledBatches(10, N), 1.0, 30, neighbours="replace_special")
        assert found["<=if"] == pytest.approx(claim.epsilon, abs=1e-6)
        assert found.get("=as", 0.0) < found[">=for"] < found["<=if"]
    assert "epsilon >=" in str(result)
    assert ">=for" not in costs(one_partition, **SHUFFLED)[0]  # its batches are not shuffled, so the bound is another
    assert costs(drop_last, **SHUFFLED, n=104)[0][">=for"] < costs(shuffled, **SHUFFLED)[0][">=for"]


def test_a_wrong_rate_costs_the_largest_rate_that_may_be():
    found, result = costs(wrong_n, q=Q)
    most = result.inclusion[1]
    assert 10 / 90 < most < 0.25
    assert found["<=if"] > found["=as"]
    first = [cost for cost in result.costs if "only the rate" in cost.batches]
    assert [cost.epsilon for cost in first] == pytest.approx([dp_sgd_claim(PoissonBatches(most), 1.0, ROUNDS).epsilon])


def test_cut_batches_have_an_accountant():
    found, _ = costs(cut_at_13, q=Q, noise_multiplier=5.0)
    assert found["<=for"] > found["=as"]
    assert costs(all_outside, q=Q, noise_multiplier=5.0)[0]["<=if"] > 0.0
    found, result = costs(fixed, q=Q, noise_multiplier=5.0)
    assert "<=for" not in found
    assert "clipping norms" in result.costs[-1].batches


def test_the_lower_bound_of_shuffled_batches_is_attained():
    """δ of the pair of two batches by integration over a grid."""
    sigma, delta, step = 1.0, 1e-3, 0.02
    z = np.arange(-6.0, 9.0, step)
    near, far, none = (norm.pdf(z, moved, sigma) for moved in (1.0, 2.0, 0.0))
    p, q = (0.5 * (np.outer(one, none) + np.outer(none, one)) for one in (far, near))
    lower = shuffled_epsilon_at_least(sigma, 2, 1, delta)

    def delta_at(epsilon):
        return np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * step**2

    assert delta_at(lower) >= delta > delta_at(lower + 0.3)
    bounds = [shuffled_epsilon_at_least(sigma, 10, epochs, 1e-5) for epochs in (1, 2, 5, 20)]
    assert bounds == sorted(bounds)
    assert shuffled_epsilon_at_least(50.0, 10, 1, 0.1) == 0.0
    assert 50.0 < shuffled_epsilon_at_least(0.1, 10, 5, 1e-5) < math.inf
    for sigma in (0.3, 1.0, 3.0):
        upper = dp_sgd_claim(FullBatch(), sigma, 1, delta=1e-6).epsilon
        assert all(0.0 < shuffled_epsilon_at_least(sigma, batches, 1, 1e-6) < upper for batches in (2, 100, 10_000))


# Forms of samplers.


class Again:
    """A sampler that is iterated again, with its own generator."""

    def __init__(self):
        self.rng = np.random.default_rng(5)

    def __iter__(self):
        return iter(poisson(N, self.rng))


class WithMethod:
    def batch_iterator(self, num_examples, rng=None):
        yield from poisson(num_examples, rng)


OWN = np.random.default_rng(1)
FORMS = {
    "rng": lambda rng: poisson(N, rng),
    "rng and n": lambda rng, n: poisson(n, rng),
    "masks": lambda rng: rng.random((ROUNDS, N)) < Q,
    "lists": lambda rng: [batch.tolist() for batch in poisson(N, rng)],
    "sets": lambda rng: [set(batch.tolist()) for batch in poisson(N, rng)],
    "padding": lambda rng: [np.r_[batch, [-1] * 3] for batch in poisson(N, rng)],
    "loader": lambda rng: [[batch] for batch in poisson(N, rng)],
    "a generator": lambda rng: iter(poisson(N, rng)),
    "no argument": lambda: poisson(N, OWN),
    "defaults": lambda n=N, rng=OWN: poisson(n, rng),
    "n and defaults": lambda n, rng=None, generator=None: poisson(n, OWN if rng is None else rng),
    "object": Again(),
    "method": WithMethod().batch_iterator,
    "one batch": lambda rng: coins(N, rng),
    "one mask": lambda rng: rng.random(N) < Q,
    "one list": lambda rng: coins(N, rng).tolist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_samplers(form):
    result = check_batches(FORMS[form], N, q=Q)
    assert result.verdict is Verdict.NOT_REFUTED, str(result)
    assert result.rounds == (1 if form.startswith("one") else ROUNDS)
    assert result.runs * result.rounds >= 600


def endless(n, rng):
    while True:
        yield coins(n, rng)


def test_a_run_without_an_end_is_cut():
    result = check_batches(endless, N, q=Q, rounds=20)
    assert (result.verdict, result.rounds) == (Verdict.NOT_REFUTED, 20)


def test_the_time_limit_ends_the_draws(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(module, "now", lambda: next(clock))
    result = check_batches(poisson, N, q=Q, seconds=100)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.runs == 10  # each batch takes a second
    assert "100 batches in 10 runs are too few to test inclusion and size" in result.sentence
    assert "next: a longer seconds=" in str(result)
    cut = check_batches(endless, N, q=Q, seconds=100, rounds=10_000)
    assert (cut.runs, cut.rounds) == (1, 100)
    with pytest.raises(
        MechanismError, match=r"yielded 100 batches in seconds=100, not a whole run; use a longer time, or rounds="
    ):
        check_batches(endless, N, q=Q, seconds=100)


@pytest.mark.parametrize(
    ("error", "message", "sampler", "n", "told"),
    [
        (OptionError, "neither is given", poisson, N, {}),
        (OptionError, "both are given", poisson, N, {"q": Q, "batch_size": 10}),
        (OptionError, "q=1.0 is not a sampling rate", poisson, N, {"q": 1.0}),
        (OptionError, "q=0 is not a sampling rate", poisson, N, {"q": 0}),
        (OptionError, "is not a whole number of them; use batch_size=", poisson, N, {"q": 0.123, "sampling": "fixed"}),
        (OptionError, "batch_size=101 is too large for n=100", poisson, N, {"batch_size": 101, "sampling": "fixed"}),
        (OptionError, "batch_size=100 is too large for n=100", poisson, N, {"batch_size": 100}),
        (ClaimError, "0 < delta < 1", poisson, N, {"q": Q, "noise_multiplier": 1.0, "delta": 0}),
        (OptionError, "n=1 is not a number of examples", poisson, 1, {"q": Q}),
        (OptionError, "sampling='poison' is unknown", poisson, N, {"q": Q, "sampling": "poison"}),
        (OptionError, "sampler=3 is not a sampler", 3, N, {"q": Q}),
        (OptionError, "is not a sampler; pass a function", iter([[1]]), N, {"q": Q}),
        (OptionError, "n=100 does not fit masks of 101 examples", lambda rng: rng.random((3, 101)) < Q, N, {"q": Q}),
        (OptionError, "more than 100,000 batches; use rounds=", lambda: itertools.repeat([]), N, {"q": Q}),
        (MechanismError, "returned None, not batches", lambda: None, N, {"q": Q}),
        (MechanismError, "is not a list of indices", lambda: [[0.5]], N, {"q": Q}),
        (MechanismError, "is not a list of indices", lambda: [[np.zeros(3), np.zeros(3)]], N, {"q": Q}),
        (MechanismError, "is not a list of indices", lambda: [["a"]], N, {"q": Q}),
        (MechanismError, "yields 3, not a batch; wrap", range(3, 9), N, {"q": Q}),
        (MechanismError, "drew no example in", lambda: [[], []], N, {"q": Q}),
        (MechanismError, "has no batches; return at least one", lambda: iter([]), N, {"q": Q}),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_an_error(error, message, sampler, n, told):
    with pytest.raises(error, match=message) as caught:
        check_batches(sampler, n, **told)
    assert isinstance(caught.value, AuditError)
    assert "\n" not in str(caught.value)


# The result.


def test_the_result_prints_and_is_saved(tmp_path):
    result = check_batches(shuffled, N, q=Q, noise_multiplier=1.0, seed=3)
    assert (
        str(result).splitlines()[0].startswith("REFUTED  shuffled: not Poisson sampling with q = 0.1 (95% confidence; ")
    )
    assert result.table().splitlines()[1].startswith("size        refuted       every batch has 10 examples; ")
    assert "rounds      refuted       batches t and t + 1 of a run share 0 examples, expected" in result.table()
    assert max(map(len, str(result).splitlines())) <= 120
    flat = result.to_dict()
    assert (flat["verdict"], flat["sampler"], flat["assumption_q"], flat["rounds"]) == (
        "refuted",
        "shuffled",
        Q,
        ROUNDS,
    )
    assert flat["epsilon_accounted"] < flat["epsilon_lower"] < flat["epsilon_upper"]
    assert "REFUTED" in result._repr_html_()
    assert repr(result) == "<BatchesResult shuffled: refuted, size, rounds, claim Poisson sampling with q = 0.1>"
    dpaudit.save(result, tmp_path / "batches.json")
    (kept,) = dpaudit.load(tmp_path / "batches.json").checks
    assert (kept.kind, kept.name, kept.verdict, kept.alpha) == ("batches", "shuffled", "REFUTED", 0.05)
    assert kept.found == "size, rounds"
    assert check_batches(shuffled, N, q=Q, noise_multiplier=1.0, seed=3) == result
