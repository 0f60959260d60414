"""Promises: halfway between members and a learning curve, with errors that include the model."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import stakes
from stakes.ranking import Amount
from stakes.ranking.outlook import (
    CLASS_RATE,
    GAUSSIAN_SHARE,
    MEMBER_RATE,
    MEMBER_SHARE,
    SPREAD,
    SURE_SHARE,
    class_rate,
    curve,
    member_share_of,
    most_of_members,
    of_gaussian,
    of_members,
    rate_of,
)

JOINT = np.array([0.1, 0.2, 0.3, 0.4])
HONEST = np.array([0.02, 0.05, 0.05, 0.05]), np.full(4, 0.01)
BESIDE = curve(MEMBER_RATE, 0.5, 20, 4)


def test_a_curve_by_hand():
    """Of 1.4 that can be saved, 60 labels beside 20 save the share .75^.8, .7944; the first of them (1/21)^.8."""
    found = curve(0.7, 2.0, 20, 60)
    assert found[-1] == pytest.approx(1.4 * 0.7944179, rel=1e-6)
    assert found[0] == pytest.approx(1.4 * 0.0875436, rel=1e-6)
    assert (curve(0.7, 2.0, None, 5) == 0).all()


def test_the_curve_grows_ever_more_slowly_and_less_with_more_labels():
    """The first of a batch is worth more than its share of it, and all of what can be saved is the limit."""
    found = curve(0.5, 1.0, 20, 5000)
    steps = np.diff(found, prepend=0.0)
    assert (steps > 0).all()
    assert (np.diff(steps) < 0).all()
    assert found[0] > (16 / 36 / 16) * 0.5 * 1.2
    assert 0.99 * 0.5 < found[-1] < 0.5
    assert (curve(0.5, 1.0, 40, 16) < found[:16]).all()
    assert curve(0.5, 1.0, 0, 2) == pytest.approx([0.5, 0.5])


def test_the_rate_goes_by_bits_of_a_class(rng):
    assert class_rate(2) == CLASS_RATE == 0.12
    assert class_rate(8) == pytest.approx(0.36)
    assert (class_rate(1), class_rate(2000)) == (0.0, 1.0)
    votes = rng.integers(0, 4, (3, 5))
    assert rate_of(stakes.VoteEnsemble(votes, votes, 4)) == pytest.approx(0.24)
    assert rate_of(stakes.VoteEnsemble(votes, votes, 4).as_probabilities()) == pytest.approx(0.24)
    normals = stakes.NormalEnsemble(votes * 1.0, votes + 1.0, votes * 1.0, votes + 1.0)
    assert rate_of(normals) == MEMBER_RATE


def test_less_is_promised_of_members_that_vote(rng):
    votes = stakes.VoteEnsemble(rng.integers(0, 4, (3, 5)), rng.integers(0, 4, (2, 5)), 4)
    assert member_share_of(votes) == SURE_SHARE == pytest.approx(1 / 3)
    assert member_share_of(votes.as_probabilities()) == MEMBER_SHARE == 1.0


def test_promises_of_two_and_of_eight_classes_by_hand():
    """20 labels, an expected loss of .5: the next 5 save .06, and .12 or .36 of .5 times .2^.8."""
    honest, joint = (np.full(5, 0.06), np.zeros(5)), np.full(5, 0.3)
    for classes, curved in ((2, 0.01655676), (8, 0.04967028)):
        worths, errors = of_members(honest, joint, 0.5, 20, class_rate(classes))
        assert worths[-1] == pytest.approx(0.06 + curved, rel=1e-6)
        assert errors[-1] == pytest.approx(1.25 * max(0.06 + curved, 0.06 * np.log2(classes) * 0.4472136), rel=1e-6)


def test_members_beside_the_curve():
    worths, errors = of_members(HONEST, JOINT, 0.5, 20, MEMBER_RATE)
    assert worths == pytest.approx(MEMBER_SHARE * HONEST[0] + BESIDE)
    root = MEMBER_RATE * 0.5 * np.sqrt(np.arange(1, 5) / np.arange(21, 25))  # or the worths themselves
    assert errors == pytest.approx(np.hypot(MEMBER_SHARE * 0.01, SPREAD * np.maximum(root, worths)))
    assert of_members(None, JOINT, 0.5, 20, MEMBER_RATE)[0] == pytest.approx(BESIDE)


def test_no_promise_is_above_what_it_would_be_if_a_member_were_right():
    """But the model may be wrong about that: the error stays."""
    worths, errors = of_members(HONEST, np.zeros(4), 0.5, 20, MEMBER_RATE)
    assert (worths == 0).all()
    assert (errors >= SPREAD * BESIDE).all()
    worths, _ = of_members(HONEST, np.array([0.0, 0.001, 0.3, 0.3]), 0.5, 20, MEMBER_RATE)
    assert worths[:2] == pytest.approx([0.0, 0.001])
    assert (np.diff(worths) >= 0).all()


def test_members_that_give_probabilities_are_not_bounded_by_one_of_them():
    """By today's loss alone."""
    today = np.full(4, 0.03)
    worths, _ = of_members(HONEST, np.zeros(4), 0.03, 20, 1.0, MEMBER_SHARE, today)
    assert worths == pytest.approx(np.minimum(MEMBER_SHARE * HONEST[0] + curve(1.0, 0.03, 20, 4), 0.03))
    assert worths[-1] == 0.03


