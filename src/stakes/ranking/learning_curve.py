"""What labels are promised to save, and how far that is to be trusted: the model's word held against learning curves.

A model that is wrong in a way that it does not know of is wrong about what labels are worth, too. With labels the mean
loss of models falls towards what cannot be learned, about as L + c / n, whatever they believe; so b labels beside n are
expected to save

    curve = rate * today * b / (n + b),           rate: the share of today's expected loss that labels can save at all.

Where the model is known by members (trees, networks, copies), a few labels tell which *member* is right, and joint
worths promise the loss of certainty; worths with the truth left out say less, but too few members are left to act on
after some labels. A promise is halfway between these and the curve, and never above what the labels would save if one
of the members were right. A Gaussian belief says how fast it learns, and is taken at its word.

The standard error of a promise covers contexts, sampling and members as before, and the model: a share of the promise
(the spread), which is how far what came lay from what was promised, between tables and losses. A model of a few labels
cannot know this number of itself. The rates and spreads are measured, each with the table in question left out
(docs/promises.md). Sizes: n offers, of 1, 2, .. n labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stakes._utils.tables import Host

HONEST_SHARE = 0.5
"""Of what members none of which is the truth expect to save, that came."""
RATE = 0.2
"""The share of the loss that a model with members expects of itself, that labels can save."""
MEMBER_SPREAD, GAUSSIAN_SPREAD = 0.7, 0.5
"""How far off promises are, over the promise."""


class Promises(NamedTuple):
    """What 1, 2, .. n labels are promised to save for one decision."""

    worths: Host
    """[n]"""
    errors: Host
    """[n]: standard errors"""


def curve(today: float, labels: int, count: int) -> Host:
    """[n]: what 1, 2, .. n labels save by a learning curve, beside `labels` that the model has or waits for."""
    sizes = np.arange(1, count + 1)
    return np.asarray(RATE * today * sizes / (labels + sizes))


def of_members(honest: Promises | None, joint: Host, today: tuple[float, float], labels: int | None) -> Promises:
    """Promises of a model that is known by members.

    Args:
        honest: Worths where no member is the truth, with errors of members and contexts; None where not known.
        joint: [n]: worths if one of the members is right.
        today: The expected loss of a decision, and its standard error.
        labels: How many labels the model has or waits for; None where that is not known.
    """
    if labels is None:
        found = Promises(joint, np.zeros_like(joint)) if honest is None else honest
        worths, errors = HONEST_SHARE * found.worths, HONEST_SHARE * found.errors
    else:
        worths = curve(today[0], labels, len(joint))
        errors = worths * (today[1] / today[0] if today[0] > 0 else 0.0)
        if honest is not None:
            worths = (HONEST_SHARE * honest.worths + worths) / 2.0
            errors = np.hypot(HONEST_SHARE * honest.errors, errors) / 2.0
    worths = np.maximum.accumulate(np.clip(worths, 0.0, np.maximum(joint, 0.0)))
    return Promises(worths, np.hypot(errors, MEMBER_SPREAD * worths))


def of_gaussian(worths: Host, errors: Host) -> Promises:
    """Promises of a Gaussian belief, from what it expects [n] and errors of contexts and sampling [n]."""
    return Promises(worths, np.hypot(errors, GAUSSIAN_SPREAD * np.abs(worths)))
