"""Active testing: what a model loses today, from a few labels that are drawn to test it.

Each row is drawn with a probability pi_i that follows the spread of its loss under the belief, mixed with a quarter of
uniform draws so that no weight exceeds four. Rows are drawn systematically (Madow 1949): in the order of that spread
they lie side by side on a line, each as long as its probability, and the M rows at u, u + 1, .. , u + M - 1 are drawn,
u uniform on (0, 1). So losses of every size are drawn in proportion, which chance does not see to. What the belief
expects to lose is known on every row, so only the difference to it is estimated. With x the loss and e its expectation
under the belief, each draw gives

    a_j = mean(e) + M (x_j - e_j) / (N pi_j),

and the estimate is their mean, the difference estimator of surveys (Horvitz and Thompson 1952), which is unbiased
whatever the belief is. The rows drawn come in random order, so that the first m of them are a draw, too, with
probabilities m / M times as large. Drawing test rows by a belief is that of Kossen et al. (2021), "Active testing".

The interval is the hull of three, each for the mean loss R = k mean(e):

* Student's t from the spread of a_j (Hajek's variance, for draws without replacement), with fewer degrees of freedom
  where few draws carry it;
* as Wilson's for a share: errors are k times as frequent as the belief says, so that the variance is known for every
  k; it holds where no loss, or hardly any, was seen: then R is at most about 4 / M of what an error costs;
* every loss is k times what the belief says, and R within 40% of the estimate: for losses that are small or large
  rather than rare or frequent.

Sizes: N rows of the pool, M of them drawn, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from stakes._utils.arguments import RandomState, as_generator
from stakes._utils.array import Array, asarrays, constant, namespace, on_host, slices
from stakes._utils.tables import Host, labels_at, n_rows, plain_label, take_rows
from stakes._utils.text import counted, number
from stakes.acquisition.forms import check_pair
from stakes.acquisition.scores import bayes_prediction, context_blocks
from stakes.beliefs import Belief, Distribution
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, LogLoss, ThresholdDecision, align_classes
from stakes.losses.domains import Classes, Vectors
from stakes.models import prepare_belief
from stakes.models.inspection import known_classes

_UNIFORM = 0.25  # of the draws: no weight is then above 4
_UNKNOWN = 1e-3  # of the probability of a class that is put on the shares of all, as no class is ever impossible
_LEVEL = 0.975  # of a limit: two of them leave out 5%
_SCALED = 0.4  # of R, within which it may lie from the estimate because losses are larger than the belief says
_ROWS = 1024  # of the pool that a model is asked about at a time


@dataclass(frozen=True)
class AuditedLoss:
    """The mean loss on a pool, estimated from labels that were drawn to test a model.

    Attributes:
        mean: The estimate, without bias; it can lie outside of what is possible, below 0 say.
        low: The lower end of the 95% interval.
        high: The upper end; infinite where nothing limits it.
        labels: How many labels it is from.
        rows: How many rows the pool has.
        expected: What the belief expected the mean loss to be.

    Examples:
        >>> from stakes.evaluation import AuditedLoss
        >>> print(AuditedLoss(mean=4.12, low=3.2, high=5.3, labels=20, rows=500, expected=2.0))
        4.1 (3.2 to 5.3), audited with 20 labels
    """

    mean: float
    low: float
    high: float
    labels: int
    rows: int
    expected: float

    def __str__(self) -> str:
        within = min(max(self.mean, self.low), self.high)
        low, value, high = (number(each, 2) for each in (self.low, within, self.high))
        return f"{value} ({low} to {high}), audited with {counted(self.labels, 'label')}"


@dataclass(frozen=True)
class AuditDraw:
    """Rows that were drawn to test a model, and what is needed to estimate the mean loss from theirs: plain numbers.

    Losses are counted from the least that the answer at a row can cost, which is 0 but for gains.

    Attributes:
        rows: [M]: positions in the pool, in the order in which they were drawn.
        inclusions: [M]: of each, the probability that it is among the rows drawn.
        expected: [M]: its expected loss under the belief.
        least: [M]: the least that it can lose, where that is known.
        n_rows: How many rows the pool has, N.
        mean_expected: The mean expected loss of the pool.
        mean_least: The mean of the least that rows can lose; None where losses have no known limit below.
        mean_most: The mean of the most that rows can lose, infinite where that is not known.
        squares: sum_i e_i^2 / (N^2 q_i), with q_i = pi_i / M the probability of one draw.
        second: sum_i E[x_i^2] / (N^2 q_i).

    Examples:
        >>> from stakes.evaluation import AuditDraw
        >>> all_seen = AuditDraw((1, 0), (1.0, 1.0), (0.2, 0.2), (0.0, 0.0), 2, 0.2, 0.0, 1.0, 0.04, 0.2)
        >>> found = all_seen.estimate([1.0, 0.0])  # the loss of row 1, then of row 0
        >>> round(found.mean, 6), round(found.low, 6), round(found.high, 6)  # all rows were seen
        (0.5, 0.5, 0.5)
    """

    rows: tuple[int, ...]
    inclusions: tuple[float, ...]
    expected: tuple[float, ...]
    least: tuple[float, ...]
    n_rows: int
    mean_expected: float
    mean_least: float | None
    mean_most: float
    squares: float
    second: float

    def __len__(self) -> int:
        return len(self.rows)

    def estimate(self, losses: Any) -> AuditedLoss:
        """The mean loss of the pool, from the losses of the first rows that were drawn.

        Args:
            losses: One for each of the first rows, in their order: of all, or as far as labels have come. Rows that are
                left out because of what their label is would bias the estimate.

        Returns:
            The estimate with its interval.

        Raises:
            StakesError: If there are no losses, more than rows, or one is NaN.
        """
        x = np.asarray(losses, dtype=float)
        if x.ndim != 1 or not 1 <= len(x) <= len(self.rows) or np.isnan(x).any():
            raise StakesError(
                f"losses must be numbers, one for each of the first rows drawn, 1 to {len(self.rows)} of them; got "
                f"{x.shape} with {int(np.isnan(x).sum())} NaN"
            )
        count, size, expected = len(x), self.n_rows, float(self.mean_expected)
        if np.isinf(x).any():
            total = float(x[np.isinf(x)][0])
            return AuditedLoss(total, total, total, count, size, expected)
        terms = self._terms(x)
        mean = float(terms.mean())
        if count == size:
            return AuditedLoss(mean, mean, mean, count, size, expected)
        spread = self._spread(terms)
        error = _student(count, spread) * math.sqrt(float(spread @ spread) * count / max(1, count - 1))
        share = _student(count) ** 2 / count * (size - count) / size
        if self.mean_least is not None and bool((x >= np.asarray(self.least[:count])).all()):
            low, high = self._limits(x, mean, error, share)
        else:  # gains, of which no least is known: the spread that the belief expects, if it is larger
            error = max(error, math.sqrt(share * max(0.0, self.second - self.squares)))
            low, high = mean - error, mean + error
        return AuditedLoss(mean, low, high, count, size, expected)

    def _terms(self, x: Host) -> Host:
        """[m]: what each of the first draws says of the mean loss."""
        count = len(x)
        beyond = x - np.asarray(self.expected[:count])
        beside = len(self) * beyond / (self.n_rows * np.asarray(self.inclusions[:count]))
        return np.asarray(self.mean_expected + beside)

    def _spread(self, terms: Host) -> Host:
        """[m]: of terms about their mean, over m; a row that is drawn for certain adds nothing to the variance."""
        count = len(terms)
        open_ = np.maximum(1.0 - np.asarray(self.inclusions[:count]) * count / len(self), 0.0)
        if not open_.any():
            return np.zeros(count)
        return np.asarray(np.sqrt(open_) * (terms - open_ @ terms / open_.sum()) / count)

    def _limits(self, x: Host, mean: float, error: float, share: float) -> tuple[float, float]:
        """The interval of losses that are counted from the least possible: see the head of this file.

        `error` is Student's, and `share` times the variance of a draw is the square of an error.
        """
        base, top = self.mean_least or 0.0, self.mean_most
        beyond, expected = mean - base, self.mean_expected - base
        parts = [(beyond - error, beyond + error), *_by_belief(beyond, expected, self.squares, self.second, share)]
        if expected <= 0 and not (x > np.asarray(self.least[: len(x)])).any():  # neither says how large a loss is
            parts.append((beyond, (top - base) * share / (1.0 + share)))
        low, high = min(part[0] for part in parts), max(part[1] for part in parts)
        seen = float(np.sum(x - np.asarray(self.least[: len(x)]))) / self.n_rows  # all others may lose the least
        low = min(max(low, seen), top - base)
        return base + low, min(base + max(high, low), top)

    def without(self, places: Collection[int]) -> AuditDraw:
        """The same draw from a pool without some of the rows drawn, such as those that cannot be labelled.

        It then estimates the loss of the rows that can be, and is as good as the guess that no other row cannot.

        Args:
            places: Positions in `rows`.

        Returns:
            The draw.
        """
        if not places:
            return self
        kept = [place for place in range(len(self.rows)) if place not in places]
        rest = len(self) - sum(self.inclusions[place] for place in places)  # of all probabilities
        larger = len(kept) / rest if rest > 0 else 1.0
        size = self.n_rows - len(places)

        def mean_without(mean: float, of: Sequence[float]) -> float:
            return (self.n_rows * mean - sum(of[place] for place in places)) / size

        return replace(
            self,
            rows=tuple(self.rows[place] for place in kept),
            inclusions=tuple(min(1.0, larger * self.inclusions[place]) for place in kept),
            expected=tuple(self.expected[place] for place in kept),
            least=tuple(self.least[place] for place in kept),
            n_rows=size,
            mean_expected=mean_without(self.mean_expected, self.expected),
            mean_least=None if self.mean_least is None else mean_without(self.mean_least, self.least),
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields, for JSON; None for what is infinite."""
        most = self.mean_most if math.isfinite(self.mean_most) else None
        return {**{name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}, "mean_most": most}

    @staticmethod
    def from_dict(kept: dict[str, Any]) -> AuditDraw:
        """The draw that `to_dict` was of.

        Args:
            kept: What `to_dict` gave.

        Returns:
            The draw.
        """
        lists = {name: tuple(kept[name]) for name in ("rows", "inclusions", "expected", "least")}
        most = math.inf if kept["mean_most"] is None else kept["mean_most"]
        return AuditDraw(**{**kept, **lists, "mean_most": most})


