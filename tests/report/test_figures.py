"""Laws of what a report is made of: labels in order, folds, checkpoints, losses, and text that stays text."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import BayesianRidge

from stakes._utils.markup import tag
from stakes.campaign import Event
from stakes.campaign.states import after
from stakes.exceptions import StakesError
from stakes.ranking import Amount, PromisedRound
from stakes.report.estimates import MOST, checkpoints, learning_curve
from stakes.report.evidence import FOLDS, attempted, folds, gather, no_folds, realised, standing_labels
from stakes.report.figures import promises_picture, shown_classes
from stakes.tabular import LossSpec
from stakes.tabular.loss_specs import loss_sentences
from tests.report.report_cases import ROWS, Page, create, truths

IDS = ("p", "q", "r")


@given(st.lists(st.tuples(st.sampled_from(["label", "replace", "withdraw", "ask"]), st.sampled_from(IDS)), max_size=12))
def test_the_labels_in_the_report_are_those_that_stand(pairs):
    history = [
        Event(number, 0.0, kind, row, f"l{number}" if kind in ("label", "replace") else None)
        for number, (kind, row) in enumerate(pairs, 1)
        if kind != "ask"
    ]
    states = {event.row: after(event) for event in history}  # the last event of a row says what became of it
    standing = {IDS[each.row]: each.label for each in standing_labels(history, IDS, 0, states)}
    assert standing == {row: state.label for row, state in states.items() if state.status == "labelled"}


def test_a_replaced_label_keeps_its_place_and_a_label_recorded_again_after_withdrawal_does_not():
    kinds = [("label", "p"), ("label", "q"), ("replace", "p"), ("withdraw", "q"), ("label", "r"), ("label", "q")]
    events = [
        Event(n, 0.0, kind, row, None if kind == "withdraw" else str(n)) for n, (kind, row) in enumerate(kinds, 1)
    ]
    standing = standing_labels(events, IDS, 2, {event.row: after(event) for event in events})
    assert [(IDS[each.row], each.label, each.initial) for each in standing] == [
        ("p", "3", True),
        ("r", "5", False),
        ("q", "6", False),
    ]


@given(st.integers(0, 60), st.integers(0, 60))
def test_checkpoints_rise_to_all_labels(initial, bought):
    found = checkpoints(initial, initial + bought)
    assert len(found) <= MOST
    assert found == sorted(set(found))
    assert found[-1:] == ([initial + bought] if initial + bought else [])
    assert all(each >= 1 for each in found)


@given(st.lists(st.sampled_from("abc"), min_size=8, max_size=40), st.integers(0, 5))
def test_folds_are_even_and_every_class_is_seen_without_any_of_them(labels, seed):
    dealt = folds(labels, True, seed)
    assert np.ptp(np.bincount(dealt, minlength=FOLDS)) <= 1
    if no_folds(labels, True) is None:
        for part in range(FOLDS):
            assert {labels[place] for place in np.flatnonzero(dealt != part)} == set(labels)


def test_too_few_labels_or_a_rare_class_have_no_folds():
    assert "takes 8 labels" in no_folds(["a"] * 7, False)
    assert "'b' has one label only" in no_folds(["a"] * 8 + ["b"], True)
    assert no_folds(["a"] * 8 + ["b"], False) is None


def test_the_realised_loss_is_that_of_a_loop_written_out(tmp_path):
    with create(tmp_path, "numbers", ROWS) as campaign:
        sheet = campaign.sheet
        found = realised(sheet, sheet.labels, ())
    x, y = np.stack(sheet.features.arrays, axis=1), np.asarray([float(each) for each in truths("numbers")])
    x = (x - x.mean(axis=0)) / x.std(axis=0)  # as the encoder does by all rows
    dealt, losses = folds(truths("numbers"), False, 0), np.empty(ROWS)
    for part in range(FOLDS):
        model = BayesianRidge().fit(x[dealt != part], y[dealt != part])
        losses[dealt == part] = (model.predict(x[dealt == part]) - y[dealt == part]) ** 2
    assert found.loss == pytest.approx(losses.mean(), rel=1e-6)
    assert found.error == pytest.approx(losses.std(ddof=1) / np.sqrt(ROWS), rel=1e-6)


def test_the_curve_ends_at_the_loss_that_the_outlook_expects(tmp_path):
    with create(tmp_path, "numbers", 12) as campaign:
        evidence, shares = gather(campaign), []
    curve = learning_curve(evidence, lambda what, share: shares.append(share))
    assert curve.expected[-1].labels == 12
    assert curve.expected[-1].loss == pytest.approx(evidence.status.outlook["today"]["value"])
    assert [each.labels for each in curve.realised] == [each for each in checkpoints(12, 12) if each >= 8]
    assert "No realised loss with 3, 4, 6, 7 labels: cross-validation takes 8 labels." in curve.notes
    assert shares == sorted(shares)


@given(st.text())
def test_whatever_people_write_is_text(text):
    page = Page(tag("p", text, title=text))
    assert [name for name, _ in page.elements] == ["p"]
    shown = "".join(page.texts).replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    if "\N{REPLACEMENT CHARACTER}" not in shown:
        assert shown == text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def test_the_most_frequent_classes_have_colours_of_their_own():
    names = [f"c{place}" for place in range(9) for _ in range(place + 1)]
    colours = shown_classes(names)
    assert list(colours) == ["c3", "c4", "c5", "c6", "c7", "c8"]
    assert len(set(colours.values())) == 6


def raises(error):
    raise error


def test_what_is_raised_becomes_a_reason(tmp_path):
    with create(tmp_path, "numbers", 12) as campaign:
        sheet = campaign.sheet
    assert attempted(sheet, 12, lambda: 3) == (3, "")
    for error, why in [
        (StakesError("refused."), "refused"),
        (FloatingPointError("too large"), "the model bayesian-ridge cannot be used with 12 labels: too large"),
        (KeyError("y"), "a bug of stakes, please report it (KeyError: 'y')"),
    ]:
        assert attempted(sheet, 12, lambda error=error: raises(error)) == (None, why)


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (LossSpec("linex", {"alpha": 0.02}), "linex (alpha 0.02). Too high hurts"),
        (LossSpec("linex", {"alpha": -2.0}), "linex (alpha -2). Too low hurts"),
        (LossSpec("linex"), "linex. Too high hurts"),
        (LossSpec("pinball", {"tau": 0.2}), "that 2 in 10 samples stay below: too high an answer costs 4 times"),
        (LossSpec("pinball", {"tau": 0.95}), "that 19 in 20 samples stay below: too low an answer costs 19 times"),
        (LossSpec("pinball", {"tau": 0.5}), "that 1 in 2 samples stay below: too low an answer costs as much as"),
        (LossSpec("pinball", {"tau": 0.333}), "that 33.3 in 100 samples stay below"),
        (
            LossSpec("threshold-decision", {"threshold": 30, "miss": 5}),
            "above 30. To wait when acting was",
        ),
        (LossSpec("box-cox", {"lam": 0.0}), "the power 0 of the target: ratios count."),
        (LossSpec("squared-error", weight="exp:0.01"), "Errors count exp(0.01 y) times"),
        (LossSpec("squared-error", weight=[(0.0, 1.0), (1.0, 2.0)]), "by the true value."),
        (LossSpec("brier", class_weights={"bus": 50.0}), "Errors count 50 times for bus."),
        (LossSpec("stakes.losses:SquaredError"), "The loss is stakes.losses:SquaredError."),
    ],
)
def test_a_loss_is_described_in_sentences(loss, sentence):
    assert sentence in loss_sentences(loss)


def promised(count, share, judged=30, audited=False):
    return tuple(
        PromisedRound(20 + 4 * r, 4, Amount(0.1, 0.02), 0.1, Amount(0.1 * share, 0.01), judged, audited)
        for r in range(count)
    )


@pytest.mark.parametrize(
    ("rounds", "parts"),
    [
        (
            promised(2, 0.5),
            ("2 rounds promised 0.2 and saved 0.1 (± 0.028)", "There is too little of it", "bought later"),
        ),
        (promised(40, 0.5), ("saved 2", "By this record 51% (± 16%) of a promise comes")),
        (promised(40, 2.0, audited=True), ("This record is no reason to promise less", "labels that an audit drew")),
        ((), ("No round of labels can be judged yet",)),
    ],
)
def test_promised_is_drawn_beside_delivered(tmp_path, rounds, parts):
    with create(tmp_path, "numbers", 8) as campaign:
        evidence = replace(gather(campaign), promises=rounds)
    picture = promises_picture(evidence)
    sentences = " ".join([picture.alt, *picture.notes])
    assert all(each in sentences for each in parts)
    assert (picture.png is None) == (not rounds)


def test_a_report_has_the_rounds_of_its_campaign(tmp_path):
    with create(tmp_path, "numbers", 6) as campaign:
        for _ in range(3):
            rows = campaign.ask(2).row_ids
            campaign.tell_many([(row, truths("numbers")[int(row[1:])]) for row in rows])
        evidence = gather(campaign)
        assert evidence.promises == campaign.promises()
    assert [each.bought for each in evidence.promises] == [2, 2]
    assert promises_picture(evidence).png
