"""``dpaudit canaries``: scores from files, exit statuses and messages."""

import io

import numpy as np
import pytest

from dpaudit import check_canaries, load
from dpaudit.audit.errors import DatasetError, UnknownNameError
from dpaudit.reports.cli.dataset_arguments import read_scores

INCLUDED = np.arange(100) % 5 < 2
SHOWN = np.linspace(0.0, 1.0, 100) + INCLUDED
NAMES = ("score", "included")


@pytest.fixture(name="run")
def canaries(run, tmp_path):
    """Runs the command in a folder with scores: (exit status, standard output, standard error)."""
    rows = [f"{score},0,{flag}" for score, flag in zip(SHOWN, INCLUDED, strict=True)]
    (tmp_path / "scores.csv").write_text("\n".join(["score,flat,included", *rows]))
    return lambda *arguments: run("canaries", *arguments)


@pytest.mark.parametrize(
    ("arguments", "status", "verdict"),
    [
        (("--epsilon", "0.5"), 1, "REFUTED  training run: epsilon >= "),
        (("--epsilon", "0.5", "--score", "flat"), 3, "INCONCLUSIVE  training run: no "),
        (("--epsilon", "0.5", "--score", "flat", "--detect", "2"), 0, "NOT REFUTED  training run: epsilon >= 0"),
        (("--mu", "0.5", "--method", "f-dp", "--guesses", "40"), 1, "REFUTED  training run: mu >= "),
        (("--epsilon", "0.5", "--inclusion", "fixed", "--adjacency", "replace"), 1, "of 40 pairs"),
    ],
    ids=["refuted", "nothing tested", "not refuted", "mu", "pairs"],
)
def test_exit_status_and_verdict(run, arguments, status, verdict):
    code, out, err = run("scores.csv", *arguments)
    assert (code, err) == (status, "")
    assert verdict in out
    assert "\n  canaries 100, of which 40 were in the training data" in out
    assert "\n  at most  " in out


def test_it_audits_as_the_library_does(run):
    code, out, _ = run("scores.csv", "--epsilon", "0.5", "--delta", "1e-5", "--out", "found", "--name", "run 1")
    assert code == 1
    assert "results: found/results.json\nreport: found/report.html\nmarkdown: found/report.md" in out
    suite = load("found/results.json")
    (entry,) = suite.entries
    assert entry.name == "run 1"
    assert entry.result == check_canaries(SHOWN, INCLUDED, claim=entry.result.claim, name="run 1")
    # Earlier results of the same name are kept beside the new ones, and those of another name are not touched.
    _, out, _ = run("scores.csv", "--epsilon", "0.6", "--out", "found", "--name", "run 1")
    assert "results: found/results.json (the earlier results of this name are now results-1.json)\n" in out
    code, out, error = run("scores.csv", "--epsilon", "0.5", "--out", "found", "--name", "run 2")
    assert (code, out) == (2, "")
    assert "found/results.json holds other results, 'Audit of run 1', which would be lost; name another" in error
    assert load("found/results.json").entries[0].result.claim.epsilon == 0.6


def test_an_inconclusive_audit_names_the_number_of_canaries_that_it_needs(run):
    code, out, _ = run("scores.csv", "--epsilon", "8", "--delta", "1e-5")
    assert code == 3
    assert "next: 9,742 canaries would detect an excess of 8; plan_canaries(claim=(8, 1e-05), detect=8)" in " ".join(
        out.split()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--epsilon", "1", "--score", "scor"),
            "has no column 'scor'; did you mean 'score'? the columns are 'score', 'flat', ",
        ),
        (
            ("--epsilon", "1", "--probability", "0.01"),
            "pass the probability with which canaries were included, or --inclusion",
        ),
        (("--epsilon", "1", "--inclusion", "fixed"), 'pass --adjacency "replace" and a claim for replaced rows'),
        (("--epsilon", "1", "--method", "bets"), "--method 'bets' is unknown; use one of auto, betting"),
        (("--gdp", "1"), "use --mu"),
    ],
    ids=["column", "probability", "split", "method", "gdp"],
)
def test_mistakes_are_told_in_a_sentence(run, arguments, message):
    code, out, err = run("scores.csv", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("form", ["csv", "words", "npz", "names", "pairs", "2-D"])
def test_every_form_of_file_gives_the_same_numbers(form, tmp_path):
    path = tmp_path / {"csv": "a.csv", "words": "a.csv", "npz": "a.npz", "2-D": "a.npz"}.get(form, "a.npy")
    scores, flags = np.array([0.5, np.inf, -2.0]), np.array([True, False, True])
    if form == "csv":
        path.write_text("included, score\n1,0.5\n0,inf\n1,-2\n", encoding="utf-8-sig")
    elif form == "words":
        path.write_text("score,other,included\n0.5,x,in\ninf,y,Out\n-2,z,in\n")
    elif form == "npz":
        np.savez(path, score=scores, included=flags)
    elif form == "2-D":
        np.savez(path, score=scores[None], included=flags[None])
    elif form == "names":
        np.save(path, np.array(list(zip(scores, flags, strict=True)), dtype=[("score", float), ("included", bool)]))
    else:
        np.save(path, np.column_stack([scores, flags]))
    found = read_scores([path], *NAMES)
    assert found[0].shape == ((1, 3) if form == "2-D" else (3,))
    assert found[0].ravel().tolist() == scores.tolist()
    assert found[1].ravel().tolist() == [1.0, 0.0, 1.0]


def test_several_files_are_several_runs(tmp_path):
    paths = [tmp_path / f"{place}.npy" for place in range(3)]
    for path, length in zip(paths, (3, 3, 4), strict=True):
        np.save(path, np.column_stack([np.arange(length), np.ones(length)]))
    assert [each.shape for each in read_scores(paths[:2], *NAMES)] == [(2, 3), (2, 3)]
    with pytest.raises(DatasetError, match=r"shapes \(3,\) and \(4,\)"):
        read_scores(paths, *NAMES)


def saved(write, *arguments, **options):
    """The bytes of a file that numpy writes."""
    file = io.BytesIO()
    write(file, *arguments, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "a line of names and a line for each canary"),
        ("a.csv", b"score,included\nhigh,1\n", "column 'score' of .* is not made of numbers"),
        ("a.csv", b"score,included,score\n1,1,0\n", "line 1: the name 'score' occurs 2 times"),
        ("a.csv", None, "the file does not exist"),
        ("a.npy", b"no array", "cannot be read"),
        ("a.npy", saved(np.save, np.array([{}, []], dtype=object), allow_pickle=True), "allow_pickle=False"),
        ("a.npy", saved(np.save, np.zeros((4, 3))), r"its array has shape \(4, 3\)"),
        ("a.npz", saved(np.savez, scores=np.zeros(3)), "has no column 'score'; did you mean 'scores'"),
        ("a.txt", b"", "unknown ending; use .csv, .npy or .npz"),
    ],
)
def test_damaged_files_are_refused(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((DatasetError, UnknownNameError), match=message):
        read_scores([tmp_path / name], *NAMES)
