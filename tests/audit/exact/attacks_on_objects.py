"""Programs whose objects hide where a merge may not look."""

# ruff: noqa: B007, C416, F821, F841

import collections
import copy
import functools
import itertools
import operator
from dataclasses import dataclass, field

import numpy as np

from .attacks_on_frames import coin


def keeping(name, drawn, shown):
    """A program that keeps an object made of draws in a local variable over another draw, and shows it."""

    def program(x, rng):
        value = drawn(rng)
        coin(rng)
        return shown(value)

    program.__name__ = name
    return program


KEEPING = [
    keeping("negative zero", lambda rng: 0.0 if coin(rng) else -0.0, str),
    keeping("bool or int", lambda rng: True if coin(rng) else 1, str),
    keeping("int or float", lambda rng: 1 if coin(rng) else 1.0, str),
    keeping("int32 or int64", lambda rng: np.int32(1) if coin(rng) else np.int64(1), lambda value: str(value.dtype)),
    keeping("bytes or text", lambda rng: "a" if coin(rng) else b"a", lambda value: type(value).__name__),
    keeping("big number", lambda rng: 10**20 + coin(rng), lambda value: value % 7),
    keeping("complex", lambda rng: complex(coin(rng), coin(rng)), str),
    keeping("slice", lambda rng: slice(coin(rng), None, 1 + coin(rng)), lambda value: (0, 1, 2, 3)[value]),
    keeping("range", lambda rng: range(coin(rng), 4, 1 + coin(rng)), tuple),
    keeping("getter", lambda rng: operator.itemgetter(coin(rng)), lambda value: value([5, 6])),
    keeping("class", lambda rng: type("Made", (), {"n": coin(rng)}), lambda value: value().n),
]


def array_in_place(x, rng):
    held = np.zeros(2, dtype=int)
    held[coin(rng)] += 1
    held[coin(rng)] += 2
    coin(rng)
    return tuple(held.tolist())


def array_view(x, rng):
    held = np.zeros(4, dtype=int)
    view = held[1:3] if coin(rng) else held[2:4]
    coin(rng)
    view += 1 + coin(rng)
    return tuple(held.tolist())


def array_view_of_copy(x, rng):
    held = np.zeros(2, dtype=int)
    other = held if coin(rng) else held.copy()
    coin(rng)
    other[0] = 5
    return tuple(held.tolist())


def alias_or_copy(x, rng):
    a = [0]
    b = a if coin(rng) else [0]
    coin(rng)
    b.append(1)
    return len(a)


def alias_in_dict(x, rng):
    a, b = {}, {}
    held = {"first": a, "second": a if coin(rng) else b}
    del a, b
    coin(rng)
    held["second"]["k"] = 1
    return len(held["first"])


def alias_by_is(x, rng):
    a = [1, 2]
    other = a if coin(rng) else copy.deepcopy(a)
    coin(rng)
    return other is a


def number_by_is(x, rng):
    a = float(5 + coin(rng) * 0)
    b = a if coin(rng) else float(str(a))
    coin(rng)
    return a is b


def nan_by_identity(x, rng):
    a = float("nan")
    held = [a if coin(rng) else float("nan")]
    coin(rng)
    return a in held


def deque_state(x, rng):
    held = collections.deque(maxlen=2 if coin(rng) else 3)
    for _ in range(3):
        held.append(coin(rng))
    return tuple(held)


def deque_rotation(x, rng):
    held = collections.deque([1, 2, 3])
    held.rotate(coin(rng))
    coin(rng)
    held.rotate(coin(rng))
    return held[0]


def dict_order(x, rng):
    held = {}
    for key in ["a", "b"] if coin(rng) else ["b", "a"]:
        held[key] = 1
    coin(rng)
    return tuple(held)


def dict_last(x, rng):
    held = dict.fromkeys("abc", 0)
    if coin(rng):
        held["a"] = held.pop("a")
    coin(rng)
    return held.popitem()[0]


def dict_iteration(x, rng):
    held = {1: 0, 2: 0, 3: 0}
    total = 0
    for key in held:
        held[key] = coin(rng)
        total += key * held[key]
    return total


