"""Losses of classes under random ensembles, against their definition in mpmath.

Class weights and costs of any scale, members that differ, nearly agree, agree or vote, in double and single precision,
by the general route, by the form that `find_form` chooses, and by those for large ensembles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from stakes import (
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    LogLoss,
    ScoringRule,
    SphericalLoss,
    VoteEnsemble,
    ZeroOne,
    find_form,
    score,
    uncertainty,
)
from stakes.acquisition import centred
from stakes.acquisition.forms import GENERAL
from tests.torture.harness import Area

_DIGITS = 120  # what labels tell where members differ by 1e-9 is the 36th digit of what they cost
_TOLERANCE = 1e-6
_OF_POTENTIAL = 1e-10  # a function without its gradient
_OF_MOST = 1e-12  # a finite set of actions, of the most that a label can be worth

Potential = Callable[[list[Any]], Any]


def _powers(exponent: float) -> tuple[Any, Potential]:
    return lambda x: (x**exponent).sum(-1), lambda v: mp.fsum(t ** mpf(exponent) for t in v)


def _log_sums(matrix: Any) -> tuple[Any, Potential]:
    def exact(v: list[Any]) -> Any:
        rows = [mp.fsum(mpf(a) * t for a, t in zip(row, v, strict=True)) for row in matrix]
        return mp.log(mp.fsum(mp.exp(each) for each in rows))

    return lambda x: np.log(np.exp(x @ matrix.T).sum(-1)), exact


def _lengths(matrix: Any) -> tuple[Any, Potential]:
    def exact(v: list[Any]) -> Any:
        rows = [mp.fsum(mpf(a) * t for a, t in zip(row, v, strict=True)) for row in matrix]
        return mp.sqrt(1 + mp.fsum(each**2 for each in rows))

    return lambda x: np.sqrt(1.0 + ((x @ matrix.T) ** 2).sum(-1)), exact


def _loss(rng: Any, classes: int) -> tuple[Any, Any, float]:
    """A loss, its generalised entropy of masses [C] in mpmath, and the log of its scale."""
    exponent = float(rng.uniform(-300.0, 300.0)) if rng.random() < 0.7 else 0.0
    scale = 10.0**exponent
    kind = rng.choice(["log", "brier", "spherical", "rule", "costs", "zero-one"])
    if kind == "zero-one":
        return ZeroOne(), lambda mass: mp.fsum(mass) - max(mass), 0.0
    if kind == "costs":
        costs = rng.uniform(0.0, 1.0, size=(classes, int(rng.integers(1, 5)))) * scale
        exact = [[mpf(each) for each in row] for row in costs]
        return CostMatrix(costs), lambda mass: _cheapest(exact, mass), math.log(scale)
    weights = None
    if rng.random() < 0.7:
        weights = scale * 10.0 ** rng.uniform(-rng.choice([0.0, 1.0, 6.0]), 0.0, size=classes)
        weights[rng.random(classes) < 0.15] = 0.0
        weights[rng.integers(classes)] = scale
    if kind == "rule":
        matrix = rng.normal(size=(3, classes))
        function, potential = [_powers(2.5), _powers(4.0), _log_sums(matrix), _lengths(matrix)][rng.integers(4)]
        return _weighted(ScoringRule(function, weights), potential, weights, classes)
    made = {"log": LogLoss, "brier": BrierLoss, "spherical": SphericalLoss}[kind](weights)
    return _weighted(made, _POTENTIALS[kind], weights, classes)


_POTENTIALS: dict[str, Potential] = {
    "log": lambda v: mp.fsum(t * mp.log(t) for t in v if t > 0),
    "brier": lambda v: mp.fsum(t**2 for t in v),
    "spherical": lambda v: mp.sqrt(mp.fsum(t**2 for t in v)),
}


def _weighted(loss: Any, potential: Potential, weights: Any, classes: int) -> tuple[Any, Any, float]:
    exact = [mpf(1 if weights is None else float(weights[z])) for z in range(classes)]
    corner = [potential([mpf(int(z == i)) for i in range(classes)]) for z in range(classes)]

    def entropy(mass: list[Any]) -> Any:
        heavy = [w * m for w, m in zip(exact, mass, strict=True)]
        total = mp.fsum(heavy)
        if total == 0:
            return mpf(0)
        certain = mp.fsum(h * c for h, c in zip(heavy, corner, strict=True))
        return certain - total * potential([h / total for h in heavy])

    return loss, entropy, float(mp.log(max(exact)))


def _cheapest(costs: list[list[Any]], mass: list[Any]) -> Any:
    return min(mp.fsum(m * row[a] for m, row in zip(mass, costs, strict=True)) for a in range(len(costs[0])))


def _members(rng: Any, n: int, members: int, classes: int, kind: str, gap: float) -> Any:
    """[n, K, C]"""
    if kind == "votes":
        return np.eye(classes)[rng.integers(classes, size=(n, members))]
    if kind == "differ":
        table = rng.dirichlet(np.full(classes, rng.choice([0.1, 1.0, 10.0])), size=(n, members))
        table[rng.random(table.shape) < 0.1] = 0.0
        table[..., 0] += 1e-3
    else:
        logits = rng.normal(scale=2.0, size=(n, 1, classes)) + gap * rng.normal(size=(n, members, classes))
        table = np.exp(logits)
    return table / table.sum(axis=2, keepdims=True)


def _worths(entropy: Any, candidates: Any, contexts: Any, shares: Any) -> tuple[list[Any], list[Any]]:
    """[N], [M]: what each label is worth, the mean over contexts, and the entropy of each context."""
    weights = [mpf(float(each)) for each in shares]
    total = mp.fsum(weights)
    weights = [each / total for each in weights]
    here, there = ([[[mpf(float(p)) for p in row] for row in rows] for rows in side] for side in (candidates, contexts))
    classes, worths = len(there[0][0]), []
    for rows in here:
        worth = mpf(0)
        for context in there:
            joint = [
                [
                    mp.fsum(w * p[y] * q[z] for w, p, q in zip(weights, rows, context, strict=True))
                    for z in range(classes)
                ]
                for y in range(classes)
            ]
            prior = [mp.fsum(joint[y][z] for y in range(classes)) for z in range(classes)]
            worth += entropy(prior) - mp.fsum(entropy(mass) for mass in joint)
        worths.append(worth / len(there))
    today = [
        [mp.fsum(w * q[z] for w, q in zip(weights, context, strict=True)) for z in range(classes)] for context in there
    ]
    return worths, [entropy(mass) for mass in today]


def _case(number: int, folder: Path) -> None:  # noqa: ARG001 (nothing is written)
    rng = np.random.default_rng(number)
    mp.dps = _DIGITS
    classes, members = int(rng.integers(2, 6)), int(rng.choice([1, 2, 3, 7, 20]))
    kind, gap = str(rng.choice(["differ", "near", "near", "agree", "votes"])), 10.0 ** rng.uniform(-8.0, 0.0)
    sizes = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    gap = 0.0 if kind == "agree" else gap
    spread = gap if kind in ("near", "agree") else 1.0  # by how much members differ
    sides = [_members(rng, n, members, classes, kind, gap) for n in sizes]
    dtype = rng.choice([np.float64, np.float32])
    shares = rng.uniform(0.2, 1.0, size=members) if kind != "votes" and rng.random() < 0.5 else None
    belief: Any = CategoricalEnsemble(*(side.astype(dtype) for side in sides), shares)
    rounded = (np.asarray(side, dtype=float) for side in (belief.candidates, belief.contexts))
    exact_sides = [side / side.sum(axis=2, keepdims=True) for side in rounded]  # rounded, rows do not sum to one
    if kind == "votes" and rng.random() < 0.7:
        belief = VoteEnsemble(*(np.argmax(side, axis=2) for side in sides), classes)
    loss, entropy, log_scale = _loss(rng, classes)
    worths, today = _worths(entropy, *exact_sides, belief.member_weights)
    one = mp.exp(log_scale)  # the size of a large loss
    most = mp.fsum(today) / len(today)
    for name, found in _routes(loss, belief):
        slack = _slack(loss, name, members, spread, one, most)
        for each, worth in zip(found, worths, strict=True):
            wrong = abs(each - worth)
            assert wrong <= _TOLERANCE * abs(worth) + slack, (
                f"{name}: {mp.nstr(each, 10)} for {mp.nstr(worth, 10)}; {loss}, {kind} {gap:.1e}, "
                f"{np.dtype(dtype).name}, {members} members"
            )
    _check_uncertainty(loss, belief, today, one)


def _slack(loss: Any, name: str, members: int, spread: float, one: Any, most: Any) -> Any:
    """By how much a worth may be off beside its relative error."""
    # A worth is the square of what label and target have in common. Where one side differs by rounding only (1e-16), as
    # members of one vote do, or those of whose classes only one counts, it is (spread x 1e-16)^2 of a loss, and none of
    # its digits is true. Where members differ by 1e-8 on both sides it is 1e-32, and this 1e-48: nothing is hidden.
    rounding = one * (mpf(10) ** -60 + (mpf(spread) * mpf(10) ** -16) ** 2)
    if "float32" in name:
        return rounding + 2e-5 * most
    if loss.finite_actions:
        return rounding + _OF_MOST * most
    if "counts" in name:  # sums of c log c, whose rounding is cut off
        return rounding + one * 1e-13 * members
    return rounding + (_OF_POTENTIAL * one if isinstance(loss, ScoringRule) else 0)


def _routes(loss: Any, belief: Any) -> list[tuple[str, list[Any]]]:
    """What each route finds, in mpmath, as the results may be of any scale."""
    forms = [find_form(loss, belief), GENERAL]
    with pytest.MonkeyPatch.context() as patch:
        if isinstance(belief, CategoricalEnsemble):
            patch.setattr(centred, "LARGE", 0)
            forms.append(find_form(loss, belief))
            if isinstance(loss, LogLoss | BrierLoss | CostMatrix | ZeroOne) and centred.BLOCKED.serves(loss, belief):
                forms.append(centred.BLOCKED)
        found = []
        for form in dict.fromkeys(forms):
            scores, log_scale = score(loss, belief, form=form, return_log_scale=True)
            assert np.all(scores >= 0), form.name  # nor NaN
            assert np.max(scores) in (0.0, 1.0), form.name
            found.append((form.name, [mpf(float(each)) * mp.exp(log_scale) for each in scores]))
    return found


def _check_uncertainty(loss: Any, belief: Any, today: list[Any], one: Any) -> None:
    """What acting today costs, in plain numbers; or a refusal where they cannot hold it."""
    try:
        found = uncertainty(loss, belief)
    except FloatingPointError:
        largest = max(today)
        assert not 1e-305 < largest < 1e305, f"refused though it is {mp.nstr(largest, 5)}"
        return
    for each, wanted in zip(found, today, strict=True):
        slack = one * (_OF_POTENTIAL if isinstance(loss, ScoringRule) else _OF_MOST) + mpf(10) ** -307
        assert abs(mpf(float(each)) - wanted) <= _TOLERANCE * wanted + slack, (
            f"uncertainty {each} for {mp.nstr(wanted, 10)}; {loss}"
        )


AREA = Area("classes", _case, quick=25, seconds=60.0)
