"""The page on BART; its adapter is tested in tests/models/test_bart.py."""

import pytest

pytest.importorskip("stochtree", reason="stochtree is not installed")

from tests.integrations.pages import run_page


def test_the_page(tmp_path):
    run_page("bart", tmp_path)
