"""What a ranking holds: the best rows, why each was chosen, and notes on how that was found.

Notes are data, a kind and its values: the sentence of each kind is in the table `_SENTENCES`,
and made when it is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from stakes._utils.text import counted, number
from stakes.exceptions import StakesError


def _weighted(weighted: bool) -> str:
    return "weighted as given" if weighted else "each as likely"


_TARGETS = {
    "own": "The target is what the model's own method `belief` takes it to be; `target` and `classes` were not used.",
    "latent": "The target is the latent function at a context, without the noise of a label.",
    "label": "What is to be predicted is the label of a context, with its noise.",
}

_ALLOWED_FOR = {"left out", "learning curve", "members", "a fifth more", "promises kept"}  # worths of an outlook

_SENTENCES: dict[str, Callable[..., str]] = {
    # which contexts stand for the future, and what is to be predicted there
    "given contexts": lambda count, weighted: (
        f"The {count} contexts given stand for the future, {_weighted(weighted)}."
    ),
    "pool as contexts": lambda size, weighted: (
        f"The {size} rows of the pool stand for the future contexts, {_weighted(weighted)}."
    ),
    "drawn contexts": lambda count, size, seed, weighted: (
        f"{count} of the {size} rows of the pool, drawn with random_state {seed}, stand for the future contexts, "
        f"{_weighted(weighted)}."
    ),
    "target": lambda target: _TARGETS[target],
    # how scores were computed
    "forms": lambda names: f"Computed by: {'; '.join(names)}.",
    "per cost": lambda: "Scores are for each unit of cost.",
    "log scale": lambda log_scale: f"Scores and worths are to be multiplied by exp({log_scale:.6g}).",
    "out of range": lambda error: f"What is expected at contexts is not reported in full: {error}",
    "fallback": lambda ranked_by, labels: f"No single label is worth anything; rows are ranked by {ranked_by}.",
    "members agree": lambda: (
        "All members of the model say the same at every context: no label is worth anything, and the random state puts "
        "rows in an order (cold_start spreads them over the pool)."
    ),
    "ties": lambda count, seed: (
        f"{count} of the rows chosen have equals in the pool; random_state {seed} decided between them."
    ),
    # rows of which many are left out, so that an answer comes within seconds
    "screened rows": lambda count, size: (
        f"Scored: the {count} of {size} rows that are worth most if members of the model are summarised by a normal "
        "distribution (max_rows scores more)."
    ),
    "screened by variance": lambda count, size: (
        f"Scored: the {count} of {size} rows that explain most variance at the contexts where the loss can gain most "
        "(max_rows scores more)."
    ),
    "summarised members": lambda: (
        "The members of the model are summarised by a normal distribution of their means and covariances: what each "
        "says would take minutes for this loss (max_rows, a number of rows, asks for that)."
    ),
    "scored rows": lambda count, size, seed: (
        f"Scored: {count} of the {size} rows of the pool, drawn with random_state {seed} (max_rows scores more)."
    ),
    # rows that are the same in every column
    "copies": lambda count, size: (
        f"{count} of the {size} rows of the pool are copies of others, the same in every column: where rows are ranked "
        "each by itself, a copy comes after all rows that are no copies."
    ),
    "chosen copies": lambda count, joint: (
        f"{count} of the rows chosen {'is a copy' if count == 1 else 'are copies'} of others chosen, the same in every "
        "column: "
        + (
            "as labels are noisy, another label of the same row is worth more than one of another row."
            if joint
            else "each row is ranked by itself, and copies are not left out of a pool in a file, or of too few others."
        )
    ),
    # rows that were chosen together
    "shortlist": lambda count, size: f"Looked at together: the {count} of {size} rows that are worth most alone.",
    "pending": lambda count: f"Worths come on top of {count} labels that are on their way.",
    "joint worth": lambda count, worth, method: (
        f"{_together(count)} worth {number(worth)} for one decision ({method})."
    ),
    "joint worth of members": lambda count, worth, method, members: (
        f"{_together(count)} worth {number(worth)} for one decision if one of the {members} members of the "
        f"model is right ({method}); where none is, they are worth less (outlook says how much)."
    ),
    "sampling error": lambda error: f"Joint worths are sampled: standard errors up to {number(error, 2)}.",
    "fallback picks": lambda count, ranked_by: (
        f"{count} picks had no gain to go by and are ranked by {', '.join(ranked_by)}."
    ),
    "contexts of single labels": lambda: "The contexts named for a row are those that its label alone helps most.",
    "members": lambda count: (
        f"The model is known by {count} members. Several labels tell most of them apart, and then seem to tell all "
        "there is to know: the worth of larger batches is an upper estimate."
    ),
    "left out": lambda count, size, joint, used: (
        f"The model is known by {count} members, and none of them is the truth: worths are what the others save with "
        f"the labels of each in turn. {_if_one_were_right(size, joint, used)}"
    ),
    "learning curve": lambda count, labels, size, joint, worth: (
        f"The model is known by {count} members, and none of them is the truth: worths are made of what "
        f"the others save with the labels of each in turn, and a learning curve from {counted(labels, 'label')} on. "
        f"{_if_one_were_right(size, joint, size if worth > 0 else 0)}"
    ),
    "a fifth more": lambda share: (
        f"Worths are {share:g} times what the model says: so much came of it on real tables, on average."
    ),
    "promises kept": lambda share, error, rounds: (
        f"Worths are {share:.0%} (± {2 * error:.0%}) of what the model says: in this campaign, {rounds} rounds of "
        "labels have saved that share of what they promised (report shows them)."
    ),
    # fewer rows than were asked for
    "too few rows": lambda n, size, pending: (
        f"{n} rows were asked for; the pool has {size}{f', {pending} of them pending' if pending else ''}."
    ),
    "budget": lambda budget, count, n: f"The budget of {budget:g} covers {count} of {n} rows.",
    # without a model
    "cold start": lambda seed, known: (
        "A cold start: no model, so no row has a worth. "
        + (
            f"Each row is in the middle of a group of the pool, the largest first (random_state {seed})."
            if known is None
            else f"Each row is in the middle of a group of the pool that is away from {counted(known, 'known row')}."
        )
    ),
    "drawn rows": lambda count, size, seed: (
        f"{count} of the {size} rows of the pool, drawn with random_state {seed}, are looked at."
    ),
}


def _together(count: int) -> str:
    return "The label is" if count == 1 else f"Together {count} labels are"


def _if_one_were_right(size: int, joint: float, used: int) -> str:
    """What the same labels would save if a member were the truth, and why more of them may count no more."""
    labels = counted(size, "label")
    text = f"If one of the members were, {labels} would save {number(joint)}."
    if used == 0:
        return f"{text} As it is, they save nothing: they leave too few members to act on."
    first = "the first label" if used == 1 else f"the first {used}"
    return f"{text} After {first} too few members are left to tell what more labels add." if used < size else text


class Note(NamedTuple):
    """Something that was taken for granted, approximated or left out: a kind and its values.

    `str(note)` is the sentence. A kind that is not in the table of sentences has its text as the value "text", such as
    a model's own report.

    Attributes:
        kind: Which note it is, such as "ties" or "budget".
        values: Its numbers and names, by name.

    Examples:
        >>> note = Note("ties", {"count": 2, "seed": 0})
        >>> note.values["count"]
        2
        >>> print(note)
        2 of the rows chosen have equals in the pool; random_state 0 decided between them.
        >>> print(Note("model report", {"text": "Gaps were filled by the mean."}))
        Gaps were filled by the mean.
    """

    kind: str
    values: dict[str, Any]

    def __str__(self) -> str:
        return _SENTENCES[self.kind](**self.values) if self.kind in _SENTENCES else str(self.values["text"])


@dataclass(frozen=True)
class HelpedContext:
    """One of the contexts at which a label helps most, and what the model predicts there today.

    Attributes:
        index: Its position among the contexts (in the pool, where the pool stands for them).
        row_id: Its label in a pandas index, else its position.
        share: Of the worth of the row.
        prediction: The answer with the least expected loss today: a number, a class, an action by its name (by its
            position where the loss has no names), or class probabilities; None where the answer is a whole
            distribution, or beyond the range of numbers.
        uncertainty: The expected loss of that answer; None where it is beyond the range of numbers.
        answer: The prediction as text.

    Examples:
        >>> from stakes.ranking import HelpedContext
        >>> context = HelpedContext(index=4, row_id="d", share=0.5, prediction=1.5, uncertainty=0.2, answer="1.5")
        >>> context.row_id, context.share
        ('d', 0.5)
    """

    index: int
    row_id: Any
    share: float
    prediction: Any
    uncertainty: float | None
    answer: str

    def __str__(self) -> str:
        loss = "" if self.uncertainty is None else f" at an expected loss of {number(self.uncertainty)}"
        share = f"{self.share:.0%}" if self.share >= 0.01 else "<1%"
        return f"{share} at context {self.row_id!r} (today: {self.answer}{loss})"


@dataclass(frozen=True)
class Reason:
    """Why a row was chosen.

    Attributes:
        worth: By how much its label is expected to lower the loss of one decision; times exp(log_scale) of the ranking.
            In a batch: on top of the rows before it. None in a cold start, and in an outlook of a model that is known
            by members: what one row adds to others is not its own.
        worth_per_cost: The worth for each unit of cost; None without costs.
        contexts: Up to three contexts at which its label, alone, helps most; none where it is worth nothing by itself.
        as_good: How many other rows score the same to within 1e-9, so that the random state decided; None in a batch.
        ranked_by: What it is the best in: "worth", or where no label is worth anything what stood in for it.

    Examples:
        >>> from stakes.ranking import Reason
        >>> print(Reason(worth=0.5, worth_per_cost=None, contexts=(), as_good=2, ranked_by="worth"))
        worth 0.5; 2 other rows are as good
    """

    worth: float | None
    worth_per_cost: float | None
    contexts: tuple[HelpedContext, ...]
    as_good: int | None
    ranked_by: str

    def __str__(self) -> str:
        price = "" if self.worth_per_cost is None else f", {number(self.worth_per_cost)} for each unit of cost"
        parts = [] if self.worth is None else [f"worth {number(self.worth)}{price}"]
        parts += [] if self.ranked_by == "worth" else [f"ranked by {self.ranked_by}"]
        parts += [str(context) for context in self.contexts]
        parts += [f"{self.as_good} other rows are as good"] if self.as_good else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Ranking:
    """Rows to label, best first.

    Attributes:
        indices: Positions in the pool.
        row_ids: Their labels in a pandas index, else their positions; the ids of a table that was read from a file.
        scores: What they are ranked by (`ranked_by`), for each unit of cost where `per_cost`; times exp(log_scale).
        per_cost: Whether scores are for each unit of cost.
        ranked_by: "worth", "gain" on top of the rows before it (a batch), "together" with the rows before it (an
            outlook of a model that is known by members), or what stood in for them.
        reasons: Why each row was chosen.
        notes: What was taken for granted, approximated or left out.
        log_scale: 0, unless the scores are beyond the range of numbers.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import BayesianRidge
        >>> from stakes import SquaredError, rank
        >>> X = np.linspace(-1.0, 1.0, 12)[:, None]
        >>> ranking = rank(BayesianRidge().fit(X[4:8], X[4:8, 0] ** 2), SquaredError(), X, n=2)
        >>> sorted(ranking.indices)
        [0, 11]
        >>> print(ranking.notes[0])
        The 12 rows of the pool stand for the future contexts, each as likely.
    """

    indices: tuple[int, ...]
    row_ids: tuple[Any, ...]
    scores: tuple[float, ...]
    per_cost: bool
    ranked_by: str
    reasons: tuple[Reason, ...]
    notes: tuple[Note, ...]
    log_scale: float = 0.0

    def __len__(self) -> int:
        return len(self.indices)

    def to_dict(self) -> dict[str, Any]:
        """All fields in types that JSON knows.

        Returns:
            A dict: row ids of other types as text, an infinite score as None, each note with its `kind`, `values` and
            `text`.
        """
        notes = [{"kind": note.kind, "values": plain(note.values), "text": str(note)} for note in self.notes]
        fields: dict[str, Any] = plain(asdict(self))
        return {**fields, "notes": notes}

    def to_frame(self, pool: Any = None) -> Any:
        """The rows as a pandas data frame, best first, with the row ids as its index.

        Needs pandas.

        Args:
            pool: The data frame that was ranked: its columns, and the name of its index, then come along. None: the
                columns below alone.

        Returns:
            A data frame with the columns `row` (the position), `score`, `ranked_by` and `why`, after those of the pool;
            a name that the pool has is "stakes row" and so on.

        Raises:
            ImportError: If pandas is not installed.
            StakesError: If the pool is not the one that was ranked.
            TypeError: If the pool is no data frame of pandas.

        Examples:
            >>> import pandas as pd
            >>> from sklearn.linear_model import BayesianRidge
            >>> from stakes import SquaredError, rank
            >>> table = pd.DataFrame({"x": [-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 4.0]}, index=list("abcdefg"))
            >>> model = BayesianRidge().fit(table[1:6], [-1.2, -0.4, 0.1, 0.6, 0.9])
            >>> rank(model, SquaredError(), table, n=1).to_frame(table)[["x", "row"]]
                 x  row
            g  4.0    6
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas; to_dict gives the same without") from error
        if pool is not None and not isinstance(pool, pd.DataFrame):
            raise TypeError(f"to_frame takes the data frame of pandas that was ranked; got {type(pool).__name__}")
        columns = {
            "row": list(self.indices),
            "score": list(self.scores),
            "ranked_by": [reason.ranked_by for reason in self.reasons],
            "why": [str(reason) for reason in self.reasons],
        }
        if pool is None:
            return pd.DataFrame(columns, index=pd.Index(self.row_ids))
        if max(self.indices, default=-1) >= len(pool) or list(pool.index[list(self.indices)]) != list(self.row_ids):
            raise StakesError("this is not the table that was ranked: its rows at these positions have other names")
        taken = {str(name) for name in pool.columns}
        named = {f"stakes {name}" if name in taken else name: values for name, values in columns.items()}
        return pool.iloc[list(self.indices)].assign(**named)

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Ranking:
        """A ranking as `to_dict` gave it; a score that was infinite is NaN.

        Args:
            kept: What `to_dict` gave, also by way of JSON.

        Returns:
            The ranking.
        """
        reasons = (
            Reason(**{**each, "contexts": tuple(HelpedContext(**context) for context in each["contexts"])})
            for each in kept["reasons"]
        )
        return Ranking(
            tuple(kept["indices"]),
            tuple(kept["row_ids"]),
            tuple(math.nan if score is None else score for score in kept["scores"]),
            kept["per_cost"],
            kept["ranked_by"],
            tuple(reasons),
            tuple(Note(each["kind"], each["values"]) for each in kept["notes"]),
            kept["log_scale"],
        )

    def __str__(self) -> str:
        head = ("", "row", "id", self._score_name(), "why")
        lines: list[tuple[str, ...]] = [head, *((str(place), *cells) for place, cells in enumerate(self._cells(), 1))]
        if tuple(map(str, self.indices)) == tuple(map(str, self.row_ids)):
            lines = [(*line[:2], *line[3:]) for line in lines]  # rows without names
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)]
        table = [
            " ".join([*(cell.rjust(width) for cell, width in zip(line, widths, strict=False)), " " + line[-1]])
            for line in lines
        ]
        return "\n".join([*table, *self._legend(), "", *(f"- {note}" for note in self.notes)])

    def _legend(self) -> list[str]:
        """What the numbers of the table are: the model's own figures for worths, and where contexts are counted."""
        kinds, values = {note.kind for note in self.notes}, {note.kind: note.values for note in self.notes}
        lines = []
        if self.ranked_by in ("worth", "gain") and not kinds & _ALLOWED_FOR:
            members = values.get("joint worth of members", {}).get("members")
            right = f"if one of its {members} members is right" if members else "if it is right"
            lines.append(f"{self.ranked_by}: what the model itself expects a label to save, {right}.")
            lines.append("For amounts to rely on, call outlook, which allows for a model that is wrong.")
        helped = [context for reason in self.reasons for context in reason.contexts]
        if any(str(context.index) == str(context.row_id) for context in helped):
            place = "contexts that were given" if "given contexts" in kinds else "pool"
            lines.append(f"context: a row to decide about, by its position in the {place}.")
        return lines

    def _repr_html_(self) -> str:
        from stakes._utils.notebook import bar, bullet_list, cell, folded, table  # here, as only notebooks need it

        top = max((score for score in self.scores if math.isfinite(score)), default=0.0)
        rows = [
            (str(place), index, row_id, [score, bar(value / top if top > 0 else math.nan)], why)
            for place, (value, (index, row_id, score, why)) in enumerate(
                zip(self.scores, self._cells(), strict=True), 1
            )
        ]
        notes = [folded(counted(len(self.notes), "note"), bullet_list([str(note) for note in self.notes]))]
        head = ("", "row", "id", self._score_name(), "why")
        return cell(table(head, rows, numbers=(0, 1, 2, 3)), notes if self.notes else "")

    def _score_name(self) -> str:
        return f"{self.ranked_by} per cost" if self.per_cost else self.ranked_by

    def _cells(self) -> list[tuple[str, str, str, str]]:
        rows = zip(self.indices, self.row_ids, self.scores, self.reasons, strict=True)
        return [(str(index), str(row_id), number(score), str(reason)) for index, row_id, score, reason in rows]


def plain(value: Any) -> Any:
    """In types that JSON knows: other things as text, an infinite number as None."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
