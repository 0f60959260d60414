"""The profile curve: under a Gaussian belief EUR depends on rho alone, one curve EUR_c(rho) for each context.

Whatever the loss, the curve is tabulated by the general route at a few rho and interpolated for all candidates. What is
interpolated is EUR / rho, which tends to a constant as rho -> 0 (so small reductions keep their relative accuracy), as
a polynomial in the posterior sd s = sqrt(1 - rho), in which it is smooth up to rho = 1.

A finite set of actions is integrated between switching points, and its table is of logarithms. Contexts whose curve a
table does not resolve get more nodes, and in the end no table: an action that is best only in a window of targets is
worth nothing at all up to some rho, and its curve is singular there.
Sizes: N candidates, n of a block, M contexts, m of a block, R values of rho, P pairs of a context and a rho, J cells of
a label, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stakes._utils.array import (
    Array,
    constant,
    double,
    filled,
    log_of,
    namespace,
    on_host,
    replaced,
    slices,
)
from stakes.acquisition.curves import (
    SLACK,
    Extend,
    LogTable,
    LogValues,
    SmoothCurves,
    interpolated,
    octaves_of,
    smallest_sd,
    with_totals,
)
from stakes.acquisition.forms import (
    ANY,
    NO_WORTH,
    Form,
    Reduction,
    by_logarithms,
    in_plain_domain,
    prepare_general,
    register,
    relative_gap,
    resolve,
    warn_of_error,
)
from stakes.acquisition.scores import check_finite
from stakes.beliefs import GaussianBelief, WarpedGaussianBelief
from stakes.beliefs.gaussian_integration import WIDE_SD_AT_KINKS, SharedSplit
from stakes.beliefs.quadrature import FAR_TAIL
from stakes.beliefs.roughness import FURTHEST_TURN, Turns, turns
from stakes.beliefs.switching import Switches, find_switches
from stakes.losses import DistributionLoss, Loss
from stakes.losses.distributional import QuantileScore

if TYPE_CHECKING:
    from stakes.acquisition.rates import FewRegrets

_RESOLVED = 75.0  # in logarithms: integration over 14 sds resolves nothing smaller than the costs by exp(75)
_REACHES = (FAR_TAIL, 20.0, 26.0, 32.0, 40.0)  # standard deviations that are integrated over, as many as it takes
_SMALLEST = 1e-290  # of a value in the range of numbers
_BEYOND = 2.5  # standard deviations after a switch that are needed
# Standard deviations out, up to where panels of the usual width follow a normal density, and wide posteriors do.
_STEEPEST = (14.0, 28.0)
_NOTHING = 33.0  # in logarithms: what is smaller than the most that a label can be worth is not looked for far out
_TOP = 0.35  # rho of the first panel of a table, and more
_PAIRS = 1024  # that are integrated at once
_EFFORTS = (1, 2)  # by how much tables are refined
FEW = 64
"""Candidates that are not worth a table."""
_FEW_EDGES, _MANY = 8, 512  # edges of costs up to which a table is quick, and candidates that are worth another one
_FEW_PAIRS = 256  # of a candidate and a context, that are integrated before switches are found
_DOUBT = 1e-7  # of the worth of knowing the target, by which a table may be wrong
_CHECKED_DECISIONS = (0.1, 0.5, 0.9)  # rho at which the worth by switches is compared with that of the general route

Under: TypeAlias = Callable[[GaussianBelief], Any]
"""From a Gaussian belief to the one that a loss is integrated under: itself, or one about a warped target."""


def finite_actions_curve(loss: Loss, belief: GaussianBelief, under: Under) -> Reduction:
    """Tables for contexts where they serve, each pair of the others by itself: by switches where these are known."""
    integrand = resolve(loss, under(belief))
    xp, mean, variance = namespace(belief.mean), double(belief.mean), double(belief.variance)
    if belief.n_candidates == 0:
        return lambda block: xp.zeros_like(block.covariance), xp.zeros_like(mean)
    if integrand.edges or integrand.error:
        warn_of_error(loss, integrand.error + _decision_error(loss, integrand, belief, under))
    far = turns(integrand, mean, xp.sqrt(variance)).place > FAR_TAIL - _BEYOND  # next to nothing at most rho
    left, beyond = xp.nonzero(~far)[0], xp.nonzero(far)[0]
    few = FEW if len(integrand.edges) <= _FEW_EDGES else _MANY
    many = belief.n_candidates > FEW or belief.n_candidates * belief.n_contexts > _FEW_PAIRS
    switches = _checked_switches(loss, integrand, belief, under, left) if many else None
    tabulated = belief.n_candidates > few or switches is not None
    groups: list[tuple[Array, LogTable]] = []
    log_values = _log_values(loss, integrand, under, switches)
    for effort in _EFFORTS if tabulated else ():
        if left.shape[0]:
            here = xp.take(mean, left), xp.take(variance, left)
            table = LogTable.of(*here, octaves_of(belief), log_values, effort)
            good, bad = xp.nonzero(table.doubt <= _DOUBT)[0], xp.nonzero(~(table.doubt <= _DOUBT))[0]
            groups.append((xp.take(left, good), table.take(good)))
            left = xp.take(left, bad)
    rest = xp.concat([left, beyond])

    def of(block: GaussianBelief) -> Array:
        rho, parts = double(block.rho), [table.at(xp.take(double(block.rho), at, axis=1)) for at, table in groups]
        for at, known in ((left, switches), (beyond, None)):
            here = xp.take(mean, at), xp.take(variance, at), xp.take(rho, at, axis=1)
            parts.append(_reductions(loss, integrand, under, *here) if known is None else known.reductions(*here))
        order = xp.argsort(xp.concat([*(at for at, _ in groups), rest]))
        return xp.astype(xp.take(xp.concat(parts, axis=1), order, axis=1), block.mean.dtype)

    return of, xp.zeros_like(mean)


def _log_values(loss: Loss, integrand: Any, under: Under, switches: Switches | None) -> LogValues:
    """What a table is of: by switches, or by the general route where these are not known."""

    def log_values(rho: Any, mean: Array, variance: Array) -> Array:
        if switches is not None:
            return switches.log_reductions(rho, mean, variance)
        xp = namespace(mean)
        shares = xp.broadcast_to(constant(rho, mean)[:, None], (len(rho), mean.shape[0]))
        top = float(np.min(rho)) > _TOP  # a panel that is smooth throughout, however small its values
        values = _reductions(loss, integrand, under, mean, variance, shares, math.inf if top else _NOTHING)
        most = turns(integrand, mean, xp.sqrt(variance)).most  # the scale of all reductions
        resolved = values > (_SMALLEST if top else math.exp(-_RESOLVED) * most)
        return xp.where(resolved, log_of(values), xp.full_like(values, -xp.inf))

    return log_values


def _checked_switches(
    loss: Loss, integrand: Any, belief: GaussianBelief, under: Under, contexts: Array
) -> Switches | None:
    """The switches of some contexts, by their positions; None where they do not give what the general route does."""
    xp = namespace(belief.mean)
    mean, variance = (xp.take(double(each), contexts) for each in (belief.mean, belief.variance))
    found = find_switches(integrand, mean, variance) if contexts.shape[0] else None
    if found is None:
        return None
    some = slice(0, None, max(1, contexts.shape[0] // _SMALL_SAMPLE))
    mean, variance = mean[some], variance[some]
    rho = constant(_CHECKED_DECISIONS, mean)[:, None] + xp.zeros_like(mean)
    known = xp.min(_costs_today(integrand, under, mean, variance), axis=-1)
    values, others = found.reductions(mean, variance, rho), _reductions(loss, integrand, under, mean, variance, rho)
    return found if relative_gap(values, others, NO_WORTH * known) <= _DOUBT else None


def _decision_error(loss: Loss, integrand: Any, belief: GaussianBelief, under: Under) -> float:
    """By how much two rules of integration differ for some of the pairs."""
    steps = (max(1, count // _SMALL_SAMPLE) for count in (belief.n_candidates, belief.n_contexts))
    some = belief.take(*(slice(0, None, step) for step in steps))
    rho, mean, variance = double(some.rho), double(some.mean), double(some.variance)
    known = namespace(rho).min(_costs_today(integrand, under, mean, variance), axis=-1)
    values, others = (_reductions(loss, each, under, mean, variance, rho) for each in (integrand, integrand.refined()))
    return relative_gap(values, others, NO_WORTH * known)


def _reductions(
    loss: Loss, integrand: Any, under: Under, mean: Array, variance: Array, rho: Array, nothing: float = _NOTHING
) -> Array:
    """[R, M]: EUR by the general route for contexts [M] and rho [R, M], pairs of similar rho and reach at once.

    0 where it is smaller than the most that a label can be worth by exp(`nothing`), and far out.
    """
    xp, shape = namespace(mean), rho.shape
    if 0 in shape:
        return xp.zeros_like(rho)
    group = _groups(turns(integrand, mean, xp.sqrt(variance)), rho, nothing)
    flat = [xp.reshape(xp.broadcast_to(each, shape), (-1,)) for each in (mean, variance, rho)]  # [P] each
    depth = xp.floor(xp.log2(xp.clip(xp.sqrt(1.0 - flat[2]), WIDE_SD_AT_KINKS, 1.0)))
    without = xp.nonzero(xp.reshape(group, (-1,)) < 0)[0]
    places, values = [without], [xp.zeros_like(xp.take(flat[2], without))]
    narrowest = math.floor(math.log2(WIDE_SD_AT_KINKS))
    for reach, each in product(range(len(_REACHES)), range(narrowest, 1)):
        at = xp.nonzero((depth == float(each)) & (xp.reshape(group, (-1,)) == reach))[0]
        within = _reaching(integrand, _REACHES[reach], each == narrowest)
        for part in slices(at.shape[0], _PAIRS) if at.shape[0] else ():
            places.append(at[part])
            values.append(_at_once(loss, within, under, *(xp.take(one, at[part]) for one in flat)))
    return xp.reshape(xp.take(xp.concat(values), xp.argsort(xp.concat(places))), shape)


def _reaching(integrand: Any, reach: float, narrow: bool) -> Any:
    """The integrand over so many standard deviations, in panels narrower as densities fall more quickly there."""
    width = integrand.width * min(1.0, (_STEEPEST[0] if narrow else _STEEPEST[1]) / reach)
    return replace(integrand, reach=reach, width=width, find_edges=lambda: integrand._found)


def _groups(found: Turns, rho: Array, nothing: float) -> Array:
    """[R, M]: the position among `_REACHES` of as many standard deviations as it takes; -1 where there is nothing.

    An action that is wrong so many standard deviations out is dropped once a label says so, at that over sqrt(rho), or
    sooner.
    """
    xp, place = namespace(rho), found.place
    root, rest = xp.clip(xp.sqrt(rho), 1e-150, 1.0), xp.sqrt(1.0 - rho)
    switch = place / root
    needed = xp.where(switch > FURTHEST_TURN, place, switch)  # beyond, it is out of the range of numbers
    needed = xp.maximum(needed, found.furthest + xp.zeros_like(rho)) + _BEYOND
    group = xp.sum(xp.astype(needed[..., None] > constant(_REACHES[:-1], rho), xp.int64), axis=-1)
    soonest = xp.clip(place - found.sooner * rest, 0.0, None) / root
    return xp.where((soonest**2 - place**2 > 2.0 * nothing) & (group > 0), xp.full_like(group, -1), group)


def _at_once(loss: Loss, integrand: Any, under: Under, mean: Array, variance: Array, rho: Array) -> Array:
    """[P]: of one candidate, each pair as one of its contexts."""
    xp = namespace(mean)
    table = under(GaussianBelief(mean, variance, xp.ones_like(mean[:1]), xp.sqrt(rho * variance)[None, :]))
    of, _ = prepare_general(loss, table, integrand)
    return of(table)[0, :]


def _costs_today(loss: Any, under: Under, mean: Array, variance: Array) -> Array:
    """[M, A]: what each action is expected to cost beyond the best for each target."""
    alone = under(GaussianBelief(mean, variance, mean[:0], namespace(mean).zeros_like(mean)[None, :][:0, :]))
    return alone.moments(loss, alone.reference(loss))


Values: TypeAlias = Callable[[np.ndarray[Any, Any]], Array]
"""From rho [R], each above 0, to EUR_c / rho [R, M]."""


def tabulator(
    loss: Any, integrand: Any, belief: GaussianBelief, under: Under
) -> tuple[Values, Array, SharedSplit | None]:
    """Curves to be, of all contexts; the log of the scale [M] that was taken out of each; the nodes that they share.

    By one product for each rho where contexts share their nodes, by the general route otherwise.
    """
    mean, variance = double(belief.mean), double(belief.variance)
    empty = GaussianBelief(mean, variance, filled((0,), 1.0, mean), filled((0, mean.shape[0]), 0.0, mean))
    alone = isinstance(loss, DistributionLoss) or by_logarithms(loss, under(empty)) is not None
    split = None if alone else under(empty).shared_split(integrand)
    if split is not None:
        return _rows(lambda rho: shared_reductions(loss, split, rho)), split.reference.log_scale, split
    (of, log_scale), xp = prepare_general(loss, under(empty), integrand), namespace(mean)

    def row(rho: float) -> Array:
        one = replaced(empty, candidate_variance=filled(1, 1.0, mean), covariance=xp.sqrt(rho * variance)[None, :])
        return of(under(one))[0, :]

    return _rows(row), log_scale, None


def _rows(of: Callable[[float], Array]) -> Values:
    """Values one rho at a time, so that only those of one are integrated at once."""

    def values(shares: np.ndarray[Any, Any]) -> Array:
        rows = [of(float(rho)) / float(rho) for rho in shares]
        return check_finite(namespace(rows[0]).stack(rows, axis=0))

    return values


def shared_reductions(loss: Any, split: SharedSplit, rho: float) -> Array:
    """[M]: EUR_c(rho), the expected regret of keeping today's answer, as the general route has it."""
    point, parts = split.reference.point, []
    assert point is not None
    for part, moments in split.moments(rho):  # [m, J, D]
        xp = namespace(moments)
        action = loss.action(xp.sum(moments, axis=1))  # [m, d]
        parts.append(xp.sum(loss.regret(moments, action[:, None, :], point[part, None]), axis=1))
    return xp.concat(parts)


