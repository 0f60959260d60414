"""`stakes suggest`: which rows, whatever the file, and what is refused."""

import csv

import pytest

from stakes import LogLoss, SquaredError, rank
from stakes.files import read_table
from stakes.models import DefaultModel
from tests.cli.cli_cases import CLASSES, NUMBERS, class_rows, number_rows, run, write


def rows_of(answer):
    return [row["row_id"] for row in answer.json["rows"]]


def by_hand(path, target, loss, **options):
    """The same by the library: the default model, fitted, and `rank`."""
    source = read_table(path)
    features, cells = source.features(["x", "z"]), source.texts(target)
    known = [row for row, cell in enumerate(cells) if cell is not None]
    pool = [row for row, cell in enumerate(cells) if cell is None]
    labels = [cells[row] for row in known]
    targets = labels if options.get("classes") else [float(label) for label in labels]
    model = DefaultModel(random_state=0, **options).fit(features.take(known), targets, pool=features.take(pool))
    found = rank(model, loss, features.take(pool), n=3, batch=True, classes=options.get("classes"))
    return [source.texts("id")[pool[row]] for row in found.indices]


def test_numbers_as_rank_has_them(here):
    found = run("suggest numbers.csv -n 3 --json", NUMBERS)
    assert rows_of(found) == by_hand(here / "numbers.csv", "y", SquaredError(), task="real")


def test_classes_as_rank_has_them(here):
    found = run("suggest classes.csv -n 3 --json", CLASSES)
    names = ["NA", "bus", "van"]
    assert rows_of(found) == by_hand(here / "classes.csv", "kind", LogLoss(), task="classes", classes=names)


def test_the_same_rows_whatever_the_file(here):
    head, *rows = number_rows()
    columns = {name: [row[place] for row in rows] for place, name in enumerate(head)}
    pa, parquet, feather = (
        pytest.importorskip(name, reason="not installed") for name in ("pyarrow", "pyarrow.parquet", "pyarrow.feather")
    )
    numbers = {name: pa.array([float(cell) if cell else None for cell in columns[name]]) for name in ("x", "z", "y")}
    table = pa.table({"id": pa.array(columns["id"]), **numbers})
    parquet.write_table(table, here / "t.parquet")
    feather.write_feather(table, here / "t.arrow", compression="uncompressed")
    write(here / "crlf.csv", [head, *rows], end="\r\n")
    (here / "bom.csv").write_bytes(b"\xef\xbb\xbf" + (here / "numbers.csv").read_bytes())
    wanted = rows_of(run("suggest numbers.csv -n 3 --json", NUMBERS))
    for name in ("t.parquet", "t.arrow", "crlf.csv", "bom.csv"):
        assert rows_of(run(f"suggest {name} -n 3 --json", NUMBERS)) == wanted


@pytest.mark.usefixtures("here")
def test_it_says_which_rows_their_worth_why_and_what_was_assumed():
    found = run("suggest numbers.csv -n 2 --verbose", NUMBERS)
    assert found.code == 0
    assert found.out.startswith("Label these rows next, of 6 without a label (6 have one):")
    for part in ("Worth on top of the rows above", "tells most about", "Expected loss of a decision today", "Assumed"):
        assert part in found.out


def test_costs_a_budget_and_decisions_are_weighed(here):
    rows = [(*row, cost) for row, cost in zip(number_rows(), ["price", *["2"] * 12], strict=True)]
    write(here / "priced.csv", rows)
    found = run("suggest priced.csv --cost price --decisions 50 --budget 5 -n 4 --json", NUMBERS).json
    assert len(found["rows"]) == 2  # two at 2 are within 5, three are not
    assert found["outlook"]["advice"] in ("go on", "stop", "too close to call")
    assert found["outlook"]["offers"][1]["cost"] == 4.0


@pytest.mark.usefixtures("here")
def test_worth_is_shown_for_a_decision_whatever_a_label_costs():
    free, paid = (run(f"suggest numbers.csv -n 2{more}", NUMBERS).out for more in ("", " --label-cost 4"))
    tables = [text[: text.index("In brackets")] for text in (free, paid)]
    assert tables[0] == tables[1]
    each = [run(f"suggest numbers.csv -n 2 --json{more}", NUMBERS).json["rows"] for more in ("", " --label-cost 4")]
    assert [row["score"] for row in each[1]] == pytest.approx([row["score"] / 4 for row in each[0]])


