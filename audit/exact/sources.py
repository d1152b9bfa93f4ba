"""The generators of an exact audit, which ask which outcome of a draw to return.

A draw has consecutive whole numbers as outcomes, with exact probabilities or lower bounds of them: what is missing to 1
belongs to the remainder. What each method of numpy draws is stated in the tables of the replay, and a real draw shows
its type, shape and errors. `random` and `secrets` are Python code over two methods, which is executed as it is.

Proof: docs/proofs/exact.md
"""

from __future__ import annotations

import gc
import inspect
import itertools
import math
import random
import secrets
import sys
import threading
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NoReturn, cast

import numpy as np

from ..replay import noise_primitive, recorded_run
from ..replay.distributions import Distribution
from ..replay.recorded_run import CHOOSING, GLOBAL_STATE, NUMPY_DRAWS
from ..replay.registered import Patch, imported_families, patched
from ..replay.tape import Tape, active_tape, recording_on, state_of
from . import uniform
from .uniform import LIMITS, OF_MATH, Lazy, Refusal, Uniform, is_generator, pieces, refusing

# The probabilities of outcomes.

_SERIES: Final[dict[str, Callable[..., tuple[int, Decimal, Callable[[int], Decimal]]]]] = {
    "geometric": lambda p: (1, p, lambda k: 1 - p),
    "poisson": lambda rate: (0, (-rate).exp(), lambda k: rate / (k + 1)),
    "binomial": lambda n, p: (0, (1 - p) ** n, lambda k: (n - k) / (k + 1) * p / (1 - p)),
    "two-sided geometric": lambda scale: (0, (1 - (r := (-1 / scale).exp())) / (1 + r), lambda k: r),
}
"""Distributions by an outcome, its probability, and the ratio of the probabilities k + 1 and k further on."""


@lru_cache(maxsize=1024)
def outcomes_of(name: str, *parameters: Any) -> tuple[int, tuple[Fraction, ...]]:
    """Return the first outcome of a distribution, and the probabilities of that and those after it, or lower bounds."""
    n, p = parameters[0], parameters[-1]
    try:
        if name == "integers":
            count = int(p) - int(n)
            if count > LIMITS.outcomes:
                raise Refusal(f"draws one of {count:,} outcomes, more than {LIMITS.outcomes:,}")
            return int(n), (Fraction(1, max(count, 0)),) * count
        if name == "discrete":
            return 0, _searched(parameters)
        if name == "binomial" and n in range(65) and 0 <= p <= 1:  # where fractions stay short
            p = Fraction(p)
            return 0, tuple(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1))
        return _summed(name, parameters)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Refusal(f"draws from {name}{parameters}, which is not a distribution") from error


def _searched(p: Sequence[float]) -> tuple[Fraction, ...]:
    """Return the probabilities with which numpy finds a uniform number in the cumulated ones."""
    if min(p) < 0 or not abs(math.fsum(p) - 1) < 1e-7:  # numpy itself allows 1.5e-8
        raise ValueError
    ends = (np.cumsum(p) / np.cumsum(p)[-1]).tolist()
    found, _, weights = pieces(lambda k: bisect(ends, k * 2.0**-53), 0, LIMITS.values)
    return tuple(dict(zip(found, weights, strict=True)).get(place, Fraction(0)) for place in range(len(ends)))


def _summed(name: str, parameters: Sequence[Any]) -> tuple[int, tuple[Fraction, ...]]:
    """Return a series until the rest is useless, rounded down: 20,000 terms err by less than 10⁻⁴⁰ with 80 digits."""
    sides = 1 + (name == "two-sided geometric")
    with localcontext() as context:
        context.prec = 80
        first, term, ratio = _SERIES[name](*map(Decimal, parameters))
        terms, rest, error = [term], 1 - term, Decimal(10) ** -40
        while term and rest > LIMITS.useless and len(terms) * sides < LIMITS.outcomes:
            term *= ratio(len(terms) - 1)
            terms.append(term)
            rest -= sides * term
        if min(terms) < 0 or rest < -error:
            raise ArithmeticError
        below = tuple(Fraction(math.floor(each * (1 - error) * 2**128), 2**128) for each in terms)
    return (first, below) if sides == 1 else (1 - len(below), (*below[:0:-1], *below))


