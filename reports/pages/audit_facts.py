"""What reports say of one result apart from its numbers (card, source, call), and of all results of a page."""

from __future__ import annotations

import html
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ...audit.known_options import is_call
from ...audit.printing import percent
from ...audit.records.suite import Checked, Entry, ReplayRow, Suite
from ...audit.results.canary_result import CanaryResult
from ...audit.results.verdict import Verdict
from ...audit.results.worst_pair import WorstPair
from ...audit.sampling.pilot_and_batch_sizes import are_of_one_session
from .. import plain_text as plain

if TYPE_CHECKING:
    from ...audit.results.result import Result

# The card of a result in a notebook: the verdict, what must be read with it, and figures.

_BOX = (
    "max-width:46em;padding:.6em 1em;border:1px solid #ccc;border-left:6px solid {};border-radius:4px;"
    "background:#fff;color:#111;font:14px/1.45 sans-serif"
)
_MARK = '<span style="color:{}" aria-hidden="true">{}</span>'
_REMARKS = "white-space:pre-wrap;margin:.4em 0;background:none;color:inherit"


def card(result: Result) -> str:
    """Return HTML without scripts or external resources; figures need matplotlib and are left out without it."""
    told = [f"  {remark}" for remark in result.remarks] + [*result.below]
    sentence, *remarks = [html.escape(plain.visible(line, 2_000)) for line in (result.headline, *told)]
    look = plain.LOOKS[plain.alike(result.verdict.name)]
    mark = _MARK.format(look.colour, look.mark)
    parts = [f'<div style="{_BOX.format(look.colour)}">{mark} <strong>{sentence}</strong>']
    if remarks:
        parts.append(f'<pre style="{_REMARKS}">{chr(10).join(remarks)}</pre>')
    facts = plain.fact_lines(result) if isinstance(result, Checked) else []
    parts += [f"<div>{html.escape(plain.visible(fact, 2_000))}</div>" for fact in facts]
    drawn = result.audit if isinstance(result, WorstPair) else result
    if isinstance(drawn, Checked) and find_spec("matplotlib") is not None:
        parts += [f'<div style="margin-top:.5em;max-width:30em">{figure}</div>' for figure in _figures(drawn)]
    return "".join([*parts, "</div>"])


def _figures(result: Checked) -> list[str]:
    """The row of the forest plot, and the figure that says most."""
    from ..figures.output_figures import forest
    from ..figures.plot import figures_of, svg

    found = [svg(drawn.figure, label=drawn.label, title=drawn.title) for drawn in figures_of(result)[:1]]
    if result.claim is not None:
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
    return (entry.result.claim is not None and entry.result.mechanism) or entry.name


def repetition(entry: Entry) -> str:
    """The command or the call that was made, which repeats the audit; what is known of it, if it was not recorded.

    A call names the datasets by placeholders, and so a mechanism and options that are not written in a few characters.
    """
    result = entry.result
    command, call = (result.environment.get(name) for name in ("repeat", "call"))
    if isinstance(command, str) and _is_one_command(command):
        return command
    if entry.experiment and not isinstance(result, CanaryResult):
        experiment = shlex.quote(entry.experiment)
        return f"dpaudit run {experiment} --runs {result.runs} --alpha {result.alpha!r} --seed {result.seed}"
    if isinstance(call, str) and is_call(call):
        batches = [each.runs for each in result.interim_analyses]
        is_resumed = batches and not are_of_one_session(batches)
        return f"{call}  # in one session; this audit ran in several, with other batches" if is_resumed else call
    runs = "" if isinstance(result, CanaryResult) else f"runs={result.runs}, "
    return f"the same call, which was not recorded, with {runs}alpha={result.alpha!r}, seed={result.seed}"


def _is_one_command(text: str) -> bool:
    """Whether a shell would run the text as a single pytest or dpaudit command, and nothing else."""
    try:
        words = shlex.split(text)
    except ValueError:
        return False
    return words[:1] in (["pytest"], ["dpaudit"]) and shlex.join(words) == text


