"""Draws and uniform numbers of exact audits, against real generators, closed forms and a grid of numbers."""

import collections
import copy
import functools
import itertools
import math
import os
import random
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from multiprocessing.synchronize import SemLock
from random import random as uniform_of_random

import numpy as np
import pytest
import scipy.stats
from numpy.random import rand as uniform_of_numpy
from scipy.stats import chi2

from dpaudit import check, noise_primitive
from dpaudit.audit.exact import sources, uniform
from dpaudit.errors import MechanismError
from dpaudit.exact import ExactVerdict, distribution
from dpaudit.mechanisms.noise_samplers import two_sided_geometric
from dpaudit.noise import Distribution


def shuffled(rng, held):
    rng.shuffle(held)
    return tuple(np.asarray(held).tolist())


OF_NUMPY = {
    "random": lambda r: r.random() < 0.3,
    "random of a size": lambda r: tuple((r.random(2) < 0.3).tolist()),
    "random of a shape": lambda r: int((r.random((2, 2)) < 0.3).sum()),
    "random of no dimension": lambda r: bool(r.random(()) < 0.3),
    "uniform": lambda r: int(r.uniform(-2, 3)),
    "uniform with arrays": lambda r: tuple(int(each) for each in r.uniform([0, 1], [2, 4])),
    "binomial": lambda r: int(r.binomial(5, 0.3)),
    "binomial of 100": lambda r: int(r.binomial(100, 0.3)),
    "binomial with arrays": lambda r: tuple(r.binomial([2, 3], [0.3, 1.0]).tolist()),
    "geometric": lambda r: tuple(r.geometric(0.7, size=2).tolist()),
    "poisson": lambda r: int(r.poisson(3.5)),
    "poisson of 50": lambda r: int(r.poisson(50.0)),
    "choice": lambda r: tuple(r.choice(3, 2).tolist()),
    "choice with p": lambda r: tuple(r.choice([5, 7, 9], size=2, p=[0.2, 0.3, 0.5]).tolist()),
    "choice of texts": lambda r: str(r.choice(["a", "b"])),
    "choice without replacement": lambda r: tuple(r.choice(4, 2, replace=False).tolist()),
    "permutation": lambda r: tuple(r.permutation([4, 5, 6]).tolist()),
    "permutation of rows": lambda r: tuple(r.permutation(np.arange(6).reshape(3, 2)).ravel().tolist()),
    "shuffle": lambda r: shuffled(r, [1, 2, 3]),
    "shuffle of an array": lambda r: shuffled(r, np.arange(3)),
}
OF_GENERATOR = OF_NUMPY | {
    "integers": lambda r: int(r.integers(-2, 3)),
    "integers with an endpoint": lambda r: int(r.integers(4, endpoint=True)),
    "integers with arrays": lambda r: tuple(r.integers([2, 3], [4, 6]).tolist()),
    "integers of a type": lambda r: (str(r.integers(3, dtype=np.int8).dtype), bool(r.integers(2, dtype=bool))),
    "choice along an axis": lambda r: tuple(r.choice(np.arange(6).reshape(2, 3), axis=1).tolist()),
}
OF_STATE = OF_NUMPY | {
    "randint": lambda r: int(r.randint(-2, 3, size=2).sum()),
    "rand": lambda r: tuple((r.rand(2) < 0.3).tolist()),
    "random_sample": lambda r: r.random_sample() < 0.3,
}
OF_RANDOM = {
    "random": lambda r: r.random() < 0.3,
    "uniform": lambda r: int(r.uniform(3, -2)),
    "getrandbits": lambda r: r.getrandbits(3),
    "randrange": lambda r: r.randrange(1, 10, 3),
    "randint": lambda r: r.randint(2, 5),
    "choice": lambda r: r.choice("abc"),
    "choices": lambda r: tuple(r.choices([1, 2, 3], k=2)),
    "choices with weights": lambda r: tuple(r.choices([1, 2, 3], [1, 2, 4], k=2)),
    "sample": lambda r: tuple(r.sample(range(4), 2)),
    "sample with counts": lambda r: tuple(r.sample([1, 2], 2, counts=[2, 1])),
    "shuffle": lambda r: shuffled(r, [1, 2, 3]),
}
OF_MODULES = {
    "numpy": lambda r: (np.random.rand() < 0.3, np.random.randint(2), np.random.choice(2)),  # noqa: NPY002
    "numpy, other names": lambda r: (np.random.ranf() < 0.3, np.random.mtrand._rand.randint(2)),  # noqa: NPY002
    "scipy": lambda r: (int(scipy.stats.binom.rvs(2, 0.3)), int(scipy.stats.dlaplace(2.0).rvs())),
    "random": lambda r: (random.random() < 0.3, random.choice("ab"), random.sample(range(3), 1)[0]),
    "secrets": lambda r: (secrets.randbelow(3), secrets.randbits(1), secrets.choice("ab")),
}
KINDS = {
    "Generator": (OF_GENERATOR, np.random.default_rng),
    "RandomState": (OF_STATE, np.random.RandomState),
    "random": (OF_RANDOM, random.Random),
    "modules": (OF_MODULES, random.Random),
}