def _student(count: int, spread: Host | None = None) -> float:
    """The quantile of Student's t: with M - 1 degrees of freedom, fewer where few of the draws carry the spread.

    The variance of a variance is known by the fourth power: normal draws have sum(d^2)^2 / sum(d^4) = M / 3.
    """
    freedom = float(max(1, count - 1))
    if spread is not None and (largest := float(np.abs(spread).max())) > 0:
        squares = (spread / largest) ** 2
        freedom = min(freedom, max(1.5, 3.0 * float(squares.sum()) ** 2 / float((squares**2).sum())))
    return float(stdtrit(freedom, _LEVEL))


def _by_belief(mean: float, expected: float, squares: float, second: float, share: float) -> list[tuple[float, float]]:
    """Intervals for R = k e in which (mean - R)^2 is at most `share` times the variance of a draw, which k implies.

    Where errors are k times as frequent the variance is k second + (1 - 2 k) squares - (k - 1)^2 e^2; where losses are
    k times as large it is k^2 second + ... Both inequalities are quadratic in k.
    """
    if not expected > 0:
        return []
    constant_part = mean**2 - share * (squares - expected**2)
    linear = -2.0 * mean * expected + share * 2.0 * (squares - expected**2)
    quadratic = expected**2 * (1.0 + share)
    frequent = _roots(quadratic, linear - share * second, constant_part)
    found = [(expected * low, expected * high) for low, high in frequent]
    if mean > 0:
        nearest, farthest = mean / (1.0 + _SCALED), mean / (1.0 - _SCALED)
        for low, high in _roots(quadratic - share * second, linear, constant_part):
            found.append((max(expected * low, nearest), min(expected * high, farthest)))
    return found


