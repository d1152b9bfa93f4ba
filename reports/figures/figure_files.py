"""The figures of a suite as SVG files."""

from __future__ import annotations

from pathlib import Path

from ...audit.files import write_atomically
from ...audit.records.suite import Suite
from .figures import distance_figures, figures_of
from .forest_figure import forest
from .runs_figure import projection_of, runs_svg
from .svg_figure import standalone, standalone_svg


def save_figures(suite: Suite, folder: str | Path) -> list[Path]:
    """Write every figure of a suite as an SVG file, and return the paths; files are named after the audits.

    Parameters
    ----------
    suite : Suite
    folder : path
        Created if it does not exist; files with the same names are replaced.
    """
    folder = Path(folder)
    drawn = [("forest", forest(suite))]
    drawn += [(f"distance-{place}", one.figure) for place, one in enumerate(distance_figures(suite), 1)]
    texts = {name: standalone_svg(figure) for name, figure in drawn}
    for index, entry in enumerate(suite.entries, 1):
        name = "".join(char if char.isascii() and char.isalnum() else "-" for char in entry.name)[:60].strip("-")
        own = figures_of(entry.result)
        texts |= {f"{index:03d}-{name}-{place}": standalone_svg(one.figure) for place, one in enumerate(own, 1)}
        projection = None if any(one.is_of_the_bound for one in own) else projection_of(entry.result)
        if projection is not None:
            texts[f"{index:03d}-{name}-{len(own) + 1}"] = standalone(runs_svg(projection))
    written = []
    for name, text in texts.items():
        written.append(folder / f"{name}.svg")
        write_atomically(written[-1], text)
    return written
