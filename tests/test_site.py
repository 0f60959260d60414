"""The site can be built: every page is in a toctree, every public name in the reference; `make docs` does the rest."""

import ast
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from tools.licences import beside, licence, requirements, short_name

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = ("api", "auto_gallery")  # when the site is built
PAGES = [
    path.relative_to(DOCS).with_suffix("").as_posix()
    for kind in ("md", "ipynb")
    for path in sorted(DOCS.rglob(f"*.{kind}"))
    if path.relative_to(DOCS).parts[0] not in MADE
]
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.S | re.M)


@pytest.fixture
def _extensions(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def entries(page):
    """What the toctrees of a page name, patterns filled in."""
    for block in TOCTREE.findall((DOCS / f"{page}.md").read_text()):
        for line in (each for each in block.splitlines() if each and not each.startswith(":")):
            if "*" in line:
                yield from (each for each in PAGES if re.fullmatch(line.replace("*", "[^/]*"), each))
            else:
                yield re.sub(r".*<(.*)>", r"\1", line)  # a title of its own


def test_every_page_is_reached_from_the_first():
    reached, waiting = set(), ["index"]
    while waiting:
        page = waiting.pop()
        assert page not in reached, f"{page} is in two toctrees"
        reached.add(page)
        assert page.startswith(MADE) or page in PAGES, f"no page {page}"
        if not page.startswith(MADE) and (DOCS / f"{page}.md").is_file():
            waiting.extend(entries(page))
    assert sorted(set(PAGES) - reached) == []


@pytest.mark.usefixtures("_extensions")
def test_every_public_name_is_in_the_reference():
    pytest.importorskip("torch", reason="torch is not installed, and the reference has its networks")
    import api_pages

    from tests.test_public import NAMES

    pages = api_pages.pages()
    public = {module: names.split() for module, names in NAMES.items() if module.startswith("stakes")}
    for module in set(public) - set(api_pages.modules()):  # adapters to libraries that are not installed
        assert module.startswith("stakes.integrations.")
        with pytest.raises(ImportError, match="pip install"):
            importlib.import_module(module)
        del public[module]
    for module, names in public.items():
        table = pages[f"{module}-module.md"]
        for name in names:
            page = f"{api_pages.anchor(module, name)}.md"
            assert f"[`{name}`]({page})" in table
            assert f"{api_pages.home(module, name)}.{name}" in pages[page]
    folded = [name.lower() for name in pages]
    assert len(set(folded)) == len(folded)  # on disks that do not tell letters apart by case, too


@pytest.mark.usefixtures("_extensions")
def test_a_notebook_becomes_a_page():
    pytest.importorskip("myst_parser", reason="myst-parser is not installed: it is in the group docs")
    import notebooks

    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": "1 + 1",
            "outputs": [
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "display_data", "data": {"image/png": "QUJD\n"}},
            ],
        },
    ]
    page = notebooks.markdown(json.loads(json.dumps({"cells": cells})))
    assert page.startswith("# Title\ntext\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n\n<img")
    assert "base64,QUJD" in page


@pytest.mark.parametrize("script", sorted((DOCS / "gallery").glob("*.py")), ids=lambda path: path.name)
def test_scripts_of_the_gallery_have_a_title_and_are_drawn(script):
    text = script.read_text()
    title, line = ast.get_docstring(ast.parse(text)).splitlines()[:2]
    assert line == "=" * len(title)
    assert script.name.startswith("plot_")
    assert "import matplotlib.pyplot as plt" in text


def test_nothing_of_the_site_comes_from_elsewhere():
    for path in [*(DOCS / "_static").iterdir(), DOCS / "conf.py"]:
        for address in re.findall(r"https?://[^\"' )]+", path.read_text()):
            assert address.startswith(("https://docs.", "https://numpy", "https://scikit-learn")), (
                address
            )  # inventories


def test_pages_that_install_say_from_where():
    """Nothing is published: a page that writes pip install stakes leads to the page with the ways to do it."""
    for page in (DOCS / f"{name}.md" for name in PAGES if (DOCS / f"{name}.md").is_file()):
        text = page.read_text()
        listed = page.parent.name == "integrations"  # whose list says it once for all
        text += (page.parent / "README.md").read_text() if listed else ""
        if re.search(r"pip install '?stakes", text) and page.name not in ("install.md", "changelog.md"):
            assert "install.md)" in text, f"{page.name} says pip install stakes, and not from where"


def test_licences_name_what_the_plain_install_and_each_extra_need():
    page = (DOCS / "licences.md").read_text()
    for part, names in requirements().items():
        for name in names:
            found = re.escape(known) if (known := licence(name)) else ".*"  # of an extra that is not installed: any
            row = rf"^\| {re.escape(name)} \| {part} \| {found}{re.escape(beside(name))} \|$"
            assert re.search(row, page, re.M), f"{name}: run python tools/licences.py"
    assert "not installed" not in page


def test_a_licence_is_named_by_its_whole_name():
    """The text of every licence has "implied" and "disclaimer" in it, which once made one of them Mozilla's."""
    assert short_name("WITHOUT WARRANTIES OF ANY KIND, express or implied; see the disclaimer") is None
    assert short_name("Apache Software License") == "Apache-2.0"
    assert short_name("MPL 2.0") == "MPL-2.0"


def test_the_page_of_installing_names_every_extra():
    rows = re.findall(r"^\| (`.*?`) \|", (DOCS / "install.md").read_text(), re.M)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(set(requirements()) - {"plain install"})
