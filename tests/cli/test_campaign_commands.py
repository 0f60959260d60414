"""init, ask, tell, import, skip, release, withdraw, status, export, doctor on a campaign file."""

import csv
import os
import re
import shutil
import subprocess
import time

import pytest

from stakes._utils.text import number
from tests.cli.cli_cases import CLASSES, NUMBERS, class_rows, digest, number_rows, run, write


def asked(*options):
    return [row["row_id"] for row in run("ask c.stakes --json", *options).json["rows"]]


@pytest.mark.usefixtures("campaign")
def test_the_whole_life_of_a_campaign():
    first = asked("-n 2")
    assert len(set(first)) == 2
    assert run("tell c.stakes", first[0], "1.5").out.splitlines()[0] == "1 recorded"
    second = asked("-n 2")
    assert not set(first) & set(second)
    assert run("skip c.stakes", second[0]).code == run("release c.stakes", first[1]).code == 0
    status = run("status c.stakes --json").json
    assert [status[name] for name in ("rows", "labelled", "asked", "skipped", "open")] == [12, 7, 1, 1, 3]
    assert status["outlook"]["today"]["value"] > 0
    assert run("withdraw c.stakes", first[0]).code == 0
    assert run("status c.stakes --no-refresh --json").json["open"] == 4
    assert "sound" in run("doctor c.stakes").out


def test_a_label_recorded_twice_changes_nothing_however_it_is_written(campaign):
    run("tell c.stakes r8 3.5")
    before = digest(campaign)
    for label in ("3.5", "3.50", "35e-1"):
        assert run("tell c.stakes r8", label).out.splitlines()[0] == "1 known already"
    assert digest(campaign) == before


def test_another_label_is_refused_unless_it_replaces(campaign):
    run("tell c.stakes r8 3.5")
    before, answer = digest(campaign), run("tell c.stakes r8 4")
    assert answer.code == 1
    assert "has the label '3.5' and '4' was reported" in answer.err
    assert digest(campaign) == before
    assert run("tell c.stakes r8 4 --replace").out.splitlines()[0] == "1 replaced"


@pytest.mark.usefixtures("campaign")
def test_a_withdrawn_label_goes_back_to_the_pool_with_its_history():
    run("tell c.stakes r8 3.5")
    run("withdraw c.stakes r8")
    run("export c.stakes -o e.csv --events")
    with open("e.csv", encoding="utf-8-sig", newline="") as file:
        events = [(row["kind"], row["label"]) for row in csv.DictReader(file) if row["row"] == "r8"]
    assert events == [("label", "3.5"), ("withdraw", "")]
    assert "r8" in asked("-n 6")


REFUSED = [
    ("tell c.stakes r99 1", "no row 'r99'"),
    ("tell c.stakes R8 1", "Did you mean 'r8'?"),
    ("tell c.stakes r8 abc", "'abc' is no number"),
    ("tell c.stakes r8 nan", "'nan' is no number"),
    ("tell c.stakes r8 1,5,2", "is no number"),
    ("tell c.stakes r8 1,234", "'1,234' may be 1234 or 1.234: write 1234 or 1.234"),
    ("withdraw c.stakes r0 r8", "row 'r8' is open"),
    ("release c.stakes r8", "row 'r8' is open"),
    ("skip c.stakes r7 r0", "row 'r0' has the label"),
    ("import c.stakes classes.csv", "has no column 'y'"),
    ("import c.stakes nothing.csv", "there is no file"),
    ("ask c.stakes --table classes.csv", "there is no column 'y'"),
    ("init c.stakes numbers.csv --target y --loss squared-error", "is there already"),
    ("export c.stakes -o nowhere/e.csv", "there is no folder"),
]


@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_what_is_refused_changes_nothing(campaign, command, message):
    before, answer = digest(campaign), run(command)
    assert (answer.code, answer.out) == (1, "")
    assert message in answer.err
    assert digest(campaign) == before


BEGUN_WRONG = [
    (
        "numbers.csv --target y --loss squared-error --model sklearn.cluster:KMeans",
        "neither a classifier nor a regressor",
    ),
    ("numbers.csv --target y --loss squared-error --model sklearn.ensemble:RandomForestClassifier", "of classes"),
    ("numbers.csv --target y --loss poisson-deviance --id id --model log-gaussian-process", "labels are 0"),
    ("classes.csv --target kind --loss log-loss --class-weights bus=0,van=0,NA=0", "must not all be 0"),
    ("classes.csv --target kind --loss log-loss --class-weights bus=-1", "at least 0"),
    ("classes.csv --target kind --loss log-loss --class-weights buss=1", "Did you mean 'bus'?"),
    ("classes.csv --target kind --loss log-loss --classes bus,van", "'NA' is no class"),
    ("classes.csv --target kind --loss log-loss --classes bus,van,NA,", "by some letters"),
]


