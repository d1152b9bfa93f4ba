"""Where the command line runs does not matter: locale, encoding, no network; and it writes where it is told alone."""

import csv
import io
import json
import locale
import os
import re
import shutil
import subprocess
import sys

import pytest

from dpaudit import PureDP, check, save
from dpaudit.audit.store.sqlite_store import FILE, Store
from dpaudit.reports.cli.main import main

from .sandbox import OUT, Yard, hook

MODULE = """
def noisy(rows, size, rng):
    return len(rows) + rng.laplace(size=size)
"""
AUDIT = ("audit", "mine:noisy", "--x", "[1, 1.5]", "--y", "[1]", "--epsilon", "2.5", "--runs", "600", "--jobs", "1")
LINES = (
    (*AUDIT, "--alpha", "0.01", "--out", f"{OUT}/a"),
    ("report", f"{OUT}/a/results.json", "--junit", "--json", "--out", f"{OUT}/b"),
    ("plan", "--epsilon", "0.5", "--detect", "0.25"),
    ("schema",),
)


@pytest.fixture
def yard(tmp_path, monkeypatch):
    """A folder with a module, one that nobody names, and files that must stay as they are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("mine", "trap"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = Yard(tmp_path)
    found.plant("mine.py", MODULE)
    found.plant("trap.py", "raise SystemExit('imported')")
    found.plant("precious.txt", "precious")
    found.clear()
    yield found
    for name in ("mine", "trap"):
        sys.modules.pop(name, None)


def run(monkeypatch, words, encoding="utf-8"):
    """The exit status of a command, and what it says to a terminal of this encoding."""
    said, complaint = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") for _ in range(2))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["dpaudit", *words])
        patch.setattr(sys, "stdout", said)
        patch.setattr(sys, "stderr", complaint)
        with pytest.raises(SystemExit) as ended:
            main()
        said.flush(), complaint.flush()
    texts = [stream.detach().getvalue().decode() for stream in (said, complaint)]  # UTF-8 is what typer takes for ASCII
    assert "Traceback" not in texts[1], texts[1]
    return ended.value.code, *texts


def everything(monkeypatch, yard, encoding="utf-8"):
    """What all commands say, and all that they write but timings."""
    yard.clear()
    said = [run(monkeypatch, words, encoding) for words in LINES]
    report = next(place for place, words in enumerate(LINES) if words[0] == "report")  # which shows the seconds
    said[report] = (said[report][0], *(re.sub(r"\d+|[ ─]+", "", text) for text in said[report][1:]))
    with Store(yard.out / "s") as store:
        store.section("it", {"epsilon": 0.5, "alpha": 1e-5}).keep("block", [(0.25).hex(), 3])
    files = {}
    for path in sorted(yard.out.rglob("*.*")):
        if path.suffix == ".json":
            body = json.loads(path.read_text(encoding="utf-8"))
            body.pop("environment")
            files[str(path)] = json.dumps(body)
        elif path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                rows = [{**row, "seconds": ""} for row in csv.DictReader(file)]
            files[str(path)] = json.dumps(rows)
        elif path.suffix == ".sqlite":
            files[str(path)] = path.read_bytes()
    return said, files


@pytest.fixture(scope="module")
def comma(tmp_path_factory):
    """A locale with a decimal comma, made where none is installed."""
    folder = tmp_path_factory.mktemp("locales")
    if shutil.which("localedef") is not None:
        command = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")]
        subprocess.run(command, capture_output=True, check=False)
    former, path = locale.setlocale(locale.LC_ALL), os.environ.get("LOCPATH")
    if (folder / "de_DE.UTF-8").exists():
        os.environ["LOCPATH"] = str(folder)
    try:
        locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    except locale.Error:
        pytest.skip("no locale with a decimal comma is installed, and localedef cannot make one")
    else:
        yield
    finally:
        os.environ.pop("LOCPATH", None)
        if path is not None:
            os.environ["LOCPATH"] = path
        locale.setlocale(locale.LC_ALL, former)


def test_a_decimal_comma_and_a_terminal_of_ascii_change_nothing(monkeypatch, yard, comma):
    assert f"{0.5:n}" == "0,5"
    with_comma = everything(monkeypatch, yard)
    assert run(monkeypatch, ("plan", "--epsilon", "0,5"))[0] == 2
    locale.setlocale(locale.LC_ALL, "C")
    said, files = everything(monkeypatch, yard)
    assert with_comma == (said, files)
    assert [status for status, *_ in said] == [0] * len(LINES)
    assert all(run(monkeypatch, words, "ascii")[0] == 0 for words in LINES[1:])
    assert run(monkeypatch, ("report", "é\udcff.json"), "ascii")[0] == 2


def test_the_locale_c_without_utf_8_is_enough(yard):
    """Run in a separate process, whose file system has ASCII names as well."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    save(check(lambda dataset, rng: "é", 0, 1, claim=PureDP(1.0), runs=100, jobs=1), yard.out / "é.json")
    code = "from dpaudit.reports.cli.main import main; main()"
    words = ("report", f"{OUT}/é.json", "--markdown", "--out", f"{OUT}/ü")
    done = subprocess.run([sys.executable, "-c", code, *words], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert b"\\u2013" in done.stdout  # a dash, in place of what it cannot show
    assert "é" in (yard.out / "ü" / "report.md").read_text(encoding="utf-8")


def test_nothing_is_sent_started_imported_or_written_elsewhere(monkeypatch, yard):
    """The sandbox sees it; that it does is tested beside the fuzzing."""
    import matplotlib.pyplot  # noqa: F401  (makes a folder of its own when it is first imported)

    hook()
    (yard.out / "a").mkdir()
    with yard.watched(120.0):
        statuses = [run(monkeypatch, words)[0] for words in LINES]
    assert set(statuses) <= {0, 1}
    assert {path.name for path in yard.out.rglob("*.*")} == {
        "results.json", "report.html", "report.md", "junit.xml",
    }  # fmt: skip


def test_a_report_is_written_whole_or_not_at_all(monkeypatch, yard):
    """The disk is full when the report is written: what was there stays, no part of a file, and --resume ends it."""
    words = (*AUDIT, "--out", f"{OUT}/a")
    assert run(monkeypatch, words)[0] == 0
    before = (yard.out / "a" / "report.html").read_bytes()
    real = os.replace

    def full(source, target):
        if "report" in str(target).rpartition("/")[2]:
            raise OSError(28, "No space left on device", str(target))
        return real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        status, _, complaint = run(monkeypatch, words)
    assert status == 2
    assert complaint.count("\n") == 1
    assert "No space left on device" in complaint
    assert f"/{OUT}/a/{FILE}; free space" in complaint
    assert "continue with the same command and --resume" in complaint
    assert (yard.out / "a" / "report.html").read_bytes() == before
    assert sorted(path.name for path in (yard.out / "a").iterdir()) == sorted(
        [FILE, "report.html", "report.md", "results-1.json", "results.json"]
    )
    assert run(monkeypatch, (*words, "--resume"))[0] == 0
    assert not (yard.out / "a" / FILE).exists()
