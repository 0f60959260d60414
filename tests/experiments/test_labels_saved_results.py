"""The results in the repository, and the pages that quote them."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from experiments.labels_saved import summary
from experiments.labels_saved.measures import ALPHA
from experiments.labels_saved.page import densities, medians, own_and_unweighted, page, promises, worse_cases
from experiments.labels_saved.problems import DRIVERS
from experiments.labels_saved.tables import CHECKS

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results" / "labels_saved"
OWN = "default, own loss"


@pytest.fixture(scope="module")
def results():
    return summary.read(RESULTS)


def of(results, task):
    return [each for each in results if each.task == task]


def own_cases(results, loss):
    """Of tables that count."""
    return [c for each in results if each.counts.get(loss) for c in each.cases if c.loss == loss and c.pair == OWN]


def test_the_report_is_made_of_the_results(results):
    pictures = [f"{kind}_{task}.png" for task in ("numbers", "classes") for kind in ("shares", "curves")]
    assert (RESULTS / "report.md").read_text() == page(results, pictures)
    assert all((RESULTS / name).is_file() for name in pictures)


@pytest.mark.parametrize("task", ["numbers", "classes"])
def test_the_page_has_the_tables_of_the_results(results, task):
    text, few = (ROOT / "docs" / "does_it_help.md").read_text(), of(results, task)
    for loss in DRIVERS[task]:
        assert medians(few, loss) in text
    for part in (own_and_unweighted(task, few), densities(few), promises(task, few)):
        assert part in text


def test_the_first_sentences_say_what_came_out(results):
    text = " ".join((ROOT / "docs" / "does_it_help.md").read_text().split())
    shares = {
        loss: float(np.median([case.share.value for case in own_cases(results, loss)]))
        for losses in DRIVERS.values()
        for loss in losses
    }
    quoted = f"{shares['squared error']:.0%} of the labels that random choice needs with a plain Gaussian process"
    assert f"at most {quoted} (squared error)" in text
    assert f"{shares['exponential weight']:.0%} (large targets weigh more)" in text
    assert f"{shares['threshold']:.0%} (act or wait) and {shares['pinball']:.0%} (a high quantile)" in text
    ratios = {
        loss: math.exp(np.mean([math.log(case.ratio.value) for case in own_cases(results, loss)]))
        for loss in DRIVERS["classes"]
    }
    miss, log_loss = DRIVERS["classes"]
    assert f"at most {shares[miss]:.0%} of the labels that random choice needs with a forest" in text
    assert f"ended with {ratios[miss]:.2f}"[:-4] + f"{ratios[miss]:.2f}".lstrip("0") in text
    assert (
        f"with a weighted log loss it was {shares[log_loss]:.0%}, and {ratios[log_loss]:.2f}".replace("0.", ".") in text
    )


def _short(value):
    return f"{value:.2f}".lstrip("0")


def test_no_problem_ended_worse(results):
    problems, worse = 0, []
    for task in ("numbers", "classes"):
        few = of(results, task)
        corrected = worse_cases(few, "p_worse")
        problems += len(few) * len(DRIVERS[task])
        worse += [name for name, value in corrected.items() if value < ALPHA and name.endswith(OWN)]
    assert problems == 92
    assert worse == []


def test_the_page_of_limits_counts_problems_that_need_many_labels(results):
    text = " ".join((ROOT / "docs" / "concepts" / "what_it_cannot_do.md").read_text().split())
    shares = [case.share.value for losses in DRIVERS.values() for loss in losses for case in own_cases(results, loss)]
    many = sum(share > 0.5 for share in shares)
    assert f"But {many} of the {len(shares)} in which labels matter needed more than half of its labels" in text


def test_tables_on_which_nothing_was_chosen_are_reported_as_they_came():
    found = summary.read(RESULTS.with_name("labels_saved_checks"))
    assert sorted(each.table for each in found) == sorted(CHECKS)
    text = " ".join((ROOT / "docs" / "does_it_help.md").read_text().split())
    ratio = {(each.table, case.loss, case.pair): case.ratio.value for each in found for case in each.cases}
    cells = []
    for loss in DRIVERS["classes"]:
        means = [np.mean([math.log(ratio[name, loss, pair]) for name in CHECKS]) for pair in (OWN, "default, random")]
        cells.append(", ".join(f"{math.exp(mean):.2f}" for mean in means))
    assert f"| calibrated | {cells[0]} | {cells[1]} |" in text
    for loss, title in zip(DRIVERS["classes"], ("cost of a miss", "weighted log loss"), strict=True):
        reached = [math.isfinite(case.share.value) for case in own_cases(found, loss)]
        assert f"{sum(reached)} of {len(reached)} ({title})" in text
    worse = worse_cases(found, "p_worse")
    assert [name for name, value in worse.items() if value < ALPHA and name.endswith(OWN)] == []
    assert f"wisconsin ends at {ratio['wisconsin', 'weighted log loss', OWN]:.2f}" in text


def of_own(results, loss, table=None, pair=OWN):
    """Of tables that count, or of one table that need not."""
    return [
        case
        for each in results
        if (each.counts.get(loss) if table is None else each.table == table)
        for case in each.cases
        if (case.loss, case.pair) == (loss, pair)
    ]


def ratio_of(cases):
    return _short(math.exp(np.mean([math.log(case.ratio.value) for case in cases])))


def test_what_was_wanted_and_what_came(results):
    """Each line of that table, from the results."""
    lines = (ROOT / "docs" / "does_it_help.md").read_text().splitlines()
    share = {
        loss: f"{np.median([case.share.value for case in own_cases(results, loss)]):.0%}"
        for losses in DRIVERS.values()
        for loss in losses
    }
    ratio = {loss: ratio_of(own_cases(results, loss)) for loss in share}
    numbers, (miss, log_loss) = DRIVERS["numbers"], DRIVERS["classes"]
    below = re.findall(r"^\| (.*?) \|$", own_and_unweighted("classes", of(results, "classes")), re.M)[2:]
    assert len(below) == 2
    lower, gaps = [each.split(" | ")[5] for each in below], [each.split(" | ")[4] for each in below]
    needed = next(
        each.split(" | ")[3]
        for each in own_and_unweighted("numbers", of(results, "numbers")).splitlines()
        if each.startswith("| threshold | default")
    )
    for line in (
        f"| numbers: at most 45% of random's labels, squared error | {share['squared error']}: reached |",
        f"| the same, exponential weight | {share['exponential weight']}: reached |",
        f"| threshold: at most 50% | {share['threshold']}: reached |",
        f"| threshold: at most 75% of the labels of the unweighted objective | {needed}: reached |",
        "| numbers: final loss at most .80 of (reference, random) | "
        f"{', '.join(ratio[loss] for loss in numbers[:3])}: reached |",
        f"| classes: at most 50% of random's labels | {share[miss]} and {share[log_loss]}: reached |",
        f"| classes: final cost at most .85 of (forest, random) | {ratio[miss]} and {ratio[log_loss]}: reached |",
        "| classes: own loss worse than the unweighted one in none, lower in 60% | "
        f"none; {lower[0]} and {lower[1]}: reached |",
    ):
        assert line in lines
    (last,) = (line for line in lines if line.startswith("| classes: geometric mean of these ratios below 1 |"))
    for gap in gaps:
        assert gap.split(" ")[0].lstrip("0") in last


def test_what_the_page_says_of_single_tables(results):
    text = " ".join((ROOT / "docs" / "does_it_help.md").read_text().split())
    flat = [each.table for each in of(results, "classes") if not each.counts["cost of a miss"]]
    assert f"significantly and by 10% ({', '.join(flat)})" in text
    assert f"{ {7: 'Seven'}[len(flat)] } of the {len(of(results, 'classes'))} tables are flat" in text
    (yacht,) = of_own(results, "pinball", "yacht")
    assert f"on yacht it ended {yacht.ratio_against.value - 1:.0%} above it" in text
    rivals = ("default, margin", "default, predictive entropy", "default, bald")
    worst = 0.0
    for loss in DRIVERS["classes"]:
        for each in (each for each in of(results, "classes") if each.counts[loss]):
            finals = {case.pair: case.finals for case in each.cases if case.loss == loss}
            own = np.mean(finals[OWN][:10])
            for rival in rivals:
                assert own <= np.mean(finals[rival][:10]) * (1 + 5e-3), (each.table, loss, rival)
    for table in ("wdbc", "phoneme", "spambase", "ionosphere"):
        ratios = [of_own(results, "cost of a miss", table, rival)[0].ratio.value for rival in rivals]
        assert max(ratios) > 1.0
        worst = max(worst, *ratios)
    assert f"at up to {worst:.1f} times its loss where there are two" in text
