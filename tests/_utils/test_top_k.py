"""The best rows from scores that come in chunks: what sorting all of them would say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes._utils import top_k
from stakes._utils.arguments import tie_breakers
from stakes._utils.top_k import TopK

SCORES = st.lists(
    st.sampled_from([-np.inf, 0.0, 1.0, 1.0 + 4e-10, 1.0 + 8e-10, 1.0 + 12e-10, 2.0]) | st.floats(-3, 3), min_size=1
)


def by_sorting(logs, seed):
    """Groups from the best down, each within 1e-9 of its first, in the order of the seed."""
    order, keys, found = np.argsort(-logs, kind="stable"), tie_breakers(seed, np.arange(len(logs))), []
    while len(order):
        near = logs[order] >= logs[order[0]] - 1e-9
        group = order[near]
        found += [(int(row), float(logs[row]), len(group) - 1) for row in group[np.argsort(keys[group])]]
        order = order[~near]
    return found


@given(SCORES, st.integers(1, 12), st.integers(1, 5), st.integers(0, 3))
def test_the_first_are_those_that_sorting_puts_first(scores, chunk, most, seed):
    logs = np.asarray(scores)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_k, "_WAITING", 3)  # sort in after every few rows
        best = TopK(most, seed)
        for start in range(0, len(logs), chunk):
            best.add(start, logs[start : start + chunk])
        listed = list(best.ordered())
    assert listed[:most] == by_sorting(logs, seed)[:most]
    assert len(listed) >= min(most, len(logs))


def test_what_is_kept_does_not_grow_with_the_rows():
    best, rng = TopK(10, 0), np.random.default_rng(0)
    for start in range(0, 400_000, 5_000):
        best.add(start, np.round(rng.normal(size=5_000), 2))  # thousands of equals for each score
    assert len(list(best.ordered())) < 200
    assert len(best._rows) < 200
    assert best._waiting == []


@given(st.lists(st.integers(0, 2**40), unique=True, min_size=1), st.integers(0, 2**30))
def test_tie_breakers_are_a_row_s_own_and_no_two_have_the_same(rows, seed):
    together = tie_breakers(seed, np.asarray(rows))
    assert [int(tie_breakers(seed, np.asarray([row]))[0]) for row in rows] == together.tolist()
    assert len(set(together.tolist())) == len(rows)


def test_tie_breakers_are_spread_evenly():
    high = tie_breakers(3, np.arange(100_000)) >= 2**63
    assert abs(high.mean() - 0.5) < 0.01
    assert abs((high[1:] == high[:-1]).mean() - 0.5) < 0.01
    assert abs((high == (tie_breakers(4, np.arange(100_000)) >= 2**63)).mean() - 0.5) < 0.01


def test_parts_that_are_merged_in_any_order_are_as_one():
    """Ties within and between parts, and rows that are worth nothing, too."""
    rng = np.random.default_rng(5)
    with np.errstate(divide="ignore"):
        logs = np.log(rng.integers(0, 12, 900).astype(float))
    for k in (3, 200, 1000):
        whole = TopK(k, 1)
        whole.add(0, logs)
        for order in ([0, 1, 2], [2, 0, 1]):
            merged = TopK(k, 1)
            for part in order:
                one = TopK(k, 1)
                one.add(part * 300, logs[part * 300 : (part + 1) * 300])
                merged.merge(one)
            assert list(merged.ordered())[:k] == list(whole.ordered())[:k]
            assert merged.worst() == whole.worst()
