"""Ask for rows, tell their labels: a campaign in one file that outlives whoever runs it.

Rows are ranked by the model as it is now, or as it last was where it cannot be fitted; the ranking, and what labels are
worth, are kept in the file beside the events. Labels that cannot be one are refused, and those that are there already
are known.
"""

from __future__ import annotations

import math
import os
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from stakes._utils.arguments import Progress, affordable, as_progress, as_texts_of
from stakes.campaign.journal import WEEK, Journal, append, damaged, kept_in
from stakes.campaign.kept import (
    MONEY,
    KeptAudit,
    annotator_factors,
    annotators_kept,
    audit_kept,
    audit_status,
    audit_to_keep,
    check_ranking_kept,
    failure_kept,
    kept_path,
    label_prices,
    money_changes,
    purchases,
    ranking_kept,
    reliability,
)
from stakes.campaign.states import (
    Event,
    Opinion,
    Record,
    Recorded,
    RowState,
    Status,
    checked_clock,
    checked_count,
    checked_id,
    checked_lease,
    checked_positive,
    checked_text,
    unknown_row,
)
from stakes.campaign.trust import refuse_untrusted, remember_trust
from stakes.exceptions import StakesError
from stakes.files import Fingerprint, changes, fingerprint, write_csv
from stakes.files.frame import cell_kind
from stakes.files.write import checked_output
from stakes.tabular import Brief, LossSpec, Worksheet, read_worksheet
from stakes.tabular.filled import read_filled_labels, write_worksheet
from stakes.tabular.worksheet import checked_class, checked_real, domain_of, loss_task, written_label

if TYPE_CHECKING:
    from stakes.campaign.promises import KeptPromise
    from stakes.evaluation import AuditedLoss
    from stakes.losses import AnyLoss
    from stakes.ranking import OpinionOffer, PromisedRound, Ranking
    from stakes.ranking.promises import Past
    from stakes.tabular.suggestions import Suggested

RANKING, FAILURE, AUDIT, PROMISE = "ranking", "failure", "audit", "promise"  # kinds of records
STALE, LEASE, NO_MORE = "stale ranking", "lease", "no more rows"  # kinds of notes on rows that are handed out
_IN_VAIN = 5  # rankings of which others took every row, after which an asker is told so
_PER_ROW = ("indices", "row_ids", "scores", "reasons")  # fields of a ranking

T = TypeVar("T")


class _Now(NamedTuple):
    """What events have come to, at one moment."""

    version: int
    states: dict[str, RowState]
    due: dict[str, float]
    """What a label of each row would cost now: nothing where it was paid for, and withdrawn."""
    spent: float
    pending: float

    def those(self, *statuses: str) -> list[str]:
        """The ids of rows in some states, in their order."""
        return [row for row, state in self.states.items() if state.status in statuses]


