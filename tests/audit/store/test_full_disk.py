"""A full or read-only disk gives a clear error, and the store stays intact and can be resumed."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import StoreError
from dpaudit.audit.store.sqlite_store import FILE, Store

OPTIONS = {"claim": PureDP(1.0), "runs": 150_000, "jobs": 1, "seed": 5, "bits": False}
FULL = r"audit\.sqlite cannot grow, because the disk is full, but earlier blocks are saved; make room and resume"


def laplace(dataset, size, rng):
    return dataset + rng.laplace(size=size)


@pytest.fixture
def pages(monkeypatch):
    """Limit the store's pages of 4096 bytes, so that SQLite reports a full disk."""
    real, most = sqlite3.connect, []

    def connect(*arguments, **options):
        file = real(*arguments, **options)
        if most:
            file.execute(f"PRAGMA max_page_count = {most[-1]}")
        return file

    monkeypatch.setattr("dpaudit.audit.store.sqlite_store.sqlite3.connect", connect)
    return most


@pytest.mark.parametrize("most", [2, 5, 30])
def test_a_full_disk_ends_the_audit_and_it_goes_on_when_there_is_room(tmp_path, monkeypatch, pages, most):
    monkeypatch.setattr("dpaudit.audit.store.sqlite_store._PATIENCE", 0.0)
    pages.append(most)
    with pytest.raises(StoreError, match=FULL):
        check(laplace, 0, 1, store=tmp_path, **OPTIONS)
    pages.clear()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert check(laplace, 0, 1, store=tmp_path, **OPTIONS) == check(laplace, 0, 1, **OPTIONS)


def test_what_was_saved_before_is_whole(tmp_path, pages):
    with Store(tmp_path) as store:
        store.section("it", {}).keep("first", [1])
    pages.append(6)
    store = Store(tmp_path)
    with pytest.raises(StoreError, match=FULL):
        store.section("it", {}).keep("second", np.zeros(1_000_000))
    with pytest.raises(StoreError, match=FULL):
        store.close()
    pages.clear()
    with Store(tmp_path) as store:
        assert [store.section("it", {}).recall(key) for key in ("first", "second")] == [[1], None]


SCRIPT = """
import subprocess, sys, json
from pathlib import Path
from dpaudit import AuditError, PureDP, check

def laplace(dataset, size, rng):
    with open(sys.argv[1] + "/calls", "a") as file:  # in memory the count would be state of the mechanism
        file.write("x")
    return dataset + rng.laplace(size=size)

def mount(folder, options):
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True, capture_output=True)

def audited(**options):
    calls = root / "calls"
    calls.write_text("")
    try:
        return check(laplace, 0, 1, claim=PureDP(1.0), runs=150_000, jobs=1, seed=5, bits=False, **options)
    except AuditError as error:
        return f"{type(error).__name__} after {len(calls.read_text())} calls: {error}"

root = Path(sys.argv[1])
small, fixed, said = root / "small", root / "fixed", {}
mount(small, "size=1m")
ballast = small / "ballast"
ballast.write_bytes(bytes(1_000_000 - 60_000))
said["full"] = audited(store=small / "store")
ballast.unlink()
subprocess.run(["mount", "-o", "remount,size=20m", str(small)], check=True)
resumed = audited(store=small / "store")
plain = audited()
said["is_the_same"] = resumed == plain
mount(fixed, "size=20m")
audited(store=fixed / "begun")
for folder in ("begun", "new"):
    subprocess.run(["mount", "-o", "remount,ro", str(fixed)], check=True)
    said[folder] = audited(store=fixed / folder)
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Messages of audits on a full and on a read-only file system, mounted in a namespace."""
    for unshare in (["unshare", "-m"], ["unshare", "-Urm"]):
        if (
            shutil.which("unshare") is not None
            and subprocess.run([*unshare, "true"], capture_output=True).returncode == 0
        ):
            break
    else:
        pytest.skip("file systems cannot be mounted here: unshare is missing or not permitted")
    done = subprocess.run(
        [*unshare, sys.executable, "-c", SCRIPT, str(tmp_path_factory.mktemp("disks"))], capture_output=True, text=True
    )
    if "CalledProcessError" in done.stderr and "mount" in done.stderr:
        pytest.skip("file systems cannot be mounted here: mount is not permitted")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_small_file_system_that_is_full(said):
    assert "disk is full" in said["full"]
    assert "make room and resume" in said["full"]
    assert said["is_the_same"]


@pytest.mark.parametrize("folder", ["begun", "new"])
def test_a_file_system_that_can_only_be_read_is_seen_before_anything_is_drawn(said, folder):
    assert said[folder].startswith("StoreError after 0 calls: ")
    assert "permit writing and resume" in said[folder]


def test_a_folder_that_can_only_be_read_is_seen_before_anything_is_drawn(tmp_path, monkeypatch):
    """The connection is read-only, because file permissions do not restrict root."""
    check(laplace, 0, 1, store=tmp_path, **OPTIONS)
    before, real = (tmp_path / FILE).read_bytes(), sqlite3.connect
    monkeypatch.setattr(
        "dpaudit.audit.store.sqlite_store.sqlite3.connect",
        lambda path, **options: real(f"file:{path}?mode=ro", uri=True, **options),
    )
    calls = []

    def counted(dataset, size, rng):
        calls.append(size)
        return laplace(dataset, size, rng)

    with pytest.raises(StoreError, match=r"readonly database.*permit writing and resume"):
        check(counted, 0, 1, store=tmp_path, **OPTIONS)
    assert calls == []
    assert (tmp_path / FILE).read_bytes() == before
