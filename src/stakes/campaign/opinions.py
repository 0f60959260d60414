"""Several annotators of one row: what they cost, where they differ, and how reliable they are."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stakes.campaign.kept import annotators_kept
from stakes.campaign.project import Project
from stakes.campaign.sqlite import kept_in
from stakes.campaign.standing import Standing, standing_of
from stakes.campaign.states import Opinion
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes.evaluation import Annotators


def prices_of_annotators(project: Project) -> dict[str, float]:
    """What labels of annotators cost, by name: how many times what a label costs; others take it once."""
    standing_of(project)  # what others have set is known
    with kept_in(project.path, "its setting 'annotators'"):
        return annotators_kept(project.settings.get("annotators"))


def beyond_doubt(project: Project) -> dict[str, str]:
    """By row: labels that came without a name, or were settled."""
    known = {each.row: each.label for each in project.journal.opinions() if each.annotator is None}
    settled = project.journal.replay.settled
    return known | {row: event.label for row, event in settled.items() if event.label is not None}


def believed_labels(project: Project) -> dict[str, str]:
    """By row: what opinions that differ come to, where the row has several and nobody has settled it.

    Of classes, the most probable one by the confusion matrices of all annotators; of numbers, the mean of opinions less
    biases, weighted by precision. A row whose opinions are alike keeps its label, and so does one whose mean the loss
    cannot judge.
    """
    replay = project.journal.replay
    several = {row for row, given in replay.opinions.items() if len(given) > 1 and row not in replay.settled}
    differ = {row for row in several if len({event.label for event in replay.opinions[row].values()}) > 1}
    if not differ:
        return {}
    found = _estimated(project.journal.opinions(), beyond_doubt(project), (), numbers=project.numbers)
    if project.numbers:
        means = zip(found.rows, found.truth.tolist(), strict=True)
        return {row: repr(value) for row, value in means if row in differ and _can_be_label(project, repr(value))}
    best = found.truth.argmax(axis=1)
    return {row: found.classes[at] for row, at in zip(found.rows, best, strict=True) if row in differ}


def _can_be_label(project: Project, label: str) -> bool:
    try:
        project.check_label(label, ())
    except StakesError:
        return False
    return True


def trained_on(project: Project, now: Standing) -> dict[int, str]:
    """The labels that a model is fitted to, by position in the table: those of tests are kept apart.

    Where opinions on a row differ, it is what they come to by the reliability of those who gave them.
    """
    labelled = {row: state.label for row, state in now.states.items() if state.status == "labelled"}
    labelled |= {row: label for row, label in believed_labels(project).items() if row in labelled}
    return {
        position: label for position, row in enumerate(project.sheet.ids) if (label := labelled.get(row)) is not None
    }


def rows_in_dispute(project: Project) -> tuple[str, ...]:
    """The rows on which annotators differ, and which nobody has settled, in the order of the table."""
    project.journal.version()  # what others have reported is known
    replay = project.journal.replay
    several = [row for row, each in replay.opinions.items() if len(each) > 1]
    if not several:
        return ()
    same = same_labels(project)
    places = {row: place for place, row in enumerate(replay.rows)}
    return tuple(sorted((row for row in several if replay.disagree(row, same)), key=places.__getitem__))


def same_labels(project: Project) -> Callable[[str, str], bool]:
    """A function that tells whether two labels are taken for the same, as `disagreements` does."""
    if not project.numbers:
        return str.__eq__
    values = [float(each.label) for each in project.journal.opinions()]
    near = 0.1 * (statistics.pstdev(values) if len(values) > 1 else 0.0)
    return lambda one, other: abs(float(one) - float(other)) <= near


def reliability_of(project: Project) -> tuple[str, ...]:
    """How reliable annotators are, each with a standard error, and how far they agree."""
    opinions = project.journal.opinions()
    if all(each.annotator is None for each in opinions):  # nobody to tell of
        return ()
    classes = tuple(project.brief.classes or ())
    return describe_reliability(opinions, beyond_doubt(project), classes, numbers=project.numbers)


def describe_reliability(
    opinions: Sequence[Opinion], known: Mapping[str, str], classes: Sequence[str], *, numbers: bool
) -> tuple[str, ...]:
    """A sentence on each annotator and one on their agreement; nothing where no row has two opinions.

    Args:
        opinions: What each annotator says of each row.
        known: By row: labels that are beyond doubt, as they were settled or came with the table.
        classes: All classes; none for numbers.
        numbers: Whether labels are numbers.

    Returns:
        The sentences.
    """
    named = [(each.row, each.annotator, each.label) for each in opinions if each.annotator is not None]
    several = Counter(row for row, _, _ in named)
    twice = any(count > 1 for count in several.values())
    if not twice and (numbers or not any(row in known for row in several)):
        return ()
    from stakes.evaluation import agreement  # with NumPy and scikit-learn

    found = str(_estimated(opinions, known, classes, numbers=numbers)).splitlines()
    if numbers:
        found.append(f"{agreement([(row, who, float(label)) for row, who, label in named], level='interval')}.")
    elif twice:
        found.append(f"{agreement(named, level='nominal')}.")
    return tuple(found)


def _estimated(
    opinions: Sequence[Opinion], known: Mapping[str, str], classes: Sequence[str], *, numbers: bool
) -> Annotators:
    """All annotators with a name, and what their opinions together say of each row."""
    from stakes.evaluation import estimate_annotators  # with NumPy and scikit-learn

    named = [(each.row, each.annotator, each.label) for each in opinions if each.annotator is not None]
    if numbers:
        return estimate_annotators([(row, who, float(label)) for row, who, label in named], task="real")
    names = sorted({*classes, *known.values(), *(label for _, _, label in named)})
    sure: dict[Any, list[float]] = {row: [float(name == label) for name in names] for row, label in known.items()}
    return estimate_annotators(named, classes=names, task="classes", row_probabilities=sure)
