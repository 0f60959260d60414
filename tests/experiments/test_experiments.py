"""What studies share: numbers in tables, and a benchmark without its library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from experiments import markdown

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("value", "text"), [(1e-18, "0"), (-0.0034712, "-0.00347"), (5.2e-5, "0.000052"), (99.97, "100"), (-404.2, "-404")]
)
def test_numbers_are_written_out(value, text):
    assert markdown.number(value) == text


def test_without_their_library_the_benchmark_of_peers_says_what_to_install():
    hidden = "import runpy, sys; sys.modules['skactiveml'] = None; runpy.run_path('benchmarks/peers.py')"
    done = subprocess.run([sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install scikit-activeml" in done.stderr
    assert "Traceback" not in done.stderr
