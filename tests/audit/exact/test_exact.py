"""Exact audits against a slow enumerator, known distributions and closed forms, and what they must refuse."""

import ctypes
import decimal
import functools
import itertools
import math
import random
import secrets
import ssl
import sys
import time
import warnings
from dataclasses import replace
from datetime import datetime
from fractions import Fraction

import numpy as np
import pytest
from scipy import special
from scipy.stats import norm

import dpaudit as dp
from dpaudit import ApproxDP, GaussianDP, PureDP, RenyiDP, Rows, Values, check, find_worst_pair
from dpaudit.audit.exact import chain, fingerprint, frames
from dpaudit.domains import Answers, Within
from dpaudit.errors import DatasetError, InconclusiveError, Interrupted, MechanismError, OptionError
from dpaudit.exact import Budget, ExactDistribution, ExactVerdict, distribution
from dpaudit.mechanisms import RandomisedResponse, UnaryEncoding, exact_epsilon
from dpaudit.reports.pages.html_page import html
from dpaudit.results import Result

from . import attacks_on_frames, attacks_on_objects, attacks_on_the_world, generated
from .enumerator import compare, enumerate_paths

audit = functools.partial(check, exact=True)
LIBC = ctypes.CDLL(None)
STATE = np.random.RandomState()
LIBC.rand  # noqa: B018, as code does that has called it
STATE = np.random.RandomState()

PROGRAMS = attacks_on_frames.PROGRAMS | attacks_on_objects.PROGRAMS | attacks_on_the_world.PROGRAMS


@pytest.mark.parametrize("part", range(4))
def test_attacks_keep_their_distribution(part):
    """Programs with state in places that a merge may overlook."""
    assert len(PROGRAMS) > 160
    for name, program in itertools.islice(PROGRAMS.items(), part, None, 4):
        compare(name, distribution(program, 1), *enumerate_paths(program, 1))


def n_compared(seeds, most):
    """Compare the generated programs with at most so many paths, and return their number."""
    compared = 0
    for seed in seeds:
        program, fresh, reset = generated.program_of(seed)
        try:
            truth, cut = enumerate_paths(fresh, 1, most=most)
        except OverflowError:
            continue
        reset()
        found = distribution(program, 1)
        compare(seed, found, truth, cut)
        assert found.remainder == 0
        compared += 1
    return compared


def test_generated_programs_keep_their_distribution():
    assert n_compared(range(40), 1_000) > 15


@pytest.mark.evidence
def test_a_thousand_generated_programs_keep_their_distribution():
    """Three minutes of processor time."""
    assert n_compared(range(40, 1_700), 3_000) > 1_000


def test_an_unknown_layout_of_frames_merges_nothing(monkeypatch):
    unknown = frames.FrameReader(None)
    monkeypatch.setattr(chain, "READER", unknown)
    for name in ("operand stack", "generator_state", "recursion"):
        found = distribution(PROGRAMS[name], 1)
        compare(name, found, *enumerate_paths(PROGRAMS[name], 1))
        assert set(found.not_merged) == {"the layout of frames of this Python is not known"}


def geometric(x, rng):
    n = 0
    while rng.random() < 0.5:
        n += 1
    return x + n


def test_a_wrong_merge_is_an_error_of_the_tool(monkeypatch):
    def worse(seen, root):
        if not isinstance(root, int):  # the planted fault: whole numbers do not count
            add(seen, root)

    add = fingerprint.Fingerprint.add
    monkeypatch.setattr(fingerprint.Fingerprint, "add", worse)
    with pytest.raises(MechanismError, match="two executions differ"):
        distribution(geometric, 0)


def test_frames_of_this_python_are_read():
    """A wrong layout cannot be tried, as it would read memory of others."""
    assert (frames.READER.layout is not None) == (sys.version_info[:2] in [(3, minor) for minor in range(11, 16)])


# Known distributions.


def bernoulli_exp(gamma, rng):
    k = 1
    while rng.random() < gamma / k:
        k += 1
    return k % 2 == 1


