"""The card of a result in a notebook: the verdict, what must be read with it, and figures."""

from __future__ import annotations

import html
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ...audit.records.suite import Checked, Entry, Suite
from ...audit.results.audit_result import AuditResult
from ...audit.results.canary_result import CanaryResult
from ...audit.results.statement_result import StatementResult
from ...audit.results.worst_pair import WorstPair
from ..plain_text import canary_facts, lines_below, visible

if TYPE_CHECKING:
    from ...audit.results.result import Result

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
