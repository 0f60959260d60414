"""What print and a notebook show of a campaign is what its status says."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from stakes import Campaign, SquaredError
from stakes.campaign.shown import campaign_html, campaign_text, status_lines
from stakes.tabular import ModelSpec

X = np.linspace(0.0, 6.0, 20)


@pytest.fixture
def campaign():
    labels = [np.sin(x) if at % 5 == 0 else None for at, x in enumerate(X)]
    table = pd.DataFrame({"x": X, "<y>": labels})
    settings = {"model": ModelSpec("bayesian-ridge"), "label_cost": 0.01, "decisions": 100, "budget": 1.0}
    with Campaign.create(None, table, "<y>", SquaredError(), **settings) as made:
        yield made


def label(campaign, n):
    campaign.tell_many([(row, float(np.sin(X[int(row) - 1]))) for row in campaign.ask(n).row_ids])


def test_before_anything_is_ranked(campaign):
    shown = campaign_html(campaign)
    assert "Ask for rows: nothing is known yet" in shown
    assert "Ask for rows: nothing is known yet" in str(campaign)
    assert "<svg" not in shown
    ElementTree.fromstring(shown)


def test_a_notebook_shows_what_print_says_and_pictures(campaign):
    label(campaign, 2)
    label(campaign, 2)
    shown, text = campaign._repr_html_(), str(campaign)
    status = campaign.status(refresh=False)
    assert text.splitlines()[1:] == status_lines(status)
    assert "8 labelled" in shown
    assert shown.count("<svg") == 1
    assert "&lt;y&gt;" in shown
    assert "<y>" not in shown
    for part in (status.advice, "Spent 0.04 of 1; 0.96 left, 0 promised", text.splitlines()[3]):
        assert part in shown
        assert part in text
    ElementTree.fromstring(shown)


def test_a_campaign_that_is_closed_says_so(campaign):
    campaign.close()
    for shown in (campaign_html(campaign), campaign_text(campaign), repr(campaign)):
        assert "campaign.stakes" in shown
    assert "is closed" in campaign_html(campaign)
    assert "is closed" in campaign_text(campaign)


def test_the_batch_that_the_advice_names_is_listed_and_plus_minus_is_explained(campaign):
    label(campaign, 2)
    status = campaign.status()
    offers = [{**each, "net": -1.0} for each in status.outlook["offers"]]
    assert [each["size"] for each in offers] == list(range(1, len(offers) + 1))
    for best, listed in ((6, [1, 2, 4, 6, 8]), (4, [1, 2, 4, 8]), (None, [1, 2, 4, 8])):
        nets = [{**each, "net": None if best is None else float(each["size"] == best)} for each in offers]
        lines = status_lines(replace(status, outlook={**status.outlook, "offers": nets}))
        sizes = [re.match(r"The next (\d+)? ?labels? saves? ", line) for line in lines]
        assert [int(each[1] or 1) for each in sizes if each] == listed
    assert sum("± is two standard errors" in line for line in status_lines(status)) == 1
