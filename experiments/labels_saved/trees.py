"""Forests of classes in compiled loops: hundreds of trees grown, walked and scored in milliseconds.

A study of classes fits a forest after every label of every strategy and run, and nearly all of that time goes into the
checks around trees of fifty labels. Here trees are grown as scikit-learn's `ExtraTreesClassifier` and
`RandomForestClassifier` grow them, with other random numbers, which tests compare.

Sizes: n labels, d columns, K trees, V nodes of a tree (at most 2 n - 1), C classes, R rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from experiments.labels_saved.tables import Host
from stakes._utils.compute import loop

_CONSTANT = 1e-7  # by which a column must vary in a node to be split, as in scikit-learn


@dataclass(frozen=True, eq=False)
class Trees:
    """Grown trees."""

    nodes: Host
    """[K, V, 4]: column (-1 for a leaf), left, right and upper node"""
    thresholds: Host
    """[K, V]: rows at or below it go left"""
    counts: Host
    """[K, V, C]: labels of each class"""

    @cached_property
    def pure(self) -> bool:
        """Whether every leaf has labels of one class, so that trees vote."""
        return bool(all_pure(self.nodes, self.counts))

    @cached_property
    def _winners(self) -> Host:
        """[K, V]: the class with most labels in each node."""
        return np.argmax(self.counts, axis=-1).astype(np.uint8)

    def leaves(self, rows: Host) -> Host:
        """[R, K]: the leaf that each row [R, d] falls into."""
        found = np.empty((len(rows), len(self.nodes)), dtype=np.int32)
        here = np.empty(len(rows), dtype=np.int32)
        walk(np.ascontiguousarray(rows, dtype=np.float32), self.nodes, self.thresholds, here, found)
        return found

    def shares(self, leaves: Host) -> Host:
        """[R, K, C]: of the labels in leaves [R, K]."""
        counts = self.counts[np.arange(len(self.nodes)), leaves]
        return np.asarray(counts / counts.sum(axis=-1, keepdims=True))

    def mean_shares(self, leaves: Host) -> Host:
        """[R, C]: the mean of them over trees."""
        total = np.zeros((len(leaves), self.counts.shape[-1]))
        add_shares(leaves, self.counts, total)
        return total / len(self.nodes)

    def votes(self, leaves: Host) -> Host:
        """[R, K]: the class in leaves [R, K], where they are pure."""
        return np.asarray(self._winners[np.arange(len(self.nodes)), leaves])


def grown(rows: Host, targets: Host, n_classes: int, count: int, seed: int, *, extremely: bool = True) -> Trees:
    """`count` trees for targets [n] of rows [n, d], sqrt(d) columns tried at each node, leaves that are pure.

    Extremely randomised ones see all labels and cut columns at random; others see a bootstrap and cut where it is best.
    """
    n, columns = rows.shape
    most = max(1, 2 * n - 1)
    nodes = np.full((count, most, 4), -1, dtype=np.int32)
    thresholds, counts = np.zeros((count, most)), np.zeros((count, most, n_classes))
    features = np.ascontiguousarray(rows, dtype=np.float32)
    tried = max(1, int(np.sqrt(columns)))
    grow(features, np.ascontiguousarray(targets, dtype=np.int64), tried, seed, extremely, nodes, thresholds, counts)
    return Trees(nodes, thresholds, counts)


@loop
def grow(
    rows: Any, targets: Any, tried: int, seed: int, extremely: bool, nodes: Any, thresholds: Any, counts: Any
) -> None:
    """Fill nodes [K, V, 4], thresholds [K, V] and counts [K, V, C].

    A node draws columns until it has seen `tried` of them and one that varies, and keeps the cut that leaves the least
    Gini impurity.
    """
    np.random.seed(seed)  # noqa: NPY002 (that of compiled code)
    n, columns, classes = rows.shape[0], rows.shape[1], counts.shape[2]
    order, spare, open_nodes = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((2 * n, 3), np.int64)
    drawn, total, left = np.arange(columns), np.empty(classes), np.empty(classes)
    ranked, times = np.empty((columns, n), np.int64), np.zeros(n, np.int64)
    for column in range(0 if extremely else columns):
        ranked[column] = np.argsort(rows[:, column])
    for k in range(nodes.shape[0]):
        for place in range(n):
            order[place] = place if extremely else int(np.random.random() * n)  # noqa: NPY002
        made, waiting = 1, 1
        open_nodes[0, 0], open_nodes[0, 1], open_nodes[0, 2] = 0, 0, n
        while waiting > 0:
            waiting -= 1
            node, start, end = open_nodes[waiting, 0], open_nodes[waiting, 1], open_nodes[waiting, 2]
            total[:] = 0.0
            for place in range(start, end):
                total[targets[order[place]]] += 1.0
            counts[k, node] = total
            if total.max() == end - start:
                continue
            best, best_column, best_cut, seen, varied = -1.0, -1, 0.0, 0, 0
            many = not extremely and (end - start) * (end - start) > 8 * n
            if many:
                times[:] = 0
                for place in range(start, end):
                    times[order[place]] += 1
            while seen < columns and (seen < tried or varied == 0):
                other = seen + int(np.random.random() * (columns - seen))  # noqa: NPY002
                column = drawn[other]
                drawn[other], drawn[seen] = drawn[seen], column
                seen += 1
                least = largest = rows[order[start], column]
                for place in range(start + 1, end):
                    value = rows[order[place], column]
                    least, largest = min(least, value), max(largest, value)
                if largest <= least + _CONSTANT:
                    continue
                varied += 1
                left[:] = 0.0
                if extremely:
                    cut = least + np.random.random() * (float(largest) - float(least))  # noqa: NPY002
                    cut = float(least) if cut >= largest else cut
                    for place in range(start, end):
                        if rows[order[place], column] <= cut:
                            left[targets[order[place]]] += 1.0
                    gain = purity(left, total)
                    if gain > best:
                        best, best_column, best_cut = gain, column, cut
                    continue
                if many:  # the node's labels in the column's order, which is known: n steps
                    here = start
                    for rank in range(n):
                        for _ in range(times[ranked[column, rank]]):
                            order[here] = ranked[column, rank]
                            here += 1
                else:  # sorted by the column, in place: steps as the square of the node's labels
                    for place in range(start + 1, end):
                        row, hole = order[place], place
                        while hole > start and rows[order[hole - 1], column] > rows[row, column]:
                            order[hole] = order[hole - 1]
                            hole -= 1
                        order[hole] = row
                for place in range(start, end - 1):
                    left[targets[order[place]]] += 1.0
                    below, above = rows[order[place], column], rows[order[place + 1], column]
                    if above <= below + _CONSTANT:
                        continue
                    gain = purity(left, total)
                    if gain > best:
                        cut = float(below) / 2.0 + float(above) / 2.0
                        best, best_column, best_cut = gain, column, float(below) if cut >= above else cut
            if best_column < 0:
                continue
            low, high = start, 0
            for place in range(start, end):
                row = order[place]
                if rows[row, best_column] <= best_cut:
                    order[low] = row
                    low += 1
                else:
                    spare[high] = row
                    high += 1
            order[low:end] = spare[:high]
            nodes[k, node, 0], nodes[k, node, 1], nodes[k, node, 2] = best_column, made, made + 1
            thresholds[k, node] = best_cut
            for child in range(2):
                nodes[k, made + child, 3] = node
                open_nodes[waiting, 0] = made + child
                open_nodes[waiting, 1] = start if child == 0 else low
                open_nodes[waiting, 2] = low if child == 0 else end
                waiting += 1
            made += 2


@loop
def purity(left: Any, total: Any) -> float:
    """The sum of squared class counts over all counts, of both sides; larger where the Gini impurity is less."""
    first = second = below = above = 0.0
    for c in range(len(total)):
        right = total[c] - left[c]
        first, second = first + left[c] * left[c], second + right * right
        below, above = below + left[c], above + right
    return first / below + second / above


@loop
def walk(rows: Any, nodes: Any, thresholds: Any, here: Any, found: Any) -> None:
    """Fill `found` [R, K] with the leaf that each row falls into.

    All rows go down a tree together, level by level, without a branch to be guessed wrong: they wait for memory at the
    same time. `here` [R] is room for where they are.
    """
    count = rows.shape[0]
    for k in range(nodes.shape[0]):
        here[:] = 0
        going = True
        while going:
            going = False
            for row in range(count):
                node = here[row]
                column = max(nodes[k, node, 0], 0)
                below = nodes[k, node, 1 + int(rows[row, column] > thresholds[k, node])]
                inner = nodes[k, node, 0] >= 0
                here[row] = below if inner else node
                going |= inner
        for row in range(count):
            found[row, k] = here[row]


@loop
def all_pure(nodes: Any, counts: Any) -> bool:
    """Whether every leaf has labels of one class."""
    for k in range(nodes.shape[0]):
        for node in range(nodes.shape[1]):
            if nodes[k, node, 0] < 0 and counts[k, node].max() < counts[k, node].sum():
                return False
    return True


@loop
def add_shares(leaves: Any, counts: Any, total: Any) -> None:
    """Add to `total` [R, C] the class shares in the leaves [R, K] of all trees."""
    for row in range(leaves.shape[0]):
        for k in range(leaves.shape[1]):
            labels = counts[k, leaves[row, k]].sum()
            for c in range(counts.shape[2]):
                total[row, c] += counts[k, leaves[row, k], c] / labels
