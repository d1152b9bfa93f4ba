"""The figures: they say what the results say, whatever the numbers are, and stand in a page without clashing."""

import dataclasses
import io
import math
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.audit.events.events import Intervals, Outcomes, Sketch
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.records.suite import Entry, Suite
from dpaudit.audit.results.audit_result import FixedSizeResult, InterimAnalysis
from dpaudit.reports.figures.output_figures import ClaimedCurve, forest, outputs_figure
from dpaudit.reports.figures.plot import drawings_of, figures_of, kinds_of, plot, svg

from ..examples import BINS, CELLS, CLAIMS, COINS, POINTS, SERIES
from ..examples import audit as result
from ..examples import statement as told
from ..test_snapshots import SUITE


def entry(exact=None, **changes):
    return Entry(name="audit", result=result(**changes), exact=exact)


def counts(count_x, count_y):
    return Counts(count_x=count_x, runs_x=100, count_y=count_y, runs_y=100)


@pytest.mark.parametrize("narrow", [False, True])
def test_forest_draws_every_kind_of_number_without_a_warning(narrow, monkeypatch):
    extremes = [0.0, 5e-324, 1.0, 1e308, math.inf, math.nan]
    entries = [entry(exact, bound=bound) for exact in [None, *extremes] for bound in (0.0, 1.0, 1e308, math.inf)]
    entries += [entry(1.0, bound=b, claim=c) for b in (0.0, 1.0) for c in (PureDP(0), PureDP(1e-300))]
    entries += [
        entry(counts=counts(x, y), min_detectable_excess=math.inf) for x, y in [(0, 0), (9, 0), (0, 9), (100, 100)]
    ]
    drawn = svg(forest(Suite(title="", entries=tuple(entries)), narrow=narrow))
    assert not re.search(r'="[^"]*\b(nan|inf)\b', drawn)
    assert "multiple of the claim" in svg(forest(Suite(title="", entries=()), narrow=narrow))
    for estimate in (math.nan, math.inf):
        monkeypatch.setattr(FixedSizeResult, "estimate", property(lambda self, value=estimate: value))
        svg(forest(Suite(title="", entries=(entry(),)), narrow=narrow))


def test_forest_draws_bounds_as_fractions_of_claims():
    suite = Suite(title="", entries=(entry(bound=0.5), entry(bound=3.0, claim=PureDP(2.0)), entry(bound=9.0)))
    axes = forest(suite).axes[0]
    lengths = [patch.get_width() for patch in axes.patches]
    assert lengths == [0.5, 1.5, axes.get_xlim()[1]]
    (ticks,) = (line for line in axes.lines if line.get_marker() == "|")
    assert ticks.get_xdata() == pytest.approx([1.2, 1.1, 1.2]), "claim and detectable excess"
    assert [text.get_text() for text in axes.texts if "≥" in text.get_text()] == [
        "ε ≥ 0.5, claimed 1",
        "ε ≥ 3, claimed 2 (×1.5)",
        "ε ≥ 9, claimed 1 (×9)",
    ]


def test_no_figure_without_a_usable_sketch():
    assert outputs_figure(result()) is None
    assert outputs_figure(result(sketch=Sketch((), (0.0, 0.0), (1, 2, 3), (1, 2, 3)))) is None
    assert outputs_figure(result(sketch=Sketch((), (0.0, math.inf), (1, 2, 3), (1, 2, 3)))) is None
    assert outputs_figure(result(sketch=Sketch((), (0.0, 1.0), (1, 2), (1, 2)))) is None


@pytest.mark.parametrize(
    "drawn",
    [
        BINS,
        COINS,
        Sketch((), (0.0, 1.0), (0, 0, 0), (0, 0, 0)),
        Sketch((), (1e16, 1e16 + 2), (1, 2, 3), (3, 2, 1)),
        Sketch(tuple(map(str, range(24))), (), (1,) * 24, tuple(range(24))),
    ],
)
def test_outputs_are_drawn_without_a_warning(drawn):
    for event in (Intervals(((-math.inf, 0.5), (0.7, 0.7), (2.0, math.inf))), Outcomes(("heads", 3)), Intervals(())):
        svg(outputs_figure(result(sketch=drawn, event=event)))


