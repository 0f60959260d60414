"""Closed forms under a Gaussian belief: EUR_c(rho) in terms of the mean m and variance v of z and rho.

| loss                               | EUR_c                                                            |
|------------------------------------|------------------------------------------------------------------|
| squared error                      | rho v                                                            |
| Linex(alpha)                       | alpha^2 rho v / 2                                                |
| log score                          | -log(1 - rho) / 2, under a warp too                              |
| CRPS, absolute error, Pinball(tau) | k sqrt(v) (1 - sqrt(1 - rho)),                                   |
|                                    | k = 1 / sqrt(pi), sqrt(2 / pi), pdf(ppf(tau))                    |
| any of them, w = exp(a z)          | the same times wbar = exp(a m + a^2 v / 2)                       |
| log score, any w                   | -W log(1 - rho) / 2 + rho E[w (u^2 - 1)] / 2 - J(rho)            |
| threshold decision                 | through the bivariate normal                                     |
| Mahalanobis(A), vectors            | tr(A B B') = tr(A C' S^+ C), S = Var[y], C = Cov[y, z]           |
| the same, w = exp(b . z)           | wbar tr(A B B'),  wbar = exp(b . m + b' V b / 2)                 |

Derived in docs/theory.md. The exponential weight turns N(m, v) into N(m + a v, v) and leaves rho as it is; for vectors
N(m, V) into N(m + V b, V), and leaves B, the covariance of z with the label made white. u is the standardised target,
W = E[w], and J(rho) = E[W_eta log(W_eta / W)], with W_eta = E[w | eta], is by how much a label is expected to raise
x log x of x = E[w]: a profile curve, smooth up to rho = 1, where the log score is infinite.
Sizes: N candidates, n of a block, M contexts, R values of rho, L numbers of a label, d numbers of a target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

from numpy.polynomial.legendre import leggauss
from scipy.special import ndtri

from stakes._utils.array import (
    Array,
    at_once,
    check_all,
    constant,
    double,
    filled,
    log_of,
    namespace,
    ratio,
    replaced,
    slices,
)
from stakes.acquisition.curves import Curves, Extend, LogTable, octaves_of, smallest_sd, with_totals
from stakes.acquisition.forms import ANY, Form, Reduction, register
from stakes.acquisition.mixture_decisions import DECISIONS_UNDER_WARPED_HYPOTHESES
from stakes.acquisition.profile import FEW, Under, over_one_gaussian, profile_curve, rated_curve
from stakes.acquisition.scores import log_mean_weight, normal_quantile
from stakes.beliefs import GaussianBelief, Integrand, VectorGaussianBelief, WarpedGaussianBelief
from stakes.beliefs.quadrature import CHUNK, Resolved, standard_units
from stakes.beliefs.vector import log_determinant, singular_threshold, whitener
from stakes.exceptions import StakesError
from stakes.losses import (
    CRPS,
    AbsoluteError,
    ExponentialLinearWeight,
    ExponentialWeight,
    Linex,
    LogScore,
    Mahalanobis,
    NegativeEntropy,
    Pinball,
    Quadratic,
    SquaredError,
    ThresholdDecision,
)
from stakes.losses.distributions import align_axes
from stakes.losses.domains import REAL, Interval


def _variance_reduction(block: GaussianBelief) -> Array:
    """[n, M]: rho v = cov(z, y)^2 / var(y)."""
    xp = namespace(block.mean)
    share = ratio(xp.ones_like(block.candidate_variance), xp.sqrt(block.candidate_variance))  # [n]
    reduction = share[:, None] * block.covariance
    reduction *= reduction  # in place: one pass less over the memory of all pairs
    return reduction


def _squared_error(loss: SquaredError, belief: GaussianBelief) -> Reduction:
    return _variance_reduction, _log_scale(loss, belief)


def _linex(loss: Linex, belief: GaussianBelief) -> Reduction:
    return _variance_reduction, _log_scale(loss, belief)


def _flat(loss: SquaredError | Linex, belief: GaussianBelief) -> tuple[Extend, Array]:
    """EUR_c / rho, which does not depend on rho here."""
    curves = Curves(namespace(belief.mean).stack([belief.variance, 0.0 * belief.variance], axis=0))
    return lambda smallest: curves, _log_scale(loss, belief)


def _form(name: str, prepare: Callable[[Any, Any], Reduction]) -> Form:
    return with_totals(Form(f"closed form: {name}", prepare), _flat)


register(SquaredError, None, GaussianBelief, _form("rho v", _squared_error))
register(SquaredError, ExponentialWeight, GaussianBelief, _form("E[w] rho v", _squared_error))
register(Linex, None, GaussianBelief, _form("alpha^2 rho v / 2", _linex))
register(Linex, ExponentialWeight, GaussianBelief, _form("E[w] alpha^2 rho v / 2", _linex))


def _information(block: GaussianBelief | WarpedGaussianBelief) -> Array:
    """[n, M]: -log(1 - rho) / 2, in nats."""
    check_all(
        block.rho < 1.0,
        "a label that tells a target exactly is worth infinitely much under LogScore: variance and candidate_variance "
        "must include the noise of labels, or use CRPS",
    )
    return -namespace(block.rho).log1p(-block.rho) / 2.0


def _spread_reduction(block: GaussianBelief) -> Array:
    """[n, M]: sqrt(v) (1 - sqrt(1 - rho)), written so that a small rho keeps its digits."""
    xp = namespace(block.rho)
    return xp.sqrt(block.variance) * block.rho / (1.0 + xp.sqrt(1.0 - block.rho))


def _factor(loss: CRPS | AbsoluteError | Pinball) -> float:
    """k: the uncertainty at v = 1."""
    if isinstance(loss, CRPS):
        return 1.0 / math.sqrt(math.pi)
    return loss.unit * math.exp(-0.5 * float(ndtri(loss.level)) ** 2) / math.sqrt(2.0 * math.pi)


def _log_score(loss: LogScore, belief: Any) -> Reduction:
    return _information, _log_scale(loss, belief)


def _spread(loss: CRPS | AbsoluteError | Pinball, belief: GaussianBelief) -> Reduction:
    factor = _factor(loss)
    return lambda block: factor * _spread_reduction(block), _log_scale(loss, belief)


def _log_scale(loss: Any, belief: Any) -> Array:
    """[M]: log wbar, 0 without a weight; for Linex, also that of alpha^2 / 2, which may be beyond numbers itself."""
    factor = math.log(abs(loss.alpha)) * 2.0 - math.log(2.0) if isinstance(loss, Linex) else 0.0
    if loss.weight is None:
        return filled(belief.n_contexts, factor, belief.like)
    return log_mean_weight(loss.weight, belief) + factor


def _weighted_log_score(loss: LogScore, belief: GaussianBelief) -> Reduction:
    return _rough_log_score(loss, belief, lambda table: table) or _in_parts(belief.resolved(loss), belief)


def _warped_log_score(loss: LogScore, belief: WarpedGaussianBelief) -> Reduction:
    """That of the latent f with weight w(g(f)): no increasing map changes what densities tell."""
    assert isinstance(belief.latent, GaussianBelief)
    found = _rough_log_score(loss, belief.latent, lambda table: replaced(belief, latent=table))
    of, log_scale = found or _in_parts(belief.resolved(loss), belief.latent)
    return lambda block: of(block.latent), log_scale


def _rough_log_score(loss: LogScore, belief: GaussianBelief, under: Under) -> Reduction | None:
    """By rates, where a weight jumps, kinks or is steep and they are known: they are smooth all the same.

    Blocks of candidates that tell nearly all, where rates grow like the inverse, are done in parts.
    """
    integrand = under(belief).resolved(loss)
    if belief.n_candidates == 0 or not integrand.edges or smallest_sd(belief) < _NEARLY_KNOWN:
        return None
    if (found := rated_curve(loss, belief, under)) is None:
        return None
    of, log_scale = found
    parts: Reduction | None = None

    def each(block: GaussianBelief) -> Array:
        nonlocal parts
        if smallest_sd(block) >= _NEARLY_KNOWN:
            return of(block)
        parts = parts or _in_parts(integrand, belief)
        values, factor = parts[0](block), namespace(log_scale).exp(parts[1] - log_scale)
        return values * namespace(values).astype(factor, values.dtype)

    return each, log_scale


def _in_parts(integrand: Resolved, belief: GaussianBelief) -> Reduction:
    """-W log(1 - rho) / 2 + rho E[w (u^2 - 1)] / 2 - J(rho), whose integrand's statistics are w."""
    reference = belief.reference(integrand)
    mean, sd = double(belief.mean), namespace(belief.mean).sqrt(double(belief.variance))
    moments = belief.moments(integrand.with_integrand(_Bend(integrand, mean, sd)), reference)  # [M, 2]
    dtype, xp = belief.mean.dtype, namespace(belief.mean)
    mass, bend = xp.astype(moments[:, 0], dtype), xp.astype(moments[:, 1], dtype)
    lost, _ = profile_curve(_Concentration(integrand), belief)
    return lambda block: mass * _information(block) + block.rho * bend / 2.0 - lost(block), reference.log_scale


