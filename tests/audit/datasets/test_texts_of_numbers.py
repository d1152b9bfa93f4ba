"""A result notes that datasets or outputs are texts of numbers, where numbers may have been meant."""

from __future__ import annotations

import numpy as np

from dpaudit import PureDP, check
from dpaudit.audit.datasets.description import notes_on_texts


def test_texts_of_numbers_are_noted():
    def longest(rows, size, rng):
        return [f"{len(rows) + noise:.1f}" for noise in rng.laplace(size=size)]

    result = check(longest, ["1", "2"], ["1"], claim=PureDP(1.0), runs=2_000, alpha=1e-6, bits=False)
    assert [note.partition(",")[0] for note in result.notes] == [
        "outputs are texts of numbers",
        "the datasets hold texts of numbers",
    ]
    assert notes_on_texts(np.array(["1.5"]), ["2"]) != ()
    assert notes_on_texts("1", "2") != ()
    for x, y in ((["1"], ["one"]), ([], []), ([1.5], [2.5]), ({"a": "1"}, {"a": "2"}), (["nan"], ["inf"])):
        assert notes_on_texts(x, y) == ()
