"""Programs whose objects hide where a merge may not look."""

import collections
import copy
import functools
import itertools
import operator
import types
from dataclasses import dataclass, field

import numpy as np

from .attacks_on_frames import coin, programs_of

Point = collections.namedtuple("Point", "a b")


@dataclass
class Node:
    n: int = 0
    next: object = None
    items: list = field(default_factory=list)

    def shown(self):
        return self.n


class Slotted:
    __slots__ = ("a", "b")


class Stack(list):
    pass


def either(rng, one, other):
    return one if coin(rng) else other


def linked(rng):
    a, b = Node(1), Node(2)
    a.next = either(rng, a, b)
    return a


def slotted(rng):
    held = Slotted()
    held.a = coin(rng)
    if coin(rng):
        held.b = 7
    return held


def started(iterator, rng):
    """Return an iterator, perhaps after its first value."""
    if coin(rng):
        next(iterator)
    return iterator


def grown(held):
    """Return whether what the second holds shows in the first."""
    held[1].append(1)
    return len(held[0])


def by_is(held):
    """Return whether both are one object."""
    return held[1] is held[0]


def added(held):
    """The same of arrays."""
    held[1][...] += 1
    return tuple(held[0].tolist())


def called(held):
    """Return what a call of the second does to the first of some lists."""
    held[1](1)
    return len(held[0][0])


def keeping(drawn, shown):
    """Return a program that keeps an object made of draws in a local variable over another draw, and shows it."""

    def program(x, rng):
        value = drawn(rng)
        coin(rng)
        return shown(value)

    return program


