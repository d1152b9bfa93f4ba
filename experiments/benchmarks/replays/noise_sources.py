"""Programs with shared, copied, seeded, kept and data-dependent noise, and their correct variants.

Each is replayed and audited on one pair. A replay must not say bounded where an audit refutes the claim, nor excess of
a program that keeps it. ``python -m dpaudit.experiments.benchmarks.replays.noise_sources`` prints the table.
"""

# ruff: noqa: NPY002, D103

from __future__ import annotations

import copy
import functools
import hashlib
import os
import pickle
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ....audit.procedures.check import check
from ....audit.replay.noise_primitive import noise_primitive
from ....audit.replay.replay import replay

X, Y = [0.4, 0.3, 0.5], [0.3, 0.5]
SEED = 122807528840384100672342137672332424406


class Program(NamedTuple):
    """A program of a pair, with its claim; `is_correct` if it keeps the claim on the pair."""

    function: Callable[..., Any]
    is_correct: bool
    claim: float = 2.0
    x: Any = X
    y: Any = Y


PROGRAMS: list[Program] = []


def program(*, correct: bool, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a function to the programs."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(Program(function, correct, **options))
        return function

    return add


wrong, right = functools.partial(program, correct=False), functools.partial(program, correct=True)


def two(first: Any, second: Any, rows: Any) -> tuple[float, float]:
    """Return two noisy answers; with the same noise, their difference is exact."""
    return first.laplace(sum(rows), 1.0), second.laplace(len(rows), 1.0)


@wrong()
def deep_copy_of_rng(rows: Any, rng: Any) -> Any:
    return two(copy.deepcopy(rng), rng, rows)


@right()
def deep_copy_that_alone_draws(rows: Any, rng: Any) -> Any:
    own = copy.deepcopy(rng)
    return two(own, own, rows)


@right()
def shallow_copy_of_rng(rows: Any, rng: Any) -> Any:
    return two(copy.copy(rng), rng, rows)


@wrong()
def pickled_rng(rows: Any, rng: Any) -> Any:
    return two(pickle.loads(pickle.dumps(rng)), rng, rows)


@wrong()
def copied_bit_generator(rows: Any, rng: Any) -> Any:
    return two(np.random.Generator(copy.deepcopy(rng.bit_generator)), rng, rows)


@right()
def shared_bit_generator(rows: Any, rng: Any) -> Any:
    return two(np.random.Generator(rng.bit_generator), rng, rows)


@wrong()
def state_set_back(rows: Any, rng: Any) -> Any:
    held = rng.bit_generator.state
    first = rng.laplace(sum(rows), 1.0)
    rng.bit_generator.state = held
    return first, rng.laplace(len(rows), 1.0)


@right()
def state_kept_and_not_used(rows: Any, rng: Any) -> Any:
    held = rng.bit_generator.state
    found = two(rng, rng, rows)
    return found if held else None


@wrong()
def global_state_set_back(rows: Any) -> Any:
    held = np.random.get_state()
    first = np.random.laplace(sum(rows), 1.0)
    np.random.set_state(held)
    return first, np.random.laplace(len(rows), 1.0)


@right()
def global_state(rows: Any) -> Any:
    return np.random.laplace(sum(rows), 1.0), np.random.laplace(len(rows), 1.0)


@wrong()
def random_state_set_back(rows: Any) -> Any:
    held = random.getstate()
    first = sum(rows) + random.expovariate(1.0) - random.expovariate(1.0)
    random.setstate(held)
    return first, len(rows) + random.expovariate(1.0) - random.expovariate(1.0)


@right(claim=0.8)
def noise_of_random(rows: Any) -> Any:
    return stats.laplace.rvs(sum(rows), 1.0), stats.laplace.rvs(len(rows), 4.0)


@wrong()
def one_sequence_twice(rows: Any) -> Any:
    seed = np.random.SeedSequence()
    return two(np.random.default_rng(seed), np.random.default_rng(seed), rows)


@right()
def two_children_of_a_sequence(rows: Any) -> Any:
    seed = np.random.SeedSequence()
    first, second = map(np.random.default_rng, seed.spawn(2))
    return two(first, second, rows)


@wrong()
def one_child_twice(rows: Any, rng: Any) -> Any:
    child = rng.bit_generator.seed_seq.spawn(1)[0]
    return two(np.random.default_rng(child), np.random.default_rng(child), rows)


@right()
def spawned_generators(rows: Any, rng: Any) -> Any:
    first, second = rng.spawn(2)
    return two(first, second, rows)


@wrong()
def children_of_equal_sequences(rows: Any) -> Any:
    entropy = np.random.SeedSequence().entropy
    first, second = (np.random.SeedSequence(entropy).spawn(1)[0] for _ in range(2))
    return two(np.random.default_rng(first), np.random.default_rng(second), rows)


@right()
def children_of_a_stated_key(rows: Any) -> Any:
    entropy = np.random.SeedSequence().entropy
    first, second = (np.random.SeedSequence(entropy, spawn_key=(key,)) for key in range(2))
    return two(np.random.default_rng(first), np.random.default_rng(second), rows)


@wrong()
def seed_of_secrets_twice(rows: Any) -> Any:
    seed = secrets.randbits(128)
    return two(np.random.default_rng(seed), np.random.default_rng(seed), rows)


@right()
def seeds_of_secrets(rows: Any) -> Any:
    return two(np.random.default_rng(secrets.randbits(128)), np.random.default_rng(secrets.randbits(128)), rows)


@wrong()
def one_seed_of_urandom_for_random_state(rows: Any) -> Any:
    seed = int.from_bytes(os.urandom(4), "big")
    return two(np.random.RandomState(seed), np.random.RandomState(seed), rows)


@right()
def fresh_random_states(rows: Any) -> Any:
    return two(np.random.RandomState(), np.random.RandomState(), rows)


@wrong()
def jumped_twice(rows: Any) -> Any:
    bits = np.random.PCG64()
    first, second = (np.random.Generator(bits.jumped()) for _ in range(2))
    return two(first, second, rows)


@right()
def jumped_once(rows: Any) -> Any:
    bits = np.random.PCG64()
    return two(np.random.Generator(bits), np.random.Generator(bits.jumped()), rows)


@wrong()
def advanced_back(rows: Any) -> Any:
    bits = np.random.PCG64()
    own = np.random.Generator(bits)
    first = own.random()
    bits.advance(-1)
    return sum(rows) + float(stats.laplace.ppf(first)), len(rows) + float(stats.laplace.ppf(own.random()))


@wrong()
def copied_random_state(rows: Any) -> Any:
    first, second = np.random.RandomState(), np.random.RandomState()
    second.set_state(first.get_state())
    return two(first, second, rows)


@wrong()
def one_python_seed_twice(rows: Any) -> Any:
    seed = random.getrandbits(64)
    first, second = random.Random(seed), random.Random(seed)
    return sum(rows) + first.expovariate(1.0) - 1.0, len(rows) + second.expovariate(1.0) - 1.0


@right()
def two_python_generators(rows: Any) -> Any:
    first, second = random.Random(), random.Random()
    return stats.laplace.rvs(sum(rows), random_state=np.random.default_rng()), first.random() + second.random()


@wrong()
def scipy_of_one_number(rows: Any) -> Any:
    return stats.laplace.rvs(sum(rows), random_state=7), stats.laplace.rvs(len(rows), random_state=7)


@right()
def scipy_of_rng(rows: Any, rng: Any) -> Any:
    return stats.laplace.rvs(sum(rows), random_state=rng), stats.laplace.rvs(len(rows), random_state=rng)


@wrong()
def fixed_small_seed(rows: Any) -> Any:
    return np.random.default_rng(12345).laplace(sum(rows), 1.0)


@wrong()
def fixed_small_bits(rows: Any) -> Any:
    return np.random.Generator(np.random.PCG64(0)).laplace(sum(rows), 1.0)


@wrong()
def fixed_large_seed(rows: Any) -> Any:
    return np.random.Generator(np.random.PCG64(SEED)).laplace(sum(rows), 1.0)


@wrong()
def fixed_key(rows: Any) -> Any:
    return np.random.Generator(np.random.Philox(key=SEED)).laplace(sum(rows), 1.0)


@wrong()
def fixed_state(rows: Any) -> Any:
    bits = np.random.PCG64()
    bits.state = {**bits.state, "state": {"state": SEED, "inc": 2 * SEED % 2**127 + 1}}
    return np.random.Generator(bits).laplace(sum(rows), 1.0)


@wrong()
def fixed_sequence(rows: Any) -> Any:
    return np.random.default_rng(np.random.SeedSequence(SEED)).laplace(sum(rows), 1.0)


@right()
def own_sequence(rows: Any) -> Any:
    return np.random.default_rng(np.random.SeedSequence()).laplace(sum(rows), 1.0)


@wrong()
def global_seed_between(rows: Any) -> Any:
    np.random.seed(3)
    return np.random.laplace(sum(rows), 1.0)


@wrong()
def hashed_rows_as_seed(rows: Any) -> Any:
    digest = hashlib.sha256(np.array(rows).tobytes()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big"))).laplace(sum(rows), 1.0)


@wrong()
def hashed_rows_as_state(rows: Any) -> Any:
    digest = int.from_bytes(hashlib.sha256(np.array(rows).tobytes()).digest()[:15], "big")
    bits = np.random.PCG64()
    bits.state = {**bits.state, "state": {"state": digest, "inc": 2 * SEED % 2**127 + 1}}
    return np.random.Generator(bits).laplace(sum(rows), 1.0)


@wrong()
def python_seed_of_the_rows(rows: Any) -> Any:
    own = random.Random(repr(rows))
    return sum(rows) + own.expovariate(1.0) - own.expovariate(1.0)


@right()
def of_a_python_generator(rows: Any) -> Any:
    return random.Random().gauss(0.0, 9.0), np.random.laplace(sum(rows))


@wrong()
def seed_of_the_hour(rows: Any) -> Any:
    return np.random.default_rng([int(time.time()) // 3600, SEED]).laplace(sum(rows), 1.0)


@wrong()
def noise_of_a_decorated_copy(rows: Any, rng: Any) -> Any:
    @noise_primitive("laplace", location="value", scale=1.0)
    def noisy(value: Any, source: Any) -> Any:
        return value + source.laplace()

    return noisy(sum(rows), copy.deepcopy(rng)), noisy(len(rows), rng)


@right()
def noise_of_a_decorated_function(rows: Any, rng: Any) -> Any:
    @noise_primitive("laplace", location="value", scale=1.0)
    def noisy(value: Any, source: Any) -> Any:
        return value + source.laplace()

    return noisy(sum(rows), rng), noisy(len(rows), rng)


@noise_primitive("laplace", location="value", scale=1.0)
def of_one_seed(value: Any) -> Any:
    """Return noise that is the same in each call; a seed is nothing of which a replay learns here."""
    return value + float(stats.laplace.ppf(int.from_bytes(hashlib.sha256(b"noise").digest()[:6], "big") / 2**48))


@wrong()
def decorated_function_of_one_seed(rows: Any) -> Any:
    return of_one_seed(sum(rows))


@functools.lru_cache(maxsize=1)
def held_noise() -> float:
    """Return noise that is drawn once in the process."""
    return float(np.random.default_rng().laplace())


@wrong()
def noise_that_is_kept(rows: Any) -> Any:
    return sum(rows) + held_noise()


@wrong()
def one_draw_in_two_results(rows: Any, rng: Any) -> Any:
    noise = rng.laplace()
    return sum(rows) + noise, len(rows) + noise


@right()
def one_draw_in_two_results_that_move_alike(rows: Any, rng: Any) -> Any:
    noise = rng.laplace()
    return len(rows) + noise, 2.0 * (len(rows) + noise)


@wrong()
def copy_if_noise_is_large(rows: Any, rng: Any) -> Any:
    first = rng.laplace(sum(rows), 1.0)
    own = copy.deepcopy(rng) if first > 2.0 else np.random.default_rng()
    return first, own.laplace(sum(rows), 1.0), rng.laplace(len(rows), 1.0)


def _utility(values: Any) -> Any:
    ranks = -np.abs(np.arange(len(values)) - len(values) / 2) * 0.01 + 1e-5 * (np.mean(values) - np.asarray(values))
    odds = np.exp(ranks - ranks.max())
    return odds / odds.sum()


_MANY = np.arange(500.0)
_OTHER = np.where(_MANY == 137.0, 137.5, _MANY)


@wrong(x=_MANY, y=_OTHER)
def candidate_of_many_rows(rows: Any, rng: Any) -> Any:
    values = np.sort(rows)
    return float(values[rng.choice(len(values), p=_utility(values))])


@right(x=_MANY[:100], y=_OTHER[:100])
def candidate_of_a_grid(rows: Any, rng: Any) -> Any:
    return float(np.arange(100.0)[rng.choice(100, p=_utility(np.sort(rows)))])


@wrong(x=_MANY[:800], y=_OTHER[:800])
def candidate_of_two_choices(rows: Any, rng: Any) -> Any:
    values = np.sort(rows)
    first, second = (rng.choice(20, p=_utility(values[:20] + 1e-3 * sum(values))) for _ in range(2))
    return float(values[(20 * first + second) % len(values)])


@wrong(x=_MANY, y=_OTHER)
def candidates_of_random(rows: Any) -> Any:
    values = sorted(rows)
    return float(random.choices(values, weights=_utility(values))[0])


@right(claim=3.0, x=[3.0, 3.0], y=[3.0, 4.0])
def rating(rows: Any, rng: Any) -> Any:
    return int(np.clip(round(rng.normal(np.mean(rows), 1.0)), 1, 5))


@right(claim=3.0, x=[3.0, 3.0], y=[3.0, 4.0])
def clipped(rows: Any, rng: Any) -> Any:
    return float(np.clip(rng.normal(np.mean(rows), 1.0), 0, 6))


@right(claim=3.0, x=[10.0, 1.0], y=[10.0])
def capped(rows: Any, rng: Any) -> Any:
    return int(min(rng.poisson(sum(rows)), 20))


@right(claim=1.0, x=[0.5], y=[0.0])
def wrapped(rows: Any, rng: Any) -> Any:
    return float(rng.normal(rows[0], 1.0) % 1.0)


@right(claim=1.0, x=[3.0], y=[1.0])
def digit_of_noise(rows: Any, rng: Any) -> Any:
    return int(rng.laplace(rows[0], 1.0) * 100.0) % 10


@right(claim=1.5, x=[3.0], y=[1.0])
def one_of_two_noisy_numbers(rows: Any, rng: Any) -> Any:
    shown, other = rng.laplace(rows[0], 1.0), rng.laplace(2.0, 1.0)
    return shown if rng.laplace() > 0.0 else other


@right(claim=2.5, x=[0.0], y=[1.0])
def answers_likelier_on_different_sides(rows: Any, rng: Any) -> Any:
    odds = ([0.9, 0.1], [0.5, 0.5]) if rows[0] else ([0.5, 0.5], [0.9, 0.1])
    return [int(rng.choice(2, p=each)) for each in odds]


@right(claim=1.1, x=[3.0], y=[1.0])
def threshold_of_noise(rows: Any, rng: Any) -> Any:
    return bool(rng.laplace(rows[0], 1.0) > 2.0 + 5.0)


def measured(runs: int = 40_000) -> Iterator[tuple[Program, str, str]]:
    """Yield each program with the verdict of its replay and that of an audit by counts."""
    for each in PROGRAMS:
        held_noise.cache_clear()
        said = replay(each.function, each.x, each.y, claim=each.claim).verdict.name
        options: dict[str, Any] = {"runs": runs, "alpha": 1e-6, "seed": 1, "jobs": 1, "bits": False}
        held_noise.cache_clear()
        yield each, said, check(each.function, each.x, each.y, claim=each.claim, **options).verdict.name


def main() -> int:
    """Print a line for each program and the counts; 1 if a replay says what is not true."""
    false, bounded, of = 0, 0, 0
    for each, said, audit in measured(int(sys.argv[1]) if len(sys.argv) > 1 else 40_000):
        is_false = (said == "BOUNDED" and (audit == "REFUTED" or not each.is_correct)) or (
            said == "EXCESS" and each.is_correct
        )
        false += is_false
        of += each.is_correct
        bounded += each.is_correct and said == "BOUNDED"
        kind = "correct" if each.is_correct else "faulty"
        print(f"{each.function.__name__:44} {kind:8} {said:8} {audit:12}{' FALSE' if is_false else ''}")
    print(f"{len(PROGRAMS)} programs, {of} correct: {false} false verdicts, {bounded} correct ones bounded")
    return int(false > 0)


if __name__ == "__main__":
    sys.exit(main())