def test_svg_stands_inside_a_page():
    text = svg(forest(Suite(title="", entries=(entry(),))), label='<b> "quoted" & more', prefix="p-")
    root = ElementTree.fromstring(text)
    assert root.tag == "svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["width"] == "100%"
    assert root[0].tag == "title"
    assert root[0].text == root.attrib["aria-label"] == '<b> "quoted" & more'
    assert "http" not in text
    assert "<metadata" not in text
    assert any(element.tag == "text" for element in root.iter())
    bins = Sketch((), tuple(map(float, range(39))), tuple(range(40)), tuple(range(40, 0, -1)))
    first, again = ([svg(one.figure) for one in figures_of(result(sketch=bins, bins=CELLS))] for _ in range(2))
    assert first == again
    assert max(map(len, first)) < 18_000


def test_svgs_on_one_page_share_classes_and_no_ids():
    sheet = {}
    ((drawing,),) = drawings_of([result(sketch=BINS)], sheet)
    assert 'aria-label="Outputs of mechanism on x and y, ' in drawing[2]
    assert set(re.findall(r'class="(\w+)"', drawing[2])) == set(sheet), "on a page each class has a rule"
    figures = [forest(Suite(title="", entries=(entry(bound=bound),))) for bound in (0.5, 0.6)]
    texts = [svg(figure) for figure in figures]
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in texts]
    assert not ids[0] & ids[1]
    for text, known in zip(texts, ids, strict=True):
        used = re.findall(r'href="#([^"]+)"', text) + re.findall(r"url\(#([^)]+)\)", text)
        assert used
        assert set(used) <= known


def test_figures_do_not_depend_on_the_users_settings_and_leave_them():
    suite = Suite(title="", entries=(entry(), Entry(name='$x$ and url(#p) id="q"', result=result(sketch=BINS))))
    plain = svg(forest(suite)), svg(outputs_figure(suite.entries[1].result))
    assert '$x$ and url(#p) id="q"' in plain[0]
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        assert (svg(forest(suite)), svg(outputs_figure(suite.entries[1].result))) == plain
        assert dict(matplotlib.rcParams) == before


def test_figures_of_an_audit_are_of_its_outputs_its_looks_and_its_cells():
    interim_analyses = (InterimAnalysis(32, 0.0, 1.0), InterimAnalysis(100, 0.5, 0.3))
    assert figures_of(result()) == []
    (rare,) = figures_of(result(sketch=dataclasses.replace(COINS, runs=200)))
    assert rare.caption.endswith("Not drawn: other outputs (50% of the runs on x, 50% on y).")
    sequential = figures_of(result(sketch=BINS, interim_analyses=interim_analyses, stopped="runs"))
    fixed = figures_of(result(sketch=BINS, bins=CELLS))
    assert [len(one.figure.axes) for one in (*sequential, *fixed)] == [2, 1, 2, 2, 1]
    outputs, bound, _, curves, rows = (one.label for one in (*sequential, *fixed))
    assert "3 times as often on x" in outputs
    assert "0.5 after 100 runs on each dataset, claimed 1; all 100 runs done" in bound
    assert "1-DP" in curves
    assert "4 bins" in rows


def test_figures_of_cells_share_their_alpha():
    curves, rows = figures_of(result(bins=CELLS))
    band = next(each for each in curves.figure.axes[1].collections).get_paths()[0].vertices
    lower = CELLS.band().trade_off(0.5)[0]
    assert min(y for x, y in band if x == 0.5) == pytest.approx(float(lower))
    for one in (curves, rows):
        assert "hold together with 99.5% confidence" in one.caption
    assert "what else is possible in unions of the first bins, ordered by ratio" in curves.caption
    assert "for these 3 bins only" in rows.caption


