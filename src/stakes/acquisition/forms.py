"""Which computation runs: the general route, or a shortcut that was registered for the pair at hand.

A form prepares, for one loss and the contexts of one belief, how to turn a block of candidates into their expected
reductions. The table is keyed on exact types, so that a form never meets a pair it was not made for.
Sizes: N candidates, M contexts, n candidates of a block, J cells, D statistics; of members at the end, K members, Q
ways to share them out, d coordinates of an act; a distribution written as a row has D = P G of its panels and nodes,
and P + 1 more where mass sits in points.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

from array_api_compat import device

from stakes._utils.arguments import implements
from stakes._utils.array import Array, constant, double, filled, log_sum, namespace, on_host, replaced, slices
from stakes.beliefs import (
    Belief,
    CategoricalEnsemble,
    DistributionBelief,
    GaussianMixtureBelief,
    Integrand,
    LogMomentBelief,
    NormalEnsemble,
    Reference,
    SymmetricNodes,
    VectorNormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.beliefs.base import RefinableBelief, ResolvingBelief, SimplifiedBelief
from stakes.beliefs.outcomes import Automatic
from stakes.beliefs.quadrature import SPACING, Resolved
from stakes.beliefs.warped import Unwarped
from stakes.exceptions import AccuracyWarning, StakesError
from stakes.losses import AnyLoss, DistributionLoss, FiniteChoice, LogScore, Loss, PerContext, WeightedBregman
from stakes.losses.base import missing_members
from stakes.losses.bregman import LogDomainLoss, log_domain, near_domain
from stakes.losses.distributional import QuantileScore
from stakes.losses.distributions import Distribution
from stakes.losses.domains import Classes, Domain, Interval, Vectors, target_axes
from stakes.losses.weights import ExponentialWeight, InterpolatedWeight, Weight, as_weight


class ANY:
    """In place of a type of loss or of weight when a form is registered: all of them.

    Examples:
        >>> from stakes import GaussianBelief
        >>> from stakes.acquisition import ANY, Form, register
        >>> class Stubborn(GaussianBelief):  # whose targets no label changes
        ...     pass
        >>> nothing = Form("no label helps", lambda loss, belief: (lambda block: 0.0 * block.rho, 0.0 * belief.mean))
        >>> register(ANY, ANY, Stubborn, nothing)  # for every loss with every weight
    """


Reduction: TypeAlias = tuple[Callable[[Any], Array], Array]
"""What a form prepares for fixed contexts: a function from a block of the belief to its expected reductions [n, M], and
the log of the scale [M] by which those are still to be multiplied."""


@dataclass(frozen=True)
class Total:
    """A way to sum expected reductions over contexts without computing them one by one.

    Args:
        prepare: From a loss, a belief and the shares [M] of contexts to a function: a block of candidates over these
            contexts to [n], the sums over contexts of share times reduction.
        numbers: From a loss and a belief to how many numbers it holds for each candidate of a block.
        in_logs: Whether the function gives logarithms of sums, which may be of any scale.

    Examples:
        >>> import numpy as np
        >>> from stakes import BrierLoss, CategoricalEnsemble, find_form
        >>> members = np.random.default_rng(0).dirichlet([1.0, 1.0], size=(10, 5))  # [N, K, C]
        >>> form = find_form(BrierLoss(), CategoricalEnsemble(members, members))
        >>> form.name, type(form.total).__name__
        ('one matrix over members for all contexts', 'Total')
    """

    prepare: Callable[[Any, Any, Array], Callable[[Any], Array]]
    numbers: Callable[[Any, Any], int]
    in_logs: bool = False


def _few_numbers(loss: Any, belief: Any) -> int:  # noqa: ARG001 (whatever they are)
    return 8


def _always(loss: Any, belief: Any) -> bool:  # noqa: ARG001 (whatever they are)
    return True


@dataclass(frozen=True)
class Form:
    """A way to compute expected reductions for some pairs of a loss and a belief.

    Args:
        name: What it is, for people.
        prepare: From a loss and a belief to a function and a log scale: the function takes a block of candidates over
            the same contexts to its expected reductions [n, M], over exp(log scale [M]).
        numbers: From a loss and a belief to how many numbers it holds for each candidate and context of a block.
        context_numbers: How many numbers it holds for each context while it prepares.
        total: How scores are summed over contexts, where there is a quicker way than one by one.
        serves: Whether it is meant for this very loss and belief, whose types it was registered for.
        otherwise: The form for those that it is not meant for; None: the next that was registered, or the general
            route.

    Examples:
        >>> import numpy as np
        >>> from stakes import GaussianBelief, SquaredError, score
        >>> from stakes.acquisition import Form
        >>> form = Form("rho v", lambda loss, belief: (lambda block: block.rho * belief.variance, np.zeros(1)))
        >>> belief = GaussianBelief(mean=[0.0], variance=[2.0], candidate_variance=[1.0], covariance=[[0.5]])
        >>> score(SquaredError(), belief, form=form)
        array([0.25])
    """

    name: str
    prepare: Callable[[Any, Any], Reduction]
    numbers: Callable[[Any, Any], int] = field(default_factory=lambda: _few_numbers)
    context_numbers: int = 8
    total: Total | None = None
    serves: Callable[[Any, Any], bool] = field(default_factory=lambda: _always)
    otherwise: Form | None = None


_FORMS: dict[tuple[type, type | None, type], Form] = {}


def register(loss: type, weight: type | None, belief: type, form: Form) -> None:
    """Let a form serve one type of loss, of weight and of belief, in place of the general route.

    Types are exact, so that a form never meets a pair it was not made for. A form must agree with `expected_regret`,
    which stays available: test it against that.

    Args:
        loss: The type of the loss; `ANY`, with `ANY` for the weight, for every loss.
        weight: The type of its weight; None for no weight, `ANY` for every weight (or none) without a form of its own.
        belief: The type of the belief.
        form: What runs for these types.

    Raises:
        StakesError: If a form is registered for these types already.

    Examples:
        >>> import numpy as np
        >>> from stakes import GaussianBelief, SquaredError, find_form, register
        >>> from stakes.acquisition import Form
        >>> class Halved(SquaredError):
        ...     "Half of squared error, were its methods written."
        >>> def prepare(loss, belief):
        ...     return lambda block: block.rho * belief.variance / 2, np.zeros(belief.n_contexts)
        >>> register(Halved, None, GaussianBelief, Form("half of rho v", prepare))
        >>> find_form(Halved(), GaussianBelief([0.0], [1.0], [1.0], [[0.5]])).name
        'half of rho v'
    """
    key = (loss, weight, belief)
    if key in _FORMS:
        raise StakesError(f"{_FORMS[key].name!r} is registered for {[getattr(part, '__name__', part) for part in key]}")
    _FORMS[key] = form


def find_form(loss: AnyLoss, belief: Belief) -> Form:
    """Tell which form `expected_reduction` and `score` will run for a pair.

    Args:
        loss: What being wrong costs.
        belief: What is believed of labels and targets.

    Returns:
        The form; its `name` says what it is.

    Raises:
        TypeError: If one is no loss or no belief, or if the loss is not defined wherever the target can fall.

    Examples:
        >>> from stakes import GaussianBelief, Linex, SquaredError, find_form
        >>> belief = GaussianBelief(mean=[0.0], variance=[1.0], candidate_variance=[1.0], covariance=[[0.5]])
        >>> find_form(Linex(2.0), belief).name
        'closed form: alpha^2 rho v / 2'
        >>> find_form(SquaredError(lambda z: z**2), belief).name
        'profile curve EUR_c(rho)'
    """
    check_pair(loss, belief)
    if isinstance(loss, PerContext):
        return EACH_CONTEXT
    if (plain := simplest(belief)) is not belief:
        return _of_one_hypothesis(find_form(loss, plain))
    for key in _keys(loss, belief):
        for form in _with_others(_FORMS.get(key)):
            if form.serves(loss, belief):
                return form
    return general_form(loss)


def simplest(belief: Any) -> Any:
    """The belief as the simplest kind that holds it: forms and closed answers of that kind serve it."""
    return belief.simplest() if implements(belief, SimplifiedBelief) else belief


@cache
def _of_one_hypothesis(form: Form) -> Form:
    """The form of a Gaussian belief, for mixtures of one hypothesis."""

    def prepare(loss: Any, belief: Any) -> Reduction:
        of, log_scale = form.prepare(loss, simplest(belief))
        return lambda block: of(simplest(block)), log_scale

    total, found = None, form.total
    if found is not None:

        def totals(loss: Any, belief: Any, shares: Array) -> Callable[[Any], Array]:
            worth = found.prepare(loss, simplest(belief), shares)
            return lambda block: worth(simplest(block))

        total = replace(found, prepare=totals, numbers=lambda loss, belief: found.numbers(loss, simplest(belief)))
    return replace(
        form,
        prepare=prepare,
        numbers=lambda loss, belief: form.numbers(loss, simplest(belief)),
        total=total,
        serves=lambda loss, belief: simplest(belief) is not belief and form.serves(loss, simplest(belief)),
        otherwise=None,
    )


def is_meant_for(form: Form, loss: AnyLoss, belief: Belief) -> bool:
    """Whether a form serves this pair, and was registered for its types; one that never was registered is trusted."""
    if form is GENERAL or form is OVER_DISTRIBUTIONS:
        return form is general_form(loss)
    known = [key for key, first in _FORMS.items() if any(form is each for each in _with_others(first))]
    return (not known or not set(known).isdisjoint(_keys(loss, belief))) and form.serves(loss, belief)


def _keys(loss: AnyLoss, belief: Belief) -> tuple[tuple[type, type | None, type], ...]:
    """Where forms for this pair are registered, the closest first."""
    weight = getattr(loss, "weight", None)
    own = (type(loss), None if weight is None else type(weight), type(belief))
    return own, (own[0], ANY, own[2]), (ANY, ANY, own[2])


def _with_others(form: Form | None) -> Iterator[Form]:
    """A form and those that stand in for it, in turn."""
    while form is not None:
        yield form
        form = form.otherwise


def general_form(loss: AnyLoss) -> Form:
    """The form that is right for this loss under every belief: expected regret, as `expected_regret` computes it."""
    if isinstance(loss, PerContext):
        return EACH_CONTEXT_GENERAL
    return OVER_DISTRIBUTIONS if implements(loss, DistributionLoss) else GENERAL


def check_pair(loss: AnyLoss, belief: Belief) -> None:
    """Refuse what is no loss or no belief, and a loss that is not defined wherever the target can fall."""
    if isinstance(loss, PerContext) and implements(belief, Belief):
        for one in {id(one): one for _, one, _ in loss.runs(belief.n_contexts)}.values():
            check_pair(one, belief)
        return
    if isinstance(loss, type) or not (implements(loss, Loss) or implements(loss, DistributionLoss)):
        missing = missing_members(loss, Loss) if hasattr(loss, "statistics") else ()
        lacking = f", which lacks {' and '.join(missing)}" if missing else ""
        raise TypeError(
            f"the first argument must be a loss such as SquaredError(); got {loss!r}{lacking}. docs/adding_a_loss.md "
            "shows how to write one of your own."
        )
    if not implements(belief, Belief):
        raise TypeError(
            f"the second argument must be a belief such as GaussianBelief or CategoricalEnsemble; got "
            f"{type(belief).__name__}. A belief has the methods of stakes.beliefs.Belief."
        )
    ours, theirs = type(loss).__name__, type(belief).__name__
    if belief.domain in loss.domain:
        if implements(loss, DistributionLoss) and not implements(belief, DistributionBelief):
            raise TypeError(
                f"{ours} needs whole distributions of the target, and {theirs} gives moments only. Use GaussianBelief, "
                "GaussianMixtureBelief, WarpedGaussianBelief or NormalEnsemble, or give it the methods of "
                "stakes.beliefs.DistributionBelief."
            )
        return
    if type(loss.domain) is not type(belief.domain):
        raise TypeError(
            f"{ours} is for {_kind(loss.domain)} targets ({loss.domain}), but {theirs} is a belief about "
            f"{belief.domain}. Use a loss for that kind of target: SquaredError, Linex, ... for reals; LogLoss, "
            "CostMatrix, ... for classes; Mahalanobis for vectors."
        )
    if isinstance(loss.domain, Vectors):
        raise TypeError(
            f"{ours} is for {loss.domain}, but {theirs} is a belief about {belief.domain}. Give a matrix with a row "
            "and a column for each output of the belief, in its order; a row of zeros for one that does not matter."
        )
    if isinstance(loss.domain, Classes):
        raise TypeError(
            f"{ours} is for {loss.domain}, but {theirs} is a belief about {belief.domain}. Give one weight "
            "or one row of costs for each class, in the order of the belief's columns; or a belief about all of them: "
            "`classes` of rank and belief_of names those that no label has had, too."
        )
    raise TypeError(
        f"{ours} needs targets in {loss.domain}, but {theirs} puts mass on {belief.domain}, and nothing is clipped. "
        "Use a belief that keeps to the domain (a model of the logarithm of the target, or CountProcess for counts), "
        "or a loss for all reals."
    )


def _kind(domain: Domain) -> str:
    return {Classes: "class", Vectors: "vector"}.get(type(domain), "real")


_LOG_SPAN = 300.0  # of log T, up to which plain numbers hold the moments of w and w T everywhere
_LOG_SPAN_AT_KINKS = 150.0  # the same where panels split at breakpoints, but not in steps that a steep T asks for
_FINEST_IN_LOGS = SPACING / 8.0  # of even nodes that logarithms are summed on
_SHARP = 0.4  # of the widest panel that resolves a weight: what is no narrower is as smooth as the density
_MOST_PLACES = 12  # where a weight is sharp, for panels around each of them
_NEAR_SPAN = 20.0  # of log T, up to which T / T(reference) - 1 has all digits that T has


def by_logarithms(loss: AnyLoss, belief: Belief) -> LogDomainLoss | None:
    """The loss by logarithms, where it has them, the belief knows such moments and plain numbers do not hold them."""
    found = in_domain(loss, belief)
    return found if isinstance(found, LogDomainLoss) else None


def in_domain(loss: Any, belief: Belief) -> Any:
    """The loss as plain numbers hold its moments: by logarithms, near 1, or as it is."""
    if not isinstance(loss, WeightedBregman) or not isinstance(belief, LogMomentBelief):
        return loss
    if (logs := log_domain(loss)) is None:
        return loss
    span, most = belief.log_span(logs), _LOG_SPAN_AT_KINKS if loss.breakpoints else _LOG_SPAN
    if span > most:
        return replaced(logs, loss=_with_places(loss, logs, belief))
    return near_domain(loss) if span < _NEAR_SPAN else loss


class _PlacedWeight(Weight):
    """A weight of a user whose steep places were looked for, and are its breakpoints."""


def _with_places(loss: WeightedBregman, logs: LogDomainLoss, belief: Any) -> WeightedBregman:
    """The loss with breakpoints where its weight is steep: under the mass of w, and under that of w T."""
    weight = as_weight(loss.weight)
    if weight is None or isinstance(weight, ExponentialWeight | InterpolatedWeight | _PlacedWeight):
        return loss
    if not hasattr(belief, "resolved"):
        return loss
    log_weight = weight.logarithm

    def log_raised(z: Array) -> Array:
        return log_weight(z) + logs.log_ratio(z, namespace(z).ones_like(z))

    places = set(weight.breakpoints)
    for log in (log_weight, log_raised):
        found = belief.resolved(LogScore(Weight(weight, log, weight.breakpoints)))
        if found.spacing < _FINEST_IN_LOGS:
            widest = max(found.scales, default=0.0)
            sharp = [edge for edge, scale in zip(found.edges, found.scales, strict=True) if scale < _SHARP * widest]
            sharp = sharp if len(sharp) <= _MOST_PLACES else []  # steep all along a stretch, which even nodes follow
            edges = constant(sharp, belief.like)
            places |= set(on_host(found.of.warp.forward(edges) if isinstance(found.of, Unwarped) else edges).tolist())
    return replaced(loss, weight=_PlacedWeight(weight, log_weight, tuple(places)))


def in_plain_domain(loss: Any, belief: Belief) -> Any:
    """The loss near 1 where that keeps digits, with its steep places where it goes by logarithms, else as it is.

    `by_logarithms` is asked for the loss in logarithms.
    """
    found = in_domain(loss, belief)
    return found.loss if isinstance(found, LogDomainLoss) else found


def check_in_range(loss: Any, belief: Belief, moments: Array) -> None:
    """Refuse moments [..., J, D] of numbers that plain numbers do not hold, of a belief that knows no logarithms.

    Where E[w] has underflowed in a cell, its regret is taken for nothing, which is wrong if the cell has a part in
    E[w T] that counts.
    """
    if not isinstance(loss, WeightedBregman) or isinstance(belief, LogMomentBelief):
        return
    if not isinstance(loss.domain, Interval):
        return
    xp = namespace(moments)
    gone = moments[..., :1] <= xp.finfo(moments.dtype).smallest_normal ** 0.5
    sizes = abs(moments[..., 1:])
    lost = xp.sum(xp.where(gone, sizes, xp.zeros_like(sizes)), axis=-2)
    held = xp.all(xp.isfinite(moments)) & xp.all(lost <= TOLERABLE * xp.sum(sizes, axis=-2))
    if not bool(held):
        raise FloatingPointError(
            f"moments of {getattr(loss, 'name', type(loss).__name__)} under {type(belief).__name__} leave the range of "
            "numbers: E[w] and E[w T] cannot both be held. Give targets in smaller units and the loss a smaller rate, "
            "or give the belief the methods of stakes.beliefs.LogMomentBelief, which keep logarithms."
        )


def resolve(loss: AnyLoss, belief: Belief) -> Any:
    """The loss as the belief integrates it: with the places where it is steep, found once."""
    if not isinstance(belief, ResolvingBelief):
        return loss
    if by_logarithms(loss, belief) is not None:  # a rule of its own
        return belief.resolved(Resolved(loss))
    return belief.resolved(loss)


def prepare_general(loss: AnyLoss, belief: Any, integrand: Any) -> Reduction:
    """The general route for a loss that was resolved already."""
    return (_over_distributions if isinstance(loss, DistributionLoss) else _over_moments)(loss, belief, integrand)


Prepare: TypeAlias = Callable[[Any, Any, Any], Reduction]
"""A way to prepare reductions for a loss that was resolved already: of a loss, a belief and the integrand."""


def settled_effort(loss: AnyLoss, belief: Any, integrand: Any, prepare: Prepare = prepare_general) -> int:
    """How often the rule of labels is refined until two of them agree on some pairs, by the general route or `prepare`.

    A warning says what is left where they do not, and by how much two rules of targets differ where these are rough.
    """
    if not belief.n_candidates or not isinstance(integrand, Resolved):
        return 0
    exact = bool(loss.finite_actions)  # labels are integrated between switching points
    rough, adapts = _is_rough(loss, belief, integrand), not exact and _adapts(belief)
    if not (rough or adapts):
        return 0
    few, error = _few(belief), integrand.error
    nothing, values = _nothing(loss, few, integrand), prepare(loss, few, integrand)[0](few)
    if rough:
        error += relative_gap(values, prepare(loss, few, integrand.refined())[0](few), nothing)
    effort = 0
    if adapts or (isinstance(few, RefinableBelief) and not exact):
        effort, gap = _agreed(loss, few, integrand, values, nothing, _MOST_EFFORT if adapts else 1, prepare)
        error += gap
    warn_of_error(loss, error)
    return effort


def _adapts(belief: Any) -> bool:
    """Whether the rule of labels is ours to refine."""
    return isinstance(getattr(belief, "rule", None), Automatic)


def _agreed(
    loss: Any, few: Any, integrand: Any, values: Array, nothing: Array, most: int, prepare: Prepare
) -> tuple[int, float]:
    """The first of `most` rules of labels with which the next agrees, or the last of them; the error that is left."""
    gap = 0.0
    for effort in range(most):
        few = few.refined()
        others = prepare(loss, few, integrand)[0](few)
        gap, values = relative_gap(values, others, nothing), others
        if gap <= _AGREED:
            return effort, gap
    return most - 1, gap


def _is_rough(loss: Any, belief: Any, integrand: Any) -> bool:
    """Whether statistics are so steep that they ask for panels, or for more nodes than usual."""
    if by_logarithms(loss, belief) is not None:
        return loss.weight is not None
    return bool(integrand.edges or integrand.error)


def _refined(belief: Any, effort: int) -> Any:
    """The belief with its rule refined so often."""
    for _ in range(effort):
        belief = belief.refined()
    return belief


def with_effort(of: Callable[[Any], Array], effort: int) -> Callable[[Any], Array]:
    """A function of blocks of candidates with a finer rule of labels: some of them at a time, as cells are more."""
    if not effort:
        return of

    def finer(block: Any) -> Array:
        parts = slices(block.n_candidates, max(1, block.n_candidates >> effort))
        found = [of(_refined(block.take(part, slice(None)), effort)) for part in parts]
        return namespace(block.like).concat(found, axis=0)

    return finer


def _warn_of_nodes(loss: AnyLoss, belief: Any) -> None:
    """For vectors: by how much other nodes move a few reductions, the largest of four times four."""
    rule = getattr(belief, "rule", None)
    if not isinstance(rule, SymmetricNodes) or not belief.n_candidates:
        return
    few, error = _few(belief), 0.0
    values, nothing = prepare_general(loss, few, loss)[0](few), _nothing(loss, few, loss)
    for other in rule.others():
        again = replaced(few, rule=other)
        error = max(error, 2.0 * relative_gap(values, prepare_general(loss, again, loss)[0](again), nothing))
    warn_of_error(loss, error, "Give the belief more nodes: rule=SymmetricNodes(outer=..., inner=...).")


def _few(belief: Any) -> Any:
    """Some of the candidates and contexts, whose integration is checked: from all over them."""
    counts = zip((belief.n_candidates, belief.n_contexts), _FEW_PAIRS, strict=True)
    return belief.take(*(slice(0, None, max(1, math.ceil(count / most))) for count, most in counts))


def _nothing(loss: Any, belief: Any, integrand: Any) -> Array:
    """[M]: reductions that are rounding beside what it is worth to know the target, of which no error matters."""
    if isinstance(loss, DistributionLoss):
        _, distribution, marks = today(loss, belief, integrand)
        return _QUANTILE_ROUNDING * abs(loss.uncertainty(distribution, marks))
    if by_logarithms(loss, belief) is not None:
        return filled(belief.n_contexts, 0.0, belief.like)
    reference = belief.reference(integrand)
    action = loss.action(belief.moments(integrand, reference))
    costs = of_action(loss, integrand, action, partial(regret_of_target, loss))
    return (NO_WORTH if loss.finite_actions else _ROUNDING) * belief.moments(costs, reference)[:, 0]


def _expected_regret(loss: Loss, belief: Belief) -> Reduction:
    loss = in_plain_domain(loss, belief)
    integrand = resolve(loss, belief)
    effort = settled_effort(loss, belief, integrand)
    _warn_of_nodes(loss, belief)
    of, log_scale = _over_moments(loss, belief, integrand)
    return with_effort(of, effort), log_scale


def _over_moments(loss: Any, belief: Belief, integrand: Any) -> Reduction:
    """EUR(x; c) = sum_y E[w 1_y] D(a_y, a): the expected regret of keeping today's answer after seeing y."""
    logs, reference = by_logarithms(loss, belief), belief.reference(integrand)
    if logs is not None:
        logs = replaced(logs, width=integrand.width if isinstance(integrand, Resolved) else 1.0)
        return lambda block: _regret_by_logarithms(logs, block, reference), reference.log_scale
    point = None if reference.point is None else reference.point[:, None, ...]  # [M, 1] or [M, 1, d]

    def of(block: Belief) -> Array:
        xp = namespace(block.like)
        split = block.split_moments(integrand, reference)  # [n, M, J, D]
        check_in_range(loss, belief, split)
        action = loss.action(xp.sum(split, axis=2))  # [n, M, d]
        return xp.sum(loss.regret(split, action[:, :, None, :], point), axis=2)  # [n, M]

    return of, reference.log_scale


