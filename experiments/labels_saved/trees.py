"""Forests of classes in compiled loops: hundreds of trees grown, walked and scored in milliseconds.

A study of classes fits a forest after every label of every strategy and run, and nearly all of that time goes into the
checks around trees of fifty labels. Here trees are grown as scikit-learn's `ExtraTreesClassifier` and
`RandomForestClassifier` grow them, with other random numbers; and what a label is worth under members that vote, each
with a share of its mass given to class frequencies, is summed from counts of votes. Tests compare both with the
product.

Sizes: n labels, d columns, K trees, V nodes of a tree (at most 2 n - 1), C classes, N candidates, M contexts, R rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from experiments.labels_saved.tables import Host
from stakes._utils.compute import loop
from stakes.acquisition.votes import bits

_CONSTANT = 1e-7  # by which a column must vary in a node to be split, as in scikit-learn
_WORD = 64
_CELLS = 400_000  # numbers of a block of candidates, which stay near the processor


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

    def without_own_label(self, rows: Host, targets: Host) -> Host:
        """[n, C]: what trees say of the rows that they were grown on, each without its label.

        As `stakes.models.forests.without_own_label`.
        """
        found = np.zeros((len(rows), self.counts.shape[-1]))
        leave_out(self.leaves(rows), np.ascontiguousarray(targets), self.nodes, self.counts, found)
        return found / len(self.nodes)


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
                for place in range(start + 1, end):  # sorted by the column, in place
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


@loop
def leave_out(leaves: Any, targets: Any, nodes: Any, counts: Any, found: Any) -> None:
    """Add to `found` [n, C] the class shares of the other labels in each leaf, or in the node above that has some."""
    for row in range(leaves.shape[0]):
        for k in range(leaves.shape[1]):
            node, own = leaves[row, k], targets[row]
            while counts[k, node].sum() < 2.0 and node > 0:
                node = nodes[k, node, 3]
            others = max(counts[k, node].sum() - 1.0, 1.0)
            for c in range(counts.shape[2]):
                found[row, c] += (counts[k, node, c] - (1.0 if c == own else 0.0)) / others


@dataclass(frozen=True, eq=False)
class SmoothedVotes:
    """Trees that vote on candidates and contexts, each with a share of its mass given to class frequencies."""

    candidates: Host
    """[N, K]: classes"""
    contexts: Host
    """[M, K]"""
    prior: Host
    """[C]: class frequencies"""
    share: float

    def members(self, votes: Host) -> Host:
        """[R, K, C]: what each tree says."""
        table = (1.0 - self.share) * np.eye(len(self.prior)) + self.share * self.prior
        return np.asarray(table[votes])

    def log_loss_reductions(self, weights: Host) -> Host:
        """[N]: the expected reduction of the log loss with class weights [C], averaged over contexts.

        Where trees have no vote for a class, the label or the target is independent of the other: only pairs of classes
        that both have votes need a logarithm.
        """
        pool, future, count, prior, share = self._packed()
        sides = [np.empty((len(side), len(prior))) for side in (pool, pool, future, future)]
        marginals(pool, count, prior, share, *sides[:2])
        marginals(future, count, prior, share, *sides[2:])
        found = np.zeros(len(pool))
        step = max(1, _CELLS // (len(future) * len(prior) ** 2))
        for start in range(0, len(pool), step):
            part = slice(start, start + step)
            ratios = np.ones((len(pool[part]), len(future), len(prior), len(prior)))
            fill_ratios(pool[part], future, count, 1.0 - share, sides[0][part], sides[1][part], *sides[2:], ratios)
            logs = np.log(ratios)  # NumPy's takes eight at a time
            add_log_worths(ratios, logs, sides[1][part], sides[3], weights.astype(float), found[part])
        return found / len(self.contexts)

    def cost_reductions(self, stakes: Host) -> Host:
        """[N]: that of a cost stakes[z] [C] whenever class z is called another."""
        found = np.zeros(len(self.candidates))
        reduce_costs(*self._packed(), stakes.astype(float), found)
        return found / len(self.contexts)

    def soft_cost_reductions(self, stakes: Host, steepness: float) -> Host:
        """[N]: the same where the least expected cost is a smooth minimum, as steep as is said."""
        found = np.zeros(len(self.candidates))
        reduce_soft_costs(*self._packed(), stakes.astype(float), float(steepness), found)
        return found / len(self.contexts)

    def _packed(self) -> tuple[Any, ...]:
        """Words [N, C, W] and [M, C, W] of a bit for each tree, the number of trees, class frequencies, their share."""
        sides = (_packed(side, len(self.prior)) for side in (self.candidates, self.contexts))
        return (*sides, self.candidates.shape[1], self.prior, self.share)


def _packed(votes: Host, classes: int) -> Host:
    """[R, C, W]: bit k of class c is whether tree k votes for it."""
    rows, count = votes.shape
    padded = np.zeros((rows, classes, -(-count // _WORD) * _WORD), dtype=np.uint8)
    padded[:, :, :count] = votes[:, None, :] == np.arange(classes)[:, None]
    return np.packbits(padded, axis=-1, bitorder="little").view(np.uint64)


@loop
def both(one: Any, other: Any) -> int:
    """How many trees are in both of two sets, words [W]."""
    total = 0
    for w in range(one.shape[0]):
        total += int(bits(one[w] & other[w]))
    return total


@loop
def marginals(words: Any, count: int, prior: Any, share: float, votes: Any, probability: Any) -> None:
    """Fill votes [R, C], as shares, and the probability [R, C] of each class, from words [R, C, W]."""
    for row in range(words.shape[0]):
        for c in range(words.shape[1]):
            votes[row, c] = both(words[row, c], words[row, c]) / count
            probability[row, c] = (1.0 - share) * votes[row, c] + share * prior[c]


@loop
def fill_ratios(
    pool: Any, future: Any, count: int, keep: float, votes: Any, label: Any, says: Any, target: Any, ratios: Any
) -> None:
    """Fill `ratios` [n, M, C, C] with J / (p_y p_z) where trees have votes for both classes; elsewhere it is 1."""
    for n in range(len(pool)):
        for m in range(len(future)):
            for y in range(label.shape[1]):
                if votes[n, y] > 0.0:
                    for z in range(label.shape[1]):
                        if says[m, z] > 0.0:
                            agree = both(pool[n, y], future[m, z]) / count - votes[n, y] * says[m, z]
                            ratios[n, m, y, z] = 1.0 + keep * keep * agree / (label[n, y] * target[m, z])


@loop
def add_log_worths(ratios: Any, logs: Any, label: Any, target: Any, weights: Any, found: Any) -> None:
    """Add up over contexts sum_yz w_z J log(J / (p_y p_z)) - sum_y W_y log(W_y / (p_y W)), W_y = sum_z w_z J."""
    classes = len(weights)
    for n in range(len(ratios)):
        total = 0.0
        for m in range(ratios.shape[1]):
            whole = 0.0
            for z in range(classes):
                whole += weights[z] * target[m, z]
            for y in range(classes):
                given = worth = 0.0
                for z in range(classes):
                    part = weights[z] * target[m, z] * ratios[n, m, y, z]
                    given += part
                    worth += part * logs[n, m, y, z]
                total += label[n, y] * (worth - given * np.log(given / whole))
        found[n] += total


@loop
def reduce_costs(pool: Any, future: Any, count: int, prior: Any, share: float, stakes: Any, found: Any) -> None:
    """Add up over contexts what it costs to keep today's class after each label."""
    classes, keep = len(prior), 1.0 - share
    votes, label = np.empty((len(pool), classes)), np.empty((len(pool), classes))
    says, target = np.empty((len(future), classes)), np.empty((len(future), classes))
    marginals(pool, count, prior, share, votes, label)
    marginals(future, count, prior, share, says, target)
    for n in range(len(pool)):
        total = 0.0
        for m in range(len(future)):
            today, most = 0, -1.0
            for z in range(classes):
                if stakes[z] * target[m, z] > most:
                    today, most = z, stakes[z] * target[m, z]
            for y in range(classes):
                if votes[n, y] == 0.0:
                    continue
                best = kept = 0.0
                for z in range(classes):
                    joint = label[n, y] * target[m, z]
                    if says[m, z] > 0.0:
                        joint += keep * keep * (both(pool[n, y], future[m, z]) / count - votes[n, y] * says[m, z])
                    best = max(best, stakes[z] * joint)
                    if z == today:
                        kept = stakes[z] * joint
                total += best - kept
        found[n] += total


