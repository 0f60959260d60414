"""The one call: gather, draw, and write the page, whole or not at all."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path

from stakes.campaigns import Campaign
from stakes.ranking.question import Progress, silent
from stakes.reports import sections
from stakes.reports.canvas import check_canvas
from stakes.reports.contexts import contexts
from stakes.reports.errors import ReportError, attempted
from stakes.reports.evidence import Evidence, gather
from stakes.reports.learning import learning_curve
from stakes.reports.markup import Markup, page
from stakes.reports.pictures import Picture, learning_picture, worth_picture
from stakes.reports.scenes import acquired_picture, contexts_picture
from stakes.reports.style import STYLE

_BEGINNING = "<!doctype html>"
_CURVE = (0.2, 0.9)  # the share of time between which the learning curve is made


def write_report(campaign: Campaign, path: str | os.PathLike[str], *, progress: Progress | None = None) -> None:
    """Write the report of a campaign as one HTML file; another HTML file is replaced, anything else is refused."""
    where = _checked(Path(path))
    check_canvas()
    tell = progress or silent
    tell("thinking about the next labels", 0.0)
    _replace(where, report(gather(campaign), tell))
    tell("written", 1.0)


def report(evidence: Evidence, tell: Progress) -> Markup:
    """The page."""
    drawn = _pictures(evidence, tell)
    said = (evidence.ranking or {"said": evidence.sheet.said})["said"]
    content = [
        sections.heading(evidence),
        sections.advice(evidence),
        sections.counts(evidence),
        sections.next_rows(evidence),
        sections.pictures(drawn),
        sections.assumptions(said),
        sections.history(evidence),
        sections.origin(evidence, time.time()),
    ]
    return page(f"{evidence.setup.brief.target}: report of {evidence.name}", STYLE, content)


def _pictures(evidence: Evidence, tell: Progress) -> list[Picture]:
    low, high = _CURVE

    def done(share: float) -> None:
        tell("drawing the learning curve", low + (high - low) * share)

    done(0.0)
    curve = learning_curve(evidence, done)
    tell("looking where the model is unsure", high)
    return [
        learning_picture(curve, evidence),
        acquired_picture(evidence),
        worth_picture(evidence),
        _unsure(evidence),
    ]


def _unsure(evidence: Evidence) -> Picture:
    heading = "Where the model is unsure"
    labels = set(evidence.labels().values())
    if not evidence.pool or not labels or (evidence.task == "classes" and len(labels) == 1):
        why = "No row is open." if not evidence.pool else "There are too few labels for a model."
        return Picture(heading, None, "", (why,))
    found, why_not = attempted(lambda: contexts(evidence))
    return (
        Picture(heading, None, "", (f"No picture: {why_not}.",)) if found is None else contexts_picture(found, evidence)
    )


def _checked(path: Path) -> Path:
    """A place where a report may be written."""
    if not path.parent.is_dir():
        raise ReportError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise ReportError(f"{path} is a folder; give the name of a file, such as {path / 'report.html'}")
    if path.exists() and not path.read_bytes()[: len(_BEGINNING)].lower() == _BEGINNING.encode():
        raise ReportError(f"{path} is there and is no HTML page, so it is not replaced. Give another name.")
    return path


def _replace(where: Path, text: str) -> None:
    part = where.with_name(f".{where.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, where)
    except OSError as error:
        raise ReportError(f"{where} cannot be written: {error.strerror}. Nothing was changed.") from error
    finally:
        part.unlink(missing_ok=True)