def _rows(name: str, held: list[Any], shape: tuple[int, ...] | None) -> list[Any]:
    """Return the parameters of each of independent draws, but for a location."""
    if name == "discrete":
        return [np.asarray(held[0], dtype=float).tolist()] * math.prod(shape or ())
    held = held[1:] if name == "two-sided geometric" else held
    if shape is None:
        return [[np.asarray(each).item() for each in held]]
    return list(zip(*(np.broadcast_to(each, shape).ravel().tolist() for each in held), strict=True))


# The source of the draws of one execution.


class Stop(BaseException):
    """Ends an execution at a draw whose outcomes are explored later, or elsewhere."""


class Source:
    """Answers the draws of one execution: as prescribed, and then as `decide` says.

    `concrete` numbers, if given, are returned in place of lazy ones. A noise primitive takes it for the tape of a
    replay, and calls it with the distribution of its value.
    """

    def __init__(self) -> None:
        self.thread, self.is_running = threading.get_ident(), False
        self.has_drawn = self.is_late = False  # late: an execution was ended by the clock
        self.begin((), ())

    def begin(self, prefix: Sequence[int], weights: Sequence[Any], concrete: Iterator[int] | None = None) -> None:
        """Begin an execution whose first draws have these outcomes, and had these probabilities before."""
        self.prefix, self.expected, self.concrete = prefix, weights, concrete
        self.place = self.n_stops = self.n_drawn = 0
        self.is_stopped = False
        self.roots: list[Uniform] = []
        self.discrete: list[int] = []

    def exact_state(self) -> list[Any]:
        """Return nothing, as the state of a source is not one of the code."""
        return []

    def decide(self, values: Sequence[Any], weights: Sequence[Fraction], state: Sequence[Any]) -> int:
        """Return the outcome of the first draw that is not prescribed, or raise `Stop`."""
        raise NotImplementedError

    def stop(self) -> NoReturn:
        """End the execution; code that catches everything meets the end again at its next draw."""
        self.is_stopped = True
        self.n_stops += 1
        if self.n_stops > 1000:
            self._break_out()
        raise Stop

    def _break_out(self) -> NoReturn:
        """End code that catches everything at a line that no `try` protects, and the audit."""
        refusal = Refusal("catches every exception, the end of an execution included, and goes on drawing")

        def trace(frame: Any, event: str, _: Any) -> Any:
            if event == "line" and not is_tool(frame):
                raise refusal
            return trace

        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "call_here":
            frame.f_trace, frame = trace, frame.f_back  # type: ignore[assignment]
        sys.settrace(trace)
        raise refusal

    def pick(self, values: Sequence[Any], weights: Sequence[Fraction], *state: Any, always: bool = False) -> int:
        """Return the number of an outcome."""
        if not self.is_running or self.is_foreign():
            raise Refusal("draws in another thread, or after it has returned")
        if self.is_stopped:
            self.stop()
        self._count()
        if len(values) == 1 and weights[0] == 1 and not always:
            return 0
        place = self.place
        if place < len(self.prefix):
            before = self.expected[place]
            if before is not None and before is not weights and before != weights:
                raise Refusal("is not a function of its draws: executed again, it drew from another distribution")
            drawn = self.prefix[place]
        else:
            _refuse_nested()
            drawn = self.decide(values, weights, state)
        self.place += 1
        if not (state and type(state[0]) is Uniform):
            self.discrete.append(drawn)
        return drawn

    def _count(self) -> None:
        self.has_drawn, self.n_drawn = True, self.n_drawn + 1
        if self.n_drawn > LIMITS.draws:
            raise Refusal(f"draws more than {LIMITS.draws:,} times in one execution")

    def one(self, values: Sequence[Any], weights: Sequence[Fraction]) -> Any:
        """Return one of the values."""
        return values[self.pick(values, weights)]

    def among(self, count: int, *, is_lazy: bool = False) -> Any:
        """Return one of equally likely numbers from 0; of many, if it may be, one that is not looked at."""
        if is_lazy and count > LIMITS.outcomes:
            return self.uniform(count=count)
        return self.one(range(count), outcomes_of("integers", 0, count)[1])

    def uniform(self, kind: Any = float, count: int | None = None) -> Any:
        """Return a number in [0, 1), or below a count, that is not looked at; those of arrays are of numpy's kind."""
        self._count()
        root = Uniform(self, count)
        if self.concrete is not None:
            return (kind if count is None else int)(next(self.concrete) * root.unit)
        self.roots.append(root)
        return Lazy(root) if kind is float else Lazy(root).apply(kind)

    def draws(self, primitive: str, stated: Distribution, kind: Any, shape: tuple[int, ...] | None) -> Any:
        """Return a number of this type, or an array of this dtype and shape, of independent draws."""
        name, held, size = stated.name + stated.after, list(stated.parameters.values()), math.prod(shape or ())
        del stated
        drawn: list[Any] = []
        if name == "permutation" or (name == "choice without replacement" and held[1] is None):
            number = self.among(math.perm(int(held[0]), size))
            drawn += next(itertools.islice(itertools.permutations(range(int(held[0])), size), number, None))
        elif name not in ("integers", "discrete", *_SERIES) and (name != "uniform" or kind not in (float, np.float64)):
            raise Refusal(_NO_LIST.format(primitive))
        rows = [] if drawn else _rows(name, held, shape)
        while len(drawn) < size:
            if name == "uniform":
                low, high = map(float, rows[len(drawn)])
                number = self.uniform(float if shape is None else np.float64)
                drawn.append(number if (low, high) == (0, 1) else low + (high - low) * number)
            else:
                low, weights = outcomes_of(name, *rows[len(drawn)])
                drawn.append(self.one(range(low, low + len(weights)), weights))
        if shape is None:
            return drawn[0] if kind is float else kind(drawn[0])
        array = np.empty(size, object if any(type(each) is Lazy for each in drawn) else kind)
        for number, each in enumerate(drawn):  # a slice would convert numbers that are not looked at
            array[number] = each
        return array.reshape(shape)

    # What a noise primitive asks a tape.

    def call(self, primitive: str, distribution: Callable[[], Distribution], draw: Any, *_: Any) -> Any:
        """Return a draw from the distribution that a noise primitive states; its own, if that is from a given seed."""
        if _is_seeded(tuple(inspect.getclosurevars(draw).nonlocals.values())):
            return draw()
        stated = distribution()
        del distribution, draw, _  # which say nothing of the rest of the execution
        drawn = self.draws(primitive, stated, *((np.int64, stated.shape) if stated.shape else (int, None)))
        return drawn + stated.parameters.get("location", 0)

    def is_foreign(self) -> bool:
        """Whether another thread asks."""
        return self.thread != threading.get_ident()

    def note_unseen(self, what: str) -> NoReturn:
        raise Refusal(f"draws in a way that is not followed: {what}")

    def note_seed(self, seed: Any) -> None:
        if seed is not None and not isinstance(seed, _State):
            raise Refusal("seeds a generator, so that what it draws is not random")

    def drawn(self, source: Any, draw: Callable[[], Any]) -> Any:
        return draw()

    fresh_seed = unseen_inside = note_outside = refusing("draws by what a module kept of a replay that imported it")


