"""The matrix of releases: repaired, broken, absent and doubtful callables, and releases whose suite did not run."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys

import numpy as np
import pytest

from dpaudit import Answers, PureDP, Within
from dpaudit.audit.errors import OptionError, StoreError
from dpaudit.audit.records.json_codec import save
from dpaudit.experiments.library_suites.audited_library import Library, NotCovered, PublicCallable, SameAs, Target
from dpaudit.experiments.library_suites.coverage import coverage_of_run
from dpaudit.experiments.library_suites.plan import plan_of
from dpaudit.experiments.library_suites.releases.matrix import Standing, matrix_of, read_release
from dpaudit.experiments.library_suites.releases.pages import matrix_html, matrix_markdown, matrix_text
from dpaudit.experiments.library_suites.releases.runs import interpreter_of
from dpaudit.experiments.library_suites.run_plan import run_plan

from ..cli.test_main import run

__all__ = ["run"]


class Noise:
    """A whole number with noise, with the claim 1."""

    claim, adjacency = PureDP(1.0), Within("l1", 1.0)

    def __init__(self, epsilon):
        self.p = -np.expm1(-epsilon)

    def sample(self, dataset, size, rng):
        return dataset + rng.geometric(self.p, size) - rng.geometric(self.p, size)


def of_release(version, epsilons, others=()):
    """A library named pydp, with a callable for each epsilon and others with the form that is given."""

    def form_of(public):
        if public.name in dict(others):
            return dict(others)[public.name]
        whole, epsilon = Answers(low=0, high=2, integer=True), epsilons[public.name]
        return (Target(callable=public.name, point="a", make=lambda: Noise(epsilon), domain=whole, runs=500),)

    names = (*epsilons, *dict(others))
    return Library(
        name="pydp",
        release=lambda: f"python-dp {version}",
        public=lambda: tuple(PublicCallable(name, None) for name in names),
        form_of=form_of,
    )


def suite_in(folder, library):
    """Run a suite and leave the files that the matrix reads."""
    plan = plan_of(library, alpha=1e-3, with_bits=False)
    found = run_plan(library, plan, out=folder, in_process=True)
    save(found.suite(), folder / "results.json")
    (folder / "coverage.json").write_text(json.dumps(coverage_of_run(found).to_dict()))
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    parent = tmp_path_factory.mktemp("releases")
    old = of_release("0.9", {"m.gone": 1.0, "m.mended": 4.0, "m.right": 1.0}, [("m.odd", NotCovered("it is odd"))])
    others = [("m.odd", NotCovered("it is odd")), ("m.right_again", SameAs("m.right"))]
    new = of_release("0.10", {"m.broken": 4.0, "m.mended": 1.0, "m.right": 1.0}, others)
    log = parent / "0.11"
    log.mkdir()
    (log / "log.txt").write_text("Traceback\nImportError: no wheel for this Python\n\n")
    return suite_in(parent / "0.10", new), suite_in(parent / "0.9", old), log


@pytest.fixture(scope="module")
def matrix(folders):
    return matrix_of("pydp", [read_release(folder, "pydp") for folder in folders])


def row(matrix, name):
    return next(one for one in matrix.rows if one.callable == name)


def test_standings_of_callables_by_release_in_the_order_of_versions(matrix):
    assert [release.name for release in matrix.releases] == ["python-dp 0.9", "python-dp 0.10", "0.11"]
    no = Standing.NO_SUITE
    assert {one.callable: tuple(cell.standing for cell in one.cells) for one in matrix.rows} == {
        "m.broken": (Standing.ABSENT, Standing.REFUTED, no),
        "m.gone": (Standing.NOT_REFUTED, Standing.ABSENT, no),
        "m.mended": (Standing.REFUTED, Standing.NOT_REFUTED, no),
        "m.odd": (Standing.NOT_COVERED, Standing.NOT_COVERED, no),
        "m.right": (Standing.NOT_REFUTED, Standing.NOT_REFUTED, no),
        "m.right_again": (Standing.ABSENT, Standing.SAME, no),
    }
    assert [one.callable for one in matrix.rows[:2]] == ["m.broken", "m.mended"]
    assert matrix.status == 1


def test_a_refuted_cell_has_the_bound_and_the_point(matrix):
    cell = row(matrix, "m.mended").cells[0]
    assert cell.bound.startswith("ε ≥ ")
    assert cell.bound.endswith(", claimed 1-DP")
    assert cell.point == "a"
    assert cell.words == f"refuted by values: {cell.bound}"


def test_alpha_of_the_matrix_is_the_sum_over_the_suites_that_ran(matrix):
    assert matrix.alpha == pytest.approx(2e-3)
    assert matrix.to_dict()["alpha"] == matrix.alpha


def test_points_that_are_refuted_in_one_release_only_are_compared(matrix):
    (change,) = matrix.changes
    assert change.name == "m.mended: a"
    assert change.told[0].startswith("refuted, ε ≥ ")
    assert change.told[1].startswith("not refuted, ε ≥ ")
    assert change.told[1].endswith(", claimed 1-DP, 500 runs")
    assert change.told[2] == "the suite did not run"


def test_low_bits_that_the_pilot_of_another_release_did_not_show_are_compared(folders):
    new, old, log = [read_release(folder, "pydp") for folder in folders]
    without_bits, new = new, dataclasses.replace(new, settings={**new.settings, "bits": True})
    refuted = old.entries["m.mended: a"]
    by_bits = dataclasses.replace(refuted, name="m.right: a [low bits]", experiment="m.right")
    old = dataclasses.replace(old, entries={**old.entries, by_bits.name: by_bits})
    changes = {one.name: one.told for one in matrix_of("pydp", [new, old, log]).changes}
    assert changes["m.right: a [low bits]"][0].startswith("refuted, ε ≥ ")
    assert changes["m.right: a [low bits]"][1:] == ("no low bits in the pilot, 500 runs", "the suite did not run")
    compared = matrix_of("pydp", [old, without_bits, log]).changes
    assert "m.right: a [low bits]" not in {change.name for change in compared}
    swapped = dataclasses.replace(new, entries={**new.entries, "m.right: a": refuted})
    changes = {one.name: one.told for one in matrix_of("pydp", [swapped, old]).changes}
    assert "m.right: a [low bits]" not in changes


def test_pages_say_alpha_reasons_and_links(matrix, folders, tmp_path):
    text, page = matrix_markdown(matrix), matrix_html(matrix, tmp_path)
    assert "| 0.11 | the suite did not run (ImportError: no wheel for this Python) |  |  |" in text
    assert "any is refuted with probability at most 0.002" in text
    assert "Covered in no release: m.odd." in text
    assert "Left out because they only call another callable: 1." in text
    assert "| `m.gone` | not refuted | – | the suite did not run |" in text
    assert "<script" not in page
    assert 'class="refuted"' in page
    assert "report.html" not in page
    assert "python-dp 0.9: refuted by values: ε ≥" in matrix_text(matrix)
    (folders[0] / "report.html").write_text("a page")
    assert "0.10/report.html" in matrix_html(matrix, tmp_path)


def test_json_has_every_cell(matrix):
    held = json.loads(json.dumps(matrix.to_dict()))
    assert held["callables"]["m.broken"]["python-dp 0.9"]["standing"] == "not in this release"
    assert held["callables"]["m.odd"]["python-dp 0.10"]["remark"] == "it is odd"
    assert held["releases"][2] == {
        "release": "0.11",
        "alpha": 0.0,
        "seed": None,
        "points": 0,
        "points audited": 0,
        "problem": "ImportError: no wheel for this Python",
    }


def test_suites_that_cannot_be_compared_are_refused(folders, tmp_path):
    new, old, _ = [read_release(folder, "pydp") for folder in folders]
    with pytest.raises(OptionError, match=r"python-dp 0\.9 has more than one suite"):
        matrix_of("pydp", [old, old])
    other = dataclasses.replace(new, settings={**new.settings, "only": "right"})
    with pytest.raises(OptionError, match="select different callables"):
        matrix_of("pydp", [old, other])
    with pytest.raises(OptionError, match="holds a suite of pydp, not of opendp"):
        read_release(folders[0], "opendp")
    with pytest.raises(OptionError, match="holds no finished suite"):
        read_release(tmp_path, "pydp")
    shutil.copytree(folders[0], tmp_path / "damaged")
    (tmp_path / "damaged" / "coverage.json").write_text("{")
    with pytest.raises(StoreError, match="is damaged"):
        read_release(tmp_path / "damaged", "pydp")


def test_a_release_that_did_not_run_is_a_doubt(folders):
    only = matrix_of("pydp", [read_release(folders[2], "pydp")])
    assert (only.status, only.rows, only.alpha) == (3, (), 0.0)


def environment(folder, release, prepared):
    """A folder like an environment, whose interpreter copies a prepared suite, or knows no such library."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    asked = f"echo '{release}'" if prepared else "echo 'ModuleNotFoundError: pydp' >&2; exit 1"
    copied = f'for name in "$@"; do case $last in --out) out=$name;; esac; last=$name; done; cp -r {prepared}/. "$out"'
    python.write_text(
        f"#!/bin/sh\nif [ $1 = -c ]; then {asked}; exit 0; fi\n"
        f'echo "$@" > {folder}/given\n{copied}\necho "[1/1] m.right: a"\necho noise\nexit 1\n'
    )
    python.chmod(0o755)
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreters of this test are shell scripts")
def test_the_command_runs_each_environment_with_its_part_of_alpha(folders, tmp_path, run):
    env = environment(tmp_path / "env", "python-dp 0.9", folders[1])
    bad = environment(tmp_path / "bad", "", None)
    out = tmp_path / "out"
    paths = [f"--releases={path}" for path in (env, bad / "bin" / "python", folders[0])]
    status, printed, errors = run("suite", "pydp", *paths, "--alpha=1e-4", "--minutes=2", f"--out={out}")
    assert status == 1, errors
    given = (env / "given").read_text().split()
    assert given[:6] == ["-m", "dpaudit", "suite", "pydp", "--out", str(out / "python-dp-0.9")]
    assert given[6:] == ["--minutes=2.0", "--seed=0", "--jobs=1", "--bits", "--alpha=5e-05"]
    assert "[1/1] m.right: a" in errors
    assert (out / "python-dp-0.9" / "log.txt").read_text().endswith("noise\n")
    held = json.loads((out / "releases.json").read_text())
    assert [one["release"] for one in held["releases"]] == ["python-dp 0.9", "python-dp 0.10", "bad"]
    assert held["releases"][2]["problem"] == "ModuleNotFoundError: pydp"
    assert f"releases: {out / 'releases.html'}" in printed
    status, _, errors = run("suite", "pydp", *paths, f"--out={out}")
    assert status == 2
    assert "continue it with --resume" in " ".join(errors.split())
    assert run("suite", "pydp", *paths, f"--out={out}", "--resume")[0] == 1
    assert (env / "given").read_text().split()[-1] == "--resume"


def test_impossible_releases_are_refused(folders, tmp_path, run):
    with pytest.raises(OptionError, match="does not exist"):
        interpreter_of(tmp_path / "none")
    assert interpreter_of(folders[0]) is None
    status, _, errors = run("suite", "nothing", f"--releases={folders[0]}")
    assert status == 2
    assert "is unknown" in errors
    assert run("suite", "pydp", "--list", f"--releases={folders[0]}")[0] == 2
