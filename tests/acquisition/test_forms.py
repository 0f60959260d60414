"""Which computation runs, who may register one, and which pairs are refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

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
    Weight,
    expected_reduction,
    expected_regret,
    find_form,
    register,
    score,
    uncertainty,
)
from stakes.acquisition import ANY, Form
from stakes.acquisition import forms as forms_module
from stakes.beliefs import Reference
from stakes.losses import Square, WeightedBregman
from stakes.losses.domains import REAL
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
        (LogLoss(), CLASSES, "products of centred members in float64, in blocks"),
        (CostMatrix(np.eye(2)), CLASSES, "products of centred members in float64, in blocks"),
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


class OwnNormal:
    """A Gaussian belief of one's own: what `stakes.Belief` asks for, and nothing by logarithms."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name not in ("n_candidates", "n_contexts", "domain", "like", "n_cells", "reference", "moments"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def split_moments(self, integrand, reference):
        return self.inner.split_moments(integrand, reference)

    def take(self, candidates, contexts):
        return OwnNormal(self.inner.take(candidates, contexts))


class OwnGrid:
    """The same as users write it: label and target N(0, 1) on a grid of 9 standard deviations, no scale taken out."""

    n_candidates = n_contexts = 1
    domain, like = REAL, np.zeros(1)

    def __init__(self, rho=0.5):
        u = np.linspace(-9.0, 9.0, 181)
        share = np.exp(-0.5 * u * u) / np.sum(np.exp(-0.5 * u * u))
        self.z, self.share = rho**0.5 * u[:, None] + (1.0 - rho) ** 0.5 * u, share[:, None] * share

    def take(self, candidates, contexts):
        return self

    def n_cells(self, integrand):
        return len(self.z)

    def reference(self, integrand):
        return Reference(np.zeros(1), np.zeros(1))

    def split_moments(self, integrand, reference):
        return np.sum(self.share[..., None] * integrand.statistics(self.z, reference.point[:, None]), axis=1)[
            None, None
        ]

    def moments(self, integrand, reference):
        return self.split_moments(integrand, reference)[0].sum(axis=1)


def linex_on_a_grid(own, alpha):
    """h = log E[exp(-alpha z)] + alpha E[z], and by how much the label lowers it; by logarithms."""
    log_share = np.log(own.share)
    today = logsumexp(log_share - alpha * own.z) + alpha * np.sum(own.share * own.z)
    label = own.share.sum(axis=1)
    each = logsumexp(log_share - alpha * own.z, axis=1) - np.log(label)
    left = np.sum(label * each) + alpha * np.sum(own.share * own.z)
    return today, today - left


@pytest.mark.parametrize("alpha", [1.0, 3.0, 10.0, 20.0, 25.0, 28.0, 32.0, 60.0, 100.0])
@pytest.mark.parametrize("own", [OwnNormal(gaussian_pair([0.0], [1.0], [0.5])), OwnGrid()])
@pytest.mark.parametrize("of", [uncertainty, expected_regret, score])
def test_a_belief_of_ones_own_that_leaves_the_range_of_numbers_is_refused(own, alpha, of):
    """Where E[w] underflows and E[w T] does not, or that overflows, the regret was 0: a large worth, called none."""
    both = linex_on_a_grid(own, alpha) if isinstance(own, OwnGrid) else (alpha**2 / 2.0, alpha**2 / 4.0)
    with np.errstate(over="ignore", invalid="ignore"):
        if alpha > (20.0 if isinstance(own, OwnNormal) else 50.0):
            with pytest.raises(FloatingPointError, match=r"range of numbers|too far to integrate"):
                of(Linex(alpha), own)
        else:
            assert float(np.squeeze(of(Linex(alpha), own))) == pytest.approx(both[of is not uncertainty], rel=1e-6)


@pytest.mark.parametrize("weight", [ExponentialWeight(100.0), Weight(lambda z: np.exp(100.0 * z))])
def test_a_weight_that_a_belief_of_ones_own_cannot_hold_is_refused(weight):
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(FloatingPointError, match="range of numbers"):
        score(SquaredError(weight), OwnGrid())