def test_figures_of_a_statement_are_its_series_and_its_points():
    series, points = figures_of(told())
    assert "1 of 4 intervals excludes the stated value" in series.label
    assert "each with 95% confidence" in series.caption
    assert "the worst, t = 2, in [180, 250], stated 100" in points.label
    assert "95% confidence" in points.caption
    assert figures_of(told(series=None, points=POINTS[:1])) == []


@pytest.mark.parametrize(
    "text", ["$x^$ \\frac{1}%_#&~^<script>alert(1)</script>]]>", "w" * 100_000, "a\n\x00\u202eleft"]
)
def test_hostile_names_are_only_text_in_every_figure(text):
    """TeX is not run: it may not be there."""
    cells = dataclasses.replace(CELLS, names=(text,) * 4, scope=text)
    audit = result(mechanism=text, bins=cells, sketch=Sketch((text, "b"), (), (9, 1), (1, 9)), claim=GaussianDP(1.0))
    points = tuple(dataclasses.replace(point, at=text) for point in POINTS)
    series = dataclasses.replace(SERIES, x_name=text, y_name=text, intervals=text)
    statement = told(statement=text, quantity=text, method=text, points=points, series=series)
    training = dataclasses.replace(SUITE.entries[-1].result, mechanism=text)
    for one, kind in [(audit, kind) for kind in kinds_of(audit)] + [(statement, kind) for kind in kinds_of(statement)]:
        with matplotlib.rc_context({"text.usetex": True}):
            axes = plot(one, kind, ax=Figure().subplots())
            shown = [axes.get_xlabel(), axes.get_ylabel(), *(each.get_text() for each in axes.texts)]
            shown += axes.yaxis.get_major_formatter().format_ticks(axes.get_yticks())
            assert not any("\\frac" in words or "$x^" in words.replace("\\$", "") for words in shown)
    for one in figures_of(audit) + figures_of(statement) + figures_of(training):
        drawn = svg(one.figure, label=one.label)
        tags = {element.tag for element in ElementTree.fromstring(drawn).iter()}
        assert "script" not in tags
        assert not any(char in drawn + one.caption for char in "\x00\u202e")
        assert len(drawn) + len(one.caption) < 25_000


def test_every_number_in_the_svg_is_where_matplotlib_put_it():
    figure, buffer = outputs_figure(result(sketch=BINS)), io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg")
    whole = [element for element in ElementTree.fromstring(buffer.getvalue()).iter() if element.tag.endswith("}path")]
    short = [element for element in ElementTree.fromstring(svg(figure)).iter() if element.tag == "path"]
    assert len(whole) == len(short)
    for before, after in zip(whole, short, strict=True):
        numbers = [[float(x) for x in re.findall(r"-?[\d.]+", each.attrib["d"])] for each in (before, after)]
        assert numbers[1] == pytest.approx(numbers[0], abs=0.1)
        assert set(after.attrib["d"]) <= set("MLCQz 0123456789.-")


# What a claim allows as curves: exact for straight pieces, never below the claim, near it elsewhere.


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.5, 1e-3)], ids=str)
def test_profile_of_a_claim_with_an_epsilon_is_exact(claim):
    epsilon = np.linspace(0, 2, 41)
    delta = getattr(claim, "delta", 0.0)
    rate = (1 - delta) / (1 + math.exp(claim.epsilon))
    corner = math.exp(claim.epsilon) * rate + delta - np.exp(epsilon) * rate
    assert ClaimedCurve.of(claim).profile(epsilon) == pytest.approx(np.maximum(corner, delta), abs=1e-12)


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_claimed_curve_is_concave_and_not_below_the_boundary(claim):
    curve = ClaimedCurve.of(claim)
    q = np.linspace(0.001, 0.999, 300)
    power = np.interp(q, curve.rate, curve.power)
    assert (power >= claim.max_power(q)[0] - 1e-9).all()
    assert power == pytest.approx(claim.max_power(q)[0], abs=3e-3)
    assert (np.diff(curve.profile(np.linspace(0, 5, 50))) <= 1e-12).all()
