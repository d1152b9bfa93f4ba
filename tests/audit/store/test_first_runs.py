"""A store compares the first runs of an audit, and so detects changes of inputs that it cannot see."""

from __future__ import annotations

import pytest

from dpaudit.audit.errors import StoreError
from dpaudit.audit.sampling.object_identity import identity

from .test_sqlite_store import MODES, audited, stopped

pytestmark = pytest.mark.usefixtures("learned_seldom", "looked_seldom")


def waiting(dataset, rng):
    return dataset + rng.laplace(scale=SCALE["both"])


def of_one_side(dataset, rng):
    return dataset + rng.laplace(scale=SCALE["y"] if dataset else 1.0)


def coin(dataset, rng):
    return int(rng.random() < SCALE["coin"])


SCALE = {"both": 1.0, "y": 1.0, "coin": 0.5}


@pytest.mark.parametrize(
    ("mode", "mechanism", "name", "value"),
    [
        ("fixed", waiting, "both", 0.5), ("fixed", of_one_side, "y", 0.5), ("fixed", coin, "coin", 0.6),
        ("sequential", of_one_side, "y", 0.5),
    ],
)  # fmt: skip
def test_what_a_store_cannot_see_is_noticed_by_the_first_runs(tmp_path, monkeypatch, mode, mechanism, name, value):
    """Code and variables are unchanged; the change affects one side or one bit, and the pilot was incomplete."""
    monkeypatch.setattr("dpaudit.audit.store.store_settings.identity_of_mechanism", lambda function: identity(1))
    options = MODES[mode] | {"runs": 2_000}
    stopped(mechanism, 12, store=tmp_path, **options)
    monkeypatch.setitem(SCALE, name, value)
    with pytest.raises(StoreError, match="draws other outputs than those in the store, from the same seed"):
        audited(mechanism, store=tmp_path, **options)
    monkeypatch.undo()
    monkeypatch.setattr("dpaudit.audit.store.store_settings.identity_of_mechanism", lambda function: identity(1))
    assert audited(mechanism, store=tmp_path, **options) == audited(mechanism, **options)
