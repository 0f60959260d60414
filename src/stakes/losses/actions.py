"""A finite set of actions: the statistics are the row of costs, the act is the cheapest action.

Only differences between actions decide what to do, so the row of statistics of a target is counted from its cheapest
action: a constant added to all costs costs no digits. Sizes: A actions, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import device

from stakes._utils.array import Array, asarrays, check_shape, column, constant, namespace, on_host
from stakes._utils.tables import plain_label
from stakes._utils.text import did_you_mean, listed
from stakes.exceptions import StakesError
from stakes.losses.domains import REAL, Classes, Domain, Interval, check_labels, labels_to_indicators, target_axes

_LARGEST = 1e300  # cost, whose sum with another is still a number


class FiniteChoice:
    """The methods that all losses with a finite set of actions share; a loss says what each action costs.

    A class of your own derives from it, or simply has the same methods, with `domain`, `cost_rows` and `__call__`.

    Examples:
        >>> import numpy as np
        >>> from stakes.losses import REAL, FiniteChoice
        >>> class Umbrella(FiniteChoice):  # take it (action 1) for a cost of 1, or get wet by the rain
        ...     domain = REAL
        ...     breakpoints = (0.0,)
        ...     def cost_rows(self, z):
        ...         return np.stack([np.maximum(z, 0.0), np.ones_like(z)], axis=-1)
        ...     def __call__(self, z, prediction):
        ...         return self.cost_rows(np.asarray(z))[..., prediction]
        >>> from stakes import GaussianBelief, uncertainty
        >>> certain = GaussianBelief(mean=[5.0], variance=[0.01], candidate_variance=[1.0], covariance=[[0.0]])
        >>> print(uncertainty(Umbrella(), certain).round(6))  # heavy rain: take it
        [1.]
    """

    weight = None
    breakpoints: tuple[float, ...] = ()
    finite_actions = True
    """Statistics are costs of actions, and the act jumps from one to another as the belief moves."""

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""
        raise NotImplementedError

    def cost_rows(self, z: Array) -> Array:
        """The cost of every action.

        Args:
            z: Targets [...], or indicators [..., C] for classes.

        Returns:
            [..., A].
        """
        raise NotImplementedError

    def log_magnitudes(self, z: Array) -> Array:
        """[..., 1]: 0, nothing is taken out."""
        return namespace(z).zeros_like(z[..., :1] if target_axes(self.domain) else z[..., None])

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., A]: the costs beyond the cheapest action for z."""
        rows = self.cost_rows(z)
        return rows - namespace(z).min(rows, axis=-1, keepdims=True)

    def action(self, moments: Array) -> Array:
        """[..., 1]: the position of the cheapest action, the first of equals."""
        return namespace(moments).argmin(moments, axis=-1, keepdims=True)

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: the expected cost of `action` less that of the cheapest."""
        return column(moments, action) - namespace(moments).min(moments, axis=-1)

    def pointwise(self, z: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: the cost of `action` for z."""
        return column(self.cost_rows(z), action)

    def prediction(self, action: Array, reference: Array | None = None) -> Array:
        """[...]: the position of the action."""
        return action[..., 0]


