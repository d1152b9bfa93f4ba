"""Drawings on a page: shared CSS classes in place of repeated styles, and colours that follow the theme."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final
from xml.etree import ElementTree

THEMED: Final = {
    "#000000": "--ink", "#ffffff": "--card", "#757575": "--grey", "#0072b2": "--blue", "#d55e00": "--vermillion",
    "#009e73": "--green", "#9ccbe8": "--blue-fill", "#f2b88f": "--vermillion-fill", "#d0d0d0": "--grey-fill",
    "#dddddd": "--grey-fill", "#f0c000": "--event", "#e0b000": "--event", "#cc79a7": "--purple",
    "#e69f00": "--orange", "#56b4e9": "--sky",
}  # fmt: skip
"""The page's variable for each colour of a figure; the page defines the variables for light, dark and print."""

_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}\b")


def themed(style: str) -> str:
    """Replace each known colour by the page's variable.

    Examples
    --------
    >>> themed("fill: none; stroke: #0072B2")
    'fill: none; stroke: var(--blue)'
    """
    return _COLOUR.sub(lambda match: _variable(match[0]), style)


def _variable(colour: str) -> str:
    name = THEMED.get(colour.lower())
    return colour if name is None else f"var({name})"


def style_class(style: str) -> str:
    """Name of the class of a style; equal in every process, because figures are drawn in several."""
    return f"s{hashlib.sha256(style.encode()).hexdigest()[:7]}"


def share_styles(root: ElementTree.Element[Any], sheet: dict[str, str]) -> None:
    """Replace the styles of all elements by classes, and add the classes and their rules to `sheet`.

    Styles that refer to an id of the drawing, such as a hatch, stay with their elements.
    """
    for element in root.iter():
        style = element.attrib.pop("style", None)
        if style is None:
            continue
        style = themed(style)
        if "url(" in style:
            element.attrib["style"] = style
            continue
        name = style_class(style)
        if sheet.setdefault(name, style) != style:  # two styles of one hash
            element.attrib["style"] = style
            continue
        element.attrib["class"] = name


def rules(sheet: dict[str, str]) -> str:
    """The sheet as CSS."""
    compact = ((name, style.replace(": ", ":").replace("; ", ";")) for name, style in sorted(sheet.items()))
    return "\n".join(f".{name}{{{style}}}" for name, style in compact)
