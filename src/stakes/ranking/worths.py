"""What each row of a pool is worth, in blocks of rows, and in which order that puts them.

Sizes: N rows, M contexts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from stakes._array import log_of, slices
from stakes.acquisition import fallback_scores, find_form, score
from stakes.acquisition.fallback import VARIANCE, worth_floor
from stakes.models.tables import Host, on_host
from stakes.ranking.question import LUCK, Question, generator

_TIE = 1e-9  # relative: scores nearer than this are equal
WORTH = "worth"
_AGREED = (
    "All members of the model say the same at every context: no label is worth anything, and the seed puts rows in an "
    "order (cold_start spreads them over the pool)."
)


def log_scores(question: Question, chunk: int) -> tuple[Host, str, list[str]]:
    """[N]: the log of what each row is ranked by, what that is, and in sentences how it was computed."""
    logs, forms, floor = [], set(), -math.inf
    for part in slices(question.size, chunk):
        question.progress("scoring rows", part.start / question.size)
        belief = question.belief(part)
        relative, log_scale = score(question.loss, belief, question.weights, return_log_scale=True)
        logs.append(log_of(on_host(relative).astype(float)) + log_scale)
        forms.add(f"{find_form(question.loss, belief).name}, under {type(belief).__name__}")
        floor = worth_floor(question.loss, belief, question.weights) if part.start == 0 else floor
    worths = np.concatenate(logs)
    said = [f"Computed by: {'; '.join(sorted(forms))}."]
    if worths.max() > floor:
        return worths, WORTH, said
    if floor == math.inf:
        return np.full_like(worths, -math.inf), VARIANCE, [*said, _AGREED]
    stand_ins, ranked_by = _fallback(question, chunk)
    return stand_ins, ranked_by, [*said, f"No single label is worth anything; rows are ranked by {ranked_by}."]


def ordered(logs: Host, seed: int) -> Iterator[tuple[int, int]]:
    """Positions from best to worst, each with how many others are as good; the seed orders those."""
    luck = generator(seed, LUCK).permutation(len(logs))
    best = np.argsort(-logs, kind="stable")
    rising, start = -logs[best], 0
    while start < len(logs):
        end = int(np.searchsorted(rising, rising[start] + _TIE, side="right"))
        equals = best[start:end]
        for position in equals[np.argsort(luck[equals])]:
            yield int(position), end - start - 1
        start = end


def _fallback(question: Question, chunk: int) -> tuple[Host, str]:
    """[N] logs of the fallback that any block needs first: rows of other blocks have nothing by that measure."""
    parts = []
    for part in slices(question.size, chunk):
        scores, ranked_by = fallback_scores(question.loss, question.belief(part), question.weights)
        parts.append((log_of(on_host(scores).astype(float)), ranked_by))
    chosen = min((ranked_by for _, ranked_by in parts), key=_labels_needed)
    return np.concatenate([logs if by == chosen else np.full_like(logs, -np.inf) for logs, by in parts]), chosen


def _labels_needed(ranked_by: str) -> float:
    """8 for "worth of 8 such labels"; infinite for variance reduction."""
    found = re.search(r"\d+", ranked_by)
    return math.inf if ranked_by == VARIANCE or found is None else float(found[0])
