"""Posterior draws of ArviZ, xarray, PyMC and NumPyro as beliefs.

A posterior predictive at the pool and at the contexts, drawn together, is a joint belief: draw k is a member. Give what
`predictions` or `posterior_predictive` hold: an `InferenceData` or `DataTree` with the names of variables, arrays of
xarray in any order of dimensions, or a dict of NumPy arrays with draws first, as NumPyro gives them. Chains and draws
are merged, one chain after the other. xarray is not imported here: pip install stakes[arviz] brings it with ArviZ.
Sizes: N candidates, M contexts, K draws of all chains, C classes.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stakes._utils.text import listed
from stakes.beliefs import CategoricalEnsemble, DrawsBelief, NormalEnsemble
from stakes.beliefs.draws import LogLikelihood
from stakes.exceptions import StakesError
from stakes.losses import REAL, Domain

__all__ = ["categorical_ensemble", "joint_draws", "merged", "normal_ensemble"]

Host = NDArray[Any]
GROUPS = ("predictions", "posterior_predictive", "posterior", "prior_predictive", "prior")
"""Groups in which a variable is looked up, in this order."""
DRAWS = ("chain", "draw", "sample", "__sample__")
"""Names of dimensions that are merged into the draws."""


def normal_ensemble(
    data: Any, *, candidates: Any, contexts: Any, noise: Any, target: str = "label", chains: bool = False
) -> NormalEnsemble:
    """Draws of the mean of labels at the pool and at the contexts, with normal noise: a belief about numbers.

    Args:
        data: An `InferenceData`, `DataTree`, `Dataset` or dict that holds the variables which are given by name; None
            where none is.
        candidates: The mean of the label of each row of the pool: a name, or an array.
        contexts: The mean at each context, under the same draws: a name, or an array.
        noise: The standard deviation of labels about their mean: a name, an array of one for each draw, or a number.
        target: "label" if z is the label that will be realised, noise included; "latent" for the mean behind it.
        chains: Whether NumPy arrays have two first axes, chains and draws, in place of one.

    Returns:
        The belief, which `stakes.score` and `stakes.select` take.

    Raises:
        StakesError: If a variable is not there, has no dimension of draws or several of rows, or draws disagree.

    Examples:
        >>> import numpy as np
        >>> from stakes import SquaredError, score
        >>> from stakes.integrations.arviz import normal_ensemble
        >>> slopes = np.random.default_rng(0).normal(size=500)  # what NumPyro drew
        >>> samples = {"pool": slopes[:, None] * [0.1, 2.0], "later": slopes[:, None] * [1.0]}
        >>> belief = normal_ensemble(samples, candidates="pool", contexts="later", noise=0.5)
        >>> print(score(SquaredError(), belief).round(2))  # of a variance of about 1
        [0.04 0.97]
    """
    if target not in ("label", "latent"):
        raise StakesError(f"target must be 'label' or 'latent'; got {target!r}")
    sides = {"candidates": candidates, "contexts": contexts}
    means = [_of_rows(name, data, each, chains) for name, each in sides.items()]
    number = not isinstance(noise, str) and np.ndim(noise) == 0
    spread = np.asarray(noise, dtype=float) if number else _one_each(data, noise, chains)
    _check_draws(dict(zip(sides, means, strict=True)), None if number else spread.shape[0])
    _check_same_draws(data, sides if number else {**sides, "noise": noise})
    return NormalEnsemble(means[0], spread, means[1], spread if target == "label" else 0.0)


def categorical_ensemble(data: Any, *, candidates: Any, contexts: Any, chains: bool = False) -> CategoricalEnsemble:
    """Draws of class probabilities at the pool and at the contexts: a belief about classes.

    Args:
        data: As for `normal_ensemble`.
        candidates: Probabilities, with a dimension of rows and one of classes, over which they add up to 1: of NumPy
            arrays the last; or without classes, the probability of class 1 of two.
        contexts: The same at the contexts, under the same draws.
        chains: Whether NumPy arrays have two first axes, chains and draws, in place of one.

    Returns:
        The belief.

    Raises:
        StakesError: If a variable is not there, or draws disagree, or rows are no probabilities.

    Examples:
        >>> import numpy as np
        >>> from stakes import ZeroOne, uncertainty
        >>> from stakes.integrations.arviz import categorical_ensemble
        >>> ill = np.array([[0.9], [0.1]])  # two draws, one row
        >>> print(uncertainty(ZeroOne(), categorical_ensemble(None, candidates=ill, contexts=ill)))
        [0.5]
    """
    sides = {"candidates": candidates, "contexts": contexts}
    both = [_probabilities(data, each, chains) for each in sides.values()]
    _check_draws(dict(zip(sides, both, strict=True)), None)
    _check_same_draws(data, sides)
    return CategoricalEnsemble(both[0], both[1])


def joint_draws(
    data: Any,
    *,
    labels: Any,
    targets: Any,
    log_likelihood: LogLikelihood | Any,
    domain: Domain = REAL,
    outcomes: int | None = None,
    chains: bool = False,
) -> DrawsBelief:
    """Draws of labels and targets of any kind, with the likelihood of labels: a `stakes.DrawsBelief`.

    Args:
        data: As for `normal_ensemble`.
        labels: Labels of the pool, drawn with their noise: a name, or an array.
        targets: What is drawn at the contexts, under the same draws.
        log_likelihood: log p(y | x, draw k): a function from labels [n, J] and positions [n] in the pool to [n, J, K].
        domain: Where targets lie: `REAL`, `POSITIVE`, `Classes(3)`.
        outcomes: How many of the draws give the labels that are gone through; None: all.
        chains: Whether NumPy arrays have two first axes, chains and draws, in place of one.

    Returns:
        The belief, with the error that `stakes.sampling_error` states.

    Raises:
        StakesError: If a variable is not there, or shapes disagree.

    Examples:
        >>> import numpy as np
        >>> from scipy.stats import poisson
        >>> from stakes import SquaredError, score
        >>> from stakes.integrations.arviz import joint_draws, merged
        >>> rng = np.random.default_rng(0)
        >>> samples = {"rate": rng.gamma(4.0, 2.0, size=(400, 2))}
        >>> samples["counts"] = rng.poisson(samples["rate"])
        >>> rates = merged(samples, "rate")  # [N, K]
        >>> belief = joint_draws(
        ...     samples,
        ...     labels="counts",
        ...     targets="rate",
        ...     log_likelihood=lambda y, rows: poisson.logpmf(y[:, :, None], rates[rows][:, None, :]),
        ... )
        >>> score(SquaredError(), belief).shape
        (2,)
    """
    both = merged(data, labels, chains=chains), merged(data, targets, chains=chains)
    _check_draws({"labels": both[0], "targets": both[1]}, None)
    _check_same_draws(data, {"labels": labels, "targets": targets})
    return DrawsBelief(*both, log_likelihood, domain, outcomes)


def merged(data: Any, variable: Any, *, chains: bool = False) -> Host:
    """A variable with rows first and the draws of all chains second.

    Args:
        data: Where to look for a variable that is given by name; see `normal_ensemble`.
        variable: A name; an array of xarray with the dimensions `chain` and `draw` (or `sample`) anywhere; or a NumPy
            array with draws first.
        chains: Whether NumPy arrays have two first axes, chains and draws, in place of one.

    Returns:
        [n, K], or [n, K, ..] where there are dimensions beyond that of rows.

    Raises:
        StakesError: If it is not there, or has no dimension of draws or none of rows.

    Examples:
        >>> import numpy as np
        >>> from stakes.integrations.arviz import merged
        >>> merged(None, np.zeros((4, 250, 3)), chains=True).shape  # 4 chains of 250 draws, 3 rows
        (3, 1000)
    """
    values, folded = _draws_first(_found(data, variable), chains)
    if values.ndim < 2:
        name = repr(variable) if isinstance(variable, str) else "an array"
        raise StakesError(f"{name} must have a dimension of rows beside the draws; got {folded}")
    return np.asarray(np.moveaxis(values, 0, 1))


def _of_rows(name: str, data: Any, variable: Any, chains: bool) -> Host:
    """[n, K]: one number for each row and draw."""
    values = merged(data, variable, chains=chains)
    if values.ndim != 2:
        raise StakesError(
            f"{name} must have one dimension of rows beside the draws; got {values.ndim - 1}, of sizes "
            f"{[values.shape[0], *values.shape[2:]]}. Make one of them, as by stack(row=[..]) of xarray."
        )
    return values


def _probabilities(data: Any, variable: Any, chains: bool) -> Host:
    """[n, K, C], with classes last, whichever of the named dimensions they are."""
    values = merged(data, variable, chains=chains)
    if values.ndim == 2:
        return np.stack([1.0 - values, values], axis=-1)
    named = hasattr(_found(data, variable), "dims") and values.ndim == 3
    if named and not np.allclose(values.sum(axis=2), 1.0) and np.allclose(values.sum(axis=0), 1.0):
        return np.swapaxes(values, 0, 2)
    return values


def _one_each(data: Any, variable: Any, chains: bool) -> Host:
    """[K]: one number for each draw."""
    values, folded = _draws_first(_found(data, variable), chains)
    if values.ndim != 1:
        raise StakesError(f"noise must be one number for each draw; got {folded}. Give its standard deviation alone.")
    return values


def _draws_first(values: Any, chains: bool) -> tuple[Host, str]:
    """[K, ..]: draws merged, and the shape that came, in words."""
    names = getattr(values, "dims", None)
    if names is None:
        array = np.asarray(values, dtype=float)
        lead = 2 if chains else 1
        if array.ndim < lead:
            raise StakesError(f"draws must come first, [{'chains, ' * chains}draws, ..]; got shape {list(array.shape)}")
        return array.reshape(-1, *array.shape[lead:]), f"shape {list(array.shape)}"
    drawn = [name for name in DRAWS if name in names]
    shape = ", ".join(f"{name}: {size}" for name, size in values.sizes.items())
    if not drawn:
        raise StakesError(f"an array of draws needs one of the dimensions {listed(DRAWS)}; got ({shape})")
    array = np.asarray(values.transpose(*drawn, ...).values, dtype=float)
    return array.reshape(-1, *array.shape[len(drawn) :]), f"({shape})"


def _found(data: Any, variable: Any) -> Any:
    """The variable of that name, wherever it is; what is no name is the variable itself."""
    if not isinstance(variable, str):
        return variable
    places: list[Any] = [data]
    if hasattr(data, "groups"):  # an InferenceData or a DataTree
        places = [group for name in GROUPS if (group := _group(data, name)) is not None] or places
    for place in places:
        if place is not None and variable in place:
            return place[variable]
    there = sorted({str(name) for place in places if place is not None for name in place})
    raise StakesError(
        f"there is no variable {variable!r}: " + (f"there are {listed(map(repr, there))}" if there else "data has none")
    )


def _group(data: Any, name: str) -> Any:
    children = getattr(data, "children", None)  # of a DataTree
    return getattr(data, name, None) if children is None else children.get(name)


def _check_draws(sides: dict[str, Host], noise: int | None) -> None:
    """Refuse sides with different numbers of draws: they were not drawn together."""
    counts = {name: side.shape[1] for name, side in sides.items()} | ({} if noise is None else {"noise": noise})
    if len(set(counts.values())) > 1:
        got = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise StakesError(
            f"draws must be the same for all, as those of one posterior are; got {got}. A joint belief needs the pool "
            "and the contexts predicted under the same draws."
        )


def _check_same_draws(data: Any, variables: dict[str, Any]) -> None:
    """Refuse draws that are as many, but others, where coordinates tell: thinned otherwise, or in another order."""
    first, known = "", list[tuple[Any, ...]]()
    for name, variable in variables.items():
        here = _draw_names(_found(data, variable))
        if not here:
            continue
        if known and len(known[0]) == len(here[0]):
            if other := [(a, b) for a, b in zip(known, here, strict=True) if a != b]:
                raise StakesError(
                    f"{first} and {name} must hold the same draws in the same order; by their coordinates they do not: "
                    f"one has {other[0][0]} where the other has {other[0][1]}. Predict both under the same draws, or "
                    "drop the coordinates if they are."
                )
        elif not known:
            first, known = name, here


def _draw_names(values: Any) -> list[tuple[Any, ...]]:
    """Of each draw in turn, such as (chain, draw); none where there are no coordinates."""
    drawn = [name for name in DRAWS if name in getattr(values, "dims", ())]
    if not drawn or any(name not in values.indexes for name in drawn):
        return []
    indexes = [values.indexes[name] for name in drawn]
    if len(indexes) == 1 and indexes[0].nlevels > 1:  # stacked: its levels are the dimensions that there were
        levels = sorted(indexes[0].names, key=lambda name: DRAWS.index(name) if name in DRAWS else len(DRAWS))
        return list(zip(*(indexes[0].get_level_values(name) for name in levels), strict=True))
    return list(product(*indexes))
