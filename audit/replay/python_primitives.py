"""Recording versions of the standard library's `random`.

Methods of `random.Random` and `random.SystemRandom` are replaced on the classes, so that existing objects are recorded
too. `sample`, `shuffle` and the others that are not named here are recorded by what they draw inside.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from .laws import Law
from .registered import Patch
from .tape import ENTROPY, active_tape, recorded


def _uniform(a: float, b: float) -> Law:
    return Law("uniform", {"low": min(a, b), "high": max(a, b)})


def _normal(mu: float = 0.0, sigma: float = 1.0) -> Law:
    return Law("normal", {"location": mu, "scale": sigma})


def _exponential(lambd: float = 1.0) -> Law:
    return Law("exponential", {"scale": 1.0 / lambd})


def _randrange(start: int, stop: int | None = None, step: int = 1) -> Law:
    low, high = (0, start) if stop is None else (start, stop)
    if step == 1:
        return Law("integers", {"low": low, "high": high})
    return Law("randrange", {"low": low, "high": high, "step": step})


_LAWS: Final[dict[str, Callable[..., Law]]] = {
    "random": lambda: _uniform(0.0, 1.0),
    "uniform": _uniform,
    "gauss": _normal,
    "normalvariate": _normal,
    "expovariate": _exponential,
    "randrange": _randrange,
    "randint": lambda a, b: Law("integers", {"low": a, "high": b + 1}),
    "getrandbits": lambda k: Law("bits", {"number": k}),
}


def _recorded(kind: type, name: str) -> Callable[..., Any]:
    original, law = getattr(kind, name), _LAWS[name]

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        tape = active_tape()
        if tape is None:
            return original(self, *args, **kwargs)
        return tape.call(
            f"{kind.__name__}.{name}",
            lambda: law(*args, **kwargs),
            lambda: tape.drawn(self, lambda: original(self, *args, **kwargs)),
        )

    return call


def _choice(original: Callable[..., Any]) -> Callable[..., Any]:
    def choice(self: random.Random, seq: Sequence[Any]) -> Any:
        tape = active_tape()
        if tape is None or not len(seq):
            return original(self, seq)
        if tape.passes():
            return tape.drawn(self, lambda: original(self, seq))
        n = len(seq)
        return seq[
            tape.call(
                "Random.choice",
                lambda: Law("integers", {"low": 0, "high": n}),
                lambda: tape.drawn(self, lambda: original(self, range(n))),
                can_return=lambda place: place < n,
            )
        ]

    return choice


def _choices(original: Callable[..., Any]) -> Callable[..., Any]:
    def choices(
        self: random.Random, population: Sequence[Any], weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        tape, n = active_tape(), len(population)
        if tape is None:
            return list(original(self, population, weights, cum_weights=cum_weights, k=k))
        if tape.passes():
            return list(tape.drawn(self, lambda: original(self, population, weights, cum_weights=cum_weights, k=k)))

        def law() -> Law:
            held = np.diff(cum_weights, prepend=0.0) if cum_weights is not None else np.asarray(weights, np.float64)
            if weights is None and cum_weights is None:
                return Law("integers", {"low": 0, "high": n}, (k,))
            return Law("discrete", {"probabilities": held / held.sum()}, (k,))

        places = tape.call(
            "Random.choices",
            law,
            lambda: tape.drawn(self, lambda: original(self, range(n), weights, cum_weights=cum_weights, k=k)),
            can_return=lambda found: max(found, default=0) < n,
        )
        return [population[place] for place in places]

    return choices


def _seeded(original: Callable[..., Any]) -> Callable[..., Any]:
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        tape = active_tape()
        if tape is not None:
            tape.note_seed(a)
        original(self, a, version)
        if tape is None or isinstance(self, random.SystemRandom):
            return
        if a is None or tape.streams.was_read(a):
            tape.note_made(self, is_fresh=True)

    return seed


def random_states(entropy: int) -> Iterator[Patch]:
    """Yield the generator from which the module functions draw in a run, in place of the global one."""
    yield Patch(random, "_inst", random.Random(entropy))


def random_patches() -> Iterator[Patch]:
    """Yield the patches of `random`."""
    module = vars(random)
    functions = [name for name, value in module.items() if getattr(value, "__self__", None) is module["_inst"]]
    for kind in (random.Random, random.SystemRandom):
        for name in _LAWS:
            if kind is random.Random or name in vars(kind):
                yield Patch(kind, name, _recorded(kind, name))
    yield Patch(random.Random, "seed", _seeded(random.Random.seed))
    yield Patch(random.Random, "choice", _choice(random.Random.choice))
    yield Patch(random.Random, "choices", _choices(random.Random.choices))
    for name in functions:
        yield Patch(random, name, _of_module(name))


def _of_module(name: str) -> Callable[..., Any]:
    """Return a module function that draws from the generator of whichever run calls it."""
    return recorded(getattr(random, name), lambda *args, **kwargs: getattr(random._inst, name)(*args, **kwargs))


def outside_patches() -> Iterator[Patch]:
    """Yield the patches that notice what is random outside of Python's generators: entropy, and other processes."""
    yield Patch(os, "urandom", _noted(os.urandom, ENTROPY))
    yield Patch(random, "_urandom", _noted(vars(random)["_urandom"], ENTROPY))
    yield Patch(subprocess.Popen, "__init__", _noted(subprocess.Popen.__init__, _PROCESS))
    if hasattr(os, "fork"):
        yield Patch(os, "fork", _noted(os.fork, _PROCESS))


_PROCESS: Final = "another process is started"


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
