"""Ask for rows, tell their labels: a campaign in one file that outlives whoever runs it.

Rows are ranked by the model as it is now, or as it last was where it cannot be fitted; the ranking, and what labels are
worth, are kept in the file beside the events. Labels that cannot be one are refused, and those that are there already
are known.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stakes._utils.arguments import Progress, as_progress, as_texts_of
from stakes.campaign.audits import audit_kept, begin_audit, end_audit, status_of_audit
from stakes.campaign.journal import WEEK, Journal, append
from stakes.campaign.kept import (
    AUDIT,
    FAILURE,
    MONEY,
    PROMISE,
    RANKING,
    failure_kept,
    kept_path,
    money_changes,
    ranking_kept,
)
from stakes.campaign.opinions import (
    prices_of_annotators,
    reliability_of,
    rows_in_dispute,
    same_labels,
    trained_on,
)
from stakes.campaign.project import Project
from stakes.campaign.rankings import (
    advice_now,
    ask_for_opinions,
    ask_for_rows,
    first_rows,
    hand_out_offer,
    label_changes,
    last_ranked,
    opinion_offers,
    rank_open_rows,
    set_since,
    shown_time,
    staleness,
)
from stakes.campaign.standing import hand_out_rows, standing_of, why_none
from stakes.campaign.states import (
    Event,
    Opinion,
    Recorded,
    Status,
    checked_clock,
    checked_count,
    checked_id,
    checked_positive,
    checked_text,
    unknown_row,
)
from stakes.campaign.trust import remember_trust
from stakes.exceptions import StakesError
from stakes.files import Fingerprint, write_csv
from stakes.files.write import checked_output
from stakes.tabular import Brief, LossSpec, Worksheet, read_worksheet
from stakes.tabular.filled import read_filled_labels, write_worksheet
from stakes.tabular.worksheet import written_label

if TYPE_CHECKING:
    from stakes.campaign.functions import LabelFunction
    from stakes.evaluation import AuditedLoss
    from stakes.losses import AnyLoss
    from stakes.ranking import OpinionOffer, PromisedRound, Ranking


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
            campaign._project.check_settings()
            if trust and campaign.brief.imports():
                remember_trust(campaign.path, campaign.brief)
            if table is not None:
                campaign._project.refuse_untrusted(model=False)
                campaign._project.refuse_changes(read_worksheet(table, campaign.brief))
                if (moved := kept_path(table, campaign.path)) != campaign._project.settings["table"]:
                    campaign.journal.update_settings(table=moved)
                    return Campaign(campaign.path, campaign.journal, trust)
            return campaign
        except BaseException:
            campaign.close()
            raise

    @cached_property
    def _project(self) -> Project:
        return Project(self.path, self.journal, self.trusted)

    @property
    def brief(self) -> Brief:
        """What is asked of the table, with money as it was last set."""
        return self._project.brief

    @property
    def n_initial(self) -> int:
        """How many labels came with the table; others are paid for."""
        return self._project.n_initial

    @property
    def table(self) -> Path:
        """Where the table is."""
        return self._project.table

    @property
    def fingerprint(self) -> Fingerprint:
        """What the table was when the campaign was made."""
        return self._project.fingerprint

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
        if self.journal.records(PROMISE):
            from stakes.campaign.promises import kept_promises  # here, as telling needs none of it

            kept_promises(self._project)

    def check_trust(self) -> None:
        """Refuse to import what the campaign names by "module:Name", unless it is trusted.

        Raises:
            StakesError: If it is not; nothing was imported then.
        """
        self._project.refuse_untrusted()

    @property
    def sheet(self) -> Worksheet:
        """The table, read once, refused if it has changed."""
        return self._project.sheet

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
        return ask_for_rows(self._project, n, lease=lease, who=who, progress=progress)

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
        return ask_for_opinions(self._project, name, n, lease=lease)

    def opinion_offers(self, names: Sequence[str], n: int = 8) -> dict[str, tuple[OpinionOffer, ...]]:
        """The rows on which an opinion of each annotator is worth most for its price; nothing is handed out.

        Asking again competes with asking anew: a row that others have labelled is among the candidates.

        Args:
            names: The annotators, each at the price that was set, or 1.
            n: How many rows for each, at most.

        Returns:
            By name, what could be asked for, best first: `row` is the position in the table, `before` how many opinions
            there are on it. Nothing for those who have labelled all that is in doubt.

        Raises:
            StakesError: If there is no label yet.

        Examples:
            >>> import pandas as pd
            >>> from stakes import Campaign
            >>> kinds = ["cat"] * 3 + ["dog"] * 3 + [None] * 4
            >>> table = pd.DataFrame({"x": range(10), "kind": kinds}, index=list("abcdefghij"))
            >>> with Campaign.create(None, table, "kind", "zero-one") as campaign:
            ...     campaign.set_annotators({"expert": 5.0})
            ...     _ = campaign.tell("g", "cat", annotator="student")
            ...     offers = campaign.opinion_offers(["student", "expert"], 4)
            >>> [offer.price for offer in offers["expert"]], 6 in [offer.row for offer in offers["student"]]
            ([5.0, 5.0, 5.0, 5.0], False)
        """
        checked_count(n, "the number of rows", 1)
        found = opinion_offers(self._project, [checked_id(name) for name in names], n)
        return {name: tuple(offers) for name, offers in found.items()}

    def hand_out_offer(self, offer: OpinionOffer, *, lease: float = WEEK) -> bool:
        """Hand out the row of an offer to its annotator: to be labelled, or for an opinion beside others.

        Args:
            offer: One that `opinion_offers` gave.
            lease: For how many seconds.

        Returns:
            Whether it was handed out; not where others have it by now, or the budget does not pay for it.

        Raises:
            StakesError: If a number cannot be used.
        """
        return hand_out_offer(self._project, offer, lease)

    def label_with(
        self,
        function: LabelFunction,
        n: int = 10,
        *,
        name: str,
        price: float | None = None,
        lease: float = WEEK,
    ) -> Recorded:
        """Have a Python function label rows, as an annotator with a price whose reliability is measured.

        It gets the rows on which its opinion is worth most for its price, those that others have labelled among them;
        its labels are opinions of its own (see `reliability`). What it does not know waits to be settled by people.

        Args:
            function: From the id of a row, its cells by column, and the classes (none for numbers) to a label, or None
                where it does not know.
            n: How many rows, at most.
            name: What its labels go by.
            price: What one of them costs, as a multiple of what a label costs; None: as it was set before, or 1.
            lease: For how many seconds it has the rows.

        Returns:
            What became of its labels.

        Raises:
            StakesError: If it fails or answers what is no label: what it labelled before is recorded, and the other
                rows are given back. If no row is left for it.

        Examples:
            >>> import pandas as pd
            >>> from stakes import Campaign
            >>> kinds = ["cat"] * 3 + ["dog"] * 3 + [None] * 4
            >>> table = pd.DataFrame({"x": range(10), "kind": kinds}, index=list("abcdefghij"))
            >>> with Campaign.create(None, table, "kind", "zero-one") as campaign:
            ...     by_rule = lambda row, cells, classes: "cat" if float(cells["x"]) < 7.5 else "dog"
            ...     recorded = campaign.label_with(by_rule, 2, name="rule", price=0.1)
            ...     spent = campaign.status(refresh=False).spent
            >>> len(recorded.new), spent
            (2, 0.2)
        """
        from stakes.campaign.functions import label_rows, rows_for_function  # here, as few need it

        checked_id(name)
        checked_count(n, "the number of rows", 1)
        if price is not None:
            self.set_annotators({name: price})
        rows = rows_for_function(self._project, name, n, lease)
        return label_rows(self._project, function, rows, name, self.tell)

    def training_labels(self) -> dict[str, str]:
        """The labels that the model is fitted to, by row.

        Where opinions on a row differ and nobody has settled it, that is what they come to by the reliability of those
        who gave them; labels of audits are kept apart.

        Returns:
            Labels as text.

        Examples:
            >>> import pandas as pd
            >>> from stakes import Campaign
            >>> table = pd.DataFrame({"x": range(6), "y": [1.0, 2.0] + [None] * 4}, index=list("abcdef"))
            >>> with Campaign.create(None, table, "y", "squared-error") as campaign:
            ...     for row, first, second in (("c", 3.0, 3.2), ("d", 4.0, 4.4), ("e", 5.0, 5.3)):
            ...         _ = campaign.tell(row, first, annotator="anna")
            ...         _ = campaign.tell(row, second, annotator="ben")
            ...     labels = campaign.training_labels()
            >>> labels["a"], 3.0 < float(labels["c"]) < 3.2
            ('1.0', True)
        """
        ids = self.sheet.ids
        return {ids[place]: label for place, label in trained_on(self._project, standing_of(self._project)).items()}

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
        now = standing_of(self._project)
        if why := why_none(self._project, now):
            raise StakesError(f"there is no row to rank: {why}")
        return first_rows(rank_open_rows(self._project, now, n, as_progress(progress))[0], n)

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
        return hand_out_rows(self._project, wanted, n, lease=lease, who=who)

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
        return begin_audit(self._project, n, who=who, progress=progress)

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
        return end_audit(self._project, use_for_training=use_for_training, who=who)

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
        self._project.refuse_untrusted(model=False)
        read = [(str(row), written_label(label, self.brief, numbers=self._project.numbers)) for row, label in pairs]
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
        self._project.refuse_bad_labels(labels, new_class)
        if self._project.numbers:
            labels = [(row, _first_written(self._known_label(row, annotator), label)) for row, label in labels]
        return self.journal.tell_many(labels, replace=replace, who=who, annotator=annotator)

    def _known_label(self, row: str, annotator: str | None) -> str | None:
        """The label of a row, or the opinion of an annotator on it."""
        own = None if annotator is None else self.journal.replay.opinions.get(row, {}).get(annotator)
        return self.journal.state(row).label if own is None else own.label

    def opinions(self) -> tuple[Opinion, ...]:
        """The opinion of each annotator on each row, in the order in which they came.

        The label of a row is the opinion of whoever gave it; how a row was settled is not among them, as whoever
        settles it knows the opinions of the others. What was taken back is left out.

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
        return rows_in_dispute(self._project)

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
        return reliability_of(self._project)

    def alike(self) -> Callable[[str, str], bool]:
        """A function that tells whether two labels are taken for the same, as `disagreements` does."""
        return same_labels(self._project)

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
        self._project.refuse_untrusted(model=False)
        written = written_label(label, self.brief, numbers=self._project.numbers)
        self._project.refuse_bad_labels([(row, written)], new_class=False)
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
        now, last = standing_of(self._project), last_ranked(self._project)
        if (
            refresh
            and not why_none(self._project, now)
            and (last is None or label_changes(self._project, last) or set_since(self._project, last))
        ):
            rank_open_rows(self._project, now, 1, as_progress(progress))
            last = last_ranked(self._project)
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
            staleness(self._project, last),
            advice_now(self._project, now, last),
            counts["testing"],
            counts["tested"],
            status_of_audit(self._project, now),
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
        last = last_ranked(self._project)
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
        standing_of(self._project)  # what others have set is known
        replace(self.brief, **changes)  # refused where the brief would be
        new = {name: None if value is None else float(value) for name, value in changes.items()}
        new = {name: value for name, value in new.items() if value != getattr(self.brief, name)}
        if new:
            self.journal.update_settings(**new)
            self._project.forget_settings()

    def settings_changes(self) -> tuple[tuple[float, dict[str, float | None]], ...]:
        """Every change of settings: when, in seconds since 1970, and what they were from then on.

        Returns:
            The changes in their order.
        """
        return tuple((record.at, new) for record, new in money_changes(self.journal.records("settings")))

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
                [
                    each.number,
                    shown_time(each.at),
                    each.kind,
                    each.row,
                    each.label,
                    shown_time(each.until),
                    each.batch,
                    each.who,
                ]
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
            "asked until": [shown_time(states[row].until) for row in wanted],
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
        self._project.refuse_untrusted(model=False)
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
        self._project.refuse_untrusted(model=False)
        read = [(str(row), written_label(label, self.brief, numbers=self._project.numbers)) for row, label in pairs]
        self._project.refuse_bad_labels(read, new_class)
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

    def annotators(self) -> dict[str, float]:
        """What labels of annotators cost, by name: how many times what a label costs; others take it once.

        Returns:
            The prices that were set.
        """
        return prices_of_annotators(self._project)

    def set_annotators(self, prices: Mapping[str, float]) -> None:
        """Set what labels of annotators cost; earlier prices are kept, and labels that came count at those.

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
            self._project.forget_settings()

    def promises(self) -> tuple[PromisedRound, ...]:
        """What rounds of labels were promised to save, beside what they saved.

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
            ...         recorded = campaign.tell_many([(row, float(np.sin(x[int(row) - 1]))) for row in asked.row_ids])
            ...     rounds = campaign.promises()
            >>> [(each.labels, each.bought, each.judged) for each in rounds]
            [(4, 2, 6), (6, 2, 4), (8, 2, 2)]
        """
        from stakes.campaign.promises import promised_rounds  # here, as telling needs none of it

        return promised_rounds(self._project)


def _first_written(known: str | None, label: str) -> str:
    """A number as it was first written, where it is the same: 3.50 is no other label than 3.5."""
    return known if known is not None and float(known) == float(label) else label