@pytest.mark.evidence
@pytest.mark.parametrize("kind", KINDS)
def test_draws_have_the_distribution_of_real_generators(kind, monkeypatch):
    """20,000 draws with fixed seeds; each chi-square test errs with probability 1e-6."""
    programs, generator = KINDS[kind]
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    seeded = random.Random(2)
    for name, instead in {"_sysrand": seeded, "randbits": seeded.getrandbits, "choice": seeded.choice}.items():
        monkeypatch.setattr(secrets, name, instead)
    for name, program in programs.items():
        audited, real = generator(5), generator(6)
        found = distribution(lambda x, program=program, audited=audited: program(audited), 0).probabilities
        counts = Counter(program(real) for _ in range(20_000))
        assert counts.keys() <= found.keys(), name
        expected = {outcome: 20_000 * float(p) for outcome, p in found.items()}
        cells = [outcome for outcome, mean in expected.items() if mean >= 5]
        apart = sum((counts[outcome] - expected[outcome]) ** 2 / expected[outcome] for outcome in cells)
        assert chi2.sf(apart, max(len(cells) - 1, 1)) > 1e-6, (name, found, counts)


# Closed forms.


def exact_terms(name, *parameters):
    """Return the probability of an outcome with 150 digits."""
    p = Decimal(parameters[-1])
    r = (-1 / p).exp()
    return {
        "geometric": lambda k: p * (1 - p) ** (k - 1),
        "poisson": lambda k: (-p).exp() * p**k / math.factorial(k),
        "binomial": lambda k: math.comb(parameters[0], k) * p**k * (1 - p) ** (parameters[0] - k),
        "two-sided geometric": lambda k: (1 - r) / (1 + r) * r ** abs(k),
    }[name]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("geometric", (0.3,)), ("geometric", (0.999,)), ("poisson", (0.01,)), ("poisson", (700.0,)),
        ("binomial", (64, 0.1)), ("binomial", (65, 0.9)), ("binomial", (1000, 0.5)), ("two-sided geometric", (3.0,)),
        ("two-sided geometric", (0.01,)),
    ],
)  # fmt: skip
def test_probabilities_are_lower_bounds_and_miss_little(name, parameters):
    low, weights = sources.outcomes_of(name, *parameters)
    with localcontext() as context:
        context.prec = 150
        term = exact_terms(name, *parameters)
        for k, weight in enumerate(weights, low):
            below = Decimal(weight.numerator) / weight.denominator
            assert 0 <= term(k) - below < Decimal(2) ** -127 or abs(term(k) - below) < Decimal(10) ** -140
    assert sum(weights) <= 1
    assert 1 - sum(weights) < 2 * uniform.LIMITS.useless


def test_a_long_series_is_cut():
    low, weights = sources.outcomes_of("two-sided geometric", 1e5)
    assert (low, len(weights)) == (-9_999, 19_999)
    assert 1 - float(sum(weights)) == pytest.approx(2 * math.exp(-0.1) / (1 + math.exp(-1e-5)), rel=1e-4)


def test_choices_with_probabilities_are_counted_to_the_last_number():
    p = [0.1, 0.0, 0.2, 0.7]
    _, weights = sources.outcomes_of("discrete", *p)
    ends = np.cumsum(p) / np.cumsum(p)[-1]
    bounds = [0, *(math.ceil(Fraction(end) * 2**53) for end in ends.tolist())]
    assert [weight * 2**53 for weight in weights] == [b - a for a, b in itertools.pairwise(bounds)]


# Numbers that are not looked at.


class Given:
    """A generator that returns a given number."""

    def __init__(self, k):
        self.k = k

    def random(self, size=None):
        return self.k * 2.0**-53 if size is None else np.full(size, self.k * 2.0**-53)


