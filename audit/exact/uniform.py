"""Uniform numbers that are not looked at: an integer k of 2⁵³ in a range, and monotone arithmetic on k · 2⁻⁵³.

`Generator.random`, `RandomState.random_sample` and `random.random` all return k · 2⁻⁵³. A comparison or a conversion to
an integer divides the range of k where the answer changes; the place is found by bisection with the code's own
arithmetic, which is monotone, and is checked at the neighbours of every breakpoint.

Proof: docs/proofs/exact.md
"""

from __future__ import annotations

import _random
import itertools
import math
import operator
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers that an exact audit keeps to."""

    values: int = 2**53  # of a uniform double
    near: int = 16  # neighbours checked beside a breakpoint, as log and exp err by a few units in the last place
    pieces: int = 20_000  # of a conversion; a million would take a minute of bisection
    kept: int = 100_000  # divisions kept, about 50 MB
    draws: int = 100_000  # of one execution, as many as there may be states
    outcomes: int = 20_000  # of a draw, each of which takes an execution
    of_helper: int = 64  # outcomes of a helper, each of which multiplies the executions of its callers
    plain: int = 400  # executions before helpers are looked for, which takes a few hundred
    useless: float = 2.0**-60  # a remainder below that of a double
    more: int = 1000  # executions after the remainder is small enough, a tenth of a second, in case nothing is left
    shown: int = 20  # outputs in a printed table


LIMITS: Final = Limits()


class Refusal(BaseException):
    """What no exact audit can do, as the end of a sentence about the code. Not an `Exception`, which it might catch.

    `raised` keeps the last one, in case the code catches everything.
    """

    raised: Refusal | None = None

    def __init__(self, what: str) -> None:
        super().__init__(what)
        Refusal.raised = self


_OF_GENERATORS: Final = (
    np.random.Generator, np.random.RandomState, np.random.BitGenerator, _random.Random,
)  # fmt: skip
"""The last is the C class of Mersenne twisters, objects of which draw too."""


def is_generator(value: Any) -> bool:
    """Whether a value is a generator of random numbers, or a method of one."""
    owner = value.__self__ if isinstance(value, (types.MethodType, types.BuiltinMethodType)) else value
    return isinstance(owner, _OF_GENERATORS)


class Uniform:
    """The integer behind a uniform number, known to lie in range(low, high); shared by all numbers made of it.

    The number is the integer times its unit: 2⁻⁵³ of a double, 1 of a whole number with too many values to list.
    """

    __slots__ = ("low", "high", "picker", "unit")

    def __init__(self, picker: Any, count: int | None = None) -> None:
        self.low, self.high, self.picker = 0, count or LIMITS.values, picker
        self.unit: Any = 2.0**-53 if count is None else 1

    def exact_state(self) -> list[Any]:
        """Return what the rest of the run can depend on."""
        return [self.low, self.high, self.unit]


def _try(function: Any, *arguments: Any) -> None:
    if (value := function(*arguments)) != value:
        raise Refusal("makes a NaN of a uniform number")


_COMPARISONS: Final = {
    operator.lt, operator.le, operator.gt, operator.ge, np.less, np.less_equal, np.greater, np.greater_equal,
}  # fmt: skip
_ANSWERS: Final = {*_COMPARISONS, int, round, math.floor, math.ceil, math.trunc, _try}
"""Monotone functions whose value is asked for at once; the value of all others stays lazy."""
_EQUAL: Final = {operator.eq: (operator.le, operator.ge), np.equal: (np.less_equal, np.greater_equal)}
_UNEQUAL: Final = {operator.ne: operator.eq, np.not_equal: np.equal}
_BREAKS: Final[dict[Any, float]] = {
    operator.abs: 0.0, np.absolute: 0.0, np.sqrt: 0.0, np.log: 0.0, np.log2: 0.0, np.log10: 0.0, np.log1p: -1.0,
}  # fmt: skip
"""Functions that are monotone on each side of a number; numpy's logarithms are NaN below it."""
_OF_MATH: Final = (math.log, math.log2, math.log10, math.log1p, math.sqrt, math.exp, math.expm1)
_FOLLOWED: Final = {
    *_ANSWERS, *_EQUAL, *_UNEQUAL, *_BREAKS, *_OF_MATH, np.exp, np.expm1, np.floor, np.ceil, np.rint, np.trunc, np.sign,
    np.float64, operator.neg, operator.pos, operator.add, operator.sub, operator.mul, operator.truediv, np.negative,
    np.positive, np.add, np.subtract, np.multiply, np.divide,
}  # fmt: skip
_CONSTANTS: Final = {
    bool, int, float, Fraction, np.bool_, np.float64, *(np.dtype(code).type for code in np.typecodes["AllInteger"]),
}  # fmt: skip
"""What a number is combined with; with a float32, Python's numbers and those of arrays give different results."""
_divisions: dict[Any, Any] = {}