_STARTS = (0.9, 0.75, 0.5, 0.2, 0.0)  # of curves, in posterior sds: a short curve needs few nodes, and easy ones
_ENOUGH = 2e-7  # relative error of interpolation that is aimed at
_MOST_NODES, _MOST_IN_PANELS = 81, 27  # of a polynomial: even nodes of integration are quick, panels are not
_SAMPLE, _CHECKED = 16, 0.97  # contexts and rho whose integration is checked
_SMALL_SAMPLE, _CHECKED_IN_PANELS = 3, (0.3, 0.97)  # the same where panels are needed, and the rho that tells most
_MOST_CHECKED = 1.0 - 1e-12
_NARROW = 0.2 * 4.0 ** -np.arange(6.0)[::-1]  # sqrt(rho) or posterior sds that probe a curve, down to 2e-4


def profile_curve(loss: Any, belief: GaussianBelief, under: Under = lambda table: table) -> Reduction:
    """Tabulate the curve of each context, as suits the loss; interpolate for any block of candidates.

    `under` makes, of a Gaussian belief, the belief that the loss is integrated under: one about a warped target.
    """
    return (finite_actions_curve if loss.finite_actions else _smooth_curve)(loss, belief, under)


def _smooth_curve(loss: Any, belief: GaussianBelief, under: Under) -> Reduction:
    """As far as the candidates reach, with as many nodes as that needs; further where a block asks for it."""
    loss = in_plain_domain(loss, under(belief))
    integrand = resolve(loss, under(belief))
    from stakes.acquisition.rates import few_regrets  # on demand: most losses have closed forms

    if (few := few_regrets(loss, under(belief))) is not None:
        return _pair_by_pair(few, double(belief.mean), lambda: _tabulated(loss, integrand, belief, under, few=True))
    return _tabulated(loss, integrand, belief, under)


