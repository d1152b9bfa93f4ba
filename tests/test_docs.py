"""The pages: they are built without a network, link to what exists, are spelt, and leave no public name out."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from markdown.extensions.toc import slugify
from typer.main import get_command

import dpaudit
from dpaudit.reports.cli.commands import app
from dpaudit.reports.pages.html_page import GLOSSARY

from .test_docstrings import members

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PROSE = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
PROSE += sorted(DOCS.rglob("*.ipynb"))
PUBLIC = [
    "dpaudit", "dpaudit.reports", "dpaudit.mechanisms",
    *(f"dpaudit.mechanisms.{name}" for name in ("faulty", "aggregates", "adapters")),
]  # fmt: skip
PROOFS = re.compile(r"Proofs?: docs/proofs/[a-z-]+\.md(?:, docs/proofs/[a-z-]+\.md)*")
SITE = ROOT / "build" / "site"


class Page(HTMLParser):
    """The links, ids and what is fetched of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.ids |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.fetched.append(str(given.get("href")))
        self.fetched += [value for value in (given.get("src"), given.get("srcset")) if value]


@pytest.mark.site
def test_the_site_is_whole():
    """`make docs` has built it: no dead links, nothing fetched, everything public shown, formulas typeset."""
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in SITE.rglob("*.html")
        if path.name != "404.html" and "pictures" not in path.parts
    }
    assert len(texts) > 55
    pages = {path: Page(text) for path, text in texts.items()}
    for path, page in pages.items():
        for url in page.fetched:
            assert not urlsplit(url).netloc, f"{path.name} fetches {url}"
        for link in page.links:
            assert leads_somewhere(link, path, pages), f"{path.relative_to(SITE)} links to {link}"
    shown = {name for path, page in pages.items() if path.parent.name == "reference" for name in page.ids}
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            defined = getattr(getattr(importlib.import_module(module), name), "__module__", module)
            assert {f"{module}.{name}", f"{defined}.{name}"} & shown, f"{module}.{name} is in no page of the reference"
    assert re.search(
        r'Proofs: <a href="\.\./proofs/joint-test\.html">.+?</a>, <a', texts[SITE / "reference" / "inference.html"]
    )
    commands = texts[SITE / "reference" / "command-line.html"]
    assert all(f"dpaudit {name}" in commands for name in get_command(app).commands)
    notebook = texts[SITE / "notebooks" / "first-audit.html"]
    assert 'src="data:image/png;base64,' in notebook
    assert "REFUTED" in notebook
    glossary = texts[SITE / "reference" / "glossary.html"]
    assert all(f"<dt>{term}</dt>" in glossary for term, _ in GLOSSARY)
    for path, text in texts.items():
        assert not raw_formulas(text), path.relative_to(SITE)
        page = DOCS / path.relative_to(SITE).with_suffix(".md")
        if path.parent.name in ("proofs", "explanation"):
            assert text.count("<math") == len(formulas_in(page)), path.name
    assert sum(text.count("<math") for text in texts.values()) > 1_000


RAW = re.compile(r"\\[()\[\]]|\$[^$<>]*\\[a-z]+[^$<>]*\$|arithmatex|<merror")


def raw_formulas(text: str) -> list[str]:
    """Formulas of a built page that are not typeset; code is not looked at."""
    return RAW.findall(re.sub(r"<(pre|code|script)\b.*?</\1>", "", text, flags=re.DOTALL))


FORMULAS = re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.DOTALL)


def formulas_in(page: Path) -> list[str]:
    """The formulas between dollars in a page."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert text.count("$") % 2 == 0, page.name
    return FORMULAS.findall(text)


def test_formulas_are_read_strictly():
    """A command that does not exist stops the build, instead of showing its source."""
    converter = pytest.importorskip("math_core", reason="math_core typesets formulas: pip install 'dpaudit[docs]'")
    site_math = runpy.run_path(str(DOCS / "site_math.py"))
    assert "<msup><mi>e</mi><mi>ε</mi></msup>" in site_math["mathml"](r"e^\varepsilon q", display=False)
    with pytest.raises(converter.LatexError, match="Unknown command"):
        site_math["mathml"](r"\epsilom", display=True)


def test_formulas_are_read_by_forges_too():
    """Markdown takes a backslash before a sign away, so formulas have none; and they stay on one line."""
    formulas = [(page.name, formula) for page in DOCS.rglob("*.md") for formula in formulas_in(page)]
    assert len(formulas) > 1_000
    for where in formulas:
        formula = where[1]
        assert not re.search(r"\\[^a-zA-Z]", formula), where
        assert formula.isascii(), where
        assert formula.startswith("$$") or ("\n" not in formula and formula[1] != " " != formula[-2]), where


def leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    """Whether a link of the page at `path` leads to a file and a place in it; one to another host is not followed."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return False
    return not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].ids


