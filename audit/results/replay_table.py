"""A replay as a table of texts, kept beside the audit whose pair it explains."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow:
    """A call of a noise primitive.

    Attributes
    ----------
    place, source : str
        File, line and function, and the text of the line; the text is empty if the file could not be read.
    primitive, law : str
        What was called, and its law on x.
    moved, allowed, loss : str
        How far its input moved between x and y, the sensitivity that it declares, and its largest loss; empty if
        unknown, as of noise that was handed nothing that may depend on data.
    finding : str
        What is wrong; empty if nothing is.
    """

    place: str
    source: str
    primitive: str
    law: str
    moved: str
    allowed: str
    loss: str
    finding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTable:
    """The calls of a replay.

    Attributes
    ----------
    sentence : str
        The verdict of the replay.
    seed : int
        Fixes the path.
    rows : tuple of ReplayRow
        The first calls, and all with a finding.
    n_calls : int
        All calls.
    remarks : tuple of str
        Findings about the whole run, and why the calls do not bound the loss.
    """

    sentence: str
    seed: int
    rows: tuple[ReplayRow, ...]
    n_calls: int
    remarks: tuple[str, ...]