def discrete_laplace(x, rng, scale, low=1.0):
    """Canonne, Kamath & Steinke (2020), Algorithm 2; with `low` below 1 one of its coins is too low."""
    while True:
        u = int(rng.integers(scale))
        if not bernoulli_exp(u / scale, rng):
            continue
        v = 0
        while bernoulli_exp(1.0, rng) and (low == 1.0 or rng.random() < low):
            v += 1
        magnitude, is_negative = u + scale * v, rng.random() < 0.5
        if not (is_negative and magnitude == 0):
            return x - magnitude if is_negative else x + magnitude


@pytest.mark.parametrize("scale", [3, 10])
def test_discrete_laplace(scale):
    result = audit(functools.partial(discrete_laplace, scale=scale), 0, 1, claim=1 / scale)
    ratio = math.exp(-1 / scale)
    for value, p in result.on_x.probabilities.items():
        assert float(p) == pytest.approx((1 - ratio) / (1 + ratio) * ratio ** abs(value), abs=1e-9)
    assert result.verdict is ExactVerdict.VERIFIED
    assert result.on_x.remainder < 1e-10
    assert result.on_x.n_states < 2_000
    assert not result.on_x.not_merged


def test_a_coin_that_is_a_little_low_is_refuted_with_certainty():
    """Sampling needs 3 · 10⁵ runs for it."""
    result = audit(functools.partial(discrete_laplace, scale=3, low=0.97), 0, 1, claim=1 / 3)
    assert result.verdict is ExactVerdict.REFUTED
    output, p, q, _ = result.losses()[0]
    assert abs(math.log(p / q)) == pytest.approx(1 / 3 - math.log(0.97), abs=1e-9), output
    assert result.excess.lower == pytest.approx(4.0355e-3, rel=1e-3)
    assert not result.is_rounding
    assert "(certain)" in result.headline


def test_a_function_that_changes_its_argument_is_not_a_helper():
    def step(held, rng):
        held[0] += 1
        while rng.random() < 0.9:
            if rng.random() < 0.5:
                return 1
        return 0

    def program(x, rng):
        held = [0]
        total = sum([step(held, rng) for _ in range(6)])
        return total, held[0]

    found = distribution(program, 0)
    p = Fraction(float(sum(value * p for (value, _), p in found.probabilities.items()) / 6))
    assert {held for _, held in found.probabilities} == {6}
    assert float(p) == pytest.approx(0.45 / 0.55, abs=1e-9)


def hidden_step(rng):
    """Keep a number where no digest of the world sees it, or where numpy keeps it."""
    slow = 0
    while rng.random() < 0.9 and slow < 40:
        slow += 1
    held = decimal.getcontext().prec + 10 * (np.geterr()["under"] == "raise")
    if slow % 2:
        decimal.getcontext().prec += 1
        np.seterr(under="raise")
    return held


def numpy_step(rng):
    slow = 0
    while rng.random() < 0.9 and slow < 40:
        slow += 1
    held = np.geterr()["under"]
    np.seterr(under="raise" if slow % 2 else held)
    return held


@pytest.mark.parametrize("step", [hidden_step, numpy_step])
def test_a_function_that_changes_what_a_library_keeps_is_not_a_helper(step):
    def program(x, rng):
        return [step(rng) for _ in range(2)]

    first, second = {}, {}
    for (one, other), p in distribution(program, 0).probabilities.items():
        first[one] = first.get(one, 0) + float(p)
        second[other] = second.get(other, 0) + float(p)
    assert len(first) == 1
    odd = sum(0.1 * 0.9**n for n in range(1, 40, 2))
    assert sorted(second.values()) == pytest.approx(sorted([odd, 1 - odd]))


