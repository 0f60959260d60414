"""PyMC's draws as beliefs; make integrations installs what this test needs."""

import pytest

pytest.importorskip("pymc", reason="pymc is not installed: make integrations tries it")

from tests.integrations.pages import run_page


@pytest.mark.filterwarnings("default")
def test_the_page(tmp_path):
    run_page("pymc", tmp_path)
