"""The field's words: names and terms that readers had to decode do not come back.

The list is of the words that were replaced. Sentences may use plain English as they like ("as was said"). What is
looked for are names in code, of the package, of tests, experiments and examples, in notebooks and on pages; and terms
and headings in prose.
"""

import ast
import contextlib
import doctest
import io
import json
import re
import textwrap
import tokenize
from pathlib import Path

import pytest

from stakes.ranking import Ranking

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "experiments", "benchmarks", "tools", "docs")
MADE = ("api", "auto_gallery")  # folders that are written when the site is built, of what is looked at here
MODULES = {
    folder: [p for p in sorted((ROOT / folder).rglob("*.py")) if p.parent.name not in MADE] for folder in FOLDERS
}
MODULES["tests"].remove(Path(__file__))  # which has the list
PAGES = [
    page
    for place in (ROOT, *(ROOT / folder for folder in (".github", *FOLDERS)))
    for kind in ("md", "rst", "ipynb")
    for page in sorted(place.glob(f"*.{kind}") if place == ROOT else place.rglob(f"*.{kind}"))
    if page.parent.name not in MADE
]
NAMES = {
    *("said", "told", "luck", "lucky", "chance", "chances", "words", "purse", "purses", "bell", "bells", "listens"),
    *("stranger", "strangers", "foreigner", "foreigners", "lawless", "dear", "dearer", "dearest", "waist"),
}
OF_OTHERS = {"COMP_WORDS"}
"""Names that others chose: a variable of bash, by which a completion script hands over what is typed."""
TERMS = re.compile(
    r"can(?:not)? be told apart|\bthe waist\b|worth for a unit|\bNobody listens\b|\blawless\b|\bforeigners?\b|"
    rf"\bstrangers?\b|\bpurses?\b|\bluck\b|\bdear(?:er|est)?\b|\bbells?\b|\|\s*less\s*\||`_*(?:{'|'.join(sorted(NAMES))})`",
    re.I,
)
TOLD = re.compile(r"\b(?:is|are|was|were|be|been|being)\s+told\b", re.I)
"""A term of ours in comments, docstrings and pages; an error message may say what a model is told."""
IN_HEADINGS = re.compile(
    r"\b(?:said|(?:is|are) told|luck|chances?|words|dear|waist|purse|bell|strangers?|foreigners?|lawless|less)\b", re.I
)
HEADINGS = re.compile(r"^#+ (.*)$|^(\S.*)\n([=~*^-])\3{3,}$", re.M)
EVERY_KIND = '''
import luck as a, b as purse
from c import dear as d
TOLD = [bell for bell in TOLD]
class LawlessLoss:
    def is_said(self, words, *chance, waist=1, **stranger):
        """
        >>> dearest = 1
        """
        nonlocal chances
        self.bells = f(foreigner=f"{lucky}")
    match x:
        case [*dearer]: pass
        case {**purses}: pass
        case foreigners: pass
    try: pass
    except E as strangers: pass
    x["listens"]
'''


def names(code):
    """Every identifier: of what is defined, imported, bound, used and passed by name, also in examples of docstrings.

    Texts that could be one are names too: keys, columns, arguments of `parametrize`.
    """
    for node in ast.walk(ast.parse(code)):
        for field in ("id", "name", "asname", "arg", "attr", "rest"):
            if isinstance(value := getattr(node, field, None), str):
                yield from value.split(".")
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names
        if isinstance(node, ast.Constant) and re.fullmatch(r"[\w-]+", str(node.value)):
            yield str(node.value)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and ">>> " in str(node.value.value):
            for example in doctest.DocTestParser().get_examples(node.value.value):
                yield from names(example.source)


def names_of_a_part(code):
    """Every identifier of a few lines of a page, which may be no whole statements."""
    with contextlib.suppress(tokenize.TokenError, IndentationError):
        for token in tokenize.generate_tokens(io.StringIO(textwrap.dedent(code)).readline):
            if token.type == tokenize.NAME:
                yield token.string


