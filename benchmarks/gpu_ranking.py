"""How well each precision of the fused kernel ranks, against float64: peaked, flat and nearly tied ensembles.

Sizes: N candidates, M contexts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.gpu_plain import members
from benchmarks.measure import Row
from benchmarks.members import Shape, weighted_epig
from stakes import CategoricalEnsemble, score
from stakes.acquisition import fused_form
from stakes.acquisition.forms import general_form

SPREADS = {"peaked": 0.1, "flat": 300.0}
PRECISIONS = ("float16", "bfloat16", "tf32", "float32")


def rows(shape: Shape) -> Iterator[Row]:
    """The lines of the table."""
    loss = weighted_epig(shape.classes)
    ensembles = {
        name: tuple(members(n, shape, spread) for n in (shape.candidates, shape.contexts))
        for name, spread in SPREADS.items()
    }
    ensembles["nearly tied"] = nearly_tied(loss, shape)
    for name, (here, there) in ensembles.items():
        wide = CategoricalEnsemble(here.double(), there.double())
        exactly = score(loss, wide, form=general_form(loss))
        spread = float(exactly.std() / exactly.mean())
        yield Row(f"{name}: standard deviation of scores over their mean", str(shape), None, spread)
        for precision in PRECISIONS:
            found = score(loss, CategoricalEnsemble(here, there), form=fused_form(precision)).double()
            lost = 1.0 - float(exactly[found.argmax()] / exactly.max())
            yield Row(f"{name}: 1 - Spearman, {precision}", str(shape), None, None, 1.0 - spearman(found, exactly))
            yield Row(f"{name}: what the one chosen lacks of the best, {precision}", str(shape), None, None, lost)


def nearly_tied(loss: Any, shape: Shape) -> tuple[Any, Any]:
    """Candidates that are all but the same, so that scores differ by 1e-3 of their mean."""
    there, base, noise = (members(n, shape, 1.0) for n in (shape.contexts, 1, shape.candidates))
    share = 0.01
    for _ in range(4):
        here = (1.0 - share) * base + share * noise
        scores = score(loss, CategoricalEnsemble(here, there), form=fused_form("float32"))
        share = min(0.5, share * 1e-3 / float(scores.std() / scores.mean()))
    return (1.0 - share) * base + share * noise, there


def spearman(a: Any, b: Any) -> float:
    """The correlation of ranks."""
    first, second = (each.argsort().argsort().double() for each in (a, b))
    first, second = first - first.mean(), second - second.mean()
    return float((first * second).sum() / (first.norm() * second.norm()))
