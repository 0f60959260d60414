"""Batches of labels that are classes, under an ensemble on the host: thousands of candidates, many labels.

Once the labels so far are known to be those of configuration q, members have weights W[q, :], and one more label is
worth what it would be worth under an ensemble with these weights. So what a candidate adds to the batch is

    sum_q  h(q) - sum_y h(q, y),        h(q, y) = sum_c p(c) min_a sum_k W[q, k] p(y | x, k) E[l(z, a) | c, k],

whose masses are one product for each configuration, [candidates and classes, K] x [K, contexts and classes], over the
members that the configuration leaves. For Brier loss without weights all contexts together are one K x K matrix. Gains
add up from label to label: what was enumerated stays exact, and only what sampled configurations add has an error.

Configurations are enumerated while they are few. Beyond, they are paths of labels that are drawn: each goes on with one
label, of a class drawn as likely as the path has it, evenly over all paths; they are the same for all candidates, so
that what is drawn hardly tells candidates apart. Where all candidates under all configurations would take long, they
race: all of them on a few configurations and contexts, the best quarter on four times as many, and so on; the last few
are compared in full, and what the winner adds is computed in full.

Votes are 0 or 1, so that a configuration is a group of trees that vote alike, and there are no more of them than trees:
nothing is sampled.

Sizes: N candidates, n of a block, M contexts, m of a block, K members, J cells of one label, Q configurations, T terms
(classes, or actions), r rows (configurations, candidates and cells), D statistics.

What is left uncertain is a function of masses, and homogeneous in them, so that nothing is normalised:

| loss        | masses               | uncertainty                                     |
|-------------|----------------------|-------------------------------------------------|
| log loss    | m_z = E[w 1{class}]  | S log S - sum_z m_z log m_z,  S = sum_z m_z     |
| Brier loss  | the same             | S - sum_z m_z^2 / S                             |
| actions     | cost of each action  | that of the cheapest                            |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from array_api_compat import is_numpy_array

from stakes._utils.array import Array, constant, double, filled, log_of, on_accelerator, on_host, replaced, slices
from stakes.acquisition.ensemble_batches import repeated, variance_of
from stakes.acquisition.forms import MemberTable, member_tables
from stakes.acquisition.scores import SHARE_RANGE, check_finite, regret_of_members
from stakes.beliefs import CategoricalEnsemble, VoteEnsemble
from stakes.beliefs.categorical import member_shares
from stakes.losses import AnyLoss, BrierLoss, CostMatrix, FiniteChoice, LogLoss, PerContext, ZeroOne

Host: TypeAlias = np.ndarray[Any, Any]

MAX_CONFIGURATIONS = 4096
"""Of the labels of a batch under an ensemble; beyond, they are sampled."""
_WEAK = 1e-6  # of the uncertainty: a gain of less would lose digits as a difference of two
_BY_SINGLE = 1e-3  # the same in single precision
_ROUNDING = 1e-14  # the same for costs, below which a gain is nothing else
_NUMBERS = 2**22  # statistics that are held at once
_WORK = 2**30  # products for one candidate under all configurations: a fraction of a second
_FEWEST = 256  # configurations that are sampled, however long they take
_FULL = 2**32  # products for which all candidates are gone through under all configurations
_ROUND = 2**29  # products of one round of a race
_FINALISTS, _KEPT = 2, 4  # candidates that are compared in full; of how many one goes on to the next round
_FEW = 16  # configurations and contexts that a round has at least

_CELLS = 2**17  # masses that are held at once: what is made of them stays in the cache
_NEGLIGIBLE = {8: 1e-18, 4: 1e-9}  # by bytes of a number: shares of members that change no digit
_SPARSE = 0.75  # of members that count: below, the others are left out of products
_TOGETHER = 4  # configurations that one product serves: where more fit, nothing is left out


class ClassBatch:
    """Under an ensemble of classes or of votes: weights of members [Q, K] in each configuration of the batch's labels.

    Args:
        loss: What being wrong costs.
        belief: On the host, in any array library for losses that are known here, in NumPy for any other.
        log_weights: [M], of contexts.
        rng: For configurations that are sampled, and races.
        max_configurations: The most that are enumerated or sampled; fewer where each takes long, but 256.
        configurations: [Q, K], to begin with.
    """

    def __init__(
        self,
        loss: AnyLoss,
        belief: CategoricalEnsemble | VoteEnsemble,
        log_weights: Array,
        rng: np.random.Generator,
        max_configurations: int,
        configurations: Host | None = None,
    ) -> None:
        self.belief, self.rng, self.log_weights = _on_host(belief), rng, log_weights
        self.like = filled(1, 0.0, belief.like)
        ((_, table),) = member_tables(loss, self.belief)
        self.table, self.loss, self.shares = table, table.loss, member_shares(self.belief.member_weights)  # [K]
        self.today = table.today(self.belief)  # [M, d]
        weights = np.asarray(on_host(log_weights), dtype=float)
        known = regret_of_members(self.loss, self.shares, table.expected, self.today, table.point)
        self._log_most = log_of(known) + table.log_scale + weights  # [M]
        self.places = np.nonzero(self._log_most > -np.inf)[0]  # contexts on which there is something to learn
        log_share = (table.log_scale + weights)[self.places]
        self.log_unit = float(log_share.max(initial=-np.inf)) if len(self.places) else 0.0
        self.share = np.exp(log_share - self.log_unit)  # [m]
        given = table, self.places, self.share
        self.masses = uncertainty_of(self.loss, *given, self.today)
        self.quick: Uncertainty | QuadraticGain | None = quadratic_gain_of(self.loss, *given) or self.masses
        cells = self.belief.n_classes * table.expected.size
        self.limit = min(max_configurations, max(_FEWEST, _WORK // cells))
        self.most = max(max_configurations, len(self.shares)) if isinstance(belief, VoteEnsemble) else self.limit
        self.rows = self.shares[None, :] if configurations is None else configurations  # [Q, K]
        self.saved = np.zeros(len(self.places))  # [m]: what the labels so far save, over the unit
        self.paths: Host | None = None  # [Q]: what the labels save along each path, since paths are drawn
        self.known: tuple[int, Host] | None = None  # the candidate looked at last, and what it adds [Q, m]

    @property
    def method(self) -> str:
        """Whether paths were drawn."""
        return "enumerated" if self.paths is None else "sampled"

    @property
    def repeats(self) -> tuple[int, ...]:
        """2, 4 and 8 as far as configurations go; none for votes, which repeats of would say the same."""
        if isinstance(self.belief, VoteEnsemble):
            return ()
        room = self.most // len(self.rows)
        cells = self.belief.n_classes
        return tuple(count for count in (2, 4, 8) if math.comb(count + cells - 1, count) <= room)

    def log_joint(self) -> float:
        """The log of what the labels so far are worth."""
        return float(self._log(self.saved.sum()))

    def log_contexts(self) -> Array:
        """[M]: the log of p(c) times what the labels so far save there."""
        logs = np.full(self.belief.n_contexts, -np.inf)
        logs[self.places] = self._log(self.saved)
        return constant(logs, self.like)

    def log_most(self) -> Array:
        """[M]: the log of p(c) times what is saved there once the member is known."""
        return constant(self._log_most, self.like)

    def log_reduction(self, candidate: int) -> float:
        """That of `log_reductions` for one candidate."""
        return float(self._log(self.saved.sum() + max(0.0, self._added(candidate).sum())))

    def log_reductions(self, count: int = 1, prices: Array | None = None) -> Array:
        """[N]: of what the labels so far are worth, and what that of each candidate adds to it.

        With `prices`, infinite for a candidate that is out of the question, only the best for its price need be right:
        others may seem to add nothing.
        """
        places = np.arange(self.belief.n_candidates)
        if prices is not None and count == 1 and self._products(len(places)) > _FULL:
            places = self._finalists(np.asarray(on_host(prices), dtype=float))
        gains = np.zeros(self.belief.n_candidates)
        gains[places] = self._gains(places, count)
        return constant(self._log(self.saved.sum() + gains), self.like)

    def variance_gains(self) -> Array:
        """[N]: the gain of the Brier score on top of the same configurations."""
        loss = variance_of(self.belief)
        same = ClassBatch(loss, self.belief, self.log_weights, self.rng, self.limit, self.rows)
        gains = same._gains(np.arange(self.belief.n_candidates), 1)
        return constant(gains * math.exp(same.log_unit), self.like)

    def add(self, candidate: int) -> float:
        """Let each configuration go on with the candidate's labels, or with one that is drawn."""
        added = self._added(candidate)  # [Q, m]
        self.saved = self.saved + added.sum(axis=0)
        error, total, count = 0.0, float(self.saved.sum()), len(self.rows)
        if self.paths is not None:
            self.paths = self.paths + count * added.sum(axis=1)  # each path has 1 / Q of the mass
            if total > 0 and count > 1:
                error = float(self.paths.std(ddof=1)) / math.sqrt(count) / total
        outcomes = self._outcomes(np.asarray([candidate]))[0]  # [J, K]
        joint = self.rows[:, None, :] * outcomes  # [Q, J, K]
        self.rows, self.known = self._followed(joint, joint.sum(axis=2)), None
        return error

    def _followed(self, joint: Host, mass: Host) -> Host:
        """[Q, K]: configurations, of all with masses [Q, J]: those that are possible, or paths that are drawn."""
        flat, masses = joint.reshape(-1, joint.shape[2]), mass.reshape(-1)
        if self.paths is None:
            possible = np.nonzero(masses > 0)[0]
            if len(possible) <= self.most:
                return np.asarray(flat[possible])
            ends, uniforms = np.cumsum(masses), (np.arange(self.limit) + self.rng.random(self.limit)) / self.limit
            drawn = np.searchsorted(ends, uniforms * ends[-1], side="right")
            self.paths = np.zeros(self.limit)
        else:
            count = len(mass)
            uniforms = (self.rng.permutation(count) + self.rng.random(count)) / count
            ends = np.cumsum(mass, axis=1)
            labels = (ends <= uniforms[:, None] * ends[:, -1:]).sum(axis=1)
            drawn = np.arange(count) * mass.shape[1] + labels
        drawn = np.minimum(drawn, len(masses) - 1)
        return np.asarray(flat[drawn] / (masses[drawn] * len(drawn))[:, None])

    def _log(self, values: Any) -> Any:
        """The log of values over the unit."""
        return log_of(np.asarray(values)) + self.log_unit

    def _added(self, candidate: int) -> Host:
        """[Q, m]: what one label adds in each configuration to what is saved at each context."""
        if not len(self.places):
            return np.zeros((len(self.rows), 0))
        if self.known is None or self.known[0] != candidate:
            outcomes = self._outcomes(np.asarray([candidate]))
            added = None if self.masses is None else self.masses.by_context(outcomes[0], self.rows)
            if added is None or self._is_weak(added):
                added = self._regrets(outcomes, self.rows)[0]
            self.known = candidate, np.asarray(check_finite(added))
        return self.known[1]

    def _is_weak(self, added: Host) -> bool:
        """Whether gains have lost digits as differences of uncertainties; those of costs lose none."""
        assert self.masses is not None
        smooth = not self.loss.finite_actions and not isinstance(self.belief, VoteEnsemble)
        return smooth and bool(added.sum() < _WEAK * self.masses.before(self.rows))

    def _outcomes(self, places: Host, count: int = 1) -> Host:
        """[n, J, K]: probabilities of the labels of candidates under each member."""
        some: Any = replaced(self.belief, candidates=self.belief.candidates[places])
        outcomes = double(some.member_outcomes())
        return np.ascontiguousarray(outcomes if count == 1 else repeated(outcomes, count))

    def _gains(self, places: Host, count: int) -> Host:
        """[n]: what candidates add, over the unit."""
        if not len(self.places):
            return np.zeros(len(places))
        found, size = np.zeros(len(places)), self.table.expected.shape[0] * self.table.expected.shape[2]
        cells = self.belief.n_classes if count == 1 else math.comb(count + self.belief.n_classes - 1, count)
        step = max(1, _NUMBERS // (cells * max(len(self.shares), size if self.masses is None else 1)))
        if self._by_votes:
            assert self.masses is not None
            gains, before = self._vote_gains(self.masses, places, self.rows), abs(self.masses.before(self.rows))
            return np.asarray(check_finite(np.where(gains > _ROUNDING * before, gains, 0.0)))
        for part in slices(len(places), step):
            outcomes = self._outcomes(places[part], count)
            found[part] = self._regret_sums(outcomes) if self.quick is None else self._quick_gains(outcomes)
        return np.asarray(check_finite(found))

    @property
    def _by_votes(self) -> bool:
        """Whether gains are sums over groups of trees that vote alike."""
        return isinstance(self.belief, VoteEnsemble) and self.quick is not None and self.quick is self.masses

    def _vote_gains(self, measure: Any, places: Host, rows: Host) -> Host:
        """[n]: what candidates add under configurations [Q, K] of votes."""
        return np.asarray(measure.vote_gains(np.asarray(self.belief.candidates)[places], rows))

    def _quick_gains(self, outcomes: Host) -> Host:
        """[n]: by masses, or by regrets where these would lose digits."""
        assert self.quick is not None
        gains = self.quick.gains(outcomes, self.rows)
        if isinstance(self.quick, QuadraticGain):
            return gains
        before = abs(self.quick.before(self.rows))
        if self.loss.finite_actions or isinstance(self.belief, VoteEnsemble):  # which differ by far more, or not at all
            return np.asarray(np.where(gains > _ROUNDING * before, gains, 0.0))
        weak = gains < _WEAK * before
        if weak.any():
            gains[weak] = self._regret_sums(outcomes[weak])
        return gains

    def _regret_sums(self, outcomes: Host) -> Host:
        """[n]: what candidates add, as regrets."""
        return np.asarray(np.maximum(self._regrets(outcomes, self.rows).sum(axis=(1, 2)), 0.0))

    def _regrets(self, outcomes: Host, rows: Host) -> Host:
        """[n, Q, m]: what labels add to the regret of today's action, for any loss."""
        expected, today, point = self.table.expected[self.places], self.today[self.places], self.table.reference.point
        point = None if point is None else point[self.places]
        found = np.zeros((len(outcomes), len(rows), len(self.places)))
        size = outcomes.shape[1] * expected.shape[0] * expected.shape[2]
        for some in slices(len(rows), max(1, _NUMBERS // size)):
            moments = np.tensordot(rows[some], expected, axes=([1], [1]))  # [q, m, D]
            before = self.loss.regret(moments, today, point)
            for part in slices(len(outcomes), max(1, _NUMBERS // (size * len(moments)))):
                joint = rows[some, None, :] * outcomes[part, None, :, :]  # [n, q, J, K]
                split = np.tensordot(joint, expected, axes=([3], [1]))  # [n, q, J, m, D]
                found[part, some] = self.loss.regret(split, today, point).sum(axis=2) - before
        return np.asarray(found * self.share)

    def _products(self, count: int) -> int:
        """How many products it takes to know what so many candidates add."""
        width = self.table.expected.shape[2] * len(self.places) if self.quick is None else self.quick.width
        cells = 1 if self._by_votes else self.belief.n_classes
        return int(count * cells * (self.rows > 0).sum() * width)

    def _finalists(self, prices: Host) -> Host:
        """Positions of a few candidates, of which one is likely the best for its price."""
        alive = np.nonzero(np.isfinite(prices))[0]
        full = len(self.rows) * len(self.places)  # pairs of configurations and contexts
        fewest = min(_FEW, len(self.rows)) * min(_FEW, len(self.places))
        pairs = max(fewest, full * _ROUND // max(1, self._products(len(alive))))
        while len(alive) > _FINALISTS:
            gains = self._sampled_gains(alive, min(pairs, full)) / prices[alive]
            kept = max(_FINALISTS, len(alive) // _KEPT)
            alive = alive[np.argsort(-gains, kind="stable")[:kept]]
            pairs *= _KEPT
        return np.sort(alive)

    def _sampled_gains(self, places: Host, pairs: int) -> Host:
        """[n]: what candidates add, from so many pairs of a configuration and a context."""
        count, size = len(self.rows), len(self.places)
        few = size  # contexts, all of which one matrix is made of, and regrets are summed over
        if isinstance(self.quick, Uncertainty):
            few = int(np.clip(size * math.sqrt(pairs / (count * size)), min(_FEW, size), size))
        rows = self._some_rows(pairs // few) if pairs // few < count else self.rows
        if self.quick is None:
            return np.asarray(self._regrets(self._outcomes(places), rows).sum(axis=(1, 2)))
        measure = self.quick
        if isinstance(measure, Uncertainty) and few < size:
            probabilities = np.exp(self._log_most[self.places] - self._log_most.max())  # no gain is larger than these
            drawn, counts = _drawn(probabilities, few, self.rng)
            measure = measure.of_some(drawn, counts / few * probabilities.sum() / probabilities[drawn])
        gains = self._gains_by(measure.in_single(), places, rows)
        if isinstance(measure, Uncertainty) and not self.loss.finite_actions:
            before = measure.before(rows)
            if gains.max() < _BY_SINGLE * before:
                gains = self._gains_by(measure, places, rows)
            if gains.max() < _WEAK * before:
                gains = self._regrets(self._outcomes(places), rows[: max(1, pairs // size)]).sum(axis=(1, 2))
        return gains

    def _gains_by(self, measure: Uncertainty | QuadraticGain, places: Host, rows: Host) -> Host:
        """[n]: what candidates add under configurations [Q, K]."""
        if self._by_votes:
            return self._vote_gains(measure, places, rows)
        step = max(1, _NUMBERS // (self.belief.n_classes * len(self.shares)))
        return np.concatenate([measure.gains(self._outcomes(places[part]), rows) for part in slices(len(places), step)])

    def _some_rows(self, count: int) -> Host:
        """[count or fewer, K]: configurations drawn by their mass, scaled so that gains are about what all have."""
        open_rows = (self.rows > 0).sum(axis=1) > 1  # where one member is left there is nothing to learn
        mass = np.where(open_rows, self.rows.sum(axis=1), 0.0)
        drawn, counts = _drawn(mass, count, self.rng)
        return np.asarray(self.rows[drawn] * (counts / count * mass.sum() / mass[drawn])[:, None])


def serves(loss: AnyLoss, belief: Any, log_weights: Array) -> bool:
    """Whether batches of this pair are made so: on the host, with weights of contexts in range of each other."""
    if type(belief) not in (CategoricalEnsemble, VoteEnsemble) or on_accelerator(belief.like):
        return False
    losses = loss.each if isinstance(loss, PerContext) else (loss,)
    if not all(map(is_known, losses)) and not is_numpy_array(belief.contexts):
        return False  # a loss of a user's own may know one library alone
    if isinstance(loss, PerContext):
        tables = member_tables(loss, belief)
        if len(tables) > 1:
            return False  # of losses that are known by other masses
        log_scale = tables[0][1].log_scale
    else:
        log_scale = belief.reference(loss).log_scale
    logs = on_host(log_weights) + on_host(log_scale)
    counted = logs[logs > -np.inf]
    return bool(np.ptp(counted) < SHARE_RANGE) if len(counted) else False


def _drawn(probabilities: Host, count: int, rng: np.random.Generator) -> tuple[Host, Host]:
    """Positions that are drawn in proportion to `probabilities`, evenly, and how often each is."""
    ends = np.cumsum(probabilities)
    uniforms = (np.arange(count) + rng.random(count)) / count * ends[-1]
    places = np.minimum(np.searchsorted(ends, uniforms, side="right"), np.flatnonzero(probabilities > 0)[-1])
    return np.unique(places, return_counts=True)


def _on_host(belief: Any) -> Any:
    """The belief in NumPy."""
    if isinstance(belief.contexts, np.ndarray):
        return belief
    fields = ("candidates", "contexts", "member_weights")
    return replaced(belief, **{name: np.asarray(on_host(getattr(belief, name))) for name in fields})


class Kind(NamedTuple):
    """How uncertainties follow from masses; the last of T terms is the total mass, where there is one."""

    each: Callable[[Host], Host]
    """From masses [r, T, m] to uncertainties [r, m]"""
    summed: Callable[[Host, int], Host]
    """From masses [r, T m] of m contexts to uncertainties [r], summed over contexts"""
    single: bool
    """Whether single precision tells candidates apart: not where uncertainties differ little or not at all"""


class Uncertainty(NamedTuple):
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
        return self._replace(columns=np.ascontiguousarray(self.columns[:, :, contexts] * scale))

    def in_single(self) -> Uncertainty:
        """In single precision, to six digits of the uncertainty, where that is enough."""
        return self._replace(columns=self.columns.astype(np.float32)) if self.kind.single else self

    def gains(self, outcomes: Host, rows: Host) -> Host:
        """[n]: by how much labels with `outcomes` [n, J, K] lower what configurations [Q, K] leave."""
        return np.maximum(self.before(rows) - self.left(outcomes, rows), 0.0)

    def vote_gains(self, votes: Host, rows: Host) -> Host:
        """[n]: the same for votes [n, K] of candidates: a member is in one configuration, and has one label."""
        rows = rows[(rows > 0).sum(axis=1) > 1]  # where one member is left there is nothing to learn
        members = np.flatnonzero(rows.any(axis=0))
        found, contexts = np.zeros(len(votes)), self.columns.shape[2]
        if not len(members):
            return found
        group, shares = rows[:, members].argmax(axis=0), rows[:, members].max(axis=0)
        flat = self.columns.reshape(len(self.columns), -1)[members] * shares[:, None].astype(self.columns.dtype)
        labels = votes[:, members].astype(np.intp)
        for place, keys in enumerate([group, *(group * (int(labels.max()) + 1) + labels)], -1):
            order = np.argsort(keys, kind="stable")
            starts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))
            left = float(self.kind.summed(np.add.reduceat(flat[order], starts, axis=0), contexts).sum())
            if place < 0:
                before = left
            else:
                found[place] = before - left
        return np.maximum(found, 0.0)

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


class QuadraticGain(NamedTuple):
    """Gains under Brier loss without weights: all contexts together are one matrix over members."""

    matrix: Host
    """[K, K]: sum_c p(c) sum_z of what members expect, times what they expect"""

    @property
    def width(self) -> int:
        """Numbers that each member is multiplied with."""
        return len(self.matrix)

    def in_single(self) -> QuadraticGain:
        """In single precision."""
        return self._replace(matrix=self.matrix.astype(np.float32))

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
    elif type(loss) in (CostMatrix, ZeroOne, FiniteChoice):
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