def _regret_by_logarithms(logs: LogDomainLoss, block: Any, reference: Reference) -> Array:
    """[n, M]: the same from the logarithms of split moments."""
    split = block.log_split_moments(logs, reference)  # [n, M, J, 2]
    action = logs.action(log_sum(split, axis=2))  # [n, M, 1]
    return namespace(split).sum(logs.regret(split, action[:, :, None, :]), axis=2)


Cost: TypeAlias = Callable[[Array, Array, Array | None], Array]
"""Targets z, an action and the reference point to costs [...]."""


def of_action(loss: Loss, integrand: Any, action: Array, cost: Cost) -> Integrand:
    """What a fixed action [M, d] at each context costs, as the one statistic to take the moment of."""

    def statistics(z: Array, reference: Array | None = None) -> Array:
        between = (1,) * (1 if reference is None else reference.ndim - 1 - target_axes(loss.domain))
        here = namespace(z).reshape(action, (action.shape[0], *between, action.shape[1]))
        return cost(z, here, reference)[..., None]

    costs: Any = SimpleNamespace(
        domain=loss.domain,
        breakpoints=loss.breakpoints,
        finite_actions=False,
        log_magnitudes=loss.log_magnitudes,
        statistics=statistics,
    )
    return integrand.with_integrand(costs) if isinstance(integrand, Resolved) else costs


