"""The command line: exit statuses, files and messages."""

import json
import os
import re
import sys

import numpy as np
import pytest

from dpaudit.audit.records.json_codec import load
from dpaudit.reports.cli.shared_options import environment_of_command
from dpaudit.reports.pages.audit_facts import repetition

OWN = ("--x", "[1, 1]", "--y", "[1]", "--runs", "5000")


def test_a_crash_is_not_a_refutation(run):
    status, _, err = run("audit", "mine:noisy_count", "--search", "mine:broken_pairs", "--epsilon", "1")
    assert status == 2
    assert "raised RuntimeError: no pairs on pair 1" in err


@pytest.mark.parametrize(
    ("mechanism", "options", "status", "start"),
    [
        ("noisy_count", ("--epsilon", "1", "--adjacency", "add-remove"), 0, "NOT REFUTED  noisy_count: epsilon >= 0."),
        ("too_little_noise", ("--epsilon", "1"), 1, "REFUTED  too_little_noise: epsilon >= 1."),
        ("noisy_count", ("--epsilon", "1", "--detect", "0.001"), 3, "INCONCLUSIVE  noisy_count: too few runs"),
        ("noisy_count", ("--mu", "2"), 0, "NOT REFUTED  noisy_count: mu >= "),
    ],
)
def test_the_verdict_decides_the_status(run, mechanism, options, status, start):
    found, out, _ = run("audit", f"mine:{mechanism}", *OWN, *options)
    assert (found, out.startswith(start)) == (status, True)
    assert status != 1 or "times as likely on" in out


def test_audit_reads_files_and_writes_a_report(run, tmp_path):
    np.save(tmp_path / "x.npy", np.ones(2))
    (tmp_path / "y.csv").write_text("income\n1\n")
    options = ["--x", "@x.npy", "--y", "@y.csv", "--epsilon", "1", "--runs", "5000", "--out", "r"]
    assert run("audit", "mine:own.inner", *options)[0] == 0
    suite = load(tmp_path / "r" / "results.json")
    assert suite.entries[0].result.pair.x == "array of shape (2,), float64"
    assert "Audit of mine:own.inner" in (tmp_path / "r" / "report.html").read_text()
    assert (tmp_path / "r" / "report.md").exists()


@pytest.mark.skipif(os.name != "posix", reason="programs need POSIX pipes")
def test_a_program_is_audited_under_its_name(run, tmp_path):
    code = (
        "import json, random, sys\n"
        "for line in sys.stdin:\n"
        "    r = json.loads(line)\n"
        "    noise = random.Random(r['seed']).expovariate\n"
        "    print([len(r['dataset']) + noise(2) - noise(2) for _ in range(r['runs'])], flush=True)\n"
    )
    (tmp_path / "count.py").write_text(code)
    program = f"{sys.executable} count.py"
    status, out, _ = run("audit", "--program", program, *OWN, "--epsilon", "1", "--jobs", "1")
    assert (status, bool(re.match("REFUTED  .*count.py: epsilon >= 1.", out))) == (1, True)


@pytest.mark.skipif(os.name != "posix", reason="programs need POSIX pipes")
def test_a_program_that_takes_files_gets_their_text(run, tmp_path):
    """Names of columns and digits as in the file, also of a table without rows, and a folder of tables."""
    (tmp_path / "x.csv").write_text("age,city\n031,Bern\n3.50,\n")
    (tmp_path / "y.csv").write_text("age,city\n031,Bern\n")
    command = ["--program", "awk '{ print (NR > 2 ? 3 : 1), $0 }' {input.csv} > {output.txt}", "--epsilon", "1"]
    status, out, _ = run("audit", *command, "--x", "x.csv", "--y", "y.csv", "--runs", "40", "--out", "report")
    assert (status, "1 row only in x, 0 only in y" in out) == (1, True)
    text = (tmp_path / "report" / "results.json").read_text()
    assert "--x x.csv --y y.csv" in text
    assert "1 age,city\\n1 031,Bern\\n3 3.50," in text
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.csv").rename(tmp_path / name / "people.csv")
    command[1] = "wc -l < {input.csv}"
    status, _, error = run("audit", *command, "--x", "x/", "--y", "y/", "--runs", "40")
    assert (status, "the dataset is a dict and not a table" in error) == (2, True)
    command[1] = "awk 'END { print NR }' {input/}people.csv"
    assert run("audit", *command, "--x", "x/", "--y", "y/", "--runs", "40")[0] == 1


def test_debug_shows_the_traceback(run):
    status, _, err = run("audit", "mine:nothing", *OWN, "--epsilon", "1", "--debug")
    assert status == 2
    assert "Traceback" in err


def test_a_command_line_in_a_report_shows_no_dataset(run, tmp_path):
    run("audit", "mine:noisy_count", "--x", "[41, 42]", "--y=[41]", "--epsilon", "1", "--runs", "2000", "--out", "r")
    (entry,) = load(tmp_path / "r" / "results.json").entries
    assert "--x '…' '--y=…' --epsilon 1" in repetition(entry), "and is the command that repeats the audit"
    assert "[41" not in (tmp_path / "r" / "report.html").read_text()


def test_run_list_and_report(run, tmp_path):
    status, out, _ = run("run", "randomised-response", "laplace-scale-epsilon", "--runs", "5000", "--out", "first")
    assert status == 0
    assert "2 of 2 verdicts as expected" in out
    first = (tmp_path / "first" / "report.html").read_text()
    status, _, _ = run("report", "first/results.json", "--out", "second")
    assert status == 0
    assert (tmp_path / "second" / "report.html").read_text() == first


def test_run_has_status_1_when_an_expectation_is_missed(run):
    """Too few runs to find a fault that the suite expects to be found."""
    status, out, _ = run("run", "gaussian-classical-at-10", "--runs", "1000")
    assert status == 1
    assert "0 of 1 verdicts as expected" in out


def test_the_same_seed_gives_the_same_file_outside_environment(run, tmp_path):
    for folder, jobs in (("a", "1"), ("b", "2")):
        run("run", "randomised-response", "--runs", "2000", "--jobs", jobs, "--out", folder)
    texts = [json.loads((tmp_path / folder / "results.json").read_text()) for folder in "ab"]
    environments = [text.pop("environment") for text in texts]
    assert texts[0] == texts[1]
    assert environments[0]["suite"]["command"].endswith("--jobs 1 --out a")


@pytest.mark.parametrize("command", [(), ("run",), ("audit",), ("bench", "google")])
def test_help_shows_an_example(run, command):
    status, out, _ = run(*command, "--help")
    assert status == 0
    assert ("Example:" in out) == (command != ())


def test_the_auditor_is_named_by_the_environment(monkeypatch):
    for variable in ("DPAUDIT_AUDITOR", "GITHUB_ACTOR", "GITLAB_USER_LOGIN"):
        monkeypatch.delenv(variable, raising=False)
    assert "by" not in environment_of_command()
    monkeypatch.setenv("GITHUB_ACTOR", "octocat")
    assert environment_of_command()["by"] == "octocat"
    monkeypatch.setenv("DPAUDIT_AUDITOR", "J. Doe")
    assert environment_of_command()["by"] == "J. Doe"