def _is_seeded(value: Any, depth: int = 4) -> bool:
    """Whether a value holds a generator whose draws do not fork."""
    if is_generator(value):
        owner = getattr(value, "__self__", value)
        return not isinstance(owner, _State) and owner is not GLOBAL_STATE and owner is not _INSTANCE
    parts = value if isinstance(value, (tuple, list, dict)) else getattr(value, "__dict__", None) or ()
    held = parts.values() if isinstance(parts, dict) else parts
    return depth > 0 and any(_is_seeded(each, depth - 1) for each in held)


def _refuse_nested() -> None:
    """Refuse a draw of code that a draw calls back: what that draw still does would be no part of the state."""
    frame: Any = sys._getframe(1)
    was_tool = True
    while frame.f_code.co_name != "call_here":
        is_inner = is_tool(frame)
        if is_inner and not was_tool:
            raise Refusal("draws while a draw is carried out")
        was_tool, frame = is_inner, frame.f_back


def active() -> Source:
    """Return the source of the execution in progress."""
    return cast(Source, active_tape())


def drawing_from(source: Source) -> AbstractContextManager[None]:
    """Let the generators and the noise primitives ask this source."""
    return recording_on(cast(Tape, source))


# Generators whose draws fork.

_NO_LIST: Final = "draws from {}, which is continuous or not followed"


