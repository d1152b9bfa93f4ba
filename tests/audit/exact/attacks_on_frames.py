"""Programs whose frames hide state where a merge may not look: each would be wrong if two executions merged too early.

Every program is a function of a dataset and a generator with `integers` and `random`, with few coins.
"""

import contextlib
import functools
import itertools
from types import FunctionType

import numpy as np


def coin(rng):
    return int(rng.integers(2))


def programs_of(names):
    """Return the functions of a dataset and a generator among the names of a module."""
    functions = {name: each for name, each in names.items() if isinstance(each, FunctionType)}
    return {name: each for name, each in functions.items() if each.__code__.co_varnames[:2] == ("x", "rng")}


def listed(*args, **named):
    return args, tuple(named.items())


OF_EXPRESSIONS = {
    "operand stack": lambda x, rng: 10 * coin(rng) + coin(rng),
    "deep operand stack": lambda x, rng: (coin(rng), (coin(rng), coin(rng) + 2 * coin(rng)), coin(rng)),
    "arguments": lambda x, rng: listed(coin(rng), coin(rng), c=coin(rng)),
    "starred arguments": lambda x, rng: listed(*[coin(rng), coin(rng)], **{"k": coin(rng)}, z=coin(rng)),
    "text": lambda x, rng: f"{coin(rng)}-{coin(rng)}-{coin(rng):>3}",
    "chained comparison": lambda x, rng: int(rng.integers(3)) < int(rng.integers(3)) < int(rng.integers(4)),
    "ternary": lambda x, rng: [1, 2 if coin(rng) else 3, 4 if coin(rng) else 5, coin(rng)][int(rng.integers(4))],
    "short circuit": lambda x, rng: (coin(rng) and 2 * coin(rng)) or (coin(rng) or 7 * coin(rng)),
    "walrus": lambda x, rng: (a := coin(rng)) * 2 + (b := coin(rng)) + a * b * coin(rng),
    "comprehension": lambda x, rng: sum([(2**place) * coin(rng) for place in range(4)]),
    "nested comprehension": lambda x, rng: tuple(tuple(coin(rng) for _ in range(2)) for _ in range(2)),
    "dict comprehension": lambda x, rng: str({key: coin(rng) for key in "abc" if coin(rng)}),
    "set comprehension": lambda x, rng: len({int(rng.integers(4)) for _ in range(3)}),
    "generator as argument": lambda x, rng: sum(3**place * coin(rng) for place in range(3)),
    "any and all": lambda x, rng: (any(coin(rng) for _ in range(3)), all(coin(rng) for _ in range(3))),
    "max": lambda x, rng: max(int(rng.integers(4)) for _ in range(3)),
    "sorted": lambda x, rng: tuple(sorted(range(3), key=lambda _: int(rng.integers(3)))),
    "map": lambda x, rng: tuple(map(lambda scale: scale * coin(rng), (1, 2, 4))),  # noqa: C417
    "reduce": lambda x, rng: functools.reduce(lambda total, value: 2 * total + value * coin(rng), [1, 1, 1], 1),
    "join": lambda x, rng: "".join("ab"[coin(rng)] for _ in range(3)),
    "filter": lambda x, rng: tuple(filter(lambda _: coin(rng), range(4))),
    "array": lambda x, rng: tuple(np.array([coin(rng) for _ in range(3)]).cumsum().tolist()),
    "uniform numbers": lambda x, rng: tuple([rng.random() < p for p in (0.25, 0.5)]),
    "uniform number and dataset": lambda x, rng: x if rng.random() < 0.6 else 1 - x,
}


def over(values):
    """Return a program that draws while an iterator waits on its stack."""

    def program(x, rng):
        total = 0
        for value in values():
            total += coin(rng) * (value if isinstance(value, int) else sum(value))
        return total

    return program


OVER_ITERATORS = {
    "list": lambda: [1, 2, 4, 8],
    "reversed list": lambda: reversed([1, 2, 4]),
    "set": lambda: {1, 2, 4},
    "dictionary": lambda: {1: 0, 2: 0, 4: 0},
    "range": lambda: range(1, 4),
    "enumerated": lambda: enumerate([1, 2, 3]),
    "zip": lambda: zip([1, 2, 3], itertools.count(5)),
    "product": lambda: itertools.product((1, 2), (10, 20)),
}


def subscripts(x, rng):
    rows, total = [[0, 1], [2, 3]], [0, 0]
    rows[coin(rng)][coin(rng)] = 5 + coin(rng)
    total[coin(rng)] += 1 + coin(rng)
    return str(rows), tuple(total)


def changing_list(x, rng):
    items = [0, 1]
    for value in items:
        if coin(rng) and len(items) < 6:
            items.append(value + 2)
    return len(items), items[-1]


