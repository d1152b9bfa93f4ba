"""What a replay records, noise that is not drawn anew, and that every patch is undone."""

import copy
import os
import random
import secrets
import threading
import weakref

import numpy as np
import pytest
from scipy import stats

from dpaudit import GaussianDP, ReplayResult, noise_primitive, replay
from dpaudit.audit.errors import MechanismError
from dpaudit.audit.replay.numpy_primitives import recording_generator
from dpaudit.audit.replay.replay_result import ReplayVerdict
from dpaudit.audit.replay.replayed_call import FindingKind
from dpaudit.audit.replay.tape import Tape, active_tape, recording_on

X, Y = [1.0, 5.0], [1.0]


def run(mechanism, x=X, y=Y, claim=1.0, **options) -> ReplayResult:
    return replay(mechanism, x, y, claim=claim, **options)


def test_without_families_the_patches_are_applied_once():
    layers = []

    def mechanism(rows, rng):
        layers.append(os.urandom)
        return rng.laplace(len(rows), 1.0)

    run(mechanism, primitives=[])
    assert len(layers) > 1
    assert len(set(layers)) == 1


def kinds(result):
    return [finding.kind for finding in result.findings]


@pytest.mark.parametrize(
    "draw",
    [lambda: int.from_bytes(os.urandom(4), "big"), lambda: secrets.token_bytes(4)[0], lambda: secrets.randbits(1)],
)
def test_unrecorded_randomness_is_noticed(draw):
    result = run(lambda rows, rng: rng.laplace(len(rows), 1.0) + draw())
    assert result.unrecorded
    assert result.verdict is ReplayVerdict.OPEN
    assert "unrecorded" in str(result)


def test_an_input_with_unrecorded_noise_is_no_excess():
    result = run(lambda rows, rng: rng.laplace(len(rows) + os.urandom(1)[0], 1.0))
    assert result.unrecorded
    assert "made other calls" in str(result)
    assert not result.has_excess


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
    assert len(drawn) == result.runs


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


def test_generators_of_libraries_are_recorded():
    from sklearn.utils import check_random_state

    result = run(lambda rows: check_random_state(None).laplace(len(rows), 2.0))
    assert (result.unrecorded, result.loss.worst) == (False, 0.5)
    assert isinstance(np.random.default_rng(), np.random.Generator)

    def typed(rows, rng):
        assert isinstance(rng, np.random.Generator)
        assert isinstance(np.random.RandomState(), np.random.RandomState)
        assert isinstance(OWN, np.random.Generator)
        return check_random_state(np.random.RandomState(rng.bit_generator)).laplace(len(rows), 2.0)

    assert run(typed).verdict is ReplayVerdict.BOUNDED


OWN = np.random.default_rng(1)


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


def test_a_generator_from_before_says_what_to_do_and_nothing_of_the_data():
    own = np.random.default_rng(3)
    result = replay(lambda rows: sum(rows) + own.laplace(), [1.0], [1.0], claim=1.0)
    (reason,) = result.open_reasons  # the outputs differ by the noise: that says nothing of the data
    assert "made before the replay; make it inside the mechanism, or take it as the parameter rng" in reason


def test_words_of_results():
    def slow_sum(rows, rng):
        return sum(rows) * rng.laplace() + rng.laplace() ** 2

    (row, _) = replay(slow_sum, [1.0, 2.0], [1.0], claim=1.0).tabulated().rows
    assert (row.moved, row.loss) == ("", "")  # noise that was handed nothing: 0 would look like a bound

    def as_text(rows, rng):
        return f"{rng.laplace(sum(rows)):.2f}"

    (finding,) = replay(as_text, [1.0], [3.0], claim=1.0).findings  # one call: its sum is not said again
    assert "worst-case loss 2" in finding.message

    def handed(rows, rng):
        return rng.laplace(len(rows))

    result = replay(handed, [1.0] * 3, [1.0], claim=1.0, adjacency="add-remove", distance=2)
    assert "OPEN: loss at most 2 in 1 call, claimed 1-DP at distance 2; not shown to be within the claim" in str(result)

    def of_its_own_scale(rows, rng):
        return rng.laplace(sum(rows), max(rows))

    assert replay(of_its_own_scale, [1.0, 3.0], [1.0], claim=1.0).table().endswith("moved 3; loss infinite")

    def normal(rows, rng):
        return rng.normal(sum(rows))

    assert "mu >= 2, claimed 1-GDP" in str(replay(normal, [1.0], [3.0], claim=GaussianDP(1.0)))


def test_the_outcome_that_changes_most_is_named():
    def one_of_ten(rows, rng):
        odds = np.ones(10)
        odds[7] += len(rows)
        return int(rng.choice(10, p=odds / odds.sum()))

    found = str(replay(one_of_ten, [1.0] * 3, [1.0] * 2, claim=0.1))
    assert "outcome 7 has probability 0.3077 on x and 0.25 on y; worst-case loss 0.207639" in found


