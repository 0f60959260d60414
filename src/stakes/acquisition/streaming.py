"""The best of more candidates than a device has room for: they come from the host in blocks and are forgotten.

Sizes: N candidates, n of a block, k candidates asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from array_api_compat import device, is_array_api_obj, is_numpy_array, is_torch_array

from stakes._array import Array, constant, detached, filled, namespace, on_accelerator, slices
from stakes.acquisition.bounds import Best, check_count, largest
from stakes.acquisition.forms import Form
from stakes.acquisition.reduction import unscaled
from stakes.acquisition.scores import checked_costs, chosen_form, log_scorer
from stakes.beliefs import CategoricalEnsemble, VoteEnsemble
from stakes.losses import AnyLoss

_BLOCK = 2**29  # bytes of candidates that are on their way at once


def best_streamed(
    loss: AnyLoss,
    belief: CategoricalEnsemble | VoteEnsemble,
    candidates: Any,
    count: int = 1,
    context_weights: Any = None,
    costs: Any = None,
    *,
    form: Form | None = None,
    block: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Best:
    """The `count` best of `candidates` in host memory, for the contexts of `belief`, wherever that is.

    `candidates` are what the belief would hold, [N, K, C] probabilities or [N, K] votes: a NumPy array (a memory map,
    too) or a tensor, best in the precision in which they are to travel. Those that the belief holds itself are not
    looked at. To a GPU they are copied through pinned memory, `block` rows at a time (None: 512 MB), while the block
    before is scored; the best are kept there. `progress(what, share)` is called after each block.
    """
    check_count(count)
    _check(belief, candidates)
    candidates, xp, place = detached(candidates), namespace(belief.like), device(belief.like)
    total = candidates.shape[0]
    if costs is not None and (shape := np.shape(costs)) != (total,):
        raise ValueError(f"costs must have one number for each of the {total} candidates; got {list(shape)}")
    step = _rows(candidates) if block is None else _checked(block)
    positions, scores, start, scored = xp.arange(0, device=place), filled(0, 0.0, belief.like), 0, None
    with closing(_blocks(candidates, belief, step)) as arriving:
        for rows in arriving:
            part = replace(belief, candidates=rows)
            here = slice(start, start + part.n_candidates)
            scored = scored or log_scorer(chosen_form(form, loss, part), loss, part, context_weights)
            found = scored(part)
            if costs is not None:
                found = found - xp.log(checked_costs(_beside(costs[here], belief.like), part))
            first = xp.argsort(-found, stable=True)[:count]
            positions = xp.concat([positions, start + first])
            positions, scores = largest(positions, xp.concat([scores, xp.take(found, first)]), count)
            start = here.stop
            if progress is not None:
                progress("scoring candidates", start / total)
    top = float(scores[0]) if float(scores[0]) > -math.inf else 0.0
    return Best(positions, unscaled(xp.exp(scores - top), top, belief), total)


def _blocks(candidates: Any, belief: Any, step: int) -> Generator[Array]:
    """Blocks of candidates beside the belief, one after the other."""
    if is_torch_array(belief.contexts) and on_accelerator(belief.contexts):
        from stakes.acquisition.pinned import travelling

        return travelling(candidates, belief.contexts.device, step)
    xp, place = namespace(belief.contexts), device(belief.contexts)
    own = is_numpy_array(candidates) and not is_numpy_array(belief.contexts)
    parts = (candidates[part, ...] for part in slices(candidates.shape[0], step))
    return (xp.asarray(_native(each) if own else each, device=place) for each in parts)


def _native(rows: Any) -> Any:
    """A copy: other libraries take no memory that is read-only, backwards or in a foreign order of bytes."""
    return np.array(rows, dtype=rows.dtype.newbyteorder("="), order="C")


def _checked(block: Any) -> int:
    if isinstance(block, int) and not isinstance(block, bool) and block >= 1:
        return block
    raise ValueError(f"block must be a whole number of candidates, 1 or more; got {block!r}")


def _rows(candidates: Any) -> int:
    """How many make a block of 512 MB."""
    return int(max(1, _BLOCK // (candidates.dtype.itemsize * math.prod(candidates.shape[1:]))))


def _check(belief: Any, candidates: Any) -> None:
    if not isinstance(belief, CategoricalEnsemble | VoteEnsemble):
        raise TypeError(
            f"candidates are streamed to a CategoricalEnsemble or a VoteEnsemble; got {type(belief).__name__}. "
            "stakes.rank reads rows of a pool in chunks for any model."
        )
    wanted = ["N", *belief.contexts.shape[1:]]
    if not is_array_api_obj(candidates) or list(candidates.shape[1:]) != wanted[1:] or candidates.shape[0] == 0:
        got = list(candidates.shape) if hasattr(candidates, "shape") else type(candidates).__name__
        raise ValueError(f"candidates must be an array {wanted} as the contexts are, with a row at least; got {got}")


def _beside(costs: Any, like: Array) -> Array:
    """Costs of a block where its scores are."""
    return constant(costs, like) if not is_array_api_obj(costs) or is_numpy_array(costs) else costs