def changing_dictionary(x, rng):
    held, out = {1: 0, 2: 0, 3: 0}, []
    for key in held:
        if coin(rng) and key < 3:
            held.pop(key)
            held[key] = 1
        out.append(key)
        if len(out) > 5:
            break
    return tuple(out)


def iterator_by_hand(x, rng):
    values, total = iter([1, 2, 3, 4, 5]), 0
    for value in values:
        if coin(rng):
            next(values, None)
        total += value
    return total


def dead_then_used(x, rng):
    for turn in range(3):
        if turn == 2:
            return kept  # noqa: F821
        kept = coin(rng)  # noqa: F841
        coin(rng)


def deleted_local(x, rng):
    value = 3
    if coin(rng):
        del value
    coin(rng)
    try:
        return value
    except UnboundLocalError:
        return None


def rejection_with_count(x, rng):
    for tries in range(4):
        a = int(rng.integers(3))
        if a < 2:
            return a, tries
    return -1, tries


def uniform_twice(x, rng):
    found = 0
    for p in (0.3, 0.7, 0.5):
        found = 2 * found + (rng.random() < p)
    return int(found)


def star_unpacking(x, rng):
    first, *rest = [coin(rng), coin(rng), coin(rng)]
    coin(rng)
    return first * 4 + sum(rest)


def match_statement(x, rng):
    match (coin(rng), coin(rng)):
        case (0, b):
            return b + 2 * coin(rng)
        case (a, 1) if coin(rng):
            return 5 + a
        case _:
            return 9


# Generators.


def running_total(rng):
    total = 0
    while True:
        total += coin(rng)
        yield total


def until_destroyed(log):
    try:
        yield 1
        yield 2
    finally:
        log.append(len(log))


def started_or_not(log, rng):
    """Return a generator whose end shows in the log only if it was started."""
    held = until_destroyed(log)
    if coin(rng):
        next(held)
    return held


def generator_state(x, rng):
    a, b = running_total(rng), running_total(rng)
    return next(a), next(b), next(a), next(a), next(b)


def generator_for(x, rng):
    total = 0
    for place, value in enumerate(itertools.islice(running_total(rng), 3)):
        total += value * (place + 1) + coin(rng)
    return total


def generator_send(x, rng):
    def inner():
        got = yield coin(rng)
        return got + coin(rng)

    def outer():
        a = yield from inner()
        b = yield from inner()
        yield a * 10 + b

    running = outer()
    return next(running), running.send(coin(rng)), running.send(coin(rng))


def generator_expression_held(x, rng):
    draws = (coin(rng) for _ in range(3))
    first = next(draws)
    middle = coin(rng)
    return first, middle, tuple(draws)


def exception_in_generator(x, rng):
    def g():
        try:
            yield coin(rng)
        except ValueError as error:
            yield error.args[0] + 2 * coin(rng)

    running = g()
    first = next(running)
    return first, running.throw(ValueError(coin(rng) * 7))


def async_driven(x, rng):
    async def step():
        return coin(rng) + 2 * coin(rng)

    running = step()
    try:
        running.send(None)
    except StopIteration as stop:
        return stop.value


def destroyed_in_a_local(x, rng):
    log = []
    held = started_or_not(log, rng)
    coin(rng)
    held = None  # noqa: F841
    return tuple(log)


def destroyed_in_a_dead_local(x, rng):
    log = []

    def inner():
        held = {"q": [started_or_not(log, rng)]}  # noqa: F841
        for _ in range(2):
            coin(rng)
        return len(log)

    return inner(), tuple(log)


def destroyed_with_its_arguments(x, rng):
    log = []

    def inner(a):
        del a
        return coin(rng)

    return inner(*(started_or_not(log, rng),)), tuple(log)


def destroyed_with_a_traceback(x, rng):
    log = []

    def fail():
        held = started_or_not(log, rng)  # noqa: F841
        raise ValueError

    try:
        fail()
    except ValueError as error:
        held = error
    coin(rng)
    n = len(log)
    held = None  # noqa: F841
    return n, tuple(log)


# Objects that only a stack, a cell or a frame above holds.


def changed_by_callee(x, rng):
    held = [0]

    def change(target):
        target[0] += coin(rng)
        return coin(rng)

    return [held, change(held), change(held)][0][0], held[0]


def only_on_callers_stack(x, rng):
    def change(target):
        if coin(rng):
            target.append(1)
        coin(rng)
        return len(target)

    return ([], 5)[0] + [change([])], [make := [], change(make), coin(rng)][1], tuple(make)


def only_in_arguments(x, rng):
    items = []

    def grow(*parts):
        parts[0].append(coin(rng))
        del parts
        coin(rng)
        return len(items)

    return grow(items, items), tuple(items)