class Raised(NamedTuple):
    """An exception of a conversion, as a value."""

    kind: type[Exception]
    text: str


class Lazy:
    """A number that is a monotone function of a `Uniform`.

    Its `steps` are functions, the constants before and after the number, and what distinguishes equal constants.
    """

    __slots__ = ("root", "steps")

    def __init__(self, root: Uniform, steps: tuple[Any, ...] = ()) -> None:
        self.root, self.steps = root, steps

    def exact_state(self) -> list[Any]:
        """Return what the rest of the run can depend on."""
        return [self.root, *(part for step in self.steps for part in (step[0], len(step[1]), *step[1], *step[2]))]

    def apply(self, function: Any, before: tuple[Any, ...] = (), after: tuple[Any, ...] = ()) -> Any:
        """Return a function of constants, the number, and constants."""
        number: Any = self
        for each in (*before, *after):
            if type(each) in _CONSTANTS:
                continue
            if not isinstance(each, np.ndarray) or function not in _COMPARISONS:
                what = "another uniform number" if type(each) is Lazy else f"a {type(each).__name__}"
                raise Refusal(f"combines a uniform number with {what}")
            answers: list[bool] = []
            for entry in each.ravel():
                answers.append(bool(self.apply(function, before and (entry,), after and (entry,))))
            return np.array(answers, dtype=bool).reshape(each.shape)[()]
        if function in _ANSWERS:
            return self._answer(_step(function, before, after))
        if function in _EQUAL:  # not monotone
            at_most, at_least = _EQUAL[function]
            return self.apply(at_most, before, after) and self.apply(at_least, before, after)
        if function in _UNEQUAL:
            is_equal = self.apply(_UNEQUAL[function], before, after)
            return type(is_equal)(not is_equal)
        if function is np.sign:
            return np.float64(-1 if number < 0 else number > 0)
        if not {"raise", "call"}.isdisjoint(np.geterr().values()):
            raise Refusal("calculates with a uniform number while numpy raises errors")
        if any(abs(each) == math.inf or each != each for each in (*before, *after)):
            raise Refusal("calculates with a uniform number and infinity")  # whose product with 0 is a NaN
        if function in _BREAKS:
            _ = number < _BREAKS[function]
        elif before and function in (operator.truediv, np.divide):
            _ = number < 0, number > 0
        self._answer(_step(_try, (function, *before), after))  # raises where the code would, such as u / 0
        return Lazy(self.root, (*self.steps, _step(function, before, after)))

    def _answer(self, parts: tuple[Any, ...]) -> Any:
        """Divide the range where a monotone answer changes; return that of the part that is drawn, or raise it.

        The parts are those of a step, which the frame of `apply` names for the state.
        """
        root = self.root
        place = (self.steps, parts, root.low, root.high, root.unit)
        found = _divisions.get(place)
        if found is None:
            if len(_divisions) > LIMITS.kept:
                _divisions.clear()
            with warnings.catch_warnings(record=True):  # of numbers that are only tried; errors are errors
                found = _divisions[place] = pieces(  # no further local, as they name the state
                    lambda k: _value((*self.steps, parts), k * root.unit), root.low, root.high
                )
        values, bounds, weights = found
        drawn = root.picker.pick(values, weights, root, bounds) if len(values) > 1 else 0
        root.low, root.high = bounds[drawn], bounds[drawn + 1]
        value = values[drawn]
        if type(value) is Raised:
            raise value.kind(value.text)
        return value

    def __bool__(self) -> bool:
        return bool(self.apply(operator.ne, (), (0,)))

    def round(self, decimals: int = 0, out: Any = None) -> Any:
        """Round as `numpy.round` does."""
        if decimals or out is not None:
            raise Refusal("rounds a uniform number to digits")
        return self.apply(np.rint)

    def __array_ufunc__(self, function: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        if method != "__call__" or options or function not in _FOLLOWED:
            raise Refusal(f"calls numpy.{function.__name__} of a uniform number")
        given = tuple(each[()] if isinstance(each, np.ndarray) and each.shape == () else each for each in operands)
        number = next(number for number, each in enumerate(given) if each is self)
        return self.apply(function, given[:number], given[number + 1 :])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(np, name, None)
        if isinstance(function, np.ufunc) and function in _FOLLOWED:  # numpy asks the entries of an array of objects
            return lambda: self.apply(function)
        raise Refusal(f"reads .{name} of a uniform number")

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(u, float) is true of the number that the code would have
        return type(self.root.unit)  # of a whole number only before it is divided, which nobody asks then


def _step(function: Any, before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[Any, ...]:
    constants = (*before, *after)
    return function, before, after, *map(type, constants), *(math.copysign(1, each) for each in constants if each == 0)


def _value(steps: tuple[Any, ...], value: Any) -> Any:
    """Return what the code would have for this number, or the exception that it would raise."""
    try:
        for function, before, after, *_ in steps:
            value = function(*before, value, *after)
    except (ArithmeticError, ValueError, Warning) as error:
        return Raised(type(error), str(error))
    return value


def refusing(what: str) -> Any:
    """Return a function that refuses to be called."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise Refusal(what)

    return refuse


def _method(function: Any, *, is_right: bool = False) -> Any:
    return lambda self, *others: self.apply(function, others) if is_right else self.apply(function, (), others)


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Lazy, f"__{_name}__", _method(getattr(operator, _name)))
    setattr(Lazy, f"__r{_name}__", _method(getattr(operator, _name), is_right=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "abs"):
    setattr(Lazy, f"__{_name}__", _method(getattr(operator, _name)))
for _function in (int, round, math.floor, math.ceil, math.trunc):
    setattr(Lazy, f"__{_function.__name__}__", _method(_function))
for _name in (
    "mod", "rmod", "floordiv", "rfloordiv", "pow", "rpow", "divmod", "rdivmod", "index", "complex", "repr", "str",
    "format", "hash", "reduce", "reduce_ex", "iter", "len", "getitem", "and", "rand", "or", "ror", "xor", "rxor",
    "lshift", "rlshift", "rshift", "rrshift", "invert",
):  # fmt: skip
    setattr(Lazy, f"__{_name}__", refusing(f"calls __{_name}__ of a uniform number"))
for _name in ("float", "array"):
    setattr(Lazy, f"__{_name}__", refusing("asks for the digits of a uniform number"))


def _of_math(function: Any) -> Any:
    def call(value: Any, *base: Any) -> Any:
        return value.apply(function, (), base) if type(value) is Lazy else function(value, *base)

    return call


OF_MATH: Final = {function: _of_math(function) for function in _OF_MATH}
"""What stands in for functions of `math`."""


def pieces(answer: Callable[[int], Any], low: int, high: int) -> tuple[list[Any], list[int], tuple[Fraction, ...]]:
    """Return the answers of a monotone function in their order, where each begins, and their weights."""

    def checked(k: int) -> Any:
        value = answer(k)
        if value != value:
            raise Refusal("makes a NaN of a uniform number")
        return value

    values, bounds, begin, last = [], [low], low, checked(high - 1)
    while begin < high:
        value, width = checked(begin), 1
        if value == last and type(value) is type(last):
            end = high
            if begin < high - 1 and not all(checked(begin + (high - begin) * n // 8) == value for n in range(8)):
                raise Refusal("uses a function of a uniform number that is not monotone")
        else:
            while checked(min(begin + width, high - 1)) == value:
                width *= 2
            inside, end = begin + width // 2, min(begin + width, high - 1)
            while end - inside > 1:
                middle = (inside + end) // 2
                inside, end = (middle, end) if checked(middle) == value else (inside, middle)
            for k in range(max(begin, end - LIMITS.near), min(high, end + LIMITS.near)):
                if (checked(k) == value) != (k < end):
                    raise Refusal("uses a function of a uniform number that is not monotone at a breakpoint")
        values.append(value)
        bounds.append(end)
        begin = end
        if len(values) > LIMITS.pieces:
            raise Refusal(f"divides a uniform number into more than {LIMITS.pieces:,} values")
    return values, bounds, tuple(Fraction(b - a, high - low) for a, b in itertools.pairwise(bounds))
