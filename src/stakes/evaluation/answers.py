"""Bayes answers in closed form under a Gaussian belief: nothing is integrated, and nothing can overflow.

| loss                    | answer, for w = exp(a z) or a = 0 |
|-------------------------|-----------------------------------|
| squared error           | m + a v                           |
| Linex(alpha)            | m + a v - alpha v / 2             |
| pinball(tau), absolute  | m + a v + sqrt(v) Phi^-1(tau)     |

The weight turns N(m, v) into N(m + a v, v). Sizes: M contexts.
"""

from __future__ import annotations

from scipy.special import ndtri

from stakes._array import Array, namespace
from stakes.beliefs import Belief, GaussianBelief
from stakes.losses import AbsoluteError, AnyLoss, ExponentialWeight, Linex, Pinball, SquaredError


def closed_answer(loss: AnyLoss, belief: Belief) -> Array | None:
    """[M]: the answer with the least expected loss; None where no closed form is known."""
    weight = getattr(loss, "weight", None)
    if type(belief) is not GaussianBelief or not (weight is None or isinstance(weight, ExponentialWeight)):
        return None
    mean, variance = belief.mean, belief.variance
    centre = mean if weight is None else mean + weight.rate * variance
    if type(loss) is SquaredError:
        return centre
    if type(loss) is Linex:
        return centre - float(loss.alpha) / 2.0 * variance
    if type(loss) is AbsoluteError or type(loss) is Pinball:
        level = 0.5 if isinstance(loss, AbsoluteError) else float(loss.tau)
        return centre + float(ndtri(level)) * namespace(variance).sqrt(variance)
    return None
