"""Recording versions of numpy's `Generator` and `RandomState`, and of what creates them.

The classes draw exactly what numpy's do. `choice`, `permutation` and `shuffle` record places instead of values, so that
on y the places of x are taken from y's own values.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Final, cast

import numpy as np

from .laws import Law
from .parameters import copied
from .registered import Patch
from .tape import OTHER_THREAD, Tape, active_tape, recorded

_GENERATOR: Final = np.random.Generator
_RANDOM_STATE: Final = np.random.RandomState
GLOBAL_STATE: Final = np.random.mtrand._rand
"""The global state of the process, from which other threads draw while a run is recorded."""
_NOT_DRAWS: Final = frozenset(
    {"bit_generator", "spawn", "seed", "get_state", "set_state", "permuted", "choice", "shuffle", "permutation"}
)


def _shape(bound: dict[str, Any], *parameters: Any) -> tuple[int, ...]:
    if bound.get("out") is not None:
        return tuple(bound["out"].shape)
    size = bound.get("size")
    if size is None:
        return np.broadcast_shapes(*(np.shape(each) for each in parameters))
    try:
        return (operator.index(size),)
    except TypeError:
        return tuple(int(each) for each in size)


def _shifted(name: str) -> Callable[[dict[str, Any]], Law]:
    def law(bound: dict[str, Any]) -> Law:
        held = {"location": _kept(bound.get("loc", 0.0)), "scale": _kept(bound.get("scale", 1.0))}
        return Law(name, held, _shape(bound, *held.values()))

    return law


def _of(name: str, **names: tuple[str, float | None]) -> Callable[[dict[str, Any]], Law]:
    """Read a law's parameters from the arguments: parameter=(argument, default)."""

    def law(bound: dict[str, Any]) -> Law:
        held = {parameter: _kept(bound.get(argument, default)) for parameter, (argument, default) in names.items()}
        return Law(name, held, _shape(bound, *held.values()))

    return law


def _kept(value: Any) -> Any:
    """Return a copy of an array: the caller may change it later."""
    return value if np.isscalar(value) else np.array(value)


def _integers(bound: dict[str, Any]) -> Law:
    low, high = bound["low"], bound.get("high")
    low, high = (0, low) if high is None else (low, high)
    high = np.add(high, 1) if bound.get("endpoint") else high
    return Law("integers", {"low": _kept(low), "high": _kept(high)}, _shape(bound, low, high))


_LOC_SCALE: Final = ("loc", "scale", "size")
_KNOWN: Final[dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], Law]]]] = {
    "laplace": (_LOC_SCALE, _shifted("laplace")),
    "normal": (_LOC_SCALE, _shifted("normal")),
    "logistic": (_LOC_SCALE, _shifted("logistic")),
    "gumbel": (_LOC_SCALE, _shifted("gumbel")),
    "standard_normal": (("size", "dtype", "out"), _shifted("normal")),
    "exponential": (("scale", "size"), _of("exponential", scale=("scale", 1.0))),
    "standard_exponential": (("size", "dtype", "method", "out"), _of("exponential", scale=("scale", 1.0))),
    "uniform": (("low", "high", "size"), _of("uniform", low=("low", 0.0), high=("high", 1.0))),
    "random": (("size", "dtype", "out"), _of("uniform", low=("low", 0.0), high=("high", 1.0))),
    "random_sample": (("size",), _of("uniform", low=("low", 0.0), high=("high", 1.0))),
    "geometric": (("p", "size"), _of("geometric", p=("p", None))),
    "poisson": (("lam", "size"), _of("poisson", rate=("lam", 1.0))),
    "binomial": (("n", "p", "size"), _of("binomial", n=("n", None), p=("p", None))),
    "integers": (("low", "high", "size", "dtype", "endpoint"), _integers),
    "randint": (("low", "high", "size", "dtype"), _integers),
}
"""Names of the positional arguments, and the law. Every other method is recorded with its arguments alone."""


def _recorded(base: type, method: str) -> Callable[..., Any]:
    original = getattr(base, method)
    names, law_of = _KNOWN.get(method, ((), None))

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if tape is None:
            return original(self, *args, **kwargs)

        def law() -> Law:
            if method in ("rand", "randn"):
                return _KNOWN["random" if method == "rand" else "standard_normal"][1]({"size": args or None})
            if law_of is None:
                return Law(method, {f"argument {i}": _kept(each) for i, each in enumerate(args)} | kwargs)
            return law_of({**dict(zip(names, args, strict=False)), **kwargs})

        held, named = copied(args), copied(kwargs)  # the caller may change them later
        found = tape.call(
            f"{base.__name__}.{method}", law, lambda: tape.drawn(self, lambda: original(self, *held, **named))
        )
        out = {**dict(zip(names, args, strict=False)), **kwargs}.get("out")
        if out is not None and found is not out:
            out[...] = found
            return out
        return found

    call.__name__, call.__doc__ = method, f"Record a draw of numpy's `{method}`."
    return call


