"""One person at a desk: what they see, and what becomes of what they do, whether by a server or in a notebook.

Everything here is called in the thread in which the desk has its campaign open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stakes._utils.markup import Content
from stakes._utils.text import counted
from stakes.exceptions import StakesError
from stakes.label import pages
from stakes.label.charts import acquired_chart
from stakes.label.flow import ACTS, Card, Desk


@dataclass(frozen=True)
class Visit:
    """A person at a desk.

    Attributes:
        desk: The desk, open.
        name: Who it is.
        keys: The keys that they chose, by what they press them for.
        mark: What every change comes with, where that is checked.
    """

    desk: Desk
    name: str
    keys: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""

    def view(self) -> pages.View:
        """What every page needs."""
        desk = self.desk
        classes = () if desk.numbers else desk.classes()
        return pages.View(
            title=desk.campaign.path.stem,
            brief=desk.campaign.brief,
            name=self.name,
            mark=self.mark,
            keys={**pages.usual_keys(classes, desk.numbers), **self.keys},
            numbers=desk.numbers,
            classes=classes,
            more_classes=not desk.numbers and not desk.classes_named,
            unit=desk.rules.unit,
            to_settle=len(desk.disputes()),
        )

    def work(self, view: pages.View, card: Card | None, notice: str = "") -> Content:
        """The row in hand, or why there is none."""
        desk = self.desk
        if card is not None:
            return pages.work_on(card, view, notice)
        undo = desk.last_act(view.name)
        if desk.ranked_with is None and desk.problem is None:
            explanation = ["The rows are ranked for the first time. This takes as long as fitting the model."]
            return pages.nothing_to_do(view, "Ranking the rows", explanation, undo, waiting=True)
        if desk.ranked_with is None and desk.problem is not None:
            return pages.nothing_to_do(view, "The rows cannot be ranked", [desk.problem], undo, waiting=False)
        return pages.nothing_to_do(view, "No row for you now", [desk.why_none()], undo, waiting=False)

    def to_settle(self, view: pages.View, notice: str = "") -> Content:
        """The first row on which annotators differ, or of which one was not sure."""
        rows = self.desk.disputes()
        dispute = self.desk.dispute(rows[0], self.name) if rows else None
        return pages.settle_work(dispute, len(rows), view, self.desk.last_act(self.name), notice)

    def panel(self, view: pages.View, card: Card | None) -> Content:
        """What labels are worth, what was spent, and whether to go on."""
        desk = self.desk
        if desk.ranked_with is None:
            ranked = "Not ranked yet; fitting the model" if desk.refitting else "Not ranked yet"
        else:
            ranked = f"Ranked with {counted(desk.ranked_with, 'label')}{', refitting' if desk.refitting else ''}"
        labels, initial = desk.acquired()
        return pages.panel(
            view,
            card,
            desk.status(),
            ranked=ranked,
            curve=desk.curve,
            acquired=acquired_chart(labels, initial, numbers=desk.numbers),
            people=desk.people(),
            agreement=desk.agreement(),
            problem=desk.problem_of_command or desk.problem,
        )

    def change(self, act: str, form: Mapping[str, str]) -> Callable[[], str]:
        """What somebody does, as a call that does it and says so.

        Args:
            act: "answer", "off", "undo" or "settle".
            form: The fields that were sent: of the row and its label, of an act in place of a label, or of the number
                of the event to undo.

        Returns:
            The call, for `Desk.next`.

        Raises:
            StakesError: If there is no such act.
        """
        calls = {"answer": self._answer, "off": self._put_off, "undo": self._undo, "settle": self._settle}
        if act not in calls:
            raise StakesError(f"a change is one of {', '.join(calls)}; got {act!r:.50}")
        return lambda: calls[act](form)

    def _answer(self, form: Mapping[str, str]) -> str:
        row, label, other = form.get("row", ""), form.get("label", ""), form.get("other", "").strip()
        self.desk.tell(self.name, row, label or other, new_class=bool(other) and not label)
        guess = self.desk.guess(row)
        return f"{row}: {label or other} is saved." + (f" The model's guess was {guess}." if guess else "")

    def _put_off(self, form: Mapping[str, str]) -> str:
        row, act = form.get("row", ""), form.get("act", "")
        if act not in ACTS:
            raise StakesError(f"a row is put off by {', '.join(ACTS)}, not by {act!r:.50}")
        self.desk.put_off(self.name, row, act)
        return f"{row} is {pages.ACT_DONE[act]}."

    def _undo(self, form: Mapping[str, str]) -> str:
        number = form.get("act", "")
        if not number.isdecimal():
            return "There is nothing to undo."
        undone = self.desk.undo(self.name, int(number[:12]))
        if undone is None:
            return "There is nothing to undo, or it was undone already."
        was = undone.label if undone.label is not None else pages.ACT_DONE[undone.kind]
        return f"Undone: {undone.row} was {was}."

    def _settle(self, form: Mapping[str, str]) -> str:
        row, label = form.get("row", ""), form.get("label", "") or form.get("other", "").strip()
        self.desk.settle(self.name, row, label)
        return f"{row} is settled: {label}."
