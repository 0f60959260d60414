"""Stochastic batches: candidates drawn by their single scores (Kirsch et al., "Stochastic Batch Acquisition").

Scores change as labels come in, and a batch of the top n holds n of much the same. Drawing spreads it out at the price
of one scoring, without joint worth. Sizes: N candidates.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Literal

import numpy as np

from stakes._array import Array, constant, double, log_of, namespace

Stochastic = Literal["power", "softmax"]


def check_stochastic(stochastic: str, coldness: float, rng: np.random.Generator | None) -> np.random.Generator:
    """The generator, or an error that says which setting is wrong."""
    if stochastic not in ("power", "softmax"):
        raise ValueError(f'stochastic must be "power", "softmax" or None; got {stochastic!r}')
    if not (isinstance(coldness, Real) and math.isfinite(coldness) and coldness > 0):
        raise ValueError(f"coldness must be a positive number: the larger, the nearer to the top n; got {coldness!r}")
    if rng is None:
        raise ValueError(f"stochastic={stochastic!r} draws the batch: give rng, such as numpy.random.default_rng(1)")
    return rng


def drawn_order(scores: Array, stochastic: Stochastic, coldness: float, rng: np.random.Generator) -> Array:
    """[N]: all candidates in the order they are drawn, without replacement, each in proportion to a weight.

    The weight is score^coldness ("power") or exp(coldness score / largest score) ("softmax": relative to the largest,
    so that units do not matter). By Gumbel noise on its log, sorted once. Under "power" scores of 0 come last, in any
    order.
    """
    xp, scores = namespace(scores), double(scores)
    noise = constant(rng.gumbel(size=scores.shape[0]), scores)
    largest = float(xp.max(scores))
    if stochastic == "softmax":
        return _descending(noise + coldness * scores / (largest if largest > 0 else 1.0))
    positive = scores > 0
    keys = noise + coldness * log_of(scores / (largest if largest > 0 else 1.0))
    lowest = float(xp.min(xp.where(positive, keys, xp.zeros_like(keys))))
    return _descending(xp.where(positive, keys, noise + (lowest - float(xp.max(noise)) - 1.0)))


def _descending(keys: Array) -> Array:
    return namespace(keys).argsort(keys, descending=True, stable=True)
