"""Every form that is registered, with all that stand in for it, against the general route on random inputs.

A form whose loss, weight or belief has no builder here fails: add one. Kernels of Triton run on a GPU, or
in Triton's interpreter.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from stakes import (
    CRPS,
    AbsoluteError,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    DrawsBelief,
    ExponentialLinearWeight,
    ExponentialWeight,
    FiniteActions,
    GaussianBelief,
    GaussianMixtureBelief,
    Linex,
    LogLoss,
    LogScore,
    LogWarp,
    Mahalanobis,
    NormalEnsemble,
    Pinball,
    SphericalLoss,
    SquaredError,
    ThresholdDecision,
    VectorGaussianBelief,
    VoteEnsemble,
    WarpedGaussianBelief,
    ZeroOne,
    expected_regret,
    register,
    score,
)
from stakes._utils.array import on_host
from stakes._utils.compute import has_jit
from stakes.acquisition import ANY, Form, forms
from stakes.acquisition.scores import _matrix
from stakes.losses.weights import ClassWeights

N, M, K, C, D = 5, 4, 9, 3, 2  # candidates, contexts, members, classes, coordinates


def sigmoid(z):
    return 0.2 + 1.0 / (1.0 + (-2.0 * z).exp() if hasattr(z, "exp") else 1.0 + np.exp(-2.0 * z))


def order_costs(z):
    """What it costs to order 0, 1 or 3 of what z are needed."""
    stack = z.new_tensor if hasattr(z, "new_tensor") else np.asarray
    ordered = stack([0.0, 1.0, 3.0])
    missing = z[..., None] - ordered
    return ordered + 3.0 * missing * (missing > 0)


REAL = [
    SquaredError(sigmoid),
    Linex(0.5, sigmoid),
    CRPS(sigmoid),
    FiniteActions(order_costs, (0.0, 1.0, 3.0)),
]
CLASSES = [
    LogLoss(),
    LogLoss([1, 3, 0.5]),
    BrierLoss(),
    BrierLoss([1, 2, 5]),
    SphericalLoss(),
    ZeroOne(),
    CostMatrix([[0, 1], [5, 0], [2, 2]]),
]
ROTATED = np.array([[2.0, 0.3], [0.3, 1.0]])
LOSSES = {
    (SquaredError, None): [SquaredError()],
    (SquaredError, ExponentialWeight): [SquaredError(ExponentialWeight(0.7))],
    (Linex, None): [Linex(0.8), Linex(-2.0)],
    (Linex, ExponentialWeight): [Linex(0.8, ExponentialWeight(-0.4))],
    (CRPS, None): [CRPS()],
    (CRPS, ExponentialWeight): [CRPS(ExponentialWeight(0.5))],
    (CRPS, ANY): [CRPS(), CRPS(ExponentialWeight(0.5)), CRPS(sigmoid)],
    (AbsoluteError, None): [AbsoluteError()],
    (AbsoluteError, ExponentialWeight): [AbsoluteError(ExponentialWeight(0.5))],
    (Pinball, None): [Pinball(0.9), Pinball(0.2)],
    (Pinball, ExponentialWeight): [Pinball(0.9, ExponentialWeight(-0.5))],
    (LogScore, None): [LogScore()],
    (LogScore, ExponentialWeight): [LogScore(ExponentialWeight(0.5))],
    (LogScore, ANY): [LogScore(sigmoid)],
    (ThresholdDecision, None): [ThresholdDecision(0.8, 4.0, 1.0), ThresholdDecision(1.5, 1.0, 3.0)],
    (Mahalanobis, None): [Mahalanobis(ROTATED)],
    (Mahalanobis, ExponentialLinearWeight): [Mahalanobis(ROTATED, ExponentialLinearWeight([0.3, -0.5]))],
    (LogLoss, None): [LogLoss()],
    (LogLoss, ClassWeights): [LogLoss([1, 3, 0.5]), LogLoss([1, 0, 8])],
    (LogLoss, ANY): [LogLoss(), LogLoss([1, 3, 0.5])],
    (BrierLoss, None): [BrierLoss()],
    (BrierLoss, ANY): [BrierLoss(), BrierLoss([1, 2, 5])],
    (CostMatrix, None): [CostMatrix([[0, 1], [5, 0], [2, 2]]), CostMatrix(1.0 - np.eye(3))],
    (ZeroOne, None): [ZeroOne()],
}
"""For every loss and weight that is registered, losses of exactly these types; ANY: of any weight."""
FOR_ALL = {GaussianBelief: REAL, WarpedGaussianBelief: REAL[:3], VoteEnsemble: CLASSES}
"""Losses for the beliefs that have a form for every loss."""


def gaussian(rng, convert):
    rho = rng.uniform(0.0, 0.97, (N, M)) ** 2
    variance = rng.gamma(2.0, 0.5, M)
    covariance = np.sqrt(rho * variance) * rng.choice([-1.0, 1.0], (N, M))
    return GaussianBelief(*map(convert, (rng.normal(0.5, 1.0, M), variance, np.ones(N), covariance)))


def warped(rng, convert):
    latent = gaussian(rng, convert)
    return WarpedGaussianBelief(replace(latent, mean=0.3 * latent.mean, variance=latent.variance), LogWarp())


def hypotheses(rng, convert):
    ones = [gaussian(rng, convert) for _ in range(3)]
    return GaussianMixtureBelief.from_beliefs(ones, convert(rng.normal(size=(3, N))), convert(np.arange(1.0, 4.0)))


def warped_hypotheses(rng, convert):
    latent = hypotheses(rng, convert)
    return WarpedGaussianBelief(replace(latent, mean=0.3 * latent.mean), LogWarp())


def vectors(rng, convert):
    root = rng.normal(size=(D * (N + M), 2 * D * (N + M)))
    joint = (root @ root.T / root.shape[1]).reshape(N + M, D, N + M, D)
    own = np.stack([joint[i, :, i, :] for i in range(N + M)])
    covariance = np.swapaxes(joint[:N, :, N:, :], 1, 2)
    return VectorGaussianBelief(*map(convert, (rng.normal(size=(M, D)), own[N:], own[:N], covariance)))


def soft(rng, convert):
    sides = (convert(rng.dirichlet(np.full(C, 0.6), (rows, K))) for rows in (N, M))
    return CategoricalEnsemble(*sides, convert(rng.dirichlet(np.full(K, 5.0))))


def votes(rng, convert):
    sides = (rng.integers(0, C, (rows, K)) for rows in (N, M))
    return VoteEnsemble(*map(convert, sides), C)


def normals(rng, convert):
    means = (convert(rng.normal(0.0, 1.0, (rows, K))) for rows in (N, M))
    sds = (convert(rng.uniform(0.5, 1.0, (rows, K))) for rows in (N, M))
    (a, b), (c, d) = means, sds
    return NormalEnsemble(a, c, b, d)


BELIEFS = {
    GaussianBelief: gaussian,
    GaussianMixtureBelief: hypotheses,
    WarpedGaussianBelief: warped,
    VectorGaussianBelief: vectors,
    CategoricalEnsemble: soft,
    VoteEnsemble: votes,
    NormalEnsemble: normals,
}
"""For every belief that is registered, one of that type from random numbers and what makes arrays of NumPy's."""