@dataclass(frozen=True, eq=False)
class CostMatrix(FiniteChoice):
    """`costs[z, a]`: what action `a` costs when the class is `z` (rows: classes; columns: actions).

    The Bayes act is the column with the smallest expected cost, the objective the value of information. Costs may be
    negative (gains); there need not be as many actions as classes.

    A matrix with names is matched to the classes of a model by name, in whatever order both are: `rank`, `outlook`,
    `audit` and `simulate` do so. What takes a belief (`score`, `select`) counts classes by position, in the order of
    `classes`: ask for a belief in that order, by `belief_of(model, .., classes=loss.classes)`.

    Args:
        costs: The matrix [C, A]; a data frame with the classes in its index and the actions in its columns; or a dict
            {class: {action: cost}}, in which an action that is called as its class costs 0 where it is left out.
        classes: The names of the rows; those of a data frame or a dict. None: rows are in the order of the model's
            classes.
        actions: The names of the columns; those of a data frame or a dict.

    Raises:
        StakesError: If it is not a matrix of finite numbers with a row and a column at least, if two of them differ by
            more than the largest number, or names are given twice, or not for each row or column.

    Examples:
        >>> from stakes import CostMatrix
        >>> loss = CostMatrix([[0.0, 1.0], [5.0, 0.0]])  # missing class 1 costs 5, a false alarm 1
        >>> print(loss(1, 0), loss([0, 1], [1, 1]))
        5.0 [1. 0.]
        >>> CostMatrix({"ill": {"well": 20}, "well": {"ill": 1}}).costs  # the right answer costs 0
        array([[ 0., 20.],
               [ 1.,  0.]])
        >>> CostMatrix({"ill": {"treat": 1, "wait": 20}, "well": {"treat": 1, "wait": 0}}).classes
        ('ill', 'well')
    """

    costs: Any
    classes: Sequence[Any] | None = None
    actions: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        numbers, classes, actions = _named_parts(self.costs)
        (given,) = asarrays(costs=numbers)
        costs = np.array(on_host(given), dtype=float)  # a copy of our own
        check_shape("costs", costs, ("C", "A"))
        for name, here, count in (("classes", classes, costs.shape[0]), ("actions", actions, costs.shape[1])):
            given_names = getattr(self, name)
            if here is not None and given_names is not None:
                raise StakesError(f"costs have names already; leave {name} out, or give costs without names")
            object.__setattr__(self, name, distinct_names(name, here if given_names is None else given_names, count))
        _refuse_slips(self.classes, self.actions)
        if 0 in costs.shape:
            raise StakesError(f"costs must have a row for each class and a column for each action; got {costs.shape}")
        apart = float(np.max(costs / 4.0) - np.min(costs / 4.0))
        if apart > np.finfo(float).max / 4.0:
            raise StakesError(
                f"costs must differ by less than {np.finfo(float).max:.3g}, the largest number; got costs from "
                f"{np.min(costs):.3g} to {np.max(costs):.3g}. Count them in a larger unit."
            )
        object.__setattr__(self, "costs", costs)

    @property
    def domain(self) -> Classes:
        """One class for each row."""
        return Classes(self.costs.shape[0])

    def cost_rows(self, z: Array) -> Array:
        """[..., A]: costs[z]."""
        return namespace(z).matmul(z, constant(self.costs, z))

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: costs[z, prediction], for a label and the position of an action."""
        z, prediction = asarrays(z=z, prediction=prediction)
        n_classes, n_actions = self.costs.shape
        check_labels("the prediction", prediction, n_actions)
        z, prediction = namespace(z).broadcast_arrays(z, prediction)
        return self.pointwise(labels_to_indicators(z, n_classes), prediction[..., None])


def _named_parts(costs: Any) -> tuple[Any, list[Any] | None, list[Any] | None]:
    """The numbers of a matrix, and the names of its rows and columns; None for a matrix without."""
    if hasattr(costs, "iloc") and hasattr(costs, "columns"):
        return costs.to_numpy(), list(costs.index), list(costs.columns)
    if not isinstance(costs, Mapping):
        return costs, None, None
    if not costs or not all(isinstance(row, Mapping) and row for row in costs.values()):
        raise StakesError(f"costs by name must be {{class: {{action: cost}}}}; got {costs!r:.200}")
    named = dict.fromkeys(action for row in costs.values() for action in row)
    whole = all(len(row) == len(named) for row in costs.values())
    actions = list(named) if whole else [*(n for n in costs if n in named), *(n for n in named if n not in costs)]
    rows = {name: {name: 0.0, **row} if name in actions else row for name, row in costs.items()}
    for name, row in rows.items():
        if lacking := [action for action in actions if action not in row]:
            raise StakesError(
                f"costs of {name!r} lack the answers {listed(map(repr, lacking))}: give a cost for each, 0 included. "
                "Only the right answer may be left out; it costs 0 then."
            )
    return [[row[action] for action in actions] for row in rows.values()], list(costs), actions


def _refuse_slips(classes: Sequence[Any] | None, actions: Sequence[Any] | None) -> None:
    """Refuse an action that is called nearly as a class that has no column: it would be taken for another decision."""
    lacking = [str(name) for name in classes or () if name not in (actions or ())]
    some_match = len(lacking) < len(classes or ())
    for action in actions or ():
        if classes is None or action in classes:
            continue
        same = [name for name in lacking if name.strip().casefold() == str(action).strip().casefold()]
        if same or (some_match and did_you_mean(str(action), lacking)):
            raise StakesError(
                f"costs have a column {action!r}, and the classes are {listed(map(repr, classes))}."
                f"{did_you_mean(str(action), same or lacking)} A decision that is no class needs a name less alike."
            )


def distinct_names(what: str, names: Any, count: int) -> tuple[Any, ...] | None:
    """Names as Python has them, each once and as many as there are rows or columns; None stays None."""
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"{what} must be a list of names; got the text {names!r}")
    plain = tuple(plain_label(name) for name in names)
    if len(set(plain)) != len(plain) or len(plain) != count:
        raise StakesError(f"{what} must be {count} different names, one for each; got {list(plain)!r:.200}")
    return plain


@dataclass(frozen=True)
class ZeroOne(FiniteChoice):
    """l(z, a) = 1 if a != z else 0: the error rate. The act is the most probable class, of however many there are.

    Examples:
        >>> from stakes import ZeroOne
        >>> print(ZeroOne()([0, 1, 2], [0, 2, 2]))
        [0. 1. 0.]
    """

    @property
    def domain(self) -> Classes:
        """Any number of classes."""
        return Classes()

    def cost_rows(self, z: Array) -> Array:
        """[..., C]: 1 - e_z."""
        return 1.0 - z

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: whether the predicted label differs from z."""
        z, prediction = asarrays(z=z, prediction=prediction)
        check_labels("the target", z, None)
        check_labels("the prediction", prediction, None)
        return namespace(z).astype(z != prediction, z.dtype)


