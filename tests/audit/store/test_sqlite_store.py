"""A store keeps the draws: an audit that was stopped anywhere has the result of an uninterrupted audit."""

import contextlib
import functools
import json
import math
import os
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest

from dpaudit import PureDP, check, find_worst_pair
from dpaudit.audit.errors import MechanismError, StoreError
from dpaudit.audit.sampling import object_identity
from dpaudit.audit.sampling.block_plan import Plan, _tells_noise
from dpaudit.audit.sampling.object_identity import versions
from dpaudit.audit.store import store_settings
from dpaudit.audit.store.sqlite_store import FILE, Store, checksum, unpacked

CLAIM = PureDP(1.0)
MODES = {"fixed": {}, "sequential": {"sequential": True}, "cells": {"bins": 8}, "sized": {"runs": None, "detect": 2.0}}


def laplace(dataset, size, rng):
    return dataset + rng.laplace(size=size)


def words(dataset, rng):
    """Outputs of every kind that a store accepts."""
    value = rng.geometric(0.5) + dataset
    return [value, f"é{value}", ("a", int(value)), None, float(value), True, 10**20 + int(value)][rng.integers(7)]


def own_randomness(dataset, size, rng):
    return dataset + np.random.default_rng().laplace(size=size)


def audited(mechanism=laplace, **options):
    return check(mechanism, 0, 1, **{"claim": CLAIM, "runs": 400, "jobs": 1, "seed": 5} | options)


@functools.cache
def undisturbed(**options):
    """An audit without a store, once for all tests with these options."""
    return audited(**options)


@functools.cache
def stored():
    """The bytes of the store of an audit."""
    with tempfile.TemporaryDirectory() as folder:
        audited(store=folder)
        return (Path(folder) / FILE).read_bytes()


def begun(folder):
    """Put the store of an audit into a folder."""
    (folder / FILE).write_bytes(stored())
    return folder / FILE


def kept(folder):
    with contextlib.closing(sqlite3.connect(folder / FILE)) as file:
        return set(file.execute("SELECT * FROM blocks"))


def searched(mechanism=laplace, pairs=((0, 0.0), (0, 0.5), (0, 1.0), (0, 1.5)), **options):
    chosen = {"claim": CLAIM, "runs": 2_000, "search_runs": 800, "jobs": 1, "seed": 5} | options
    return find_worst_pair(mechanism, pairs, **chosen)


@functools.cache
def undisturbed_search(**options):
    """A search without a store, once for all tests with these options."""
    return searched(**options)


def stopped(mechanism, calls, kind=audited, **options):
    """Run an audit that an unexpected exception stops at the n-th draw."""
    left, real = iter(range(calls)), Plan.draw

    def draw(plan, *arguments, **options):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real(plan, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "draw", draw)
        with pytest.raises(KeyboardInterrupt):
            kind(mechanism, **options)


@pytest.mark.parametrize(  # in the pilot runs, and in the main runs
    ("mode", "calls"), [("fixed", 2), ("sequential", 100), ("cells", 400)]
)
def test_an_audit_that_was_stopped_ends_as_if_it_had_not_been(tmp_path, mode, calls):
    options = MODES[mode] | {"runs": 8_000 if mode == "cells" else 2_000}
    stopped(laplace, calls, store=tmp_path, **options)
    assert audited(store=tmp_path, **options) == undisturbed(**options)


def test_randomness_of_its_own_is_kept_too(tmp_path):
    first = audited(own_randomness, store=tmp_path, sequential=True)
    assert not first.is_reproducible
    assert audited(own_randomness, store=tmp_path, sequential=True) == first


@pytest.mark.parametrize(("mode", "mechanism"), [("sequential", laplace), ("fixed", words), ("sized", laplace)])
def test_a_store_changes_no_result_and_draws_nothing_twice(tmp_path, drawn, mode, mechanism):
    options = {"runs": 600} | MODES[mode]
    plain = audited(mechanism, **options)
    assert audited(mechanism, store=tmp_path, **options) == plain
    drawn.clear()
    assert audited(mechanism, store=tmp_path, **options) == plain
    # One run shows the shape of an output; the first runs and the first blocks are repeated.
    assert {each[:3] for each in drawn} == {("pilot", side, 0) for side in "xy"}
    assert len(drawn) <= 7


