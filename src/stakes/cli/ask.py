"""`stakes ask`: rows to label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stakes._utils.text import counted, number
from stakes.campaign import Campaign
from stakes.campaign.rankings import LEASE, NO_MORE, STALE
from stakes.cli.options import force_option, json_option, table_moved, trust_option, verbose_option, who_option
from stakes.cli.output import (
    APART,
    apart_cells,
    as_json_or,
    local_time,
    note_lines,
    ranking_json,
    ranking_lines,
    rows_compared,
    shell_word,
    waiting,
    wrapped,
)
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stakes.ranking import Ranking
    from stakes.tabular.contrasts import Contrast

_DAY = 24 * 3600.0


@click.command("ask")
@click.argument("campaign")
@click.option("-n", "n", type=click.IntRange(min=1), default=1, show_default=True, help="How many rows.")
@click.option(
    "--days", type=click.FloatRange(0, min_open=True), default=7.0, show_default=True, help="Until the rows come back."
)
@click.option(
    "--annotator",
    metavar="NAME",
    help="Rows on which the opinion of NAME is worth most, also those that others have labelled.",
)
@click.option("-o", "--output", help="Write the rows, to be filled in and imported, to a CSV or an .xlsx.")
@force_option
@who_option
@table_moved
@trust_option
@verbose_option
@json_option
def ask_command(
    campaign: str,
    n: int,
    days: float,
    annotator: str | None,
    output: str | None,
    force: bool,
    who: str | None,
    table: str | None,
    trust: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Hand out the rows of CAMPAIGN to label next. Nobody else gets them until they come back."""
    if annotator is not None:
        if output is not None:
            raise StakesError("--annotator shows the rows and writes no file: leave --output out")
        _ask_annotator(campaign, annotator, n, days, table, trust=trust, as_json=as_json)
        return
    with Campaign.open(campaign, table, trust=trust) as opened, waiting("reading the table") as progress:
        if output is not None:
            opened.check_output(output, overwrite=force)
        asked = opened.ask(n, lease=days * _DAY, who=who, progress=progress)
        apart, labels = _apart(opened, asked)
        together = _together(opened, asked)
        advice = opened.advice()
        if output is not None and len(asked):
            _write(opened, asked.row_ids, apart, output, force, who)
    ours = {note.kind: note.values for note in asked.notes if note.kind in (LEASE, NO_MORE, STALE)}
    rest = [note for note in asked.notes if note.kind not in ours]
    more = {
        "until": ours.get(LEASE, {}).get("until"),
        "stale": ours.get(STALE, {}).get("why"),
        "done": ours.get(NO_MORE, {}).get("why"),
        "advice": advice,
    }
    answer = {**ranking_json(asked, apart, rest), **more}
    shown = ranking_lines(asked, apart, rows_compared(labels), verbose=verbose, together=together)
    as_json_or(as_json, answer, _lines(asked, shown, more, note_lines(rest, verbose=verbose), campaign, output))


def _ask_annotator(
    campaign: str, name: str, n: int, days: float, table: str | None, *, trust: bool, as_json: bool
) -> None:
    """Rows for one annotator, new ones and such as others have labelled."""
    with Campaign.open(campaign, table, trust=trust) as opened, waiting("ranking rows"):
        offers = opened.ask_annotator(name, n, lease=days * _DAY)
        ids = [opened.sheet.ids[each.row] for each in offers]
    rows = [
        {"row": row, "worth": each.worth, "price": each.price, "opinions": each.before}
        for row, each in zip(ids, offers, strict=True)
    ]
    if not rows:
        as_json_or(as_json, {"annotator": name, "rows": []}, [f"There is no row to hand out to {name}."])
        return
    before = ["none yet" if each.before == 0 else counted(each.before, "opinion") for each in offers]
    lines = [
        f"  {row}: worth {number(each.worth)} a decision; {known}"
        for row, each, known in zip(ids, offers, before, strict=True)
    ]
    hint = f"Next: stakes tell {shell_word(campaign)} {shell_word(ids[0])} LABEL --annotator {shell_word(name)}"
    as_json_or(as_json, {"annotator": name, "rows": rows}, [f"Rows for {name} to label:", "", *lines, "", hint])


def _apart(campaign: Campaign, asked: Ranking) -> tuple[list[tuple[Contrast, ...]], int]:
    """What sets each row apart from those with a label, and how many those are."""
    if not len(asked):
        return [], 0
    from stakes.tabular.contrasts import contrasts

    place = {row: position for position, row in enumerate(campaign.sheet.ids)}
    known = [place[row] for row, state in campaign.journal.states().items() if state.label is not None]
    return contrasts(campaign.sheet, [place[row] for row in asked.row_ids], known), len(known)


def _together(campaign: Campaign, asked: Ranking) -> list[float] | None:
    """What each row is worth with all that are ranked before it, a decision; None where the last outlook has it not."""
    from stakes.campaign.kept import RANKING, ranking_kept

    record = campaign.journal.last_record(RANKING)
    if record is None or asked.ranked_by != "together":
        return None
    worths = [each["worth"] for each in (record.payload["outlook"] or {}).get("offers") or []]
    known = dict(zip(ranking_kept(campaign.path, record).row_ids, worths, strict=False))
    return [known[row] for row in asked.row_ids] if all(row in known for row in asked.row_ids) else None


def _write(
    campaign: Campaign,
    rows: tuple[str, ...],
    apart: Sequence[tuple[Contrast, ...]],
    output: str,
    force: bool,
    who: str | None,
) -> None:
    """Rows that nobody was given, as they could not be written, go back."""
    try:
        campaign.export(output, rows=rows, more={APART: apart_cells(apart)}, overwrite=force)
    except BaseException:
        campaign.release(rows, who=who)
        raise


def _lines(
    asked: Ranking, shown: list[str], more: dict[str, Any], notes: list[str], campaign: str, output: str | None
) -> list[str]:
    if not len(asked):
        return [f"Nothing to hand out: {more['done']}."]
    file = shell_word(campaign)
    filled = f"Next: fill in {output}, then stakes import {file} {shell_word(output or '')}"
    how = filled if output else f"Next: stakes tell {file} {shell_word(asked.row_ids[0])} LABEL"
    fewer = [str(note) for note in asked.notes if note.kind == NO_MORE]
    return [
        f"Label these rows. They come back on {local_time(more['until'])}.",
        "",
        *shown,
        *(["", *wrapped(more["advice"])] if more["advice"] else []),
        *(["", *wrapped(f"Stale: {more['stale']}.")] if more["stale"] else []),
        *(["", *fewer] if fewer else []),
        *notes,
        "",
        how,
    ]
