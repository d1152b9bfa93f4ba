"""Every parameter of every public name, given values of the wrong type or range.

A call returns, or raises an error of the library whose message is short and names the parameter. `make test` makes a
part of the calls, which is the same in every run, and `make evidence` all of them.
"""

import functools
import inspect
import os
import signal
import tempfile
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit import AuditError, PureDP


class Unshowable:
    """An object without a repr."""

    def __repr__(self) -> str:
        raise ValueError("repr")


MISTAKES: dict[str, Any] = {
    "None": None, "'no'": "no", "'1'": "1", "b'1'": b"1", "[]": [], "{}": {}, "()": (), "object()": object(),
    "nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "-1": -1, "0": 0, "1.5": 1.5, "1e300": 1e300,
    "10**30": 10**30, "10**400": 10**400, "-10**400": -(10**400), "True": True, "array": np.array([4, 8]),
    "0-d array": np.array(3.0), "float32": np.float32(1.0), "datetime64": np.datetime64("NaT", "s"),
    "lambda": lambda *_: None, "type": int, "[[1]]": [[1]], "{1: 2}": {1: 2}, "a megabyte": "a" * 10**6, "a NUL": "a\0",
    "surrogate": "\ud800", "complex": 1j, "b''": b"", "Series": pd.Series([1, 2]), "sNaN": Decimal("sNaN"),
    "NA": pd.NA, "frame": pd.DataFrame({"a": [1]}),
    "Unshowable()": Unshowable(), "nested deeply": functools.reduce(lambda inner, _: [inner], range(3000), []),
}  # fmt: skip
LONGEST = 500  # characters of a message
SECONDS = 10  # for one call
FREE = {"mechanism", "old", "new", "x", "y", "xs", "ys", "dataset", "query", "domain", "results", "table", "message",
        "sampler", "step"}  # fmt: skip
"""Parameters that take objects of the caller's, whose errors name what is wrong with the object."""


def noisy(rows: Any, size: int, rng: np.random.Generator) -> Any:
    return rng.laplace(size=size)


def choose(rows: Any, size: int, rng: np.random.Generator) -> Any:
    return rng.integers(2, size=size)


@functools.cache
def baselines() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """A cheap valid call of every public name: the function or class, and all of its arguments by name."""
    rng = np.random.default_rng(0)
    few: dict[str, Any] = {"runs": 400, "jobs": 1}
    laplace = dpaudit.noise.LaplaceNoise(1.0)
    pair = {"mechanism": noisy, "x": [1], "y": [], "claim": PureDP(9.0)}
    audit = dpaudit.check(**pair, **few)
    included = rng.random(40) < 0.5
    canaries = {"scores": rng.normal(size=40), "included": included, "claim": PureDP(9.0)}
    folder = tempfile.mkdtemp()
    file = Path(folder, "results.json")
    dpaudit.save(audit, file)
    calls: dict[str, dict[str, Any]] = {
        "check": pair | few | {"seconds": None, "sequential": False},
        "check_outputs": {"xs": np.zeros(40), "ys": np.ones(40), "claim": PureDP(9.0)},
        "find_worst_pair": {"mechanism": noisy, "domain": [([1], [])], "claim": PureDP(9.0), "search_runs": 400, **few},
        "draw_block": {
            "mechanism": noisy, "dataset": [], "phase": "main", "side": "x", "number": 0, "size": 3, "seed": 1,
        },
        "epsilon_lower": {"count_x": 5, "runs_x": 9, "count_y": 1, "runs_y": 9, "alpha": 0.05},
        "check_equivalence": {"old": noisy, "new": noisy, "x": [], "margin": 0.5, **few},
        "check_noise": {"mechanism": noisy, "dataset": [], "noise": laplace, "answer": 0.0, **few},
        "check_slope": {"mechanism": choose, "dataset": [], "utilities": [0.0, 1.0], "epsilon": 1.0, **few},
        "check_independence": {"mechanism": noisy, "dataset": [], **few},
        "check_sensitivity": {"query": len, "domain": [([1], [])], "bound": 1.0, "evaluations": 40},
        "check_step": {"step": lambda rows, rng: rows.sum(axis=0) + rng.normal(size=40), "batch": np.ones((2, 40))},
        "check_canaries": canaries,
        "check_batches": {"sampler": lambda n, rng: rng.random((2, n)) < 0.5, "n": 4, "q": 0.5, "seconds": 1.0},
        "epsilon_from_guesses": {"correct": 3, "guesses": 5},
        "plan_canaries": {"canaries": 40, "claim": PureDP(1.0)},
        "replay": {"mechanism": lambda rows, rng: rng.laplace(), "x": [1], "y": []},
        "noise_primitive": {"distribution": "laplace", "location": "value", "scale": "scale"},
        "public": {"value": 1.0, "name": "value"},
        "LaplaceNoise": {"scale": 1.0},
        "save": {"results": audit, "path": file},
        "load": {"path": file},
        "Entry": {"name": "a", "result": audit},
        "Suite": {"title": "a", "entries": (dpaudit.results.Entry(name="a", result=audit),)},
        "UserLevel": {"user": 0},
        "Within": {"norm": "l1"},
        "Answers": {"n_answers": 2},
        "Values": {"values": (0, 1)},
        "Rows": {},
        "Graphs": {},
        "Tables": {"columns": {"a": dpaudit.domains.NumericColumn(0, 5)}},
        "CategoricalColumn": {"values": ("a", "b")},
        "NumericColumn": {"low": 0.0, "high": 5.0},
        "table_features": {"table": {"a": [1.0]}, "columns": {"a": dpaudit.domains.NumericColumn(0, 5)}},
        "AuditError": {"message": "a"},
        "settings": {},
    }  # fmt: skip
    modules = [dpaudit, *(getattr(dpaudit, name) for name in ("counts", "domains", "noise", "results", "training"))]
    found = {name: next(getattr(each, name) for each in modules if hasattr(each, name)) for name in calls}
    return {name: (found[name], arguments) for name, arguments in calls.items()}


