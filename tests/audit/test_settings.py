"""Settings for many calls: their order of precedence, and what is refused."""

import re

import pytest

from dpaudit import check, check_equivalence, find_worst_pair, settings
from dpaudit.audit.errors import OptionError
from dpaudit.audit.settings import or_setting, setting

from .stand_ins import noisy

PROJECT = """
[tool.dpaudit]
runs = 300
jobs = 1

[tool.dpaudit.profiles.nightly]
runs = 900
"""


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    """Without this project's own settings, and with the settings before the test after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPAUDIT_PROFILE", raising=False)
    with settings():
        yield


def runs_of(**options):
    return check(noisy, 0, 1, claim=1.0, jobs=1, **options).runs


def test_each_source_goes_before_the_next(tmp_path, monkeypatch):
    assert setting("runs") is None
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    inner = tmp_path / "package" / "deeper"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert (runs_of(), setting("jobs")) == (300, 1)
    monkeypatch.setenv("DPAUDIT_PROFILE", "nightly")
    assert (runs_of(), setting("jobs")) == (900, 1), "what a profile leaves out stays"
    with settings(runs=500):
        assert runs_of() == 500
        with settings("nightly"):
            assert runs_of() == 900
            assert runs_of(runs=200) == 200
        with settings("nightly", runs=600):
            assert runs_of() == 600
        assert runs_of() == 500
    assert runs_of() == 900
    settings(runs=700)
    assert runs_of() == 700, "without a block they hold from the call on"


def test_runs_hold_where_nothing_else_gives_their_number():
    with settings(runs=1_000, search_runs=800):
        assert runs_of(detect=2.0) != 1_000
        assert runs_of(sequential=True) <= 1_000
        found = find_worst_pair(noisy, [(0, 1)], claim=1.0, jobs=1)
        assert found.audit.runs == 1_000
        assert found.runs <= 800 + 2 * 1_000


def test_options_hold_for_every_call_that_takes_them_and_does_not_name_them():
    with settings(jobs=2, progress=False, chunk_seconds=60.0):
        here = check(noisy, 0, 1, claim=1.0, runs=400)
    assert here == check(noisy, 0, 1, claim=1.0, runs=400, jobs=1), "these change no number"
    with settings(floating_point="ignore", power=0.8, keep_datasets=True):
        held = check(noisy, 0, 1, claim=1.0, runs=400, jobs=1)
        assert (held.floating_point, held.power, held.pair.contents) == ("ignore", 0.8, ("0", "1"))
        named = check(noisy, 0, 1, claim=1.0, runs=400, jobs=1, power=0.9, floating_point="warn", keep_datasets=False)
        assert (named.floating_point, named.power, named.pair.contents) == ("warn", 0.9, None)
        assert check_equivalence(noisy, noisy, 0, margin=0.5, runs=400, jobs=1).margin == 0.5, "it takes no power"
    with settings(detect=2.0):
        assert check(noisy, 0, 1, claim=1.0, runs=400, jobs=1).detect == 2.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seconds": 60}, "seconds is not a setting"),
        ({"bins": 8}, "bins is not a setting"),
        ({"floating_point": True}, "floating_point=True is unknown"),
        ({"alpha": 0.1}, "alpha is not a setting.*What an audit means is stated in its call"),
        ({"job": 2}, "did you mean 'jobs'"),
        ({"runs": 3}, "settings: runs=3 is not a number of runs"),
        ({"progress": "yes"}, "progress='yes' is unknown"),
        ({"profile": "nightly"}, "which has none"),
    ],
)
def test_what_is_refused(wrong, message):
    with pytest.raises(OptionError, match=message):
        settings(**wrong)
    assert or_setting("runs", None) is None, "nothing is set by a refused call"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[tool.dpaudit]\nalpha = 0.1", r"pyproject\.toml, \[tool\.dpaudit\]: alpha is not a setting"),
        (b"[tool.dpaudit.profiles.a]\nruns = 1", r"profiles\.a\]: runs=1 is not a number of runs"),
        (b"[tool.dpaudit]\nprofiles = 1", "is not a table of settings"),
        (b"[tool]\ndpaudit = 3", "is not a table of settings"), (b"[tool.dpaudit\n", "is damaged"),
        pytest.param(b"[tool.other]\nx = " + b"1" * 5000, "is damaged", id="an integer of 5,000 digits"),
        (b"[tool.dpaudit]\nruns = 300 # \xff\n", "is damaged"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_and_ends_no_audit(tmp_path, caplog, text, message):
    (tmp_path / "pyproject.toml").write_bytes(text)
    assert runs_of(detect=2.0) != 300
    assert setting("runs") is None
    assert len(caplog.messages) == 1, "the file is named once"
    assert re.search(message, caplog.text)
    assert str(tmp_path / "pyproject.toml") in caplog.text


def test_a_wrong_setting_leaves_the_others(tmp_path, caplog):
    (tmp_path / "pyproject.toml").write_bytes(b"\xef\xbb\xbf[tool.dpaudit]\nruns = 300\njobs = 'all'\n")
    assert runs_of() == 300
    assert "runs = 300 is set by " + str(tmp_path / "pyproject.toml") in caplog.text
    assert "jobs='all'" in caplog.text


def test_the_nearest_file_with_a_table_of_this_library_holds(tmp_path, monkeypatch):
    """Whatever else the files between say, as those of other tools do."""
    inner = tmp_path / "project" / "part"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    for folder, text, runs in (
        (tmp_path, "[project]\nname = 'mine'\n", None),
        (tmp_path, "[tool.dpaudit]\nruns = 300\n", 300),
        (inner.parent, "[tool.pytest.ini_options]\n", 300),
        (inner, "[tool.dpaudit]\nruns = 400\n", 400),
    ):
        (folder / "pyproject.toml").write_text(text)
        assert setting("runs") == runs


def test_an_unknown_profile_is_compared_with_those_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    monkeypatch.setenv("DPAUDIT_PROFILE", "nightlies")
    with pytest.raises(OptionError, match="which has nightly; did you mean 'nightly'"):
        runs_of()
