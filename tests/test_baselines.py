"""Rules that know no loss, against enumeration, dense integration and values worked out by hand."""

import array_api_compat
import numpy as np
import pytest

from stakes import CategoricalEnsemble, GaussianBelief, LogLoss, NormalEnsemble, VoteEnsemble, baselines, score
from stakes.baselines import (
    BASELINES,
    bald,
    least_confident,
    margin,
    predictive_entropy,
    predictive_variance,
    query_by_committee,
    random_scores,
)
from stakes.beliefs import MemberNodes, MemberPanels, MixtureGrid
from tests.beliefs.test_mixture import mixture
from tests.brute import random_table

CLASS_RULES = [bald, predictive_entropy, margin, least_confident, predictive_variance, query_by_committee]
NORMAL_RULES = [bald, predictive_entropy, predictive_variance, query_by_committee]
GAUSSIAN_RULES = [bald, predictive_entropy, predictive_variance]
BELIEFS = {"categorical": CLASS_RULES, "votes": CLASS_RULES, "normal": NORMAL_RULES, "gaussian": GAUSSIAN_RULES}
EVERY = [(kind, rule) for kind, rules in BELIEFS.items() for rule in rules]
DENSITIES = [("normal", predictive_entropy), ("gaussian", predictive_entropy)]  # entropies that may be negative
NOT_NEGATIVE = [pair for pair in EVERY if pair not in DENSITIES and pair[1] is not margin]


def make(kind, xp=np, dtype="float64", n=5, members=4, classes=3):
    """A belief of each kind, the same numbers in every library."""
    rng = np.random.default_rng(7)

    def array(values):
        return xp.asarray(np.asarray(values), dtype=getattr(xp, dtype))

    weights = array(rng.dirichlet(np.ones(members)))
    if kind == "categorical":
        rows = rng.dirichlet(np.ones(classes), size=(8, members))
        return CategoricalEnsemble(array(rows[:n]), array(rows[n:]), weights)
    if kind == "votes":
        votes = rng.integers(classes, size=(8, members))
        return VoteEnsemble(array(votes[:n]), array(votes[n:]), classes, weights)
    if kind == "normal":
        means, sds = rng.standard_normal((8, members)), rng.uniform(0.3, 1.0, (8, members))
        return NormalEnsemble(array(means[:n]), array(sds[:n]), array(means[n:]), array(sds[n:]), weights)
    variance = rng.uniform(1.0, 2.0, 8)
    return GaussianBelief(
        array(np.zeros(8 - n)), array(variance[n:]), array(variance[:n]), array(np.zeros((n, 8 - n))), None, array(0.3)
    )


def categorical(*candidates, weights=None):
    """Candidates [K, C] each, with contexts that must not matter."""
    return CategoricalEnsemble(np.array(candidates, float), np.array(candidates[:1], float), weights)


def normal(mean, sd, weights=None, **settings):
    return NormalEnsemble(
        np.atleast_2d(np.asarray(mean, float)), sd, np.zeros((1, np.shape(mean)[-1])), 1.0, weights, **settings
    )


def mutual_information(joint):
    """Sum of p log(p / (p p)) over a table [..., J, K], by the definition."""
    product = joint.sum(-1, keepdims=True) * joint.sum(-2, keepdims=True)
    return np.where(
        joint > 0, joint * np.log(np.where(joint > 0, joint, 1) / np.where(product > 0, product, 1)), 0
    ).sum((-1, -2))


def dense(mean, sd, q):
    """Mutual information and entropy of the mixture of one candidate by Gauss-Legendre panels, in logarithms."""
    mean, sd, q = np.broadcast_arrays(np.asarray(mean, float), sd, q)
    edges = np.unique(np.concatenate([mean + k * sd for k in np.linspace(-10, 10, 161)]))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    y, mass = (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()
    log_likelihood = -0.5 * ((y[:, None] - mean) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi))
    log_mixture = np.logaddexp.reduce(log_likelihood + np.log(q), axis=1)
    information = mass @ (q * np.exp(log_likelihood) * (log_likelihood - log_mixture[:, None])).sum(1)
    return information, -mass @ (np.exp(log_mixture) * log_mixture)


