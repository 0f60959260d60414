"""What is public is documented: arguments by name, what is returned, an example for each name; every example runs.

A method that a protocol of the package declares is documented there, and needs no list of arguments where it is
implemented.
"""

import doctest
import importlib
import inspect
import re
import types
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from stakes.acquisition import forms
from stakes.models import base as adapters

ROOMS = [
    "stakes",
    "stakes.losses",
    "stakes.beliefs",
    "stakes.acquisition",
    "stakes.models",
    "stakes.models.networks",
    "stakes.ranking",
    "stakes.tabular",
    "stakes.files",
    "stakes.campaign",
    "stakes.simulation",
    "stakes.evaluation",
    "stakes.baselines",
    "stakes.report",
    "stakes.testing",
]
SOURCE = Path(importlib.import_module("stakes").__file__).parent
SECTIONS = "Args|Attributes|Examples|Note|Notes|Raises|References|Returns|Warns|Yields"


def section(docstring, *names):
    """The text of the named sections of a Google-style docstring."""
    pattern = rf"^(?:{'|'.join(names)}):\n(.*?)(?=^(?:{SECTIONS}):$|\Z)"
    return "\n".join(re.findall(pattern, inspect.cleandoc(docstring), re.M | re.S))


def undocumented(docstring, callable_):
    """The parameters of a callable that its docstring does not describe."""
    described = set(re.findall(r"^ +\*{0,2}(\w+)(?: \([^)]*\))?:", section(docstring, "Args", "Attributes"), re.M))
    try:
        parameters = inspect.signature(callable_).parameters
    except ValueError:  # of a class that takes what its base in C takes
        return []
    return [name for name in parameters if name not in {*described, "self", "cls"}]


def gives(function):
    return inspect.signature(function).return_annotation not in (None, "None")


def is_protocol(value):
    return bool(getattr(value, "_is_protocol", False))


@cache
def declared():
    """Methods that a protocol of a published room declares."""
    published = (value for room in ROOMS for value in members(room).values())
    return {name for value in published if is_protocol(value) for name in vars(value)}


def members(room):
    try:
        module = importlib.import_module(room)
    except ImportError:  # of an optional library
        return {}
    return {name: getattr(module, name) for name in module.__all__}


def methods(value):
    """The public methods and properties of a class, each as the first of its bases declares it."""
    for name in sorted({name for base in value.__mro__ if "stakes" in base.__module__ for name in vars(base)}):
        member = next(vars(base)[name] for base in reversed(value.__mro__) if name in vars(base))
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        field = name in getattr(value, "__dataclass_fields__", ())  # whose default may be a function
        if not name.startswith("_") and not field and isinstance(member, types.FunctionType | property):
            yield name, member


def problems(room, name, value):
    """What the docstring of a public name lacks, in words."""
    if not isinstance(value, type | types.FunctionType):  # a table or an alias, which is documented where it is made
        return
    docstring = value.__doc__ or ""
    if not docstring or docstring.startswith(f"{name}("):  # which a dataclass makes up for itself
        yield f"{room}.{name} has no docstring"
        return
    if not is_protocol(value) and (missing := undocumented(docstring, value)):
        yield f"{room}.{name} does not describe {', '.join(missing)}"
    if ">>>" not in section(docstring, "Examples"):
        yield f"{room}.{name} has no example"
    if isinstance(value, types.FunctionType) and gives(value) and not section(docstring, "Returns"):
        yield f"{room}.{name} does not say what it returns"
    for method, member in methods(value) if isinstance(value, type) else ():
        if not member.__doc__:
            yield f"{room}.{name}.{method} has no docstring"
        elif isinstance(member, property) or (method in declared() and not is_protocol(value)):
            continue
        elif missing := undocumented(member.__doc__, member):
            yield f"{room}.{name}.{method} does not describe {', '.join(missing)}"


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_are_documented(room):
    if not (public := members(room)):
        pytest.skip(f"{room} needs a library that is not installed")
    found = [problem for name, value in public.items() for problem in problems(room, name, value)]
    assert not found, "\n".join(found)


class _Checker(doctest.OutputChecker):
    """Takes numbers as every version of NumPy prints them: 4.0 for np.float64(4.0)."""

    def check_output(self, want, got, optionflags):
        want, got = (re.sub(r"np\.(?:\w+\(([^()]*)\)|(True|False)_)", r"\1\2", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


def with_examples():
    for path in sorted(SOURCE.rglob("*.py")):
        if ">>>" in path.read_text():
            yield ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("module", list(with_examples()))
def test_examples_run(module, tmp_path, monkeypatch):
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of libraries that it imports
            found = importlib.import_module(module)
    except ImportError as error:
        pytest.skip(f"{module} needs {error.name}")
    monkeypatch.chdir(tmp_path)  # an example may write a file
    for package, module in adapters._EXTRAS.items():
        if package.startswith("sklearn."):
            importlib.import_module(module)  # whose adapters would be registered once, and forgotten
    for home, table in ((forms, "_FORMS"), (adapters, "_ADAPTERS"), (adapters, "_LISTED")):  # or register something
        monkeypatch.setattr(home, table, dict(getattr(home, table)))
    runner = doctest.DocTestRunner(
        checker=_Checker(), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False
    )
    report = []
    with np.printoptions(precision=8, suppress=False, linewidth=75, threshold=1000):
        for test in doctest.DocTestFinder(exclude_empty=True).find(found, module):
            runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