KEPT = {
    # numbers and texts
    "negative zero": (lambda rng: either(rng, 0.0, -0.0), str),
    "bool or int": (lambda rng: either(rng, True, 1), str),
    "int or float": (lambda rng: either(rng, 1, 1.0), str),
    "int32 or int64": (lambda rng: either(rng, np.int32(1), np.int64(1)), lambda held: str(held.dtype)),
    "bytes or text": (lambda rng: either(rng, "a", b"a"), lambda held: type(held).__name__),
    "text": (lambda rng: "ab"[coin(rng)], str),
    "big number": (lambda rng: 10**20 + coin(rng), lambda held: held % 7),
    "complex": (lambda rng: complex(coin(rng), coin(rng)), str),
    "slice": (lambda rng: slice(coin(rng), None, 1 + coin(rng)), lambda held: (0, 1, 2, 3)[held]),
    "range": (lambda rng: range(coin(rng), 4, 1 + coin(rng)), tuple),
    # identity
    "alias or copy": (lambda rng: (a := [0], either(rng, a, [0])), grown),
    "alias in a dictionary": (lambda rng: {0: (a := [0]), 1: either(rng, a, [0])}, grown),
    "item of equal tuples": (
        lambda rng: (a := (1, [2]), either(rng, a, (1, [2]))),
        lambda held: grown((held[0][1], held[1][1])),
    ),
    "alias by is": (lambda rng: (a := [1, 2], either(rng, a, copy.deepcopy(a))), by_is),
    "number by is": (lambda rng: (a := 5.0 + coin(rng) * 0, either(rng, a, float(str(a)))), by_is),
    "NaN by identity": (
        lambda rng: (a := float("nan"), [either(rng, a, float("nan"))]),
        lambda held: held[0] in held[1],
    ),
    "link of nodes": (linked, lambda held: held.next.n),
    "cyclic lists": (lambda rng: (a := [], a.append(either(rng, a, [])))[0], lambda held: len(held[0])),
    # arrays
    "view of an array": (lambda rng: (a := np.zeros(4), either(rng, a[1:3], a[2:4])), added),
    "array or copy": (lambda rng: (a := np.zeros(2), either(rng, a, a.copy())), added),
    "view of an array or of a copy": (lambda rng: (a := np.zeros(2), b := a.copy(), either(rng, a, b)[:])[::2], added),
    # containers
    "items": (lambda rng: [coin(rng), coin(rng)], sum),
    "bytearray": (
        lambda rng: (b := bytearray(b"ab"), b.__setitem__(coin(rng), 99))[0],
        lambda held: bytes(held).decode(),
    ),
    "deque": (
        lambda rng: collections.deque([coin(rng)], 2 + coin(rng)),
        lambda held: (held.extend([5, 6]), tuple(held))[1],
    ),
    "rotated deque": (lambda rng: (d := collections.deque([1, 2, 3]), d.rotate(coin(rng)))[0], tuple),
    "order of a dictionary": (lambda rng: dict.fromkeys(either(rng, "ab", "ba")), tuple),
    "last of a dictionary": (
        lambda rng: (d := dict.fromkeys("abc", 0), coin(rng) and d.update(a=d.pop("a")))[0],
        lambda held: held.popitem()[0],
    ),
    "order of a set": (lambda rng: set(either(rng, [0, 8], [8, 0])), tuple),
    "set after a removal": (
        lambda rng: (s := {0, 8, 16}, s.discard(either(rng, 8, 16)))[0],
        lambda held: (held.update([8, 16]), tuple(held))[1],
    ),
    "set after a pop": (lambda rng: (s := set(range(6)), coin(rng) and s.add(s.pop()))[0], lambda held: held.pop()),
    "ordered dictionary": (
        lambda rng: (d := collections.OrderedDict(a=1, b=2), d.move_to_end("a", last=bool(coin(rng))))[0],
        tuple,
    ),
    "default dictionary": (
        lambda rng: (d := collections.defaultdict(list), d[coin(rng)].append(coin(rng)))[0],
        lambda held: str(sorted(held.items())),
    ),
    "counter": (lambda rng: collections.Counter([coin(rng), coin(rng)]), lambda held: tuple(sorted(held.items()))),
    # objects
    "named tuple": (lambda rng: Point(coin(rng), coin(rng)), lambda held: held.a + 2 * held.b),
    "attributes": (
        lambda rng: Node(coin(rng), items=[coin(rng)]),
        lambda held: (held.n, len(held.items), held.items[0]),
    ),
    "slots": (slotted, lambda held: (held.a, getattr(held, "b", None))),
    "list with attributes": (
        lambda rng: (s := Stack([coin(rng)]), setattr(s, "n", coin(rng)))[0],
        lambda held: (*held, held.n),
    ),
    "class": (lambda rng: type("Made", (), {"n": coin(rng)}), lambda held: held().n),
    "getter": (lambda rng: operator.itemgetter(coin(rng)), lambda held: held([5, 6])),
    "bound method": (lambda rng: (a := [[], []], a[coin(rng)].append), called),
    "partial": (lambda rng: (a := [[], []], functools.partial(a[coin(rng)].append)), called),
    "argument of a partial": (lambda rng: functools.partial(max, coin(rng)), lambda held: held(0)),
    "method of an object": (lambda rng: Node(coin(rng)).shown, lambda held: held()),
    "function of a property": (lambda rng: property([3, 4][coin(rng)].__add__), lambda held: held.fget(1)),
    "function of a static method": (lambda rng: staticmethod([3, 4][coin(rng)].__add__), lambda held: held(1)),
    "function of a class method": (lambda rng: classmethod([3, 4][coin(rng)].__add__), lambda held: held.__func__(1)),
    "default of a keyword": (lambda rng: lambda *, n=coin(rng): n, lambda held: held()),  # noqa: B008
    "parameter of an alias": (lambda rng: list[either(rng, int, str)], str),
    "read-only view of a dictionary": (lambda rng: types.MappingProxyType({"n": coin(rng)}), lambda held: held["n"]),
    # iterators
    "one iterator or two": (
        lambda rng: (a := [1, 2], b := iter(a), either(rng, b, iter(a))),
        lambda held: (next(held[1]), next(held[2])),
    ),
    "position in a dictionary": (lambda rng: started(iter({1: 0, 2: 0, 3: 0}), rng), tuple),
    "position of a chain": (lambda rng: started(itertools.chain([1, 2], [3]), rng), tuple),
    "position of a cycle": (lambda rng: started(itertools.cycle([1, 2, 3]), rng), next),
    "position of one of two": (
        lambda rng: (t := itertools.tee([1, 2, 3]), started(t[0], rng))[0],
        lambda held: tuple(map(tuple, held)),
    ),
}


# Objects that draw.


class Noisy:
    """An object that draws in its methods."""

    def __init__(self, rng, n=0):
        self.rng, self.n = rng, n

    def step(self):
        self.n += coin(self.rng)
        return coin(self.rng)

    @property
    def value(self):
        return coin(self.rng)

    def __call__(self, scale):
        self.n += 1
        return scale * coin(self.rng) + self.n

    def __hash__(self):
        return coin(self.rng)

    def __eq__(self, other):
        return bool(coin(self.rng))

    def __lt__(self, other):
        return bool(coin(self.rng))

    def __bool__(self):
        return bool(coin(self.rng))

    def __add__(self, other):
        return Noisy(self.rng, self.n * 2 + coin(self.rng) + other.n)

    def __radd__(self, other):
        return other * 2 + coin(self.rng)

    def __getitem__(self, place):
        if place > 2:
            raise IndexError
        return coin(self.rng) * (place + 1)


