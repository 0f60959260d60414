"""The pages, as HTML: whatever comes from a table, a person or a file is text there, never markup.

There is no script and no style within a page: one file of each is served beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from stakes._utils.markup import Content, Markup, tag, text
from stakes._utils.text import counted, number, short
from stakes.campaign import Status
from stakes.label.charts import learning_chart
from stakes.label.flow import Card, Dispute
from stakes.tabular import Brief
from stakes.tabular.loss_specs import loss_sentences

ACT_KEYS = {"later": "l", "unsure": "u", "skip": "s"}
ACT_LABELS = {
    "later": ("Later", "not now; it comes again after some others"),
    "unsure": ("Not sure", "somebody else settles it"),
    "skip": ("Skip for good", "it cannot be labelled; never ask again"),
}
ACT_DONE = {"later": "put off until later", "unsure": "left to be settled", "skip": "skipped for good"}
_AUDIT = "Drawn at random to test the model: your label tells what it loses today, and is not used to train it."
_MISTAKES = 6  # that are shown
_FEW = 4  # classes whose buttons a phone can always show
_PARTS = re.compile(r"(?<=[_/])(?=[^_/])")
_MOODS = {"Go on": "go", "Stop": "stop", "Done": "stop", "Too close": "unsure"}


@dataclass(frozen=True)
class View:
    """What every page needs.

    Attributes:
        title: The name of the campaign.
        brief: What is asked of the table.
        name: Who labels.
        mark: What every change comes with.
        keys: By class or act, the key for it.
        numbers: Whether labels are numbers.
        classes: What labels can be.
        more_classes: Whether there may be others.
        unit: Of numbers.
        to_settle: How many rows are to be settled.
    """

    title: str
    brief: Brief
    name: str
    mark: str
    keys: Mapping[str, str]
    numbers: bool
    classes: Sequence[str]
    more_classes: bool
    unit: str
    to_settle: int


def usual_keys(classes: Sequence[str], numbers: bool) -> dict[str, str]:
    """1 to 9 for classes, none for more of them, and a letter for each act."""
    places = [] if numbers else list(enumerate(classes, 1))
    return {**{f"class:{name}": str(place) if place <= 9 else "" for place, name in places}, **ACT_KEYS}


def void(name: str, /, **attributes: str) -> Markup:
    """An element without content, such as an input."""
    given = "".join(f' {key.strip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>")


def document(title: str, content: Content, *, body_class: str = "") -> Markup:
    """A whole page."""
    head = [
        Markup('<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
        Markup('<meta name="color-scheme" content="light dark">\n'),
        Markup('<link rel="icon" href="/static/icon.svg" type="image/svg+xml">\n'),
        Markup('<link rel="stylesheet" href="/static/label.css">\n<script src="/static/label.js" defer></script>\n'),
        tag("title", title),
    ]
    return Markup(
        "<!doctype html>\n" + tag("html", [tag("head", head), tag("body", content, class_=body_class)], lang="en")
    )


def message_page(heading: str, sentences: Sequence[str], *, link: str | None = None, to: str | None = None) -> Markup:
    """A page that says one thing; with `to`, it goes on there by itself."""
    onward = [tag("p", tag("a", link, href="/", class_="button"))] if link else []
    refresh = [void("meta", http_equiv="refresh", content=f"0;url={to}")] if to else []
    content = [*refresh, tag("h1", heading), *(tag("p", each) for each in sentences), *onward]
    return document(heading, tag("main", tag("div", content, class_="sheet narrow"), class_="single", id="main"))


def name_page(view: View, problem: str | None = None) -> Markup:
    """Who are you?"""
    wrong = [tag("p", problem, role="alert", class_="problem", id="name-problem")] if problem else []
    described = {"aria_describedby": "name-problem"} if problem else {}
    form = tag(
        "form",
        [
            _mark(view),
            tag("label", "Your name", for_="name"),
            void(
                "input", id="name", name="name", type="text", maxlength="60", required="required",
                autocomplete="nickname", autofocus="autofocus", value=view.name, **described,
            ),
            tag("button", "Begin", type="submit", class_="primary"),
        ],
        method="post", action="/name", class_="stack",
    )  # fmt: skip
    explanation = (
        "It goes with each of your labels, so that others get other rows. Use the same name on each of your devices."
    )
    content = [tag("h1", "Who is labelling?"), tag("p", explanation, class_="faint"), *wrong, form]
    return document(view.title, tag("main", tag("div", content, class_="sheet narrow"), class_="single", id="main"))


def label_page(view: View, work: Content, panel: Content) -> Markup:
    """The page to label on."""
    content = [
        tag("div", work, id="work"),
        tag("aside", panel, id="panel", aria_label="What labels are worth"),
    ]
    return _framed(view, "label", tag("main", content, class_="desk", id="main"))


def settle_page(view: View, work: Content) -> Markup:
    """The page to settle rows on."""
    return _framed(view, "settle", tag("main", tag("div", work, id="work"), class_="single", id="main"))


def _framed(view: View, here: str, content: Content) -> Markup:
    """A page with what is on all of them: where to go, and that the connection is lost."""
    settle = ["Settle ", tag("span", str(view.to_settle), class_="count")] if view.to_settle else "Settle"
    places: list[tuple[str, str, Content]] = [
        ("label", "/", "Label"),
        ("settle", "/settle", settle),
        ("keys", "/keys", "Keys"),
    ]
    links = [
        tag("a", shown, href=to, **({"aria_current": "page"} if place == here else {})) for place, to, shown in places
    ]
    who = tag("a", view.name, href="/name", class_="who", title="Not you? Change the name")
    header = tag("header", [tag("strong", view.title, class_="title"), tag("nav", links, aria_label="Pages"), who])
    lost = tag(
        "p",
        "The connection to the server is lost. What you did last is kept here, and sent as soon as it is back.",
        id="lost", role="alert", hidden="hidden",
    )  # fmt: skip
    live = tag("p", "", id="live", role="status", aria_live="polite", class_="unseen")
    skip = tag("a", "Skip to the row", href="#main", class_="unseen focusable")
    return document(f"{view.title}: {here}", [skip, header, lost, live, content])


def work_on(card: Card, view: View, notice: str = "") -> Content:
    """A row, and what can be answered."""
    form = [
        _mark(view),
        void("input", type="hidden", name="row", value=card.row),
        tag("p", "Row of an audit" if card.audit else "Row", class_="eyebrow"),
        tag("h1", card.row, id="row-title", tabindex="-1"),
        *([tag("p", _AUDIT, class_="faint", id="audit")] if card.audit else []),
        _values(card),
        _answers(view, ["What is ", tag("em", view.brief.target), " here?"]),
        _put_offs(view, audit=card.audit),
    ]
    return [
        _notice(notice),
        tag(
            "form", form, method="post", action="/answer", id="card", class_="sheet", data_row=card.row,
            aria_labelledby="row-title", autocomplete="off",
        ),
        tag("div", [_undo(card.undo, view), _guess_button(card.row)], class_="beside"),
    ]  # fmt: skip


def nothing_to_do(view: View, heading: str, sentences: Sequence[str], undo: int | None, *, waiting: bool) -> Content:
    """There is no row now, and why."""
    polite = {"data_wait": "1"} if waiting else {}
    spin = [tag("span", "", class_="spinner", aria_hidden="true")] if waiting else []
    settle = (
        [tag("p", tag("a", "Settle rows", href="/settle", class_="button"))] if view.to_settle and not waiting else []
    )
    content = [
        *spin,
        tag("h1", heading, id="row-title", tabindex="-1"),
        *(tag("p", each) for each in sentences),
        *settle,
    ]
    return [
        tag("div", content, class_="sheet empty", **polite),
        tag("div", _undo(undo, view), class_="beside"),
    ]


def settle_work(dispute: Dispute | None, left: int, view: View, undo: int | None, notice: str = "") -> Content:
    """A row on which annotators differ, or of which one was not sure."""
    if dispute is None:
        explanation = "Rows come here on which annotators differ, and those of which somebody was not sure."
        shown = [tag("h1", "Nothing to settle", id="row-title", tabindex="-1"), tag("p", explanation)]
        return [
            _notice(notice),
            tag("div", shown, class_="sheet empty"),
            tag("div", _undo(undo, view, "/settle"), class_="beside"),
        ]
    opinions = [tag("li", [tag("b", who), " says ", tag("b", label)]) for who, label in dispute.opinions]
    opinions += [tag("li", [tag("b", who), " was not sure"]) for who in dispute.unsure]
    form = [
        _mark(view),
        void("input", type="hidden", name="row", value=dispute.card.row),
        tag("p", f"To be settled; {counted(left, 'row')} left", class_="eyebrow"),
        tag("h1", dispute.card.row, id="row-title", tabindex="-1"),
        _values(dispute.card),
        tag("h2", "Opinions", class_="question"),
        tag("ul", opinions, class_="opinions"),
        _answers(replace(view, more_classes=False), ["What is ", tag("em", view.brief.target), " really?"]),
    ]
    return [
        _notice(notice),
        tag("form", form, method="post", action="/settle", id="card", class_="sheet", data_row=dispute.card.row,
            aria_labelledby="row-title", autocomplete="off"),
        tag("div", _undo(undo, view, "/settle"), class_="beside"),
    ]  # fmt: skip


def keys_page(view: View, problem: str | None = None, saved: bool = False) -> Markup:
    """Which key does what."""
    boxes = [
        tag("div", [
            tag("label", _meaning(name), for_=f"key-{place}"),
            void("input", id=f"key-{place}", name=name, value=view.keys.get(name, ""), maxlength="1", size="2",
                 autocapitalize="off", autocomplete="off", spellcheck="false"),
        ], class_="key")
        for place, name in enumerate(usual_keys(view.classes, view.numbers))
    ]  # fmt: skip
    fixed = "Ctrl+Z undoes what you did last. Enter saves a number. An empty box turns a key off."
    wrong = [tag("p", problem, role="alert", class_="problem")] if problem else []
    done = [tag("p", "Saved for this browser.", role="status", class_="notice")] if saved else []
    form = tag("form", [_mark(view), *boxes, tag("button", "Save", type="submit", class_="primary")], method="post",
               action="/keys", class_="stack")  # fmt: skip
    content = [tag("h1", "Keys"), tag("p", fixed, class_="faint"), *wrong, *done, form]
    return _framed(view, "keys", tag("main", tag("div", content, class_="sheet narrow"), class_="single", id="main"))


def _meaning(name: str) -> str:
    return name.removeprefix("class:") if name.startswith("class:") else ACT_LABELS[name][0]


def panel(
    view: View, card: Card | None, status: Status, *, ranked: str, curve: Sequence[tuple[int, float, float]],
    acquired: Content, people: Mapping[str, int], agreement: Sequence[str], problem: str | None,
) -> Content:  # fmt: skip
    """What labels are worth, what was spent, what is lost today, whether to go on, and who labels."""
    mood = next((name for start, name in _MOODS.items() if status.advice.startswith(start)), "ask")
    done = status.labelled / status.rows if status.rows else 0.0
    progress = [
        Markup(f'<progress id="done" max="1" value="{done:.4f}" aria-label="Rows that have a label"></progress>'),
        tag("p", f"{status.labelled:,} of {counted(status.rows, 'row')} have a label", class_="faint"),
    ]
    parts = [
        tag("p", ranked, id="ranked", class_="ranked"),
        *([tag("p", f"Something failed: {problem}", class_="problem")] if problem else []),
        tag(
            "dl",
            [tag("div", [tag("dt", name), tag("dd", value)]) for name, value in _money(card, status)],
            class_="money",
        ),
        tag("section", [tag("p", status.advice)], class_=f"advice {mood}", aria_label="Advice"),
        tag("div", progress, class_="progress"),
        tag("p", [loss_sentences(view.brief.loss), _mistakes(view.brief.loss.cost_matrix)], class_="faint loss"),
        learning_chart(curve),
        acquired,
    ]
    if len(people) > 1 or agreement:
        lines = [
            tag("li", [tag("span", who), " ", tag("span", counted(count, "label"), class_="faint")])
            for who, count in people.items()
        ]
        parts.append(
            tag(
                "section",
                [
                    tag("h2", "People"),
                    tag("ul", lines, class_="people"),
                    *(tag("p", each, class_="faint") for each in agreement),
                ],
            )
        )
    return parts


def _mistakes(matrix: Any) -> str:
    """What mistakes cost, one after another, where they are few."""
    if matrix is None:
        return ""
    costs = [(truth, name, cost) for truth, line in matrix.items() for name, cost in line.items() if cost]
    shown = [f"{name} where it is {truth} costs {short(cost)}" for truth, name, cost in costs[:_MISTAKES]]
    more = f", and {len(costs) - _MISTAKES} more" if len(costs) > _MISTAKES else ""
    return f" To say {'; '.join(shown)}{more}." if shown else ""


def _money(card: Card | None, status: Status) -> list[tuple[str, Content]]:
    """What labels are worth and cost, in units of the loss."""
    outlook: dict[str, Any] = status.outlook or {}
    offers, decisions = outlook.get("offers") or [], outlook.get("decisions")
    per = f"over {short(decisions)} decisions" if decisions else "a decision"
    times = decisions or 1.0
    rows: list[tuple[str, Content]] = []
    if card is not None:
        worth: Content = "nothing: it tests the model" if card.audit else "not known yet"
        worth = worth if card.worth is None else [number(card.worth * times), tag("small", f" {per}")]
        rows.append(("This label saves about", worth))
    offer = next((each for each in offers if each["size"] == 8), offers[-1] if offers else None)
    if offer is not None and offer["worth"] is not None:
        cost = f", for a cost of {short(offer['cost'])}" if offer["cost"] is not None else ""
        rows.append(
            (
                f"The next {counted(offer['size'], 'label')} save",
                [number(offer["worth"] * times), tag("small", f" {per}{cost}")],
            )
        )
    left = f" of {short(status.budget)}" if status.budget is not None else ""
    rows.append(("Spent", [short(status.spent), tag("small", left)]))
    rows.append(("Loss of a decision today", _today(status)))
    return rows


def _today(status: Status) -> Content:
    """By an audit where there is one, else as the model expects it; both with an interval."""
    audit = status.audit or {}
    if audit.get("mean") is not None:
        low, high = audit.get("low"), audit.get("high")
        span = f" {number(low)} to {number(high)}, measured by an audit" if low is not None and high is not None else ""
        return [number(audit["mean"]), tag("small", span)]
    today = (status.outlook or {}).get("today")
    if not today or today["value"] is None:
        return "not known yet"
    twice = 2.0 * today["error"] if today["error"] is not None and math.isfinite(today["error"]) else None
    span = "" if twice is None else f" {number(max(0.0, today['value'] - twice))} to {number(today['value'] + twice)}"
    return [number(today["value"]), tag("small", f"{span}, as the model expects")]


def _values(card: Card) -> Markup:
    """The cells of a row: long ones as paragraphs, files as what they hold, others as a list."""
    short_ones, long_ones = list[Markup](), list[Markup]()
    for name, value, long, image, content in card.values:
        if image:
            shown = void("img", src=f"/media/{quote(value)}", alt=f"{name}: {value}")
            long_ones.append(tag("figure", [shown, tag("figcaption", _breakable(f"{name}: {value}"))]))
        elif content is not None:
            long_ones.append(
                tag("div", [tag("h2", f"{name}: {value}", class_="name"), tag("p", content, class_="long")])
            )
        elif long or "\n" in value:
            long_ones.append(tag("div", [tag("h2", name, class_="name"), tag("p", value, class_="long")]))
        else:
            cell = _breakable(value or "\N{EN DASH}")
            short_ones.append(tag("div", [tag("dt", _breakable(name)), tag("dd", cell)]))
    return tag("div", [*long_ones, tag("dl", short_ones, class_="values") if short_ones else ""], class_="row")


def _breakable(value: str) -> Markup:
    """Words whose lines may end where people part names, such as after an underscore."""
    return Markup(Markup("<wbr>").join(map(text, _PARTS.split(value))))


def _answers(view: View, question: Content) -> Markup:
    """The question, with buttons or a box; few enough to stay in sight while a long row is read."""
    few = " few" if view.numbers or len(view.classes) <= _FEW else ""
    heading = tag("h2", question, class_="question", id="question")
    # Enter in a box presses the first button of a form, which is a class: one that cannot be pressed comes before it
    first = tag("button", "", type="submit", disabled="disabled", hidden="hidden") if view.more_classes else ""
    return Markup(text(first) + tag("div", [heading, _choices(view)], class_=f"answers{few}") + _other(view))


def _choices(view: View) -> Markup:
    """Buttons of classes with their keys, or a box for a number."""
    if view.numbers:
        unit = [tag("span", view.unit, class_="unit", id="unit")] if view.unit else []
        described = {"aria_describedby": "unit"} if view.unit else {}
        box = void("input", id="number", name="label", type="text", inputmode="decimal", required="required",
                   autocomplete="off", aria_labelledby="question", data_keep="1", **described)  # fmt: skip
        go = tag("button", ["Save ", tag("kbd", "Enter", aria_hidden="true")], type="submit", class_="primary")
        return tag("div", [box, *unit, go], class_="number")
    buttons = [
        tag(
            "button",
            [_kbd(view.keys.get(f"class:{name}")), tag("span", name)],
            type="submit", name="label", value=name, class_="choice", **_key(view.keys.get(f"class:{name}")),
        )
        for name in view.classes
    ]  # fmt: skip
    return tag("div", buttons, class_="choices", role="group", aria_labelledby="question")


def _other(view: View) -> Markup:
    """A box for a class that has not been seen yet, where there may be one."""
    if not view.more_classes:
        return Markup()
    other = [
        tag("label", "Another class", for_="other"),
        void("input", id="other", name="other", type="text", maxlength="200", autocomplete="off", data_keep="1"),
        tag("button", "Save", type="submit", name="label", value="", id="save-other"),
    ]
    return tag("details", [tag("summary", "Another class"), tag("div", other, class_="other")])


def _put_offs(view: View, *, audit: bool) -> Markup:
    buttons = [
        tag("button", [_kbd(view.keys.get(act)), tag("span", label)], type="submit", formaction="/off", name="act",
            value=act, formnovalidate="formnovalidate", title=meaning, class_="quiet", **_key(view.keys.get(act)))
        for act, (label, meaning) in ACT_LABELS.items()
        if not (audit and act == "unsure")  # a test has one label for each row, or none
    ]  # fmt: skip
    return tag("div", buttons, class_="acts", role="group", aria_label="No label now")


def _key(key: str | None) -> dict[str, str]:
    return {"data_key": key, "aria_keyshortcuts": key} if key else {}


def _kbd(key: str | None) -> Content:
    return tag("kbd", key, aria_hidden="true") if key else ""


def _undo(number_of_event: int | None, view: View, back: str = "/") -> Markup:
    off = {} if number_of_event is not None else {"disabled": "disabled"}
    content = [
        _mark(view),
        void("input", type="hidden", name="act", value=str(number_of_event or "")),
        void("input", type="hidden", name="back", value=back),
        tag("button", ["Undo ", tag("kbd", "Ctrl+Z", aria_hidden="true")], type="submit", class_="quiet",
            aria_keyshortcuts="Control+Z", **off),
    ]  # fmt: skip
    return tag("form", content, method="post", action="/undo", id="undo")


def _guess_button(row: str) -> Markup:
    return Markup(
        tag("button", "Show the model's guess", type="button", id="guess", class_="quiet", data_row=row)
        + tag("span", "", id="guessed", role="status")
    )


def _notice(message: str) -> Markup:
    return tag("p", message, class_="notice", id="notice", **({} if message else {"hidden": "hidden"}))


def _mark(view: View) -> Markup:
    return void("input", type="hidden", name="mark", value=view.mark)
