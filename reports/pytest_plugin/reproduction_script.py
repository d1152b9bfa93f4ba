"""A violation as a script that does not need this library, kept apart because it knows nothing of pytest."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...audit.datasets.description import as_code
from ...audit.events.events import Event, Intervals, Outcomes, Scored, names_in
from ...audit.events.features import Coordinates
from ...audit.events.scores import Additive, Coordinate, Number, Score
from ...audit.inference.betting_test import best_line
from ...audit.results.audit_result import AuditResult
from ...audit.sampling.sampler import as_sampler

_ERRORS, _LEAST, _MOST = 8.0, 1_000, 10_000_000  # planned standard errors, and limits of the runs
_SHOWN = 5.0  # standard errors beyond which the script reports a violation
_LONGEST = 4_000  # characters of a dataset
_LIBRARIES = {"pandas": "pd", "networkx": "nx"}  # of datasets, beyond numpy


class ScriptError(Exception):
    """The reason why no script can be written."""


def script(result: AuditResult, mechanism: Any, x: Any, y: Any, path: Path, options: Mapping[str, Any]) -> str:
    """Return the text of a script that draws new outputs, counts the event and compares it with the claim.

    The script exits with status 1 if the event's probability exceeds the claim by more than 5 standard errors. `path`
    is the file of the test, and `options` are those of the audit.
    """
    if names_in(result.event) or options.get("output") is not None:
        raise ScriptError("named parts of outputs cannot be read in a few lines.")
    sampler = as_sampler(mechanism)
    imports, name = _reference(mechanism, path)
    call = sampler.call
    named = [f"{call.size_name}=runs"] * (call.size_name is not None)
    named += [f"{call.rng_name}=rng"] * (call.rng_name is not None)
    once = f"mechanism({', '.join(['dataset', *named])})"
    counts, claim = result.directed_counts, result.directed_claim
    p, q = (counts.count_x + 0.5) / (counts.runs_x + 1.0), (counts.count_y + 0.5) / (counts.runs_y + 1.0)
    line = best_line(claim, p, q, float(counts.runs_x))
    spread = math.sqrt(p * (1 - p) + line.slope**2 * q * (1 - q))
    beyond = p - line.slope * q - line.intercept
    # The event was selected on similar counts.
    beyond = max(beyond - 2.0 * spread / math.sqrt(counts.runs_x), beyond / 3)
    runs = int(min(max(_LEAST, (_ERRORS * spread / beyond) ** 2), _MOST)) if beyond > 0 else _MOST
    first, second = (x, y) if result.more_likely_on == "x" else (y, x)
    drawn = f"np.asarray({once})" if sampler.is_block else f"[{once} for _ in range(runs)]"
    read, inside = _reading_and_test(result.event)
    has_sample = not inspect.isclass(mechanism) and callable(getattr(mechanism, "sample", None))
    pair = f"{_literal(first)}, {_literal(second)}"
    libraries = [f"import {name} as {short}" for name, short in _LIBRARIES.items() if f"{short}." in pair]
    lines = [
        f'"""{_plain(result.mechanism)}: does {_plain(str(claim))} hold? Exit status 1 if these runs contradict it."""',
        *dict.fromkeys(["import numpy as np", *libraries, *imports]),
        f"mechanism = {name}{'.sample' * has_sample}",
        f"more_likely, other = {pair}",
        f"rng, runs = np.random.default_rng({result.seed % 2**32}), {runs}",
        "def counts(dataset):",
        f"    outputs = {drawn}",
        *(f"    {part}" for part in read),
        f"    return int(np.count_nonzero({inside}))",
        "p, q = counts(more_likely) / runs, counts(other) / runs",
        f"slope, intercept = {line.slope!r}, {line.intercept!r}  # the claim: p <= slope * q + intercept",
        "error = np.sqrt((p * (1 - p) + slope**2 * q * (1 - q)) / runs + 1 / runs**2)",
        "beyond = (p - slope * q - intercept) / error",
        f'print(f"Pr[{_plain(str(result.event))}]:", p, q, f"{{beyond:.1f}} standard errors beyond the claim")',
        f"raise SystemExit(int(beyond > {_SHOWN:g}))",
    ]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that is safe between quotes, also in an f-string."""
    kept = "".join(char if char.isprintable() and char not in '"\\{}' else " " for char in text)
    return kept if len(kept) <= 60 else kept[:59] + "…"