def test_randomised_response_and_unary_encoding():
    """The probabilities are those of the doubles, to the last one of 2⁵³."""
    for mechanism, y in ((RandomisedResponse(1.0), 1), (UnaryEncoding(epsilon=1, k=3), 2)):
        result = audit(mechanism, 0, y)
        assert result.on_x.error == result.on_x.remainder == 0
        assert abs(result.delta(exact_epsilon(mechanism.distribution(0), mechanism.distribution(y))).upper) < 1e-15
        assert result.verdict is ExactVerdict.VERIFIED or result.is_rounding


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda x, rng: int(rng.binomial(4, 0.25)), {0: 81, 1: 108, 2: 54, 3: 12, 4: 1}),
        (lambda x, rng: int(rng.choice(3, p=[0.25, 0.25, 0.5])), {0: 64, 1: 64, 2: 128}),
        (lambda x, rng: tuple(rng.permutation(2).tolist()), {(0, 1): 128, (1, 0): 128}),
        (lambda x, rng: int(rng.random() * 4), dict.fromkeys(range(4), 64)),
        (lambda x, rng: round(rng.random() * 2), {0: 64, 1: 128, 2: 64}),
        (lambda x, rng: math.floor(math.log(1 - rng.random()) / -math.log(2) * 0.5), {0: 192, 1: 48}),
        (lambda x, rng: tuple((rng.random(2) < [0.5, 0.25]).tolist()), {(True, True): 32, (False, False): 96}),
        (lambda x: secrets.randbelow(2) + 2 * random.randint(0, 1), dict.fromkeys(range(4), 64)),
        (lambda x: int(np.random.default_rng().integers(2)) + np.random.randint(2), {0: 64, 1: 128, 2: 64}),  # noqa: NPY002
        (lambda x: random.SystemRandom(5).random() < 0.25, {0: 192, 1: 64}),  # which ignores a seed
        (lambda x: random.choices("ab", [1, 3])[0], {"a": 64, "b": 192}),
        (lambda x, rng: 1 / int(rng.integers(2)), {1.0: 128}),
    ],
)
def test_draws(draw, expected):
    found = distribution(draw, 0)
    for value, share in expected.items():
        assert float(found.probabilities[value]) == pytest.approx(share / 256, abs=1e-15)
    assert found.remainder < 1e-30


def test_uniform_numbers_are_counted_to_the_last_one():
    def program(x, rng):
        u = rng.random()
        return (u < 0.3) + 2 * (u <= 0.3) + 4 * bool(0.7 < u)  # noqa: SIM300

    found = distribution(program, 0).probabilities
    n = math.ceil(Fraction(0.3) * 2**53)
    assert found[3] * 2**53 == n
    assert found.get(2, 0) * 2**53 == (Fraction(0.3) * 2**53 == n)
    assert found[4] * 2**53 == 2**53 - 1 - math.floor(Fraction(0.7) * 2**53)


def test_exceptions_are_outcomes():
    def program(x, rng):
        if rng.random() < 0.25:
            raise KeyError(x)
        return 1

    result = audit(program, 0, 1, claim=1.0)
    assert "raises KeyError: probability 0.25 on x, 0.25 on y" in str(result)


@pytest.mark.parametrize("made", [lambda: float("nan"), lambda: (1, float("nan")), lambda: np.array([np.nan])])
def test_nan_equals_nan(made):
    """After 200 outputs, which are all that is repeated; each NaN is an object of its own."""

    def program(x, rng):
        value = int(rng.integers(300))
        return made() if value == 299 else value

    result = audit(program, 0, 1, claim=0.0)
    assert result.verdict is ExactVerdict.VERIFIED
    assert len(result.on_x.probabilities) == 300


# Refusals.


def swallows(x, rng):
    while True:
        try:  # noqa: SIM105
            rng.integers(2)
        except BaseException:
            pass


