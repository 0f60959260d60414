"""What a campaign is about: its settings, its table and its loss, read from the file and checked.

The file may come from anyone, and the table may have been changed: nothing is used before it is known to be what was
written, and no class that the file names is imported unless the file is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from stakes.campaign.journal import Journal
from stakes.campaign.kept import MONEY, annotator_factors, label_prices, money_changes
from stakes.campaign.sqlite import damaged, kept_in
from stakes.campaign.states import Event, checked_count, checked_text
from stakes.campaign.trust import refuse_untrusted
from stakes.exceptions import StakesError
from stakes.files import Fingerprint, changes, fingerprint
from stakes.files.frame import cell_kind
from stakes.tabular import Brief, Worksheet, read_worksheet
from stakes.tabular.worksheet import checked_class, checked_real, domain_of, loss_task

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Project:
    """A campaign file with its settings and its table, each read once.

    Attributes:
        path: The file.
        journal: Its rows, events and records.
        trusted: Whether the classes that it names by "module:Name" may be imported, whatever was answered before.
    """

    path: Path
    journal: Journal
    trusted: bool = False

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings as they were last read."""
        return self.journal.settings

    def setting(self, name: str, read: Callable[[Any], T]) -> T:
        """One of them, through a function that refuses what it cannot be."""
        with kept_in(self.path, f"its setting {name!r}"):
            return read(self.settings[name])

    def check_settings(self) -> None:
        """Refuse settings and labels that cannot be what was written, before anything is done with them."""
        events, rows = self.journal.history(), self.journal.costs()
        if self.n_initial > len(events) or any(event.kind != "label" for event in events[: self.n_initial]):
            raise damaged(self.path, f"{self.n_initial} labels came with its table, and its events are others")
        if self.fingerprint.rows != len(rows):
            raise damaged(self.path, f"its table has {self.fingerprint.rows} rows, and {len(rows)} are there")
        if self.table and not self.brief.imports(model=False):
            self.check_labels()

    def check_labels(self) -> None:
        """Refuse a label in the file that the loss cannot judge."""
        named = tuple(self.brief.classes or self.brief.loss.cost_matrix or ())
        with kept_in(self.path, "a label"):
            known = self.journal.known_labels()
            if self.numbers and self.domain is None and all(cell_kind(label) == "number" for label in known):
                return  # at once: there may be many
            for label in known:
                self.check_label(label, named)

    @cached_property
    def brief(self) -> Brief:
        """What is asked of the table, with money as it was last set."""
        first = self.setting("brief", Brief.from_dict)
        with kept_in(self.path, "its settings"):
            return replace(first, **{name: self.settings[name] for name in MONEY if name in self.settings})

    @cached_property
    def n_initial(self) -> int:
        """How many labels came with the table; others are paid for."""
        return self.setting("initial", lambda kept: checked_count(kept, "the number of labels", 0))

    @cached_property
    def table(self) -> Path:
        """Where the table is."""
        return self.path.resolve().parent / self.setting("table", lambda kept: checked_text(kept, "the table"))

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What the table was when the campaign was made."""
        return self.setting("fingerprint", Fingerprint.from_dict)

    def refuse_untrusted(self, *, model: bool = True) -> None:
        """Refuse to import what the campaign names by "module:Name"; the model too, unless it is not needed."""
        if not self.trusted and self.brief.imports(model=model):
            refuse_untrusted(self.path, self.brief, model=model)

    @cached_property
    def sheet(self) -> Worksheet:
        """The table, read once, refused if it has changed."""
        if not self.table.exists():
            raise StakesError(
                f"the table of the campaign, {self.table}, is not there. Put it back, or say where it is (--table)."
            )
        self.refuse_untrusted(model=False)
        sheet = read_worksheet(self.table, self.brief)
        self.refuse_changes(sheet)
        if sheet.ids != self.journal.ids():
            raise damaged(self.path, "its rows are not those of its table")
        self.check_labels()
        return sheet

    def refuse_changes(self, sheet: Worksheet) -> None:
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

    @cached_property
    def times(self) -> Callable[[Event], float]:
        """How many times what a label costs an annotator took for it, or takes, at an event."""
        with kept_in(self.path, "its setting 'annotators'"):
            return annotator_factors(self.journal.records("settings"))

    @cached_property
    def prices(self) -> Callable[[int], float] | None:
        """What a label cost at each event; None where every row has a cost of its own."""
        if self.brief.cost_column is not None:
            return None
        first = self.setting("brief", Brief.from_dict).label_cost
        return label_prices(first, money_changes(self.journal.records("settings")))

    def forget_settings(self) -> None:
        """Read the settings anew when they are next needed: somebody has changed them."""
        for name in ("settings", "prices", "times", "brief", "sheet"):
            self.__dict__.pop(name, None)

    @cached_property
    def numbers(self) -> bool:
        """Whether labels are numbers."""
        self.refuse_untrusted(model=False)  # a loss of one's own is imported to tell
        return loss_task(self.brief.loss) == "real"

    @cached_property
    def domain(self) -> Any:
        """The numbers that may be labels, as the loss has it."""
        return domain_of(self.brief.loss) if self.numbers else None

    def check_label(self, label: str, classes: Sequence[str]) -> None:
        """Refuse what is no label for the loss."""
        if self.numbers:
            checked_real(label, self.brief.loss, self.domain)
        else:
            checked_class(label, classes)

    def refuse_bad_labels(self, labels: Sequence[tuple[str, str]], new_class: bool) -> None:
        """Refuse the first label that cannot be one, with its row."""
        named, numbers = tuple(self.brief.classes or self.brief.loss.cost_matrix or ()), self.numbers
        classes = named if numbers or named or new_class else self.journal.known_labels()
        for row, label in labels:
            try:
                self.check_label(label, classes)
            except StakesError as error:
                fixed = numbers or named or not label
                more = "" if fixed else " Report a class that is new as such (--new-class)."
                raise StakesError(f"row {row!r}: {error}{more} Nothing was recorded.") from None

    def loss(self) -> Any:
        """The loss of numbers."""
        from stakes.tabular import build_loss

        self.refuse_untrusted(model=False)
        return build_loss(self.brief.loss, None)