def test_the_most_of_members_by_hand():
    """What any number of labels are promised to save: never less than to know which member is right, or above today."""
    today = Amount(0.5, 0.1)
    found = most_of_members(Amount(0.2, 0.02), today, 0.3)
    assert found.value == pytest.approx(MEMBER_SHARE * 0.2 + 0.15)
    assert found.error == pytest.approx(np.hypot(MEMBER_SHARE * 0.02, 0.03))
    assert most_of_members(Amount(0.4, 0.02), today, 0.9).value == 0.5
    assert most_of_members(Amount(0.2, 0.02), Amount(-0.5, 0.1), 0.3) == Amount(0.2, 0.02)  # gains


def test_the_most_is_above_every_promise(rows):
    y = (rows[:, 0] + 0.5 * np.sin(5 * rows[:, 1]) > 0).astype(int)
    model = stakes.default(rows[:20], y[:20], pool=rows[20:])
    found = stakes.outlook(model, stakes.CostMatrix([[0.0, 1.0], [10.0, 0.0]]), rows[20:], n=32)
    worths = [offer.worth for offer in found.offers]
    assert max(worths) < found.most.value <= found.today.value
    assert any(offer.worth > offer.joint for offer in found.offers)


def test_without_a_count_of_labels_members_alone_speak():
    worths, errors = of_members(HONEST, JOINT, 0.5, None, MEMBER_RATE)
    assert worths == pytest.approx(MEMBER_SHARE * HONEST[0])
    assert errors == pytest.approx(np.hypot(MEMBER_SHARE * HONEST[1], SPREAD * worths))
    assert of_members(None, JOINT, 0.5, None, MEMBER_RATE)[0] == pytest.approx(MEMBER_SHARE * JOINT)


def test_a_loss_of_nothing_promises_nothing():
    worths, errors = of_members(None, JOINT, 0.0, 20, MEMBER_RATE)
    assert (worths == 0).all()
    assert (errors == 0).all()


def test_a_gaussian_belief_is_promised_a_fifth_more_but_not_for_sure():
    """It expects to lose .5, of which labels can save .23 at most."""
    worths, errors = of_gaussian(np.array([0.1, 0.2]), np.array([0.3, 0.0]), 0.5, 0.23, 20)
    assert worths == pytest.approx([0.12, 0.23])
    assert errors == pytest.approx([np.hypot(0.36, 0.15), 0.2875])
    worths, errors = of_gaussian(np.array([0.01, 0.02]), np.zeros(2), 0.5, 0.23, 20)
    assert worths == pytest.approx([0.012, 0.024])
    assert errors == pytest.approx([0.25 * 0.2182179, 0.25 * 0.3015113])  # where a curve sees more to learn: its root
    assert of_gaussian(np.array([0.01]), np.zeros(1), 0.5, 0.23, None)[1] == pytest.approx([SPREAD * 0.012])
    assert of_gaussian(np.zeros(2), np.zeros(2), 0.0, 0.0, 20)[0] == pytest.approx(np.zeros(2))
    assert of_gaussian(np.array([0.3]), np.zeros(1), 0.5, 0.23, 20)[0] == [0.3]  # sampled, above the most