def laplace(r):
    u = r.random() - 0.5
    return int(np.floor(-2.0 * np.sign(u) * np.log(1 - 2 * np.abs(u))))


def in_place(r):
    u = r.random()
    u *= 4
    u -= 1
    u /= 2
    u += 1
    return int(u)


def cumulated(r):
    u = r.random()
    return next(place for place, end in enumerate([0.2, 0.5, 1.0]) if u < end)


FOLLOWED = [
    lambda r: math.floor(math.log(r.random()) / math.log(0.5)),
    lambda r: int(math.log(1 - r.random(), 0.5)),
    lambda r: int(np.floor(np.log(r.random()) / np.log(0.5))),
    lambda r: int(np.ceil(np.log1p(-r.random()) / np.float64(-0.7))),
    lambda r: int(np.round(-np.log(1 - r.random()))),
    lambda r: round(-math.log(r.random())),
    lambda r: round(r.random(), 1),
    lambda r: int(np.floor(np.log(r.random(1)) / np.log(0.5))[0]),
    lambda r: int(abs(r.random() - 0.5) * 4),
    lambda r: int(math.sqrt(r.random()) * 4) - int(np.trunc(3 * -math.exp(0.5))),
    lambda r: math.exp(1000 * r.random()) < 5,  # raises OverflowError from 0.71
    lambda r: np.exp(1000 * r.random()) < 5,
    lambda r: int(1 / (r.random() - 0.5) > 3),
    lambda r: np.divide(1, r.random()) < 3,
    lambda r: int(3 - np.float64(2) * r.random()),
    lambda r: int(np.array(3) * r.random()),
    lambda r: int((r.random() < np.cumsum([0.2, 0.3, 0.5])).argmax()),
    lambda r: r.random() * 2**60 < 2**59 + 1,
    lambda r: (r.random() > -(10**400), r.random() < math.inf, r.random() < math.nan, r.random() != math.nan),
    lambda r: (r.random() == 0.3, r.random() != 0.3, bool(r.random()), r.random() < np.array(0.5)),
    lambda r: ~(r.random(1)[0] < 0.3),
    lambda r: ~(np.float64(0.3) > r.random()),
    lambda r: -(r.random() < 0.3) + (0.2 < r.random()),  # noqa: SIM300
    lambda r: min(r.random(), 0.5) < 0.3 or max(r.random(), 0.7) > 0.8,
    lambda r: sorted([r.random(), 0.5])[0] == 0.5,
    lambda r: bool(np.where(r.random() < 0.3, 1, 0)),
    lambda r: r.random() < Fraction(1, 3),
    lambda r: "%d" % (3 * r.random()),  # noqa: UP031
    laplace,
    in_place,
    cumulated,
]


@pytest.mark.parametrize("number", range(len(FOLLOWED)))
@pytest.mark.filterwarnings("ignore:overflow")
def test_functions_of_a_uniform_number_have_their_frequencies_on_a_grid(number):
    """A step function of few pieces: its frequencies on 4,096 numbers are off by a number for each end of a piece."""
    program = FOLLOWED[number]

    def once(x, rng):  # all numbers of a run are the same one on the grid
        return program(Same(rng))

    class Same:
        def __init__(self, rng):
            self.rng, self.held = rng, None

        def random(self, size=None):
            if size is not None:
                return self.rng.random(size)
            self.held = self.rng.random() if self.held is None else self.held
            return self.held

    found = {}
    for outcome, p in distribution(once, 0).probabilities.items():
        found[getattr(outcome, "exception", outcome)] = float(p)
    counts = Counter()
    for k in range(2**40, 2**53, 2**41):
        try:
            counts[program(Given(k))] += 1
        except ArithmeticError as error:
            counts[type(error).__name__] += 1
    assert sum(found.values()) == pytest.approx(1, abs=1e-15)
    for outcome in counts.keys() | found.keys():
        assert abs(counts[outcome] / 4096 - found.get(outcome, 0)) < 3 / 4096, (outcome, counts, found)


DERIVED = type("Derived", (random.Random,), {})
DERIVED_INSTANCE = DERIVED(3)
GENERATOR = np.random.default_rng(5)
PARTIAL = functools.partial(GENERATOR.integers, 2)


class Asking(Sequence):
    """A population that draws when it is read."""

    def __len__(self):
        return 3

    def __getitem__(self, place):
        return place + int(GENERATOR.integers(2))


