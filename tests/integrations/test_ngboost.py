"""NGBoost, which gives no joint belief; make integrations installs what this test needs."""

import pytest

pytest.importorskip("ngboost", reason="ngboost is not installed: make integrations tries it")

from tests.integrations.pages import run_page


@pytest.mark.filterwarnings("default")
def test_the_page(tmp_path):
    run_page("ngboost", tmp_path)
