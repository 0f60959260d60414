"""Gaussian posteriors of a function f, and the beliefs that they imply, in NumPy or torch and on any device.

All is written by the array standard; what it lacks (a triangular solve, products that are subtracted in place) is taken
from the library of the arrays. A *place* is a pair of rows [B, p] and what the covariances of f there are products of,
[B, r]: with it covariances between any two places are one product.

Sizes: N candidates, M contexts, B rows of any block, n labels so far, p features, d outputs, r columns of a place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from array_api_compat import device, is_numpy_array
from scipy.linalg import solve_triangular

from stakes._utils.array import Array, constant, namespace, on_accelerator, ratio, slices
from stakes._utils.compute import is_worth_compiling, loop
from stakes.beliefs import GaussianBelief, GaussianMixtureBelief, VectorGaussianBelief, Warp
from stakes.beliefs.warped import warped_moments
from stakes.models.base import Target

Place: TypeAlias = tuple[Any, Array]
"""Rows [B, p], and what covariances are products of, [B, r]."""
Candidates: TypeAlias = tuple[Place | None, Array, Array, Array]
"""Their place (None unless covariances between them are wanted), [N] the variance of f, [N] the variance that a label
has beside it, [N, M] the covariance of f here and at the contexts."""

_BLOCK = 64  # rows of L whose diagonal block is inverted: below, products are short; above, inverses cost more
_ROWS = 1024  # rows whose covariances with the labels so far are held at once
_PAIRS = 2**17  # covariances of a block: 1 MiB, so that the passes over it stay within the cache
_ON_DEVICE = 2**26  # numbers of a block that keep a large device busy


class Posterior(Protocol):
    """What is known of a function f, jointly Gaussian over all rows; several outputs are independent and alike."""

    @property
    def scale(self) -> Array | None:
        """[d]: the factor to each of several outputs, which `mean` includes, `covariance` not; None for one output."""

    def place(self, rows: Any) -> Place:
        """The rows, prepared for the methods below."""

    def mean(self, place: Place) -> Array:
        """[B], or [B, d] for several outputs."""

    def variances(self, place: Place) -> tuple[Array, Array]:
        """[B], [B]: the variance of f, and what a label has beside it."""

    def covariance(self, place: Place, other: Place) -> Array:
        """[B, B']: of f."""


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """cov(f(x), f(x')) = unit^2 (k(x, x') - v(x)' v(x')) with v(x) = L^-1 k(X, x).

    L L' is the covariance of the labels so far, at rows X.
    """

    kernel: Callable[[Any, Any], Array]
    """From rows [B, p] and others [B', p] to k between them, [B, B']: an array that may be written over."""
    diagonal: Callable[[Any], tuple[Array, Array]]
    """From rows [B, p] to k(x, x) [B], and to the noise variance of a label there [B], both before the unit."""
    train: Any
    """[n, p]: X"""
    factor: Array
    """[n, n]: L"""
    solved: Array
    """[n] or [n, d]: L^-1 (y - prior mean)"""
    offset: Any = 0.0
    """Added to each output"""
    unit: Any = 1.0
    """The factor to each output"""
    prior_mean: Callable[[Any], Any] | None = None
    """From rows [B, p] to the mean of f [B] before any label, before offset and unit; None: 0."""

    @property
    def scale(self) -> Array | None:
        """[d]: the unit of each of several outputs."""
        return np.broadcast_to(self.unit, self.solved.shape[1:]) if self.solved.ndim > 1 else None

    @property
    def _square(self) -> float:
        return float(np.squeeze(self.unit)) ** 2 if self.solved.ndim == 1 else 1.0

    def place(self, rows: Any) -> Place:
        """With v(x), a row for each."""
        return rows, self._solve(self.kernel(rows, self.train))

    @cached_property
    def _solve(self) -> Callable[[Array], Array]:
        return forward_solver(self.factor)

    def mean(self, place: Place) -> Array:
        """Offset + unit (prior mean + v(x)' L^-1 (y - prior mean))."""
        learned = place[1] @ self.solved
        mean = learned if self.prior_mean is None else self.prior_mean(place[0]) + learned
        return self.offset + self.unit * mean

    def variances(self, place: Place) -> tuple[Array, Array]:
        """As above, but 0 where rounding is all that is left."""
        prior, noise = self.diagonal(place[0])
        xp = namespace(prior)
        left = prior - _squared_norms(place[1])
        rounding = xp.finfo(prior.dtype).eps * self.factor.shape[0] * prior
        return self._square * xp.where(left > rounding, left, xp.zeros_like(left)), self._square * noise

    def covariance(self, place: Place, other: Place) -> Array:
        """As above."""
        covariance = _less_product(self.kernel(place[0], other[0]), place[1], other[1])
        if self._square != 1.0:
            covariance *= self._square
        return covariance


def _squared_norms(rows: Array) -> Array:
    """[B]: the sum of squares of each row, in one pass and without a table of squares."""
    if is_numpy_array(rows):
        return np.einsum("br,br->b", rows, rows)
    return namespace(rows).linalg.vector_norm(rows, axis=-1) ** 2


def _less_product(covariance: Array, one: Array, other: Array) -> Array:
    """`covariance` [B, B'] minus one [B, r] times other [B', r], written over; in one pass where there is one."""
    if hasattr(covariance, "addmm_"):
        return covariance.addmm_(one, other.T, alpha=-1.0)
    covariance -= one @ other.T
    return covariance


def forward_solver(factor: Array) -> Callable[[Array], Array]:
    """From rows [B, n] to L^-1 times each of them, for L = `factor` [n, n], lower triangular; rows may be written over.

    By the solve of the array's library, where it has one. NumPy's is forward substitution by blocks, each with the
    inverse of its diagonal block: products alone, which run beside other threads, where SciPy's solves hold them up.
    """
    if hasattr(namespace(factor).linalg, "solve_triangular"):
        return partial(_solved_by_library, factor)
    blocks = [factor[part, part] for part in slices(len(factor), _BLOCK)]
    inverses = [solve_triangular(block, np.eye(len(block)), lower=True, check_finite=False) for block in blocks]
    return partial(_solved_by_blocks, factor, inverses)


def _solved_by_library(factor: Array, rows: Array) -> Array:
    return namespace(factor).linalg.solve_triangular(factor.mT, rows, upper=True, left=False)


def _solved_by_blocks(factor: Array, inverses: list[Array], rows: Array) -> Array:
    """Forward substitution, with the inverse of each diagonal block, written over the rows."""
    for place, inverse in enumerate(inverses):
        start = place * _BLOCK
        here = slice(start, start + len(inverse))
        if start:
            rows[:, here] -= rows[:, :start] @ factor[here, :start].T
        rows[:, here] = rows[:, here] @ inverse.T
    return rows


@dataclass(frozen=True, eq=False)
class LinearPosterior:
    """The mean of f is intercept + x' coefficients, and cov(f(x), f(x')) = (x - centre)' R R' (x' - centre) + v.

    v is the variance of f at the centre.
    """

    coefficients: Array
    """[p]"""
    intercept: float
    centre: Array
    """[p]"""
    root: Array
    """[p, r]: R"""
    noise_variance: float
    intercept_variance: float = 0.0
    scale: Array | None = None

    def place(self, rows: Any) -> Place:
        """With R' (x - centre), and the root of v."""
        slopes = (rows - self.centre) @ self.root
        constant_part = np.full((len(slopes), 1), self.intercept_variance**0.5)
        return rows, np.concatenate([slopes, constant_part], axis=1)

    def mean(self, place: Place) -> Array:
        """Intercept + x' coefficients."""
        return place[0] @ self.coefficients + self.intercept

    def variances(self, place: Place) -> tuple[Array, Array]:
        """As above; the noise is the same everywhere."""
        variance = _squared_norms(place[1])
        return variance, namespace(variance).full_like(variance, self.noise_variance)

    def covariance(self, place: Place, other: Place) -> Array:
        """As above."""
        return place[1] @ other[1].T


def prepare_gaussian(
    posterior: Posterior, contexts: Any, *, target: Target, joint: bool
) -> Callable[[Any], GaussianBelief | VectorGaussianBelief]:
    """From a pool to the belief about its labels and the targets at `contexts`, all rows as the posterior takes them.

    Covariances between candidates, where they are asked for, are computed a row at a time when a batch needs them.
    """
    there = posterior.place(contexts)
    mean, (known, noise) = posterior.mean(there), posterior.variances(there)
    variance = known + noise if target == "label" else known

    def belief(pool: Any) -> GaussianBelief | VectorGaussianBelief:
        return _belief(posterior, candidates_at(posterior, pool, there, known, keep=joint), mean, variance)

    return belief


def prepare_mixture(
    posteriors: Sequence[Posterior], contexts: Any, *, target: Target, joint: bool
) -> Callable[[Any], GaussianMixtureBelief]:
    """The same of several posteriors of one output, equally probable hypotheses."""
    places = [posterior.place(contexts) for posterior in posteriors]
    known = [posterior.variances(there) for posterior, there in zip(posteriors, places, strict=True)]
    means = [posterior.mean(there) for posterior, there in zip(posteriors, places, strict=True)]

    def belief(pool: Any) -> GaussianMixtureBelief:
        xp, labels = namespace(means[0]), []
        beliefs: list[Any] = []  # Gaussian, as each posterior is of one output
        for posterior, there, mean, (own, noise) in zip(posteriors, places, means, known, strict=True):
            labels.append(xp.empty(len(pool), dtype=mean.dtype, device=device(mean)))
            here = candidates_at(posterior, pool, there, own, keep=joint, mean=labels[-1])
            beliefs.append(_belief(posterior, here, mean, own + noise if target == "label" else own))
        return GaussianMixtureBelief.from_beliefs(beliefs, xp.stack(labels))

    return belief


def prepare_averaged(
    posteriors: Sequence[Posterior], contexts: Any, *, target: Target, joint: bool, warp: Warp | None = None
) -> Callable[[Any], GaussianBelief]:
    """One Gaussian belief with the means and covariances of equally probable posteriors, within and between them.

    With a `warp`, posteriors are about g^-1(label); the belief has the means and variances of labels, and the
    correlations of what is behind them, so that a label tells as much.
    """
    places = [posterior.place(contexts) for posterior in posteriors]
    means = [posterior.mean(there) for posterior, there in zip(posteriors, places, strict=True)]
    known = [posterior.variances(there) for posterior, there in zip(posteriors, places, strict=True)]
    xp, count = namespace(means[0]), len(posteriors)
    stacked = xp.stack(means)  # [S, M]
    mean = xp.mean(stacked, axis=0)
    gaps = stacked - mean
    variance = xp.mean(gaps**2 + xp.stack([own + noise if target == "label" else own for own, noise in known]), axis=0)
    mean_there, variance_there, unit_there = _in_units_of_labels(warp, mean, variance)

    def belief(pool: Any) -> GaussianBelief:
        labels = xp.empty((count, len(pool)), dtype=mean.dtype, device=device(mean))  # [S, N]
        each, covariance, label_variance, noise = [], 0.0, 0.0, 0.0
        for s, (posterior, there) in enumerate(zip(posteriors, places, strict=True)):
            place, own, beside, found = candidates_at(
                posterior, pool, there, known[s][0], keep=joint, mean=labels[s, :]
            )
            label_variance, noise, covariance = label_variance + own + beside, noise + beside, covariance + found
            each.append(place)
        label_mean = xp.mean(labels, axis=0)
        apart = labels - label_mean
        label_variance = label_variance / count + xp.mean(apart**2, axis=0)
        covariance = (covariance + xp.matmul(apart.T, gaps)) / count
        bounded(covariance, label_variance, variance, out=covariance)
        _, variance_here, unit = _in_units_of_labels(warp, label_mean, label_variance)
        if warp is not None:
            covariance *= unit[:, None] * unit_there

        def row(i: int) -> Array:
            """[N]: covariances of the label of candidate i with those of all."""
            total = xp.matmul(apart[:, i], apart)
            for posterior, place in zip(posteriors, each, strict=True):
                assert place is not None
                total = total + _label_covariances(posterior, place, label_variance, i)
            total = total * (unit[i] * unit / count)
            total[i] = variance_here[i]
            return total

        rows = row if joint else None
        return GaussianBelief(mean_there, variance_there, variance_here, covariance, rows, unit**2 * noise / count)

    return belief


def _in_units_of_labels(warp: Warp | None, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """[N] each: mean and variance of labels g(f), given those of f, and the ratio of their standard deviations."""
    xp = namespace(mean)
    if warp is None:
        return mean, variance, xp.ones_like(mean)
    moments = warped_moments(warp, mean, variance)
    return *moments, xp.sqrt(ratio(moments[1], variance))


def belief_at(
    posterior: Posterior, here: Candidates, there: Place, *, target: Target, joint: bool
) -> GaussianBelief | VectorGaussianBelief:
    """The belief about labels `here` and targets `there`."""
    known, noise = posterior.variances(there)  # [M], [M]
    here = here if joint else (None, *here[1:])
    return _belief(posterior, here, posterior.mean(there), known + noise if target == "label" else known)


def _belief(
    posterior: Posterior, here: Candidates, mean: Array, variance: Array
) -> GaussianBelief | VectorGaussianBelief:
    """About labels `here` and targets of this mean and variance."""
    place, own, noise, covariance = here
    label_variance = own + noise  # [N]
    rows = None if place is None else partial(_label_covariances, posterior, place, label_variance)
    if (scale := posterior.scale) is None:
        return GaussianBelief(mean, variance, label_variance, covariance, rows, noise)
    variance, label_variance, covariance, noise = (
        _outputs(each, scale) for each in (variance, label_variance, covariance, noise)
    )
    return VectorGaussianBelief(mean, variance, label_variance, covariance, rows, noise)


def candidates_at(
    posterior: Posterior, pool: Any, there: Place, known: Array, keep: bool, mean: Array | None = None
) -> Candidates:
    """All of `pool`, for contexts `there` with variances `known` [M], in blocks; with their place if `keep`.

    The mean of f is written into `mean` [N], where that is given.
    """
    xp, options = namespace(known), {"dtype": known.dtype, "device": device(known)}
    n_contexts, n_columns = there[1].shape
    variance, noise = xp.empty(len(pool), **options), xp.empty(len(pool), **options)
    covariance = xp.empty((len(pool), n_contexts), **options)
    projected = xp.empty((len(pool), n_columns if keep else 0), **options)
    large = max(1, _ON_DEVICE // max(n_columns, n_contexts, 1)) if on_accelerator(known) else 0
    for part in slices(len(pool), large or _ROWS):
        here = posterior.place(pool[part])
        variance[part], noise[part] = posterior.variances(here)
        if mean is not None:
            mean[part] = posterior.mean(here)
        for few in slices(len(here[0]), large or max(1, _PAIRS // max(n_contexts, 1))):
            block = posterior.covariance((here[0][few], here[1][few]), there)
            bounded(block, variance[part][few], known, covariance[part][few], pairs=len(pool) * n_contexts)
        if keep:
            projected[part] = here[1]
    return (pool, projected) if keep else None, variance, noise, covariance


def bounded(covariance: Array, variance: Array, known: Array, out: Array, pairs: int | None = None) -> None:
    """Covariances [B, M] kept to what variances [B] and [M] allow, which rounding alone exceeds, into `out`.

    `pairs` is how many there are in all blocks; None: in this one.
    """
    xp = namespace(covariance)
    sd, target_sd = xp.sqrt(variance), xp.sqrt(known)
    if is_numpy_array(covariance) and is_worth_compiling(covariance.size if pairs is None else pairs):
        return _bounded(covariance, sd, target_sd, out)
    most = sd[:, None] * target_sd
    xp.minimum(covariance, most, out=covariance)
    xp.maximum(covariance, xp.negative(most, out=most), out=out)
    return None


@loop
def _bounded(covariance: Any, sd: Any, target_sd: Any, out: Any) -> None:
    for n in range(covariance.shape[0]):
        row, result, own = covariance[n], out[n], sd[n]
        for m in range(covariance.shape[1]):
            most = own * target_sd[m]
            result[m] = max(-most, min(row[m], most))


def _label_covariances(posterior: Posterior, place: Place, variance: Array, i: int) -> Array:
    """[N], or [d, N, d]: covariances of the label of candidate i with those of all, of variance [N]."""
    row = posterior.covariance((place[0][i : i + 1], place[1][i : i + 1]), place)[0]
    row[i] = variance[i]
    scale = posterior.scale
    return row if scale is None else namespace(row).moveaxis(_outputs(row, scale), 1, 0)


def _outputs(covariance: Array, scale: Array) -> Array:
    """[..., d, d]: the covariance of independent outputs, each with its scale."""
    return covariance[..., None, None] * constant(np.diag(scale**2), covariance)


def independent(beliefs: Sequence[GaussianBelief]) -> VectorGaussianBelief:
    """The belief about vectors whose numbers are independent, one of each of `beliefs`."""
    rows = [belief.candidate_covariance for belief in beliefs]
    noise = [belief.noise_variance + 0.0 * belief.candidate_variance for belief in beliefs]
    return VectorGaussianBelief(
        namespace(beliefs[0].mean).stack([belief.mean for belief in beliefs], axis=-1),
        _on_diagonal([belief.variance for belief in beliefs]),
        _on_diagonal([belief.candidate_variance for belief in beliefs]),
        _on_diagonal([belief.covariance for belief in beliefs]),
        None if any(each is None for each in rows) else partial(_independent_rows, rows),
        _on_diagonal(noise),
    )


def _on_diagonal(parts: Sequence[Array]) -> Array:
    """[..., d, d]: with `parts` along the diagonal."""
    stacked = namespace(parts[0]).stack(list(parts), axis=-1)
    return stacked[..., None] * constant(np.eye(len(parts)), stacked)


def _independent_rows(rows: Sequence[Any], i: int) -> Array:
    """[d, N, d]: covariances of the label of candidate i with those of all."""
    found = _on_diagonal([each(i) if callable(each) else each[i, ...] for each in rows])
    return namespace(found).moveaxis(found, 1, 0)