def endless_coin(x, rng):
    while rng.integers(2) < 2:
        pass


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda x, rng: rng.normal() < 0, "draws from normal"),
        (lambda x, rng: rng.random() + x, "too many values to list"),
        (lambda x, rng: rng.random() < rng.random(), "with another uniform number"),
        (lambda x, rng: rng.random() % 0.5 < 0.1, "calls __mod__ of a uniform number"),
        (lambda x, rng: f"{rng.random():.1f}", "calls __format__"),
        (lambda x, rng: 1 if type(rng.random()) is float else 2, "by its type"),
        (lambda x, rng: int(rng.integers(10**9)), "more than 20,000"),
        (lambda x: int(time.time()) % 2, "reads the clock"),
        (lambda x, rng: rng.integers(2) + (datetime.now().year == 1999), "reads the clock"),
        (lambda x, rng: rng.integers(2) + (time.clock_gettime(0) < 0), "reads the clock"),
        (lambda x: np.random.seed(3), "seeds a generator"),  # noqa: NPY002
        (lambda x: np.random.Generator(STATE._bit_generator).integers(1000) == x, "reads the bit generator"),
        (lambda x: hash(object()) % 2**20, "executed again"),
        (lambda x: ssl.RAND_bytes(2) == b"ab", "entropy of the system"),
        (lambda x: LIBC.rand() % 1000 == 0, "a function of a C library"),
        (swallows, "catches every exception"),
        (endless_coin, "draws for ever"),
    ],
)
def test_refusals_name_the_place_and_the_remedy(program, said):
    with pytest.raises(MechanismError, match="use check without exact=True") as raised:
        distribution(program, 1)
    assert said in str(raised.value)


@pytest.mark.parametrize("reached", [lambda: globals()["HIDDEN"], lambda: vars(sys.modules[__name__])["HIDDEN"]])
def test_a_draw_from_a_generator_that_no_name_shows(reached, monkeypatch):
    """No repetition sees it, as it almost never changes the output."""
    monkeypatch.setitem(globals(), "HIDDEN", np.random.default_rng(0))

    def program(x, rng):
        return int(rng.integers(2)) + (reached().random() < 1e-9)

    with pytest.raises(MechanismError, match=r"draws from a Generator in a way|holds a \w+, whose changes"):
        distribution(program, 1)


@pytest.mark.parametrize("program", attacks_on_the_world.CHANGES)
def test_what_cannot_be_put_back_is_refused(program):
    with pytest.raises(MechanismError, match=attacks_on_the_world.CHANGES[program]):
        distribution(program, 1)


def test_the_first_draw_kept_by_a_thread_is_forgotten():
    def program(x, rng):
        if not hasattr(attacks_on_the_world.LOCAL, "drawn"):
            attacks_on_the_world.LOCAL.drawn = int(rng.integers(2))
        return attacks_on_the_world.LOCAL.drawn

    assert dict(distribution(program, 0).probabilities) == {0: Fraction(1, 2), 1: Fraction(1, 2)}


@pytest.mark.parametrize(
    ("read", "put", "first", "others"),
    [
        (lambda: np.geterr()["under"], lambda to: np.seterr(under=to), "ignore", ("raise", "warn")),
        (lambda: special.geterr()["loss"], lambda to: special.seterr(loss=to), "ignore", ("raise", "warn")),
        (lambda: decimal.getcontext().prec, lambda to: setattr(decimal.getcontext(), "prec", to), 28, (5, 6)),
        (
            lambda: warnings.filters[0][0],
            lambda to: warnings.simplefilter(to, ResourceWarning),
            "once",
            ("error", "ignore"),
        ),
    ],
)
def test_the_first_draw_kept_by_a_library_is_forgotten(read, put, first, others):
    def program(x, rng):
        if read() == first:
            put(others[int(rng.integers(2))])
        return read()

    def state():
        return np.geterr(), special.geterr(), decimal.getcontext().prec, list(warnings.filters)

    with warnings.catch_warnings(action="once"):
        before = state()
        assert dict(distribution(program, 0).probabilities) == dict.fromkeys(others, Fraction(1, 2))
        assert state() == before


