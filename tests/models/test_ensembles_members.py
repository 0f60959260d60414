"""Ensembles of classifiers as beliefs: they say what the model says, class by class, whatever the labels are."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_blobs
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from stakes import CategoricalEnsemble, CostMatrix, LogLoss, VoteEnsemble, score
from stakes.models import Bootstrap, EnsembleOf, belief_of
from stakes.testing import check_belief

NAMES = np.array(["ant", "bee", "cicada"])
INPUTS, CODES = make_blobs(n_samples=100, centers=3, cluster_std=3.0, random_state=0)
LABELS = NAMES[CODES]
TRAIN, POOL, CONTEXTS = slice(0, 40), slice(40, 60), slice(60, 100)

MODELS = {
    "forest": RandomForestClassifier(15, random_state=0),
    "forest of impure leaves": RandomForestClassifier(15, min_samples_leaf=4, random_state=0),
    "forest with class weights": RandomForestClassifier(15, class_weight={"ant": 0.3, "bee": 1.7}, random_state=0),
    "extra trees": ExtraTreesClassifier(15, random_state=0),
    "bagged trees": BaggingClassifier(n_estimators=10, random_state=0),
    "bagging on some features": BaggingClassifier(GaussianNB(), 10, max_features=1, random_state=0),
    "bagging without probabilities": BaggingClassifier(RidgeClassifier(), 10, random_state=0),
    "bagging of few rows": BaggingClassifier(KNeighborsClassifier(1), 10, max_samples=3, random_state=1),
    "soft voting": VotingClassifier(
        [("a", LogisticRegression()), ("b", "drop"), ("c", GaussianNB())], voting="soft", weights=[3, 5, 1]
    ),
    "bootstrap": Bootstrap(LogisticRegression(), 5, random_state=0),
    "bootstrapped trees": Bootstrap(DecisionTreeClassifier(), 5, random_state=0),
    "one member": RandomForestClassifier(1, random_state=0),
}


def fitted(name):
    return MODELS[name].fit(INPUTS[TRAIN], LABELS[TRAIN])


def probabilities(belief):
    """[N, C], [M, C]: the members' mean."""
    belief = belief.as_probabilities() if isinstance(belief, VoteEnsemble) else belief
    weights = belief.member_weights[:, None]
    return np.sum(weights * belief.candidates, axis=1), np.sum(weights * belief.contexts, axis=1)


@pytest.mark.parametrize("name", MODELS)
def test_members_average_to_what_the_model_says(name):
    model = fitted(name)
    belief = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS])
    for rows, averaged in zip((POOL, CONTEXTS), probabilities(belief), strict=True):
        np.testing.assert_allclose(averaged, model.predict_proba(INPUTS[rows]), rtol=0, atol=1e-12)
    check_belief(belief)


@pytest.mark.parametrize("name", MODELS)
def test_classes_that_no_label_has_had_keep_their_columns(name):
    model = fitted(name)
    belief = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS], classes=["wasp", "cicada", "bee", "moth", "ant"])
    averaged = probabilities(belief)[1]
    np.testing.assert_allclose(averaged[:, [4, 2, 1]], model.predict_proba(INPUTS[CONTEXTS]), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(averaged[:, [0, 3]], 0.0)
    assert score(CostMatrix(1.0 - np.eye(5)), belief).shape == (20,)


@pytest.mark.parametrize("name", ["forest", "extra trees", "bagged trees", "bagging without probabilities"])
def test_pure_members_vote(name):
    assert isinstance(belief_of(fitted(name), INPUTS[POOL], INPUTS[CONTEXTS]), VoteEnsemble)


def test_votes_are_decided_by_leaves_and_score_as_probabilities_do():
    forest = fitted("forest")
    members = EnsembleOf(lambda rows: np.stack([tree.predict_proba(rows) for tree in forest.estimators_]))
    votes, written = (belief_of(each, INPUTS[POOL], INPUTS[CONTEXTS]) for each in (forest, members))
    assert isinstance(written, VoteEnsemble)  # every row is pure, though nothing is known of leaves
    np.testing.assert_allclose(score(LogLoss(), votes), score(LogLoss(), written), rtol=1e-12)
    impure = fitted("forest of impure leaves")
    assert isinstance(belief_of(impure, INPUTS[POOL], INPUTS[CONTEXTS]), CategoricalEnsemble)


def test_equal_rows_with_different_labels_are_not_votes():
    twice, labels = np.repeat(INPUTS[:20], 2, axis=0), np.resize(["ant", "bee"], 40)
    forest = RandomForestClassifier(10, random_state=0).fit(twice, labels)
    belief = belief_of(forest, INPUTS[POOL], twice)
    assert isinstance(belief, CategoricalEnsemble)
    np.testing.assert_allclose(probabilities(belief)[1], forest.predict_proba(twice), atol=1e-12)
    check_belief(belief)


def test_members_keep_their_order():
    model = fitted("bagging on some features")
    belief = belief_of(model, INPUTS[POOL], INPUTS[POOL])
    np.testing.assert_array_equal(belief.candidates, belief.contexts)
    for k, (member, features) in enumerate(zip(model.estimators_, model.estimators_features_, strict=True)):
        np.testing.assert_array_equal(belief.candidates[:, k], member.predict_proba(INPUTS[POOL][:, features]))


def test_hard_voting_counts_answers():
    named = [("a", LogisticRegression()), ("b", GaussianNB()), ("c", DecisionTreeClassifier(max_depth=2))]
    model = VotingClassifier(named, weights=[1.0, 2.0, 4.0]).fit(INPUTS[TRAIN], LABELS[TRAIN])
    belief = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS])
    assert isinstance(belief, VoteEnsemble)
    np.testing.assert_allclose(belief.member_weights, np.array([1.0, 2.0, 4.0]) / 7.0)
    np.testing.assert_array_equal(NAMES[np.argmax(probabilities(belief)[1], axis=1)], model.predict(INPUTS[CONTEXTS]))


