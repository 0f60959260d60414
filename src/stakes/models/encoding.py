"""Columns of any table as numbers that a model takes, and a report of what was done to each; labels, checked.

Sizes: N rows, p columns, q encoded features, n labels, C classes, L labels of which a row may have several.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from stakes._utils.array import on_host
from stakes._utils.tables import (
    Host,
    Table,
    check_names,
    check_same_columns,
    check_table,
    column_at,
    column_names,
    is_gap,
    is_number,
    joined,
    n_columns,
    n_rows,
)
from stakes.exceptions import StakesError
from stakes.losses.multi_label import label_set_names, label_sets

_RARE = 50  # indicators of one column, beyond which the rarer categories share one


class TableEncoder(BaseEstimator):  # type: ignore[misc]
    """A transformer of tables of any columns into numbers that a model takes.

    Numbers: gaps are filled by the median, with an indicator of the gap, then standardised. All else: indicators.
    Text, categories and flags get an indicator for each value (of the 50 most frequent; rarer ones share one); a gap is
    a value of its own; a value that was not there in `fit` has none, or that of the rare ones; a gap in numbers that
    had none in `fit` is filled and not marked. Columns that are constant over several rows or empty are left out. A
    sparse matrix stays as it is. What was done is in `report_`.

    Examples:
        >>> table = [[1.0, "a"], [2.0, "b"], [3.0, "a"]]
        >>> encoder = TableEncoder().fit(table)
        >>> encoder.transform(table)[:, 1:]
        array([[1., 0.],
               [0., 1.],
               [1., 0.]])
        >>> encoder.report_[0]
        'Columns of numbers are standardised: 0.'
    """

    def fit(self, X: Any, y: Any = None, pool: Any = None) -> TableEncoder:  # noqa: N803 (scikit-learn's names)
        """Learn medians, scales and categories.

        Args:
            X: A table [N, p].
            y: Not used.
            pool: Another table of the same columns whose rows count, too; None: none.

        Returns:
            The transformer itself.

        Raises:
            StakesError: If columns differ between the tables.
            TypeError: If a column holds dates, or rows are texts.
        """
        X = check_table("X", X, allow_nan=True)  # noqa: N806
        tables = [X] if pool is None else [X, check_table("pool", pool, allow_nan=True)]
        if len(getattr(X, "shape", ())) != 2:
            raise TypeError(
                "texts need to be turned into columns first, as TfidfVectorizer().fit_transform(texts) does; before a "
                "model, a vectoriser in a Pipeline does it"
            )
        self.n_features_in_ = n_columns(X)
        self.n_samples_seen_ = n_rows(X)
        self.names_ = column_names(X)
        self.sparse_ = hasattr(X, "tocsr")
        self.report_: tuple[str, ...] = ()
        if self.sparse_:
            self.report_ = ("Sparse features are used as they are.",)
            return self
        if pool is not None:
            check_same_columns(X, tables[1], "X", "pool")
        columns = (joined([column_at(table, j) for table in tables]) for j in range(self.n_features_in_))
        kinds = [_describe(values, self._name(j)) for j, values in enumerate(columns)]
        self.encoders_ = [encoder for encoder, _ in kinds]
        self.report_ = tuple(self._sentences([what for _, what in kinds]))
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Encode a table.

        Args:
            X: A table [N, p] with the columns of `fit`.

        Returns:
            [N, q]: the encoded columns, in their order; sparse where sparse features came.

        Raises:
            StakesError: If columns are not those of `fit`.
            TypeError: If a column held numbers in `fit` and holds none now, or one is sparse and the other not.
        """
        check_is_fitted(self)
        X = check_table("X", X, allow_nan=True)  # noqa: N806
        if n_columns(X) != self.n_features_in_:
            raise StakesError(f"X must have the {self.n_features_in_} columns of fit; got {n_columns(X)}")
        check_names("X", column_names(X), self.names_, "those of fit")
        if self.sparse_ or hasattr(X, "tocsr"):
            return self._as_fitted(X)
        parts = [self._encoded(X, j) for j, encode in enumerate(self.encoders_) if encode is not None]
        return np.concatenate([np.zeros((n_rows(X), 0)), *parts], axis=1)

    def _encoded(self, X: Table, position: int) -> Host:  # noqa: N803
        values, encode = column_at(X, position), self.encoders_[position]
        if encode.func is _standardised and not (is_number(values) or values.dtype.kind == "b"):
            raise TypeError(f"column {self._name(position)!r} held numbers in fit; now it holds {values.dtype}")
        return np.asarray(encode(values))

    def _name(self, position: int) -> str:
        return self.names_[position] if self.names_ else str(position)

    def _as_fitted(self, X: Table) -> Any:  # noqa: N803
        if not (self.sparse_ and hasattr(X, "tocsr")):
            raise TypeError(
                "features must be sparse in transform where they were in fit, and dense where they were not"
            )
        return X.tocsr()

    def _sentences(self, done: list[str]) -> list[str]:
        """One sentence for each thing that was done, with the columns it was done to."""
        groups: dict[str, list[str]] = {}
        for position, what in enumerate(done):
            groups.setdefault(what, []).append(self._name(position))
        return [f"{what}: {_listed(columns)}." for what, columns in groups.items()]

    def __sklearn_tags__(self) -> Any:
        """Gaps, text and sparse matrices may come in."""
        tags = BaseEstimator.__sklearn_tags__(self)
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.sparse = True
        return tags