def regret_of_target(loss: Loss, z: Array, action: Array, point: Array | None) -> Array:
    """[...]: what the action loses once the target is known to be z."""
    return loss.regret(loss.statistics(z, point), action, point)


def _cell_numbers(loss: Loss, belief: Belief) -> int:
    """J D for the split moments, and as much for each of the few temporaries of the regret."""
    if by_logarithms(loss, belief) is not None:
        return _LOG_NUMBERS
    if isinstance(belief.domain, Classes) and belief.domain.count is not None:
        one_class = filled((1, belief.domain.count), 1.0 / belief.domain.count, double(belief.like))
        n_statistics = loss.statistics(one_class, None).shape[-1]
    else:
        one = belief.take(slice(None), slice(0, 1))
        n_statistics = one.moments(loss, one.reference(loss)).shape[-1]
    return int(8 * belief.n_cells(loss) * n_statistics)


_FEW_PAIRS = (8, 2)  # candidates and contexts whose integration is checked
_MOST_EFFORT = 4  # refinements of the rule of labels that are tried
_AGREED = 2e-7  # relative difference of two rules that agree
_ROUNDING = 1e-14  # what rounding may leave of a regret, as a share of the worth of knowing the target
_QUANTILE_ROUNDING = 1e-10  # the same where quantiles are looked up, as a share of the uncertainty
NO_WORTH = 1e-12
"""The same for a decision."""
TOLERABLE = 1e-6
"""Relative errors that no warning is given of."""


