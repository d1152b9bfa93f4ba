"""The command line: exit statuses, files and messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from dpaudit.audit.errors import DatasetError
from dpaudit.audit.records.json_codec import load
from dpaudit.experiments.cases.experiment import select
from dpaudit.experiments.suite.run_suite import all_experiments
from dpaudit.reports.cli.dataset_arguments import read_dataset
from dpaudit.reports.cli.main import main
from dpaudit.reports.cli.options import environment_of_command

MODULE = """
import numpy as np

def noisy_count(rows, size, rng):
    return len(rows) + rng.laplace(scale=1.25, size=size)

def too_little_noise(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.5, size=size)

def broken(rows, size, rng):
    raise ValueError("no such column")

class Holder:
    def __init__(self): self.inner = noisy_count

def broken_pairs(rng):
    raise RuntimeError("no pairs")

holder = Holder()
nothing = 3
"""


def test_it_is_a_module_too():
    said = subprocess.run([sys.executable, "-m", "dpaudit", "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("dpaudit ")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command line in a folder with a module `mine`: (exit status, standard output, standard error)."""
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("mine", None)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpaudit", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    yield call
    sys.modules.pop("mine", None)


OWN = ("--x", "[1, 1]", "--y", "[1]", "--runs", "5000")


def test_a_crash_is_not_a_refutation(run):
    status, _, err = run("audit", "mine:noisy_count", "--search", "mine:broken_pairs", "--epsilon", "1")
    assert status == 2
    assert "raised RuntimeError: no pairs on pair 1" in err


def test_audit_says_not_refuted_with_status_0(run):
    status, out, _ = run("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--adjacency", "add-remove")
    assert status == 0
    assert out.startswith("NOT REFUTED: ε ≥ 0.")


def test_audit_says_refuted_with_status_1(run):
    status, out, _ = run("audit", "mine:too_little_noise", *OWN, "--epsilon", "1")
    assert status == 1
    assert out.startswith("REFUTED: ε ≥ 1.")
    assert "times likelier on" in out


def test_audit_says_inconclusive_with_status_3(run):
    status, out, _ = run("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--resolution", "0.001")
    assert status == 3
    assert out.startswith("INCONCLUSIVE: too few runs")


@pytest.mark.usefixtures("without_resolution")
@pytest.mark.parametrize("claim", [("--epsilon", "1", "--delta", "0.1"), ("--mu", "2"), ("--rho", "2")])
def test_audit_knows_other_claims(run, claim):
    assert run("audit", "mine:noisy_count", *OWN, *claim)[0] == 0


def test_audit_reads_files_and_writes_a_report(run, tmp_path):
    np.save(tmp_path / "x.npy", np.ones(2))
    (tmp_path / "y.csv").write_text("income\n1\n")
    status, _, _ = run(
        "audit",
        "mine:holder.inner",
        "--x",
        "@x.npy",
        "--y",
        "@y.csv",
        "--epsilon",
        "1",
        "--runs",
        "5000",
        "--out",
        "r",
    )
    assert status == 0
    suite = load(tmp_path / "r" / "results.json")
    assert suite.entries[0].result.pair.x == "array of shape (2,), float64"
    assert "Audit of mine:holder.inner" in (tmp_path / "r" / "report.html").read_text()
    assert (tmp_path / "r" / "report.md").exists()


