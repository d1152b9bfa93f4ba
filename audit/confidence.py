"""How probabilities near 1 are written: none is rounded to certainty."""

from __future__ import annotations


def percent(probability: float) -> str:
    """A probability as a percentage that keeps its digits near 100%.

    Examples
    --------
    >>> percent(0.95), percent(1 - 1e-7)
    ('95%', '99.99999%')
    """
    return f"{100 * probability:.12g}%"


def confidence(alpha: float) -> str:
    """``95% confidence``, for an allowed error probability of .05."""
    return f"{percent(1 - alpha)} confidence"
