"""Text is text, whatever is in it; markup is markup."""

from stakes._utils.markup import Markup, tag, text


def test_strings_are_escaped_and_markup_is_not():
    assert text(["<b>", Markup("<i>"), [["&"]]]) == "&lt;b&gt;<i>&amp;"
    assert isinstance(text("a"), Markup)


def test_attributes_are_escaped_and_named():
    assert tag("p", "x", class_="a", aria_label='"><script>') == (
        '<p class="a" aria-label="&quot;&gt;&lt;script&gt;">x</p>\n'
    )


def test_what_no_page_may_hold_is_replaced():
    assert text("a\x00b\ud800") == "a\ufffdb\ufffd"
