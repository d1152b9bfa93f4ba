"""The facts that a report lists for one audit or statement: names and values as safe text."""

from __future__ import annotations

import html
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ...audit.claims.claim import GroupClaim
from ...audit.printing import percent
from ...audit.records.suite import Checked, Entry, ReplayRow, Suite
from ...audit.results.audit_result import AuditResult, SequentialResult, least_in_words
from ...audit.results.canary_result import CanaryResult
from ...audit.results.statement_result import StatementResult
from ...audit.results.worst_pair import WorstPair
from ...audit.sampling.object_identity import ELSEWHERE
from ...audit.sampling.pilot_and_batch_sizes import are_of_one_session
from ..plain_text import (
    canaries_in_words,
    canary_facts,
    error_budget,
    exact,
    exact_text,
    expectation,
    lines_below,
    number,
    other_way,
    p_text,
    runs_made,
    visible,
)

if TYPE_CHECKING:
    from ...audit.results.result import Result

# The card of a result in a notebook: the verdict, what must be read with it, and figures.

_COLOURS = {"REFUTED": "#D55E00", "DIFFERENT": "#D55E00", "INCONCLUSIVE": "#757575"}
_OTHERWISE = "#0072B2"
_BOX = (
    "max-width:46em;padding:.6em 1em;border:1px solid #ccc;border-left:6px solid {};border-radius:4px;"
    "background:#fff;color:#111;font:14px/1.45 sans-serif"
)
_REMARKS = "white-space:pre-wrap;margin:.4em 0;background:none;color:inherit"


def card(result: Result) -> str:
    """Return HTML without scripts or external resources; figures need matplotlib and are left out without it."""
    told = [f"  {remark}" for remark in result.remarks] + lines_below(result)
    sentence, *remarks = [html.escape(visible(line, 2_000)) for line in (result.sentence, *told)]
    colour = _COLOURS.get(result.verdict.name, _OTHERWISE)
    parts = [f'<div style="{_BOX.format(colour)}"><strong>{sentence}</strong>']
    if remarks:
        parts.append(f'<pre style="{_REMARKS}">{chr(10).join(remarks)}</pre>')
    if isinstance(result, AuditResult):
        parts += [f"<div>{html.escape(visible(line, 2_000))}</div>" for line in result.evidence.splitlines()]
    if isinstance(result, CanaryResult):
        shown = [
            f"{name}: {value}" for name, value in canary_facts(result) if name in ("canaries", "guesses", "ceiling")
        ]
        parts += [f"<div>{html.escape(line)}</div>" for line in shown]
    drawn = result.audit if isinstance(result, WorstPair) else result
    if isinstance(drawn, Checked) and find_spec("matplotlib") is not None:
        parts += [f'<div style="margin-top:.5em;max-width:30em">{figure}</div>' for figure in _figures(drawn)]
    return "".join([*parts, "</div>"])


def _figures(result: Checked) -> list[str]:
    """The row of the forest plot, and the figure that says most."""
    from ..figures.figures import figures_of
    from ..figures.forest_figure import forest
    from ..figures.svg_figure import svg

    found = [svg(drawn.figure, label=drawn.label) for drawn in figures_of(result)[:1]]
    if not isinstance(result, StatementResult):
        suite = Suite(title="", entries=(Entry(name=result.mechanism, result=result),))
        found.insert(0, svg(forest(suite, narrow=True, has_legend=False), label=result.sentence))
    return found


# Where the source of a mechanism lies, as URIs: from the environment of a result, a replay, or the name of a test.

SOURCE_ROOT, INSTALLED = "SRCROOT", "SITEPACKAGES"
"""Roots of relative URIs: the working directory of the audit, and the folder of installed packages."""

_ROOTS: Final = {"working directory": SOURCE_ROOT, "installed packages": INSTALLED}
_ROW: Final = re.compile(r"(?P<file>.+):(?P<line>\d{1,9}) in (?P<function>.*)", re.DOTALL)
_TEST: Final = re.compile(r"(?:^|: )(?P<file>[^:\n]+\.py)::")
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_LAST_LINE: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlace:
    """A line of a file."""

    file: str  # path with forward slashes; relative unless a replay says otherwise
    line: int | None = None
    function: str = ""  # empty if unknown
    root: str = ""  # `SOURCE_ROOT` or `INSTALLED`; empty if unknown
    sha256: str = ""  # of the file when the audit ran; empty if unknown

    @property
    def uri(self) -> str:
        """The path as a URI reference."""
        return uri_of(self.file)