def relative_gap(values: Array, others: Array, nothing: Array | None = None) -> float:
    """A bound on the error of values, of which a finer rule makes others: twice their largest relative difference.

    Values, and differences, that are no larger than `nothing` are as good as 0.
    """
    xp = namespace(values)
    counts = others > 0 if nothing is None else others > nothing
    gaps = abs(values - others)
    gaps = xp.where(counts if nothing is None else counts & (gaps > nothing), gaps, xp.zeros_like(values))
    return 2.0 * float(xp.max(gaps / xp.where(counts, others, xp.ones_like(others))))


def warn_of_error(loss: Any, error: float, *advice: str) -> None:
    """Warn where a relative error is more than nobody minds."""
    if error > TOLERABLE:
        warning = AccuracyWarning(getattr(loss, "name", type(loss).__name__), error, *advice)
        warnings.warn(warning, stacklevel=_caller())


def _caller() -> int:
    """The stack level, for the function that asks, of the first frame outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__.split(".")[0] + "."):
        frame, level = frame.f_back, level + 1
    return level


_LOG_NUMBERS = 2**15  # of a thousand cells or so, and a few temporaries
GENERAL = Form("expected regret over split moments", _expected_regret, _cell_numbers, context_numbers=2048)


def today(loss: DistributionLoss, belief: Any, integrand: Any = None) -> tuple[Reference, Distribution, Array]:
    """The reference, the distribution w(z) p(z | c) of each context, and the marks [M, B] where its panels split."""
    integrand = resolve(loss, belief) if integrand is None else integrand
    reference = belief.reference(integrand)
    unmarked = belief.distribution(integrand, reference, filled((belief.n_contexts, 0), 0.0, belief.like))
    marks = loss.marks(unmarked)
    return reference, belief.distribution(integrand, reference, marks) if marks.shape[-1] else unmarked, marks


def _regret_over_distributions(loss: DistributionLoss, belief: Any) -> Reduction:
    integrand = resolve(loss, belief)
    effort = settled_effort(loss, belief, integrand)
    of, log_scale = _over_distributions(loss, belief, integrand)
    return with_effort(of, effort), log_scale


def _over_distributions(loss: Any, belief: Any, integrand: Any) -> Reduction:
    """EUR(x; c) = sum_y of the regret of keeping today's answer under the distribution in cell y."""
    reference, _, marks = today(loss, belief, integrand)
    return lambda block: block.regret_over_cells(loss.regret, integrand, reference, marks), reference.log_scale


