"""What labels are worth under beliefs that are known by joint draws: appendix D.3 of the paper, for any loss.

Let draw j give the label y_j, and let the other draws, by their importance weights, imply the moments P_j of the
targets and the action a_j once y_j is seen; a is today's action, of the other draws, too. There are two estimates of
what the label saves:

* what P_j itself says that a loses against a_j, regret(P_j, a): too large, as a_j is the best for what P_j happens to
  be;
* what z_j, the target that came with y_j, says of the two: l(z_j, a) - l(z_j, a_j). The draw j has no part in a_j, so
  that is what acting on finitely many draws really saves: too small.

To first order they are off by the same amount, and half of their sum is the estimate. For squared error it is
(z_j - a) (a_j - a), the two replicates z z' of the paper; with weights, its EVR_w. Of classes, P_j leans towards what
is believed today by one part in its effective number of draws, so that a class which few draws have stays possible.

Sizes: N candidates, n of a block, M contexts, K draws, J outcomes, G groups of draws, D statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stakes._utils.array import log_of, slices
from stakes.acquisition.forms import ANY, Form, Reduction, Total, check_pair, register
from stakes.acquisition.scores import checked_context_weights
from stakes.beliefs import DrawsBelief
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, Classes

Host: TypeAlias = NDArray[Any]
GROUPS = 20
"""Of draws, each left out once: the error has as many degrees of freedom, less one."""
_NUMBERS = 2**22  # of moments that are held at a time: 32 MiB


def sampling_error(loss: AnyLoss, belief: DrawsBelief, *, context_weights: Any = None) -> Host:
    """How far each score may be off under a belief that is known by draws: one standard error, bias included.

    By the jackknife: the draws are cut into 20 groups of neighbours, and scores are computed without each in turn.
    Their spread, and by how much they are off on the average (the bias of few draws), make the error. Neighbours in a
    chain are alike, and a group that is longer than they stay so allows for it. It takes about 20 times as long as
    `score`, less where the likelihood takes most of that.

    Args:
        loss: What being wrong costs.
        belief: Joint draws, 40 or more.
        context_weights: [M], how often each context comes up (normalised); alike without them.

    Returns:
        [N], in units of the loss.

    Raises:
        TypeError: If the belief is not a `DrawsBelief`, or the loss is not defined wherever the target can fall.
        StakesError: If there are fewer than 40 draws.

    Examples:
        >>> import numpy as np
        >>> from scipy.stats import norm
        >>> from stakes import SquaredError, sampling_error, score
        >>> from stakes.beliefs import DrawsBelief
        >>> rng = np.random.default_rng(0)
        >>> f = rng.normal(size=(1, 400))
        >>> likelihood = lambda y, rows: norm.logpdf(y[:, :, None], f[rows][:, None, :], 1.0)
        >>> belief = DrawsBelief(f + rng.normal(size=f.shape), f, likelihood)
        >>> estimate, error = score(SquaredError(), belief)[0], sampling_error(SquaredError(), belief)[0]
        >>> print(f"{estimate:.2f} +- {error:.2f}")  # exactly 0.5
        0.53 +- 0.04
    """
    if not isinstance(belief, DrawsBelief):
        raise TypeError(f"sampling_error is for beliefs of draws, DrawsBelief; got {type(belief).__name__}")
    check_pair(loss, belief)
    if belief.n_draws < 2 * GROUPS:
        raise StakesError(f"an error wants {2 * GROUPS} draws or more; there are {belief.n_draws}")
    weights = np.asarray(checked_context_weights(context_weights, belief))
    size = -(-belief.n_draws // GROUPS)
    found = [np.empty(0)]
    for part in slices(belief.n_candidates, max(1, _NUMBERS // (belief.n_draws * len(belief.outer)))):
        block = belief.take(part, slice(None)).tabulated()
        left = [block.without(group) for group in slices(block.n_draws, size)]
        values = np.stack([_plain(_totals(loss, each, weights)(each)) for each in left])  # [G, n]
        bias = (len(left) - 1) * (values.mean(axis=0) - _plain(_totals(loss, block, weights)(block)))
        spread = (len(left) - 1) / len(left) * ((values - values.mean(axis=0)) ** 2).sum(axis=0)
        found.append(np.sqrt(spread + bias**2))
    return np.concatenate(found)


def _plain(totals: tuple[Host, Host]) -> Host:
    return np.asarray(totals[0] * np.exp(totals[1]))


def _estimates(loss: Any, belief: DrawsBelief) -> tuple[Callable[[DrawsBelief], Host], Host]:
    """A function from blocks of candidates to what labels save at each context [n, M], on the average over outcomes.

    Beside it the log of the scale [M] that is taken out. An estimate may be below 0.
    """
    reference = belief.reference(loss)
    each = belief.draw_moments(loss, reference)  # [M, K, D]
    point = None if reference.point is None else reference.point[:, None, ...]
    own = np.searchsorted(belief.kept, belief.outer)  # [J]: where the draws of outcomes are
    seen, now = each[:, own, :], each.mean(axis=1, keepdims=True)  # [M, J, D], [M, 1, D]
    smoothed, others = isinstance(belief.domain, Classes), max(belief.n_draws - 1, 1)
    before = now + (now - seen) / others  # [M, J, D]: without the draw itself
    before = before + (now - before) / (1.0 + others) if smoothed else before
    today = loss.action(before)  # [M, J, d]
    kept = np.asarray(loss.regret(seen, today, point))  # [M, J]: of today's action at the target that came

    def of(block: DrawsBelief) -> Host:
        found = np.empty((block.n_candidates, block.n_contexts))
        numbers = len(own) * max(belief.n_draws, each.shape[0] * each.shape[2])
        for part in slices(block.n_candidates, max(1, _NUMBERS // numbers)):
            if part.stop <= part.start:
                break
            weights = np.exp(block.take(part, slice(None)).log_weights())  # [n, J, K]
            weights[:, np.arange(len(own)), own] = 0.0  # the draw itself has no part
            rest = weights.sum(axis=2)  # [n, J]
            effective = np.divide(rest**2, (weights**2).sum(axis=2), out=np.zeros_like(rest), where=rest > 0)
            lean = 1.0 / (1.0 + effective) if smoothed else np.where(rest > 0, 0.0, 1.0)  # [n, J]
            weights *= np.divide(1.0 - lean, rest, out=np.zeros_like(rest), where=rest > 0)[..., None]
            after = np.einsum("njk,mkd->nmjd", weights, each, optimize=True)
            after += lean[:, None, :, None] * (now if smoothed else before)  # [n, M, J, D]
            action = loss.action(after)  # [n, M, J, d]
            regret = loss.regret(after, np.broadcast_to(today, action.shape), point)
            came = kept - loss.regret(np.broadcast_to(seen, after.shape), action, point)
            found[part] = 0.5 * (regret + came).mean(axis=2)
        return found

    return of, np.asarray(reference.log_scale)


def _reductions(loss: Any, belief: DrawsBelief) -> Reduction:
    """At each context by itself: 0 where the estimate is below."""
    of, log_scale = _estimates(loss, belief)
    return lambda block: np.maximum(of(block), 0.0), log_scale


def _totals(loss: Any, belief: DrawsBelief, shares: Any) -> Callable[[DrawsBelief], tuple[Host, Host]]:
    """A function from a block to the signs and logarithms [n] of the estimates summed over contexts."""
    of, log_scale = _estimates(loss, belief)
    log_share = np.asarray(log_of(np.asarray(shares, dtype=float))) + log_scale  # [M]
    top = float(np.max(log_share))

    def totals(block: DrawsBelief) -> tuple[Host, Host]:
        values = of(block) @ np.exp(log_share - top)
        return np.sign(values), np.asarray(log_of(np.abs(values))) + top

    return totals


def _worths(loss: Any, belief: DrawsBelief, shares: Any) -> Callable[[DrawsBelief], Host]:
    """A function from a block to the log [n] of what its labels are worth: of nothing where the estimate is below 0."""
    totals = _totals(loss, belief, shares)

    def worth(block: DrawsBelief) -> Host:
        sign, log = totals(block)
        return np.where(sign > 0, log, -np.inf)

    return worth


def _held(loss: Any, belief: DrawsBelief) -> int:  # noqa: ARG001 (what every form is given)
    return 8 * len(belief.outer)


register(
    ANY,
    ANY,
    DrawsBelief,
    Form("importance weights over joint draws", _reductions, _held, total=Total(_worths, _held, in_logs=True)),
)
