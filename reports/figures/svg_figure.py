"""Figures as short, reproducible SVG text whose ids do not clash within a page."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from ...audit.files import write_atomically
from ...audit.records.suite import Checked, Suite
from ..plain_text import visible
from .figure_style import in_report_style
from .forest_figure import forest
from .plot import KINDS, figures_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Element = ElementTree.Element

_SPACED = re.compile(r"\s*([A-Za-z])\s*")
_TOO_FINE = re.compile(r"(\.\d)\d+")  # below a tenth of a point, nothing is visible
_UPRIGHT = re.compile(r"rotate\(-?0 ")
_FONT = re.compile(r"font-family: [^;]+; ?")
_USED = re.compile(r'(?:href="|url\()#([^")]+)')


@in_report_style
def svg(
    figure: Figure, *, label: str = "Figure", prefix: str | None = None, sheet: dict[str, str] | None = None
) -> str:
    """Return the figure as an `<svg>` element for an HTML page; equal figures give equal text.

    The label is for screen readers. A prefix, by default a hash of the figure, begins every id, so that figures on one
    page do not clash. The figure's styles are added to the sheet of a page, as classes whose colours follow the theme;
    without a sheet each element keeps its style, so that the figure can be used alone.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    start = prefix if prefix is not None else f"f{hashlib.sha256(text.encode()).hexdigest()[:10]}-"
    root = ElementTree.fromstring(text)
    box = root.attrib["viewBox"]
    family = _FONT.search(text)
    _shorten(root, start, set(_USED.findall(text)), family[0] if family else "")
    shown = visible(label, 2_000)
    root.attrib = {"viewBox": box, "width": "100%", "role": "img", "aria-label": shown}
    if sheet is not None:
        for defs in [each for each in root if each.tag == "defs" and len(each) and each[0].tag == "style"]:
            root.remove(defs)  # the page has the rule for all drawings
        share_styles(root, sheet)
        return ElementTree.tostring(root, encoding="unicode")
    if family:
        root.attrib["style"] = family[0].rstrip("; ")
    title = Element("title")
    title.text = shown
    root.insert(0, title)
    return ElementTree.tostring(root, encoding="unicode")


def standalone_svg(figure: Figure, *, label: str = "Figure") -> str:
    """Return the figure as the text of an SVG file."""
    element = svg(figure, label=label, prefix="")
    return element.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def _shorten(element: Element[Any], prefix: str, used: set[str], family: str) -> None:
    """Remove XML namespaces, prefix the ids in use, and drop unused ids, attributes and elements."""
    element.tag = element.tag.rpartition("}")[2]
    attributes = {}
    for name, value in element.attrib.items():
        local = name.rpartition("}")[2]
        if local == "id":
            if value not in used:
                continue
            value = prefix + value
        elif local == "href" and value.startswith("#"):
            value = f"#{prefix}{value[1:]}"
        elif local == "d":
            value = _TOO_FINE.sub(r"\1", _SPACED.sub(r"\1", value))
        elif local in ("x", "y"):
            value = _TOO_FINE.sub(r"\1", value)
        elif local == "transform":
            if _UPRIGHT.match(value):
                continue
        elif local == "style" and family:
            value = value.replace(family, "")
        attributes[local] = value.replace("url(#", f"url(#{prefix}")
    element.attrib = attributes
    if element.tag not in ("text", "tspan", "style"):
        element.text = None
    children = []
    for child in element:
        _shorten(child, prefix, used, family)
        if element.tag != "text":
            child.tail = None
        if child.tag == "g" and not child.attrib:
            children += list(child)
        elif child.tag != "metadata" and (len(child) or child.tag not in ("g", "defs")):
            children.append(child)
    element[:] = children


@in_report_style
def drawings_of(results: Sequence[Checked], sheet: dict[str, str]) -> list[list[tuple[str, str]]]:
    """Return captions and drawings of each result, with distinct ids; their styles are added to the `sheet`."""
    return [
        [
            (one.caption, svg(one.figure, label=one.label, prefix=f"a{index}-{place}-", sheet=sheet))
            for place, one in enumerate(figures_of(result))
        ]
        for index, result in enumerate(results, start=1)
    ]


# Drawings on a page: shared CSS classes in place of repeated styles, and colours that follow the theme.

THEMED: Final = {
    "#000000": "--ink", "#ffffff": "--card", "#757575": "--grey", "#0072b2": "--blue", "#d55e00": "--vermillion",
    "#009e73": "--green", "#9ccbe8": "--blue-fill", "#f2b88f": "--vermillion-fill", "#d0d0d0": "--grey-fill",
    "#dddddd": "--grey-fill", "#f0c000": "--event", "#e0b000": "--event", "#cc79a7": "--purple",
    "#e69f00": "--orange", "#56b4e9": "--sky",
}  # fmt: skip
"""The page's variable for each colour of a figure; the page defines the variables for light, dark and print."""

_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}\b")


def _themed(colour: re.Match[str]) -> str:
    name = THEMED.get(colour[0].lower())
    return colour[0] if name is None else f"var({name})"


def share_styles(root: ElementTree.Element[Any], sheet: dict[str, str]) -> None:
    """Replace the styles of all elements by classes, and add the classes and their rules to `sheet`.

    Styles that refer to an id of the drawing, such as a hatch, stay with their elements.
    """
    for element in root.iter():
        style = element.attrib.pop("style", None)
        if style is None:
            continue
        style = _COLOUR.sub(_themed, style)
        name = f"s{hashlib.sha256(style.encode()).hexdigest()[:7]}"  # equal in every process that draws figures
        if "url(" in style or sheet.setdefault(name, style) != style:  # two styles of one hash
            element.attrib["style"] = style
        else:
            element.attrib["class"] = name


def rules(sheet: dict[str, str]) -> str:
    """The sheet as CSS."""
    compact = ((name, style.replace(": ", ":").replace("; ", ";")) for name, style in sorted(sheet.items()))
    return "\n".join(f".{name}{{{style}}}" for name, style in compact)


# The figures of a suite as SVG files.


def save_figures(suite: Suite, folder: str | Path) -> list[Path]:
    """Write every figure of a suite as an SVG file, and return the paths; files are named after the audits.

    Parameters
    ----------
    suite : Suite
    folder : path
        Created if it does not exist; files with the same names are replaced.
    """
    folder = Path(folder)
    texts = {"forest": standalone_svg(forest(suite), label=KINDS["forest"][0])}
    for index, entry in enumerate(suite.entries, 1):
        name = "".join(char if char.isascii() and char.isalnum() else "-" for char in entry.name)[:60].strip("-")
        for place, one in enumerate(figures_of(entry.result), 1):
            texts[f"{index:03d}-{name}-{place}"] = standalone_svg(one.figure, label=one.label)
    written = []
    for name, text in texts.items():
        written.append(folder / f"{name}.svg")
        write_atomically(written[-1], text)
    return written
