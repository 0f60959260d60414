"""Quick forms for ensembles of normals: threshold decisions, CRPS, and quantiles.

Given a label y, member k has the mass u_k(y) = q_k p_k(y) dy, and what a loss looks at is a sum over members of u_k
times what member k says of the context, which no candidate changes: it is computed once, and labels are one matrix
product away from it.

* Threshold decisions: what acting saves is smooth in y, and its positive part has kinks. It is summed over even labels,
  with corrections from a polynomial where the sign changes.
* CRPS: with B_k(t) = E_k[w 1{z <= t}] and W_k = E_k[w], the regret is that of a square,

      EUR = sum_j |sum_k u_jk (B_k - W_k F)|^2 / sum_k u_jk W_k,    |f|^2 the integral of f^2 over targets t,

  in which the functions of all K members are written in the few directions in which they differ. Without a weight all
  contexts together are one K x K matrix.
* Quantiles at level tau: sum_k u_k (B_k(t) - tau W_k) is a Chebyshev series in t between the quantiles of members. It
  vanishes at the answer to y, and the regret of today's answer is its integral between the two.

Sizes: N candidates, n of a block, M contexts, m of a block, K members, J labels, D + 1 terms of a series, Q
nodes of a distribution, R directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.special import ndtr, ndtri

from stakes._utils.array import Array, constant, double, filled, namespace, on_accelerator, on_host, ratio, slices
from stakes._utils.compute import has_jit, loop
from stakes.acquisition.centred import quadratic_form, quadratic_numbers
from stakes.acquisition.forms import (
    ANY,
    Form,
    Reduction,
    Total,
    general_form,
    register,
    resolve,
    settled_effort,
    warn_of_error,
    with_effort,
)
from stakes.acquisition.mixture_decisions import RESOLVED, positive_part
from stakes.beliefs import NormalEnsemble, Reference
from stakes.beliefs.outcomes import Automatic
from stakes.beliefs.quadrature import TAIL, Resolved
from stakes.losses import CRPS, AbsoluteError, ExponentialWeight, Pinball, ThresholdDecision

_MOST = 2048  # labels of a candidate, beyond which the general route is safer
_APART = 6.0  # standard deviations between members, beyond which what a label tells of them turns more quickly


def _hosted(*arrays: Array) -> Any:
    """The arrays in double precision, as loops take them."""
    return tuple(np.ascontiguousarray(on_host(double(each))) for each in arrays)


# Decisions

_FEWEST = 10  # labels, through which there is a polynomial


def _decisions(loss: ThresholdDecision, belief: NormalEnsemble) -> Reduction:
    """EUR = integral over y of what the other action saves beside today's, where that is more than nothing."""
    integrand = Resolved(loss)  # moments are closed
    reference = belief.reference(integrand)
    (expected,) = _hosted(belief.member_moments(integrand, reference))  # [M, K, 2]
    savings = expected[..., 0] - expected[..., 1]  # [M, K]: of acting
    general = _GeneralRoute(loss, belief, on_host(reference.log_scale))

    def of(block: NormalEnsemble) -> Array:
        found = np.zeros((block.n_candidates, belief.n_contexts))
        for n, labels in enumerate(_even_labels(block, RESOLVED)):
            if labels is None:
                found[n] = general(block.take(slice(n, n + 1), slice(None)), None)[0]
            else:
                masses = labels.masses()
                _sum_savings(savings @ masses.T, np.sum(masses, axis=1), found[n])
        return namespace(belief.like).astype(constant(found, double(belief.like)), belief.like.dtype)

    return of, reference.log_scale


class _Labels(NamedTuple):
    """Even labels of one candidate."""

    mean: Any
    """[K]"""
    sd: Any
    """[K]"""
    weights: Any
    """[K]"""
    low: float
    step: float
    size: int

    def masses(self, shift: float = 0.0) -> Any:
        """[J, K]: q_k p_k(y) dy at the labels, or `shift` steps beyond each."""
        y = self.low + self.step * (np.arange(self.size) + shift)
        found = (y[:, None] - self.mean) / self.sd
        found *= found
        found *= -0.5
        np.exp(found, out=found)
        found *= self.weights / self.sd * (self.step / math.sqrt(2.0 * math.pi))
        return found

    def halved(self, times: int) -> _Labels:
        """The labels with others between them, so often."""
        return self._replace(step=self.step / 2**times, size=2**times * self.size)