@pytest.mark.skipif(os.name != "posix", reason="programs need POSIX pipes")
@pytest.mark.usefixtures("without_pages")
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
    arguments = ("--program", program, *OWN, "--epsilon", "1", "--jobs", "1", "--out", "r")
    status, out, _ = run("audit", *arguments, "--name", "count of mine")
    assert (status, "REFUTED: ε ≥ 1." in out) == (1, True)
    (entry,) = load(tmp_path / "r" / "results.json").entries
    assert (entry.name, entry.result.mechanism) == ("count of mine", "count of mine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit", "mine", *OWN, "--epsilon", "1"), "UnknownNameError: 'mine' does not name an object"),
        (("audit", "mine:absent", *OWN, "--epsilon", "1"), "UnknownNameError: 'mine' has no 'absent'"),
        (
            ("audit", "nowhere.at_all:f", *OWN, "--epsilon", "1"),
            "UnknownNameError: module 'nowhere' of 'nowhere.at_all:f' does not exist",
        ),
        (("audit", "mine:nothing", *OWN, "--epsilon", "1"), "MechanismError: mechanism 3 cannot be run"),
        (("audit", "mine:broken", *OWN, "--epsilon", "1"), "MechanismError: broken raised ValueError"),
        (("audit", "mine:noisy_count", *OWN), "ClaimError: no claim given"),
        (("audit", *OWN, "--epsilon", "1"), "OptionError: a mechanism is named as MODULE:OBJECT or as --program"),
        (("audit", "mine:noisy_count", "--program", "true", *OWN, "--epsilon", "1"), "OptionError: a mechanism is"),
        (("audit", "--program", "sh 'open", *OWN, "--epsilon", "1"), 'OptionError: --program "sh \'open" cannot be'),
        (
            ("audit", "--program", "no-such-program", *OWN, "--epsilon", "1"),
            "MechanismError: --program ['no-such",
        ),
        (("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--mu", "1"), "OptionError: --epsilon and --mu given"),
        (("audit", "mine:noisy_count", *OWN, "--epsilon", "nan"), "ClaimError: --epsilon nan is not allowed"),
        (("audit", "mine:noisy_count", *OWN, "--epsilon", "-1"), "ClaimError: --epsilon -1.0 is not allowed"),
        (("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--delta", "1.5"), "ClaimError: --delta 1.5"),
        (("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--alpha", "0"), "OptionError: --alpha 0.0"),
        (("audit", "mine:noisy_count", *OWN[:-1], "3", "--epsilon", "1"), "OptionError: --runs 3"),
        (
            ("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--adjacency", "near"),
            "OptionError: --adjacency 'near'",
        ),
        (
            ("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--adjacency", "replace"),
            "AdjacencyError: the pair is",
        ),
        (
            ("audit", "mine:noisy_count", "--x", "[1", "--y", "[1]", "--epsilon", "1"),
            "DatasetError: --x '[1' is not JSON",
        ),
        (
            ("audit", "mine:noisy_count", "--x", "@no.npy", "--y", "[1]", "--epsilon", "1"),
            "DatasetError: no.npy cannot",
        ),
        (("audit", "mine:noisy_count", "--x", "@a.txt", "--y", "[1]", "--epsilon", "1"), "DatasetError: a.txt has an"),
        (("audit", "mine:noisy_count", *OWN, "--mu", "1", "--delta", "0.1"), "OptionError: --delta 0.1 belongs to"),
        (
            ("audit", "mine.py:noisy_count", *OWN, "--epsilon", "1"),
            "UnknownNameError: 'mine.py:noisy_count' names",
        ),
        (("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--jobs", "0"), "OptionError: --jobs 0"),
        (
            ("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--out", "mine.py/x"),
            "WriteError: mine.py/x/results.json",
        ),
        (("run", "no-such-experiment"), "UnknownNameError: 'no-such-experiment' is not an experiment"),
        (("report", "absent.json"), "RecordError: absent.json cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run, arguments, message):
    status, _, err = run(*arguments)
    assert status == 2
    assert err.replace(f"{os.getcwd()}/", "").startswith(message)
    assert err.count("\n") == 1


def test_debug_shows_the_traceback(run):
    status, _, err = run("audit", "mine:nothing", *OWN, "--epsilon", "1", "--debug")
    assert status == 2
    assert "Traceback" in err


def test_a_pickle_is_not_loaded(run, tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    status, _, err = run("audit", "mine:noisy_count", "--x", "@x.npy", "--y", "[1]", "--epsilon", "1")
    assert status == 2
    assert err.startswith("DatasetError: x.npy is not an array of numbers")


def test_a_command_line_in_a_report_shows_no_dataset(run, tmp_path):
    run("audit", "mine:noisy_count", "--x", "[41, 42]", "--y=[41]", "--epsilon", "1", "--runs", "2000", "--out", "r")
    assert "--x … --y=… --epsilon 1" in (tmp_path / "r" / "results.json").read_text()
    assert "[41" not in (tmp_path / "r" / "report.html").read_text()


def test_a_csv_of_words_is_rows_by_name(tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nann,3\nbob,4\n")
    assert read_dataset(f"@{tmp_path}/people.csv") == [{"name": "ann", "age": "3"}, {"name": "bob", "age": "4"}]
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DatasetError, match="is empty"):
        read_dataset(f"@{tmp_path}/empty.csv")


def test_version(run):
    status, out, _ = run("--version")
    assert status == 0
    assert out.startswith("dpaudit ")


@pytest.mark.usefixtures("without_pages", "without_resolution")
def test_an_own_audit_is_not_measured_against_expectations(run):
    run("audit", "mine:noisy_count", *OWN, "--epsilon", "1", "--out", "r")
    assert "1 of 1 verdicts as expected" not in run("report", "r/results.json")[1]


def test_run_list_and_report(run, tmp_path):
    status, out, _ = run("run", "randomised-response", "laplace-scale-epsilon", "--runs", "10000", "--out", "first")
    assert status == 0
    assert "2 of 2 verdicts as expected" in out
    first = (tmp_path / "first" / "report.html").read_text()
    status, _, _ = run("report", "first/results.json", "--out", "second")
    assert status == 0
    assert (tmp_path / "second" / "report.html").read_text() == first


def test_list_shows_every_id_and_for_a_name_its_cases(run):
    status, out, _ = run("list")
    assert status == 0
    for experiment in all_experiments():
        assert f" {experiment.id} " in out
    status, out, _ = run("list", "e7", "--document", "analytic-gaussian")
    assert status == 0
    for experiment in select(all_experiments(), ["E7"], ["analytic-gaussian"]):
        assert experiment.id in out
        assert all(case.name in out for case in experiment.cases)
    assert "4-DP at distance 8" in run("list", "D7")[1]
    status, _, err = run("list", "E99")
    assert (status, "'E99' is not an experiment" in err) == (2, True)


def test_run_has_status_1_when_an_expectation_is_missed(run):
    """Too few runs to find a fault that the suite expects to be found."""
    status, out, _ = run("run", "gaussian-classical-at-10", "--runs", "1000")
    assert status == 1
    assert "0 of 1 verdicts as expected" in out


@pytest.mark.usefixtures("without_pages", "without_resolution")
def test_the_same_seed_gives_the_same_file_outside_environment(run, tmp_path):
    for folder, jobs in (("a", "1"), ("b", "2")):
        run("run", "laplace", "randomised-response", "--runs", "20000", "--jobs", jobs, "--out", folder)
    texts = [json.loads((tmp_path / folder / "results.json").read_text()) for folder in "ab"]
    environments = [text.pop("environment") for text in texts]
    assert texts[0] == texts[1]
    assert environments[0]["suite"]["command"].endswith("--jobs 1 --out a")


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("run",),
        ("list",),
        ("audit",),
        ("report",),
        ("bench", "cost"),
        ("bench", "experiments"),
        ("bench", "inference"),
    ],
)
def test_help_shows_an_example(run, command):
    status, out, _ = run(*command, "--help")
    assert status == 0
    assert ("Example:" in out) == (command != ())


