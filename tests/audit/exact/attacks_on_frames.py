"""Programs whose state hides where a merge may not look: each would be wrong if two executions merged too early.

Every program is a function of a dataset and a generator with `integers` and `random`, with few coins.
"""

import contextlib
import functools
import itertools

import numpy as np

LOG = []
COUNT = 0
TABLE = {"n": 0}
ARRAY = np.zeros(3)


def coin(rng):
    return int(rng.integers(2))


def operand_stack(x, rng):
    return 10 * coin(rng) + coin(rng)


def operand_stack_deep(x, rng):
    return (coin(rng), (coin(rng), coin(rng) + 2 * coin(rng)), coin(rng))


def operand_stack_call(x, rng):
    def f(a, b, c):
        return a + 2 * b + 4 * c

    return f(coin(rng), coin(rng), c=coin(rng))


def operand_stack_star(x, rng):
    def f(*a, **k):
        return (a, tuple(k.items()))

    return f(*[coin(rng), coin(rng)], **{"k": coin(rng)}, z=coin(rng))


def f_string(x, rng):
    return f"{coin(rng)}-{coin(rng)}-{coin(rng):>3}"


def chained_comparison(x, rng):
    return int(rng.integers(3)) < int(rng.integers(3)) < int(rng.integers(4))


def subscript_chain(x, rng):
    rows = [[0, 1], [2, 3]]
    rows[coin(rng)][coin(rng)] = 5 + coin(rng)
    return str(rows)


def augmented(x, rng):
    total = [0, 0]
    total[coin(rng)] += 1 + coin(rng)
    total[coin(rng)] += 1 + coin(rng)
    return tuple(total)


def for_iterator(x, rng):
    found = 0
    for value in [1, 2, 4, 8]:
        if coin(rng):
            found += value
    return found


def for_over_changing_list(x, rng):
    items = [0, 1]
    for value in items:
        if coin(rng) and len(items) < 6:
            items.append(value + 2)
    return len(items), items[-1]


def iterator_by_hand(x, rng):
    values = iter([1, 2, 3, 4, 5])
    total = 0
    for value in values:
        if coin(rng):
            next(values, None)
        total += value
    return total


def enumerate_zip(x, rng):
    total = 0
    for place, (a, b) in enumerate(zip([1, 2, 3], itertools.count(5))):
        total += coin(rng) * (place + a * b)
    return total


def comprehension(x, rng):
    return sum([(2**place) * coin(rng) for place in range(4)])


def nested_comprehension(x, rng):
    return tuple(tuple(coin(rng) for _ in range(2)) for _ in range(2))


def dict_comprehension(x, rng):
    return str({key: coin(rng) for key in "abc" if coin(rng)})


def set_comprehension(x, rng):
    return len({int(rng.integers(4)) for _ in range(3)})


def generator_argument(x, rng):
    return sum(3**place * coin(rng) for place in range(3))


def any_all(x, rng):
    return any(coin(rng) for _ in range(3)), all(coin(rng) for _ in range(3))


def max_of_draws(x, rng):
    return max(int(rng.integers(4)) for _ in range(3))


def sorted_by_draws(x, rng):
    return tuple(sorted(range(3), key=lambda _: int(rng.integers(3))))


def map_draws(x, rng):
    return tuple(map(lambda scale: scale * coin(rng), (1, 2, 4)))  # noqa: C417


def reduce_draws(x, rng):
    return functools.reduce(lambda total, value: 2 * total + value * coin(rng), [1, 1, 1], 1)


def join_draws(x, rng):
    return "".join("ab"[coin(rng)] for _ in range(3))


def filter_draws(x, rng):
    return tuple(filter(lambda _: coin(rng), range(4)))


def array_of_draws(x, rng):
    return tuple(np.array([coin(rng) for _ in range(3)]).cumsum().tolist())


