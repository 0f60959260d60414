"""BART: sampled forests are members of a joint belief."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

stochtree = pytest.importorskip("stochtree", reason="stochtree is not installed")

from stakes import CategoricalEnsemble, LogLoss, NormalEnsemble, SquaredError, rank  # noqa: E402
from stakes.exceptions import StakesError  # noqa: E402
from stakes.models import belief_of  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = np.sin(6 * X[:, 0]) + 0.1 * RNG.normal(size=60)


def sampled(y, **general):
    model = stochtree.BARTModel()
    options = {"random_seed": 1, **general}
    model.sample(X_train=X[:30], y_train=y[:30], num_gfr=5, num_mcmc=40, general_params=options)
    return model


def test_members_are_the_sampled_forests():
    model = sampled(Y)
    belief = belief_of(model, X[30:], X[:5])
    assert isinstance(belief, NormalEnsemble)
    np.testing.assert_allclose(belief.candidate_mean, model.predict(X=X[30:], terms="y_hat"))
    assert belief.context_mean.shape == (5, 40)
    assert 0.02 < float(np.median(belief.context_sd)) < 0.6  # of noise 0.1 and 30 labels, in units of the labels
    latent = belief_of(model, X[30:], X[:5], target="latent")
    np.testing.assert_allclose(latent.context_sd, 0.0)
    assert len(rank(model, SquaredError(), X[30:], n=2)) == 2


def test_a_probit_model_gives_classes():
    model = sampled(
        (Y > 0).astype(float),
        outcome_model=stochtree.OutcomeModel(outcome="binary", link="probit"),
        sample_sigma2_global=False,
    )
    belief = belief_of(model, X[30:], X[:5])
    assert isinstance(belief, CategoricalEnsemble)
    assert belief.candidates.shape == (30, 40, 2)
    assert rank(model, LogLoss(), X[30:], n=1).scores[0] > 0


def test_noise_that_is_given_and_not_sampled():
    model = sampled(Y, sample_sigma2_global=False, sigma2_init=0.25, standardize=True)
    sd = belief_of(model, X[30:], X[:5]).context_sd
    np.testing.assert_allclose(sd, 0.5 * Y[:30].std(), rtol=1e-6)  # in units of the labels, which were standardised


def test_a_model_that_was_not_sampled_is_refused():
    with pytest.raises(StakesError, match="was not sampled"):
        belief_of(stochtree.BARTModel(), X, X)


def test_a_model_of_marginal_distributions_is_refused():
    class Marginal:
        """As NGBoost's: a distribution for each row."""

        def fit(self, X, y):
            return self

        def predict(self, X):
            return X[:, 0]

        def pred_dist(self, X):
            return X

    with pytest.raises(
        TypeError, match="Marginal gives no joint belief: labels of one row say nothing of another"
    ) as refused:
        rank(Marginal(), SquaredError(), X)
    assert "labelled=(X, y)" in str(refused.value)


class Untagged(BaseEstimator):
    """As NGBoost's regressor, which does not tell scikit-learn what it is."""

    def fit(self, X, y):
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.line_.predict(X)

    def pred_dist(self, X):
        return self.predict(X)


def test_the_advice_to_those_who_have_one_works():
    assert len(rank(Untagged(), SquaredError(), X, n=3, labelled=(X[:30], Y[:30]))) == 3
