"""Rows that come one by one and must be decided at once: buy the label, or let the row go.

A row is worth what its label is expected to save at the rows to come, for which a sample of recent rows stands: a row
stays in it with a probability that falls as exp(-age / memory) (Aggarwal, 2006), so that contexts follow the stream as
it drifts. Two ways to decide:

* a label has a **price**: buy where what `outlook` promises of one label, over all decisions, is more;
* a **number of labels** is to be bought among so many rows: buy where few recent rows are worth more today. With r the
  labels left over the rows left, and m recent rows,

      buy if (rows worth more + U (rows worth as much + 1)) / (m + 1) <= r,       U uniform on (0, 1).

  Where rows are exchangeable, the left side is uniform, too (a conformal p-value), so that labels are bought at the
  rate r whatever the model, the loss and their units; where the stream drifts, r follows.

What is kept does not grow with the stream: recent rows, rows on their way to a label, and the latest labels.

Sizes: m recent rows, n labels, p columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from stakes._utils.arguments import RandomState, as_seed, is_positive
from stakes._utils.array import on_host
from stakes._utils.tables import Host, Table, check_table, n_rows, take_rows
from stakes._utils.text import short
from stakes.acquisition import fallback_scores
from stakes.acquisition.batch_states import obstacle, start_batch
from stakes.acquisition.batches import worth_floor
from stakes.exceptions import StakesError
from stakes.files.frame import Frame
from stakes.losses import AnyLoss
from stakes.losses.domains import Classes
from stakes.losses.multi_label import label_names
from stakes.models import BayesianProcess, DefaultModel
from stakes.models.inspection import accepts_missing
from stakes.models.labelled import with_belief
from stakes.ranking.outlook import promise_of_one
from stakes.ranking.query import Query, at_least_one, make_query
from stakes.ranking.stopping import Amount

__all__ = ["Decision", "Stream"]

_CHANGED = 0.05  # of the recent rows, after which contexts are looked at again
_COMPARED = 200  # recent rows that a row is compared with
_COMPARED_SLOWLY = 50  # the same where labels are on their way, or single labels are worth nothing
_AT_RANDOM = 0.1  # of rows, where labels have a price and no model can tell what they are worth
_CONFIGURATIONS = 64  # of labels on their way


class Decision(NamedTuple):
    """Whether to buy the label of a row.

    Attributes:
        number: Of the row in the stream, from 0: what `Stream.tell` takes.
        buy: Whether to buy.
        worth: What the label is worth: over all decisions where labels have a price, else for one decision as the model
            sees it. None where no model can tell.
        error: The standard error of a worth that is compared with a price, the model being wrong included; else None.
        price: What the worth is compared with: that of a label, or the worth that few recent rows exceed. None
            where no model can tell.
        why: A sentence.
    """

    number: int
    buy: bool
    worth: float | None
    error: float | None
    price: float | None
    why: str


class Stream:
    """Buys labels of rows that come one by one: `offer` a row, and `tell` its label if it was bought.

    Rows are arrays [p], or mappings from columns to values; where the rows of `labelled` are a data frame, mappings or
    its own rows. The model is fitted again as labels come. Labels may come late: rows that wait for theirs count as
    bought, and others are worth what they add to them.

    Args:
        model: An estimator of any kind that `stakes.rank` takes, of which copies are fitted; a function (X, y) that
            returns a fitted model; None for `stakes.default`.
        loss: What a wrong answer costs.
        price: What a label costs, in units of the loss; then `decisions` must be given.
        decisions: How many decisions will be taken with the model.
        labels: How many labels to buy, without a price; then `rows` must be given.
        rows: How many rows are expected. Labels that are left when they are through are bought at once.
        labelled: Rows [n, p] and labels [n] that there are already.
        contexts: Rows [m, p] of the past that stand for the future until others have come.
        first: Labels that are bought at sight, those of `labelled` included, before a model is asked.
        memory: Over how many rows the past is forgotten: the mean age of a recent row.
        max_contexts: The most recent rows that are kept.
        max_labels: The most labels that are kept and fitted to, the latest; then the oldest are forgotten.
        max_pending: The most rows that may wait for a label; until one comes, no other is bought.
        refit_every: After how many labels the model is fitted again.
        target: "label" or "latent", as in `rank`.
        classes: All classes in the order of the loss; those of the labels without.
        random_state: A whole number or a generator.

    Raises:
        StakesError: If an argument is refused, or two of them contradict each other.
        TypeError: If the model cannot be fitted.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import SquaredError, Stream
        >>> rows = np.random.default_rng(0).normal(size=(200, 2))
        >>> stream = Stream(BayesianRidge(), SquaredError(), labels=20, rows=200)
        >>> for row in rows:
        ...     decision = stream.offer(row)
        ...     if decision.buy:
        ...         stream.tell(decision.number, row[0] - 2.0 * row[1])
        >>> stream.n_bought
        20
    """

    def __init__(
        self,
        model: Any,
        loss: AnyLoss,
        *,
        price: float | None = None,
        decisions: float | None = None,
        labels: int | None = None,
        rows: int | None = None,
        labelled: tuple[Any, Any] | None = None,
        contexts: Any = None,
        first: int = 10,
        memory: int = 1000,
        max_contexts: int = 250,
        max_labels: int = 1000,
        max_pending: int = 32,
        refit_every: int = 1,
        target: Literal["label", "latent"] = "label",
        classes: Sequence[Any] | None = None,
        random_state: RandomState = 0,
    ) -> None:
        _check_terms(price, decisions, labels, rows)
        self.loss = loss
        self.price, self.decisions = price, decisions
        self.labels, self.rows = labels, rows
        self.first = at_least_one("first", first)
        self.memory = at_least_one("memory", memory)
        self.max_contexts = min(at_least_one("max_contexts", max_contexts), self.memory)
        self.max_labels = at_least_one("max_labels", max_labels)
        self.max_pending = at_least_one("max_pending", max_pending)
        self.refit_every = at_least_one("refit_every", refit_every)
        self.target: Literal["label", "latent"] = target
        self.classes = None if classes is None else list(classes)
        if isinstance(loss, type) or not hasattr(loss, "domain"):
            raise TypeError(f"loss must be a loss such as SquaredError(); got {loss!r}")
        self._is_class = isinstance(loss.domain, Classes)
        self._recipe = self._checked_model(model)
        self._seed = as_seed(random_state)
        self._random = np.random.default_rng(self._seed)
        self._like: Any = None
        """a table of which rows are like, where it is a data frame"""
        self._recent: list[Any] = []
        self._open: list[bool] = []
        """of each recent row whether its label could have been bought and was not"""
        self._rows: list[Any] = []
        self._labels: list[Any] = []
        self._pending: dict[int, Any] = {}
        self._offered = self._bought = 0
        self._model: Any = None
        self._since_fit = self._since_look = 0
        self._query: Query | None = None
        self._standing: tuple[Host, str, list[Any] | None] | None = None
        if labelled is not None:
            self._begin_with(labelled)
        for row in [] if contexts is None else _rows_of(contexts):
            self._keep(row, open_to_buy=True)

    @property
    def n_offered(self) -> int:
        """How many rows have come."""
        return self._offered

    @property
    def n_bought(self) -> int:
        """How many labels were bought, those that are still to come included."""
        return self._bought

    @property
    def pending(self) -> tuple[int, ...]:
        """Numbers of the rows that wait for a label."""
        return tuple(self._pending)

    @property
    def n_labels(self) -> int:
        """How many labels are kept, which the model is fitted to."""
        return len(self._labels)

    @property
    def model(self) -> Any:
        """The model, fitted to the labels that are kept.

        Raises:
            StakesError: If there are too few labels.
        """
        if self._too_few():
            raise StakesError(f"there is no model yet: {self._too_few()}. Tell the labels of rows that were bought")
        self._fit_if_needed(now=True)
        return self._model

    def offer(self, row: Any, *, price: float | None = None) -> Decision:
        """Decide whether to buy the label of a row.

        Args:
            row: An array [p], a mapping from columns to values, or a row of a data frame.
            price: What this label costs, where that is not the price of all.

        Returns:
            The decision.

        Raises:
            StakesError: If the row is not like those before, or labels have no price.
        """
        if price is not None and (self.price is None or not is_positive(price)):
            raise StakesError(f"price must be a positive number, of a stream that was given one; got {price!r}")
        row = self._checked(row)
        number = self._offered
        decision = self._decide(number, row, self.price if price is None else price)
        self._offered += 1
        self._keep(row, open_to_buy=not decision.buy)
        if decision.buy:
            self._bought += 1
            self._pending[number] = row
            self._standing = None
        return decision

    def tell(self, number: int, label: Any) -> None:
        """The label of a row that was bought.

        Args:
            number: Of the row, as the decision has it.
            label: Its label.

        Raises:
            StakesError: If the row does not wait for a label, or this cannot be one.
        """
        self._refuse_unless_pending(number)
        self._learn(self._pending[number], self._checked_label(label))
        del self._pending[number]
        self._standing = None

    def drop(self, number: int) -> None:
        """No label will come of a row that was bought; it does not count as bought any more.

        Args:
            number: Of the row, as the decision has it.

        Raises:
            StakesError: If the row does not wait for a label.
        """
        self._refuse_unless_pending(number)
        del self._pending[number]
        self._bought -= 1
        self._standing = None

    # what is kept

    def _begin_with(self, labelled: Any) -> None:
        if not isinstance(labelled, tuple | list) or len(labelled) != 2 or n_rows(labelled[0]) != len(labelled[1]):
            raise StakesError("labelled must be a pair (X, y): rows, and a label for each")
        if hasattr(labelled[0], "iloc"):
            self._like = labelled[0].iloc[:0]
        for row, label in zip(_rows_of(labelled[0]), labelled[1], strict=True):
            self._learn(self._checked(row), self._checked_label(label))

    def _learn(self, row: Any, label: Any) -> None:
        self._rows.append(row)
        self._labels.append(label)
        del self._rows[: -self.max_labels], self._labels[: -self.max_labels]
        self._since_fit += 1

    def _keep(self, row: Any, *, open_to_buy: bool) -> None:
        """A row among the recent ones: they are filled first; then it takes the place of any of them."""
        row = self._checked(row)
        if len(self._recent) < self.max_contexts:
            self._recent.append(row)
            self._open.append(open_to_buy)
        elif self._random.random() * self.memory < self.max_contexts:
            place = int(self._random.integers(self.max_contexts))
            self._recent[place], self._open[place] = row, open_to_buy
        else:
            return
        self._since_look += 1

    def _checked(self, row: Any) -> Any:
        """A row as it is kept: a mapping, or an array."""
        if hasattr(row, "to_dict") or isinstance(row, Mapping):
            named = dict(row.to_dict() if hasattr(row, "to_dict") else row)
            known = self._columns()
            if known is not None and set(named) != set(known):
                raise StakesError(f"a row must have the columns {list(known)}; got {list(named)}")
            return self._finite(named)
        values = np.asarray(row)
        before = self._any_row()
        if isinstance(before, dict):
            raise StakesError(f"a row must be a mapping from the columns {list(before)} to values; got {row!r:.100}")
        if values.ndim == 0 or (before is not None and values.shape != before.shape):
            wanted = "[p]" if before is None else str(list(before.shape))
            raise StakesError(f"a row must be an array of shape {wanted}, as all others; got {list(values.shape)}")
        return self._finite(values)

    def _finite(self, row: Any) -> Any:
        """A row, refused where the model could not be asked of it, now or as one of the recent ones later."""
        asked = self._recipe if hasattr(self._recipe, "fit") else self._model
        check_table("a row", self._table([row]), asked is None or accepts_missing(asked), [self._offered], True)
        return row

    def _any_row(self) -> Any:
        return next(iter((*self._rows[:1], *self._recent[:1])), None)

    def _columns(self) -> Sequence[Any] | None:
        if self._like is not None:
            return list(self._like.columns)
        before = self._any_row()
        return list(before) if isinstance(before, dict) else None

    def _checked_label(self, label: Any) -> Any:
        if self._is_class:
            if self.classes is not None and np.ndim(label) == 0 and label not in self.classes:
                raise StakesError(f"a label must be one of the classes {self.classes}; got {label!r}")
            return label
        try:
            value = np.asarray(label, dtype=float)
        except (TypeError, ValueError) as error:
            raise StakesError(f"a label must be a finite number; got {label!r}") from error
        if not np.isfinite(value).all():
            raise StakesError(f"a label must be a finite number; got {label!r}")
        return value if value.ndim else float(value)

    def _refuse_unless_pending(self, number: int) -> None:
        if number not in self._pending:
            waits = f"those that do are {list(self._pending)}" if self._pending else "none does"
            raise StakesError(f"row {number!r} does not wait for a label; {waits}")

    def _table(self, rows: Sequence[Any]) -> Table:
        """Rows as a table of the kind that the model was given first."""
        if not isinstance(rows[0], dict):
            return np.stack(rows)
        names = self._columns() or list(rows[0])
        columns = {name: [row[name] for row in rows] for name in names}
        if self._like is not None:
            return type(self._like)(columns).astype(dict(self._like.dtypes))
        return Frame(tuple(map(str, names)), tuple(map(_column, columns.values())), len(rows))

    # the model

    def _checked_model(self, model: Any) -> Any:
        """An estimator, or a function that gives a fitted model."""
        if model is None:
            return DefaultModel("classes" if self._is_class else "real", self.classes, labels=label_names(self.loss))
        if (hasattr(model, "fit") and hasattr(model, "get_params")) or (callable(model) and not hasattr(model, "fit")):
            return model
        raise TypeError(
            f"a stream fits its model again as labels come: give an estimator with fit and get_params, or a function "
            f"(X, y) that returns a fitted model; got {type(model).__name__}"
        )

    def _fitted(self, rows: Table, labels: Host, others: Table) -> Any:
        """A model fitted to the labels, of which a belief can be had; columns are encoded by `others`, too."""
        if not hasattr(self._recipe, "fit"):
            return self._recipe(rows, labels)
        copy = clone(self._recipe)
        if isinstance(copy, DefaultModel | BayesianProcess):
            return copy.fit(rows, labels, pool=others)
        return with_belief(copy, (rows, labels), random_state=self._seed)[0]

    def _too_few(self) -> str:
        """Why no model can tell what a label is worth; nothing where one can."""
        if len(self._labels) < 2:
            return f"{len(self._labels)} labels have come"
        if self._is_class and np.ndim(self._labels[0]) == 0 and len(set(self._labels)) < 2:
            return f"all {len(self._labels)} labels are of one class"
        return ""

    def _fit_if_needed(self, now: bool = False) -> None:
        if self._model is None or self._since_fit >= (1 if now else self.refit_every):
            rows, others = self._table(self._rows), self._table(self._recent or self._rows)
            self._model = self._fitted(rows, np.asarray(self._labels), others)
            self._since_fit, self._query = 0, None

    def _asked(self, row: Any) -> Query:
        """The query about one row and the recent ones; what the model says of these is computed once in a while."""
        self._fit_if_needed()
        table = self._table([row])
        if self._query is None or self._since_look >= _CHANGED * len(self._recent):
            contexts = self._table(self._recent or self._rows)
            asked: dict[str, Any] = {"target": self.target, "classes": self.classes, "random_state": self._seed}
            query = make_query(self._model, self.loss, table, contexts=contexts, batch=False, max_rows=1, **asked)
            self._query = replace(query, labels=len(self._labels))
            self._since_look, self._standing = 0, None
        return replace(self._query, pool=table)

    # decisions

    def _decide(self, number: int, row: Any, price: float | None) -> Decision:
        if len(self._pending) >= self.max_pending:
            why = f"{len(self._pending)} rows wait for their labels, and no more may (max_pending)."
            return Decision(number, False, None, None, None, why)
        if self.labels is not None and self._bought >= self.labels:
            return Decision(number, False, None, None, None, f"All {self.labels} labels are bought.")
        known = len(self._labels) + len(self._pending)
        if known < self.first:
            return Decision(number, True, None, None, None, f"The first {self.first} labels are bought at sight.")
        if too_few := self._too_few():
            buy = bool(self._random.random() < (_AT_RANDOM if self.labels is None else self._rate()))
            return Decision(number, buy, None, None, None, f"No model can tell: {too_few}. Drawn at random.")
        query = self._asked(row)
        return self._by_rank(number, row, query) if price is None else self._by_price(number, row, query, price)

    def _by_price(self, number: int, row: Any, query: Query, price: float) -> Decision:
        assert self.decisions is not None
        if waiting := list(self._pending.values()):
            query = replace(query, pool=self._table([*waiting, row]), pending=tuple(range(len(waiting))))
        worth, error = promise_of_one(query, len(waiting))
        worth, error = self.decisions * worth, self.decisions * error
        buy = worth > price
        what = Amount(worth, error)
        why = f"Its label is promised to save {what}, {'more' if buy else 'no more'} than its price of {short(price)}."
        return Decision(number, buy, worth, error, price, why)

    def _rate(self) -> float:
        """The labels that are left over the rows that are left, this one included."""
        assert self.labels is not None
        assert self.rows is not None
        return (self.labels - self._bought) / max(1, self.rows - self._offered)

    def _by_rank(self, number: int, row: Any, query: Query) -> Decision:
        assert self.labels is not None
        assert self.rows is not None
        rate = self._rate()
        self._standing = self._standing or self._compared_with(query, rate)
        others, by, rows = self._standing
        if rows is None:
            worth = float(self._worths(query, query.pool)[0])
        else:  # no single label is worth anything: what many would be worth is known relative to each other alone
            scores = _fallbacks(query, self._table([*rows, row]))
            others, worth = scores[:-1], float(scores[-1])
        above, level = int(np.sum(others > worth)), int(np.sum(others == worth))
        share = (above + self._random.random() * (level + 1)) / (len(others) + 1)
        buy = rate >= 1.0 or bool(share <= rate)
        bar = float(np.quantile(others, 1.0 - min(1.0, rate), method="higher")) if len(others) else 0.0
        left = f"{self.labels - self._bought} labels are left for {max(1, self.rows - self._offered)} rows"
        why = f"{above} of {len(others)} recent rows are worth more{by}; {left}."
        return Decision(number, buy, worth, None, bar, why)

    def _compared_with(self, query: Query, rate: float) -> tuple[Host, str, list[Any] | None]:
        """[m]: what recent rows are worth that were not bought, and by what where that is not plain worth.

        Where single labels are worth nothing at the rate at which they are to be bought, the rows themselves.
        """
        places = np.flatnonzero(self._open)
        most = _COMPARED_SLOWLY if self._pending else _COMPARED
        places = places if len(places) <= most else np.sort(self._random.choice(places, most, replace=False))
        if len(places) == 0:
            return np.zeros(0), "", None
        rows = [self._recent[place] for place in places]
        worths = self._worths(query, self._table(rows))
        floor = np.exp(worth_floor(query.loss, query.first(), context_weights=query.weights))
        if self._pending or np.quantile(worths, 1.0 - min(1.0, rate), method="higher") > floor:
            return worths, "", None
        return worths, " by what many such labels would be", rows[:_COMPARED_SLOWLY]

    def _worths(self, query: Query, table: Table) -> Host:
        """[m]: what each label of a table is worth, beside those that are on their way."""
        if not self._pending:
            relative, log_scale = query.scores(query.belief_of(table, range(n_rows(table))))
            return np.asarray(on_host(relative).astype(float) * np.exp(log_scale))
        waiting = len(self._pending)
        rows = self._table([*self._pending.values(), *_rows_of(table)])
        belief = query.belief_of(rows, range(n_rows(rows)), joint=True)
        if obstacle(belief) is not None:
            relative, log_scale = query.scores(belief)
            return np.asarray(on_host(relative).astype(float) * np.exp(log_scale))[waiting:]
        rng = np.random.default_rng(self._seed)
        batch: Any = start_batch(query.loss, belief, query.weights, rng, _CONFIGURATIONS)
        for place in range(waiting):
            batch.add(place)
        gains = np.exp(on_host(batch.log_reductions()).astype(float)) - np.exp(batch.log_joint())
        return np.asarray(np.maximum(gains, 0.0))[waiting:]


def _fallbacks(query: Query, table: Table) -> Host:
    """[m]: what stands in for worth where single labels are worth nothing."""
    belief = query.belief_of(table, range(n_rows(table)))
    return np.asarray(on_host(fallback_scores(query.loss, belief, context_weights=query.weights)[0]).astype(float))


def _check_terms(price: Any, decisions: Any, labels: Any, rows: Any) -> None:
    """Refuse all but a price and decisions, or a number of labels and of rows."""
    if (price is None) == (labels is None):
        raise StakesError(
            "give a price of a label (price=.., decisions=..) or how many labels to buy (labels=.., rows=..), not both"
        )
    if price is not None:
        for name, value in (("price", price), ("decisions", decisions)):
            if not is_positive(value):
                raise StakesError(f"{name} must be a positive number where labels have a price; got {value!r}")
        if rows is not None:
            raise StakesError("rows are for a number of labels to buy; labels with a price need none")
        return
    if decisions is not None:
        raise StakesError("decisions are for labels with a price; a number of labels needs none")
    if rows is None:
        raise StakesError("a number of labels needs rows, how many are expected to come")
    if at_least_one("labels", labels) > at_least_one("rows", rows):
        raise StakesError(f"labels must be no more than rows; got {labels} labels and {rows} rows")


def _rows_of(table: Any) -> list[Any]:
    """The rows of a table, one by one: mappings where columns have names, else arrays."""
    if hasattr(table, "iloc"):
        return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False, name=None)]
    if isinstance(table, Frame):
        columns = [values.tolist() for values in table.arrays]
        return [dict(zip(table.names, row, strict=True)) for row in zip(*columns, strict=True)]
    if isinstance(table, list | tuple):
        return list(table)
    return [on_host(take_rows(table, [place]))[0] for place in range(n_rows(table))]


def _column(values: list[Any]) -> Host:
    """[N]: numbers with NaN for gaps, or texts with None for gaps."""
    try:
        return np.asarray([np.nan if value is None else value for value in values], dtype=float)
    except (TypeError, ValueError):
        return np.asarray([None if value is None else str(value) for value in values], dtype=object)