class _State:
    """Forking generators are alike, but for attributes that the code gives them; slots are not among these."""

    def exact_state(self) -> list[Any]:
        return [vars(self)] if getattr(self, "__dict__", None) else []

    def seed(self, seed: Any = None, *_: Any) -> None:
        Source.note_seed(self, seed)  # type: ignore[arg-type]

    @property
    def ordinary(self) -> Any:
        """The generator that this one is after the audit, if a module or a thread keeps it: the one it stands for."""
        if not hasattr(self, "_ordinary"):
            base = next(base for base, kind in reversed(_GENERATORS.items()) if isinstance(self, kind))
            self._ordinary = np.random.default_rng() if base is np.random.Generator else base()
        return self._ordinary

    @property
    def _bit_generator(self) -> Any:  # which `default_rng` takes from a RandomState
        if isinstance(active_tape(), Source):
            raise Refusal("reads the bit generator of a generator")
        return self.ordinary._bit_generator


def _in_audits(own: Any, name: str) -> Any:
    def call(self: Any, *args: Any, **named: Any) -> Any:
        is_auditing = isinstance(active_tape(), Source)
        return own(self, *args, **named) if is_auditing else getattr(self.ordinary, name)(*args, **named)

    return call


def _from_seed(make: Any, seed: Any) -> Any:
    """Return a generator with a seed, which draws the same in all executions."""
    if is_executing():
        active().has_drawn = True
    return make(seed)


class ForkingGenerator(_State, np.random.Generator):
    """A `Generator` whose draws fork."""

    __slots__ = ("_ordinary",)
    bit_generator = _State._bit_generator

    def __new__(cls) -> Any:
        return super().__new__(cls, np.random.PCG64(0))  # type: ignore[call-arg]

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))


class ForkingRandomState(_State, np.random.RandomState):  # type: ignore[override]
    """A `RandomState` whose draws fork."""

    __slots__ = ("_ordinary",)

    def __init__(self) -> None:
        super().__init__(0)


class _StandsFor(type):
    """Makes a class that a module may keep by name accept what the original accepts."""

    def __instancecheck__(cls, instance: object) -> bool:
        originals = tuple(each for each, kind in _GENERATORS.items() if kind is cls)
        return isinstance(instance, originals) or super().__instancecheck__(instance)


class ForkingRandom(_State, random.Random, metaclass=_StandsFor):
    """A generator of `random` or `secrets` whose draws fork; with a seed, one that does not."""

    __slots__ = ("_ordinary",)

    def __new__(cls, x: Any = None) -> Any:
        is_forking = x is None or not isinstance(active_tape(), Source) or issubclass(cls, ForkingSystemRandom)
        return super().__new__(cls) if is_forking else _from_seed(_RANDOM, x)

    def random(self) -> Any:
        return active().uniform()

    def getrandbits(self, k: int) -> Any:
        return active().among(1 << k, is_lazy=True)

    def _randbelow(self, n: int) -> Any:
        return active().among(n, is_lazy=True) if n else 0


class ForkingSystemRandom(ForkingRandom, random.SystemRandom):
    """The same of the operating system, which ignores a seed."""

    seed = random.SystemRandom.seed  # type: ignore[assignment]


