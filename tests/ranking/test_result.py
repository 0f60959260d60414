"""A ranking outlives the process: it comes back from JSON as it was. Notes are data, and sentences when shown."""

import html
import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import BayesianRidge

from stakes import LogLoss, SquaredError, cold_start, rank
from stakes._utils.text import number
from stakes.ranking import Note, Ranking
from stakes.ranking.result import _SENTENCES

X = np.random.default_rng(0).normal(size=(40, 3))


def numbers(**more):
    return rank(BayesianRidge().fit(X[:10], X[:10, 0]), SquaredError(), X[10:], n=3, **more)


def classes():
    forest = RandomForestClassifier(20, random_state=0).fit(X[:20], np.where(X[:20, 0] > 0, "yes", "no"))
    return rank(forest, LogLoss(), X[20:], n=3)


@pytest.mark.parametrize("make", [numbers, classes, lambda: numbers(costs=np.arange(1.0, 31.0), budget=9.0)])
def test_a_ranking_comes_back_from_json(make):
    ranking = make()
    kept = json.loads(json.dumps(ranking.to_dict(), allow_nan=False))
    again = Ranking.from_dict(kept)
    assert again.to_dict() == kept
    assert [str(note) for note in again.notes] == [str(note) for note in ranking.notes]
    assert str(again) == str(ranking)


def test_an_infinite_score_comes_back_as_nan():
    ranking = cold_start(X, n=2)
    again = Ranking.from_dict(ranking.to_dict())
    assert np.isnan(again.scores[0])
    assert replace(again, scores=ranking.scores).row_ids == ranking.row_ids


NOTES = {
    "given contexts": {"count": 3, "weighted": True},
    "pool as contexts": {"size": 3, "weighted": False},
    "drawn contexts": {"count": 3, "size": 9, "seed": 0, "weighted": False},
    "target": {"target": "latent"},
    "forms": {"names": ["a closed form", "another"]},
    "per cost": {},
    "log scale": {"log_scale": 812.5},
    "out of range": {"error": "too large."},
    "fallback": {"ranked_by": "worth of 8 such labels", "labels": 8},
    "members agree": {},
    "ties": {"count": 2, "seed": 0},
    "screened rows": {"count": 5, "size": 50},
    "screened by variance": {"count": 5, "size": 50},
    "scored rows": {"count": 5, "size": 50, "seed": 0},
    "summarised members": {},
    "copies": {"count": 40, "size": 50},
    "chosen copies": {"count": 1, "joint": True},
    "shortlist": {"count": 5, "size": 50},
    "pending": {"count": 2},
    "joint worth": {"count": 4, "worth": 0.25, "method": "exact"},
    "joint worth of members": {"count": 4, "worth": 0.25, "method": "enumerated", "members": 20},
    "sampling error": {"error": 0.01},
    "fallback picks": {"count": 2, "ranked_by": ["variance reduction"]},
    "contexts of single labels": {},
    "members": {"count": 20},
    "left out": {"count": 20, "size": 8, "joint": 0.4, "used": 2},
    "learning curve": {"count": 20, "labels": 30, "size": 8, "joint": 0.4, "worth": 0.1},
    "a fifth more": {"share": 1.2},
    "promises kept": {"share": 0.5, "error": 0.1, "rounds": 3},
    "too few rows": {"n": 9, "size": 3, "pending": 1},
    "budget": {"budget": 3.0, "count": 2, "n": 9},
    "cold start": {"seed": 0, "known": None},
    "drawn rows": {"count": 3, "size": 9, "seed": 0},
}


def test_every_kind_of_note_has_an_example_here():
    assert set(NOTES) == set(_SENTENCES)


@pytest.mark.parametrize("kind", NOTES)
def test_a_note_is_data_and_a_sentence(kind):
    sentence = str(Note(kind, NOTES[kind]))
    assert sentence[0].isupper() or sentence[0].isdigit()
    assert sentence.endswith(".")
    for value in NOTES[kind].values():
        if isinstance(value, int) and not isinstance(value, bool) and value > 1 and kind != "fallback":
            assert str(value) in sentence


def test_free_text_is_a_note_of_any_other_kind():
    assert str(Note("model report", {"text": "Gaps were filled."})) == "Gaps were filled."


def test_a_notebook_shows_what_print_says():
    for ranking in (numbers(), classes(), numbers(costs=np.arange(1.0, 31.0)), cold_start(X, n=2)):
        shown = ranking._repr_html_()
        ElementTree.fromstring(shown)
        sentences = [str(reason) for reason in ranking.reasons] + [str(note) for note in ranking.notes]
        for each in [*sentences, *(number(score) for score in ranking.scores)]:
            assert html.escape(each) in shown
            assert each in str(ranking)
    assert "width:100%" in numbers()._repr_html_()  # the bar of the best row