@dataclass(frozen=True, eq=False)
class _Bend:
    """w (1, u^2 - 1), u the standardised target."""

    weight: Integrand
    mean: Array
    sd: Array
    domain: Interval = REAL
    finite_actions: bool = False

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.weight.breakpoints

    def log_magnitudes(self, z: Array) -> Array:
        return self.weight.log_magnitudes(z)

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        xp, mean, sd = namespace(z), align_axes(self.mean, z), align_axes(self.sd, z)
        u = ratio(z - mean, sd + xp.zeros_like(z))
        return self.weight.statistics(z, reference) * xp.stack([xp.ones_like(z), u * u - 1.0], axis=-1)


@dataclass(frozen=True, eq=False)
class _Concentration:
    """As a loss: the Bregman loss with phi(x) = x log x of x = w(z), measured in units of w(reference).

    Its expected regret is E[W_eta log(W_eta / W)]. Of the magnitudes, log w is first as it is the scale; the other is
    that of the constant, since a label that makes w unlikely matters as well.
    """

    weight: Integrand
    domain: Interval = REAL
    finite_actions: bool = False
    name: str = "LogScore"

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.weight.breakpoints

    def log_magnitudes(self, z: Array) -> Array:
        log_weight = self.weight.log_magnitudes(z)[..., 0]
        return namespace(z).stack([log_weight, namespace(z).zeros_like(log_weight)], axis=-1)

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        weight = self.weight.statistics(z, reference)
        return namespace(z).concat([namespace(z).ones_like(weight), weight], axis=-1)

    def action(self, moments: Array) -> Array:
        return ratio(moments[..., 1:], moments[..., :1])

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        mass = moments[..., 0]
        return mass * NegativeEntropy().divergence(self.action(moments), action)


