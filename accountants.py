"""Accountants under audit: certain limits of the privacy loss of a composition, and checks of what others state.

check_accountant  the ε that an accountant states for each of many compositions
check_filter      a privacy filter or an odometer against an adversary that spends
true_epsilon      certain limits of the smallest ε of a composition at a δ
true_delta        certain limits of the smallest δ at an ε
Case              a composition of mechanisms with its δ and adjacency
Gaussian          Gaussian noise on a sum, with Poisson sampling
Laplace           Laplace noise on a sum, with Poisson sampling
AccountantResult  what `check_accountant` found, a row for each case
AccountantRow     the claim for one case, and the truth
Outcome           what a row says: too small, holds, undecided, refused
FilterResult      what `check_filter` found
Violation         the requests that cost more than is stated
Request           a request to spend (ε, δ)
"""

from .audit.accounting.check_accountant import GRID as GRID
from .audit.accounting.check_accountant import OTHER_ADJACENCIES as OTHER_ADJACENCIES
from .audit.accounting.check_accountant import AccountantResult, AccountantRow, Outcome, check_accountant
from .audit.accounting.check_filter import FilterResult, Request, Violation, check_filter
from .audit.accounting.privacy_loss import Case, Gaussian, Laplace, true_delta, true_epsilon

__all__ = [
    "check_accountant", "check_filter", "true_epsilon", "true_delta", "Case", "Gaussian", "Laplace",
    "AccountantResult", "AccountantRow", "Outcome", "FilterResult", "Violation", "Request",
]  # fmt: skip
