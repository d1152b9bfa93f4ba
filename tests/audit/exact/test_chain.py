"""The error bound of the chain against fractions, helpers against full executions, and explorations that end early."""

import math
import random
import signal
import sys
from fractions import Fraction

import numpy as np
import pytest

from dpaudit.audit.exact import exact_audit
from dpaudit.audit.exact.chain import Chain, Helpers
from dpaudit.audit.exact.fingerprint import World
from dpaudit.audit.exact.uniform import Refusal
from dpaudit.errors import Interrupted, MechanismError
from dpaudit.exact import Budget, distribution

# The bound.


def share(numbers):
    """Return a probability that is often close to 0 or 1."""
    near = 10.0 ** -numbers.uniform(0, 12)
    return Fraction(numbers.choice((near, 1 - near, 1e-12, 1 - 1e-12, 2.0**-53, 0.5, numbers.random())))


def chain_of(seed):
    """Return a chain of 2 to 60 states with cycles, some of them nearly closed, and unexplored edges."""
    numbers = random.Random(seed)
    n = numbers.choice((2, 3, 5, 8, 12, 20)) if seed % 20 else numbers.randrange(20, 61)
    leave, around = numbers.choice((0.02, 0.1, 0.3)), numbers.choice((0.0, 0.7))
    made = Chain()
    for _ in range(n):
        p, q = share(numbers), share(numbers)
        made.add((p, q * (1 - p), Fraction(1, numbers.randrange(1, 9)) * (1 - q) * (1 - p)), 0)
    for edge in range(1, len(made.targets)):
        pick, state = numbers.random(), made.sources[edge]
        onwards = 1 + state % n if numbers.random() < around else numbers.choice((state, numbers.randrange(1, n + 1)))
        made.targets[edge] = (
            -2 - numbers.randrange(3) if pick < leave else Chain.OPEN if pick < leave + 0.03 else onwards
        )
    made.targets[0], made.targets[made.first[n]] = 1, -2
    return made


def ends_of(made):
    """Return the probabilities of the outcomes, by eliminating one state after the other in fractions."""
    rows = [{} for _ in made.weights]
    for source, target, weight in made.edges():
        rows[source][target] = rows[source].get(target, 0) + weight
    for state in reversed(range(1, len(rows))):
        leaves = 1 - rows[state].pop(state, Fraction(0))
        for row in rows[:state]:
            enters = row.pop(state, 0)
            for target, weight in rows[state].items() if enters else ():
                row[target] = row.get(target, 0) + enters * weight / leaves
    return {target: p for target, p in rows[0].items() if target < Chain.OPEN}