def old(found):
    """Those of some names that have an old word among their parts."""
    return {name for name in {*found} - OF_OTHERS if NAMES & set(parts_of(name))}


def parts_of(name):
    """The words that a name is made of: of `LeastTold` and `least_told` the same."""
    return re.split(r"[_-]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def prose(code):
    """Comments and docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value  # docstrings, also of attributes


def parts(page):
    """The texts of a page, and the code on it; lines for a shell or a notebook alone are left out."""
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
        plain = [re.sub(r"^\s*[%!].*$", "", source, flags=re.M) for kind, source in cells if kind == "code"]
        return [source for kind, source in cells if kind == "markdown"], plain
    return [text], [match[1] for match in re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M)]


def titles(code):
    """Headings that a module writes: of the first lines of a gallery's texts, and of pages in HTML."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "tag" and len(node.args) > 1:
            kind, *content = [each.value for each in node.args if isinstance(each, ast.Constant)] or [None]
            if kind in ("h1", "h2", "h3", "h4", "th", "caption", "summary"):
                yield from map(str, content)
    for text in prose(code):
        yield from (match[2] for match in HEADINGS.finditer(text) if match[2])


def test_every_kind_of_name_is_found():
    found = {part for name in old(names(EVERY_KIND)) for part in parts_of(name)}
    assert found >= NAMES


def test_terms_and_headings_are_found_and_plain_english_is_not():
    for term in ("A cannot be told apart from B", "| ours | less | error |", "as `said` has it", "the lawless ones"):
        assert TERMS.search(term)
    assert TOLD.search("what workers\n    are told of")
    for code in ('tag("h2", "What was said")', '"""Of luck\n=======\n"""'):
        assert [each for each in titles(code) if IN_HEADINGS.search(each)]
    assert HEADINGS.search("text\n\n## By chance\n")[1] == "By chance"
    plain = "As was said, in a few words, two may agree by chance, and A less B tells less."
    assert not TERMS.search(plain)
    assert not TOLD.search(plain)


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_are_of_the_field(folder):
    assert len(MODULES[folder]) > 8
    found = [(str(path.relative_to(ROOT)), old({path.stem, *names(path.read_text())})) for path in MODULES[folder]]
    assert [each for each in found if each[1]] == []


def test_names_in_scripts_are_of_the_field():
    scripts = [path for path in sorted((ROOT / "src").rglob("*.js")) if ".min." not in path.name]
    assert scripts
    for path in scripts:
        code = re.sub(r"//.*|/\*.*?\*/|\"[^\"\n]*\"|'[^'\n]*'", " ", path.read_text())
        assert old(re.findall(r"\w+", code)) == set(), path


def test_names_on_pages_are_of_the_field():
    code = [(page.name, source) for page in PAGES for source in parts(page)[1]]
    assert len(code) > 100
    assert [(name, found) for name, source in code if (found := old(names_of_a_part(source)))] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_terms_and_headings_of_modules_are_of_the_field(folder):
    for path in MODULES[folder]:
        text = path.read_text()
        assert TERMS.findall(text) == [], path
        assert [each for each in prose(text) if TOLD.search(each)] == [], path
        assert [each for each in titles(text) if IN_HEADINGS.search(each)] == [], path


def test_terms_and_headings_of_pages_are_of_the_field():
    for page in PAGES:
        for text in parts(page)[0]:
            assert TERMS.findall(text) == [], page
            assert TOLD.findall(text) == [], page
            headings = [match[1] or match[2] for match in HEADINGS.finditer(text)]
            assert [each for each in headings if IN_HEADINGS.search(each)] == [], page


def test_the_ids_of_the_rows_of_a_ranking_are_no_labels():
    assert "row_ids" in Ranking.__annotations__
    assert not hasattr(Ranking, "labels")
