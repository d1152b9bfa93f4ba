"""Rows of the support table: each has a fresh environment with the built wheel, README's first audit, and tests.

`make matrix` runs all rows but the large ones, `make matrix ROWS="3.12 oldest torch"` some. A row that ran replaces its
former result in docs/support/matrix.json and in the table of docs/support.md. A row whose Python is not on the machine
is passed over.
"""

import json
import re
import shlex
import time
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import nox

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "docs" / "support" / "matrix.json", ROOT / "docs" / "support.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NAMED = {re.split(r"[^\w-]", each)[0].lower() for each in sum(EXTRAS.values(), PROJECT["dependencies"])}
TOOLS = [each for each in EXTRAS["test"] if each.startswith(("pytest", "hypothesis", "jsonschema", "mpmath"))]

# A minute of ten: sixty audits whose every figure is frozen, the numbers that verdicts rest on, where the numerical
# libraries matter most, files of results and stores, options and their help, and sessions of pytest.
GATE = "tests/gate"
CORE = f"{GATE} tests/audit/claims tests/audit/inference tests/audit/records"
QUICK = f"{CORE} tests/audit/procedures/test_check_options.py tests/reports/pytest_plugin/test_plugin.py"
# Hypothesis takes numpy's generator for one that can vanish, as Python 3.14 counts its references otherwise.
QUICK_3_14 = f"{QUICK} -W 'default:It looks like:Warning'"
ADAPTERS, SUITES = "tests/mechanisms/adapters", "tests/experiments/library_suites"
# With numpy 1.26 the net of one audit has 9,296 events in place of 9,304, so its figures are others.
NUMPY_1 = "--deselect 'tests/gate/test_frozen_audits.py::test_an_audit_finds_what_it_found[texts with numbers]'"
OLDEST = f"{QUICK} {ADAPTERS}/test_opendp.py {ADAPTERS}/test_pydp.py {ADAPTERS}/test_accounting.py {NUMPY_1}"
OLDEST += f" {SUITES}/test_library_suites.py -W default::DeprecationWarning"  # of old libraries about each other
DIFFPRIVLIB = f"{GATE} {ADAPTERS}/test_diffprivlib.py {ADAPTERS}/test_diffprivlib_replays.py"
DIFFPRIVLIB += " tests/test_docs_pages.py -k 'frozen or diffprivlib'"
EVERYDAY = "all,accounting,pandas"
LIBRARIES = "opendp,dask,pydp,pipeline-dp"


class Row(NamedTuple):
    """Python, extras and tests; `lowest` installs of each library the least version that pyproject.toml names."""

    extras: str
    tests: str
    python: str = "3.11"
    lowest: bool = False
    large: bool = False
    also: tuple[str, ...] = ()


# Extras that bring older numerical libraries along run the frozen audits too.
ROWS = {
    **{python: Row(EVERYDAY, QUICK, python) for python in ("3.11", "3.12", "3.13")},
    "3.14": Row(EVERYDAY, QUICK_3_14, "3.14"),
    "3.15": Row("all,pandas", QUICK_3_14, "3.15"),
    "oldest": Row(f"{EVERYDAY},{LIBRARIES}", OLDEST, lowest=True),
    "no-extras": Row("", CORE),
    "report": Row("report", "tests/reports/figures/test_plot.py"),
    "cli": Row("cli", "tests/reports/cli/test_dataset_arguments.py tests/reports/cli/test_option_names.py"),
    "graphs": Row("graphs", "tests/audit/datasets/test_domains.py"),
    "accounting": Row("accounting", f"{ADAPTERS}/test_accounting.py"),
    "pandas": Row("pandas", "tests/audit/events/test_plain_outputs.py"),
    "dask": Row("dask", "tests/audit/sampling/test_workers.py"),
    "opendp": Row("opendp", f"{ADAPTERS}/test_opendp.py"),
    "pydp": Row("pydp", f"{ADAPTERS}/test_pydp.py"),
    "pipeline-dp": Row("all,pipeline-dp", "tests/test_docs_pages.py -k pipeline-dp"),
    "diffprivlib": Row("all,diffprivlib", DIFFPRIVLIB),
    "smartnoise-sql": Row("all,smartnoise-sql", f"{GATE} {ADAPTERS}/test_smartnoise_sql.py"),
    "pyqrlew": Row("all,pyqrlew", f"{GATE} {SUITES}/test_qrlew.py {NUMPY_1}"),
    "flwr": Row("all,flwr", f"{SUITES}/test_federated.py", large=True),
    "nvflare": Row("all,nvflare", f"{SUITES}/test_federated.py", large=True),
    "jax-privacy": Row("all,jax-privacy", "tests/audit/training -m jax", large=True),
    "torch": Row("all,torch,jax-privacy", f"tests/audit/training {ADAPTERS}/test_torch.py -m ''", large=True,
                 also=("opacus",)),
    "accountants": Row("all,accountants", f"{ADAPTERS}/test_accountants.py", large=True),
}  # fmt: skip