@noise_primitive(lambda r: Distribution("integers", {"low": 0, "high": 2 + int(r.integers(2))}))
def asking(r):
    return 0


@noise_primitive("two-sided geometric", location="value", scale="scale")
def discrete_laplace(value, scale):
    raise AssertionError("what is stated is not executed")


@noise_primitive("laplace", location="value", scale="scale")
def continuous(value, scale):
    return value


binomial = noise_primitive("binomial", n="n", p="p", size="size")(lambda n, p, size=None: 0)
index = noise_primitive("discrete", probabilities="p")(lambda p: 0)


class Odd(float):
    """A number with an operator of its own."""

    def __rmul__(self, other):
        return 1 - other


def raising(r):
    with np.errstate(all="raise"):
        return np.exp(1000 * r.random()) < 5


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda r: np.float32(r.random()) < 0.5, "asks for the digits"),
        (lambda r: r.random() * np.float32(0.3) < 0.1, "with a float32"),
        (lambda r: np.float32(0.3) > r.random(), "with a float32"),
        (lambda r: r.random() + 1j == 0, "with a complex"),
        (lambda r: r.random() * Odd(2.0) < 0.5, "with a Odd"),
        (lambda r: int(r.random() * 2.0**60) % 2, "more than 20,000 values"),
        (lambda r: np.clip(r.random(), 0.2, 0.8) < 0.5, "reads .clip"),
        (lambda r: np.maximum(r.random(), 0.5) < 0.7, "calls numpy.maximum"),
        (lambda r: np.log(r.random(), dtype=np.float32) < -1, "calls numpy.log"),
        (lambda r: min(r.random(), r.random()) < 0.5, "with another uniform number"),
        (lambda r: sorted(r.random(2))[0] < 0.5, "with another uniform number"),
        (lambda r: np.searchsorted([0.5], r.random()), "asks for the digits"),
        (lambda r: math.isnan(r.random()), "asks for the digits"),
        (lambda r: copy.copy(r.random()) < 0.5, "calls __reduce_ex__"),
        (lambda r: math.inf * r.random() == 5, "and infinity"),
        (lambda r: np.exp(800 * r.random(1)[0]) * 10**300 * 0.0 == 0, "makes a NaN"),
        (raising, "while numpy raises errors"),
        (lambda r: r.random(dtype=np.float32) < 0.5, "options"),
        (lambda r: tuple(r.choice(4, 2, replace=False, shuffle=False).tolist()), "options"),
        (lambda r: r.choice(3, 2, replace=False, p=[0.2, 0.3, 0.5]), "draws from Generator.choice"),
        (lambda r: r.multinomial(2, [0.5, 0.5]), "draws from multinomial"),
        (lambda r: r.permutation(9), "362,880 outcomes"),
        (lambda r: int(copy.deepcopy(r).integers(2)), "copies a generator"),
        (lambda r: int(np.random.Generator(r.bit_generator).integers(2)), "bit generator"),
        (lambda r: random.getrandbits(200) % 2, "calls __mod__"),
        (lambda r: secrets.token_bytes(1)[0] % 2, "draws from randbytes"),
        (lambda r: os.urandom(1)[0] % 2, "entropy of the system"),
        (lambda r: np.random.Generator(np.random.PCG64()).random() < 0.5, "entropy of the system"),
        (lambda r: DERIVED().random() < 0.5, "entropy of the system"),
        (lambda r: scipy.stats.norm.rvs() < 0, r"draws from scipy\.stats\.norm\.rvs"),
        (lambda r: scipy.stats.binom.rvs(2, 0.5, random_state=3), "seeds a generator"),
        (lambda r: scipy.stats.multinomial.rvs(2, [0.5, 0.5])[0], "a global generator in a way"),
        (lambda r: DERIVED_INSTANCE.random() < 0.5, "draws from a Derived"),
        (lambda r: PARTIAL() == 1, "holds a generator in a partial"),
        (lambda r: random.sample(Asking(), 2)[0], "while a draw is carried out"),
        (lambda r: int(r.choice(Asking())), "while a draw is carried out"),
        (lambda r: asking(r), "while a draw is carried out"),
        # noise primitives
        (lambda r: round(continuous(0, 1.0)), r"draws from continuous, which is continuous.*test_draws\.py:\d+"),
        *(
            (program, "which is not a distribution")
            for program in (
                lambda r: discrete_laplace(0, 0.0),
                lambda r: discrete_laplace(0, -1.0),
                lambda r: binomial(3, 1.5),
                lambda r: binomial(100, math.nan),
                lambda r: index([-0.5, 1.5]),
                lambda r: index([0.5, 0.4]),
            )
        ),
        # the digits of whole numbers with too many values to list
        (lambda r: random.getrandbits(64) % 2, "calls __mod__"),
        (lambda r: random.getrandbits(64) & 1, "calls __and__"),
        (lambda r: 2**65 >> random.getrandbits(64), "calls __rrshift__"),
        (lambda r: random.choice(range(10**6)), "calls __index__"),
        (lambda r: random.getrandbits(64), "too many values to list"),
        (lambda r: Fraction(random.getrandbits(64), 2**64) < 1, "reads .numerator"),
        (lambda r: random.getrandbits(64) < random.getrandbits(64), "with another uniform number"),
    ],
)
@pytest.mark.filterwarnings("ignore:(invalid value|overflow)")
def test_what_is_not_followed_is_refused(program, said):
    with pytest.raises(MechanismError, match=said):
        distribution(lambda x, rng: program(rng), 0)


