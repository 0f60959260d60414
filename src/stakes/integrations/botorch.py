"""BoTorch: candidates anywhere in a continuous space, chosen by `optimize_acqf` for what their labels save in a loss.

Under a Gaussian belief the worth of a batch at context c is EUR_c(rho), with rho the share of the variance of the
target there that all labels of the batch explain together: covariances are all that it takes, no label is fantasised,
and gradients go through them to the candidates. Under a mixture, as of a fully Bayesian model, labels also tell which
hypothesis is right: some are drawn from each hypothesis, the same for all candidates. Wants the extra `botorch`.

What a loss makes of a Gaussian is computed by `stakes` as ever, in NumPy, on even nodes, and becomes cubic splines of
tensors: their derivative is exact and continuous.

Sizes: b batches of q candidates, d features, M contexts, S hypotheses, n labels so far, J draws of labels, K nodes, D
statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.models.fully_bayesian import AbstractFullyBayesianSingleTaskGP
from botorch.models.model import Model
from botorch.utils.sampling import draw_sobol_normal_samples, draw_sobol_samples
from botorch.utils.transforms import concatenate_pending_points, t_batch_mode_transform
from linear_operator.utils.cholesky import psd_safe_cholesky
from scipy.linalg import solve_banded
from scipy.special import expit

from stakes.acquisition import expected_reduction
from stakes.acquisition.forms import check_pair
from stakes.acquisition.scores import checked_context_weights
from stakes.beliefs import Belief, GaussianBelief, GaussianMixtureBelief, LogWarp, Reference, WarpedGaussianBelief
from stakes.beliefs.base import reference_at
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, ThresholdDecision
from stakes.models import belief_of
from stakes.models.botorch import is_plain, scaling, width_of
from stakes.models.gpytorch import asking, has_default_prediction, rows_beside

__all__ = ["LossDrivenReduction"]

Tensor: TypeAlias = Any
"""One of torch."""
Covariances: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]
"""From rows [b, q, d] to the means [b, S, q] and covariances [b, S, q, q] of f there, and those with f at contexts,
[b, S, q, M]."""
_CACHED = 2**17  # numbers that are held at once: 1 MiB, near the cache
_FURTHEST, _STEP = 23.0, 0.125  # of log(rho / (1 - rho)): from 1e-10 to 1 - 1e-10; splines are then right to 1e-6 ..
_NEARER, _COARSE = 14.0, 0.5  # .. or 1e-4, where each value is an integral between the switches of several actions
_NOTHING = 80.0  # logarithms below the largest reduction: as good as none


class LossDrivenReduction(AcquisitionFunction):  # type: ignore[misc]
    """By how much the labels of q candidates together are expected to lower a loss, averaged over contexts.

    For models whose posterior of one output is Gaussian, log-normal (outcome transform `Log`) or a mixture of Gaussians
    (fully Bayesian models). Larger is better. On rows of a table it is what `stakes.rank` scores by.

    Args:
        model: A fitted BoTorch model.
        loss: What being wrong costs: any loss about one real number. Under a mixture not `CRPS`, `LogScore`,
            `AbsoluteError` and `Pinball`.
        contexts: [M, d]: where predictions or decisions will be made.
        bounds: [2, d]: in place of contexts, `n_contexts` of them are drawn evenly between these (Sobol).
        n_contexts: How many are drawn.
        context_weights: [M]: how often each context comes up.
        target: "label" for the label that will be realised at a context, noise included; "latent" for the function.
        log: Return the logarithm. `optimize_acqf` stops where gradients are below 1e-5: take it where losses are that
            small, or candidates start where labels tell next to nothing.
        X_pending: [n', d]: candidates whose labels are on their way; values are of these and the candidates together.
        n_draws: Labels of a batch drawn from each hypothesis of a mixture.
        random_state: Seeds contexts and labels that are drawn.

    Raises:
        StakesError: If arguments do not fit.
        TypeError: If the posterior is not Gaussian, or the loss not about one real number.

    Examples:
        Where to measure next, if the question is where f is above 0.8 and missing such a place is expensive:

        >>> import torch
        >>> from botorch.models import SingleTaskGP
        >>> from botorch.optim import optimize_acqf
        >>> from stakes import ThresholdDecision
        >>> from stakes.integrations.botorch import LossDrivenReduction
        >>> X = torch.linspace(0.0, 1.0, 6, dtype=torch.double)[:, None]
        >>> model = SingleTaskGP(X, torch.sin(3.0 * X))
        >>> bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> worth = LossDrivenReduction(model, ThresholdDecision(0.8, miss=5.0), bounds=bounds, log=True)
        >>> candidates, value = optimize_acqf(worth, bounds, q=2, num_restarts=4, raw_samples=32)
        >>> candidates.shape
        torch.Size([2, 1])
    """

    def __init__(
        self,
        model: Model,
        loss: AnyLoss,
        contexts: Any = None,
        *,
        bounds: Any = None,
        n_contexts: int = 128,
        context_weights: Any = None,
        target: Literal["label", "latent"] = "label",
        log: bool = False,
        X_pending: Tensor | None = None,  # noqa: N803 (BoTorch's name)
        n_draws: int = 8,
        random_state: int = 0,
    ) -> None:
        AcquisitionFunction.__init__(self, model)
        self.loss, self.log, self.n_draws, self.random_state, self.mixture = loss, log, n_draws, random_state, None
        like = next(model.parameters())
        there = rows_beside(like, _contexts(contexts, bounds, n_contexts, random_state), width_of(model))
        belief: Any = belief_of(model, there[:1], there, target=target)
        latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
        if not isinstance(latent, GaussianBelief) and not isinstance(belief, GaussianMixtureBelief):
            raise TypeError(
                f"LossDrivenReduction wants a model of one output with a Gaussian posterior or a mixture of these; a "
                f"{type(model).__name__} has a {type(belief).__name__}. `stakes.rank` chooses from a table for it."
            )
        check_pair(loss, belief)
        self.contexts = there
        self.shares = checked_context_weights(context_weights, belief).double()  # [M]
        self.covariances = _covariances(model, there, belief)
        self.set_X_pending(X_pending)
        if isinstance(latent, GaussianBelief):
            self.variance = latent.variance.double()  # [M]
            warped = latent is not belief
            under = (lambda table: WarpedGaussianBelief(table, LogWarp())) if warped else (lambda table: table)
            self.at_once = max(1, _CACHED // belief.n_contexts)
            self.curves = WorthCurves.of(loss, latent.mean, latent.variance, under)
        else:
            if isinstance(loss, DistributionLoss):
                raise TypeError(
                    f"{type(loss).__name__} needs the whole distribution of a target, which is not served under a "
                    "mixture of processes: give a model with one set of hyperparameters, or another loss, such as "
                    "SquaredError"
                )
            if not 1 <= n_draws <= 4096:
                raise StakesError(f"n_draws must be from 1 to 4096 labels of each hypothesis; got {n_draws}")
            self.mixture = belief
            smallest = belief.noise_variance.min() if target == "label" else belief.variance.min() * 0.0
            sds = (float(each.sqrt()) for each in (belief.variance.max(), smallest))
            self.moments = MomentSplines.of(loss, belief.mean, *sds)
            self.at_once = max(1, _CACHED // (n_draws * belief.n_hypotheses**2 * belief.n_contexts))

    @concatenate_pending_points  # type: ignore[untyped-decorator]
    @t_batch_mode_transform(assert_output_shape=False)  # type: ignore[untyped-decorator]
    def forward(self, X: Tensor) -> Tensor:  # noqa: N803 (BoTorch's name)
        """What the labels of each batch are worth together.

        Args:
            X: [b, q, d]: candidates.

        Returns:
            [b], in units of the loss, or its logarithm.
        """
        if X.shape[-1] != self.contexts.shape[1]:
            raise StakesError(
                f"candidates must be [b, q, d] with the {self.contexts.shape[1]} columns of contexts; got {[*X.shape]}"
            )
        if self.model.training:
            self.model.eval()
        parts = X.reshape(-1, *X.shape[-2:]).split(self.at_once)
        found = torch.cat([self._log_worth(part) for part in parts]).reshape(X.shape[:-2]).to(X.dtype)
        return found if self.log else found.exp()

    def _log_worth(self, X: Tensor) -> Tensor:  # noqa: N803
        """[b]: the log of the worth of each batch."""
        return self._gaussian(X) if self.mixture is None else self._mixture(X)

    def _gaussian(self, X: Tensor) -> Tensor:  # noqa: N803
        """[b]: the log of E_c[EUR_c(rho)]."""
        _, labels, cross = (each.double()[:, 0] for each in self.covariances(X))
        white = torch.linalg.solve_triangular(psd_safe_cholesky(labels), cross, upper=False)  # [b, q, M]
        rho = white.square().sum(dim=-2) / self.variance.clamp(min=1e-300)
        return torch.logsumexp(self.curves.log_reduction(rho) + self.shares.log(), dim=-1)

    def _mixture(self, X: Tensor) -> Tensor:  # noqa: N803
        """[b]: the log of the regret of today's answers once the labels are known, E_c E_y."""
        belief: Any = self.mixture
        loss: Any = self.loss
        mean, labels, cross = (each.double() for each in self.covariances(X))
        root = psd_safe_cholesky(labels)  # [b, S, q, q]
        white = torch.linalg.solve_triangular(root, cross, upper=False)  # [b, S, q, M]
        base, share = self._base(X)  # [J, q], [J]
        drawn = mean[:, :, None] + torch.einsum("bsqr,jr->bsjq", root, base)  # [b, S, J, q]: y under each hypothesis ..
        gaps = (drawn.flatten(1, 2)[:, None] - mean[:, :, None]).mT  # [b, S, q, S J]: .. seen from every hypothesis
        steps = torch.linalg.solve_triangular(root, gaps, upper=False).mT  # [b, S, S J, q]
        scale = root.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)  # [b, S]
        prior = belief.weights.double()
        logs = prior.log()[:, None] - scale[..., None] - 0.5 * steps.square().sum(dim=-1)  # [b, S, S J]
        left = belief.variance.double() - white.square().sum(dim=-2)  # [b, S, M]
        moved = belief.mean.double()[:, None] + steps @ white  # [b, S, S J, M]
        known = self.moments(moved, left[:, :, None])  # [b, S, S J, M, D]
        then = (logs.softmax(dim=1)[..., None, None] * known).sum(dim=1)  # [b, S J, M, D]
        with torch.no_grad():
            each = self.moments(belief.mean.double(), belief.variance.double())  # [S, M, D]
            action = loss.action((prior[:, None, None] * each).sum(dim=0))
        regret = loss.regret(then, action, self.moments.reference.point)  # [b, S J, M]
        weights = (prior[:, None] * share).flatten()  # [S J]
        worth = torch.einsum("bpm,p,m->b", regret, weights, self.shares)
        return worth.clamp(min=1e-300).log() + float(self.moments.reference.log_scale[0])

    def _base(self, X: Tensor) -> tuple[Tensor, Tensor]:  # noqa: N803
        """[J, q], [J]: labels in standard units and their probabilities, the same for all batches of one size."""
        like, q = {"dtype": torch.double, "device": X.device}, X.shape[-2]
        if q == 1:
            nodes, weights = np.polynomial.hermite_e.hermegauss(self.n_draws)
            return torch.as_tensor(nodes, **like)[:, None], torch.as_tensor(weights / weights.sum(), **like)
        drawn = draw_sobol_normal_samples(q, self.n_draws, seed=self.random_state, **like)
        return drawn, torch.full((self.n_draws,), 1.0 / self.n_draws, **like)


