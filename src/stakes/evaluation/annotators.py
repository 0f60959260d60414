"""How reliable each annotator is, from rows that several of them labelled, and what the label of each row then is.

Classes (Dawid and Skene, 1979): row i has a class y, annotator a says l with probability Pi_a[y, l], opinions are
independent given y. The posterior mode of all Pi_a is found by expectation maximisation; each row Pi_a[y] has a
Dirichlet prior of a few pseudo-counts about the accuracy that the annotator has over all classes, so that few labels
give no zeros. Two annotators alone do not tell who of them is wrong: what a model says of each row, or rows whose
class is known, does. What a model says is recalibrated by a power and a shift of each class, as a model that learned
from the same opinions shares their errors and is too sure of itself: both are found together with the matrices.
Standard errors are from the observed information of all parameters (Louis, 1982).

Numbers: opinion = truth of the row + bias of the annotator + noise, all normal; variances by restricted maximum
likelihood, with a normal prior that draws their logarithms to each other.

Sizes: m opinions, n rows, A annotators, C classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import optimize

from stakes._utils.tables import Host, is_gap
from stakes._utils.text import counted, number
from stakes.exceptions import StakesError
from stakes.models.default_model import infer_task

_USUAL, _STRENGTH = 0.8, 5.0  # accuracy of an annotator of whom nothing is known, in as many pseudo-counts
_ROUNDS, _PRECISION = 1000, 1e-7  # of expectation maximisation: the change of every probability at the end
_LIKE_EACH_OTHER = 1.5  # sd of the logarithms of noise variances about their mean, over annotators
_POWER, _POWER_SD = 0.5, 0.5  # of probabilities that a model gives: median, and sd of the logarithm
_SHIFT_SD = 1.0  # of the logarithms of these probabilities, by class
_STEP_MOST = 0.5  # of one step of the recalibration
_MOST_AT_ONCE = 1500  # parameters whose covariances are computed together; of more, those of one annotator at a time
_MIDDLE = 2.0  # labels, spread evenly, by which matrices are drawn to the middle for their errors
_NULL = 1e-9  # of the largest eigenvalue of an information matrix, below which a direction is not of the model
_DIFFERENCE = 1e-3  # of second differences of a log likelihood, in logarithms of variances


@dataclass(frozen=True, eq=False)
class ClassAnnotator:
    """How one annotator labels classes.

    Attributes:
        name: Who.
        opinions: How many labels they gave.
        confusion: [C, C]: the probability of each label (columns), given the class (rows).
        confusion_error: [C, C]: standard errors.
        accuracy: The probability of a right label, over classes as frequent as they are.
        accuracy_error: Its standard error.

    Examples:
        >>> from stakes.evaluation import estimate_annotators
        >>> opinions = [(row, who, "yes") for row in range(9) for who in ("ann", "bob")]
        >>> ann = estimate_annotators(opinions, classes=["no", "yes"])["ann"]
        >>> ann.opinions, ann.confusion.shape
        (9, (2, 2))
    """

    name: str
    opinions: int
    confusion: Host
    confusion_error: Host
    accuracy: float
    accuracy_error: float

    def __str__(self) -> str:
        right = f"{self.accuracy:.0%} right (standard error {self.accuracy_error:.0%})"
        return f"{self.name}: {counted(self.opinions, 'label')}, {right}"


@dataclass(frozen=True, eq=False)
class NumberAnnotator:
    """How one annotator labels numbers.

    Attributes:
        name: Who.
        opinions: How many labels they gave.
        bias: By how much their labels are too high, against the mean of all annotators.
        bias_error: Its standard error.
        sd: The standard deviation of their noise.
        sd_error: Its standard error.

    Examples:
        >>> from stakes.evaluation import estimate_annotators
        >>> opinions = [(row, who, row + bias) for row in range(9) for who, bias in (("ann", 0.5), ("bob", -0.5))]
        >>> round(estimate_annotators(opinions, task="real")["ann"].bias, 3)
        0.5
    """

    name: str
    opinions: int
    bias: float
    bias_error: float
    sd: float
    sd_error: float

    def __str__(self) -> str:
        noise = f"noise sd {number(self.sd)} (standard error {number(self.sd_error, 2)})"
        return f"{self.name}: {counted(self.opinions, 'label')}, {noise}, bias {number(self.bias)}"


@dataclass(frozen=True, eq=False)
class Annotators:
    """All annotators, and what their labels together say of each row.

    Attributes:
        by_name: Each annotator, in the order in which they first labelled.
        rows: The n rows that have an opinion, in the order in which they first had one.
        truth: [n, C]: the probability of each class; [n]: the mean of opinions less biases, weighted by precision.
        truth_error: [n]: the standard deviation of that mean; None for classes.
        classes: All classes in the order of columns; none for numbers.
        shares: [C]: how frequent each class is; None for numbers.

    Examples:
        >>> from stakes.evaluation import estimate_annotators
        >>> opinions = [(0, "ann", "a"), (0, "bob", "a"), (1, "ann", "b"), (1, "bob", "a")]
        >>> found = estimate_annotators(opinions, classes=["a", "b"])
        >>> list(found.by_name), found.rows
        (['ann', 'bob'], (0, 1))
        >>> found.truth[0].argmax()  # both say "a"
        np.int64(0)
    """

    by_name: Mapping[str, Any]
    rows: tuple[Any, ...]
    truth: Host
    truth_error: Host | None
    classes: tuple[Any, ...]
    shares: Host | None

    def __getitem__(self, name: str) -> Any:
        if name not in self.by_name:
            raise StakesError(f"there is no opinion of {name!r}; there are some of {', '.join(self.by_name)}")
        return self.by_name[name]

    def __len__(self) -> int:
        return len(self.by_name)

    def __str__(self) -> str:
        return "\n".join(map(str, self.by_name.values()))


def estimate_annotators(
    opinions: Any,
    *,
    classes: Sequence[Any] | None = None,
    task: Literal["classes", "real"] | None = None,
    row_probabilities: Mapping[Any, Any] | None = None,
    recalibrate: bool = False,
    prior_accuracy: float = _USUAL,
    prior_strength: float = _STRENGTH,
) -> Annotators:
    """Estimate how reliable annotators are, and the label of each row, from all that was said of it.

    Args:
        opinions: Triples (row, annotator, label), or a table with columns `row`, `annotator` and `label`. An annotator
            may label a row more than once.
        classes: All classes in the order of columns; None: those of the labels, sorted.
        task: "classes" or "real"; None: text, flags and whole numbers with few values are classes.
        row_probabilities: By row, [C]: what is known of its class before anybody labelled it, such as what a model
            that was not fitted to that row says of it; 1 for the class of a row whose class is known. Rows that are not
            in it have the shares of classes, which are estimated.
        recalibrate: Whether these are of a model that learned from the same opinions, whose errors it then shares: what
            it says is taken to a power and shifted by class, as opinions make most probable, and errors count that.
        prior_accuracy: The accuracy of an annotator of whom nothing is known, for classes.
        prior_strength: How many labels that counts for: of the annotator over all classes, and then of each class.

    Returns:
        The annotators, and what is believed of the label of each row.

    Raises:
        StakesError: If there are no opinions, a label is missing or no class, or no row has two opinions of a number.

    Examples:
        Two annotators, one of whom calls every third "a" a "b", and a few rows whose class is known:

        >>> opinions = [(row, "ann", "a" if row < 30 else "b") for row in range(60)]
        >>> opinions += [(row, "bob", "a" if row < 30 and row % 3 else "b") for row in range(60)]
        >>> known = {row: [row < 30, row >= 30] for row in range(20, 40)}
        >>> found = estimate_annotators(opinions, classes=["a", "b"], row_probabilities=known)
        >>> print(found["bob"].confusion.round(2))
        [[0.7  0.3 ]
         [0.02 0.98]]
        >>> print(found)
        ann: 60 labels, 99% right (standard error 6%)
        bob: 60 labels, 84% right (standard error 5%)
    """
    table = opinion_table(opinions)
    kind, _ = infer_task(table.labels, task, classes)
    if kind == "real":
        if row_probabilities is not None:
            raise StakesError("row_probabilities are of classes; the labels are numbers. Leave them out.")
        return _of_numbers(table)
    if not 0.0 < prior_accuracy < 1.0 or not prior_strength > 0.0:
        raise StakesError(
            "prior_accuracy must be between 0 and 1 and prior_strength above 0; "
            f"got {prior_accuracy!r} and {prior_strength!r}"
        )
    names = _class_names(table, classes)
    codes = _codes(table, names)
    priors, known = _row_priors(table.rows, len(names), row_probabilities)
    before = _RowPriors.of(priors, known, recalibrate=recalibrate)
    found = _dawid_skene(table, codes, before, known, prior_accuracy, prior_strength)
    errors, accuracy_errors = _class_errors(table, codes, found, known)
    counts = np.bincount(table.who, minlength=len(table.names))
    by_name = {
        name: ClassAnnotator(
            name,
            int(counts[a]),
            found.confusion[a],
            errors[a],
            float(found.frequencies @ np.diagonal(found.confusion[a])),
            float(accuracy_errors[a]),
        )
        for a, name in enumerate(table.names)
    }
    return Annotators(by_name, table.rows, found.posterior, None, tuple(names), found.frequencies)


@dataclass(frozen=True, eq=False)
class OpinionTable:
    """Opinions as positions."""

    rows: tuple[Any, ...]
    names: tuple[str, ...]
    row: Host
    """[m]: position in `rows`"""
    who: Host
    """[m]: position in `names`"""
    labels: Host
    """[m]"""


def opinion_table(opinions: Any) -> OpinionTable:
    """Opinions of triples or of a table, none of them missing."""
    if isinstance(opinions, Mapping) or hasattr(opinions, "columns"):
        try:
            columns = [list(opinions[name]) for name in ("row", "annotator", "label")]
        except KeyError as absent:
            raise StakesError(
                f"a table of opinions must have the columns row, annotator and label; there is no {absent}"
            ) from None
        triples: Iterable[Any] = zip(*columns, strict=True)
    else:
        triples = opinions
    try:
        rows, names, labels = zip(*[(row, name, label) for row, name, label in triples], strict=True)
    except (TypeError, ValueError):
        raise StakesError(
            "opinions must be triples (row, annotator, label), one at least, or a table with these columns"
        ) from None
    values = np.asarray(labels) if not any(isinstance(each, str) for each in labels) else np.asarray(labels, object)
    gaps = is_gap(values.astype(object))
    if gaps.any():
        place = int(np.flatnonzero(gaps)[0])
        raise StakesError(f"an opinion must have a label; that of {names[place]!r} on row {rows[place]!r} has none")
    known_rows, known_names = ({each: at for at, each in enumerate(dict.fromkeys(column))} for column in (rows, names))
    return OpinionTable(
        tuple(known_rows),
        tuple(map(str, known_names)),
        np.asarray([known_rows[each] for each in rows]),
        np.asarray([known_names[each] for each in names]),
        values,
    )


def _class_names(table: OpinionTable, classes: Sequence[Any] | None) -> list[Any]:
    seen = list(dict.fromkeys(table.labels.tolist()))
    if classes is None:
        return sorted(seen)
    names = np.asarray(classes).tolist() if not isinstance(classes, list | tuple) else list(classes)
    if unknown := [each for each in seen if each not in names]:
        raise StakesError(f"labels must be among the classes {names}; got {unknown[0]!r}")
    return names


def _codes(table: OpinionTable, names: Sequence[Any]) -> Host:
    """[m]: the position of the class of each label."""
    place = {name: at for at, name in enumerate(names)}
    return np.asarray([place[label] for label in table.labels.tolist()])


def _row_priors(rows: Sequence[Any], count: int, given: Mapping[Any, Any] | None) -> tuple[Host, Host]:
    """[n, C] and [n]: what is known of each row beforehand, and of which rows something is."""
    priors, known = np.ones((len(rows), count)) / count, np.zeros(len(rows), dtype=bool)
    for at, row in enumerate(rows):
        if given is None or row not in given:
            continue
        values = np.asarray(given[row], dtype=float)
        if values.shape != (count,) or not (values >= 0).all() or not abs(values.sum() - 1.0) <= 1e-3:
            raise StakesError(f"row_probabilities[{row!r}] must hold the probability of each of {count} classes")
        priors[at], known[at] = values / values.sum(), True
    return priors, known


@dataclass(frozen=True, eq=False)
class _RowPriors:
    """What a model says of rows, recalibrated: its probabilities to a power, times a factor for each class."""

    logs: Host
    """[n, C]: of the probabilities that were given"""
    uncertain: Host
    """[n]: rows whose probabilities are recalibrated"""
    shift: Host
    """[C]"""
    log_power: float

    @classmethod
    def of(cls, priors: Host, known: Host, *, recalibrate: bool) -> _RowPriors:
        """As they are, or with the recalibration that is expected beforehand."""
        with np.errstate(divide="ignore"):
            logs = np.log(priors)
        uncertain = known & (priors.max(axis=1) < 1.0) & recalibrate
        return cls(logs, uncertain, np.zeros(priors.shape[1]), np.log(_POWER) if recalibrate else 0.0)

    def probabilities(self) -> Host:
        """[n, C]."""
        found = np.exp(self.log_power) * self.logs + self.shift
        found = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def slopes(self) -> Host:
        """[n, C, C + 1]: of logits by shifts and log power, about their mean over classes; 0 where rows are certain."""
        power, found = np.exp(self.log_power), self.probabilities()
        scaled = power * np.where(np.isfinite(self.logs), self.logs, 0.0)[:, :, None]
        each = np.concatenate(
            [np.broadcast_to(np.eye(len(self.shift)), (*found.shape, len(self.shift))), scaled], axis=2
        )
        centred = each - np.einsum("nc,nck->nk", found, each)[:, None, :]
        return np.where(self.uncertain[:, None, None], centred, 0.0)

    def information(self, slopes: Host) -> Host:
        """[C + 1, C + 1]: of shifts and log power if classes were known, with that of their prior."""
        prior = np.diag(np.r_[np.full(len(self.shift), _SHIFT_SD**-2.0), _POWER_SD**-2.0])
        return np.asarray(np.einsum("nc,nck,ncj->kj", self.probabilities(), slopes, slopes, optimize=True) + prior)

    def nearer(self, posterior: Host) -> _RowPriors:
        """One step of scoring towards the recalibration under which the classes of rows are most probable."""
        if not self.uncertain.any():
            return self
        slopes = self.slopes()
        pull = np.r_[self.shift / _SHIFT_SD**2, (self.log_power - np.log(_POWER)) / _POWER_SD**2]
        step = np.linalg.solve(self.information(slopes), np.einsum("nc,nck->k", posterior, slopes) - pull)
        step = np.clip(step, -_STEP_MOST, _STEP_MOST)
        return replace(self, shift=self.shift + step[:-1], log_power=float(self.log_power + step[-1]))


@dataclass(frozen=True, eq=False)
class _Fit:
    """The mode: [A, C, C], [C], [n, C]; [A, C, C] pseudo-counts; [C] the frequencies of classes over all rows."""

    confusion: Host
    shares: Host
    posterior: Host
    pseudo: Host
    frequencies: Host
    priors: _RowPriors


def _dawid_skene(
    table: OpinionTable, codes: Host, priors: _RowPriors, known: Host, accuracy: float, strength: float
) -> _Fit:
    """Expectation maximisation, first with one accuracy for each annotator, then with all of the matrix."""
    people, count = len(table.names), priors.logs.shape[1]
    opinions = np.bincount(table.who, minlength=people)
    right, shares = np.full(people, accuracy), np.ones(count) / count
    confusion = _one_accuracy(right, count)
    pseudo: Host | None = None
    for last in (False, True):
        for _ in range(_ROUNDS):
            posterior = _posterior(table, codes, np.where(known[:, None], priors.probabilities(), shares), confusion)
            new_shares, priors = _shares(posterior, known), priors.nearer(posterior)
            if last:
                counts = _confusion_counts(table, codes, posterior, people)
                new = counts + pseudo
                new = new / new.sum(axis=2, keepdims=True)
            else:
                agreed = np.bincount(table.who, weights=posterior[table.row, codes], minlength=people)
                right = (agreed + strength * accuracy) / (opinions + strength)
                new = _one_accuracy(right, count)
            change = max(abs(new - confusion).max(), abs(new_shares - shares).max())
            confusion, shares = new, new_shares
            if change < _PRECISION:
                break
        pseudo = strength * _one_accuracy(right, count)
    assert pseudo is not None
    posterior = _posterior(table, codes, np.where(known[:, None], priors.probabilities(), shares), confusion)
    return _Fit(confusion, shares, posterior, pseudo, posterior.mean(axis=0), priors)


def _one_accuracy(right: Host, count: int) -> Host:
    """[A, C, C]: the same accuracy in all classes, errors spread evenly."""
    wrong = (1.0 - right) / max(1, count - 1)
    return (
        np.where(np.eye(count, dtype=bool), right[:, None, None], wrong[:, None, None])
        if count > 1
        else (np.ones((len(right), 1, 1)))
    )


def _posterior(table: OpinionTable, codes: Host, priors: Host, confusion: Host) -> Host:
    """[n, C]: the class of each row, given all opinions on it."""
    with np.errstate(divide="ignore"):
        logs = np.log(priors)
    np.add.at(logs, table.row, np.log(confusion)[table.who, :, codes])
    logs -= logs.max(axis=1, keepdims=True)
    found = np.exp(logs)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _shares(posterior: Host, known: Host) -> Host:
    """[C]: of the rows of which nothing else is known, with one pseudo-count for each class."""
    counts = posterior[~known].sum(axis=0) + 1.0
    return np.asarray(counts / counts.sum())


def _confusion_counts(table: OpinionTable, codes: Host, posterior: Host, people: int) -> Host:
    """[A, C, C]: expected numbers of opinions by annotator, class and label."""
    count = posterior.shape[1]
    cell, each = table.who * count + codes, posterior[table.row]
    sums = [np.bincount(cell, weights=each[:, y], minlength=people * count) for y in range(count)]
    return np.stack(sums).reshape(count, people, count).transpose(1, 0, 2)


def _class_errors(table: OpinionTable, codes: Host, found: _Fit, known: Host) -> tuple[Host, Host]:
    """[A, C, C] and [A]: standard errors of the confusions and of the accuracies.

    Parameters are logits, of which the matrices are softmax: the information of complete data, less that of the
    missing classes, plus that of the prior. From logits back to probabilities by the slope at matrices that two more
    labels have drawn to the middle (after Agresti and Coull, 1998): near 0 and 1 that at the mode makes errors far too
    small.
    """
    people, count = found.confusion.shape[:2]
    if people * count * count + count <= _MOST_AT_ONCE:
        return _errors_of(list(range(people)), table, codes, found, known)
    parts = [_errors_of([a], table, codes, found, known) for a in range(people)]
    return np.concatenate([each[0] for each in parts]), np.concatenate([each[1] for each in parts])


def _errors_of(people: list[int], table: OpinionTable, codes: Host, found: _Fit, known: Host) -> tuple[Host, Host]:
    """Those of some annotators, as if the others were known."""
    rows, count = found.posterior.shape
    ours = np.isin(table.who, people)
    who = np.searchsorted(people, table.who[ours])
    counts = np.zeros((rows, len(people), count))  # [n, A, C]: opinions by annotator and label
    np.add.at(counts, (table.row[ours], who, codes[ours]), 1.0)
    total = counts.sum(axis=2)  # [n, A]
    width = len(people) * count
    logits = count * width  # of confusions by class, annotator and label; then those of shares, and recalibration
    size = logits + count + count + 1
    information, mean_score = np.zeros((size, size)), np.zeros((rows, size))
    to_probability, slopes = np.zeros((logits, size)), found.priors.slopes()
    free = (~known).astype(float)
    for y in range(count):
        block = slice(y * width, (y + 1) * width)
        weights, each = found.posterior[:, y], found.confusion[people, y]  # [n], [A, C]
        expected = np.concatenate([total @ _rows_of(each, a) for a in range(len(people))], axis=1)  # [n, A C]
        score = counts.reshape(rows, width) - expected
        share_score = free[:, None] * (np.eye(count)[y] - found.shares)  # [n, C]
        whole = np.concatenate([score, share_score, slopes[:, y]], axis=1)
        places = np.r_[block, logits:size]
        mean_score[:, places] += weights[:, None] * whole
        information[np.ix_(places, places)] -= (weights[:, None] * whole).T @ whole
        for a, row in enumerate(each):
            here = slice(y * width + a * count, y * width + (a + 1) * count)
            jacobian = np.diag(row) - np.outer(row, row)
            strength = float(weights @ total[:, a]) + found.pseudo[people[a], y].sum()
            information[here, here] += strength * jacobian
            middle = (strength * row + _MIDDLE / count) / (strength + _MIDDLE)
            to_probability[here, here] = np.diag(middle) - np.outer(middle, middle)
    information += mean_score.T @ mean_score
    last, recalibration = slice(logits, logits + count), slice(logits + count, size)
    information[recalibration, recalibration] += found.priors.information(slopes)
    spread = np.diag(found.shares) - np.outer(found.shares, found.shares)
    information[last, last] += (free.sum() + count) * spread
    covariance = to_probability @ _inverse(information) @ to_probability.T
    variance = np.diagonal(covariance).reshape(count, len(people), count).transpose(1, 0, 2)
    accuracy = []
    for a in range(len(people)):
        places = [y * width + a * count + y for y in range(count)]
        accuracy.append(found.frequencies @ covariance[np.ix_(places, places)] @ found.frequencies)
    return np.sqrt(np.maximum(variance, 0.0)), np.sqrt(np.maximum(accuracy, 0.0))


def _rows_of(each: Host, a: int) -> Host:
    """[A, C]: the row of annotator a, in its place."""
    placed = np.zeros_like(each)
    placed[a] = each[a]
    return placed


def _inverse(information: Host) -> Host:
    """The inverse on the directions in which logits change anything."""
    values, vectors = np.linalg.eigh((information + information.T) / 2.0)
    kept = values > _NULL * values.max()
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def _of_numbers(table: OpinionTable) -> Annotators:
    """Truth of each row, bias and noise of each annotator, by restricted maximum likelihood."""
    people, counts = len(table.names), np.bincount(table.row, minlength=len(table.rows))
    if not (counts > 1).any():
        raise StakesError(
            "the noise of annotators is estimated from rows that have two opinions or more; no row has. "
            "Ask for a second opinion on some."
        )
    values = np.asarray(table.labels, dtype=float)
    centre, unit = float(values.mean()), float(values.std()) or 1.0
    scaled = (values - centre) / unit
    given = np.zeros((len(table.rows), people))  # [n, A]
    np.add.at(given, (table.row, table.who), 1.0)
    problem = _Effects(given, table, scaled)
    means = np.bincount(table.row, weights=scaled) / counts
    within = float(np.sum((scaled - means[table.row]) ** 2) / max(1, len(scaled) - len(counts)))
    start = np.log(np.r_[max(float(means.var()), 1e-3), np.full(people, max(within, 1e-6))])
    bounds = [(-30.0, 10.0)] * (people + 1)
    best = optimize.minimize(problem.criterion, start, method="L-BFGS-B", bounds=bounds).x
    covariance = _inverse(_second_differences(problem.criterion, best))
    level, level_covariance = problem.levels(best)  # [A]: mean of each annotator's labels, over all rows
    to_bias = np.eye(people) - 1.0 / people
    bias, bias_covariance = to_bias @ level, to_bias @ level_covariance @ to_bias.T
    precision = np.exp(-best[1:])  # [A]
    weight = np.bincount(table.row, weights=precision[table.who])
    truth = np.bincount(table.row, weights=precision[table.who] * (scaled - bias[table.who])) / weight
    sd, opinions = np.exp(best[1:] / 2.0), np.bincount(table.who, minlength=people)
    by_name = {
        name: NumberAnnotator(
            name,
            int(opinions[a]),
            float(unit * bias[a]),
            float(unit * np.sqrt(bias_covariance[a, a])),
            float(unit * sd[a]),
            float(unit * sd[a] * np.sqrt(max(covariance[a + 1, a + 1], 0.0)) / 2.0),
        )
        for a, name in enumerate(table.names)
    }
    return Annotators(by_name, table.rows, centre + unit * truth, unit / np.sqrt(weight), (), None)


@dataclass(frozen=True, eq=False)
class _Effects:
    """Opinions of numbers: rows as random effects, annotators with a mean and a noise variance of their own.

    With w_a the precision of an annotator and W the sum over the opinions of a row, the covariance of these is
    D^-1 + t 1 1', its inverse D - c D 1 1' D with c = t / (1 + t W), its determinant (1 + t W) / prod w.
    """

    given: Host
    """[n, A]: how many opinions each annotator gave on each row"""
    table: OpinionTable
    values: Host
    """[m]"""

    def levels(self, log_variances: Host) -> tuple[Host, Host]:
        """[A] and [A, A]: means of annotators by generalised least squares, and their covariance."""
        normal, right, _ = self._normal_equations(log_variances)
        inverse = np.linalg.inv(normal)
        return inverse @ right, inverse

    def _normal_equations(self, log_variances: Host) -> tuple[Host, Host, float]:
        """X' V^-1 X, X' V^-1 y and y' V^-1 y for an indicator of each annotator."""
        truth, precision = np.exp(log_variances[0]), np.exp(-log_variances[1:])
        each = self.given * precision  # [n, A]
        share = truth / (1.0 + truth * each.sum(axis=1))  # [n]
        weighted = precision[self.table.who] * self.values
        by_row = np.bincount(self.table.row, weights=weighted, minlength=len(self.given))
        by_person = np.bincount(self.table.who, weights=weighted, minlength=len(precision))
        normal = np.diag(each.sum(axis=0)) - each.T @ (share[:, None] * each)
        right = by_person - each.T @ (share * by_row)
        return normal, right, float(weighted @ self.values - share @ by_row**2)

    def criterion(self, log_variances: Host) -> float:
        """Minus the log of the restricted likelihood and of the prior, up to a constant."""
        normal, right, square = self._normal_equations(log_variances)
        truth, noise = np.exp(log_variances[0]), log_variances[1:]
        determinant = float(np.log1p(truth * (self.given @ np.exp(-noise))).sum() + self.given.sum(axis=0) @ noise)
        sign, log_normal = np.linalg.slogdet(normal)
        if sign <= 0:
            return 1e10
        left = square - right @ np.linalg.solve(normal, right)
        prior = float(np.sum((noise - noise.mean()) ** 2)) / _LIKE_EACH_OTHER**2
        return float(0.5 * (determinant + log_normal + left + prior))


def _second_differences(function: Any, at: Host) -> Host:
    """The Hessian of a function, by central differences."""
    size, steps = len(at), _DIFFERENCE * np.eye(len(at))
    found = np.zeros((size, size))
    for i in range(size):
        for j in range(i, size):
            corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            total = sum(p * q * function(at + p * steps[i] + q * steps[j]) for p, q in corners)
            found[i, j] = found[j, i] = total / (4.0 * _DIFFERENCE**2)
    return found