def uri_of(path: str) -> str:
    """Return a path as a URI reference, a relative one if the path is relative.

    Examples
    --------
    >>> uri_of("my lib/counts.py"), uri_of("C:\\\\code\\\\a.py"), uri_of("/code/a.py"), uri_of("a:b.py")
    ('my%20lib/counts.py', 'file:///C:/code/a.py', 'file:///code/a.py', 'a%3Ab.py')
    """
    drive = re.match(r"[A-Za-z]:(?=[/\\])", path)
    if drive or "\\" in path:
        path = path.replace("\\", "/")
    rest = quote(path[2:] if drive else path, safe="/", errors="surrogatepass")
    if drive:
        return f"file:///{drive[0]}{rest}"
    return f"file://{rest}" if rest.startswith("/") else rest


def place_of_mechanism(entry: Entry) -> SourcePlace | None:
    """Return the recorded place of a mechanism; None if there is none, or if it is not a path below its root."""
    found = entry.result.environment.get("source")
    if not isinstance(found, dict):
        return None
    file, line, digest = (found.get(name) for name in ("file", "line", "sha256"))
    root = _ROOTS.get(str(found.get("below")))
    if root is None or not _is_below(file) or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        return None
    if isinstance(line, bool) or not isinstance(line, int) or not 1 <= line <= _LAST_LINE:
        return None
    return SourcePlace(file=str(file), line=line, root=root, sha256=digest)


def _is_below(file: Any) -> bool:
    """Whether a file names a path below a root, in a form that no system reads as another path."""
    if not isinstance(file, str) or not file or "\\" in file or ":" in file.partition("/")[0]:
        return False
    return not any(part in ("", ".", "..") for part in file.split("/"))


def place_of_test(entry: Entry) -> SourcePlace | None:
    """Return the file of the test that made an audit, from a name such as "tests/test_it.py::test_noisy"."""
    found = _TEST.search(entry.name)
    return SourcePlace(file=found["file"], root=SOURCE_ROOT) if found and _is_below(found["file"]) else None


def place_of_row(row: ReplayRow) -> SourcePlace | None:
    """Return the place of a call of a replay; None for code without a file, such as a prompt."""
    found = _ROW.fullmatch(row.place)
    if found is None or found["file"].startswith("<") or int(found["line"]) < 1:
        return None
    return SourcePlace(file=found["file"], line=int(found["line"]), function=found["function"])


def logical_name(entry: Entry) -> str:
    """Return the qualified name of the mechanism, such as "mylib.counts.noisy_count", or its name in the results."""
    code = entry.result.provenance
    if code is not None and ":" in code.where:
        return code.where.replace(":", ".")
    return str(getattr(entry.result, "mechanism", "") or entry.name)


Facts = list[tuple[str, str]]
_POWER = 0.95  # default of `check`
_BITS = {
    True: "included in the verdict",
    False: "not examined; the verdict is about values",
    "warn": "examined in the pilot for a warning; the verdict is about values",
}
_ANSWERS = {
    "both": "in for scores above the median, out for those below it, from the farthest score on",
    "in": "in, from the highest score on",
    "out": "out, from the lowest score on",
    "pairs": "which canary of a pair is in, from the largest difference of scores on",
}
_THEOREMS = {
    "betting": "bets: theorem 1 of docs/proofs/canaries.md",
    "counts": "counts: theorem 2 of docs/proofs/canaries.md",
    "steinke": "counts: Steinke, Nasr & Jagielski (2023), Theorem 5.2",
    "f-dp": "trade-off curve: theorem 3 of docs/proofs/canaries.md, after Mahloujifar, Melis & Chaudhuri (2024)",
}
_WHY_STOPPED = {
    "refuted": "the claim was refuted",
    "runs": "all runs were done",
    "time": "the time limit was reached",
    "request": "a request to stop",
}


def facts(entry: Entry) -> Facts:
    """Names and values of an entry, in reading order."""
    result = entry.result
    if isinstance(result, CanaryResult):
        own = _of_canaries(entry, result)
    else:
        own = _of_statement(entry, result) if isinstance(result, StatementResult) else _of_audit(entry, result)
    shared = [("Repeat with", visible(repetition(entry), 2_000))]
    if entry.expected is not None:
        shared.append(("Expectation", expectation(entry)))
    environment = {name: value for name, value in result.environment.items() if name not in ("repeat", "source")}
    if environment:
        shared.append(("Time and machine", "; ".join(f"{name} {value}" for name, value in in_words(environment))))
    return own + shared