def test_worths_of_rows_are_in_the_units_of_promises(rows):
    """Rows of a Gaussian belief add up to what all of them are promised to save."""
    model = GaussianProcessRegressor(RBF() + WhiteKernel(0.04), optimizer=None).fit(rows[:10], np.sin(rows[:10, 0]))
    found = stakes.outlook(model, stakes.SquaredError(), rows[10:], n=4, costs=2.0)
    plain = stakes.rank(model, stakes.SquaredError(), rows[10:], n=4, costs=2.0, batch=True)
    assert found.ranking.indices == plain.indices
    each = [reason.worth for reason in found.ranking.reasons]
    assert each == pytest.approx([GAUSSIAN_SHARE * reason.worth for reason in plain.reasons])
    assert np.cumsum(each) == pytest.approx([offer.worth for offer in found.offers])
    assert found.ranking.scores == pytest.approx([GAUSSIAN_SHARE * score for score in plain.scores])
    assert found.offers[-1].worth < found.most.value < found.today.value
    assert "Worths are 1.2 times what the model says" in str(found.ranking.notes[-1])
    assert [note.kind for note in plain.notes] == [note.kind for note in found.ranking.notes[:-1]]
    (together,) = [note.values["worth"] for note in found.ranking.notes if note.kind == "joint worth"]
    assert together == pytest.approx(found.offers[-1].worth)


@pytest.fixture
def rows(rng):
    return rng.standard_normal((80, 3))


def test_outlook_promises_less_with_more_labels(rows):
    """A forest promises by how many labels it has, wherever it keeps them."""
    y = (rows[:, 0] + 0.5 * np.sin(5 * rows[:, 1]) > 0).astype(int)
    shares = []
    for count in (12, 40):
        model = ExtraTreesClassifier(30, random_state=0).fit(rows[:count], y[:count])
        found = stakes.outlook(model, stakes.CostMatrix([[0.0, 1.0], [10.0, 0.0]]), rows[40:], n=8)
        offers = found.offers
        bound = MEMBER_SHARE * np.asarray([offer.joint for offer in offers])
        bound = bound + curve(class_rate(2), found.today.value, count, 8)
        assert all(offer.worth <= most + 1e-12 for offer, most in zip(offers, bound, strict=True))
        assert all(offer.error >= SPREAD * offer.worth for offer in offers)
        assert (np.diff([offer.worth for offer in offers]) >= 0).all()
        kinds = {note.kind: str(note) for note in found.ranking.notes}
        assert f"a learning curve from {count} labels on" in kinds["learning curve"]
        shares.append(offers[-1].worth / found.today.value)
    assert shares[0] > shares[1]


def test_labels_on_their_way_flatten_the_curve(rows):
    y = (rows[:, 0] > 0).astype(int)
    model = ExtraTreesClassifier(30, random_state=0).fit(rows[:12], y[:12])
    loss = stakes.CostMatrix([[0.0, 1.0], [10.0, 0.0]])
    now = stakes.outlook(model, loss, rows[40:], n=4)
    later = stakes.outlook(model, loss, rows[40:], n=4, pending=range(20))
    assert later.offers[-1].worth < now.offers[-1].worth


def test_outlook_of_a_process_is_not_sure_of_itself(rows):
    model = GaussianProcessRegressor(RBF() + WhiteKernel(0.04), optimizer=None).fit(rows[:10], np.sin(rows[:10, 0]))
    found = stakes.outlook(model, stakes.SquaredError(), rows[10:], n=4)
    assert all(offer.error > SPREAD * offer.worth > 0 for offer in found.offers)
