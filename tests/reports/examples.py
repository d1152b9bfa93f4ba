"""Results made by hand, in which no number is drawn, for the tests of all reports."""

import math
import re
from html import unescape

from dpaudit import ApproxDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOffCurve, ZeroConcentratedDP
from dpaudit.audit.events.events import Intervals, Sketch
from dpaudit.audit.inference.event_test import Counts
from dpaudit.audit.results.audit_result import FixedSizeResult, SequentialResult
from dpaudit.audit.results.bin_result import BinCounts
from dpaudit.audit.results.claim_pair_and_alpha import Pair
from dpaudit.audit.results.statement_result import Point, Series, StatementResult
from dpaudit.claims import NFoldComposition, ProbabilityPreservation
from dpaudit.reports.pages.html_page import templates

CLAIMS = [
    PureDP(1.0), PureDP(0.0), ApproxDP(0.5, 1e-3), ApproxDP(0.5, 1e-3, bound_on="delta"), GaussianDP(1.0),
    RenyiDP(2.0, 0.3), ZeroConcentratedDP(0.5), PrivacyProfile((0.5, 1.0), (0.1, 1e-3)), TradeOffCurve((0.1,), (0.6,)),
    PureDP(0.5).group(3), ApproxDP(0.5, 1e-3).group(2), ProbabilityPreservation(2.0, 0.1), NFoldComposition(0.1, 10),
]  # fmt: skip
BINS = Sketch((), (-1.0, 0.0, 1.0), (50, 30, 20, 0), (0, 20, 30, 50))
COINS = Sketch(("'heads'", "'ta$l$'", "3"), (), (70, 30, 0), (30, 70, 0))
CELLS = BinCounts(
    names=("output in (-inf, 0]", "output in (0, 1]", "output in (1, inf]", "output is not a number"),
    count_x=(700, 200, 100, 0), count_y=(150, 150, 700, 0), alpha=0.005, n_known=3, scope="these 3 bins only",
)  # fmt: skip
SERIES = Series(
    x_name="quantile stated", y_name="quantile seen", x=(0.0, 1.0, 2.0, 3.0), estimate=(0.1, 1.0, 2.5, math.nan),
    lower=(-math.inf, 0.9, 2.4, -math.inf), upper=(0.2, 1.1, 2.6, math.inf), stated=(0.0, 1.0, 2.0, 3.0),
    intervals="each with 95% confidence",
)  # fmt: skip
POINTS = (
    Point(at="t = 1", estimate=2.0, lower=1.0, upper=3.0, low=0.0, high=4.0),
    Point(at="t = 2", estimate=200.0, lower=180.0, upper=250.0, low=100.0, high=100.0),
    Point(at="t = 3", estimate=1.0, lower=-math.inf, upper=math.inf, high=5.0),
    Point(at="t = 4", estimate=math.nan, lower=0.0, upper=1.0),
)


def audit(**changes):
    """An audit of few runs, of fixed size unless it says why it stopped."""
    given = {
        "mechanism": "mechanism", "claim": PureDP(1.0), "event": Intervals(((-math.inf, -0.25),)),
        "more_likely_on": "x",
        "pair": Pair(x="1 row", y="2 rows", difference="a row", adjacency="add/remove", distance=1),
        "counts": Counts(count_x=30, runs_x=100, count_y=10, runs_y=100), "alpha": 0.05, "pvalue": 0.3, "bound": 0.5,
        "min_detectable_excess": 0.2, "power": 0.95, "runs": 200, "pilot_runs": 100, "seed": 1,
    }  # fmt: skip
    kind = SequentialResult if "stopped" in changes else FixedSizeResult
    return kind(**{**given, **changes})


def large(**changes):
    """An audit of many runs, whose numbers have many digits."""
    given = {
        "mechanism": "noisy count", "bound": 0.98765432, "min_detectable_excess": 0.0123456, "pvalue": 0.31234567,
        "pair": Pair(x="array of 3", y="array of 2", difference="row 2 removed", adjacency="add/remove", distance=1),
        "counts": Counts(count_x=61_234, runs_x=950_001, count_y=21_357, runs_y=950_002), "runs": 1_000_003,
        "pilot_runs": 50_021, "seed": 98_765, "sketch": BINS, "versions": (("dpaudit", "0.1.0"), ("numpy", "2.0.0")),
    }  # fmt: skip
    return audit(**{**given, **changes})


def facts(entry):
    """What a page says of one entry, by name."""
    text = templates().get_template("facts.html.j2").render(entry=entry, result=entry.result)
    return {name: unescape(value) for name, value in re.findall("<dt>(.*)</dt><dd><bdi>(.*)</bdi></dd>", text)}


def statement(**changes):
    given = {
        "statement": "It is so.", "quantity": "quantile", "points": POINTS, "alpha": 0.05, "method": "exact",
        "runs": 10, "seed": 1, "series": SERIES,
    }  # fmt: skip
    return StatementResult(**{**given, **changes})


def contrast(one, other):
    """The contrast of two colours such as "#0072B2", from 1 to 21, by the guidelines for the web (WCAG 2)."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, heavy = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (heavy + 0.05)