@pytest.mark.parametrize("kind", ["categorical", "votes"])
def test_bald_of_classes_is_the_mutual_information_by_enumeration(kind):
    belief = make(kind)
    rows = belief.candidates if kind == "categorical" else belief.as_probabilities().candidates
    joint = np.swapaxes(belief.member_weights[:, None] * rows, 1, 2)
    np.testing.assert_allclose(bald(belief), mutual_information(joint), rtol=1e-12)


def test_bald_of_classes_by_hand():
    belief = categorical([[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0.5, 0.5]])
    wanted = [np.log(2), 0.0, np.log(4 / 3) / 2 + np.log(2 / 3) / 4 + np.log(2) / 4]
    np.testing.assert_allclose(bald(belief), wanted, rtol=1e-14)


def test_bald_is_exactly_0_for_one_member_and_for_equal_members_within_rounding(rng):
    rows = rng.dirichlet(np.full(5, 0.1), size=(50, 1))
    assert np.all(bald(CategoricalEnsemble(rows, rows)) == 0)
    assert np.all(bald(VoteEnsemble([[0], [1]], [[0]], 2)) == 0)
    weights = rng.dirichlet(np.ones(7))
    equal = CategoricalEnsemble(np.repeat(rows, 7, axis=1), np.repeat(rows, 7, axis=1), weights)
    assert np.all(np.abs(bald(equal)) < 1e-30)


def test_tiny_information_of_a_class_keeps_its_digits():
    """Members at 1/2 +- d differ by 2 d^2 nats to leading order, far below the rounding of an entropy."""
    steps = np.array([1e-3, 1e-6, 1e-9, 1e-12])
    members = np.array([1, -1])[None, :, None] * np.array([1, -1]) * steps[:, None, None] + 0.5
    exact = members[:, 0, 0] - 0.5  # the step that 1/2 + d can hold
    np.testing.assert_allclose(bald(CategoricalEnsemble(members, members)), 2 * exact**2, rtol=1e-5)


def test_bald_is_what_log_loss_learns_of_the_member(rng):
    """Contexts whose target is the member itself: expected reduction of log loss is BALD."""
    rows, members = rng.dirichlet(np.ones(3), size=(6, 4)), rng.dirichlet(np.ones(4))
    with np.errstate(all="raise"):
        belief = CategoricalEnsemble(np.concatenate([rows, np.zeros((6, 4, 1))], 2), np.eye(4)[None], members)
        np.testing.assert_allclose(bald(belief), score(LogLoss(), belief), rtol=1e-10)


def test_a_member_without_weight_is_no_member(rng):
    rows = rng.dirichlet(np.ones(3), size=(6, 4))
    rows[..., 2], rows[..., 1] = 0.0, rows[..., 1] + rows[..., 2]
    extra = np.concatenate([rows, np.tile([0.0, 0.0, 1.0], (6, 1, 1))], axis=1)  # alone on a class
    with_it, without = CategoricalEnsemble(extra, extra, [1, 1, 1, 1, 0]), CategoricalEnsemble(rows, rows)
    for rule in CLASS_RULES:
        np.testing.assert_allclose(rule(with_it), rule(without), rtol=1e-12, atol=1e-15)


def test_probabilities_at_the_edge_of_numbers():
    tiny = 5e-324
    belief = categorical([[1, tiny], [1, 0]], [[1, 0], [1, 0]], [[1, 1e-310], [tiny, 1]], weights=[0.1, 0.9])
    got = bald(belief)
    assert np.all(np.isfinite(got))
    np.testing.assert_allclose(got, [0, 0, -0.1 * np.log(0.1) - 0.9 * np.log(0.9)], atol=1e-15)


