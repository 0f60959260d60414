"""A campaign behind Label Studio: its order as predictions, and annotations as labels the moment they are made.

Two threads have the campaign open. One ranks the rows anew whenever labels have changed, and gives the last order
meanwhile; the other does all else, one thing at a time. What a webhook was answered with is on the disk.

Label Studio says of a deleted annotation nothing but its number, so which row an annotation was of is kept in the
campaign, as a record beside the events.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from stakes.exchange.answers import NOTHING, Answer, record_answers, row_of
from stakes.exchange.label_studio import annotation_label, annotator_name, check_config, prediction
from stakes.exchange.tasks import TaskList, choosable_classes, open_tasks, ranking_version

ANNOTATION = "label studio annotation"
"""The kind of the records that say which row an annotation is of."""
SOMEBODY = "label-studio"
"""Whose label an annotation is that tells nobody."""
_LAST = 1.0  # the score of rows that want no label
_MOST_TASKS = 100_000  # in one request

T = TypeVar("T")


class _Annotation(NamedTuple):
    """Which label an annotation of Label Studio is."""

    row: str
    label: str
    who: str


class LiveCampaign:
    """A campaign that answers the requests that Label Studio makes of a model.

    Args:
        path: The campaign file.
        table: Where its table is now, if it was moved.
        trust: Whether the classes that it names may be imported.
        guess: Whether people are shown what the model would answer.
        report: Called with a sentence on what was refused or could not be done.
        ranked: Called with every new order, in the thread that ranks.

    Raises:
        StakesError: If the campaign cannot be opened, or its rows cannot be given to Label Studio.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        table: str | None = None,
        trust: bool = False,
        guess: bool = False,
        report: Callable[[str], None] = lambda sentence: None,
        ranked: Callable[[TaskList], None] = lambda found: None,
    ) -> None:
        self._arguments = (path, table, trust)
        self._guess, self._report, self._ranked = guess, report, ranked
        self._desk = ThreadPoolExecutor(1, thread_name_prefix="stakes-desk")
        self._campaign = self._do(lambda: Campaign.open(path, table, trust=trust))
        try:
            self.classes = self._do(lambda: choosable_classes(self._campaign))
            self._annotations = self._do(self._known_annotations)
        except BaseException:
            self._do(self._campaign.close)
            raise
        self._changed, self._over, self._news = threading.Event(), threading.Event(), threading.Condition()
        self._order: TaskList | None = None
        self._last_sent: TaskList | None = None
        self._tried = -1  # changes of labels that the last attempt at a ranking knew
        self._scores: dict[str, tuple[float, str | None]] = {}
        self._changed.set()
        self._ranker = threading.Thread(target=self._rank_on, name="stakes-ranking", daemon=True)
        self._ranker.start()

    def close(self) -> None:
        """Let go of the campaign; a ranking under way is left to itself, as nothing is recorded by it."""
        if self._over.is_set():
            return
        self._over.set()
        self._changed.set()
        self._do(self._campaign.close)
        self._desk.shutdown()

    def _do(self, work: Callable[[], T]) -> T:
        """Done in the thread that has the campaign open, after all that came before."""
        return self._desk.submit(work).result()

    def setup(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What `/setup` answers: the name of the ranking, once the labelling interface is one that we can take.

        Args:
            body: The request; `schema` is the labelling interface.

        Returns:
            The answer.

        Raises:
            StakesError: If the interface has a class that the campaign does not know, or nothing to fill in.
        """
        config = body.get("schema")
        if isinstance(config, str) and config.strip():
            self._do(lambda: check_config(self._campaign, config))
        return {"model_version": self._do(lambda: ranking_version(self._campaign))}

    def predict(self, body: Mapping[str, Any], wait: float = 60.0) -> dict[str, Any]:
        """What `/predict` answers: the rank of each task as a score, by the order as it is now.

        Args:
            body: The request; `tasks` are those of Label Studio.
            wait: For how many seconds at most the latest labels are waited for. A single task is somebody who sits in
                front of it: it gets what is there.

        Returns:
            The answer: a prediction for each task, in their order.

        Raises:
            StakesError: If there is no list of tasks, or the rows could not be ranked at all.
        """
        tasks = body.get("tasks")
        if not isinstance(tasks, list) or len(tasks) > _MOST_TASKS or not all(isinstance(each, dict) for each in tasks):
            raise StakesError(f"'tasks' must be a list of tasks, {_MOST_TASKS:,} at most")
        version = self._do(lambda: ranking_version(self._campaign))
        self._wait_for(version, wait if len(tasks) != 1 or self._order is None else 0.0)
        if self._order is None:
            raise StakesError("the rows are not ranked yet; ask again in a moment")
        scores, rows = self._scores, self._do(lambda: [self._row_or_none(task) for task in tasks])
        found = [(_LAST, None) if row is None else scores.get(row, (_LAST, None)) for row in rows]
        return {
            "results": [prediction(score, guess, self.classes, version) for score, guess in found],
            "model_version": version,
        }

    def webhook(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """What `/webhook` answers once the labels of an annotation are on the disk.

        Args:
            body: What happened: an annotation was created, updated or deleted; all else changes nothing.

        Returns:
            How many labels were recorded, known already, replaced, recorded as an opinion, and withdrawn.

        Raises:
            StakesError: If a label is none for its row; nothing is recorded then.
        """
        action, done = body.get("action"), dict.fromkeys(("recorded", "known", "replaced", "opinions", "withdrawn"), 0)
        if action in ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"):
            done |= self._do(lambda: self._annotated(body, replace=action == "ANNOTATION_UPDATED"))
        elif action == "ANNOTATIONS_DELETED":
            done["withdrawn"] = self._do(lambda: self._deleted(body))
        elif action == "START_TRAINING":
            self._changed.set()
        if any(count for name, count in done.items() if name != "known"):
            self._changed.set()
        return done

    def _annotated(self, body: Mapping[str, Any], *, replace: bool) -> dict[str, int]:
        """Record what annotations say; one that was cancelled after it was made is taken back."""
        given, tasks = body.get("annotation"), body.get("task")
        annotations: list[Any] = given if isinstance(given, list) else [given]
        about: list[Any] = tasks if isinstance(tasks, list) else [tasks]
        if len(about) != len(annotations) or not all(isinstance(each, Mapping) for each in about):
            raise StakesError(f"a webhook must tell the task of each annotation: let it send its payload. {NOTHING}")
        answers: list[Answer] = []
        cancelled = []
        for annotation, task in zip(annotations, about, strict=True):
            place = f"task {task.get('id')}"
            label = annotation_label(annotation, place)
            if label is None:
                cancelled.append(annotation.get("id"))
                continue
            row = row_of(self._campaign, place, task.get("data"), task.get("meta"))
            answers.append(Answer(row, label, annotator_name(annotation.get("completed_by")) or SOMEBODY, place))
        made = [each for each in annotations if each.get("id") not in cancelled]
        recorded = record_answers(
            self._campaign, answers, replace=replace, before=lambda: self._remember(body, made, answers)
        )
        withdrawn = self._take_back(_project(body), cancelled) if replace else 0
        counts = dict(zip(("recorded", "known", "replaced", "opinions"), map(len, recorded), strict=True))
        return {**counts, "withdrawn": withdrawn}

    def _remember(self, body: Mapping[str, Any], annotations: list[Any], answers: list[Answer]) -> None:
        """Keep which rows annotations are of, before their labels: after a crash in between nothing is wrong."""
        for annotation, answer in zip(annotations, answers, strict=True):
            key = (_project(body), _number(annotation.get("id")))
            kept = _Annotation(answer.row, str(answer.label), answer.annotator or SOMEBODY)
            if None not in key and self._annotations.get(key) != kept:
                payload = {"project": key[0], "annotation": key[1], **kept._asdict()}
                self._campaign.journal.save_record(ANNOTATION, self._campaign.journal.version(), payload)
                self._annotations[key] = kept

    def _known_annotations(self) -> dict[tuple[int | None, int | None], _Annotation]:
        """By project and number, those of all records."""
        kept = [record.payload for record in self._campaign.journal.records(ANNOTATION)]
        return {
            (_number(each.get("project")), _number(each.get("annotation"))): _Annotation(
                str(each.get("row")), str(each.get("label")), str(each.get("who"))
            )
            for each in kept
            if isinstance(each, dict)
        }

    def _deleted(self, body: Mapping[str, Any]) -> int:
        """Take back the labels of annotations that were deleted."""
        given = body.get("annotations")
        if not isinstance(given, list) or not all(isinstance(each, Mapping) for each in given):
            raise StakesError(f"a webhook must tell which annotations were deleted: let it send its payload. {NOTHING}")
        return self._take_back(_project(body), [each.get("id") for each in given])

    def _take_back(self, project: int | None, numbers: list[Any]) -> int:
        """Take back what annotations reported, as far as it still stands; how many there were."""
        count = 0
        for number in numbers:
            known = self._annotations.get((project, _number(number)))
            if known is None:
                continue
            state = self._campaign.journal.state(known.row)
            if any(each.row == known.row and each.annotator == known.who for each in self._campaign.opinions()):
                self._campaign.retract(known.row, known.who)
            elif state.status == "tested" and state.who == known.who:
                self._campaign.withdraw([known.row], who=known.who)
            else:
                continue
            count += 1
        return count

    def _row_or_none(self, task: Mapping[str, Any]) -> str | None:
        """The row of a task; None for one that is not ours, which is shown last."""
        try:
            return row_of(self._campaign, f"task {task.get('id')}", task.get("data"), task.get("meta"))
        except StakesError:
            return None

    def _wait_for(self, version: str, seconds: float) -> None:
        """Until these labels, or later ones, were ranked, or could not be; or for so many seconds."""
        with self._news:
            self._news.wait_for(lambda: self._tried >= _count(version), seconds)

    def _rank_on(self) -> None:
        """Rank the rows, and again whenever labels have changed, until it is over."""
        path, table, trust = self._arguments
        try:
            with Campaign.open(path, table, trust=trust) as campaign:
                while self._changed.wait() and not self._over.is_set():
                    self._changed.clear()
                    self._try_to_rank(campaign)
        except (StakesError, OSError) as error:
            self._report(f"The rows are not ranked any more: {error}")

    def _try_to_rank(self, campaign: Campaign) -> None:
        version = ranking_version(campaign)
        try:
            if self._order is None or self._order.version != version:
                found = open_tasks(campaign, guess=self._guess)
                self._scores = {task.row: (task.score, task.guess) for task in found.tasks}
                self._order, version = found, found.version
        except Exception as error:  # the last order is still good for something
            self._report(f"The rows could not be ranked anew: {error}")
        with self._news:
            self._tried = _count(version)
            self._news.notify_all()
        if self._order is None or self._order is self._last_sent or self._over.is_set():
            return
        self._last_sent = self._order
        try:
            self._ranked(self._order)
        except Exception as error:  # the next order is ranked all the same
            self._report(f"The new order could not be passed on: {error}")


def _count(version: str) -> int:
    """How many changes of labels a ranking knows."""
    return int(version.rpartition("-")[2])


def _project(body: Mapping[str, Any]) -> int | None:
    project = body.get("project")
    return _number(project.get("id") if isinstance(project, Mapping) else None)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
