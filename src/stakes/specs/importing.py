"""Classes by "module:Name", told to be what they should be before anything of them is called."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from stakes.files.errors import did_you_mean
from stakes.specs.errors import SpecError, refuse_unknown

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_path(name: str) -> bool:
    """Whether a name is an import path rather than one of a catalogue; what is nearly one is refused, not imported."""
    if not isinstance(name, str):
        raise SpecError(f"a name must be text; got {name!r}")
    if ":" in name and not _PATH.fullmatch(name):
        raise SpecError(f"an import path must be module:Name, such as sklearn.linear_model:Ridge; got {name!r}")
    return ":" in name


def imported(path: str) -> Any:
    """What "module:Name" stands for; its module is run by importing it, as by any import."""
    module_name, _, name = path.partition(":")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise SpecError(
            f"{path!r} must name a module that can be imported; {module_name!r} cannot ({error})"
        ) from error
    if not hasattr(module, name):
        raise SpecError(f"the module {module_name} has no {name!r}.{did_you_mean(name, dir(module))}")
    return getattr(module, name)


def class_with(path: str, methods: tuple[str, ...], what: str) -> type:
    """The class at `path`, which has these methods: whatever else a file may name is not called."""
    kind = imported(path)
    if not isinstance(kind, type) or not all(callable(getattr(kind, method, None)) for method in methods):
        raise SpecError(f"{path} is no {what}: a class with {', '.join(methods)} was expected; got {kind!r}")
    return kind


def called(path: str, kind: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The class called with arguments that it knows, its own refusals included."""
    known = inspect.signature(kind).parameters
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values()):
        refuse_unknown(f"option of {path}", arguments, known)
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise SpecError(f"{path}: {error}") from error