def generator_two(x, rng):
    def g():
        while True:
            yield coin(rng)

    draws = g()
    return 10 * next(draws) + next(draws)


def generator_state(x, rng):
    def g():
        total = 0
        while True:
            total += coin(rng)
            yield total

    a, b = g(), g()
    return next(a), next(b), next(a), next(a), next(b)


def generator_for(x, rng):
    def g(n):
        for _ in range(n):
            yield coin(rng)

    total = 0
    for place, value in enumerate(g(3)):
        total += value * (place + 1) + coin(rng)
    return total


def generator_send(x, rng):
    def g():
        total = 0
        while True:
            got = yield total
            total = total * 2 + got + coin(rng)

    running = g()
    next(running)
    return [running.send(coin(rng)) for _ in range(3)][-1]


def yield_from(x, rng):
    def inner():
        got = yield coin(rng)
        return got + coin(rng)

    def outer():
        a = yield from inner()
        b = yield from inner()
        yield a * 10 + b

    running = outer()
    found = [next(running), running.send(coin(rng)), running.send(coin(rng))]
    return tuple(found)


def generator_finally(x, rng):
    seen = []

    def g(start):
        try:
            yield start
            yield start + 1
        finally:
            seen.append(start)

    held = g(1)
    if coin(rng):
        next(held)
    coin(rng)
    held = None
    return tuple(seen)


def generator_in_dead_local(x, rng):
    log = []

    def g():
        try:
            yield 1
        finally:
            log.append(len(log))

    def inner():
        held = [g()]
        if coin(rng):
            next(held[0])
        return coin(rng)

    value = inner()
    return value, tuple(log)


def generator_expression_held(x, rng):
    draws = (coin(rng) for _ in range(3))
    first = next(draws)
    middle = coin(rng)
    return first, middle, tuple(draws)


def mutated_by_callee(x, rng):
    held = [0]

    def change(target):
        if coin(rng):
            target[0] += 1
        return coin(rng)

    return [held, change(held), change(held)][0][0], held[0]


def only_on_callers_stack(x, rng):
    def change(target):
        if coin(rng):
            target.append(1)
        coin(rng)
        return len(target)

    return ([], 5)[0] + [change([])], [make := [], change(make), coin(rng)][1], tuple(make)


def object_on_stack_below_c(x, rng):
    held = []

    def step(value):
        held.append(coin(rng))
        coin(rng)
        return value

    return tuple(map(step, [1, 2])), tuple(held)


def counter_in_object(x, rng):
    class Counter:
        def __init__(self):
            self.n = 0

        def step(self):
            self.n += coin(rng)
            return coin(rng)

    counter = Counter()
    return counter.step() + counter.step(), counter.n


def counter_in_class(x, rng):
    class Counter:
        n = 0

    for _ in range(3):
        Counter.n += coin(rng)
    return Counter.n


def counter_in_slots(x, rng):
    class Slotted:
        __slots__ = ("a", "b")

    held = Slotted()
    held.a = coin(rng)
    if coin(rng):
        held.b = 7
    coin(rng)
    return held.a, getattr(held, "b", None)


def counter_global(x, rng):
    global COUNT
    for _ in range(3):
        COUNT += coin(rng)
    return COUNT


def counter_global_list(x, rng):
    LOG.append(coin(rng))
    coin(rng)
    LOG.append(coin(rng))
    return tuple(LOG)


def counter_global_dict(x, rng):
    TABLE["n"] += coin(rng)
    coin(rng)
    TABLE["m"] = coin(rng)
    return tuple(TABLE.items())


def counter_global_array(x, rng):
    ARRAY[coin(rng)] += 1
    coin(rng)
    ARRAY[1:][coin(rng)] += 2
    return tuple(ARRAY.tolist())


def closure_cell(x, rng):
    total = 0

    def step():
        nonlocal total
        total += coin(rng)
        return coin(rng)

    return step() + step() + step(), total