def _node_numbers(loss: DistributionLoss, belief: Any) -> int:
    """Both distributions at every node of every cell, and a few temporaries of the regret."""
    return int(12 * belief.n_nodes(loss))


OVER_DISTRIBUTIONS = Form(
    "expected regret over split distributions", _regret_over_distributions, _node_numbers, context_numbers=16384
)


# A loss for each context


def each_context(prepare: Callable[[Any, Any], Reduction], loss: PerContext, belief: Any) -> Reduction:
    """What is prepared for each of the losses, side by side."""
    found, scales = [], []
    for part, one, prices in loss.runs(belief.n_contexts):
        here = belief.take(slice(None), part)
        of, log_scale = prepare(one, here)
        found.append((part, of))
        scales.append(
            double(log_scale) if prices is None else double(log_scale) + constant(prices_log(prices), here.like)
        )

    def reductions(block: Any) -> Array:
        xp = namespace(block.like)
        return xp.concat([double(of(block.take(slice(None), part))) for part, of in found], axis=1)

    return reductions, namespace(belief.like).concat(scales)


def prices_log(prices: Any) -> Any:
    """[m]: the logarithms of prices, in NumPy."""
    return [math.log(price) for price in prices]


def _each_numbers(choose: Callable[[Any, Any], Form], loss: PerContext, belief: Any) -> int:
    """The most that one of the losses asks for, by the first of each type."""
    kinds = {type(one): (part, one) for part, one, _ in reversed(list(loss.runs(belief.n_contexts)))}
    blocks = ((belief.take(slice(None), part), one) for part, one in kinds.values())
    return max(choose(one, here).numbers(one, here) for here, one in blocks)