_SECONDS: Final = re.compile("^seconds(?=_|$)")


def in_words(environment: Mapping[str, Any], *left_out: str) -> list[tuple[str, str]]:
    """Names and values of an environment, with a line for each of several values."""
    kept = [(str(name), value) for name, value in environment.items() if name not in left_out]
    named = ((_SECONDS.sub("time", plain.visible(name, 60)).replace("_", " "), value) for name, value in kept)
    found = []
    for name, value in named:
        is_several = isinstance(value, (list, tuple)) and any(isinstance(part, Mapping) for part in value)
        if name.startswith("time") and isinstance(value, (int, float)):
            found.append((name, plain.duration(value)))
        else:
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


# What is stated for all audits of a page together, and what the first screen says of them.

FAMILY_WISE = 0.05
IN_NO_AUDIT = (
    "the composition of a mechanism with other releases (privacy accounting)",
    "proofs, and whether the claimed parameters are adequate",
    "post-processing that uses the data again",
    "running time, memory and other side channels",
    "the random generator used in production",
    "data collection, security and access control",
)
"""What no audit examines."""


def by_severity(entries: Sequence[Entry]) -> list[Entry]:
    """Refuted claims by decreasing severity, then inconclusive audits, then the rest; otherwise in the given order.

    The severity of a refuted claim is its lower bound as a multiple of the claim, infinite for a claim of 0. Refuted
    statements follow the claims, by the distance of their worst number from the stated range in interval widths.
    """
    return sorted(entries, key=_rank)


