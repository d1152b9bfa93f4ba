"""The command line in a folder of its own."""

import sys

import pytest

from dpaudit.reports.cli.main import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command line in an empty folder: (exit status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpaudit", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return stop.value.code, shown.out, shown.err

    yield call
    for name in set(sys.modules) - known:  # the modules in the folder
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