def _of_audit(entry: Entry, result: AuditResult) -> Facts:
    pair, claim, place = result.pair, result.claim, place_of_mechanism(entry)
    if result.findings:
        excess = ["not stated, because a health check failed"]
    else:
        excess = [result.detectable_in_words.removeprefix("minimum detectable excess: ")]
    if result.requested_resolution is not None:
        excess.insert(1, f"requested: {number(result.requested_resolution)}")
    counted = runs_made(result)
    if result.stopped is not None:
        batches = f"in {len(result.interim_analyses):,} batches, " if result.interim_analyses else ""
        counted = f"{result.runs:,} on each dataset, {batches}until {_WHY_STOPPED[result.stopped]}"
        counted += "; the event was chosen early and is tested on the runs after that" * result.is_closed
    provenance = "not recorded" if result.provenance is None else str(result.provenance)
    lower = visible(f"{least_in_words(claim, result.bound)} at {percent(1 - result.alpha)} confidence")
    pvalue = p_text(result.pvalue)
    if result.findings:
        lower = "none, because a health check failed and the sampling error is unknown"
        pvalue = "not stated, because a health check failed"
    source = "from the same counts, without a guarantee"
    if result.stopped is not None and not result.is_closed:
        source = "biased upward, because the counts include the runs on which the event was learned"
    return [
        ("Mechanism", visible(result.mechanism, 300)),
        ("Code", visible(provenance)),
        *([("Source", f"{visible(place.file)}:{place.line}")] if place is not None else []),
        *_of_claim(entry, result),
        ("Unit of privacy", visible(pair.unit) or "not stated"),
        ("Adjacency", f"{visible(pair.adjacency)}; distance {number(pair.distance)}"),
        ("Lower bound", lower),
        ("Detectable excess", "; ".join(filter(None, excess))),
        ("Dataset x", visible(pair.x)),
        ("Dataset y", visible(pair.y)),
        ("Difference", visible(pair.difference)),
        ("Event", visible(str(result.event))),
        ("Observed", visible("; ".join(filter(None, (result.event_in_words, other_way(result)))))),
        *([] if result.opposite is None else [("Guesses", str(result.opposite.guesses))]),
        ("Estimate", f"{number(result.estimate)} ({source})"),
        *([] if entry.exact is None else [("Exact value", f"{exact_text(entry)} on this pair")]),
        ("p-value of the claim", pvalue),
        ("Error budget", visible(error_budget(result))),
        ("Low bits of floats", _BITS[result.bits]),
        ("Runs", counted),
        ("Seed", _seed(result)),
    ]


def _of_claim(entry: Entry, result: AuditResult | CanaryResult) -> Facts:
    claim = result.claim
    stated_by = f"the statement of {visible(entry.experiment, 100)}" if entry.experiment else "the caller"
    return [
        ("Claim", visible(f"{claim} ({claim.parameter_name} {number(claim.parameter)})")),
        ("Source of the claim", visible(result.claim_source) or stated_by),
    ]


def _seed(result: AuditResult) -> str:
    return (
        f"{result.seed}{'' if result.is_reproducible else f'; not reproducible, because {result.why_not_reproducible}'}"
    )


def _of_statement(entry: Entry, result: StatementResult) -> Facts:
    known = [("Code", visible(str(result.provenance)))] if result.provenance is not None else []
    return [
        ("Statement", visible(result.statement)),
        *known,
        (
            "Intervals",
            f"{visible(result.method)}; all intervals hold together with {percent(1 - result.alpha)} confidence",
        ),
        *([] if exact(entry) is None else [("Exact value", number(exact(entry)))]),
        ("Runs", f"{result.runs:,} on each dataset"),
        ("Seed", str(result.seed)),
    ]