@pytest.mark.parametrize(("options", "message"), BEGUN_WRONG)
def test_a_campaign_that_could_never_ask_is_not_begun(here, options, message):
    answer = run("init w.stakes", options)
    assert answer.code == 1
    assert message in answer.err
    assert not (here / "w.stakes").exists()


@pytest.mark.usefixtures("here")
def test_classes_by_name_with_what_was_perhaps_meant():
    run("init c.stakes classes.csv", CLASSES)
    before, answer = digest("c.stakes"), run("tell c.stakes r8 Bus")
    assert "Did you mean 'bus'? Report a class that is new as such (--new-class)." in answer.err
    assert "must not be empty" in run(["tell", "c.stakes", "r8", " ", "--new-class"]).err
    assert digest("c.stakes") == before
    assert run("tell c.stakes r8 NA").code == run(["tell", "c.stakes", "r9", "night bus", "--new-class"]).code == 0


IDS = ["-5", "007", "7", "a b", "O'Neil", 'say "hi"', "=1+1", "x,y", str(2**53 + 1), "'q", "Größe", "@home"]


def odd_table(path):
    with path.open("w", newline="") as file:
        rows = [(name, *row[1:]) for name, row in zip(IDS, class_rows()[1:], strict=True)]
        csv.writer(file).writerows([class_rows()[0], *rows])


def test_odd_ids_are_labelled_skipped_released_and_withdrawn(here):
    odd_table(here / "odd.csv")
    run("init c.stakes odd.csv", CLASSES)
    for name in IDS[6:]:
        assert run(["tell", "c.stakes", name, "bus"]).out.splitlines()[0] == "1 recorded"
        assert run(["withdraw", "c.stakes", name]).code == 0
        assert run(["skip", "c.stakes", name]).code == run(["release", "c.stakes", name]).code == 0
    assert run("withdraw c.stakes -5").out == "1 withdrawn: -5\n"


