"""What make integrations tries: one list in the Makefile, pyproject.toml and the workflow, a page for each."""

import re
import tomllib

import pytest

from tests.integrations.pages import BLOCK, PAGES, ROOT


def _listed() -> list[str]:
    return re.search(r"^INTEGRATIONS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()


def _tests(name: str) -> list[str]:
    named = re.search(rf"^TESTS_{name} := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return named[1].split() if named else [f"tests/integrations/test_{name}.py"]


def test_the_list_is_the_same_everywhere():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert sorted(name.removeprefix("integration-") for name in groups if name.startswith("integration-")) == sorted(
        _listed()
    )
    assert re.search(r"integration: \[(.*)\]", workflow)[1].split(", ") == _listed()


@pytest.mark.parametrize("name", _listed())
def test_each_has_tests(name):
    assert all((ROOT / path).is_file() for path in _tests(name))


def test_every_page_is_run_by_a_test_and_is_in_the_table():
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "integrations").glob("test_*.py"))
    table = (PAGES / "README.md").read_text()
    for page in sorted(PAGES.glob("*.md")):
        if page.name != "README.md":
            assert f'run_page("{page.stem}"' in tests, f"no test runs {page.name}"
            assert f"({page.name})" in table, f"{page.name} has no row in docs/integrations/README.md"
            assert any(kind == "python" for kind, _ in BLOCK.findall(page.read_text())), f"{page.name} has no example"