def parameters(name: str, function: Callable[..., Any]) -> list[str]:
    """The names of all parameters, those of ``**options`` included."""
    from dpaudit.audit.options import OTHERS
    from dpaudit.audit.procedures.check_equivalence import _OPTIONS
    from dpaudit.audit.settings import _KNOWN

    named = inspect.signature(function).parameters.values()
    found = [each.name for each in named if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    if name in ("check", "find_worst_pair"):
        found += OTHERS
    if name == "settings":
        found += _KNOWN
    if name == "check_equivalence":
        found += _OPTIONS
    return found


class LateError(BaseException):
    """A call that was not finished in time."""


def late(*_: Any) -> None:
    raise LateError


def fault(name: str, parameter: str, function: Callable[..., Any], arguments: dict[str, Any], value: Any) -> str:
    """What is wrong with the outcome of a call; empty if nothing is."""
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with dpaudit.settings():  # whose end undoes a call of settings
            function(**{**arguments, parameter: value})
    except AssertionError as error:  # a verdict, for callers who want an exception
        return "" if isinstance(error, AuditError) else f"AssertionError: {error}"
    except AuditError as error:
        said = str(error)
        if len(said) >= LONGEST:
            return f"a message of {len(said)} characters: {said[:150]!r}"
        is_named = (
            parameter in said or parameter in FREE or (isinstance(value, (str, bytes)) and os.fsdecode(value) in said)
        )
        return "" if is_named else f"the message does not name it: {said!r}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:100]!r}"
    except LateError:
        return "not finished in time"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return ""


def calls() -> Iterator[tuple[str, str, str, Callable[[], str]]]:
    """Every name, parameter and mistake, with the function that makes the call and tells what is wrong."""
    for name, (function, arguments) in baselines().items():
        for parameter in parameters(name, function):
            for words, value in MISTAKES.items():
                if parameter.startswith("on_") and callable(value):
                    continue  # what the caller's function raises is the caller's
                if parameter in ("mechanism", "old", "new") and hasattr(value, "sample"):
                    continue  # it can be called as a mechanism
                yield name, parameter, words, lambda a=(name, parameter, function, arguments, value): fault(*a)


def test_every_public_function_has_a_valid_call() -> None:
    """The constructors of claims and of results have tests of their own."""
    known = baselines()
    functions = {name for name in dpaudit.__all__ if inspect.isfunction(getattr(dpaudit, name))}
    assert functions <= known.keys()
    for function, arguments in known.values():
        with dpaudit.settings():
            function(**arguments)


@pytest.mark.parametrize("one_in", [20, pytest.param(1, marks=pytest.mark.evidence)])
def test_a_mistake_in_any_parameter_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_in: int
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for name, parameter, words, outcome in calls():
        if zlib.crc32(f"{name} {parameter} {words}".encode()) % one_in == 0 and (found := outcome()):
            wrong.append(f"{name}({parameter}={words}): {found}")
    assert not wrong, "\n".join(wrong)
