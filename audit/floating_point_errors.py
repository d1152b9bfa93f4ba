"""Arithmetic: numpy's error handling and one thread in the library, the user's settings in the mechanism."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")
Answer: TypeAlias = Literal["ignore", "warn", "raise", "call", "print", "log"]
Answers: TypeAlias = tuple[tuple[str, Answer], ...]

_OWN: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # numpy's defaults
_USERS: ContextVar[Answers | None] = ContextVar("users", default=None)


def with_own_arithmetic(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function under numpy's default error handling instead of the user's, since probabilities may underflow."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _USERS.set(users_answers())
        try:
            with own_arithmetic():
                return function(*args, **kwargs)
        finally:
            _USERS.reset(token)

    return call


def own_arithmetic() -> np.errstate:
    """Return the context in which the library computes."""
    return np.errstate(**_OWN)


def users_answers() -> Answers:
    """Return the caller's `numpy.seterr` settings, with "call" and "log" replaced by "ignore".

    These two only report errors, and their handlers cannot be sent to another process.
    """
    known = _USERS.get()
    if known is not None:
        return known
    told = ((kind, "ignore" if answer in ("call", "log") else answer) for kind, answer in np.geterr().items())
    return cast(Answers, tuple(told))


def under(answers: Answers) -> np.errstate:
    """Return the context in which a mechanism runs."""
    return np.errstate(**cast(dict[str, Any], dict(answers)))


_limited = threading.RLock()


def _renew_lock() -> None:
    """Replace the lock in a forked process, which has no thread to release it."""
    global _limited
    _limited = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def in_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with linear algebra in one thread.

    Its matrices are small. Several threads would wait for each other, above all where other processes use the cores,
    and round sums differently on machines with other numbers of cores. The limit is that of the process, so one thread
    at a time sets it.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with _limited, _thread_pools().limit(limits=1):
            return function(*args, **kwargs)

    return call


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()