@pytest.mark.parametrize("apart", [0.01, 0.5, 2.0, 4.0, 6.0, 9.0, 38.3, 60.0])
@pytest.mark.parametrize("wide", [1.0, 3.0, 400.0])
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.9, 0.1]])
def test_two_normals_against_dense_integration(apart, wide, weights):
    belief = normal([0.0, apart], [[1.0, wide]], weights)
    information, entropy = dense([0.0, apart], [1.0, wide], weights)
    assert bald(belief)[0] == pytest.approx(information, rel=1e-6, abs=1e-9)
    assert predictive_entropy(belief)[0] == pytest.approx(entropy, abs=1e-6)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_many_normals_against_dense_integration(rng, spread):
    mean, sd = spread * rng.standard_normal((4, 9)), rng.uniform(0.1, 1.0, (4, 9))
    q = rng.dirichlet(np.ones(9))
    wanted = np.array([dense(*row, q) for row in zip(mean, sd, strict=True)])
    np.testing.assert_allclose(bald(normal(mean, sd, q)), wanted[:, 0], rtol=1e-6)
    np.testing.assert_allclose(predictive_entropy(normal(mean, sd, q)), wanted[:, 1], atol=1e-6)


@pytest.mark.parametrize("rule", [MixtureGrid(), MemberPanels(), MemberNodes.spaced(401)])
def test_every_rule_of_the_belief_serves(rule):
    mean, q = [0.0, 1.0, 2.5], np.array([0.2, 0.5, 0.3])
    wanted = dense(mean, 0.7, q)[0]
    assert bald(normal(mean, 0.7, q, rule=rule))[0] == pytest.approx(wanted, rel=1e-6)


def test_far_apart_members_give_log_k_and_equal_ones_nothing():
    np.testing.assert_allclose(bald(normal(100.0 * np.arange(5), 1.0)), np.log(5), rtol=1e-12)
    q = np.array([0.7, 0.2, 0.1])
    np.testing.assert_allclose(bald(normal([-1e3, 0.0, 1e3], 1.0, q)), -q @ np.log(q), rtol=1e-10)
    assert 0 <= bald(normal(np.full(5, 3.0), 0.1))[0] < 1e-28
    assert bald(normal([3.0], 0.1))[0] == 0


def test_an_offset_costs_no_digits():
    here, there = (bald(normal(offset + np.array([0.0, 1.0, 4.0]), 1.0))[0] for offset in (0.0, 2.0**40))
    assert there == pytest.approx(here, rel=1e-6)


def test_tiny_information_of_a_real_label_keeps_its_digits():
    """Members at +-d sd: d^2 / 2 to leading order."""
    for step in (1e-3, 1e-6, 1e-9):
        assert bald(normal([-step, step], 1.0))[0] == pytest.approx(step**2 / 2, rel=1e-5)


def test_blocks_of_candidates_change_nothing(rng, monkeypatch):
    belief = normal(rng.standard_normal((40, 6)), 0.5)
    whole = {rule: rule(belief) for rule in NORMAL_RULES}
    classes = make("categorical")
    class_scores = {rule: rule(classes) for rule in CLASS_RULES}
    monkeypatch.setattr(baselines, "_BLOCK", 7)
    for rule, wanted in whole.items():
        np.testing.assert_allclose(rule(belief), wanted, rtol=1e-7)
    for rule, wanted in class_scores.items():
        np.testing.assert_allclose(rule(classes), wanted, rtol=1e-13)


def gaussian(noise=0.5, variance=(0.5, 1.0, 4.0)):
    return GaussianBelief([0.0], [1.0], variance, np.zeros((len(variance), 1)), noise_variance=noise)