# Noise primitives.


def truncated(x, low=0, high=5):
    while True:
        y = discrete_laplace(x, 1.0)
        if low <= y <= high:
            return y


def test_a_noise_primitive_is_one_draw_from_the_distribution_that_it_states():
    found = check(lambda x: discrete_laplace(x, 2.0), 0, 1, claim=0.5, exact=True)
    assert found.verdict is ExactVerdict.VERIFIED
    assert found.on_x.n_states == 1
    assert 0 < found.on_x.remainder < 1e-17
    assert check(lambda x: discrete_laplace(x, 1.9), 0, 1, claim=0.5, exact=True).is_refuted
    counts = distribution(lambda x: tuple(binomial(2, 0.5, 2).tolist()), 0).probabilities
    assert counts[1, 2] == Fraction(1, 8)
    assert distribution(lambda x: type(index([0.25, 0.75])).__name__, 0).probabilities == {"int": 1}
    pairs = distribution(lambda x: tuple(discrete_laplace(np.array([x, 5]), 0.2).tolist()), 0).probabilities
    assert float(pairs[0, 5]) == pytest.approx(math.tanh(2.5) ** 2, abs=1e-15)


def orders(x, rng):
    while True:
        order, half = rng.permutation(3), discrete_laplace(Fraction(1, 2), 0.1)
        if order[0] == 0 and random.randint(0, 1) and random.sample(range(2), 1)[0]:
            return half == Fraction(1, 2)


def test_states_at_a_permutation_and_at_code_of_the_standard_library_are_merged():
    found = distribution(orders, 0)
    assert not found.not_merged
    assert float(found.probabilities[True]) == pytest.approx(math.tanh(5), abs=1e-9)


def test_states_at_a_noise_primitive_are_merged():
    found = distribution(truncated, 3)
    total = sum(math.exp(-abs(k - 3)) for k in range(6))
    assert found.n_states == 1
    assert not found.not_merged
    for k in range(6):
        assert float(found.probabilities[k]) == pytest.approx(math.exp(-abs(k - 3)) / total, abs=1e-15)


# Whole numbers with too many values to list.


@pytest.mark.parametrize(
    ("program", "share"),
    [
        (lambda x: random.getrandbits(64) < 3 * 2**62, Fraction(3, 4)),
        (lambda x: secrets.randbelow(3**50) < 3**49, Fraction(1, 3)),
        (lambda x: random.randrange(7_505_999_378_950_827) >= 10**15, 1 - Fraction(10**15, 7_505_999_378_950_827)),
        (lambda x: random.randint(1, 10**9) <= 10**8, Fraction(1, 10)),
        (lambda x: random.getrandbits(40) / 2**40 < 0.125, Fraction(1, 8)),
        (lambda x: isinstance(random.getrandbits(64), int), Fraction(1)),
    ],
)
def test_many_whole_numbers_are_divided_by_comparisons(program, share):
    assert distribution(program, 0).probabilities[True] == share


# Generators with a seed.


class Seeded:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)


@noise_primitive(distribution=lambda own: Distribution("two-sided geometric", location=0, scale=1.0))
def seeded(own):
    return int(own.rng.geometric(0.5))


