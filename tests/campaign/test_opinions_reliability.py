"""How reliable the annotators of a campaign are, and whom it asks for a second opinion."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from stakes import Campaign
from stakes.campaign.opinions import describe_reliability
from stakes.campaign.states import Opinion
from stakes.cli.commands import cli
from stakes.exceptions import StakesError


@pytest.fixture
def path(tmp_path):
    """40 rows of two kinds, six of them labelled in the table; two annotators, of whom one errs."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(["cat", "dog"], 20)
    frame = pd.DataFrame({"id": [f"r{i}" for i in range(40)], "x": rng.normal(size=40) + 3.0 * (kinds == "dog")})
    frame["kind"] = [kinds[i] if i in (0, 1, 2, 37, 38, 39) else None for i in range(40)]
    frame.to_csv(tmp_path / "pets.csv", index=False)
    place = tmp_path / "pets.stakes"
    with Campaign.create(place, tmp_path / "pets.csv", "kind", "zero-one", id_column="id") as campaign:
        for i in range(5, 25):
            campaign.tell(f"r{i}", kinds[i], annotator="anna")
        for i in range(5, 15):
            campaign.tell(f"r{i}", "dog" if i % 3 else kinds[i], annotator="ben")
    return place


def test_sentences_on_annotators(path):
    with Campaign.open(path) as campaign:
        anna, ben, agreed = campaign.reliability()
        assert anna.startswith("anna: 20 labels, ")
        assert ben.startswith("ben: 10 labels, ")
        assert agreed.startswith("Krippendorff's alpha ")
        assert agreed.endswith(", 10 rows.")
        assert campaign.status(refresh=False).annotators == (anna, ben, agreed)


def test_a_settled_row_tells_who_erred():
    opinions = [
        Opinion(f"r{i}", name, "a" if name == "ann" else "b", 0.0) for i in range(10) for name in ("ann", "bob")
    ]
    settled = {f"r{i}": "a" for i in range(10)}
    ann, bob = describe_reliability(opinions, settled, ("a", "b"), numbers=False)[:2]
    assert float(ann.split()[3].strip("%")) > 90
    assert float(bob.split()[3].strip("%")) < 50


def test_numbers_and_nothing_to_tell():
    rng = np.random.default_rng(0)
    opinions = [Opinion(f"r{i}", who, str(i + rng.normal()), 0.0) for i in range(20) for who in ("ann", "bob")]
    found = describe_reliability(opinions, {}, (), numbers=True)
    assert "noise sd" in found[0]
    assert len(found) == 3
    assert describe_reliability(opinions[::2], {}, (), numbers=True) == ()
    assert describe_reliability([Opinion("r0", "ann", "a", 0.0)], {}, ("a", "b"), numbers=False) == ()
    assert describe_reliability([], {}, (), numbers=False) == ()


def test_an_annotator_is_asked_about_rows_of_others_and_new_ones(path):
    with Campaign.open(path) as campaign:
        first = campaign.ask_annotator("ben", 4)
        assert len({each.row for each in first}) == 4
        second = campaign.ask_annotator("carl", 4)
        taken = {each.row for each in first if each.before == 0}
        assert not taken & {each.row for each in second}  # handed out once, where there is no label yet
        labelled = {each.row for each in campaign.opinions() if each.annotator == "ben"}
        assert not {campaign.sheet.ids[each.row] for each in first} & labelled
        known = {"r0", "r1", "r2", "r37", "r38", "r39"}
        assert not {campaign.sheet.ids[each.row] for each in (*first, *second)} & known
        for each in first:
            campaign.tell(campaign.sheet.ids[each.row], "dog", annotator="ben")
        assert campaign.reliability()[1].startswith("ben: 14 labels")
        with pytest.raises(StakesError, match="number of rows"):
            campaign.ask_annotator("ben", 0)


def test_the_command(path):
    done = CliRunner().invoke(cli, ["ask", str(path), "--annotator", "ben", "-n", "2"])
    assert done.exit_code == 0, done.output
    assert "Rows for ben to label:" in done.output
    assert "--annotator ben" in done.output
    found = json.loads(CliRunner().invoke(cli, ["ask", str(path), "--annotator", "carl", "--json"]).output)
    assert found["annotator"] == "carl"
    assert len(found["rows"]) == 1
    shown = CliRunner().invoke(cli, ["status", str(path), "--no-refresh"]).output
    assert "Krippendorff's alpha" in shown
    refused = CliRunner().invoke(cli, ["ask", str(path), "--annotator", "ben", "-o", "rows.csv"])
    assert refused.exit_code != 0
