"""Batches under ensembles of any kind, by the general route: the regret of today's action in each configuration.

Given the member, labels are independent, so a configuration of the batch's labels and a member have the product of
their probabilities. Configurations are enumerated, or sampled when they are many. Ensembles of classes on the host have
a quicker way (`stakes.acquisition.class_batches`), which is tested against this one.

Sizes: N candidates, n of a block, M contexts, K members, J cells of one label, Q configurations, R counts of repeats, D
statistics.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np

from stakes._utils.array import Array, constant, double, log_of, log_sum, namespace, slices
from stakes.acquisition.forms import member_tables
from stakes.acquisition.scores import MEMORY_LIMIT, log_worth, regret_of_members
from stakes.beliefs import Belief, CategoricalEnsemble, NormalEnsemble, VectorNormalEnsemble, VoteEnsemble
from stakes.beliefs.log_moments import split_by_member
from stakes.losses import AnyLoss, BrierLoss, Loss, Mahalanobis, SquaredError
from stakes.losses.domains import Classes, Vectors


class EnsembleBatch:
    """Under an ensemble: the probability of each configuration of the batch's labels and each member, [Q, K].

    Repeats of one label are known for classes, while their configurations stay within `max_configurations`; a label of
    an ensemble of normals has a hundred cells or so, and repeats of it are not known. Those are the cells of its rule,
    which do not split where a decision or a quantile passes from one member to another: good to a percent or so there.
    """

    def __init__(
        self,
        loss: AnyLoss,
        belief: CategoricalEnsemble | VoteEnsemble | NormalEnsemble | VectorNormalEnsemble,
        log_weights: Array,
        rng: np.random.Generator,
        max_configurations: int,
        configurations: Array = None,
        several: Any = None,
    ) -> None:
        self.belief, self.rng, self.most = belief, rng, max_configurations
        self.several: Any = belief if several is None else several  # with fewer cells, for more labels than one
        self.loss, self.tables = loss, member_tables(loss, belief)
        self.in_logs = any(table.in_logs for _, table in self.tables)
        self.log_weights = log_weights  # [M]
        xp = namespace(log_weights)
        self.log_share = xp.concat([table.log_scale for _, table in self.tables]) + log_weights  # [M]
        members = double(belief.member_weights)[None, :]
        given = members if configurations is None else configurations
        self.configurations = log_of(given) if self.in_logs else given  # [Q, K]; logarithms where moments are
        self.actions = [table.today(belief.take(slice(None), part)) for part, table in self.tables]  # [m, d] each
        self.sampled = False

    @property
    def method(self) -> str:
        """Which of the two it came to."""
        return "sampled" if self.sampled else "enumerated"

    @property
    def repeats(self) -> tuple[int, ...]:
        """2, 4 and 8 as far as configurations go."""
        if not isinstance(self.belief.domain, Classes):
            return ()
        room = self.most // self.configurations.shape[0]
        return tuple(count for count in (2, 4, 8) if self._n_cells(count) <= room)

    def log_joint(self) -> float:
        """The log of the regret of today's action, summed over the configurations so far."""
        return float(self._log_worth(self._regrets(self.configurations[None, ...]))[0])

    def log_contexts(self) -> Array:
        """[M]: the log of p(c) times the regret of today's action, summed over the configurations so far."""
        regrets = self._regrets(self.configurations[None, ...])[0, ...]  # [M, Q]
        return log_of(namespace(regrets).sum(regrets, axis=1)) + self.log_share

    def log_most(self) -> Array:
        """[M]: the log of p(c) times the regret of today's action once the member is known."""
        xp, found, weights = namespace(self.configurations), [], double(self.belief.member_weights)
        for (_, table), action in zip(self.tables, self.actions, strict=True):
            if table.in_logs:
                regrets = table.loss.regret(log_of(weights)[:, None] + table.expected, action[:, None, :])  # [m, K]
                found.append(xp.sum(regrets, axis=1))
            else:
                found.append(regret_of_members(table.loss, weights, table.expected, action, table.point))
        return log_of(xp.concat(found)) + self.log_share

    def log_reduction(self, candidate: int) -> float:
        """That of `log_reductions` for one candidate."""
        return float(self._log_worth(self._regrets(self._extended(slice(candidate, candidate + 1))))[0])

    def log_reductions(self, count: int = 1, prices: Array | None = None) -> Array:
        """[N]: of sum over configurations of the regret of today's action, in blocks of candidates."""
        cells = self.configurations.shape[0] * self._n_cells(count)
        numbers = sum(math.prod(table.expected.shape[::2]) for _, table in self.tables)
        block = max(1, MEMORY_LIMIT // (8 * 8 * cells * numbers))
        parts = slices(self.belief.n_candidates, block)
        xp = namespace(self.configurations)
        return xp.concat([self._log_worth(self._regrets(self._extended(part, count))) for part in parts])

    def variance_gains(self) -> Array:
        """[N]: the gain of squared error, or of the Brier score for classes, on top of the same configurations."""
        xp, loss = namespace(self.configurations), variance_of(self.belief)
        plain = xp.exp(self.configurations) if self.in_logs else self.configurations
        settings = self.log_weights, self.rng, self.most, plain, self.several
        same = EnsembleBatch(loss, self.belief, *settings)
        gains = xp.exp(same.log_reductions()) - math.exp(same.log_joint())
        return xp.where(gains > 0, gains, xp.zeros_like(gains))  # below by rounding only

    def add(self, candidate: int) -> float:
        """Extend the configurations by the candidate's label; sample them when they are too many."""
        xp, here = namespace(self.configurations), slice(candidate, candidate + 1)
        error = self._sampling_error(here) if self.sampled else 0.0
        extended = self._joint(self._outcomes(self.several, here))[0, ...]  # [Q J, K]
        mass = xp.exp(log_sum(extended)) if self.in_logs else xp.sum(extended, axis=1)
        possible = xp.nonzero(mass > 0)[0]
        extended, mass = xp.take(extended, possible, axis=0), xp.take(mass, possible)
        if extended.shape[0] > self.most:
            share = np.asarray([float(each) for each in mass])
            drawn = self.rng.choice(share.shape[0], size=self.most, p=share / share.sum())
            drawn = xp.asarray(drawn, device=getattr(mass, "device", None))
            each, own = xp.take(extended, drawn, axis=0), float(self.most) * xp.take(mass, drawn)[:, None]
            extended = each - xp.log(own) if self.in_logs else each / own
            self.sampled = True
        self.configurations = extended
        return error

    def _n_cells(self, count: int) -> int:
        """J, or the number R of ways to share out `count` repeats among J cells."""
        cells = self._of_next_label().n_cells(self.loss)
        return cells if count == 1 else math.comb(count + cells - 1, count)

    def _log_worth(self, regrets: Array) -> Array:
        return log_worth(namespace(regrets).sum(regrets, axis=2), self.log_share)

    def _regrets(self, cells: Array) -> Array:
        """[n, M, Q]: the regret of today's action in each of the configurations `cells` [n, Q, K]."""
        xp, found = namespace(cells), []
        for (_, table), action in zip(self.tables, self.actions, strict=True):
            if table.in_logs:
                found.append(table.loss.regret(split_by_member(cells, table.expected), action[:, None, :]))
                continue
            plain = xp.exp(cells) if self.in_logs else cells
            split = xp.permute_dims(xp.tensordot(plain, table.expected, axes=([2], [1])), (0, 2, 1, 3))  # [n, m, Q, D]
            found.append(table.loss.regret(split, action[:, None, :], table.point))
        return xp.concat(found, axis=1)

    def _extended(self, part: slice, count: int = 1) -> Array:
        """[n, Q J, K]: configurations with the label of each candidate of a block, or with `count` labels like it."""
        outcomes = self._outcomes(self._of_next_label(), part)
        return self._joint(outcomes if count == 1 else repeated(double(outcomes), count))  # [n, R, K]

    def _outcomes(self, belief: Any, part: slice) -> Array:
        """[n, J, K]: the probability of each outcome under each member, or its logarithm."""
        block = belief.take(part, slice(None))
        return block.member_log_outcomes() if self.in_logs else block.member_outcomes()

    def _of_next_label(self) -> Any:
        """The belief whose cells are those of the next label."""
        return self.belief if self.configurations.shape[0] == 1 else self.several

    def _joint(self, outcomes: Array) -> Array:
        """[n, Q J, K]: configurations with outcomes [n, J, K] of one more label."""
        xp = namespace(self.configurations)
        if self.in_logs:
            joint = self.configurations[None, :, None, :] + outcomes[:, None, :, :]
        else:
            joint = self.configurations[None, :, None, :] * double(outcomes)[:, None, :, :]  # [n, Q, J, K]
        return xp.reshape(joint, (joint.shape[0], joint.shape[1] * joint.shape[2], joint.shape[3]))

    def _sampling_error(self, here: slice) -> float:
        """The standard error of the reduction over its size: configurations were drawn independently."""
        xp = namespace(self.configurations)
        regrets = self._regrets(self._extended(here))[0, ...]  # [M, Q J]
        weights = xp.exp(self.log_share - xp.max(self.log_share))
        cells = xp.reshape(xp.matmul(weights, regrets), (self.configurations.shape[0], -1))  # [Q, J]
        each = xp.sum(cells, axis=1)
        total = float(xp.sum(each))
        return float(xp.std(each, correction=1)) * math.sqrt(each.shape[0]) / total if total > 0 else 0.0


def variance_of(belief: Belief) -> Loss:
    """The loss whose uncertainty is the variance of the target, of its indicator for classes, in all for vectors."""
    if isinstance(belief.domain, Vectors):
        return Mahalanobis(np.eye(belief.domain.count))
    return BrierLoss() if isinstance(belief.domain, Classes) else SquaredError()


def repeated(outcomes: Array, count: int) -> Array:
    """[n, R, K]: probabilities of how often each cell comes up among `count` repeats of labels with `outcomes`.

    Multinomial: the order of repeats tells nothing, so there are far fewer configurations than sequences.
    """
    xp, cells = namespace(outcomes), outcomes.shape[1]
    bars = np.array(list(combinations(range(count + cells - 1), cells - 1)), dtype=int)
    bars = bars.reshape(math.comb(count + cells - 1, count), cells - 1)  # one cell needs no bar, and has one way
    ends = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, count + cells - 1)))
    counts = np.diff(ends, axis=1) - 1  # [R, J]
    ways = [math.factorial(count) // math.prod(math.factorial(each) for each in row) for row in counts.tolist()]
    powers = outcomes[:, None, :, :] ** constant(counts, outcomes)[:, :, None]  # [n, R, J, K]
    return constant(ways, outcomes)[:, None] * xp.prod(powers, axis=2)