class _Examples:
    """A tape for numpy's choices among places."""

    @staticmethod
    def call(name: str, distribution: Callable[[], Distribution], draw: Callable[[], Any], **_: Any) -> Any:
        return active().draws(name, distribution(), *_form(draw()))


def _form(real: Any) -> tuple[Any, tuple[int, ...] | None]:
    return (real.dtype, real.shape) if isinstance(real, np.ndarray) else (type(real), None)


def _numpy_method(real: Any, name: str) -> Any:
    def draw(self: Any, *args: Any, **named: Any) -> Any:
        if name == "random" and not (args or named):
            return active().uniform()  # by far the most frequent draw
        if (name == "random" and (len(args) > 1 or named.keys() - {"size"})) or not named.get("shuffle", len(args) < 6):
            raise Refusal(f"draws from {name} with options that are not followed")
        if name in CHOOSING:
            return CHOOSING[name](_Examples, type(real).__bases__[1], real, *args, **named)
        form = _form(getattr(real, name)(*args, **named))
        return active().draws(name, NUMPY_DRAWS[name](*args, **named), *form)

    return draw


_RANDOM: Final = random.Random
_PYTHON: Final = {"choice", "choices", "sample", "shuffle", "randrange", "randint", "uniform"}
"""Methods of `random` that are Python code over `random` and `_randbelow`."""
_GENERATORS: Final[dict[type, Any]] = {
    np.random.Generator: ForkingGenerator, np.random.RandomState: ForkingRandomState,
    random.Random: ForkingRandom,
}  # fmt: skip
for _base, _kind in _GENERATORS.items():
    _real = None if _kind is ForkingRandom else type("Real", (_State, _base), {})(np.random.MT19937(0))
    for _name in {name for name in dir(_base) if not name.startswith("_")} - vars(_kind).keys() - {"seed"}:
        if _real is not None and _name in {*NUMPY_DRAWS, *CHOOSING}:
            setattr(_kind, _name, _numpy_method(_real, _name))
        elif _real is not None or _name not in _PYTHON:
            setattr(_kind, _name, refusing(_NO_LIST.format(_name)))
    _kind.__reduce__ = refusing("copies a generator, which then draws the same")
    for _name in {"seed", *vars(_kind)} - {"__new__", "__init__"}:
        if inspect.isfunction(_own := getattr(_kind, _name)):
            setattr(_kind, _name, _in_audits(_own, _name))
_GENERATORS[random.SystemRandom] = ForkingSystemRandom


# What takes their places.

_REFUSED: Final = {
    "os": "urandom getrandom times",  # with which others seed themselves
    "ssl": "RAND_bytes",
    "_ssl": "RAND_bytes",
    "time": "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns thread_time "
    "thread_time_ns clock_gettime clock_gettime_ns localtime gmtime ctime asctime strftime",
    "uuid": "uuid1",
}
_FOLLOWED: Final = {"numpy", "random", "diffprivlib"}
"""Families of noise primitives whose own code is executed."""


