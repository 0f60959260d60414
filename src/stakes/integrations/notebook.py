"""A card in a cell of a notebook on which to label rows: the flow of `stakes label`, by anywidget.

The extra `stakes[notebook]` brings anywidget, which Jupyter, marimo, VS Code and Colab show. What is shown and what
becomes of it is that of `stakes label` (`stakes.label.visit`): this file carries forms from the cell to a desk, and
pages back. The desk has the campaign open in a thread of its own, as kernels take messages in several; rows are ranked
in a process of its own.
"""

from __future__ import annotations

import base64
import getpass
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError("a card in a notebook needs anywidget: pip install 'stakes[notebook]'") from error

from stakes._utils.markup import Content, tag, text
from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from stakes.label.flow import Desk, Rules
from stakes.label.media import IMAGES, Media
from stakes.label.pages import View
from stakes.label.session import checked_name
from stakes.label.visit import Visit
from stakes.label.worker import Worker

__all__ = ["LabelCard", "label"]

_IMAGE = re.compile(r'src="/media/([^"]*)"')  # a quotation mark in a text is escaped, so this is no text
_PLACES = ("label", "to settle")


def _style() -> str:
    """The style of the page of `stakes label`, for a part of a page that may be light or dark by its own choice."""
    style = files("stakes.label").joinpath("static", "label.css").read_text()
    style = re.sub(
        r"@media \(prefers-color-scheme: dark\) \{\s*:root (\{[^}]*\})\s*\}", r":host([data-dark]) \1", style
    )
    style = style.replace(":root {", ":host {").replace("\nbody {", "\n.body {")
    return style.replace("@media (max-width: 860px)", "@container (max-width: 700px)")


class LabelCard(anywidget.AnyWidget):  # type: ignore[misc]
    """What a cell shows; `label` makes it.

    Attributes:
        sent: What was done in the cell last: its number, its name and the fields of its form.
        shown: What the cell shows: the number of what it answers, parts of the page, a notice, and whether all is well.
    """

    _esm = files("stakes.integrations").joinpath("static", "notebook.js").read_text()
    style_sheet = traitlets.Unicode(_style()).tag(sync=True)
    sent = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)


def label(
    campaign: Campaign,
    name: str | None = None,
    *,
    media: str | None = None,
    unit: str = "",
    opinions: int = 1,
    keys: Mapping[str, str] | None = None,
) -> LabelCard:
    """A card to label the rows of a campaign on, one after the other, in a cell of a notebook.

    It is the card of `stakes label`: classes as buttons with keys 1 to 9, a box for numbers, *later*, *not sure* and
    *skip for good*, undo across rows, what the label is worth and costs, and whether to stop. Every label is on the
    disk before the next row comes. Others may label the same campaign meanwhile, on the page or in other notebooks.

    Args:
        campaign: The campaign; it stays open, and knows of the labels at once.
        name: Who labels; by default the name of the user of this machine.
        media: A folder of images and texts that cells of the table name.
        unit: Of a target that is a number, such as EUR.
        opinions: How many people are to label some of the rows.
        keys: Keys by what they are for, such as {"class:cat": "c", "later": "n"}.

    Returns:
        The widget: leave it as the last line of a cell. `close()` ends it.

    Raises:
        StakesError: If the name can be none, there is no such folder, or the campaign cannot be ranked.

    Examples:
        >>> import pandas as pd
        >>> from stakes import Campaign
        >>> from stakes.integrations.notebook import label
        >>> table = pd.DataFrame({"x": range(4), "kind": ["cat", "dog", None, None]}, index=list("abcd"))
        >>> campaign = Campaign.create(None, table, "kind", "zero-one")
        >>> card = label(campaign, "anna")
        >>> "What is" in card.shown["work"] or "Ranking the rows" in card.shown["work"]
        True
        >>> card.close()
        >>> campaign.close()
    """
    who = checked_name(getpass.getuser() if name is None else name)
    rules = Rules(opinions=opinions, media=None if media is None else Media.of(media), unit=unit)
    clerk = _Clerk.of(campaign, who, rules, dict(keys or {}))
    card = LabelCard(shown=clerk.answer("look", {}))

    def answer(change: Any) -> None:
        done = change["new"]
        if done:
            card.shown = {**clerk.answer(str(done["act"]), done["form"]), "answers": done["number"]}

    card.observe(answer, "sent")
    card.observe(lambda change: clerk.close() if change["new"] is None else None, "comm")
    return card


