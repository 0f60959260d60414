"""Beliefs that are known by joint draws alone: the paper's second estimator (appendix D.3).

A sampler gives draws theta_k of all that is unknown. Under each, the labels of candidates and the targets of contexts
were drawn, y_k(x) and z_k(c), and how likely a label would be is known, p(y | x, theta_k). What the label y of x tells
of the targets follows by importance weights: draw k counts p(y | x, theta_k) / sum_i p(y | x, theta_i).
`stakes.acquisition.draws` has the estimate of what labels are worth, and its error.
Sizes: N candidates, n of a block, M contexts, K draws, J of them whose labels are outcomes, C classes, d numbers of a
vector, D statistics, B marks, P panels between draws in order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from stakes._utils.array import check_all, replaced
from stakes.beliefs.base import Integrand, Reference, Regret, reference_at
from stakes.beliefs.categorical import class_moments, class_reference
from stakes.exceptions import StakesError
from stakes.losses.distributions import NODES_PER_PANEL, Distribution, panel_nodes
from stakes.losses.domains import REAL, Classes, Domain, Interval, check_labels, check_probabilities

Host: TypeAlias = NDArray[Any]
LogLikelihood: TypeAlias = Callable[[Host, Host], Any]
"""Labels [n, J] of candidates at positions [n] to log p(y | x, theta_k) [n, J, K]."""
_FEWEST = 20  # draws, of which an error can be estimated


@dataclass(frozen=True, eq=False)
class DrawsBelief:
    """K joint draws of the labels of N candidates and the targets of M contexts, such as those of a sampler.

    Draws are taken as equally likely; those of several chains are merged, one chain after the other. Arrays are
    NumPy's, and rows come first: [N, K] and [M, K].

    Scores are estimates: their error falls with one over the square root of the number of draws, and
    `stakes.sampling_error` tells it. Where members have closed forms (`NormalEnsemble` for normal labels,
    `CategoricalEnsemble` for classes) those are exact in what they sum, and quicker.

    Args:
        labels: [N, K], y drawn from p(y | x, theta_k), noise included: the outcomes that are gone through.
        targets: What is drawn at the contexts: [M, K] numbers or classes by position; [M, K, C] the probabilities of
            classes given each draw, which says more than one class drawn from them; [M, K, d] vectors.
        log_likelihood: log p(y | x, theta_k): a function from labels [n, J] and the positions [n] of their candidates
            to [n, J, K]; or an array [N, K, K] of the log likelihood of label j (second axis) under draw k (third).
        domain: Where targets lie: `Classes(C)`, `Vectors(d)`, `POSITIVE`, or `REAL`, the default.
        outcomes: How many of the draws give the labels that are gone through, evenly spaced; None: all. Time is
            proportional to it.

    Raises:
        StakesError: If shapes disagree, or targets lie outside the domain.

    Examples:
        Counts, of which a Gaussian belief knows nothing: the rates of two machines go together.

        >>> import numpy as np
        >>> from scipy.stats import poisson
        >>> from stakes import SquaredError, score
        >>> from stakes.beliefs import DrawsBelief
        >>> rng = np.random.default_rng(0)
        >>> rates = rng.gamma(4.0, 2.0, size=(2, 1000))  # [N, K]: what a sampler drew
        >>> belief = DrawsBelief(
        ...     labels=rng.poisson(rates),
        ...     targets=rates[:1],  # the rate of the first machine is what matters
        ...     log_likelihood=lambda y, rows: poisson.logpmf(y[:, :, None], rates[rows][:, None, :]),
        ... )
        >>> print(score(SquaredError(), belief).round(1))  # exactly: 16 / (1 + 1 / 2) = 10.7, and 0
        [10.8  0. ]
    """

    labels: Any
    targets: Any
    log_likelihood: Any
    domain: Domain = REAL
    outcomes: int | None = None
    rows: Host = field(init=False, repr=False)
    """[n]: which of the candidates are in this block."""
    outer: Host = field(init=False, repr=False)
    """[J]: the draws whose labels are outcomes."""
    kept: Host = field(init=False, repr=False)
    """[K]: the draws that count."""
    tabled: Host = field(init=False, repr=False)
    """The draws whose labels are the second axis of an array of likelihoods."""
    batch: tuple[int, ...] = field(init=False, repr=False, default=())
    """Candidates whose labels come together with that of each."""

    def __post_init__(self) -> None:
        labels, targets = np.asarray(self.labels), np.asarray(self.targets, dtype=float)
        if labels.ndim != 2 or not labels.shape[1]:
            raise StakesError(f"labels must have shape [N, K], a column for each draw; got {list(labels.shape)}")
        count = labels.shape[1]
        wanted = {Interval: (2,), Classes: (2, 3)}.get(type(self.domain), (3,))
        if targets.ndim not in wanted or not targets.shape[0] or targets.shape[1] != count:
            shape = "[M, K]" if targets.ndim == 2 or 3 not in wanted else "[M, K, ..]"
            turned = " Its axes are swapped, by their sizes." if targets.ndim > 1 and targets.shape[0] == count else ""
            raise StakesError(
                f"targets must have shape {shape} with K = {count}, the draws of labels, for {self.domain}; got "
                f"{list(targets.shape)}.{turned}"
            )
        check_all(np.isfinite(targets), "targets must be finite; some are NaN or infinite")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "targets", _checked_targets(targets, self.domain))
        if isinstance(self.domain, Classes):
            object.__setattr__(self, "domain", Classes(self.targets.shape[2]))
        if not callable(self.log_likelihood):
            object.__setattr__(self, "log_likelihood", _checked_likelihood(self.log_likelihood, labels.shape))
        object.__setattr__(self, "rows", np.arange(labels.shape[0]))
        object.__setattr__(self, "kept", np.arange(count))
        object.__setattr__(self, "tabled", np.arange(count))
        object.__setattr__(self, "outer", _spaced(self.outcomes, count))

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return len(self.rows)

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return int(self.targets.shape[0])

    @property
    def n_draws(self) -> int:
        """How many draws there are, K."""
        return len(self.kept)

    @property
    def like(self) -> Host:
        """The targets."""
        found: Host = self.targets
        return found

    def n_cells(self, integrand: Integrand) -> int:
        """J, the outcomes."""
        return len(self.outer)

    def reference(self, integrand: Integrand) -> Reference:
        """The weighted mean of the draws at each context; of classes their re-weighted probabilities."""
        if isinstance(self.domain, Classes):
            return class_reference(integrand, self._drawn().mean(axis=1))
        z = self._drawn()
        logs = integrand.log_magnitudes(z)[..., 0]  # [M, K]
        heavy = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf, where=np.isfinite(logs)))
        heavy = np.where(np.isfinite(heavy), heavy, 0.0)
        heavy = np.where(heavy.sum(axis=1, keepdims=True) > 0, heavy, 1.0)
        return reference_at(np.einsum("mk,mk...->m...", heavy / heavy.sum(axis=1, keepdims=True), z), integrand)

    def draw_moments(self, integrand: Integrand, reference: Reference) -> Host:
        """S(z) of each draw, over the scale of the reference.

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, K, D].
        """
        z = self._drawn()
        if isinstance(self.domain, Classes):
            return np.asarray(class_moments(integrand, reference, z.mean(axis=1), lambda part: z[part, ...]))
        point = reference.point
        return np.asarray(integrand.statistics(z, None if point is None else point[:, None, ...]))

    def moments(self, integrand: Integrand, reference: Reference) -> Host:
        """[M, D]: the mean over draws."""
        found: Host = self.draw_moments(integrand, reference).mean(axis=1)
        return found

    def split_moments(self, integrand: Integrand, reference: Reference) -> Host:
        """[N, M, J, D]: draws shared out over the outcomes, by p(y_j | x, theta_k) over the mean of that over draws."""
        each = self.draw_moments(integrand, reference)  # [M, K, D]
        return np.asarray(np.einsum("njk,mkd->nmjd", self._spread(), each, optimize=True))

    def distribution(self, integrand: Integrand, reference: Reference, marks: Host) -> Distribution:
        """[M]: draws are edges of panels, and have all of the mass, w(z) / K each: there is no density."""
        return self._at_edges(integrand, reference, marks)[0]

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Host) -> Host:
        """[N, M]: draws shared out over the outcomes, as in `split_moments`."""
        now, order = self._at_edges(integrand, reference, marks)
        spread, shares = self._spread(), np.asarray(now.edge_mass) * self.n_draws
        spread = np.concatenate([spread, np.zeros((*spread.shape[:2], 1))], axis=2)  # marks have no mass
        found = np.empty((self.n_candidates, self.n_contexts))
        for m in range(self.n_contexts):
            here = replaced(
                now,
                **{name: getattr(now, name)[m] for name in ("origin", "edges", "nodes", "step", "mass", "edge_mass")},
            )
            cells = spread[:, :, np.minimum(order[m], self.n_draws)] * shares[m]  # [N, J, P + 1]
            found[:, m] = regret(replaced(here, edge_mass=cells), here, marks[m]).sum(axis=1)
        return found

    def n_nodes(self, integrand: Integrand) -> int:
        """Those between all draws, for each outcome."""
        return NODES_PER_PANEL * (self.n_draws + 2) * len(self.outer)

    def log_weights(self) -> Host:
        """Log of the importance weights: what each draw counts once the label of x is y_j.

        Returns:
            [N, J, K], whose exponentials sum to one over draws.
        """
        logs = self._joint_likelihood()  # [N, J, K]
        total = logsumexp(logs, axis=2, keepdims=True)
        lost = ~np.isfinite(total)
        if lost.any():
            raise StakesError(
                f"log_likelihood must be finite for some draw at every label that was drawn; for {int(lost.sum())} of "
                f"{lost.size} labels it is not. Give labels that were drawn under the same draws."
            )
        return np.asarray(logs - total)

    def take(self, candidates: slice, contexts: slice) -> DrawsBelief:
        """A block of candidates and contexts."""
        return replaced(self, rows=self.rows[candidates], targets=self.targets[contexts, ...])

    def start_batch(self, candidates: tuple[int, ...]) -> DrawsBelief:
        """The belief in which each label comes with those of a batch: their likelihoods multiply."""
        return replaced(self, batch=tuple(int(self.rows[place]) for place in candidates))

    def tabulated(self) -> DrawsBelief:
        """The same belief with its likelihoods in an array: a function that takes long is called once."""
        rows = np.arange(self.n_candidates)
        return replaced(
            self,
            log_likelihood=self._joint_likelihood(),
            labels=self.labels[self.rows],
            rows=rows,
            targets=self._drawn(),
            outer=np.searchsorted(self.kept, self.outer),
            tabled=np.searchsorted(self.kept, self.outer),
            kept=np.arange(self.n_draws),
            batch=(),
        )

    def without(self, part: slice) -> DrawsBelief:
        """The belief of the other draws, such as for the error of what is computed of all.

        Args:
            part: Draws that are left out.

        Returns:
            The belief.

        Raises:
            StakesError: If no draw, or no outcome, is left.
        """
        kept = np.delete(self.kept, part)
        outer = np.intersect1d(self.outer, kept)
        if not len(kept) or not len(outer):
            raise StakesError(f"no draw is left of {self.n_draws}: at least {_FEWEST} are wanted")
        return replaced(self, kept=kept, outer=outer)

    def _at_edges(self, integrand: Integrand, reference: Reference, marks: Host) -> tuple[Distribution, Host]:
        """[M] and [M, P + 1]: the distribution of each context, and which draw is at each edge; from K on, marks."""
        z = self._drawn()  # [M, K]
        origin = np.zeros(len(z)) if reference.point is None else np.asarray(reference.point)
        weights = np.asarray(integrand.statistics(z, origin[:, None]))[..., 0] / self.n_draws
        low = z.min(axis=1, keepdims=True)  # an edge more, so that there is a panel if there is one draw
        places = np.concatenate([z - origin[:, None], low - origin[:, None], np.asarray(marks)], axis=1)
        masses = np.concatenate([weights, np.zeros((len(z), places.shape[1] - z.shape[1]))], axis=1)
        order = np.argsort(places, axis=1, kind="stable")
        edges, edge_mass = (np.take_along_axis(each, order, axis=1) for each in (places, masses))
        nodes, step = panel_nodes(edges)
        return Distribution(origin, edges, nodes, step, np.zeros_like(nodes), edge_mass), order

    def _spread(self) -> Host:
        """[N, J, K]: how draws are shared out over the outcomes, 1 / K of each in all."""
        logs = self.log_weights()  # [N, J, K]: normalised over draws
        total = logsumexp(logs, axis=1, keepdims=True)
        lost = np.isneginf(total)  # a draw under which none of the outcomes can be: they tell nothing of it
        logs, total = np.where(lost, 0.0, logs), np.where(lost, np.log(len(self.outer)), total)
        return np.asarray(np.exp(logs - total) / self.n_draws)  # normalised over outcomes

    def _drawn(self) -> Host:
        """[M, K, ...]: the targets of the draws that count."""
        found: Host = self.targets if len(self.kept) == self.targets.shape[1] else self.targets[:, self.kept, ...]
        return found

    def _joint_likelihood(self) -> Host:
        """[N, J, K]: of the label of each candidate and those of the batch."""
        logs = self._log_likelihood(self.rows)
        for row in self.batch:
            logs = logs + self._log_likelihood(np.array([row]))
        return logs

    def _log_likelihood(self, rows: Host) -> Host:
        """[n, J, K]: of the outcomes of some candidates under the draws that count."""
        if callable(self.log_likelihood):
            found = np.asarray(self.log_likelihood(self.labels[np.ix_(rows, self.outer)], rows), dtype=float)
            wanted = (len(rows), len(self.outer), self.labels.shape[1])
            if found.shape != wanted:
                raise StakesError(
                    f"log_likelihood must give {list(wanted)} for {wanted[0]} candidates and {wanted[1]} labels of "
                    f"each: one for each draw, last; got {list(found.shape)}"
                )
        else:
            found = self.log_likelihood[np.ix_(rows, np.searchsorted(self.tabled, self.outer))]
        found = found if len(self.kept) == found.shape[2] else found[:, :, self.kept]
        if np.isnan(found).any() or np.isposinf(found).any():
            raise StakesError("log_likelihood must be a logarithm, finite or -inf; some are NaN or inf")
        return np.asarray(found)


def _checked_targets(targets: Host, domain: Domain) -> Host:
    """Targets that lie in the domain; classes as indicators or probabilities [M, K, C]."""
    if not isinstance(domain, Classes):
        domain.check("targets", targets)
        return targets
    if targets.ndim == 3:
        check_probabilities("targets", targets)
        if domain.count not in (None, targets.shape[2]):
            raise StakesError(f"targets must have a probability for each of {domain}; got {targets.shape[2]}")
        return targets
    if domain.count is None:
        raise StakesError("say how many classes there are, Classes(3), where targets are classes by position")
    check_labels("targets", targets, domain.count)
    return np.asarray(np.eye(domain.count)[targets.astype(int)])


def _checked_likelihood(given: Any, shape: tuple[int, ...]) -> Host:
    found, wanted = np.asarray(given, dtype=float), (*shape, shape[1])
    if found.shape != wanted:
        raise StakesError(
            f"log_likelihood must be a function, or an array [N, K, K] = {list(wanted)} of the log likelihood of label "
            f"j under draw k; got {list(found.shape)}"
        )
    return found


def _spaced(outcomes: int | None, count: int) -> Host:
    """[J]: draws, evenly spaced."""
    if outcomes is None or outcomes >= count:
        return np.arange(count)
    if not isinstance(outcomes, int) or outcomes < 1:
        raise StakesError(f"outcomes must be a whole number, 1 or more; got {outcomes!r}")
    return np.unique(np.linspace(0, count - 1, outcomes).round().astype(int))