def _even_labels(block: NormalEnsemble, spacing: float) -> Iterator[_Labels | None]:
    """For each candidate, labels no further apart than that in its smallest sd; None where they would be too many."""
    means, sds, weights = _hosted(block.candidate_mean, block.candidate_sd, block.member_weights)
    assert isinstance(block.rule, Automatic)
    finer = block.rule.grid.per_sd / Automatic().grid.per_sd
    for mean, sd in zip(means, sds, strict=True):
        low, high = np.min(mean - TAIL * sd), np.max(mean + TAIL * sd)
        apart = max(1.0, (np.max(mean) - np.min(mean)) / (_APART * np.min(sd)))
        steps = max(float(_FEWEST), np.ceil((high - low) / (spacing * np.min(sd)) * finer * apart))
        fits = steps <= _MOST * finer
        yield _Labels(mean, sd, weights, low, (high - low) / steps, 1 + int(steps)) if fits else None


@loop
def _sum_savings(savings: Any, whole: Any, found: Any) -> None:
    """Fill `found` [M] with integrals of the positive part of savings [M, J], or of losses where we would act today.

    In spacings of even labels, whose masses are `whole` [J].
    """
    for m in range(savings.shape[0]):
        total = 0.0
        for j in range(savings.shape[1]):
            total += savings[m, j]
        found[m] = positive_part(savings[m], whole, -1.0 if total > 0.0 else 1.0)


def _lays_out_labels(loss: Any, belief: NormalEnsemble) -> bool:  # noqa: ARG001 (any costs, any level)
    """Whether loops run, and labels are ours to lay out."""
    return has_jit() and not on_accelerator(belief.context_mean) and isinstance(belief.rule, Automatic)


_ALONG_LABELS = Form(
    "savings of members along even labels", _decisions, lambda loss, belief: 8, 2048, serves=_lays_out_labels
)
register(ThresholdDecision, None, NormalEnsemble, _ALONG_LABELS)


# CRPS

_NUMBERS = 2**20  # of functions of members that are held at a time
_NODES = 512  # of each, about
_FLAT = 1e-16  # of the largest variance between members: directions below are rounding