_PREPARE: Callable[[Any, Any], Reduction] = _spread
for _loss in (CRPS, AbsoluteError, Pinball):
    register(_loss, None, GaussianBelief, Form("closed form: k sqrt(v) (1 - sqrt(1 - rho))", _PREPARE))
    register(
        _loss, ExponentialWeight, GaussianBelief, Form("closed form: E[w] k sqrt(v) (1 - sqrt(1 - rho))", _PREPARE)
    )
register(LogScore, None, GaussianBelief, Form("closed form: -log(1 - rho) / 2", _log_score))
_FORM = Form("closed form: -log(1 - rho) / 2", _log_score, serves=over_one_gaussian)
register(LogScore, None, WarpedGaussianBelief, _FORM)
register(LogScore, ExponentialWeight, GaussianBelief, Form("closed form: -E[w] log(1 - rho) / 2", _log_score))
register(LogScore, ANY, GaussianBelief, Form("-E[w] log(1 - rho) / 2 and a profile curve", _weighted_log_score))
_FORM = Form("-E[w] log(1 - rho) / 2 and a profile curve", _warped_log_score, serves=over_one_gaussian)
register(LogScore, ANY, WarpedGaussianBelief, _FORM)


def threshold_curve(loss: ThresholdDecision, belief: GaussianBelief) -> Reduction:
    """(miss + false_alarm) P2, P2 = pdf(h) integral_0^angle pdf((h cos - k) / sin), with sin(angle) = sqrt(rho).

    h is the threshold in standard units, and k = Q^-1 of the break-even probability, Q the normal tail: act on a label
    eta iff sqrt(rho) eta > h - sqrt(1 - rho) k. (docs/theory.md)
    """
    xp, mean, variance = namespace(belief.mean), double(belief.mean), double(belief.variance)
    indifferent, log_cost = normal_quantile(loss.false_alarm, loss.miss), math.log(loss.miss + loss.false_alarm)

    def log_values(rho: Any, mean: Array, variance: Array) -> Array:
        threshold = standard_units((loss.threshold,), mean, xp.sqrt(variance))[:, 0]  # [m]
        return log_cost + _log_beyond_switch(threshold, indifferent, constant(rho, mean)[:, None])

    def each(rho: Array) -> Array:
        """[n, M]: without a table."""
        threshold = standard_units((loss.threshold,), mean, xp.sqrt(variance))[:, 0]
        logs = _log_beyond_switch(threshold, indifferent, xp.clip(rho, _LEAST_RHO, 1.0))
        return xp.exp(log_cost + logs) * xp.sqrt(xp.clip(rho / _LEAST_RHO, 0.0, 1.0))  # as the table has it

    no_scale = xp.zeros_like(mean)
    if 0 < belief.n_candidates <= FEW:
        return lambda block: xp.astype(each(double(block.rho)), block.mean.dtype), no_scale
    table = LogTable.of(mean, variance, octaves_of(belief), log_values)
    poor = table.doubt > _DOUBT  # [M]: extreme costs, whose curve a table does not resolve

    def of(block: GaussianBelief) -> Array:
        rho = double(block.rho)
        found = table.at(rho)
        if bool(xp.any(poor)):
            found = xp.where(poor, each(rho), found)
        return xp.astype(found, block.mean.dtype)

    return of, no_scale


