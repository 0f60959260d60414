"""Losses of classes on one GPU: the fused kernel beside a plain scorer and the bare products of its size.

Times are of the device, after warm-up, the median of several; the plain scorer is the product in chunks, then
logarithms. The limit is the time that the product takes at the rate of a large bfloat16 product, and the logarithms
at that of the units that make them, one after the other.
Sizes: N candidates, M contexts, K members, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import Row, Settings
from benchmarks.members import Shape, weights
from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, VoteEnsemble, expected_regret, score
from stakes.acquisition import best_streamed, fused_form
from stakes.acquisition.forms import general_form

SHAPES = {
    "K = 100": Shape(20_000, 1000, 100, 10),
    "K = 1000": Shape(20_000, 1000, 1000, 10),
    "100,000 candidates": Shape(100_000, 1000, 100, 10),
    "Landsat": Shape(5000, 1200, 1000, 6),
}
QUICK = {"quick": Shape(500, 100, 60, 4)}
CELLS = 2**27  # of the joint that a chunk of the plain scorer holds
STREAMED, QUICK_STREAMED = Shape(10_000_000, 100, 100, 10), Shape(20_000, 30, 20, 4)
SPREADS = {"peaked": 0.1, "flat": 300.0}


def rows(given: Settings) -> Iterator[Row]:
    """The table, or a line that says why there is none."""
    try:
        import torch
        import triton  # noqa: F401 (the kernels need it)
    except ImportError as error:
        yield Row(f"skipped: {error}", "", None)
        return
    if not torch.cuda.is_available():
        yield Row("skipped: there is no CUDA device", "", None)
        return
    yield Row(f"on {torch.cuda.get_device_name()}, torch {torch.__version__}", "", None)
    rate, logs = _rates()
    yield Row("product of bfloat16 matrices, in TFLOP/s", "8192 x 8192 x 8192", None, rate / 1e12)
    for name, shape in (QUICK if given.quick else SHAPES).items():
        limit = _cells(shape) * (2 * shape.members / rate + 1 / logs)
        yield from _class_rows(name, shape, limit)
    yield from _vote_rows("votes", QUICK["quick"] if given.quick else SHAPES["Landsat"])
    yield from _ranking_rows(QUICK["quick"] if given.quick else SHAPES["K = 100"])
    yield from _streamed_rows(QUICK_STREAMED if given.quick else STREAMED)


def _cells(shape: Shape) -> int:
    return shape.candidates * shape.contexts * shape.classes**2


def _rates() -> tuple[float, float]:
    """Operations in a second of a large product, and logarithms: 16 for each multiprocessor and cycle."""
    import torch

    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    rate = 2 * 8192**3 / seconds(lambda: a @ b)
    properties = torch.cuda.get_device_properties(0)
    clock = float(getattr(properties, "clock_rate", 1_980_000)) * 1e3  # kHz
    return rate, properties.multi_processor_count * 16 * clock


def seconds(job: Callable[[], Any]) -> float:
    """Of the device, the median."""
    from triton.testing import do_bench

    return float(do_bench(job, warmup=25, rep=100, return_mode="median")) / 1e3


def members(n: int, shape: Shape, spread: float, dtype: Any = None) -> Any:
    """[n, K, C]: members whose probabilities are from a Dirichlet distribution."""
    import torch

    size = (n, shape.members, shape.classes)
    draws = torch._standard_gamma(torch.full(size, spread, device="cuda")) + 1e-30
    return (draws / draws.sum(dim=2, keepdim=True)).to(dtype or torch.float32)


def _class_rows(name: str, shape: Shape, limit: float) -> Iterator[Row]:
    """Weighted log loss: bare products, the plain scorer, ours."""
    here, there = (members(n, shape, 1.0) for n in (shape.candidates, shape.contexts))
    loss, sizes = LogLoss(tuple(weights(shape.classes).tolist())), str(shape)
    yield Row(f"{name}: limit, product in bfloat16 and logarithms", sizes, limit, 1.0)
    for kind, took in _products(here, there):
        yield Row(f"{name}: bare product, {kind}", sizes, took, limit / took)
    plainly = seconds(lambda: plain(here, there, loss.class_weights))
    yield Row(f"{name}: plain scorer", sizes, plainly, limit / plainly)
    belief = CategoricalEnsemble(here, there)
    few = CategoricalEnsemble(here[:200].double(), there.double())
    exactly = expected_regret(loss, few).mean(dim=1)
    for precision in ("float16", "bfloat16", "tf32"):
        kernel, whole, scores = _ours(loss, belief, precision)
        wrong = float((scores[:200].double() - exactly).abs().max() / exactly.max())
        yield Row(f"{name}: fused kernel, {precision} (to the limit)", sizes, kernel, limit / kernel, wrong)
        if precision == "float16":
            yield Row(f"{name}: plain scorer to fused kernel", sizes, kernel, plainly / kernel)
            yield Row(f"{name}: members centred, then the kernel", sizes, whole, limit / whole)
    whole = seconds(lambda: score(loss, belief))
    yield Row(f"{name}: score(loss, belief), all of it", sizes, whole, limit / whole)
    others = {"log loss": LogLoss(), "weighted Brier": BrierLoss(loss.class_weights)}
    others["cost matrix"] = CostMatrix(_costs(shape.classes))
    for other, each in others.items():
        kernel, _, _ = _ours(each, belief, "float16")
        yield Row(f"{name}: fused kernel, {other}, float16", sizes, kernel, limit / kernel)


def _costs(classes: int) -> Any:
    import numpy as np

    return np.abs(np.subtract.outer(np.arange(classes), np.arange(classes))) ** 1.5


def _ours(loss: Any, belief: CategoricalEnsemble, precision: str) -> tuple[float, float, Any]:
    """Seconds of the kernel alone, with members centred first, and scores."""
    import torch

    from stakes.acquisition.fused_torch import centred_members, member_job

    shares = torch.full((belief.n_contexts,), 1.0 / belief.n_contexts, dtype=torch.float64, device="cuda")
    job, share = member_job(loss, belief, shares, precision), belief.member_weights.float()
    sides = centred_members(belief.candidates, share, job)
    kernel = seconds(lambda: job.sums(*sides))
    whole = seconds(lambda: job.sums(*centred_members(belief.candidates, share, job)))
    return kernel, whole, job.sums(*sides)[: belief.n_candidates]


def _products(here: Any, there: Any) -> Iterator[tuple[str, float]]:
    """[N C, K] x [K, M C] in chunks into one output, in several precisions."""
    import torch

    left, right = (each.permute(0, 2, 1).flatten(0, 1).contiguous() for each in (here, there))
    step = min(len(left), max(1, CELLS // len(right)))
    for name, dtype, tf32 in (
        ("float32", torch.float32, False),
        ("TF32", torch.float32, True),
        ("bfloat16", torch.bfloat16, False),
        ("float16", torch.float16, False),
    ):
        a, b = left.to(dtype), right.to(dtype).T
        out = torch.empty((step, b.shape[1]), dtype=dtype, device="cuda")
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        yield name, seconds(lambda a=a, b=b, out=out: _in_chunks(a, b, out))
        torch.backends.cuda.matmul.allow_tf32 = before


def _in_chunks(a: Any, b: Any, out: Any) -> None:
    import torch

    for start in range(0, len(a), len(out)):
        part = a[start : start + len(out)]
        torch.matmul(part, b, out=out[: len(part)])


def plain(here: Any, there: Any, class_weights: Any) -> Any:
    """[N]: weighted EPIG as one would write it, in float32: the joint in chunks, then logarithms."""
    import torch

    w = torch.tensor(class_weights, device="cuda", dtype=torch.float32)
    (_, count, classes), contexts = here.shape, len(there)
    right = there.permute(1, 0, 2).flatten(1) / count  # [K, M C]
    step, scores = max(1, CELLS // (contexts * classes**2)), []
    for part in torch.split(here, step):
        joint = (part.permute(0, 2, 1).flatten(0, 1) @ right).view(len(part), classes, contexts, classes)
        heavy = joint * w
        given_y, today = heavy.sum(dim=3, keepdim=True), heavy.sum(dim=1, keepdim=True)
        total = given_y.sum(dim=1, keepdim=True)
        gain = heavy * torch.log((heavy * total).clamp_min(1e-30) / (given_y * today).clamp_min(1e-30))
        scores.append(gain.sum(dim=(1, 3)).mean(dim=1))
    return torch.cat(scores)


def _vote_rows(name: str, shape: Shape) -> Iterator[Row]:
    """Weighted log loss of votes, whole numbers all the way."""
    import torch

    from stakes.acquisition.fused_torch import vote_job, voted

    here, there = (
        torch.randint(0, shape.classes, (n, shape.members), device="cuda") for n in (shape.candidates, shape.contexts)
    )
    belief, loss = VoteEnsemble(here, there, shape.classes), LogLoss(tuple(weights(shape.classes).tolist()))
    shares = torch.full((belief.n_contexts,), 1.0 / belief.n_contexts, dtype=torch.float64, device="cuda")
    for each, what in ((loss, "weighted log loss"), (LogLoss(), "log loss")):
        job = vote_job(each, belief, shares)
        sides = voted(belief, job)
        few = belief.take(slice(0, 200), slice(None))
        exactly = expected_regret(each, few).mean(dim=1)
        wrong = float((job.sums(*sides)[:200] - exactly).abs().max() / exactly.max())
        yield Row(f"{name}: fused kernel, {what}", str(shape), seconds(lambda: job.sums(*sides)), None, wrong)
        yield Row(f"{name}: score(loss, belief), {what}", str(shape), seconds(lambda: score(each, belief)))


def _ranking_rows(shape: Shape) -> Iterator[Row]:
    """How well each precision ranks, against float64: peaked, flat and nearly tied ensembles."""
    loss = LogLoss(tuple(weights(shape.classes).tolist()))
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
        for precision in ("float16", "bfloat16", "tf32", "float32"):
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


def _streamed_rows(shape: Shape) -> Iterator[Row]:
    """Candidates in float16 from host memory, pinned or not, beside the copy alone and the scores alone."""
    import torch

    loss, sizes = LogLoss(tuple(weights(shape.classes).tolist())), str(shape)
    step = min(shape.candidates, 131_072)
    some = torch.cat([members(min(8192, step), shape, 1.0, torch.float16) for _ in range(-(-step // 8192))])[:step]
    belief = CategoricalEnsemble(some[:0], members(shape.contexts, shape, 1.0, torch.float16))
    turns = -(-shape.candidates // step)
    one = CategoricalEnsemble(some, belief.contexts)
    scoring = seconds(lambda: score(loss, one)) * shape.candidates / step
    yield Row("streamed: scores alone", sizes, scoring)
    for pinned in (True, False):
        host = torch.empty((shape.candidates, *some.shape[1:]), dtype=torch.float16, pin_memory=pinned)
        for start in range(0, shape.candidates, step):
            host[start : start + step].copy_(some[: min(step, shape.candidates - start)])
        if pinned:
            there = torch.empty_like(some)
            copying = seconds(lambda: there.copy_(host[:step], non_blocking=True)) * shape.candidates / step
            yield Row(f"streamed: copies alone, {turns} blocks", sizes, copying)
        slower = max(copying, scoring)
        best_streamed(loss, belief, host[: 2 * step], 10)
        took = min(_clock(lambda: best_streamed(loss, belief, host, 10)) for _ in range(2))
        kind = "pinned" if pinned else "pageable"
        yield Row(f"streamed: best 10, {kind} memory (ratio: speed to that of the slower)", sizes, took, slower / took)
        del host


def _clock(job: Callable[[], Any]) -> float:
    import time

    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    job()
    torch.cuda.synchronize()
    return time.perf_counter() - start
