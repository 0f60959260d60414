"""Ask for rows, tell their labels: a campaign in one file that outlives whoever runs it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stakes.campaigns import asking, exports, standing, telling
from stakes.campaigns.answers import Asked, Status
from stakes.campaigns.errors import CampaignError
from stakes.campaigns.events import Event, Outcome
from stakes.campaigns.journal import WEEK, Journal
from stakes.campaigns.setup import Setup, kept_path, read_unchanged, refuse_changes
from stakes.files import fingerprint
from stakes.specs import LossSpec
from stakes.worksheets import Brief, Worksheet, read_worksheet


@dataclass(frozen=True, eq=False)
class Campaign:
    """A labelling project: its rows are labelled, asked for, skipped or open.

    Any number of processes may ask and tell at once. What a call returned from is on the disk.
    """

    path: Path
    journal: Journal

    @staticmethod
    def create(
        path: str | os.PathLike[str], table: str | os.PathLike[str], target: str, loss: LossSpec | str, **brief: Any
    ) -> Campaign:
        """A new campaign file for a table whose column `target` holds the labels so far; see `Brief` for the rest."""
        spec = LossSpec(loss) if isinstance(loss, str) else loss
        if not isinstance(spec, LossSpec):
            raise CampaignError(
                "a campaign keeps its loss in words: give a name, such as 'linex', or a LossSpec, such as "
                f"LossSpec('linex', {{'alpha': 0.5}}); got {type(loss).__name__}"
            )
        where = Path(path)
        sheet = read_worksheet(table, Brief(target, spec, **brief))
        if len(sheet.ids) == 0:
            raise CampaignError(f"{table} has no rows: there is nothing to label")
        _refuse_unusable(sheet)
        costs = [None] * len(sheet.ids) if sheet.costs is None else sheet.costs.tolist()
        setup = Setup(sheet.brief, kept_path(table, where), fingerprint(sheet.source), len(sheet.labels))
        known = {sheet.ids[row]: label for row, label in sheet.labels.items()}
        return Campaign(where, Journal.create(where, zip(sheet.ids, costs, strict=True), setup.to_dict(), known))

    @staticmethod
    def open(path: str | os.PathLike[str], table: str | os.PathLike[str] | None = None) -> Campaign:
        """The campaign in a file; `table` says where its table is now, if it was moved."""
        campaign = Campaign(Path(path), Journal.open(path))
        try:
            return campaign if table is None else campaign._moved(table)
        except BaseException:
            campaign.close()
            raise

    @cached_property
    def setup(self) -> Setup:
        """What the campaign was made with."""
        return Setup.from_dict(self.journal.settings)

    @cached_property
    def sheet(self) -> Worksheet:
        """The table, read once, refused if it has changed."""
        return read_unchanged(self.setup, self.path)

    def ask(
        self, n: int = 1, *, lease: float = WEEK, who: str | None = None, progress: asking.Progress | None = None
    ) -> Asked:
        """Hand out the `n` rows to label next, for `lease` seconds to nobody else; fewer where there are fewer."""
        return asking.ask(self.journal, self.setup, self.sheet, n, lease, who, progress)

    def tell(
        self, row: str, label: str | float, *, replace: bool = False, new_class: bool = False, who: str | None = None
    ) -> Outcome:
        """Record the label of a row."""
        return self.tell_many([(row, label)], replace=replace, new_class=new_class, who=who)

    def tell_many(
        self,
        pairs: Iterable[tuple[str, str | float]],
        *,
        replace: bool = False,
        new_class: bool = False,
        who: str | None = None,
    ) -> Outcome:
        """Record labels of rows, all or none.

        The same label told again changes nothing; another one is refused, unless it is to `replace` the first. A class
        that was not named and that no row has had is refused, unless it is a `new_class`.
        """
        labels = [(str(row), str(label).strip()) for row, label in pairs]
        telling.refuse_bad(self.journal, self.setup.brief, labels, new_class)
        return self.journal.tell_many(
            telling.as_known(self.journal, self.setup.brief, labels), replace=replace, who=who
        )

    def skip(self, rows: Sequence[str], who: str | None = None) -> None:
        """Never ask for these rows again, until they are released."""
        self.journal.skip(rows, who=who)

    def release(self, rows: Sequence[str], who: str | None = None) -> None:
        """Give rows that are asked for, or skipped, back to the pool."""
        self.journal.release(rows, who=who)

    def withdraw(self, rows: Sequence[str], who: str | None = None) -> None:
        """Take labels back; the rows are open again, and what was told is kept in the history."""
        self.journal.withdraw(rows, who=who)

    def status(self, *, refresh: bool = True, progress: asking.Progress | None = None) -> Status:
        """Where the campaign stands, and whether to go on; with `refresh`, in the light of the latest labels."""
        if refresh:
            asking.refresh(self.journal, self.setup, lambda: self.sheet, progress)
        return standing.status(self.journal, self.setup)

    def history(self, row: str | None = None) -> tuple[Event, ...]:
        """Everything that has happened, or happened to one row."""
        return self.journal.history(row)

    def export(self, path: str | os.PathLike[str], *, events: bool = False, rows: Sequence[str] | None = None) -> int:
        """Write all rows (or some) with labels and status as a CSV that a spreadsheet opens, or all events; counts."""
        if events:
            return exports.write_events(path, self.journal)
        return exports.write_rows(path, self.journal, self.sheet, rows)

    def import_labels(
        self, path: str | os.PathLike[str], *, replace: bool = False, new_class: bool = False, who: str | None = None
    ) -> Outcome:
        """Record the labels of a filled-in export, or of the filled-in table itself, all or none."""
        return self.tell_many(
            exports.read_labels(path, self.journal, self.setup), replace=replace, new_class=new_class, who=who
        )

    def close(self) -> None:
        """Let go of the file."""
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _moved(self, table: str | os.PathLike[str]) -> Campaign:
        """The campaign, with its table where it is now."""
        refuse_changes(self.setup, read_worksheet(table, self.setup.brief))
        moved = replace(self.setup, table=kept_path(table, self.path))
        if moved != self.setup:
            self.journal.update_settings(**moved.to_dict())
        return Campaign(self.path, self.journal)


def _refuse_unusable(sheet: Worksheet) -> None:
    """Refuse a loss or a model that does not go with the table; imported here, as telling needs no scikit-learn."""
    from stakes.worksheets.fitting import refuse_unusable

    refuse_unusable(sheet)