def test_an_export_runs_nothing_in_a_spreadsheet_and_comes_back(here):
    odd_table(here / "odd.csv")
    run("init c.stakes odd.csv", CLASSES)
    run("export c.stakes -o e.csv")
    with (here / "e.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    assert not [row[0] for row in rows if row[0].startswith(("=", "@"))]
    with (here / "e.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head, *([*row[:3], "bus", *row[4:]] for row in rows[6:])])
    assert set(run("import c.stakes e.csv --json").json["new"]) == set(IDS[6:])


@pytest.mark.parametrize("options", [CLASSES, "--target kind --loss log-loss --ignore id"])
def test_the_table_itself_filled_in_is_imported(here, options):
    odd_table(here / "odd.csv")
    run("init c.stakes odd.csv", options)
    (here / "filled.csv").write_bytes((here / "odd.csv").read_bytes().replace(b",\r\n", b",van\r\n"))
    answer = run("import c.stakes filled.csv --json").json
    assert len(answer["new"]) == len(answer["known"]) == 6


def test_a_filled_in_file_is_taken_whole_or_not_at_all(campaign, here):
    for rows, message in [
        (["r7,1", "r99,2"], "no row 'r99'"),
        (["r7,1", "r0,2"], "row 'r0' has the label"),
        (["r7,1", "r7,2"], "stands at line 2 and at line 3"),
        (["r7,1", "r8,x"], "'x' is no number"),
        (["r7,1", ",2"], "is empty"),
    ]:
        (here / "f.csv").write_text("\n".join(["id,y", *rows]) + "\n")
        before, answer = digest(campaign), run("import c.stakes f.csv")
        assert answer.code == 1
        assert message in answer.err
        assert digest(campaign) == before
    (here / "f.csv").write_text("id,note,y\nr7,hot,1\nr8,,\n")
    assert run("import c.stakes f.csv").out.splitlines()[0] == "1 recorded"


def test_a_changed_table_is_refused_with_what_changed(campaign, here):
    table = here / "numbers.csv"
    before, old = digest(campaign), table.read_text()
    for new, message in [
        (old + "new,1,2,\n", "1 row was added"),
        (old.replace("x,z", "x,q"), "columns missing: z"),
        (old.replace("r4,2.0", "r4,2.1"), "column 'x' changed"),
        (old.replace("r8,4.0,1,", "r8,4.0,1,9"), "recorded by import"),
    ]:
        table.write_text(new)
        for command in ("ask c.stakes", "export c.stakes -o e.csv", "doctor c.stakes"):
            assert message in run(command).err
    assert digest(campaign) == before


@pytest.mark.usefixtures("campaign")
def test_a_campaign_and_its_table_are_moved(here):
    (here / "sub").mkdir()
    for name in ("c.stakes", "numbers.csv"):
        shutil.move(here / name, here / "sub" / name)
    assert run("ask sub/c.stakes").code == 0
    shutil.move(here / "sub" / "numbers.csv", here / "elsewhere.csv")
    assert "(--table)" in run("ask sub/c.stakes").err
    assert "sound" in run("doctor sub/c.stakes --table elsewhere.csv").out
    assert run("ask sub/c.stakes").code == 0


@pytest.mark.usefixtures("campaign")
def test_two_campaigns_on_one_table_mind_their_own():
    run("init d.stakes numbers.csv", NUMBERS)
    run("tell c.stakes r8 1")
    assert run("status d.stakes --no-refresh --json").json["labelled"] == 6


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to what is read-only")
def test_a_read_only_campaign_is_refused(campaign):
    campaign.chmod(0o444)
    assert "cannot be written to" in run("tell c.stakes r8 1").err


@pytest.mark.usefixtures("campaign")
def test_asking_ends_with_the_rows():
    assert len(asked("-n 20")) == 6
    answer = run("ask c.stakes")
    assert (answer.code, answer.out) == (0, "Nothing to hand out: no row is open; 6 are asked for.\n")
    run(["release", "c.stakes", *(f"r{i}" for i in range(6, 12))])
    run(["skip", "c.stakes", *(f"r{i}" for i in range(6, 12))])
    assert run("status c.stakes --json").json["advice"] == "Done: no row is open."


def test_asking_ends_with_the_budget(here):
    write(here / "priced.csv", [(*row, "price" if not at else "2") for at, row in enumerate(number_rows())])
    run("init c.stakes priced.csv --cost price --budget 5 --decisions 100", NUMBERS)
    answer = run("ask c.stakes -n 4")
    assert "Only 2 of 4 rows: what is left of the budget covers no other row." in answer.out
    for row in run("status c.stakes --json").json, run("status c.stakes --no-refresh --json").json:
        assert (row["pending"], row["budget_left"]) == (4.0, 1.0)
    assert asked("-n 1") == []


def test_a_cold_start_keeps_within_the_budget(here):
    write(here / "none.csv", number_rows(labelled=0))
    run("init c.stakes none.csv --budget 3", NUMBERS)
    assert len(asked("-n 5")) == 3
    assert "the budget is spent, or promised" in run("ask c.stakes").out


@pytest.mark.usefixtures("here")
def test_status_says_what_it_lacks_or_whether_to_go_on():
    run("init a.stakes numbers.csv --decisions 10", NUMBERS)
    assert "what a label costs (--cost or --label-cost)" in run("status a.stakes --json").json["advice"]
    run("init b.stakes numbers.csv --decisions 1e6 --label-cost 0.001", NUMBERS)
    answer = run("status b.stakes")
    assert "Go on: the next" in answer.out
    assert "(± " in answer.out
    run("init d.stakes numbers.csv --decisions 1 --label-cost 1e6", NUMBERS)
    assert run("status d.stakes --json").json["advice"].startswith("Stop")


EVIL = "r\x1b]0;owned\x07\x1b[31m\u202ered\x9b5n"


def evil_campaign(here):
    rows = [("id", "x", "y"), *((f"r{i}", f"{i}", f"{i}") for i in range(4)), (EVIL, "9", "")]
    write(here / "evil.csv", rows)
    return run("init e.stakes evil.csv", NUMBERS)


@pytest.mark.parametrize("form", ["", "--json"])
def test_no_command_prints_what_a_terminal_obeys(here, form):
    lines = [
        evil_campaign(here),
        run("ask e.stakes", form),
        run(["release", "e.stakes", EVIL], form),
        run(["skip", "e.stakes", EVIL], form),
        run(["release", "e.stakes", EVIL], form),
        run(["tell", "e.stakes", EVIL, "\x1b[31m1"], form),
        run(["tell", "e.stakes", f"{EVIL}?", "1"], form),
        run(["tell", "e.stakes", EVIL, "1"], form),
        run(["withdraw", "e.stakes", EVIL], form),
        run("status e.stakes", form),
        run("suggest evil.csv", NUMBERS, form),
        run(["export", "e.stakes", "-o", f"{EVIL}.csv"], form),
        run(["losses", EVIL], form),
        run(["ask", f"{EVIL}.stakes"], form),
        run(["ask", "e.stakes", f"--{EVIL}"], form),
    ]
    for answer in lines:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]", answer.out + answer.err), answer
    assert sum(bool(re.search("u001b|x1b", answer.out + answer.err)) for answer in lines) >= 10


def test_an_id_that_a_terminal_would_obey_can_be_pasted_back(here):
    evil_campaign(here)
    word = run("ask e.stakes").out.split("stakes tell e.stakes ")[1].removesuffix(" LABEL\n")
    shell = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True)
    assert shell.stdout == EVIL


