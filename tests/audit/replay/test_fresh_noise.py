"""Noise that is not drawn anew, or not from a source that is known to be random, is never called bounded."""

from __future__ import annotations

import copy
import random
import secrets
import threading
import weakref

import numpy as np
import pytest
from scipy import stats

from dpaudit import ReplayResult, noise_primitive, replay
from dpaudit.audit.replay.primitives import recording_generator
from dpaudit.audit.replay.replay_result import FindingKind, ReplayVerdict
from dpaudit.audit.replay.tape import Tape, recording_on

BOUNDED, OPEN = ReplayVerdict.BOUNDED, ReplayVerdict.OPEN
X, Y = [0.4, 0.3, 0.5], [0.3, 0.5]
OLDER = np.random.default_rng(1)
LARGE = 122807528840384100672342137672332424406


def run(mechanism, x=X, y=Y, claim=2.0, **options) -> ReplayResult:
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
    result = run(mechanism)
    assert result.verdict is OPEN
    assert "were drawn before, at" in str(result)
    assert not run(mechanism, claim=1.3).has_excess  # their losses do not add up


def test_a_legacy_state_that_is_set_back_counts_with_the_number_that_it_keeps():
    assert "were drawn before, at" in str(run(legacy_state_set_back, claim=(1.0, 0.5)))


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
    assert run(mechanism).verdict is BOUNDED


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
    result = run(mechanism)
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
        run(lambda rows, rng: len(rows) + rng.laplace())
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

        assert run(lazily).verdict is not ReplayVerdict.EXCESS
        return kept[0].random()

    assert kept_number() != kept_number()


def test_strange_objects_of_the_process_are_passed_over():
    class Lazy:
        @property
        def __class__(self):
            raise RuntimeError("the settings are not configured")

    held = [Lazy(), weakref.proxy(type("Thing", (), {})())]
    assert run(lambda rows, rng: rng.laplace(len(rows))).verdict is BOUNDED
    assert len(held) == 2


@noise_primitive("laplace", location="value", scale=1.0)
def raising(value, limit, rng):
    if value > limit:
        raise RuntimeError("underflow")
    return value + rng.laplace()


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_call_that_raises_is_named(is_swapped):
    """Of the two, only a run on y that draws for itself shows that the call raises there."""
    x, y = (Y, X) if is_swapped else (X, Y)
    result = run(lambda rows, rng: raising(len(rows), 2, rng), x, y)
    assert result.verdict is OPEN
    assert result.findings[0].kind is FindingKind.RAISES
    often = "in 0 of 9 runs on x and in 8 of 8 on y" if is_swapped else "in 9 of 9 runs on x and in 0 of 8 on y"
    assert f"raises RuntimeError: underflow, {often}" in result.findings[0].message
    assert not result.unrecorded
    caught = run(lambda rows, rng: [rng.laplace(len(rows)), _or_none(raising, 9, 2, rng)])
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
    assert run(mechanism, MANY, OTHER, seed=1).verdict is OPEN


def test_candidates_that_do_not_depend_on_the_data_are_bounded():
    assert run(lambda rows, rng: float(MANY[rng.choice(500, p=ranked(np.sort(rows)))]), MANY, OTHER).verdict is BOUNDED
    assert run(lambda rows, rng: round(rng.laplace(len(rows), 3.0))).verdict is BOUNDED