def _reference(mechanism: Any, path: Path) -> tuple[list[str], str]:
    """Import lines and an expression for the mechanism."""
    if isinstance(mechanism, functools.partial):
        imports, name = _reference(mechanism.func, path)
        given = [*map(_literal, mechanism.args), *(f"{key}={_literal(v)}" for key, v in mechanism.keywords.items())]
        return ["import functools", *imports], f"functools.partial({', '.join([name, *given])})"
    if inspect.ismethod(mechanism):
        imports, name = _reference(mechanism.__self__, path)
        return imports, f"{name}.{mechanism.__name__}"
    if inspect.isroutine(mechanism) or inspect.isclass(mechanism):
        return _imported(mechanism, path)
    if dataclasses.is_dataclass(mechanism):
        imports, name = _imported(type(mechanism), path)
        fields = [f for f in dataclasses.fields(mechanism) if f.init]
        return imports, f"{name}({', '.join(f'{f.name}={_literal(getattr(mechanism, f.name))}' for f in fields)})"
    raise ScriptError(f"an object of type {type(mechanism).__qualname__} cannot be written as code; audit a function.")


def _imported(thing: Any, path: Path) -> tuple[list[str], str]:
    """Import line and expression for a function or class."""
    name = getattr(thing, "__qualname__", "")
    if not name.isidentifier():
        raise ScriptError(f"{name or thing!r} is defined inside a function or class; define it in a module.")
    module = sys.modules.get(thing.__module__)
    if getattr(module, name, None) is not thing:
        raise ScriptError(f"{name} is not found in its module {thing.__module__}.")
    file = getattr(module, "__file__", None)
    if file is not None and (Path(file) == path or not getattr(module, "__package__", "")):
        return ["import runpy"], f"runpy.run_path({file!r})[{name!r}]"
    line = f"from {thing.__module__} import {name}"
    if file is not None:  # pytest may have put the folder on the path
        folders = thing.__module__.count(".") + (Path(file).name == "__init__.py")
        line = f"import sys; sys.path.append({str(Path(file).parents[folders])!r}); {line}"
    return [line], name


def _literal(value: Any) -> str:
    """A dataset or a parameter as Python code."""
    text = as_code(value)
    if text is None:
        raise ScriptError(f"a {type(value).__qualname__} cannot be written as a literal; use numbers and lists.")
    if len(text) > _LONGEST:
        raise ScriptError("the datasets are too long for a script; audit smaller ones.")
    return text


def _reading_and_test(event: Event) -> tuple[list[str], str]:
    """Lines that compute v from `outputs`, and an expression for the outputs in the event."""
    match event:
        case Outcomes(values, others):
            plain = "outputs.tolist() if isinstance(outputs, np.ndarray) else outputs"
            read = f"v = [tuple(o) if isinstance(o, list) else o for o in ({plain})]"
            return [read], f"[o {'not ' * others}in [{', '.join(map(_literal, values))}] for o in v]"
        case Intervals():
            return ["v = np.asarray(outputs, dtype=float)"], _among(event)
        case Scored(score, inner):
            return [f"v = {_score(score)}"], _among(inner)
    raise ScriptError(f"the event {event} cannot be written as code.")


def _among(event: Intervals) -> str:
    parts = [
        " & ".join([f"(v >= {low!r})"] * (low > -math.inf) + [f"(v <= {high!r})"] * (high < math.inf) or ["(v == v)"])
        for low, high in event.intervals
    ] + ["(v != v)"] * event.others
    return " | ".join(parts if len(parts) == 1 else [f"({part})" for part in parts])


def _score(score: Score) -> str:
    """Expression for the scores of `outputs`."""
    if isinstance(score, Number):
        return "np.asarray(outputs, dtype=float)"
    if isinstance(score, Coordinate):
        return f"np.asarray(outputs, dtype=float)[:, {score.place}]"
    if isinstance(score, Additive) and isinstance(score.columns, Coordinates) and not score.missing:
        columns = "np.asarray(outputs, dtype=float).T"
        if score.columns.differences:
            columns = f"(lambda c: np.concatenate([c[:1], np.diff(c, axis=0)]))({columns})"
        return (
            f"(lambda c: sum(rise * (np.clip(c[k], low, high) - low) / (high - low) if low < high else rise * "
            f"(c[k] >= low) for k, low, high, rise in {[tuple(piece) for piece in score.pieces]!r}))({columns})"
        )
    raise ScriptError(f"the event by the {score} cannot be written in a few lines.")
