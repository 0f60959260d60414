"""`python -m experiments annotators`: what it costs to reach a loss with annotators who err, and whom to ask.

A student is right in 80% of cases and costs 1, an expert in 95% and costs 5. In the setting "even" their errors are
spread evenly over classes; in "biased" the student takes other classes for the most frequent one, of which all are
found. Nobody knows how reliable they are, and nobody says something else when asked again. Policies:

- both: pairs of a row and an annotator by what the opinion is worth for its price (`stakes.ranking.rank_opinions`);
- student, expert: the same with one of them;
- noise ignored: every label is taken for the truth, so that the cheaper one is asked, once about each row.

All start with 10 rows whose class is known. Who reckons with errors first asks about these rows whoever costs no more
than a twentieth of the budget for that, which is the student. All spend 200, and are refitted after every 10, from 60
on after every 20. The loss is log loss on test rows. The level to reach is three quarters of the way from the loss at
the start to the lowest final loss of all policies, both of smoothed mean curves; a policy that never gets there counts
as if it had at the end. As nobody gets there in some cases, half of the way was fixed as a second level before the runs
were made; cases count in which one of those who reckon with errors gets there.

A second part estimates confusion matrices from 30, 100 and 300 rows that both labelled, with 10 known ones beside.
With `--settled`, nothing else is done but this: 150 rows of each table are labelled by both, the student first, and
extremely randomised trees are fitted to the first labels, or to what both come to, as a campaign does.

Sizes: R runs, C classes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from experiments.labels_saved.measures import last_level, smoothed
from experiments.labels_saved.problems import problems
from experiments.labels_saved.splits import split
from experiments.labels_saved.tables import Host, Table, load
from experiments.labels_saved.trees import Trees, grown
from experiments.markdown import number
from experiments.markdown import table as markdown
from stakes.beliefs import CategoricalEnsemble
from stakes.evaluation import estimate_annotators
from stakes.models import LabelDraws
from stakes.ranking import fit_to_opinions, rank_opinions

TABLES = ("australian", "phoneme", "spambase", "vehicle", "satimage", "wdbc")
SETTINGS = ("even", "biased")
BOTH, STUDENT, EXPERT, IGNORED = "both", "student", "expert", "noise ignored"
POLICIES = (BOTH, STUDENT, EXPERT, IGNORED)
PRICES = {STUDENT: 1.0, EXPERT: 5.0}
ACCURACY = {STUDENT: 0.8, EXPERT: 0.95}
RUNS, ESTIMATES, BUDGET, CALIBRATION = 8, 4, 200.0, 0.05
FALL, HALF = 0.75, 0.5
DOUBLE = (30, 100, 300)
"""Rows that both label, where confusions are estimated."""
RESULTS = Path(__file__).parent / "results" / "annotators" / "annotators.json"
_RATIOS = ("against the better single", "against noise ignored")
_COPIES, _CONTEXTS, _POOL, _ROWS = 100, 60, 100, 200
_SEED = 20


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments annotators", description=__doc__)
    parser.add_argument("--tables", nargs="+", metavar="TABLE", default=list(TABLES))
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each policy on each table")
    parser.add_argument("--estimates", type=int, default=ESTIMATES, help="runs of the second part on each table")
    parser.add_argument("--budget", type=float, default=BUDGET, help="what each run may spend")
    parser.add_argument("--store", type=Path, default=Path("build/annotators.jsonl"), help="finished runs, a line each")
    parser.add_argument("--results", type=Path, default=Path("build/annotators.json"), help="the summary to write")
    parser.add_argument("--settled", action="store_true", help="only: first labels beside what both labels come to")
    given = parser.parse_args(arguments)
    if given.settled:
        print(settled_table([load(name) for name in given.tables], given.runs))
        return
    given.store.parent.mkdir(parents=True, exist_ok=True)
    done = {_key(each): each for each in _read_lines(given.store)}
    tables = {name: load(name) for name in given.tables}
    with given.store.open("a") as store:
        for run in range(given.runs):
            for name, table in tables.items():
                for task in _tasks(name, run, given.budget, run < given.estimates):
                    if _key(task) not in done:
                        found = {**task, **_carried_out(table, task)}
                        done[_key(task)] = found
                        store.write(json.dumps(found) + "\n")
                        store.flush()
            print(f"run {run + 1} of {given.runs}", flush=True)
    pairs = [(name, run) for name in tables for run in range(given.runs)]
    wanted = [task for name, run in pairs for task in _tasks(name, run, given.budget, run < given.estimates)]
    result = summarised([done[_key(task)] for task in wanted], given.budget)
    given.results.parent.mkdir(parents=True, exist_ok=True)
    given.results.write_text(json.dumps(result, indent=1) + "\n")
    print(costs_table(result), levels_table(result), accuracy_table(result), sep="\n\n")


def _tasks(table: str, run: int, budget: float, estimates: bool) -> list[dict[str, Any]]:
    each = {"table": table, "run": run, "budget": budget}
    tasks = [{**each, "setting": setting, "policy": policy} for setting in SETTINGS for policy in POLICIES]
    if not estimates:
        return tasks
    return tasks + [{**each, "setting": setting, "double": count} for setting in SETTINGS for count in DOUBLE]


def _key(task: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(task.get(name) for name in ("table", "run", "budget", "setting", "policy", "double"))


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _carried_out(table: Table, task: dict[str, Any]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "policy" in task:
            return bought(table, task["run"], task["setting"], task["policy"], task["budget"])
        return estimated(table, task["run"], task["setting"], task["double"])


class CompiledDraws(LabelDraws):
    """The same model with trees grown by compiled loops, with other random numbers: two thirds of the time."""

    def __init__(
        self, estimator: Any = "trees", *, copies: int = _COPIES, rounds: int = 6, random_state: Any = 0
    ) -> None:
        super().__init__(estimator, copies=copies, rounds=rounds, random_state=random_state)

    def _encoded(self, X: Any) -> Host:  # noqa: N803
        return np.ascontiguousarray(X, dtype=np.float32)

    def _copy(self, rows: Host, drawn: Host, random_state: np.random.RandomState) -> CompiledTree:
        count = len(self.classes_)
        return CompiledTree(grown(rows, drawn, count, 1, random_state.randint(2**31 - 1)), np.arange(count))


@dataclass(frozen=True, eq=False)
class CompiledTree:
    """One tree, as `LabelDraws` asks it."""

    trees: Trees
    classes_: Host

    def predict_proba(self, rows: Host) -> Host:
        """[N, C]."""
        return self.trees.shares(self.trees.leaves(rows))[:, 0]


def confusions(table: Table, setting: str) -> dict[str, Host]:
    """[C, C] of each annotator: labels in columns, classes in rows."""
    count, often = len(table.classes), int(np.argmax(table.shares))
    found = {name: np.where(np.eye(count), right, (1 - right) / (count - 1)) for name, right in ACCURACY.items()}
    if setting == "biased":
        wrong = (1.0 - ACCURACY[STUDENT]) / (1.0 - table.shares[often])  # of other classes: right in 80% of all rows
        found[STUDENT] = (1.0 - wrong) * np.eye(count)
        found[STUDENT][:, often] += wrong
    return found


def answers(table: Table, setting: str, run: int) -> dict[str, Host]:
    """[n]: what each annotator says of each row, whoever asks and however often."""
    uniform = {name: np.random.default_rng([_SEED, run, at]).random(len(table.y)) for at, name in enumerate(PRICES)}
    edges = {name: np.cumsum(each, axis=1)[table.y] for name, each in confusions(table, setting).items()}
    return {name: (uniform[name][:, None] > edges[name][:, :-1]).sum(axis=1) for name in PRICES}


def bought(table: Table, run: int, setting: str, policy: str, budget: float = BUDGET) -> dict[str, Any]:
    """One run: the loss after each purchase, whose opinions were bought, and how many of them on rows that had one."""
    trial, reported = split(table, run, _POOL), answers(table, setting, run)
    here = np.concatenate([trial.initial, trial.pool])  # the rows that there are; positions below are among them
    rows, contexts, test = trial.X[here], trial.X[trial.contexts[:_CONTEXTS]], trial.X[trial.test]
    start = {at: int(trial.y[here[at]]) for at in range(len(trial.initial))}
    classes, problem = list(range(len(table.classes))), problems(table)["log loss"]
    prices = {name: price for name, price in PRICES.items() if policy in (BOTH, name)} or {STUDENT: PRICES[STUDENT]}
    perfect = {name: np.eye(len(classes)) for name in prices} if policy == IGNORED else None
    opinions: list[tuple[int, str, int]] = []
    if policy != IGNORED:
        cheap = [name for name, price in prices.items() if price * len(start) <= CALIBRATION * BUDGET]
        tried = [(row, name) for name in cheap for row in start]
        opinions = [(row, name, int(reported[name][here[row]])) for row, name in tried]
    spent, curve = sum(prices[name] for _, name, _ in opinions), []
    generator = np.random.default_rng([_SEED, run, len(classes)])
    while True:
        taken = {row: label for row, _, label in opinions} if policy == IGNORED else {}
        fit = fit_to_opinions(
            rows,
            () if policy == IGNORED else opinions,
            known={**start, **taken},
            classes=classes,
            model=CompiledDraws(),
            random_state=generator,
        )
        members = fit.model.members(test)
        curve.append((spent, round(problem(CategoricalEnsemble(members[:1], members), trial.y[trial.test]), 5)))
        if spent >= budget:
            break
        step = min(10.0 if spent < 60 else 20.0, budget - spent)
        asked = rank_opinions(
            fit,
            problem.loss,
            prices=prices,
            contexts=contexts,
            n=int(step / min(prices.values())),
            budget=step,
            choice="drawn",
            max_rows=_ROWS,
            noise=perfect,
            random_state=generator,
        )
        if not asked:
            break
        opinions += [(each.row, each.annotator, int(reported[each.annotator][here[each.row]])) for each in asked]
        spent += sum(each.price for each in asked)
    experts = sum(name == EXPERT for _, name, _ in opinions)
    later = [row for row, _, _ in opinions if row not in start]
    again = len(later) - len(set(later))
    return {"curve": curve, "opinions": len(opinions), "of the expert": experts, "again": again}


def estimated(table: Table, run: int, setting: str, count: int) -> dict[str, Any]:
    """Confusions from rows that both labelled: errors of all entries, and their standard errors."""
    reported, classes = answers(table, setting, run), list(range(len(table.classes)))
    order = np.random.default_rng([_SEED, run, count]).permutation(len(table.y))
    count = min(count, len(order) - 10)
    chosen, start = order[:count], order[count : count + 10]
    rows = table.standardised[np.concatenate([start, chosen])]
    opinions = [(10 + at, name, int(reported[name][row])) for at, row in enumerate(chosen) for name in PRICES]
    known = {at: int(table.y[row]) for at, row in enumerate(start)}
    fit = fit_to_opinions(rows, opinions, known=known, classes=classes, model=CompiledDraws())
    assert fit.annotators is not None
    truth, found = confusions(table, setting), {}
    for name in PRICES:
        each = fit.annotators[name]
        frequent = np.bincount(table.y[chosen], minlength=len(classes)) / count
        right = float(frequent @ np.diagonal(truth[name]))
        found[name] = {
            "errors": np.round(np.diagonal(each.confusion - truth[name]), 4).tolist(),
            "standard errors": np.round(np.diagonal(each.confusion_error), 4).tolist(),
            "accuracy error": round(each.accuracy - right, 4),
            "accuracy standard error": round(each.accuracy_error, 4),
        }
    return {"found": found}


def settled_table(tables: Sequence[Table], runs: int) -> str:
    """Right labels, and errors of a model on test rows, by setting: of first labels, and of what two come to."""
    lines = []
    for setting in SETTINGS:
        found = np.mean([settled(table, run, setting) for table in tables for run in range(runs)], axis=0)
        lines.append([setting, *(f"{each:.3f}" for each in found)])
    return markdown(["setting", "right, first", "right, settled", "test error, first", "test error, settled"], lines)


def settled(table: Table, run: int, setting: str, count: int = 150) -> tuple[float, float, float, float]:
    """Shares of right labels and test errors: of the student, who labels first, and of what both labels come to."""
    trial, reported, classes = split(table, run, _POOL), answers(table, setting, run), range(len(table.classes))
    start, here = trial.initial, trial.pool[:count]
    opinions = [(int(row), name, int(reported[name][row])) for row in np.r_[start, here] for name in PRICES]
    known = {int(row): np.eye(len(classes))[trial.y[row]] for row in start}
    found = estimate_annotators(opinions, classes=list(classes), task="classes", row_probabilities=known)
    place = {row: at for at, row in enumerate(found.rows)}
    labels = reported[STUDENT][here], found.truth[[place[int(row)] for row in here]].argmax(axis=1)
    rows, test = np.r_[start, here], trial.test
    models = [ExtraTreesClassifier(random_state=0).fit(trial.X[rows], np.r_[trial.y[start], each]) for each in labels]
    errors = [float(np.mean(model.predict(trial.X[test]) != trial.y[test])) for model in models]
    right = [float(np.mean(each == trial.y[here])) for each in labels]
    return right[0], right[1], errors[0], errors[1]


def summarised(runs: Sequence[dict[str, Any]], budget: float) -> dict[str, Any]:
    """Costs to reach the level for each table and setting, and how near estimates of confusions came."""
    cases = []
    for name in dict.fromkeys(each["table"] for each in runs):
        for setting in SETTINGS:
            here = [each for each in runs if (each["table"], each["setting"]) == (name, setting)]
            cases.append({"table": name, "setting": setting, **_case(here, budget)})
    estimates = []
    for setting in SETTINGS:
        for count in DOUBLE:
            here = [each["found"] for each in runs if each.get("double") == count and each["setting"] == setting]
            estimates += [{"setting": setting, "rows": count, "annotator": a, **_nearness(here, a)} for a in PRICES]
    medians = {
        setting: {
            name: _median([each for each in cases if setting in ("all", each["setting"])], name) for name in _RATIOS
        }
        for setting in (*SETTINGS, "all")
    }
    levels = [_level(cases, setting, fall) for fall in (FALL, HALF) for setting in (*SETTINGS, "all")]
    count = len({each["run"] for each in runs})
    return {
        "runs": count,
        "budget": budget,
        "medians": medians,
        "levels": levels,
        "cases": cases,
        "estimates": estimates,
    }


def _case(runs: Sequence[dict[str, Any]], budget: float) -> dict[str, Any]:
    """Of one table and setting: mean curves at every unit spent, the level, and what each policy pays for it."""
    units = np.arange(int(budget) + 1)
    curves, shares = {}, {}
    for policy in POLICIES:
        own = [each for each in runs if each.get("policy") == policy]
        lines = [_by_unit(each["curve"], units) for each in own]
        curves[policy] = np.mean(lines, axis=0)
        total = sum(each["opinions"] for each in own)
        shares[policy] = {
            name: round(sum(each[name] for each in own) / total, 3) for name in ("of the expert", "again")
        }
    return {
        "start": round(float(curves[IGNORED][0]), 4),
        "final": {policy: round(float(last_level(each)), 4) for policy, each in curves.items()},
        "bought": shares,
        **_paid(curves, FALL, budget),
        "half": _paid(curves, HALF, budget),
    }


def _paid(curves: dict[str, Host], fall: float, budget: float) -> dict[str, Any]:
    """What each policy pays to come a part of the way from the loss at the start to the best at the end."""
    start, best = float(curves[IGNORED][0]), min(float(last_level(each)) for each in curves.values())
    level = start - fall * (start - best)
    costs = {policy: _cost(each, level, budget) for policy, each in curves.items()}
    better = min(costs[STUDENT], costs[EXPERT])
    return {
        "level": round(level, 4),
        "cost": costs,
        "never reached": [policy for policy, each in curves.items() if last_level(each) > level],
        _RATIOS[0]: round(costs[BOTH] / better, 3),
        _RATIOS[1]: round(costs[BOTH] / costs[IGNORED], 3),
    }


def _level(cases: Sequence[dict[str, Any]], setting: str, fall: float) -> dict[str, Any]:
    """Medians over cases at a level, of all cases and of those in which somebody who reckons with errors gets there."""
    found = [case["half"] if fall == HALF else case for case in cases if setting in ("all", case["setting"])]
    count = [each for each in found if not {BOTH, STUDENT, EXPERT} <= set(each["never reached"])]
    return {
        "fall": fall,
        "setting": setting,
        "cases": len(found),
        "cases that count": len(count),
        "all": {name: _median(found, name) for name in _RATIOS},
        "of those that count": {name: _median(count, name) for name in _RATIOS},
    }


def _median(cases: Sequence[dict[str, Any]], name: str) -> float | None:
    return float(np.median([each[name] for each in cases])) if cases else None


def _by_unit(curve: Sequence[Sequence[float]], units: Host) -> Host:
    """The loss after each unit spent; before the first fit to opinions, that of the first fit."""
    spent, losses = np.asarray(curve).T
    return np.interp(units, spent, losses)


def _cost(curve: Host, level: float, budget: float) -> float:
    """What was spent when the smoothed curve is first at the level; all of the budget where it never is."""
    below = np.flatnonzero(smoothed(curve) <= level + 1e-12)
    return float(below[0]) if len(below) else float(budget)


def _nearness(found: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Errors of accuracies, and of the entries on the diagonals."""
    errors, ses = (np.concatenate([each[name][key] for each in found]) for key in ("errors", "standard errors"))
    right, right_se = (
        np.asarray([each[name][key] for each in found]) for key in ("accuracy error", "accuracy standard error")
    )
    return {
        "mean error of accuracy": round(float(abs(right).mean()), 4),
        "accuracies within .05": round(float((abs(right) <= 0.05).mean()), 3),
        "accuracies within 2 standard errors": round(float((abs(right) <= 2 * right_se).mean()), 3),
        "mean error of entries": round(float(abs(errors).mean()), 4),
        "entries within .05": round(float((abs(errors) <= 0.05).mean()), 3),
        "entries within 2 standard errors": round(float((abs(errors) <= 2 * ses).mean()), 3),
        "entries within either": round(float((abs(errors) <= np.maximum(0.05, 2 * ses)).mean()), 3),
    }


