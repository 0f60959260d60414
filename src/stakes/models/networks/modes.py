"""Networks are put into evaluation mode for a while, and put back.

Modes and hooks belong to the module, which threads that rank may share: one of them at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn

_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def in_evaluation(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Meanwhile evaluation mode, for one thread; afterwards, whatever happens, the mode that each part had."""
    with _ONE_AT_A_TIME:
        before = [(part, part.training) for module in modules for part in module.modules()]
        try:
            for module in modules:
                module.eval()
            yield
        finally:
            for part, training in before:
                part.training = training
