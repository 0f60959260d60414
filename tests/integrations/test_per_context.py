"""The page on losses that depend on the row; the loss is tested in tests/losses/test_per_context.py."""

from tests.integrations.pages import run_page


def test_the_page(tmp_path):
    run_page("per_context", tmp_path)
