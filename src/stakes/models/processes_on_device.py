"""Bayesian processes of many data sets at once, by torch on any of its devices: what a simulation in bulk fits.

The prior, the covariance and the sampler are those of `BayesianProcess`: the most probable hyperparameters from a few
starts, then Hamiltonian Monte Carlo in the units of the curvature there. Each draw is the end of a chain of its own,
and all chains of all data sets take a step together. A data set that has grown by a label goes on from where its
chains were; with a quarter more labels the search begins anew. It is imported when a simulation is given a device.

Sizes: R tables of n rows and p columns, G data sets, each of m labels on rows of one table; S draws for each,
t = 5 + p hyperparameters, c chains of a call, Q rows asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from stakes._utils.tables import Host
from stakes.beliefs.warped import SoftplusWarp, warped_moments
from stakes.models.process_hyperparameters import (
    ACCEPTED,
    CONSTANT,
    DIFFERENCE,
    EVERY,
    EVIDENT,
    FURTHEST,
    GLOBALS,
    JITTER,
    LEAPS,
    LEAST_NOISE,
    MEDIANS,
    NOWHERE,
    SHORT,
    SPREADS,
    STEP,
    WIDEST,
    WarpChoice,
    columns_followed,
    median_distance,
    scales_of,
    seen_through,
)

Tensor: TypeAlias = Any
"""One of torch."""
_FIRST, _NEXT = 12, 2  # trajectories of chains that are new, and of those that go on
_ANEW = 1.25  # times the labels of the last search of the most probable point, when it is searched again
_CLIMB = 50  # steps of a search
_BELOW = 4.0  # times t: chains that would start so far below the highest log density start at its place
_FAR = 0.75 * FURTHEST  # that a search may go
_LEARNING = 0.3  # of the step of trajectories


class LabelMoments(NamedTuple):
    """One Gaussian for each data set, with the means and covariances of its draws, within and between them."""

    mean: Tensor
    """[G, M]"""
    variance: Tensor
    """[G, M]: of labels"""
    label_variance: Tensor
    """[G, N]"""
    covariance: Tensor
    """[G, N, M]"""
    noise: Tensor
    """[G, N]: its variance"""


class ProcessesOnDevice:
    """Draws of hyperparameters for labels on rows of R tables, each in standard units [n, p].

    Args:
        tables: [R] of rows [n, p], all of one shape.
        n_draws: S.
        seed: Of all random numbers.
        device: Of torch.
        warp: As of `BayesianProcess`.
    """

    def __init__(self, tables: Sequence[Host], n_draws: int, seed: int, device: str, warp: WarpChoice = "auto") -> None:
        self.rows = torch.as_tensor(np.stack(tables), dtype=torch.float64, device=device)  # [R, n, p]
        medians = [math.log(median_distance(each)) for each in tables]
        self.log_median = torch.as_tensor(medians, dtype=torch.float64, device=device)
        self.n_draws, self.warp = n_draws, warp
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self._spreads = torch.as_tensor(SPREADS, device=device)
        self._medians = torch.as_tensor(MEDIANS, device=device)
        self._leaps = torch.Generator().manual_seed(seed)

    def fitted(self, which: Host, labelled: Host, labels: Host, before: Fits | None = None) -> Fits:
        """Fits to labels [G, m] of the rows at `labelled` [G, m] of tables `which` [G].

        `before` are fits to the first labels of the same data sets, in the same order; their chains go on.
        """
        tables = torch.as_tensor(which, device=self.rows.device)
        rows = self.rows[tables[:, None], torch.as_tensor(labelled, device=self.rows.device)]  # [G, m, p]
        groups, size = len(which), GLOBALS + rows.shape[2]
        of = torch.arange(groups, device=self.rows.device).repeat_interleave(self.n_draws)  # [c]
        if before is not None and labels.shape[1] < _ANEW * before.searched:
            data = self._data(tables, rows, labels, before.data.scale.cpu().numpy())
            units, searched, chains, turns = before.units, before.searched, before.chains, _NEXT
        else:
            data, centre = self._seen_through(tables, rows, labels, before)
            units, searched, turns = self._curvature(data, centre), labels.shape[1], _FIRST
            drawn = torch.randn(
                (groups, self.n_draws, size), generator=self.generator, dtype=rows.dtype, device=rows.device
            )
            chains = centre[:, None] + (drawn / units.scale[:, None]) @ units.directions.transpose(1, 2)
            every = torch.arange(groups, device=rows.device)
            highest = self.log_posterior(data, centre, every)[0]
            height = self.log_posterior(data, chains.reshape(-1, size), of)[0].reshape(groups, -1)
            off = height < (highest - _BELOW * size)[:, None]
            chains = torch.where(off[..., None], centre[:, None], chains)
        chains, units = self._walked(data, chains.reshape(-1, size), of, units, turns)
        return Fits(self, data, tables, chains.reshape(groups, self.n_draws, size), units, searched)

    def _data(self, tables: Tensor, rows: Tensor, labels: Host, scale: Host) -> _Data:
        """Labels [G, m] seen through warps of scales [G], 0 for none, in standard units."""
        device = rows.device
        pairs = [seen_through(each, own or None) for each, own in zip(labels, scale.tolist(), strict=True)]
        latent, log_slope = (np.stack(each) for each in zip(*pairs, strict=True))
        offset, unit = latent.mean(axis=1), latent.std(axis=1)
        unit = np.where(unit > 0, unit, 1.0)
        own = np.ones((len(rows), rows.shape[2]))
        if rows.shape[2] > len(columns_followed(rows[0].cpu().numpy(), latent[0])):
            own = np.zeros_like(own)
            for place, each in enumerate(rows.cpu().numpy()):
                own[place, columns_followed(each, latent[place])] = 1.0
        numbers = ((latent - offset[:, None]) / unit[:, None], own, offset, unit, scale, log_slope.sum(axis=1))
        targets, own, offset, unit, scale, slope = (torch.as_tensor(each, device=device) for each in numbers)
        return _Data(rows, targets, own, self.log_median[tables], offset, unit, scale, slope)

    def _seen_through(self, tables: Tensor, rows: Tensor, labels: Host, before: Fits | None) -> tuple[_Data, Tensor]:
        """Labels through the warp that leave-one-out log density asks for, or none; and the most probable points."""
        groups, size = len(rows), GLOBALS + rows.shape[2]
        plain = self._data(tables, rows, labels, np.zeros(groups))
        centre = self._most_probable(plain, self._starts(groups, size, before))
        may = [scales_of(each, self.warp) for each in labels]
        if all(each == [None] for each in may):
            return plain, centre
        scale = np.asarray([each[-1] or 0.0 for each in may])
        warped = self._data(tables, rows, labels, np.where(scale > 0, scale, 0.0))
        other = self._most_probable(warped, self._starts(groups, size, before))
        gain = self._leave_one_out(warped, other) - self._leave_one_out(plain, centre)
        must = torch.as_tensor([len(each) == 1 and each[0] is not None for each in may], device=rows.device)
        better = must | ((warped.scale > 0) & (gain >= EVIDENT))
        chosen = [torch.where(_like(better, one), one, two) for one, two in zip(warped, plain, strict=True)]
        return _Data(*chosen), torch.where(better[:, None], other, centre)

    def _leave_one_out(self, data: _Data, u: Tensor) -> Tensor:
        """[G]: as `process_hyperparameters.leave_one_out`, of labels in their own units."""
        of = torch.arange(len(u), device=u.device)
        factor, failed, _ = self._root(self.hyperparameters(data, u, of), data.rows)
        eye = torch.eye(factor.shape[1], dtype=u.dtype, device=u.device).expand_as(factor)
        inverse_root = torch.linalg.solve_triangular(factor, eye, upper=False)
        precision = (inverse_root**2).sum(1)
        weights = (inverse_root.transpose(1, 2) @ (inverse_root @ data.targets[..., None]))[..., 0]
        density = 0.5 * (torch.log(precision / (2.0 * math.pi)) - weights**2 / precision).sum(1)
        density = density + data.log_slope - data.targets.shape[1] * torch.log(data.unit)
        return torch.where(failed == 0, density, torch.full_like(density, NOWHERE))

    def _starts(self, groups: int, size: int, before: Fits | None) -> Tensor:
        """[G, k, t]: where searches begin: the middle of the prior, little noise, much; and the mean of chains."""
        starts = torch.zeros((groups, 3, size), dtype=torch.float64, device=self.rows.device)
        starts[:, 1, 0], starts[:, 1, 3] = -0.5, -1.0
        starts[:, 2, 0], starts[:, 2, 3] = 0.7, 1.0
        return starts if before is None else torch.cat([starts, before.chains.mean(1, keepdim=True)], dim=1)

    def hyperparameters(self, data: _Data, u: Tensor, of: Tensor) -> ProcessValues:
        """Those of standard normals u [.., t] of the data sets `of` [..]."""
        logs = self._medians + self._spreads * u[..., :GLOBALS]
        level = logs[..., 0] + data.log_median[of]
        apart = torch.exp(logs[..., 1])[..., None] * u[..., GLOBALS:] * data.own[of]
        inverse = torch.exp(-(level[..., None] + apart.clamp(-50.0, 50.0)))
        return ProcessValues(
            inverse, torch.exp(logs[..., 2]), LEAST_NOISE + torch.exp(logs[..., 3]), torch.exp(logs[..., 4])
        )

    def _walked(self, data: _Data, u: Tensor, of: Tensor, units: Units, turns: int) -> tuple[Tensor, Units]:
        """[c, t]: the chains after so many trajectories, in units of the curvature; and the units with their steps."""
        directions, scale, step = units.directions[of], units.scale[of], units.step  # [c, t, t], [c, t], [G]

        def along(gradient: Tensor) -> Tensor:
            return (directions.transpose(1, 2) @ gradient[..., None])[..., 0] / scale

        def moved(by: Tensor) -> Tensor:
            return (directions @ (by / scale)[..., None])[..., 0]

        options = {"generator": self.generator, "device": u.device, "dtype": u.dtype}
        value, slope = self.log_posterior(data, u, of)
        for turn in range(turns):
            momentum = torch.randn(u.shape, **options)
            energy = value - 0.5 * (momentum**2).sum(-1)
            stride = step[of] * (0.8 + 0.4 * torch.rand(len(u), **options))
            stride = stride[:, None] * (SHORT if turn % EVERY == EVERY - 1 else 1.0)
            place, height, gradient = u, value, slope
            for _ in range(int(torch.randint(LEAPS[0], LEAPS[1] + 1, (1,), generator=self._leaps))):
                momentum = momentum + 0.5 * stride * along(gradient)
                place = place + moved(stride * momentum)
                height, gradient = self.log_posterior(data, place, of)
                momentum = momentum + 0.5 * stride * along(gradient)
            gain = (height - 0.5 * (momentum**2).sum(-1) - energy).nan_to_num(-torch.inf, posinf=-torch.inf)
            acceptance = torch.exp(gain.clamp_max(0.0))
            taken = torch.rand(len(u), **options) < acceptance
            u = torch.where(taken[:, None], place, u)
            value, slope = torch.where(taken, height, value), torch.where(taken[:, None], gradient, slope)
            if turn % EVERY != EVERY - 1:
                step = (step * torch.exp(_LEARNING * (acceptance.reshape(len(step), -1).mean(1) - ACCEPTED))).clamp(
                    0.02, 1.2
                )
        return u, units._replace(step=step)

    def _most_probable(self, data: _Data, starts: Tensor) -> Tensor:
        """[G, t]: the best of where Adam's steps lead from starts [G, k, t]."""
        groups, count, size = starts.shape
        of = torch.arange(groups, device=starts.device).repeat_interleave(count)
        u, first, second = starts.reshape(-1, size), 0.0, 0.0
        for step in range(1, _CLIMB + 1):
            _, gradient = self.log_posterior(data, u, of)
            first, second = 0.8 * first + 0.2 * gradient, 0.95 * second + 0.05 * gradient**2
            rise = (first / (1.0 - 0.8**step)) / (torch.sqrt(second / (1.0 - 0.95**step)) + 1e-8)
            u = (u + 0.3 * math.cos(0.5 * math.pi * step / (_CLIMB + 1)) * rise).clamp(-_FAR, _FAR)
        height = self.log_posterior(data, u, of)[0].reshape(groups, count)
        return u.reshape(starts.shape)[torch.arange(groups, device=u.device), height.argmax(1)]

    def _curvature(self, data: _Data, centre: Tensor) -> Units:
        """Those of the log density at `centre` [G, t], by differences of its gradient."""
        size, of = centre.shape[1], torch.arange(len(centre), device=centre.device)
        columns = []
        for step in DIFFERENCE * torch.eye(size, dtype=centre.dtype, device=centre.device):
            below, above = (self.log_posterior(data, centre + each, of)[1] for each in (-step, step))
            columns.append((below - above) / (2.0 * DIFFERENCE))
        curvature = torch.stack(columns, dim=1)
        values, directions = torch.linalg.eigh((curvature + curvature.transpose(1, 2)) / 2.0)
        step = torch.full((len(centre),), STEP, dtype=centre.dtype, device=centre.device)
        return Units(directions, torch.sqrt(values.clamp_min(WIDEST)), step)

    def log_posterior(self, data: _Data, u: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
        """[c], [c, t]: the value up to a constant and its gradient; almost -inf where the covariance has no root."""
        values, rows = self.hyperparameters(data, u, of), data.rows[of]
        factor, failed, distance = self._root(values, rows)
        eye = torch.eye(rows.shape[1], dtype=u.dtype, device=u.device)
        inverse_root = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
        solved = inverse_root @ data.targets[of][..., None]  # [c, m, 1]
        weights = inverse_root.transpose(1, 2) @ solved
        by_matrix = 0.5 * (weights @ weights.transpose(1, 2) - inverse_root.transpose(1, 2) @ inverse_root)
        roots = torch.diagonal(factor, dim1=-2, dim2=-1)
        value = -0.5 * (solved[..., 0] ** 2).sum(-1) - torch.log(roots).sum(-1) - 0.5 * (u**2).sum(-1)
        decay = torch.exp(-distance) * by_matrix
        by_shape = ((1.0 + distance * (1.0 + distance / 3.0)) * decay).sum((1, 2))
        pull = (1.0 + distance) * decay * (5.0 / 3.0 * values.variance)[:, None, None]
        scaled = rows * values.inverse[:, None, :]
        by_length = 2.0 * (pull.sum(2)[..., None] * scaled**2 - scaled * (pull @ scaled)).sum(1)  # [c, p]
        trace = torch.diagonal(by_matrix, dim1=-2, dim2=-1).sum(-1)
        by_slope = (rows * (by_matrix @ rows)).sum((1, 2)) / rows.shape[2]
        apart = u[:, GLOBALS:] * data.own[of]
        spread = torch.exp(self._medians[1] + self._spreads[1] * u[:, 1])
        common = [
            by_length.sum(1),
            spread * (by_length * apart).sum(1),
            values.variance * by_shape,
            (values.noise - LEAST_NOISE) * trace,
            values.slope * by_slope,
        ]
        columns = spread[:, None] * by_length * data.own[of]
        gradient = torch.cat([self._spreads * torch.stack(common, dim=1), columns], dim=1) - u
        fine = (failed == 0) & torch.isfinite(value) & (abs(u) < FURTHEST).all(1)
        return torch.where(fine, value, torch.full_like(value, NOWHERE)), torch.where(fine[:, None], gradient, 0.0 * u)

    def _root(self, values: ProcessValues, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[c, m, m], [c], [c, m, m]: the root of the covariance of labels, whether there is none, and sqrt(5) r."""
        whole, distance = covariance_of_labels(values, rows)
        factor, failed = torch.linalg.cholesky_ex(whole)
        return factor, failed, distance


class _Data(NamedTuple):
    """Labels of G data sets, in standard units."""

    rows: Tensor
    """[G, m, p]"""
    targets: Tensor
    """[G, m]"""
    own: Tensor
    """[G, p]: 1 for columns with lengths of their own, 0 for others"""
    log_median: Tensor
    """[G]: of the distance between rows"""
    offset: Tensor
    """[G]: of labels, seen through the warp"""
    unit: Tensor
    """[G]: of the same"""
    scale: Tensor
    """[G]: of the warp, 0 for none"""
    log_slope: Tensor
    """[G]: of g^-1, summed over labels"""


class ProcessValues(NamedTuple):
    """Of any number of processes."""

    inverse: Tensor
    """[.., p]: 1 / lengths"""
    variance: Tensor
    """[..]"""
    noise: Tensor
    """[..]"""
    slope: Tensor
    """[..]"""


class Units(NamedTuple):
    """In which chains walk."""

    directions: Tensor
    """[G, t, t]: principal ones of minus the log density"""
    scale: Tensor
    """[G, t]: roots of its curvature along them"""
    step: Tensor
    """[G]: of a trajectory"""


class Fits:
    """What G data sets say, by chains [G, S, t]; searched when they had so many labels."""

    def __init__(
        self, processes: ProcessesOnDevice, data: _Data, which: Tensor, chains: Tensor, units: Units, searched: int
    ) -> None:
        self.processes, self.data, self.which, self.chains = processes, data, which, chains
        self.units, self.searched = units, searched

    def __len__(self) -> int:
        return len(self.which)

    def take(self, places: Host) -> Fits:
        """Some of the data sets, in any order, also several times."""
        chosen = torch.as_tensor(places, device=self.which.device)
        data = _Data(*(each[chosen] for each in self.data))
        units = Units(*(each[chosen] for each in self.units))
        return Fits(self.processes, data, self.which[chosen], self.chains[chosen], units, self.searched)

    def predicted(self, positions: Host) -> tuple[Tensor, Tensor]:
        """[G, Q], [G, Q]: mean and variance of labels at the rows at `positions` [G, Q], averaged over draws."""
        solved = self._solved()
        _, _, mean, variance = self._at(solved, positions)
        average = mean.mean(1)
        spread = (variance + solved.values.noise[..., None] + (mean - average[:, None]) ** 2).mean(1)
        return self._in_units_of_labels(average, spread)[:2]

    def pair_covariances(self, positions: Host, partners: Host) -> Tensor:
        """[G, Q]: of labels at the rows at `positions` and at those at `partners` [G, Q]."""
        solved = self._solved()
        rows, root, mean, variance = self._at(solved, positions)
        others, other_root, other_mean, other_variance = self._at(solved, partners)
        values, noise = solved.values, solved.values.noise[..., None]
        squares = ((rows - others) ** 2 * values.inverse[:, :, None] ** 2).sum(-1)
        prior = values.variance[..., None] * _matern(squares) + CONSTANT
        prior = prior + (values.slope / rows.shape[-1])[..., None] * (rows * others).sum(-1)
        gaps, other_gaps = mean - mean.mean(1, keepdim=True), other_mean - other_mean.mean(1, keepdim=True)
        covariance = (prior - (root * other_root).sum(-2) + gaps * other_gaps).mean(1)
        sides = ((mean, variance + noise + gaps**2), (other_mean, other_variance + noise + other_gaps**2))
        one, two = (self._in_units_of_labels(each.mean(1), spread.mean(1))[2] for each, spread in sides)
        return covariance * one * two

    def _in_units_of_labels(self, mean: Tensor, variance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[G, Q] each: mean and variance of labels given those of standard ones, and the ratio of their sds."""
        unit, scale = self.data.unit[:, None], self.data.scale[:, None]
        mean, whole = self.data.offset[:, None] + unit * mean, unit**2 * variance
        if bool((scale > 0).any()):
            found = warped_moments(SoftplusWarp(1.0), mean.reshape(-1), whole.reshape(-1))
            centre, spread = (each.reshape(mean.shape) for each in found)
            mean = torch.where(scale > 0, scale * centre, mean)
            whole = torch.where(scale > 0, scale**2 * spread, whole)
        return mean, whole, torch.sqrt(whole / variance)

    def moments(self, candidates: Host, contexts: Host) -> LabelMoments:
        """Of labels at rows at `candidates` [G, N] and at `contexts` [G, M]."""
        solved = self._solved()
        here, root, label_mean, label_variance = self._at(solved, candidates)  # [G, 1, N, p], [G, S, m, N], [G, S, N]
        there, other_root, mean, variance = self._at(solved, contexts)
        noise = solved.values.noise[..., None]
        within = _covariance(solved.values, here, there) - root.transpose(-1, -2) @ other_root  # [G, S, N, M]
        centre, label_centre = mean.mean(1), label_mean.mean(1)
        gaps, label_gaps = mean - centre[:, None], label_mean - label_centre[:, None]
        covariance = within.mean(1) + label_gaps.transpose(1, 2) @ gaps / gaps.shape[1]
        variance = (variance + noise + gaps**2).mean(1)
        label_variance = (label_variance + noise + label_gaps**2).mean(1)
        most = torch.sqrt(variance[:, None] * label_variance[..., None])
        covariance = torch.minimum(torch.maximum(covariance, -most), most)  # which rounding alone exceeds
        mean, variance, unit = self._in_units_of_labels(centre, variance)
        _, label_variance, label_unit = self._in_units_of_labels(label_centre, label_variance)
        beside = label_unit**2 * noise.mean(1)
        return LabelMoments(mean, variance, label_variance, covariance * label_unit[..., None] * unit[:, None], beside)

    def left_out(self) -> tuple[Tensor, Tensor]:
        """[G, m], [G, m]: mean and variance of each label given all others, averaged over draws.

        Draws are weighed by what they said of the other labels: by 1 / p(label | others), cut off at sqrt(S) times the
        mean weight.
        """
        solved = self._solved()
        eye = torch.eye(solved.factor.shape[-1], dtype=solved.factor.dtype, device=self.which.device)
        inverse_root = torch.linalg.solve_triangular(solved.factor, eye.expand_as(solved.factor), upper=False)
        variance = 1.0 / (inverse_root**2).sum(-2)  # [G, S, m]
        gap = variance * (inverse_root.transpose(-1, -2) @ solved.labels)[..., 0]  # of the label from its mean
        weights = torch.softmax(0.5 * (torch.log(variance) + gap**2 / variance), dim=1)
        weights = weights.clamp_max(weights.shape[1] ** -0.5)
        weights = weights / weights.sum(1, keepdim=True)
        gaps = (weights * gap).sum(1)
        spread = (weights * (variance + (gap - gaps[:, None]) ** 2)).sum(1)
        return self._in_units_of_labels(self.data.targets - gaps, spread)[:2]

    def _solved(self) -> _Solved:
        of = torch.arange(len(self), device=self.which.device)[:, None].expand(self.chains.shape[:2])
        values = self.processes.hyperparameters(self.data, self.chains, of)
        rows = self.data.rows[:, None]  # [G, 1, m, p]
        factor = torch.linalg.cholesky(covariance_of_labels(values, rows)[0])
        targets = self.data.targets[:, None, :, None].expand(*self.chains.shape[:2], -1, 1)
        return _Solved(values, rows, factor, torch.linalg.solve_triangular(factor, targets, upper=False))

    def _at(self, solved: _Solved, positions: Host) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """[G, 1, Q, p] rows, [G, S, m, Q] L^-1 K, and mean and variance of f [G, S, Q]."""
        chosen = torch.as_tensor(positions, device=self.which.device)
        rows = self.processes.rows[self.which[:, None], chosen][:, None]
        root = torch.linalg.solve_triangular(solved.factor, _covariance(solved.values, solved.rows, rows), upper=False)
        mean = (root * solved.labels).sum(-2)
        prior = (solved.values.variance + CONSTANT)[..., None] + solved.values.slope[..., None] * (rows**2).mean(-1)
        return rows, root, mean, (prior - (root**2).sum(-2)).clamp_min(0.0)


class _Solved(NamedTuple):
    values: ProcessValues
    """[G, S]"""
    rows: Tensor
    """[G, 1, m, p]"""
    factor: Tensor
    """[G, S, m, m]: L"""
    labels: Tensor
    """[G, S, m, 1]: L^-1 labels"""


def covariance_of_labels(values: ProcessValues, rows: Tensor) -> tuple[Tensor, Tensor]:
    """[.., m, m] each: the prior covariance of labels, noise included, and sqrt(5) r."""
    scaled = rows * values.inverse[..., None, :]
    norms = (scaled**2).sum(-1)
    squares = norms[..., :, None] + norms[..., None, :] - 2.0 * scaled @ scaled.transpose(-1, -2)
    distance = torch.sqrt(5.0 * squares.clamp_min(0.0))
    torch.diagonal(distance, dim1=-2, dim2=-1).zero_()
    shape = (1.0 + distance * (1.0 + distance / 3.0)) * torch.exp(-distance)
    line = rows @ rows.transpose(-1, -2) * (values.slope / rows.shape[-1])[..., None, None]
    whole = values.variance[..., None, None] * shape + CONSTANT + line
    torch.diagonal(whole, dim1=-2, dim2=-1).add_((values.noise + JITTER)[..., None])
    return whole, distance


def _covariance(values: ProcessValues, rows: Tensor, others: Tensor) -> Tensor:
    """[.., n, Q]: of f, for rows [.., n, p] and others [.., Q, p]."""
    scaled, also = rows * values.inverse[..., None, :], others * values.inverse[..., None, :]
    squares = (
        (scaled**2).sum(-1)[..., :, None] + (also**2).sum(-1)[..., None, :] - 2.0 * scaled @ also.transpose(-1, -2)
    )
    line = rows @ others.transpose(-1, -2) * (values.slope / rows.shape[-1])[..., None, None]
    return values.variance[..., None, None] * _matern(squares) + CONSTANT + line


def _like(mask: Tensor, values: Tensor) -> Tensor:
    """[G, 1, ..]: a mask [G] beside values [G, ..]."""
    return mask.reshape(-1, *[1] * (values.ndim - 1))


def _matern(squares: Tensor) -> Tensor:
    """Matern 5/2 of squared distances."""
    distance = torch.sqrt(5.0 * squares.clamp_min(0.0))
    return (1.0 + distance * (1.0 + distance / 3.0)) * torch.exp(-distance)