def test_lists_of_estimators_need_not_know_the_same_classes():
    some = np.flatnonzero(CODES[TRAIN] > 0)
    members = (
        LogisticRegression().fit(INPUTS[TRAIN], LABELS[TRAIN]),
        GaussianNB().fit(INPUTS[some], LABELS[some]),
        make_pipeline(StandardScaler(), RidgeClassifier()).fit(INPUTS[TRAIN], LABELS[TRAIN]),
    )
    for model in (members, list(members), EnsembleOf(members)):
        belief = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS])
        np.testing.assert_array_equal(belief.candidates[:, 0], members[0].predict_proba(INPUTS[POOL]))
        np.testing.assert_array_equal(belief.candidates[:, 1, 1:], members[1].predict_proba(INPUTS[POOL]))
        np.testing.assert_array_equal(belief.candidates[:, 1, 0], 0.0)
        np.testing.assert_array_equal(
            NAMES[np.argmax(belief.candidates[:, 2], axis=1)], members[2].predict(INPUTS[POOL])
        )
    weighted = belief_of(EnsembleOf(members, member_weights=[1, 1, 2]), INPUTS[POOL], INPUTS[CONTEXTS])
    np.testing.assert_allclose(weighted.member_weights, [0.25, 0.25, 0.5])


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier, BaggingClassifier])
def test_one_class_or_one_label_so_far(kind):
    for rows in (1, 4):
        model = kind(n_estimators=5, random_state=0).fit(INPUTS[:rows], np.full(rows, "bee"))
        belief = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS], classes=NAMES)
        np.testing.assert_array_equal(probabilities(belief)[1], np.tile([0.0, 1.0, 0.0], (40, 1)))
        np.testing.assert_array_equal(score(LogLoss(), belief), 0.0)
        assert probabilities(belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS]))[0].shape == (20, 1)


def test_more_classes_than_labels():
    model = RandomForestClassifier(20, random_state=0).fit(INPUTS[:4], [7, 3, 9, 1])
    belief = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS], classes=range(10))
    averaged = probabilities(belief)[1]
    np.testing.assert_allclose(averaged[:, [1, 3, 7, 9]], model.predict_proba(INPUTS[CONTEXTS]), atol=1e-12)
    np.testing.assert_array_equal(averaged[:, [0, 2, 4, 5, 6, 8]], 0.0)


@pytest.mark.parametrize("name", ["forest", "bagged trees", "bootstrap", "bagging on some features"])
def test_sparse_and_single_precision_rows(name):
    if name == "bagging on some features":  # naive Bayes takes no sparse rows
        model = BaggingClassifier(LogisticRegression(), 4, max_features=1, random_state=0)
    else:
        model = MODELS[name]
    model.fit(sparse.csr_matrix(INPUTS[TRAIN]), LABELS[TRAIN])
    belief = belief_of(model, sparse.csr_matrix(INPUTS[POOL]), sparse.csr_matrix(INPUTS[CONTEXTS]))
    dense = belief_of(model, INPUTS[POOL].astype(np.float32), INPUTS[CONTEXTS].astype(np.float32))
    np.testing.assert_allclose(probabilities(belief)[1], probabilities(dense)[1], atol=1e-6)


