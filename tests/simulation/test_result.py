"""Intervals that cover, labels to reach, the summary, plots."""

import dataclasses
import html
import json
import math
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from stakes.exceptions import StakesError
from stakes.simulation import Simulation, Trial
from stakes.simulation.plots import acquired_shares
from stakes.simulation.result import mean_of, median_of
from tests.simulation.simulation_cases import committees, lines


def made(losses, strategies=("random", "plain", "loss"), **metrics):
    losses = np.asarray(losses, dtype=float)
    shape = (*losses.shape[:2], losses.shape[2] - 1)
    return Simulation(
        tuple(strategies[: len(losses)]),
        {"loss": losses, **metrics},
        acquired=np.zeros(shape, dtype=int),
        trials=(Trial(np.zeros((5, 1)), np.zeros(5), [0], [1, 2], [3], [4]),) * losses.shape[1],
        targets=(np.zeros(5),) * losses.shape[1],
        classes=None,
        fit_seconds=np.zeros(losses.shape),
        score_seconds=np.zeros(shape),
        promised=np.full(shape, np.nan),
        settings={},
        versions={},
    )


def test_intervals_of_means_by_hand():
    found = mean_of(np.asarray([1.0, 2.0, 3.0, 6.0]))
    half = 3.182446305284263 * np.sqrt(14.0 / 3.0) / 2.0
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 3.0 - half, 3.0 + half))
    assert mean_of(np.asarray([2.0])).high == math.inf
    assert mean_of(np.asarray([0.3, 0.1 + 0.2])).high == math.inf  # equal, so nothing is known of their spread
    assert mean_of(np.full(6, 0.25)).significant
    assert math.isnan(mean_of(np.asarray([2.0, math.inf])).value)


def test_intervals_of_medians_by_hand():
    found = median_of(np.arange(10.0))  # P(Binomial(10, 1/2) < 2) = 11 / 1024
    assert (found.value, found.low, found.high) == (4.5, 1.0, 8.0)
    few = median_of(np.asarray([3.0, 1.0, math.inf]))
    assert (few.value, few.low, few.high) == (3.0, 0.0, math.inf)


def test_paired_intervals_cover_as_often_as_they_say(rng):
    runs, trials = 8, 2000
    common = rng.normal(size=(trials, 1, runs, 1)) * 5.0  # shared by the strategies of a run: pairing takes it out
    losses = common + rng.normal(size=(trials, 2, runs, 4)) + np.asarray([0.0, 0.3])[:, None, None]
    pairs = [made(each, ("a", "b")).compare("b", "a") for each in losses]
    for name in ("final", "area"):
        hits = np.mean([getattr(pair, name).low <= 0.3 <= getattr(pair, name).high for pair in pairs])
        assert abs(hits - 0.95) < 0.02  # four standard errors


def test_intervals_of_medians_cover_at_least_as_often_as_they_say(rng):
    found = [median_of(each) for each in rng.exponential(size=(2000, 9))]
    assert np.mean([each.low <= math.log(2.0) <= each.high for each in found]) > 0.935


def test_paired_differences_by_hand():
    found = made([[[4, 3, 2], [4, 4, 4]], [[4, 2, 1], [4, 3, 1]]], ("a", "b")).compare("b", "a")
    assert found.final.value == pytest.approx(((1 - 2) + (1 - 4)) / 2)
    assert found.area.value == pytest.approx(((-1 - 1) / 2 + (-1 - 3) / 2) / 2)
    assert (found.first, found.second, found.metric, found.runs) == ("b", "a", "loss", 2)


def test_labels_to_reach():
    curves = np.asarray([[[4, 3, 2, 1], [4, 2, 3, 1], [4, 4, 4, 4]]])
    found = made(curves, ("a",)).labels_to_reach(2.0)["a"]
    assert found.labels.value == 2.0
    assert found.share == pytest.approx(2 / 3)
    assert made(curves, ("a",)).labels_to_reach(4.5)["a"].labels.value == 0.0
    assert made(curves, ("a",)).labels_to_reach(0.5)["a"].labels.value == math.inf
    assert made(curves, ("a",)).labels_to_reach(fraction=0.5)["a"].level == pytest.approx(3.0)  # from 4 to 2