def _places(self: Any, base: type, tape: Tape, n: int, size: Any, replace: bool, p: Any, **rest: Any) -> Any:
    """Return recorded places 0 … n − 1 of a choice."""

    def law() -> Law:
        shape = _shape({"size": size})
        if not replace and shape not in ((), (1,)):
            return Law("choice without replacement", {"n": n, "p": _kept(p)}, shape)
        if p is None:
            return Law("integers", {"low": 0, "high": n}, shape)
        return Law("discrete", {"probabilities": np.array(p, dtype=np.float64)}, shape)

    return tape.call(
        f"{base.__name__}.choice",
        law,
        lambda: tape.drawn(self, lambda: cast(Any, base).choice(self, n, size, replace, p, **rest)),
        can_return=lambda places: bool(np.all(np.asarray(places) < n)),
    )


def _choice(base: type) -> Callable[..., Any]:
    def choice(
        self: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        tape = active_tape()
        if tape is None:
            return cast(Any, base).choice(self, a, size, replace, p, *args, **kwargs)
        if tape.passes():
            return tape.drawn(self, lambda: cast(Any, base).choice(self, a, size, replace, p, *args, **kwargs))
        axis = args[0] if args else kwargs.get("axis", 0)
        rest = dict(zip(("shuffle",), args[1:], strict=False)) | {key: kwargs[key] for key in kwargs if key != "axis"}
        values = None if isinstance(a, (int, np.integer)) else np.asarray(a)
        n = int(a) if values is None else values.shape[axis] if values.ndim else int(values)
        places = _places(self, base, tape, n, size, replace, p, **rest)
        return places if values is None or not values.ndim else values.take(places, axis=axis)

    return choice


def _permutation(base: type) -> Callable[..., Any]:
    def permutation(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if tape is None:
            return cast(Any, base).permutation(self, x, *args, **kwargs)
        if tape.passes():
            return tape.drawn(self, lambda: cast(Any, base).permutation(self, x, *args, **kwargs))
        axis = args[0] if args else kwargs.get("axis", 0)
        values = None if isinstance(x, (int, np.integer)) else np.asarray(x)
        n = int(x) if values is None else values.shape[axis]
        places = _order(self, base, tape, n, "permutation")
        return places if values is None else values.take(places, axis=axis)

    return permutation


def _shuffle(base: type) -> Callable[..., Any]:
    def shuffle(self: Any, x: Any, *args: Any, **kwargs: Any) -> None:
        tape = active_tape()
        axis = args[0] if args else kwargs.get("axis", 0)
        if tape is None:
            cast(Any, base).shuffle(self, x, *args, **kwargs)
            return
        if tape.passes() or (axis and not isinstance(x, np.ndarray)):
            tape.drawn(self, lambda: cast(Any, base).shuffle(self, x, *args, **kwargs))
            return
        n = x.shape[axis] if isinstance(x, np.ndarray) else len(x)
        places = _order(self, base, tape, n, "shuffle")
        if isinstance(x, np.ndarray):
            x[...] = x.take(places, axis=axis)
        else:
            held = [x[int(place)] for place in places]
            for place, each in enumerate(held):
                x[place] = each

    return shuffle


def _order(self: Any, base: type, tape: Tape, n: int, method: str) -> Any:
    return tape.call(
        f"{base.__name__}.{method}",
        lambda: Law("permutation", {"n": n}, (n,)),
        lambda: tape.drawn(self, lambda: cast(Any, base).permutation(self, n)),
    )


class _StandsFor(type):
    """Makes a recording class accept every instance of numpy's class, and other threads create numpy's own."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if tape is not None and tape.is_foreign():
            tape.note_unseen(OTHER_THREAD)
            return cls.__mro__[1](*args, **kwargs)
        given = args[0] if args else kwargs.get("seed", kwargs.get("bit_generator"))
        if tape is None:
            return super().__call__(*args, **kwargs)
        if cls.__mro__[1] is _RANDOM_STATE:
            tape.note_seed(given)
        with tape.unseen_inside():
            made = super().__call__(*args, **kwargs)
        tape.note_made(made, is_fresh=given is None)
        return made


def _recording_class(base: type) -> Any:
    draws = [name for name in dir(base) if not name.startswith("_") and name not in _NOT_DRAWS]
    methods: dict[str, Any] = {name: _recorded(base, name) for name in draws if callable(getattr(base, name))}
    methods |= {"choice": _choice(base), "permutation": _permutation(base), "shuffle": _shuffle(base)}
    methods["__reduce__"] = _reduced(base)
    if base is _GENERATOR:
        methods["__deepcopy__"] = _deep_copy
    else:
        methods = {name: _by_thread(name, each) for name, each in (methods | {"seed": _seeded}).items()}
    return _StandsFor(
        base.__name__,
        (base,),
        {"__module__": __name__, "__doc__": f"numpy's `{base.__name__}`, whose draws are recorded.", **methods},
    )


def _by_thread(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a state: of the one that stands for the global state, for the thread of its run only."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if getattr(self, _STANDS_FOR_GLOBAL, False) and (tape is None or tape.is_foreign()):
            if tape is not None:
                tape.note_unseen(OTHER_THREAD)
            return getattr(GLOBAL_STATE, name)(*args, **kwargs)
        return method(self, *args, **kwargs)

    call.__name__, call.__doc__ = name, method.__doc__
    return call


def _reduced(base: type) -> Callable[..., Any]:
    def reduced(self: Any) -> Any:
        tape = active_tape()
        if tape is not None:
            tape.note_unseen("a generator is copied or sent to another process")
        return cast(Any, base).__reduce__(self)

    return reduced


def _deep_copy(self: Any, memo: dict[int, Any]) -> Any:
    """Return a recording generator that goes on from the same state."""
    tape = active_tape()
    with nullcontext() if tape is None else tape.unseen_inside():  # numpy seeds the copy before it sets its state
        return RecordingGenerator(copy.deepcopy(self.bit_generator, memo))


def _seeded(self: Any, seed: Any = None) -> None:
    tape = active_tape()
    if tape is None:
        _RANDOM_STATE.seed(self, seed)
        return
    tape.note_seed(seed)
    with tape.unseen_inside():
        _RANDOM_STATE.seed(self, seed)
    if seed is None:
        tape.note_made(self, is_fresh=True)


RecordingGenerator: Final = _recording_class(_GENERATOR)
RecordingRandomState: Final = _recording_class(_RANDOM_STATE)


def recording_generator(entropy: int) -> np.random.Generator:
    """Return the generator that is handed to the mechanism."""
    return cast(np.random.Generator, RecordingGenerator(np.random.PCG64(entropy)))


def _default_rng(original: Callable[..., np.random.Generator]) -> Callable[..., np.random.Generator]:
    def default_rng(seed: Any = None) -> np.random.Generator:
        tape = active_tape()
        if tape is None:
            return original(seed)
        if tape.is_foreign():
            tape.note_unseen(OTHER_THREAD)
            return original(seed)
        if isinstance(seed, RecordingGenerator) and type(seed) is RecordingGenerator:
            return cast(np.random.Generator, seed)
        tape.note_seed(seed)
        made = original(tape.fresh_seed() if seed is None else seed)
        return cast(np.random.Generator, RecordingGenerator(made.bit_generator))

    return default_rng


def _of_module(name: str, method: str = "") -> Callable[..., Any]:
    """Return a module function that draws from the state of whichever run calls it."""
    return recorded(
        getattr(np.random, name),
        lambda *args, **kwargs: getattr(np.random.mtrand._rand, method or name)(*args, **kwargs),
        "seed" if name == "seed" else None,
    )


_MODULE_FUNCTIONS: Final = tuple(
    name for name in dir(_RANDOM_STATE) if not name.startswith("_") and callable(getattr(np.random, name, None))
)


def numpy_states(entropy: int) -> Iterator[Patch]:
    """Yield the state from which the module functions draw in a run, in place of the global one."""
    sequence = np.random.SeedSequence(entropy, spawn_key=(_GLOBAL,))
    state = RecordingRandomState(np.random.MT19937(sequence))
    setattr(state, _STANDS_FOR_GLOBAL, True)
    yield Patch(np.random.mtrand, "_rand", state)


_STANDS_FOR_GLOBAL: Final = "stands_for_global"
_GLOBAL: Final = 2**32 - 2
"""First number of the spawn key of the global state; generators that are made without a seed have the next one."""


def numpy_patches() -> Iterator[Patch]:
    """Yield the patches of `numpy.random`."""
    yield Patch(np.random, "Generator", RecordingGenerator)
    yield Patch(np.random, "RandomState", RecordingRandomState)
    yield Patch(np.random, "default_rng", _default_rng(np.random.default_rng))
    for name in _MODULE_FUNCTIONS:
        yield Patch(np.random, name, _of_module(name))
    yield Patch(np.random, "ranf", _of_module("ranf", "random_sample"))
    yield Patch(np.random, "sample", _of_module("sample", "random_sample"))
