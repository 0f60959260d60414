"""Campaigns of the study on tables of classes with forests in compiled loops, which takes about half of the time.

A forest of the default model is grown by `experiments.labels_saved.compiled`, with other random numbers than
scikit-learn's; what it says then goes through `stakes.outlook`, as a model of the product does. Splits, contexts,
rounds and what is kept are those of `experiments.promises.rounds`.

Sizes: N rows, d columns, n labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.labels_saved.compiled import Fit, Process
from experiments.labels_saved.tables import Host, Table
from experiments.promises.rounds import ROUNDS, Bench
from stakes import CategoricalEnsemble
from stakes.beliefs import Belief
from stakes.models import register_model


@dataclass(frozen=True, eq=False)
class CompiledForest:
    """The default model for classes, fitted: a model whose rows are features [N, d]."""

    fit: Fit
    labels_: Host
    """[n]"""

    def belief(self, rows: Host, contexts: Host) -> CategoricalEnsemble:
        """That of the product."""
        return self.fit.belief_of(*(self.fit.trees.leaves(each) for each in (rows, contexts)))


def _prepare(model: CompiledForest, contexts: Any, **_: Any) -> Callable[[Any], Belief]:
    return lambda rows: model.belief(np.asarray(rows), np.asarray(contexts))


register_model(CompiledForest, _prepare)


class CompiledBench(Bench):
    """One run on a table of classes."""

    def __init__(self, table: Table, run: int) -> None:
        super().__init__(table, run)
        self._process = Process(table, self.trial, run, {}, ROUNDS[-1] - len(self.trial.initial))

    def fitted(self, rows: Sequence[int]) -> CompiledForest:
        """The default model, grown on the labels of these rows, of which the first are those of the split."""
        key = tuple(int(each) for each in rows)
        if key not in self._fits:
            assert key[: len(self.trial.initial)] == tuple(self.trial.initial.tolist())
            fit = self._process.fitted(key[len(self.trial.initial) :])
            self._fits[key] = CompiledForest(fit, self.table.y[list(key)])
        found = self._fits[key]
        assert isinstance(found, CompiledForest)
        return found