def test_labels_to_reach_a_share_of_the_way_to_the_best():
    found = made([[[4, 4, 4]] * 6, [[4, 3, 2]] * 6], ("a", "b")).labels_to_reach(fraction=0.5)
    assert found["b"].level == 3.0
    assert (found["b"].labels.value, found["b"].labels.low, found["b"].labels.high) == (1.0, 1.0, 1.0)
    assert found["a"].labels.value == math.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fraction": 0.0}, "fraction must be above 0"),
        ({"level": math.inf}, "level must be a finite loss"),
        ({"metric": "x"}, "metric must be one of"),
    ],
)
def test_bad_levels(arguments, message):
    with pytest.raises(ValueError, match=message):
        made([[[4, 3]]], ("a",)).labels_to_reach(**arguments)


def test_unknown_strategies():
    with pytest.raises(ValueError, match=r"strategy must be one of \['a'\]; got 'b'"):
        made([[[4, 3]]], ("a",)).compare("a", "b")


def test_verdicts():
    ends = np.asarray([[1.0, 1.1, 0.9, 1.0], [1.0, 1.05, 0.95, 1.0], [0.5, 0.5, 0.45, 0.55]])
    losses = np.stack([np.full_like(ends, 2.0), ends], axis=2)
    helps = made(losses).verdict()
    assert helps.startswith("After 1 label, in 4 runs, 'loss' helps against 'plain': the loss is lower by 0.5, 50% of")
    assert "(95% interval 0.4" in helps
    hurts = made(losses[[0, 2, 1]]).verdict()
    assert "'loss' hurts against 'plain': the loss is higher by 0.5" in hurts
    assert "'loss' and 'random' do not differ significantly (95%): the mean difference is " in hurts
    same = made(losses[[0, 0, 0]]).verdict()
    assert same == (
        "After 1 label, in 4 runs, 'loss' did exactly as 'plain' at every step, and 'loss' did exactly as 'random' at "
        "every step."
    )
    assert "one run cannot show whether 'loss' and 'plain' differ significantly (95%)" in made(losses[:, :1]).verdict()
    infinite = losses.copy()
    infinite[:, 0, 1] = math.inf
    assert "cannot be compared with 'plain', as the loss was infinite in some runs" in made(infinite).verdict()
    assert "is the only strategy" in made(losses[:1], ("loss",)).verdict()
    assert "'mine' helps against 'other'" in made(losses[[0, 2]], ("other", "mine")).verdict()


def test_the_table_holds_all_and_ends_with_the_verdict():
    found = committees()
    text = str(found).splitlines()
    assert len(text) == 1 + 2 * 3 + 2
    assert text[-2].startswith("plain: the unweighted log loss")
    assert text[-1] == found.verdict()
    assert [line.split()[:2] for line in text[1:4]] == [["loss", "random"], ["loss", "plain"], ["loss", "loss"]]


def test_infinite_losses_have_a_place_in_the_table():
    assert "infinite" in str(made([[[2, math.inf], [2, 1]], [[2, 1], [2, 1]]], ("a", "b")))


@pytest.mark.parametrize("last", [1.0, math.inf])
def test_a_notebook_shows_what_print_says(last):
    found = made([[[2, last], [2, 1.5]], [[2, 0.25], [2, 0.5]]], ("<a>", "b"))
    shown = found._repr_html_()
    ElementTree.fromstring(shown)
    table, lines = re.findall(r"<td[^>]*>([^<]*)</td>", shown), str(found).splitlines()
    cells = [re.split(r"\s{2,}", line) for line in lines[1:-1]]
    assert [html.unescape(each) for each in table] == [each for line in cells for each in line]
    assert html.escape(lines[-1]) in shown
    assert shown.count("<polyline") - shown.count('opacity=".2"') == 2


def test_everything_goes_into_a_dictionary():
    found = committees()
    again = json.loads(json.dumps(found.to_dict()))
    assert np.asarray(again["losses"]["loss"]).shape == (3, 2, 5)
    assert again["classes"] == ["a", "b", "c"]
    assert again["settings"]["runs"] == 2
    assert again["bought"] == found.bought.tolist()
    assert again["initial"] == [each.initial.tolist() for each in found.trials]
    assert set(again["versions"]) == {"python", "stakes", "numpy", "scipy", "scikit-learn", "joblib"}


