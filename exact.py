"""Exact audits of discrete code: `check` and `find_worst_pair` make them with ``exact=True``.

distribution       the exact distribution of a mechanism's output on a dataset
Budget             where an exact audit ends
ExactDistribution  a table of outputs with a remainder
ExactResult        the verdict, with both ends of the excess and of δ(ε)
ExactVerdict       its verdicts
"""

from .audit.exact.exact_audit import distribution
from .audit.exact.exact_result import ExactDistribution, ExactResult
from .audit.options import Budget
from .audit.results.verdict import ExactVerdict

__all__ = ["distribution", "Budget", "ExactDistribution", "ExactResult", "ExactVerdict"]
