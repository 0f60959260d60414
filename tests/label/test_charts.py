"""Small pictures: nothing where there is nothing to see, numbers in words, and no markup of others."""

from stakes.label.charts import acquired_chart, learning_chart


def test_a_curve_says_where_it_began_and_where_it_is():
    drawn = learning_chart([(20, 0.5, 0.01), (30, 0.4, 0.02), (30, 0.35, 0.01), (40, 0.25, 0.01)])
    assert "0.5 with 20 labels, 0.25 with 40 labels" in drawn
    assert drawn.count("<polyline") == 1
    assert 'role="img"' in drawn


def test_no_curve_before_there_are_two_points():
    assert learning_chart([]) == ""
    assert learning_chart([(20, 0.5, 0.01), (20, 0.4, 0.01)]) == ""
    assert learning_chart([(20, float("nan"), 0.01), (21, 0.4, 0.01)]) == ""


def test_a_curve_with_an_error_that_is_not_known_is_drawn():
    assert "<polyline" in learning_chart([(1, 0.0, float("inf")), (2, 0.0, float("inf"))])


def test_long_histories_are_thinned():
    assert learning_chart([(n, 1.0 / n, 0.0) for n in range(1, 3000)]).count(",") < 900
    assert acquired_chart([str(n) for n in range(3000)], 10, numbers=True).count("<circle") <= 250


def test_classes_are_counted_and_their_names_are_text():
    drawn = acquired_chart(["<script>", "good", "good"], 1, numbers=False)
    assert "<script>" not in drawn
    assert "&lt;script&gt; 1" in drawn
    assert "1 of 3 labels there from the start" in drawn


def test_many_classes_are_cut_short_and_reported():
    assert "and 4 more classes" in acquired_chart([f"c{n % 10}" for n in range(40)], 0, numbers=False)


def test_numbers_and_nothing():
    assert acquired_chart([], 0, numbers=True) == ""
    drawn = acquired_chart(["1.5", "1.5"], 1, numbers=True)
    assert "2 labels from 1.5 to 1.5" in drawn
    assert drawn.count("<circle") == 2