def _describe(values: Host, name: str) -> tuple[Any, str]:
    """How to encode a column, None to leave it out, and what is done, for the report."""
    gaps = is_gap(values)
    if values.dtype.kind in "mM":
        raise TypeError(f"column {name!r} holds dates or durations: turn them into numbers, such as days since a start")
    if gaps.all():
        return None, "Columns without a value are left out"
    if is_number(values):
        return _describe_numbers(values.astype(float), gaps)
    if len(values) > 1 and not gaps.any() and len(set(values.tolist())) == 1:
        return None, "Constant columns are left out"
    encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_RARE, sparse_output=False)
    encode = partial(_indicated, encoder=encoder.fit(_texts(values)))
    return encode, "Columns of categories are one indicator for each value"


def _describe_numbers(values: Host, gaps: Host) -> tuple[Any, str]:
    known = values[~gaps]
    if len(values) == 1:
        return _scaled_by(known, False), "One row tells no scale, so columns of numbers are centred and no more"
    if not gaps.any() and known.min() == known.max():
        return None, "Constant columns are left out"
    done = "Columns of numbers are standardised"
    return _scaled_by(known, bool(gaps.any())), f"{done}, gaps filled by the median and marked" if gaps.any() else done


def _scaled_by(known: Host, marked: bool) -> Any:
    """The encoder of numbers, by the mean and the sd of those that are known."""
    middle = np.median(known)
    scale = float(np.abs(known - middle).max()) or 1.0  # first, so that no square overflows
    small = (known - middle) / scale
    mean, sd = float(small.mean()), float(small.std()) or 1.0
    return partial(_standardised, middle=float(middle), scale=scale, mean=mean, sd=sd, marked=marked)


def _standardised(values: Host, *, middle: float, scale: float, mean: float, sd: float, marked: bool) -> Host:
    """(x - mean) / sd of one column, gaps filled by the median, and an indicator of gaps if there were any."""
    gaps = is_gap(values)
    filled = np.where(gaps, middle, values.astype(float))
    standard = ((filled - middle) / scale - mean) / sd
    return np.stack([standard, gaps.astype(float)] if marked else [standard], axis=1)


def _indicated(values: Host, *, encoder: OneHotEncoder) -> Host:
    """An indicator for each value of one column; values differ by what they print as, gaps are one of them."""
    return np.asarray(encoder.transform(_texts(values)))


def _texts(values: Host) -> Host:
    """[N, 1]: what each value prints as."""
    pairs = zip(values.tolist(), is_gap(values), strict=True)
    return np.asarray(["missing value" if gap else _text(each) for each, gap in pairs], dtype=object)[:, None]


