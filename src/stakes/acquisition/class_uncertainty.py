"""The uncertainty that labels leave about classes, for many candidates and configurations of labels at once.

A configuration gives members weights W[q, :]; a label of class y multiplies them by p(y | x, k). What is left uncertain
is a function of masses, sums of the weights times what members expect at the contexts, and is homogeneous in them, so
that nothing is normalised:

| loss        | masses               | uncertainty                                     |
|-------------|----------------------|-------------------------------------------------|
| log loss    | m_z = E[w 1{class}]  | S log S - sum_z m_z log m_z,  S = sum_z m_z     |
| Brier loss  | the same             | S - sum_z m_z^2 / S                             |
| actions     | cost of each action  | that of the cheapest                            |

Sizes: n candidates, m contexts, K members, J cells of a label, Q configurations, r rows (configurations, candidates and
cells), T terms (classes, or actions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stakes._utils.array import slices
from stakes.acquisition.forms import MemberTable
from stakes.losses import AnyLoss, BrierLoss, CostMatrix, LogLoss, ZeroOne

Host: TypeAlias = np.ndarray[Any, Any]

_CELLS = 2**17  # masses that are held at once: what is made of them stays in the cache
_NEGLIGIBLE = {8: 1e-18, 4: 1e-9}  # by bytes of a number: shares of members that change no digit
_SPARSE = 0.75  # of members that count: below, the others are left out of products
_TOGETHER = 4  # configurations that one product serves: where more fit, nothing is left out


class Kind(NamedTuple):
    """How uncertainties follow from masses; the last of T terms is the total mass, where there is one."""

    each: Callable[[Host], Host]
    """From masses [r, T, m] to uncertainties [r, m]"""
    summed: Callable[[Host, int], Host]
    """From masses [r, T m] of m contexts to uncertainties [r], summed over contexts"""
    single: bool
    """Whether single precision tells candidates apart: not where uncertainties differ little or not at all"""


@dataclass(frozen=True)
class Uncertainty:
    """What is left uncertain, from sums over members."""

    columns: Host
    """[K, T, m]: what each member expects at each context, times p(c)"""
    kind: Kind

    @property
    def width(self) -> int:
        """Numbers that each member is multiplied with."""
        return int(self.columns[0].size)

    def of_some(self, contexts: Host, scale: Host) -> Uncertainty:
        """That of some contexts, each with a scale."""
        return replace(self, columns=np.ascontiguousarray(self.columns[:, :, contexts] * scale))

    def in_single(self) -> Uncertainty:
        """In single precision, to six digits of the uncertainty, where that is enough."""
        return replace(self, columns=self.columns.astype(np.float32)) if self.kind.single else self

    def gains(self, outcomes: Host, rows: Host) -> Host:
        """[n]: by how much labels with `outcomes` [n, J, K] lower what configurations [Q, K] leave."""
        return np.maximum(self.before(rows) - self.left(outcomes, rows), 0.0)

    def before(self, rows: Host) -> float:
        """The uncertainty that configurations [Q, K] leave."""
        return float(self.left(np.ones((1, 1, rows.shape[1])), rows)[0])

    def left(self, outcomes: Host, rows: Host) -> Host:
        """[n]: the uncertainty that labels with `outcomes` [n, J, K] leave, summed over configurations [Q, K]."""
        kind, (members, _, contexts) = self.columns.dtype, self.columns.shape
        flat, weights = self.columns.reshape(members, -1), rows.astype(kind)
        counts = (rows > _NEGLIGIBLE[kind.itemsize] * rows.max(axis=1, keepdims=True)).sum(axis=1)  # [Q]: of members
        cells, found = outcomes.shape[1], np.zeros(len(outcomes))
        for part in slices(len(outcomes), max(1, _CELLS // (cells * self.width))):
            here = outcomes[part].reshape(-1, members).astype(kind)  # [n J, K]
            step = max(1, _CELLS // (len(here) * self.width))
            if step < _TOGETHER and counts.mean() < _SPARSE * members:
                for row, count in zip(weights, counts, strict=True):
                    kept = slice(None) if count >= _SPARSE * members else np.argpartition(-row, count - 1)[:count]
                    masses = (here[:, kept] * row[kept]) @ flat[kept]
                    found[part] += self.kind.summed(masses, contexts).reshape(-1, cells).sum(axis=1)
                continue
            for some in slices(len(weights), step):
                masses = (weights[some, None, :] * here).reshape(-1, members) @ flat
                each = self.kind.summed(masses, contexts).reshape(-1, len(here) // cells, cells)
                found[part] += each.sum(axis=(0, 2))
        return found

    def by_context(self, outcomes: Host, rows: Host) -> Host:
        """[Q, m]: by how much a label with `outcomes` [J, K] lowers what each configuration leaves at each context."""
        found, (members, terms, contexts) = np.zeros((len(rows), self.columns.shape[2])), self.columns.shape
        flat = self.columns.reshape(members, -1)
        for some in slices(len(rows), max(1, _CELLS // (len(outcomes) * self.width))):
            joint = (rows[some, None, :] * outcomes).reshape(-1, members)
            before, after = (self.kind.each((each @ flat).reshape(-1, terms, contexts)) for each in (rows[some], joint))
            found[some] = before - after.reshape(len(before), len(outcomes), -1).sum(axis=1)
        return found


@dataclass(frozen=True)
class QuadraticGain:
    """Gains under Brier loss without weights: all contexts together are one matrix over members."""

    matrix: Host
    """[K, K]: sum_c p(c) sum_z of what members expect, times what they expect"""

    @property
    def width(self) -> int:
        """Numbers that each member is multiplied with."""
        return len(self.matrix)

    def in_single(self) -> QuadraticGain:
        """In single precision."""
        return replace(self, matrix=self.matrix.astype(np.float32))

    def gains(self, outcomes: Host, rows: Host) -> Host:
        """[n]: sum_q sum_j u_j' G u_j / P(y_j), u_j being what the label moves of the weights of members."""
        kind, found, cells = self.matrix.dtype, np.zeros(len(outcomes)), outcomes.shape[1]
        for part in slices(len(outcomes), max(1, _CELLS // (cells * len(self.matrix)))):
            here = outcomes[part].reshape(-1, len(self.matrix))  # [n J, K]
            for row in rows:
                kept = np.flatnonzero(row > _NEGLIGIBLE[kind.itemsize] * row.max())
                if len(kept) < 2:
                    continue
                share = row[kept] / row[kept].sum()
                joint = here[:, kept] * row[kept]
                mass = joint.sum(axis=1)  # [n J]
                moved = (joint - mass[:, None] * share).astype(kind)
                values = np.einsum("rk,rk->r", moved @ self.matrix[np.ix_(kept, kept)], moved)
                values = np.divide(values, mass, out=np.zeros(len(mass)), where=mass > 0)
                found[part] += values.reshape(-1, cells).sum(axis=1)
        return np.maximum(found, 0.0)


def is_known(loss: AnyLoss) -> bool:
    """Whether the uncertainty of a loss is known here, a subclass of a user's own aside."""
    return type(loss) in (LogLoss, BrierLoss, CostMatrix, ZeroOne)


def uncertainty_of(loss: AnyLoss, table: MemberTable, contexts: Host, share: Host, today: Host) -> Uncertainty | None:
    """The uncertainty of a loss at some contexts, which count as `share` [m] says; None where it is not known here."""
    if type(loss) in (LogLoss, BrierLoss):
        columns = _class_masses(table, contexts)
    elif type(loss) in (CostMatrix, ZeroOne):
        costs = table.expected[contexts]  # [m, K, A]
        columns = costs - np.take_along_axis(costs, today[contexts].astype(int)[:, None, :], axis=2)
    else:
        return None
    kind = _ENTROPY if type(loss) is LogLoss else _GINI if type(loss) is BrierLoss else _LEAST
    if kind is not _LEAST:
        columns = np.concatenate([columns, columns.sum(axis=2, keepdims=True)], axis=2)
    return Uncertainty(np.ascontiguousarray(np.transpose(columns * share[:, None, None], (1, 2, 0))), kind)


def quadratic_gain_of(loss: AnyLoss, table: MemberTable, contexts: Host, share: Host) -> QuadraticGain | None:
    """The matrix of Brier loss without weights, where it is smaller than the masses; None otherwise."""
    expected = table.expected[contexts, :, 1:]  # [m, K, C]
    if type(loss) is not BrierLoss or loss.weight is not None or expected.shape[1] > expected[:, 0].size:
        return None
    return QuadraticGain(np.tensordot(expected * share[:, None, None], expected, axes=([0, 2], [0, 2])))


def _class_masses(table: MemberTable, contexts: Host) -> Host:
    """[m, K, C]: E[w 1{z = class} | c, k], from statistics about a point."""
    expected, point = table.expected[contexts], table.point
    assert point is not None
    return np.asarray(np.maximum(expected[..., 1:] + expected[..., :1] * point[contexts], 0.0))


def _x_log_x(values: Host) -> Host:
    logs = np.maximum(values, np.finfo(values.dtype).tiny)
    np.log(logs, out=logs)
    logs *= values
    return np.asarray(logs)


def _entropies(masses: Host) -> Host:
    """[r, m]: S log S - sum_z m log m."""
    each = _x_log_x(masses)
    return np.asarray(each[:, -1] - each[:, :-1].sum(axis=1))


def _entropy(masses: Host, contexts: int) -> Host:
    """[r]: the same, summed over contexts."""
    logs = np.maximum(masses, np.finfo(masses.dtype).tiny)
    np.log(logs, out=logs)
    classes, total = slice(masses.shape[1] - contexts), slice(masses.shape[1] - contexts, None)
    parts = (np.einsum("rc,rc->r", masses[:, some], logs[:, some]) for some in (total, classes))
    return np.asarray(np.subtract(*parts, dtype=float))


def _ginis(masses: Host) -> Host:
    """[r, m]: S - sum_z m^2 / S."""
    total, squares = masses[:, -1], np.einsum("rtm,rtm->rm", masses[:, :-1], masses[:, :-1])
    return np.asarray(total - np.divide(squares, total, out=np.zeros_like(total), where=total > 0))


def _least_costs(costs: Host) -> Host:
    """[r, m]: the cost of the cheapest action, from that of today's."""
    least = costs[:, 0]
    for action in range(1, costs.shape[1]):
        least = np.minimum(least, costs[:, action])
    return np.asarray(least)


def _summed(each: Callable[[Host], Host]) -> Callable[[Host, int], Host]:
    return lambda masses, contexts: each(masses.reshape(len(masses), -1, contexts)).sum(axis=1, dtype=float)


_ENTROPY = Kind(_entropies, _entropy, single=True)
_GINI = Kind(_ginis, _summed(_ginis), single=True)
_LEAST = Kind(_least_costs, _summed(_least_costs), single=False)