class Draws(Noisy):
    """An iterator, with any attribute."""

    def __iter__(self):
        return self

    def __next__(self):
        self.n += 1
        if self.n > 2 or coin(self.rng):
            raise StopIteration
        return coin(self.rng)

    def __getattr__(self, name):
        return coin(self.rng)


class Inherited(Noisy):
    def step(self):
        return 2 * super().step() + super().step()


class Number(int):
    def __new__(cls, rng):
        return super().__new__(cls, coin(rng) + 2 * coin(rng))


class Made:
    def __init__(self, rng):
        self.a = coin(rng)
        self.b = coin(rng)


class WithoutSelf:
    """CPython specialises a call of a class once it was called often, and keeps the object in a frame of its own."""

    def __init__(self, rng):
        self.a = coin(rng)
        coin(rng)


class DeletesSelf:
    def __init__(self, rng):
        self.a = coin(rng)
        del self
        coin(rng)


OF_METHODS = {
    "step": lambda x, rng: (a := Noisy(rng), a.step() + a.step(), a.n)[1:],
    "property": lambda x, rng: (a := Noisy(rng), 4 * a.value + 2 * a.value + a.value)[1],
    "__getattr__": lambda x, rng: (a := Draws(rng), a.one + 2 * a.other)[1],
    "__call__": lambda x, rng: (a := Noisy(rng), a(1) + 10 * a(2))[1],
    "__hash__": lambda x, rng: len({Noisy(rng), Noisy(rng), Noisy(rng)}),
    "__eq__": lambda x, rng: (a := [Noisy(rng), Noisy(rng), Noisy(rng)], a.index(5) if 5 in a else -1)[1],
    "__lt__": lambda x, rng: tuple(each.n for each in sorted([Noisy(rng, 0), Noisy(rng, 1), Noisy(rng, 2)])),
    "__add__": lambda x, rng: (Noisy(rng, 0) + Noisy(rng, 1) + Noisy(rng, 2)).n,
    "__radd__": lambda x, rng: 1 + Noisy(rng),
    "__getitem__": lambda x, rng: (sum(Noisy(rng)), max(Noisy(rng))),
    "__next__": lambda x, rng: (tuple(value * 2 for value in Draws(rng)), [*Draws(rng)][-1:] == [1]),
    "__bool__": lambda x, rng: (a := Noisy(rng), [1 if a else 2, 3 if a and a else 4, 5 if not a else 6][coin(rng)])[1],
    "__init__": lambda x, rng: (a := Made(rng), b := Made(rng), (a.a, a.b, b.a, b.b))[2],
    "__init__ that needs no self": lambda x, rng: (WithoutSelf(rng).a, WithoutSelf(rng).a),
    "__init__ that deletes self": lambda x, rng: (DeletesSelf(rng).a, DeletesSelf(rng).a),
    "__new__": lambda x, rng: int(Number(rng)) + 4 * int(Number(rng)),
    "super": lambda x, rng: Inherited(rng).step() + 4 * Inherited(rng).step(),
    "partial": lambda x, rng: (f := functools.partial(lambda a, b: a * coin(rng) + b, 3), f(1) + 10 * f(coin(rng)))[1],
}


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


def class_body(x, rng):
    class Held:
        a = coin(rng)
        b = coin(rng)

    return Held.a, Held.b


def destructor(x, rng):
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


# Classes, names and frames that change.


def class_changed(x, rng):
    class Held:
        n = 0

        def value(self):
            return 1

    for _ in range(2):
        Held.n += coin(rng)
    if coin(rng):
        Held.value = lambda self: 2
    coin(rng)
    return Held.n, Held().value()


def class_of_an_instance_changed(x, rng):
    class A:
        n = 1

    class B:
        n = 2

    held = A()
    if coin(rng):
        held.__class__ = B
    coin(rng)
    return held.n


def metaclass_changed(x, rng):
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


def globals_changed(x, rng):
    globals()["HIDDEN"] = coin(rng)
    coin(rng)
    return globals().pop("HIDDEN")


def eval_reads(x, rng):
    secret = coin(rng)  # noqa: F841
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


PROGRAMS = {
    **{f"kept: {name}": keeping(*row) for name, row in KEPT.items()},
    **{f"draws in {name}": program for name, program in OF_METHODS.items()},
    **programs_of(globals()),
}
