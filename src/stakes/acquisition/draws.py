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

Quantile losses and CRPS are estimated in the same way from the weighted draws in order: their answers are a quantile of
P_j and its distribution function F_j. For CRPS without a weight half of the sum is the integral of
(1{z_j <= t} - F) (F_j - F), which absolute differences of draws give (the energy form). The log score has no estimate:
draws have no density.

Sizes: N candidates, n of a block, M contexts, K draws, J outcomes, G groups of draws, D statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stakes._utils.array import log_of, slices
from stakes.acquisition.forms import ANY, Form, Reduction, Total, check_pair, each_context, register
from stakes.acquisition.scores import checked_context_weights
from stakes.beliefs import DrawsBelief
from stakes.exceptions import StakesError
from stakes.losses import CRPS, AnyLoss, Classes, DistributionLoss, PerContext
from stakes.losses.distributional import QuantileScore

Host: TypeAlias = NDArray[Any]
GROUPS = 20
"""Of draws, each left out once: the error has as many degrees of freedom, less one."""
_NUMBERS = 2**22  # of moments that are held at a time: 32 MiB


def sampling_error(loss: AnyLoss, belief: DrawsBelief, *, context_weights: Any = None) -> Host:
    """How far each score may be off under a belief that is known by draws: one standard error, bias included.

    By the jackknife: the draws are cut into 20 groups of neighbours, and scores are computed without each in turn.
    Their spread, and by how much scores of half of the draws differ from that of all (the bias of few draws), make the
    error. Neighbours in a chain are alike, and a group that is longer than they stay so allows for it. It takes about
    20 times as long as `score`, less where the likelihood takes most of that.

    Args:
        loss: What being wrong costs.
        belief: Joint draws, 40 or more.
        context_weights: [M], how often each context comes up (normalised); alike without them.

    Returns:
        [N], in units of the loss.

    Raises:
        TypeError: If the belief is not a `DrawsBelief`, or the loss is not defined wherever the target can fall, or
            is one of a density.
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
    if not all(_serves(one, belief) for one in _losses_of(loss)):
        raise TypeError(
            f"sampling_error serves losses with statistics, CRPS, Pinball and AbsoluteError; {loss!r:.60} answers with "
            "a density, which draws do not have. GaussianBelief and NormalEnsemble have one."
        )
    if belief.n_draws < 2 * GROUPS:
        raise StakesError(f"an error wants {2 * GROUPS} draws or more; there are {belief.n_draws}")
    weights = np.asarray(checked_context_weights(context_weights, belief))
    size = -(-belief.n_draws // GROUPS)
    found = [np.empty(0)]
    for part in slices(belief.n_candidates, max(1, _NUMBERS // (belief.n_draws * len(belief.outer)))):
        block = belief.take(part, slice(None)).tabulated()
        values = _without_each(loss, block, weights, size)  # [G, n]
        halves = _without_each(loss, block, weights, -(-block.n_draws // 2))  # twice the bias, and little noise of it
        bias = halves.mean(axis=0) - _plain(_totals(loss, block, weights)(block))
        spread = (len(values) - 1) / len(values) * ((values - values.mean(axis=0)) ** 2).sum(axis=0)
        found.append(np.sqrt(spread + bias**2))
    return np.concatenate(found)


def _without_each(loss: AnyLoss, block: DrawsBelief, weights: Host, size: int) -> Host:
    """[G, n]: scores without each group of so many draws."""
    left = (block.without(group) for group in slices(block.n_draws, size))
    return np.stack([_plain(_totals(loss, each, weights)(each)) for each in left])


def _plain(totals: tuple[Host, Host]) -> Host:
    return np.asarray(totals[0] * np.exp(totals[1]))


def _serves(loss: Any, belief: Any) -> bool:  # noqa: ARG001 (what every form is given)
    """Whether there is an estimate: not for losses of a density, nor for a distribution loss of one's own."""
    return not isinstance(loss, DistributionLoss) or isinstance(loss, QuantileScore | CRPS)


def _losses_of(loss: Any) -> tuple[Any, ...]:
    return loss.each if isinstance(loss, PerContext) else (loss,)


