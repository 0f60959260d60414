"""Weights, costs and options as they are typed."""

import subprocess
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stakes.exceptions import StakesError
from stakes.tabular import parse_class_weights, parse_options, parse_weight, read_cost_matrix


@pytest.fixture
def file(tmp_path):
    """A function that writes a file and gives its path."""

    def write(content, name="t.csv"):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("text", "kept"), [("exp:-1", "exp:-1.0"), ("exp: 0.25", "exp:0.25"), ("exp:1e-3", "exp:0.001")]
)
def test_exponential_weights(text, kept):
    assert parse_weight(text) == kept


@pytest.mark.parametrize("text", ["exp", "exp:", "exp:x", "exp:inf", "exp:nan", "log:2", "", "2"])
def test_other_weights_are_refused(text):
    with pytest.raises(StakesError, match="a weight is exp:RATE, such as exp:-1, or a CSV file"):
        parse_weight(text)


def test_weights_from_points(file):
    assert parse_weight(file("y,weight\n3,0\n-1,2.5\n")) == ((-1.0, 2.5), (3.0, 0.0))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("y,weight\n", "at least 0 and not all 0"),
        ("y,weight\n1,0\n2,0\n", "not all 0"),
        ("y,weight\n1,-1\n", "at least 0"),
        ("y,weight\n1,1\n1,2\n", "each once"),
        ("y,weight\n1,\n", "a number in every cell; look at line 2"),
        ("y,weight\na,b\n", "a number in every cell"),
        ("1,2\n3,4\n", "named in its first line"),
        ("y,w,x\n1,2,3\n", "must have two columns"),
    ],
)
def test_points_that_are_no_weight(file, content, message):
    with pytest.raises(StakesError, match=message):
        parse_weight(file(content))


def test_files_that_are_not_there():
    with pytest.raises(StakesError, match="there is no file"):
        parse_weight("none.csv")
    with pytest.raises(StakesError, match="there is no file"):
        read_cost_matrix("none.csv")


def test_class_weights():
    assert parse_class_weights("bus=50,van=50") == {"bus": 50.0, "van": 50.0}
    assert parse_class_weights("red van=1e1, ü=0.5") == {"red van": 10.0, "ü": 0.5}
    assert parse_class_weights('a=b=3,"c, d=2","say ""x""=1"') == {"a=b": 3.0, "c, d": 2.0, 'say "x"': 1.0}


@given(
    st.dictionaries(
        st.text(min_size=1).filter(lambda name: not set("\r\n\0") & set(name)), st.floats(0, 1e300), min_size=1
    )
)
def test_any_class_can_be_named(weights):
    items = [f"{name}={weight!r}".replace('"', '""') for name, weight in weights.items()]
    assert parse_class_weights(",".join(f'"{item}"' for item in items)) == weights


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bus", "got 'bus'"),
        ("", "CLASS=WEIGHT"),
        ("=3", "got '=3'"),
        ("bus=", "got 'bus='"),
        ("bus=nan", "got 'bus=nan'"),
        ("bus=inf", "got 'bus=inf'"),
        ("bus=1,bus=2", "'bus' is given twice"),
        ("bus=-1", "at least 0; that of 'bus' is -1"),
        ('"bus=1', "CLASS=WEIGHT"),
        ("bus=1,,", "got ''"),
    ],
)
def test_class_weights_that_are_refused(text, message):
    with pytest.raises(StakesError, match=message):
        parse_class_weights(text)


def test_cost_matrices(file):
    square = read_cost_matrix(file(",ill,well\nill,0,20\nwell,1,0\n"))
    assert square == {"ill": {"ill": 0.0, "well": 20.0}, "well": {"ill": 1.0, "well": 0.0}}
    assert read_cost_matrix(file("truth;treat\n007;-1.5\nNA;2\n")) == {"007": {"treat": -1.5}, "NA": {"treat": 2.0}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (",a,b\na,0,x\n", "must be a finite number; got 'x' at line 2, column 'b'"),
        (",a,b\na,0,nan\n", "got 'nan' at line 2"),
        (",a,b\na,0,\n", "got '' at line 2, column 'b'"),
        (",a,a\na,0,1\n", "names the decision 'a' twice"),
        (",a,b\na,0,1\na,1,0\n", "names the class 'a' twice"),
        (",a,\na,0,1\n", "must name every decision"),
        (",a,b\n,0,1\n", "must name every class"),
        (",a,b\n", "must name every class"),
        ("truth\na\n", "must name every decision"),
    ],
)
def test_cost_matrices_that_are_refused(file, content, message):
    with pytest.raises(StakesError, match=message):
        read_cost_matrix(file(content))


def test_options():
    assert parse_options(["alpha=0.5", "name=a=b", "flag=true"]) == {"alpha": 0.5, "name": "a=b", "flag": True}
    for bad in ("alpha", "=1"):
        with pytest.raises(StakesError, match="NAME=VALUE"):
            parse_options([bad])


def test_catalogues_are_there_without_the_libraries():
    code = (
        "import sys; from stakes.tabular import LOSSES, MODELS, LossSpec, ModelSpec\n"
        "import stakes.tabular; LossSpec('linex', weight='exp:1'); ModelSpec('random-forest')\n"
        "print([m for m in ('sklearn', 'scipy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
