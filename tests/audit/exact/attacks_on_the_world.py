"""Programs whose state hides outside of them, or in what Python remembers of their objects.

`PROGRAMS` set what they change at their beginning, so that an enumerator needs not put it back. What `CHANGES` change
cannot be put back: several of them keep the first draw for ever, so that all later executions would return it.
"""

import collections
import contextlib
import contextvars
import decimal
import functools
import itertools
import operator
import random
import sys
import threading
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import special

from .attacks_on_frames import coin, programs_of
from .attacks_on_objects import either, keeping

HELD = 0
LOG = []
TABLE = {}
ARRAY = np.zeros(3)
GENERATOR = random.Random()


class Key:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return self.n

    def __eq__(self, other):
        return self.n == other.n


class Other(Key):
    pass


class Pretender:
    def exact_state(self):
        return []


Pretender.__qualname__ = "list"


class Counted:
    n = 0

    @classmethod
    def bump(cls, by):
        cls.n += by


@functools.lru_cache(maxsize=0)
def forgotten(value):
    return value


@functools.cache
def cached_square(value):
    return value * value


@contextlib.contextmanager
def holding(value):
    global HELD
    HELD = value
    yield


@contextlib.contextmanager
def held():
    yield HELD


def pretender(rng):
    made = Pretender()
    made.n = coin(rng)
    return made


def locked(rng):
    """Return an array, perhaps a read-only one."""
    array = np.zeros(1)
    if coin(rng):
        array.flags.writeable = False
    return array


def made_of(value):
    return np.frompyfunc(lambda other: other + value, 1, 1)


KEPT = {
    "state that pretends to be ours": (pretender, lambda value: value.n),
    "flag of an array": (locked, lambda array: array.flags.writeable),
    "function of an array": (lambda rng: made_of(coin(rng)), lambda function: function(0)),
    "metadata of an array": (
        lambda rng: np.zeros(1, np.dtype("i8", metadata={"n": coin(rng)})), lambda array: array.dtype.metadata["n"],
    ),
}  # fmt: skip


def counter_global(x, rng):
    global HELD
    HELD = 0
    for _ in range(3):
        HELD += coin(rng)
    return HELD


def containers_outside(x, rng):
    LOG[:], ARRAY[:] = [], 0
    TABLE.clear()
    LOG.append(coin(rng))
    TABLE["n"] = coin(rng)
    ARRAY[coin(rng)] += 1
    coin(rng)
    ARRAY[1:][coin(rng)] += 2
    return tuple(LOG), tuple(TABLE.items()), tuple(ARRAY.tolist())


def mutable_default(x, rng, held=[]):  # noqa: B006
    held.clear()
    held.append(coin(rng))
    coin(rng)
    held.append(coin(rng))
    return tuple(held)


def own_attribute(x, rng):
    own_attribute.n = 0
    own_attribute.n += coin(rng)
    coin(rng)
    return own_attribute.n


def results_of_a_cache(x, rng):
    cached_square.cache_clear()
    total = 0
    for _ in range(2):
        total += cached_square(coin(rng) + 1)
    return total, cached_square.cache_info().currsize


def monkeypatched(x, rng):
    before = operator.add
    try:
        if coin(rng):
            operator.add = operator.mul
        coin(rng)
        return operator.add(3, 4)
    finally:
        operator.add = before


def global_behind_a_decorator(x, rng):
    with holding(0):
        pass
    if coin(rng):
        with holding(1):
            pass
    coin(rng)
    with held() as value:
        return value


def hash_remembered_by_a_dict(x, rng):
    key = Key(1 + coin(rng))
    table = {(key, 0): "a"}
    key.n = 1
    coin(rng)
    return (Key(1), 0) in table


def hash_remembered_outside(x, rng):
    TABLE.clear()
    TABLE[Key(1)] = coin(rng)
    try:
        coin(rng)
        return TABLE[Key(1)]
    finally:
        TABLE.clear()


def name_of_a_function(x, rng):
    coin.__name__ = "ab"[coin(rng)]
    coin(rng)
    return coin.__name__


def class_by_its_name(x, rng):
    value = Key(0)
    if coin(rng):
        setattr(value, "__class__", Other)  # noqa: B010
    coin(rng)
    return isinstance(value, Other)


def misses_of_a_cache(x, rng):
    forgotten.cache_clear()
    if coin(rng):
        forgotten(1)
    coin(rng)
    return forgotten.cache_info().misses


