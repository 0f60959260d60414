"""Progress: a line that is rewritten on a terminal, a line now and then elsewhere, nothing for quick work."""

import pytest

from stakes._utils.arguments import as_progress, no_progress


class Stream:
    def __init__(self, terminal):
        self.text, self.isatty, self.flush = "", lambda: terminal, lambda: None

    def write(self, text):
        self.text += text


def shown(monkeypatch, terminal, times, shares):
    """What a stream gets of `shares` that are reported at `times`."""
    stream, clock = Stream(terminal), iter([0.0, *times])
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = as_progress(True)
    for share in shares:
        progress("simulate", share)
    return stream.text


@pytest.mark.parametrize("terminal", [True, False])
def test_quick_work_shows_nothing(monkeypatch, terminal):
    assert shown(monkeypatch, terminal, [0.1, 0.2, 0.3], [0.3, 0.6, 1.0]) == ""


def test_progress_is_one_line_on_a_terminal(monkeypatch):
    text = shown(monkeypatch, True, [0.5, 2.0, 2.1, 90.0, 120.0], [0.1, 0.2, 0.25, 0.75, 1.0])
    assert text.count("\r") == 3
    assert text.count("\n") == 1
    assert text.startswith("\rsimulate:  20% done, 0 min  8 s left\r")
    assert text.endswith("\rsimulate: 100% done, 0 min  0 s left\n")


def test_progress_elsewhere_comes_now_and_then(monkeypatch):
    text = shown(monkeypatch, False, [0.5, 31.0, 40.0, 62.0, 63.0], [0.2, 0.4, 0.6, 0.8, 1.0])
    assert [line[10:14] for line in text.splitlines()] == [" 40%", " 80%", "100%"]


def test_without_a_share_the_seconds_are_shown(monkeypatch):
    assert shown(monkeypatch, False, [31.0], [None]) == "simulate, 31 s\n"


def test_a_function_is_called_as_it_is_and_false_is_silent():
    seen = []
    as_progress(lambda what, share: seen.append((what, share)))("reading", 0.5)
    assert seen == [("reading", 0.5)]
    assert as_progress(False) is as_progress(None) is no_progress
    with pytest.raises(TypeError, match="progress must be True, False or a function"):
        as_progress("yes")
