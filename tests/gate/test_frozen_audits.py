"""A change of the code that should change no verdict changes none of these; see `frozen_audits`."""

import json

import pytest

from .frozen_audits import AUDITS, FROZEN, figures

EXPECTED = json.loads(FROZEN.read_text(encoding="utf-8"))


def test_all_audits_are_frozen():
    assert list(AUDITS) == list(EXPECTED)


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_finds_what_it_found(name):
    assert figures(AUDITS[name]())._asdict() == EXPECTED[name]