def set_order(x, rng):
    held = set()
    for value in [0, 8] if coin(rng) else [8, 0]:
        held.add(value)
    coin(rng)
    return tuple(held)


def set_after_removal(x, rng):
    held = {0, 8, 16}
    held.discard(8 if coin(rng) else 16)
    coin(rng)
    held.add(8)
    held.add(16)
    return tuple(held)


def set_pop(x, rng):
    held = set(range(6))
    if coin(rng):
        held.add(held.pop())
    coin(rng)
    return held.pop()


def set_iteration(x, rng):
    total = 0
    for value in {1, 2, 4}:
        total += value * coin(rng)
    return total


def deleted_local(x, rng):
    value = 3
    if coin(rng):
        del value
    coin(rng)
    try:
        return value
    except UnboundLocalError:
        return None


def rebound_local(x, rng):
    value = coin(rng)
    value = value if coin(rng) else 1 - value
    return value + 2 * coin(rng)


def dead_then_used(x, rng):
    for turn in range(3):
        if turn == 2:
            return kept
        kept = coin(rng)
        coin(rng)


def init_draws(x, rng):
    class Noise:
        def __init__(self):
            self.a = coin(rng)
            self.b = coin(rng)

    one, two = Noise(), Noise()
    return one.a, one.b, two.a, two.b


def init_deletes_self(x, rng):
    made = []

    class Noise:
        def __init__(self):
            self.a = coin(rng)
            made.append(0)
            del self
            coin(rng)

    return Noise().a, Noise().a


class WithoutSelf:
    """CPython specialises a call of a class once it was called often, and keeps the object in a frame of its own."""

    def __init__(self, rng):
        self.a = coin(rng)
        coin(rng)


def init_needs_no_self(x, rng):
    return WithoutSelf(rng).a, WithoutSelf(rng).a


def new_draws(x, rng):
    class Number(int):
        def __new__(cls):
            return super().__new__(cls, coin(rng) + 2 * coin(rng))

    return int(Number()) + 4 * int(Number())


def hash_draws(x, rng):
    class Key:
        def __hash__(self):
            return coin(rng)

        def __eq__(self, other):
            return bool(coin(rng))

    return len({Key(), Key(), Key()})


def eq_draws(x, rng):
    class Item:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return bool(coin(rng))

        __hash__ = None

    held = [Item(0), Item(1), Item(2)]
    target = Item(5)
    return held.index(target) if target in held else -1


def lt_draws(x, rng):
    class Item:
        def __init__(self, n):
            self.n = n

        def __lt__(self, other):
            return bool(coin(rng))

    return tuple(each.n for each in sorted([Item(0), Item(1), Item(2)]))


def add_draws(x, rng):
    class Item:
        def __init__(self, n):
            self.n = n

        def __add__(self, other):
            return Item(self.n * 2 + coin(rng) + other.n)

    return (Item(0) + Item(1) + Item(2)).n


def radd_draws(x, rng):
    class Item:
        def __radd__(self, other):
            return other * 2 + coin(rng)

        __add__ = __radd__

    return 1 + Item() + 0


def getitem_draws(x, rng):
    class Rows:
        def __getitem__(self, place):
            if place > 3:
                raise IndexError
            return coin(rng) * (place + 1)

    return sum(Rows()), tuple(Rows())


def property_draws(x, rng):
    class Noisy:
        @property
        def value(self):
            return coin(rng)

    held = Noisy()
    return 4 * held.value + 2 * held.value + held.value


def getattr_draws(x, rng):
    class Noisy:
        def __getattr__(self, name):
            return coin(rng)

    held = Noisy()
    return held.a + 2 * held.b


def call_draws(x, rng):
    class Noisy:
        def __init__(self):
            self.n = 0

        def __call__(self, scale):
            self.n += 1
            return scale * coin(rng) + self.n

    held = Noisy()
    return held(1) + 10 * held(2)


def iter_next_draws(x, rng):
    class Draws:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n > 4 or coin(rng):
                raise StopIteration
            return coin(rng)

    return tuple(value * 2 for value in Draws()), [value for value in Draws()][-1:] == [1]