def test_a_comprehension_has_the_name_of_its_function():
    def counts(rows, rng):
        return [*[rng.laplace(len(rows), 9.0) for _ in "a"], *(rng.laplace(len(rows), 9.0) for _ in "a")]

    calls = replay(counts, [1.0, 2.0], [1.0], claim=1.0).calls
    assert [call.place.function for call in calls] == ["counts", "counts"]


def test_other_primitives_at_other_lines_are_one_finding():
    def sampled(rows, rng):
        chosen = [row for row in rows if rng.random() < 0.5]
        return rng.laplace(sum(chosen))

    assert kinds(replay(sampled, [1.0, 2.0], [1.0], claim=0.6)) == [FindingKind.CALLS_DIFFER]


BOUNDED, OPEN = ReplayVerdict.BOUNDED, ReplayVerdict.OPEN
THREE, PAIR = [0.4, 0.3, 0.5], [0.3, 0.5]
OLDER = np.random.default_rng(1)
LARGE = 122807528840384100672342137672332424406


def within_two(mechanism, x=THREE, y=PAIR, claim=2.0, **options) -> ReplayResult:
    return replay(mechanism, x, y, claim=claim, **options)


def two(first, second, rows):
    return first.laplace(sum(rows), 1.0), second.laplace(len(rows), 1.0)


def set_back(rows, rng):
    held = rng.bit_generator.state
    first = rng.laplace(sum(rows), 1.0)
    rng.bit_generator.state = held
    return first, rng.laplace(len(rows), 1.0)


def set_back_if_it_is_large(rows, rng):
    first = rng.laplace(sum(rows), 1.0)
    own = copy.deepcopy(rng) if first > 3.0 else np.random.default_rng()
    return first, own.laplace(sum(rows), 1.0), rng.laplace(len(rows), 1.0)


def legacy_state_set_back(rows):
    held = np.random.get_state()  # noqa: NPY002
    first = np.random.normal(sum(rows), 1.0)  # noqa: NPY002
    np.random.set_state(held)  # noqa: NPY002
    return first, np.random.normal(len(rows), 1.0)  # noqa: NPY002


def seeded_by_one_number(rows):
    seed = secrets.randbits(128)
    return two(np.random.default_rng(seed), np.random.default_rng(seed), rows)


def children_of_one_sequence(rows):
    entropy = np.random.SeedSequence().entropy
    return two(*(np.random.default_rng(np.random.SeedSequence(entropy).spawn(1)[0]) for _ in range(2)), rows)


def jumped_twice(rows, rng):
    return two(*(np.random.Generator(rng.bit_generator.jumped()) for _ in range(2)), rows)


@noise_primitive("laplace", location="value", scale=1.0)
def noisy(value, source):
    return value + source.laplace()


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda rows, rng: two(copy.deepcopy(rng), rng, rows),
        lambda rows, rng: (noisy(sum(rows), copy.deepcopy(rng)), noisy(len(rows), rng)),
        set_back,
        set_back_if_it_is_large,
        seeded_by_one_number,
        children_of_one_sequence,
        jumped_twice,
    ],
)
def test_numbers_that_are_drawn_twice_are_named(mechanism):
    result = within_two(mechanism)
    assert result.verdict is OPEN
    assert "were drawn before, at" in str(result)
    assert not within_two(mechanism, claim=1.3).has_excess  # their losses do not add up


def test_a_legacy_state_that_is_set_back_counts_with_the_number_that_it_keeps():
    assert "were drawn before, at" in str(within_two(legacy_state_set_back, claim=(1.0, 0.5)))


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda rows, rng: two(*rng.spawn(2), rows),
        lambda rows: two(*map(np.random.default_rng, np.random.SeedSequence().spawn(2)), rows),
        lambda rows: two(*(np.random.default_rng(secrets.randbits(128)) for _ in range(2)), rows),
        lambda rows: two(np.random.RandomState(), np.random.RandomState(), rows),
        lambda rows, rng: two(np.random.Generator(rng.bit_generator), rng, rows),
        lambda rows: two(*[np.random.Generator(np.random.Philox())] * 2, rows),
        lambda rows, rng: (noisy(sum(rows), rng), noisy(len(rows), rng)),
        lambda rows: (np.random.laplace(sum(rows)), np.random.default_rng().laplace(len(rows))),  # noqa: NPY002
    ],
)
def test_streams_of_their_own_are_bounded(mechanism):
    assert within_two(mechanism).verdict is BOUNDED


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
        (lambda rows: np.random.Generator(np.random.PCG64(0)).laplace(sum(rows)), "is seeded with 0 at"),
        (lambda rows: np.random.Generator(np.random.PCG64(LARGE)).laplace(sum(rows)), f"is seeded with {LARGE} at"),
        (lambda rows: np.random.default_rng(np.random.SeedSequence(LARGE)).laplace(sum(rows)), "is seeded with"),
        (of_a_state, "neither that of rng nor from the operating system|the same in"),
        (lambda rows: stats.laplace.rvs(sum(rows), 1.0, random_state=OLDER), "neither that of rng nor"),
        (lambda rows: of_no_draw(sum(rows)), "is the same in all of 17 runs"),
        (lambda rows: noisy(sum(rows), np.random.default_rng(LARGE)), "the same in every run"),
    ],
)
def test_noise_from_no_known_source_is_named(mechanism, why):
    result = within_two(mechanism)
    assert result.verdict is OPEN
    assert any(each in str(result) for each in why.split("|")), str(result)