@pytest.mark.parametrize(  # the last of each mode in the audit of the pair, after runs of the search
    ("calls", "mode"), [(21, "fixed"), (60, "sequential")]
)
def test_a_search_that_was_stopped_goes_on_too(tmp_path, drawn, calls, mode):
    options = MODES[mode]
    stopped(laplace, calls, searched, store=tmp_path, **options)
    whole = searched(store=tmp_path, **options)
    assert whole == undisturbed_search(**options)
    assert whole.audit.searched > 0
    drawn.clear()
    assert searched(store=tmp_path, **options) == whole
    # One run of each pair, of the chosen one again, and of the audit shows the shape; the first runs of the audit and
    # first blocks are repeated, and by an audit that bets on its first batch, in blocks of one run, the search's too.
    # The claim is refuted, so the found pair has a trial more, with a run that shows the shape; not after an audit that
    # ended so early that half its runs are too few.
    assert (whole.simplifying_runs > 0) is (mode == "fixed")
    assert len(drawn) == len(whole.ranking) + 2 + (4 + 1 if mode == "fixed" else 6)


def test_the_audit_of_a_simpler_pair_is_kept_too(tmp_path, drawn):
    def noisy_length(rows, size, rng):
        return len(rows) + rng.laplace(scale=0.3, size=size)

    pairs, options = [([1, 2, 3, 4], [1, 2, 3])], {"adjacency": "add-remove", "runs": 4_000, "search_runs": 2_000}
    whole = searched(noisy_length, pairs, store=tmp_path, **options)
    assert (whole.simple.x, whole.simple.y) == ([4], [])
    drawn.clear()
    assert searched(noisy_length, pairs, store=tmp_path, **options) == whole
    assert {number for _, _, number, _ in drawn} == {0}, "only shapes and first blocks are drawn again"


def test_a_search_of_other_pairs_is_refused(tmp_path):
    stopped(laplace, 8, searched, store=tmp_path)
    for name, other in {"seed": 6, "search_runs": 801}.items():
        with pytest.raises(StoreError, match=rf"laplace, the search, which was begun with other settings \({name}: "):
            searched(store=tmp_path, **{name: other})
    with pytest.raises(StoreError, match=r"pair 2 .* begun with other settings \(y is another dataset\)"):
        searched(pairs=[(0, 0.0), (0, 1), (0, 2)], store=tmp_path)


def test_a_search_of_noise_of_its_own_goes_on_after_a_crash(tmp_path):
    """The draws that determine a pair are on disk before the pair, or another pair could take its place."""

    def saved(store):
        with sqlite3.connect(store.path) as file:
            return file.execute("SELECT (SELECT count(*) FROM blocks), (SELECT max(number) FROM sections)").fetchone()

    store = Store(tmp_path)
    first = store.section("first", {})
    first.keep("a", 1)
    store._saved, store._spent = math.inf, math.inf  # as if a slow write had just ended
    first.keep("b", 2)
    store.section("second", {})
    store._release()  # as if the process had been killed
    assert saved(store) == (2, 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 6}, "seed: 5 there, 6 here"), ({"alpha": 0.01}, "alpha: 0.05 there, 0.01 here"),
        ({"claim": PureDP(2.0)}, "claim: 1-DP "), ({"floating_point": "test"}, "floating_point: warn there, test here"),
        ({}, r"version of dpaudit.s sources: [0-9a-f]{16} there, 0123456789abcdef here"),
    ],
)  # fmt: skip
def test_another_audit_is_refused_with_the_difference(tmp_path, monkeypatch, options, said):
    begun(tmp_path)
    before = kept(tmp_path)
    if not options:  # the sources of this library have changed
        altered = (*versions(), ("dpaudit's sources", "0123456789abcdef"))
        monkeypatch.setattr(store_settings, "drawn_by", lambda: altered)
    with pytest.raises(StoreError, match=said):
        audited(store=tmp_path, **options)
    assert kept(tmp_path) == before


def test_an_open_store_holds_several_audits(tmp_path):
    with Store(tmp_path) as store:
        for name in ("one", "two"):
            audited(store=store.part(name))
        assert audited(store=store.part("two")) == undisturbed()
        store.discard()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_data_is_refused(tmp_path):
    class Odd:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            return isinstance(other, Odd)

    with pytest.raises(StoreError, match="an output of type Odd cannot be kept as data"):
        audited(lambda dataset, rng: Odd(), store=tmp_path, runs=1_000)


