"""Forms for losses of classes on a GPU, where products of centred members and what is made of them are one kernel.

`find_form` chooses them for torch tensors on a CUDA device: log loss and Brier loss, weighted or not, cost matrices and
zero-one loss, of up to 128 classes. Without Triton, and for large ensembles on the host but for log loss, which has
loops of its own there, the same sums are made in blocks (`stakes.acquisition.centred`).
Sizes: M contexts, K members, C classes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

from stakes._utils.array import double
from stakes._utils.compute import has_kernel
from stakes.acquisition.centred import BLOCKED, HALF_LIGHTEST, is_large, shares_and_heights, terms_of, within_reach
from stakes.acquisition.forms import ANY, GENERAL, Form, Total, register
from stakes.acquisition.votes import alike, margins
from stakes.beliefs import CategoricalEnsemble, VoteEnsemble
from stakes.exceptions import StakesError
from stakes.losses import BrierLoss, CostMatrix, LogLoss, ZeroOne
from stakes.losses.classes import weight_ratio
from stakes.losses.weights import ClassWeights

Precision = Literal["float16", "bfloat16", "tf32", "float32"]
_BYTES = {"float16": 2, "bfloat16": 2, "tf32": 4, "float32": 4}
_LOSSES = (LogLoss, BrierLoss, CostMatrix, ZeroOne)
_MOST_CLASSES = 128
_FEW = 32  # members, over which what float16 rounds does not average out
_WEIGHTS_APART = 1e4  # of votes: 1 + rbar is then known to three digits at least


def fused_form(precision: Precision = "float16") -> Form:
    """Products in half precision with sums in float32, or in another precision: for `score(..., form=...)`.

    Only the covariance of members is rounded, so that float16 ranks as float64 does; bfloat16 has a wider range and an
    eighth of its accuracy, tf32 the same accuracy as float16 at half the speed, and float32 is nearly exact and slow.
    `find_form` takes float16, or float32 for up to 32 members, over which rounding does not average out; a small
    ensemble it leaves to the general route.
    """
    if precision not in _BYTES:
        raise StakesError(f"precision must be one of {', '.join(_BYTES)}; got {precision!r}")

    def prepare(loss: Any, belief: CategoricalEnsemble, shares: Any) -> Any:
        return _member_sums(loss, belief, shares, precision)

    return Form(
        f"fused kernel over centred members in {precision}",
        GENERAL.prepare,
        GENERAL.numbers,
        GENERAL.context_numbers,
        total=Total(prepare, lambda loss, belief: _held(belief, _BYTES[precision])),
        serves=lambda loss, belief: (
            _is_served(loss, belief) and _on_gpu(belief) and within_reach(loss, belief, HALF_LIGHTEST)
        ),
    )


def _is_served(loss: Any, belief: Any) -> bool:
    """Whether the sums are those of this very loss: a form of the caller's choice may meet any pair."""
    return type(loss) in _LOSSES and type(belief) is CategoricalEnsemble


def _member_sums(loss: Any, belief: CategoricalEnsemble, shares: Any, precision: str) -> Any:
    from stakes.gpu.centred import member_sums

    return member_sums(terms_of(loss, belief, shares), belief.n_classes, belief.member_weights, precision)


def vote_terms(loss: Any, belief: VoteEnsemble, shares: Any) -> tuple[Any, ...]:
    """What the contexts bring to sums over counts: arguments of `stakes.gpu.centred.vote_job`."""
    means = double(margins(belief.contexts, belief.n_classes)) / belief.contexts.shape[1]  # [M, C]
    kind = "square" if isinstance(loss, BrierLoss) else "log"
    weighted = loss.class_weights is not None
    return kind, weighted, belief.contexts, means, *shares_and_heights(loss, means, shares)


def _vote_sums(loss: Any, belief: VoteEnsemble, shares: Any) -> Any:
    from stakes.gpu.centred import vote_sums

    return vote_sums(*vote_terms(loss, belief, shares))


def _vote_costs(loss: Any, belief: VoteEnsemble, shares: Any) -> Any:
    """Costs are real numbers, so that their sums over votes are not counts: as probabilities 0 and 1, in float32."""
    of = _member_sums(loss, belief.as_probabilities(), shares, "float32")
    return lambda block: of(block.as_probabilities())


def _votes(prepare: Any, width: int) -> Form:
    """For votes, of which `width` bytes are held for each member and class."""
    return Form(
        "fused kernel over counts of votes",
        GENERAL.prepare,
        GENERAL.numbers,
        GENERAL.context_numbers,
        total=Total(prepare, lambda loss, belief: _held(belief, width)),
        serves=lambda loss, belief: _on_gpu(belief) and alike(belief) and weight_ratio(loss) <= _WEIGHTS_APART,
    )


def _held(belief: Any, width: int) -> int:
    """Numbers of 8 bytes that a candidate takes: its members, padded, of `width` bytes each."""
    return int(belief.domain.count * (belief.member_weights.shape[0] + 64) * width / 8) + 8


def _on_gpu(belief: Any) -> bool:
    return belief.domain.count <= _MOST_CLASSES and has_kernel(belief.contexts)


def _where_large(form: Form, otherwise: Form | None, most_members: float = math.inf) -> Form:
    """The form for large ensembles of no more members than that."""

    def serves(loss: Any, belief: CategoricalEnsemble) -> bool:
        few = belief.member_weights.shape[0] <= most_members
        return few and is_large(belief) and form.serves(loss, belief)

    return replace(form, serves=serves, otherwise=otherwise)


def _kernel_or(otherwise: Form | None) -> Form:
    """The kernel where there is a GPU."""
    return _where_large(fused_form("float32"), _where_large(fused_form("float16"), otherwise), _FEW)


_FUSED = _kernel_or(BLOCKED)
for _weight in (None, ClassWeights):  # before those on the host, which are registered for any weight
    register(LogLoss, _weight, CategoricalEnsemble, _kernel_or(None))
    register(LogLoss, _weight, VoteEnsemble, _votes(_vote_sums, 3))
register(BrierLoss, ANY, CategoricalEnsemble, _FUSED)  # without weights, after one matrix over members
register(BrierLoss, ANY, VoteEnsemble, _votes(_vote_sums, 3))
for _loss in (CostMatrix, ZeroOne):
    register(_loss, None, CategoricalEnsemble, _FUSED)
    register(_loss, None, VoteEnsemble, _votes(_vote_costs, 12))