def test_shares_of_classes_bought():
    found = committees()
    shares = acquired_shares(found)
    assert list(shares) == ["the pool", "random", "plain", "loss"]
    assert all(each.sum() == pytest.approx(1.0) for each in shares.values())
    assert shares["loss"][2] == pytest.approx(np.mean(found.bought[2] == 2))
    pools = [found.targets[run][trial.pool] == 2 for run, trial in enumerate(found.trials)]
    assert shares["the pool"][2] == pytest.approx(np.mean(pools))


def test_plots():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    real, classes = lines(), committees()
    for axes, simulation in zip(figure.subplots(2, 2), (real, classes), strict=True):
        curves = simulation.plot("plain", ax=axes[0])
        assert [each.get_text() for each in curves.get_legend().get_texts()] == ["random", "plain", "loss"]
        assert curves.get_lines()[2].get_ydata() == pytest.approx(simulation.curves("loss", "plain").mean(axis=0))
        bought = simulation.plot_acquired(ax=axes[1])
        assert "the pool" in [each.get_text() for each in bought.get_legend().get_texts()]


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_both_plots_in_one_file(kind, tmp_path):
    pytest.importorskip("matplotlib")
    committees().save_plots(tmp_path / f"both.{kind}")
    head = (tmp_path / f"both.{kind}").read_bytes()[:200]
    assert {"png": b"PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind] in head


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (made([[[4, 3]]], ("a",)).plot, lambda: made([[[4, 3]]], ("a",)).save_plots("x.png")):
        with pytest.raises(ImportError, match=r"pip install 'stakes\[plot\]'"):
            draw()


def with_promises(losses, promised):
    return dataclasses.replace(made(losses, ("random", "loss")), promised=np.asarray(promised, dtype=float))


def test_promises_beside_what_came_by_hand():
    random, chosen = [[8.0] * 6, [8.0] * 6], [[8.0, 7.0, 5.0, 5.0, 4.0, 9.0], [6.0, 6.0, 2.0, 3.0, 1.0, 0.0]]
    nothing = np.full((2, 5), np.nan)
    found = with_promises([random, chosen], [nothing, [[1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 0.0, 1.0, 0.0]]])
    pairs = found.calibration(size=2)
    assert pairs.promised.tolist() == [[3.0, 7.0], [1.0, 1.0]]
    assert pairs.delivered.tolist() == [[3.0, 1.0], [4.0, 1.0]]  # the fifth label is left out
    assert pairs.share == pytest.approx(9.0 / 12.0)
    assert "75% of it" in str(pairs)
    singles = found.calibration()
    assert singles.delivered.shape == (2, 5)
    assert singles.delivered.sum() == pytest.approx(8.0 - 9.0 + 6.0 - 0.0)


def test_calibration_of_what_promises_nothing_is_refused():
    found = with_promises([[[1.0, 1.0]], [[1.0, 1.0]]], np.full((2, 1, 1), np.nan))
    for strategy in ("random", "loss"):
        with pytest.raises(StakesError, match="choose by a loss"):
            found.calibration(strategy)
    with pytest.raises(StakesError, match="whole number from 1 to 3"):
        lines().calibration(size=9)


def test_calibration_of_a_simulation():
    found = lines()
    for strategy, metric in (("loss", "loss"), ("plain", "plain")):
        record = found.calibration(strategy)
        assert record.metric == metric
        falls = found.curves(strategy, metric)
        assert record.delivered.sum(axis=1) == pytest.approx(falls[:, 0] - falls[:, -1])
        assert record.promised.shape == record.delivered.shape
    assert json.loads(json.dumps(found.to_dict()))["promised"][0][0][0] is None


def test_a_picture_of_promises():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    found = lines()
    axes = found.plot_calibration(ax=figure.subplots())
    record = found.calibration()
    places, heights = axes.lines[0].get_data()
    parts = np.array_split(np.argsort(record.promised.ravel(), kind="stable"), 5)
    assert places == pytest.approx([record.promised.ravel()[part].mean() for part in parts])
    assert heights == pytest.approx([record.delivered.ravel()[part].mean() for part in parts])