def read(path: Path = RESULTS) -> dict[str, Any]:
    """The summary that a study has written."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def costs_table(result: dict[str, Any]) -> str:
    """What each policy pays for the level, by table and setting; medians below."""
    head = ["table", "setting", "loss to reach", *POLICIES, "both / better single", "both / noise ignored"]
    lines = []
    for case in result["cases"]:
        costs = [f"{'> ' if policy in case['never reached'] else ''}{case['cost'][policy]:.0f}" for policy in POLICIES]
        ratios = [f"{case['against the better single']:.2f}", f"{case['against noise ignored']:.2f}"]
        lines.append([case["table"], case["setting"], number(case["level"]), *costs, *ratios])
    for setting, each in result["medians"].items():
        ratios = [f"{each['against the better single']:.2f}", f"{each['against noise ignored']:.2f}"]
        lines.append(["median", setting, "", *[""] * len(POLICIES), *ratios])
    return markdown(head, lines)


def levels_table(result: dict[str, Any]) -> str:
    """Medians at both levels, of all cases and of those that count."""
    head = ["part of the best fall", "setting", "cases", "of them reached", "both / better single", "of those reached"]
    head += ["both / noise ignored", "of those reached"]
    lines = []
    for each in result["levels"]:
        ratios = [each[part][name] for name in _RATIOS for part in ("all", "of those that count")]
        cells = [each["fall"], each["setting"], each["cases"], each["cases that count"]]
        lines.append([*cells, *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)])
    return markdown(head, lines)


def accuracy_table(result: dict[str, Any]) -> str:
    """How near estimated accuracies and entries of confusion matrices are to the truth."""
    head = ["setting", "rows labelled by both", "annotator", "mean error of accuracy", "within .05", "within 2 SE"]
    head += ["mean error of entries", "entries within .05", "entries within 2 SE", "entries within either"]
    lines = [
        [
            each["setting"],
            each["rows"],
            each["annotator"],
            f"{each['mean error of accuracy']:.3f}",
            f"{each['accuracies within .05']:.0%}",
            f"{each['accuracies within 2 standard errors']:.0%}",
            f"{each['mean error of entries']:.3f}",
            f"{each['entries within .05']:.0%}",
            f"{each['entries within 2 standard errors']:.0%}",
            f"{each['entries within either']:.0%}",
        ]
        for each in result["estimates"]
    ]
    return markdown(head, lines)