SINGLE, HALF = 1e-5, 3e-3
TOLERANCES = {
    "products of centred members in float32, compiled": SINGLE,
    "products of centred members in float32, in blocks": SINGLE,
    "products of centred members in float32, in compiled blocks": SINGLE,
    "fused kernel over centred members in float32": 3 * SINGLE,
    "fused kernel over centred members in float16": HALF,
    "fused kernel over counts of votes": SINGLE,
}
"""Of the largest reduction, for forms in less than double precision; others are right to 1e-6."""
KERNELS = frozenset(name for name in TOLERANCES if name.startswith("fused kernel"))
"""Forms that are kernels of Triton, in their totals: the only ones that may not run everywhere."""
FOR_LARGE = frozenset(TOLERANCES) | {"counts of packed votes", "one matrix over members for all contexts"}
"""Forms that are right for small inputs, too, but chosen for large ones only."""
SLOW = KERNELS | {"quantiles by series between those of members", "profile curve EUR_c(rho)"}
"""Forms that are tried on one draw of numbers, as they take half a second; others on two."""
COMPILED = frozenset(
    {
        "products of centred members in float32, compiled",
        "products of centred members in float32, in compiled blocks",
        "counts of packed votes",
        "normal probabilities along even labels",
        "normal probabilities along even labels, warped",
        "savings of members along even labels",
        "quantiles by series between those of members",
    }
)
"""Forms that need numba."""