def _contexts(contexts: Any, bounds: Any, count: int, seed: int) -> Any:
    """[M, d]: those given, or drawn."""
    if (contexts is None) == (bounds is None):
        raise StakesError(
            "give contexts [M, d], where answers will be needed, or bounds [2, d] to draw them evenly between; got "
            + ("both" if contexts is not None else "neither")
        )
    if contexts is not None:
        return contexts
    bounds = torch.as_tensor(bounds, dtype=torch.double)
    if bounds.ndim != 2 or bounds.shape[0] != 2 or not bool((bounds[0] <= bounds[1]).all()) or count < 1:
        raise StakesError(
            f"bounds must be [2, d], lower ones first, and n_contexts at least 1; got {list(bounds.shape)} and {count}"
        )
    return draw_sobol_samples(bounds, count, 1, seed=seed)[:, 0]


def _covariances(model: Any, contexts: Tensor, belief: Any) -> Covariances:
    """From the kernel where that is all the model is made of, otherwise from its posterior."""
    several = isinstance(belief, GaussianMixtureBelief)
    made_of_kernel = type(model).forward is AbstractFullyBayesianSingleTaskGP.forward if several else is_plain(model)
    if made_of_kernel and scaling(model) is not None:
        with asking(model):
            if has_default_prediction(model):
                return _from_kernel(model, contexts, belief)
    return _from_posterior(model, contexts, several)