def attribute_of_a_cache(x, rng):
    forgotten.n = 0
    forgotten.n += coin(rng)
    coin(rng)
    return forgotten.n


def counter_of_a_class(x, rng):
    Counted.n = 0
    Counted.bump(coin(rng))
    coin(rng)
    Counted.bump(2 * coin(rng))
    return Counted.n


def text_of_a_class(x, rng):
    Counted.__doc__ = "ab"[coin(rng)]
    coin(rng)
    return Counted.__doc__


def attribute_of_a_generator(x, rng):
    GENERATOR.n = coin(rng)
    coin(rng)
    return GENERATOR.n


# What libraries keep.


def precision_of_the_printer(x, rng):
    with np.printoptions(precision=either(rng, 1, 3)):
        coin(rng)
        return str(np.array([0.12345]))


def errors_of_numpy(x, rng):
    np.seterr(divide=either(rng, "raise", "ignore"))
    coin(rng)
    try:
        return str(np.float64(1) / np.float64(0))
    finally:
        np.seterr(divide="warn")


def function_for_errors(x, rng):
    np.seterrcall(None)
    if coin(rng):
        np.seterrcall(forgotten)
    coin(rng)
    is_set = np.geterrcall() is not None
    np.seterrcall(None)
    return is_set


def errors_of_scipy(x, rng):
    with special.errstate(loss=either(rng, "raise", "ignore")):
        coin(rng)
        return special.geterr()["loss"]


def filter_of_warnings(x, rng):
    with warnings.catch_warnings():
        warnings.catch_warnings(action=either(rng, "error", "ignore")).__enter__()
        coin(rng)
        try:
            warnings.warn("once", stacklevel=1)
        except UserWarning:
            return 1
        return 0


def precision_of_decimals(x, rng):
    with decimal.localcontext() as context:
        context.prec = either(rng, 3, 5)
        coin(rng)
        return str(decimal.Decimal(1) / 3)


PROGRAMS = {**{f"kept: {name}": keeping(*row) for name, row in KEPT.items()}, **programs_of(globals())}


def everything():
    """Return what `changes_everything` changes."""
    of_functions = mutable_default.__defaults__[0], getattr(own_attribute, "n", 0), cached_square.cache_info().currsize
    of_libraries = np.geterr()["under"], special.geterr()["loss"]
    return str((HELD, LOG, TABLE, ARRAY, Counted.n, of_functions, of_libraries))


def changes_everything(x, rng):
    global HELD
    found = everything()
    HELD = Counted.n = own_attribute.n = ARRAY[1] = 1 + coin(rng)
    LOG.append(cached_square(HELD))
    mutable_default.__defaults__[0].append(TABLE.setdefault("n", HELD))
    np.seterr(under="raise")
    special.seterr(loss="raise")
    return found


@dataclass(slots=True)
class Slotted:
    n: int = 0


SEEN, QUEUE, TALLY, SLOTTED = set(), collections.deque([0]), collections.Counter(), Slotted()
DRAWN = collections.defaultdict(lambda: None)
PLACE = contextvars.ContextVar("PLACE", default=None)
LOCAL = threading.local()
NUMBERS = itertools.count()
YIELDED = (value for value in (1, 2, 3))


def slot_outside(x, rng):
    SLOTTED.n += coin(rng)
    return SLOTTED.n


def first_draw_in_a_default_dict(x, rng):
    if DRAWN[x] is None:
        DRAWN[x] = coin(rng)
    return DRAWN[x]


def first_draw_in_a_context_variable(x, rng):
    if PLACE.get() is None:
        PLACE.set(coin(rng))
    return PLACE.get()


_COUNT = "changes a count outside" if sys.version_info < (3, 14) else "holds a count, whose changes cannot be seen"
CHANGES = {
    lambda x, rng: (SEEN.add(coin(rng)), len(SEEN))[1]: "changes a set outside",
    lambda x, rng: (QUEUE.append(coin(rng)), tuple(QUEUE))[1]: "changes a deque outside",
    lambda x, rng: (TALLY.update([coin(rng)]), tuple(TALLY.items()))[1]: "changes a Counter outside",
    lambda x, rng: next(NUMBERS) + coin(rng): _COUNT,
    lambda x, rng: next(YIELDED, 0) + coin(rng): "holds a generator, whose changes cannot be seen",
    slot_outside: "changes a Slotted outside",
    first_draw_in_a_default_dict: "changes a defaultdict outside",
    first_draw_in_a_context_variable: "holds a ContextVar, whose changes cannot be seen",
}
