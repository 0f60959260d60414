"""Annotators: the mode against brute force, standard errors against simulation, refusals."""

import itertools

import numpy as np
import pytest
from scipy import optimize

from stakes.evaluation import ClassAnnotator, NumberAnnotator, estimate_annotators
from stakes.exceptions import StakesError

STUDENT, EXPERT = [[0.8, 0.2], [0.2, 0.8]], [[0.95, 0.05], [0.05, 0.95]]


def simulated_opinions(truth, confusions, seed):
    """Opinions of all annotators on all rows."""
    rng = np.random.default_rng(seed)
    return [
        (row, name, int(rng.choice(len(each), p=np.asarray(each)[y])))
        for row, y in enumerate(truth)
        for name, each in confusions.items()
    ]


def brute_log_posterior(opinions, confusion, shares, pseudo):
    """Sums over the class of every row, one by one; shares have one pseudo-count for each class."""
    by_row = {}
    for row, name, label in opinions:
        by_row.setdefault(row, []).append((name, label))
    total = float(np.sum(np.log(shares)))
    for each in by_row.values():
        total += np.log(
            sum(shares[y] * np.prod([confusion[name][y, label] for name, label in each]) for y in range(len(shares)))
        )
    return total + sum(float(np.sum(pseudo[name] * np.log(confusion[name]))) for name in confusion)


def test_the_mode_is_the_maximum_of_the_likelihood_by_brute_force():
    rng = np.random.default_rng(0)
    opinions = simulated_opinions(rng.integers(2, size=25), {"a": STUDENT, "b": EXPERT, "c": STUDENT}, 1)
    found = estimate_annotators(opinions, classes=[0, 1], task="classes")
    right = {name: _one_coin(opinions)[name] for name in "abc"}
    pseudo = {name: 5.0 * np.array([[r, 1 - r], [1 - r, r]]) for name, r in right.items()}
    unseen_shares = _shares_of(found)

    def minus(logits):
        values = 1.0 / (1.0 + np.exp(-logits))
        confusion = {
            name: np.array([[values[2 * i], 1 - values[2 * i]], [1 - values[2 * i + 1], values[2 * i + 1]]])
            for i, name in enumerate("abc")
        }
        return -brute_log_posterior(opinions, confusion, np.array([values[-1], 1 - values[-1]]), pseudo)

    start = np.array([1.0] * 6 + [0.0])
    best = 1.0 / (1.0 + np.exp(-optimize.minimize(minus, start, method="BFGS", options={"gtol": 1e-8}).x))
    for i, name in enumerate("abc"):
        assert np.diagonal(found[name].confusion) == pytest.approx(best[2 * i : 2 * i + 2], abs=1e-4)
    assert unseen_shares == pytest.approx([best[-1], 1 - best[-1]], abs=1e-4)


def _shares_of(found):
    """Class shares at the mode, from the posterior of rows with one pseudo-count for each class."""
    counts = found.truth.sum(axis=0) + 1.0
    return counts / counts.sum()


def _one_coin(opinions):
    """The accuracy of each annotator where it is the same in both classes, in plain loops."""
    right, shares = dict.fromkeys("abc", 0.8), [0.5, 0.5]
    rows = sorted({row for row, _, _ in opinions})
    for _ in range(2000):
        agreed, count, total = dict.fromkeys("abc", 0.0), dict.fromkeys("abc", 0), [0.0, 0.0]
        for row in rows:
            own = [(name, label) for each, name, label in opinions if each == row]
            joint = [
                shares[y] * np.prod([right[name] if label == y else 1 - right[name] for name, label in own])
                for y in (0, 1)
            ]
            posterior = [each / sum(joint) for each in joint]
            for y in (0, 1):
                total[y] += posterior[y]
            for name, label in own:
                agreed[name] += posterior[label]
                count[name] += 1
        right = {name: (agreed[name] + 4.0) / (count[name] + 5.0) for name in "abc"}
        shares = [(each + 1.0) / (len(rows) + 2.0) for each in total]
    return right


def test_the_posterior_of_a_row_is_bayes_rule():
    opinions = simulated_opinions(np.repeat([0, 1], 30), {"a": STUDENT, "b": EXPERT}, 2)
    prior = {row: [0.7, 0.3] for row in range(60)}
    found = estimate_annotators(opinions, classes=[0, 1], row_probabilities=prior)
    for place, row in enumerate(found.rows):
        own = [(name, label) for each, name, label in opinions if each == row]
        joint = np.array([0.7, 0.3])
        for name, label in own:
            joint = joint * found[name].confusion[:, label]
        assert found.truth[place] == pytest.approx(joint / joint.sum())


