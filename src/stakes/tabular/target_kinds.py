"""Targets that are more than a column of classes: grades that have an order, and several labels of one row.

Both become classes by name, a cost matrix among them, and options of the default model, so that all else is as for any
classes: grades from the lowest to the highest; label sets such as "crack+stain", or "none", of columns of yes and no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stakes.exceptions import StakesError
from stakes.files.read import Source
from stakes.tabular.costs import CostTable
from stakes.tabular.loss_specs import LossSpec
from stakes.tabular.model_specs import ModelSpec

BY_DISTANCE = {"absolute-error": "absolute", "squared-error": "squared"}
"""Losses of numbers that are losses of grades, too, and the distance that each goes by."""
_THERE = {"1": 1, "1.0": 1, "yes": 1, "true": 1, "0": 0, "0.0": 0, "no": 0, "false": 0}


def of_grades(loss: LossSpec, model: ModelSpec, grades: Sequence[str]) -> tuple[LossSpec, ModelSpec]:
    """The loss and the model of classes that have an order.

    Args:
        loss: One about classes, or "absolute-error" or "squared-error", which then go by the distance of grades.
        model: The default model gets the order; any other is left as it is.
        grades: From the lowest to the highest.

    Returns:
        Both.

    Raises:
        StakesError: If grades are fewer than two, or a loss by distance has a weight.
    """
    if loss.name in BY_DISTANCE:
        from stakes.losses import ordinal_costs

        if loss.weight is not None:
            raise StakesError(f"{loss.name} of grades takes no weight: give --cost-matrix, what each mistake costs")
        matrix = ordinal_costs(list(grades), "absolute" if loss.name == "absolute-error" else "squared")
        loss = LossSpec("cost-matrix", cost_matrix=_table(matrix.costs.tolist(), grades))
    if model.name == "default":
        model = replace(model, parameters={**model.parameters, "ordinal": True})
    return loss, model


def labels_in(target: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that "a,b,c" names; none where it is a column itself, or some of them are not there."""
    labels = tuple(name.strip() for name in target.split(","))
    several = len(labels) > 1 and target not in names
    return labels if several and all(name in names for name in labels) else ()


def of_labels(
    loss: LossSpec,
    model: ModelSpec,
    labels: Sequence[str],
    costs: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
) -> tuple[LossSpec, ModelSpec, tuple[str, ...]]:
    """The loss, the model and the classes of rows that may have several labels.

    Args:
        loss: "zero-one": each label that is wrong costs 1; or another loss of classes, which is then about the set of
            labels as a whole.
        model: The default one.
        labels: Their names.
        costs: What it costs to miss a label ("miss") and to see one that is not there ("false-alarm"); None: 1 each.
        weights: What labels count, by name; others count 1.

    Returns:
        All three.

    Raises:
        StakesError: If there is another model, or a weight is of no label.
    """
    from stakes.losses import CostMatrix, label_set_names, multi_label

    if model.name != "default":
        raise StakesError(f"rows with several labels are for the default model; got --model {model.name}")
    names = label_set_names(labels)
    model = replace(model, parameters={**model.parameters, "labels": list(labels)})
    if loss.name != "zero-one" and costs is None:
        return loss, model, names
    weights = weights or {}
    if unknown := [name for name in weights if name not in labels]:
        raise StakesError(f"there is no label {unknown[0]!r} to weigh; there are {', '.join(labels)}")
    given = {"miss": 1.0, "false-alarm": 1.0, **(costs or {})}
    each = CostMatrix([[0.0, given["false-alarm"]], [given["miss"], 0.0]])
    matrix = multi_label(each, labels=list(labels), weights=[weights.get(name, 1.0) for name in labels])
    assert isinstance(matrix, CostMatrix)
    return LossSpec("cost-matrix", cost_matrix=_table(matrix.costs.tolist(), names)), model, names


def _table(costs: Sequence[Sequence[float]], names: Sequence[str]) -> CostTable:
    """By the names of classes, which are the decisions, too."""
    return CostTable({truth: dict(zip(names, row, strict=True)) for truth, row in zip(names, costs, strict=True)})


def with_label_sets(source: Source, labels: Sequence[str], target: str) -> Source:
    """A table in which the columns of labels are one column of label sets.

    Raises:
        StakesError: If a cell is neither yes nor no, or a row has some of its labels and not all.
    """
    from stakes.losses import label_set_names, label_sets

    columns, names = [source.texts(name) for name in labels], label_set_names(labels)
    numbers = {tuple(each): names[place] for place, each in enumerate(label_sets(len(labels)).tolist())}
    cells: list[str | None] = []
    for row, texts in enumerate(zip(*columns, strict=True)):
        filled = [None if text is None or not text.strip() else text.strip().lower() for text in texts]
        if all(text is None for text in filled):
            cells.append(None)
            continue
        for name, text in zip(labels, filled, strict=True):
            if text not in _THERE:
                came = "is empty, and other labels of the row are not" if text is None else f"holds {text!r}"
                raise StakesError(
                    f"{source.path}, {source.place(row)}: a label must be 1 or 0 (yes or no); column {name!r} {came}"
                )
        cells.append(numbers[tuple(_THERE[str(text)] for text in filled)])
    kept = [place for place, name in enumerate(source.names) if name not in labels]
    return replace(
        source,
        names=(*(source.names[place] for place in kept), target),
        cells=(*(source.cells[place] for place in kept), tuple(cells)),
        text=source.text | {target},
    )
