"""Generators for libraries that draw from the global ones of Python, numpy and numba, one for each thread."""

from __future__ import annotations

import random
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ...audit.replay.registered import Patch, patched
from ...audit.replay.tape import active_tape

_MOST: Final = 2**32


@contextmanager
def generators_of_body(rng: np.random.Generator) -> Iterator[None]:
    """Let the body draw from generators seeded from `rng` where it calls functions of `random` and `numpy.random`.

    The global generators are neither seeded nor set back, and other threads keep drawing from them: while a body runs,
    the functions of both modules ask which thread calls. Names that a library bound on import, as in ``from random
    import random``, still draw from the global generators, so that an audit of it is not replayable. The generator of
    numba, which each thread has of its own and which cannot be read, is seeded for the body and by the operating system
    afterwards. In a replay, which records what the body draws and has generators of its own, nothing is changed.
    """
    seeds = [int(seed) for seed in rng.integers(_MOST, size=3)]
    if active_tape() is not None:
        yield
        return
    is_compiled = "numba" in sys.modules
    before = vars(_OF_THREAD).copy()
    with _patches():
        vars(_OF_THREAD).update(python=random.Random(seeds[0]), numpy=np.random.RandomState(seeds[1]))
        if is_compiled:
            _numba_seed()(seeds[2])
        try:
            yield
        finally:
            vars(_OF_THREAD).clear()
            vars(_OF_THREAD).update(before)
            if is_compiled:
                _numba_seed()(secrets.randbelow(_MOST))


class _OfThread(threading.local):
    """The generators of the body that the calling thread runs; else the global ones."""

    python: Any = random._inst
    numpy: Any = np.random.mtrand._rand


_OF_THREAD: Final = _OfThread()


class _StateByThread(np.random.RandomState):
    """Stands for numpy's global state, which some libraries read: it is the calling thread's."""

    def __getattribute__(self, name: str) -> Any:
        return getattr(_OF_THREAD.numpy, name)


def _by_thread() -> Iterator[Patch]:
    """Yield the patches of the functions that draw from global generators."""
    for name, value in vars(random).items():
        if getattr(value, "__self__", None) is _OfThread.python:
            yield Patch(random, name, _ByThread("python", name, value))
    aliases = {"ranf": "random_sample", "sample": "random_sample"}
    for name, value in vars(np.random).items():
        method = aliases.get(name, name)
        if callable(value) and not name.startswith("_") and hasattr(np.random.RandomState, method):
            yield Patch(np.random, name, _ByThread("numpy", method, value))
    yield Patch(np.random.mtrand, "_rand", _StateByThread(0))


class _ByThread:
    """A function of a module that draws from the calling thread's generator; numba compiles it as the original."""

    __slots__ = ("__name__", "_kind", "_original")  # numba looks up what has no weak references by equality

    def __init__(self, kind: str, method: str, original: Callable[..., Any]) -> None:
        self._kind, self.__name__, self._original = kind, method, original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(getattr(_OF_THREAD, self._kind), self.__name__)(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other == self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self._original.__reduce__()


_LOCK: Final = threading.Lock()
_BODIES: Final[list[ExitStack]] = []


@contextmanager
def _patches() -> Iterator[None]:
    """Have the patches in place while any thread runs a body: the first one applies them, and the last undoes them."""
    with _LOCK:
        if not _BODIES:
            undone = ExitStack()
            undone.enter_context(patched(list(_by_thread())))
            _BODIES.append(undone)
        else:
            _BODIES.append(_BODIES[0])
    try:
        yield
    finally:
        with _LOCK:
            undone = _BODIES.pop()
            if not _BODIES:
                undone.close()


@lru_cache(maxsize=1)
def _numba_seed() -> Callable[[int], None]:
    """Return a compiled function that seeds the generator of compiled functions, which no other call reaches."""
    numba: Any = sys.modules["numba"]

    def seed(value: int) -> None:
        np.random.seed(value)  # noqa: NPY002

    compiled: Callable[[int], None] = numba.njit(seed)
    return compiled
