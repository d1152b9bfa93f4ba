"""Families of outputs with very many parts: what is tried for any number of them, and a note on the rest."""

import numpy as np
import pytest

from dpaudit.audit.events.features import OrderStatistics
from dpaudit.audit.events.outputs import as_outputs
from dpaudit.audit.families.event_families import event_families, limits_in_words
from dpaudit.audit.families.number_families import OfScore
from dpaudit.audit.families.pilot_split import PilotSplit


@pytest.mark.parametrize("width", [64, 65, 200])
def test_a_norm_is_tried_for_any_number_of_coordinates(width):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, width)), rng.normal(scale=1.1, size=(400, width))
    families = list(event_families(PilotSplit.in_half(x, y), with_statistics=True))
    scores = {str(family.build.score) for family in families if family.for_intervals}
    assert {f"{word} of {width} columns" for word in ("sum", "Euclidean norm", "smallest", "largest")} <= scores
    assert limits_in_words(x, y) == () if width == 64 else f"of {width} coordinates" in limits_in_words(x, y)[0]


def test_single_coordinates_are_those_that_differ_most():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 300)), rng.normal(size=(400, 300))
    x[:, 299] += 2.0
    families = event_families(PilotSplit.in_half(x, y), effort="quick")
    scores = [str(family.build.score) for family in families if isinstance(family.build, OfScore)]
    assert "coordinate 299" in scores


def test_order_statistics_of_long_vectors():
    columns = OrderStatistics(100, (0, 50, 99))
    outputs = np.random.default_rng(0).permuted(np.tile(np.arange(100.0) ** 2, (3, 1)), axis=1)
    assert columns.read(outputs)[:, 0].tolist() == [0.0, 2500.0, 9801.0, 99.0, 197.0]
    assert columns.names[-1] == "(sorted coordinate 99 − sorted coordinate 98)"


def test_parts_of_nested_outputs():
    outputs = as_outputs([("a", tuple(range(100)))] * 3, 3, "m")
    assert "of 101 parts of outputs" in limits_in_words(outputs, outputs)[0]