def _tabulated(loss: Any, integrand: Any, belief: GaussianBelief, under: Under, *, few: bool = False) -> Reduction:
    """By rates where they are known, by the general route otherwise; pair by pair for `few` that nodes did not do."""
    if not few and (by_rates := _by_rates(loss, integrand, belief, under)) is not None:
        return _looked_up(*by_rates, belief)
    rough = integrand.edges if isinstance(loss, DistributionLoss) else integrand.breakpoints
    if by_logarithms(loss, under(belief)) is not None:
        rough = loss.breakpoints
    if 0 < belief.n_candidates <= FEW and rough:
        return _integrated(loss, integrand, belief, under)
    return _looked_up(*_extended(loss, integrand, belief, under), belief)


def _pair_by_pair(few: FewRegrets, like: Array, otherwise: Callable[[], Reduction]) -> Reduction:
    """With even nodes where these are few, by the general route otherwise."""
    general: Reduction | None = None

    def of(block: GaussianBelief) -> Array:
        nonlocal general
        if (found := few.at(on_host(double(block.rho)))) is not None:
            return namespace(block.mean).astype(constant(found, double(block.mean)), block.mean.dtype)
        general = general or otherwise()
        values, log_scale = general[0](block), general[1]
        factor = namespace(log_scale).exp(log_scale - constant(few.log_scale, log_scale))
        return values * namespace(values).astype(factor, values.dtype)

    return of, constant(few.log_scale, like)


