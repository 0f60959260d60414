"""Pools that a cluster of Dask reads: workers open their own fragments, and send back their best rows and sums alone.

The model travels once, to all workers. A fragment is some consecutive rows: row groups of files that a worker opens, or
a partition of a Dask collection. What is kept of it (a tally) can be merged in any order with the same result, so it
makes no difference which worker is quick, or dies: Dask gives its fragments to others.

Sizes: N rows, n rows of a fragment, M contexts.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from stakes._utils.arguments import SUBSAMPLE, Progress, generator, tie_breakers
from stakes._utils.compute import by_itself
from stakes._utils.tables import Host, Table, check_table, n_rows, row_labels, take_rows
from stakes.exceptions import StakesError
from stakes.files.arrow import library
from stakes.files.pools import open_fragments
from stakes.files.remote import located
from stakes.models.inspection import accepts_shapes
from stakes.ranking.pools import fitted_columns, pool_chunks, pool_rows, pool_size

_AHEAD = 4  # tasks that wait for each thread of a worker: none is idle, and no scheduler holds millions of them
_FILES = 64  # files whose number of rows one task looks up
_LOSSES = 3  # times that a task may be lost together with all copies of the model
_LOST = object()  # what comes of such a task
_SECONDS = 60  # to wait for the first worker
_KEPT = 4  # sets of rows that were fetched and are remembered: contexts, the shortlist, rows chosen
_PLACES = 40  # bits for the place of a row within its partition


def on_cluster(pool: Any, model: Any, client: Any, gaps: bool, seed: int, most: int, progress: Progress) -> ClusterPool:
    """The pool as workers read it; without a client those of the one in use, for a Dask collection.

    Of a collection whose partitions do not say how long they are, rows are counted, and in the same pass `most` of them
    drawn, from which contexts are taken.
    """
    collection = hasattr(pool, "__dask_graph__") and hasattr(pool, "to_delayed")
    connected = _connected(client)
    _check_workers(connected)
    columns, plain = fitted_columns(model)
    counts: list[int] | None = None
    if collection:
        fragments, counts = _partitions(pool, columns)
    elif isinstance(pool, str | os.PathLike):
        fragments = open_fragments(located(pool), columns, plain, partial(_each_file, connected)).fragments()
    elif hasattr(pool, "fragments"):
        fragments = list(pool.fragments())
    else:
        raise StakesError(
            "with a client, pool must be something that workers read themselves: the path or address of Parquet or "
            f"Arrow files, or a Dask DataFrame or Array; got {type(pool).__name__}. Rows in memory are made one by "
            "dask.array.from_array(rows, chunks=(100_000, -1)), or ranked without a client."
        )
    if not collection:
        counts = [pool_size(each) for each in fragments]
    rows = ClusterPool(connected, fragments, gaps, accepts_shapes(model))
    if counts is None:
        rows.count(seed, most, progress)
    else:
        rows.counts = np.asarray(counts, dtype=np.intp)
    if rows.n_rows == 0:
        raise StakesError("pool must have at least one row; got none")
    return rows


@dataclass(eq=False)
class ClusterPool:
    """N rows that workers read: a `stakes.ranking.Pool`, of which only rows that are asked for come here.

    Attributes:
        client: Of `dask.distributed`.
        fragments: Pools that can be sent, or delayed tables, in the order of their rows.
        gaps: Whether the model takes NaN.
        shapes: Whether rows may have any shape.
        counts: [F]: the rows of each fragment.
        reservoir: Positions of rows that were drawn when rows were counted, those first that smaller draws hold, too.
    """

    client: Any
    fragments: Sequence[Any]
    gaps: bool
    shapes: bool
    counts: Host = field(default_factory=lambda: np.empty(0, np.intp))
    reservoir: Host | None = None
    _kept: list[tuple[Host, Table]] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """The number of rows, N."""
        return int(self.counts.sum())

    def chunks(self, size: int) -> Iterator[tuple[int, Table]]:
        """Where each chunk begins, and its rows, which are fetched from the workers."""
        for start in range(0, self.n_rows, size):
            yield start, self.take(np.arange(start, min(start + size, self.n_rows)))

    def take(self, rows: Host) -> Table:
        """The rows at some positions, in that order; workers read them, unless they were fetched before."""
        wanted = np.unique(rows)
        for positions, table in self._kept:
            places = np.minimum(np.searchsorted(positions, wanted), len(positions) - 1)
            if np.array_equal(positions[places], wanted):
                return take_rows(table, np.searchsorted(positions, rows))
        return take_rows(self._keep(wanted, self._fetched(wanted)), np.searchsorted(wanted, rows))

    def row_labels(self, rows: Host) -> list[Any]:
        """Of some rows: the index of data frames, else positions."""
        table = self.take(rows) if len(rows) else None
        return row_labels(table) if hasattr(table, "iloc") else np.asarray(rows).tolist()

    def tallies(
        self, query: Any, function: Callable[..., Any], tally: Any, costs: Host | None, scored: Host | None
    ) -> Iterator[tuple[int, Any]]:
        """For each fragment how many rows were scored, and what the tally has kept of them, as workers finish.

        Args:
            query: What a worker needs to know, without the pool.
            function: What is made of the query, positions, rows, and whether they are the first, by chunks.
            tally: An empty one; workers add chunks to copies of it.
            costs: [N], or None.
            scored: Positions of the rows that are scored, rising, or None for all.
        """
        sent = Sent.of((query, function, tally, self.gaps, self.shapes))
        done = self._results(_tallied, sent, self._parts(costs, scored))
        for _, (count, found) in done:
            yield count, found

    def count(self, seed: int, most: int, progress: Progress) -> None:
        """Count the rows of all fragments, and draw `most` of them in the same pass.

        Each row has a number by the seed, its partition and its place there; the rows with the smallest numbers are
        drawn. So the draw does not depend on the order in which workers finish.
        """
        drawn = _Reservoir(most)
        counts = np.zeros(len(self.fragments), np.intp)
        sent = Sent.of((int(generator(seed, SUBSAMPLE).integers(2**63)), self.gaps, self.shapes))
        tasks = ((number, (number, most, drawn.bound)) for number in range(len(self.fragments)))
        for done, (number, (count, *rows)) in enumerate(self._results(_counted, sent, tasks)):
            counts[number] = count
            drawn.add(number, *rows)
            progress("counting rows", (done + 1) / len(self.fragments))
        self.counts = counts
        if most and self.n_rows:
            numbers, places, table = drawn.rows()
            self.reservoir = (np.cumsum(counts) - counts)[numbers] + places
            order = np.argsort(self.reservoir)
            self._keep(self.reservoir[order], take_rows(table, order))

    def _parts(self, costs: Host | None, scored: Host | None) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """The number of each fragment that has rows to score, and the arguments of its task."""
        ends = np.cumsum(self.counts)
        first = True
        for number, (count, end) in enumerate(zip(self.counts.tolist(), ends.tolist(), strict=True)):
            start = end - count
            within = None if scored is None else scored[slice(*np.searchsorted(scored, (start, end)))] - start
            if count and (within is None or len(within)):
                yield number, (start, count, first, _part_of(costs, start, end), within)
                first = False

    def _fetched(self, wanted: Host) -> Table:
        """The rows at some rising positions, checked."""
        ends = np.cumsum(self.counts)
        numbers = np.searchsorted(ends, wanted, side="right")
        tasks = []
        for number in np.unique(numbers).tolist():
            start = int(ends[number] - self.counts[number])
            tasks.append((number, (wanted[numbers == number] - start,)))
        found = dict(self._results(_taken, None, tasks))
        table = _stacked([found[number] for number, _ in tasks])
        return check_table("pool", table, self.gaps, wanted, self.shapes)

    def _keep(self, rows: Host, table: Table) -> Table:
        self._kept = [(rows, table), *self._kept[: _KEPT - 1]]
        return table

    def _results(
        self, function: Callable[..., Any], sent: Sent | None, tasks: Iterable[tuple[int, tuple[Any, ...]]]
    ) -> Iterator[tuple[int, Any]]:
        """For each task the number of its fragment and what workers made of it, as they finish.

        Tasks are given out as there is room for them. What workers were sent lies on all of them; where all are lost at
        once it is sent again.
        """
        import distributed

        as_completed: Any = distributed.as_completed
        carried, lost = self._scattered(sent), Counter[int]()
        given: dict[Any, tuple[int, tuple[Any, ...]]] = {}
        left, finished = iter(tasks), as_completed()

        def give(task: tuple[int, tuple[Any, ...]]) -> None:
            number, arguments = task
            rows = self.fragments[number]
            rows = self.client.compute(rows) if hasattr(rows, "__dask_graph__") else rows
            future = self.client.submit(function, carried, rows, *arguments, pure=False)
            given[future] = task
            finished.add(future)

        try:
            while True:
                for task in islice(left, max(0, self._room() - len(given))):
                    give(task)
                if not given:
                    return
                future = next(finished)
                task = given.pop(future)
                came = _result(future)
                if came is _LOST:
                    lost[task[0]] += 1
                    if lost[task[0]] > _LOSSES:
                        raise StakesError(_gone(_LOSSES + 1))
                    carried = self._scattered(sent) if carried is None or carried.status != "finished" else carried
                    give(task)
                    continue
                yield task[0], came
        finally:
            if given:
                self.client.cancel(list(given))

    def _room(self) -> int:
        """How many tasks may be under way."""
        return _AHEAD * max(2, int(sum(self.client.nthreads().values())))

    def _scattered(self, sent: Sent | None) -> Any:
        """What workers are sent once, on all of them."""
        return None if sent is None else self.client.scatter(sent, broadcast=True, hash=False)


class Sent:
    """What all tasks on a worker share, as compressed bytes until the first of them asks for it."""

    def __init__(self, payload: bytes, versions: dict[str, str]) -> None:
        self._payload, self._versions = payload, versions
        self._loaded: Any = None

    @staticmethod
    def of(value: Any) -> Sent:
        """A value, and the versions of libraries here."""
        import cloudpickle

        return Sent(zlib.compress(cloudpickle.dumps(value)), _versions_here()())

    def __reduce__(self) -> tuple[Any, ...]:
        return Sent, (self._payload, self._versions)

    def value(self) -> Any:
        """The value, the same object for all tasks of this process; refused where the versions here are others."""
        if self._loaded is None:
            _check_versions(self._versions, {"this worker": _versions_here()()})
            import cloudpickle

            try:
                self._loaded = cloudpickle.loads(zlib.decompress(self._payload))
            except (ImportError, AttributeError) as error:
                raise StakesError(
                    f"a worker cannot load the model: {error}. Install what it is made of on all workers, or send a "
                    "module of your own with client.upload_file."
                ) from error
        return self._loaded


@dataclass
class _Reservoir:
    """The rows with the smallest keys of all that were added, `most` at most."""

    most: int
    bound: int = 2**64 - 1
    """Rows with larger keys are not among them."""
    _keys: Host = field(default_factory=lambda: np.empty(0, np.uint64))
    _numbers: Host = field(default_factory=lambda: np.empty(0, np.intp))
    _places: Host = field(default_factory=lambda: np.empty(0, np.intp))
    _tables: list[Table] = field(default_factory=list)

    def add(self, number: int, keys: Host, places: Host, table: Table) -> None:
        """Rows of a fragment: their keys, and where they are in it."""
        if not len(keys):
            return
        self._keys, self._places = np.append(self._keys, keys), np.append(self._places, places)
        self._numbers = np.append(self._numbers, np.full(len(keys), number))
        self._tables.append(table)
        if len(self._keys) > 4 * self.most:
            self._forget()

    def rows(self) -> tuple[Host, Host, Table]:
        """[n], [n], [n, p]: fragments, places in them and rows, by rising keys."""
        self._forget()
        return self._numbers, self._places, self._tables[0]

    def _forget(self) -> None:
        order = np.argsort(self._keys)[: self.most]
        self._tables = [take_rows(_stacked(self._tables), order)]
        self._keys, self._numbers, self._places = self._keys[order], self._numbers[order], self._places[order]
        if len(order) == self.most:
            self.bound = int(self._keys[-1])


def _tallied(
    sent: Sent, rows: Any, start: int, count: int, first: bool, costs: Host | None, scored: Host | None
) -> tuple[int, Any]:
    """On a worker: how many rows of a fragment were scored, and what the tally has kept of them."""
    with _as_seen_here():
        if pool_size(rows) != count:
            raise StakesError(
                f"a fragment of the pool had {count} rows when they were counted, and has {pool_size(rows)} now. Make "
                "its partitions the same each time they are computed, or persist() them first."
            )
        found: tuple[int, Any] = by_itself((_added, (sent.value(), rows, start, count, first, costs, scored)))
        return found


def _added(
    shared: tuple[Any, ...], rows: Any, start: int, count: int, first: bool, costs: Host | None, scored: Host | None
) -> tuple[int, Any]:
    """The rows of a fragment, chunk by chunk."""
    query, function, empty, gaps, shapes = shared
    tally, done = deepcopy(empty), 0
    for begin, chunk in pool_chunks(rows, query.chunk):
        places = np.arange(begin, begin + n_rows(chunk))
        check_table("pool", chunk, gaps, start + places, shapes)
        if scored is not None:
            places = np.intersect1d(places, scored, assume_unique=True)
            chunk = take_rows(chunk, places - begin)
        if len(places):
            found = function(query, start + places, chunk, first and not done)
            tally.add(start + places, found, None if costs is None else np.broadcast_to(costs, count)[places])
            done += len(places)
    return done, tally


def _counted(sent: Sent, rows: Table, number: int, most: int, bound: int) -> tuple[int, Host, Host, Table]:
    """On a worker: how many rows a partition has; keys, places and rows of those with the smallest keys."""
    seed, gaps, shapes = sent.value()
    count = n_rows(rows)
    keys = tie_breakers(seed, np.arange(count, dtype=np.int64) + (number << _PLACES))
    places = np.flatnonzero(keys <= np.uint64(bound))
    places = places[np.argsort(keys[places])[:most]]
    taken = take_rows(rows, places)
    if len(places):
        check_table("pool", taken, gaps, any_shape=shapes)
    return count, keys[places], places, taken


def _taken(sent: None, rows: Any, places: Host) -> Table:  # noqa: ARG001
    """On a worker: some rows of a fragment."""
    with _as_seen_here():
        return pool_rows(rows, places)


def _described(sent: None, function: Callable[[Any], Any], paths: Sequence[Any]) -> list[Any]:  # noqa: ARG001
    """On a worker: what a function makes of some files."""
    with _as_seen_here():
        return [function(path) for path in paths]


def _each_file(client: Any, function: Callable[[Any], Any], paths: Sequence[Any]) -> list[Any]:
    """What a function makes of each file, by the workers, many files at a time; of a few files here."""
    groups = [paths[start : start + _FILES] for start in range(0, len(paths), _FILES)]
    pool = ClusterPool(client, [function] * len(groups), False, False)
    found = dict(pool._results(_described, None, ((number, (group,)) for number, group in enumerate(groups))))
    return [each for number in range(len(groups)) for each in found[number]]


@contextmanager
def _as_seen_here() -> Iterator[None]:
    """A block on a worker in which a file that is missing is refused with who missed it."""
    try:
        yield
    except (StakesError, FileNotFoundError) as error:
        if not isinstance(error, FileNotFoundError) and not isinstance(error.__cause__, FileNotFoundError):
            raise
        from distributed import get_worker

        raise StakesError(
            f"{error}, says the worker at {get_worker().address}. Workers read their rows themselves: put the files "
            "where all of them find them under the same path, or give an address such as s3://..., and take no file "
            "away while they are at it."
        ) from error


def _partitions(pool: Any, columns: list[str] | None) -> tuple[list[Any], list[int] | None]:
    """The partitions of a Dask DataFrame or Array, and how many rows each has, where that is known."""
    if hasattr(pool, "partitions") and hasattr(pool, "columns"):
        names = [str(name) for name in pool.columns]
        chosen = columns is not None and names != columns and set(columns) <= set(names)
        return list((pool[columns] if chosen else pool).to_delayed()), None
    if getattr(pool, "ndim", 0) < 2:
        raise StakesError(
            f"a Dask pool must be a DataFrame or an Array [N, p]; got {type(pool).__name__} "
            f"{list(getattr(pool, 'shape', []))}"
        )
    whole = pool.rechunk(dict.fromkeys(range(1, pool.ndim), -1))
    counts = [float(count) for count in whole.chunks[0]]
    return whole.to_delayed().ravel().tolist(), None if np.isnan(counts).any() else [int(count) for count in counts]


def _part_of(costs: Host | None, start: int, end: int) -> Host | None:
    """What the labels of some rows cost; one number where it is one for all."""
    if costs is None or costs.strides == (0,):
        return None if costs is None else np.array(costs[:1])
    return costs[start:end]


def _stacked(tables: Sequence[Table]) -> Table:
    """Tables of one kind, one below the other."""
    first = tables[0]
    if len(tables) == 1:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate(tables)
    if hasattr(first, "column_names"):
        return library().concat_tables(tables)
    import dask.dataframe.dispatch

    concat: Any = dask.dataframe.dispatch.concat
    return concat(list(tables))


def _connected(client: Any) -> Any:
    """The client, checked; without one the one that is in use."""
    try:
        import distributed
    except ImportError as error:
        raise StakesError("a cluster needs Dask: pip install 'stakes[dask]'") from error
    if client is None:
        try:
            return distributed.get_client()
        except ValueError as error:
            raise StakesError(
                "a Dask collection is read by the workers of a cluster: give client=dask.distributed.Client(...), "
                "which without an address starts one on this machine; or pool.compute(), if it fits into memory"
            ) from error
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a dask.distributed.Client; got {type(client).__name__}")
    return client


def _versions_here() -> Callable[[], dict[str, str]]:
    """A function that tells versions, which can be sent to where stakes is not installed."""

    def versions() -> dict[str, str]:
        import sys
        from importlib.metadata import PackageNotFoundError, version

        found = {"python": ".".join(map(str, sys.version_info[:2]))}
        for name in ("stakes", "scikit-learn", "numpy"):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "none"
        return found

    return versions


def _check_workers(client: Any) -> None:
    """Refuse a cluster without workers, or with one whose libraries are of other versions."""
    versions = _versions_here()
    try:
        client.submit(versions, pure=False).result(timeout=_SECONDS)  # also makes one that adapts start a worker
    except TimeoutError as error:
        raise StakesError(f"the cluster has no worker that answered within {_SECONDS} s. Start some.") from error
    _check_versions(versions(), client.run(versions, on_error="ignore"))


def _check_versions(wanted: dict[str, str], found: dict[str, dict[str, str]]) -> None:
    for place, versions in found.items():
        other = [name for name in wanted if versions.get(name) != wanted[name]]
        if other:
            came = ", ".join(f"{name} {versions.get(name)}" for name in other)
            here = ", ".join(f"{name} {wanted[name]}" for name in other)
            raise StakesError(
                f"workers must have the versions of libraries that the client has, {here}; {place} has {came}. Install "
                "the same on all machines: models and scores may differ otherwise."
            )


def _gone(times: int) -> str:
    return (
        f"workers were lost {times} times while they had the same rows. If memory is short there: fewer threads for "
        "each worker, a smaller chunk=, or files with smaller row groups."
    )


def _result(future: Any) -> Any:
    """What a worker made, or `_LOST`; an error of its own as it is, and one of the cluster in words.

    A task is lost with its worker, with what it was to be given, or after it is done and before we have what it made.
    """
    from distributed import CancelledError, KilledWorker
    from distributed.comm.core import CommClosedError

    if future.status in ("cancelled", "lost"):
        return _LOST
    try:
        return future.result()
    except CancelledError:
        return _LOST
    except KilledWorker as error:
        raise StakesError(_gone(error.allowed_failures + 1)) from error
    except CommClosedError as error:
        raise StakesError(f"the connection to the cluster was lost: {error}") from error