def test_pipelines_with_encoded_columns():
    colours = np.resize(["red", "green", "blue"], 100)
    rows = np.column_stack([INPUTS.astype(object), colours])
    encode = ColumnTransformer([("colour", OneHotEncoder(handle_unknown="ignore"), [2])], remainder=StandardScaler())
    forest = make_pipeline(encode, RandomForestClassifier(10, random_state=0)).fit(rows[TRAIN], LABELS[TRAIN])
    whole = Bootstrap(make_pipeline(encode, LogisticRegression()), 4, random_state=0).fit(rows[TRAIN], LABELS[TRAIN])
    for model in (forest, whole, EnsembleOf(forest), [forest, whole]):
        averaged = probabilities(belief_of(model, rows[POOL], rows[CONTEXTS]))[1]
        wanted = [
            each.predict_proba(rows[CONTEXTS]) for each in (model if isinstance(model, list) else [forest, whole])
        ]
        np.testing.assert_allclose(
            averaged, np.mean(wanted, axis=0) if isinstance(model, list) else wanted[model is whole]
        )


def test_searches_serve_their_best_estimator():
    search = GridSearchCV(RandomForestClassifier(5, random_state=0), {"min_samples_leaf": [1, 3]}, cv=2)
    search.fit(INPUTS[TRAIN], LABELS[TRAIN])
    for model in (search, EnsembleOf(search)):
        averaged = probabilities(belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS]))[1]
        np.testing.assert_allclose(averaged, search.predict_proba(INPUTS[CONTEXTS]), atol=1e-12)


def test_frames_with_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(INPUTS, columns=["length", "width"])
    for name in ("forest", "bagged trees", "soft voting", "bootstrap"):
        model = MODELS[name].fit(frame[TRAIN], LABELS[TRAIN])
        averaged = probabilities(belief_of(model, frame[POOL], frame[CONTEXTS]))[1]
        np.testing.assert_allclose(averaged, model.predict_proba(frame[CONTEXTS]), atol=1e-12)
        with pytest.raises(ValueError, match="feature names"):
            belief_of(model, frame[POOL].rename(columns={"width": "weight"}), frame[CONTEXTS])


@pytest.mark.parametrize("name", ["forest", "bagged trees", "soft voting", "bootstrap"])
def test_what_is_wrong_is_reported(name):
    model = fitted(name)
    with pytest.raises(ValueError, match=r"\['cicada'\] not in \['ant', 'bee'\]"):
        belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS], classes=["ant", "bee"])
    with pytest.raises(ValueError, match="each class must be given once"):
        belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS], classes=["ant", "bee", "cicada", "ant"])
    with pytest.raises(ValueError, match="no latent target"):
        belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS], target="latent")
    with pytest.raises(ValueError, match="noise_sd is for real targets"):
        belief_of(EnsembleOf(model, noise_sd=1.0), INPUTS[POOL], INPUTS[CONTEXTS])
    with pytest.raises(ValueError, match="features"):
        belief_of(model, INPUTS[POOL][:, :1], INPUTS[CONTEXTS])
    with pytest.raises(NotFittedError):
        belief_of(type(model)(**model.get_params(deep=False)), INPUTS[POOL], INPUTS[CONTEXTS])


def test_lists_that_are_no_ensemble():
    classifier = fitted("forest")
    with pytest.raises(ValueError, match="at least one fitted member"):
        belief_of([], INPUTS[POOL], INPUTS[CONTEXTS])
    with pytest.raises(TypeError, match="all be classifiers or all regressors"):
        belief_of([classifier, EnsembleRegressor()], INPUTS[POOL], INPUTS[CONTEXTS])
    with pytest.raises(TypeError, match="fitted estimators with predict; got int"):
        belief_of([1, 2], INPUTS[POOL], INPUTS[CONTEXTS])
    with pytest.raises(NotFittedError):
        belief_of([LogisticRegression()], INPUTS[POOL], INPUTS[CONTEXTS])
    two = DecisionTreeClassifier().fit(INPUTS[TRAIN], np.stack([CODES, CODES], axis=1)[TRAIN])
    with pytest.raises(ValueError, match="one output at a time"):
        belief_of([two], INPUTS[POOL], INPUTS[CONTEXTS])
    forest = RandomForestClassifier(3).fit(INPUTS[TRAIN], np.stack([CODES, CODES], axis=1)[TRAIN])
    with pytest.raises(ValueError, match="one output at a time"):
        belief_of(forest, INPUTS[POOL], INPUTS[CONTEXTS])
    odd = [GaussianNB().fit(INPUTS[:40], CODES[:40]), GaussianNB().fit(INPUTS[:40], LABELS[:40])]
    with pytest.raises(TypeError, match="cannot be ordered"):
        belief_of(odd, INPUTS[POOL], INPUTS[CONTEXTS])
    with pytest.raises(TypeError, match="LogisticRegression has no members"):
        belief_of(EnsembleOf(LogisticRegression()), INPUTS[POOL], INPUTS[CONTEXTS])


class EnsembleRegressor:
    """A regressor that scikit-learn did not make."""

    def predict(self, rows):
        return rows[:, 0]