def closures_made(x, rng):
    made = []
    for _ in range(2):
        value = coin(rng)
        made.append(lambda value=value: value * 3)
    coin(rng)
    return sum(each() for each in made)


def closures_late(x, rng):
    made = []
    for value in range(2):
        value = value + coin(rng)
        made.append(lambda: value)  # noqa: B023
    coin(rng)
    return tuple(each() for each in made)


def mutable_default(x, rng, held=[]):  # noqa: B006
    held.append(coin(rng))
    coin(rng)
    held.append(coin(rng))
    return tuple(held)


def function_attribute(x, rng):
    def f():
        f.n += coin(rng)
        return f.n

    f.n = 0
    f(), coin(rng), f()
    return f.n


def own_attribute(x, rng):
    own_attribute.n = getattr(own_attribute, "n", 0) + coin(rng)
    coin(rng)
    return own_attribute.n


@functools.cache
def cached_square(value):
    return value * value


def cache_of_functions(x, rng):
    total = 0
    for _ in range(2):
        total += cached_square(coin(rng) + 1)
    return total, cached_square.cache_info().currsize


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


def exception_in_generator(x, rng):
    def g():
        try:
            yield coin(rng)
        except ValueError as error:
            yield error.args[0] + 2 * coin(rng)

    running = g()
    first = next(running)
    return first, running.throw(ValueError(coin(rng) * 7))


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


def recursion(x, rng):
    def f(n):
        return 0 if n == 0 else coin(rng) + 2 * f(n - 1)

    return f(4)


def recursion_after(x, rng):
    def f(n):
        if n == 0:
            return 0
        below = f(n - 1)
        return below * 2 + coin(rng)

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


def hidden_gen_star(x, rng):
    log = []

    def g():
        try:
            yield 1
        finally:
            log.append(1)

    def make():
        q = g()
        if coin(rng):
            next(q)
        return q

    def f(a):
        del a
        v = coin(rng)
        return v

    v = f(*(make(),))
    return v, tuple(log)


def hidden_traceback2(x, rng):
    log = []

    def g():
        try:
            yield 1
        finally:
            log.append(1)

    def fail():
        q = g()
        if coin(rng):
            next(q)
        raise ValueError

    try:
        fail()
    except ValueError as e:
        held = e
    coin(rng)
    n = len(log)
    held = None  # noqa: F841
    return n, tuple(log)


def hidden_errstate(x, rng):
    np.seterr(divide="raise" if coin(rng) else "ignore")
    coin(rng)
    try:
        return str(np.float64(1) / np.float64(0))
    finally:
        np.seterr(divide="warn")


def hidden_meta(x, rng):
    class M(type):
        n = 0

        def get(cls):
            return M.n

    class C(metaclass=M):
        pass

    if coin(rng):
        M.n = 5
    coin(rng)
    return C.get()


def hidden_dict_iter(x, rng):
    d = {1: 0, 2: 0, 3: 0}
    out = []
    for k in d:
        if coin(rng) and k < 3:
            d.pop(k)
            d[k] = 1
        out.append(k)
        if len(out) > 5:
            break
    return tuple(out)


def hidden_kind(x, rng):
    p = 0.5 if coin(rng) else np.float64(0.5)
    return str(type(rng.random() < p).__name__)


def hidden_tuple_identity(x, rng):
    a = (1, [2])
    b = (1, [2])
    c = a if coin(rng) else b
    del b
    coin(rng)
    c[1].append(1)
    return len(a[1])


def hidden_dead_gen_list(x, rng):
    log = []

    def g():
        try:
            yield
        finally:
            log.append(1)

    def f():
        d = {"q": g()}
        if coin(rng):
            next(d["q"])
        for _ in range(2):
            coin(rng)
        return len(log)

    n = f()
    return n, len(log)


PROGRAMS = [
    value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not isinstance(value, type)
    and name not in ("coin", "cached_square", "n_paths_bounded")
]  # fmt: skip