def test_the_bound_of_the_error_holds_for_every_chain():
    errors, refused = [], 0
    for seed in range(2_000):
        made = chain_of(seed)
        try:
            visits, error = made.visits()
        except Refusal:  # a closed cycle, or a way out that the rounding of doubles closes
            refused += 1
            continue
        found, truth = {}, ends_of(made)
        for source, target, weight in made.edges():
            if target < Chain.OPEN:
                found[target] = found.get(target, 0) + visits[source] * weight
        assert sum(abs(found.get(end, 0) - truth.get(end, 0)) for end in found.keys() | truth.keys()) <= error, seed
        errors.append(error)
    assert refused < 100
    assert sorted(errors)[len(errors) * 9 // 10] < 1e-30


# Helpers.


def in_turn(step, times=3, made=lambda: None):
    """Return a program that calls a function several times, with what it makes at the beginning."""

    def program(x, rng):
        held, total = made(), 0
        for k in range(times):
            total = (total * 7 + step(held, k, rng)) % 211
        return total, str(held)

    return program


def twice(k, rng):
    for _ in range(2):
        if rng.integers(3):
            break
    return k + int(rng.integers(2))


def with_the_same_call_inside(n, rng):
    """Its inner call with the same argument is executed in full, and draws another one first."""
    if n == 0:
        return int(rng.integers(2))
    if with_the_same_call_inside(0, rng):
        return 1
    return 2 + (with_the_same_call_inside(n, rng) % 2 if rng.integers(2) else 0)


def unreadable_argument(held, rng):
    return 3 if type(held) is not int else twice(held, rng)


def raising_for_three(k, rng):
    if k == 3:
        raise KeyError
    return int(rng.integers(2)) ^ int(rng.integers(2))


def given_up_late(x, rng):
    total = 0
    for k in range(6):
        total = total * 2 + raising_for_three(k % 3, rng)
    if total % 7 == 3:
        for k in (3, 2, 3):
            try:
                total += raising_for_three(k, rng)
            except KeyError:
                total += 100
    return total


def not_a_number(rng):
    return math.inf - math.inf if rng.integers(2) else 1.0


def numbers_that_are_not_equal(x, rng):
    held = [not_a_number(rng) for _ in range(4)]
    return sum(each in held[:n] for n, each in enumerate(held))


def long_double(rng):
    return np.longdouble(1) + np.longdouble(2) ** -60 * int(rng.integers(2)) * (1 + int(rng.integers(2)))


def long_doubles(x, rng):
    return sum(int((long_double(rng) - 1) * np.longdouble(2) ** 60) for _ in range(4))


def changing(held, rng):
    held[0] += 1
    return twice(held[0] % 2, rng)


COUNT = [0]


def counting(rng):
    COUNT[0] += 1
    return twice(COUNT[0] % 3, rng)


def restoring(held, rng):
    try:
        held.append(1)
        return twice(len(held), rng)
    finally:
        held.pop()


def raising(rng):
    if twice(0, rng) and rng.integers(3) == 0:
        raise ValueError
    return 1


def caught(held, k, rng):
    try:
        return raising(rng)
    except ValueError:
        return 10


def listing(rng):
    return [twice(0, rng)]


def kept_lists(held, k, rng):
    held.append(listing(rng))
    held[0].append(1)
    return 0


def while_handling(held, k, rng):
    try:
        before = twice(k, rng)
        raise KeyError
    except KeyError:
        return before * 3 + twice(1, rng)


def with_options(a, /, b=1, *, c=2, **more):
    return (a + b + c) % 4 + twice(0, more["rng"])


def keywords(held, k, rng):
    return with_options(k, rng=rng, c=k) + with_options(k, k + 1, rng=rng)


def below(n, rng):
    return int(rng.integers(2 + n * 40))


def sometimes_too_large(x, rng):
    total = 0
    for _ in range(2):
        total = (total * 3 + below(0, rng) + below(0, rng) + below(2 if total % 2 else 1, rng)) % 61
    return total


def deep(n, rng):
    return twice(0, rng) if n == 0 else deep(n - 1, rng) + deep(n - 1, rng)


def looking(u, rng):
    return int(u < 0.5) + twice(0, rng)


def ignoring(u, rng):
    return twice(0, rng)


def given_numbers_not_looked_at(held, k, rng):
    """An outer exploration draws from the number, so no other may look at it."""
    u = rng.random()
    return ignoring(u, rng) + (u < 0.25) + looking(rng.random(), rng)


class Stepping:
    def __init__(self):
        self.n = 0

    def step(self, rng):
        self.n += 1
        return int(rng.integers(2)) * self.n

    def still(self, rng):
        return (self.n + twice(0, rng)) % 3

    def __repr__(self):
        return str(self.n)


def text(rng):
    return ("a" if twice(0, rng) else "b", -0.0 if rng.integers(2) else np.float64(0.0), None)


def texts(x, rng):
    held = [text(rng) for _ in range(2)]
    return "".join(name + str(math.copysign(1, zero)) + type(zero).__name__ for name, zero, _ in held)


def steps(n, rng):
    return 0 if n == 0 else steps(n - 1, rng) + (int(rng.integers(2)) if n % 100 == 0 else 0)


def deep_recursion(x, rng):
    try:
        return steps(300, rng) + 10 * steps(300, rng)
    except RecursionError:
        return -1


WITH_HELPERS = {
    "recursive": lambda x, rng: tuple([with_the_same_call_inside(1, rng) for _ in range(2)]),
    "in full before in one": in_turn(
        lambda held, k, rng: unreadable_argument((n for n in ""), rng) + unreadable_argument(1, rng)
    ),
    "given up late": given_up_late,
    "long doubles": long_doubles,
    "changes its argument": in_turn(lambda held, k, rng: changing(held, rng), made=lambda: [0]),
    "restores its argument": in_turn(lambda held, k, rng: restoring(held, rng), made=list),
    "changes the world": in_turn(lambda held, k, rng: counting(rng)),
    "raises": in_turn(caught, times=4),
    "returns objects": in_turn(kept_lists, times=4, made=list),
    "while handling": in_turn(while_handling),
    "keywords": in_turn(keywords),
    "nested": lambda x, rng: deep(2, rng) * 10 + deep(1, rng),
    "given numbers not looked at": in_turn(given_numbers_not_looked_at, times=2),
    "methods": in_turn(lambda held, k, rng: (held.step(rng) + held.still(rng)) % 2, times=2, made=Stepping),
    "texts": texts,
    "deep recursion": deep_recursion,
}
WITHOUT_HELPERS = {
    "sometimes too large": sometimes_too_large,
    "numbers that are not equal": numbers_that_are_not_equal,
}


def explored(program, monkeypatch, plain, **budget):
    """Explore a program, with helpers after so many executions."""
    monkeypatch.setattr(exact_audit, "LIMITS", exact_audit.LIMITS.__class__(plain=plain))
    return distribution(program, 0, budget=Budget(**budget))


def test_a_helper_that_another_thread_calls_is_executed_in_full():
    helpers = Helpers(World([twice]), [twice.__code__])
    try:
        assert twice.__kwdefaults__ is not None
        assert isinstance(twice(0, np.random.default_rng(0)), int)
    finally:
        helpers.uninstall()


def assert_within(found, truth):
    """Assert that each of the probabilities lies where another table says."""
    slack = Fraction(found.error) + Fraction(truth.error)
    for end in found.probabilities.keys() | truth.probabilities.keys():
        low, other = found.probabilities.get(end, 0), truth.probabilities.get(end, 0)
        assert low <= other + Fraction(truth.remainder) + slack, (end, float(low), float(other))
        assert other <= low + Fraction(found.remainder) + slack, (end, float(low), float(other))


@pytest.mark.parametrize("name", WITH_HELPERS | WITHOUT_HELPERS)
def test_helpers_change_no_probability(name, monkeypatch):
    program = (WITH_HELPERS | WITHOUT_HELPERS)[name]
    in_full = explored(program, monkeypatch, 10**9)
    assert in_full.remainder < 1e-15
    with_helpers = explored(program, monkeypatch, 5)
    assert with_helpers.remainder < 1e-15
    assert_within(with_helpers, in_full)
    assert (with_helpers.n_states < in_full.n_states) is (name in WITH_HELPERS)


class Items:
    def __init__(self):
        self.rng = random.SystemRandom()

    def __len__(self):
        return 3

    def __getitem__(self, place):
        if place > 2:
            raise IndexError
        return place + 10 * self.rng.randrange(2)

    def __setitem__(self, places, values):
        self.values = tuple(values)


def shuffling(x, rng):
    items = Items()
    items.rng.shuffle(items)
    return items.values


def test_code_that_draws_below_a_generator_is_refused():
    """What `shuffle` still does with the items is not in a frame that can be read."""
    with pytest.raises(MechanismError, match="draws while a draw is carried out"):
        distribution(shuffling, 0)


# Explorations that end early.


def inner(k, rng):
    try:
        while rng.integers(3) == 0:
            k += 1
        return k % 4
    except BaseException:
        return 7


def catches_everything(x, rng):
    try:
        total = 0
        for k in range(3):
            total = (total * 3 + inner(total, rng) + inner(k, rng)) % 11
        return total
    except BaseException:
        return -1


def test_a_budget_that_ends_anywhere_leaves_the_truth_inside(monkeypatch):
    truth = explored(catches_everything, monkeypatch, 20, remainder=1e-15)
    for place in [*range(1, 24, 3), 30, 45, 60, 85]:
        for budget in ({"executions": place}, {"states": place}):
            found = explored(catches_everything, monkeypatch, 20, remainder=1e-15, **budget)
            assert_within(found, truth)
            assert found.n_executions <= max(place, 20) + 1 or "states" in budget


def test_an_interrupt_anywhere_leaves_the_truth_inside(monkeypatch, interruptible):
    """The code catches it, and returns what it never returns otherwise."""
    truth, ended = explored(catches_everything, monkeypatch, 20, remainder=1e-15), []
    for place in range(3_000, 120_000, 9_001):
        events = 0

        def interrupting(frame, event, argument, place=place):
            nonlocal events
            events += 1
            if events == place:
                signal.raise_signal(signal.SIGINT)

        sys.setprofile(interrupting)
        try:
            found = explored(catches_everything, monkeypatch, 20, remainder=1e-15)
        except Interrupted as stopped:
            found = stopped.result
            if found is None:  # before or after the exploration
                continue
        except KeyboardInterrupt:
            continue
        finally:
            sys.setprofile(None)
        assert_within(found, truth)
        assert -1 not in found.probabilities
        ended.append(found.ended_by)
    assert ended.count("it was interrupted") > 5