def _from_kernel(model: Any, contexts: Tensor, belief: Any) -> Covariances:
    """k(x, x') - v(x)' v(x') with v(x) = L^-1 k(T, x), L L' the covariance of the labels so far at rows T."""
    train, there = model.train_inputs[0], model.transform_inputs(contexts)
    before = model.likelihood(model.forward(train), [train])
    factor = psd_safe_cholesky(before.covariance_matrix)  # [S?, n, n]
    rest = torch.linalg.solve_triangular(factor, (model.train_targets - before.mean)[..., None], upper=False)
    known = torch.linalg.solve_triangular(factor, model.covar_module(train, there).to_dense(), upper=False)
    all_rows = torch.cat([train.expand(*there.shape[:-2], *train.shape[-2:]), there], dim=-2)
    offset, unit, _ = scaling(model)  # type: ignore[misc]
    latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
    noise = latent.noise_variance.reshape(-1, 1)[:, :, None] * torch.eye(1).to(factor)  # [S, 1, 1]

    def covariances(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        count, q = rows.shape[:2]
        here = model.transform_inputs(rows.flatten(0, 1))  # [S?, b q, d]
        both = model.covar_module(here, all_rows).to_dense()  # [S?, b q, n + M]
        seen = torch.linalg.solve_triangular(factor, both[..., : train.shape[-2]].mT, upper=False)  # [S?, n, b q]
        mean = model.mean_module(here) + (seen.mT @ rest)[..., 0]  # [S?, b q]
        cross = both[..., train.shape[-2] :] - seen.mT @ known  # [S?, b q, M]
        split = here.unflatten(-2, (count, q)).movedim(-3, 0)  # [b, S?, q, d]
        split = split[:, None] if factor.ndim == 3 and split.ndim == 3 else split
        seen = seen.unflatten(-1, (count, q)).movedim(-2, 0)  # [b, S?, n, q]
        own = model.covar_module(split).to_dense() - seen.mT @ seen  # [b, S?, q, q]
        mean, cross = mean.unflatten(-1, (count, q)).movedim(-2, 0), cross.unflatten(-2, (count, q)).movedim(-3, 0)
        if own.ndim == 3:
            mean, own, cross = mean[:, None], own[:, None], cross[:, None]
        labels = unit**2 * own + noise * torch.eye(q).to(own)
        return offset + unit * mean, labels, unit**2 * cross

    return covariances


def _from_posterior(model: Any, contexts: Tensor, several: bool) -> Covariances:
    """As `model.posterior` says of candidates and all contexts at once."""

    def covariances(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q = rows.shape[1]
        both = model.posterior(torch.cat([rows, contexts.expand(len(rows), -1, -1)], dim=1)).distribution
        noisy, plain = (
            model.posterior(rows, observation_noise=each).distribution.variance for each in (True, False)
        )  # [b, S?, q]
        mean, joint, noise = both.mean, both.covariance_matrix, (noisy - plain).clamp(min=0.0)
        if not several:
            mean, joint, noise = mean[:, None], joint[:, None], noise[:, None]
        return mean[..., :q], joint[..., :q, :q] + torch.diag_embed(noise), joint[..., :q, q:]

    return covariances


def _spline(values: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    """Coefficients, two more along the axis, of the cubic B-spline through values at even nodes.

    (c[i-1] + 4 c[i] + c[i+1]) / 6 = f[i], and no fourth difference at either end.
    """
    rows = np.moveaxis(values, axis, 0)
    count = len(rows) + 2
    bands = np.zeros((9, count))  # bands[4 + i - j, j] is what equation i has for c[j]
    bands[5, : count - 2], bands[4, 1 : count - 1], bands[3, 2:] = 1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0
    for k, weight in enumerate((1.0, -4.0, 6.0, -4.0, 1.0)):
        bands[4 - k, k] = bands[4 + k, count - 1 - k] = weight
    sides = np.concatenate([np.zeros_like(rows[:1]), rows, np.zeros_like(rows[:1])]).reshape(count, -1)
    found = solve_banded((4, 4), bands, sides).reshape(count, *rows.shape[1:])
    return np.moveaxis(found, 0, axis)


def _places(x: Tensor, first: float, step: float, count: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The first of the four coefficients that a cubic B-spline has at x, and the weights of the four."""
    t = (x - first) / step
    at = t.detach().floor().clamp(1, count - 3)
    s = t - at
    rest = 1.0 - s
    weights = (rest**3 / 6.0, 2.0 / 3.0 - s**2 + s**3 / 2.0, 2.0 / 3.0 - rest**2 + rest**3 / 2.0, s**3 / 6.0)
    return at.long() - 1, weights


@dataclass(frozen=True)
class WorthCurves:
    """log EUR_c as a spline in log(rho / (1 - rho)), which is even in both tails, for each of M contexts."""

    coefficients: Tensor
    """[K, M]"""
    slope: Tensor
    """[M]: below the first node, where EUR_c is a power of rho"""
    step: float
    """Between nodes"""
    furthest: float
    """The first and the last node but those beside them, from 0"""

    @classmethod
    def of(cls, loss: Any, mean: Tensor, variance: Tensor, under: Callable[[GaussianBelief], Belief]) -> WorthCurves:
        """Of targets with `mean` and `variance` [M]; `under` makes a belief about a warped target of a Gaussian one."""
        slow = loss.finite_actions and not isinstance(loss, ThresholdDecision)
        furthest, step = (_NEARER, _COARSE) if slow else (_FURTHEST, _STEP)
        nodes = np.linspace(-furthest, furthest, round(2.0 * furthest / step) + 1)
        centre, spread = (each.detach().cpu().double().numpy() for each in (mean, variance))
        share = np.sqrt(expit(nodes))[:, None] * np.sqrt(spread)
        values = np.asarray(expected_reduction(loss, under(GaussianBelief(centre, spread, np.ones(len(nodes)), share))))
        with np.errstate(divide="ignore"):
            logs = np.log(values)
        floor = (logs.max() if values.max() > 0.0 else 0.0) - _NOTHING
        logs = np.maximum(logs, floor)
        slope = (logs[1] - logs[0]) / step
        slope = np.where(logs[0] > floor, slope, 1.0)
        found = _spline(logs, 0)
        like = {"dtype": torch.double, "device": mean.device}
        return cls(torch.as_tensor(found, **like), torch.as_tensor(slope, **like), step, furthest)

    def log_reduction(self, rho: Tensor) -> Tensor:
        """[..., M]: log EUR_c(rho), for rho [..., M]."""
        rho = rho.clamp(1e-300, 1.0 - 1e-16)
        u = torch.log(rho) - torch.log1p(-rho)
        inside = u.clamp(-self.furthest, self.furthest)
        start = -self.furthest - self.step
        first, weights = _places(inside, start, self.step, len(self.coefficients))
        rows = first.reshape(-1, first.shape[-1])
        parts = [self.coefficients.gather(0, rows + k).reshape(first.shape) * each for k, each in enumerate(weights)]
        return sum(parts) + self.slope * (u - inside).clamp(max=0.0)


_SDS, _FINEST, _NARROWEST = 24, 0.25, 1e-3  # nodes of log sd; of steps, in the smallest sd; of that, in the largest
_MEANS, _MOST_MEANS = 512, 4096  # nodes of the mean, and where a loss jumps or kinks
_TAIL = 8.0  # standard deviations beyond the means


@dataclass(frozen=True)
class MomentSplines:
    """E[S(z)] for z ~ N(mean, sd^2), as a spline in the mean and log sd, of statistics about one reference."""

    coefficients: Tensor
    """[K, K', D]"""
    first: tuple[float, float]
    steps: tuple[float, float]
    reference: Reference
    log_sds: tuple[float, float]

    @classmethod
    def of(cls, loss: Any, mean: Tensor, largest_sd: float, smallest_sd: float) -> MomentSplines:
        """For means that labels may lead to from `mean` [S, M], and sds between two."""
        smallest = max(smallest_sd, _NARROWEST * largest_sd)
        low, high = (float(mean.min()) - _TAIL * largest_sd, float(mean.max()) + _TAIL * largest_sd)
        rough = bool(loss.finite_actions or loss.breakpoints)
        count = min(_MOST_MEANS, math.ceil((high - low) / (_FINEST * smallest))) if rough else _MEANS
        means = np.linspace(low, high, max(count, _MEANS))
        log_sds = math.log(smallest), math.log(1.2 * largest_sd)
        spreads = np.linspace(*log_sds, _SDS)
        centre, sd = (each.ravel() for each in np.meshgrid(means, np.exp(spreads), indexing="ij"))
        belief = GaussianBelief(centre, sd**2, np.ones(0), np.ones((0, len(centre))))
        reference = reference_at(np.full(1, float(mean.mean())), loss)
        everywhere = Reference(*(np.broadcast_to(np.asarray(each), centre.shape) for each in reference))
        found = belief.moments(loss, everywhere).reshape(len(means), len(spreads), -1)
        tensor = torch.as_tensor(_spline(_spline(found, 0), 1), dtype=torch.double, device=mean.device)
        point = torch.as_tensor(reference.point, dtype=torch.double, device=mean.device)
        kept = Reference(point, reference.log_scale)
        steps = means[1] - means[0], spreads[1] - spreads[0]
        return cls(tensor, (means[0] - steps[0], spreads[0] - steps[1]), steps, kept, log_sds)

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        """[..., D], for means [...] and variances that broadcast to them."""
        log_sd = 0.5 * torch.log(variance.clamp(min=1e-300)).clamp(*(2.0 * each for each in self.log_sds))
        return _Surface.apply(mean, log_sd, self.coefficients, self.first, self.steps)


class _Surface(torch.autograd.Function):  # type: ignore[misc]
    """A spline in two numbers, that keeps neither the nodes nor the weights of all places for its gradient."""

    @staticmethod
    def forward(context: Any, x: Tensor, y: Tensor, coefficients: Tensor, first: Any, steps: Any) -> Tensor:
        """[..., D]."""
        context.save_for_backward(x, y, coefficients)
        context.nodes = first, steps
        count, other_count, size = coefficients.shape
        row, weights = _places(x, first[0], steps[0], count)
        column, others = _places(y, first[1], steps[1], other_count)
        flat, at, total = coefficients.reshape(-1, size), row * other_count + column, 0.0
        for i, weight in enumerate(weights):
            for j, other in enumerate(others):
                total = total + (weight * other)[..., None] * flat[at + (i * other_count + j)]
        return total

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Any, ...]:
        """Of both numbers."""
        (x, y, coefficients), (first, steps) = context.saved_tensors, context.nodes
        count, other_count, size = coefficients.shape
        row, weights = _places(x, first[0], steps[0], count)
        column, others = _places(y, first[1], steps[1], other_count)
        slopes, other_slopes = _slopes(x, first[0], steps[0], count), _slopes(y, first[1], steps[1], other_count)
        flat, at = coefficients.reshape(-1, size), row * other_count + column
        by_x, by_y = torch.zeros_like(x), torch.zeros_like(x)
        for i, (weight, slope) in enumerate(zip(weights, slopes, strict=True)):
            for j, (other, other_slope) in enumerate(zip(others, other_slopes, strict=True)):
                part = (flat[at + (i * other_count + j)] * gradient).sum(dim=-1)
                by_x += slope * other * part
                by_y += weight * other_slope * part
        return by_x, by_y.sum_to_size(y.shape), None, None, None


def _slopes(x: Tensor, first: float, step: float, count: int) -> tuple[Tensor, ...]:
    """Derivatives of the weights of `_places`."""
    t = (x - first) / step
    s = t - t.floor().clamp(1, count - 3)
    rest = 1.0 - s
    slopes = (-(rest**2) / 2.0, 1.5 * s**2 - 2.0 * s, 2.0 * rest - 1.5 * rest**2, s**2 / 2.0)
    return tuple(each / step for each in slopes)