def test_a_mechanism_that_fails_leaves_what_was_drawn(tmp_path):
    def failing(dataset, size, rng):
        if size == 204 and dataset == 1:  # the last block
            raise ValueError("out of order")
        return laplace(dataset, size, rng)

    with pytest.raises(
        MechanismError, match=r'dpaudit\.results\.draw_block\(mechanism, y, "main", "y", 243, 204, seed=5\)'
    ):
        audited(failing, store=tmp_path, runs=300_000, name="it")
    with Store(tmp_path) as store:
        assert not store.is_empty


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE about SET value = '1'", "has schema 1, and this version of dpaudit uses schema 4"),
        ("CREATE TABLE more (x)", r"has other tables or triggers .* schema 4 \(.*CREATE TABLE more \(x\)"),
        ("CREATE TRIGGER t AFTER INSERT ON blocks BEGIN DELETE FROM blocks; END", "other tables .*TRIGGER t"),
        ("DROP TABLE about", "not a store of an audit"),
        ("DROP TABLE blocks", "a table is missing"),
        ("UPDATE sections SET settings = '{'", "damaged"),
        ("PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE '", "malformed database schema"),
        ("UPDATE blocks SET value = 'text'", "is not a value"),
        ("UPDATE blocks SET value = substr(value, 1, length(value) - 8)", "its checksum differs"),
    ],
)
def test_a_damaged_store_is_an_error_and_nothing_else(tmp_path, statement, said):
    with contextlib.closing(sqlite3.connect(begun(tmp_path))) as file:
        file.executescript(statement)
    with pytest.raises(StoreError, match=said):
        audited(store=tmp_path)


def test_the_place_of_a_wrong_part_of_an_output_is_named():
    content = json.dumps({"objects": [{"type": "Foreign"}]}).encode() + b"\n"
    with pytest.raises(StoreError, match=r"it is damaged \(KeyError: 'value' @ \$\.value\); delete the store\."):
        unpacked(checksum(content, "") + content, "it")


@pytest.mark.parametrize("kind", ["O", "f8,f8", "i1,import os", ">f8", 3])
def test_a_kind_of_array_is_a_name_and_nothing_else(kind):
    """Numpy parses such names, some as Python; all but plain numbers count as damage even if the checksum is right."""
    content = json.dumps({"array": kind, "shape": [1]}).encode() + b"\n" + bytes(8)
    with pytest.raises(StoreError, match="it is damaged"):
        unpacked(checksum(content, "") + content, "it")


def test_a_store_is_written_as_the_work_goes_on(tmp_path):
    """At most half a second of work is in memory alone."""
    with Store(tmp_path) as store:
        section = store.section("it", {})
        section.keep("first", [1])
        store._saved -= 1.0
        section.keep("second", [2])
        size = (tmp_path / FILE).stat().st_size
        assert size > 0
        copy = tmp_path / "copy"
        copy.mkdir()
        (copy / FILE).write_bytes((tmp_path / FILE).read_bytes())
        with Store(copy) as other:
            assert [other.section("it", {}).recall(key) for key in ("first", "second", "third")] == [[1], [2], None]


def test_a_few_coins_come_again_by_chance():
    assert _tells_noise(np.random.default_rng(1).random(16))
    assert not _tells_noise(np.random.default_rng(1).random(16) < 0.5)
    assert _tells_noise(np.random.default_rng(1).random(256) < 0.5)


def test_the_hash_of_sources_follows_from_the_files(tmp_path, monkeypatch):
    for room in ("audit/sampling", "mechanisms"):
        (tmp_path / room).mkdir(parents=True)
    code = tmp_path / "audit" / "sampling" / "provenance.py"
    monkeypatch.setattr(object_identity, "__file__", str(code))
    hashes = []
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        code.write_text(text)
        hashes.append(object_identity.own_sources.__wrapped__())
    assert hashes[0] == hashes[2] != hashes[1]


def coin(dataset, rng):
    return int(rng.random() < float(os.environ["SCALE"]) / (2 if dataset else 3))


def test_what_a_store_cannot_see_is_noticed_by_the_first_runs(tmp_path, monkeypatch):
    """The change affects one bit of the outputs, and the pilot was incomplete."""
    monkeypatch.setenv("SCALE", "1.0")
    stopped(coin, 12, store=tmp_path, runs=2_000)
    monkeypatch.setenv("SCALE", "1.2")
    with pytest.raises(StoreError, match="draws other outputs than those in the store, from the same seed"):
        audited(coin, store=tmp_path, runs=2_000)
    monkeypatch.setenv("SCALE", "1.0")
    assert audited(coin, store=tmp_path, runs=2_000) == audited(coin, runs=2_000)