def chains():
    """Every form of the table with those that stand in for it: where it is registered, and its place in the chain."""
    for key, first in forms._FORMS.items():
        if key[2] is DrawsBelief:  # an estimate, as the general route is: tests/acquisition/test_draws.py
            continue
        for place, form in enumerate(forms._with_others(first)):
            label = "-".join(getattr(part, "__name__", str(part)) for part in key)
            yield pytest.param(key, form, id=f"{label}-{place}-{form.name}")


def losses_for(key):
    loss, weight, belief = key
    builders = FOR_ALL if loss is ANY else LOSSES
    name = belief if loss is ANY else (loss, weight)
    assert name in builders, f"no loss is built for the form registered for {key}: add one to {__name__}"
    return builders[name]


def belief_for(key, form, seed):
    assert key[2] in BELIEFS, f"no belief is built for the form registered for {key}: add one to {__name__}"
    convert = np.asarray
    if form.name in KERNELS or (form.total is not None and form.total.in_logs):
        torch = pytest.importorskip("torch", reason="the form is for tensors")
        convert = partial(torch.asarray, device="cuda" if torch.cuda.is_available() else "cpu")
    build = warped_hypotheses if form.name.endswith(", warped") else BELIEFS[key[2]]
    return build(np.random.default_rng(seed), convert)


def check(loss, belief, form, shares):
    """The form's reductions and scores are those of the general route."""
    wanted = on_host(expected_regret(loss, belief))
    tolerance = TOLERANCES.get(form.name, 1e-6)
    found = on_host(_matrix(form, loss, belief, None))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * 1e-2 * wanted.max())
    always = replace(form, serves=lambda loss, belief: True)
    scores = on_host(score(loss, belief, context_weights=shares, form=always))
    np.testing.assert_allclose(scores, wanted @ shares, rtol=tolerance, atol=tolerance * 1e-1 * wanted.max())


def runs_here(form):
    """Whether what the form needs is installed."""
    if form.name in KERNELS:
        return find_spec("triton") is not None
    return has_jit() or form.name not in COMPILED


def drawn():
    """Each with the seed of its numbers."""
    for case in chains():
        for seed in range(1 if case.values[1].name in SLOW else 2):
            yield pytest.param(*case.values, seed, id=f"{case.id}-{seed}")


@pytest.mark.parametrize(("key", "form", "seed"), list(drawn()))
def test_a_form_gives_what_the_general_route_gives(key, form, seed):
    losses, belief = losses_for(key), belief_for(key, form, seed)
    shares, count = np.random.default_rng(seed + 10).dirichlet(np.ones(M)), 0
    for loss in losses:
        assert key[0] in (ANY, type(loss))
        assert key[1] in (ANY, None if loss.weight is None else type(loss.weight))
        if form.serves(loss, belief) or form.name in FOR_LARGE | COMPILED:
            count += 1
            if runs_here(form):
                check(loss, belief, form, shares)
    assert count, f"{form.name} serves none of the losses that are built for {key}: add one to {__name__}"


def test_what_does_not_run_here_is_known_by_name():
    left_out = {form.values[1].name for form in chains() if not runs_here(form.values[1])}
    assert left_out == (COMPILED if not has_jit() else set()) | (KERNELS if find_spec("triton") is None else set())
    assert {form.values[1].name for form in chains()} >= KERNELS | COMPILED | set(TOLERANCES)


def test_a_form_without_a_builder_fails(monkeypatch):
    monkeypatch.setattr(forms, "_FORMS", dict(forms._FORMS))
    form = Form("new", lambda loss, belief: (lambda block: 0.0 * block.rho, 0.0 * belief.mean))
    register(FiniteActions, None, GaussianBelief, form)
    key = (FiniteActions, None, GaussianBelief)
    assert key in [each.values[0] for each in chains()]
    with pytest.raises(AssertionError, match="no loss is built for the form registered for"):
        losses_for(key)
    with pytest.raises(AssertionError, match="no belief is built for the form registered for"):
        belief_for((FiniteActions, None, type("Own", (), {})), form, 0)


def test_a_wrong_form_is_found():
    rng, shares = np.random.default_rng(0), np.full(M, 1 / M)
    belief = gaussian(rng, np.asarray)
    right = forms.find_form(SquaredError(), belief)
    check(SquaredError(), belief, right, shares)
    wrong = replace(right, prepare=lambda loss, belief: (right.prepare(loss, belief)[0], np.full(M, 0.1)))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check(SquaredError(), belief, wrong, shares)