Estimates: TypeAlias = tuple[Callable[[DrawsBelief], Host], Host]
"""A function from blocks of candidates to what labels save at each context [n, M], on the average over outcomes, and
the log of the scale [M] that is taken out. An estimate may be below 0."""


def _estimates(loss: Any, belief: DrawsBelief) -> Estimates:
    if isinstance(loss, PerContext):
        return each_context(_estimates, loss, belief)
    if isinstance(loss, DistributionLoss):
        return _of_distributions(loss, belief)
    reference = belief.reference(loss)
    each = belief.draw_moments(loss, reference)  # [M, K, D]
    point = None if reference.point is None else reference.point[:, None, ...]
    own = _own(belief)
    seen, now = each[:, own, :], each.mean(axis=1, keepdims=True)  # [M, J, D], [M, 1, D]
    smoothed, others = isinstance(belief.domain, Classes), max(belief.n_draws - 1, 1)
    before = now + (now - seen) / others  # [M, J, D]: without the draw itself
    before = before + (now - before) / (1.0 + others) if smoothed else before
    today = loss.action(before)  # [M, J, d]
    kept = np.asarray(loss.regret(seen, today, point))  # [M, J]: of today's action at the target that came

    def of(block: DrawsBelief) -> Host:
        found = np.empty((block.n_candidates, block.n_contexts))
        for part, weights in _weights_of_others(block, own, each.shape[0] * each.shape[2]):
            effective = 1.0 / (weights**2).sum(axis=2)  # [n, J]
            lean = 1.0 / (1.0 + effective) if smoothed else np.zeros_like(effective)
            after = np.einsum("njk,mkd->nmjd", weights * (1.0 - lean)[..., None], each, optimize=True)
            after += lean[:, None, :, None] * now  # [n, M, J, D]
            action = loss.action(after)  # [n, M, J, d]
            regret = loss.regret(after, np.broadcast_to(today, action.shape), point)
            came = kept - loss.regret(np.broadcast_to(seen, after.shape), action, point)
            found[part] = 0.5 * (regret + came).mean(axis=2)
        return found

    return of, np.asarray(reference.log_scale)


def _own(belief: DrawsBelief) -> Host:
    """[J]: where the draws of outcomes are among those that count."""
    return np.searchsorted(belief.kept, belief.outer)