def _functions(belief: NormalEnsemble, integrand: Any) -> Iterator[tuple[slice, Array, Array]]:
    """Blocks of contexts: which, (B_k - W_k F) sqrt(dt) [m, K, Q] on nodes t, and W_k [m, K]."""
    xp, weights = namespace(belief.context_mean), double(belief.member_weights)
    reference = belief.reference(integrand)
    assert reference.point is not None
    for part in slices(belief.n_contexts, max(1, _NUMBERS // (_NODES * weights.shape[0]))):
        here = belief.take(slice(None), part)
        no_marks = filled((here.n_contexts, 0), 0.0, here.like)
        at = Reference(reference.point[part], reference.log_scale[part])
        each = here.member_distributions(integrand, at, no_marks)
        below, mass = each.below(), each.total()  # [m, K, P, G], [m, K]
        below = xp.reshape(below, (*below.shape[:2], -1))
        mean = xp.matmul(weights, below) / xp.matmul(mass, weights)[:, None]  # [m, Q]: F
        below -= mass[..., None] * mean[:, None, :]
        below *= xp.sqrt(xp.reshape(each.step, (below.shape[0], 1, -1)))
        yield part, below, mass


def _over_functions(loss: CRPS, belief: NormalEnsemble, integrand: Any) -> Reduction:  # noqa: ARG001 (as others)
    """EUR of each context, members written in the few directions in which their functions differ."""
    xp, weights = namespace(belief.context_mean), double(belief.member_weights)
    directions, masses = [], []
    for _, functions, mass in _functions(belief, integrand):
        size, along = xp.linalg.eigh(xp.matmul(functions, xp.matrix_transpose(functions)))  # [m, K], [m, K, K]
        counts = size > _FLAT * xp.max(size, axis=1, keepdims=True)
        along = along * xp.sqrt(xp.where(counts, size, xp.zeros_like(size)))[:, None, :]
        directions.append(along[..., -max(1, int(xp.max(xp.sum(xp.astype(counts, xp.int64), axis=1)))) :])
        masses.append(mass)
    most = max(each.shape[2] for each in directions)
    padded = [
        xp.concat([filled((*each.shape[:2], most - each.shape[2]), 0.0, each), each], axis=2) for each in directions
    ]
    right = xp.reshape(xp.permute_dims(xp.concat(padded), (1, 2, 0)), (weights.shape[0], -1))  # [K, R M]
    heavy = xp.permute_dims(xp.concat(masses), (1, 0))  # [K, M]

    def squares(rows: Array) -> Array:
        """[n, M]: over cells j of masses u [n, J, K], |sum_k u_jk (B_k - W_k F)|^2 / sum_k u_jk W_k."""
        gaps = rows - xp.sum(rows, axis=2, keepdims=True) * weights
        found = xp.reshape(xp.matmul(gaps, right), (*rows.shape[:2], most, -1))
        return xp.sum(ratio(xp.sum(found * found, axis=2), xp.matmul(rows, heavy)), axis=1)

    def of(block: NormalEnsemble) -> Array:
        rows = block.member_masses()  # [n, J, K]
        each = [
            squares(rows[part, ...]) - squares(xp.sum(rows[part, ...], axis=1, keepdims=True))
            for part in slices(rows.shape[0], max(1, _NUMBERS // (rows.shape[1] * right.shape[1])))
        ]
        return xp.clip(xp.concat(each, axis=0), 0.0, None)

    return of, belief.reference(integrand).log_scale


def _crps(loss: CRPS, belief: NormalEnsemble) -> Reduction:
    integrand = resolve(loss, belief)
    effort = settled_effort(loss, belief, integrand, _over_functions)
    of, log_scale = _over_functions(loss, belief, integrand)
    return with_effort(of, effort), log_scale


def _crps_of_all(loss: CRPS, belief: NormalEnsemble, shares: Array) -> Callable[[Any], Array]:
    integrand, xp = resolve(loss, belief), namespace(belief.context_mean)
    effort = settled_effort(loss, belief, integrand, _over_functions)
    matrix: Any = 0.0
    for part, functions, _ in _functions(belief, integrand):
        scaled = functions * xp.sqrt(shares[part])[:, None, None]
        flat = xp.reshape(xp.permute_dims(scaled, (1, 0, 2)), (functions.shape[1], -1))  # [K, m Q]
        matrix = matrix + xp.matmul(flat, xp.matrix_transpose(flat))
    return with_effort(lambda block: quadratic_form(block, matrix), effort)


def _crps_numbers(loss: CRPS, belief: NormalEnsemble) -> int:  # noqa: ARG001 (any weight)
    """The masses of cells under members; what is made of them keeps to a limit of its own."""
    cells = belief.rule.size(belief.candidate_mean, belief.candidate_sd)
    return int(8 + 4 * cells * belief.member_weights.shape[0] // belief.n_contexts)


_EACH = Form("members in the directions in which they differ", _crps, _crps_numbers, 16384)
register(CRPS, ANY, NormalEnsemble, _EACH)
register(
    CRPS,
    None,
    NormalEnsemble,
    replace(
        _EACH,
        name="one matrix over members for all contexts",
        total=Total(_crps_of_all, quadratic_numbers),
        otherwise=_EACH,
    ),
)


# Quantiles

_WIDEST = 64.0  # half of what the quantiles of members span, in the smallest sd: beyond, terms are many
_TERMS_TO_SD, _MORE_TERMS = 7.0, 10  # of a series: exp(-7^2 / 2) is 2e-11, and a few for the first sd
_LAST_TERM = 1e-11  # of the largest: what may be left out
_TOGETHER = 64  # contexts whose series are multiplied at a time
_STEPS, _CLOSE = 40, 1e-3  # towards a quantile, and the share of the way so far that the last step may be
_STILL = 1e-12
_LABEL_SPACING = 1.0 / 6.0  # of labels, in the smallest standard deviation of a candidate
_MOST_EFFORT = 7  # times that labels are laid half as far apart
_AGREED = 3e-7  # of sums over labels and over every other: what is left of the finer is less
_EARLIER = 30.0  # times as far the sums before them may be
_NO_REGRET, _NO_MASS = 1e-13, 1e-17  # of the whole range of answers, and of all labels
_PER_QUANTILE = 10_000  # numbers of a candidate and a context: a hundred labels, for each a series that is solved
_FEW, _LEFT_OUT = 32, 1e-13  # factors that labels are written in, and what those may leave out


class _Series(NamedTuple):
    """What the members say of some contexts, as Chebyshev series in x from -1 to 1."""

    contexts: Any
    """[m]: which they are"""
    half: Any
    """[m]: targets that one unit of x stands for"""
    members: Any
    """[K, (D + 1) m]: B_k - tau W_k, less their mean"""
    mean: Any
    """[D + 1, m]: their mean"""
    today: Any
    """[m]: where that is 0"""

    def take(self, places: Any) -> _Series:
        """The series of some of these contexts."""
        members = self.members.reshape(len(self.members), *self.mean.shape)[..., places]
        return _Series(
            self.contexts[places],
            self.half[places],
            members.reshape(len(members), -1),
            np.ascontiguousarray(self.mean[:, places]),
            self.today[places],
        )


def _quantiles(loss: Any, belief: NormalEnsemble) -> Reduction:
    """EUR = sum_j of the integral of |sum_k u_jk (B_k - tau W_k)| from today's answer to that of label j."""
    mean, sd, weights = _hosted(belief.context_mean, belief.context_sd, belief.member_weights)
    rate = 0.0 if loss.weight is None else float(loss.weight.rate)
    logs = rate * mean + rate**2 * sd**2 / 2.0  # of W_k
    mean, log_scale = mean + rate * sd**2, np.max(np.where(weights > 0, logs, -np.inf), axis=1)
    members = _Members(mean, sd, np.exp(np.minimum(logs - log_scale[:, None], 0.0)), weights)
    width = members.widths(loss.level)  # [M]
    served, others = np.flatnonzero(width <= _WIDEST), np.flatnonzero(~(width <= _WIDEST))
    order = served[np.argsort(width[served])]  # so that neighbours need as many terms
    parts = slices(len(order), _TOGETHER) if len(order) else ()
    series = [members.series(order[part], float(loss.level)) for part in parts]
    general = _GeneralRoute(loss, belief, log_scale)

    def of(block: NormalEnsemble) -> Array:
        found, errors = np.zeros((block.n_candidates, belief.n_contexts)), [0.0]
        for n, labels in enumerate(_even_labels(block, _LABEL_SPACING)):
            if labels is None:
                found[n] = general(block.take(slice(n, n + 1), slice(None)), None)[0]
                continue
            for each, values, error in _settled(series, labels):
                found[n, each.contexts] = loss.unit * each.half * values
                errors.append(error)
        for m in others.tolist():
            found[:, m] = general(block, m)[:, 0]
        warn_of_error(loss, max(errors))
        return namespace(belief.like).astype(constant(found, double(belief.like)), belief.like.dtype)

    return of, constant(log_scale, double(belief.like))


class _GeneralRoute:
    """What the general route gives where series do not serve, over the same scale; contexts are prepared once."""

    def __init__(self, loss: Any, belief: NormalEnsemble, log_scale: Any) -> None:
        self.loss, self.belief, self.log_scale = loss, belief, log_scale
        self.prepared: dict[int | None, Reduction] = {}

    def __call__(self, block: NormalEnsemble, context: int | None) -> Any:
        """[n, M], or [n, 1] at one context."""
        part = slice(None) if context is None else slice(context, context + 1)
        if context not in self.prepared:
            self.prepared[context] = general_form(self.loss).prepare(self.loss, self.belief.take(slice(None), part))
        of, log_scale = self.prepared[context]
        return on_host(double(of(block.take(slice(None), part)))) * np.exp(on_host(log_scale) - self.log_scale[part])


class _Members(NamedTuple):
    """Weighted normals of K members at M contexts."""

    mean: Any
    """[M, K]"""
    sd: Any
    """[M, K]"""
    mass: Any
    """[M, K]: W_k"""
    weights: Any
    """[K]"""

    def ends(self, level: float) -> tuple[Any, Any]:
        """[M] each: the lowest and the highest quantile of members that count."""
        places, counts = self.mean + self.sd * ndtri(level), self.weights > 0
        return np.min(np.where(counts, places, np.inf), axis=1), np.max(np.where(counts, places, -np.inf), axis=1)

    def widths(self, level: float) -> Any:
        """[M]: half the distance between them, in the smallest standard deviation; infinite where one is 0."""
        (low, high), sd = self.ends(level), np.min(np.where(self.weights > 0, self.sd, np.inf), axis=1)
        return np.where(sd > 0, (high - low) / 2.0 / np.where(sd > 0, sd, 1.0), np.inf)

    def series(self, contexts: Any, level: float) -> _Series:
        """The series of some contexts, as long as the longest needs to be."""
        part = _Members(self.mean[contexts], self.sd[contexts], self.mass[contexts], self.weights)
        low, high = part.ends(level)
        half = (high - low) / 2.0
        x = chebpts1(_MORE_TERMS + math.ceil(_TERMS_TO_SD * np.max(part.widths(level))))
        t = ((low + high) / 2.0)[:, None] + half[:, None] * x  # [m, I]
        values = ndtr((t[:, None, :] - part.mean[..., None]) / part.sd[..., None]) - level  # [m, K, I]
        values *= part.mass[..., None]
        mean = np.einsum("k,mki->mi", self.weights, values)
        values -= mean[:, None, :]
        fit = 2.0 / len(x) * chebvander(x, len(x) - 1)  # [I, D + 1]
        fit[:, 0] /= 2.0
        members, mean = values @ fit, mean @ fit  # [m, K, D + 1], [m, D + 1]
        sizes = np.maximum(np.max(abs(members), axis=(0, 1)), np.max(abs(mean), axis=0))
        count = max(2, 1 + int(np.max(np.flatnonzero(sizes > _LAST_TERM * np.max(sizes)), initial=0)))
        members, mean = np.moveaxis(members[..., :count], 0, 2), np.ascontiguousarray(mean[:, :count].T)
        middle = np.zeros(len(half))
        _to_quantile(mean, middle, middle.copy())
        return _Series(contexts, half, np.ascontiguousarray(members).reshape(len(self.weights), -1), mean, middle)


class _LabelMasses(NamedTuple):
    """What some labels tell of the members: their masses, less those of all labels, as a product of two factors."""

    whole: Any
    """[J]: sum_k u_jk"""
    left: Any
    """[J, R]"""
    right: Any
    """[R, K]"""

    @classmethod
    def of(cls, masses: Any, weights: Any) -> _LabelMasses:
        """From masses u [J, K]: few factors will do, as members that are alike see labels alike."""
        whole = np.sum(masses, axis=1)
        gaps = masses - whole[:, None] * weights
        for count in (_FEW, 2 * _FEW):
            if 2 * count > min(gaps.shape):
                break
            basis = np.linalg.qr(gaps @ np.random.default_rng(0).standard_normal((gaps.shape[1], count)))[0]
            factor = basis.T @ gaps
            if np.max(abs(gaps - basis @ factor)) <= _LEFT_OUT * np.max(abs(gaps)):
                return cls(whole, basis, factor)
        return cls(whole, np.eye(len(whole)), gaps)

    def regrets(self, series: _Series) -> Any:
        """[J, m]: of today's quantiles, in units of x."""
        found = np.zeros((len(self.whole), len(series.half)))
        terms = self.right @ series.members  # [R, (D + 1) m]
        terms = (terms if len(terms) == len(self.left) else self.left @ terms).reshape(len(found), *series.mean.shape)
        _fill_regrets(terms, series.mean, series.today, self.whole, found)
        return found


def _settled(series: list[_Series], labels: _Labels) -> Iterator[tuple[_Series, Any, float]]:
    """For each series the regrets [m] of today's quantiles, and how far the last labels moved them if they still do.

    At contexts where labels do not agree with every other of them they are laid half as far apart, until they do.
    """
    levels = [_LabelMasses.of(labels.masses(), labels.weights)]
    for each in series:
        regrets = levels[0].regrets(each)
        found, before, earlier = (step * np.sum(regrets[::step], axis=0) for step in (1, 2, 4))
        far = np.flatnonzero(_moved(found, before) | _moved(before, earlier, _EARLIER))  # two may agree by chance
        for level in range(1, 1 + _MOST_EFFORT):
            if not len(far):
                break
            if len(levels) == level:
                levels.append(_LabelMasses.of(labels.halved(level - 1).masses(0.5), labels.weights))
            before = found[far]
            found[far] = 0.5 * (before + np.sum(levels[level].regrets(each.take(far)), axis=0))
            moves = _moved(found[far], before)
            far, before = far[moves], before[moves]
        error = np.max(abs(found[far] - before) / (found[far] + _NO_REGRET)) if len(far) else 0.0
        yield each, found, float(error)


def _moved(fine: Any, coarse: Any, times: float = 1.0) -> Any:
    """[m]: where two sums over labels do not agree."""
    return abs(fine - coarse) > times * (_AGREED * fine + _NO_REGRET)


@loop
def _fill_regrets(terms: Any, mean: Any, today: Any, whole: Any, found: Any) -> None:
    """Fill `found` [J, m] with what today's quantile loses, in units of x; terms [J, D + 1, m] are less their mean."""
    count, size = mean.shape
    here, x, lost = np.empty((count, size)), today.copy(), np.empty(size)
    for j in range(terms.shape[0]):
        if not whole[j] > _NO_MASS:
            continue
        for d in range(count):
            for m in range(size):
                here[d, m] = terms[j, d, m] / whole[j] + mean[d, m]
        _to_quantile(here, x, today)  # from the answer to the label before
        _integral(here, x, today, lost)
        for m in range(size):
            found[j, m] = whole[j] * max(lost[m], 0.0)


@loop
def _to_quantile(c: Any, x: Any, today: Any) -> None:
    """Move x [m] to where the increasing series c [D + 1, m] are 0: Newton steps, halving where one leads outside."""
    size = c.shape[1]
    low, high = np.full(size, -1.0), np.full(size, 1.0)
    value, before, slope, earlier = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for _ in range(_STEPS):
        value[:], before[:], slope[:], earlier[:] = 0.0, 0.0, 0.0, 0.0
        for d in range(c.shape[0] - 1, 0, -1):  # Clenshaw's rule, and its derivative
            for m in range(size):
                turned = 2.0 * (value[m] + x[m] * slope[m]) - earlier[m]
                earlier[m] = slope[m]
                slope[m] = turned
                turned = c[d, m] + 2.0 * x[m] * value[m] - before[m]
                before[m] = value[m]
                value[m] = turned
        far = 0.0
        for m in range(size):
            height, rise = c[0, m] + x[m] * value[m] - before[m], value[m] + x[m] * slope[m] - earlier[m]
            low[m], high[m] = (x[m], high[m]) if height < 0.0 else (low[m], x[m])
            there = x[m] - height / rise if rise > 0.0 else 2.0
            there = there if low[m] <= there <= high[m] else 0.5 * (low[m] + high[m])
            far = max(far, abs(there - x[m]) - _CLOSE * abs(there - today[m]))
            x[m] = there
        if far <= _STILL:
            return


@loop
def _integral(c: Any, x: Any, end: Any, found: Any) -> None:
    """Fill `found` [m] with the integrals of series c [D + 1, m] from x to `end`."""
    (count, size) = c.shape
    one, before, other, earlier = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
    for d in range(count, 0, -1):
        for m in range(size):
            term = c[d - 1, m] * (2.0 if d == 1 else 1.0) - (c[d + 1, m] if d + 1 < count else 0.0)
            term /= 2.0 * d
            turned = term + 2.0 * x[m] * one[m] - before[m]
            before[m] = one[m]
            one[m] = turned
            turned = term + 2.0 * end[m] * other[m] - earlier[m]
            earlier[m] = other[m]
            other[m] = turned
    for m in range(size):
        found[m] = end[m] * other[m] - earlier[m] - (x[m] * one[m] - before[m])


_SERIES = Form(
    "quantiles by series between those of members",
    _quantiles,
    lambda loss, belief: _PER_QUANTILE,
    2048,
    serves=_lays_out_labels,
)
for _loss in (Pinball, AbsoluteError):
    for _weight in (None, ExponentialWeight):
        register(_loss, _weight, NormalEnsemble, _SERIES)
