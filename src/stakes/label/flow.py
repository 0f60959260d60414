"""What happens at the desk: which row a person gets next, what they do with it, and what it was worth.

A desk has the campaign open in one thread. Rows are ranked in a process of their own (`worker`); until a newer ranking
comes, rows are taken from the one that is there. Whatever a person does is on the disk when a call returns.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from stakes._utils.text import number, short
from stakes.campaign import Campaign, Event, Status, Undone
from stakes.campaign.kept import RANKING, RankedRows, rows_kept
from stakes.campaign.states import Replay, checked_clock
from stakes.exceptions import StakesError
from stakes.label.command import CommandAnnotator
from stakes.label.media import Media
from stakes.label.worker import Worker
from stakes.tabular.worksheet import loss_task

if TYPE_CHECKING:
    from stakes.ranking import OpinionOffer, Ranking

Act = Literal["later", "unsure", "skip"]
ACTS: tuple[Act, ...] = ("later", "unsure", "skip")
_AGAIN = 10  # acts of a person after which a row that they put off comes again
_HOUR = 3600.0
_LONG = 40  # letters from which on a column is one of texts
_ENOUGH = 20  # rows to choose from, of which others may take some meanwhile


def label_worths(
    ranking: Ranking | RankedRows, costs: Mapping[str, float | None], promised: Sequence[float | None]
) -> dict[str, float]:
    """What the label of each row saves of a decision, no more than is promised of the first 1, 2, .. labels together.

    A score is what a label is worth if one of the members of the model is right; promises know better. So scores are
    taken as shares of the first one, whose worth is promised. Rows that are ranked together share what is promised of
    them and those above.
    """
    if ranking.ranked_by == "together":
        pairs = zip(ranking.row_ids, promised, strict=False)
        each = {row: worth / count for count, (row, worth) in enumerate(pairs, 1) if worth is not None}
    elif ranking.ranked_by in ("worth", "gain"):
        scores = [
            score * (costs.get(row) or 1.0) * math.exp(min(ranking.log_scale, 700.0))
            for row, score in zip(ranking.row_ids, ranking.scores, strict=True)
        ]
        first = promised[0] if promised else None
        share = min(first / scores[0], 1.0) if first is not None and scores and scores[0] > 0.0 else 1.0
        each = {row: share * score for row, score in zip(ranking.row_ids, scores, strict=True)}
    else:  # by what stands in for a worth where no label has any
        return {}
    return {row: worth for row, worth in each.items() if math.isfinite(worth)}


@dataclass(frozen=True)
class Rules:
    """How a desk is run.

    Attributes:
        lease: For how many seconds a person has a row.
        opinions: How many people are to label some rows; 1 for one.
        share: The share of rows that more than one person labels.
        media: The images and texts that cells name; None without.
        unit: Of a target that is a number, such as EUR.
        command: A program that labels some of the rows; None without.
    """

    lease: float = _HOUR
    opinions: int = 1
    share: float = 0.2
    media: Media | None = None
    unit: str = ""
    command: CommandAnnotator | None = None


class Cell(NamedTuple):
    """What is in a cell of the table."""

    column: str
    text: str
    long: bool = False
    """Whether the column holds texts to be read, rather than values."""
    image: bool = False
    """Whether it names an image that is shown in its place."""
    content: str | None = None
    """What the file of text holds that it names."""


@dataclass(frozen=True)
class Card:
    """A row in somebody's hands.

    Attributes:
        row: Its id.
        values: What the table says of it.
        worth: What its label saves of a decision, as it was last ranked; None where that is not known.
        undo: The number of the event that can be undone; None where there is none.
        audit: Whether its label tests the model, and is kept apart from those that it learns from.
    """

    row: str
    values: tuple[Cell, ...]
    worth: float | None
    undo: int | None
    audit: bool = False


@dataclass(frozen=True)
class Dispute:
    """A row to be settled: annotators differ, or one was not sure.

    Attributes:
        card: The row.
        opinions: Annotators and their labels; empty where somebody was not sure.
        unsure: Who was not sure.
    """

    card: Card
    opinions: tuple[tuple[str, str], ...]
    unsure: tuple[str, ...]


@dataclass
class Desk:
    """A campaign at which people label.

    Attributes:
        campaign: It, open in this thread.
        rules: How the desk is run.
        worker: What ranks the rows.
    """

    campaign: Campaign
    rules: Rules
    worker: Worker
    _ready: tuple[str, ...] = ()
    _scores: dict[str, float] = field(default_factory=dict, repr=False)
    _guesses: dict[str, str] = field(default_factory=dict, repr=False)
    _offers: dict[str, tuple[OpinionOffer, ...]] = field(default_factory=dict, repr=False)
    _auditing: dict[str, tuple[str, float]] = field(default_factory=dict, repr=False)  # who has a row, until when
    _audit_later: set[tuple[str, str]] = field(default_factory=set, repr=False)  # who put off which row of an audit
    _record: int = 0
    _known: int = -1  # the last event that a ranking was asked with
    _standing: tuple[tuple[int, int, int], Status] | None = field(default=None, repr=False)
    curve: list[tuple[int, float, float]] = field(default_factory=list, repr=False)
    """Labels, the expected loss of a decision, and its standard error, of each ranking."""
    problem: str | None = None
    """Why the last ranking failed."""
    problem_of_command: str | None = None
    """Why the command is not asked any more."""
    ranked_with: int | None = None
    """Labels that the last ranking knew of."""

    def open(self) -> None:
        """Read the table and the last ranking, and have the rows ranked anew where that is an old one."""
        self.campaign.check_trust()
        self.campaign.sheet  # noqa: B018 (a table that is gone or changed is refused)
        for record in self.campaign.journal.records(RANKING)[:-1]:
            self._take_curve(record.payload)
        self._take_ranking()  # the last one
        self.look()

    def close(self) -> None:
        """End the worker, and let go of the campaign."""
        self.worker.stop()
        self.campaign.close()

    def look(self) -> None:
        """Take a ranking that has come, and have a newer one made where labels have changed since."""
        if (found := self.worker.answer()) is not None:
            self.problem = found.error
            self._guesses |= found.guesses
            self._offers = found.offers
            self._take_ranking()
        if not self.worker.busy and self._changed():
            self._known = self.campaign.journal.version()
            self.worker.ask()

    @property
    def refitting(self) -> bool:
        """Whether a newer ranking is on its way."""
        return self.worker.busy

    def card(self, name: str) -> Card | None:
        """The row that a person has in hand, or gets now; None where there is none to hand out."""
        held = self.campaign.journal.held(name)
        row = held[0].row if held else self._for_audit(name) or self._hand_out(name)
        return None if row is None else self._card(row, name)

    def renew(self, name: str, row: str) -> None:
        """Let a person who looks at a row have it for longer, once half of their time is over."""
        now, half = checked_clock(), self.rules.lease / 2
        if row in self._audited():
            if self._holder(row) in (None, name):  # also after the server was started anew
                self._auditing[row] = (name, now + self.rules.lease)
            return
        held = next((event for event in self.campaign.journal.held(name) if event.row == row), None)
        if held is not None and (held.until or 0.0) - now < half:
            self.campaign.journal.renew(row, name, seconds=self.rules.lease)

    def _audited(self) -> list[str]:
        """The rows of an audit that have no label yet, in the order in which they were drawn."""
        drawn = sorted((event for event in self._replay.last.values() if event.kind == "test"), key=lambda e: e.number)
        return [event.row for event in drawn]

    def _holder(self, row: str) -> str | None:
        """Who has a row of an audit in hand."""
        name, until = self._auditing.get(row, (None, 0.0))
        return name if checked_clock() < until else None

    def _for_audit(self, name: str) -> str | None:
        """A row to test the model on, where an audit is under way: they come before others, in their order."""
        rows = self._audited()
        free = [row for row in rows if self._holder(row) in (None, name)]
        free.sort(key=lambda row: (self._holder(row) is None, (name, row) in self._audit_later))
        if not free:
            return None
        self._auditing = {row: hand for row, hand in self._auditing.items() if row in rows}
        self._auditing[free[0]] = (name, checked_clock() + self.rules.lease)
        return free[0]

    def next(self, name: str, change: Callable[[], None]) -> Card | None:
        """Make a change, and hand out the row that comes next: both are on the disk when this returns, or neither."""
        with self.campaign.journal.together():
            change()
            return self.card(name)

    def tell(self, name: str, row: str, label: str, *, new_class: bool = False) -> None:
        """Record what a person says of a row; once more, it changes nothing."""
        self._refuse_row_of_another(name, row)
        self.campaign.tell(row, label, annotator=name, new_class=new_class)

    def _refuse_row_of_another(self, name: str, row: str) -> None:
        if (holder := self._holder(row)) not in (None, name) and row in self._audited():
            raise StakesError(f"row {row!r} of the audit is in the hands of {holder!r}. Nothing was recorded.")

    def put_off(self, name: str, row: str, act: Act) -> None:
        """Record what a person does with a row in place of a label; once more, it changes nothing."""
        last = next(reversed(self.campaign.journal.history(row)), None)
        if last is not None and last.kind == act and last.who == name:
            return
        if last is not None and last.kind == "test" and act != "unsure":
            self._refuse_row_of_another(name, row)
            self._auditing.pop(row, None)
            if act == "later":
                self._audit_later.add((name, row))
            else:
                self.campaign.skip([row], who=name)
            return
        self.campaign.journal.put_off(row, act, name)

    def undo(self, name: str, number: int) -> Undone | None:
        """Take back what a person did last, if that is still the event that they mean; None where it is not."""
        acts = self._replay.acts(name)
        if not acts or acts[-1].number != number:
            return None
        undone = self.campaign.journal.undo(name, seconds=self.rules.lease)
        if undone is not None and undone.row in self._audited():  # it is theirs again, in place of the next one
            self._auditing = {row: hand for row, hand in self._auditing.items() if hand[0] != name}
            self._auditing[undone.row] = (name, checked_clock() + self.rules.lease)
        return undone

    def settle(self, name: str, row: str, label: str) -> None:
        """Record what the label of a row is, after annotators differed or one was not sure."""
        self.campaign.settle(row, label, name)

    def disputes(self) -> list[str]:
        """The rows to be settled: those on which annotators differ first."""
        differ = self.campaign.disagreements()
        unsure = [row for row, event in self._replay.last.items() if event.kind == "unsure"]
        return list(dict.fromkeys([*differ, *unsure]))

    def dispute(self, row: str, name: str) -> Dispute:
        """A row to be settled."""
        replay = self._replay
        given = replay.opinions.get(row, {}).values()
        opinions = tuple((event.who or "the table", event.label or "") for event in given)
        return Dispute(self._card(row, name), opinions, tuple(sorted(replay.declined.get(row, ()))))

    def shown(self, row: str, name: str) -> Card | None:
        """A row as a card, whoever has it; None where there is no such row."""
        return self._card(row, name) if row in self._places else None

    def last_act(self, name: str) -> int | None:
        """The number of the event that a person can undo; None where there is none."""
        acts = self._acts_of(name)
        return acts[-1].number if acts else None

    def acquired(self) -> tuple[list[str], int]:
        """The labels in the order in which they came, and how many came with the table."""
        replay = self._replay
        first = [(row, next(iter(given.values())).number) for row, given in replay.opinions.items() if given]
        rows = [row for row, _ in sorted(first, key=lambda each: each[1])]
        labels = [label for row in rows if (label := replay.state(row).label) is not None]
        return labels, sum(number <= self.campaign.n_initial for _, number in first)

    def agreement(self) -> list[str]:
        """How reliable annotators are and how far they agree, in words; nothing where no row has two labels."""
        return [*self.status().annotators, *self._reliability(), *self.values_for_price()]

    def _reliability(self) -> list[str]:
        """How often the command says what people say, where both have labelled a row."""
        command = self.rules.command
        if command is None:
            return []
        same = self.campaign.alike()
        both = [
            [same(own.label or "", event.label or "") for who, event in given.items() if who != command.name]
            for given in self._replay.opinions.values()
            if (own := given.get(command.name)) is not None and len(given) > 1
        ]
        agree = [each for row in both for each in row]
        if not agree:
            return [f"How reliable {command.name} is will be known once people have labelled some of its rows."]
        share = sum(agree) / len(agree)
        return [f"{command.name} says what people say in {sum(agree)} of {len(agree)} labels ({share:.0%})."]

    def take(self, name: str, row: str, label: str | None) -> None:
        """Record what the command says of a row; None is that it is not sure."""
        if label is None:
            self.put_off(name, row, "unsure")
        else:
            self.tell(name, row, label)

    def for_command(self) -> Card | None:
        """A row for the command to label, as long as that is wanted and pays; None where there is none."""
        command = self.rules.command
        if command is None or self.people().get(command.name, 0) >= command.most or self.ranked_with is None:
            return None
        if self.status().advice.startswith(("Stop", "Done")):
            return None
        held = self.campaign.journal.held(command.name)
        row = held[0].row if held else self._offered(command.name, set())
        if row is None and command.name not in self._offers:
            row = next(iter(self.campaign.hand_out(self._ready, 1, who=command.name)), None)
        return None if row is None else self._card(row, command.name)

    def guess(self, row: str) -> str | None:
        """What the model says of a row, as it was last ranked; None where that is not known."""
        return self._guesses.get(row)

    def status(self) -> Status:
        """Where the campaign stands, by the last ranking; looked up when anything has happened, and every minute."""
        moment = (self.campaign.journal.version(), self._record, int(checked_clock() // 60))
        if self._standing is None or self._standing[0] != moment:
            self._standing = (moment, self.campaign.status(refresh=False))
        return self._standing[1]

    def why_none(self) -> str:
        """Why a person gets no row."""
        status = self.status()
        left = status.budget_left
        if status.open and left is not None and left > 0:
            return f"What is left of the budget, {short(left)}, pays for no other row."
        return status.advice

    def people(self) -> dict[str, int]:
        """How many rows each person has labelled."""
        counts: dict[str, int] = {}
        for opinion in self.campaign.opinions():
            if opinion.annotator is not None:
                counts[opinion.annotator] = counts.get(opinion.annotator, 0) + 1
        return counts

    @cached_property
    def numbers(self) -> bool:
        """Whether a label is a number."""
        return loss_task(self.campaign.brief.loss) == "real"

    def classes(self) -> tuple[str, ...]:
        """The classes that a label can be of; those seen so far where they were not named."""
        brief = self.campaign.brief
        named = tuple(brief.classes or brief.loss.cost_matrix or ())
        return named or self.campaign.journal.known_labels()

    @property
    def classes_named(self) -> bool:
        """Whether all classes are known from the start."""
        return bool(self.campaign.brief.classes or self.campaign.brief.loss.cost_matrix)

    @property
    def _replay(self) -> Replay:
        """What has happened in the campaign so far, whoever did it."""
        self.campaign.journal.version()
        return self.campaign.journal.replay

    def _changed(self) -> bool:
        """Whether labels or money have changed since the last ranking was asked for, or there was none."""
        journal = self.campaign.journal
        if self._known < 0:
            last = journal.last_record(RANKING)
            priced = bool(self.campaign.annotators())  # what opinions are worth for that is not in the file
            return last is None or priced or self.campaign.status(refresh=False).stale is not None
        kinds = ("label", "replace", "withdraw", "settle", "retract", "opinion")
        return any(event.kind in kinds for event in journal.history(since=self._known))

    def _take_ranking(self) -> None:
        """Go by the last ranking in the file, whoever made it."""
        last = self.campaign.journal.last_record(RANKING)
        if last is None or last.number == self._record:
            return
        self._take_curve(last.payload)
        ranking = rows_kept(self.campaign.path, last)
        self._record, self._ready, self.ranked_with = last.number, ranking.row_ids, last.payload["labels"]
        costs = self.campaign.journal.costs() if ranking.per_cost else {}
        offers = (last.payload["outlook"] or {}).get("offers") or []
        self._scores |= label_worths(ranking, costs, [offer["worth"] for offer in offers])

    def _take_curve(self, kept: dict[str, Any]) -> None:
        outlook = kept["outlook"]
        if outlook is not None and None not in outlook["today"].values():
            self.curve.append((kept["labels"], outlook["today"]["value"], outlook["today"]["error"]))

    def _hand_out(self, name: str) -> str | None:
        """The id of the row that a person gets now: an opinion that is due, the best row, or else what they put off."""
        journal, own = self.campaign.journal, self._acts_of(name)
        put_off = {event.row for event in own[-_AGAIN:] if event.kind == "later"}
        if (row := self._offered(name, put_off)) is not None:
            return row
        if not self._offers and self.rules.opinions > 1 and not (own and own[-1].kind == "opinion"):
            due, rules = self._due(name), self.rules
            given = journal.consult(due, 1, name, opinions=rules.opinions, seconds=rules.lease) if due else ()
            if given:
                return given[0]
        ready = [row for row in self._ready if row not in put_off]
        for wanted in (ready, self._rest(put_off), sorted(put_off)):
            if given := tuple(self.campaign.hand_out(wanted, 1, lease=self.rules.lease, who=name)) if wanted else ():
                return given[0]
        return None

    def _offered(self, name: str, put_off: set[str]) -> str | None:
        """Where annotators have prices: the row on which the opinion of this one is worth most, again or anew."""
        ids = self.campaign.sheet.ids
        for offer in self._offers.get(name, ()):
            row = ids[offer.row]
            if row not in put_off and self.campaign.hand_out_offer(offer, lease=self.rules.lease):
                self._scores.setdefault(row, offer.worth)
                return row
        return None

    def several_opinions(self) -> bool:
        """Whether rows may get several opinions."""
        return self.rules.opinions > 1 or bool(self.campaign.annotators())

    def values_for_price(self) -> list[str]:
        """What the next opinion of each annotator saves for its price, in words, best first; where they have prices."""
        first = [offers[0] for offers in self._offers.values() if offers]
        first.sort(key=lambda offer: -offer.worth / offer.price)
        return [
            f"An opinion of {offer.annotator} saves about {number(offer.worth)} of a decision for {short(offer.price)} "
            f"({'a second one on a row' if offer.before else 'a new row'})."
            for offer in first
        ]

    def _rest(self, put_off: set[str]) -> list[str]:
        """Some open rows beyond those that are ranked."""
        if self.ranked_with is None:  # the first ranking is on its way
            return []
        replay, now = self._replay, checked_clock()
        free = (row for row in self._drawn if row not in put_off and replay.state(row).at(now).status == "open")
        return list(islice(free, _ENOUGH))

    @cached_property
    def _drawn(self) -> list[str]:
        """All rows in an order that has nothing to do with that of the table."""
        return sorted(self.campaign.journal.ids(), key=self._draw)

    def _due(self, name: str) -> list[str]:
        """Rows on which one more opinion is wanted, in the order in which they were labelled."""
        replay, rules = self._replay, self.rules
        several = [
            next(iter(given.values()))
            for row, given in replay.opinions.items()
            if 0 < len(given) < rules.opinions and name not in given and None not in given
        ]
        return [event.row for event in sorted(several) if self._draw(event.row) < rules.share]

    def _draw(self, row: str) -> float:
        """A number between 0 and 1 that belongs to a row."""
        seed = f"{self.campaign.brief.random_state}\0{row}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(seed).digest()[:8]) / 2**64

    def _acts_of(self, name: str) -> list[Event]:
        return self._replay.acts(name)

    def _card(self, row: str, name: str) -> Card:
        acts = self._acts_of(name)
        undo, audit = acts[-1].number if acts else None, row in self._auditing and self._holder(row) == name
        return Card(row, self._values(row), None if audit else self._scores.get(row), undo, audit)

    def _values(self, row: str) -> tuple[Cell, ...]:
        position, media = self._places[row], self.rules.media
        cells = ((name, cells[position] or "") for name, cells in self._columns)
        if media is None:
            return tuple(Cell(name, value, name in self._texts) for name, value in cells)
        return tuple(
            Cell(name, value, name in self._texts, media.is_image(value), media.text(value)) for name, value in cells
        )

    @cached_property
    def _texts(self) -> set[str]:
        """The columns that hold texts to be read."""
        return {name for name, cells in self._columns if any(len(cell or "") > _LONG for cell in cells)}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {row: position for position, row in enumerate(self.campaign.sheet.ids)}

    @cached_property
    def _columns(self) -> list[tuple[str, Sequence[str | None]]]:
        """All columns but those of the id, the labels and the cost."""
        brief, source = self.campaign.brief, self.campaign.sheet.source
        left_out = {brief.target, brief.id_column, brief.cost_column}
        return [(name, source.texts(name)) for name in source.names if name not in left_out]
