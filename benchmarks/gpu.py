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
from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, VoteEnsemble, ZeroOne, expected_regret, score
from stakes._utils.compute import has_jit
from stakes.acquisition import select
from stakes.losses.weights import relative_weights


def drawn_shapes(count: int) -> list[Shape]:
    """Shapes at random, the same each time, none of which takes more than 5e13 operations.

    Log-uniform: 300 to 50,000 candidates, 30 to 3,000 contexts, 5 to 1,000 members, 2 to 60 classes.
    """
    rng, found = np.random.default_rng(2026), []
    while len(found) < count:
        ends = np.log([(300, 50_000), (30, 3000), (5, 1000), (2, 60)])
        shape = Shape(*(int(each) for each in np.exp(rng.uniform(ends[:, 0], ends[:, 1]))))
        if shape.candidates * shape.contexts * shape.classes**2 * shape.members < 2.5e13:
            found.append(shape)
    return found


SHAPES = {
    "K = 100": Shape(20_000, 1000, 100, 10),
    "K = 1000": Shape(20_000, 1000, 1000, 10),
    "100,000 candidates": Shape(100_000, 1000, 100, 10),
    "Landsat": Shape(5000, 1200, 1000, 6),
}
QUICK = {name: Shape(500, 100, 60, 4) for name in ("K = 100", "Landsat")}
BATCH = Shape(1000, 100, 100, 10)
DRAWN = {f"drawn {place}": shape for place, shape in enumerate(drawn_shapes(6), 1)}
SMALL = {"small": Shape(400, 200, 10, 5), "smaller": Shape(10, 5, 10, 3)}
MANY = {"C = 100": Shape(2000, 500, 50, 100), "M = 100,000": Shape(2000, 100_000, 100, 10)}
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
    for name, shape in {**MANY, **DRAWN, **SMALL}.items():
        cells = shape.candidates * shape.contexts * shape.classes**2
        yield from _whole_rows(name, shape, cells * (2 * shape.members / rate + 1 / logs))
    yield from _batch_rows(BATCH)
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
    jobs["score(loss, belief), all of it"] = clock(lambda: score(loss, belief))
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


def _whole_rows(name: str, shape: Shape, limit: float) -> Iterator[Row]:
    """All of a call, with its fixed costs, beside the plain scorer: weighted log loss, log loss and costs."""
    import torch

    from benchmarks.gpu_plain import members, plain, seconds

    here, there = (members(n, shape, 1.0) for n in (shape.candidates, shape.contexts))
    belief, sizes = CategoricalEnsemble(here, there), str(shape)
    loss = weighted_epig(shape.classes)
    costs = CostMatrix(np.random.default_rng(0).random((shape.classes,) * 2) * (1.0 - np.eye(shape.classes)))
    yield Row(f"{name}: limit, product in bfloat16 and logarithms", sizes, limit, 1.0)
    try:
        yield Row(
            f"{name}: plain scorer", sizes, (took := seconds(lambda: plain(here, there, loss.class_weights))), None
        )
    except torch.OutOfMemoryError:
        took = None
    kernel, _, _ = _ours(loss, belief, "float16")
    yield Row(f"{name}: fused kernel, float16", sizes, kernel, limit / kernel)
    for what, each in (("weighted log loss", loss), ("log loss", LogLoss()), ("costs", costs)):
        whole = clock(lambda each=each: score(each, belief))
        beside = None if took is None or each is not loss else took / whole
        yield Row(f"{name}: score(loss, belief), all of it, {what}", sizes, whole, limit / whole, beside)


def _batch_rows(shape: Shape) -> Iterator[Row]:
    """Twenty labels chosen together, which is done on the host."""
    from benchmarks.gpu_plain import clock as once
    from benchmarks.gpu_plain import members

    if not has_jit():
        yield Row("select 20: skipped: loops are not compiled, pip install 'stakes[fast]'", str(shape), None)
        return
    belief = CategoricalEnsemble(*(members(n, shape, 1.0) for n in (shape.candidates, shape.contexts)))
    for loss in (LogLoss(), ZeroOne(), BrierLoss()):
        took = once(lambda loss=loss: select(loss, belief, n=20))
        yield Row(f"select 20, {type(loss).__name__}", str(shape), took)


def clock(job: Any) -> float:
    """Seconds of a call and what it began, the median of many: with the time of the host, which a device would hide."""
    from benchmarks.gpu_plain import clock as once

    for _ in range(5):
        once(job)
    return float(np.median([once(job) for _ in range(30)]))


def _ours(loss: Any, belief: CategoricalEnsemble, precision: str) -> tuple[float, float, Any]:
    """Seconds of the kernel alone, with members centred first, and scores."""
    from benchmarks.gpu_plain import seconds
    from stakes.gpu.centred import centred_members, member_job

    job = member_job(loss, belief, _shares(belief), precision)
    share = belief.member_weights.float()
    sides = centred_members(belief.candidates, share, job)
    kernel = seconds(lambda: job.sums(*sides))
    whole = seconds(lambda: job.sums(*centred_members(belief.candidates, share, job)))
    scale = np.exp(relative_weights(loss)[1])
    return kernel, whole, job.sums(*sides)[: belief.n_candidates] * scale


def _vote_rows(name: str, shape: Shape, loss: LogLoss) -> Iterator[Row]:
    """Votes, whole numbers all the way."""
    import torch

    from benchmarks.gpu_plain import seconds
    from stakes.gpu.centred import vote_job, voted

    sides = (shape.candidates, shape.members), (shape.contexts, shape.members)
    belief = VoteEnsemble(*(torch.randint(0, shape.classes, size, device="cuda") for size in sides), shape.classes)
    job = vote_job(loss, belief, _shares(belief))
    votes = voted(belief.candidates, job)
    exactly = expected_regret(loss, belief.take(slice(0, CHECKED), slice(None))).mean(dim=1)
    found = job.sums(*votes)[:CHECKED] * np.exp(relative_weights(loss)[1])
    wrong = float((found - exactly).abs().max() / exactly.max())
    yield Row(f"{name}: fused kernel", str(shape), seconds(lambda: job.sums(*votes)), None, wrong)
    yield Row(f"{name}: score(loss, belief), all of it", str(shape), clock(lambda: score(loss, belief)))


def _shares(belief: Any) -> Any:
    """[M]: contexts that come up alike."""
    import torch

    return torch.full((belief.n_contexts,), 1.0 / belief.n_contexts, dtype=torch.float64, device="cuda")