def _of_canaries(entry: Entry, result: CanaryResult) -> Facts:
    claim, words = result.claim, result.detectable_in_words.removeprefix("minimum detectable excess: ")
    lower = f"{least_in_words(claim, result.bound)} at {percent(1 - result.alpha)} confidence"
    return [
        ("Training", visible(result.mechanism, 300)),
        *_of_claim(entry, result),
        ("Adjacency", f"{visible(result.adjacency)}, of one canary"),
        ("Lower bound", visible(lower)),
        ("Ceiling", visible(f"{claim.describe_parameter(result.ceiling)} if every guess had been correct")),
        ("Detectable excess", visible(words)),
        ("Canaries", canaries_in_words(result)),
        ("Answers", _ANSWERS["pairs" if result.coins == "fixed" else result.guesses.said]),
        ("Guesses", f"{result.guesses_in_words} ({result.carried.kind})"),
        *([] if entry.exact is None else [("Exact value", exact_text(entry))]),
        ("p-value of the claim", p_text(result.pvalue)),
        ("Theorems", "; ".join(_THEOREMS[kind] for kind in dict.fromkeys(test.kind for test in result.tests))),
        ("Error budget", visible(error_budget(result))),
        ("Seed", f"{result.seed}, for the order of equal scores"),
    ]


def repetition(entry: Entry) -> str:
    """The command or call that repeats the audit.

    A call names the mechanism and the pair by placeholders and omits the adjacency, which does not affect the result.
    """
    result = entry.result
    stated = result.environment.get("repeat")
    if isinstance(stated, str) and _is_one_command(stated):
        return stated
    if isinstance(result, CanaryResult):
        return _of_training(result)
    if entry.experiment:
        experiment = shlex.quote(entry.experiment)
        return f"dpaudit run {experiment} --runs {result.runs} --alpha {result.alpha!r} --seed {result.seed}"
    if isinstance(result, StatementResult):
        return f"the same call with runs={result.runs}, alpha={result.alpha!r}, seed={result.seed}"
    claim = result.claim
    options: dict[str, Any] = {"claim": claim}
    if isinstance(claim, GroupClaim):
        options = {"claim": claim.base, "distance": claim.distance}
    options |= {"alpha": result.alpha, "seed": result.seed}
    function, datasets = "check_outputs", "xs, ys"
    if result.provenance != ELSEWHERE and result.pair.difference != "not seen":
        function, datasets = "check", "mechanism, x, y"
        options["runs"] = result.runs
        if result.searched:
            function, datasets = "find_worst_pair", "mechanism, domain"
        if result.stopped is not None:
            options["sequential"] = True
            if isinstance(result, SequentialResult) and not result.final_alpha:
                options["seconds"] = math.inf
        if result.cells is not None:
            options["cells"] = result.cells.asked or len(result.cells.names)
    if result.requested_resolution is not None:
        options["resolution"] = result.requested_resolution
    if result.power != _POWER:
        options["power"] = result.power
    if result.ignored:
        options["ignore"] = result.ignored
    if result.bits != "warn":
        options["bits"] = result.bits
    call = f"{function}({datasets}, {', '.join(f'{name}={_in_python(value)}' for name, value in options.items())})"
    if result.interim_analyses and not are_of_one_session([look.runs for look in result.interim_analyses]):
        call += "  # in one session; this audit ran in several, with other batches"
    elif result.searched:
        call += "  # with the domain and the search_runs of the search"
    return call


def _of_training(result: CanaryResult) -> str:
    """The call on the same scores, with the tests that were made."""
    options: dict[str, Any] = {"claim": result.claim, "alpha": result.alpha, "seed": result.seed, "coins": result.coins}
    if result.coins == "independent":
        options |= {"probability": result.guesses.probability, "say": result.guesses.said}
    options["adjacency"] = result.adjacency
    kinds = {test.kind for test in result.tests}
    if len(kinds) == 1:  # bets and counts together are the default
        options["method"] = result.tests[0].kind
        if kinds != {"betting"}:
            options["guesses"] = [test.guesses for test in result.tests]
    call = ", ".join(f"{name}={_in_python(value)}" for name, value in options.items())
    return f"check_canaries(scores, included, {call})"


def _in_python(value: Any) -> str:
    return "float('inf')" if value == math.inf else repr(value)


def _is_one_command(text: str) -> bool:
    """Whether a shell would run the text as a single pytest or dpaudit command, and nothing else."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    return words[:1] in (["pytest"], ["dpaudit"]) and shlex.join(words) == text


def in_words(environment: Mapping[str, Any]) -> Facts:
    """Names and values of an environment, with a line for each of several values."""
    named = ((visible(str(name), 60).replace("_", " "), value) for name, value in environment.items())
    return [(name, _value(each)) for name, value in named for each in (value if _is_several(value) else [value])]


def _is_several(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(part, Mapping) for part in value)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {shown}".strip() for name, shown in in_words(value) if shown)
    if isinstance(value, (list, tuple)):
        return visible(" ".join(map(str, value)), 2_000)
    return visible(str(value), 2_000)
