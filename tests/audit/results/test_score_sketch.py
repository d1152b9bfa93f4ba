"""The histogram of scores that a result of canaries keeps for a figure."""

import numpy as np
import pytest

from dpaudit.audit.errors import OptionError
from dpaudit.audit.results.canary_result import ScoreSketch, score_sketch

SCORES = np.arange(200.0)
INCLUDED = np.arange(200) >= 100


@pytest.mark.parametrize(("said", "expected"), [("both", (4.0, 195.0)), ("in", (None, 190.0)), ("out", (9.0, None))])
def test_the_guessed_scores_are_those_farthest_out(said, expected):
    found = score_sketch(SCORES, INCLUDED, guessed=10, said=said, middle=None)
    assert (found.said_out, found.said_in) == expected


def test_every_canary_is_in_a_bin():
    far, neighbours = (
        np.r_[-1e300, np.zeros(198), 1e300],
        np.r_[np.full(100, 1.0), np.full(100, np.nextafter(1.0, 2.0))],
    )
    for scores in (SCORES, np.zeros(200), np.full(200, 1e300), far, np.full(200, 1e-300), neighbours):
        found = score_sketch(scores, INCLUDED, guessed=20, said="both", middle=None)
        assert (sum(found.inside), sum(found.outside)) == (100, 100)
        assert len(found.inside) <= 64


def test_far_scores_do_not_flatten_the_others():
    found = score_sketch(np.r_[SCORES, 1e6], np.r_[INCLUDED, True], guessed=20, said="in", middle=None)
    assert found.edges[-1] < 1_000
    assert found.inside[-1] == 1


def test_other_tables_are_refused():
    for changes in ({"edges": (0.0, 0.0, 1.0)}, {"inside": (1,)}, {"edges": (0.0,), "inside": (), "outside": ()}):
        with pytest.raises(OptionError, match="not a histogram"):
            ScoreSketch(**{"edges": (0.0, 1.0, 2.0), "inside": (1, 2), "outside": (2, 1)} | changes)
