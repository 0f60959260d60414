"""Weights in training are found wherever they are."""

import pytest
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes.models import Bootstrap, EnsembleOf
from stakes.models.inspection import trained_weights

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