def text_of(page: Path) -> str:
    """The text of a page; of a notebook, its Markdown."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)


@functools.cache
def places(page: Path) -> set[str]:
    """The places in a page that a link may name: its headings, as Python-Markdown names them."""
    headings = re.findall(r"^#+ (.*?)(?: \{#([\w-]+)\})?$", prose(page), re.MULTILINE)
    return {given or slugify(re.sub(r"[`*]", "", title), "-") for title, given in headings}


def test_links_between_files_lead_somewhere():
    """Before anybody builds the pages; those of objects in the reference are checked there."""
    n_places = 0
    for page in PROSE:
        for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            parts = urlsplit(link)
            target = (page.parent / parts.path).resolve() if parts.path else page
            if parts.scheme or target.name in ("command-line.md", "glossary.md"):
                continue
            assert target.exists(), f"{page.relative_to(ROOT)} links to {link}"
            if parts.fragment and target.suffix == ".md" and not parts.fragment.startswith("dpaudit."):
                assert unquote(parts.fragment) in places(target), f"{page.relative_to(ROOT)} links to {link}"
                n_places += 1
    assert n_places > 20


def sources_of(*folders: str) -> str:
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def test_functions_named_in_the_map_and_in_proofs_exist():
    """In proofs those after "Used by", wherever in the library they are."""
    theorems = (DOCS / "reference" / "theorems.md").read_text(encoding="utf-8")
    names = re.findall(r"`((?:audit|mechanisms)\.[\w.]+)`", theorems)
    assert len(names) > 40
    for name in names:
        module, _, attribute = f"dpaudit.{name}".rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name
    sources = sources_of("audit", "reports")
    for page in (DOCS / "proofs").glob("*.md"):
        used_by = re.findall(r"^Used by .*?(?:\n\n|\Z)", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for name in re.findall(r"`([A-Za-z_.]+)(?:\(.*?\))?`", "".join(used_by)):
            assert re.search(rf"(def|class) {name.split('.')[-1]}\b", sources), f"{page.name} names {name}"


def test_files_and_names_in_records_exist():
    """Those in backticks in the guide, the decisions and the page on extensions."""
    pages = [ROOT / "CONTRIBUTING.md", DOCS / "extend.md", *sorted((DOCS / "decisions").glob("*.md"))]
    known = set(re.findall(r"\w+", sources_of("audit", "mechanisms", "reports", "experiments", "tests")))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        examples = "".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
        own = set(re.findall(r"\w+", examples))
        in_backticks = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
        for name in in_backticks:
            if re.fullmatch(r"(?:[\w-]+/)+[\w.-]+", name):
                assert (ROOT / name).exists(), f"{page.name} names {name}"
            elif re.fullmatch(r"[A-Za-z_.]*(?:[a-z]_[a-z]|[a-z][A-Z]|[A-Z]{3})[A-Za-z_.]*", name):
                assert set(name.split(".")) <= known | own, f"{page.name} names {name}"


def documented_in_the_reference() -> Iterator[object]:
    """What the pages of the reference show: single objects, and all that is public in a module."""
    for page in sorted((DOCS / "reference").glob("*.md")):
        for target in re.findall(r"^::: dpaudit\.([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            if (ROOT / target.replace(".", "/")).with_suffix(".py").exists():
                module = importlib.import_module(f"dpaudit.{target}")
                own = (value for name, value in vars(module).items() if not name.startswith("_"))
                yield from (value for value in own if getattr(value, "__module__", "") == module.__name__)
            elif not (ROOT / target.replace(".", "/")).is_dir():
                module_name, _, name = target.rpartition(".")
                yield getattr(importlib.import_module(f"dpaudit.{module_name}"), name)


def undocumented(value: object) -> list[str]:
    """A function or class, and those of its public methods and properties, of which nothing is said."""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return []
    missing = [] if inspect.getdoc(value) else [value.__qualname__]
    for name in members(value) if inspect.isclass(value) else ():
        if not any(getattr(vars(kind).get(name), "__doc__", None) for kind in value.__mro__):
            missing.append(f"{value.__qualname__}.{name}")
    return missing


def test_everything_public_is_documented():
    public = [getattr(importlib.import_module(m), name) for m in PUBLIC for name in importlib.import_module(m).__all__]
    shown = list(documented_in_the_reference())
    assert len(public) > 150
    assert len(shown) > 80
    assert {id(getattr(dpaudit, name)) for name in dpaudit.__all__} <= {id(value) for value in shown}
    assert not [missing for value in [*public, *shown] for missing in undocumented(value)]


def test_every_proof_is_named_where_it_is_used():
    """And every proof that a module names exists; all in one form, so that the site makes links of them."""
    named: set[str] = set()
    for path in sorted((ROOT / "audit").rglob("*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines = [line for line in docstring.splitlines() if line.startswith(("Proof", "docs/proofs"))]
        for line in lines:
            assert PROOFS.fullmatch(line), f"{path.relative_to(ROOT)}: {line}"
            found = re.findall(r"docs/proofs/([a-z-]+)\.md", line)
            assert line.startswith("Proofs") == (len(found) > 1)
            named |= set(found)
        assert "docs/proofs" not in docstring or lines, path
    assert named == {page.stem for page in (DOCS / "proofs").glob("*.md")} - {"index"}


def test_pages_are_spelt():
    pytest.importorskip("codespell_lib", reason="codespell reads the pages: pip install 'dpaudit[docs]'")
    picture = '"image/png": "[^"]*"|<svg .*?</svg>'
    command = [sys.executable, "-m", "codespell_lib", "--ignore-regex", picture, *map(str, PROSE)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
