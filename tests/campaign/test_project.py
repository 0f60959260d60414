"""What a campaign is about: settings that are read once, a table that is watched."""

import pytest

from stakes import Campaign
from stakes.exceptions import StakesError


def test_settings_are_read_once_until_they_are_forgotten(campaign, path):
    project = campaign._project
    before = project.brief
    with Campaign.open(path) as other:
        other.change_settings(budget=7.0)
    assert project.brief is before
    project.forget_settings()
    assert (before.budget, project.brief.budget) == (None, 7.0)


def test_a_table_that_was_changed_is_refused_with_what_changed(campaign, path, table):
    table.write_text(table.read_text().replace("r3,1.5,", "r3,9.5,"))
    with Campaign.open(path) as other, pytest.raises(StakesError, match="column 'x' changed"):
        other._project.sheet  # noqa: B018
    assert campaign._project.n_initial == 6


def test_labels_are_of_the_kind_that_the_loss_judges(campaign):
    project = campaign._project
    assert (project.numbers, project.domain) == (True, None)
    with pytest.raises(StakesError, match=r"row 'r7': .*Nothing was recorded"):
        project.refuse_bad_labels([("r6", "1.5"), ("r7", "cat")], new_class=False)
