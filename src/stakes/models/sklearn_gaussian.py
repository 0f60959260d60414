"""Beliefs of scikit-learn's Gaussian processes, of lists of Gaussian models, and of several outputs.

Covariances by scikit-learn's kernels are computed in place where the kernel is known: same numbers, fewer passes over
memory. Sizes: N candidates, M contexts, B rows of any block, n labels so far, p features, d outputs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, Product, Sum, WhiteKernel
from sklearn.multioutput import MultiOutputRegressor
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes._utils.array import namespace, slices
from stakes.beliefs import Belief, GaussianBelief, GaussianMixtureBelief
from stakes.models.base import RowsToBelief, adapts, prepare_belief, register_list
from stakes.models.gp_posterior import KernelPosterior, independent, prepare_gaussian

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
_Value: TypeAlias = Numbers | float
_Evaluate: TypeAlias = Callable[[Any, Any, Any], _Value]

_JITTER = 1e-8  # of k(x, x): an alpha this small is there for the factorisation, not a belief about labels
_DIAGONAL = 64  # rows whose kernel matrix is made for the sake of its diagonal
_ROUNDING = 1e-12  # of k(x, x): what two ways to compute it may differ by


@adapts(GaussianProcessRegressor)
def _process(model: GaussianProcessRegressor, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """The exact joint posterior; several outputs are independent and share the kernel, as the model has it.

    Noise is what the kernel's white parts and `alpha` add to a label. An `alpha` of at most 1e-8 times the mean of
    k(x, x) is jitter, not noise. An `alpha` for each label so far says nothing of labels to come: its mean is taken,
    with a warning.
    """
    posterior = kernel_posterior(**process_state(model))
    prepared = prepare_gaussian(posterior, rows_of(model, contexts), target=target, joint=joint)
    return lambda rows: prepared(rows_of(model, rows))


def process_state(model: GaussianProcessRegressor) -> dict[str, Any]:
    """What a fitted regressor knows of f: the arguments of `kernel_posterior`."""
    check_is_fitted(model, "X_train_")
    labels = model.y_train_[:, 0] if model.y_train_.ndim == 2 and model.y_train_.shape[1] == 1 else model.y_train_
    return {
        "kernel": model.kernel_,
        "noise": _alpha(model),
        "white": True,
        "train": model.X_train_,
        "factor": model.L_,
        "solved": solve_triangular(model.L_, labels, lower=True, check_finite=False),
        "offset": model._y_train_mean,
        "unit": model._y_train_std,
    }


def kernel_posterior(kernel: Any, noise: float, *, white: bool, **solved: Any) -> KernelPosterior:
    """The posterior of a function whose prior is one of scikit-learn's kernels, in NumPy.

    `noise` is the variance of a label that is not in the kernel; `white` says whether the kernel may hold some.
    """
    diagonal = partial(signal_and_noise if white else _signal, kernel, added=noise)
    return KernelPosterior(partial(cross_covariance, kernel), diagonal, **solved)


def _signal(kernel: Any, rows: Any, added: float) -> tuple[Numbers, Numbers]:
    """[B], [B]: k(x, x), and the noise that was added to it, of a kernel without any of its own."""
    return kernel.diag(rows), np.full(len(rows), added)


def rows_of(model: GaussianProcessRegressor, rows: Any) -> Any:
    """The rows as the kernel takes them: numbers in double precision, or any objects."""
    if model.kernel_.requires_vector_input:
        return np.asarray(validate_data(model, rows, reset=False, dtype="numeric"), dtype=np.float64)
    return validate_data(model, rows, reset=False, ensure_2d=False, dtype=None)


def _alpha(model: GaussianProcessRegressor) -> float:
    """The noise variance of a label to come that `alpha` says, in the units of the kernel."""
    alpha = np.asarray(model.alpha, dtype=float)
    if np.ptp(alpha) > 0:
        warnings.warn(
            f"alpha has a noise variance for each of the {alpha.size} labels so far, and none for labels to come: "
            f"their mean, {alpha.mean():.4g}, is taken for those. For other noise, put it into the kernel.",
            UserWarning,
            stacklevel=2,
        )
    jitter = _JITTER * float(np.mean(model.kernel_.diag(model.X_train_)))
    return float(alpha.mean()) if alpha.mean() > jitter else 0.0


def prepare_hypotheses(model: Sequence[Any], contexts: Any, **options: Any) -> RowsToBelief:
    """A list of fitted Gaussian models as one mixture: each is a hypothesis, and all have the same weight."""
    prepared = [prepare_belief(each, contexts, **options) for each in model]

    def belief(rows: Any) -> GaussianMixtureBelief:
        first = _safe_indexing(rows, [0])
        beliefs: list[Any] = [of_rows(rows) for of_rows in prepared]
        for one, found in zip(model, beliefs, strict=True):
            if not isinstance(found, GaussianBelief):
                raise TypeError(
                    f"a list of Gaussian models of one output is a mixture of what each believes; this "
                    f"{type(one).__name__} gives a {type(found).__name__}. Give a list of models of one kind."
                )
        there: list[Any] = [prepare_belief(each, rows, **{**options, "joint": False})(first) for each in model]
        means = namespace(there[0].mean).stack([each.mean for each in there], axis=0)  # [S, N]
        return GaussianMixtureBelief.from_beliefs(beliefs, means)

    return belief


register_list(GaussianProcessRegressor, prepare_hypotheses)


@adapts(MultiOutputRegressor)
def _outputs(model: MultiOutputRegressor, contexts: Any, **options: Any) -> RowsToBelief:
    """Outputs are independent of each other, as the model has them; each regressor must be a Gaussian one."""
    check_is_fitted(model)
    prepared = [prepare_belief(each, contexts, **options) for each in model.estimators_]
    return lambda rows: independent([_gaussian(of_rows(rows), model) for of_rows in prepared])


def _gaussian(belief: Belief, model: MultiOutputRegressor) -> GaussianBelief:
    """The belief about one output; refused where it is not Gaussian."""
    if isinstance(belief, GaussianBelief) and belief.noise_variance is not None:
        return belief
    raise TypeError(
        "MultiOutputRegressor is served where its regressors are Gaussian; a "
        f"{type(model.estimators_[0]).__name__} gives a {type(belief).__name__}. Use GaussianProcess() or "
        "BayesianRidge(), or one belief for each output."
    )


def cross_covariance(kernel: Any, rows: Any, others: Any) -> Numbers:
    """[B, B']: kernel(rows, others), which leaves out all that is a label's own."""
    value = _value(kernel, rows, others)
    return value if isinstance(value, np.ndarray) else np.full((len(rows), len(others)), value)


def signal_and_noise(kernel: Any, rows: Any, added: float = 0.0) -> tuple[Numbers, Numbers]:
    """[B], [B]: k(x, x) as the covariance of two evaluations at the same x, and what they do not share, and `added`.

    Called with two sets of rows, a kernel of scikit-learn leaves out all that is a label's own, wherever it stands in
    sums, products and powers: c (k + white) has the noise c white(x), (k + white)^2 has 2 k white + white^2.
    Less than 1e-12 of k(x, x) is taken for rounding.
    """
    shared, total = _diagonal(kernel, rows) + np.zeros(len(rows)), kernel.diag(rows)
    own = total - shared
    return shared, np.where(own > _ROUNDING * abs(total), own, 0.0) + added


def _value(kernel: Any, rows: Any, others: Any) -> _Value:
    """A fresh array, or a number where that is all there is."""
    evaluate = _KNOWN.get(type(kernel))
    return np.array(kernel(rows, others), dtype=np.float64) if evaluate is None else evaluate(kernel, rows, others)


def _sum(kernel: Sum, rows: Any, others: Any) -> _Value:
    first, second = _value(kernel.k1, rows, others), _value(kernel.k2, rows, others)
    if not isinstance(first, np.ndarray):
        first, second = second, first
    if isinstance(second, np.ndarray) or second != 0.0:  # as that of noise is
        first += second
    return first


def _product(kernel: Product, rows: Any, others: Any) -> _Value:
    first, second = _value(kernel.k1, rows, others), _value(kernel.k2, rows, others)
    if not isinstance(first, np.ndarray):
        first, second = second, first
    if isinstance(second, np.ndarray) or second != 1.0:
        first *= second
    return first


def _dot_product(kernel: DotProduct, rows: Any, others: Any) -> Numbers:
    value = np.asarray(rows @ others.T)
    if kernel.sigma_0 != 0.0:
        value += kernel.sigma_0**2
    return value


def _rbf(kernel: RBF, rows: Any, others: Any) -> Numbers:
    value = cdist(rows / kernel.length_scale, others / kernel.length_scale, "sqeuclidean")
    value *= -0.5
    return np.asarray(np.exp(value, out=value))


def _matern(kernel: Matern, rows: Any, others: Any) -> Numbers:
    if kernel.nu not in _ROOTS:
        return np.asarray(kernel(rows, others))
    distance: Numbers = cdist(rows / kernel.length_scale, others / kernel.length_scale)
    distance *= _ROOTS[kernel.nu]
    decay = np.negative(distance)
    np.exp(decay, out=decay)
    if kernel.nu == 2.5:
        decay *= 1.0 + distance + distance**2 / 3.0
    elif kernel.nu == 1.5:
        distance += 1.0
        decay *= distance
    return np.asarray(decay)


_ROOTS = {0.5: 1.0, 1.5: math.sqrt(3.0), 2.5: math.sqrt(5.0)}  # sqrt(2 nu)
_KNOWN: dict[type, _Evaluate] = {
    ConstantKernel: lambda kernel, rows, others: float(kernel.constant_value),
    WhiteKernel: lambda kernel, rows, others: 0.0,
    Sum: _sum,
    Product: _product,
    DotProduct: _dot_product,
    RBF: _rbf,
    Matern: _matern,
}


def _diagonal(kernel: Any, rows: Any) -> _Value:
    """[B], or a number: k(x, x) of two evaluations at the same x."""
    if type(kernel) is Sum:
        return _diagonal(kernel.k1, rows) + _diagonal(kernel.k2, rows)
    if type(kernel) is Product:
        return _diagonal(kernel.k1, rows) * _diagonal(kernel.k2, rows)
    if type(kernel) is WhiteKernel:
        return 0.0
    if type(kernel) in _KNOWN:  # no noise of its own
        return np.asarray(kernel.diag(rows))
    parts = (rows[part] for part in slices(len(rows), _DIAGONAL))
    return np.concatenate([np.diagonal(kernel(part, part)) for part in parts])