def _integrated(loss: Any, integrand: Any, belief: GaussianBelief, under: Under) -> Reduction:
    """Pair by pair."""
    warn_of_error(loss, max(integrand.error, _integration_error(loss, integrand, belief, under, None)))
    of, log_scale = prepare_general(loss, under(belief), integrand)

    def integrated(block: GaussianBelief) -> Array:
        xp, reductions = namespace(block.mean), of(under(block))
        values = xp.where(block.rho > 0, reductions, xp.zeros_like(reductions))  # no label tells of the others
        return xp.astype(values, block.mean.dtype)

    return integrated, log_scale


def _looked_up(extend: Extend, log_scale: Array, belief: GaussianBelief) -> Reduction:
    curves = extend(smallest_sd(belief))

    def looked_up(block: GaussianBelief) -> Array:
        nonlocal curves
        reductions, smallest = curves.reductions(block)
        if smallest < curves.low - SLACK:
            curves = extend(0.0)
            reductions, _ = curves.reductions(block)
        return reductions

    return looked_up, log_scale


def rated_curve(loss: Any, belief: GaussianBelief, under: Under) -> Reduction | None:
    """Tabulated from the rates of the loss; None where these are not known."""
    found = _by_rates(loss, resolve(loss, under(belief)), belief, under)
    return None if found is None else _looked_up(*found, belief)


