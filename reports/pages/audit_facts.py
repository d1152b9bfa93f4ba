"""What reports say of one result apart from its numbers: its card, its source, and the call that repeats it."""

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
from ...audit.records.suite import Checked, Entry, ReplayRow, Suite
from ...audit.results.audit_result import AuditResult, SequentialResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.statement_result import StatementResult
from ...audit.results.verdict import Verdict
from ...audit.results.worst_pair import WorstPair
from ...audit.sampling.object_identity import ELSEWHERE
from ...audit.sampling.pilot_and_batch_sizes import are_of_one_session
from .. import plain_text as plain

if TYPE_CHECKING:
    from ...audit.results.result import Result

# The card of a result in a notebook: the verdict, what must be read with it, and figures.

_SAME = {"DIFFERENT": "REFUTED", "INCONCLUSIVE": "INCONCLUSIVE", "REFUTED": "REFUTED"}
_BOX = (
    "max-width:46em;padding:.6em 1em;border:1px solid #ccc;border-left:6px solid {};border-radius:4px;"
    "background:#fff;color:#111;font:14px/1.45 sans-serif"
)
_REMARKS = "white-space:pre-wrap;margin:.4em 0;background:none;color:inherit"


def card(result: Result) -> str:
    """Return HTML without scripts or external resources; figures need matplotlib and are left out without it."""
    told = [f"  {remark}" for remark in result.remarks] + plain.lines_below(result)
    sentence, *remarks = [
        html.escape(plain.visible(line, 2_000)) for line in (getattr(result, "headline", result.sentence), *told)
    ]
    colour = plain.COLOUR[Verdict[_SAME.get(result.verdict.name, "NOT_REFUTED")]]
    parts = [f'<div style="{_BOX.format(colour)}"><strong>{sentence}</strong>']
    if remarks:
        parts.append(f'<pre style="{_REMARKS}">{chr(10).join(remarks)}</pre>')
    shown = result.observation.splitlines() if isinstance(result, AuditResult) else []
    if isinstance(result, CanaryResult):
        facts = dict(plain.canary_facts(result))
        shown = [f"{name}: {facts[name]}" for name in ("canaries", "guesses", "at most")]
    parts += [f"<div>{html.escape(plain.visible(line, 2_000))}</div>" for line in shown]
    drawn = result.audit if isinstance(result, WorstPair) else result
    if isinstance(drawn, Checked) and find_spec("matplotlib") is not None:
        parts += [f'<div style="margin-top:.5em;max-width:30em">{figure}</div>' for figure in _figures(drawn)]
    return "".join([*parts, "</div>"])


def _figures(result: Checked) -> list[str]:
    """The row of the forest plot, and the figure that says most."""
    from ..figures.forest_figure import forest
    from ..figures.plot import figures_of
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


_POWER = 0.95  # default of `check`


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
        if result.bins is not None:
            options["bins"] = result.bins.asked or len(result.bins.names)
    options |= {
        "detect": result.detect,
        "power": result.power if result.power != _POWER else None,
        "ignore": result.ignored or None,
        "floating_point": result.floating_point if result.floating_point != "warn" else None,
    }
    call = f"{function}({datasets}, {_in_python(options)})"
    if result.interim_analyses and not are_of_one_session([each.runs for each in result.interim_analyses]):
        call += "  # in one session; this audit ran in several, with other batches"
    elif result.searched:
        call += "  # with the domain and the search_runs of the search"
    return call


def _of_training(result: CanaryResult) -> str:
    """The call on the same scores, with the tests that were made."""
    options: dict[str, Any] = {
        "claim": result.claim,
        "alpha": result.alpha,
        "seed": result.seed,
        "inclusion": result.inclusion,
    }
    if result.inclusion == "independent":
        options |= {"probability": result.guesses.probability, "guess": result.guesses.answer}
    options["adjacency"] = result.adjacency
    kinds = {test.kind for test in result.tests}
    if len(kinds) == 1:  # bets and counts together are the default
        options["method"] = result.tests[0].kind
        if kinds != {"betting"}:
            options["guesses"] = [test.guesses for test in result.tests]
    return f"check_canaries(scores, included, {_in_python(options)})"


def _in_python(options: Mapping[str, Any]) -> str:
    """Options as in a call, without those that are None."""
    shown = {name: "float('inf')" if value == math.inf else repr(value) for name, value in options.items()}
    return ", ".join(f"{name}={text}" for name, text in shown.items() if options[name] is not None)


def _is_one_command(text: str) -> bool:
    """Whether a shell would run the text as a single pytest or dpaudit command, and nothing else."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    return words[:1] in (["pytest"], ["dpaudit"]) and shlex.join(words) == text


def in_words(environment: Mapping[str, Any], *left_out: str) -> list[tuple[str, str]]:
    """Names and values of an environment, with a line for each of several values."""
    kept = [(str(name), value) for name, value in environment.items() if name not in left_out]
    named = ((plain.visible(name, 60).replace("_", " "), value) for name, value in kept)
    found = []
    for name, value in named:
        is_several = isinstance(value, (list, tuple)) and any(isinstance(part, Mapping) for part in value)
        found += [(name, _value(each)) for each in (value if is_several else [value])]
    return found


def _value(value: Any) -> str:
    if isinstance(value, float):
        return plain.number(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {shown}".strip() for name, shown in in_words(value) if shown)
    if isinstance(value, (list, tuple)):
        return plain.visible(" ".join(map(str, value)), 2_000)
    return plain.visible(str(value), 2_000)