def test_gaussian_beliefs_by_hand():
    np.testing.assert_allclose(bald(gaussian()), [0, np.log(2) / 2, np.log(8) / 2], rtol=1e-14)
    np.testing.assert_allclose(bald(gaussian([0.5, 0.25, 4.0])), [0, np.log(4) / 2, 0], rtol=1e-14)
    entropies = 0.5 * np.log(2 * np.pi * np.e * np.array([0.5, 1.0, 4.0]))
    np.testing.assert_allclose(predictive_entropy(gaussian()), entropies, rtol=1e-14)
    np.testing.assert_array_equal(predictive_variance(gaussian()), [0.5, 1.0, 4.0])


def test_a_function_that_is_all_but_known_keeps_its_digits():
    excess = 2.0 ** -np.arange(20, 50, 5.0)
    np.testing.assert_allclose(bald(gaussian(1.0, 1 + excess)), np.log1p(excess) / 2, rtol=1e-14)


def test_a_label_that_is_known_has_the_least_entropy():
    np.testing.assert_array_equal(predictive_entropy(gaussian(None, (0.0,))), [-np.inf])


def test_rounding_below_the_noise_is_forgiven():
    assert bald(gaussian(0.5, (0.5 * (1 - 1e-9),)))[0] == 0


def test_scores_are_not_the_arrays_of_the_belief():
    belief = gaussian()
    predictive_variance(belief)[0] = 9.0
    assert belief.candidate_variance[0] == 0.5


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (None, "bald needs the noise_variance of the GaussianBelief; got None. Give it"),
        (0.0, "positive noise_variance; got 0.*Use predictive_variance"),
        ([0.1, 0.0, 0.1], "positive noise_variance; got 0"),
        (0.6, "candidate_variance must include noise_variance, but is smaller.*add the noise"),
    ],
)
def test_noise_that_does_not_do_is_refused(noise, message):
    with pytest.raises(ValueError, match=message):
        bald(gaussian(noise))


THREE = categorical([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]], [[1, 0, 0], [0, 0.5, 0.5]], [[0, 1, 0], [0, 1, 0]])


def test_predictive_entropy_by_hand():
    np.testing.assert_allclose(predictive_entropy(THREE), [1.5 * np.log(2), 1.5 * np.log(2), 0], atol=1e-15)


def test_margin_by_hand():
    np.testing.assert_allclose(margin(THREE), [-0.25, -0.25, -1.0], rtol=1e-15)
    np.testing.assert_array_equal(margin(categorical([[0.5, 0.5, 0.0]])), [0.0])


def test_least_confident_by_hand():
    np.testing.assert_allclose(least_confident(THREE), [0.5, 0.5, 0.0], rtol=1e-15)


def test_predictive_variance_by_hand():
    np.testing.assert_allclose(predictive_variance(THREE), [0.625, 0.625, 0.0], rtol=1e-15)
    two = normal([[0.0, 4.0], [5.0, 5.0]], [[1.0, 2.0], [3.0, 3.0]], [0.75, 0.25])
    np.testing.assert_allclose(predictive_variance(two), [0.75 + 1.0 + 3.0, 9.0], rtol=1e-15)


def test_query_by_committee_by_hand():
    two = np.log(2)
    np.testing.assert_allclose(query_by_committee(THREE), [0, two, 0], rtol=1e-15)
    three = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]]
    uneven = query_by_committee(categorical(three, weights=[2, 1, 1]))
    np.testing.assert_allclose(uneven, [1.5 * two], rtol=1e-15)
    np.testing.assert_allclose(query_by_committee(normal([[0.0, 4.0], [5.0, 5.0]], 1.0, [0.75, 0.25])), [3.0, 0.0])


def test_votes_by_hand():
    votes = VoteEnsemble([[0, 0, 1, 2], [1, 1, 1, 1]], [[0, 0, 0, 0]], 3)
    entropy = [1.5 * np.log(2), 0.0]
    for rule in (bald, predictive_entropy, query_by_committee):
        np.testing.assert_allclose(rule(votes), entropy, atol=1e-15)
    np.testing.assert_allclose(margin(votes), [-0.25, -1.0])
    np.testing.assert_allclose(least_confident(votes), [0.5, 0.0])
    np.testing.assert_allclose(predictive_variance(votes), [0.625, 0.0])


