"""What lies in and beside the folder of a store is never obeyed or deleted; a full disk leaves it intact."""

import contextlib
import os
import signal
import sqlite3
import struct
import subprocess
import sys

import pytest

from dpaudit import PureDP, check
from dpaudit.audit.errors import StoreError
from dpaudit.audit.store.sqlite_store import FILE, Store

MAGIC = bytes.fromhex("d9d505f920a163d7")


def laplace(answer, size, rng):
    return answer + rng.laplace(size=size)


def audited(store, mechanism=laplace):
    return check(mechanism, 0.0, 1.0, claim=1.0, runs=400, jobs=1, floating_point="ignore", store=store)


def contents(folder):
    """Every path below a folder, with its link or its bytes."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file()]
    return {path: os.readlink(path) if path.is_symlink() else path.read_bytes() for path in paths}


def super_journal(victim, size):
    """A journal of SQLite that names a file to be deleted when the journal has been obeyed."""
    name, page = os.fsencode(victim), 4096
    head = (MAGIC + struct.pack(">IIIII", 0, 1, size // page, 512, page)).ljust(512, b"\0")
    return head + struct.pack(">I", 2**30 // page + 1) + name + struct.pack(">II", len(name), sum(name)) + MAGIC


def journal(path, victim):
    path.write_bytes(super_journal(victim, 4096 * 5))


BESIDE = rf"{FILE} is next to {FILE}%s, which .*; move that file away"


@pytest.mark.parametrize(
    ("make", "ending", "has_begun", "message"),
    [
        (journal, "-journal", True, BESIDE % "-journal"),
        (journal, "-journal", False, BESIDE % "-journal"),
        (lambda path, victim: path.write_text("my notes"), "-journal", True, BESIDE % "-journal"),
        (lambda path, victim: path.hardlink_to(victim), "-journal", True, BESIDE % "-journal"),
        (lambda path, victim: path.symlink_to(victim), "-shm", True, BESIDE % "-shm"),
        (lambda path, victim: path.symlink_to(victim), "", False, "is a symbolic link, .* name its target"),
        (lambda path, victim: path.hardlink_to(victim), "", False, "has another name in the file system"),
        (lambda path, victim: path.write_text("my notes on an audit"), "", False, "is not a store of an audit"),
        (lambda path, _: path.write_bytes(b"SQLite format 3\0" + bytes(2) + b"\1\1" + bytes(80)), "", False, "damaged"),
    ],
)
def test_what_is_no_store_or_lies_beside_it_is_refused_and_stays(tmp_path, make, ending, has_begun, message):
    folder, victim = tmp_path / "store", tmp_path / "other" / FILE
    folder.mkdir()
    audited(victim.parent)
    if has_begun:
        audited(folder)
    make(folder / f"{FILE}{ending}", victim)
    before = contents(tmp_path)
    with pytest.raises(StoreError, match=message):
        audited(folder)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["file:x?mode=memory&y=", "line\nbreak"])
def test_a_name_is_a_folder_on_the_disk(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    first = audited(name)
    assert (os.listdir(tmp_path), os.listdir(tmp_path / name)) == ([name], [FILE])
    assert audited(name) == first


def test_a_relative_name_is_resolved_once(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "there" / "store").mkdir(parents=True)
    (tmp_path / "there" / "store" / FILE).write_text("draws of another audit")
    monkeypatch.chdir(tmp_path / "here")

    def moving(answer, size, rng):
        os.chdir(tmp_path / "there")
        return laplace(answer, size, rng)

    audited("store", moving)
    assert (tmp_path / "here" / "store" / FILE).exists()
    monkeypatch.chdir(tmp_path / "here")
    with Store("store") as store:
        os.chdir(tmp_path / "there")
        store.discard()
    assert not (tmp_path / "here" / "store" / FILE).exists()
    assert (tmp_path / "there" / "store" / FILE).read_text() == "draws of another audit"


def test_a_discarded_store_leaves_a_file_that_took_its_place(tmp_path):
    with Store(tmp_path) as store:
        (tmp_path / FILE).unlink()
        (tmp_path / FILE).write_text("precious")
        store.discard()
    assert (tmp_path / FILE).read_text() == "precious"


def test_a_refused_second_opening_does_not_end_the_lock(tmp_path):
    """A file that is read and closed would lose the lock that SQLite holds on it."""
    with Store(tmp_path):
        with pytest.raises(StoreError, match="in use by another audit of this process"):
            Store(tmp_path)
        code = f"from dpaudit.audit.store.sqlite_store import Store; Store({str(tmp_path)!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert "in use by another process" in done.stderr


KILLED = """
import os, sqlite3, sys
from dpaudit import check
number, times = int(sys.argv[2]), 0
def killing(self, name):
    def call(*arguments):
        global times
        times += 1
        if times == number:
            os.kill(os.getpid(), 9)
        return getattr(self.real, name)(*arguments)
    return call
class Connection:
    def __init__(self, *arguments, **options): self.real = real(*arguments, **options)
    def __getattr__(self, name):
        return killing(self, name) if name in ("execute", "executemany") else getattr(self.real, name)
real, sqlite3.connect = sqlite3.connect, Connection
def laplace(answer, size, rng): return answer + rng.laplace(size=size)
options = {"runs": 200, "jobs": 1, "floating_point": "ignore"}
print(repr(check(laplace, 0.0, 1.0, claim=1.0, store=sys.argv[1] or None, **options).observation))
"""


def killed(folder, number):
    """Run an audit that is killed before a statement of SQLite: its exit status and its evidence."""
    command = [sys.executable, "-c", KILLED, str(folder), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_the_store_of_a_killed_audit_is_resumed(tmp_path):
    """Killed in a transaction of blocks: the journal is the store's, and is used."""
    assert killed(tmp_path, 15) == (-signal.SIGKILL, "")
    whole = check(laplace, 0.0, 1.0, claim=1.0, runs=200, jobs=1, floating_point="ignore")
    assert killed(tmp_path, 10**9) == (0, f"{whole.observation!r}\n")


OPTIONS = {"claim": PureDP(1.0), "runs": 150_000, "jobs": 1, "seed": 5, "floating_point": "ignore"}
FULL = r"audit\.sqlite cannot grow, because the disk is full, but earlier chunks are saved; make room and resume"


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


def test_a_full_disk_ends_the_audit_and_it_goes_on_when_there_is_room(tmp_path, monkeypatch, pages):
    monkeypatch.setattr("dpaudit.audit.store.sqlite_store._PATIENCE", 0.0)
    pages.append(5)
    with pytest.raises(StoreError, match=FULL):
        check(laplace, 0, 1, store=tmp_path, **OPTIONS)
    pages.clear()
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert check(laplace, 0, 1, store=tmp_path, **OPTIONS) == check(laplace, 0, 1, **OPTIONS)