def test_noise_from_a_seed_is_not_taken_for_noise():
    for program in (
        lambda x: x + int(two_sided_geometric(1.0, 1, np.random.default_rng(x))[0]),
        lambda x: x + seeded(Seeded(x)),
        lambda x: x + random.Random(x).randrange(2),
    ):
        assert check(program, 0, 2, claim=1.0, exact=True).excess.lower == 1.0
    with pytest.raises(MechanismError, match="entropy of the system"):
        check(lambda x: int(two_sided_geometric(1.0, 1, np.random.RandomState(x))[0]), 0, 1, claim=1.0, exact=True)


def test_a_draw_that_is_certain_is_a_draw():
    result = check(lambda x, rng: x if rng.random() < 1.0 else 1 - x, 0, 1, claim=1.0, exact=True)
    assert result.excess.lower == 1.0


# Methods that a module imports by name.


@pytest.mark.parametrize("mechanism", [lambda x: uniform_of_random() < 0.25, lambda x: uniform_of_numpy() < 0.25])  # noqa: NPY002
def test_a_method_of_a_global_generator_imported_by_name(mechanism):
    assert distribution(mechanism, 0).probabilities == {True: Fraction(1, 4), False: Fraction(3, 4)}


def test_the_c_class_of_mersenne_twisters_is_refused():
    hidden = random.Random.__base__()
    with pytest.raises(MechanismError, match="draws from a Random, which is not followed"):
        distribution(lambda x, rng: (rng.random() < 0.5, hidden.random() < 1e-3), 0)


# What outlives the audit.


@pytest.fixture
def lately(tmp_path, monkeypatch):
    """A module that audited code imported first, so that its names and objects are those of the audit."""
    (tmp_path / "imported_lately.py").write_text(
        "from random import Random, SystemRandom, gauss, random as uniform\n"
        "from numpy.random import default_rng, rand\n"
        "PYTHON, NUMPY, Own = Random(), default_rng(), type('Own', (Random,), {})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def mechanism(x):
        import imported_lately as found

        return int(found.NUMPY.integers(2)) + found.PYTHON.randrange(2) + (found.uniform() < x)

    assert distribution(mechanism, 0.5).probabilities[0] == Fraction(1, 8)
    yield sys.modules["imported_lately"]
    del sys.modules["imported_lately"]


def test_what_a_module_made_when_audited_code_imported_it_is_ordinary_afterwards(lately):
    real, own, made = random.Random(5), lately.Own(5), lately.PYTHON
    made.seed(5)
    for name, *arguments in (("random",), ("gauss", 0, 1), ("getrandbits", 80), ("sample", range(9), 3), ("getstate",)):
        drawn = getattr(real, name)(*arguments)
        assert getattr(made, name)(*arguments) == getattr(own, name)(*arguments) == drawn
    assert copy.deepcopy(made).random() == made.random()
    assert copy.deepcopy(lately.NUMPY).laplace() == lately.NUMPY.laplace() != lately.NUMPY.laplace()
    assert np.random.Generator(lately.NUMPY.bit_generator).random() != lately.default_rng().random()
    for module, theirs, ours in ((random, random.gauss, lately.gauss), (np.random, np.random.rand, lately.rand)):
        module.seed(3)
        drawn = theirs()
        module.seed(3)
        assert ours() == drawn
    assert [isinstance(real, each) for each in (lately.Random, lately.SystemRandom, lately.Own)] == [True, False, False]
    assert [isinstance(each, lately.Own) for each in (own, made)] == [True, False]


def test_what_outlived_an_audit_is_followed_by_the_next(lately):
    lately.PYTHON.seed(3)
    for draws in (lately.PYTHON.random, lately.uniform, lambda: lately.Random().random(), lately.NUMPY.random):
        assert distribution(lambda x, draws=draws: draws() < x, 0.25).probabilities[True] == Fraction(1, 4)
    with pytest.raises(MechanismError, match="draws from gauss, which is continuous"):
        distribution(lambda x: lately.gauss() < x, 0)


@pytest.mark.parametrize("names", [tempfile._RandomNameSequence(), SemLock._rand])
def test_a_refused_audit_leaves_no_stand_in(names):
    """Temporary files and the locks of processes draw their names."""
    next(names)
    held = collections.deque([random.Random()])
    with pytest.raises(MechanismError, match="holds a generator in a deque"):
        distribution(lambda x: (names.rng.random() < x, len(held)), 0)
    assert type(names.rng) is random.Random
    assert len(next(names)) == 8