def test_everything_is_put_back_before_each_execution():
    attacks_on_the_world.cached_square.cache_clear()
    before = attacks_on_the_world.everything()
    assert dict(distribution(attacks_on_the_world.changes_everything, 1).probabilities) == {before: 1}
    assert attacks_on_the_world.everything() == before


def test_what_a_mechanism_had_is_put_back():
    class Noisy:
        def __init__(self):
            self.rng, self.calls = np.random.default_rng(0), 0

        def randomise(self, x):
            self.calls += 1
            return x + int(self.rng.integers(2)) + self.calls

    noisy = Noisy()
    own, log, before = noisy.rng, time.time, math.log
    found = distribution(noisy.randomise, 0)
    assert dict(found.probabilities) == {1: Fraction(1, 2), 2: Fraction(1, 2)}
    assert noisy.rng is own
    assert (noisy.calls, time.time, math.log) == (0, log, before)


# Verdicts.


def test_budgets_leave_a_remainder_that_is_true():
    for budget in (Budget(executions=5), Budget(states=5)):
        result = check(geometric, 0, 1, claim=1.0, exact=budget)
        assert result.verdict is ExactVerdict.UNDETERMINED or result.excess.lower > 0
        assert result.on_x.ended_by
        assert result.on_x.remainder == pytest.approx(1 - float(sum(result.on_x.probabilities.values())))
        low, high = result.delta(0.0)
        assert low <= 0.5 <= high  # the total variation distance of geometric numbers one apart


def test_an_interrupt_ends_the_exploration_and_has_both_ends():
    seen = []

    def interrupt(executions):
        seen.append(executions)
        if sum(seen) > 5:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="so far UNDETERMINED") as stopped:
        audit(geometric, 0, 1, claim=ApproxDP(0.1, 0.49), progress=interrupt)
    result = stopped.value.result
    assert result.on_x.ended_by == result.on_y.ended_by == "it was interrupted"
    assert 0 < result.on_x.remainder < 1
    assert result.on_y == ExactDistribution.unknown("it was interrupted")
    assert (result.on_y.remainder, result.on_y.headline) == (1.0, "0 outputs, remainder 1")
    with pytest.raises(Interrupted):
        distribution(geometric, 0, progress=interrupt)


def test_claims():
    def respond(x, rng):
        return x if rng.random() < 0.75 else 1 - x

    assert audit(respond, 0, 1, claim=PureDP(math.log(3) * (1 + 1e-12))).verdict is ExactVerdict.VERIFIED
    assert audit(respond, 0, 1, claim=PureDP(math.log(3) - 1e-6)).verdict is ExactVerdict.REFUTED
    assert audit(respond, 0, 1, claim=ApproxDP(0.5, 0.75 - 0.25 * math.exp(0.5))).excess.upper < 1e-15
    mu = 2 * norm.ppf(0.75)
    assert audit(respond, 0, 1, claim=GaussianDP(mu + 1e-9)).verdict is ExactVerdict.VERIFIED
    assert audit(respond, 0, 1, claim=GaussianDP(mu - 1e-6)).verdict is ExactVerdict.REFUTED
    undetermined = audit(respond, 0, 1, claim=RenyiDP(2.0, 5.0))
    assert undetermined.verdict is ExactVerdict.UNDETERMINED
    assert isinstance(undetermined, Result)
    assert not undetermined.is_refuted


def test_options():
    with pytest.raises(OptionError, match="remainder=0"):
        Budget(remainder=0)
    with pytest.raises(OptionError, match="tolerance"):
        Budget(tolerance=-1.0)
    with pytest.raises(OptionError, match="exact='yes' is unknown; use a bool"):
        check(geometric, 0, 1, claim=1.0, exact="yes")
    with pytest.raises(OptionError, match="sequential=True is for audits that sample"):
        audit(geometric, 0, 1, claim=1.0, sequential=True)
    with dp.settings(runs=1000, jobs=2):  # which other audits of the session take
        assert audit(geometric, 0, 1, claim=1.0).is_refuted


