"""Work in parts: the same results on one worker and on many, and one thread in each."""

import os
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from threadpoolctl import threadpool_info

from stakes import GaussianBelief, LogLoss, SquaredError, VoteEnsemble, score
from stakes._utils.compute import all_parts, has_jit, in_parts, is_compiling


def gaussian(rng, n=200, m=20):
    mixing = rng.standard_normal((n + m, 5))
    variance = (mixing**2).sum(1)
    return GaussianBelief(rng.standard_normal(m), variance[n:], variance[:n] + 0.3, mixing[:n] @ mixing[n:].T)


def votes(rng, n=200, m=20):
    return VoteEnsemble(rng.integers(4, size=(n, 20)), rng.integers(4, size=(m, 20)), 4)


def beneath(part):
    """What a part sees of threads, and of joblib."""
    nested = Parallel(n_jobs=2)(delayed(effective_n_jobs)(-1) for _ in range(2))
    return part, max(each["num_threads"] for each in threadpool_info()), effective_n_jobs(-1), nested


@settings(max_examples=20)
@given(st.integers(0, 30), st.sampled_from([None, 1, 2, 3, -1]), st.sampled_from([None, 1, 4]))
def test_results_come_in_order(count, jobs, most):
    parts = ((place,) for place in range(count))
    assert list(in_parts(lambda place: place**2, parts, jobs, most)) == [place**2 for place in range(count)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_part_keeps_to_one_thread_and_to_itself(jobs):
    before = [each["num_threads"] for each in threadpool_info()]
    results = list(in_parts(beneath, ((place,) for place in range(4)), jobs))
    assert results == [(place, 1, 1, [1, 1]) for place in range(4)]
    assert [each["num_threads"] for each in threadpool_info()] == before


def test_joblib_says_how_many_where_the_caller_does_not():
    with parallel_config(n_jobs=2):
        assert [results[1:3] for results in in_parts(beneath, [(0,), (1,)])] == [(1, 1)] * 2
    alone = next(in_parts(beneath, [(0,)]))
    assert alone[2] == effective_n_jobs(-1)  # nothing is held where nobody asked for workers


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_an_error_in_the_parts_or_in_the_work_comes_out(jobs):
    def parts():
        yield (1,)
        raise OSError("rows 5 to 9 are gone")

    with pytest.raises(OSError, match="rows 5 to 9"):
        list(in_parts(abs, parts(), jobs))
    with pytest.raises(ZeroDivisionError):
        list(in_parts(lambda each: 1 / each, [(1,), (0,)], jobs))


@pytest.mark.parametrize("jobs", [1, 2])
def test_it_stops_when_nobody_takes_more(jobs):
    begun = []
    before = [each["num_threads"] for each in threadpool_info()]
    results = in_parts(lambda place: (begun.append(place), time.sleep(0.01)), ((at,) for at in range(1000)), jobs)
    next(results)
    results.close()
    assert 1 <= len(begun) < 500
    assert [each["num_threads"] for each in threadpool_info()] == before


@pytest.mark.parametrize("wrong", [0, 1.5, "2", True])
def test_a_strange_number_of_workers_is_refused(rng, wrong):
    with pytest.raises(ValueError, match="n_jobs must be None, a number of workers, or -1"):
        score(SquaredError(), gaussian(rng, 3, 2), n_jobs=wrong)


@pytest.mark.parametrize(
    ("make", "loss", "backend"),
    [
        (gaussian, SquaredError(), "threading"),
        (gaussian, SquaredError(), "loky"),
        (votes, LogLoss([1, 9, 1, 2]), "threading"),
    ],
)
def test_scores_are_the_same_to_the_last_bit(rng, make, loss, backend):
    belief, limit = make(rng), 2**18
    one = score(loss, belief, memory_limit=limit, n_jobs=1)
    with parallel_config(backend=backend, n_jobs=2):
        many = score(loss, belief, memory_limit=limit)
    assert many.tobytes() == one.tobytes() == score(loss, belief, memory_limit=limit, n_jobs=3).tobytes()
    np.testing.assert_allclose(one, score(loss, belief), rtol=1e-9)


def test_the_limit_holds_for_all_workers_together(rng):
    belief, limit = gaussian(rng, 20_000, 200), 2**23
    tracemalloc.start()
    score(SquaredError(), belief, memory_limit=limit, n_jobs=8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * limit


HERE = os.getpid()


def killed(here, dies, number):
    """A square; the worker that is given a number of `dies` is killed, this process is not."""
    if os.getpid() != here and number in dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.sqrt(number) ** 3 + number


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
@pytest.mark.parametrize("dies", [(0,), (9,), range(10)])
def test_a_killed_worker_is_stood_in_for_with_the_same_result(dies):
    with parallel_config(backend="loky"), pytest.warns(RuntimeWarning, match="a worker process was ended"):
        found = list(in_parts(killed, ((HERE, dies, number) for number in range(10)), 2))
    assert found == [killed(HERE, dies, number) for number in range(10)]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_all_parts_are_done_here_where_a_worker_is_killed():
    with pytest.warns(RuntimeWarning, match="a worker process was ended"):
        found = all_parts(killed, lambda: ((HERE, (3,), number) for number in range(6)), 2)
    assert found == [killed(HERE, (), number) for number in range(6)]


FIRST_USE = """
import numpy as np
from numba.core import event
from stakes import LogLoss, VoteEnsemble, score
from stakes._utils.compute import is_compiling

class Seen(event.Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        print(function.__module__, function.__qualname__, is_compiling())

    def on_end(self, event):
        pass

event.register("numba:compile", Seen())
votes = np.random.default_rng(0).integers(3, size=(400, 100))
assert not is_compiling()
score(LogLoss([1.0, 2.0, 3.0]), VoteEnsemble(votes[:200], votes[200:], 3))
assert not is_compiling()
"""


@pytest.mark.skipif(not has_jit(), reason="numba is not installed")
def test_loops_are_compiled_once_and_without_the_text_of_errors(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run():
        command = [sys.executable, "-c", FIRST_USE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return [line.rsplit(" ", 1) for line in done.stdout.splitlines()]

    first = run()
    assert "stakes.acquisition.votes entropies" in [name for name, _ in first]
    assert {says for name, says in first if not name.startswith("stakes.")} <= {"True"}  # within a loop of ours
    assert not [name for name, _ in first if "unicode" in name]  # a message on shapes takes longer than the loop
    assert run() == []  # kept on the disk


def test_nothing_is_compiled_where_nothing_is_called():
    assert not is_compiling()
