"""Integration of statistics of vectors z = mean + root u, u standard normal, by nodes about where w(z) p(z) is largest.

`SymmetricNodes` lays out nodes that stand for a standard normal vector: symmetric about 0, of mean 0 and covariance
exactly I, so that every rule is exact for statistics of second degree, whatever it does beyond. With nodes e about a
centre c of u, E[S] = sum mass exp(-|c|^2/2 - c . e) S(mean + root (c + e)). For w = exp(b . z) the centre is root' b
and the exponent cancels that of the weight: no weight is too steep for it.
Sizes: N candidates, M contexts, K members, d coordinates of z, L of y, J nodes of y, Q nodes of z, D statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from stakes._utils.arguments import as_seed
from stakes._utils.array import Array, constant, filled, namespace, slices
from stakes.beliefs.base import Integrand, Reference, log_weight
from stakes.beliefs.quadrature import CHUNK, is_first_largest
from stakes.exceptions import StakesError

Nodes = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Points [J, dimension] and their masses [J], on the host."""

_PER_AXIS = 8  # points on each axis from which a grid beats a sequence
_TAIL = 9.0  # standard deviations that a grid reaches at most: the mass beyond is 1e-19
_FURTHEST = 50.0  # standard deviations: further, a weight at the outermost nodes leaves the range of numbers
_STEP = 0.25  # of numerical gradients, in standard deviations; exact where the log weight is linear


@dataclass(frozen=True)
class SymmetricNodes:
    """The nodes that integrate losses of vectors for which no closed form is known.

    An even grid (the trapezoid rule) where there are nodes for 8 points on each axis; where there are not, a scrambled
    Sobol sequence, each point with its opposite. Exact for unweighted and for exponential-linear weights. Reductions
    for a sigmoid weight of slope 2 (6) a standard deviation were off by 2e-7 (2e-4) for two outputs, 8e-3 (2e-2) for
    three and 2e-2 (4e-2) for five: `integration_error` tells for a case at hand, more nodes help.

    Args:
        outer: About how many nodes for the label, 8 or more.
        inner: About how many for the target given the label, 8 or more.
        grid: How many an even grid over the labels of a `VectorNormalEnsemble` may have. Where that is enough to
            resolve every member, it takes the place of `outer` nodes for each; 0 for none.
        random_state: A whole number or a NumPy generator that seeds the sequence: the same nodes for every candidate.

    Raises:
        StakesError: If one of them is not a whole number, or too small.

    Examples:
        >>> from stakes.beliefs import SymmetricNodes
        >>> points, masses = SymmetricNodes().outcomes(2)  # 16 on each of two axes
        >>> print(points.shape, round(float(masses.sum()), 6))
        (256, 2) 1.0
    """

    outer: int = 256
    inner: int = 512
    random_state: Any = 0
    grid: int = 2**14

    def __post_init__(self) -> None:
        for name in ("outer", "inner"):
            if not isinstance(value := getattr(self, name), int) or value < 8:
                raise StakesError(f"{name} must be a whole number, 8 or more; got {value!r}")
        if not isinstance(self.grid, int) or self.grid < 0:
            raise StakesError(f"grid must be a whole number, 0 or more; got {self.grid!r}")
        object.__setattr__(self, "random_state", as_seed(self.random_state))

    def outcomes(self, dimension: int) -> Nodes:
        """Nodes for labels.

        Args:
            dimension: How many numbers a label has.

        Returns:
            Points [J, dimension] and their masses [J].

        Raises:
            StakesError: If there are too few nodes for so many numbers.
        """
        points, masses = _nodes(self.outer, dimension, self.random_state)
        return points.copy(), masses.copy()  # those that are kept must not change

    def targets(self, dimension: int) -> Nodes:
        """Nodes for targets, of another sequence than those for labels.

        Args:
            dimension: How many numbers a target has.

        Returns:
            Points [Q, dimension] and their masses [Q].

        Raises:
            StakesError: If there are too few nodes for so many numbers.
        """
        points, masses = _nodes(self.inner, dimension, self.random_state + 1)
        return points.copy(), masses.copy()

    def refined(self) -> SymmetricNodes:
        """Twice the nodes of each."""
        return SymmetricNodes(2 * self.outer, 2 * self.inner, self.random_state, 2 * self.grid)

    def others(self) -> tuple[SymmetricNodes, ...]:
        """Rules to compare this one with.

        Returns:
            Twice the nodes, and as many of three other sequences.
        """
        seeds = (self.random_state + shift for shift in (1000, 2000, 3000))
        return self.refined(), *(SymmetricNodes(self.outer, self.inner, seed, self.grid) for seed in seeds)


