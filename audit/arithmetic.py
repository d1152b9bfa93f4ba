"""Numpy's answer to division by zero, overflow and the like: this library's own, and the user's for the mechanism."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
Answer: TypeAlias = Literal["ignore", "warn", "raise", "call", "print", "log"]
Answers: TypeAlias = tuple[tuple[str, Answer], ...]

_OWN: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # numpy's defaults
_USERS: ContextVar[Answers | None] = ContextVar("users", default=None)


def with_own_arithmetic(function: Callable[P, R]) -> Callable[P, R]:
    """The function under numpy's default answers, whatever `numpy.seterr` was told: probabilities may underflow."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        token = _USERS.set(users_answers())
        try:
            with np.errstate(**_OWN):
                return function(*args, **kwargs)
        finally:
            _USERS.reset(token)

    return call


def users_answers() -> Answers:
    """What `numpy.seterr` was told by whoever called this library, but that what only reports is left out.

    Functions to call and files to log to stay in their process, and do not change what a mechanism returns.
    """
    known = _USERS.get()
    if known is not None:
        return known
    told = ((kind, "ignore" if answer in ("call", "log") else answer) for kind, answer in np.geterr().items())
    return cast(Answers, tuple(told))


def under(answers: Answers) -> np.errstate:
    """The context in which a mechanism runs."""
    named: dict[str, Any] = dict(answers)
    return np.errstate(**named)