class StandIns:
    """What takes the place of generators, of functions that draw, of `math` and of clocks, while an audit executes."""

    def __init__(self) -> None:
        real = np.random.default_rng
        instead: list[tuple[Any, Any]] = [
            (real, lambda seed=None: ForkingGenerator() if seed is None else _from_seed(real, seed)),
            (random.Random, ForkingRandom),
            (random.SystemRandom, ForkingSystemRandom),
            *OF_MATH.items(),
        ]
        refused = {sys.modules[name]: names for name, names in _REFUSED.items() if name in sys.modules}
        for module, names in refused.items():
            for name in filter(vars(module).__contains__, names.split()):
                instead.append((vars(module)[name], _refused(vars(module)[name], f"{module.__name__}.{name}")))
        families = imported_families(but=_FOLLOWED)
        self.patches = [patch for family in families for patch in family.patches()]
        instead += [(getattr(each.owner, each.name), each.replacement) for each in self.patches]  # some have no hash
        self._made = {id(each): (each, made) for each, made in instead}  # kept, or their ids are used again
        self._made[id(np.random.seed)] = np.random.seed, self.of(GLOBAL_STATE).seed
        self.patches.append(Patch(_RANDOM, "seed", _refused(_RANDOM.seed, "random.Random")))
        modules = [np.random, random, secrets, math, *refused]
        if "scipy.stats" in sys.modules:  # which keeps the global state that it finds when it is imported
            modules.append(np.random.mtrand)
        for module in modules:
            for name, value in vars(module).items():
                if (made := self.of(value)) is not value:
                    self.patches.append(Patch(module, name, made))

    def of(self, value: Any) -> Any:
        """Return what takes the place of a value; itself if nothing does."""
        if id(value) in self._made:
            return self._made[id(value)][1]
        if not is_generator(value) or isinstance(owner := getattr(value, "__self__", value), _State):
            return value
        if owner is not value:  # one object for one method, as the world is explored until it has no new ones
            self._made[id(value)] = value, getattr(self.of(owner), value.__name__)
            return self._made[id(value)][1]
        if type(value) not in _GENERATORS:  # a bit generator, or a class with other methods
            raise Refusal(f"draws from a {type(value).__qualname__}, which is not followed")
        self._made[id(value)] = value, (made := _GENERATORS[type(value)]())
        made._ordinary = value
        return made

    @contextmanager
    def in_place(self, source: Source, *, hides: bool) -> Iterator[None]:
        """Put them in place; raise a `Refusal` if a generator was drawn from in another way.

        Code that `hides` what it reaches, for example by `globals()`, may draw from any generator that exists.
        """
        watched = [GLOBAL_STATE, _INSTANCE]
        if hides:
            own = vars(source).values()  # the paths of checks are drawn with one
            kinds, stateless = tuple(_GENERATORS), (_State, random.SystemRandom)
            found = (each for each in gc.get_objects() if issubclass(type(each), kinds))
            watched += [each for each in found if not issubclass(type(each), stateless) and each not in own]
        before = list(map(state_of, watched))
        with drawing_from(source), patched(self.patches):
            yield
        for each, state in zip(watched, before, strict=True):
            if state_of(each) != state:
                where = "global generator" if each in watched[:2] else type(each).__qualname__
                raise Refusal(f"draws from a {where} in a way that is not followed")


def is_executing() -> bool:
    """Whether this thread executes audited code."""
    source: Any = active_tape()
    return isinstance(source, Source) and source.is_running and not source.is_foreign()


def _refused(original: Any, name: str) -> Any:
    """Return what refuses the audited code, but not with a given seed or time; others are served as before."""

    def function(*arguments: Any, **named: Any) -> Any:
        if is_executing() and all(each is None for each in (*arguments[1:], *named.values())):
            raise Refusal(f"reads the clock or the entropy of the system ({name})")
        return original(*arguments, **named)

    return function


def refuse_now(frame: Any, event: str, function: Any) -> None:
    """Refuse, as a profiler, the one clock that cannot be replaced: `datetime.now` belongs to a class of C."""
    owner = getattr(function, "__self__", None)
    if event == "c_call" and function.__name__ in NOW and isinstance(owner, type) and issubclass(owner, datetime):
        raise Refusal(f"reads the clock or the entropy of the system (datetime.{function.__name__})")


NOW: Final = {"now", "utcnow"}


def is_tool(frame: Any) -> bool:
    """Whether a frame belongs to a draw, to a lazy number or to what stands in for `math`."""
    return id(frame.f_globals) in _TOOLS or id(frame.f_code) in _TOOLS


_INSTANCE: Final = vars(random)["_inst"]
_TOOLS: Final = {
    *map(id, (globals(), vars(uniform), vars(recorded_run), vars(noise_primitive))),
    # code of the standard library that keeps its state in its locals while it draws
    *(id(getattr(_RANDOM, name).__code__) for name in _PYTHON - {"choices"}),
    id(secrets.randbelow.__code__),
}
