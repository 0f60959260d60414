"""How work is done: loops that numba compiles, kernels that Triton compiles, and parts that workers share.

Loops are compiled where numba is installed (the extra `fast`), when they are first called, and kept on disk where numba
finds a place; each has a NumPy path that gives the same. They let go of the interpreter's lock, so that blocks of work
run side by side in threads.

Workers are those of joblib: threads or processes here, or a cluster. `joblib.parallel_config` says which they are where
the caller does not. Parts are cut before it is known how many workers there are, and within a part
nothing runs side by side, so that results are the same on one and on many.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor
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

_Result = TypeVar("_Result")
_Loop = TypeVar("_Loop", bound=Callable[..., Any])
_WORTH_FETCHING = 10**6  # numbers, of which a compiled pass saves a millisecond
_FAST_MATH = {"nsz", "contract", "reassoc", "arcp"}  # not "nnan" or "ninf": what is not finite must stay so


def has_jit() -> bool:
    """Whether loops are compiled: numba is installed, and the environment variable STAKES_JIT is not 0."""
    return os.environ.get("STAKES_JIT") != "0" and _installed()


@cache
def _installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def is_worth_compiling(numbers: int) -> bool:
    """Whether loops are compiled, and there are so many numbers that a pass over them is worth fetching one.

    The first loop of a process takes a third of a second, numba's import included, also where it is on the disk.
    """
    return numbers >= _WORTH_FETCHING and has_jit()


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

    _watch_numba()
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


_compiling: list[str] = []
"""The loops that are being compiled, not fetched from the disk: each that waits for another is there, too."""


def is_compiling() -> bool:
    """Whether a loop of the package is being compiled in this process, which takes seconds and is done once."""
    return bool(_compiling)


@cache
def _watch_numba() -> None:
    """Keep account of the loops that are being compiled, as numba reports them."""
    from numba.core import event

    class Watch(event.Listener):
        def on_start(self, event: Any) -> None:
            if (name := _own_loop(event)) is not None:
                _compiling.append(name)

        def on_end(self, event: Any) -> None:
            if (name := _own_loop(event)) is not None and name in _compiling:
                _compiling.remove(name)

    register: Any = event.register  # which has no types
    register("numba:compile", Watch())


def _own_loop(event: Any) -> str | None:
    """The name of the loop that is compiled; None if it is none of the package."""
    function = event.data["dispatcher"].py_func
    own = function.__module__.partition(".")[0] == __name__.partition(".")[0]
    return f"{function.__module__}.{function.__qualname__}" if own else None


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
    than `most` at once, where that is given. An error in the parts, or in the function, comes out here. Where a worker
    process is killed, a warning says so, and what is still to do is done in this process, with the same result.
    """
    wanted = n_jobs
    if checked_jobs(n_jobs) is None:
        backend, wanted = get_active_backend()
        if (backend.default_n_jobs if wanted is None else wanted) == 1:
            return (function(*part) for part in parts)  # alone: libraries may use all cores beneath it
    ahead = most or "2*n_jobs"
    workers = Parallel(n_jobs=wanted, prefer="threads", batch_size=1, return_as="generator", pre_dispatch=ahead)
    if n_jobs is None and workers.n_jobs == 1:
        return (function(*part) for part in parts)  # alone: libraries may use all cores beneath it
    return _taken(workers, function, parts)


def all_parts(
    function: Callable[..., _Result], parts: Callable[[], Iterable[Part]], n_jobs: int | None
) -> list[_Result]:
    """`function(*part)` for each of `parts()`, by scikit-learn's workers; all here where one of them is killed."""
    from sklearn.utils.parallel import Parallel, delayed  # which take scikit-learn's settings along

    try:
        done: list[_Result] = Parallel(n_jobs=n_jobs)(delayed(function)(*part) for part in parts())
        return done
    except BrokenExecutor as error:
        warn_of_lost_worker(error)
        return [function(*part) for part in parts()]


def warn_of_lost_worker(error: BrokenExecutor) -> None:
    """Say that a worker is gone and that its work is done here."""
    warnings.warn(
        "a worker process was ended from outside, perhaps as memory was short; what it had to do is done in this "
        f"process instead, with the same result. Fewer workers (n_jobs) take less memory. ({type(error).__name__})",
        RuntimeWarning,
        stacklevel=3,
    )


def checked_jobs(n_jobs: Any) -> int | None:
    """A number of workers as scikit-learn has it."""
    if n_jobs is None or (isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) and n_jobs != 0):
        return None if n_jobs is None else int(n_jobs)
    raise StakesError(f"n_jobs must be None, a number of workers, or -1 for all cores; got {n_jobs!r}")


def _taken(workers: Any, function: Callable[..., Any], parts: Iterable[Part]) -> Generator[Any]:
    """The results, and no worker left at work where they are not taken to the end."""
    given = _Given(parts)
    results = workers(delayed(by_itself)((function, part)) for part in given)
    try:
        with _one_thread():
            try:
                for result in results:  # not `yield from`: they are closed below and not before
                    given.unfinished.popleft()
                    yield result
            except BrokenExecutor as error:
                warn_of_lost_worker(error)
                _close(results)
                for part in given.left():
                    yield by_itself((function, part))
    finally:
        _close(results)


def _close(results: Any) -> None:
    with warnings.catch_warnings(), suppress(UserWarning):
        warnings.simplefilter("ignore")  # joblib's, that parts were given up; or an error where filters make it one
        results.close()


class _Given:
    """Parts, of which those that were given out and are not finished yet are remembered."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts, self._one_at_a_time = iter(parts), threading.Lock()
        self.unfinished: deque[Part] = deque()

    def __iter__(self) -> Iterator[Part]:
        return self

    def __next__(self) -> Part:
        with self._one_at_a_time:  # joblib takes parts in threads of its own
            self.unfinished.append(next(self._parts))
            return self.unfinished[-1]

    def left(self) -> Iterator[Part]:
        """Those that are not finished, and those that nobody has taken."""
        yield from list(self.unfinished)
        yield from self._parts


def by_itself(task: tuple[Callable[..., Any], Part]) -> Any:
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
