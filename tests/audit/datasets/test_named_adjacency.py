"""Adjacencies by name: what is accepted, and what is refused with the object to write."""

from __future__ import annotations

import pytest

from dpaudit import AddRemove, Replace, UserLevel, Within
from dpaudit.audit.datasets.named_adjacency import NAMED, as_adjacency
from dpaudit.audit.errors import OptionError


@pytest.mark.parametrize(
    ("value", "relation"),
    [
        *NAMED.items(),
        (Within("l2", radius=3.0), Within("l2", radius=3.0)),
    ],
)
def test_what_is_meant(value, relation):
    assert as_adjacency(value) == relation


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("unbounded", r"write adjacency=AddRemove\(\)\."),
        ("bounded", r"write adjacency=Replace\(\)\."),
        ("user-level", r'write adjacency=UserLevel\("column of the user"\)'),
        ("within", r'write adjacency=Within\("l1"\), Within\("l2"\) or Within\("linf"\)'),
        (Within, r'a class; write adjacency=Within\("l1"\)'),
        (UserLevel, r'a class; write adjacency=UserLevel\("column'),
        (AddRemove, r"a class; write adjacency=AddRemove\(\)\."),
        ("Add/Remove", "did you mean 'add-remove'"),
        ("add_remove", "did you mean 'add-remove'"),
        ("REPLACE", "did you mean 'replace'"),
        ("relpace", "did you mean 'replace'"),
        ("", "is unknown; use one of add-remove"),
        (1, r"is not an adjacency relation; use an instance such as AddRemove\(\)"),
        ([Replace()], "is not an adjacency relation"),
    ],
)
def test_what_is_refused(value, message):
    with pytest.raises(OptionError, match=message):
        as_adjacency(value)
