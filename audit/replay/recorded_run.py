"""Runs of a mechanism on a tape: recorded, with values put back, or with some of them changed.

The noise primitives of numpy, `random` and scipy.stats have recording versions, which draw what the originals do. What
chooses or orders records places instead of values, so that on y the places of x are taken from y's own values. Methods
that are not named here are recorded by what they draw inside.
"""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import math
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, islice
from typing import Any, Final, NamedTuple, cast

import numpy as np

from ..clock import now
from ..datasets.contents import Kept, NotCopied, kept, same_output
from ..errors import AuditError, MechanismError
from ..events.named_parts import refusal, refuse_unevaluated
from ..events.outputs import Raised
from ..floating_point_errors import under
from ..printing import counted
from ..sampling.sampler import Sampler
from .distributions import OF_SCIPY, PARAMETERS, Distribution, RowMatch, copied, shape_of
from .registered import Patch, PrimitiveFamily, imported_families, patched, register_primitives
from .tape import (
    ENTROPY,
    IS_UNUSED,
    OTHER_THREAD,
    UNSEEDED,
    Drawn,
    Line,
    Streams,
    Tape,
    active_tape,
    comparable,
    drawn_from,
    recording_on,
    state_of,
    tape_of_thread,
)

_GENERATOR: Final = np.random.Generator
_RANDOM_STATE: Final = np.random.RandomState
GLOBAL_STATE: Final = np.random.mtrand._rand
"""The global state of the process, from which other threads draw while a run is recorded."""
_STANDS_FOR_GLOBAL: Final = "stands_for_global"
_GLOBAL: Final = UNSEEDED - 1
"""First number of the spawn key of the global state; that of unseeded generators is the next one."""


# The table of what is recorded with its distribution: from the arguments of each method, which a lambda binds.


def _of(name: str, size: Any = None, out: Any = None, **parameters: Any) -> Distribution:
    return Distribution(name, parameters, shape_of(size, *parameters.values()) if out is None else tuple(out.shape))


def _about(name: str) -> Callable[..., Distribution]:
    return lambda loc=0.0, scale=1.0, size=None: _of(name, size, location=loc, scale=scale)


def _below(low: Any, high: Any = None, size: Any = None, dtype: Any = None, endpoint: bool = False) -> Distribution:
    low, high = (0, low) if high is None else (low, high)
    return _of("integers", size, low=low, high=np.add(high, 1) if endpoint else high)


def _randrange(start: int, stop: int | None = None, step: int = 1) -> Distribution:
    low, high = (0, start) if stop is None else (start, stop)
    return _of("integers", low=low, high=high) if step == 1 else _of("randrange", low=low, high=high, step=step)


NUMPY_DRAWS: Final[dict[str, Callable[..., Distribution]]] = {
    **{name: _about(name) for name in ("laplace", "normal", "logistic", "gumbel")},
    "standard_normal": lambda size=None, dtype=None, out=None: _of("normal", size, out, location=0.0, scale=1.0),
    "randn": lambda *size: _of("normal", size, location=0.0, scale=1.0),
    "exponential": lambda scale=1.0, size=None: _of("exponential", size, scale=scale),
    "standard_exponential": lambda size=None, dtype=None, method="", out=None: _of("exponential", size, out, scale=1.0),
    "uniform": lambda low=0.0, high=1.0, size=None: _of("uniform", size, low=low, high=high),
    "random": lambda size=None, dtype=None, out=None: _of("uniform", size, out, low=0.0, high=1.0),
    "random_sample": lambda size=None: _of("uniform", size, low=0.0, high=1.0),
    "rand": lambda *size: _of("uniform", size, low=0.0, high=1.0),
    "geometric": lambda p, size=None: _of("geometric", size, p=p),
    "poisson": lambda lam=1.0, size=None: _of("poisson", size, rate=lam),
    "binomial": lambda n, p, size=None: _of("binomial", size, n=n, p=p),
    "integers": _below,
    "randint": _below,
}
_PYTHON: Final[dict[str, Callable[..., Distribution]]] = {
    "random": lambda: _of("uniform", low=0.0, high=1.0),
    "uniform": lambda a, b: _of("uniform", low=min(a, b), high=max(a, b)),
    "gauss": lambda mu=0.0, sigma=1.0: _of("normal", location=mu, scale=sigma),
    "normalvariate": lambda mu=0.0, sigma=1.0: _of("normal", location=mu, scale=sigma),
    "expovariate": lambda lambd=1.0: _of("exponential", scale=1.0 / lambd),
    "randrange": _randrange,
    "randint": lambda a, b: _of("integers", low=a, high=b + 1),
    "getrandbits": lambda k: _of("bits", number=k),
}
"""The distribution of each method; another library adds its table, and patches that `_recorded` makes of it."""


