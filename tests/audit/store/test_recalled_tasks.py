"""Results of tasks that a store recalls: only possible ones fit."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.audit.events.events import Intervals, OutcomeCells
from dpaudit.audit.sampling.draw import plan_blocks
from dpaudit.audit.sampling.output_hashes import BLOCK_MARKS
from dpaudit.audit.sampling.sampler import as_sampler
from dpaudit.audit.sampling.tasks import CountBlocks, CountPairs, DrawBlocks
from dpaudit.audit.store.sqlite_store import packed, unpacked


def laplace(dataset, size, rng):
    return dataset + rng.laplace(size=size)


ONES = [1] * BLOCK_MARKS
PAIRS = [5, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0]  # five pairs: in both datasets in the first event
WRONG = {
    "number": 7,
    "text": "seven",
    "list": [1, 2],
    "more hits than runs": [[[10**9, *ONES]], [], np.zeros(0, np.int64), []],
    "negative": [[[-1, *ONES]], [], np.zeros(0, np.int64), []],
    "no mark": [[[*ONES, 1 << 64]], [], np.zeros(0, np.int64), []],
    "cells": [[[1, *ONES]], [], np.ones(3, np.int64), []],
    "outputs": np.ones(3),
    "more in cells than runs": [[[1, *ONES]], [], np.array([6, 0, 0, 0, 0, 5]), []],
    "more hits of others than runs": [[[1, *ONES]], [6], np.zeros(0, np.int64), []],
    "pairs alone": [[], [], [], np.zeros((2, 0), np.int64), np.zeros((2, 3), np.int64)],
    "no counts of pairs": [[1], [], [], np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64)],
    "other numbers of pairs": [[[[*PAIRS[:-1], 6], ONES * 2]], [], [], np.zeros((2, 0)), np.zeros((2, 0))],
    "pairs that do not add up": [[[[4, *PAIRS[1:]], ONES * 2]], [], [], np.zeros((2, 0)), np.zeros((2, 0))],
}


EVENT, BELOW = Intervals(((0.0, np.inf),)), Intervals(((-np.inf, -1.0),))
CELLS = OutcomeCells((0.0, 1.0), 3)
TASKS = {
    "drawn": DrawBlocks("x", 3, (5,)),
    "counted": CountBlocks(EVENT, (), None, "y", 3, (5,)),
    "counted in cells": CountBlocks(EVENT, (CELLS, CELLS), None, "y", 3, (5,)),
    "counted in three events": CountBlocks(EVENT, (), None, "y", 3, (5,), (BELOW, EVENT)),
    "pairs": CountPairs((EVENT, None), (None, None), (), (), None, 3, (5,)),
    "pairs and outcomes": CountPairs((EVENT, BELOW), (None, BELOW), (EVENT,), (CELLS,), None, 3, (5, 4)),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_what_cannot_be_fits_no_task(task, wrong):
    assert not task.fits(WRONG[wrong])
    plan = plan_blocks(as_sampler(laplace), 0, 1, 0, 1)
    assert task.fits(unpacked(packed(task(plan)), "it"))