_DOUBT = 1e-7
_NEARLY_KNOWN = 0.2  # posterior sd, over the prior one
_LEAST_RHO = 1e-15  # below, what is not nothing grows like sqrt(rho)


def warped_threshold_curve(loss: ThresholdDecision, belief: WarpedGaussianBelief) -> Reduction:
    """The same with the threshold in units of the latent f; nothing to decide where the warp does not reach it."""
    places = belief.unwarped(loss).breakpoints
    if not places:
        return lambda block: namespace(block.rho).zeros_like(block.rho), 0.0 * double(belief.latent.mean)
    assert isinstance(belief.latent, GaussianBelief)
    of, log_scale = threshold_curve(ThresholdDecision(places[0], loss.miss, loss.false_alarm), belief.latent)
    return lambda block: of(block.latent), log_scale


def _log_beyond_switch(threshold: Array, indifferent: float, rho: Array) -> Array:
    """[R, M]: the logarithm of P2, by an integral over w = log tan(angle / 2) whose integrand is log-concave.

    With a = h - k and b = h + k the exponent is -(a / x - b x)^2 / 8 at x = e^w, and d angle = dw / cosh(w).
    """
    xp = namespace(threshold)
    threshold = xp.clip(threshold, -_FARTHEST, _FARTHEST)
    side = xp.where(threshold >= indifferent, xp.ones_like(threshold), -xp.ones_like(threshold))
    a, b = abs(threshold - indifferent), side * (threshold + indifferent)  # [M], [M]
    most = xp.sqrt(rho) / (1.0 + xp.sqrt(1.0 - rho))  # [R, 1]: tan(angle / 2) at the end
    # Near the peak: where the exponent would be least if 1 / cosh(w) were e^w.
    square = xp.clip(b**2, 1e-300, None)
    peak = xp.minimum(most, xp.sqrt((2.0 + xp.sqrt(4.0 + square * a**2)) / square))  # [R, M]
    top = (a / peak - b * peak) ** 2 / 8.0
    reach = xp.sqrt(8.0 * (top + _FALL))
    rest = reach + xp.sqrt(xp.clip(reach**2 + 4.0 * a * b, 0.0, None))
    start = xp.minimum(peak, xp.maximum(2.0 * a / rest, peak * math.exp(-_FALL)))
    end = xp.maximum(peak, xp.minimum(most + xp.zeros_like(peak), rest / (2.0 * xp.sqrt(square))))
    middle, shape = xp.maximum(start, peak * math.exp(-_NEAR)), (-1,) + (1,) * peak.ndim
    nodes, weights = (xp.reshape(constant(each, peak), shape) for each in (0.5 + 0.5 * _PLACES, _SHARES))
    log_edges, total = [xp.log(each) for each in (start, middle, peak, end)], xp.zeros_like(peak)
    parts = slices(_NODES, max(1, at_once(peak, CHUNK) // max(1, math.prod(peak.shape))))  # nodes at once
    for (low, high), part in product(pairwise(log_edges), list(parts)):
        x = xp.exp(low + nodes[part, ...] * (high - low))
        heights = xp.exp(top - (a / x - b * x) ** 2 / 8.0) * (x / (1.0 + x * x))
        total = total + (high - low) * xp.sum(weights[part, ...] * heights, axis=0)
    return log_of(total) - top - 0.5 * threshold**2 - math.log(2.0 * math.pi)


_FARTHEST = 1e6  # standard deviations: a threshold beyond is as good as nowhere
_FALL = 30.0  # of the logarithm of the integrand, beyond which it is left out
_NODES = 18  # of a panel
_PLACES, _SHARES = leggauss(_NODES)
_NEAR = 4.0  # below the peak, where 1 / cosh bends


def _decisions_form(prepare: Callable[[Any, Any], Reduction]) -> Form:
    return Form("bivariate normal beyond the switch, EUR_c(rho)", prepare, lambda loss, belief: 28, 4096)


register(ThresholdDecision, None, GaussianBelief, _decisions_form(threshold_curve))
_FORM = replace(
    _decisions_form(warped_threshold_curve), serves=over_one_gaussian, otherwise=DECISIONS_UNDER_WARPED_HYPOTHESES
)
register(ThresholdDecision, None, WarpedGaussianBelief, _FORM)


_ROUNDING = 1e-6  # relative, by which the variance of a label may fall below that of its noise


def _trace_reduction(loss: Mahalanobis, block: VectorGaussianBelief) -> Array:
    """[n, M]: tr(A B B') as the sum of squares of R B, A = R' R."""
    assert isinstance(loss.potential, Quadratic)
    xp, factor = namespace(block.mean), block.factor  # [n, M, d, L]
    priced = xp.matmul(constant(loss.potential.root, factor), factor)
    return xp.astype(xp.sum(priced**2, axis=(2, 3)), block.mean.dtype)


def _mahalanobis(loss: Mahalanobis, belief: VectorGaussianBelief) -> Reduction:
    return lambda block: _trace_reduction(loss, block), filled(belief.n_contexts, 0.0, belief.mean)


def _weighted_mahalanobis(loss: Mahalanobis, belief: VectorGaussianBelief) -> Reduction:
    return lambda block: _trace_reduction(loss, block), log_mean_weight(loss.weight, belief)


def _numbers(loss: Mahalanobis, belief: VectorGaussianBelief) -> int:  # noqa: ARG001 (any such loss)
    return 8 * int(math.prod(belief.covariance.shape[2:]))


register(Mahalanobis, None, VectorGaussianBelief, Form("closed form: tr(A B B')", _mahalanobis, _numbers))
register(
    Mahalanobis,
    ExponentialLinearWeight,
    VectorGaussianBelief,
    Form("closed form: E[w] tr(A B B')", _weighted_mahalanobis, _numbers),
)


def label_entropy(belief: VectorGaussianBelief) -> Array:
    """[N]: log det(2 pi e Var[y]) / 2; -inf for a label of which some direction is known."""
    variance = double(belief.candidate_variance)
    return (variance.shape[-1] * math.log(2.0 * math.pi * math.e) + log_determinant(variance)) / 2.0


def label_information(belief: VectorGaussianBelief) -> Array:
    """[N]: log(det Var[y] / det noise) / 2, by the eigenvalues of Var[y] - noise with the noise made white."""
    if belief.noise_variance is None:
        raise StakesError("bald needs the noise_variance of the VectorGaussianBelief; got None. Give it, [N, L, L].")
    xp, noise = namespace(belief.mean), double(belief.noise_variance)
    check_all(
        xp.isfinite(log_determinant(noise)),
        "bald needs noise_variance without a direction of no noise; there a label tells infinitely much",
    )
    white = whitener(noise, singular_threshold(belief.noise_variance))
    excess = xp.matmul(xp.matmul(xp.matrix_transpose(white), double(belief.candidate_variance) - noise), white)
    values = xp.linalg.eigvalsh((excess + xp.matrix_transpose(excess)) / 2.0)  # [N, L]
    check_all(
        values >= -_ROUNDING,
        "candidate_variance must include noise_variance, but is smaller for some candidates: add the noise to it",
    )
    return xp.sum(xp.log1p(xp.clip(values, 0.0, None)), axis=1) / 2.0


def label_spread(belief: VectorGaussianBelief) -> Array:
    """[N]: tr Var[y]."""
    xp = namespace(belief.mean)
    return xp.sum(xp.linalg.diagonal(belief.candidate_variance), axis=-1)