@pytest.mark.parametrize("rule", CLASS_RULES)
def test_one_class_is_no_question(rule):
    np.testing.assert_array_equal(rule(categorical([[1.0], [1.0]])), [0.0])
    np.testing.assert_array_equal(rule(VoteEnsemble([[0, 0]], [[0, 0]], 1)), [0.0])


def test_near_certainty_no_digits_are_lost():
    tiny = 1e-20
    sure = categorical([[1.0, tiny]])
    assert least_confident(sure)[0] == pytest.approx(tiny, rel=1e-12)
    assert predictive_variance(sure)[0] == pytest.approx(2 * tiny, rel=1e-12)
    assert predictive_entropy(sure)[0] == pytest.approx(tiny * (1 - np.log(tiny)), rel=1e-12)


def test_variance_of_means_at_an_offset():
    single = NormalEnsemble(np.float32([[1e6, 1e6 + 2, 1e6 + 4]]), 1.0, np.float32([[0, 0, 0]]), 1.0, [1, 1, 1])
    np.testing.assert_allclose(query_by_committee(single), 8 / 3, rtol=1e-6)


@pytest.mark.parametrize(("kind", "rule"), NOT_NEGATIVE)
def test_never_negative(kind, rule):
    assert np.all(rule(make(kind)) >= 0)


@pytest.mark.parametrize("alpha", [0.001, 0.1, 10.0, 1e6])
def test_never_negative_at_extremes(rng, alpha):
    rows = rng.dirichlet(np.full(4, alpha), size=(200, 5))
    rows = np.where(rows < 1e-300, 0.0, rows)
    belief = CategoricalEnsemble(rows, rows[:1], rng.dirichlet(np.ones(5)))
    for rule in CLASS_RULES:
        assert np.all(np.isfinite(rule(belief)))
        assert np.all(rule(belief) <= 0 if rule is margin else rule(belief) >= 0)
    assert np.all(bald(belief) <= predictive_entropy(belief) * (1 + 1e-12) + 1e-15)