@loop
def reduce_soft_costs(
    pool: Any, future: Any, count: int, prior: Any, share: float, stakes: Any, steepness: float, found: Any
) -> None:
    """Add up over contexts by how much a label lifts the soft maximum of stakes[z] p(z), a log-sum-exp."""
    classes, keep = len(prior), 1.0 - share
    votes, label = np.empty((len(pool), classes)), np.empty((len(pool), classes))
    says, target = np.empty((len(future), classes)), np.empty((len(future), classes))
    marginals(pool, count, prior, share, votes, label)
    marginals(future, count, prior, share, says, target)
    joint = np.empty(classes)
    for n in range(len(pool)):
        total = 0.0
        for m in range(len(future)):
            today = soft_maximum(target[m], stakes, steepness)
            for y in range(classes):
                if votes[n, y] == 0.0:
                    continue
                for z in range(classes):
                    joint[z] = target[m, z]
                    if says[m, z] > 0.0:
                        agree = both(pool[n, y], future[m, z]) / count - votes[n, y] * says[m, z]
                        joint[z] += keep * keep * agree / label[n, y]
                total += label[n, y] * (soft_maximum(joint, stakes, steepness) - today)
        found[n] += total


@loop
def soft_maximum(probability: Any, stakes: Any, steepness: float) -> float:
    """The log-sum-exp of steepness stakes[z] p(z), over the steepness."""
    top = total = 0.0
    for z in range(len(stakes)):
        top = max(top, stakes[z] * probability[z])
    for z in range(len(stakes)):
        total += np.exp(steepness * (stakes[z] * probability[z] - top))
    return top + np.log(total) / steepness
