"""The summaries of full runs that are kept say what the page on reproduction says of them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from experiments.__main__ import chosen, main
from experiments.datasets import DatasetError, load
from experiments.paper import over_the_run
from experiments.paper.report import PRINTED, report
from experiments.paper.results import read
from experiments.paper.summary import METRICS
from tools.reproduction_page import shown

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "experiments" / "results"
KEPT = {each.name: each for each in read(RESULTS)}


def final(name, strategy, metric):
    return KEPT[name].point(strategy, metric, KEPT[name].about["labels"])


def pair(name, first, second, metric, scale):
    wanted = (first, second, metric, scale, "final")
    return next(p for p in KEPT[name].pairs if (p.first, p.second, p.metric, p.scale, p.moment) == wanted)


def test_the_report_that_is_kept_is_made_of_the_summaries():
    assert report(read(RESULTS)) == (RESULTS / "report.md").read_text()


def test_every_summary_is_of_a_study_with_the_settings_that_it_has_today():
    studies = {
        each.name: each for grower in ("scikit-learn", "intelex", "compiled") for each in chosen("all", None, grower)
    }
    for name, summary in KEPT.items():
        assert summary.about["settings"] == repr(studies[name])
        assert summary.about["command"].startswith("python -m experiments ")
        assert summary.about.get("fit_seconds", summary.about["seconds"]) > 1.0


@pytest.mark.parametrize("metric", ["SEL", "SEL_w"])
@pytest.mark.parametrize("strategy", ["Random", "EVR"])
def test_table_2_is_within_three_standard_errors_of_what_was_printed(strategy, metric):
    ours, (mean, sem) = final("table2-published", strategy, metric), PRINTED[strategy, metric]
    assert ours.runs == 100
    assert abs(ours.mean - mean) < 3.0 * math.hypot(sem, ours.sem)


def test_exact_scores_reach_the_printed_weighted_error_and_monte_carlo_the_printed_plain_one():
    mean, sem = PRINTED["EVR_w", "SEL_w"]
    assert final("table2-published", "EVR_w", "SEL_w").mean <= mean + 2.0 * sem
    mean, sem = PRINTED["EVR_w", "SEL"]
    rough = final("table2-published", "EVR_w by Monte Carlo", "SEL")
    assert abs(rough.mean - mean) < 3.0 * math.hypot(sem, rough.sem)
    assert pair("table2-published", "EVR_w", "EVR_w by Monte Carlo", "SEL", "loss").high < 0


def test_on_yacht_the_weighted_objective_is_the_better_one_for_the_weighted_error():
    gap = pair("regression-yacht-published", "EVR_w", "EVR", "SEL_w", "log10")
    assert gap.runs == 100
    assert gap.high < 0


def test_linex_under_an_exact_process_is_evr_in_every_run():
    for preset in ("published", "text"):
        gap = pair(f"linex-estate-{preset}-exact", "Linex", "EVR", "Linex", "loss")
        assert (gap.value, gap.low, gap.high) == (0.0, 0.0, 0.0)


def full_runs(prefix):
    """Studies of the kind that have the 20 runs at which an interval is to tell."""
    return [name for name, each in KEPT.items() if name.startswith(prefix) and each.about["runs"] >= 20]


def test_on_vehicle_the_weighted_objective_is_the_better_one_for_the_weighted_loss():
    names = full_runs("classification-vehicle-published")
    if not names:
        pytest.skip("no summary of Vehicle has 20 runs yet")
    for name in names:
        gap = pair(name, "EPIG_w", "EPIG", "NLL_w with q_w", "loss")
        assert gap.high < 0


def interval(gap, digits=2):
    """As the page writes a difference."""
    return f"{gap.value:.{digits}f}, {gap.low:.{digits}f} to {gap.high:.{digits}f}"


LINES = (ROOT / "docs" / "reproduction.md").read_text().splitlines()
PAGE = " ".join(" ".join(LINES).split())


@pytest.mark.parametrize("strategy", ["Random", "EVR", "EVR_w", "EVR_w by Monte Carlo"])
def test_the_page_has_our_table_2(strategy):
    called = {"EVR_w": "EVR_w, exact", "EVR_w by Monte Carlo": "EVR_w, Monte Carlo with 1000 draws"}
    plain, weighted = (final("table2-published", strategy, metric) for metric in ("SEL", "SEL_w"))
    digits = {"EVR": (4, 1), "Random": (3, 0)}.get(strategy, (3, 1))
    ours = [f"{each.mean:.{n}f} ± {each.sem:.{n}f}" for each, n in zip((plain, weighted), digits, strict=True)]
    (line,) = (each for each in LINES if each.startswith(f"| {called.get(strategy, strategy)} | "))
    assert f" | {ours[0]} | " in line
    assert f" | {ours[1]} | " in line


def test_the_page_has_what_table_2_shows_besides():
    gap = pair("table2-published", "EVR_w", "EVR", "SEL_w", "loss")
    assert f"in all {gap.better} runs, by {-gap.value:.1f} (95% interval {-gap.high:.1f} to {-gap.low:.1f})" in PAGE
    noisy = pair("table2-published", "EVR_w", "EVR_w by Monte Carlo", "SEL_w", "loss")
    assert f"{-noisy.value:.1f} ({-noisy.high:.1f} to {-noisy.low:.1f}) more for the noisy" in PAGE
    tail = final("table2-published", "Random", "SEL_w")
    first = [each.losses[-1] for each in curves("table2-published", "Random", "SEL_w")[:25]]
    assert (
        f"its mean is {tail.mean:.0f} ({sum(first) / 25:.0f} in the first 25 runs), its median {tail.median:.0f}"
        in PAGE
    )


def test_the_page_says_how_far_table_2_is_from_what_was_printed():
    def gap(strategy, metric, printed=None):
        ours, (mean, sem) = final("table2-published", strategy, metric), PRINTED[printed or strategy, metric]
        return (ours.mean - mean) / math.hypot(sem, ours.sem)

    gaps = sorted(abs(gap(strategy, metric)) for strategy in ("Random", "EVR", "EVR_w") for metric in ("SEL", "SEL_w"))
    assert f"every number but one is within {gaps[-2]:.1f} standard errors of the difference" in PAGE
    assert gaps[-1] > 3.0
    noisy = gap("EVR_w by Monte Carlo", "SEL", "EVR_w")
    assert f"{-noisy:.1f} standard errors below the printed number" in PAGE
    ahead = [final("table2-text", strategy, "SEL_w").mean for strategy in ("EVR_w", "EVR")]
    assert "EVR_w leads EVR on SEL_w there, too ({:.1f} against {:.1f})".format(*ahead) in PAGE


def test_the_page_says_on_yacht_and_estate_what_means_and_plain_errors_show():
    means = pair("regression-yacht-published", "EVR_w", "EVR", "SEL_w", "loss")
    assert f"({means.value:.0f}, {means.low:.0f} to {means.high:.0f})" in PAGE
    assert means.low < 0 < means.high
    assert 10 ** pair("regression-yacht-published", "EVR_w", "EVR", "SEL_w", "log10").value < 0.25  # "a quarter"
    for name in ("yacht", "estate"):
        assert pair(f"regression-{name}-published", "EVR_w", "EVR", "SEL", "loss").low > 0


def test_the_page_says_how_long_classification_took():
    about = [each.about for name, each in KEPT.items() if name.startswith("class") and name.endswith("intelex")]
    fits, scores = (sum(each[part] for each in about) / 60 for part in ("fit_seconds", "score_seconds"))
    assert len(about) == 4
    assert f"took {fits:.0f} minutes of fits and {scores:.0f} of scores" in PAGE


def test_the_page_says_how_far_weights_spread_in_native_units():
    """Of the table itself: exp(-z) from the cheapest to the most expensive house."""
    try:
        prices = load("estate").target
    except DatasetError:
        pytest.skip("needs the data of the paper")
    assert f"exp(-z) spans {np.ptp(prices) / math.log(10):.1f} orders of magnitude on Estate" in PAGE


def test_the_page_says_of_the_quick_look_what_its_help_says():
    (minutes,) = re.findall(r"--quick --jobs 2 +# 2 runs of a few labels, about (\w+) minutes", PAGE)
    assert f"2 runs of a few labels, in about {minutes} minutes for all" in Path(main.__code__.co_filename).read_text()


def curves(name, strategy, metric):
    return [each for each in KEPT[name].curves if (each.strategy, each.metric) == (strategy, metric)]


WITH_RUNS = [name for name in KEPT if not name.startswith("classification") or name.endswith("compiled")]


@pytest.mark.parametrize("name", WITH_RUNS)
def test_kept_runs_are_those_that_the_summary_is_of(name):
    for strategy in dict.fromkeys(each.strategy for each in KEPT[name].points):
        for metric in METRICS[KEPT[name].about["study"]]:
            runs = curves(name, strategy, metric)
            assert [each.run for each in runs] == list(range(KEPT[name].about["runs"]))
            assert len(runs) == 100 or name.startswith("classification")
            for labels in (0, KEPT[name].about["labels"]):
                median = float(np.median([each.losses[labels] for each in runs]))
                assert median == pytest.approx(KEPT[name].point(strategy, metric, labels).median, rel=1e-3)


@pytest.mark.parametrize("name", ["yacht", "estate"])
def test_the_page_has_the_gap_on(name):
    gap = pair(f"regression-{name}-published", "EVR_w", "EVR", "SEL_w", "log10")
    assert f"by {-gap.value:.2f} of log10 ({-gap.high:.2f} to {-gap.low:.2f})" in PAGE
    assert f"in {gap.better} of {gap.runs} runs" in PAGE


def test_the_page_has_what_slump_and_native_units_show():
    gap = pair("regression-slump-published", "EVR_w", "EVR", "SEL_w", "log10")
    assert f"({interval(gap).replace(',', ' of log10,', 1)})" in PAGE
    for name in ("yacht", "slump", "estate"):
        assert f"({interval(pair(f'regression-{name}-text', 'EVR_w', 'EVR', 'SEL_w', 'loss'), digits=1)}" in PAGE


def test_the_page_has_the_medians_of_linex_and_what_log_prices_show():
    medians = {each: final("linex-estate-published-exact", each, "Linex").median for each in ("Random", "EVR")}
    clipped = final("linex-estate-published-exact", "Itakura-Saito", "Linex").median
    assert f"Random {medians['Random']:.1f}, EVR and Linex {medians['EVR']:.1f}, Itakura-Saito {clipped:.1f}" in PAGE
    gap = pair("linex-estate-published-exact", "Itakura-Saito", "EVR", "Linex", "log10")
    assert f"({interval(gap).replace(',', ' of log10,', 1)})" in PAGE
    for preset in ("published", "text"):
        gap = pair(f"linex-estate-{preset}-log-warped", "Linex", "EVR", "Linex", "loss")
        assert f"({gap.low:.3f} to {gap.high:.3f})" in PAGE
    for name in ("exact", "log-warped"):
        assert f"{KEPT[f'linex-estate-published-{name}'].about['runs']} runs" in PAGE


def test_the_page_has_what_vehicle_shows():
    name = "classification-vehicle-published"
    ends = [final(name, each, "NLL_w with q_w").mean for each in ("EPIG_w", "EPIG", "Random")]
    assert "NLL_w ends at {:.3f} for EPIG_w, {:.3f} for EPIG and {:.3f} for random".format(*ends) in PAGE
    gap = pair(name, "EPIG_w", "EPIG", "NLL_w with q_w", "loss")
    assert f"in {gap.better} of {gap.runs} runs, by {-gap.value:.3f} ({-gap.high:.3f} to {-gap.low:.3f})" in PAGE
    plain = [final(name, each, "NLL_w with q").mean for each in ("EPIG_w", "EPIG")]
    assert "{:.3f} and {:.3f}".format(*plain) in PAGE


CLASSIFIED = {
    "Vehicle, scikit-learn's forests": "vehicle-published",
    "Vehicle": "vehicle-published-compiled",
    "Vehicle, intelex": "vehicle-published-intelex",
    "Landsat, intelex": "landsat-published-intelex",
    "Vowel, 528 rows": "vowel-train-published-compiled",
    "Vowel, 528 rows, intelex": "vowel-train-published-intelex",
    "Vowel, 990 rows, intelex": "vowel-all-published-intelex",
}


@pytest.mark.parametrize("line", CLASSIFIED)
def test_the_page_has_the_gaps_of_classification(line):
    gaps = [
        pair(f"classification-{CLASSIFIED[line]}", "EPIG_w", "EPIG", metric, "loss")
        for metric in ("NLL_w with q_w", "NLL_w with q", "NLL")
    ]
    cells = [f"{g.value:.3f} ({g.low:.3f} to {g.high:.3f}), {g.better} of {g.runs}" for g in gaps]
    assert f"| {line} | {' | '.join(cells)} |" in LINES
    assert all(gap.runs >= 5 for gap in gaps)


def test_the_page_says_how_forests_of_others_differ():
    """Random labels of the same splits: scikit-learn-intelex's trees predict worse, with few labels and with all."""
    names = [f"classification-vowel-train-published-{grower}" for grower in ("intelex", "compiled")]
    ends, starts = (
        [KEPT[name].point("Random", "NLL", labels).mean for name in names]
        for labels in (KEPT[names[0]].about["labels"], 0)
    )
    assert f"is {ends[0]:.3f} with them and {ends[1]:.3f} with compiled forests after 100 labels" in PAGE
    assert f"and {starts[0]:.3f} and {starts[1]:.3f} before the first" in PAGE
    assert KEPT[names[0]].about["data"] == KEPT[names[1]].about["data"]
    runs = KEPT["classification-vehicle-published-compiled"].about["runs"]
    assert f"classification has {KEPT[names[1]].about['runs']}, Vehicle {runs} (the paper: 100)" in PAGE