@dataclass(frozen=True, eq=False)
class Campaign:
    """A labelling project on disk: its rows are labelled, asked for, skipped or open.

    Any number of processes may ask and tell at once. What a call returned from is on the disk.

    Attributes:
        path: The file.
        journal: Its rows, events and records.
        trusted: Whether the classes that it names by "module:Name" may be imported, whatever was answered before.

    Examples:
        >>> import tempfile
        >>> from stakes.files import write_csv
        >>> from stakes.tabular import ModelSpec
        >>> rows = [(f"r{x}", x, 2.0 * x if x < 4 else None) for x in range(9)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["id", "x", "y"], rows)
        ...     with Campaign.create(
        ...         f"{folder}/c.stakes", f"{folder}/t.csv", "y", "squared-error", id_column="id",
        ...         model=ModelSpec("bayesian-ridge"),
        ...     ) as campaign:
        ...         asked = campaign.ask(1)
        ...         recorded = campaign.tell(asked.row_ids[0], 16.5)
        ...         status = campaign.status(refresh=False)
        >>> asked.row_ids, recorded.new, status.labelled
        (('r8',), ('r8',), 5)
    """

    path: Path
    journal: Journal
    trusted: bool = False

    @staticmethod
    def create(
        path: str | os.PathLike[str] | None, table: Any, target: str, loss: AnyLoss | LossSpec | str, **settings: Any
    ) -> Campaign:
        """Make a new campaign file for a table.

        Args:
            path: The file to make, such as prices.stakes; None for a campaign in memory, which is gone when Python
                lets go of it (until then it has a temporary folder of its own).
            table: A CSV, Parquet or Arrow file, which is not copied: keep it as it is. Or a data frame, which is
                written beside the campaign, as prices.csv; its index, unless it only counts, names the rows.
            target: The column that holds the labels so far.
            loss: A name, such as "linex", a `stakes.tabular.LossSpec`, or a loss, such as `Linex(0.5)`.
            **settings: The other fields of `stakes.tabular.Brief`: `model` (a name, a `ModelSpec` or an estimator),
                `id_column`, `budget`, `random_state`, ... Losses and estimators are kept by name and parameters.

        Returns:
            The campaign, open.

        Raises:
            StakesError: If a file is there, the table, the loss and the model do not go together, or an object cannot
                be kept by name and parameters.

        Examples:
            >>> import pandas as pd
            >>> from sklearn.linear_model import BayesianRidge
            >>> from stakes import Campaign, SquaredError
            >>> table = pd.DataFrame({"x": range(9), "y": [0.0, 2.0, 4.0, 6.0] + [None] * 5}, index=list("abcdefghi"))
            >>> with Campaign.create(None, table, "y", SquaredError(), model=BayesianRidge()) as campaign:
            ...     asked = campaign.ask(1)
            ...     recorded = campaign.tell(asked.row_ids[0], 16.5)
            >>> asked.row_ids, recorded.new
            (('i',), ('i',))
        """
        from stakes.campaign.creation import begin_campaign  # here, as most calls open a file that is there

        brief = Brief(target, loss, **settings)  # type: ignore[arg-type]
        journal = begin_campaign(None if path is None else Path(path), table, brief)
        return Campaign(journal.path if path is None else Path(path), journal, trusted=True)

    @staticmethod
    def open(
        path: str | os.PathLike[str], table: str | os.PathLike[str] | None = None, *, trust: bool = False
    ) -> Campaign:
        """Open a campaign file.

        Args:
            path: The file.
            table: Where its table is now, if it was moved.
            trust: Whether the classes that it names by "module:Name" may be imported, which runs their modules. The
                answer is remembered for this file, outside of it; a campaign that was created here is trusted.

        Returns:
            The campaign, open.

        Raises:
            StakesError: If the file is no campaign, is damaged, or the table is not the one that it was made with.
        """
        campaign = Campaign(Path(path), Journal.open(path), trust)
        try:
            campaign._check_settings()
            if trust and campaign.brief.imports():
                remember_trust(campaign.path, campaign.brief)
            if table is not None:
                campaign._refuse_untrusted(model=False)
                campaign._refuse_changes(read_worksheet(table, campaign.brief))
                if (moved := kept_path(table, campaign.path)) != campaign._settings["table"]:
                    campaign.journal.update_settings(table=moved)
                    return Campaign(campaign.path, campaign.journal, trust)
            return campaign
        except BaseException:
            campaign.close()
            raise

    @cached_property
    def _settings(self) -> dict[str, Any]:
        return self.journal.settings

    def _setting(self, name: str, read: Callable[[Any], T]) -> T:
        with kept_in(self.path, f"its setting {name!r}"):
            return read(self._settings[name])

    def _check_settings(self) -> None:
        """Refuse settings and labels that cannot be what was written, before anything is done with them."""
        events, rows = self.journal.history(), self.journal.costs()
        if self.n_initial > len(events) or any(event.kind != "label" for event in events[: self.n_initial]):
            raise damaged(self.path, f"{self.n_initial} labels came with its table, and its events are others")
        if self.fingerprint.rows != len(rows):
            raise damaged(self.path, f"its table has {self.fingerprint.rows} rows, and {len(rows)} are there")
        if self.table and not self.brief.imports(model=False):
            self._check_labels()

    def _check_labels(self) -> None:
        """Refuse a label in the file that the loss cannot judge."""
        named = tuple(self.brief.classes or self.brief.loss.cost_matrix or ())
        with kept_in(self.path, "a label"):
            known = self.journal.known_labels()
            if self._numbers and self._domain is None and all(cell_kind(label) == "number" for label in known):
                return  # at once: there may be many
            for label in known:
                self._check_label(label, named)

    @cached_property
    def brief(self) -> Brief:
        """What is asked of the table, with money as it was last set."""
        first = self._setting("brief", Brief.from_dict)
        with kept_in(self.path, "its settings"):
            return replace(first, **{name: self._settings[name] for name in MONEY if name in self._settings})

    @cached_property
    def n_initial(self) -> int:
        """How many labels came with the table; others are paid for."""
        return self._setting("initial", lambda kept: checked_count(kept, "the number of labels", 0))

    @cached_property
    def table(self) -> Path:
        """Where the table is."""
        return self.path.resolve().parent / self._setting("table", lambda kept: checked_text(kept, "the table"))

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What the table was when the campaign was made."""
        return self._setting("fingerprint", Fingerprint.from_dict)

    def check(self) -> None:
        """Read the whole file again, every record of it too; `open` has looked at everything else.

        Raises:
            StakesError: If anything is wrong.
        """
        self.journal.check()
        for record in self.journal.records(RANKING):
            ranking_kept(self.path, record)
        for record in self.journal.records(FAILURE):
            failure_kept(self.path, record)
        for record in self.journal.records(AUDIT):
            audit_kept(self.path, record)
        self._kept_promises()

    def check_trust(self) -> None:
        """Refuse to import what the campaign names by "module:Name", unless it is trusted.

        Raises:
            StakesError: If it is not; nothing was imported then.
        """
        self._refuse_untrusted()

    def _refuse_untrusted(self, *, model: bool = True) -> None:
        """The same; for the loss alone where the model is not needed."""
        if not self.trusted and self.brief.imports(model=model):
            refuse_untrusted(self.path, self.brief, model=model)

    @cached_property
    def sheet(self) -> Worksheet:
        """The table, read once, refused if it has changed."""
        if not self.table.exists():
            raise StakesError(
                f"the table of the campaign, {self.table}, is not there. Put it back, or say where it is (--table)."
            )
        self._refuse_untrusted(model=False)
        sheet = read_worksheet(self.table, self.brief)
        self._refuse_changes(sheet)
        if sheet.ids != self.journal.ids():
            raise damaged(self.path, "its rows are not those of its table")
        self._check_labels()
        return sheet

    def ask(
        self, n: int = 1, *, lease: float = WEEK, who: str | None = None, progress: bool | Progress = False
    ) -> Ranking:
        """Hand out the rows to label next, to nobody else for a while.

        Rows that others take in the meantime are ranked anew, as labels on their way. A call hands out a row once,
        however short the lease.

        Args:
            n: How many rows.
            lease: For how many seconds.
            who: Who gets them, for the history.
            progress: True, or a function that is called with what is being done and the share that is done.

        Returns:
            The rows handed out, fewer than `n` where there are fewer. Beside the notes of the ranking there may be one
            on the lease (until when, in seconds since 1970), one where the ranking is an old one, and one on why there
            are fewer rows.

        Raises:
            StakesError: If the rows cannot be ranked and never were, or `n` is no number of rows.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise StakesError(f"the number of rows to ask for must be a whole number, 1 or more; got {n!r}")
        checked_lease(lease, checked_clock())  # before a model is fitted
        show = as_progress(progress)
        parts: list[Ranking] = []
        ours: dict[str, float] = {}  # until when: a lease may end while the next rows are ranked
        stale = done = None
        in_vain = 0
        self.sheet  # noqa: B018 (a table that is gone or changed is refused, whatever is handed out)
        while len(ours) < n and done is None:
            now = self._now(ours)
            if done := self._why_none(now):
                break
            ranking, stale = self._ranked(now, n - len(ours), show)
            at = checked_clock()
            leased = self.journal.lease(ranking.row_ids, n - len(ours), seconds=lease, who=who, now=at)
            rows = self._within_budget(leased, who, ours)
            parts += [_only(ranking, rows)] if rows else []
            ours |= dict.fromkeys(rows, at + lease)
            in_vain = 0 if rows else in_vain + 1
            if not len(ranking):
                done = "what is left of the budget covers no other row"
            elif in_vain == _IN_VAIN:
                done = f"others took the rows {in_vain} times while they were ranked; ask again"
        return self._handed_out(parts, n, min(ours.values(), default=None), stale, done)

    def ask_annotator(self, name: str, n: int = 1, *, lease: float = WEEK) -> tuple[OpinionOffer, ...]:
        """Hand out the rows on which the opinion of one annotator is worth most for its price.

        Labels of others may be wrong, as often as `reliability` finds: a row that one of them has labelled is among the
        candidates. Labels without a name, and rows that were settled, are taken to be right.

        Args:
            name: Who is to label them.
            n: How many rows.
            lease: For how many seconds.

        Returns:
            What was handed out, best first: `row` is the position in the table (`sheet.ids` has the id), `before` how
            many opinions there are on it.

        Raises:
            StakesError: If there is no label yet, no row is left for them, or a number cannot be used.
        """
        checked_id(name)
        checked_count(n, "the number of rows", 1)
        now, ids = self._now(), self.sheet.ids
        from stakes.tabular.opinions import rank_for_annotator

        place = {row: position for position, row in enumerate(ids)}
        opinions, known = self.opinions(), self._beyond_doubt()
        out = [place[row] for row in now.those("asked", "skipped", "testing", "tested", "unsure")]
        found: list[OpinionOffer] = []
        offers = rank_for_annotator(
            self.sheet,
            name,
            n + 8,  # some may be taken by others in the meantime
            opinions=[(place[each.row], each.annotator, each.label) for each in opinions if each.annotator is not None],
            known={place[row]: label for row, label in known.items()},
            excluded=out,
            price=self.annotators().get(name, 1.0),
        )
        for offer in offers:
            if len(found) == n:
                break
            row = ids[offer.row]
            if offer.before:
                got = self.journal.consult([row], 1, name, opinions=offer.before + 1, seconds=lease)
            else:
                got = tuple(self.hand_out([row], 1, lease=lease, who=name))
            found += [offer] if got else []
        return tuple(found)

    def _beyond_doubt(self) -> dict[str, str]:
        """By row: labels that came without a name, or were settled."""
        known = {each.row: each.label for each in self.opinions() if each.annotator is None}
        settled = self.journal.replay.settled
        return known | {row: event.label for row, event in settled.items() if event.label is not None}

    def rank(self, n: int = 8, *, progress: bool | Progress = False) -> Ranking:
        """Rank the open rows by the model as it is now, keep the ranking, and hand nothing out.

        Args:
            n: How many rows, at most.
            progress: True, or a function that is called with what is being done and the share that is done.

        Returns:
            The rows to label next; those of the last ranking where the model cannot be fitted.

        Raises:
            StakesError: If no row can be handed out, or the rows cannot be ranked and never were.
        """
        checked_count(n, "the number of rows", 1)
        now = self._now()
        if why := self._why_none(now):
            raise StakesError(f"there is no row to rank: {why}")
        return self._ranked(now, n, as_progress(progress))[0]

    def hand_out(self, wanted: Sequence[str], n: int = 1, *, lease: float = WEEK, who: str | None = None) -> list[str]:
        """Hand out the first of some rows that are open, as far as the budget goes, without ranking them.

        Args:
            wanted: Ids, in the order in which they are wanted.
            n: How many, at most.
            lease: For how many seconds.
            who: Who gets them, for the history.

        Returns:
            The ids of the rows that were handed out.

        Raises:
            StakesError: If there is no such row, or a number cannot be used.
        """
        leased = self.journal.lease(wanted, n, seconds=lease, who=who)
        return list(leased) if self.brief.budget is None else self._within_budget(leased, who)

    def audit(self, n: int = 20, *, who: str | None = None, progress: bool | Progress = False) -> tuple[str, ...]:
        """Draw rows to test the model on: their labels tell what it loses today, on all rows that are open.

        They are drawn by `stakes.audit`, and nobody is asked to label them for training. `tell` and `import_labels`
        take their labels, which the model is not fitted to; `read_audit` ends the audit.

        Args:
            n: How many rows; all that are open where there are fewer.
            who: Who asks for it, for the history.
            progress: True, or a function that is called with what is being done and the share that is done.

        Returns:
            The ids of the rows, in the order in which they were drawn.

        Raises:
            StakesError: If an audit is under way, there is no model yet or no open row, the budget does not pay for the
                labels, or `n` is no number of rows. Nothing is recorded then.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise StakesError(f"the number of rows to draw must be a whole number, 1 or more; got {n!r}")
        show = as_progress(progress)
        self.check_trust()
        self.sheet  # noqa: B018 (a table that is gone or changed is refused)
        for _ in range(_IN_VAIN):
            now = self._now()
            if under_way := now.those("testing"):
                raise StakesError(
                    f"an audit is under way: {len(under_way)} of its rows have no label yet, such as {under_way[0]!r}. "
                    "Tell their labels, skip what cannot be labelled, or end it (audit --read). Nothing was drawn."
                )
            show("fitting a model to the labels", None)
            rows, payload = self._drawn(now, n)
            if self.journal.test(rows, AUDIT, payload, who=who):
                return rows
        raise StakesError(
            f"others took rows {_IN_VAIN} times while they were drawn; repeat the call. Nothing was drawn."
        )

    def read_audit(self, *, use_for_training: bool = False, who: str | None = None) -> AuditedLoss:
        """End the last audit, and tell what the model loses by it.

        It is read as far as labels have come, in the order in which its rows were drawn; rows without a label go back
        to the pool. To read it again changes nothing.

        Args:
            use_for_training: Whether the labels of tests are from now on labels as any others, which the model is
                fitted to.
            who: Who reads it, for the history.

        Returns:
            The mean loss on the rows that were open when the audit began, of the model as it was then.

        Raises:
            StakesError: If there was no audit, or the first of its rows has no label. Nothing is recorded then.
        """
        kept = self._last_audit()
        if kept is None:
            raise StakesError("there is no audit to read; begin one (audit)")
        found = self._audited(kept)
        if found is None:
            raise StakesError(
                f"the first row of the audit, {kept.rows[0]!r}, has no label yet, and an audit is read in the order in "
                "which its rows were drawn. Tell it, or skip it if it cannot be labelled. Nothing was recorded."
            )
        self.journal.use_results(release=True, use=use_for_training, who=who)
        return found

    def tell(
        self,
        row: str,
        label: str | float,
        *,
        replace: bool = False,
        new_class: bool = False,
        who: str | None = None,
        annotator: str | None = None,
    ) -> Recorded:
        """Record the label of a row; see `tell_many`.

        Args:
            row: Its id.
            label: A number, or the name of a class.
            replace: Whether it may take the place of another label.
            new_class: Whether it may be a class that no row has had.
            who: Who reports it, for the history.
            annotator: Whose label it is: where somebody else has labelled the row, it is an opinion beside theirs.

        Returns:
            What became of it.

        Raises:
            StakesError: If it is no label for the row; nothing is recorded then.
        """
        return self.tell_many([(row, label)], replace=replace, new_class=new_class, who=who, annotator=annotator)

    def tell_many(
        self,
        pairs: Iterable[tuple[str, str | float]],
        *,
        replace: bool = False,
        new_class: bool = False,
        who: str | None = None,
        annotator: str | None = None,
    ) -> Recorded:
        """Record labels of rows, all or none.

        The same label once more changes nothing; another one is refused, unless it is to replace the first, or comes
        from another annotator: it is then an opinion, which stands beside the first (see `opinions`). A class
        that was not named and that no row has had is refused, unless it is declared new.

        Args:
            pairs: Ids and labels.
            replace: Whether a label may take the place of another one.
            new_class: Whether a label may be of a class that no row has had.
            who: Who reports them, for the history.
            annotator: Whose labels they are; the history has them in place of `who`.

        Returns:
            What became of each.

        Raises:
            StakesError: If one of them is no label for its row; nothing is recorded then.
        """
        self._refuse_untrusted(model=False)
        read = [(str(row), written_label(label, self.brief, numbers=self._numbers)) for row, label in pairs]
        return self._record(read, replace=replace, new_class=new_class, who=who, annotator=annotator)

    def _record(
        self,
        labels: list[tuple[str, str]],
        *,
        replace: bool,
        new_class: bool,
        who: str | None,
        annotator: str | None = None,
    ) -> Recorded:
        """Record labels that were read: numbers as `float` takes them."""
        self._refuse_bad_labels(labels, new_class)
        if self._numbers:
            labels = [(row, _first_written(self._known_label(row, annotator), label)) for row, label in labels]
        return self.journal.tell_many(labels, replace=replace, who=who, annotator=annotator)

    def _known_label(self, row: str, annotator: str | None) -> str | None:
        """The label of a row, or what an annotator has said of it."""
        own = None if annotator is None else self.journal.replay.opinions.get(row, {}).get(annotator)
        return self.journal.state(row).label if own is None else own.label

    def opinions(self) -> tuple[Opinion, ...]:
        """What each annotator says of each row, in the order in which it was said.

        The label of a row is the opinion of whoever gave it; how a row was settled is not among them, as whoever
        settles it knows what the others said. What was taken back is left out.

        Returns:
            Row, annotator (None where there is no name), label and time of each.

        Examples:
            >>> import pandas as pd
            >>> from stakes import Campaign
            >>> table = pd.DataFrame({"x": range(4), "kind": ["cat", "dog", None, None]}, index=list("abcd"))
            >>> with Campaign.create(None, table, "kind", "zero-one") as campaign:
            ...     _ = campaign.tell("c", "cat", annotator="anna")
            ...     _ = campaign.tell("c", "dog", annotator="ben")
            ...     [each[:3] for each in campaign.opinions() if each.annotator]
            ...     campaign.disagreements()
            [('c', 'anna', 'cat'), ('c', 'ben', 'dog')]
            ('c',)
        """
        return self.journal.opinions()

    def disagreements(self) -> tuple[str, ...]:
        """The rows on which annotators differ, and which nobody has settled, in the order of the table.

        Numbers differ by more than a tenth of the standard deviation of all labels.

        Returns:
            Their ids.
        """
        self.journal.version()  # what others have said is known
        replay = self.journal.replay
        several = [row for row, each in replay.opinions.items() if len(each) > 1]
        if not several:
            return ()
        same = self.alike()
        places = {row: place for place, row in enumerate(replay.rows)}
        return tuple(sorted((row for row in several if replay.disagree(row, same)), key=places.__getitem__))

    def reliability(self) -> tuple[str, ...]:
        """How reliable annotators are, each with a standard error, and how far they agree.

        Rows that were settled, and labels that came without a name, are taken to be right. See `stakes.evaluation`.

        Returns:
            Sentences; none where nothing tells, as no row has two opinions.

        Examples:
            >>> import pandas as pd
            >>> from stakes import Campaign
            >>> table = pd.DataFrame({"x": range(9), "kind": ["cat", "dog", *[None] * 7]}, index=list("abcdefghi"))
            >>> with Campaign.create(None, table, "kind", "zero-one") as campaign:
            ...     for row in "cdefgh":
            ...         _ = campaign.tell(row, "cat" if row < "f" else "dog", annotator="anna")
            ...         _ = campaign.tell(row, "cat" if row in "cdeh" else "dog", annotator="ben")
            ...     print(campaign.reliability()[-1])
            Krippendorff's alpha 0.69 (-0.22 to 1.00), 6 rows.
        """
        opinions = self.opinions()
        if all(each.annotator is None for each in opinions):  # nobody to tell of
            return ()
        classes = tuple(self.brief.classes or ())
        return reliability(opinions, self._beyond_doubt(), classes, numbers=self._numbers)

    def alike(self) -> Callable[[str, str], bool]:
        """A function that tells whether two labels are taken for the same, as `disagreements` does."""
        if not self._numbers:
            return str.__eq__
        values = [float(each.label) for each in self.journal.opinions()]
        near = 0.1 * (statistics.pstdev(values) if len(values) > 1 else 0.0)
        return lambda one, other: abs(float(one) - float(other)) <= near

    def settle(self, row: str, label: str | float, who: str) -> None:
        """Say what the label of a row is, after annotators differed or one was not sure.

        Args:
            row: Its id.
            label: A number, or the name of a class; from now on the label of the row.
            who: Who says so.

        Raises:
            StakesError: If it is no label for the row, or the row has none and nobody was unsure of it; nothing is
                recorded then.
        """
        self._refuse_untrusted(model=False)
        written = written_label(label, self.brief, numbers=self._numbers)
        self._refuse_bad_labels([(row, written)], new_class=False)
        self.journal.settle(row, written, who)

    def skip(self, rows: Sequence[str], who: str | None = None) -> None:
        """Never ask for these rows again, until they are released.

        Args:
            rows: Ids of rows that are open or asked for.
            who: Who says so, for the history.

        Raises:
            StakesError: If one of them has a label; nothing is recorded then.
        """
        self.journal.skip(rows, who=who)

    def release(self, rows: Sequence[str], who: str | None = None) -> None:
        """Give rows that are asked for, or skipped, back to the pool.

        Args:
            rows: Their ids.
            who: Who says so, for the history.

        Raises:
            StakesError: If one of them is neither; nothing is recorded then.
        """
        self.journal.release(rows, who=who)

    def withdraw(self, rows: Sequence[str], who: str | None = None) -> None:
        """Take labels back; the rows are open again, and their history is kept.

        Args:
            rows: Ids of rows that have a label.
            who: Who says so, for the history.

        Raises:
            StakesError: If one of them has none; nothing is recorded then.
        """
        self.journal.withdraw(rows, who=who)

    def retract(self, row: str, annotator: str) -> None:
        """Take back what one annotator says of a row; what others say stays.

        Where nobody else has labelled it the row is open again; else its label is the first that is left.

        Args:
            row: Its id.
            annotator: Whose label, opinion or settlement it is.

        Raises:
            StakesError: If there is no such row, or no label of theirs; nothing is recorded then.

        Examples:
            >>> import pandas as pd
            >>> from stakes import Campaign
            >>> table = pd.DataFrame({"x": range(4), "kind": ["cat", "dog", None, None]}, index=list("abcd"))
            >>> with Campaign.create(None, table, "kind", "zero-one") as campaign:
            ...     _ = campaign.tell("c", "cat", annotator="anna")
            ...     _ = campaign.tell("c", "dog", annotator="ben")
            ...     campaign.retract("c", "anna")
            ...     campaign.journal.state("c").label
            'dog'
        """
        journal = self.journal
        if row not in journal.costs():
            raise unknown_row(row, journal.ids())
        with journal.writing():
            event = Event(0, checked_clock(), "retract", row, who=checked_text(annotator, "the annotator"))
            append(journal.connection, journal.replay, [journal.replay.checked(event)], [])

    def status(self, *, refresh: bool = True, progress: bool | Progress = False) -> Status:
        """Where the campaign stands, and whether to go on.

        Args:
            refresh: Whether to fit the model to the latest labels, where any have come since the last time.
            progress: True, or a function that is called with what is being done and the share that is done.

        Returns:
            Counts, money, what the next labels are worth, and advice.

        Raises:
            StakesError: If the rows cannot be ranked and never were.
        """
        now, last = self._now(), self._last_ranked()
        if refresh and not self._why_none(now) and (last is None or self._label_changes(last) or self._set_since(last)):
            self._ranked(now, 1, as_progress(progress))
            last = self._last_ranked()
        counts = Counter(state.status for state in now.states.values())
        return Status(
            len(now.states),
            counts["labelled"],
            counts["asked"],
            counts["skipped"],
            counts["open"],
            now.spent,
            now.pending,
            self.brief.budget,
            None if last is None else last.payload["outlook"],
            None if last is None else last.payload["labels"],
            self._staleness(last),
            self._advice(now, last),
            counts["testing"],
            counts["tested"],
            self._audit_status(now),
            counts["unsure"],
            len(self.disagreements()),
            self.reliability(),
        )

    def advice(self) -> str | None:
        """Whether the rows of the last ranking are worth their cost, as `status` says it before they are handed out.

        Returns:
            Sentences; None where nothing is ranked yet, or costs or decisions are not known.

        Raises:
            StakesError: If the file is damaged.
        """
        last = self._last_ranked()
        outlook = None if last is None else last.payload["outlook"]
        return " ".join(outlook["sentences"]) or None if outlook is not None else None

    def change_settings(self, **changes: Any) -> None:
        """Change how many decisions will be taken, what a label costs, or the budget, while the campaign runs.

        The change is added to the file as anything else, and what it was before is kept there. Labels that were bought
        before are counted at what they cost then.

        Args:
            **changes: Some of `decisions`, `label_cost` and `budget`, as in `stakes.tabular.Brief`; None to unset one.

        Raises:
            StakesError: If there is no such setting, or a number is not positive. Nothing is recorded then.
        """
        if unknown := [name for name in changes if name not in MONEY]:
            raise StakesError(
                f"{unknown[0]!r} cannot be set in a campaign that runs; {', '.join(MONEY)} can. Nothing was recorded."
            )
        self._now()  # what others have set is known
        replace(self.brief, **changes)  # refused where the brief would be
        new = {name: None if value is None else float(value) for name, value in changes.items()}
        new = {name: value for name, value in new.items() if value != getattr(self.brief, name)}
        if new:
            self.journal.update_settings(**new)
            self._forget_settings()

    def settings_changes(self) -> tuple[tuple[float, dict[str, float | None]], ...]:
        """Every change of settings: when, in seconds since 1970, and what they were from then on.

        Returns:
            The changes in their order.
        """
        return tuple((record.at, new) for record, new in money_changes(self.journal.records("settings")))

    def _forget_settings(self) -> None:
        for name in ("_settings", "_prices", "_times", "brief", "sheet"):
            self.__dict__.pop(name, None)

    def history(self, row: str | None = None) -> tuple[Event, ...]:
        """Everything that has happened, or that happened to one row.

        Args:
            row: Its id.

        Returns:
            The events in their order.

        Raises:
            StakesError: If there is no such row.
        """
        return self.journal.history(row)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        events: bool = False,
        rows: Sequence[str] | None = None,
        more: Mapping[str, Sequence[str | None]] | None = None,
        overwrite: bool = False,
    ) -> int:
        """Write the rows with labels and status, or all events, as a CSV that a spreadsheet opens.

        Args:
            path: The file.
            events: Whether to write events instead of rows.
            rows: Ids, in the order wanted; all rows without.
            more: Further columns by name, each with a cell for every one of `rows`.
            overwrite: Whether a file that is there is replaced; the campaign and its table never are.

        Returns:
            How many lines were written.

        Raises:
            StakesError: If there is no such row, the table has changed, or the file is there or cannot be written.
        """
        self.check_output(path, overwrite=overwrite)
        if events:
            names = ["number", "at", "kind", "row", "label", "until", "batch", "who"]
            lines = [
                [each.number, _time(each.at), each.kind, each.row, each.label, _time(each.until), each.batch, each.who]
                for each in self.history()
            ]
            write_csv(path, names, lines, overwrite=overwrite, inputs=[self.path, self.table])
            return len(lines)
        sheet, states = self.sheet, self.journal.states()
        wanted = list(sheet.ids if rows is None else as_texts_of("rows", rows))
        if unknown := [row for row in wanted if row not in states]:
            raise unknown_row(unknown[0], sheet.ids)
        standing: dict[str, list[str | None]] = {
            "status": [states[row].status for row in wanted],
            "asked until": [_time(states[row].until) for row in wanted],
            "who": [states[row].who for row in wanted],
            **{name: list(cells) for name, cells in (more or {}).items()},
        }
        labels = {row: states[row].label for row in wanted}
        write_worksheet(path, sheet, wanted, labels, standing, overwrite=overwrite, inputs=[self.path])
        return len(wanted)

    def check_output(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Refuse, before any work, a file that `export` would refuse to write.

        Args:
            path: The file.
            overwrite: Whether a file that is there is replaced.

        Raises:
            StakesError: If the file is there, is the campaign or its table, or cannot be written.
        """
        checked_output(path, inputs=[self.path, self.table], overwrite=overwrite)

    def import_labels(
        self,
        path: str | os.PathLike[str],
        *,
        replace: bool = False,
        new_class: bool = False,
        who: str | None = None,
        annotator: str | None = None,
        **reading: Any,
    ) -> Recorded:
        """Record the labels of a filled-in export, or of the filled-in table itself, all or none.

        Args:
            path: The file, a CSV or a spreadsheet; rows without a label are passed over.
            replace: Whether a label may take the place of another one.
            new_class: Whether a label may be of a class that no row has had.
            who: Who reports them, for the history.
            annotator: Whose labels they are, as in `tell_many`.
            **reading: Options of `stakes.files.read_table` for this file: `sheet`, `decimal`, `encoding`, ...

        Returns:
            What became of each.

        Raises:
            StakesError: If one of them is no label for its row; nothing is recorded then.
        """
        self._refuse_untrusted(model=False)
        labels = read_filled_labels(path, self.brief, self.fingerprint, self.journal.ids(), reading)
        return self._record(labels, replace=replace, new_class=new_class, who=who, annotator=annotator)

    def checked_labels(
        self, pairs: Iterable[tuple[str, str | float]], *, new_class: bool = False
    ) -> list[tuple[str, str]]:
        """Labels as `tell_many` would keep them; what it would refuse of them as such is refused here.

        Args:
            pairs: Ids and labels.
            new_class: Whether a label may be of a class that no row has had.

        Returns:
            Ids and labels.

        Raises:
            StakesError: If one of them is no label; nothing is recorded in any case.
        """
        self._refuse_untrusted(model=False)
        read = [(str(row), written_label(label, self.brief, numbers=self._numbers)) for row, label in pairs]
        self._refuse_bad_labels(read, new_class)
        return read

    def __str__(self) -> str:
        from stakes.campaign.shown import campaign_text

        return campaign_text(self)

    def _repr_html_(self) -> str:
        from stakes.campaign.shown import campaign_html

        return campaign_html(self)

    def close(self) -> None:
        """Let go of the file."""
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _refuse_changes(self, sheet: Worksheet) -> None:
        """Refuse a table in which anything has changed, and say what."""
        differences = changes(self.fingerprint, fingerprint(sheet.source))
        if not differences:
            return
        advice = (
            "Labels that were written into the table are recorded by import; then put the old table back"
            if differences == [f"column {self.brief.target!r} changed"]
            else "Put the old table back, or begin a new campaign with this one"
        )
        raise StakesError(
            f"{sheet.source.path} is no longer the table that the campaign was made with: {'; '.join(differences)}. "
            f"{advice}. Nothing was recorded."
        )

    def _now(self, ours: Collection[str] = ()) -> _Now:
        """Where rows and money stand; `ours` are on their way, even if their lease has ended.

        A row whose label was withdrawn has been paid for, and is paid for once.
        """
        if self.journal.settings != self._settings:  # somebody has set them since
            self._forget_settings()
        version, states = self.journal.version(), self.journal.states()
        states |= {row: RowState("asked", event=states[row].event) for row in ours if states[row].status == "open"}
        costs, alike = self.journal.costs(), self._prices
        bought, times = purchases(self.journal.history(since=self.n_initial)), self._times
        paid = [times(event) * (alike(event.number) if alike else costs[event.row] or 1.0) for event in bought.values()]
        next_price = alike(version + 1) if alike else 1.0
        price = {row: next_price if alike else cost or 1.0 for row, cost in costs.items()}
        due = {row: 0.0 if (row, None) in bought else cost for row, cost in price.items()}
        last, at = self.journal.replay.last, checked_clock()
        waiting = [
            due[row] * (times(last[row]._replace(number=version + 1)) if row in last else 1.0)
            for row, state in states.items()
            if state.status in ("asked", "testing")
        ]
        asked = (event for each in self.journal.replay.consults.values() for event in each.values())
        waiting += [price[event.row] * times(event) for event in asked if at < (event.until or 0.0)]
        return _Now(version, states, due, sum(paid), sum(waiting))

    @cached_property
    def _times(self) -> Callable[[Event], float]:
        """How many times what a label costs an annotator took for it, or takes, at an event."""
        with kept_in(self.path, "its setting 'annotators'"):
            return annotator_factors(self.journal.records("settings"))

    def annotators(self) -> dict[str, float]:
        """What labels of annotators cost, by name: how many times what a label costs; others take it once.

        Returns:
            The prices that were set.
        """
        self._now()  # what others have set is known
        with kept_in(self.path, "its setting 'annotators'"):
            return annotators_kept(self._settings.get("annotators"))

    def set_annotators(self, prices: Mapping[str, float]) -> None:
        """Say what labels of annotators cost; what was said before is kept, and labels that came count as they did.

        Args:
            prices: By name, how many times what a label costs.

        Raises:
            StakesError: If a name is empty, or a price is not positive. Nothing is recorded then.

        Examples:
            >>> import pandas as pd
            >>> from stakes import Campaign
            >>> table = pd.DataFrame({"x": range(4), "kind": ["cat", "dog", None, None]}, index=list("abcd"))
            >>> with Campaign.create(None, table, "kind", "zero-one", label_cost=2.0) as campaign:
            ...     campaign.set_annotators({"expert": 5.0})
            ...     _ = campaign.tell("c", "cat", annotator="student")
            ...     _ = campaign.tell("c", "dog", annotator="expert")
            ...     campaign.status(refresh=False).spent
            12.0
        """
        new = {checked_id(name): checked_positive(price, f"the price of {name!r}") for name, price in prices.items()}
        before = self.annotators()
        if {**before, **new} != before:
            self.journal.update_settings(annotators={**before, **new})
            self._forget_settings()

    @cached_property
    def _prices(self) -> Callable[[int], float] | None:
        """What a label cost at each event; None where every row has a cost of its own."""
        if self.brief.cost_column is not None:
            return None
        first = self._setting("brief", Brief.from_dict).label_cost
        return label_prices(first, money_changes(self.journal.records("settings")))

    def _budget_left(self, now: _Now) -> float | None:
        """What may still be spent, labels on their way taken off; None where there is no limit."""
        return None if self.brief.budget is None else self.brief.budget - now.spent - now.pending

    def _why_none(self, now: _Now) -> str | None:
        """Why no row can be handed out; None where one can."""
        if not now.those("open"):
            count = len(now.those("asked"))
            return f"no row is open; {count} {'is' if count == 1 else 'are'} asked for" if count else "no row is open"
        left = self._budget_left(now)
        return "the budget is spent, or promised to rows that are asked for" if left is not None and left <= 0 else None

    def _within_budget(self, rows: tuple[str, ...], who: str | None, ours: Collection[str] = ()) -> list[str]:
        """The rows just handed out that the budget pays for; others go back, where another asker was quicker."""
        now = self._now({*ours, *rows})
        left = self._budget_left(now)
        if left is None:
            return list(rows)
        kept = affordable([(row, now.due[row]) for row in rows], left + sum(now.due[row] for row in rows))
        if back := [row for row in rows if row not in kept]:
            at = checked_clock()
            asked = self.journal.states(at)
            self.journal.release([row for row in back if asked[row].status == "asked"], who=who, now=at)
        return kept

    def _ranked(self, now: _Now, n: int, progress: Progress) -> tuple[Ranking, str | None]:
        """The ranking by the model as it is now, which is kept; or the last one, and why."""
        self.check_trust()
        self.sheet  # noqa: B018 (a table that is gone or changed is refused, and is no failure of the model)
        labels, past = self._trained_on(now), self._past()
        try:
            found = self._suggested(now, n, labels, past, progress)
        except Exception as error:
            return self._last_ranking(now, n, error)
        outlook = None if found.outlook is None else {**found.outlook.to_dict(), "ranking": None}
        ranking = found.ranking if found.outlook is None else found.outlook.ranking
        self.journal.save_record(
            RANKING, now.version, {"ranking": ranking.to_dict(), "outlook": outlook, "labels": len(labels)}
        )
        self._keep_promise(now, found, labels, past.share.value if past and past.share else 1.0)
        return ranking, None

    def _suggested(
        self, now: _Now, n: int, labels: Mapping[int, str], past: Past | None, progress: Progress
    ) -> Suggested:
        """The rows to label next, what labels are worth, and the model that says so."""
        from stakes.tabular.suggestions import suggest_with_model

        place = {row: position for position, row in enumerate(self.sheet.ids)}
        return suggest_with_model(
            self.sheet,
            n,
            labels=labels,
            pending=[place[row] for row in now.those("asked")],
            excluded=[place[row] for row in now.those("skipped", "testing", "tested", "unsure")],
            budget=self._budget_left(now),
            progress=progress,
            past=past,
        )

    def _past(self) -> Past | None:
        """What came of promises so far, and what was advised last under the prices of today; None at the beginning."""
        if (last := self._last_ranked()) is None:
            return None
        from stakes.ranking.promises import Past, judged_enough, share_kept

        rounds = self.promises()
        told = None if self._set_since(last) else last.payload["outlook"]
        advice = () if told is None or told["advice"] is None else (told["advice"],)
        return Past(share_kept(rounds), len(judged_enough(rounds)), advice)

    def _kept_promises(self) -> list[KeptPromise]:
        if not (records := self.journal.records(PROMISE)):
            return []
        from stakes.campaign.promises import promise_kept  # here, as telling needs none of it

        return [promise_kept(self.path, record) for record in records]

    def _keep_promise(self, now: _Now, found: Suggested, labels: Mapping[int, str], share: float) -> None:
        """Keep what the model promises and answers, where enough labels are new."""
        from stakes.campaign.promises import is_due, promise_kept, promise_to_keep

        record = self.journal.last_record(PROMISE)
        last = None if record is None else promise_kept(self.path, record)
        if last is not None and not is_due(last, len(labels)):
            return
        unseen = [place for place, row in enumerate(self.sheet.ids) if now.states[row].status != "labelled"]
        if (kept := promise_to_keep(self.sheet, found, share, len(labels), unseen, last)) is not None:
            self.journal.save_record(PROMISE, now.version, kept)

    def promises(self) -> tuple[PromisedRound, ...]:
        """What rounds of labels were said to save, beside what they saved.

        Whenever rows are ranked, what the model promises is kept with its answers at rows that it was not fitted to.
        Two models that follow each other are compared on those of these rows that have a label by now, mostly because
        it was bought later: neither model knew it. Such rows are not like the others: more is expected of them. So
        what came is what the later model expects over all rows, times the share of that which came where there are
        labels, each weighed by how many rows are nearest to it. Regions that nothing was bought from are taken to gain
        in proportion. Where 8 or more of the labels were drawn by an audit, these judge alone, by the probabilities
        of their draws.

        Returns:
            A round for each two models, in their order; it may have its last label yet to come.

        Raises:
            StakesError: If the table has changed.

        Examples:
            >>> import numpy as np, pandas as pd
            >>> from stakes import Campaign, SquaredError
            >>> from stakes.tabular import ModelSpec
            >>> x = np.linspace(0.0, 6.0, 40)
            >>> table = pd.DataFrame({"x": x, "y": [np.sin(v) if i % 10 == 0 else None for i, v in enumerate(x)]})
            >>> model = ModelSpec("gaussian-process")
            >>> with Campaign.create(None, table, "y", SquaredError(), model=model) as campaign:
            ...     for _ in range(4):
            ...         asked = campaign.ask(2)
            ...         told = campaign.tell_many([(row, float(np.sin(x[int(row) - 1]))) for row in asked.row_ids])
            ...     rounds = campaign.promises()
            >>> [(each.labels, each.bought, each.judged) for each in rounds]
            [(4, 2, 6), (6, 2, 4), (8, 2, 2)]
        """
        from stakes.campaign.promises import judged_rounds

        if len(kept := self._kept_promises()) < 2:
            return ()
        ids, states = self.sheet.ids, self.journal.states()
        if any(max(each.rows, default=0) >= len(ids) for each in kept):
            raise damaged(self.path, "a promise of its model is about a row which there is not")
        labels = {place: label for place, row in enumerate(ids) if (label := states[row].label) is not None}
        handed_out = {event.row for event in self.history() if event.kind == "ask"}
        asked = {place for place, row in enumerate(ids) if row in handed_out}
        audits = [audit_kept(self.path, record) for record in self.journal.records(AUDIT)]
        return judged_rounds(self.sheet, kept, labels, asked, audits, cache(self._loss))

    def _trained_on(self, now: _Now) -> dict[int, str]:
        """The labels that a model is fitted to, by position in the table: those of tests are kept apart."""
        labelled = {row: state.label for row, state in now.states.items() if state.status == "labelled"}
        return {
            position: label for position, row in enumerate(self.sheet.ids) if (label := labelled.get(row)) is not None
        }

    def _drawn(self, now: _Now, n: int) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Rows to test the model on, and what is kept of the draw."""
        free, labels = set(now.those("open")), self._trained_on(now)
        pool = [position for position, row in enumerate(self.sheet.ids) if row in free]
        if not pool:
            raise StakesError("no row is open: there is nothing to test the model on. Nothing was drawn.")
        rows, kept = audit_to_keep(self.sheet, n, labels, pool, len(self.journal.records(AUDIT)))
        left, cost = self._budget_left(now), sum(now.due[row] for row in rows)
        if left is not None and not affordable([(rows, cost)], max(left, 0.0)):
            raise StakesError(
                f"the labels of {len(rows)} rows cost {cost:g}, and {max(left, 0.0):g} of the budget is left: draw "
                "fewer, or raise the budget. Nothing was drawn."
            )
        return rows, kept

    def _last_audit(self) -> KeptAudit | None:
        if (record := self.journal.last_record(AUDIT)) is None:
            return None
        kept = audit_kept(self.path, record)
        if unknown := set(kept.rows).difference(self.journal.costs()):
            raise damaged(self.path, f"its last audit has a row {min(unknown)!r:.100}, which there is not")
        return kept

    def _audited(self, kept: KeptAudit) -> AuditedLoss | None:
        """What an audit tells by the labels that its rows have; None where the first has none."""
        states = self.journal.states()
        labels = {row: label for row in kept.rows if (label := states[row].label) is not None}
        skipped = {row for row in kept.rows if states[row].status == "skipped"}
        return kept.estimate(labels, skipped, self._loss)

    def _loss(self) -> Any:
        """The loss of numbers."""
        from stakes.tabular import build_loss

        self._refuse_untrusted(model=False)
        return build_loss(self.brief.loss, None)

    def _audit_status(self, now: _Now) -> dict[str, Any] | None:
        """What the last audit tells, as `Status.audit` has it."""
        if (kept := self._last_audit()) is None:
            return None
        waiting = sum(now.states[row].status == "testing" for row in kept.rows)
        return audit_status(kept, waiting, lambda: self._audited(kept))

    def _last_ranking(self, now: _Now, n: int, error: Exception) -> tuple[Ranking, str | None]:
        """The last good ranking with what is still open of it, then rows spread over the pool; and why."""
        why = str(error) if isinstance(error, StakesError) else f"{type(error).__name__}: {error}"
        if not isinstance(error, StakesError | OSError | MemoryError):
            why += " (a bug of stakes; please report it)"
        self.journal.save_record(FAILURE, now.version, {"error": why})
        last = self._last_ranked()
        if last is None:
            if isinstance(error, StakesError):
                raise StakesError(f"there is no ranking to go by: {why}") from error
            raise error
        old, free, left = ranking_kept(self.path, last), set(now.those("open")), self._budget_left(now)
        kept = affordable([(row, now.due[row]) for row in old.row_ids if row in free], left)
        left = None if left is None else left - sum(now.due[row] for row in kept)
        spread = self._spread(free.difference(kept), n - len(kept), left)
        known = _only(old, kept)
        ranking = known if spread is None else _joined([known, spread], old)
        return ranking, f"the ranking is that of {last.payload['labels']} labels, as the model failed since: {why}"

    def _spread(self, free: set[str], n: int, budget: float | None) -> Ranking | None:
        """Up to n of the free rows that the budget pays for, far from each other; None where there are none."""
        from stakes.ranking import cold_start
        from stakes.tabular.suggestions import SPREAD

        sheet = self.sheet
        places = [place for place, row in enumerate(sheet.ids) if row in free]
        if n < 1 or not places or (budget is not None and budget <= 0):
            return None
        costs = None if sheet.costs is None else sheet.costs[places]
        found = cold_start(
            sheet.features.take(places), n=n, costs=costs, budget=budget, random_state=self.brief.random_state
        )
        rows = [places[row] for row in found.indices]
        return replace(
            found,
            indices=tuple(rows),
            row_ids=tuple(sheet.ids[row] for row in rows),
            scores=(math.nan,) * len(rows),
            reasons=tuple(replace(reason, ranked_by=SPREAD) for reason in found.reasons),
        )

    def _handed_out(
        self, parts: list[Ranking], n: int, until: float | None, stale: str | None, done: str | None
    ) -> Ranking:
        """The rows that were handed out, with notes on the lease, on an old ranking, and on why there are fewer."""
        from stakes.ranking import Note, Ranking

        none = Ranking((), (), (), False, "nothing", (), ())
        ranking = _joined(parts, parts[-1]) if parts else none
        notes: list[Note] = []
        if stale:
            notes.append(Note(STALE, {"why": stale, "text": f"Stale: {stale}."}))
        if done:
            text = f"Only {len(ranking)} of {n} rows: {done}."
            notes.append(Note(NO_MORE, {"n": n, "count": len(ranking), "why": done, "text": text}))
        if until is not None:
            notes.append(Note(LEASE, {"until": until, "text": f"The rows come back at {_time(until)}."}))
        return replace(ranking, notes=(*ranking.notes, *notes))

    def _last_ranked(self) -> Record | None:
        """The last ranking that was kept, and what labels are worth by it."""
        if (last := self.journal.last_record(RANKING)) is not None:
            check_ranking_kept(self.path, last)
        return last

    def _label_changes(self, record: Record) -> int:
        """How many labels were recorded, replaced or withdrawn since a record."""
        changed = ("label", "replace", "withdraw", "settle", "retract")
        return sum(event.kind in changed for event in self.journal.history(since=record.version))

    def _set_since(self, record: Record) -> bool:
        """Whether what labels cost, or how many decisions there are, was set after a record."""
        return any(each.number > record.number for each, _ in money_changes(self.journal.records("settings")))

    def _staleness(self, last: Record | None) -> str | None:
        """Why the last ranking is old: labels have come since, perhaps because the model could not be fitted."""
        if last is None or not (since := self._label_changes(last)):
            return "It is older than the last change of settings." if last and self._set_since(last) else None
        failed = self.journal.last_record(FAILURE)
        late = failed is not None and failed.number > last.number
        why = f" The last attempt failed: {failure_kept(self.path, failed)}" if failed and late else ""
        return f"It is older than the last {since} change{'s' * (since > 1)} of labels.{why}"

    def _advice(self, now: _Now, last: Record | None) -> str:
        """Whether to go on."""
        if why := self._why_none(now):
            return f"{'Stop' if now.those('open') else 'Done'}: {why}."
        if last is None:
            return "Ask for rows: nothing is known yet of what labels are worth."
        outlook = last.payload["outlook"]
        if outlook is None:
            return "Go on: there are too few labels for a model."
        if outlook["advice"] is not None:
            return " ".join(outlook["sentences"])
        lacking = [] if self.brief.decisions else ["how many decisions will be taken (--decisions)"]
        if self.brief.cost_column is None and self.brief.label_cost is None:
            lacking.append("what a label costs (--cost or --label-cost)")
        return f"Whether labels pay is not known: init was not given {' and '.join(lacking)}; stakes set takes it."

    def _refuse_bad_labels(self, labels: Sequence[tuple[str, str]], new_class: bool) -> None:
        """Refuse the first label that cannot be one, with its row."""
        named, numbers = tuple(self.brief.classes or self.brief.loss.cost_matrix or ()), self._numbers
        classes = named if numbers or named or new_class else self.journal.known_labels()
        for row, label in labels:
            try:
                self._check_label(label, classes)
            except StakesError as error:
                fixed = numbers or named or not label
                more = "" if fixed else " A class that is new is told as such (--new-class)."
                raise StakesError(f"row {row!r}: {error}{more} Nothing was recorded.") from None

    @cached_property
    def _numbers(self) -> bool:
        self._refuse_untrusted(model=False)  # a loss of one's own is imported to tell
        return loss_task(self.brief.loss) == "real"

    @cached_property
    def _domain(self) -> Any:
        return domain_of(self.brief.loss) if self._numbers else None

    def _check_label(self, label: str, classes: Sequence[str]) -> None:
        """Refuse what is no label for the loss."""
        if self._numbers:
            checked_real(label, self.brief.loss, self._domain)
        else:
            checked_class(label, classes)


def _first_written(known: str | None, label: str) -> str:
    """A number as it was first written, where it is the same: 3.50 is no other label than 3.5."""
    return known if known is not None and float(known) == float(label) else label


def _only(ranking: Ranking, rows: Sequence[str]) -> Ranking:
    """Some rows of a ranking, in its order."""
    places = [place for place, row in enumerate(ranking.row_ids) if row in rows]
    return _with_rows(ranking, {name: [getattr(ranking, name)[place] for place in places] for name in _PER_ROW})


def _joined(parts: Sequence[Ranking], last: Ranking) -> Ranking:
    """The rows of several rankings, one after the other; all else is that of the last."""
    return _with_rows(last, {name: [each for part in parts for each in getattr(part, name)] for name in _PER_ROW})


def _with_rows(ranking: Ranking, rows: Mapping[str, Sequence[Any]]) -> Ranking:
    fields: dict[str, Any] = {name: tuple(values) for name, values in rows.items()}
    return replace(ranking, **fields)


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