@pytest.mark.parametrize("rule", CLASS_RULES)
def test_votes_are_probabilities_0_and_1(rule):
    votes = make("votes")
    np.testing.assert_allclose(rule(votes), rule(votes.as_probabilities()), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", ["categorical", "votes", "normal"])
def test_member_weights_count_as_copies(kind):
    one, copies = make(kind, members=2), [0, 0, 0, 1]
    fields = (
        ["candidates", "contexts"]
        if kind != "normal"
        else ["candidate_mean", "candidate_sd", "context_mean", "context_sd"]
    )
    columns = [getattr(one, name) for name in fields]
    rest = [3] if kind == "votes" else []
    weighted = type(one)(*columns, *rest, [3, 1])
    repeated = type(one)(*(column[:, copies] for column in columns), *rest)
    for rule in BELIEFS[kind]:
        np.testing.assert_allclose(rule(weighted), rule(repeated), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize(("kind", "rule"), EVERY)
def test_contexts_do_not_matter(kind, rule):
    belief = make(kind)
    np.testing.assert_array_equal(rule(belief), rule(belief.take(slice(None), slice(0, 1))))


@pytest.mark.parametrize(("kind", "rule"), EVERY)
def test_no_candidates(xp, kind, rule):
    empty = make(kind, xp).take(slice(0, 0), slice(None))
    assert tuple(rule(empty).shape) == (0,)
    assert tuple(random_scores(empty, np.random.default_rng(0)).shape) == (0,)


@pytest.mark.parametrize(("kind", "rule"), EVERY)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_same_numbers_where_the_inputs_are(xp, host, kind, rule, dtype):
    scores = rule(make(kind, xp, dtype))
    assert array_api_compat.array_namespace(scores) is xp
    assert scores.dtype == getattr(xp, dtype)
    tolerance = 1e-12 if dtype == "float64" else 3e-6
    np.testing.assert_allclose(host(scores), rule(make(kind)), rtol=tolerance, atol=tolerance)


def test_single_precision_loses_no_more_than_its_inputs():
    rows = np.float32([[[0.5, 0.5], [0.5 + 2**-20, 0.5 - 2**-20]]])
    scores = bald(CategoricalEnsemble(rows, rows))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, 2.0**-41, rtol=1e-5)


def test_random_scores(xp, host):
    belief = make("votes", xp, "float32")
    first, second = (random_scores(belief, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(host(first), host(second))
    np.testing.assert_array_equal(host(first), np.random.default_rng(3).random(5).astype(np.float32))
    assert first.dtype == xp.float32


@pytest.mark.parametrize("rule", [margin, least_confident])
@pytest.mark.parametrize("kind", ["normal", "gaussian"])
def test_rules_for_classes_refuse_real_labels(rule, kind):
    belief = make(kind)
    message = f"{rule.__name__} does not take a {type(belief).__name__}. It takes a CategoricalEnsemble or Vote"
    with pytest.raises(TypeError, match=message):
        rule(belief)


def test_a_committee_of_none_is_refused():
    with pytest.raises(TypeError, match=r"asks members, and a GaussianBelief has none. Use predictive_variance"):
        query_by_committee(make("gaussian"))


@pytest.mark.parametrize("rule", CLASS_RULES)
def test_beliefs_of_another_kind_are_refused(rng, rule):
    with pytest.raises(TypeError, match=f"{rule.__name__} does not take a TableBelief"):
        rule(random_table(rng, [0.0, 1.0]))


def test_a_random_state_is_a_number_or_a_generator():
    belief = make("votes")
    wanted = np.random.default_rng(3).random(belief.n_candidates)
    for given in (3, np.random.default_rng(3)):
        np.testing.assert_array_equal(random_scores(belief, given), wanted)
    with pytest.raises(TypeError, match=r"random_state must be a whole number or a numpy\.random\.Generator"):
        random_scores(belief, np.random.RandomState(0))


def test_all_rules_by_name_have_one_signature(rng):
    probabilities = rng.dirichlet(np.ones(3), size=(4, 5))
    belief = CategoricalEnsemble(probabilities, probabilities)
    scores = {name: rule(belief, np.random.default_rng(0)) for name, rule in BASELINES.items()}
    assert all(each.shape == (4,) for each in scores.values())
    assert scores["bald"] == pytest.approx(bald(belief))
    assert scores["random"] == pytest.approx(np.random.default_rng(0).random(4))
    assert {name.replace(" ", "_") for name in BASELINES} - {"random"} == set(baselines.__all__) - {
        "BASELINES",
        "expected_future_error",
        "random_scores",
    }


def test_baselines_of_a_mixture_are_those_of_its_labels(rng):
    belief = mixture(rng, 3, 4, 2, noise_variance=0.1)
    label = belief.marginals()
    np.testing.assert_allclose(predictive_variance(belief), predictive_variance(label))
    np.testing.assert_allclose(predictive_entropy(belief), predictive_entropy(label))
    np.testing.assert_allclose(query_by_committee(belief), query_by_committee(label))
    noise = np.log(2 * np.pi * np.e * 0.1) / 2  # what is left of the entropy once hypothesis and function are known
    np.testing.assert_allclose(bald(belief), predictive_entropy(belief) - noise, rtol=1e-6)
    one = mixture(rng, 1, 4, 2, noise_variance=0.1)
    for baseline in (bald, predictive_variance, predictive_entropy):
        np.testing.assert_array_equal(baseline(one), baseline(one.hypothesis(0)))