def test_the_sign_of_no_difference_depends_on_who_grows_the_trees():
    metrics = ("NLL_w with q_w", "NLL_w with q", "NLL")
    for rows in ("vehicle-published", "vowel-train-published"):
        for metric in metrics:
            found = [
                pair(f"classification-{rows}-{grower}", "EPIG_w", "EPIG", metric, "loss")
                for grower in ("compiled", "intelex")
            ]
            significant = {gap.value > 0 for gap in found if gap.low > 0 or gap.high < 0}
            assert len(significant) <= 1
    ahead = [
        pair(f"classification-vehicle-published{grower}", "EPIG_w", "EPIG", "NLL_w with q_w", "loss")
        for grower in ("", "-compiled", "-intelex")
    ]
    assert max(each.high for each in ahead) < 0
    assert np.ptp([each.value for each in ahead]) < 0.005
    small = KEPT["classification-vowel-train-published-compiled"]
    run = over_the_run.pair(small, "NLL_w with q_w", "area")
    assert run.low < 0
    assert abs(run.high) < 5e-3


def test_the_page_has_where_landsat_ends():
    ends = [
        final("classification-landsat-published-intelex", each, "NLL_w with q_w").mean for each in ("EPIG", "EPIG_w")
    ]
    random = final("classification-landsat-published-intelex", "Random", "NLL_w with q_w").mean
    assert f"({ends[0]:.3f} and {ends[1]:.3f} against {random:.3f})" in PAGE


