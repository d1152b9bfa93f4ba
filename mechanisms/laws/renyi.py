"""Exact Rényi divergence of two output laws."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from .divergences import Law, check_rule, no_closed_form
from .laws import FiniteLaw, GaussianLaw, LaplaceLaw
from .product import ProductLaw


def exact_renyi(law_x: Law, law_y: Law, order: float) -> float:
    """Return D_a(P ‖ Q) = ln E_Q[(dP/dQ)^a] / (a − 1) of P = `law_x` from Q = `law_y`, in nats.

    The divergence is infinite if P allows an event that Q does not.

    Parameters
    ----------
    law_x, law_y : Law
        Two Laplace, Gaussian or finite laws of one kind and scale (or number of outcomes), or products of such laws.
    order : float
        Above 1 and finite.

    Raises
    ------
    OptionError
        If the order is outside its range, or the laws have no closed form.

    References
    ----------
    Mironov (2017), Rényi differential privacy, Propositions 5 to 7 and Table II; divergences of independent outputs add
    up by Proposition 1.

    Examples
    --------
    >>> from dpaudit.mechanisms import RandomisedResponse
    >>> response = RandomisedResponse(math.log(3))
    >>> round(exact_renyi(response.law(0), response.law(1), 2), 4)  # ln(.75²/.25 + .25²/.75)
    0.8473
    """
    check_rule("order", order, 1 < order < math.inf, "1 < order < inf")
    if not isinstance(law_x, type(law_y)) or not law_x.is_comparable(law_y):
        raise no_closed_form(law_x, law_y)
    match law_x, law_y:
        case ProductLaw(), ProductLaw():
            pairs = zip(law_x.marginals, law_y.marginals, strict=True)
            return math.fsum(exact_renyi(one, two, order) for one, two in pairs)
        case FiniteLaw(), FiniteLaw():
            log_p, log_q = np.asarray(law_x.log_probabilities), np.asarray(law_y.log_probabilities)
            possible = log_p > -np.inf
            return float(logsumexp(log_p[possible] + (order - 1) * (log_p - log_q)[possible])) / (order - 1)
        case GaussianLaw(), GaussianLaw():
            return order * ((law_x.location - law_y.location) / law_x.scale) ** 2 / 2
        case LaplaceLaw(), LaplaceLaw():
            shift = abs(law_x.location - law_y.location) / law_x.scale
            # Half of P lies beyond its own location, where the loss is +shift; half of Q lies beyond its own, where the
            # loss is −shift. Between the two locations, the density e^{(2a−1)z} is integrated.
            near, far = math.log(order / (2 * order - 1)), math.log((order - 1) / (2 * order - 1))
            return float(np.logaddexp(near + (order - 1) * shift, far - order * shift)) / (order - 1)
    raise no_closed_form(law_x, law_y)
