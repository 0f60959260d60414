"""Which computation runs, who may register one, and which pairs are refused."""

from dataclasses import replace

import numpy as np
import pytest

import stakes
from stakes import (
    BoxCox,
    BregmanLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    ItakuraSaito,
    Linex,
    LogLoss,
    NormalEnsemble,
    PoissonDeviance,
    SquaredError,
    expected_reduction,
    expected_regret,
    find_form,
    register,
    score,
)
from stakes.acquisition import ANY, Form
from stakes.acquisition import forms as forms_module
from stakes.losses import Square, WeightedBregman
from tests.brute import gaussian_pair

CLASSES = CategoricalEnsemble(np.full((2, 3, 2), 0.5), np.full((2, 3, 2), 0.5))
NORMALS = NormalEnsemble(np.zeros((2, 3)), 1.0, np.zeros((2, 3)), 1.0)
GAUSSIAN = gaussian_pair([0.0, 1.0], [1.0, 2.0], [0.3, 0.6])


@pytest.mark.parametrize(
    ("loss", "belief", "name"),
    [
        (SquaredError(), GAUSSIAN, "closed form: rho v"),
        (SquaredError(ExponentialWeight(1)), GAUSSIAN, "closed form: E[w] rho v"),
        (SquaredError(lambda z: z**2), GAUSSIAN, "profile curve EUR_c(rho)"),
        (Linex(), GAUSSIAN, "closed form: alpha^2 rho v / 2"),
        (Linex(1.0, ExponentialWeight(1)), GAUSSIAN, "closed form: E[w] alpha^2 rho v / 2"),
        (BregmanLoss(Square()), GAUSSIAN, "profile curve EUR_c(rho)"),
        (SquaredError(), NORMALS, "expected regret over split moments"),
        (LogLoss(), CLASSES, "expected regret over split moments"),
        (CostMatrix(np.eye(2)), CLASSES, "expected regret over split moments"),
    ],
)
def test_find_form_tells_what_runs(loss, belief, name):
    assert find_form(loss, belief).name == name


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(forms_module, "_FORMS", dict(forms_module._FORMS))


class Halved(WeightedBregman):
    """Half of squared error, with a weight or without."""

    potential = Square()
    transform = stakes.losses.Identity()
    weight = None


def constant_form(value):
    def prepare(loss, belief):
        del loss
        return lambda block: np.full_like(block.rho, value), belief.mean * 0

    return Form(f"always {value}", prepare)


@pytest.mark.usefixtures("table")
def test_a_registered_form_runs_for_its_exact_pair_only():
    register(Halved, None, GaussianBelief, constant_form(7.0))
    assert find_form(Halved(), GAUSSIAN).name == "always 7.0"
    np.testing.assert_array_equal(expected_reduction(Halved(), GAUSSIAN), 7.0)
    np.testing.assert_allclose(score(Halved(), GAUSSIAN), 7.0)
    assert not np.any(expected_regret(Halved(), GAUSSIAN) == 7.0)
    weighted = Halved()
    weighted.weight = ExponentialWeight(1.0)
    assert find_form(weighted, GAUSSIAN).name == "profile curve EUR_c(rho)"

    class Heir(Halved):
        """A subclass is another type."""

    assert find_form(Heir(), GAUSSIAN).name == "profile curve EUR_c(rho)"
    assert find_form(Halved(), NORMALS).name == "expected regret over split moments"


@pytest.mark.usefixtures("table")
def test_a_form_for_every_loss_of_a_belief_gives_way_to_one_for_the_pair():
    register(ANY, ANY, NormalEnsemble, constant_form(3.0))
    assert find_form(Linex(), NORMALS).name == "always 3.0"
    register(Linex, None, NormalEnsemble, constant_form(4.0))
    assert find_form(Linex(), NORMALS).name == "always 4.0"
    assert find_form(SquaredError(), NORMALS).name == "always 3.0"  # whose own form is for more contexts than members


@pytest.mark.usefixtures("table")
def test_a_form_that_does_not_serve_gives_way_to_the_next():
    small, large = constant_form(1.0), constant_form(2.0)
    register(
        Halved,
        None,
        GaussianBelief,
        replace(small, serves=lambda loss, belief: belief.n_candidates > 10**6, otherwise=large),
    )
    assert find_form(Halved(), GAUSSIAN).name == "always 2.0"
    never = replace(small, serves=lambda loss, belief: False)
    register(Halved, None, NormalEnsemble, never)
    assert find_form(Halved(), NORMALS).name == "expected regret over split moments"


@pytest.mark.usefixtures("table")
def test_a_second_form_for_a_pair_is_refused():
    with pytest.raises(ValueError, match="closed form: rho v"):
        register(SquaredError, None, GaussianBelief, constant_form(0.0))


@pytest.mark.usefixtures("table")
def test_an_error_inside_a_form_stays_an_error():
    def broken(loss, belief):
        raise NotImplementedError("not hidden")

    register(Halved, None, GaussianBelief, Form("broken", broken))
    with pytest.raises(NotImplementedError, match="not hidden"):
        score(Halved(), GAUSSIAN)


@pytest.mark.parametrize("function", [find_form, expected_reduction, expected_regret, score, stakes.uncertainty])
@pytest.mark.parametrize(
    ("loss", "belief", "message"),
    [
        (SquaredError(), CLASSES, "SquaredError is for real targets.*2 classes"),
        (LogLoss(), GAUSSIAN, "LogLoss is for class targets.*GaussianBelief"),
        (LogLoss([1, 2, 3]), CLASSES, "LogLoss is for 3 classes.*2 classes.*order of the belief"),
        (CostMatrix(np.ones((4, 2))), CLASSES, "CostMatrix is for 4 classes"),
        (ItakuraSaito(), GAUSSIAN, r"ItakuraSaito needs targets in \(0, inf\).*nothing is clipped"),
        (BoxCox(0.5), NORMALS, r"BoxCox needs targets in \(0, inf\).*logarithm"),
        (PoissonDeviance(), GAUSSIAN, r"PoissonDeviance needs targets in \[0, inf\)"),
        (lambda z, a: (z - a) ** 2, GAUSSIAN, "must be a loss such as SquaredError.*adding_a_loss"),
        ("squared", GAUSSIAN, "must be a loss"),
        (SquaredError(), np.zeros((3, 2)), "must be a belief such as GaussianBelief.*ndarray"),
    ],
)
def test_pairs_that_do_not_fit_are_refused(function, loss, belief, message):
    with pytest.raises(TypeError, match=message):
        function(loss, belief)


def test_a_form_of_another_loss_is_refused():
    with pytest.raises(ValueError, match="the form 'closed form: rho v' is not meant for Linex"):
        score(Linex(2.0), GAUSSIAN, form=find_form(SquaredError(), GAUSSIAN))
    with pytest.raises(TypeError, match="form must be a Form, such as find_form and fused_form give; got str"):
        score(Linex(2.0), GAUSSIAN, form="closed")


def test_the_general_route_and_a_form_of_ones_own_may_be_chosen():
    own = Form("one's own", lambda loss, belief: (lambda block: 2.0 + block.covariance, np.zeros(2)))
    exactly, general = (score(Linex(2.0), GAUSSIAN, form=form) for form in (None, forms_module.GENERAL))
    np.testing.assert_allclose(general, exactly, rtol=1e-6)
    np.testing.assert_allclose(score(Linex(2.0), GAUSSIAN, form=own), 2.0 + GAUSSIAN.covariance.mean(1))
