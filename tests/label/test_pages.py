"""Pages as text: what is offered, what is said, and what is left out."""

import re

import pytest

from stakes._utils.markup import text
from stakes.label import pages
from stakes.label.flow import Card, Cell, Dispute
from stakes.tabular import Brief, LossSpec

COSTS = {"bad": {"keep": 10.0, "drop": 0.0}, "good": {"keep": 0.0, "drop": 1.5}}
CARD = Card(
    "r1", (Cell("size", "3.5"), Cell("remark", "a b", long=True), Cell("photo", "a b.png", image=True)), 0.25, 7
)


def view(**more):
    loss = more.pop("loss", LossSpec("zero-one"))
    given = {
        "title": "parts", "brief": Brief("state", loss), "name": "Anna", "mark": "m",
        "keys": {"class:good": "1", "skip": "s"},
        "numbers": False, "classes": ("good", "bad"), "more_classes": False, "unit": "", "to_settle": 0, **more,
    }  # fmt: skip
    return pages.View(**given)


def test_a_card_has_cells_buttons_with_keys_and_three_ways_to_put_off():
    shown = text(pages.work_on(CARD, view()))
    assert "<dt>size</dt>" in shown
    assert '<p class="long">a b</p>' in shown
    assert 'src="/media/a%20b.png"' in shown
    assert re.search(r'value="good" class="choice" data-key="1" aria-keyshortcuts="1"', shown)
    assert "data-key" not in re.search(r'<button[^>]*value="bad"[^>]*>', shown)[0]
    assert [shown.count(f'value="{act}"') for act in ("later", "unsure", "skip")] == [1, 1, 1]
    assert 'name="act" value="7"' in shown
    assert "Another class" not in shown


def test_names_and_values_may_break_between_their_parts_and_numbers_nowhere():
    card = Card("r1", (Cell("mean__<b>_size", "-3.5"), Cell("file", "a/b_<i>.txt")), None, None)
    shown = text(pages.work_on(card, view()))
    assert "<dt>mean__<wbr>&lt;b&gt;_<wbr>size</dt>" in shown
    assert "<dd>-3.5</dd>" in shown
    assert "<dd>a/<wbr>b_<wbr>&lt;i&gt;.txt</dd>" in shown


@pytest.mark.parametrize(("classes", "few"), [(("good", "bad"), True), (tuple("abcde"), False)])
def test_buttons_stay_in_sight_where_they_are_few(classes, few):
    for shown in (
        text(pages.work_on(CARD, view(classes=classes))),
        text(pages.settle_work(Dispute(CARD, (), ()), 1, view(classes=classes), None)),
    ):
        assert ('class="answers few"' in shown) == few
        assert ('class="answers"' in shown) != few


def test_a_number_has_a_box_with_its_unit_and_a_new_class_a_box_of_its_own():
    assert 'inputmode="decimal"' in text(pages.work_on(CARD, view(numbers=True, classes=(), unit="EUR")))
    assert "Another class" in text(pages.work_on(CARD, view(more_classes=True)))


def test_nothing_within_a_page_is_script_or_style():
    dispute = Dispute(CARD, (("Anna", "good"), ("Ben", "bad")), ("Cleo",))
    whole = [
        pages.label_page(view(), pages.work_on(CARD, view()), ""),
        pages.settle_page(view(to_settle=3), pages.settle_work(dispute, 3, view(), None)),
        pages.settle_page(view(), pages.settle_work(None, 0, view(), None)),
        pages.keys_page(view()),
        pages.name_page(view(), "no"),
        pages.message_page("Head", ["Body"], to="/"),
    ]
    for page in whole:
        assert re.findall(r"<script[^>]*>", page) == ['<script src="/static/label.js" defer>']
        assert "<style" not in page
        assert not re.search(r"\son\w+=|\sstyle=|https?://", page)


def test_every_form_that_changes_something_has_a_mark():
    shown = text(pages.work_on(CARD, view())) + pages.keys_page(view()) + pages.name_page(view())
    assert shown.count('method="post"') == shown.count('name="mark" value="m"') == 4


def test_what_mistakes_cost_is_a_sentence():
    sentence = pages._mistakes(COSTS)
    assert sentence == " To say keep where it is bad costs 10; drop where it is good costs 1.5."
    assert pages._mistakes(None) == ""
    many = {f"t{n}": {f"d{m}": 1.0 for m in range(4)} for n in range(3)}
    assert "and 6 more" in pages._mistakes(many)


@pytest.mark.parametrize("numbers", [True, False])
def test_keys_are_one_to_nine_and_a_letter_for_each_act(numbers):
    keys = pages.usual_keys([f"c{n}" for n in range(12)], numbers)
    assert [keys[act] for act in pages.ACT_KEYS] == ["l", "u", "s"]
    assert "".join(keys.values()) == ("lus" if numbers else "123456789lus")  # more than nine classes have none
    assert len(keys) == (3 if numbers else 15)