def smooth_curves(loss: Any, belief: GaussianBelief, under: Under = lambda table: table) -> tuple[Extend, Array]:
    """The curves of a loss for the contexts of a belief, each tabulated when it is first asked for.

    A function from a posterior sd to curves that reach as far, and the log of the scale [M] that was taken out.
    """
    loss = in_plain_domain(loss, under(belief))
    integrand = resolve(loss, under(belief))
    return _by_rates(loss, integrand, belief, under) or _extended(loss, integrand, belief, under)


def _by_rates(loss: Any, integrand: Any, belief: GaussianBelief, under: Under) -> tuple[Extend, Array] | None:
    """The same from the rates of the loss, where these are known; by the general route where they do not reach."""
    from stakes.acquisition.quantile_rates import QuantileRates, curves_in_pieces
    from stakes.acquisition.rates import FewRates, curves_of_rates, rates_of, start_of_rates

    mean, sd = on_host(double(belief.mean)), np.sqrt(on_host(double(belief.variance)))
    some = np.flatnonzero(sd > 0)
    rates = rates_of(loss, under(belief), integrand, mean[some], sd[some]) if len(some) else None
    if rates is None:
        return None
    count = 2 if isinstance(rates, FewRates) else 5
    if (logs := rates.at(np.linspace(start_of_rates(rates, smallest_sd(belief)), 1.0, count)[1:])) is None:
        return None
    scale = np.zeros(len(mean))
    scale[some] = np.max(logs, axis=0)
    general: tuple[Extend, Array] | None = None
    known: dict[float, SmoothCurves | None] = {}

    def extend(smallest: float) -> SmoothCurves:
        nonlocal general
        low = start_of_rates(rates, smallest)
        if low not in known:
            if isinstance(rates, QuantileRates):
                known[low] = curves_in_pieces(rates, scale, some, low, belief.mean)
            else:
                known[low] = curves_of_rates(rates, scale, some, low, belief.mean)
        if (curves := known[low]) is not None:
            warn_of_error(loss, rates.error)
            return curves
        if general is None:
            general = _extended(loss, integrand, belief, under)
        further, log_scale = general[0](smallest), general[1]
        factor = namespace(log_scale).exp(log_scale - constant(scale, log_scale))
        like = further.coefficients
        return replace(further, coefficients=like * namespace(like).astype(factor, like.dtype))

    return extend, constant(scale, double(belief.mean))