def below_c(x, rng):
    held = []

    def step(value):
        held.append(coin(rng))
        coin(rng)
        return value

    return tuple(map(step, [1, 2])), tuple(held)


def sort_in_place(x, rng):
    held, order = [3, 1, 2], []
    held.sort(key=lambda value: (order.append(value), coin(rng))[1])
    return tuple(held), len(order)


def closure_cell(x, rng):
    total = 0

    def step():
        nonlocal total
        total += coin(rng)
        return coin(rng)

    return step() + step() + step(), total


def closures_made(x, rng):
    made, late = [], []
    for _ in range(2):
        value = coin(rng)
        made.append(lambda value=value: value * 3)
        late.append(lambda: value)  # noqa: B023
    coin(rng)
    return sum(each() for each in made), tuple(each() for each in late)


def function_attribute(x, rng):
    def f():
        f.n += coin(rng)
        return f.n

    f.n = 0
    f(), coin(rng), f()
    return f.n


def cache_local(x, rng):
    @functools.lru_cache(maxsize=1)
    def f(key):
        return coin(rng)

    return f(1), f(1), f(2), f(1)


def cache_draws(x, rng):
    memo = {}

    def f(key):
        if key not in memo:
            memo[key] = coin(rng)
        return memo[key]

    return f(1), f(coin(rng)), f(1), f(2)


def kind_of_a_comparison(x, rng):
    p = 0.5 if coin(rng) else np.float64(0.5)
    return str(type(rng.random() < p).__name__)


# Exceptions and contexts.


def try_finally(x, rng):
    found = []
    for _ in range(3):
        try:
            if coin(rng):
                raise ValueError
            found.append(coin(rng))
        except ValueError:
            found.append(2 + coin(rng))
        finally:
            found.append(9)
    return tuple(found)


def exception_value(x, rng):
    try:
        raise ValueError(coin(rng))
    except ValueError as error:
        coin(rng)
        return error.args[0] * 5 + coin(rng)


def exception_handled_only(x, rng):
    try:
        raise ValueError(coin(rng))
    except ValueError:
        coin(rng)
        try:
            raise
        except ValueError as again:
            return again.args[0]


def exception_nested(x, rng):
    try:
        try:
            raise KeyError(coin(rng))
        except KeyError:
            coin(rng)
            raise ValueError(coin(rng))  # noqa: B904
    except ValueError as error:
        coin(rng)
        return error.args[0], error.__context__.args[0]


def exception_through_frames(x, rng):
    def thrower(depth):
        try:
            if depth == 0:
                raise LookupError(coin(rng))
            thrower(depth - 1)
        finally:
            seen.append(coin(rng))

    seen = []
    try:
        thrower(2)
    except LookupError as error:
        return error.args[0], tuple(seen)


def exception_out(x, rng):
    if coin(rng):
        raise KeyError(coin(rng))
    if coin(rng):
        raise ValueError
    return 3


def return_in_finally(x, rng):
    def f():
        try:
            return coin(rng) + 10
        finally:
            if coin(rng):
                return 5  # noqa: B012

    return f(), f()


def suppressed(x, rng):
    found = []
    with contextlib.suppress(ValueError):
        found.append(coin(rng))
        if coin(rng):
            raise ValueError
        found.append(coin(rng))
    return tuple(found)


def context_manager(x, rng):
    log = []

    @contextlib.contextmanager
    def manager():
        log.append(coin(rng))
        try:
            yield coin(rng)
        finally:
            log.append(coin(rng))

    with manager() as value:
        value += 2 * coin(rng)
    return value, tuple(log)


def context_class(x, rng):
    class Manager:
        def __enter__(self):
            self.first = coin(rng)
            return coin(rng)

        def __exit__(self, *error):
            self.last = coin(rng)
            return bool(self.first)

    held = Manager()
    with held as value:
        if coin(rng):
            raise ValueError
    return value, held.first, held.last


# Recursion.


def recursion(x, rng):
    def f(n):
        return 0 if n == 0 else coin(rng) + 2 * f(n - 1)

    return f(4)


def recursion_after(x, rng):
    def f(n):
        return 0 if n == 0 else f(n - 1) * 2 + coin(rng)

    return f(4)


def recursion_by_coin(x, rng):
    def f(depth):
        if depth == 5 or coin(rng):
            return depth
        return f(depth + 1) * (1 + coin(rng))

    return f(0)


def mutual_recursion(x, rng):
    def even(n):
        return 1 if n == 0 else odd(n - 1) + coin(rng)

    def odd(n):
        return 0 if n == 0 else 3 * even(n - 1) + coin(rng)

    return even(4)


PROGRAMS = {
    **OF_EXPRESSIONS,
    **{f"over a {name}": over(values) for name, values in OVER_ITERATORS.items()},
    **programs_of(globals()),
}
