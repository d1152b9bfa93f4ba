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
import random
import sys
import threading
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import special

from .attacks_on_frames import coin

HELD = 0
KEYED = {}
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


@contextlib.contextmanager
def holding(value):
    global HELD
    HELD = value
    yield


@contextlib.contextmanager
def held():
    yield HELD


HELPERS = {coin, forgotten, holding, held}


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
    KEYED.clear()
    KEYED[Key(1)] = coin(rng)
    try:
        coin(rng)
        return KEYED[Key(1)]
    finally:
        KEYED.clear()


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


def state_that_pretends_to_be_ours(x, rng):
    value = Pretender()
    value.n = coin(rng)
    coin(rng)
    return value.n


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


def precision_of_the_printer(x, rng):
    with np.printoptions(precision=1 if coin(rng) else 3):
        coin(rng)
        return str(np.array([0.12345]))


def function_for_errors(x, rng):
    np.seterrcall(None)
    if coin(rng):
        np.seterrcall(forgotten)
    coin(rng)
    is_set = np.geterrcall() is not None
    np.seterrcall(None)
    return is_set


def errors_of_scipy(x, rng):
    with special.errstate(loss="raise" if coin(rng) else "ignore"):
        coin(rng)
        return special.geterr()["loss"]


def filter_of_warnings(x, rng):
    with warnings.catch_warnings():
        warnings.catch_warnings(action="error" if coin(rng) else "ignore").__enter__()
        coin(rng)
        try:
            warnings.warn("once", stacklevel=1)
        except UserWarning:
            return 1
        return 0


def precision_of_decimals(x, rng):
    with decimal.localcontext() as context:
        context.prec = 3 if coin(rng) else 5
        coin(rng)
        return str(decimal.Decimal(1) / 3)


def flag_of_an_array(x, rng):
    array = np.zeros(1)
    if coin(rng):
        array.flags.writeable = False
    coin(rng)
    try:
        array[0] = 1
    except ValueError:
        return 0
    return 1


def made_of(value):
    return np.frompyfunc(lambda other: other + value, 1, 1)


HELPERS.add(made_of)


def function_of_an_array(x, rng):
    function = made_of(coin(rng))
    coin(rng)
    return function(0)


def metadata_of_an_array(x, rng):
    array = np.zeros(1, np.dtype("i8", metadata={"n": coin(rng)}))
    coin(rng)
    return array.dtype.metadata["n"]


def attribute_of_a_generator(x, rng):
    GENERATOR.n = coin(rng)
    coin(rng)
    return GENERATOR.n


def two_iterators_or_one(x, rng):
    items = [1, 2, 3, 4]
    one = iter(items)
    other = one if coin(rng) else iter(items)
    next(one)
    coin(rng)
    return next(other)


def object_in_arguments_only(x, rng):
    items = []

    def grow(*parts):
        parts[0].append(coin(rng))
        del parts
        coin(rng)
        return len(items)

    return grow(items, items), tuple(items)


PROGRAMS = [
    value for value in list(globals().values())
    if getattr(value, "__module__", "") == __name__ and not isinstance(value, type) and value not in HELPERS
    and callable(value)
]  # fmt: skip


@dataclass(slots=True)
class Slotted:
    n: int = 0


SEEN, QUEUE, TALLY, SLOTTED = set(), collections.deque([0]), collections.Counter(), Slotted()
DRAWN = collections.defaultdict(lambda: None)
PLACE = contextvars.ContextVar("PLACE", default=None)
LOCAL = threading.local()
NUMBERS = itertools.count()
YIELDED = (value for value in (1, 2, 3))


def set_outside(x, rng):
    SEEN.add(coin(rng))
    return len(SEEN)


def queue_outside(x, rng):
    QUEUE.append(coin(rng))
    return tuple(QUEUE)


def tally_outside(x, rng):
    TALLY[coin(rng)] += 1
    return tuple(TALLY.items())


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


def number_of_the_call(x, rng):
    return next(NUMBERS) + coin(rng)


def generator_outside(x, rng):
    return next(YIELDED, 0) + coin(rng)


_COUNT = "changes a count outside" if sys.version_info < (3, 14) else "holds a count, whose changes cannot be seen"
CHANGES = {
    set_outside: "changes a set outside", queue_outside: "changes a deque outside",
    tally_outside: "changes a Counter outside", slot_outside: "changes a Slotted outside",
    first_draw_in_a_default_dict: "changes a defaultdict outside",
    first_draw_in_a_context_variable: "holds a ContextVar, whose changes cannot be seen",
    number_of_the_call: _COUNT, generator_outside: "holds a generator, whose changes cannot be seen",
}  # fmt: skip