def _arguments(method: str, /, *args: Any, **kwargs: Any) -> Distribution:
    """Return what is recorded of every other method of numpy: its arguments."""
    return Distribution(method, {f"argument {i}": each for i, each in enumerate(args)} | kwargs)


def _function(original: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does `own` with the tape while its thread is recorded, and what it stands for else."""

    def call(*args: Any, **kwargs: Any) -> Any:
        tape = tape_of_thread()
        return original(*args, **kwargs) if tape is None else own(tape, *args, **kwargs)

    return call


def _method(kind: type, name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """The same of a method, in all threads but those that draw from the state that stands for the global one."""
    original = getattr(kind, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self, _STANDS_FOR_GLOBAL, False):  # which the code may have kept of an earlier run or replay
            state = GLOBAL_STATE if tape_of_thread() is None else np.random.mtrand._rand
            if state is not self:
                return getattr(state, name)(*args, **kwargs)
        tape = active_tape()
        return original(self, *args, **kwargs) if tape is None else own(tape, self, *args, **kwargs)

    call.__name__, call.__doc__ = name, f"Record what `{name}` of `{kind.__name__}` draws."
    return call


def _recorded(kind: type, name: str, distribution: Callable[..., Distribution]) -> Callable[..., Any]:
    """Return a method whose draws are recorded with the distribution of its arguments."""
    original, names = getattr(kind, name), inspect.signature(distribution).parameters

    def draw(tape: Tape, self: Any, *args: Any, **kwargs: Any) -> Any:
        held, named = copied(args), copied(kwargs)  # the caller may change them later
        found = tape.call(
            f"{kind.__name__}.{name}",
            lambda: distribution(*args, **kwargs),
            lambda: drawn_from(self, lambda: original(self, *held, **named)),
        )
        out = {**dict(zip(names, args, strict=False)), **kwargs}.get("out")
        if out is not None and found is not out:
            out[...] = found
            return out
        return found

    return _method(kind, name, draw)


def _choosing(kind: type, name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that records what `own` does with the tape; within other primitives it is numpy's or Python's."""
    original = getattr(kind, name)

    def choose(tape: Tape, self: Any, *args: Any, **kwargs: Any) -> Any:
        if tape.passes():
            return drawn_from(self, lambda: original(self, *args, **kwargs))
        return own(tape, kind, self, *args, **kwargs)

    return _method(kind, name, choose)


def _places(
    tape: Tape, source: Any, primitive: str, distribution: Distribution, draw: Callable[[], Any], n: int
) -> Any:
    """Return recorded places 0 … n − 1 that a generator draws."""
    return tape.call(
        primitive,
        lambda: distribution,
        lambda: drawn_from(source, draw),
        can_return=lambda places: bool(np.all(np.asarray(places) < n)),
    )


def _of_module(original: Callable[..., Any], state: Callable[[], Any], method: str) -> Callable[..., Any]:
    """Return a module function that draws from the state of whichever run calls it."""
    return _function(original, lambda tape, *args, **kwargs: getattr(state(), method)(*args, **kwargs))


# numpy: classes whose draws are recorded.


def _choice(
    tape: Tape,
    base: Any,
    self: Any,
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    shuffle: bool = True,
) -> Any:
    values = None if isinstance(a, (int, np.integer)) else np.asarray(a)
    n = int(a) if values is None else values.shape[axis] if values.ndim else int(values)
    shape = shape_of(size)
    if not replace and shape not in ((), (1,)):
        distribution = Distribution("choice without replacement", {"n": n, "p": p}, shape)
    elif p is None:
        distribution = _of("integers", shape, low=0, high=n)
    else:
        distribution = Distribution("discrete", {"probabilities": np.array(p, dtype=np.float64)}, shape)
    name, rest = f"{base.__name__}.choice", {"shuffle": shuffle} if base is _GENERATOR else {}
    places = _places(tape, self, name, distribution, lambda: base.choice(self, n, size, replace, p, **rest), n)
    return places if values is None or not values.ndim else values.take(places, axis=axis)


def _order(tape: Tape, base: Any, self: Any, n: int, method: str) -> Any:
    distribution = Distribution("permutation", {"n": n}, (n,))
    return _places(tape, self, f"{base.__name__}.{method}", distribution, lambda: base.permutation(self, n), n)


def _permutation(tape: Tape, base: Any, self: Any, x: Any, axis: int = 0) -> Any:
    values = None if isinstance(x, (int, np.integer)) else np.asarray(x)
    places = _order(tape, base, self, int(x) if values is None else values.shape[axis], "permutation")
    return places if values is None else values.take(places, axis=axis)


def _shuffle(tape: Tape, base: Any, self: Any, x: Any, axis: int = 0) -> None:
    if isinstance(x, np.ndarray):
        x[...] = x.take(_order(tape, base, self, x.shape[axis], "shuffle"), axis=axis)
    elif axis:
        base.shuffle(self, x, axis)  # which raises
    else:
        for place, each in enumerate([x[int(place)] for place in _order(tape, base, self, len(x), "shuffle")]):
            x[place] = each


CHOOSING: Final[dict[str, Any]] = {"choice": _choice, "permutation": _permutation, "shuffle": _shuffle}
_NOT_DRAWS: Final = frozenset({"bit_generator", "spawn", "seed", "get_state", "set_state", "permuted", *CHOOSING})


class _StandsFor(type):
    """Makes a recording class accept every instance of numpy's class, and other threads create numpy's own."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if tape is None:
            return super().__call__(*args, **kwargs)
        if tape.is_foreign():
            tape.note_unseen(OTHER_THREAD)
            return cls.__mro__[1](*args, **kwargs)
        given = args[0] if args else kwargs.get("seed", kwargs.get("bit_generator"))
        if cls.__mro__[1] is _RANDOM_STATE:
            tape.note_seed(given)
        with tape.unseen_inside():
            made = super().__call__(*args, **kwargs)
        tape.note_made(made, is_fresh=given is None)
        return made


def _recording_class(base: Any) -> Any:
    draws = [name for name in dir(base) if not name.startswith("_") and name not in _NOT_DRAWS]
    methods: dict[str, Any] = {name: _choosing(base, name, own) for name, own in CHOOSING.items()}
    for name in draws:
        if callable(getattr(base, name)):
            methods[name] = _recorded(base, name, NUMPY_DRAWS.get(name) or functools.partial(_arguments, name))

    def reduced(tape: Tape, self: Any) -> Any:
        tape.note_unseen("a generator is copied or sent to another process")
        return base.__reduce__(self)

    methods["__reduce__"] = _method(base, "__reduce__", reduced)
    if base is _GENERATOR:
        methods["__deepcopy__"] = _deep_copy
    else:
        methods["seed"] = _method(base, "seed", _seeded_state)
        methods["__getattribute__"] = _noticed
    doc = f"numpy's `{base.__name__}`, whose draws are recorded."
    return _StandsFor(base.__name__, (base,), {"__module__": __name__, "__doc__": doc, **methods})


def _deep_copy(self: Any, memo: dict[int, Any]) -> Any:
    """Return a recording generator that goes on from the same state."""
    tape = active_tape()
    with nullcontext() if tape is None else tape.unseen_inside():  # numpy seeds the copy before it sets its state
        return RecordingGenerator(copy.deepcopy(self.bit_generator, memo))


def _noticed(self: Any, name: str) -> Any:
    """Return an attribute, and note that the state is used: nothing draws from it, in C either, without asking."""
    object.__setattr__(self, IS_UNUSED, False)
    return object.__getattribute__(self, name)


def _seeded_state(tape: Tape, self: Any, seed: Any = None) -> None:
    tape.note_seed(seed)
    with tape.unseen_inside():
        _RANDOM_STATE.seed(self, seed)
    if seed is None:
        tape.note_made(self, is_fresh=True)


RecordingGenerator: Final = _recording_class(_GENERATOR)
RecordingRandomState: Final = _recording_class(_RANDOM_STATE)


def _default_rng(original: Callable[..., np.random.Generator], tape: Tape, seed: Any = None) -> np.random.Generator:
    if type(seed) is not RecordingGenerator:
        tape.note_seed(seed)
        seed = RecordingGenerator(original(tape.fresh_seed() if seed is None else seed).bit_generator)
    return cast(np.random.Generator, seed)


_LAST: Final[dict[int, Any]] = {}
"""The state of the last run, by its entropy: a new one takes as long as the rest of a short run."""


def _numpy_states(entropy: int) -> Iterator[Patch]:
    """Yield the state from which the module functions draw in a run, in place of the global one."""
    state = _LAST.pop(entropy, None)
    if state is None or not object.__getattribute__(state, IS_UNUSED):
        sequence = np.random.SeedSequence(entropy, spawn_key=(_GLOBAL,))
        state = RecordingRandomState(np.random.MT19937(sequence))
        setattr(state, _STANDS_FOR_GLOBAL, True)
    _LAST.clear()
    _LAST[entropy] = state
    object.__setattr__(state, IS_UNUSED, True)
    yield Patch(np.random.mtrand, "_rand", state)


def _numpy_patches() -> Iterator[Patch]:
    yield Patch(np.random, "Generator", RecordingGenerator)
    yield Patch(np.random, "RandomState", RecordingRandomState)
    make = np.random.default_rng  # which a test may have replaced
    yield Patch(np.random, "default_rng", _function(make, functools.partial(_default_rng, make)))
    methods = {name: name for name in dir(_RANDOM_STATE) if not name.startswith("_")}
    for name, method in (methods | {"ranf": "random_sample", "sample": "random_sample"}).items():
        if not callable(getattr(np.random, name, None)):
            continue
        yield Patch(np.random, name, _of_module(getattr(np.random, name), lambda: np.random.mtrand._rand, method))


# The standard library's random.


def _random_choice(tape: Tape, _: type, self: random.Random, seq: Sequence[Any]) -> Any:
    n, draw = len(seq), random.Random.choice
    return seq[_places(tape, self, "Random.choice", _of("integers", low=0, high=n), lambda: draw(self, range(n)), n)]


def _random_choices(
    tape: Tape, _: type, self: random.Random, population: Sequence[Any], weights: Any = None, *, k: int = 1, **more: Any
) -> list[Any]:
    n, draw, summed = len(population), random.Random.choices, more.get("cum_weights")
    if weights is None and summed is None:
        distribution = _of("integers", k, low=0, high=n)
    else:
        held = np.diff(summed, prepend=0.0) if summed is not None else np.asarray(weights, np.float64)
        distribution = Distribution("discrete", {"probabilities": held / held.sum()}, (k,))
    places = _places(tape, self, "Random.choices", distribution, lambda: draw(self, range(n), weights, k=k, **more), n)
    return [population[place] for place in places]


def _seeded_random(
    original: Callable[..., None], tape: Tape, self: random.Random, a: Any = None, version: int = 2
) -> None:
    tape.note_seed(a)
    original(self, a, version)
    if a is None or tape.streams.was_read(a):
        tape.note_made(self, is_fresh=True)


def _random_patches() -> Iterator[Patch]:
    module = vars(random)
    functions = [name for name, value in module.items() if getattr(value, "__self__", None) is module["_inst"]]
    for kind in (random.Random, random.SystemRandom):
        for name, distribution in _PYTHON.items():
            if kind is random.Random or name in vars(kind):
                yield Patch(kind, name, _recorded(kind, name, distribution))
    seeded = functools.partial(_seeded_random, random.Random.seed)
    yield Patch(random.Random, "seed", _method(random.Random, "seed", seeded))
    yield Patch(random.Random, "choice", _choosing(random.Random, "choice", _random_choice))
    yield Patch(random.Random, "choices", _choosing(random.Random, "choices", _random_choices))
    for name in functions:
        yield Patch(random, name, _of_module(getattr(random, name), lambda: random._inst, name))


# scipy.stats: `rvs` of its distributions, which draws from numpy.


def _scipy_distribution(dist: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Distribution:
    held, loc, scale, size = dist._parse_args_rvs(*args, **kwargs)
    shape = shape_of(size, *held, loc, scale)
    name = OF_SCIPY.get(dist.name)
    if name == "uniform":
        return Distribution(name, {"low": loc, "high": np.add(loc, scale)}, shape)
    if name is not None and "location" in PARAMETERS[name]:
        scale = 1.0 / np.asarray(held[0]) if dist.name == "dlaplace" else scale
        return Distribution(name, {"location": loc, "scale": scale}, shape)
    if name is not None and not np.any(loc):
        return Distribution(name, dict(zip(PARAMETERS[name], (*held, scale), strict=False)), shape)
    values = {f"argument {i}": each for i, each in enumerate(held)}
    return Distribution(f"scipy.stats.{dist.name}", {**values, "loc": loc, "scale": scale}, shape)


def _scipy_patches() -> Iterator[Patch]:
    from scipy import stats  # takes a second; asked for only where it is imported already

    kinds = dict.fromkeys((*stats.rv_continuous.__mro__, *stats.rv_discrete.__mro__))
    yield from (Patch(kind, "rvs", _rvs(kind)) for kind in kinds if "rvs" in vars(kind))


def _rvs(kind: type) -> Callable[..., Any]:
    original = vars(kind)["rvs"]

    def rvs(tape: Tape, self: Any, *args: Any, **kwargs: Any) -> Any:
        stated = {name: value for name, value in kwargs.items() if name != "random_state"}
        given = kwargs.get("random_state")
        tape.note_seed(given)
        if given is None and self._random_state is GLOBAL_STATE:  # scipy holds what numpy had when it was imported
            kwargs["random_state"] = np.random.mtrand._rand
        held, named = copied(args), {**kwargs, **copied(stated)}  # the caller may change them later

        def draw() -> Any:
            source = self._random_state if named.get("random_state") is None else named["random_state"]
            is_stream = isinstance(source, (np.random.Generator, np.random.RandomState))
            drawn = functools.partial(original, self, *held, **named)
            return drawn_from(source, drawn) if is_stream else drawn()

        return tape.call(f"scipy.stats.{self.name}.rvs", lambda: _scipy_distribution(self, held, stated), draw)

    return _function(original, rvs)


# What is random outside of Python's generators: entropy, and other processes.

_PROCESS: Final = "another process is started"


def outside_patches() -> Iterator[Patch]:
    """Yield the patches that notice entropy of the operating system and processes that are started."""
    yield Patch(os, "urandom", _noted(os.urandom, ENTROPY))
    yield Patch(random, "_urandom", _noted(vars(random)["_urandom"], ENTROPY))
    yield Patch(subprocess.Popen, "__init__", _noted(subprocess.Popen.__init__, _PROCESS))
    if hasattr(os, "fork"):
        yield Patch(os, "fork", _noted(os.fork, _PROCESS))


def _noted(original: Callable[..., Any], what: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if tape is not None and not (what is ENTROPY and _is_for_a_name()):
            tape.note_outside(what)
        found = original(*args, **kwargs)
        if tape is not None and what is ENTROPY:
            tape.streams.note_read(found)
        return found

    return call


def _is_for_a_name() -> bool:
    """Whether a library asks for entropy that names its temporary folders."""
    frame, asking = sys._getframe(2), ""
    while frame is not None:
        asking = frame.f_globals.get("__name__", "").split(".")[0]
        if asking not in ("uuid", "random", "os", "secrets", "tempfile"):
            break
        frame = frame.f_back  # type: ignore[assignment]
    return asking in ("joblib", "multiprocessing")


register_primitives("numpy", "numpy.random", _numpy_patches, _numpy_states)
register_primitives(
    "random", "random", _random_patches, lambda entropy: [Patch(random, "_inst", random.Random(entropy))]
)
register_primitives("scipy", "scipy.stats", _scipy_patches)


# Runs.

REPEATS: Final = 8
"""Runs on each dataset with its own values put back: a fair coin that is not recorded is missed with 2**-16."""
_OTHERWISE: Final = "something else is random, or is kept between runs"
_DRAWN: Final = (
    "a generator is drawn from in a way that is not recorded, such as dropout of torch, or one of numpy that was made "
    "before the replay; make it inside the mechanism, or take it as the parameter rng"
)
_CHEAP: Final = 0.2  # seconds for a copy of a dataset
_PYTHON_STATE: Final = random._inst
_OF_RUNS: Final = int.from_bytes(b"replay", "big")
_HELD: Final = next(sys.getrefcount(made) for made in [object()])
"""References to a generator that nothing holds after its run: the tape's list, a loop variable, and the argument, which
Python 3.14 and newer do not count."""


class DatasetChangedError(MechanismError):
    """The mechanism changes its dataset, which cannot be copied for each run."""


class NoiseLostError(Exception):
    """A run uses noise that is followed in another way than to add it once; where, if that is known."""

    def __init__(self, lines: frozenset[Line] = frozenset()) -> None:
        super().__init__()
        self.lines = lines


@dataclass(frozen=True, slots=True, eq=False)
class RecordedRun:
    """A run with its tape and a copy of its output; `error` is the exception that it raised."""

    tape: Tape
    output: Any
    error: Exception | None = None

    @property
    def end(self) -> str:
        """How the run ended, as a verb."""
        return "returns" if self.error is None else str(self.output)

    def is_on_path_of(self, first: RecordedRun) -> bool:
        """Whether the run made the calls of another one, to the end."""
        return self.tape.parted_at is None and len(self.tape.calls) == len(first.tape.calls)


class Unrecorded(NamedTuple):
    """Why the recorded values do not determine a run, and whether what the primitives are given varies as well."""

    reason: str
    is_in_calls: bool


class Runner:
    """Runs a mechanism, with the same generator each time, on copies of its datasets, and counts the runs."""

    def __init__(
        self,
        sampler: Sampler,
        seed: int,
        *,
        follows: bool = True,
        unfollowed: frozenset[Line] | None = None,
        seconds: float | None = None,
        rows: RowMatch | None = None,
        y: Any = None,
        but: Container[str] = (),
    ) -> None:
        self._limit, self._end = seconds, math.inf if seconds is None else now() + seconds
        self.sampler, self.seed = sampler, seed
        self._follows = follows  # whether it is asked where the random numbers come from, and what is not recorded
        self._unfollowed, self._rows, self._y = unfollowed, rows, y
        self._but = but  # families that are not recorded
        self.runs = 0
        self.changes_datasets = False
        self._copies = True
        self.streams = Streams()
        self._patches: ExitStack | None = None  # while runs may record
        self._patched: list[PrimitiveFamily] = []
        self._left: list[Any] = []
        self._lasting: list[Any] = []

    @contextmanager
    def patching(self) -> Iterator[None]:
        """Let runs record; patches stay in place between them, as they would take most of a short run's time."""
        try:
            with ExitStack() as self._patches:
                self._patches.enter_context(patched(outside_patches()))
                yield
        finally:
            self._patches = None
            self._patched = []
            for source in self._left:  # a program that keeps one takes its numbers for those of the operating system
                _seed_again(source)
            self._left = []

    def run(
        self,
        dataset: Any,
        put_back: Sequence[Drawn] | None = None,
        changed: Mapping[int, Any] | None = None,
        *,
        seed: int | None = None,
    ) -> RecordedRun:
        """Run the mechanism once, again if that imported what has primitives or draws; `seed` is for other draws."""
        if self._patches is None:
            raise RuntimeError("a run records only inside patching()")
        if now() > self._end:
            told = f"the replay of {self.sampler.name} took longer than seconds={self._limit:.3g}; allow more seconds."
            raise MechanismError(told, mechanism=self.sampler.name, seconds=self._limit)
        seed = self.seed if seed is None else seed
        while True:
            given, is_copy = self._given(dataset)
            families, entropy = imported_families(self._but), entropy_of(seed)
            follows = self._follows and (put_back is None or not changed)  # at other values, only outputs are compared
            tape = Tape(
                put_back, changed, entropy=entropy, streams=self.streams, follows=follows,
                unfollowed=self._unfollowed, rows=self._rows, on_y=dataset is self._y,
            )  # fmt: skip
            self.runs += 1
            modules = set(sys.modules)
            with ExitStack() as undone:
                undone.callback(self._note_left, tape)
                for family in families:
                    if family not in self._patched:
                        self._patches.enter_context(patched(family.patches()))
                        self._patched.append(family)
                self._put_states(families, tape, entropy, undone)
                undone.enter_context(recording_on(tape))
                undone.enter_context(under(self.sampler.answers))
                before = Kept(given)
                output, error = self._output(given, tape, entropy)
            self._check(before, is_copy)
            if lost := tape.lost_noise:
                raise NoiseLostError(frozenset(lost))
            new = {getattr(sys.modules.get(name), "__file__", None) for name in sys.modules.keys() - modules}
            draws = any(call.place.file in new for call in tape.calls)  # as sympy does when it is imported
            if len(imported_families(self._but)) == len(families) and not draws:
                return RecordedRun(tape, kept(output), error)
            self.streams = Streams()  # which the next run begins again

    def _note_left(self, tape: Tape) -> None:
        """Note the generators that something holds after their run, also if an error ended it."""
        kept_on = (made for made in islice(tape.made, 1, None) if sys.getrefcount(made) > _HELD)
        self._left += [made for made in kept_on if not any(made is lasting for lasting in self._lasting)]

    def _put_states(self, families: Sequence[PrimitiveFamily], tape: Tape, entropy: int, undone: ExitStack) -> None:
        """Put generators of the run in the place of the global ones."""
        patches = [patch for family in families for patch in family.states(entropy)]
        undone.enter_context(patched(patches))
        self._lasting = [patch.replacement for patch in patches if patch.lasts]
        for patch in patches:
            tape.note_made(patch.replacement, is_fresh=True)

    def drawn(self, draw: Callable[[], Any], seed: int) -> Any:
        """Return what a recorded call draws when it is made again, with nothing recorded."""
        entropy = entropy_of(seed)
        tape = Tape((), entropy=entropy, streams=self.streams, follows=False)
        with ExitStack() as undone:
            undone.callback(self._note_left, tape)
            self._put_states(imported_families(self._but), tape, entropy, undone)
            undone.enter_context(recording_on(tape))
            undone.enter_context(tape.unseen_inside())
            return kept(draw())

    def _given(self, dataset: Any) -> tuple[Any, bool]:
        """Return a copy of the dataset, or the dataset itself if it cannot be copied at little cost."""
        if self._copies:
            start = now()
            try:
                return copy.deepcopy(dataset), True
            except Exception:  # an object's own copying may raise anything
                self._copies = False
            finally:
                self._copies &= now() - start < _CHEAP
        return dataset, False

    def _check(self, before: Kept, is_copy: bool) -> None:
        is_used_up = hasattr(before.dataset, "__next__")
        is_changed = is_used_up or before.has_changed()
        self.changes_datasets |= is_changed and not is_used_up
        if is_changed and not is_copy:
            told = "changes or uses up its dataset, which cannot be copied for each run; let it work on a copy."
            raise DatasetChangedError(f"{self.sampler.name} {told}", mechanism=self.sampler.name)

    def _output(self, dataset: Any, tape: Tape, entropy: int) -> tuple[Any, Exception | None]:
        rng, start = RecordingGenerator(np.random.PCG64(entropy)), _states() if tape.follows else []
        try:
            if self.sampler.is_block:
                block = self.sampler.call(dataset, 1, rng)
                refuse_unevaluated(block, self.sampler.name, 1)
                return _only_run(block, self.sampler.name), None
            output = self.sampler.call(dataset, rng)
            refuse_unevaluated(output, self.sampler.name)
            return output, None
        except AuditError:  # not an output of the mechanism
            raise
        except Exception as error:
            return Raised(type(error).__qualname__), error
        finally:
            if tape.follows and not tape.seeds:
                strayed = (made for made in tape.made if not self.streams.is_known(made))
                if start != _states() or any(strayed):
                    tape.note_unseen(_DRAWN)

    def unrecorded(self, dataset: Any, first: RecordedRun, repeats: int, *, looks_around: bool = False) -> Unrecorded:
        """Return why the recorded values do not determine the run; with `looks_around` it asks all generators."""
        reason, unseen = "", +Counter(first.tape.unseen)  # without counts of 0
        for number in range(repeats):
            before = _older_generators() if looks_around and number == 0 else {}
            again = self.run(dataset, first.tape.calls, seed=other_seed(self.seed, number))
            unseen |= again.tape.unseen
            is_on_path, pairs = again.is_on_path_of(first), zip(first.tape.calls, again.tape.calls, strict=False)
            if is_on_path and any(comparable(made.state) != state for made, state in before.items()):
                unseen[_DRAWN] += 1
            is_other = not is_on_path or first.tape.seeds != again.tape.seeds
            if is_other or any(a.place != b.place or not a.distribution.is_same_as(b.distribution) for a, b in pairs):
                words = f"with its own values put back, the mechanism made other calls; {_OTHERWISE}"
                return Unrecorded(f"unrecorded: {words}", True)
            is_same = same_output(first.output, again.output)
            public = ([value.value for value in run.tape.public] for run in (first, again))
            if is_same and same_output(*public) is False:
                return Unrecorded("unrecorded: a public value is another one in each run", False)
            if is_same is None:
                verb = "copied" if isinstance(first.output, NotCopied) else "compared"
                kind = first.output.kind if isinstance(first.output, NotCopied) else type(first.output).__name__
                reason = f"unrecorded: outputs of type {kind} cannot be {verb}; pass output= to compare a part"
            elif not is_same:
                reason = f"unrecorded: with its own values put back, the mechanism gave another output; {_OTHERWISE}"
            if reason:
                break
        for what, often in sorted(unseen.items(), key=lambda one: one[0] == OTHER_THREAD):
            reason = f"unrecorded: {what}"
            if what == OTHER_THREAD:
                reason = f"unrecorded: another thread made {counted(often, 'random call')}"
        return Unrecorded(reason, False)


def _older_generators() -> dict[np.random.BitGenerator, Any]:
    """Return the generators of numpy that exist, with their states; `isinstance` would run the code of proxies."""
    kinds = {np.random.BitGenerator}
    while more := {below for kind in kinds for below in kind.__subclasses__()} - kinds:
        kinds |= more
    objects = gc.get_objects()
    found = list(compress(objects, map(kinds.__contains__, map(type, objects))))
    return {each: comparable(each.state) for each in found if each is not GLOBAL_STATE._bit_generator}


@lru_cache
def entropy_of(seed: int) -> int:
    """Return the entropy of a run with this seed, which no program states as a seed by chance."""
    return int.from_bytes(np.random.SeedSequence((seed, _OF_RUNS)).generate_state(4).tobytes(), "little")


def _only_run(block: Any, name: str) -> Any:
    """Return the output in a block of one run; refuse other blocks, such as a tuple of columns, as `check` does."""
    if isinstance(block, Mapping):  # of columns by name
        return {key: _only_run(column, name) for key, column in block.items()}
    if len(block) != 1:
        said = f"{counted(len(block), 'output')} when asked for 1; return one output for each run."
        raise refusal(name, said, returned=len(block), size=1)
    return block.iloc[0] if hasattr(block, "iloc") else block[0]


def other_seed(seed: int, number: int) -> int:
    """Return another seed, for the repetition of this number."""
    return int(np.random.SeedSequence((seed, number + 1)).generate_state(1, np.uint64)[0])


def _states() -> list[Any]:
    """Return the states of the global generators, from which runs draw only in ways that are not recorded."""
    return [state_of(GLOBAL_STATE), state_of(_PYTHON_STATE)]


def _seed_again(source: Any) -> None:
    """Seed a generator by the operating system."""
    if isinstance(source, np.random.Generator):
        bits = source.bit_generator
        bits.state = type(bits)().state
    elif isinstance(source, np.random.RandomState):  # whose `seed` is for one kind of bit generators only
        source.set_state(np.random.RandomState(type(source._bit_generator)()).get_state(legacy=False))
    else:
        source.seed()
