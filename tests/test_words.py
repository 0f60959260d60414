"""The field's words: names and terms that readers had to decode do not come back.

The list is of the words that were replaced. Sentences may use plain English as they like; what is looked for are names
in the code, and terms and headings in prose.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = ("api", "auto_gallery")  # when the site is built, of what is looked at here
SOURCES = sorted((ROOT / "src").rglob("*.py"))  # with all messages
BESIDE = sorted(
    path
    for part in ("benchmarks", "docs", "tools")
    for path in (ROOT / part).rglob("*.py")
    if path.parent.name not in MADE
)
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    *(
        p
        for kind in ("md", "ipynb", "rst")
        for p in sorted((ROOT / "docs").rglob(f"*.{kind}"))
        if p.parent.name not in MADE
    ),
]
NAMES = {
    *("said", "luck", "lucky", "chance", "chances", "words", "purse", "purses", "bell", "bells", "listens"),
    *("stranger", "strangers", "foreigner", "foreigners", "lawless", "dear", "dearer", "dearest", "waist"),
}
WORDS_ARE_MEANT = ("votes.py", "label")
"""Where `words` is a name: votes are packed into words of 64 bits, and the page of `stakes label` has words on it."""
TERMS = re.compile(
    r"can(?:not)? be told apart|\bthe waist\b|worth for a unit|\bNobody listens\b|\blawless\b|\bforeigners?\b|"
    r"\bstrangers?\b|\bpurses?\b|\bluck\b|\bdear(?:er|est)?\b|\|\s*less\s*\|",
    re.I,
)
HEADING = re.compile(
    r"^#+ .*\b(?:said|(?:is|are) told|luck|chances?|words|dear|waist|purse|bell|strangers?|foreigners?|lawless|less)\b",
    re.I | re.M,
)


def names(tree):
    """Every identifier of a module: functions, classes, arguments, variables, attributes."""
    for node in ast.walk(tree):
        for field in ("id", "name", "arg", "attr"):
            if isinstance(value := getattr(node, field, None), str):
                yield value


def part_of(path):
    """The folder of the package, or the folder beside it."""
    return path.relative_to(ROOT / "src/stakes" if path.is_relative_to(ROOT / "src") else ROOT).parts[0]


@pytest.mark.parametrize("part", sorted({part_of(path) for path in [*SOURCES, *BESIDE]}))
def test_names_are_of_the_field(part):
    paths = [path for path in [*SOURCES, *BESIDE] if part_of(path) == part]
    found = {
        f"{path.name}: {name}"
        for path in paths
        for name in names(ast.parse(path.read_text()))
        if (NAMES - ({"words"} if {path.name, part} & set(WORDS_ARE_MEANT) else set())) & set(name.lower().split("_"))
    }
    assert found == set()


def test_terms_and_headings_are_of_the_field():
    for path in [*SOURCES, *BESIDE, *PAGES]:
        assert TERMS.findall(path.read_text()) == [], path
    for page in PAGES:
        assert HEADING.findall(page.read_text()) == [], page