@lru_cache(maxsize=64)
def _nodes(count: int, dimension: int, seed: int) -> Nodes:
    if count < 4 * dimension:
        raise StakesError(
            f"{count} nodes are too few for {dimension} numbers, which need {4 * dimension}: give a "
            "SymmetricNodes(outer=..., inner=...) with more"
        )
    per_axis = math.floor(count ** (1.0 / dimension) + 1e-9)
    points, masses = _grid(per_axis, dimension) if per_axis >= _PER_AXIS else _sequence(count, dimension, seed)
    return _whitened(points, masses), masses


def _grid(per_axis: int, dimension: int) -> Nodes:
    """An even grid, so wide that the tails it leaves out weigh what its spacing costs a sigmoid of slope 2.

    Half a width r leaves out exp(-r^2 / 2); a pole at distance a costs exp(-2 pi a / spacing) with a = pi / 2.
    """
    reach = min(_TAIL, (math.pi**2 * (per_axis - 1)) ** (1.0 / 3.0))
    axis = np.linspace(-reach, reach, per_axis)
    points = np.array(list(product(axis, repeat=dimension)))
    masses = np.exp(-0.5 * np.sum(points**2, axis=1))
    return points, masses / masses.sum()


def _sequence(count: int, dimension: int, seed: int) -> Nodes:
    """A scrambled Sobol sequence through the normal quantiles, and its mirror image."""
    half = count // 2
    uniform = qmc.Sobol(dimension, rng=np.random.default_rng(seed)).random_base2(math.ceil(math.log2(half)))[:half]
    points = ndtri(np.clip(uniform, 1e-16, 1.0 - 1e-16))
    return np.concatenate([points, -points]), np.full(2 * half, 0.5 / half)


