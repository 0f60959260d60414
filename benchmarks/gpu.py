"""Losses of classes on one GPU: the fused kernel beside a plain scorer and the bare products of its size.

Times are of the device, after warm-up, the median of several; the plain scorer is the product in chunks, then
logarithms. The limit is the time that the product takes at the rate of a large bfloat16 product, and the logarithms
at that of the units that make them, one after the other; ratios are the fraction of it that is reached.
Sizes: N candidates, M contexts, K members, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Row, Settings
from benchmarks.members import Shape, weighted_epig
from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, VoteEnsemble, expected_regret, score

SHAPES = {
    "K = 100": Shape(20_000, 1000, 100, 10),
    "K = 1000": Shape(20_000, 1000, 1000, 10),
    "100,000 candidates": Shape(100_000, 1000, 100, 10),
    "Landsat": Shape(5000, 1200, 1000, 6),
}
QUICK = {name: Shape(500, 100, 60, 4) for name in ("K = 100", "Landsat")}
STREAMED, QUICK_STREAMED = Shape(10_000_000, 100, 100, 10), Shape(20_000, 30, 20, 4)
CHECKED = 200  # candidates whose scores are compared with float64


def rows(given: Settings) -> Iterator[Row]:
    """The table, or a line that says why there is none."""
    try:
        import torch
        import triton  # noqa: F401 (kernels are compiled by it)
    except ImportError as error:
        yield Row(f"skipped: {error}", "", None)
        return
    if not torch.cuda.is_available():
        yield Row("skipped: there is no CUDA device", "", None)
        return
    yield Row(f"on {torch.cuda.get_device_name()}, torch {torch.__version__}", "", None)
    yield from _measured(QUICK if given.quick else SHAPES, QUICK_STREAMED if given.quick else STREAMED)


def _measured(shapes: dict[str, Shape], streamed: Shape) -> Iterator[Row]:
    from benchmarks import gpu_ranking, gpu_streaming
    from benchmarks.gpu_plain import rates

    rate, logs = rates()
    yield Row("product of bfloat16 matrices, in TFLOP/s", "8192 x 8192 x 8192", None, rate / 1e12)
    for name, shape in shapes.items():
        cells = shape.candidates * shape.contexts * shape.classes**2
        yield from _class_rows(name, shape, cells * (2 * shape.members / rate + 1 / logs))
    for loss, what in ((weighted_epig(shapes["Landsat"].classes), "weighted log loss"), (LogLoss(), "log loss")):
        yield from _vote_rows(f"Landsat, votes, {what}", shapes["Landsat"], loss)
    yield from gpu_ranking.rows(shapes["K = 100"])
    yield from gpu_streaming.rows(streamed)


def _class_rows(name: str, shape: Shape, limit: float) -> Iterator[Row]:
    """Weighted log loss: bare products, the plain scorer, ours."""
    from benchmarks.gpu_plain import members, plain, products, seconds

    here, there = (members(n, shape, 1.0) for n in (shape.candidates, shape.contexts))
    belief, loss, sizes = CategoricalEnsemble(here, there), weighted_epig(shape.classes), str(shape)
    yield Row(f"{name}: limit, product in bfloat16 and logarithms", sizes, limit, 1.0)
    jobs = {f"bare product, {kind}": took for kind, took in products(here, there)}
    jobs["plain scorer"] = seconds(lambda: plain(here, there, loss.class_weights))
    jobs["score(loss, belief), all of it"] = seconds(lambda: score(loss, belief))
    yield from (Row(f"{name}: {job}", sizes, took, limit / took) for job, took in jobs.items())
    few = CategoricalEnsemble(here[:CHECKED].double(), there.double())
    exactly = expected_regret(loss, few).mean(dim=1)
    for precision in ("float16", "bfloat16", "tf32"):
        kernel, whole, scores = _ours(loss, belief, precision)
        wrong = float((scores[:CHECKED] - exactly).abs().max() / exactly.max())
        yield Row(f"{name}: fused kernel, {precision}", sizes, kernel, limit / kernel, wrong)
        yield Row(f"{name}: members centred and fused kernel, {precision}", sizes, whole, limit / whole)
    costs = CostMatrix(np.abs(np.subtract.outer(np.arange(shape.classes), np.arange(shape.classes))) ** 1.5)
    others = {"log loss": LogLoss(), "weighted Brier": BrierLoss(loss.class_weights), "cost matrix": costs}
    for other, each in others.items():
        kernel, _, _ = _ours(each, belief, "float16")
        yield Row(f"{name}: fused kernel, {other}, float16", sizes, kernel, limit / kernel)


def _ours(loss: Any, belief: CategoricalEnsemble, precision: str) -> tuple[float, float, Any]:
    """Seconds of the kernel alone, with members centred first, and scores."""
    from benchmarks.gpu_plain import seconds
    from stakes.acquisition.centred import terms_of
    from stakes.gpu.centred import centred_members, member_job

    job = member_job(terms_of(loss, belief, _shares(belief)), belief.n_classes, precision)
    share = belief.member_weights.float()
    sides = centred_members(belief.candidates, share, job)
    kernel = seconds(lambda: job.sums(*sides))
    whole = seconds(lambda: job.sums(*centred_members(belief.candidates, share, job)))
    return kernel, whole, job.sums(*sides)[: belief.n_candidates]


def _vote_rows(name: str, shape: Shape, loss: LogLoss) -> Iterator[Row]:
    """Votes, whole numbers all the way."""
    import torch

    from benchmarks.gpu_plain import seconds
    from stakes.acquisition.centred import vote_terms
    from stakes.gpu.centred import vote_job, voted

    sides = (shape.candidates, shape.members), (shape.contexts, shape.members)
    belief = VoteEnsemble(*(torch.randint(0, shape.classes, size, device="cuda") for size in sides), shape.classes)
    job = vote_job(*vote_terms(loss, belief, _shares(belief)))
    votes = voted(belief.candidates, job)
    exactly = expected_regret(loss, belief.take(slice(0, CHECKED), slice(None))).mean(dim=1)
    wrong = float((job.sums(*votes)[:CHECKED] - exactly).abs().max() / exactly.max())
    yield Row(f"{name}: fused kernel", str(shape), seconds(lambda: job.sums(*votes)), None, wrong)
    yield Row(f"{name}: score(loss, belief), all of it", str(shape), seconds(lambda: score(loss, belief)))


def _shares(belief: Any) -> Any:
    """[M]: contexts that come up alike."""
    import torch

    return torch.full((belief.n_contexts,), 1.0 / belief.n_contexts, dtype=torch.float64, device="cuda")