def test_help_waits_for_nothing_large():
    code = (
        "import sys; sys.argv = ['dpaudit', '--help']\n"
        "from dpaudit.reports.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "large = {'numpy', 'scipy', 'joblib', 'sklearn', 'statsmodels', 'matplotlib', 'networkx', 'distributed'}\n"
        "print(sorted(large & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "audit" in done.stdout


def test_bench_prints_a_table(run, tmp_path):
    status, out, _ = run("bench", "cost", "--runs", "20000", "--repeat", "1", "--out", "cost.md")
    assert status in (None, 0)
    assert (tmp_path / "cost.md").read_text().strip() in out
    assert "| drawing alone, same sampler |" in out
    status, out, _ = run(
        "bench", "experiments", "laplace", "gaussian-classical-at-10", "--seeds", "1", "--runs", "1000"
    )
    assert status == 1  # a thousand runs do not find the fault
    assert "| laplace | true | 1-DP, epsilon |" in out


def test_the_auditor_is_named_by_the_environment(monkeypatch):
    for variable in ("DPAUDIT_AUDITOR", "GITHUB_ACTOR", "GITLAB_USER_LOGIN"):
        monkeypatch.delenv(variable, raising=False)
    assert "by" not in environment_of_command()
    monkeypatch.setenv("GITHUB_ACTOR", "octocat")
    assert environment_of_command()["by"] == "octocat"
    monkeypatch.setenv("DPAUDIT_AUDITOR", "J. Doe")
    assert environment_of_command()["by"] == "J. Doe"