SHOWN = ("numpy", "scipy", "statsmodels", "pytest", "joblib")
COUNTS = ("passed", "skipped", "failed")
HEAD = ("row", "Python", *SHOWN, "extras", *COUNTS, "install", "first audit", "tests")
ELSEWHERE = ("Windows", "macOS")  # .github/workflows/matrix.yml runs them
ABOUT = """
import importlib.metadata, json, platform
versions = {each.name.lower(): each.version for each in importlib.metadata.distributions()}
print(json.dumps([platform.python_version(), f"{platform.system()} {platform.machine()}", versions]))
"""

nox.options.default_venv_backend = "uv"
nox.options.envdir = str(ROOT / ".venv-matrix")
nox.options.download_python = "never"


@cache
def wheel() -> str:
    """Build the wheel, once for all rows; return its address."""
    folder = ROOT / ".venv-matrix" / "wheel"
    nox.command.run(["uv", "build", "--quiet", "--clear", "--wheel", "--out-dir", str(folder), str(ROOT)])
    (path,) = folder.glob("*.whl")
    return path.as_uri()


def timed(call: Callable[..., Any], *arguments: str, **options: Any) -> tuple[Any, float]:
    """What a call returns, and the seconds that it took."""
    started = time.perf_counter()
    return call(*arguments, **options), round(time.perf_counter() - started, 1)


def run(session: nox.Session, name: str) -> None:
    """Run a row, and write what came of it."""
    row = ROWS[name]
    extras = row.extras.split(",") if row.extras else []
    lowest = ("--resolution=lowest-direct", "-r", "pyproject.toml", *(f"--extra={extra}" for extra in extras))
    session.chdir(ROOT)
    wanted = (f"dpaudit[{row.extras}] @ {wheel()}", *TOOLS, *row.also, *(lowest if row.lowest else ()))
    _, install = timed(session.install, *wanted)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, says = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL).groups()
    printed, first = timed(session.run, "python", "-P", "-c", code, silent=True)
    if printed != says:
        session.error(f"The first audit printed\n{printed}")
    command = ("pytest", "-q", "-p", "no:cacheprovider", *shlex.split(row.tests))
    output, tests = timed(session.run, *command, silent=True, success_codes=(0, 1))
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", output.splitlines()[-1])}
    python, machine, versions = json.loads(session.run("python", "-P", "-c", ABOUT, silent=True))
    result = {
        "python": python, "platform": machine, "date": datetime.now(UTC).date().isoformat(), "extras": extras,
        "versions": {each: versions[each] for each in sorted(NAMED & versions.keys())},
        "passed": counts.get("passed", 0), "skipped": counts.get("skipped", 0),
        "failed": sum(counts.get(word, 0) for word in ("failed", "error", "errors")),
        "seconds": {"install": install, "first audit": first, "tests": tests},
    }  # fmt: skip
    write(name, result)
    if result["failed"] or not result["passed"]:
        session.error(output)


def write(name: str, result: dict[str, Any]) -> None:
    """Put the result of a row into the file and into the page."""
    former = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    results = {each: (former | {name: result})[each] for each in ROWS if each in former or each == name}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    lines: list[tuple[Any, ...]] = [HEAD, ("---",) * len(HEAD)]
    for row in (*ROWS, *ELSEWHERE):
        if row not in results:
            lines.append((row, *("not run",) * (len(HEAD) - 1)))
            continue
        of = results[row]
        versions = (of["versions"][library] for library in SHOWN)
        counts = (of[word] for word in COUNTS)
        lines.append((row, of["python"], *versions, ", ".join(of["extras"]), *counts, *of["seconds"].values()))
    table = "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
    between = re.compile(r"(?<=<!-- rows -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)
    PAGE.write_text(between.sub(table, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


for _name, _row in ROWS.items():
    nox.session(lambda session, name=_name: run(session, name), name=_name, python=_row.python, default=not _row.large)