def _roots(a: float, b: float, c: float) -> list[tuple[float, float]]:
    """Where a k^2 + b k + c is at most 0, for k >= 0: an interval, or none."""
    if a == 0.0:
        return [(0.0, math.inf)] if c <= 0 and b <= 0 else []
    inside = b * b - 4.0 * a * c
    if a > 0:
        if inside < 0:
            return []
        root = math.sqrt(inside)
        return [(max(0.0, (-b - root) / (2.0 * a)), (-b + root) / (2.0 * a))]
    first = 0.0 if inside < 0 else max(0.0, (-b - math.sqrt(inside)) / (2.0 * a))
    return [(first if c > 0 else 0.0, math.inf)]


class Moments(NamedTuple):
    """What a belief expects of the losses of answers on N rows.

    Attributes:
        expected: [N]: E[x].
        second: [N]: E[x^2].
        least: [N]: the least that each can lose; NaN where losses have no known limit below.
        most: [N]: the most, which may be infinite.
    """

    expected: Host
    second: Host
    least: Host
    most: Host


@dataclass(frozen=True, eq=False)
class Audit:
    """Rows to label in order to test a model, and how to read their labels.

    Attributes:
        draw: Which rows, and with which probabilities.
        row_ids: [M]: of the rows in the order drawn: the index of a pandas frame, else positions.
        loss: The loss.
        answers: What is answered on all rows of the pool, [N]; [N, C] for class probabilities, [N, d] for vectors; for
            LogScore and CRPS a `Distribution`.
        classes: All classes, where labels are names of them; None for numbers, and for positions of classes.

    Examples:
        >>> import numpy as np
        >>> from stakes import GaussianProcess, SquaredError, audit
        >>> X = np.linspace(0.0, 1.0, 60)[:, None]
        >>> y = np.sin(6.0 * X[:, 0])
        >>> drawn = audit(GaussianProcess().fit(X[::10], y[::10]), SquaredError(), X, n=8)
        >>> drawn.estimate(y[list(drawn.draw.rows)]).labels
        8
    """

    draw: AuditDraw
    row_ids: tuple[Any, ...]
    loss: AnyLoss
    answers: Any
    classes: tuple[Any, ...] | None = None

    def losses(self, labels: Any) -> Host:
        """What the answers lose on the first rows that were drawn.

        Args:
            labels: One for each of the first rows, in the order in which they were drawn.

        Returns:
            One loss for each.

        Raises:
            StakesError: If there are more labels than rows, or one is no label for the loss.
        """
        targets = self._targets(labels)
        if not 1 <= len(targets) <= len(self.draw):
            raise StakesError(
                f"labels must be those of the first rows drawn, 1 to {len(self.draw)} of them; got {len(targets)}"
            )
        rows = list(self.draw.rows[: len(targets)])
        if isinstance(self.answers, Distribution):  # of all rows: others get a label that exists
            everywhere = np.full(self.draw.n_rows, targets[0])
            everywhere[rows] = targets
            return np.asarray(on_host(self.loss(everywhere, self.answers)), dtype=float)[rows]
        return np.asarray(on_host(self.loss(targets, on_host(self.answers)[rows])), dtype=float)

    def estimate(self, labels: Any) -> AuditedLoss:
        """The mean loss on the pool, from the labels of the first rows that were drawn.

        Args:
            labels: One for each of the first rows, in the order in which they were drawn; names of classes where those
                are known.

        Returns:
            The estimate with its interval.

        Raises:
            StakesError: If there are more labels than rows, or one is no label for the loss.
        """
        return self.draw.estimate(self.losses(labels))

    def _targets(self, labels: Any) -> Host:
        """[M], or [M, d]: numbers, or positions of classes."""
        given = on_host(labels) if hasattr(labels, "shape") else np.asarray(labels)
        if self.classes is None:
            return given.astype(float)
        places = {name: place for place, name in enumerate(self.classes)}
        if unknown := [each for each in map(plain_label, given.tolist()) if each not in places]:
            raise StakesError(f"labels must be among the classes {list(self.classes)}; got {unknown[0]!r}")
        return np.asarray([places[plain_label(each)] for each in given.tolist()], dtype=float)


