"""What a campaign says of several annotators: opinions, disagreements, prices, and what the model is fitted to."""

import pytest

from stakes import Campaign
from stakes.exceptions import StakesError
from stakes.files import write_csv
from stakes.tabular import ModelSpec


@pytest.fixture
def classes(tmp_path):
    rows = [(f"r{x}", x, "cat" if x < 3 else "dog" if x < 6 else None) for x in range(12)]
    write_csv(tmp_path / "t.csv", ["id", "x", "kind"], rows)
    settings = {"id_column": "id", "model": ModelSpec("random-forest"), "label_cost": 2.0, "budget": 30.0}
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.csv", "kind", "zero-one", **settings) as made:
        yield made


@pytest.fixture
def numbers(tmp_path):
    rows = [(f"r{x}", x, 10.0 * x if x < 6 else None) for x in range(12)]
    write_csv(tmp_path / "t.csv", ["id", "x", "y"], rows)
    settings = {"id_column": "id", "model": ModelSpec("bayesian-ridge")}
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.csv", "y", "squared-error", **settings) as made:
        yield made


def test_opinions_of_classes_differ_until_somebody_settles_them(classes):
    classes.tell("r8", "cat", annotator="anna")
    classes.tell("r8", "dog", annotator="ben")
    classes.tell("r7", "dog", annotator="anna")
    classes.tell("r7", "dog", annotator="ben")
    assert classes.disagreements() == ("r8",)
    assert classes.status(refresh=False).disagreements == 1
    with pytest.raises(StakesError, match="'owl'"):
        classes.settle("r8", "owl", "cleo")
    classes.settle("r8", "dog", "cleo")
    assert classes.disagreements() == ()
    assert classes.journal.state("r8").label == "dog"


def test_numbers_that_are_close_are_no_disagreement(numbers):
    numbers.tell("r8", 80.0, annotator="anna")
    numbers.tell("r8", 81.0, annotator="ben")
    numbers.tell("r9", 90.0, annotator="anna")
    numbers.tell("r9", 50.0, annotator="ben")
    assert numbers.disagreements() == ("r9",)
    assert numbers.tell("r9", "50.00", annotator="ben").known == ("r9",)


def test_an_opinion_is_paid_for_at_the_price_of_whoever_gives_it(classes):
    classes.set_annotators({"expert": 5.0})
    classes.tell("r8", "cat", annotator="student")
    assert classes.status(refresh=False).spent == 2.0
    classes.tell("r8", "cat", annotator="expert")
    assert classes.status(refresh=False).spent == 12.0
    classes.journal.undo("expert")
    assert classes.status(refresh=False).pending == 10.0
    classes.tell("r8", "dog", annotator="expert")  # once more: it was paid for
    assert classes.status(refresh=False).spent == 12.0
    classes.settle("r8", "dog", "student")
    assert classes.status(refresh=False).spent == 14.0


def test_a_price_holds_from_when_it_was_set(classes):
    classes.set_annotators({"expert": 5.0})
    classes.tell("r8", "cat", annotator="expert")
    classes.set_annotators({"expert": 1.0, "student": 0.5})
    classes.tell("r9", "cat", annotator="expert")
    assert classes.status(refresh=False).spent == 12.0
    assert classes.annotators() == {"expert": 1.0, "student": 0.5}
    with pytest.raises(StakesError, match="price"):
        classes.set_annotators({"expert": -1.0})


def test_rows_of_which_somebody_was_unsure_are_not_asked_for_and_labels_that_were_settled_train_the_model(classes):
    for row in ("r6", "r7"):
        classes.journal.lease([row], 1, who="anna")
        classes.journal.put_off(row, "unsure", "anna")
    assert classes.status(refresh=False).unsure == 2
    assert {"r6", "r7"}.isdisjoint(classes.ask(2).row_ids)
    classes.settle("r6", "dog", "ben")
    assert classes.status().outlook_labels == 7


def test_what_is_retracted_makes_a_ranking_old(classes):
    classes.tell("r8", "cat", annotator="anna")
    classes.status()
    assert classes.status(refresh=False).stale is None
    classes.journal.undo("anna")
    assert "older than the last 1 change" in classes.status(refresh=False).stale


def test_one_person_takes_back_their_labels_and_others_stay(classes):
    classes.tell("r8", "cat", annotator="anna")
    classes.tell("r8", "dog", annotator="ben")
    classes.retract("r8", "anna")
    assert classes.journal.state("r8").label == "dog"
    assert [each[:3] for each in classes.opinions() if each.row == "r8"] == [("r8", "ben", "dog")]
    classes.retract("r8", "ben")
    assert classes.journal.state("r8").status == "open"
    before = classes.journal.version()
    for row, person in (("r8", "ben"), ("r9", "anna"), ("no such row", "anna")):
        with pytest.raises(StakesError):
            classes.retract(row, person)
    assert classes.journal.version() == before
    classes.check()


def test_labels_are_checked_and_read_without_being_recorded(classes):
    before = classes.journal.version()
    assert classes.checked_labels([("r8", " cat ")]) == [("r8", "cat")]
    with pytest.raises(StakesError, match="'cow' is no class"):
        classes.checked_labels([("r8", "cat"), ("r9", "cow")])
    assert classes.checked_labels([("r9", "cow")], new_class=True) == [("r9", "cow")]
    assert classes.journal.version() == before


def test_the_model_is_fitted_to_what_opinions_come_to(classes):
    """Ben errs on rows whose label is known, so that where the two differ it is Anna who is believed."""
    for row in ("r0", "r1", "r2", "r3", "r4", "r5"):
        classes.tell(row, "cat" if row < "r3" else "dog", annotator="anna")
        classes.tell(row, "dog", annotator="ben")
    classes.tell("r8", "dog", annotator="ben")
    classes.tell("r8", "cat", annotator="anna")
    assert classes.journal.state("r8").label == "dog"  # the first one, until somebody settles it
    assert classes.training_labels()["r8"] == "cat"
    classes.settle("r8", "dog", "cleo")
    assert classes.training_labels()["r8"] == "dog"


def test_of_numbers_the_model_is_fitted_to_a_mean_by_precision(numbers):
    for at, row in enumerate(("r6", "r7", "r8", "r9", "r10", "r11")):
        numbers.tell(row, 60.0 + 10 * at + 3 * (-1) ** at, annotator="ben")
        numbers.tell(row, 60.0 + 10 * at, annotator="anna")
        numbers.tell(row, 60.1 + 10 * at, annotator="cleo")
    labels = numbers.training_labels()
    assert labels["r0"] == "0.0"
    for at, row in enumerate(("r6", "r7", "r8")):
        assert abs(float(labels[row]) - (60.0 + 10 * at)) < 1.0  # nearer to the two who agree than to Ben