def test_rounding_is_named_and_refutes_only_without_tolerance():
    def respond(x, rng):
        return x if rng.random() < 0.7310585786300049 else 1 - x  # e / (1 + e), rounded up

    kept = audit(respond, 0, 1, claim=1.0)
    assert kept.verdict is ExactVerdict.VERIFIED
    assert kept.headline.endswith(" in delta (floating-point arithmetic)")
    strict = check(respond, 0, 1, claim=1.0, exact=Budget(tolerance=0.0))
    assert strict.headline.startswith("REFUTED  respond: 1-DP is exceeded by floating-point arithmetic only: ")


def test_an_excess_that_is_not_of_rounding_is_never_said_to_be():
    def leaks(x, rng):
        return x if rng.random() < 0.5 else -1

    strict = check(leaks, 0, 1, claim=40.0, exact=Budget(tolerance=0.0))
    assert strict.headline == "REFUTED  leaks: 40-DP is exceeded by 0.5 in delta (certain)"


def test_a_pair_that_may_be_no_neighbours_is_doubted():
    result = audit(lambda rows, rng: len(rows) + int(rng.geometric(0.5)), [1, 2, 3, 4], [1], claim=5.0)
    assert any(line.startswith("WARNING: x and y differ in 3 rows") for line in result.remarks)


def test_the_printed_output_exceeds_the_claim():
    result = audit(lambda x, rng: x + int(rng.binomial(64, 0.5)), 0, 1, claim=(1.0, 1e-9))
    assert result.is_refuted
    assert result.remarks[0].startswith("output 16: probability 2.648")  # and not output 0, which only x has, at 5e-20


def endless(x, rng):
    while rng.random() < 2:
        x += 1


def without_draws(x, rng):
    while rng.integers(2) == 0:
        while True:
            x += 1
    return x


def test_loops_without_an_end():
    with pytest.raises(MechanismError, match="draws more than 100,000 times in one execution"):
        distribution(endless, 0)
    result = check(without_draws, 0, 1, claim=1.0, exact=Budget(seconds=0.02))
    assert result.verdict is ExactVerdict.UNDETERMINED
    assert result.on_x.remainder == 1.0
    assert result.on_x.ended_by == "an execution neither drew nor ended before the time was over"


def test_a_refuted_pair_outweighs_the_rounding_of_another():
    refuted = audit(geometric, 0, 0, claim=0.5)
    refuted = replace(refuted, excess=refuted.excess._replace(lower=3e-10, upper=4e-10))
    rounding = replace(refuted, excess=refuted.excess._replace(lower=5e-10), on_x=replace(refuted.on_x, n_draws=1e6))
    assert (refuted.verdict, rounding.verdict) == (ExactVerdict.REFUTED, ExactVerdict.VERIFIED)
    for both in (refuted.with_another(rounding), rounding.with_another(refuted)):
        assert (both.verdict, both.n_pairs) == (ExactVerdict.REFUTED, 2)


def test_time_that_is_over_at_once_says_so():
    result = check(geometric, 0, 1, claim=1.0, exact=Budget(seconds=1e-9))
    assert result.verdict is ExactVerdict.UNDETERMINED
    assert "the time was over" in str(result)


# Domains.


def test_all_pairs_of_a_domain():
    def leaks(rows, rng):
        return sum(rows) + int(rng.geometric(0.5)) + (len(rows) == 3)

    rows = Rows(values=(0, 1), most=3)
    result = find_worst_pair(leaks, rows, claim=ApproxDP(1.0, 0.6), adjacency="add-remove", exact=True)
    assert result.n_pairs == 2 + 6 + 20  # as multisets, in every order
    assert result.is_refuted
    assert sorted(map(len, (result.x, result.y))) == [2, 3]
    small = find_worst_pair(
        leaks, Rows(values=(0, 1), most=2), claim=ApproxDP(1.0, 0.6), adjacency="add-remove", exact=True
    )
    assert small.verdict is ExactVerdict.VERIFIED
    assert "holds on all 8 pairs of the domain" in small.headline