def test_the_page_has_the_whole_run_and_where_random_is_ahead():
    text = (ROOT / "docs" / "reproduction.md").read_text()
    made = text[text.index(over_the_run.BEGIN) + len(over_the_run.BEGIN) : text.index(over_the_run.END)]
    assert made.strip() == over_the_run.table(list(KEPT.values()))
    assert over_the_run.level_or_ahead(list(KEPT.values())) == ["Table 2, text (SEL_w)"]
    slump = pair("regression-slump-published", "EVR_w", "Random", "SEL_w", "log10")
    assert slump.low < 0 < slump.high
    ahead = [final("table2-text", each, "SEL_w") for each in ("Random", "EVR_w")]
    assert f"median SEL_w is {ahead[0].median:.1f} against {ahead[1].median:.1f} for EVR_w" in PAGE
    assert f"(its mean, {ahead[0].mean:.1f}, is higher" in PAGE
    landsat, small = (
        KEPT["classification-landsat-published-intelex"],
        KEPT["classification-vowel-train-published-intelex"],
    )
    for each in (landsat, small):
        end, run = (over_the_run.pair(each, "NLL_w with q_w", moment) for moment in ("final", "area"))
        assert end.low < 0 < end.high
        assert run.high < 0


def test_labels_needed_by_hand():
    kept = KEPT["regression-yacht-published"]
    level = over_the_run.curve(kept, "Random", "SEL_w")[-1]
    needed = int(over_the_run.labels_needed(kept, "EVR_w", "SEL_w"))
    values = over_the_run.curve(kept, "EVR_w", "SEL_w")
    assert (values[needed:] <= level).all()
    assert values[needed - 1] > level


def test_pictures_of_the_page_are_kept_in_vectors():
    names = shown()
    assert len(names) >= 5
    for name in names:
        assert (ROOT / "docs" / "figures" / f"{name}.svg").read_text().startswith("<?xml")
