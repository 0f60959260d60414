"""Splines of what a loss makes of a Gaussian: beside the same in NumPy, and their gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("botorch")

from stakes import (  # noqa: E402
    CRPS,
    ExponentialWeight,
    FiniteActions,
    GaussianBelief,
    LogScore,
    SquaredError,
    ThresholdDecision,
    expected_reduction,
)
from stakes.beliefs import LogWarp, WarpedGaussianBelief  # noqa: E402
from stakes.integrations.botorch import MomentSplines, WorthCurves  # noqa: E402

MEAN, VARIANCE = np.array([0.0, 1.0, -0.5]), np.array([1.0, 0.5, 2.0])
RHO = np.array([1e-6, 1e-3, 0.05, 0.31, 0.77, 0.99, 1.0 - 1e-7])


def _stock(z):
    short = np.asarray(z)[..., None] - np.array([0.0, 1.0])
    return np.maximum(-short, 3.0 * short)


LOSSES = [
    (SquaredError(), 1e-6),
    (SquaredError(ExponentialWeight(1.5)), 1e-6),
    (LogScore(), 1e-6),
    (CRPS(), 1e-6),
    (ThresholdDecision(0.7, miss=5.0), 1e-6),
    (FiniteActions(_stock, breakpoints=(0.0, 1.0)), 1e-3),
]


def _pairs(under=lambda belief: belief):
    return under(GaussianBelief(MEAN, VARIANCE, np.ones(len(RHO)), np.sqrt(RHO)[:, None] * np.sqrt(VARIANCE)))


@pytest.mark.parametrize(("loss", "error"), LOSSES)
def test_curves_are_those_of_numpy(loss, error):
    count = 1 if isinstance(loss, FiniteActions) else 3
    mean, variance = (torch.as_tensor(each[:count]) for each in (MEAN, VARIANCE))
    curves = WorthCurves.of(loss, mean, variance, lambda belief: belief)
    rho = torch.as_tensor(RHO)[:, None].expand(-1, count)
    wanted = expected_reduction(loss, _pairs().take(slice(None), slice(0, count)))
    found = curves.log_reduction(rho).exp().numpy()
    np.testing.assert_allclose(found, wanted, rtol=error, atol=error * wanted.max())
    inner = torch.as_tensor(RHO[2:-1])[:, None].expand(-1, count).clone().requires_grad_()
    assert torch.autograd.gradcheck(curves.log_reduction, (inner,))


def test_curves_under_a_warp():
    def under(belief):
        return WarpedGaussianBelief(belief, LogWarp())

    curves = WorthCurves.of(SquaredError(), torch.as_tensor(MEAN), torch.as_tensor(VARIANCE), under)
    wanted = expected_reduction(SquaredError(), _pairs(under))
    np.testing.assert_allclose(
        curves.log_reduction(torch.as_tensor(RHO)[:, None].expand(-1, 3)).exp(), wanted, rtol=1e-5
    )


def test_nothing_is_learned_of_a_target_that_is_known():
    curves = WorthCurves.of(SquaredError(), torch.zeros(2), torch.tensor([0.0, 1.0]), lambda belief: belief)
    found = curves.log_reduction(torch.tensor([[0.0, 0.5]], dtype=torch.double)).exp()
    np.testing.assert_allclose(found, [[0.0, 0.5]], atol=1e-12, rtol=1e-6)


@pytest.mark.parametrize(
    "loss", [SquaredError(), SquaredError(ExponentialWeight(1.0)), ThresholdDecision(0.7, miss=5.0)]
)
def test_moments_are_those_of_numpy_with_their_gradients(loss):
    moments = MomentSplines.of(loss, torch.as_tensor(MEAN)[None], 1.5, 0.4)
    point, log_scale = float(moments.reference.point[0]), float(moments.reference.log_scale[0])
    mean, variance = np.array([0.3, -1.7, 2.2, 0.71]), np.array([1.0, 0.17, 0.3, 2.2])
    belief = GaussianBelief(mean, variance, np.ones(0), np.ones((0, 4)))
    wanted = belief.moments(loss, type(moments.reference)(np.full(4, point), np.full(4, log_scale)))
    given = [torch.as_tensor(each).requires_grad_() for each in (mean, variance)]
    np.testing.assert_allclose(moments(*given).detach(), wanted, rtol=1e-4, atol=1e-4)
    assert torch.autograd.gradcheck(moments, given)
