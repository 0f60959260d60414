"""Scores of tensors from curves, summed over contexts as they are looked up: nothing of all pairs is written.

Sizes: n candidates of a block, M contexts, R coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from array_api_compat import is_torch_array

from stakes._array import Array, double, log_of, namespace, slices
from stakes._jit import has_kernel
from stakes.acquisition.curves import Curves
from stakes.acquisition.forms import Form, Total
from stakes.acquisition.reduction import check_finite
from stakes.acquisition.scores import SHARE_RANGE, check_sign, log_worth
from stakes.beliefs.switching import has_switches

CurvesOf: TypeAlias = Callable[[Any, Any], tuple[Curves, Array]]
"""A loss and a belief to the curves of its contexts, and the log of the scale [M] that was taken out of each."""

_PAIRS = 2**20  # of candidates and contexts that are written at a time, where they must be


def with_totals(form: Form, curves_of: CurvesOf) -> Form:
    """The form, and for tensors of torch one that sums over contexts by curves, on a GPU in one kernel."""

    def prepare(loss: Any, belief: Any, shares: Array) -> Callable[[Any], Array]:
        curves, log_scale = curves_of(loss, belief)
        return _log_worths(curves, double(log_scale) + log_of(shares))

    return replace(form, total=Total(prepare, _numbers, in_logs=True), serves=_serves, otherwise=form)


def _serves(loss: Any, belief: Any) -> bool:
    return is_torch_array(belief.like) and not has_switches(loss)


def _numbers(loss: Any, belief: Any) -> int:  # noqa: ARG001 (whatever the loss)
    """Sums alone in the kernel, else a few numbers for each context."""
    return 4 if has_kernel(belief.covariance) else 10 * int(belief.n_contexts)


def _log_worths(curves: Curves, log_share: Array) -> Callable[[Any], Array]:
    """A block to [n]: the log of the sum over contexts, as `log_worth` has it."""
    xp, like = namespace(log_share), curves.coefficients
    top, counts = float(xp.max(log_share)), log_share > -math.inf
    if float(xp.min(xp.where(counts, log_share, top + xp.zeros_like(log_share)))) < top - SHARE_RANGE:
        return lambda block: _by_logarithms(curves, log_share, block)
    weighted = replace(curves, coefficients=like * xp.astype(xp.exp(log_share - top), like.dtype))

    def log_worths(block: Any) -> Array:
        totals = check_finite(weighted.totals(block))
        check_sign(totals)
        return log_of(totals) + top

    return log_worths


def _by_logarithms(curves: Curves, log_share: Array, block: Any) -> Array:
    """[n]: where shares are too far apart for one sum; some candidates at a time, as all pairs are written."""
    parts = (block.take(part, slice(None)) for part in slices(block.n_candidates, max(1, _PAIRS // block.n_contexts)))
    return namespace(log_share).concat([log_worth(double(curves.reductions(each)[0]), log_share) for each in parts])