@pytest.mark.usefixtures("campaign")
def test_a_lease_shorter_than_a_fit_ends():
    run(["skip", "c.stakes", "r6", "r7", "r8", "r9"])
    answer = run("ask c.stakes -n 5 --days 1e-9 --json")
    assert sorted(row["row_id"] for row in answer.json["rows"]) == ["r10", "r11"]
    for days in ("1e300", "nan", "1e-30", "1e7"):
        refused = run("ask c.stakes --days", days)
        assert refused.code == 1, days
        assert "lease" in refused.err


@pytest.mark.usefixtures("campaign")
def test_a_lease_until_the_last_day_of_the_calendar_is_shown(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours ahead: in the year 10000 already
    time.tzset()
    try:
        days = (253402300799.0 - 600.0 - time.time()) / 86400.0  # less what a fit may take
        assert "9999-12-31" in run("ask c.stakes --days", f"{days:.9f}").out
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.usefixtures("campaign")
def test_rows_are_handed_out_with_what_sets_them_apart_and_the_next_command(here):
    answer = run("ask c.stakes -n 2 -o rows.csv")
    assert "what sets it apart" in answer.out
    assert "the middle half of the labelled rows" in answer.out
    assert answer.out.endswith("Next: fill in rows.csv, then stakes import c.stakes rows.csv\n")
    with (here / "rows.csv").open(encoding="utf-8-sig", newline="") as file:
        written = list(csv.DictReader(file))
    assert all(re.search(r"\(.+\)|like the others", row["what sets it apart"]) for row in written)
    more = run("ask c.stakes --verbose").out
    assert "Assumed:" in more
    assert "Next: stakes tell c.stakes r" in more
    run("release c.stakes", " ".join(row["id"] for row in written))
    apart = run("ask c.stakes --json").json["rows"][0]["apart"]
    assert all(set(each) == {"column", "value", "usual"} for each in apart)


def test_a_campaign_that_is_not_there_names_the_command_that_begins_one(campaign, here):
    for command in ("ask d.stakes", "status d.stakes", "tell d.stakes r1 2", "report d.stakes"):
        answer = run(command)
        assert answer.code == 1
        assert "there is no campaign at d.stakes; check the path, or begin one: stakes init d.stakes" in answer.err
        assert "Did you mean 'c.stakes'?" in answer.err
    assert sorted(each.name for each in here.glob("*.stakes")) == [campaign.name]


@pytest.mark.usefixtures("campaign")
def test_answers_end_with_the_next_command():
    def last(command):
        return run(command).out.splitlines()[-1]

    assert last("status c.stakes --no-refresh") == "Next: stakes ask c.stakes -n 5"
    assert last("export c.stakes -o e.csv") == "Next: fill in labels there, then stakes import c.stakes e.csv"
    assert last("export c.stakes -o events.csv --events").startswith("Wrote ")
    rows = asked("-n 6")
    assert last("status c.stakes --no-refresh") == "Next: stakes import c.stakes FILE"
    for row in rows[1:]:
        assert last(f"tell c.stakes {row} 2.5") == "Next: stakes status c.stakes, or stakes ask c.stakes for more rows"
    run(f"tell c.stakes {rows[0]} 2")
    assert last("status c.stakes --no-refresh") == "Next: stakes report c.stakes"


@pytest.mark.usefixtures("here")
def test_rows_of_an_ensemble_show_what_they_are_worth_together_with_costs_too():
    """Not divided by what the labels cost, as `suggest` and `status` have it."""
    run("init c.stakes classes.csv --decisions 50 --label-cost 4", CLASSES)
    asked = run("ask c.stakes -n 2 --json").json
    offers = run("status c.stakes --no-refresh --json").json["outlook"]["offers"]
    assert asked["ranked_by"] == "together"
    assert asked["rows"][1]["score"] == pytest.approx(offers[1]["worth"] / 8)
    run("release c.stakes", [each["row_id"] for each in asked["rows"]])
    shown = run("ask c.stakes -n 2").out
    assert "Worth together with the rows above, a decision.\n" in shown
    for each, offer in zip(asked["rows"], offers, strict=False):
        assert re.search(rf"^ \d {each['row_id']} +{re.escape(number(offer['worth']))} ", shown, re.M)
