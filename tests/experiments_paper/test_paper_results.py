"""The summaries of full runs that are kept say what the page on reproduction says of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from experiments.__main__ import chosen
from experiments.paper.report import PRINTED, report
from experiments.paper.results import read

ROOT = Path(__file__).resolve().parents[2]
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
    studies = {each.name: each for grower in ("scikit-learn", "intelex") for each in chosen("all", None, grower)}
    for name, summary in KEPT.items():
        assert summary.about["settings"] == repr(studies[name])
        assert summary.about["command"].startswith("python -m experiments ")
        assert summary.about["seconds"] > 1.0


@pytest.mark.parametrize("metric", ["SEL", "SEL_w"])
@pytest.mark.parametrize("strategy", ["Random", "EVR"])
def test_table_2_is_within_three_standard_errors_of_what_was_printed(strategy, metric):
    ours, (mean, sem) = final("table2-published", strategy, metric), PRINTED[strategy, metric]
    assert ours.runs == 25
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
    assert gap.runs == 50
    assert gap.high < 0


def test_linex_under_an_exact_process_is_evr_in_every_run():
    for preset in ("published", "text"):
        gap = pair(f"linex-estate-{preset}-exact", "Linex", "EVR", "Linex", "loss")
        assert (gap.value, gap.low, gap.high) == (0.0, 0.0, 0.0)


def test_the_page_has_the_numbers_of_the_summaries():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    evr, evr_w = (final("table2-published", name, "SEL") for name in ("EVR", "EVR_w"))
    assert f"| EVR | {evr.mean:.4f} ± {evr.sem:.4f} |" in page
    assert f"| EVR_w, exact | {evr_w.mean:.3f} ± {evr_w.sem:.3f} |" in page
    gap = pair("regression-yacht-published", "EVR_w", "EVR", "SEL_w", "log10")
    assert f"by {-gap.value:.2f} of log10 ({-gap.high:.2f} to {-gap.low:.2f})" in page
