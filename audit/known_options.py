"""The arguments of calls of public functions: unknown options, whose error names the option meant, and wrong values."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .errors import UnknownOptionError
from .options import DEFAULTS, RULES, checked
from .printing import did_you_mean, shorten
from .settings import setting, settings_of

P = ParamSpec("P")
R = TypeVar("R")

_ELSEWHERE = {
    "epsilon": "claim=1.0",
    "eps": "claim=1.0",
    "delta": "claim=(1.0, 1e-5)",
    "mu": "claim=GaussianDP(1.0)",
    "rho": "claim=ZeroConcentratedDP(0.5)",
    "confidence": "alpha=0.05",
    "confidence_level": "alpha=0.05",
    "significance": "alpha=0.05",
    "failure_probability": "alpha=0.05",
    "n": "runs=1_000_000",
    "samples": "runs=1_000_000",
    "n_samples": "runs=1_000_000",
    "num_samples": "runs=1_000_000",
    "trials": "runs=1_000_000",
    "n_trials": "runs=1_000_000",
    "num_trials": "runs=1_000_000",
    "iterations": "runs=1_000_000",
    "timeout": "seconds=60",
    "n_jobs": "jobs=4",
    "workers": "jobs=4",
    "verbose": "progress=True",
    "random_state": "seed=0",
    "rng": "seed=0",
    "bits": 'floating_point="test"',
    "resolution": "detect=0.1",
    "cells": "bins=32",
    "coins": 'inclusion="independent"',
    "say": 'guess="in"',
}
"""Names that other libraries use, and what to write in a function that has this option."""

_SEARCH = "find_worst_pair(mechanism, domain, …), or use the fixture dp_audit"
_BY_PLACE = "the domain as the second argument"
_OF_ONE = {
    "check": {"neighbours": _SEARCH, "neighbors": _SEARCH, "domain": _SEARCH},
    "find_worst_pair": {"neighbours": _BY_PLACE, "neighbors": _BY_PLACE},
}
"""What to write in one function for what is an option of another."""


def with_known_options(more: Mapping[str, Any] | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions that take options by name, which checks the arguments of every call.

    The options are the keyword-only parameters, and those with a default in `more` that the function takes as
    ``**options``. A call with another name, or with more values by place than the function takes, is an
    `UnknownOptionError`. An argument whose name has a rule in `options.RULES` reaches the function as the rule reads
    it. None is allowed where it is the default; then the option has the value of `settings`, if these set it. A seed
    with a default may be None, too. The result of an audit keeps the call in its environment.

    >>> @with_known_options()
    ... def audit(mechanism, *, alpha=0.05):
    ...     return alpha
    >>> audit(None, n=9)
    Traceback (most recent call last):
    dpaudit.audit.errors.UnknownOptionError: n is not an option of audit. The options are alpha.
    >>> audit(None, alpha="0.1")
    Traceback (most recent call last):
    dpaudit.audit.errors.OptionError: alpha='0.1' is not an allowed error probability; use 0 < alpha < 1 (0.05 ...
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        name, parameters = function.__name__, inspect.signature(function).parameters.values()
        defaults = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY} | {**(more or {})}
        options = (*defaults,)
        by_place = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        defaults |= {each.name: each.default for each in parameters if each.name in by_place}
        shared = [option for option in options if option in settings_of(name)]

        def read(option: str, value: Any) -> Any:
            if option not in RULES:
                return value
            may_be_fresh = option == "seed" and defaults[option] is not inspect.Parameter.empty
            return checked(option, value, or_none=may_be_fresh or defaults[option] is None)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if len(args) > len(by_place):
                raise _by_place(name, by_place, options, args[len(by_place)])
            for given in kwargs:
                if given not in defaults:
                    raise unknown_option(given, name, options, by_place)
            values: Any = {option: read(option, value) for option, value in kwargs.items()}
            unset = (option for option in shared if kwargs.get(option) is None)
            values |= {option: found for option in unset if (found := setting(option)) is not None}
            placed: Any = [read(*each) for each in zip(by_place, args, strict=False)]
            result = function(*placed, **values)
            _record(result, name, dict(zip(by_place, args, strict=False)) | values, defaults)
            return result

        return call

    return decorated


# The call that was made, as Python: a report prints it, so that the audit can be repeated.

_NOT_REPEATED = frozenset({"progress", "on_interim", "on_round", "store"})  # no number of a result depends on them
_SHOWN = frozenset({"claim", "adjacency", "output", "noise", "ignore", "guesses", "method"})
"""Options without a rule whose values are printed; others, such as datasets and answers, may be private."""
_LONGEST = 300  # characters of a value, so that a call that repeats an audit is a few lines
_PARTS = (
    ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword, ast.Tuple, ast.List, ast.Dict, ast.UnaryOp,
    ast.USub,
)  # fmt: skip


def is_call(text: str) -> bool:
    """Return whether a text is one call of a function of the library, which holds constants, names and constructors.

    It is on one line and without a comment, as the call is printed for a reader to paste.
    """
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]  # the outermost first
    if not isinstance(tree.body, ast.Call) or not all(isinstance(node, _PARTS) for node in ast.walk(tree)):
        return False
    called, *inner = (node.func.id if isinstance(node.func, ast.Name) else "" for node in nodes)
    is_known = called.startswith("check_") or called in ("check", "find_worst_pair")
    names = [getattr(node, "id", None) or getattr(node, "arg", None) or "" for node in ast.walk(tree)]
    is_plain = text == ast.unparse(tree) and not any(name.startswith("__") for name in names)
    return is_known and is_plain and all(name == "float" or name[:1].isupper() for name in inner)


def _record(result: Any, function: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Keep the call in the environment of an audit's result; that of a search replaces that of its audit."""
    fields = getattr(result, "__dict__", {})  # an attribute that a result lacks is answered with similar names
    result = fields.get("audit", result)
    if "environment" not in getattr(result, "__dict__", {}):
        return
    if "seed" in defaults:
        given = {**given, "seed": result.seed}  # also one that was drawn
    if defaults.get("runs", 0) is None and all(given.get(name) is None for name in ("runs", "detect", "seconds")):
        given = {**given, "runs": setting("runs")}
    parts = []
    for name, default in defaults.items():
        if name in _NOT_REPEATED or name not in given:
            continue
        value, is_by_place = (
            given[name],
            default is inspect.Parameter.empty and name not in ("claim", "noise", "answer"),
        )
        if is_by_place or name == "seed" or not _is_same(value, default):
            text = _in_python(name, value)
            parts.append((not is_by_place, text if is_by_place else f"{name}={text}"))
    call = f"{function}({', '.join(text for _, text in sorted(parts, key=lambda part: part[0]))})"
    if is_call(call):
        result.environment["call"] = call