def _weights_of_others(block: DrawsBelief, own: Host, numbers: int) -> Iterator[tuple[slice, Host]]:
    """Parts of a block, and the weights [n, J, K] of the other draws once the label of draw j is seen.

    They sum to 1; where no other draw could have the label, all are alike: it tells nothing.
    """
    places = np.arange(len(own))
    for part in slices(block.n_candidates, max(1, _NUMBERS // (len(own) * max(block.n_draws, numbers)))):
        if part.stop <= part.start:
            break
        weights = np.exp(block.take(part, slice(None)).log_weights())  # [n, J, K]
        weights[:, places, own] = 0.0  # the draw itself has no part
        alone = weights.sum(axis=2) <= 0  # [n, J]
        weights[alone] = 1.0
        weights[:, places, own] = 0.0 if block.n_draws > 1 else 1.0
        yield part, weights / weights.sum(axis=2, keepdims=True)


def _of_distributions(loss: Any, belief: DrawsBelief) -> Estimates:
    """The same for losses of a quantile or a distribution function, a context at a time."""
    reference, own = belief.reference(loss), _own(belief)
    now = belief.distribution(loss, reference, np.empty((belief.n_contexts, 0)))
    drawn = np.asarray(belief.like)[:, belief.kept]
    at: list[Callable[[Host], Host]] = []
    for m in range(belief.n_contexts):
        z = drawn[m] - now.origin[m]  # [K]
        share = np.asarray(loss.statistics(drawn[m], now.origin[m]))[..., 0]  # [K]: w(z) over w(reference)
        if isinstance(loss, CRPS):
            at.append(_energy(z, own) if loss.weight is None else partial(_of_steps, z, share, own, _crps_savings))
        else:
            at.append(partial(_of_steps, z, share, own, partial(_quantile_savings, loss)))

    def of(block: DrawsBelief) -> Host:
        found = np.empty((block.n_candidates, block.n_contexts))
        for part, weights in _weights_of_others(block, own, 4 * block.n_draws):
            for m, savings in enumerate(at):
                found[part, m] = savings(weights)
        return found

    return of, np.asarray(reference.log_scale)


def _energy(z: Host, own: Host) -> Callable[[Host], Host]:
    """CRPS without a weight: from weights [n, J, K] to [n], the mean over j of sum_k w_jk g_jk.

    g_jk is the integral of (1{z_j <= t} - F) (1{z_k <= t} - F), with F of the draws but j. Of four variables, that of
    (F_a - F_b) (F_c - F_d) is (E|a - d| + E|b - c| - E|a - c| - E|b - d|) / 2.
    """
    others = max(len(z) - 1, 1)
    apart = abs(z[own, None] - z)  # [J, K]
    sums = abs(z[:, None] - z).sum(axis=1)  # [K]: from all others
    of_all = (sums.sum() - 2.0 * sums[own]) / others**2  # [J]: of two of the draws but j
    table = 0.5 * ((sums - apart) / others + (sums[own] / others - of_all)[:, None] - apart)  # [J, K]
    return lambda weights: np.asarray(np.tensordot(weights, table, axes=2) / len(own))


Savings: TypeAlias = Callable[[Host, Host, Host, Host, Host, Host], Host]
"""Gaps [K - 1] between draws in order, masses up to each draw today [J, K] and once the label is seen [n, J, K], the
place [J] of the draw that came, its weight [J] and the draws in order [K], to the two estimates of savings, summed."""


def _of_steps(z: Host, share: Host, own: Host, savings: Savings, weights: Host) -> Host:
    """[n]: half of the two estimates, on the average over outcomes, from weights [n, J, K]."""
    order = np.argsort(z, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    today = np.repeat(share[order][None, :], len(own), axis=0)  # [J, K]
    today[np.arange(len(own)), place[own]] = 0.0 if len(z) > 1 else today[0, 0]
    today = np.cumsum(today, axis=1) / max(len(z) - 1, 1)
    after = np.cumsum(weights[:, :, order] * share[order], axis=2)  # [n, J, K]
    found = savings(np.diff(z[order]), today, after, place[own], share[own], z[order])
    return np.asarray(0.5 * found.mean(axis=1))


def _quantile_savings(loss: Any, gaps: Host, today: Host, after: Host, place: Host, share: Host, z: Host) -> Host:
    """Regret: the integral of W_j F_j(t) - tau W_j from the answer once the label is seen to that of today."""
    answers = [(each < loss.level * each[..., -1:]).sum(axis=-1) for each in (today, after)]  # [J], [n, J]: places
    answers = [np.minimum(each, len(z) - 1) for each in answers]
    excess = np.zeros_like(after)
    np.cumsum((after[..., :-1] - loss.level * after[..., -1:]) * gaps, axis=2, out=excess[..., 1:])
    ends = [np.broadcast_to(each, answers[1].shape)[..., None] for each in answers]
    at_today, at_best = (np.take_along_axis(excess, each, axis=2)[..., 0] for each in ends)
    cost = [share * np.asarray(loss.step_cost(z[place] - z[each])) for each in answers]
    return np.asarray(loss.unit * (at_today - at_best) + cost[0] - cost[1])


def _crps_savings(gaps: Host, today: Host, after: Host, place: Host, share: Host, z: Host) -> Host:
    """Regret: W_j times the integral of (F_j - F)^2; at the target that came, that of the difference of two squares."""
    total = after[..., -1]  # [n, J]
    before, then = (
        np.divide(each, each[..., -1:], out=np.zeros_like(each), where=each[..., -1:] > 0)[..., :-1]
        for each in (today, after)
    )
    came = (np.arange(len(z) - 1) >= place[:, None]).astype(float)  # [J, K - 1]: 1{z_j <= t}
    gap = then - before
    return np.asarray(total * (gap**2 @ gaps) + share * ((gap * (2.0 * came - before - then)) @ gaps))


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
    Form(
        "importance weights over joint draws",
        _reductions,
        _held,
        total=Total(_worths, _held, in_logs=True),
        serves=_serves,
    ),
)
