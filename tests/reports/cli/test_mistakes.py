"""Mistaken command lines: each is told in one sentence that names options, with a remedy, and none is a traceback."""

import os
import shlex

import pytest

AUDIT, CLAIM = "audit mine:noisy_count", "--epsilon 1"
PAIR = "--x '[1, 1]' --y '[1]' --runs 2000 --floating-point ignore"


@pytest.fixture(name="run")
def run_with_files(tmp_path, run):
    """Run a command line in a folder with results and data: (status, standard output, standard error)."""
    (tmp_path / "people.csv").write_text("income\n1\n")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "results.json").write_text("{}")
    return run


MISTAKES = {
    "adit": "UsageError: 'adit' is not a command; did you mean 'audit'? `dpaudit --help` lists the commands.",
    "--versoin": "UsageError: --versoin is not an option of `dpaudit`; did you mean '--version'?",
    "bench gogle": "UsageError: no such command 'gogle'. Did you mean 'google'? `dpaudit bench --help`",
    "audit --epsilno 1": (
        "UsageError: --epsilno is not an option of `dpaudit audit`; did you mean '--epsilon'? `dpaudit audit --help`"
    ),
    "audit": "OptionError: a mechanism is named as MODULE:OBJECT or as --program",
    f"{AUDIT} --x": "UsageError: option '--x' requires an argument",
    f"{AUDIT} --x [1, 1] --y '[1]'": (
        "UsageError: 1] belongs to no option: the shell splits at spaces, so quote JSON as in --x '[1, 1]'; `dpaudit "
    ),
    f"{AUDIT} --x '[a, b_1]' --y '[]' {CLAIM}": (
        "DatasetError: --x '[a, b_1]' is not JSON (character 2: Expecting value); in JSON this is "
        '["a", "b_1"], in single quotes so that the shell keeps the double ones.'
    ),
    "mine:noisy_count": (
        "UsageError: 'mine:noisy_count' is not a command; a mechanism is audited by `dpaudit audit mine:noisy_count --x"
    ),
    "run mine.py": (
        "UnknownNameError: 'mine.py' is not an experiment or a case; a mechanism is audited by `dpaudit audit mine.py -"
    ),
    "check mine:noisy_count": "UsageError: 'check' is not a command; use audit;",
    f"{AUDIT} --runs many": (
        "UsageError: invalid value for '--runs': 'many' is not a whole number, such as 100000, 100_000 or 1e5;"
    ),
    "report": "UsageError: missing argument 'results'; `dpaudit report --help`",
    f"{AUDIT} {PAIR}": "ClaimError: no claim given, and noisy_count has no attribute claim. Pass claim=",
    "plan": "OptionError: no claim given; give exactly one of --epsilon (with --delta), --mu and --rho.",
    f"{AUDIT} {PAIR} --epsilon -1": "ClaimError: --epsilon -1.0 is not allowed",
    f"{AUDIT} {PAIR} {CLAIM} --seed -1": (
        "OptionError: --seed -1 is not a seed; use a whole number >= 0 of at most 256 bits."
    ),
    f"{AUDIT} {PAIR} {CLAIM} --bins 8 --sequential": (
        "OptionError: --bins 8 needs a fixed number of runs; use --no-sequential, and no --seconds."
    ),
    f"{AUDIT} {PAIR} {CLAIM} --adjacency Replce": (
        "OptionError: --adjacency 'Replce' is unknown; use one of add-remove, replace, zero-out, edge, node, local, "
        "l1, l2, linf; did you mean 'replace'?"
    ),
    f"{AUDIT} {PAIR} {CLAIM} --floating-point ture": "OptionError: --floating-point 'ture' is unknown; use one of "
    "warn, test, ignore.",
    f"audit mine:noisy_cuont {PAIR} {CLAIM}": "UnknownNameError: 'mine' has no 'noisy_cuont'; did you mean 'noisy_c",
    f"audit mien:noisy_count {PAIR} {CLAIM}": (
        "UnknownNameError: module 'mien' of 'mien:noisy_count' does not exist; did you mean 'mine'?"
    ),
    f"audit mine:complains {PAIR} {CLAIM}": "MechanismError: complains raised ValueError: runs=3 of the caller",
    f"{AUDIT} --x '[1]' {CLAIM}": "OptionError: --y is missing; a pair needs it beside --x",
    f"{AUDIT} --search mine:noisy_count {CLAIM} --search-runs 1": "OptionError: --search-runs 1 is not",
    f"{AUDIT} --search mine:noisy_count --x '[1]' {CLAIM}": "OptionError: --x and --y name a pair, and --search",
    f"{AUDIT} {CLAIM}": "OptionError: name a pair with --x and --y, or a domain to search with --search",
    f"{AUDIT} --x '['\"'\"'a'\"'\"']' --y '[]' {CLAIM}": (
        'DatasetError: --x "[\'a\']" is not JSON (character 2: Expecting value); in JSON this is ["a"].'
    ),
    f"{AUDIT} --x '[]' --y '[1' {CLAIM}": "DatasetError: --y '[1' is not JSON (character 3: ",
    f"{AUDIT} --x people --y '[]' {CLAIM}": (
        "DatasetError: --x 'people' is not JSON (character 1: Expecting value); use JSON such as [1, 0, 2], or the name"
    ),
    f"{AUDIT} --x people.csw --y '[]' {CLAIM}": (
        "DatasetError: people.csw has an unknown ending; use .json, .npy or .csv; did you mean 'people.csv'?"
    ),
    f"{AUDIT} --x @peple.csv --y '[]' {CLAIM}": (
        "DatasetError: peple.csv cannot be read: the file does not exist; did you mean 'people.csv'?"
    ),
    f"{AUDIT} --x @people.csw --y '[]' {CLAIM}": (
        "DatasetError: people.csw has an unknown ending; use .json, .npy or .csv; did you mean 'people.csv'?"
    ),
    "report report/result.json": (
        "RecordError: report/result.json cannot be read: the file does not exist; did you mean 'report/results.json'?"
    ),
    "report report": "RecordError: report cannot be read: it is a folder; did you mean 'report/results.json'?",
    **{
        f"audit {named} {PAIR} {CLAIM}": f"UnknownNameError: '{named}' does not name an object; use mine:{meant}."
        for named, meant in {
            "mine": "noisy_count", "mine.py": "noisy_count", "./mine.py:other": "other", "mine.other": "other",
        }.items()
    },
    f"audit yours {PAIR} {CLAIM}": "UnknownNameError: 'yours' does not name an object; use package.module:object.",
    f"{AUDIT} {PAIR} {CLAIM} --out report": "OptionError: report/results.json would be replaced (",
    f"audit nowhere.at_all:f {PAIR} {CLAIM}": (
        "UnknownNameError: module 'nowhere' of 'nowhere.at_all:f' does not exist; install it"
    ),
    f"audit mine:nothing {PAIR} {CLAIM}": "MechanismError: mechanism=3 cannot be run",
    f"{AUDIT} --program true {PAIR} {CLAIM}": "OptionError: a mechanism is named as MODULE:OBJECT or as",
    f"audit --program 'sh '\"'\"'open' {PAIR} {CLAIM}": 'OptionError: --program "sh \'open" cannot be split',
    f"audit --program no-such-program {PAIR} {CLAIM}": "MechanismError: --program ['no-such",
    f"{AUDIT} {PAIR} {CLAIM} --mu 1": "OptionError: --epsilon and --mu given",
    f"{AUDIT} {PAIR} --mu 1 --delta 0.1": "OptionError: --delta 0.1 belongs to --epsilon",
    f"{AUDIT} {PAIR} --delta 0.1": "OptionError: no claim given; give exactly one of --epsilon (with --delta)",
    f"{AUDIT} {PAIR} {CLAIM} --adjacency replace": "AdjacencyError: the pair is",
    f"{AUDIT} {PAIR} {CLAIM} --out mine.py/x": "WriteError: mine.py/x/results.json",
    "compare people.csv none.json": "RecordError: none.json cannot be read",
    "run E22": "UnknownNameError: 'E22' is not an experiment or a case; did you mean 'E2'?",
    "bench inference --table size": "UnknownNameError: 'size' is not a table; use false-alarms, sizes, ",
}  # fmt: skip


@pytest.mark.parametrize(("line", "message"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_told_in_one_line_with_status_2(run, line, message):
    status, out, err = run(*shlex.split(line))
    assert (status, out) == (2, "")
    assert err.replace(f"{os.getcwd()}/", "").startswith(message)
    assert err.count("\n") == 1


def test_help_without_arguments_has_status_0(run):
    status, out, err = run()
    assert (status, err) == (0, "")
    assert "Usage: dpaudit" in out
    status, out, _ = run("bench")
    assert (status, "Usage: dpaudit bench" in out) == (0, True)


def test_remarks_name_options(run):
    status, out, _ = run(*shlex.split(f"audit mine:constant {PAIR} {CLAIM}"))
    assert status == 3
    assert "Silence this check with --ignore 'constant-output'." in " ".join(out.split())
    _, out, _ = run(*shlex.split(f"{AUDIT} {PAIR} --floating-point warn {CLAIM}"))
    assert "--floating-point test audits leaks too, --floating-point ignore silences this." in " ".join(out.split())