EACH_CONTEXT = Form(
    "each context under its own loss",
    partial(each_context, lambda one, here: find_form(one, here).prepare(one, here)),
    partial(_each_numbers, find_form),
    2048,
)
EACH_CONTEXT_GENERAL = Form(
    "each context under its own loss, expected regret",
    partial(each_context, lambda one, here: general_form(one).prepare(one, here)),
    partial(_each_numbers, lambda one, _: general_form(one)),
    16384,
)


# Members of an ensemble, or hypotheses of a mixture


def n_members(belief: Belief) -> int:
    """How many members the belief has, one of which can be taken for the truth; 0 where there are none."""
    shares = member_shares_of(simplest(belief))
    return 0 if shares is None else int((shares > 0).sum())


def member_shares_of(belief: Any) -> Any:
    """[K]: the shares of members or hypotheses, in NumPy; None for a belief without any."""
    belief = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
    if isinstance(belief, GaussianMixtureBelief):
        weights = belief.weights
    elif isinstance(belief, VoteEnsemble | CategoricalEnsemble | NormalEnsemble | VectorNormalEnsemble):
        weights = belief.member_weights
    else:
        return None
    shares = on_host(double(weights))
    return shares / shares.sum()


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A loss of distributions, under members whose distributions share their nodes: moments are written as rows."""

    loss: DistributionLoss
    members: Distribution
    """[M, K]"""
    marks: Array
    """[M, B]"""
    finite_actions: bool = False

    def member_moments(self) -> Array:
        """[M, K, D]: the distribution of each member."""
        xp, mass = namespace(self.members.mass), self.members.mass
        rows = xp.reshape(mass, (*mass.shape[:2], -1))
        return rows if self.members.edge_mass is None else xp.concat([rows, self.members.edge_mass], axis=2)

    def action(self, moments: Array) -> Array:
        """[..., D]: today's distribution is what the answer is read off."""
        return moments

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: that of the loss; contexts are the last axis but one of `moments`, and the first of `action`."""
        return self.loss.regret(self._distribution(moments), self._distribution(action), self.marks[:, None, :])

    def act(self, moments: Array) -> Array:
        """[M, Q, d]: the answer to distributions [M, Q, D]: a quantile, or the distribution itself."""
        if not isinstance(self.loss, QuantileScore):
            return moments
        each = self._distribution(moments)
        return each.offset_at(self.loss.level * each.total())[..., None]

    def charge(self, moments: Array, act: Array) -> Array:
        """[M, Q]: what an act costs under distributions [M, Q, D], up to what does not depend on the act."""
        if isinstance(self.loss, QuantileScore):
            return self.loss.charge(self._distribution(moments), act[..., 0])
        return self.loss.regret(self._distribution(moments), self._distribution(act), self.marks[:, None, :])

    def _distribution(self, rows: Array) -> Distribution:
        xp, each = namespace(rows), self.members
        panels = each.mass.shape[2:]
        count = math.prod(panels)
        mass = xp.reshape(rows[..., :count], (*rows.shape[:-1], *panels))
        edge_mass = None if each.edge_mass is None else rows[..., count:]
        return Distribution(each.origin, each.edges, each.nodes, each.step, mass, edge_mass)


class MemberTable(NamedTuple):
    """The statistics of a loss as each member expects them, and what follows from them."""

    loss: Any
    """The loss itself, by logarithms, or of tabulated distributions"""
    expected: Array
    """[M, K, D]: E[S | c, k], or logarithms"""
    reference: Reference
    log_price: Any = 0.0
    """[M]: the logs of prices by which the loss is multiplied; one for all"""

    @classmethod
    def of(cls, loss: AnyLoss, belief: Any, *, marked: bool = True) -> MemberTable:
        """The table of an ensemble or a mixture.

        Args:
            loss: What being wrong costs.
            belief: One that knows the moments of its members.
            marked: Whether distributions split where today's answer is, as the regret of keeping that asks for.
        """
        loss, reference = in_domain(loss, belief), belief.reference(loss)
        if isinstance(loss, DistributionLoss):
            if marked:
                reference, _, marks = today(loss, belief)
            else:
                marks = filled((belief.n_contexts, 0), 0.0, double(belief.like))
            integrand = loss if marked else resolve(loss, belief)
            table = Tabulated(loss, belief.member_distributions(integrand, reference, marks), marks)
            return cls(table, table.member_moments(), reference)
        if isinstance(loss, LogDomainLoss):
            return cls(loss, belief.member_log_moments(loss, reference), reference)  # [M, K, 2]
        return cls(loss, double(belief.member_moments(loss, reference)), reference)

    @property
    def in_logs(self) -> bool:
        """Whether moments, and so the shares of members, are logarithms."""
        return isinstance(self.loss, LogDomainLoss)

    @property
    def point(self) -> Array | None:
        """[M, 1] or [M, 1, d]: from where statistics are measured."""
        return None if self.reference.point is None else self.reference.point[:, None, ...]

    @property
    def log_scale(self) -> Array:
        """[M]: the log of the scale that was taken out, times the price."""
        return double(self.reference.log_scale) + self.log_price

    def today(self, belief: Any) -> Array:
        """[M, d]: the act of all members of the belief that the table is of."""
        if isinstance(self.loss, Tabulated) or type(self.loss) is FiniteChoice:
            members = double(belief.member_weights)[None, :]
            moments = namespace(members).matmul(members, self.expected)[:, 0, :]
            return self.loss.action(moments)
        if self.in_logs:
            return self.loss.action(belief.log_moments(self.loss, self.reference))
        return self.loss.action(double(belief.moments(self.loss, self.reference)))

    def acts(self, log_shares: Array) -> Array:
        """[M, Q, d]: the best acts where members have shares exp([Q, K]) or exp([M, Q, K]), of any total."""
        xp = namespace(log_shares)
        if self.in_logs:
            return self.loss.action(log_sum(log_shares[..., None] + self.expected[:, None, ...], axis=2))
        moments = xp.matmul(xp.exp(log_shares), self.expected)
        return self.loss.act(moments) if isinstance(self.loss, Tabulated) else self.loss.action(moments)

    def charges(self, members: Any, acts: Array) -> Array:
        """[M, Q]: what acts [M, Q, d] cost under one member each [Q], up to what does not depend on the act."""
        xp = namespace(self.expected)
        positions = xp.asarray(members, device=device(self.expected))
        rows = xp.take(self.expected, positions, axis=1)  # [M, Q, D]
        if isinstance(self.loss, Tabulated):
            return self.loss.charge(rows, acts)
        return self.loss.regret(rows, acts, self.point)


def member_tables(loss: AnyLoss, belief: Any, *, marked: bool = True) -> list[tuple[slice, MemberTable]]:
    """Which contexts each table is of, and the tables: one, or under a loss for each context those of neighbours.

    Losses with finitely many actions differ by the costs that they expect and by nothing else: neighbours with
    such losses share a table of costs, in which an action that one of them lacks is its last once more.

    Args:
        loss: What being wrong costs.
        belief: One that knows the moments of its members.
        marked: As in `MemberTable.of`.
    """
    if not isinstance(loss, PerContext):
        return [(slice(0, belief.n_contexts), MemberTable.of(loss, belief, marked=marked))]
    found: list[tuple[slice, list[MemberTable]]] = []
    for part, one, prices in loss.runs(belief.n_contexts):
        table = MemberTable.of(one, belief.take(slice(None), part), marked=marked)
        if prices is not None:
            table = table._replace(log_price=constant(prices_log(prices), double(belief.like)))
        if found and _by_costs(table.loss) and _by_costs(found[-1][1][-1].loss):
            found[-1] = (slice(found[-1][0].start, part.stop), [*found[-1][1], table])
        else:
            found.append((part, [table]))
    return [(part, tables[0] if len(tables) == 1 else _table_of_costs(tables)) for part, tables in found]


def _by_costs(loss: Any) -> bool:
    """Whether a loss acts on the costs of actions as `FiniteChoice` does, and not in a way of its own."""
    own = type(loss)
    return isinstance(loss, FiniteChoice) and (own.action, own.regret) == (FiniteChoice.action, FiniteChoice.regret)


def _table_of_costs(tables: list[MemberTable]) -> MemberTable:
    xp, size = namespace(tables[0].expected), max(table.expected.shape[2] for table in tables)
    rows = [
        xp.concat([table.expected, *[table.expected[..., -1:]] * (size - table.expected.shape[2])], axis=2)
        for table in tables
    ]
    log_scale = xp.concat([table.log_scale for table in tables])
    return MemberTable(FiniteChoice(), xp.concat(rows), Reference(None, log_scale))
