"""The pages' Python runs and prints what the pages say, and so do their commands and the cells of the notebooks.

Run as a program this file writes what is printed into the pages: `python tests/test_docs_pages.py [page …]`.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import importlib.util
import io
import json
import linecache
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from matplotlib import pyplot

ROOT = Path(__file__).resolve().parents[1]
SITE = ("extend", "tutorial", "tutorial-training", "install", "cheat-sheet", "index", "troubleshooting", "comparison")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{name}.md" for name in SITE),
    *(
        path.relative_to(ROOT).as_posix()
        for folder in ("how-to", "guides", "explanation")
        for path in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
NOTEBOOKS = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))]
NEEDS = {f"docs/guides/{name.replace('_', '-')}.md": name for name in ("diffprivlib", "opendp", "pipeline_dp", "pydp")}
"""The library that the blocks of a page import, if no other page does."""

# Blocks in tabs are indented.
FILE = re.compile(r'^( *)```py title="([^"]*)"\n(.*?)^\1```$', re.DOTALL | re.MULTILINE)
BLOCK = re.compile(
    r"^(?P<in> *)```(?P<kind>python|sh)\n(?P<code>(?:(?!```).)*)```\n\n(?P=in)```text\n(?P<says>.*?)^(?P=in)```$",
    re.DOTALL | re.MULTILINE,
)
# Of a session of pytest: what is asserted, and how the session ended but for its time.
SHOWN = re.compile(r"^(E  .*|>.*|\d+ failed.*?passed|\d+ passed)", re.MULTILINE)
WRITE = "%%writefile "


def printed(code: str, names: dict[str, object]) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "<page>", "exec", dont_inherit=True), names)  # without this file's annotations as text
    return output.getvalue()


def said(command: str, folder: Path) -> str:
    """What a command prints, run in this process, which has imported the library already.

    Of a session of pytest, what it asserts and how it ended.
    """
    from dpaudit.reports.cli.main import main

    program, *arguments = shlex.split(command)
    output, errors = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        contextlib.suppress(SystemExit),
    ):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        if program == "pytest":
            for name in [name for name in os.environ if name.startswith(("PYTEST", "COV"))]:
                patch.delenv(name)
            pytest.main(["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:xdist", *arguments])
        else:
            assert program == "dpaudit"
            patch.setattr(sys, "argv", [program, *arguments])
            main()
    assert not errors.getvalue(), errors.getvalue()
    text = "\n".join(line.rstrip() for line in output.getvalue().splitlines())
    return "\n".join(SHOWN.findall(text)) if program == "pytest" else text.strip("\n")


def run_page(text: str, folder: Path) -> list[tuple[str, str]]:
    """What each block of a page is said to print, and what it prints; a later one goes on from an earlier one."""
    for _, name, code in FILE.findall(text):
        (folder / name).write_text(dedent(code), encoding="utf-8")
    own = [name.removesuffix(".py") for _, name, _ in FILE.findall(text)]
    names: dict[str, object] = {"__name__": "__main__"}  # where dataclasses look
    sys.path.insert(0, str(folder))
    found = []
    try:
        for block in BLOCK.finditer(text):
            code, expected = dedent(block["code"]), dedent(block["says"])
            if block["kind"] == "python":
                found.append((expected, printed(code, names)))
            else:
                found.append((expected, "".join(said(line, folder) + "\n" for line in code.splitlines())))
    finally:
        sys.path.remove(str(folder))
        for name in own:
            sys.modules.pop(name, None)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_blocks_print_what_they_say(page, tmp_path, monkeypatch):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page], reason=f"{NEEDS[page]} cannot be imported")
    monkeypatch.chdir(tmp_path)
    for expected, found in run_page((ROOT / page).read_text(encoding="utf-8"), tmp_path):
        assert found == expected


def test_every_python_block_is_run():
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert text.count("```python\n") == sum(block["kind"] == "python" for block in BLOCK.finditer(text)), page


def run_cell(code: str, number: int, names: dict[str, object]) -> list[dict[str, Any]]:
    """The outputs of a notebook's cell, as Jupyter stores them: printed text, the last value, and the figures."""
    if code.startswith(WRITE):
        name, text = code.removeprefix(WRITE).split("\n", 1)
        Path(name).write_text(f"{text}\n", encoding="utf-8")
        return [stream(f"Writing {name}\n")]
    file = f"In[{number}]"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    *before, last = ast.parse(code).body
    is_shown = isinstance(last, ast.Expr)
    value, output = None, io.StringIO()
    with contextlib.redirect_stdout(output):
        start = ast.Module([*before, *([] if is_shown else [last])], [])
        exec(compile(start, file, "exec", dont_inherit=True), names)
        if is_shown:
            value = eval(compile(ast.Expression(last.value), file, "eval", dont_inherit=True), names)
    found = [stream(output.getvalue())] if output.getvalue() else []
    if value is not None and not code.endswith(";"):
        card = {"text/html": value._repr_html_().splitlines(keepends=True)} if hasattr(value, "_repr_html_") else {}
        data = {**card, "text/plain": [repr(value)]}
        found.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    for number in pyplot.get_fignums():
        figure, picture = pyplot.figure(number), io.BytesIO()
        figure.savefig(picture, format="png", bbox_inches="tight", metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": [repr(figure)]}
        alt = " ".join(word for axes in figure.axes for word in axes.get_title().split())
        found.append({"data": data, "metadata": {"image/png": {"alt": alt}}, "output_type": "display_data"})
        pyplot.close(figure)
    return found


def stream(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}


def run_notebook(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run in the working directory."""
    pyplot.close("all")  # what other tests left open
    pyplot.switch_backend("agg")
    names: dict[str, object] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    ran = {
        cell["id"]: {**cell, "execution_count": number, "outputs": run_cell("".join(cell["source"]), number, names)}
        for number, cell in enumerate(code, start=1)
    }
    return {**notebook, "cells": [ran.get(cell["id"], cell) for cell in notebook["cells"]]}


def without_pictures(notebook: dict[str, Any]) -> str:
    """The text of a notebook's file, without what changes with the version of matplotlib."""
    text = re.sub(r"<svg .*?</svg>", "<svg/>", as_file(notebook), flags=re.DOTALL)
    return re.sub(r'"image/png": "[^"]*"', '"image/png": ""', text)


def as_file(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_cells_show_what_the_notebook_has(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads((ROOT / page).read_text(encoding="utf-8"))
    assert without_pictures(run_notebook(notebook)) == without_pictures(notebook)
    for test in tmp_path.glob("test_*.py"):
        assert said(f"pytest -q {test.name}", tmp_path) == "1 passed"


def test_outputs_of_a_cell_are_those_of_jupyter():
    assert run_cell("print(1)\n1 + 1", 3, {}) == [
        stream("1\n"),
        {"data": {"text/plain": ["2"]}, "execution_count": 3, "metadata": {}, "output_type": "execute_result"},
    ]
    assert run_cell("a = 1\na;", 1, {}) == []
    (drawn,) = run_cell("from matplotlib import pyplot\npyplot.title('A\\nB');", 1, {})
    assert drawn["metadata"]["image/png"]["alt"] == "A B"
    assert drawn["data"]["text/plain"] == ["<Figure size 640x480 with 1 Axes>"]
    cells = [{"cell_type": "code", "id": "a", "source": ["2"], "outputs": []}]
    assert without_pictures(run_notebook({"cells": cells})) != without_pictures({"cells": cells})
    assert len(NOTEBOOKS) == 2


def rewritten(page: Path) -> str:
    """The page with what its blocks print."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if page.suffix == ".ipynb":
            return as_file(run_notebook(json.loads(text)))
        found = iter([output for _, output in run_page(text, Path(folder))])

    def filled(block: re.Match[str]) -> str:
        start = block["in"]
        head = f"{start}```{block['kind']}\n{block['code']}```\n\n{start}```text\n"
        return f"{head}{indent(next(found), start)}{start}```"

    return BLOCK.sub(filled, text)


if __name__ == "__main__":
    here = [page for page in [*PAGES, *NOTEBOOKS] if importlib.util.find_spec(NEEDS.get(page, "pytest"))]
    for name in sys.argv[1:] or here:
        (ROOT / name).write_text(rewritten(ROOT / name), encoding="utf-8")
        print(name)
