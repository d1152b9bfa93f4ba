"""The pages: they are built without a network, link to what exists, are spelt, and leave no public name out."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import inspect
import logging
import re
import runpy
import subprocess
import sys
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from typer.main import get_command

from dpaudit.reports.cli.commands import app
from dpaudit.reports.pages.html_page import GLOSSARY

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PROSE = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
PUBLIC = (
    "dpaudit",
    "dpaudit.mechanisms",
    "dpaudit.mechanisms.faulty",
    "dpaudit.mechanisms.aggregates",
    "dpaudit.mechanisms.adapters",
    "dpaudit.reports",
)
PROOFS = re.compile(r"Proofs?: docs/proofs/[a-z-]+\.md(?:, docs/proofs/[a-z-]+\.md)*")
AMERICAN = re.compile(
    r"\b\w*(?:ize[sd]?|izing|ization|yze[sd]?|yzing)\b"
    r"|\b(?:neighbor|color|behavior|favor|center|fulfill|modeled|labeled)\w*\b",
    re.IGNORECASE,
)
NO_AMERICAN = {"size", "sizes", "sized", "resize", "prize", "seize", "maximizing"}  # the last in a title

needs_mkdocs = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("mkdocs", "mkdocstrings", "math_core")),
    reason="mkdocs, mkdocstrings and math_core make the pages: pip install 'dpaudit[docs]'",
)


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


def build_site(folder: Path) -> None:
    """Builds the pages in this process, strictly, without the colours of code, and with one page to be searched.

    Both take a third of the time, warn of nothing, and leave every link and every id as it is. Another third was that
    of a new process, and of looking for garbage among all that this one has imported. The font of formulas is left out.
    """
    build = importlib.import_module("mkdocs.commands.build").build
    config = importlib.import_module("mkdocs.config").load_config(
        str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder)
    )
    config.extra["math_font"] = False
    config.plugins["mkdocstrings"].config.handlers["python"]["options"]["separate_signature"] = False
    plain = importlib.import_module("pygments.lexers.special").TextLexer()
    highlight = importlib.import_module("pymdownx.highlight").Highlight
    index = importlib.import_module("material.plugins.search.plugin").SearchIndex
    add = index.add_entry_from_context
    with pytest.MonkeyPatch.context() as changed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        changed.chdir(ROOT)
        changed.setattr(highlight, "get_lexer", lambda *_: (plain, "text"))
        changed.setattr(
            index, "add_entry_from_context", lambda kept, page: add(kept, page) if page.is_homepage else None
        )
        gc.disable()
        try:
            build(config)
        finally:
            gc.enable()


@needs_mkdocs
def test_the_site_is_built_and_whole(tmp_path, caplog):
    """One test, since the build takes seconds: no warnings, no dead links, nothing fetched, everything public shown."""
    build_site(tmp_path)
    said = [record for record in caplog.records if record.name != "asyncio"]  # clients of other tests may end here
    assert not [record for record in said if record.levelno >= logging.WARNING]
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in tmp_path.rglob("*.html")
        if path.name != "404.html" and "pictures" not in path.parts
    }
    assert len(texts) > 65
    pages = {path: Page(text) for path, text in texts.items()}
    for path, page in pages.items():
        for url in page.fetched:
            assert not urlsplit(url).netloc, f"{path.name} fetches {url}"
        for link in page.links:
            assert leads_somewhere(link, path, pages), f"{path.relative_to(tmp_path)} links to {link}"
    shown = {name for path, page in pages.items() if path.parent.name == "reference" for name in page.ids}
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            defined = getattr(getattr(importlib.import_module(module), name), "__module__", module)
            assert {f"{module}.{name}", f"{defined}.{name}"} & shown, f"{module}.{name} is in no page of the reference"
    assert re.search(
        r'Proofs: <a href="\.\./proofs/joint-test\.html">.+?</a>, <a',
        texts[tmp_path / "reference" / "inference.html"],
    )
    commands = texts[tmp_path / "reference" / "command-line.html"]
    assert all(f"dpaudit {name}" in commands for name in get_command(app).commands)
    glossary = texts[tmp_path / "reference" / "glossary.html"]
    assert all(f"<dt>{term}</dt>" in glossary for term, _ in GLOSSARY)
    for path, text in texts.items():
        assert not raw_formulas(text), path.relative_to(tmp_path)
        page = DOCS / path.relative_to(tmp_path).with_suffix(".md")
        if path.parent.name in ("proofs", "explanation"):
            assert text.count("<math") == formulas_in(page.read_text(encoding="utf-8")), path.name
    assert sum(text.count("<math") for text in texts.values()) > 1_000


RAW = re.compile(r"\\[()\[\]]|\$[^$<>]*\\[a-z]+[^$<>]*\$|arithmatex|<merror")


def raw_formulas(text: str) -> list[str]:
    """Formulas of a built page that are not typeset; code is not looked at."""
    return RAW.findall(re.sub(r"<(pre|code|script)\b.*?</\1>", "", text, flags=re.DOTALL))


def formulas_in(markdown: str) -> int:
    """How many formulas stand between dollars in a page."""
    text = re.sub(r"```.*?```|`[^`]*`", "", markdown, flags=re.DOTALL)
    displayed = text.count("$$") // 2
    return displayed + text.replace("$$", "").count("$") // 2


def test_a_formula_that_is_not_typeset_is_seen():
    """The wrong twin: delimiters of formulas, and a command between dollars."""
    assert raw_formulas(r'<p><span class="arithmatex">\(p \le q\)</span>') == ["arithmatex", r"\(", r"\)"]
    assert raw_formulas(r"<p>$p \le q$") == [r"$p \le q$"]
    assert not raw_formulas(r"<p><code>r'\(x\)'</code> <math><mi>p</mi></math>")
    assert formulas_in("$p$ and `$x` and\n\n$$\nq\n$$\n") == 2


def test_formulas_are_read_strictly():
    """A command that does not exist stops the build, instead of showing its source."""
    converter = pytest.importorskip("math_core", reason="math_core typesets formulas: pip install 'dpaudit[docs]'")
    site_math = runpy.run_path(str(DOCS / "site_math.py"))
    assert "<msup><mi>e</mi><mi>ε</mi></msup>" in site_math["mathml"](r"e^\varepsilon q", display=False)
    with pytest.raises(converter.LatexError, match="Unknown command"):
        site_math["mathml"](r"\epsilom", display=True)


def test_a_line_does_not_break_between_a_formula_and_its_comma():
    pytest.importorskip("math_core", reason="math_core typesets formulas: pip install 'dpaudit[docs]'")
    typeset = runpy.run_path(str(DOCS / "site_math.py"))["on_page_content"]
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))

    def made(text: str) -> str:
        text = text.replace("$", r'<span class="arithmatex">\(p\)</span>')
        return re.sub("<math>.*?</math>", "$", typeset(text, page, None, None))

    assert (
        made("if ($, $)-DP is claimed") == 'if <span class="tied">($,</span> <span class="tied">$)-DP</span> is claimed'
    )
    assert made("for $ the bound") == "for $ the bound"
    assert made("so it holds. ∎") == "so it holds.&nbsp;∎"


def test_radical_signs_have_one_width():
    """Browsers reserve the largest width; and the lowest sign is for a letter without brackets."""
    pytest.importorskip("math_core", reason="math_core typesets formulas: pip install 'dpaudit[docs]'")
    ziamath = importlib.util.find_spec("ziamath")
    if ziamath is None or ziamath.origin is None:
        pytest.skip("ziamath has the font of formulas: pip install 'dpaudit[docs]'")
    font = importlib.import_module("fontTools.ttLib").TTFont(
        Path(ziamath.origin).with_name("fonts") / "STIXTwoMath-Regular.ttf"
    )
    variants = font["MATH"].table.MathVariants
    root = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(font.getBestCmap()[0x221A])]

    def widths() -> set[int]:
        signs = [*(record.VariantGlyph for record in root.MathGlyphVariantRecord),
                 *(part.glyph for part in root.GlyphAssembly.PartRecords)]  # fmt: skip
        return {font["hmtx"][sign][0] for sign in signs}

    assert len(widths()) > 1
    runpy.run_path(str(DOCS / "site_math.py"))["even_radicals"](font)
    assert len(widths()) == 1
    heights = [record.AdvanceMeasurement for record in root.MathGlyphVariantRecord]
    drawn = [font["glyf"][record.VariantGlyph] for record in root.MathGlyphVariantRecord]
    assert heights == sorted(heights)
    assert heights[0] < 1_000 < heights[1]
    assert all(abs(sign.yMax - sign.yMin - height) <= 2 for sign, height in zip(drawn, heights, strict=True))


FORMULAS = re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.DOTALL)


def test_formulas_are_read_by_forges_too():
    """Markdown takes a backslash before a sign away, so formulas have none; and they stay on one line."""
    seen = 0
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert text.count("$") % 2 == 0, page.name
        for formula in FORMULAS.findall(text):
            seen += 1
            assert not re.search(r"\\[^a-zA-Z]", formula), f"{page.name}: {formula}"
            assert formula.isascii(), f"{page.name}: {formula}"
            assert formula.startswith("$$") or ("\n" not in formula and formula[1] != " " != formula[-2]), formula
    assert seen > 1_000


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


def test_a_dead_link_is_seen(tmp_path):
    """The wrong twin: a file that is not there, and a place that is not in the page."""
    page = tmp_path / "page.html"
    page.write_text('<a id="here" href="other.html">', encoding="utf-8")
    pages = {page: Page(page.read_text(encoding="utf-8"))}
    assert [leads_somewhere(link, page, pages) for link in ("other.html", "#there", "#here")] == [False, False, True]


def test_links_between_files_lead_somewhere():
    """Also where nobody builds the pages."""
    for page in PROSE:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path = urlsplit(link).path
            if not urlsplit(link).scheme and path and Path(path).name not in ("command-line.md", "glossary.md"):
                assert (page.parent / path).exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_the_map_names_what_exists():
    names = re.findall(
        r"`((?:audit|mechanisms)\.[\w.]+)`", (DOCS / "reference" / "theorems.md").read_text(encoding="utf-8")
    )
    assert len(names) > 40
    for name in names:
        module, _, attribute = f"dpaudit.{name}".rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_functions_named_in_proofs_exist():
    """Those after "Used by", wherever in the library they are."""
    files = [path for folder in ("audit", "reports") for path in (ROOT / folder).rglob("*.py")]
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for page in (DOCS / "proofs").glob("*.md"):
        used_by = re.findall(r"^Used by .*?(?:\n\n|\Z)", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for name in re.findall(r"`([A-Za-z_.]+)(?:\(.*?\))?`", "".join(used_by)):
            assert re.search(rf"(def|class) {name.split('.')[-1]}\b", sources), f"{page.name} names {name}"


def members(value: object) -> Iterator[tuple[str, object]]:
    """Public methods and properties that the class or one of ours above it defines."""
    for name, found in inspect.getmembers_static(value):
        is_ours = any(name in kind.__dict__ and kind.__module__.startswith("dpaudit") for kind in value.__mro__)
        if (
            is_ours
            and not name.startswith("_")
            and (inspect.isfunction(found) or isinstance(found, (property, classmethod)))
        ):
            yield name, found


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
    for attribute, _ in members(value) if inspect.isclass(value) else ():
        if not any(getattr(kind.__dict__.get(attribute), "__doc__", None) for kind in value.__mro__):
            missing.append(f"{value.__qualname__}.{attribute}")
    return missing


def test_everything_public_is_documented():
    public = [getattr(importlib.import_module(m), name) for m in PUBLIC for name in importlib.import_module(m).__all__]
    shown = list(documented_in_the_reference())
    assert len(public) > 150
    assert len(shown) > 80
    assert not [missing for value in [*public, *shown] for missing in undocumented(value)]


def test_what_is_not_documented_is_seen():
    """The wrong twin: a class of which something is said, but not of its method."""

    class Claimed:
        """One line."""

        def size(self) -> int:
            return 0

    Claimed.__module__ = "dpaudit.example"
    assert [name.rpartition(".")[2] for name in undocumented(Claimed)] == ["size"]
    assert undocumented(lambda: 0)


def test_modules_are_documented():
    for folder in ("audit", "mechanisms", "experiments", "reports"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not text or text.startswith(('"""', "'''")), path


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
    command = [sys.executable, "-m", "codespell_lib", *map(str, PROSE)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_spelling_is_british():
    for page in PROSE:
        if "benchmarks" in page.parts or page.name == "sources.md":
            continue
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = {word for word in AMERICAN.findall(text) if word.lower() not in NO_AMERICAN}
        assert not found, f"{page.relative_to(ROOT)}: {sorted(found)}"


def test_the_spelling_is_looked_at(tmp_path):
    """The wrong twin: a page with mistakes."""
    (tmp_path / "page.md").write_text("We recieve a result.", encoding="utf-8")
    command = [sys.executable, "-m", "codespell_lib", str(tmp_path / "page.md")]
    if importlib.util.find_spec("codespell_lib") is not None:
        assert subprocess.run(command, capture_output=True, check=False).returncode != 0
    assert AMERICAN.findall("the behavior was analyzed") == ["behavior", "analyzed"]