@dataclass
class _Clerk:
    """Takes what is done in a cell to a desk, in the thread of the desk, and brings back what to show."""

    visit: Visit
    thread: ThreadPoolExecutor
    closed: bool = False
    _settling: bool = False

    @staticmethod
    def of(campaign: Campaign, name: str, rules: Rules, keys: Mapping[str, str]) -> _Clerk:
        """A clerk at a desk of its own."""
        path, table, trusted = campaign.path, campaign.table, campaign.trusted
        thread = ThreadPoolExecutor(1, thread_name_prefix="stakes-desk")

        def opened() -> Desk:
            desk = Desk(Campaign.open(path, trust=trusted), rules, Worker(path, table, trusted))
            try:
                desk.open()
            except BaseException:
                desk.close()
                raise
            return desk

        try:
            return _Clerk(Visit(thread.submit(opened).result(), name, keys), thread)
        except BaseException:
            thread.shutdown()
            raise

    def answer(self, act: str, form: Mapping[str, str]) -> dict[str, Any]:
        """What to show after something was done in the cell: a change, "guess", a look, or a way to another place."""
        if self.closed:
            return {"act": act, "good": False, "notice": "This card is closed; make another one.", "waiting": False}
        return self.thread.submit(self._answered, act, form).result()

    def close(self) -> None:
        """End the ranking process, and let go of the campaign; once more, it changes nothing."""
        if not self.closed:
            self.closed = True
            self.thread.submit(self.visit.desk.close).result()
            self.thread.shutdown()

    def _answered(self, act: str, form: Mapping[str, str]) -> dict[str, Any]:
        desk, notes, page = self.visit.desk, list[str](), dict[str, str]()
        desk.look()
        try:
            if act == "guess":
                guess = desk.guess(form.get("row", ""))
                notes = [f"The model's guess: {guess}" if guess else "The model has no guess for this row yet."]
            elif act in ("look", *_PLACES):
                self._settling = act == "to settle" if act in _PLACES else self._settling
                page = self._page("")
            else:
                change = self.visit.change(act, form)
                desk.next(self.visit.name, lambda: notes.append(change()))
                page = self._page(notes[0])
            good = True
        except StakesError as error:
            notes, good = [str(error)], False
        waiting = desk.refitting or desk.ranked_with is None
        return {**page, "act": act, "good": good, "notice": notes[0] if notes else "", "waiting": waiting}

    def _page(self, notice: str) -> dict[str, str]:
        visit = self.visit
        view, card = visit.view(), visit.desk.card(visit.name)
        work = visit.to_settle(view, notice) if self._settling else visit.work(view, card, notice)
        shown = {"head": _head(view), "work": work, "panel": visit.panel(view, card)}
        return {name: _with_images(text(content), visit.desk.rules.media) for name, content in shown.items()}


def _head(view: View) -> Content:
    """The campaign, and where to go where there is something to settle."""
    count = tag("span", str(view.to_settle), class_="count")
    places = [("label", "Label"), ("to settle", ["Settle ", count])] if view.to_settle else []
    links = [tag("button", shown, type="button", data_act=act, class_="quiet") for act, shown in places]
    who = tag("span", view.name, class_="who")
    return tag("header", [tag("strong", view.title, class_="title"), tag("nav", links, aria_label="Pages"), who])


def _with_images(page: str, media: Media | None) -> str:
    """A part of a page whose images are within it: a notebook has no server to ask for them."""

    def inside(found: re.Match[str]) -> str:
        file = None if media is None else media.file(unquote(found[1]))
        if file is None or file.suffix.lower() not in IMAGES:
            return 'src=""'
        return f'src="data:{IMAGES[file.suffix.lower()]};base64,{base64.b64encode(file.read_bytes()).decode()}"'

    return _IMAGE.sub(inside, page)
