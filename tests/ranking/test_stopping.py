"""When to stop: by hand, and at the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes.ranking.stopping import Amount, Offer, advised


def purchase(count=100, budget=None):
    return {"costs": np.ones(count), "budget": budget}


def offers(worths, errors=None, decisions=1.0):
    errors = errors or [0.0] * len(worths)
    return tuple(Offer(b, w, e, float(b), decisions) for b, (w, e) in enumerate(zip(worths, errors, strict=True), 1))


@pytest.mark.parametrize(
    ("worths", "errors", "most", "bought", "verdict", "words"),
    [
        ([0.0, 0.0, 5.0], None, 9.0, purchase(), "go on", "the next 3 labels save 5"),  # one or two are worth nothing
        ([0.5, 1.0], None, 2.9, purchase(), "stop", "can save 2.9 at most, and 3 labels cost 3"),
        ([0.5, 1.0], None, 9.0, purchase(budget=2.5), "stop", "allows no more"),
        ([0.5, 1.0], None, 9.0, purchase(count=2), "stop", "allows no more"),
        ([0.5, 1.0], None, 9.0, purchase(), "too close to call", "more might: all that could be learned is worth 9"),
        (
            [1.2, 1.5],
            [0.2, 0.2],
            9.0,
            purchase(),
            "too close to call",
            "saves 1.2 (± 0.4) over 1 decisions",
        ),
        ([0.9, 1.0], [0.2, 0.2], 1.1, purchase(), "too close to call", "saves 0.9"),
        ([], None, 9.0, purchase(), "stop", "covers no label"),
    ],
)
def test_stopping_needs_that_no_batch_pays(worths, errors, most, bought, verdict, words):
    found, sentences = advised(offers(worths, errors), Amount(most, 0.0), decisions=1.0, **bought)
    assert found == verdict
    assert words in sentences[0]


@given(
    st.lists(st.floats(0, 3), min_size=1, max_size=6),
    st.floats(0, 20),
    st.floats(0.1, 10),
    st.none() | st.floats(0.5, 20),
)
def test_it_never_stops_where_a_batch_pays_or_might(gains, extra, decisions, budget):
    worths = np.cumsum(gains).tolist()
    most = worths[-1] + extra
    verdict, _ = advised(
        offers(worths, None, decisions), Amount(most, 0.0), decisions=decisions, **purchase(budget=budget)
    )
    pays = any(decisions * worth > size for size, worth in enumerate(worths, 1))
    assert (verdict == "go on") == pays
    if verdict == "stop":
        larger = len(worths) + 1
        assert larger >= decisions * most or (budget is not None and larger > budget)
