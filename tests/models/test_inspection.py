"""Weights in training, and the number of labels, are found wherever they are."""

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier, VotingClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import default
from stakes.models import Bootstrap, EnsembleOf
from stakes.models.inspection import n_labels, trained_weights

BALANCED = LogisticRegression(class_weight="balanced")


@pytest.mark.parametrize(
    "model",
    [
        BALANCED,
        make_pipeline(StandardScaler(), BALANCED),
        BaggingClassifier(BALANCED),
        Bootstrap(make_pipeline(StandardScaler(), BALANCED)),
        GridSearchCV(BALANCED, {"C": [1.0]}),
        GridSearchCV(LogisticRegression(), {"class_weight": ["balanced"]}, cv=2).fit([[0], [1], [2], [3]], [0, 1] * 2),
        RandomForestClassifier(class_weight="balanced_subsample"),
        LogisticRegression(class_weight={0: 1, 1: 10}),
        LogisticRegression(class_weight={1: 10}),
        [GaussianNB(), BALANCED],
        EnsembleOf([GaussianNB(), BALANCED]),
        EnsembleOf(RandomForestClassifier(class_weight=[{0: 1, 1: 3}])),
    ],
)
def test_found(model):
    message = trained_weights(model)
    assert "class_weight=" in message
    assert "a loss trained into the model is not the loss in the acquisition" in message


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(class_weight={0: 1.0, 1: 1.0}),
        LinearRegression(),
        make_pipeline(StandardScaler(), GaussianNB()),
        [GaussianNB(), LogisticRegression()],
        EnsembleOf(lambda rows: rows),
        object(),
    ],
)
def test_nothing_to_find(model):
    assert trained_weights(model) is None


ROWS = np.random.default_rng(0).normal(size=(30, 3))
ABOVE = (ROWS[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(3),
        ExtraTreesClassifier(3),
        BaggingClassifier(LogisticRegression(), 3),
        Bootstrap(LogisticRegression(), members=3),
        make_pipeline(StandardScaler(), LogisticRegression()),
        VotingClassifier([("a", RandomForestClassifier(3)), ("b", LogisticRegression())]),
        GridSearchCV(RandomForestClassifier(3), {"max_depth": [2]}, cv=2),
        GaussianProcessRegressor(),
    ],
)
def test_labels_are_counted(model):
    fitted = model.fit(ROWS, ABOVE)
    assert n_labels(fitted) == n_labels([LogisticRegression(), fitted]) == 30


def test_labels_of_the_default_are_counted():
    assert n_labels(default(ROWS[:12], ABOVE[:12], pool=ROWS)) == 12
    assert n_labels(default(ROWS[:12], ROWS[:12, 1], pool=ROWS)) == 12


def test_labels_of_others_are_not_known():
    assert n_labels(LogisticRegression().fit(ROWS, ABOVE)) is None
    assert n_labels(object()) is None