def test_known_rows_give_shares_with_pseudo_counts():
    """Where every class is known, the confusion is a count: the prior's five labels about the pooled accuracy."""
    truth = np.repeat([0, 1], 20)
    opinions = [(row, "a", int(y) if row % 4 else 1 - int(y)) for row, y in enumerate(truth)]
    known = {row: np.eye(2)[y] for row, y in enumerate(truth)}
    found = estimate_annotators(opinions, classes=[0, 1], row_probabilities=known)
    pooled = (30 + 4) / (40 + 5)
    assert found["a"].confusion[0, 0] == pytest.approx((15 + 5 * pooled) / 25)
    share, middle = found["a"].confusion[0, 0], (15 + 5 * pooled + 1) / (25 + 2)  # one more label on each side
    error = middle * (1 - middle) / np.sqrt(25 * share * (1 - share))
    assert found["a"].confusion_error[0, 0] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_two_annotators_and_a_model_within_the_errors(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=300)
    opinions = simulated_opinions(truth, {"student": STUDENT, "expert": EXPERT}, 10 + seed)
    guess = np.where(rng.random(300) < 0.85, truth, 1 - truth)
    prior = {row: [0.85, 0.15] if y == 0 else [0.15, 0.85] for row, y in enumerate(guess)}
    found = estimate_annotators(opinions, classes=[0, 1], row_probabilities=prior)
    for name, matrix in (("student", STUDENT), ("expert", EXPERT)):
        assert abs(found[name].accuracy - matrix[0][0]) < 0.05
        assert np.all(abs(found[name].confusion - matrix) < 3.5 * found[name].confusion_error)
        assert 0.005 < found[name].accuracy_error < 0.05


def test_errors_are_as_large_as_estimates_scatter():
    """Standard errors against the spread over 60 data sets."""
    accuracies, errors = [], []
    for seed in range(60):
        truth = np.random.default_rng(seed).integers(2, size=80)
        found = estimate_annotators(
            simulated_opinions(truth, {"a": STUDENT, "b": EXPERT, "c": STUDENT}, seed), classes=[0, 1]
        )
        accuracies.append(found["a"].accuracy)
        errors.append(found["a"].accuracy_error)
    assert np.std(accuracies) == pytest.approx(np.mean(errors), rel=0.35)


def test_two_annotators_alone_do_not_tell_who_errs():
    """The error says so: it is far larger than where a third one is there."""
    truth = np.random.default_rng(0).integers(2, size=300)
    two = estimate_annotators(simulated_opinions(truth, {"a": STUDENT, "b": EXPERT}, 0), classes=[0, 1])
    three = estimate_annotators(simulated_opinions(truth, {"a": STUDENT, "b": EXPERT, "c": EXPERT}, 0), classes=[0, 1])
    assert two["a"].accuracy_error > 2 * three["a"].accuracy_error


def softmaxed(logs, shift, log_power):
    """[n, 2]: probabilities to a power, times a factor for each class."""
    values = np.exp(np.exp(log_power) * logs + shift)
    return values / values.sum(axis=1, keepdims=True)


def test_a_recalibrated_model_is_the_maximum_by_brute_force():
    """A power with median 1/2 and a shift of each class, found together with the matrices."""
    truth = np.random.default_rng(0).integers(2, size=60)
    opinions = simulated_opinions(truth, {"a": STUDENT, "b": EXPERT}, 1)
    model = np.where(np.random.default_rng(2).random(60) < 0.8, truth, 1)  # it says 1 too often
    logs = np.log(np.where(np.eye(2)[model] > 0, 0.9, 0.1))
    codes = {name: np.array([label for _, who, label in opinions if who == name]) for name in "ab"}

    def minus(values, matrices, prior):
        shift, log_power = values[-3:-1], values[-1]
        joint = softmaxed(logs, shift, log_power)
        for name in "ab":
            joint = joint * matrices[name][:, codes[name]].T
        penalty = 0.5 * np.sum(shift**2) + 0.5 * (log_power - np.log(0.5)) ** 2 / 0.5**2
        return penalty - np.log(joint.sum(axis=1)).sum() - prior

    def one_accuracy(values):
        right = dict(zip("ab", 1.0 / (1.0 + np.exp(-values[:2])), strict=True))
        matrices = {name: np.array([[r, 1 - r], [1 - r, r]]) for name, r in right.items()}
        return minus(values, matrices, sum(4.0 * np.log(r) + np.log(1 - r) for r in right.values()))

    start = np.r_[1.4, 1.4, 0.0, 0.0, np.log(0.5)]
    right = 1.0 / (1.0 + np.exp(-optimize.minimize(one_accuracy, start, method="BFGS").x[:2]))
    pseudo = {name: 5.0 * np.array([[r, 1 - r], [1 - r, r]]) for name, r in zip("ab", right, strict=True)}

    def matrices_of(values):
        first = 1.0 / (1.0 + np.exp(-values[:4].reshape(2, 2)))
        return {name: np.array([[p, 1 - p], [1 - q, q]]) for name, (p, q) in zip("ab", first, strict=True)}

    def whole(values):
        found = matrices_of(values)
        return minus(values, found, sum(float(np.sum(pseudo[name] * np.log(found[name]))) for name in "ab"))

    best = optimize.minimize(whole, np.r_[np.ones(4), 0.0, 0.0, np.log(0.5)], method="BFGS", options={"gtol": 1e-8}).x
    given = dict(enumerate(np.exp(logs)))
    found = estimate_annotators(opinions, classes=[0, 1], row_probabilities=given, recalibrate=True)
    for name, matrix in matrices_of(best).items():
        assert found[name].confusion == pytest.approx(matrix, abs=1e-4)
    joint = softmaxed(logs, best[-3:-1], best[-1])
    for name, matrix in matrices_of(best).items():
        joint = joint * matrix[:, codes[name]].T
    assert found.truth == pytest.approx(joint / joint.sum(axis=1, keepdims=True), abs=1e-3)