def bool_draws(x, rng):
    class Flag:
        def __bool__(self):
            return bool(coin(rng))

    flag = Flag()
    return [1 if flag else 2, 3 if flag and flag else 4, 5 if not flag else 6][coin(rng)]


def del_draws(x, rng):
    log = []

    class Item:
        def __del__(self):
            log.append(len(log))

    held = [Item()]
    if coin(rng):
        held.clear()
    coin(rng)
    found = len(log)
    held.clear()
    return found


def partial_draws(x, rng):
    f = functools.partial(lambda a, b: a * coin(rng) + b, 3)
    return f(1) + 10 * f(coin(rng))


def partial_state(x, rng):
    held = []
    f = functools.partial(held.append)
    f(coin(rng))
    coin(rng)
    f(coin(rng))
    return tuple(held)


def decorated(x, rng):
    def twice(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            return function(*args, **kwargs) + 2 * function(*args, **kwargs)

        return call

    @twice
    def f(scale, *, shift=0):
        return scale * coin(rng) + shift

    return f(1) + 5 * f(1, shift=1)


def method_alias(x, rng):
    held = [[], []]
    add = held[coin(rng)].append
    coin(rng)
    add(1)
    return len(held[0])


def dataclass_state(x, rng):
    @dataclass
    class State:
        n: int = 0
        items: list = field(default_factory=list)

    state = State()
    state.n += coin(rng)
    state.items.append(coin(rng))
    coin(rng)
    return state.n, tuple(state.items)


def named_tuple(x, rng):
    point = collections.namedtuple("point", "a b")
    held = point(coin(rng), coin(rng))
    coin(rng)
    return held.a + 2 * held.b


def subclass_of_list(x, rng):
    class Stack(list):
        pass

    held = Stack()
    held.append(coin(rng))
    held.name = coin(rng)
    coin(rng)
    return tuple(held), held.name


def subclass_of_dict(x, rng):
    held = collections.OrderedDict(a=1, b=2)
    held.move_to_end("a", last=bool(coin(rng)))
    coin(rng)
    return tuple(held)


def default_dict(x, rng):
    held = collections.defaultdict(list)
    held[coin(rng)].append(coin(rng))
    coin(rng)
    return str(sorted(held.items()))


def counter_type(x, rng):
    held = collections.Counter()
    held[coin(rng)] += 1
    coin(rng)
    held[coin(rng)] += 1
    return tuple(sorted(held.items()))


def bytearray_state(x, rng):
    held = bytearray(b"ab")
    held[coin(rng)] = 99
    coin(rng)
    return bytes(held).decode()


def shuffled_list(x, rng):
    held = [0, 1, 2]
    for place in (2, 1):
        other = int(rng.integers(place + 1))
        held[place], held[other] = held[other], held[place]
    return tuple(held)


def swapped(x, rng):
    a, b = 0, 1
    if coin(rng):
        a, b = b, a
    coin(rng)
    return a


def class_changed(x, rng):
    class Held:
        def value(self):
            return 1

    if coin(rng):
        Held.value = lambda self: 2
    coin(rng)
    return Held().value()


def instance_class_changed(x, rng):
    class A:
        n = 1

    class B:
        n = 2

    held = A()
    if coin(rng):
        held.__class__ = B
    coin(rng)
    return held.n


def globals_changed(x, rng):
    globals()["HIDDEN"] = coin(rng)
    coin(rng)
    return globals()["HIDDEN"]


def eval_reads(x, rng):
    secret = coin(rng)
    coin(rng)
    return eval("secret")


def exec_makes(x, rng):
    space = {}
    exec(f"def f():\n    return {coin(rng)}", space)
    coin(rng)
    return space["f"]()


def locals_reads(x, rng):
    secret = coin(rng)
    coin(rng)
    return locals()["secret"]


def monkeypatched(x, rng):
    before = operator.add
    try:
        if coin(rng):
            operator.add = operator.mul
        coin(rng)
        return operator.add(3, 4)
    finally:
        operator.add = before


def geometric_loop(x, rng):
    n = 0
    while coin(rng) and n < 8:
        n += 1
    return n


def rejection(x, rng):
    for _ in range(4):
        a, b = int(rng.integers(3)), int(rng.integers(3))
        if a != b:
            return a, b
    return None


def rejection_with_count(x, rng):
    tries = 0
    while tries < 4:
        tries += 1
        a = int(rng.integers(3))
        if a < 2:
            return a, tries
    return -1, tries


def accumulator_nested(x, rng):
    total = 0
    for a in range(2):
        row = 0
        for b in range(2):
            row = row * 2 + coin(rng)
        total = total * 4 + row
    return total


def uniform_twice(x, rng):
    found = 0
    for p in (0.3, 0.7, 0.5):
        found = 2 * found + (rng.random() < p)
    return int(found)


def uniform_in_list(x, rng):
    draws = [rng.random() < p for p in (0.25, 0.5)]
    return tuple(map(bool, draws))


def uniform_by_dataset(x, rng):
    return x if rng.random() < 0.6 else 1 - x


def star_unpacking(x, rng):
    first, *rest = [coin(rng), coin(rng), coin(rng)]
    coin(rng)
    return first * 4 + sum(rest)


def walrus(x, rng):
    return (a := coin(rng)) * 2 + (b := coin(rng)) + a * b * coin(rng)


def ternary_stack(x, rng):
    return [1, 2 if coin(rng) else 3, 4 if coin(rng) else 5, coin(rng)][int(rng.integers(4))]


def short_circuit(x, rng):
    return (coin(rng) and 2 * coin(rng)) or (coin(rng) or 7 * coin(rng))


def match_statement(x, rng):
    match (coin(rng), coin(rng)):
        case (0, b):
            return b + 2 * coin(rng)
        case (a, 1) if coin(rng):
            return 5 + a
        case _:
            return 9


def async_driven(x, rng):
    async def step():
        return coin(rng) + 2 * coin(rng)

    running = step()
    try:
        running.send(None)
    except StopIteration as stop:
        return stop.value


def memo_of_objects(x, rng):
    class Node:
        def __init__(self, n):
            self.n, self.next = n, None

    a, b = Node(1), Node(2)
    a.next = b if coin(rng) else a
    coin(rng)
    return a.next.n


def cyclic_lists(x, rng):
    a = []
    a.append(a if coin(rng) else [])
    coin(rng)
    return len(a[0])


def string_builder(x, rng):
    text = ""
    for _ in range(3):
        text += "ab"[coin(rng)]
    return text


def super_call(x, rng):
    class Base:
        def draw(self):
            return coin(rng)

    class Child(Base):
        def draw(self):
            return 2 * super().draw() + super().draw()

    return Child().draw() + 4 * Child().draw()


def class_body_draws(x, rng):
    class Held:
        a = coin(rng)
        b = coin(rng)

    return Held.a, Held.b


def reversed_iterator(x, rng):
    total = 0
    for value in reversed([1, 2, 4]):
        total += value * coin(rng)
    return total


def product_iterator(x, rng):
    total = 0
    for a, b in itertools.product((1, 2), (10, 20)):
        total += (a + b) * coin(rng)
    return total


def tee_iterator(x, rng):
    a, b = itertools.tee([1, 2, 3])
    if coin(rng):
        next(a)
    coin(rng)
    return tuple(a), tuple(b)


def cycle_iterator(x, rng):
    values = itertools.cycle([1, 2, 3])
    for _ in range(1 + coin(rng)):
        next(values)
    coin(rng)
    return next(values)


def chain_iterator(x, rng):
    values = itertools.chain([1, 2], [3])
    if coin(rng):
        next(values)
    coin(rng)
    return tuple(values)


def sort_in_place_while_drawing(x, rng):
    held = [3, 1, 2]
    order = []
    held.sort(key=lambda value: (order.append(value), coin(rng))[1])
    return tuple(held), len(order)


def helper_pure(x, rng):
    def bernoulli(n):
        while True:
            if coin(rng):
                return 1
            if int(rng.integers(n)) == 0:
                return 0

    return 0 if n_paths_bounded(x) else bernoulli(2)


def n_paths_bounded(x):
    return True


PROGRAMS = KEEPING + [
    value for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == __name__ and not isinstance(value, type)
    and name not in ("keeping", "n_paths_bounded")
]  # fmt: skip