def _is_same(value: Any, default: Any) -> bool:
    """Whether a value is the default; arrays and the like are not compared."""
    return value is default or (type(value) in (bool, int, float, str, tuple) and value == default)


def _in_python(name: str, value: Any) -> str:
    """Return a value as Python, or its name: that of a function of a module, or that of the option."""
    if inspect.isfunction(value) and value.__qualname__ == value.__name__ and value.__name__.isidentifier():
        return value.__name__
    if name not in RULES and name not in _SHOWN:
        return name
    text = re.sub(r"(?<![\w'\"])(inf|nan)(?![\w'\"])", r"float('\1')", repr(value))
    is_plain = type(value) in (bool, int, float)  # to parse it takes as long as to read all options
    return text if is_plain or (len(text) <= _LONGEST and is_call(f"check({text})")) else name


def unknown_option(
    given: str, function: str, options: Sequence[str], by_place: Sequence[str] = ()
) -> UnknownOptionError:
    """Return the error for a name that is neither among the options of a function nor among its other parameters."""
    write = _ELSEWHERE.get(given, "")
    if write.partition("=")[0] not in options:
        write = _OF_ONE.get(function, {}).get(given, "")
    meant = f"; write {write}." if write else did_you_mean(given, (*options, *by_place), otherwise=".")
    return UnknownOptionError(
        f"{given} is not an option of {function}{meant} The options are {', '.join(options)}.", option=given
    )


def refuse_unknown(given: Iterable[str], function: str, *more: str) -> None:
    """Raise an `UnknownOptionError` for a name that is neither an option of `check` nor one of the names in `more`."""
    known = (*DEFAULTS, *more)
    for name in given:
        if name not in known:
            raise unknown_option(name, function, known)


def _by_place(function: str, by_place: Sequence[str], options: Sequence[str], first: object) -> UnknownOptionError:
    """Return the error for more values by place than a function takes; the first of these has no name."""
    option = "claim" if "claim" in options else options[0]
    return UnknownOptionError(
        f"{function} takes only {', '.join(by_place)} by place; pass the other values by name, such as "
        f"{option}={shorten(first)}. The options are {', '.join(options)}.",
        value=first,
    )
