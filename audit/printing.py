"""Formats of limits, probabilities and values; a limit is rounded to the side on which it still holds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

SHOWN = 80  # characters of a value in a message or summary, which then fits into a line with its rule
_LINE = 120  # characters of a line of a verdict
_MOST_DIGITS = 12  # of a bound that exceeds the claim by little


def rounded_down(limit: float, digits: int = 4) -> float:
    """Return a lower limit rounded down to `digits` significant digits.

    >>> rounded_down(1.10562), rounded_down(0.99996), rounded_down(0.5), rounded_down(-0.99996)
    (1.105, 0.9999, 0.5, -1.0)
    """
    nearest = float(f"{limit:.{digits}g}")
    if not nearest > limit:  # NaN stays NaN
        return nearest
    unit = 10.0 ** (math.floor(math.log10(abs(limit))) + 1 - digits)
    return float(f"{nearest - unit:.{digits}g}")


def rounded_up(limit: float, digits: int = 4) -> float:
    """Return an upper limit rounded up to `digits` significant digits.

    >>> rounded_up(1.10512), rounded_up(0.99996)
    (1.106, 1.0)
    """
    return -rounded_down(-limit, digits)


def least_beside(bound: float, claimed: float) -> tuple[str, str, str]:
    """Return a sign, a lower bound and a claimed number, to as many digits as show which of them is larger."""
    if not bound > claimed:
        return ">=", f"{rounded_down(bound):g}", f"{claimed:.4g}"
    for digits in range(4, _MOST_DIGITS + 1):
        least, beside = rounded_down(bound, digits), float(f"{claimed:.{digits}g}")
        if least > beside:
            return ">=", f"{least:.{max(digits, 6)}g}", f"{beside:.{max(digits, 6)}g}"
    whole = repr(float(claimed)).removesuffix(".0")
    return ">", whole, whole


def rough(estimate: float) -> str:
    """Return a point estimate after an early stop, which is biased upward: two digits of it, such as "1.0" or "13"."""
    return f"{estimate:#.2g}".rstrip(".") if estimate < 99.5 else f"{estimate:.0f}"


def shorten(value: Any) -> str:
    """Return the repr of a value, cut to one short line; its type if the repr fails, as of a number of many digits.

    Only the beginning of a long text or sequence is looked at.

    >>> shorten("a" * 10**6) == "'" + "a" * 78 + "…"
    True
    """
    try:
        if getattr(value, "shape", None) == () and hasattr(value, "item"):  # a numpy scalar
            value = value.item()
        if type(value) in (str, bytes, list, tuple) and len(value) > SHOWN:
            value = value[:SHOWN]
        text = repr(value)
        text = " ".join(text.split()) if "\n" in text else text  # the lines of an array or a frame
    except Exception:  # a user's repr may raise anything
        text = f"<{type(value).__name__}>"
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def one_line(text: str, limit: int = SHOWN) -> str:
    """Return a text on one line, of which the middle is cut if it has more than `limit` characters.

    >>> one_line("a\\n  name"), one_line("score(1, 2, 3) >= 0.5", 16)
    ('a name', 'score(1, 2…= 0.5')
    """
    text = " ".join(text.split())
    tail = limit // 3
    return text if len(text) <= limit else f"{text[: limit - tail - 1]}…{text[-tail:]}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "pair"), counted(1_024, "entry")
    ('1 pair', '1,024 entries')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def did_you_mean(name: str, known: Iterable[str], *, before: str = "; ", otherwise: str = "") -> str:
    """Return a question that names the closest of the known names, or `otherwise` if none is close.

    Case is ignored.

    Examples
    --------
    >>> did_you_mean("Epsilno", ["delta", "epsilon"])
    "; did you mean 'epsilon'?"
    >>> did_you_mean("rho", ["delta", "epsilon"], otherwise=".")
    '.'
    """

    from difflib import get_close_matches  # seldom needed

    by_folded = {each.casefold(): each for each in known}
    near = get_close_matches(name.casefold(), by_folded, n=1)
    return f"{before}did you mean {by_folded[near[0]]!r}?" if near else otherwise


def percent(probability: float) -> str:
    """Format a probability as a percentage that keeps its digits near 100%.

    >>> percent(0.95), percent(1 - 1e-7)
    ('95%', '99.99999%')
    """
    return f"{100 * probability:.12g}%"


def confidence(alpha: float) -> str:
    """Return ``95% confidence`` for alpha = .05."""
    return f"{percent(1 - alpha)} confidence"


def verdict_text(sentence: str, remarks: Iterable[str]) -> str:
    """Return the sentence of a verdict, then the remarks, in lines of at most 120 characters.

    Lines of the sentence end after semicolons and closing brackets; a part that is longer than a line ends after commas
    and before brackets too. Further lines are indented, as are remarks. A longer word keeps a line for itself.

    >>> print(verdict_text("REFUTED: epsilon >= 2, claimed 1 (95% confidence)", ["note: a remark"]))
    REFUTED: epsilon >= 2, claimed 1 (95% confidence)
      note: a remark
    """
    parts = re.split(r"(?<=[;)]) ", sentence)
    shorter = [each for part in parts for each in (re.split(r"(?<=,) | (?=\()", part) if len(part) > _LINE else [part])]
    blocks = [_filled(shorter, 0)]
    blocks += [_filled(re.split(r"[\n\v\f\r ]", each.expandtabs().rstrip(" \n\v\f\r")), 2) for each in remarks]
    return "\n".join(blocks)


def _filled(parts: list[str], indent: int) -> str:
    """The parts in lines with an indent, which is larger from the second line on."""
    lines, width = parts[:1], _LINE - indent
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        elif part:
            lines[-1] = lines[-1].rstrip(" ")
            lines.append(part)
            width = _LINE - indent - 2
    text = f"\n{' ' * (indent + 2)}".join(lines)
    return " " * indent * bool(text) + text
