"""What `print` and a notebook show of a campaign: where it stands by the last ranking, and whether to go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stakes._utils.text import (
    counted,
    if_a_member_is_right,
    number,
    plus_minus,
    plus_minus_explained,
    short,
    sizes_shown,
)
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes._utils.markup import Content
    from stakes.campaign.campaign import Campaign
    from stakes.campaign.states import Status


def campaign_text(campaign: Campaign) -> str:
    """A campaign in lines of text; whatever is wrong with it is said in place of them."""
    try:
        return "\n".join([_title(campaign), *status_lines(_status(campaign))])
    except StakesError as error:
        return f"Campaign {campaign.path.name}\n{error}"


def campaign_html(campaign: Campaign) -> str:
    """The same with pictures: which rows have labels, and how the expected loss fell."""
    from stakes._utils.notebook import advice_box, cell, folded, lines, parts_bar, table, title

    try:
        status = _status(campaign)
    except StakesError as error:
        return cell(title(f"Campaign {campaign.path.name}"), lines([str(error)]))
    counts = [
        ("labelled", status.labelled), ("asked for", status.asked), ("skipped", status.skipped),
        ("tested", status.testing + status.tested), ("somebody was not sure of", status.unsure),
    ]  # fmt: skip
    offers = _shown(status.outlook)
    rows = [
        (str(each["size"]), _amount(each["worth"], each["error"]), "" if each["cost"] is None else short(each["cost"]))
        for each in offers
    ]
    next_rows = _next_rows(campaign)
    return cell(
        title(_title(campaign)),
        parts_bar([*counts, ("open", status.open)]),
        advice_box([status.advice]),
        lines([*_standing(status), *_audit_and_today(status), *([f"Stale: {status.stale}"] if status.stale else [])]),
        table(["next labels", "saved of a decision", "cost"], rows, numbers=(0, 1, 2)) if rows else "",
        _learning(campaign),
        folded("The rows to label next", next_rows) if next_rows else "",
    )


def status_lines(status: Status, wrapped: Callable[[str], list[str]] = lambda text: [text]) -> list[str]:
    """A status as lines of text, the advice last.

    Args:
        status: The status.
        wrapped: How long sentences are broken into lines; by default they are not.

    Returns:
        The lines.
    """
    return [
        *_standing(status),
        *_audit_and_today(status, wrapped),
        *map(_offer_line, _shown(status.outlook)),
        *(wrapped(f"Stale: {status.stale}") if status.stale else []),
        *wrapped(status.advice),
    ]


def _status(campaign: Campaign) -> Status:
    campaign.journal.version()  # says it plainly where the file is closed
    return campaign.status(refresh=False)


def _title(campaign: Campaign) -> str:
    brief = campaign.brief
    return f"Campaign {campaign.path.name}: {brief.target}, {brief.loss.name}"


def _to_settle(count: int) -> str:
    return f"On {counted(count, 'row')} annotators differ: stakes label has them to be settled."


def _standing(status: Status) -> list[str]:
    """Rows, money and annotators."""
    counts = f"{status.rows} rows: {status.labelled} labelled, {status.asked} asked for, {status.skipped} skipped, "
    tests = f", {status.testing} drawn to test the model" if status.testing else ""
    tests += f", {status.tested} tested" if status.tested else ""
    tests += f", {status.unsure} that somebody was not sure of" if status.unsure else ""
    money = f"Spent {short(status.spent)}"
    if status.budget is not None:
        left, promised = short(status.budget_left or 0.0), short(status.pending)
        money += f" of {short(status.budget)}; {left} left, {promised} promised"
    differ = [_to_settle(status.disagreements)] if status.disagreements else []
    return [f"{counts}{status.open} open{tests}", money, *differ, *status.annotators]


def _audit_and_today(status: Status, wrapped: Callable[[str], list[str]] = lambda text: [text]) -> list[str]:
    """What an audit tells, and what is expected of a decision."""
    audit = wrapped(status.audit["text"]) if status.audit else []
    if (outlook := status.outlook) is None:
        return audit
    condition = if_a_member_is_right(offer.get("joint") for offer in outlook["offers"])
    today, most = _amount(**outlook["today"], explained=True), _amount(**outlook["most"])
    labels = counted(status.outlook_labels or 0, "label")
    return [
        *audit,
        *wrapped(f"After {labels} the expected loss of a decision is {today}."),
        f"The most that labels can save of it{condition}: {most}.",
    ]


def _shown(outlook: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Offers of 1, 2, 4, .. labels, and the one that the advice names."""
    offers = (outlook or {}).get("offers") or []
    sizes = sizes_shown([each["size"] for each in offers], [each["net"] for each in offers])
    return [each for each in offers if each["size"] in sizes]


def _offer_line(offer: dict[str, Any]) -> str:
    saves = "label saves" if offer["size"] == 1 else f"{offer['size']} labels save"
    return f"The next {saves} {_amount(offer['worth'], offer['error'])} a decision{_price(offer)}."


def _price(offer: dict[str, Any]) -> str:
    """From how many decisions on labels are worth their cost, where that is known and ever so."""
    if offer["break_even"] is None:
        return ""
    return f"; worth the cost of {short(offer['cost'])} from {number(offer['break_even'], 3)} decisions on"


def _amount(value: float | None, error: float | None, *, explained: bool = False) -> str:
    if value is None or error is None:
        return "not known"
    return plus_minus_explained(value, error) if explained else plus_minus(value, error)


def _learning(campaign: Campaign) -> Content:
    """The expected loss of a decision by each ranking that was kept, with two standard errors."""
    from stakes._utils.notebook import Curve, curves
    from stakes.campaign.kept import RANKING

    points: dict[int, tuple[float, float, float, float]] = {}
    for record in campaign.journal.records(RANKING):
        labels, today = record.payload["labels"], (record.payload["outlook"] or {}).get("today") or {}
        value, error = today.get("value"), today.get("error")
        if value is not None and error is not None:
            points[labels] = (labels, value, value - 2 * error, value + 2 * error)
    return curves([Curve("", [points[labels] for labels in sorted(points)])], "labels", "Expected loss of a decision")


def _next_rows(campaign: Campaign) -> Content:
    from stakes._utils.markup import Markup
    from stakes.campaign.kept import RANKING, ranking_kept

    last = campaign.journal.last_record(RANKING)
    ranking = None if last is None else ranking_kept(campaign.path, last)
    return Markup(ranking._repr_html_()) if ranking is not None and len(ranking) else ""