def test_draws_of_a_stream_form_a_chain():
    """Two draws at one state are a repetition, whichever draw ended there."""
    tape = Tape(entropy=1)
    streams = tape.streams
    with recording_on(tape):
        rng = recording_generator(1)
        for _ in range(3):
            tape.drawn(rng, rng.random)
        held = rng.bit_generator.state
        tape.drawn(rng, rng.random)
        assert (streams.repeated, streams.unknown) == ("", "")
        rng.bit_generator.state = held
        tape.drawn(rng, rng.random)
        assert streams.repeated
        rng.bit_generator.advance(7)
        tape.drawn(rng, rng.random)
        assert "neither that of rng nor" in streams.unknown


def test_global_generators_are_neither_seeded_nor_set_back():
    """Neither by functions, nor by a library that reads the global state of numpy as scipy and scikit-learn do."""
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    drawn, is_over = [], threading.Event()

    def serve():
        while not is_over.is_set():
            by_library = stats.norm.rvs(), np.random.mtrand._rand.random()
            drawn.append((np.random.random(), random.random(), *by_library))  # noqa: NPY002
            is_over.wait(1e-4)

    thread = threading.Thread(target=serve)
    thread.start()
    for _ in range(3):
        within_two(lambda rows, rng: len(rows) + rng.laplace())
    is_over.set()
    thread.join()
    numpy, python = np.random.RandomState(5), random.Random(5)
    for each in drawn:
        by_library = numpy.normal(), numpy.random()
        assert each == (numpy.random(), python.random(), *by_library)


def test_a_generator_that_outlives_its_replay_is_not_foretold_by_the_seed():
    def kept_number():
        kept = []

        def lazily(rows):
            if not kept:
                kept.append(np.random.default_rng())
            return kept[0].laplace(sum(rows), 1.0)

        assert within_two(lazily).verdict is not ReplayVerdict.EXCESS
        return kept[0].random()

    assert kept_number() != kept_number()


def test_strange_objects_of_the_process_are_passed_over():
    class Lazy:
        @property
        def __class__(self):
            raise RuntimeError("the settings are not configured")

    held = [Lazy(), weakref.proxy(type("Thing", (), {})())]
    assert within_two(lambda rows, rng: rng.laplace(len(rows))).verdict is BOUNDED
    assert len(held) == 2


@noise_primitive("laplace", location="value", scale=1.0)
def raising(value, limit, rng):
    if value > limit:
        raise RuntimeError("underflow")
    return value + rng.laplace()


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_call_that_raises_is_named(is_swapped):
    """Of the two, only a run on y that draws for itself shows that the call raises there."""
    x, y = (PAIR, THREE) if is_swapped else (THREE, PAIR)
    result = within_two(lambda rows, rng: raising(len(rows), 2, rng), x, y)
    assert result.verdict is OPEN
    assert result.findings[0].kind is FindingKind.RAISES
    often = "in 0 of 9 runs on x and in 8 of 8 on y" if is_swapped else "in 9 of 9 runs on x and in 0 of 8 on y"
    assert f"raises RuntimeError: underflow, {often}" in result.findings[0].message
    assert not result.unrecorded
    caught = within_two(lambda rows, rng: [rng.laplace(len(rows)), _or_none(raising, 9, 2, rng)])
    assert caught.verdict is BOUNDED


def _or_none(function, *arguments):
    try:
        return function(*arguments)
    except RuntimeError:
        return None


def ranked(values):
    odds = np.exp(-0.01 * np.abs(np.arange(len(values)) - len(values) / 2) + 1e-5 * (np.mean(values) - values))
    return odds / odds.sum()


def steps(rows, rng):
    return float(np.sort(rows)[int(np.clip(round(rng.laplace(len(rows) / 2 + 1e-4 * sum(rows), 100.0)), 0, 499))])


MANY = np.arange(500.0)
OTHER = np.where(MANY == 137.0, 137.5, MANY)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda rows, rng: float(np.sort(rows)[rng.choice(500, p=ranked(np.sort(rows)))]),
        lambda rows: float(random.choices(np.sort(rows).tolist(), weights=ranked(np.sort(rows)))[0]),
        lambda rows, rng: float(np.sort(rows)[rng.choice(500, size=2, p=ranked(np.sort(rows))).max()]),
        steps,
    ],
)
def test_candidates_from_the_data_are_all_tried(mechanism):
    assert within_two(mechanism, MANY, OTHER, seed=1).verdict is OPEN


def test_candidates_that_do_not_depend_on_the_data_are_bounded():
    assert (
        within_two(lambda rows, rng: float(MANY[rng.choice(500, p=ranked(np.sort(rows)))]), MANY, OTHER).verdict
        is BOUNDED
    )
    assert within_two(lambda rows, rng: round(rng.laplace(len(rows), 3.0))).verdict is BOUNDED