def _whitened(points: np.ndarray[Any, Any], masses: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The points, stretched a little so that their covariance is I."""
    values, vectors = np.linalg.eigh(points.T @ (masses[:, None] * points))
    whitened: np.ndarray[Any, Any] = points @ (vectors / np.sqrt(values)) @ vectors.T
    return whitened


def matvec(matrix: Array, vector: Array) -> Array:
    """[..., d]: matrix [..., d, e] times vector [..., e]."""
    return namespace(matrix).matmul(matrix, vector[..., None])[..., 0]


def squared_norm(vector: Array) -> Array:
    """[...]: the squared length of vectors [..., d]."""
    return namespace(vector).sum(vector**2, axis=-1)


def log_heights(integrand: Integrand, mean: Array, root: Array, u: Array) -> Array:
    """[...]: log of w(z) p(z) at z = mean + root u, up to the constant of the density."""
    xp = namespace(u)
    height = integrand.log_magnitudes(mean + matvec(root, u))[..., 0] - 0.5 * squared_norm(u)
    return xp.where(xp.isnan(height), xp.full_like(height, -xp.inf), height)


def weighted_mode(integrand: Integrand, mean: Array, root: Array, nodes: Nodes) -> Array:
    """[..., d]: u where w(z) p(z) is largest, uphill from the mean (from the best node where the mean weighs nothing).

    A full step goes to m + V grad log w(z): exact at once for w = exp(b . z). It is shortened where that is no gain.
    """
    xp = namespace(mean)
    u = _starting_point(integrand, mean, root, nodes)
    for _ in range(16):
        before = u
        u = _gradient_step(integrand, mean, root, u)
        if not math.prod(u.shape) or float(xp.max(abs(u - before))) < 1e-3:
            break
    if math.prod(u.shape) and (furthest := math.sqrt(float(xp.max(squared_norm(u))))) > _FURTHEST:
        raise FloatingPointError(
            f"the weight is so steep that what matters lies {furthest:.0f} standard deviations from the mean, too far "
            "to integrate, or the expected loss is infinite. Scale it down; Mahalanobis with an "
            "ExponentialLinearWeight needs no integration under a VectorGaussianBelief."
        )
    return u


def _starting_point(integrand: Integrand, mean: Array, root: Array, nodes: Nodes) -> Array:
    """[..., d]: 0, or the highest node where nothing weighs at the mean."""
    xp = namespace(mean)
    zero = xp.zeros_like(mean)
    known = xp.isfinite(log_heights(integrand, mean, root, zero))
    if bool(xp.all(known)):
        return zero
    grid = constant(nodes[0], mean) + zero[..., None, :]  # [..., Q, d]
    all_heights = log_heights(integrand, mean[..., None, :], root[..., None, :, :], grid)  # [..., Q]
    best = xp.where(is_first_largest(all_heights[..., None]), grid, xp.zeros_like(grid))
    return xp.where(known[..., None], zero, xp.sum(best, axis=-2))


def _gradient(integrand: Integrand, mean: Array, root: Array, u: Array) -> Array:
    """[..., d]: of the heights, by central differences along each coordinate of u."""
    steps = constant(_STEP * np.eye(u.shape[-1]), u)
    above, below = (
        log_heights(integrand, mean[..., None, :], root[..., None, :, :], u[..., None, :] + sign * steps)
        for sign in (1.0, -1.0)
    )
    return (above - below) / (2.0 * _STEP)


def _gradient_step(integrand: Integrand, mean: Array, root: Array, u: Array) -> Array:
    """One step along the gradient, shortened until it gains; none where it never does."""
    xp = namespace(u)
    here, move = log_heights(integrand, mean, root, u), _gradient(integrand, mean, root, u)
    move = xp.where(xp.isfinite(move), move, xp.zeros_like(move))
    moving = xp.isfinite(here)
    for shrink in (1.0, 0.25, 0.0625, 0.015625):
        there = log_heights(integrand, mean, root, u + shrink * move)
        better = moving & xp.isfinite(there) & (there > here)
        u, moving = xp.where(better[..., None], u + shrink * move, u), moving & ~better
    return u


def vector_moments(
    integrand: Integrand, mean: Array, root: Array, centre: Array, reference: Reference, nodes: Nodes
) -> Array:
    """[M, K, D]: E[S(z)] for z = mean + root u about a centre of u, [M, K, d] each; in blocks of K."""
    xp = namespace(mean)
    point, parts = reference.point, []
    assert point is not None
    e, masses = (constant(each, mean) for each in nodes)  # [Q, d], [Q]
    boost = (log_weight(point, integrand) - reference.log_scale)[:, None] - 0.5 * squared_norm(centre)  # [M, K]
    for part in slices(mean.shape[1], max(1, CHUNK // (e.shape[0] * max(mean.shape[0], 1)))):
        c = centre[:, part, :]
        spread = xp.matmul(c[..., None, :] + e, xp.matrix_transpose(root[:, part, :, :]))  # [M, k, Q, d]
        statistics = integrand.statistics(mean[:, part, None, :] + spread, point[:, None, None, :])
        share = masses * xp.exp(boost[:, part, None] - xp.matmul(c, e.T))  # [M, k, Q]
        parts.append(xp.matmul(share[..., None, :], statistics)[..., 0, :])
    return xp.concat(parts, axis=1)


def split_vector_moments(
    integrand: Integrand, factor: Array, rest: Array, tilt: Array, reference: Reference, outer: Nodes, inner: Nodes
) -> Array:
    """[N, M, J, D]: E[S(z) | eta_j] times the mass of node j, for z = mean + B eta + E e.

    B is `factor` [N, M, d, L], E is `rest` [N, M, d, d], and `tilt` [M, d] is V^+ (point - mean): given that z is at
    the reference point, eta is at B' tilt and e at E' tilt, and nodes are laid out about there.
    """
    xp = namespace(factor)
    point = reference.point
    assert point is not None
    transposed = (xp.matrix_transpose(each) for each in (factor, rest))
    distance = sum(squared_norm(matvec(each, tilt)) for each in transposed)  # [N, M]: squared, from mean to point
    boost = log_weight(point, integrand) - reference.log_scale - 0.5 * distance
    parts = list(slices(tilt.shape[0], max(1, CHUNK // (len(outer[0]) * len(inner[0])))))
    rows = [
        [
            _split_block(integrand, factor[n, m, ...], rest[n, m, ...], tilt[m, :], point[m, :], outer, inner)
            for m in parts
        ]
        for n in range(factor.shape[0])
    ]
    if not rows:
        width = integrand.statistics(point, point).shape[-1]
        return filled((0, tilt.shape[0], len(outer[0]), width), 0.0, factor)
    return xp.exp(boost)[..., None, None] * xp.stack([xp.concat(row, axis=0) for row in rows])


def _split_block(
    integrand: Integrand, factor: Array, rest: Array, tilt: Array, point: Array, outer: Nodes, inner: Nodes
) -> Array:
    """[m, J, D]: the split moments of one candidate and some contexts, without the boost."""
    xp = namespace(factor)
    (eta, eta_mass), (e, e_mass) = ([constant(each, factor) for each in nodes] for nodes in (outer, inner))
    shift, spread = (xp.matmul(nodes, xp.matrix_transpose(to)) for nodes, to in ((eta, factor), (e, rest)))
    z = point[:, None, None, :] + shift[:, :, None, :] + spread[:, None, :, :]  # [m, J, Q, d]
    statistics = integrand.statistics(z, point[:, None, None, :])  # [m, J, Q, D]
    outer_share = eta_mass * xp.exp(-matvec(shift, tilt))  # [m, J]
    inner_share = e_mass * xp.exp(-matvec(spread, tilt))  # [m, Q]
    return outer_share[..., None] * xp.matmul(inner_share[:, None, None, :], statistics)[:, :, 0, :]