def audit(
    model: Any,
    loss: AnyLoss,
    pool: Any = None,
    n: int = 20,
    *,
    predictions: Any = None,
    classes: Sequence[Any] | None = None,
    random_state: RandomState = 0,
) -> Audit:
    """Draw rows of a pool to test a model on: labels of a few tell what it loses on all, in your own loss.

    Rows whose loss is uncertain under the belief are drawn more often, and the estimate takes that into account: it is
    unbiased whatever the belief is, and more precise than from as many rows drawn at random where the belief is good.
    The labels must not have been used for fitting.

    Args:
        model: A fitted model that `stakes.models.belief_of` takes, or a belief whose contexts are the rows.
        loss: What being wrong costs.
        pool: [N, p]: the rows on which the loss matters; not with a belief.
        n: How many rows to draw; all where there are fewer.
        predictions: [N], ..: what is answered, where that is not the best answer under the belief.
        classes: All classes in the order of the loss, also those that no label has had yet; None: those of the model.
        random_state: A whole number or a `numpy.random.Generator`.

    Returns:
        The rows in the order in which they were drawn; its `estimate` takes their labels.

    Raises:
        StakesError: If an argument is refused.
        TypeError: If no adapter knows the model, or loss and belief are about different targets.

    Examples:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from stakes import CostMatrix, audit
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = RandomForestClassifier(50, random_state=0).fit(X[:40], y[:40])
        >>> loss = CostMatrix([[0.0, 20.0], [1.0, 0.0]])  # a tumour that is taken for benign costs 20
        >>> drawn = audit(model, loss, X[40:], n=30)
        >>> labels = y[40:][list(drawn.draw.rows)]
        >>> print(drawn.estimate(labels))
        0.67 (0.51 to 1), audited with 30 labels
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise StakesError(f"n must be a whole number of rows to draw, 1 or more; got {n!r}")
    if isinstance(model, Belief) == (pool is not None):
        raise StakesError("give a fitted model with a pool of rows, or a belief about the rows without a pool")
    names = classes if classes is not None or isinstance(model, Belief) else known_classes(model)
    loss = align_classes(loss, names) if pool is not None or names is not None else loss
    beliefs = [model] if pool is None else _beliefs(model, loss, pool, names, random_state)
    if predictions is None:
        answers = [bayes_prediction(loss, belief) for belief in beliefs]
    else:
        answers = _parts_of(predictions, [belief.n_contexts for belief in beliefs])
    parts = [moments_of(loss, belief, here) for belief, here in zip(beliefs, answers, strict=True)]
    draw = drawn_by(*(np.concatenate(each) for each in zip(*parts, strict=True)), n=int(n), random_state=random_state)
    whole = answers[0] if len(answers) == 1 else np.concatenate([on_host(each) for each in answers])
    ids = draw.rows if pool is None else labels_at(pool, draw.rows)
    known = None if names is None else tuple(plain_label(name) for name in names)
    return Audit(draw, tuple(ids), loss, whole, known)


def drawn_by(
    expected: Host, second: Host, least: Host, most: Host, *, n: int, random_state: RandomState = 0
) -> AuditDraw:
    """Draw rows by moments of their losses under a belief.

    Args:
        expected: [N]: E[x].
        second: [N]: E[x^2].
        least: [N]: the least that each can lose; NaN where losses have no known limit below.
        most: [N]: the most, which may be infinite.
        n: How many rows.
        random_state: A whole number or a generator.

    Returns:
        The rows drawn.
    """
    size, signed = len(expected), bool(np.isfinite(least).all())
    base = least if signed else np.zeros(size)
    usable = np.isfinite(expected) & np.isfinite(second)
    mean, square = np.where(usable, expected, base), np.where(usable, second, base**2)
    beyond = np.maximum(square - 2.0 * base * mean + base**2, 0.0)  # E[(x - least)^2]
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    spread = np.where(usable, spread, spread.max(initial=0.0))  # a loss that may be infinite is looked at
    follow = spread / spread.sum() if spread.sum() > 0 else np.full(size, 1.0 / size)
    share = (1.0 - _UNIFORM) * follow + _UNIFORM / size
    inclusion, generator = _inclusions(share, min(n, size)), as_generator(random_state)
    rows = _systematic(inclusion, np.round(size * share, 9), generator)  # of equal spreads but for rounding, by chance
    return AuditDraw(
        rows=tuple(rows.tolist()),
        inclusions=tuple(inclusion[rows].tolist()),
        expected=tuple(mean[rows].tolist()),
        least=tuple(base[rows].tolist()),
        n_rows=size,
        mean_expected=float(mean.mean()),
        mean_least=float(base.mean()) if signed else None,
        mean_most=float(most.mean()),
        squares=float(np.sum((mean - base) ** 2 / share)) / size**2,
        second=float(np.sum(beyond / share)) / size**2,
    )


def _inclusions(share: Host, count: int) -> Host:
    """[N]: the probabilities that rows are among `count` drawn: shares of it, at most 1."""
    found = np.full(len(share), count / len(share))
    certain = np.full(len(share), count == len(share))
    while not certain.all():
        left = count - int(certain.sum())
        found = np.where(certain, 1.0, left * share / share[~certain].sum())
        if (found <= 1.0).all():
            break
        certain = found >= 1.0
    return np.asarray(np.minimum(found, 1.0))


def _systematic(inclusion: Host, along: Host, generator: np.random.Generator) -> Host:
    """[M]: rows at equal steps of the sum of their probabilities [N], in the order of `along`; then in random order."""
    order = np.lexsort((generator.random(len(along)), along))
    ends = np.cumsum(inclusion[order])
    ends[-1] = round(float(ends[-1]))
    steps = np.ceil(ends - generator.random())
    return generator.permutation(order[np.diff(steps, prepend=0.0) > 0])


def _beliefs(
    model: Any, loss: AnyLoss, pool: Any, classes: Sequence[Any] | None, random_state: RandomState
) -> list[Belief]:
    """What a model believes of the labels of a pool, in blocks of rows; in one for answers that are distributions."""
    size = n_rows(pool)
    if size == 0:
        raise StakesError("the pool has no rows: there is nothing to test")
    seed = random_state if isinstance(random_state, int) else 0
    first, at_once = take_rows(pool, [0]), size if isinstance(loss, DistributionLoss) else _ROWS
    parts = (take_rows(pool, range(size)[part]) for part in slices(size, at_once))
    return [prepare_belief(model, part, classes=classes, random_state=seed)(first) for part in parts]


def _parts_of(predictions: Any, sizes: Sequence[int]) -> list[Any]:
    """The answers of a user, in blocks of as many rows as beliefs have."""
    (given,) = asarrays(predictions=predictions)
    if given.ndim == 0 or given.shape[0] != sum(sizes):
        raise StakesError(f"predictions must have one answer for each of {sum(sizes)} rows; got {list(given.shape)}")
    ends = np.cumsum(sizes).tolist()
    return [given[end - size : end, ...] for size, end in zip(sizes, ends, strict=True)]


def moments_of(loss: AnyLoss, belief: Belief, answers: Any) -> Moments:
    """What a belief about N rows expects of the losses of answers there.

    Args:
        loss: The loss.
        belief: The belief, whose contexts are the rows.
        answers: [N], ..: the answers, as the loss takes them.

    Returns:
        The moments of each row.
    """
    check_pair(loss, belief)
    if isinstance(loss.domain, Classes):
        return _by_class(loss, belief, answers)
    return _integrated(loss, belief, answers)


def _by_class(loss: AnyLoss, belief: Belief, answers: Any) -> Moments:
    """Of classes: exact sums, with a little of the probability on the shares of all rows."""
    probabilities = np.asarray(on_host(bayes_prediction(LogLoss(), belief)), dtype=float)  # [M, C]
    size, count = probabilities.shape
    shares = probabilities.mean(axis=0)
    probabilities = (1.0 - _UNKNOWN) * probabilities + _UNKNOWN * (0.5 * shares + 0.5 / count)
    each = class_losses(loss, on_host(answers), size, count)
    certain = np.where(np.isfinite(each), each, 0.0)
    first, second = (np.sum(probabilities * certain**power, axis=1) for power in (1, 2))
    return Moments(first, second, certain.min(axis=1), each.max(axis=1))


def class_losses(loss: Any, answers: Any, size: int, count: int) -> Host:
    """[M, C]: what the answer at each of M rows loses under each of C classes.

    Args:
        loss: The loss.
        answers: [M], or [M, C]: the answers.
        size: M.
        count: C.

    Returns:
        The losses.
    """
    losses = [np.asarray(on_host(loss(np.full(size, float(place)), answers)), dtype=float) for place in range(count)]
    return np.stack(losses, axis=1)


def _integrated(loss: Any, belief: Belief, answers: Any) -> Moments:
    """Of numbers and vectors: moments by the rule of the belief, and the least loss that it met."""
    met: list[float] = []
    vectors = isinstance(loss.domain, Vectors)

    def at(z: Array, here: Any) -> Array:
        xp = namespace(z)
        z = xp.broadcast_to(z, (block.n_contexts, *z.shape[1:]))
        if not isinstance(here, Distribution):
            between = (1,) * (z.ndim - 1 - vectors)
            here = xp.reshape(here, (here.shape[0], *between, *here.shape[1:]))
            here = xp.broadcast_to(here, z.shape) if not vectors else here
        losses = loss(z, here)
        met.append(float(namespace(losses).min(losses)))
        return namespace(losses).stack([losses, losses**2], axis=-1)

    found, start = [], 0
    for block in [belief] if isinstance(answers, Distribution) else context_blocks(belief):
        part = slice(start, start + block.n_contexts)
        here = answers if isinstance(answers, Distribution) else constant(on_host(answers[part]), block.like)
        statistics = SimpleNamespace(
            domain=loss.domain,
            breakpoints=loss.breakpoints,
            finite_actions=False,
            log_magnitudes=lambda z: namespace(z).zeros_like(z[..., :1] if vectors else z[..., None]),
            statistics=lambda z, reference=None, here=here: at(z, here),
        )
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found.append(on_host(block.moments(statistics, block.reference(statistics))))
        except FloatingPointError:  # an expected loss is infinite: the belief does not say which rows to draw
            found.append(np.full((block.n_contexts, 2), math.nan))
        start += block.n_contexts
    moments = np.concatenate(found).astype(float)
    least = np.zeros(len(moments)) if min(met, default=0.0) >= 0 else np.full(len(moments), math.nan)
    return Moments(moments[:, 0], moments[:, 1], least, _most(loss, answers, len(moments)))


def _most(loss: Any, answers: Any, size: int) -> Host:
    """[M]: the most that answers about numbers can lose: known for a threshold."""
    if isinstance(loss, ThresholdDecision):
        return np.where(on_host(answers) == 0, loss.miss, loss.false_alarm).astype(float)
    return np.full(size, math.inf)