def _extended(loss: Any, integrand: Any, belief: GaussianBelief, under: Under) -> tuple[Extend, Array]:
    values, log_scale, split = tabulator(loss, integrand, belief, under)
    doubt = max(integrand.error, _integration_error(loss, integrand, belief, under, split))
    known: dict[float, tuple[SmoothCurves, float]] = {}

    def extend(smallest: float) -> SmoothCurves:
        low = next(start for start in _STARTS if start <= smallest)
        if low not in known:
            most = _MOST_NODES if split is not None else _MOST_IN_PANELS
            curves, error = interpolated(values, _ENOUGH, low, most, _probes(loss, integrand))
            known[low] = curves.astype(belief.mean.dtype), error
        curves, error = known[low]
        warn_of_error(loss, error + doubt)
        return curves

    return extend, log_scale


def _probes(loss: Any, integrand: Any) -> np.ndarray[Any, Any]:
    """Rho at which a curve is checked between its nodes: where something narrow in the weight may show.

    How far a quantile moves is in proportion to sqrt(rho), and it may meet with a narrow place at any of them; moments
    see it once the posterior is as narrow.
    """
    if not integrand.edges:
        return np.zeros(0)
    quantile = isinstance(loss, QuantileScore)
    return np.concatenate([_NARROW**2 if quantile else _NARROW[:0], 1.0 - _NARROW[::-1] ** 2])


def _integration_error(
    loss: Any, integrand: Any, belief: GaussianBelief, under: Under, split: SharedSplit | None
) -> float:
    """By how much two rules of integration differ for some of the contexts, at rho that the candidates have."""
    if split is not None:
        few = split.every(max(1, belief.n_contexts // _SAMPLE))
        return relative_gap(*(shared_reductions(loss, each, _CHECKED) for each in (few, replaced(few, panels=True))))
    some = belief.take(slice(0, 0), slice(0, None, max(1, belief.n_contexts // _SMALL_SAMPLE)))
    largest = min(1.0 - smallest_sd(belief) ** 2, _MOST_CHECKED)
    rho = np.asarray(sorted({*_CHECKED_IN_PANELS, *((largest,) if largest > 0 else ())}))
    rules = (tabulator(loss, each, some, under)[0](rho) for each in (integrand, integrand.refined()))
    return relative_gap(*rules)


def over_one_gaussian(loss: Any, belief: WarpedGaussianBelief) -> bool:  # noqa: ARG001 (any loss)
    """Whether the latent belief is Gaussian, and not a mixture: only then EUR depends on rho alone."""
    return isinstance(belief.latent, GaussianBelief)


def warped_profile_curve(loss: Any, belief: WarpedGaussianBelief) -> Reduction:
    """The curve of the latent belief: under a warp, too, EUR depends on rho alone."""
    assert isinstance(belief.latent, GaussianBelief)
    of, log_scale = profile_curve(loss, belief.latent, lambda table: replaced(belief, latent=table))
    return lambda block: of(block.latent), log_scale


def curve_form(prepare: Callable[[Any, Any], Reduction]) -> Form:
    """A form that looks curves up."""
    return Form("profile curve EUR_c(rho)", prepare, _numbers, context_numbers=4096)


def _numbers(loss: Any, belief: Any) -> int:  # noqa: ARG001 (any such belief)
    return 28 if loss.finite_actions else 10


register(ANY, ANY, WarpedGaussianBelief, replace(curve_form(warped_profile_curve), serves=over_one_gaussian))
register(ANY, ANY, GaussianBelief, with_totals(curve_form(profile_curve), smooth_curves))
