"""Hugging Face `Dataset` in and out: a pool to rank, a table for a campaign, and rows with their labels back.

The extra `stakes[datasets]` brings the package. Columns of `ClassLabel` are read by their names, and a row is taken to
have no label where it is None or -1, as in the test splits of many data sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

try:
    import datasets
except ImportError as error:
    raise ImportError("this needs the package datasets: pip install 'stakes[datasets]'") from error

from stakes._utils.arguments import as_texts_of
from stakes._utils.tables import Host
from stakes._utils.text import counted, listed
from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from stakes.ranking import Ranking

__all__ = ["DatasetRows", "as_table", "ranked_rows", "with_labels"]


@dataclass(frozen=True)
class DatasetRows:
    """The rows of a `Dataset` as a pool for `stakes.rank` and `stakes.outlook`: read in parts, never whole.

    Attributes:
        dataset: The rows, as they lie on the disk.
        columns: The features that the model takes, in its order; None for all.

    Raises:
        StakesError: If it is no `Dataset`, or a column is not there or holds no numbers, texts or flags.

    Examples:
        >>> import numpy as np
        >>> from datasets import Dataset
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import SquaredError, rank
        >>> from stakes.integrations.datasets import DatasetRows
        >>> x = np.linspace(-1.0, 1.0, 12)
        >>> rows = DatasetRows(Dataset.from_dict({"x": x, "note": ["none"] * 12}), ["x"])
        >>> model = BayesianRidge().fit(rows.take(np.arange(4, 8)), x[4:8] ** 2)
        >>> sorted(rank(model, SquaredError(), rows, n=2).indices)
        [0, 11]
    """

    dataset: Any
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        _selected(self.dataset, self.columns)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.dataset)

    def chunks(self, size: int) -> Iterator[tuple[int, Any]]:
        """The rows in parts.

        Args:
            size: Rows in each part, at most.

        Yields:
            The position of the first row of a part, and the part as a data frame.
        """
        for start in range(0, self.n_rows, size):
            yield start, self._frame(range(start, min(start + size, self.n_rows)))

    def take(self, rows: Host) -> Any:
        """Some rows, in their order, as a data frame.

        Args:
            rows: Positions.

        Returns:
            The data frame.
        """
        return self._frame([int(row) for row in rows])

    def _frame(self, rows: Sequence[int]) -> Any:
        return _named(_selected(self.dataset, self.columns).select(rows))


def as_table(dataset: Any, columns: Sequence[str] | None = None) -> Any:
    """A `Dataset` as a data frame, such as `Campaign.create` takes.

    Args:
        dataset: The rows.
        columns: Which columns, in their order; None for all.

    Returns:
        A data frame of pandas, classes by their names, None where a row has no label.

    Raises:
        StakesError: If it is no `Dataset`, or a column is not there or holds no numbers, texts or flags.

    Examples:
        >>> from datasets import ClassLabel, Dataset, Features, Value
        >>> from stakes import Campaign
        >>> from stakes.integrations.datasets import as_table, with_labels
        >>> features = Features({"x": Value("float64"), "kind": ClassLabel(names=["cat", "dog"])})
        >>> pets = Dataset.from_dict({"x": [1.0, 2.0, 3.0, 4.0], "kind": [0, 1, -1, -1]}, features=features)
        >>> with Campaign.create(None, as_table(pets), "kind", "zero-one") as campaign:
        ...     recorded = campaign.tell("2", "dog")  # rows are named by their positions
        ...     labelled = with_labels(pets, campaign)
        >>> labelled["kind"][:]
        [0, 1, 1, -1]
    """
    return _named(_selected(dataset, columns))


def with_labels(dataset: Any, campaign: Campaign, *, status: str | None = None) -> Any:
    """The `Dataset` that a campaign was made from, with the labels that the campaign has by now.

    Args:
        dataset: The rows, in the order in which `as_table` gave them.
        campaign: The campaign that was made from them.
        status: The name of a new column for where each row stands ("labelled", "open", ...); None for no such column.

    Returns:
        A new `Dataset`; rows without a label are as they were.

    Raises:
        StakesError: If the rows are not those of the campaign, it has a class that the column does not have, or the
            name of the new column is taken.
    """
    target, ids, states = campaign.brief.target, campaign.journal.ids(), campaign.journal.states()
    _selected(dataset, [target])
    if len(dataset) != len(ids):
        raise StakesError(
            f"this is not the data set of the campaign: it has {counted(len(dataset), 'row')}, and the campaign "
            f"{len(ids):,}"
        )
    if status is not None and status in dataset.column_names:
        raise StakesError(f"the data set has a column {status!r} already; give another name")
    feature, values = dataset.features[target], dataset.with_format(None)[target][:]
    labels = [states[row].label for row in ids]
    new = [value if label is None else _as_value(label, feature) for value, label in zip(values, labels, strict=True)]
    rest = [name for name in dataset.column_names if name != target]
    made = dataset.select_columns(rest).add_column(target, new, feature=feature).select_columns(dataset.column_names)
    return made if status is None else made.add_column(status, [states[row].status for row in ids])


def ranked_rows(dataset: Any, ranking: Ranking) -> Any:
    """The rows of a ranking as a `Dataset`, best first, with what they are ranked by and why.

    Args:
        dataset: The rows that were ranked.
        ranking: What `rank` returned of them.

    Returns:
        A new `Dataset` with the further columns `stakes_score` and `stakes_why`.

    Raises:
        StakesError: If the ranking has rows that the data set has not.

    Examples:
        >>> from datasets import Dataset
        >>> from stakes import cold_start
        >>> from stakes.integrations.datasets import as_table, ranked_rows
        >>> rows = Dataset.from_dict({"x": [0.0, 0.1, 5.0]})
        >>> chosen = ranked_rows(rows, cold_start(as_table(rows), n=2))
        >>> chosen.column_names, len(chosen)
        (['x', 'stakes_score', 'stakes_why'], 2)
    """
    _selected(dataset, [])
    if ranking.indices and max(ranking.indices) >= len(dataset):
        raise StakesError(f"the ranking has row {max(ranking.indices)}, and the data set {len(dataset)} rows")
    chosen = dataset.select(list(ranking.indices))
    chosen = chosen.add_column("stakes_score", [float(score) for score in ranking.scores])
    return chosen.add_column("stakes_why", [str(reason) for reason in ranking.reasons])


def _selected(dataset: Any, columns: Sequence[str] | None) -> Any:
    """Some columns of what is a `Dataset`, each of which a model can read."""
    if isinstance(dataset, datasets.DatasetDict):
        raise StakesError(
            f"a Dataset is wanted; this has the splits {listed(dataset)}: give one, such as dataset['train']"
        )
    if not isinstance(dataset, datasets.Dataset):
        raise StakesError(
            f"a Dataset of Hugging Face is wanted; got {type(dataset).__name__}"
            + (": load it without streaming=True" if isinstance(dataset, datasets.IterableDataset) else "")
        )
    wanted = dataset.column_names if columns is None else list(as_texts_of("columns", columns))
    if unknown := [name for name in wanted if name not in dataset.column_names]:
        raise StakesError(f"there is no column {unknown[0]!r}; there are {listed(dataset.column_names)}")
    kinds = (datasets.Value, datasets.ClassLabel)
    if others := [name for name in wanted if not isinstance(dataset.features[name], kinds)]:
        raise StakesError(
            f"column {others[0]!r} holds {type(dataset.features[others[0]]).__name__}, and a table has numbers, texts "
            "and flags: name the columns to use (columns=), or make numbers of it first, such as an embedding"
        )
    return dataset.select_columns(wanted) if wanted else dataset


def _named(dataset: Any) -> Any:
    """A data frame with classes by their names, None where there is none."""
    frame = dataset.with_format(None).to_pandas()
    for name, feature in dataset.features.items():
        if isinstance(feature, datasets.ClassLabel):
            known = [None if value is None or value != value or value < 0 else int(value) for value in frame[name]]
            frame[name] = [None if value is None else feature.int2str(value) for value in known]
    return frame


def _as_value(label: str, feature: Any) -> Any:
    """A label of a campaign as the data set keeps it."""
    if isinstance(feature, datasets.ClassLabel):
        if label not in feature.names:
            raise StakesError(f"the campaign has the class {label!r}, and the column has {listed(feature.names)}")
        return feature.str2int(label)
    if feature.dtype.startswith(("int", "uint")):
        return int(float(label))
    return float(label) if feature.dtype.startswith("float") else label
