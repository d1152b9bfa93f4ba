"""A violation as a script of at most 20 lines that needs numpy and the mechanism, but not this library."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...audit.events.events import Apart, Event, Intervals, Outcomes, Scored, names_in
from ...audit.events.features import Coordinates
from ...audit.events.leaves import Leaves
from ...audit.events.outputs import Raised
from ...audit.events.scores import Additive, Column, LowestBit, Number, Score, Weighted
from ...audit.inference.betting_test import best_line
from ...audit.results.audit_result import AuditResult
from ...audit.sampling.sampler import as_sampler

_ERRORS, _LEAST, _MOST = 8.0, 1_000, 10_000_000  # planned standard errors, and limits of the runs
_SHOWN = 5.0  # standard errors beyond which the script reports a violation
_LONGEST = 4_000  # characters of a dataset


class ScriptError(Exception):
    """The reason why no script can be written."""


def script(result: AuditResult, mechanism: Any, x: Any, y: Any, path: Path, options: Mapping[str, Any]) -> str:
    """Return the text of a script that draws new outputs, counts the event and compares it with the claim.

    The script exits with status 1 if the event's probability exceeds the claim by more than 5 standard errors.

    Parameters
    ----------
    result : AuditResult
        Result that refutes the claim.
    mechanism, x, y : Any
    path : Path
        File of the test.
    options : mapping
        Options of the audit.
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
    p, q = (counts.hits_x + 0.5) / (counts.runs_x + 1.0), (counts.hits_y + 0.5) / (counts.runs_y + 1.0)
    line = best_line(claim, p, q, float(counts.runs_x))
    spread = math.sqrt(p * (1 - p) + line.slope**2 * q * (1 - q))
    beyond = p - line.slope * q - line.intercept
    beyond = max(
        beyond - 2.0 * spread / math.sqrt(counts.runs_x), beyond / 3
    )  # the event was selected on similar counts
    runs = int(min(max(_LEAST, (_ERRORS * spread / beyond) ** 2), _MOST)) if beyond > 0 else _MOST
    first, second = (x, y) if result.likelier_on == "x" else (y, x)
    if sampler.is_block:
        draw = [f"    outputs = np.asarray({once})"]
    elif _raises(result.event):
        draw = [
            "    def run():",
            f"        try: return {once}",
            '        except Exception as error: return f"raises {type(error).__qualname__}"',
            "    outputs = [run() for _ in range(runs)]",
        ]
    else:
        draw = [f"    outputs = [{once} for _ in range(runs)]"]
    read, inside = _reading_and_test(result.event)
    has_sample = not inspect.isclass(mechanism) and callable(getattr(mechanism, "sample", None))
    lines = [
        f'"""{_plain(result.mechanism)}: does {_plain(str(claim))} hold? Exit status 1 if these runs contradict it."""',
        *dict.fromkeys(["import numpy as np", *imports]),
        f"mechanism = {name}{'.sample' * has_sample}",
        f"likelier, other = {_literal(first)}, {_literal(second)}",
        f"rng, runs = np.random.default_rng({result.seed % 2**32}), {runs}",
        "def hits(dataset):",
        *draw,
        *(f"    {part}" for part in read),
        f"    return int(np.count_nonzero({inside}))",
        "p, q = hits(likelier) / runs, hits(other) / runs",
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
    """A dataset as Python code: short plain values and arrays of numbers."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        if value.size and np.all(value == value.flat[0]):
            return f"np.full({value.shape!r}, {value.flat[0].item()!r})"
        text = f"np.array({_literal(value.tolist())}, dtype={value.dtype.name!r})"
    elif isinstance(value, np.generic):
        return _literal(value.item())
    else:
        try:
            text = repr(value)
            is_same = ast.literal_eval(text) == value
        except Exception:  # no literal, or an object whose methods raise
            is_same = False
        if is_same is not True:
            raise ScriptError(f"a {type(value).__qualname__} cannot be written as a literal; use numbers and lists.")
    if len(text) > _LONGEST:
        raise ScriptError("the datasets are too long for a script; audit smaller ones.")
    return text


def _raises(event: Event) -> bool:
    """Whether the event contains exceptions as outputs."""
    if isinstance(event, Apart):
        return _raises(event.event) or _raises(event.other)
    if isinstance(event, Scored) and isinstance(event.score, Column) and isinstance(event.score.columns, Leaves):
        return any(isinstance(leaf, Raised) for _, known in event.score.columns.coded for leaf in known)
    return isinstance(event, Outcomes) and any(isinstance(value, Raised) for value in event.values)


def _reading_and_test(event: Event) -> tuple[list[str], str]:
    """Lines that compute v from `outputs`, and an expression for the outputs in the event."""
    match event:
        case Apart(first, other):
            (reading, inside), (reading_other, inside_other) = _reading_and_test(first), _reading_and_test(other)
            return [*reading, f"inside = np.array({inside})", *reading_other], f"inside & ~np.array({inside_other})"
        case Outcomes(values, others):
            plain = "outputs.tolist() if isinstance(outputs, np.ndarray) else outputs"
            read = f"v = [tuple(o) if isinstance(o, list) else o for o in ({plain})]"
            return [read], f"[o {'not ' * others}in [{_listed(values)}] for o in v]"
        case Intervals():
            return ["v = np.asarray(outputs, dtype=float)"], _among(event)
        case Scored(Column(Leaves() as leaves, column), inner):
            return _leaf(leaves, column, inner)
        case Scored(score, inner):
            return [f"v = {_score(score)}"], _among(inner)
    raise ScriptError(f"the event {event} cannot be written as code.")


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(repr(str(value)) if isinstance(value, Raised) else _literal(value) for value in values)


def _leaf(leaves: Leaves, column: int, inside: Intervals) -> tuple[list[str], str]:
    """The same for a part of nested or non-numeric outputs: their structure, or the value at a place."""

    def holds(code: float) -> bool:
        return bool(inside.contains(np.array([code]))[0])

    is_number = "isinstance({0}, (int, float, np.number))"
    if column == 0:
        known: tuple[Any, ...] = leaves.builds
        if "dictionary" in str(known):
            raise ScriptError("the form of a dictionary cannot be written in a few lines.")
        build = f"build = lambda o: tuple(map(build, o)) if type(o) is tuple else {is_number.format('o')}"
        if "an exception" in str(known):
            build += " or 'an exception' * str(o).startswith('raises ')"
        read = [build, "v = [build(o) for o in outputs]"]
    else:
        place = column - 1 - len(leaves.paths)
        path, known = (leaves.paths[column - 1], ()) if place < 0 else leaves.coded[place]
        if len(path) > 1 or any(isinstance(part, str) for part in path):
            raise ScriptError(f"the event by {leaves.names[column]} cannot be written in a few lines.")
        part = f"o[{path[0]}]" if path else "o"
        is_there = [f"type(o) is tuple and len(o) > {path[0]}"] if path else ["type(o) is not tuple"]
        if place < 0:
            condition = " and ".join([*is_there, is_number.format(part)])
            return [f"v = np.array([float({part}) if {condition} else np.nan for o in outputs])"], _among(inside)
        condition = " and ".join([*is_there, f"not {is_number.format(part)}"])
        read = [f"v = [{part} if {condition} else np.nan for o in outputs]"]
    # Values unseen in the pilot share the code -1, absent values are NaN.
    chosen = [value for code, value in enumerate(known) if holds(float(code)) != holds(-1.0)]
    test = f"o {'not ' * holds(-1.0)}in [{_listed(chosen)}]"
    absent = "(o is np.nan)"
    if holds(np.nan) != holds(-1.0):
        test = f"{test} or {absent}" if holds(np.nan) else f"{test} and not {absent}"
    return read, f"[{test} for o in v]"


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
    if isinstance(score, Weighted):
        return f"np.asarray(outputs, dtype=float) @ np.array({list(score.weights)!r})"
    if isinstance(score, LowestBit):
        return (
            f"(lambda v: np.where(v == 0, 1024.0, np.log2(np.array([float(abs(k) & -abs(k)) for k in "
            f"(np.frexp(v)[0] * 2**53).astype(int).tolist()]) + (v == 0)) + np.frexp(v)[1] - 53))({_score(score.of)})"
        )
    if isinstance(score, Additive) and isinstance(score.columns, Coordinates) and not score.missing:
        columns = "np.asarray(outputs, dtype=float).T"
        if score.columns.differences:
            columns = f"(lambda c: np.concatenate([c[:1], np.diff(c, axis=0)]))({columns})"
        return (
            f"(lambda c: sum(rise * (np.clip(c[k], low, high) - low) / (high - low) if low < high else rise * "
            f"(c[k] >= low) for k, low, high, rise in {[tuple(piece) for piece in score.pieces]!r}))({columns})"
        )
    raise ScriptError(f"the event by the {score} cannot be written in a few lines.")
