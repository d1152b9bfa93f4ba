"""Files are written completely or not at all, and never through a link, a pipe or a device."""

import errno
import os
import signal
import stat
import subprocess
import sys

import pytest

from dpaudit.audit.errors import AuditError, OptionError, RecordError, WriteError
from dpaudit.audit.files import path_of, write_atomically
from dpaudit.audit.records.json_codec import load


@pytest.fixture(autouse=True)
def umask():
    former = os.umask(0o022)
    yield
    os.umask(former)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_mode_of_the_umask_and_an_old_one_keeps_its_own(tmp_path):
    path = tmp_path / "folder" / "r.json"
    for umask, mode in ((0o022, 0o644), (0o027, 0o640)):
        os.umask(umask)
        path.unlink(missing_ok=True)
        write_atomically(path, "new")
        assert stat.S_IMODE(path.stat().st_mode) == mode
    for mode in (0o600, 0o664):
        path.chmod(mode)
        write_atomically(path, "again")
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert (path.read_text(), names(path.parent)) == ("again", ["r.json"])


def make_link(path):
    target = path.with_name("target")
    target.write_text("precious")
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (make_link, "a symbolic link, .* name its target, .*/target"),
        (lambda path: path.symlink_to("nowhere"), "a symbolic link"),
        (os.mkfifo, "a pipe"),
        (lambda path: path.mkdir(), "a folder"),
    ],
)
def test_what_is_no_file_stays(tmp_path, make, kind):
    def state():
        found = {name: os.lstat(tmp_path / name) for name in names(tmp_path)}
        return {name: (one.st_ino, one.st_mtime_ns) for name, one in found.items()}

    make(tmp_path / "r.json")
    before = state()
    with pytest.raises(WriteError, match=f"r.json is {kind}"):
        write_atomically(tmp_path / "r.json", "new")
    assert state() == before


@pytest.mark.parametrize(
    ("make", "kind"),
    [(os.mkfifo, "pipe"), (lambda path: path.symlink_to("/dev/zero"), "device"), (lambda path: path.mkdir(), "folder")],
)
def test_what_might_keep_a_reader_waiting_is_not_read(tmp_path, make, kind):
    make(tmp_path / "r.json")
    with pytest.raises(RecordError, match=f"r.json cannot be read: it is a {kind}, and"):
        load(tmp_path / "r.json")


def test_devices_are_refused():
    for path in ("/dev/null", "/dev/full", "/dev/stdout"):
        with pytest.raises(WriteError, match=r"is a (device|symbolic link)"):
            write_atomically(path, "new")


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_failing_write_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch, call):
    path, code = tmp_path / "r.json", errno.ENOSPC
    write_atomically(path, "old")

    def fail(*arguments, **options):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match=rf"r\.json cannot be written \({os.strerror(code)}\); ") as caught:
            write_atomically(path, "new")
    assert isinstance(caught.value, AuditError)
    assert (path.read_text(), names(tmp_path)) == ("old", ["r.json"])


KILLED = """
import os, sys
from dpaudit.audit import files
real = os.replace
def replace(*paths):
    if files.written == 3:
        os.kill(os.getpid(), 9)
    files.written += 1
    real(*paths)
files.written, os.replace = 0, replace
for number in range(9):
    files.write_atomically(sys.argv[1], f"version {number} " * 1000)
"""


def test_a_killed_process_leaves_a_whole_file(tmp_path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "r.json")], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "r.json").read_text() == "version 2 " * 1000


@pytest.mark.parametrize(
    "name", ["a?b#c%20.json", "file:x?mode=memory", "line\nbreak", "n" * 255, b"\xff\xfe.json", ".x"]
)
def test_any_name_is_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write_atomically(name, "lone \ud800")
    assert names(tmp_path) == [os.fsdecode(name)]
    assert path_of(name).read_text() == "lone \\ud800"


def test_what_cannot_be_a_path(tmp_path, monkeypatch):
    for name in ("", b"", "a\0b", "\ud800", 3, None):
        with pytest.raises(OptionError, match="path="):
            path_of(name)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(OptionError, match="the working folder was deleted"):
        path_of("r.json")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root changes its user")
def test_files_of_other_users(tmp_path):
    """The administrator leaves a file to its owner; another user is refused before anything is written."""
    path = tmp_path / "r.json"
    path.write_text("old")
    os.chown(path, 12345, 12346)
    write_atomically(path, "new")
    assert (path.stat().st_uid, path.stat().st_gid, path.read_text()) == (12345, 12346, "new")
    code = (
        "import os, sys\n"
        "from dpaudit.audit.files import write_atomically\n"
        "os.setgid(54321)\nos.setuid(54321)\n"
        "write_atomically('r.json', 'mine')"
    )
    for folder in (tmp_path.parent, tmp_path):
        folder.chmod(0o777)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "WriteError" in done.stderr
    assert (path.read_text(), names(tmp_path)) == ("new", ["r.json"])