def _text(value: Any) -> str:
    """Numbers in one way: 1 among texts is 1.0 where no text is beside it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return format(float(value), ".17g") if number else str(value)


def _listed(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


class NamedColumns(BaseEstimator):  # type: ignore[misc]
    """A transformer of tables into pandas data frames, for pipelines that choose their columns by name.

    Values stay as they are; gaps are NaN. Needs pandas.

    Examples:
        >>> import pandas
        >>> table = pandas.DataFrame({"age": [41.0, 52.0], "sex": ["f", "m"]})
        >>> NamedColumns().fit(table).transform(table)["sex"].tolist()
        ['f', 'm']
    """

    def fit(self, X: Any, y: Any = None, pool: Any = None) -> NamedColumns:  # noqa: N803 (scikit-learn's names)
        """Learn the names of columns.

        Args:
            X: A table [N, p] whose columns have names.
            y: Not used.
            pool: Not used.

        Returns:
            The transformer itself.

        Raises:
            StakesError: If the columns have no names.
        """
        self.names_ = column_names(check_table("X", X, allow_nan=True))
        if self.names_ is None:
            raise StakesError("columns are chosen by name, and those of the table have none; give a data frame")
        self.n_features_in_ = len(self.names_)
        self.report_: tuple[str, ...] = ("Columns go to the model by name, as they are in the table.",)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The same columns as a data frame.

        Args:
            X: A table [N, p] with the columns of `fit`.

        Returns:
            A pandas data frame of N rows.

        Raises:
            StakesError: If columns are not those of `fit`, or pandas is not installed.
        """
        check_is_fitted(self)
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise StakesError("a pipeline that chooses columns by name needs pandas: pip install pandas") from error
        check_names("X", column_names(X), self.names_, "those of fit")
        return DataFrame({name: column_at(X, place) for place, name in enumerate(self.names_ or ())})

    def __sklearn_tags__(self) -> Any:
        tags = BaseEstimator.__sklearn_tags__(self)
        tags.input_tags.allow_nan = True
        return tags


def as_labels(y: Any, count: int) -> Host:
    """[n]: the labels on the host, none missing."""
    labels = on_host(y if hasattr(y, "shape") else np.asarray(y, dtype=None if _alike(y) else object))
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or len(labels) != count:
        raise StakesError(f"y must hold a label for each of the {count} rows of X; got shape {list(labels.shape)}")
    bad = ~np.isfinite(labels) if labels.dtype.kind == "f" else is_gap(labels)
    if bad.any():
        raise StakesError(f"y must hold no gaps and no infinite numbers; rows {_rows_listed(np.flatnonzero(bad))} do")
    return labels


def check_classes(labels: Host, classes: Sequence[Any] | None) -> Host:
    """[C]: the classes given, each once, with every label among them; those of the labels, sorted, without."""
    if classes is None:
        return np.asarray(sorted(set(labels.tolist()), key=lambda name: (str(type(name)), name)), dtype=labels.dtype)
    names = [classes] if isinstance(classes, str) else list(classes)
    if len(set(names)) != len(names) or not names:
        raise StakesError(f"classes must name each class once; got {names}")
    if bad := [row for row, label in enumerate(labels.tolist()) if label not in names]:
        raise StakesError(
            f"every label must be one of the classes {names}; rows {_rows_listed(bad)} are not, the first is "
            f"{labels.tolist()[bad[0]]!r}"
        )
    return np.asarray(names, dtype=None if _alike(names) else object)


def positions_of(labels: Host, classes: Host) -> Host:
    """[n]: the position of each label among the classes."""
    places = {name: place for place, name in enumerate(classes.tolist())}
    return np.asarray([places[label] for label in labels.tolist()], dtype=np.intp)


def _alike(values: Any) -> bool:
    """Whether all values are of one type, so that NumPy turns none of them into text."""
    return len({type(each) for each in values}) <= 1 or all(
        isinstance(each, int | float | np.number) and not isinstance(each, bool) for each in values
    )


def _rows_listed(rows: Any, most: int = 5) -> str:
    rows = [int(row) for row in rows]
    return ", ".join(map(str, rows[:most])) + (f" and {len(rows) - most} more" if len(rows) > most else "")


def as_label_sets(y: Any, names: Sequence[str]) -> Host:
    """[n]: the names of label sets, of rows of 0 and 1 [n, L] or of such names."""
    known, labels = label_set_names(names), on_host(y if hasattr(y, "shape") else np.asarray(y))
    if labels.ndim == 1 and len(names) > 1:
        return np.asarray(labels, dtype=object)
    if labels.ndim == 1:
        labels = labels[:, None]
    there = labels.astype(float) if labels.dtype.kind in "biuf" else np.full((1, 1), np.nan)
    if labels.ndim != 2 or labels.shape[1] != len(names) or not np.isin(there, (0.0, 1.0)).all():
        raise StakesError(
            f"labels of several kinds must be rows [n, {len(names)}] of 0 and 1, one for each of {', '.join(names)}; "
            f"got shape {list(labels.shape)}"
        )
    powers = 2 ** np.arange(len(names))[::-1]
    assert (label_sets(len(names)) @ powers == np.arange(len(known))).all()
    return np.asarray(known, dtype=object)[(there @ powers).astype(np.intp)]