def test_pairs_without_a_draw_do_not_end_the_audit_of_a_domain():
    def counts(rows, rng):
        return len(rows) + int(rng.geometric(0.5)) if len(rows) > 2 else 0

    domain = Rows(values=(0,), most=4)
    result = find_worst_pair(counts, domain, claim=(1.0, 0.6), adjacency="add-remove", exact=True)
    assert (result.n_pairs, sorted(map(len, (result.x, result.y)))) == (4, [2, 3])


def test_domains_that_can_be_listed():
    def noisy(value, rng):
        return int(np.sum(value)) + int(rng.geometric(0.5))

    numbers = find_worst_pair(
        noisy, Answers(high=3, integer=True), claim=(1.0, 0.5), adjacency=Within("l1"), exact=True
    )  # fmt: skip
    assert (numbers.n_pairs, numbers.verdict) == (3, ExactVerdict.VERIFIED)
    assert find_worst_pair(noisy, Values((0, 1, 5)), claim=(1.0, 0.5), adjacency="local", exact=True).is_refuted
    given = find_worst_pair(noisy, [(0, 1), (2, 1)], claim=(1.0, 0.5), exact=True)
    assert (given.n_pairs, given.verdict) == (2, ExactVerdict.VERIFIED)
    with pytest.raises(DatasetError, match="cannot be listed"):
        find_worst_pair(noisy, Rows(high=3.0), claim=1.0, adjacency="add-remove", exact=True)
    with pytest.raises(DatasetError, match="no pair of neighbours"):
        find_worst_pair(noisy, [], claim=1.0, exact=True)
    with pytest.raises(OptionError, match="guide= is for a search"):
        find_worst_pair(noisy, Values((0, 1)), claim=1.0, adjacency="local", exact=True, guide="replay")


def test_pairs_of_one_object_that_changes():
    def pairs():
        rows = [1]
        for _ in range(3):
            yield rows, [1]
            rows.append(1)

    def noisy(rows, rng):
        return sum(rows) + int(rng.geometric(0.5))

    result = find_worst_pair(noisy, pairs(), claim=(1.0, 0.7), exact=True)
    assert result.excess.lower == pytest.approx(0.05)  # of the third pair
    assert result.n_pairs == 3


def test_time_that_is_over_leaves_pairs_out():
    result = find_worst_pair(
        geometric, Values((0, 1, 2)), claim=(5.0, 0.999), adjacency="local", exact=True, seconds=1e-9
    )  # fmt: skip
    assert result.verdict is ExactVerdict.UNDETERMINED
    assert (result.n_pairs, result.untried) == (1, 2)
    assert "on 1 pair; 2 more were not audited" in result.headline
    assert "next: the time was over; allow more seconds" in str(result)
    with pytest.raises(InconclusiveError):
        result.raise_if_refuted()


# Results as files and pages.


def test_results_are_saved_drawn_and_shown(tmp_path):
    found = {
        "low": audit(geometric, 0, 1, claim=0.5),
        "respond": audit(lambda x, rng: x ^ int(rng.integers(2)), 0, 1, claim=0.5),
    }
    dp.save(found, tmp_path / "results.json")
    suite = dp.load(tmp_path / "results.json")
    assert [check.verdict for check in suite.checks] == ["REFUTED", "VERIFIED"]
    table = suite.checks[0].exact
    assert table.rows[0].loss == math.inf or table.rows[0].loss > 20
    assert (table.rows[0].output, table.rows[0].x, table.rows[0].y) == ("0", 0.5, 0.0)
    assert all(low <= high for _, low, high in table.curve)
    page = html(suite)
    assert "Privacy profile" in page
    assert "Largest certain loss" in page
    assert found["low"].plot().get_ylabel() == "δ(ε)"
    assert "not explored" in found["low"]._repr_html_()
    assert found["low"].to_dict()["verdict"] == "refuted"
