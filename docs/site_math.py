r"""Formulas of the pages as MathML, made when the site is built: a browser needs no script and no network for them.

Formulas stand between dollars in the Markdown, where forges typeset them too. `pymdownx.arithmatex` finds them, and
`math_core` turns them into MathML. STIX Two Math from the package `ziamath`, cut down to the letters that formulas
use, goes with the site, because many systems have no font with the tables that large signs need.
"""

from __future__ import annotations

import html
import importlib.util
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from math_core import LatexError, LatexToMathML
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

FORMULA = re.compile(
    r'<span class="arithmatex">\\\((.*?)\\\)</span>|<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL
)
# A line may not break between a formula and the bracket before it, or what belongs to it: a comma, "-DP", an "s".
TIED = re.compile(rf'([(\["“]*)(?:{FORMULA.pattern})([,.;:!?)\]"”]*(?:-?\w{{1,5}}\b)?[,.;:!?)\]"”]*)', re.DOTALL)
FONT = "assets/fonts/stix-two-math.woff"
# ASCII, Greek, marks and arrows, operators, brackets, and the italic and bold letters that browsers take for variables.
LETTERS = ((0x20, 0x7F), (0xA0, 0x100), (0x300, 0x310), (0x391, 0x3F6), (0x2010, 0x2070), (0x2100, 0x2150),
           (0x2190, 0x2200), (0x2200, 0x2312), (0x27E6, 0x27F0), (0x1D400, 0x1D7FF))  # fmt: skip
LOW_RADICAL = 0.72  # height of the added radical sign, as a part of the font's lowest
RADICAL_GAP = 0.11  # em, between a letter and the bar above it
_converter = LatexToMathML(fancy_error=False)


def mathml(formula: str, *, display: bool) -> str:
    """MathML of a formula in TeX.

    Raises
    ------
    LatexError
        If a command is unknown, or a bracket is not closed.
    """
    found = _converter.convert_with_local_state(formula.strip(), displaystyle=display)
    return f'<div class="formula" tabindex="0">{found}</div>' if display else found


def on_page_content(text: str, page: Page, config: Any, files: Files) -> str:
    """Replaces the formulas of a page, and keeps the mark of a proof's end in the last line."""

    def typeset(found: re.Match[str]) -> str:
        before, inline, display, after = found.groups()
        formula = html.unescape(inline if display is None else display)
        try:
            made = mathml(formula, display=display is not None)
        except LatexError as error:
            raise PluginError(f"{page.file.src_uri}: {formula.strip()}: {error}") from error
        tied = f"{before}{made}{after}"
        return f'<span class="tied">{tied}</span>' if display is None and (before or after) else tied

    return re.sub(r"\s∎", "&nbsp;∎", TIED.sub(typeset, text))


def large_primes(font: Any) -> None:
    """Lets the prime be the one that the font has for superscripts; browsers take the small one, and too high."""
    for table in font["cmap"].tables:
        if table.isUnicode():
            table.cmap[0x2032] = "minute.ssty"


def even_radicals(font: Any) -> None:
    """Gives the radical signs of all heights one width, and adds a low one.

    A browser reserves the width of the widest sign, which leaves a gap after a root of few letters. The lowest sign of
    the font is made for a bracket, and hangs far below a single letter.
    """
    from fontTools.pens.transformPen import TransformPen
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    root = font.getBestCmap()[0x221A]
    variants = font["MATH"].table.MathVariants
    signs = variants.VertGlyphConstruction[variants.VertGlyphCoverage.glyphs.index(root)]
    drawn, width = font.getGlyphSet(), font["hmtx"][root][0]

    def scaled(name: str, height: float) -> Any:
        pen = TTGlyphPen(None)
        drawn[name].draw(TransformPen(pen, (width / drawn[name].width, 0, 0, height, 0, 0)))
        glyph = pen.glyph()
        glyph.recalcBounds(font["glyf"])
        return glyph

    # In a line the bar of the font all but touches the letter below it.
    constants = font["MATH"].table.MathConstants
    constants.RadicalVerticalGap.Value = max(
        constants.RadicalVerticalGap.Value, round(RADICAL_GAP * font["head"].unitsPerEm)
    )

    records = signs.MathGlyphVariantRecord
    names = [record.VariantGlyph for record in records]
    parts = [part.glyph for part in signs.GlyphAssembly.PartRecords]
    made = {names[0]: scaled(root, LOW_RADICAL)}
    made |= {larger: scaled(name, 1.0) for name, larger in pairwise(names)}
    made |= {part: scaled(part, 1.0) for part in parts}
    heights = [records[0].AdvanceMeasurement * LOW_RADICAL, *(record.AdvanceMeasurement for record in records)]
    for record, height in zip(records, heights, strict=False):
        record.AdvanceMeasurement = round(height)
    for name, glyph in made.items():
        font["glyf"][name] = glyph
        font["hmtx"][name] = (width, glyph.xMin)


def on_post_build(config: Any) -> None:
    """Writes the font of the formulas."""
    if not config.extra.get("math_font", True):
        return
    from fontTools import subset

    found = importlib.util.find_spec("ziamath")
    if found is None or not found.submodule_search_locations:
        raise PluginError("ziamath has the font of the formulas; pip install 'dpaudit[docs]'")
    source = Path(found.submodule_search_locations[0]) / "fonts" / "STIXTwoMath-Regular.ttf"
    options = subset.Options(flavor="woff", layout_features=["*"])
    font = subset.load_font(str(source), options)
    large_primes(font)
    even_radicals(font)
    letters = subset.Subsetter(options)
    letters.populate(unicodes=[code for first, last in LETTERS for code in range(first, last)])
    letters.subset(font)
    target = Path(config.site_dir) / FONT
    target.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, str(target), options)
