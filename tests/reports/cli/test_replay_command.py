"""`dpaudit replay`: its exit statuses, what it prints, and the command that a refuted audit prints."""

import shlex

import pytest

from dpaudit import load

PAIR = ["--x", "[1, 1]", "--y", "[1]"]


@pytest.fixture
def replayed(run):
    return lambda name, *options: run("replay", f"mine:{name}", *([] if "--x" in options else PAIR), *options)


def test_the_exit_status_is_that_of_the_verdict(replayed):
    said = {
        "named": (1, "EXCESS  named: worst-case loss 2, claimed 1 (one path)"),
        "single": (0, "BOUNDED  single: loss at most 0.25 in 1 call, claimed 1-DP (one path)"),
        "outside": (3, "UNDETERMINED  outside: neither an excess nor a bound in 0 calls, claimed 1-DP"),
        "own": (0, "BOUNDED  Own: loss at most 0.25 in 1 call, claimed 1-DP (one path)"),
    }
    found = {name: replayed(name, "--epsilon", "1") for name in said}
    assert {name: (status, out.splitlines()[0]) for name, (status, out, _) in found.items()} == said
    status, out, _ = replayed("own")
    assert (status, "claimed 0.2" in out) == (1, True), "a claim of its own"
    assert replayed("normal", "--mu", "0.5")[0] == 0
    assert "epsilon >= " in replayed("normal", "--epsilon", "0.1", "--delta", "1e-5")[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--x", "[1]"], "OptionError: a replay needs a pair of datasets; name it with --x and --y."),
        ([*PAIR, "--primitives", "nump"], "did you mean 'numpy'?"),
        (["--x", "[1, 1]", "--y", "[0]", "--adjacency", "replace"], "AdjacencyError: "),
        ([*PAIR, "--seed", "-1"], "OptionError: --seed -1"),
    ],
)
def test_mistakes_have_no_verdict(replayed, options, message):
    status, out, error = replayed("named", *options)
    assert (status, out, message in error) == (2, "", True), error


def test_the_lines_name_the_noise_that_is_needed_and_the_calls(replayed, tmp_path):
    status, out, _ = replayed("named", "--epsilon", "1", "--out", "kept")
    assert status == 1
    assert out.splitlines()[1:4] == [
        "  mine.py:20 in named: Generator.laplace: the number that it is added to moved by 1 (in units of the noise as "
        "drawn), with laplace noise of scale 0.5",
        """    return {"it's": len(rows) + rng.laplace(scale=0.5)}""",
        "  next: scale 1 is needed for 1-DP",
    ]
    assert "  calls   0  mine.py:20 in named  Generator.laplace: laplace(location 0, scale 0.5); moved 1, as the" in out
    (kept,) = load(tmp_path / "kept" / "results.json").checks
    assert (kept.verdict, kept.found, kept.replay.rows[0].loss) == ("EXCESS", "loss at most 2", "2")
    assert "report: kept/report.html" in out
    assert "EXCESS" in (tmp_path / "kept" / "report.md").read_text().upper()
    replayed("normal", "--epsilon", "1", "--out", "infinite")
    assert load(tmp_path / "infinite" / "results.json").checks[0].replay.rows[0].loss == "mu 0.5"


def test_the_command_after_a_refuted_audit_can_be_pasted(run, replayed):
    options = [*PAIR, "--epsilon", "0.5", "--delta", "1e-06", "--adjacency", "add-remove", "--output", "it's"]
    status, out, _ = run("audit", "mine:named", *options, "--runs", "2000", "--jobs", "1", "--floating-point", "ignore")
    (line,) = (line for line in out.splitlines() if line.startswith("  next: "))
    assert shlex.split(line.removeprefix("  next: ")) == ["dpaudit", "replay", "mine:named", *options]
    assert (status, "replay(" in out) == (1, False)
    status, out, _ = run(*shlex.split(line)[2:])
    (line,) = (line for line in out.splitlines() if line.startswith("  confirm: "))
    assert shlex.split(line)[1:] == ["dpaudit", "audit", "mine:named", *options]
    assert status == 1


@pytest.mark.parametrize("keeps", [False, True])
def test_rows_of_a_search_are_in_the_command_only_if_they_are_kept(run, replayed, keeps):
    options = "--search mine:pairs_of --adjacency add-remove --epsilon 0.05 --runs 9000 --search-runs 2000 --jobs 1"
    _, out, _ = run("audit", "mine:single", *options.split(), *(["--keep-datasets"] if keeps else []))
    (line,) = (line for line in out.splitlines() if line.startswith("  next: "))
    assert line.startswith(
        "  next: dpaudit replay mine:single --x" if keeps else "  next: replay(single, x, y, claim=0.05"
    )
