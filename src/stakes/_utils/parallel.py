"""Work in parts, by the workers that joblib is told of: threads or processes here, or a cluster.

`joblib.parallel_config` says which they are where the caller does not. Parts are cut before it is known how many
workers there are, and within a part nothing runs side by side, so that results are the same on one and on many.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import Any, TypeAlias

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from stakes.exceptions import StakesError

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