def test_what_is_written_can_be_filled_in(here):
    run("suggest numbers.csv -n 2 -o out.csv", NUMBERS)
    with (here / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["id", "x", "z", "y", "what sets it apart"]
    assert [row[3] for row in rows] == ["", ""]


def test_no_label_is_a_stated_cold_start_within_the_budget(here):
    write(here / "none.csv", number_rows(labelled=0))
    found = run("suggest none.csv -n 5 --budget 3 --json", NUMBERS).json
    assert len(found["rows"]) == 3
    assert any("no label yet" in sentence for sentence in found["notes"])


def test_one_class_is_a_stated_cold_start(here):
    write(here / "one.csv", class_rows(labelled=1))
    found = run("suggest one.csv -n 2 --json", CLASSES).json
    assert len(found["rows"]) == 2
    assert any("one class, 'bus'" in sentence for sentence in found["notes"])


def test_a_pool_smaller_than_the_batch_gives_the_rest(here):
    write(here / "few.csv", number_rows(labelled=11))
    answer = run("suggest few.csv -n 5 --json", NUMBERS)
    assert rows_of(answer) == ["r11"]
    assert "5 rows were asked for; 1 could be chosen." in answer.json["notes"]


@pytest.mark.parametrize("labelled", [12, 0])
def test_nothing_to_suggest_is_done(here, labelled):
    write(here / "done.csv", number_rows(n=labelled, labelled=labelled))
    answer = run("suggest done.csv", NUMBERS)
    assert answer.code == 0
    assert ("Every row has a label" if labelled else "has no rows") in answer.out


def test_a_constant_column_is_left_out_and_reported(here):
    write(here / "constant.csv", [(*row, "k" if not at else "7") for at, row in enumerate(number_rows())])
    found = run("suggest constant.csv --json", NUMBERS).json
    assert "Constant columns are left out: k." in found["notes"]


def test_odd_names_and_a_class_called_NA(here):
    big = str(2**53 + 1)
    rows = [("id", "größe", "温度", "kind"), *class_rows()[1:]]
    write(here / "odd.csv", [*rows[:-1], (big, *rows[-1][1:])])
    found = run("suggest odd.csv -n 6 --json", CLASSES)
    assert big in rows_of(found)
    assert "Classes, in the order of columns: 'NA', 'bus', 'van'." in found.json["notes"]


def test_numbers_for_classes_are_pointed_out(here):
    write(here / "many.csv", [("id", "x", "z", "kind"), *((f"r{i}", str(i), "1", f"{i}.5") for i in range(11))])
    with (here / "many.csv").open("a") as file:
        file.write("r99,3,2,\n")
    found = run("suggest many.csv -n 1 --json", CLASSES).json
    assert any("takes each for a class" in sentence for sentence in found["notes"])


def cell(row, column, text):
    def change(rows):
        rows[row] = (*rows[row][:column], text, *rows[row][column + 1 :])
        return rows

    return change


REFUSED = {
    "not finite": (lambda rows: cell(4, 1, "-inf")(cell(5, 1, "inf")(rows)), "x (2); first at line 5"),
    "ragged": (lambda rows: [*rows, ("r20", "1")], "line 14 has 2 cells"),
    "an id twice": (lambda rows: [*rows, ("r3", "1", "2", "")], "the id 'r3' stands at line 5 and at line 14"),
    "a column twice": (cell(0, 2, "x"), "'x' names 2 columns"),
    "mixed types": (cell(5, 1, "two"), "'two' at line 6"),
    "a label that is no number": (cell(4, 3, "three"), "line 5, column 'y': 'three' is no number"),
    "constant": (lambda rows: [rows[0], *((a, "1", "1", y) for a, _, _, y in rows[1:])], "all are constant or empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_tables_are_refused_with_the_place(here, name):
    change, message = REFUSED[name]
    write(here / "bad.csv", change(number_rows()))
    answer = run("suggest bad.csv", NUMBERS)
    assert (answer.code, answer.out) == (1, "")
    assert message in answer.err


def test_a_table_that_is_not_utf8_is_refused_with_the_line(here):
    (here / "latin.csv").write_bytes((here / "numbers.csv").read_bytes().replace(b"r3", b"\xef\xf0\xe8\xe2\xe5\xf2"))
    answer = run("suggest latin.csv", NUMBERS)
    assert answer.code == 1
    assert "not UTF-8: line 5" in answer.err


WEIGHTS = {"zero": ("0", "0"), "negative": ("-1", "2")}


@pytest.mark.parametrize("name", WEIGHTS)
def test_bad_weights_are_refused(here, name):
    low, high = WEIGHTS[name]
    (here / "w.csv").write_text(f"y,weight\n0,{low}\n10,{high}\n")
    answer = run("suggest numbers.csv --weight w.csv", NUMBERS)
    assert answer.code == 1
    assert "at least 0 and not all 0" in answer.err


WRONG = [
    ("--target y --loss sqared-error", "Did you mean 'squared-error'?"),
    ("--target Y --loss squared-error", "Did you mean 'y'?"),
    ("--target y --loss log-loss --weight exp:1", "log-loss takes no weight"),
    ("--target y --loss pinball", "pinball needs tau"),
    ("--target y --loss linex --alpha 0", "alpha must not be 0"),
    ("--target y --loss poisson-deviance --model log-gaussian-process", "labels are 0"),
    ("--target y --loss itakura-saito", "0.0 is not among (0, inf)"),
    ("--target y --loss squared-error --model sklearn.ensemble:RandomForestClassifier", "is a model of classes"),
    ("--target y --loss squared-error --model os:system", "is no estimator"),
    ("--target y --loss squared-error --label-cost 0", "label_cost must be a positive number"),
    ("--target y --loss squared-error --cost z", "costs must be positive numbers"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
@pytest.mark.usefixtures("here")
def test_wrong_options_are_refused_with_advice(options, message):
    answer = run("suggest numbers.csv --id id", options)
    assert (answer.code, answer.out) == (1, "")
    assert message in answer.err


def test_weights_and_losses_of_your_own(here):
    (here / "w.csv").write_text("y,weight\n0,1\n10,2\n")
    for options in ("--loss squared-error --weight exp:-1", "--loss stakes.losses:SquaredError"):
        assert len(rows_of(run("suggest numbers.csv --target y --id id -n 1 --json", options))) == 1
    (here / "costs.csv").write_text("truth,go,stay\nbus,0,5\nvan,1,0\nNA,2,1\n")
    for options in ("--loss cost-matrix --cost-matrix costs.csv", "--loss log-loss --class-weights bus=50,van=50"):
        assert len(rows_of(run("suggest classes.csv --target kind --id id -n 1 --json", options))) == 1
    assert len(rows_of(run("suggest numbers.csv -n 1 --json --weight w.csv", NUMBERS))) == 1


@pytest.mark.usefixtures("here")
def test_weights_in_training_and_again_in_the_loss_are_pointed_out():
    model = "--model sklearn.ensemble:RandomForestClassifier --model-option class_weight=balanced"
    found = run("suggest classes.csv -n 1 --json --class-weights bus=9", CLASSES, model)
    assert any("class_weight" in sentence for sentence in found.json["notes"])
    assert found.err == ""


def graded(here, bad):
    """30 rows, of which 20 have a grade, some of them bad."""
    rows = [(f"r{i}", f"{i * 37 % 30}", f"{i * 7 % 5}", ("bad" if i < bad else "good") * (i < 20)) for i in range(30)]
    return write(here / "graded.csv", [("id", "x", "z", "grade"), *rows])


MISS = "suggest graded.csv --target grade --id id -n 2 --json --costs"


def test_costs_in_a_line_are_those_of_a_file(here):
    graded(here, 6)
    (here / "costs.csv").write_text(",bad,good\nbad,0,5\ngood,1,0\n")
    by_file = run(MISS.replace("--costs", "--loss cost-matrix --cost-matrix costs.csv"))
    for line in ("miss=5,false-alarm=1", "bad>good=5,good>bad=1", "miss=5", "bad>good=5"):
        answer = run(MISS, [line])
        assert answer.json["rows"] == by_file.json["rows"]
    note = run(MISS, "miss=5").json["notes"][0]
    assert note.startswith("A miss is 'bad' answered by 'good' and costs 5; a false alarm is 'good' answered by 'bad'")
    assert note.endswith("is taken for the class that must not be missed, as it is the rarer one, 6 of 20 labels.")


def test_which_class_is_missed_is_refused_where_nothing_tells(here):
    graded(here, 9)
    answer = run(MISS, "miss=5")
    assert (answer.code, answer.out) == (1, "")
    assert '--costs \\"bad>good=5,good>bad=1\\"' in answer.err
    ordered = run(MISS, "miss=5", "--classes good,bad").json["notes"][0]
    assert "'good' is taken for the class that must not be missed, as it is the first of --classes" in ordered


@pytest.mark.usefixtures("here")
def test_costs_of_a_threshold_decision():
    answers = [
        run("suggest numbers.csv --loss threshold-decision --threshold 2 --target y --id id --json", more)
        for more in ("--costs miss=5,false-alarm=2", "--miss 5 --false-alarm 2")
    ]
    assert answers[0].out == answers[1].out
    assert answers[0].code == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("--costs miss=5", 1, "is for two classes, and column 'kind' has 3 so far"),
        ("--costs bus>vam=5", 1, "Did you mean 'van'?"),
        ("--costs miss=5 --cost-matrix c.csv", 2, "not both"),
        ("--costs miss=5 --loss log-loss", 2, "--costs is for --loss cost-matrix or threshold-decision"),
        ("--costs bus>van=5 --class-weights bus=2", 1, "cost-matrix takes no class weights"),
        ("--loss cost-matrix --cost-matrix c.csv", 1, "c.csv: a cost must be a finite number; got 'x' at line 3"),
        ("--loss cost-matrix --cost-matrix d.csv", 1, "The classes are the rows of d.csv."),
    ],
)
def test_costs_that_are_refused(here, options, code, message):
    (here / "c.csv").write_text(",a,b\nbus,0,1\nvan,x,0\nNA,1,1\n")
    (here / "d.csv").write_text(",a,b\nbus,0,1\nvan,1,0\n")
    answer = run("suggest classes.csv --target kind --id id", options)
    assert (answer.code, answer.out) == (code, "")
    assert message in " ".join(answer.err.split())


@pytest.mark.parametrize("name", ["prices", "tumours", "progression"])
@pytest.mark.usefixtures("here")
def test_five_rows_fit_a_screen(name):
    """24 lines of 80 letters, one of them the prompt that follows; a command may be longer than a line."""
    run(f"sample {name}")
    flags = {
        "prices": "--id flat --target price --loss pinball --tau 0.2 --label-cost 0.5 --decisions 40",
        "tumours": "--id patient --target diagnosis --costs malignant>benign=30 --label-cost 1 --decisions 500",
        "progression": "--id patient --target progression --loss threshold-decision --threshold 150 --miss 3",
    }[name]
    answer = run(f"suggest {name}.csv", flags)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert sum(-(-len(line) // 80) or 1 for line in lines) <= 23, answer.out
    assert all(len(line) <= 80 for line in lines if not line.startswith("  stakes init"))
    rows = answer.out.partition("what sets it apart")[2].splitlines()[1:6]
    assert sum("(" in row for row in rows) >= 3  # what sets it apart
    assert all("(" in row or row.endswith("like the others") for row in rows)
    assert lines[-1].startswith(f"  stakes init {name}.stakes {name}.csv ")
    more = run(f"suggest {name}.csv --verbose", flags).out
    assert len(more) > 2 * len(answer.out)
    assert "Assumed:" in more


@pytest.mark.usefixtures("here")
def test_the_next_command_runs():
    answer = run("suggest numbers.csv -n 2 --missing ? --ignore z", NUMBERS)
    command = answer.out.splitlines()[-1].split()
    assert command[:4] == ["stakes", "init", "numbers.stakes", "numbers.csv"]
    begun = run([word.strip("'") for word in command[1:]])
    assert begun.code == 0, begun.err
    assert begun.out.endswith("Next: stakes ask numbers.stakes -n 5\n")


def test_what_sets_a_row_apart_is_in_every_answer(here):
    rows = number_rows()
    write(here / "far.csv", [*rows[:-1], ("r11", "500", rows[-1][2], "")])
    found = run("suggest far.csv -n 1 -o out.csv", NUMBERS)
    assert " r11  " in found.out
    assert "x 500 (0.5 to 2.0)" in found.out
    with (here / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        assert next(csv.DictReader(file))["what sets it apart"].startswith("x 500 (0.5 to 2.0)")
    apart = run("suggest far.csv -n 1 --json", NUMBERS).json["rows"][0]["apart"]
    assert apart[0] == {"column": "x", "value": "500", "usual": "0.5 to 2.0"}
