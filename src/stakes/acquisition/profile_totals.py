"""The profile curve of any loss under a Gaussian belief; for tensors, with sums over contexts and curves that are kept.

A pool that is larger than a device comes in chunks, all with the same loss and contexts: their curves are tabulated
once. Sizes: N candidates, M contexts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stakes._array import Array, namespace
from stakes.acquisition.curve_totals import with_totals
from stakes.acquisition.curves import Curves
from stakes.acquisition.forms import ANY, register
from stakes.acquisition.profile import Profile, curve_form, profile_curve
from stakes.beliefs import GaussianBelief


@dataclass(frozen=True, eq=False)
class _Kept:
    """A profile, and what it was made from: numbers are copies, as arrays may be written over."""

    loss: Any
    numbers: tuple[Array, ...]
    profile: Profile

    def serves(self, loss: Any, numbers: tuple[Array, ...]) -> bool:
        """Whether it is of this very loss, and of these numbers."""
        return loss is self.loss and all(map(_same, self.numbers, numbers))


_last: list[_Kept] = []  # one at most


def kept_curves(loss: Any, belief: GaussianBelief) -> tuple[Curves, Array]:
    """The curves of the contexts, as far as the candidates reach, and their log scale [M].

    The same numbers whether they are kept or made anew.
    """
    weight = loss.log_magnitudes(belief.mean)  # a function of the user's, which may have changed
    numbers = (belief.mean, belief.variance, weight)
    kept = next(iter(_last), None)
    if kept is None or not kept.serves(loss, numbers):
        copies = tuple(namespace(each).asarray(each, copy=True) for each in numbers)
        kept = _Kept(loss, copies, Profile(loss, belief))
        _last[:] = [kept]
    return kept.profile.reaching(belief), kept.profile.log_scale


def _same(one: Array, other: Array) -> bool:
    if (type(one), one.shape, one.dtype, one.device) != (type(other), other.shape, other.dtype, other.device):
        return False
    return bool(namespace(one).all(one == other))


register(ANY, ANY, GaussianBelief, with_totals(curve_form(profile_curve), kept_curves))