@dataclass(frozen=True)
class ThresholdDecision(FiniteChoice):
    """Wait (action 0) or act (action 1) on a real target: acting is right when z > threshold.

    l(z, wait) = `miss` if z > threshold else 0; l(z, act) = `false_alarm` if z <= threshold else 0. So act once
    P(z > threshold) exceeds false_alarm / (miss + false_alarm).

    Args:
        threshold: The target above which acting is right.
        miss: What waiting costs above the threshold, positive.
        false_alarm: What acting costs at or below the threshold, positive.

    Raises:
        StakesError: If a number is not finite, or a cost not positive.

    Examples:
        >>> from stakes import ThresholdDecision
        >>> loss = ThresholdDecision(threshold=2.0, miss=5.0)
        >>> print(loss(3.0, 0), loss(3.0, 1), loss(1.0, 1))  # a miss, rightly acted, a false alarm
        5.0 0.0 1.0
    """

    threshold: float
    miss: float = 1.0
    false_alarm: float = 1.0
    breakpoints: tuple[float, ...] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("threshold", "miss", "false_alarm"):
            value = float(getattr(self, name))
            object.__setattr__(self, name, value)
            if not math.isfinite(value) or (name != "threshold" and not 0 < value <= _LARGEST):
                cost = f"a positive cost, at most {_LARGEST:g}: an error that costs nothing, or all, decides all"
                wanted = "finite" if name == "threshold" else cost
                raise StakesError(f"{name} must be {wanted}; got {value!r}")
        object.__setattr__(self, "breakpoints", (self.threshold,))

    @property
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    def cost_rows(self, z: Array) -> Array:
        """[..., 2]: of waiting and of acting."""
        xp = namespace(z)
        above = xp.astype(z > self.threshold, z.dtype)
        return xp.stack([self.miss * above, self.false_alarm * (1.0 - above)], axis=-1)

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: the cost of waiting (0) or acting (1) when the target is z."""
        return _cost_of_position(self, z, prediction, 2)


@dataclass(frozen=True)
class FiniteActions(FiniteChoice):
    """`costs(z)` [..., A]: what each of A actions costs when the real target is z.

    How much to order, which of three doses, sell or hold. Costs may be negative (gains).

    Args:
        costs: A function from targets of any shape [...] to costs [..., A].
        breakpoints: Every target at which a cost jumps or kinks.

    Raises:
        TypeError: If `costs` is not a function.
        StakesError: If a breakpoint is not finite.

    Examples:
        >>> import numpy as np
        >>> from stakes import FiniteActions
        >>> stock = np.array([0.0, 10.0, 20.0])  # order none, ten or twenty
        >>> def costs(z):  # 1 for each too many, 3 for each missing
        ...     short = z[..., None] - stock
        ...     return np.maximum(-short, 3.0 * short)
        >>> loss = FiniteActions(costs, breakpoints=(0.0, 10.0, 20.0))
        >>> print(loss(12.0, 1), loss(12.0, 2))
        6.0 8.0
    """

    costs: Callable[[Array], Array]
    breakpoints: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.costs) or isinstance(self.costs, type):
            raise TypeError(
                f"costs must be a function from targets [...] to costs [..., A]; got {self.costs!r}. For classes, "
                "CostMatrix takes an array."
            )
        object.__setattr__(self, "breakpoints", tuple(sorted(float(point) for point in self.breakpoints)))
        if not all(map(math.isfinite, self.breakpoints)):
            raise StakesError(f"breakpoints must be finite targets; got {self.breakpoints}")

    @property
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    def cost_rows(self, z: Array) -> Array:
        """[..., A]: costs(z), checked."""
        xp = namespace(z)
        rows = xp.asarray(self.costs(z), device=device(z))
        if rows.ndim != z.ndim + 1 or rows.shape[:-1] != z.shape or rows.shape[-1] == 0:
            raise StakesError(
                f"costs must turn targets of shape {list(z.shape)} into costs {[*z.shape, 'A']}, one for each action "
                f"on a last axis; got {list(rows.shape)}"
            )
        return xp.astype(rows, z.dtype)

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: costs(z)[prediction], for a target and the position of an action."""
        return _cost_of_position(self, z, prediction, None)


def _cost_of_position(loss: FiniteChoice, z: Any, prediction: Any, n_actions: int | None) -> Array:
    """[...]: the cost of an action given by its position, both checked."""
    z, prediction = asarrays(z=z, prediction=prediction)
    assert isinstance(loss.domain, Interval)
    loss.domain.check("the target", z)
    z, prediction = namespace(z).broadcast_arrays(z, prediction)
    rows = loss.cost_rows(z)
    check_labels("the prediction", prediction, n_actions or rows.shape[-1])
    return column(rows, prediction[..., None])