def test_errors_cover_the_truth_where_a_model_shares_the_errors_of_an_annotator():
    """A model that learned to say 1 too often, too surely, as the student does: 40 data sets."""
    biased, errors = np.array([[0.55, 0.45], [0.0, 1.0]]), {True: [], False: []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = (rng.random(100) < 0.6).astype(int)
        opinions = simulated_opinions(truth, {"student": biased, "expert": np.asarray(EXPERT)}, 100 + seed)
        logit = 3.0 * (2 * truth - 1 + rng.normal(size=100)) + 3.0  # right: 2 (..), without a shift
        given = {row: [1 / (1 + np.exp(each)), 1 / (1 + np.exp(-each))] for row, each in enumerate(logit)}
        for recalibrate, each in errors.items():
            found = estimate_annotators(opinions, classes=[0, 1], row_probabilities=given, recalibrate=recalibrate)
            right = np.diagonal(biased) @ np.bincount(truth, minlength=2) / 100
            each.append((found["student"].accuracy - right, found["student"].accuracy_error))
    (wrong, error), (wrong_before, error_before) = (np.transpose(errors[each]) for each in (True, False))
    assert np.mean(abs(wrong) < 2 * error) >= 0.9
    assert np.mean(abs(wrong_before) < 2 * error_before) <= 0.8
    assert np.sqrt(np.mean(wrong**2)) < 0.75 * np.sqrt(np.mean(wrong_before**2))


def test_what_is_beyond_doubt_is_not_recalibrated():
    truth = np.repeat([0, 1], 30)
    opinions = simulated_opinions(truth, {"a": STUDENT, "b": EXPERT}, 3)
    known = {row: np.eye(2)[y] for row, y in enumerate(truth)}
    plain = estimate_annotators(opinions, classes=[0, 1], row_probabilities=known)
    again = estimate_annotators(opinions, classes=[0, 1], row_probabilities=known, recalibrate=True)
    for name in "ab":
        assert again[name].confusion == pytest.approx(plain[name].confusion, abs=1e-12)
        assert again[name].confusion_error == pytest.approx(plain[name].confusion_error, abs=1e-9)


def test_few_labels_give_no_zeros():
    found = estimate_annotators([(0, "a", "x"), (1, "a", "y")], classes=["x", "y", "z"])
    assert (found["a"].confusion > 0).all()
    assert found["a"].confusion.sum(axis=1) == pytest.approx(np.ones(3))
    assert isinstance(found["a"], ClassAnnotator)


def test_gaps_and_repeated_opinions():
    opinions = [(0, "a", 0), (0, "a", 0), (0, "b", 1), (2, "b", 1)]
    found = estimate_annotators(opinions, classes=[0, 1])
    assert found.rows == (0, 2)
    assert found["a"].opinions == 2
    assert len(found) == 2


def test_a_data_frame_of_opinions():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"row": [0, 0, 1], "annotator": ["a", "b", "a"], "label": ["x", "x", "y"]})
    assert estimate_annotators(frame).classes == ("x", "y")
    with pytest.raises(StakesError, match="must have the columns row, annotator and label"):
        estimate_annotators(frame.drop(columns="label"))


def numbers(seed, bias=(0.5, -0.5), sds=(0.3, 1.0), rows=200):
    rng = np.random.default_rng(seed)
    truth = rng.normal(10.0, 2.0, size=rows)
    return truth, [
        (row, name, float(truth[row] + bias[a] + sds[a] * rng.normal()))
        for row in range(rows)
        for a, name in enumerate(("ann", "bob"))
    ]


