"""With noise of scale 1 the programs keep their claim; with less noise they are refuted."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dpaudit import Verdict, check
from dpaudit.adapters import Program

HERE = Path(__file__).parent
X, Y = {"age": [31, 57, 64]}, {"age": [31, 57]}


def found(*commands):
    """The first of the commands that this machine has."""
    return next(filter(None, map(shutil.which, commands)), None) or pytest.skip(f"there is no {commands[0]}")


@pytest.mark.parametrize(("scale", "is_refuted"), [(1.0, False), (0.2, True)])
def test_awk(scale, is_refuted):
    command = [found("awk"), "-v", "seed={seed}", "-v", f"scale={scale}", "-f", "count.awk", "{input.csv}"]
    result = check(Program(command, folder=HERE), X, Y, claim=1.0, adjacency="add-remove", runs=100)
    assert (result.verdict is Verdict.REFUTED) == is_refuted


@pytest.mark.parametrize(("scale", "is_refuted"), [(1.0, False), (0.5, True)])
@pytest.mark.parametrize("language", ["c", "js"])
def test_programs_that_stay_open(language, scale, is_refuted, tmp_path):
    if language == "c":
        command = [tmp_path / "laplace"]
        subprocess.run([found("cc", "gcc"), "-O2", "-o", *command, HERE / "laplace.c", "-lm"], check=True)
    else:
        command = [found("node"), HERE / "laplace.js"]
    program = Program([*command, str(scale)])
    result = check(program, X["age"], Y["age"], claim=1.0, adjacency="add-remove", runs=5_000, alpha=1e-6)
    assert (result.verdict is Verdict.REFUTED) == is_refuted
    program.close()