def _rank(entry: Entry) -> tuple[int, bool, float]:
    result, place = entry.result, plain.READING_ORDER.index(entry.result.verdict)
    if not result.is_refuted:
        return place, False, 0.0
    if result.claim is None:
        return place, True, -max(point.excess for point in result.points)
    return place, False, -plain.severity(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Statements on all audits of a page together."""

    headline: str  # family-wise alpha and confidence, for the first screen
    sentences: tuple[str, ...]
    refuted_together: tuple[str, ...]  # names of the claims that are refuted at family-wise error 0.05
    refuted_alone: tuple[str, ...]  # names of the other refuted claims


def limits_of(suite: Suite) -> Limits:
    """What holds for the whole page, by the union bound and by Holm's method."""
    n, total = len(suite.entries), plain.false_alarms(suite)
    adjusted = dict(zip(map(id, suite.entries), suite.adjusted_pvalues(), strict=True))
    refuted = [entry for entry in by_severity(suite.entries) if entry.result.is_refuted]
    together = tuple(plain.visible(each.name, 100) for each in refuted if adjusted[id(each)] <= FAMILY_WISE)
    alone = tuple(plain.visible(each.name, 100) for each in refuted if adjusted[id(each)] > FAMILY_WISE)
    if not n:
        return Limits(headline="", sentences=(), refuted_together=(), refuted_alone=())
    summed, alphas = _in_two_digits(total), sorted({entry.result.alpha for entry in suite.entries})
    of_each = " or ".join(map(plain.number, alphas))
    each = f"{percent(1 - alphas[0])} each" if len(alphas) == 1 else f"{percent(1 - alphas[-1])} or more each"
    if n == 1:
        headline = f"alpha {of_each}, confidence {percent(1 - total)}"
        sentences = [f"The limits of this audit hold together with confidence {percent(1 - total)}."]
    elif total < 1.0:
        headline = (
            f"family-wise alpha {summed} (alpha {of_each} each), confidence {percent(1 - total)} for all together"
        )
        sentences = [
            f"All lower bounds and intervals of the {n:,} audits hold together with confidence {percent(1 - total)}: "
            f"the probability that any is wrong is at most {summed}, the sum of the alphas."
        ]
    else:
        headline = f"alpha {of_each} each, confidence {each}; no family-wise confidence, as the alphas sum to {summed}"
        sentences = [
            f"Each bound holds with its own confidence ({each}). All {n:,} bounds together have no stated confidence, "
            f"because the alphas sum to {summed}."
        ]
    if n > 1 and total > FAMILY_WISE:
        sentences.append(
            f"For bounds that hold together with 95% confidence, repeat the audits with alpha at most "
            f"{_in_two_digits(FAMILY_WISE / n, math.floor)}."
        )
    sentences += [plain.held_together(suite)] if n > 1 else []
    if any(entry.result.findings for entry in suite.entries):
        sentences.append("Audits with a failed health check state no bound and refute nothing.")
    if any(entry.result.stopped == "refuted" for entry in refuted):
        sentences.append(
            "An audit that stopped at its refutation states the bound at that moment, which may be little above the "
            "claim although the violation is large. Its multiple × says little about severity."
        )
    parameters = {each.result.claim.parameter_name for each in refuted if each.result.claim is not None}
    if len(parameters) > 1:
        letters = " and ".join(sorted(map(plain.symbol, parameters)))
        sentences.append(
            f"× is the lower bound as a multiple of the claimed parameter. Multiples of {letters} stand in one list, "
            "but they measure different things."
        )
    sentences.append(
        "The confidence covers every choice made inside an audit: event, direction, interim analyses. It does not "
        "cover other datasets, the choice of the audits after a look at their results, or the warnings of "
        "floating-point leaks and "
        "the health checks, whose false-alarm probabilities are in each error budget."
    )
    sentences.append(f"No audit examines {'; '.join(IN_NO_AUDIT)}.")
    return Limits(headline=headline, sentences=tuple(sentences), refuted_together=together, refuted_alone=alone)


def _in_two_digits(value: float, to_integer: Callable[[float], int] = math.ceil) -> str:
    digits = 1 - math.floor(math.log10(value))
    scaled = round(value * 10.0**digits, 9)
    return f"{to_integer(scaled) / 10.0**digits:.2g}"


def about(suite: Suite) -> str:
    """One line: who audited with what version and when, and the error probability of the whole page."""
    records = plain.environments(suite)
    people = dict.fromkeys(str(one["by"]) for one in records if one.get("by"))
    versions = sorted(
        {version for entry in suite.entries for name, version in entry.result.versions if name == "dpaudit"}
    )
    days = sorted(str(moment)[:16] for one in records if (moment := one.get("started") or one.get("saved")))
    when = " to ".join(dict.fromkeys([days[0], days[-1]])).replace("T", " ") + " UTC" if days else "time not recorded"
    parts = [
        f"Audited by {', '.join(people)}" if people else "",
        f"dpaudit {', '.join(versions)}" if versions else "version not recorded" * bool(suite.entries),
        when,
        limits_of(suite).headline,
    ]
    return plain.visible(" · ".join(filter(None, parts)), 400)


def what_to_do(suite: Suite) -> dict[Verdict, str]:
    """For each verdict, what a reader does next."""
    refuted = [entry for entry in suite.entries if entry.result.is_refuted]
    on_refuted = (
        "Do not release under these claims. The section of each audit describes the pair and the event and has the "
        "call that repeats the audit. Correct the code or weaken the claim, and audit again."
    )
    if refuted and plain.is_self_test(suite) and all(entry.is_met for entry in refuted):
        on_refuted = "These are deliberately faulty mechanisms that the self-test must refute. No action is needed."
    return {
        Verdict.REFUTED: on_refuted,
        Verdict.INCONCLUSIVE: (
            "An inconclusive audit decides nothing, so do not release on it. Correct what the failed health check "
            "names, or use more runs, and audit again."
        ),
        Verdict.NOT_REFUTED: (
            "No violation was found on these datasets. This is not a proof: an excess below the minimum detectable "
            "one, or one on other datasets, may exist. Before a release, check in the table that the minimum "
            "detectable excess is small enough, and in the limits what no audit examines."
        ),
    }
