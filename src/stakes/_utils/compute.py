"""How work is done: loops that numba compiles, kernels that Triton compiles, and parts that workers share.

Loops are compiled where numba is installed (the extra `fast`), when they are first called, and kept on disk where numba
finds a place; each has a NumPy path that gives the same. They let go of the interpreter's lock, so that blocks of work
run side by side in threads.

Workers are those that joblib is told of: threads or processes here, or a cluster. `joblib.parallel_config` says which
they are where the caller does not. Parts are cut before it is known how many workers there are, and within a part
nothing runs side by side, so that results are the same on one and on many.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial, wraps
from numbers import Integral
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

from array_api_compat import is_torch_array
from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from stakes.exceptions import StakesError

_Loop = TypeVar("_Loop", bound=Callable[..., Any])
_FAST_MATH = {"nsz", "contract", "reassoc", "arcp"}  # not "nnan" or "ninf": what is not finite must stay so


def has_jit() -> bool:
    """Whether loops are compiled: numba is installed, and the environment variable STAKES_JIT is not 0."""
    return os.environ.get("STAKES_JIT") != "0" and _installed()


@cache
def _installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def has_kernel(array: Any) -> bool:
    """Whether kernels of Triton run on this array: a tensor on a GPU, where that is installed."""
    return is_torch_array(array) and bool(array.is_cuda) and _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def loop(function: _Loop) -> _Loop:
    """A function over NumPy arrays and numbers that is compiled when it is first called; loops may call loops."""
    compiled = cache(partial(_compiled, function))

    @wraps(function)
    def run(*arguments: Any) -> Any:
        return compiled()(*arguments)

    run.compiled = compiled  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    import numba

    known = function.__globals__
    called = {
        name: known[name].compiled() for name in function.__code__.co_names if hasattr(known.get(name), "compiled")
    }
    bound = FunctionType(function.__code__, {**known, **called}, function.__name__)
    bound.__qualname__, bound.__module__ = function.__qualname__, function.__module__

    def made(keep: bool) -> Callable[..., Any]:  # a division that may raise would not be vectorised
        return numba.njit(bound, cache=keep, nogil=True, fastmath=_FAST_MATH, error_model="numpy")

    try:
        return made(keep=True)
    except RuntimeError:  # there is no folder to keep compiled code in
        return made(keep=False)


def kernel(function: Callable[..., Any]) -> Any:
    """A kernel, or a part of one that kernels call."""
    import triton

    return triton.jit(function)


Part: TypeAlias = tuple[Any, ...]


def in_parts(
    function: Callable[..., Any], parts: Iterable[Part], n_jobs: int | None = None, most: int | None = None
) -> Generator[Any]:
    """`function(*part)` for each part, in order; `close` stops it. Parts are made when workers are free for them.

    `n_jobs` is scikit-learn's: None for one, or for what `joblib.parallel_config` says; -1 for all cores; never more
    than `most` at once, where that is given. An error in the parts, or in the function, comes out here.
    """
    wanted = get_active_backend()[1] if checked_jobs(n_jobs) is None else n_jobs
    ahead = most or "2*n_jobs"
    workers = Parallel(n_jobs=wanted, prefer="threads", batch_size=1, return_as="generator", pre_dispatch=ahead)
    if n_jobs is None and workers.n_jobs == 1:
        return (function(*part) for part in parts)  # alone: libraries may use all cores beneath it
    return _taken(workers(delayed(_by_itself)((function, part)) for part in parts))


def checked_jobs(n_jobs: Any) -> int | None:
    """A number of workers as scikit-learn has it."""
    if n_jobs is None or (isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) and n_jobs != 0):
        return None if n_jobs is None else int(n_jobs)
    raise StakesError(f"n_jobs must be None, a number of workers, or -1 for all cores; got {n_jobs!r}")


def _taken(results: Any) -> Generator[Any]:
    """The results, and no worker left at work where they are not taken to the end."""
    try:
        with _one_thread():
            yield from (each for each in results)  # so that they are closed below and not before
    finally:
        with warnings.catch_warnings(), suppress(UserWarning):
            warnings.simplefilter("ignore")  # joblib's, that parts were given up; or an error where filters make it one
            results.close()


def _by_itself(task: tuple[Callable[..., Any], Part]) -> Any:
    """What the function makes of a part, on one thread.

    A task is one tuple, which is sent with the call: Dask would keep arrays of their own on one worker, and lose them
    with it. What the function runs through joblib itself must not queue behind the parts that wait for it.
    """
    function, part = task
    with _one_thread(), parallel_config(backend="sequential", n_jobs=1):
        return function(*part)


_lock = threading.Lock()
_held: list[Any] = []  # for each part in work: the limit that the first of them set for this process


@contextmanager
def _one_thread() -> Iterator[None]:
    """Libraries keep to one thread until the last part in work in this process is done."""
    with _lock:
        _held.append(_held[0] if _held else threadpool_limits(limits=1))
    try:
        yield
    finally:
        with _lock:
            limit = _held.pop()
            if not _held:
                limit.restore_original_limits()
