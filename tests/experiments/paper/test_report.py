"""The report, in Markdown and as a page, and its pictures: they say what the summaries say, in the paper's layout."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import __main__ as program
from experiments.paper import acquisition, figures, table2
from experiments.paper.blocks import Heading, Paragraph, Picture, Strong, Table, markdown
from experiments.paper.blocks import html as page
from experiments.paper.report import PRINTED, content, report
from experiments.paper.results import read, write
from experiments.paper.study import Place
from experiments.paper.summary import summarised

ROOT = Path(__file__).resolve().parents[3]
KEPT = read(ROOT / "experiments" / "results")
SLICE = replace(table2.PUBLISHED, budget=3, draws=20)
ABOUT = {"command": "c", "runs": 3, "labels": 3, "seconds": 1.0, "settings": "s"}


@pytest.fixture(scope="module")
def summary():
    return summarised(SLICE, SLICE.simulate(3, Place(None, None)), ABOUT)


@pytest.fixture
def drawing():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed, and figures are pictures")


def test_the_report_puts_printed_numbers_beside_ours(summary):
    text = report([summary])
    for mean, sem in PRINTED.values():
        assert f"| {mean:g} ± {sem:g} |" in text
    ours = summary.point("EVR", "SEL", 3)
    apart = (ours.mean - 0.3449) / np.hypot(ours.sem, 0.0025)
    assert f"| 0.3449 ± 0.0025 | {apart:+.1f} |" in text
    assert text.count("Not run.") == 3
    assert "| metric | A | B | A - B (95% interval) |" in text


def test_the_page_and_the_markdown_say_the_same():
    blocks = content(KEPT)
    written, shown = markdown(blocks), html.unescape(page(blocks, {}))
    tables = [each for each in blocks if isinstance(each, Table)]
    assert len(tables) == 2 * len(KEPT)
    for cell in (cell for each in tables for row in [each.head, *each.rows] for cell in row):
        assert (f"**{cell}**" if isinstance(cell, Strong) else f"| {cell} ") in written
        assert (f"<strong>{cell}</strong>" if isinstance(cell, Strong) else f">{cell}</t") in shown
    for each in blocks:
        if isinstance(each, Heading | Paragraph):
            assert each.text in written
            assert each.text in shown


def test_a_page_needs_nothing_else_and_shows_text_as_text():
    blocks = [
        Heading(1, "a < b"),
        Paragraph("t", "<script>"),
        Table(["h"], [["x & y"]]),
        Picture("p", "seen"),
        Picture("q", ""),
    ]
    made = page(blocks, {"p": b"\x89PNG"})
    assert "<script>" not in made
    assert html.escape("x & y") in made
    assert re.findall(r'src="([^"]{,22})', made) == ["data:image/png;base64,"]  # q is not there, and left out
    assert "http" not in made


@pytest.mark.usefixtures("drawing")
def test_every_picture_of_a_report_is_drawn(summary, monkeypatch):
    monkeypatch.setattr(acquisition, "ITERATIONS", (0,))
    made = figures.drawn([summary])
    assert {each.name for each in content([summary]) if isinstance(each, Picture)} == set(made)
    assert all(each.startswith(b"\x89PNG") for each in made.values())
    assert page(content([summary]), made).count("<img ") == len(made) == 3


def test_pictures_of_full_runs_have_names_of_their_own():
    names = [each.name for each in content(KEPT) if isinstance(each, Picture)]
    assert len(set(names)) == len(names) >= 10


@pytest.mark.usefixtures("drawing")
def test_losses_have_a_row_for_each_table_and_a_column_for_each_metric():
    rows = [next(each for each in KEPT if each.name == f"regression-{name}-text") for name in ("slump", "yacht")]
    panels = figures.losses_figure(rows).axes
    assert [axis.get_title() for axis in panels] == [r"$\mathrm{SEL}$", r"$\mathrm{SEL}_w$", "", ""]
    assert panels[0].get_ylabel().startswith("Slump\n")
    line = next(each for each in panels[3].lines if each.get_label() == r"$\mathrm{EVR}_w$")
    wanted = [each.log10_mean for each in rows[1].points if (each.strategy, each.metric) == ("EVR_w", "SEL_w")]
    np.testing.assert_array_equal(line.get_ydata(), wanted)


@pytest.mark.usefixtures("drawing")
def test_models_of_linex_are_named_by_what_they_see():
    rows = [next(each for each in KEPT if each.name == f"linex-estate-text-{name}") for name in ("exact", "log-warped")]
    names = [axis.get_ylabel().split("\n")[0] for axis in figures.losses_figure(rows).axes]
    assert [each for each in names if each] == ["Estate, prices", "Estate, log prices"]
    shown = (ROOT / "docs" / "figures" / "losses-linex-published.svg").read_text()
    assert "<!-- Estate, log prices -->" in shown


@pytest.mark.usefixtures("drawing")
def test_shares_have_a_panel_for_each_class_from_the_summary():
    kept = next(each for each in KEPT if each.name == "classification-vehicle-published")
    panels = figures.shares_figure(kept).axes
    assert [axis.get_title() for axis in panels] == ["bus (w=50)", "opel (w=1)", "saab (w=1)", "van (w=50)"]
    totals = sum(axis.lines[0].get_ydata() for axis in panels)
    np.testing.assert_allclose(totals, 1.0, atol=1e-5)
    assert panels[0].lines[0].get_ydata()[0] == 0.25  # 5 of each class were labelled at the start


@pytest.mark.usefixtures("drawing")
def test_acquisition_figures_have_four_rows_by_iterations():
    panels = acquisition.acquisition_figure(SLICE, (0, 2)).axes
    assert len(panels) == 8
    assert [axis.get_title() for axis in panels[:2]] == ["iteration 0", "iteration 2"]
    for column, labels in ((0, 2), (1, 4)):
        points = next(each for each in panels[column].lines if each.get_label() == "labels so far")
        assert len(points.get_xdata()) == labels
        evr = next(each for each in panels[2 + column].lines if each.get_label() == "EVR")

        (marked,) = {float(each.get_xdata()[0]) for each in panels[2 + column].lines if each.get_linestyle() == ":"}
        assert evr.get_ydata()[list(evr.get_xdata()).index(marked)] == pytest.approx(1.0)


def test_without_matplotlib_the_page_has_no_pictures_and_that_is_reported(summary, tmp_path, capsys, monkeypatch):
    def lacking(_summaries):
        raise ImportError("no matplotlib")

    monkeypatch.setattr(program, "drawn", lacking)

    write(summary, tmp_path)
    program.main(["report", "--results", str(tmp_path)])
    assert "pip install 'stakes[plot]'" in capsys.readouterr().err
    assert "<img" not in (tmp_path / "report.html").read_text()
