"""Backends that the same tests run on, the settings of hypothesis, and where kernels of Triton run."""

from __future__ import annotations

import gc
import importlib
import os
from pathlib import Path

import array_api_compat
import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("stakes", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("stakes")


def _has_gpu() -> bool:
    """Whether torch can use one; it is not imported, which takes seconds, where there is no device."""
    if not any(Path(place).exists() for place in ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")):
        return False
    try:
        return bool(importlib.import_module("torch").cuda.is_available())
    except ImportError:
        return False


if not _has_gpu():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels run line by line; to be said before Triton is imported


def _hasten_array_api_strict() -> None:
    """Its answers, sooner: it compares the dtype of every new array with all that it knows, one by one, in Python."""
    try:
        from array_api_strict import _array_object, _dtypes

        kind, compared = _dtypes.DType, _dtypes.DType.__eq__
        kind.__eq__ = lambda a, b: a._np_dtype == b._np_dtype if type(b) is kind else compared(a, b)
        _array_object._all_dtypes = frozenset(_array_object._all_dtypes)
        _dtypes._dtype_categories.update({name: frozenset(each) for name, each in _dtypes._dtype_categories.items()})
    except (ImportError, AttributeError):  # not installed, or arranged in another way: it stays as slow as it is
        pass


_hasten_array_api_strict()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported and collected stays: nothing of it is garbage, and it need not be looked through again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items):
    """The longest come first, up to half a minute each: at the end no worker waits for another that has one of them."""
    items.sort(key=lambda item: item.path.parent.name != "torture")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """As many as this process may use; of two threads of one core xdist would use one."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.fixture(params=["numpy", "array_api_strict", "torch"])
def xp(request):
    """The array library under test: `xp.asarray(host_array)` makes its arrays."""
    try:
        module = importlib.import_module(request.param)
    except ImportError:
        pytest.skip(f"{request.param} is not installed")
    if request.param != "torch" or not (place := os.environ.get("STAKES_TEST_DEVICE")):
        yield array_api_compat.array_namespace(module.zeros(1))
        return
    module.set_default_device(place)  # such as cuda, where no copy to the host goes unseen
    yield array_api_compat.array_namespace(module.zeros(1))
    module.set_default_device(None)


@pytest.fixture(autouse=True, scope="session")
def settings_of_nobody(tmp_path_factory):
    """What is remembered in the user's settings, such as which campaigns are trusted, is not that of whoever tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("settings")))
        yield


@pytest.fixture
def host():
    """A function that brings any array back to NumPy."""
    return lambda array: np.asarray(array.cpu().numpy() if hasattr(array, "cpu") else array)


@pytest.fixture
def rng():
    return np.random.default_rng(2026)
