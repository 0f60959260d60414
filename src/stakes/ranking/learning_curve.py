"""What labels are promised to save, and how far that is to be trusted: the model's word beside a learning curve.

A model that is wrong in a way that it does not know of is wrong about what labels are worth, too. Whatever models
believe, their mean loss falls with n labels towards what cannot be learned, about as L + c / n; so b labels beside n
save, by a learning curve,

    curve = rate * today * b / (n + b),           rate: the share of today's expected loss that labels can save at all.

Where the model is known by members (trees, networks, copies), a few labels tell which *member* is right, and joint
worths promise the loss of certainty; worths with the truth left out say less, but after a few labels too few members
are left to act on. The promise is the curve and a share of these worths, and no more than the labels would save if one
of the members were right. A Gaussian belief says itself how fast it learns: its promise is what it says.

The standard error of a promise covers contexts, sampling and members, and that the model is wrong: that part is a
share (SPREAD) of the promise, or where it is larger of what the curve says (under a Gaussian belief, of the geometric
mean of both), since a model that sees little left to learn may be wrong about that. Shares and rates are what fits 28
tables (docs/promises.md); no model can know them from a few labels. Sizes: n offers, of 1, 2, .. n labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stakes._utils.tables import Host

MEMBER_SHARE = 0.25
"""Of what members none of which is the truth expect to save."""
MEMBER_RATE, GAUSSIAN_RATE = 0.25, 1.0
"""The share of today's expected loss that labels can save in the end."""
SPREAD = 0.9
"""The standard deviation of what came about what was promised, over the promise."""


class Promises(NamedTuple):
    """What 1, 2, .. n labels are promised to save for one decision."""

    worths: Host
    """[n]"""
    errors: Host
    """[n]: standard errors"""


def curve(rate: float, today: float, labels: int | None, count: int) -> Host:
    """[n]: what 1, 2, .. n labels save by a learning curve, beside `labels` that the model has or waits for.

    0 where these are not known.
    """
    sizes = np.arange(1, count + 1)
    return np.zeros(count) if labels is None else np.asarray(rate * today * sizes / (labels + sizes))


def of_members(honest: Promises | None, joint: Host, today: float, labels: int | None) -> Promises:
    """Promises of a model that is known by members.

    Args:
        honest: Worths where no member is the truth, with errors of members and contexts; None where not known.
        joint: [n]: worths if one of the members is right.
        today: The expected loss of a decision.
        labels: How many labels the model has or waits for; None where that is not known.
    """
    said = honest or Promises(np.zeros_like(joint), np.zeros_like(joint))
    if honest is None and labels is None:
        said = Promises(joint, np.zeros_like(joint))
    beside = curve(MEMBER_RATE, today, labels, len(joint))
    worths = np.clip(MEMBER_SHARE * said.worths + beside, 0.0, np.maximum(joint, 0.0))
    return _with_model(Promises(np.maximum.accumulate(worths), MEMBER_SHARE * said.errors), beside)


def of_gaussian(expected: Promises, today: float, labels: int | None) -> Promises:
    """Promises of a Gaussian belief, from what it expects, with errors of contexts and sampling."""
    beside = curve(GAUSSIAN_RATE, today, labels, len(expected.worths))
    return _with_model(expected, np.sqrt(np.maximum(expected.worths, 0.0) * beside))


def _with_model(promises: Promises, beside: Host) -> Promises:
    """Promises whose errors include that the model is wrong, when others [n] are as likely."""
    wrong = SPREAD * np.maximum(np.abs(promises.worths), beside)
    return Promises(promises.worths, np.hypot(promises.errors, wrong))