@pytest.mark.parametrize("seed", range(3))
def test_numbers_within_the_errors(seed):
    truth, opinions = numbers(seed)
    found = estimate_annotators(opinions, task="real")
    for name, bias, sd in (("ann", 0.5, 0.3), ("bob", -0.5, 1.0)):
        each = found[name]
        assert isinstance(each, NumberAnnotator)
        assert abs(each.bias - bias) < 3.5 * each.bias_error
        assert abs(each.sd - sd) < 3.5 * each.sd_error + 0.02
    assert np.sqrt(np.mean((found.truth - truth) ** 2)) < 0.45  # nearer than the better of them by half of the bias


def test_numbers_are_the_maximum_of_the_restricted_likelihood():
    """Brute force: the likelihood of contrasts that do not depend on the means of annotators."""
    _, opinions = numbers(1, rows=12)
    opinions = opinions[:-3]  # gaps
    found = estimate_annotators(opinions, task="real")
    rows, who = [each[0] for each in opinions], [each[1] for each in opinions]
    values = np.array([each[2] for each in opinions])
    unit = values.std()
    design = np.array([[name == "ann", name == "bob"] for name in who], dtype=float)
    same = np.equal.outer(rows, rows).astype(float)
    null = np.linalg.svd(design.T)[2][2:]  # rows are orthogonal to the design

    def minus(logs):
        noise = np.exp([logs[1] if name == "ann" else logs[2] for name in who])
        cover = null @ (np.exp(logs[0]) * same + np.diag(noise)) @ null.T
        contrasts = null @ (values - values.mean()) / unit
        spread = logs[1:] - logs[1:].mean()
        return 0.5 * (
            np.linalg.slogdet(cover)[1] + contrasts @ np.linalg.solve(cover, contrasts) + sum(spread**2) / 2.25
        )

    best = optimize.minimize(minus, [0.0, -1.0, -1.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}).x
    assert [found["ann"].sd, found["bob"].sd] == pytest.approx(unit * np.exp(best[1:] / 2), rel=2e-3)


def test_the_truth_of_numbers_is_weighted_by_precision():
    _, opinions = numbers(0)
    found = estimate_annotators(opinions, task="real")
    ann, bob = found["ann"], found["bob"]
    weights = np.array([ann.sd**-2, bob.sd**-2])
    own = {name: value for row, name, value in opinions if row == 7}
    expected = weights @ [own["ann"] - ann.bias, own["bob"] - bob.bias] / weights.sum()
    assert found.truth[7] == pytest.approx(expected)
    assert found.truth_error[7] == pytest.approx(weights.sum() ** -0.5)


@pytest.mark.parametrize(
    ("opinions", "message"),
    [
        ([], "opinions must be triples"),
        ([(0, "a")], "opinions must be triples"),
        ([(0, "a", "x"), (1, "a", None)], "must have a label; that of 'a' on row 1 has none"),
    ],
)
def test_opinions_that_are_refused(opinions, message):
    with pytest.raises(StakesError, match=message):
        estimate_annotators(opinions)


def test_other_refusals():
    opinions = [(0, "a", "x"), (0, "b", "y")]
    with pytest.raises(StakesError, match="labels must be among the classes"):
        estimate_annotators(opinions, classes=["x"])
    with pytest.raises(StakesError, match=r"row_probabilities\[0\] must hold the probability of each of 2 classes"):
        estimate_annotators(opinions, row_probabilities={0: [0.5, 0.6]})
    with pytest.raises(StakesError, match="prior_accuracy must be between 0 and 1"):
        estimate_annotators(opinions, prior_accuracy=1.0)
    with pytest.raises(StakesError, match="no row has"):
        estimate_annotators([(0, "a", 1.5), (1, "b", 2.5)], task="real")
    with pytest.raises(StakesError, match="row_probabilities are of classes"):
        estimate_annotators([(0, "a", 1.5), (0, "b", 2.5)], task="real", row_probabilities={})
    with pytest.raises(StakesError, match="there is no opinion of 'carl'"):
        estimate_annotators(opinions)["carl"]


def test_many_parameters_are_taken_one_annotator_at_a_time(monkeypatch):
    """The same estimates; errors as if the others were known, so no larger."""
    opinions = simulated_opinions(np.repeat([0, 1], 40), {"a": STUDENT, "b": EXPERT, "c": STUDENT}, 3)
    together = estimate_annotators(opinions, classes=[0, 1])
    monkeypatch.setattr("stakes.evaluation.annotators._MOST_AT_ONCE", 1)
    alone = estimate_annotators(opinions, classes=[0, 1])
    for name, (y, label) in itertools.product("abc", [(0, 0), (1, 0)]):
        assert alone[name].confusion[y, label] == together[name].confusion[y, label]
        assert alone[name].confusion_error[y, label] <= together[name].confusion_error[y, label] * (1 + 1e-6)
