"""What a replay records, where it is not recorded or not drawn anew, and that every patch is undone."""

import copy
import functools
import itertools
import os
import random
import secrets
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy.random import Generator as ImportedGenerator
from numpy.random import default_rng as imported_default_rng
from scipy import stats

from dpaudit import GaussianDP, noise_primitive, replay
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.replay.recorded_run import _numpy_states
from dpaudit.audit.replay.replay_result import FindingKind
from dpaudit.audit.replay.tape import active_tape
from dpaudit.audit.results.verdict import ReplayVerdict
from dpaudit.exact import distribution

# ruff: noqa: NPY002

BOUNDED, UNDETERMINED = ReplayVerdict.BOUNDED, ReplayVerdict.UNDETERMINED
X, Y = [1.0, 5.0], [1.0]
OLDER, GLOBAL, KEPT = np.random.default_rng(1), np.random.mtrand._rand, itertools.count()
LARGE = 122807528840384100672342137672332424406


def run(mechanism, x=X, y=Y, claim=1.0, **options):
    return replay(mechanism, x, y, claim=claim, **options)


def kinds(result):
    return [finding.kind for finding in result.findings]


# What is recorded.


@pytest.mark.parametrize(
    "draw",
    [
        lambda at: np.random.laplace(at, 2.0),
        lambda at: np.random.Generator(np.random.PCG64(3)).laplace(at, 2.0),
        lambda at: np.random.RandomState(4).laplace(at, 2.0),
        lambda at: stats.laplace.rvs(at, 2.0),
        lambda at: stats.laplace(at, 2.0).rvs(random_state=3),
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


def test_generators_of_libraries_are_recorded():
    from sklearn.utils import check_random_state

    result = run(lambda rows: check_random_state(None).laplace(len(rows), 2.0))
    assert (result.unrecorded, result.loss.worst) == (False, 0.5)

    def typed(rows, rng):
        assert isinstance(rng, np.random.Generator)
        return check_random_state(np.random.RandomState(rng.bit_generator)).laplace(len(rows), 2.0)

    assert run(typed).verdict is BOUNDED


def test_in_place_draws_choices_and_orders_are_put_back():
    def draws(rows, rng):
        out, order = np.empty(3), list(rows)
        rng.standard_exponential(out=out)
        rng.shuffle(order)
        mixed = rng.permutation(np.arange(8.0))
        random.shuffle(order)
        held = rng.choice(["a", "b", "c"], size=2), random.choice("abc"), random.choices("abc", [1, 2, 3], k=2)
        return out.tolist(), order, mixed.tolist(), [str(each) for each in held], random.sample(range(99), 3)

    result = run(draws, [1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    assert not result.unrecorded
    assert {1.0, 2.0} < set(result.output_on_x[1])
    assert [4.0 if row == 3.0 else row for row in result.output_on_x[1]] == result.output_on_y[1]
    assert all(result.output_on_x[part] == result.output_on_y[part] for part in (0, 2, 3, 4))
    assert result.verdict is UNDETERMINED


def test_generators_come_from_what_a_test_has_put_in_the_place_of_numpys(monkeypatch):
    seeds, make = [], np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: seeds.append(seed) or make(seed))
    found = run(lambda rows: len(rows) + np.random.default_rng().laplace())
    assert found.verdict is BOUNDED
    assert len(seeds) >= found.runs


def test_a_comprehension_has_the_name_of_its_function():
    def counts(rows, rng):
        return [*[rng.laplace(len(rows), 9.0) for _ in "a"], *(rng.laplace(len(rows), 9.0) for _ in "a")]

    assert [call.place.function for call in run(counts).calls] == ["counts", "counts"]


def test_what_a_module_draws_when_it_is_imported_is_no_call(tmp_path, monkeypatch):
    (tmp_path / "drawn_on_import.py").write_text("import random\n\nNUMBER = random.random()\n")
    monkeypatch.syspath_prepend(tmp_path)

    def importing(rows, rng):
        import drawn_on_import

        return rng.laplace(len(rows)) + 0.0 * drawn_on_import.NUMBER

    result = run(importing)
    assert (result.verdict, len(result.calls)) == (BOUNDED, 1)


# What is not, and is noticed.


def beside(draw):
    """Return a mechanism that draws without a tape, where it decides nothing."""
    return lambda rows, rng: (rng.laplace(len(rows)), sum(rows) + draw() > 1e12)


@pytest.mark.parametrize(
    "mechanism",
    [
        beside(lambda: int.from_bytes(os.urandom(4), "big")),
        beside(lambda: secrets.randbits(1)),
        beside(lambda: imported_default_rng().laplace()),
        beside(lambda: ImportedGenerator(np.random.PCG64()).laplace()),
        beside(lambda: subprocess.run([sys.executable, "-S", "-E", "-c", ""], check=True).returncode),
        lambda rows, rng: sum(rows) + rng.bit_generator.random_raw() % 1000 / 500 > 50,
        lambda rows, rng: (rng.laplace(len(rows)), sum(rows) + GLOBAL.laplace() > 50),
        lambda rows, rng: rng.laplace(len(rows), 1.0) + next(KEPT),  # a state that is kept between runs
    ],
)
def test_draws_that_the_tape_does_not_see_are_noticed(mechanism):
    result = run(mechanism)
    assert (result.unrecorded, result.verdict) == (True, UNDETERMINED)
    assert "unrecorded" in str(result)


def test_a_generator_from_before_says_what_to_do_and_nothing_of_the_data():
    older = np.random.default_rng(3)
    assert run(lambda rows, rng: (rng.laplace(len(rows)), sum(rows) + older.laplace() > 50)).unrecorded
    result = run(lambda rows: sum(rows) + older.laplace(), [1.0], [1.0])
    (reason,) = result.open_reasons  # the outputs differ by the noise: that says nothing of the data
    assert "made before the replay; make it inside the mechanism, or take it as the parameter rng" in reason


def test_other_threads_go_on_and_are_counted():
    drawn = []

    def threaded(rows, rng):
        other = threading.Thread(target=lambda: drawn.append(np.random.laplace()))
        other.start()
        other.join()
        return rng.laplace(len(rows), 1.0)

    result = run(threaded)
    assert result.unrecorded
    assert "another thread made 1 random call" in str(result)
    assert len(drawn) == result.runs


# Seeds, and noise that is drawn twice or comes from no known source.


def seeded_on_one(rows):
    if len(rows) > 1:
        random.seed(0)
    return random.gauss(len(rows), 1.0)


@pytest.mark.parametrize(
    ("mechanism", "says"),
    [
        (lambda rows: np.random.default_rng(len(rows)).laplace(len(rows)), "seeded with 2 on x and 1 on y"),
        (lambda rows: (np.random.seed(len(rows)), np.random.laplace(len(rows)))[1], "seeded with 2 on x and 1 on y"),
        (lambda rows: np.random.Generator(np.random.PCG64(len(rows))).laplace(len(rows)), "seeded with 2 on x"),
        (lambda rows: np.random.RandomState(np.random.MT19937(len(rows))).laplace(len(rows)), "seeded with 2 on x"),
        (lambda rows: random.Random(len(rows)).gauss(len(rows), 1.0), "seeded with 2 on x"),
        (lambda rows: stats.laplace.rvs(len(rows), 1.0, random_state=len(rows)), "seeded with 2 on x"),
        (seeded_on_one, "seeded with 0 on x only"),
    ],
)
def test_seeds_from_the_data_are_named(mechanism, says):
    result = run(mechanism, claim=GaussianDP(9.0))
    assert kinds(result)[-1] is FindingKind.SEED_DIFFERS
    assert result.verdict is UNDETERMINED
    assert says in str(result)
    assert "so what it draws is not noise" in str(result)


def two(first, second, rows):
    return first.laplace(sum(rows), 1.0), second.laplace(len(rows), 1.0)


def set_back(rows, rng, least=0.0):
    held = rng.bit_generator.state
    first = rng.laplace(sum(rows), 1.0)
    if abs(first) >= least:
        rng.bit_generator.state = held
    return first, rng.laplace(len(rows), 1.0)


def legacy_state_set_back(rows, n_before=0):
    np.random.normal(size=n_before)
    held = np.random.get_state()
    first = np.random.normal(sum(rows), 1.0)
    np.random.set_state(held)
    return first, np.random.normal(len(rows), 1.0)


def seeded_by_one_number(rows):
    seed = secrets.randbits(128)
    return two(np.random.default_rng(seed), np.random.default_rng(seed), rows)


@noise_primitive("laplace", location="value", scale=1.0)
def noisy(value, source):
    return value + source.laplace()


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda rows, rng: two(*rng.spawn(2), rows),
        lambda rows: two(*map(np.random.default_rng, np.random.SeedSequence().spawn(2)), rows),
        lambda rows: two(*(np.random.default_rng(secrets.randbits(128)) for _ in range(2)), rows),
        lambda rows: two(np.random.RandomState(), np.random.RandomState(), rows),
        lambda rows: two(*[np.random.Generator(np.random.Philox())] * 2, rows),
        lambda rows, rng: (noisy(sum(rows), rng), noisy(len(rows), rng)),
        lambda rows, rng: copy.deepcopy(rng).laplace(len(rows)),
    ],
)
def test_streams_of_their_own_are_bounded(mechanism):
    assert run(mechanism, [0.4, 0.3, 0.5], [0.3, 0.5], claim=2.0).verdict is BOUNDED


def advanced():
    bits = np.random.PCG64()
    bits.random_raw()
    return bits


def of_a_state(rows):
    bits = np.random.PCG64()
    bits.state = {**bits.state, "state": {"state": LARGE, "inc": 2 * int(100 * sum(rows)) + 1}}
    return np.random.Generator(bits).laplace(sum(rows), 1.0)


@noise_primitive("laplace", location="value", scale=1.0)
def of_no_draw(value):
    return value + 0.25


@pytest.mark.parametrize(
    ("mechanism", "why"),
    [
        *((mechanism, "were drawn before, at") for mechanism in [
            lambda rows, rng: two(copy.deepcopy(rng), rng, rows),
            set_back,
            functools.partial(set_back, least=30.0),  # as seldom as once in 10¹² runs
            legacy_state_set_back,
            lambda rows: legacy_state_set_back(rows, n_before=1),  # with a number held back
            seeded_by_one_number,
        ]),
        (lambda rows: np.random.Generator(np.random.PCG64(LARGE)).laplace(sum(rows)), f"is seeded with {LARGE} at"),
        (lambda rows: (np.random.seed(0), np.random.laplace(sum(rows)))[1], "its noise is the same in every run"),
        (of_a_state, "neither that of rng nor from the operating system|the same in"),
        (lambda rows: stats.laplace.rvs(sum(rows), 1.0, random_state=OLDER), "neither that of rng nor"),
        (lambda rows: np.random.Generator(advanced()).laplace(sum(rows), 1.0), "neither that of rng nor"),
        (lambda rows: of_no_draw(sum(rows)), "is the same in all of 17 runs"),
        (lambda rows: noisy(sum(rows), np.random.default_rng(LARGE)), "the same in every run, or in several"),
    ],
)  # fmt: skip
def test_noise_that_is_drawn_twice_or_from_no_known_source_is_named(mechanism, why):
    result = run(mechanism, [0.4, 0.3, 0.5], [0.3, 0.5], claim=(2.0, 0.5))
    assert result.verdict is UNDETERMINED
    assert any(each in str(result) for each in why.split("|")), str(result)


# What is left of a replay: nothing.


def sources():
    return [np.random.laplace, np.random.default_rng, np.random.RandomState, random.gauss, random.Random.gauss]


SOURCES = sources()


def patches_are_undone():
    assert all(a is b for a, b in zip(sources(), SOURCES, strict=True))
    assert not {"getrandbits", "random"} & set(vars(random.Random))
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
    state = np.random.get_state()[1].tolist(), random.getstate()
    run(lambda rows: np.random.laplace(len(rows)) + random.gauss(0, 1))
    assert (np.random.get_state()[1].tolist(), random.getstate()) == state
    assert patches_are_undone()
    assert run(lambda rows, rng: rng.laplace(len(rows))).verdict is BOUNDED


def test_global_generators_are_neither_seeded_nor_set_back():
    """Neither by functions, nor by a library that reads the global state of numpy as scipy and scikit-learn do."""
    np.random.seed(5)
    random.seed(5)
    drawn, is_over = [], threading.Event()

    def serve():
        while not is_over.is_set():
            by_library = stats.norm.rvs(), np.random.mtrand._rand.random()
            drawn.append((np.random.random(), random.random(), *by_library))
            is_over.wait(1e-4)

    thread = threading.Thread(target=serve)
    thread.start()
    for _ in range(3):
        run(lambda rows, rng: len(rows) + rng.laplace())
    is_over.set()
    thread.join()
    numpy, python = np.random.RandomState(5), random.Random(5)
    for each in drawn:
        by_library = numpy.normal(), numpy.random()
        assert each == (numpy.random(), python.random(), *by_library)


def spawned():
    return np.random.PCG64(np.random.default_rng().bit_generator.seed_seq.spawn(1)[0])


@pytest.mark.parametrize(
    "make", [lambda rng: rng, lambda rng: np.random.default_rng(), lambda rng: np.random.RandomState(spawned())]
)
def test_a_generator_that_outlives_its_replay_is_not_foretold_by_the_seed(make):
    def kept_number():
        kept = []

        def lazily(rows, rng):
            if not kept:
                kept.append(make(rng))
            return kept[0].laplace(sum(rows), 1.0)

        assert not run(lazily, [0.4, 0.3, 0.5], [0.3, 0.5]).has_excess
        return kept[0].random()

    assert kept_number() != kept_number()


def test_what_a_stopped_replay_leaves_is_not_foretold_by_the_seed():
    left = []

    def stopped(rows, rng):
        left.append((np.random.default_rng(), random.Random(), random._inst))
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(stopped)
    first, second = ([each.random() for each in made] for made in left)
    assert not set(first) & set(second)


def test_what_keeps_the_global_state_of_a_replay_is_recorded_by_the_next():
    laplace = functools.cache(lambda: stats.laplace(0, 1))  # scipy keeps the state that it finds
    for _ in range(2):
        assert run(lambda rows: len(rows) + laplace().rvs()).verdict is BOUNDED


def test_an_exact_audit_refuses_what_a_module_kept_of_a_replay():
    kept = []
    run(lambda rows: kept.append((np.random.default_rng, np.random.Generator)) or np.random.default_rng().laplace())
    for mechanism in (lambda x: kept[0][0]().random() < x, lambda x: kept[0][1](np.random.PCG64(1)).random() < x):
        with pytest.raises(MechanismError, match="draws by what a module kept of a replay"):
            distribution(mechanism, 0.5)


def test_what_stands_for_the_global_state_begins_anew_only_after_it_was_used():
    def state():
        (patch,) = _numpy_states(5)
        return patch.replacement

    assert state() is state()
    first, second = (state()._bit_generator.random_raw() for _ in range(2))
    assert first == second


@noise_primitive("laplace", location="value", scale=1.0)
def raising(value, limit, rng):
    if value > limit:
        raise RuntimeError("underflow")
    return value + rng.laplace()


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_call_that_raises_is_named(is_swapped):
    """Of the two, only a run on y that draws for itself shows that the call raises there."""
    result = run(lambda rows, rng: raising(len(rows), 1, rng), *((Y, X) if is_swapped else (X, Y)))
    assert result.verdict is UNDETERMINED
    assert result.findings[0].kind is FindingKind.RAISES
    often = "in 0 of 9 runs on x and in 8 of 8 on y" if is_swapped else "in 9 of 9 runs on x and in 0 of 8 on y"
    assert f"raises RuntimeError: underflow, {often}" in result.findings[0].message
    assert not result.unrecorded
