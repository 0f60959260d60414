"""A campaign that names a class imports nothing until it is trusted, and cannot carry the trust with it."""

import shutil
import sys

import pytest

from stakes import Campaign
from stakes.campaign.trust import trust_folder
from stakes.exceptions import StakesError
from stakes.tabular import LossSpec, ModelSpec

MODULE = """
from pathlib import Path
from sklearn.linear_model import BayesianRidge
from stakes.losses import SquaredError
Path(__file__).with_name("imported").touch()
class Mine(BayesianRidge):
    pass
class Loss(SquaredError):
    pass
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that leaves a mark when it is imported."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "evil_module.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "code")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    yield "evil_module"
    sys.modules.pop("evil_module", None)


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "code" / "imported"


@pytest.fixture
def table(folder):
    path = folder / "t.csv"
    rows = [f"r{i},{i * 0.5},{(i * 7) % 5},{i / 2 + i % 3 if i < 6 else ''}" for i in range(12)]
    path.write_text("\n".join(["id,x,z,y", *rows]) + "\n")
    return path


def sent(path, table, loss="squared-error", model="bayesian-ridge"):
    """A campaign that somebody else made, as it arrives."""
    with Campaign.create(path, table, "y", LossSpec(loss), id_column="id", model=ModelSpec(model)) as campaign:
        campaign.ask(1)
    shutil.rmtree(trust_folder())
    sys.modules.pop("evil_module", None)
    return path


USES = {
    "ask": lambda c, folder: c.ask(1),
    "status": lambda c, folder: (c.tell("r8", 3.0), c.status()),
    "tell": lambda c, folder: c.tell("r7", 3.0),
    "export": lambda c, folder: c.export(folder / "e.csv"),
}


@pytest.mark.parametrize("name", USES)
def test_a_loss_is_not_imported_until_the_campaign_is_trusted(path, table, folder, module, mark, name):
    sent(path, table, loss=f"{module}:Loss")
    mark.unlink()
    with Campaign.open(path) as campaign:
        with pytest.raises(StakesError, match=rf"names {module}:Loss: importing runs its code.*--trust") as caught:
            USES[name](campaign, folder)
        assert str(trust_folder()) in str(caught.value)
        campaign.skip(["r9"])
        campaign.check()
        assert campaign.status(refresh=False).skipped == 1
    assert not mark.exists()
    with Campaign.open(path, trust=True) as campaign:
        USES[name](campaign, folder)
    assert mark.exists()


def test_a_model_is_not_imported_until_the_campaign_is_trusted(path, table, folder, module, mark):
    from stakes.report import write_report

    sent(path, table, model=f"{module}:Mine")
    mark.unlink()
    with Campaign.open(path) as campaign:
        campaign.tell("r7", 3.0)  # needs no model
        campaign.export(folder / "e.csv")
        for use in (campaign.ask, campaign.status, lambda: write_report(campaign, folder / "r.html")):
            with pytest.raises(StakesError, match=f"names {module}:Mine"):
                use()
    assert not mark.exists()
    assert not (folder / "r.html").exists()


def test_trust_is_remembered_for_the_file_and_what_it_names(path, table, folder, module):
    sent(path, table, model=f"{module}:Mine")
    Campaign.open(path, trust=True).close()
    with Campaign.open(path) as campaign:
        assert len(campaign.ask(1)) == 1
    (answer,) = trust_folder().iterdir()
    assert f"{module}:Mine" in answer.read_text()
    copied = folder / "copy.stakes"
    shutil.copy(path, copied)
    with Campaign.open(copied) as campaign, pytest.raises(StakesError, match="--trust"):
        campaign.ask(1)
    with Campaign.open(path) as campaign:
        other = {**campaign.journal.settings["brief"], "model": {"name": f"{module}:Other", "parameters": {}}}
        campaign.journal.update_settings(brief=other)
    with Campaign.open(path) as campaign, pytest.raises(StakesError, match=f"names {module}:Other"):
        campaign.ask(1)


def test_a_campaign_made_here_is_trusted(path, table, module):
    Campaign.create(path, table, "y", "squared-error", id_column="id", model=ModelSpec(f"{module}:Mine")).close()
    with Campaign.open(path) as campaign:
        assert len(campaign.ask(1)) == 1
    assert oct(trust_folder().stat().st_mode & 0o777) == "0o700"


def test_a_campaign_of_names_of_ours_asks_nothing(path, table, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    Campaign.create(path, table, "y", "squared-error", id_column="id").close()
    with Campaign.open(path, trust=True) as campaign:
        assert len(campaign.ask(1)) == 1
    assert not trust_folder().exists()


def test_settings_that_cannot_be_kept_are_no_reason_to_fail(path, table, module, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    Campaign.create(path, table, "y", "squared-error", id_column="id", model=ModelSpec(f"{module}:Mine")).close()
    with Campaign.open(path) as campaign, pytest.raises(StakesError, match="--trust"):
        campaign.ask(1)
    with Campaign.open(path, trust=True) as campaign:
        assert len(campaign.ask(1)) == 1
