"""What a batch is worth when the members are few: the truth is left out of the belief that acts.

Under K members a few labels soon tell which *member* is right, and the joint reduction then promises the loss of
certainty; but no member is the truth. So each member k in turn is taken for the truth: labels y are those of k, the
*others* are weighed by their likelihood of y and act, and k is charged with that act and with the others' act before
any label,

    sum_k q_k E_{y ~ k} [ L_k(a_others) - L_k(a_others(y)) ],          L_k(a) = E[l(z, a) | k, y],

which is what a belief of K - 1 members gains on a truth that is one more draw from where they came from. It may be
below 0: labels that single out one of a few wrong members make answers worse.

Labels of classes are enumerated where they are few, those of numbers drawn; draws of a member spread evenly over each
label's distribution (a Latin hypercube), and are the same for every batch. Sizes: N candidates, M contexts, K members,
C classes, n labels of a batch, L numbers of a label, R draws, Q rows (a member that is the truth, and labels of it).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from array_api_compat import device
from scipy.special import ndtri

from stakes._utils.arguments import as_generator, is_true_or_false
from stakes._utils.array import Array, constant, double, filled, log_of, namespace, on_host, replaced, slices
from stakes.acquisition.batch_states import obstacle
from stakes.acquisition.forms import MemberTable, check_pair, member_shares_of, member_tables, n_members, simplest
from stakes.acquisition.scores import check_finite, checked_context_weights
from stakes.beliefs import (
    Belief,
    CategoricalEnsemble,
    GaussianMixtureBelief,
    WarpedGaussianBelief,
)
from stakes.beliefs.base import Reference
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, PerContext, SquaredError
from stakes.losses.distributional import QuantileScore
from stakes.losses.domains import Classes
from stakes.losses.potentials import NegativeEntropy

Host: TypeAlias = np.ndarray[Any, Any]

_DRAWS, _FEWEST = 3200, 32  # labels of a batch that are drawn in all, and from each member
_AT_ONCE = 2**19  # statistics that are held at a time: what is made of them stays near the cache
_CONTEXTS_AT_ONCE = 2**14  # the same for the targets of hypotheses, whose moments are integrated
_GROUPS = 10  # of members that are left out in turn, for the error
_FEW = 128  # labels, one of each member at least, that tell what leaving out a group changes
_SMOOTHING = 0.03  # of an act under log loss, given to class frequencies where members rule a class out
_JITTER = 1e-10  # of a label's variance: labels that are known from others stay apart by no more
_ROUNDING = 1e-15  # of a total mass of order one
_INSIDE = 1e-12  # draws keep so far from 0 and 1


class HonestReduction(NamedTuple):
    """What labels are worth to members none of which is the truth, for one decision.

    Attributes:
        reduction: The saving; below 0 where the labels would make answers worse. [N] for single candidates.
        error: Its standard error, of all three below.
        member_error: Over members, which are draws themselves, by leaving out groups of them (the jackknife).
        sampling_error: Of drawing labels alone; 0 where they were enumerated.
        context_error: Over contexts, where those are draws of the contexts to come.
        by_member: [K], the saving where each member is the truth, or [N, K].
        unmatched: The share of cases in which no other member allowed the labels, so that the act stayed.
        smoothing: The share of acts that was given to class frequencies: 0.03 under log loss where members rule a class
            out, and 0 otherwise.
        method: "enumerated" or "sampled".

    Examples:
        >>> from stakes import VoteEnsemble, ZeroOne, honest_reduction
        >>> belief = VoteEnsemble(candidates=[[0, 1, 1, 1]], contexts=[[0, 1, 1, 1]], n_classes=2)
        >>> found = honest_reduction(ZeroOne(), belief, [0])
        >>> found.reduction, found.unmatched  # if the first tree is right, no other agrees with its label
        (0.0, 0.25)
    """

    reduction: Any
    error: Any
    member_error: Any
    sampling_error: Any
    context_error: Any
    by_member: Array
    unmatched: Any
    smoothing: float
    method: str


def honest_reduction(
    loss: AnyLoss,
    belief: Belief,
    batch: Sequence[int],
    *,
    pending: Sequence[int] = (),
    context_weights: Any = None,
    draws: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> HonestReduction:
    """What the labels of a given batch are worth together where no member is the truth.

    For each member the others act, before the labels and after, and the member is charged: see the head of this module.
    Where no other member allows the labels, as among votes, the act stays. Log loss under members that rule a class out
    would be infinite: acts are then mixed with 3% of the frequencies of classes. Hypotheses of a mixture are members.

    Args:
        loss: What being wrong costs.
        belief: An ensemble, or a mixture of Gaussian beliefs, also warped, of two members or more.
        batch: Positions of the candidates. The worth is right for a batch that was given; one that was chosen for its
            worth under the same members is worth a little less.
        pending: Positions of candidates whose labels are on their way: the worth comes on top of them.
        context_weights: [M], how often each context comes up (normalised); alike without them.
        draws: Labels of the batch that are drawn from each member, and the most that are enumerated; None for 3,200 of
            all members together, and 32 at least.
        random_state: An int or a `numpy.random.Generator`; the same int draws the same for every batch.

    Returns:
        The saving for one decision, with its errors.

    Raises:
        TypeError: If the belief has no members, or the loss is not defined wherever the target can fall.
        StakesError: If there is one member only, or a position is out of range.

    Examples:
        Six labels tell which of twenty members is right, and the joint reduction promises what that is worth. Where
        none of them is, the labels say less:

        >>> import numpy as np
        >>> from stakes import BrierLoss, CategoricalEnsemble, honest_reduction, select
        >>> slopes = 3.0 * np.random.default_rng(0).normal(size=(20, 3))  # of twenty members
        >>> rows = np.random.default_rng(1).normal(size=(3, 26))
        >>> sure = 1.0 / (1.0 + np.exp(-(slopes @ rows).T))  # [26, K]: the probability of class 1
        >>> members = np.stack([1.0 - sure, sure], axis=-1)
        >>> belief = CategoricalEnsemble(candidates=members[:6], contexts=members[6:])
        >>> promised = select(BrierLoss(), belief, n=6).joint_reduction[-1]
        >>> honest = honest_reduction(BrierLoss(), belief, range(6))
        >>> print(promised.round(2), round(honest.reduction, 2))
        0.2 0.17
    """
    picks, waiting = _checked(batch, belief), _checked(pending, belief, pending=True)
    members = _prepared(loss, belief, context_weights, draws, random_state)
    return _result(members, _on_top(members, waiting, [(*waiting, *picks)]), alone=True)


def honest_scores(
    loss: AnyLoss,
    belief: Belief,
    *,
    context_weights: Any = None,
    draws: int | None = None,
    random_state: int | np.random.Generator = 0,
) -> HonestReduction:
    """What the label of each candidate alone is worth where no member is the truth.

    Args:
        loss: What being wrong costs.
        belief: As in `honest_reduction`.
        context_weights: [M], how often each context comes up (normalised); alike without them.
        draws: Labels that are drawn from each member, and the most that are enumerated, as in `honest_reduction`.
        random_state: An int or a `numpy.random.Generator`.

    Returns:
        Savings [N] for one decision, with their errors.

    Raises:
        TypeError: If the belief has no members, or the loss is not defined wherever the target can fall.
        StakesError: If there is one member only.

    Examples:
        >>> from stakes import VoteEnsemble, ZeroOne, honest_scores
        >>> belief = VoteEnsemble(candidates=[[0, 0, 1, 1, 1, 1], [1] * 6], contexts=[[0, 0, 1, 1, 1, 1]], n_classes=2)
        >>> print(honest_scores(ZeroOne(), belief).reduction.round(3))  # if one of the two is right, the other finds it
        [0.333 0.   ]
    """
    members = _prepared(loss, belief, context_weights, draws, random_state)
    return _result(members, [members.worth((place,)) for place in range(belief.n_candidates)])


def honest_prefixes(
    loss: AnyLoss,
    belief: Belief,
    batch: Sequence[int],
    pending: Sequence[int] = (),
    context_weights: Any = None,
    draws: int | None = None,
    sizes: Sequence[int] | None = None,
) -> HonestReduction | None:
    """The worths [n] of the first 1, 2, .. n of a batch, or of as many as `sizes` say.

    None where the belief has no members to leave out.
    """
    if n_members(belief) < 2 or (len(batch) + len(pending) > 1 and obstacle(belief) is not None):
        return None
    members = _prepared(loss, belief, context_weights, draws, 0)
    waiting = tuple(pending)
    counts = range(1, len(batch) + 1) if sizes is None else sizes
    return _result(members, _on_top(members, waiting, [(*waiting, *batch[:count]) for count in counts]))


class _Setting(NamedTuple):
    """What was asked."""

    loss: AnyLoss
    belief: Any
    context_weights: Host
    """[M]"""
    shares: Host
    """[K]: of members"""
    draws: int
    rng: np.random.Generator


class _Worth(NamedTuple):
    """What one batch is worth, over the scale of the members."""

    by_member: Host
    """[K]"""
    contexts: Host
    """[M]: p(c) times the saving there"""
    replicates: Host
    """[G]: the worth without each group of members"""
    variance: float
    """Of the saving, by drawing labels"""
    unmatched: float
    sampled: bool

    def beyond(self, before: _Worth) -> _Worth:
        """That of the labels on top of those before."""
        return _Worth(
            self.by_member - before.by_member,
            self.contexts - before.contexts,
            self.replicates - before.replicates,
            self.variance + before.variance,
            self.unmatched,
            self.sampled,
        )


class _Members(Protocol):
    """Members that are the truth in turn."""

    setting: _Setting
    groups: _Groups
    scale: float
    smoothing: float

    def worth(self, batch: tuple[int, ...]) -> _Worth:
        """What the labels of a batch are worth, over the scale."""


def _on_top(members: _Members, waiting: tuple[int, ...], batches: list[tuple[int, ...]]) -> list[_Worth]:
    worths = [members.worth(batch) for batch in batches]
    if not waiting:
        return worths
    before = members.worth(waiting)
    return [each.beyond(before) for each in worths]


def _result(members: _Members, worths: list[_Worth], *, alone: bool = False) -> HonestReduction:
    """All of them as arrays, or that of one batch as numbers."""
    shares, weights = members.setting.shares, members.setting.context_weights
    by_member = np.reshape([each.by_member for each in worths], (len(worths), len(shares))) * members.scale
    contexts = np.reshape([each.contexts for each in worths], (len(worths), len(weights))) * members.scale
    reduction = by_member @ shares  # [n]
    replicates = np.reshape([each.replicates for each in worths], (len(worths), -1)) * members.scale
    member_error = members.groups.error(replicates)
    context_error = np.sqrt(np.sum((contexts - reduction[:, None] * weights) ** 2, axis=1))
    sampling_error = np.asarray([math.sqrt(each.variance) for each in worths]) * members.scale
    check_finite(member_error + context_error)
    unmatched = np.asarray([each.unmatched for each in worths])
    numbers = (reduction, np.hypot(member_error, context_error), member_error, sampling_error, context_error)
    like = filled(1, 0.0, members.setting.belief.like)
    *each, table, rest = (constant(value, like) for value in (*numbers, by_member, unmatched))
    fields: list[Any] = [*each, table, rest]
    if alone:
        fields = [*(float(one[0]) for one in each), table[0, :], float(rest[0])]
    method = "sampled" if any(worth.sampled for worth in worths) else "enumerated"
    return HonestReduction._make([*fields, members.smoothing, method])


def _checked(batch: Sequence[int], belief: Belief, *, pending: bool = False) -> tuple[int, ...]:
    name, last, places = "pending" if pending else "batch", belief.n_candidates - 1, tuple(batch)
    for each in places:
        if is_true_or_false(each) or not isinstance(each, Integral) or not 0 <= each <= last:
            raise StakesError(f"{name} must hold positions from 0 to {last}; got {each!r}")
    if len(set(places)) < len(places):
        raise StakesError(f"{name} must hold each candidate once; got {list(places)}")
    if not places and not pending:
        raise StakesError("batch must hold at least one candidate; got none")
    return tuple(int(each) for each in places)


def _prepared(loss: AnyLoss, belief: Belief, context_weights: Any, draws: int | None, random_state: Any) -> _Members:
    """The members, or an error that says what is missing."""
    check_pair(loss, belief)
    belief = simplest(belief)
    shares = member_shares_of(belief)
    if shares is None:
        raise TypeError(
            "an honest worth takes each member of an ensemble, or hypothesis of a mixture, for the truth; "
            f"{type(belief).__name__} has none. Under a Gaussian belief the joint reduction is that of a further draw."
        )
    if int((shares > 0).sum()) < 2:
        raise StakesError("an honest worth needs two members or more: one is left out, and the others act; got 1")
    draws = max(_FEWEST, _DRAWS // len(shares)) if draws is None else draws
    if is_true_or_false(draws) or not isinstance(draws, Integral) or draws < 2:
        raise StakesError(f"draws must be a whole number, 2 or more; got {draws!r}")
    for one in {id(each): each for each in (loss.each if isinstance(loss, PerContext) else (loss,))}.values():
        if isinstance(one, DistributionLoss) and not isinstance(one, QuantileScore) and _has_marks(one, belief):
            raise TypeError(
                f"an honest worth cannot charge {type(one).__name__}: its regret is known at today's marks only. Give "
                "it no marks, or use a loss of stakes."
            )
    weights = on_host(checked_context_weights(context_weights, belief))
    setting = _Setting(loss, belief, weights, shares, int(draws), as_generator(random_state))
    if isinstance(belief, GaussianMixtureBelief | WarpedGaussianBelief):
        return _Hypotheses(setting)
    return _Ensemble(setting)


def _has_marks(loss: DistributionLoss, belief: Any) -> bool:
    none = filled((belief.n_contexts, 0), 0.0, double(belief.like))
    return int(loss.marks(belief.distribution(loss, belief.reference(loss), none)).shape[-1]) > 0


def _log_others(shares: Host) -> Host:
    """[K, K]: the log of the shares of the others, for each member that is the truth."""
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    return _relative(np.where(np.eye(len(logs), dtype=bool), -np.inf, logs))


def _relative(logs: Host) -> Host:
    """Logs [..., K] over their largest, so that shares of any size are in range."""
    top = logs.max(axis=-1, keepdims=True)
    return logs - np.where(np.isfinite(top), top, 0.0)


def _nobody(log_shares: Host) -> Host:
    """[Q, 1]: whether no member has a share."""
    return np.asarray(~(log_shares.max(axis=1, keepdims=True) > -np.inf))


class _Draws:
    """Numbers between 0 and 1 for the labels of members, by their place in the batch: the same for every batch."""

    def __init__(self, setting: _Setting, numbers: int = 1) -> None:
        self.setting, self.numbers, self.known = setting, numbers, []  # type: tuple[_Setting, int, list[Host]]

    def of(self, count: int) -> Host:
        """[K, R, n, L]: in each of R even parts there is one number for each member and label."""
        setting = self.setting
        shape = len(setting.shares), setting.draws, self.numbers
        while len(self.known) < count:
            parts = np.broadcast_to(np.arange(setting.draws)[None, :, None], shape)
            uniform = (setting.rng.permuted(parts, axis=1) + setting.rng.uniform(size=shape)) / setting.draws
            self.known.append(np.clip(uniform, _INSIDE, 1.0 - _INSIDE))
        return np.stack(self.known[:count], axis=2)


class _Rows(NamedTuple):
    """Truths and their labels."""

    truth: Host
    """[Q]: the member that is the truth"""
    mass: Host
    """[Q]: the probability of the labels, given the truth"""
    likelihoods: Host
    """[Q, K]: logs, of the labels under every member"""
    sampled: Host
    """[K]: whether the labels of a member were drawn"""


class _Groups:
    """Groups of members, of which one is left out at a time: the jackknife over members.

    A member counts twice, as a truth and among those who act on others: its own term is one part of what leaving it out
    changes, the acts of all others the other.
    """

    def __init__(self, setting: _Setting) -> None:
        counted = np.cumsum(setting.shares > 0) - 1  # [K]: of members with a weight
        self.count, self.shares = min(_GROUPS, int((setting.shares > 0).sum())), setting.shares
        self.of = np.where(setting.shares > 0, counted % self.count, -1)  # [K]
        self.few = max(1, _FEW // len(setting.shares))

    def without(self, group: int, log_shares: Host, others: Host) -> Host:
        """[Q, K]: shares without the members of a group; those of the `others` where that leaves nobody."""
        gone = self.of == group
        kept, rest = (np.where(gone, -np.inf, each) for each in (log_shares, others))
        kept = np.where(_nobody(kept), rest, kept)
        return _relative(np.where(_nobody(kept), others, kept))

    def replicates(self, by_member: Host, changes: Host) -> Host:
        """[G]: worths without each group, from savings where each member is right [K] and what acts change [G]."""
        each = []
        for group in range(self.count):
            shares = np.where(self.of == group, 0.0, self.shares)
            each.append(by_member @ shares / shares.sum())
        return np.asarray(each) + changes

    def error(self, replicates: Host) -> Host:
        """[n]: the standard error of worths with replicates [n, G]."""
        shares = np.asarray([self.shares[self.of == group].sum() for group in range(self.count)])
        apart = replicates - replicates.mean(axis=1, keepdims=True)
        return np.asarray(np.sqrt(apart**2 @ (1.0 - shares)))


def _tally(
    setting: _Setting, groups: _Groups, rows: _Rows, totals: Host, contexts: Host, unmatched: Host, changes: Host
) -> _Worth:
    """The worth, from savings of rows [Q], what contexts [M] add, and what leaving out groups changes of acts [G]."""
    size, shares = len(setting.shares), setting.shares
    by_member = np.bincount(rows.truth, rows.mass * totals, size)
    squares = np.bincount(rows.truth, rows.mass * (totals - by_member[rows.truth]) ** 2, size)
    variance = np.sum(shares**2 * squares * rows.sampled) / (setting.draws - 1)
    lost = float(np.sum(shares[rows.truth] * rows.mass * unmatched))
    replicates = groups.replicates(by_member, changes)
    return _Worth(by_member, contexts, replicates, float(variance), lost, bool(rows.sampled.any()))


class _Charges:
    """What acts cost at neighbouring contexts of one table."""

    def __init__(self, belief: Any, table: MemberTable) -> None:
        self.belief, self.table = belief, table
        self.costs = _costs_of_actions(table) if table.loss.finite_actions else None
        self.masses = _class_masses(belief, table)  # [M, K, C]
        self.frequencies: Array | None = None  # [C], where the others may rule a class out

    def smoothed(self) -> Array | None:
        """[M, C]: today's acts, to be smoothed by their mean; None where all classes are possible.

        Others that rule a class out are charged infinitely much under log loss where it comes true.
        """
        belief = self.belief
        if self.masses is None:
            return None
        if isinstance(belief, CategoricalEnsemble) and not bool(namespace(belief.contexts).any(belief.contexts == 0)):
            return None
        assert self.table.point is not None
        return self.table.today(belief) + self.table.point[:, 0, :]

    def of(self, log_shares: Host, truth: Host) -> Host:
        """[M, Q]: what the act of members with these shares [Q, K] costs under each truth [Q]."""
        if self.costs is not None:
            return self._decided(constant(np.exp(log_shares), self.table.expected), truth)
        acts = self.table.acts(constant(log_shares, self.table.expected))
        if self.frequencies is not None:
            acts = (1.0 - _SMOOTHING) * acts + _SMOOTHING * (self.frequencies - self.table.point)
        if self.masses is None:
            return np.asarray(check_finite(on_host(self.table.charges(truth, acts))))
        xp, positions = namespace(acts), namespace(acts).asarray(truth, device=device(acts))
        masses, logs = xp.take(self.masses, positions, axis=1), log_of(acts + self.table.point)  # [M, Q, C]
        counted = masses * xp.where(masses > 0, logs, xp.zeros_like(logs))
        return np.asarray(check_finite(-on_host(xp.sum(counted, axis=2))))

    def _decided(self, shares: Array, truth: Host) -> Host:
        """[M, Q]: the same where the act is one of a few: the cheapest for the others, at its cost under the truth."""
        xp, positions = namespace(shares), namespace(shares).asarray(truth, device=device(shares))
        least, charge = None, None
        for costs in self.costs or ():  # [K, M]
            value, own = xp.matmul(shares, costs), xp.take(costs, positions, axis=0)  # [Q, M]
            lower = True if least is None else value < least
            least = value if least is None else xp.where(lower, value, least)
            charge = own if charge is None else xp.where(lower, own, charge)
        return np.asarray(check_finite(on_host(charge).T))


class _Ensemble:
    """Members whose labels and targets are independent once the member is known: one table serves all labels."""

    def __init__(self, setting: _Setting) -> None:
        self.setting, belief = setting, setting.belief
        tables = member_tables(setting.loss, belief, marked=False)
        self.charges = [_Charges(belief.take(slice(None), part), table) for part, table in tables]
        self.others, self.groups = _log_others(setting.shares), _Groups(setting)  # [K, K]
        log_scale = np.concatenate([on_host(table.log_scale) for _, table in tables])
        log_share = log_scale + np.log(np.maximum(setting.context_weights, 1e-300))  # [M]
        self.scale = math.exp(top := float(log_share.max()))
        self.weights = np.where(setting.context_weights > 0, np.exp(log_share - top), 0.0)  # [M]
        self.smoothing = self._smooth([part for part, _ in tables])
        self.before = self._charged(self.others, np.arange(len(setting.shares)))  # [M, K]
        self.without: dict[int, Host] = {}
        classes = isinstance(belief.domain, Classes)
        self.labels: Any = _ClassLabels(setting) if classes else _NormalLabels(setting)

    def _smooth(self, parts: list[slice]) -> float:
        """Give the frequencies of classes, as today's acts have them, to acts that need them; how much that is."""
        found = [(part, each, each.smoothed()) for part, each in zip(parts, self.charges, strict=True)]
        some = [(self.setting.context_weights[part], each, acts) for part, each, acts in found if acts is not None]
        total = sum(float(weights.sum()) for weights, _, _ in some)
        if total <= 0.0:  # no such act, or none that counts
            return 0.0
        frequencies = sum(namespace(acts).matmul(constant(weights / total, acts), acts) for weights, _, acts in some)
        for _, each, _ in some:
            each.frequencies = frequencies
        return _SMOOTHING

    def worth(self, batch: tuple[int, ...]) -> _Worth:
        """What the labels of a batch are worth, over the scale."""
        rows: _Rows = self.labels.rows(batch)
        logs, unmatched = self._given(rows)
        totals, contexts = np.empty(len(logs)), np.zeros(len(self.weights))
        for part in self._parts(len(logs)):
            truth = rows.truth[part]
            saved = (self.before[:, truth] - self._charges(logs[part], truth)) * self.weights[:, None]  # [M, q]
            totals[part] = saved.sum(axis=0)
            contexts += saved @ (self.setting.shares[truth] * rows.mass[part])
        return _tally(self.setting, self.groups, rows, totals, contexts, unmatched, self._changes(batch))

    def _given(self, rows: _Rows) -> tuple[Host, Host]:
        """[Q, K], [Q]: the shares of the others given the labels, as they were where no other allows them."""
        others = self.others[rows.truth]
        logs = others + rows.likelihoods
        unmatched = ~(logs.max(axis=1) > -np.inf)
        return _relative(np.where(unmatched[:, None], others, logs)), unmatched

    def _changes(self, batch: tuple[int, ...]) -> Host:
        """[G]: what the acts of the others save less, or more, without each group: of a few labels of each truth."""
        rows: _Rows = self.labels.rows(batch, self.groups.few)
        logs, _ = self._given(rows)
        after, mass = self.weights @ self._charged(logs, rows.truth), self.setting.shares[rows.truth] * rows.mass  # [Q]
        before, changes = self.weights @ self.before, np.zeros(self.groups.count)  # [K]
        for group in range(self.groups.count):
            if group not in self.without:
                fewer = self.groups.without(group, self.others, self.others)
                self.without[group] = self.weights @ self._charged(fewer, np.arange(len(fewer)))  # [K]
            kept = self.groups.of[rows.truth] != group
            truth = rows.truth[kept]
            fewer = self.groups.without(group, logs[kept], self.others[truth])
            gone = self.without[group][truth] - before[truth]
            moved = gone - (self.weights @ self._charged(fewer, truth) - after[kept])
            changes[group] = moved @ mass[kept] / mass[kept].sum()
        return changes

    def _charged(self, log_shares: Host, truth: Host) -> Host:
        """[M, Q]: `_charges` in blocks."""
        return np.concatenate(
            [self._charges(log_shares[part], truth[part]) for part in self._parts(len(truth))], axis=1
        )

    def _charges(self, log_shares: Host, truth: Host) -> Host:
        """[M, Q]: what the act of members with these shares [Q, K] costs under each truth [Q]."""
        return np.concatenate([each.of(log_shares, truth) for each in self.charges])

    def _parts(self, count: int) -> Iterator[slice]:
        """Rows in blocks, by what is held for each of them."""
        numbers = 0
        for each in self.charges:
            n_contexts, n_members, size = each.table.expected.shape
            numbers += n_contexts * size * (n_members if each.table.in_logs else 1)
        return slices(count, max(1, _AT_ONCE // numbers))


def _costs_of_actions(table: MemberTable) -> list[Array]:
    """[K, M] for each action: what it costs under each member."""
    xp = namespace(table.expected)
    return [xp.permute_dims(table.expected[..., a], (1, 0)) + 0.0 for a in range(table.expected.shape[2])]


def _class_masses(belief: Any, table: MemberTable) -> Array | None:
    """[M, K, C]: E[w 1{z = class} | c, k] for log loss, which charges -log of what an act gives to the class."""
    logs = isinstance(getattr(table.loss, "potential", None), NegativeEntropy)
    if not logs or not isinstance(belief.domain, Classes):
        return None
    masses = table.expected[..., 1:] + table.expected[..., :1] * table.point
    return namespace(masses).where(masses > _ROUNDING, masses, namespace(masses).zeros_like(masses))


class _ClassLabels:
    """Labels that are classes: enumerated where a member allows few, drawn from it otherwise."""

    def __init__(self, setting: _Setting) -> None:
        self.setting, self.draws = setting, _Draws(setting)

    def rows(self, batch: tuple[int, ...], few: int | None = None) -> _Rows:
        """All truths, with their labels of the batch, or with a few of them."""
        probabilities = np.stack([self._outcomes(place) for place in batch])  # [n, C, K]
        with np.errstate(divide="ignore"):
            logs = np.log(probabilities)
        uniforms = self.draws.of(len(batch))[:, :few, :, 0]  # [K, R, n]
        counts = np.prod((probabilities > 0).sum(axis=1).astype(float), axis=0)  # [K]: labels that a member allows
        sampled = counts > uniforms.shape[1]
        parts = []
        for k in np.nonzero(self.setting.shares > 0)[0]:
            own = _drawn(probabilities[..., k], uniforms[k]) if sampled[k] else _allowed(probabilities[..., k])
            each = sum(logs[i][own[:, i]] for i in range(len(batch)))  # [q, K]
            mass = np.full(len(own), 1.0 / len(own)) if sampled[k] else np.exp(each[:, k])
            parts.append((np.full(len(own), k), mass, each))
        truth, mass, likelihoods = (np.concatenate(each) for each in zip(*parts, strict=True))
        return _Rows(truth, mass, likelihoods, sampled)

    def _outcomes(self, place: int) -> Host:
        """[C, K]: of one candidate, in double precision, where they sum to one."""
        one = self.setting.belief.take(slice(place, place + 1), slice(None))
        outcomes = on_host(double(one.member_outcomes()))[0]
        return np.asarray(outcomes / outcomes.sum(axis=0))


def _drawn(probabilities: Host, uniforms: Host) -> Host:
    """[R, n]: labels with probabilities [n, C], where these numbers [R, n] between 0 and 1 fall."""
    ends = np.cumsum(probabilities, axis=1)
    ends[:, -1] = 1.0
    labels = (ends[None, :, :-1] <= uniforms[..., None]).sum(axis=2)
    last = probabilities.shape[1] - 1 - (probabilities[:, ::-1] > 0).argmax(axis=1)  # rounding reaches no further
    return np.asarray(np.minimum(labels, last))


def _allowed(probabilities: Host) -> Host:
    """[q, n]: all labels of which none has probability 0."""
    found = np.zeros((1, 0), dtype=np.intp)
    for row in probabilities:  # one after another: a grid of NumPy has 32 axes at most, and a batch may have more rows
        labels = np.nonzero(row > 0)[0]
        found = np.column_stack([np.repeat(found, len(labels), axis=0), np.tile(labels, len(found))])
    return found


class _NormalLabels:
    """Labels that are numbers or vectors, normal given the member: drawn from it."""

    def __init__(self, setting: _Setting) -> None:
        mean, sd = (on_host(double(each)) for each in (setting.belief.candidate_mean, setting.belief.candidate_sd))
        shape = (*mean.shape[:2], -1)
        self.mean, self.sd = mean.reshape(shape), np.broadcast_to(sd, mean.shape).reshape(shape)  # [N, K, L]
        self.setting, self.draws = setting, _Draws(setting, self.mean.shape[2])

    def rows(self, batch: tuple[int, ...], few: int | None = None) -> _Rows:
        """All truths, with their labels of the batch, or with a few of them."""
        mean, sd = self.mean[list(batch)], self.sd[list(batch)]  # [n, K, L]
        steps, parts = ndtri(self.draws.of(len(batch))[:, :few]), []  # [K, R, n, L]
        for k in np.nonzero(self.setting.shares > 0)[0]:
            y = mean[:, k] + sd[:, k] * steps[k]  # [R, n, L]
            apart = (y[:, :, None, :] - mean) / sd  # [R, n, K, L]
            parts.append(-np.sum(0.5 * apart**2 + np.log(sd), axis=(1, 3)))  # [R, K]
        allowed = np.nonzero(self.setting.shares > 0)[0]
        truth = np.repeat(allowed, steps.shape[1])
        mass = np.full(len(truth), 1.0 / steps.shape[1])
        return _Rows(truth, mass, np.concatenate(parts), self.setting.shares > 0)


class _Hypotheses:
    """Hypotheses of a mixture, under each of which labels and targets are jointly Gaussian: labels move the targets.

    Targets once labels are known stand beside those of today, as hypotheses of one mixture: so both acts are written
    from one reference, and charged under what the true hypothesis says once its labels are known.
    """

    smoothing = 0.0

    def __init__(self, setting: _Setting) -> None:
        self.setting, belief = setting, setting.belief
        self.latent: Any = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief  # the mixture
        self.others, self.draws, self.groups = _log_others(setting.shares), _Draws(setting), _Groups(setting)
        loss, every = setting.loss, slice(0, belief.n_contexts)
        runs = list(loss.runs(belief.n_contexts)) if isinstance(loss, PerContext) else [(every, loss, None)]
        self.runs = [(part, one, np.ones(1) if prices is None else prices) for part, one, prices in runs]
        scales = [on_host(double(belief.take(slice(None), part).reference(one).log_scale)) for part, one, _ in runs]
        self.scale = math.exp(max(float(each.max()) for each in scales))

    def worth(self, batch: tuple[int, ...]) -> _Worth:
        """What the labels of a batch are worth, over the scale."""
        size, count, n_contexts = len(self.setting.shares), self.setting.draws, self.latent.n_contexts
        mean, root, loadings = self._label_moments(batch)
        steps = ndtri(self.draws.of(len(batch))[..., 0])  # [S, R, n]
        rest = np.maximum(on_host(double(self.latent.variance)) - np.sum(loadings**2, axis=1), 0.0)  # [S, M]
        totals, contexts, logs, truths = [], np.zeros(n_contexts), [], np.nonzero(self.setting.shares > 0)[0]
        changes = np.zeros((2, self.groups.count))  # of truths that are not in the group: sums, and their shares
        for k in truths:
            y = mean[k] + steps[k] @ root[k].T  # [R, n]
            white = np.linalg.solve(root, np.swapaxes(y - mean[:, None, :], 1, 2))  # [S, n, R]
            diagonal = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            logs.append((-0.5 * np.sum(white**2, axis=1) - diagonal[:, None]).T)  # [R, S]
            moved = np.einsum("snr,snm->srm", white, loadings) + on_host(double(self.latent.mean))[:, None, :]
            after = _relative(self.others[k] + logs[-1])  # [R, S]
            for part in slices(count, max(1, _CONTEXTS_AT_ONCE // (n_contexts * size))):
                each = [self._saved(k, run, after[part], moved[:, part], rest) for run in self.runs]
                saved = np.concatenate(each, axis=1)  # [r, M, 1 + G]
                totals.append(saved[..., 0].sum(axis=1))
                contexts += self.setting.shares[k] / count * saved[..., 0].sum(axis=0)
                apart = (saved[..., 1:] - saved[..., :1]).sum(axis=1)  # [r, G]
                kept = self.setting.shares[k] / count * (self.groups.of[k] != np.arange(self.groups.count))
                changes += [kept * apart.sum(axis=0), kept * len(apart)]
        truth = np.repeat(truths, count)
        rows = _Rows(truth, np.full(len(truth), 1.0 / count), np.concatenate(logs), self.setting.shares > 0)
        found = np.concatenate(totals), contexts, np.zeros(len(truth)), changes[0] / changes[1]
        return _tally(self.setting, self.groups, rows, *found)

    def _label_moments(self, batch: tuple[int, ...]) -> tuple[Host, Host, Host]:
        """[S, n], [S, n, n], [S, n, M]: means of labels, the root of their covariance, what they tell of targets."""
        latent, places = self.latent, list(batch)
        mean, variance = (
            on_host(double(each))[:, places] for each in (latent.candidate_mean, latent.candidate_variance)
        )
        cross = on_host(double(latent.covariance))[:, places, :]
        labels = variance[..., None] * np.eye(len(places))
        if len(places) > 1:
            rows = latent.candidate_covariance
            if rows is None:
                raise obstacle(self.setting.belief) or AssertionError
            each = [on_host(double(rows(i) if callable(rows) else rows[:, i, :]))[:, places] for i in places]
            labels = np.stack(each, axis=1)
        labels = (labels + np.swapaxes(labels, 1, 2)) / 2.0
        labels = labels + _JITTER * variance[..., None] * np.eye(len(places))
        root = np.linalg.cholesky(labels)
        return mean, root, np.linalg.solve(root, cross)

    def _saved(self, k: Any, run: tuple[slice, Any, Host], log_shares: Host, mean: Host, variance: Host) -> Host:
        """[R, m, 1 + G]: p(c) times what the labels save where k is right, and without each group of the others.

        A run is of m neighbours: where they are, their loss, and its prices. Labels leave means [S, R, M] and variances
        [S, M].
        """
        here, loss, prices = run
        mean, variance = mean[..., here], variance[..., here]
        belief, (size, count, n_contexts) = self.setting.belief, mean.shape
        now, spread = (on_host(double(each))[:, here] for each in (self.latent.mean, self.latent.variance))
        both = np.concatenate([mean, np.broadcast_to(now[:, None], mean.shape)]).reshape(2 * size, -1)
        tiled = np.concatenate([np.tile(variance, (1, count)), np.tile(spread, (1, count))])
        like = filled(1, 0.0, self.latent.mean)
        latent = _of_targets(constant(both, like), constant(tiled, like))
        given = replaced(belief, latent=latent) if isinstance(belief, WarpedGaussianBelief) else latent
        table = _table(loss, given)
        others = np.broadcast_to(self.others[k], log_shares.shape)  # [R, S]
        without, every = self.groups.without, range(self.groups.count)
        fewer = [(without(g, others, others), without(g, log_shares, others)) for g in every]
        nobody, pairs = np.full(log_shares.shape, -np.inf), [(others, log_shares), *fewer]
        before = [np.concatenate([nobody, each], axis=1) for each, _ in pairs]
        after = [np.concatenate([each, nobody], axis=1) for _, each in pairs]
        shares = np.repeat(np.stack([*before, *after], axis=1), n_contexts, axis=0)  # [R M, 2 (1 + G), 2 S]
        truth = np.full(shares.shape[1], k)
        charges = on_host(table.charges(truth, table.acts(constant(shares, like)))).reshape(-1, 2, len(pairs))
        weights = self.setting.context_weights[here] * prices
        scales = np.exp(on_host(table.log_scale)) / self.scale * np.tile(weights, count)
        saved = check_finite((charges[:, 0] - charges[:, 1]) * scales[:, None])
        return np.asarray(saved.reshape(count, n_contexts, -1))


def _table(loss: Any, belief: Any) -> MemberTable:
    """The table of targets; that of squared error is their means, and nothing is integrated."""
    if type(loss) is not SquaredError or loss.weight is not None or not isinstance(belief, GaussianMixtureBelief):
        return MemberTable.of(loss, belief, marked=False)
    xp, mean = namespace(belief.mean), namespace(belief.mean).permute_dims(belief.mean, (1, 0))  # [M, S]
    point = xp.mean(mean, axis=1)
    steps = mean - point[:, None]
    return MemberTable(loss, xp.stack([xp.ones_like(steps), steps], axis=-1), Reference(point, xp.zeros_like(point)))


def _of_targets(mean: Array, variance: Array) -> GaussianMixtureBelief:
    """A mixture that speaks of targets alone, [S, M]."""
    nobody = filled((mean.shape[0], 0), 1.0, mean)
    return GaussianMixtureBelief(mean, variance, nobody, nobody, filled((mean.shape[0], 0, mean.shape[1]), 0.0, mean))
