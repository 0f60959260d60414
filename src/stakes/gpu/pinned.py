"""Blocks of an array on their way from the host to a GPU: the next one is copied while the last one is worked on.

Host memory that is not pinned is copied into buffers that are, by a thread of its own, and from there to the device on
a stream of its own. Two buffers on either side take turns.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import torch

from stakes._utils.array import slices

_THREADS = 8  # that fill a buffer: one alone does not keep up with the copy to a device


def travelling(source: Any, place: Any, step: int) -> Generator[Any]:
    """Blocks of `step` rows of a NumPy array or a tensor on the host, as tensors on the device `place`.

    A block is good until the next is asked for: for what was queued on the current stream by then.
    """
    parts = list(slices(source.shape[0], step))
    carrier = _Carrier(source, place, min(step, source.shape[0]))
    with ThreadPoolExecutor(1) as porter:
        ahead: Future[Any] = porter.submit(carrier.send, 0, parts[0])
        try:
            for turn, _ in enumerate(parts):
                arrived, block = ahead.result()
                if turn + 1 < len(parts):
                    ahead = porter.submit(carrier.send, turn + 1, parts[turn + 1])
                torch.cuda.current_stream(place).wait_event(arrived)
                yield block
                carrier.free[turn % 2].record(torch.cuda.current_stream(place))
        finally:
            wait([ahead])
            carrier.stream.synchronize()  # buffers are not given back while a copy into them is under way
            carrier.copiers.shutdown()


class _Carrier:
    """Two buffers on the device, two that are pinned, and a stream for the copies."""

    def __init__(self, source: Any, place: Any, rows: int) -> None:
        self.source, self.place = source, place
        dtype = source.dtype if isinstance(source, torch.Tensor) else torch.from_numpy(np.empty(0, source.dtype)).dtype
        shape = (rows, *source.shape[1:])
        self.pinned = isinstance(source, torch.Tensor) and source.is_pinned() and source.is_contiguous()
        self.staged = [] if self.pinned else [torch.empty(shape, dtype=dtype, pin_memory=True) for _ in range(2)]
        self.there = [torch.empty(shape, dtype=dtype, device=place) for _ in range(2)]
        self.stream = torch.cuda.Stream(place)
        self.copiers = ThreadPoolExecutor(_THREADS)
        self.sent, self.free = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))

    def send(self, turn: int, part: slice) -> tuple[Any, Any]:
        """Copy a part of the source; the event of its arrival, and where it will be."""
        place, count = turn % 2, part.stop - part.start
        here = self.source[part] if self.pinned else self._staged(place, part, count)
        block = self.there[place][:count]
        with torch.cuda.stream(self.stream):
            self.free[place].wait(self.stream)  # until what was there is no longer read
            block.copy_(here, non_blocking=True)
            self.sent[place].record(self.stream)
        return self.sent[place], block

    def _staged(self, place: int, part: slice, count: int) -> Any:
        self.sent[place].synchronize()  # what was there has left
        buffer, rows = self.staged[place][:count], self.source[part]
        to = _bytes(buffer)
        if isinstance(rows, torch.Tensor):
            rows = _bytes(rows.contiguous())
        else:
            rows = np.ascontiguousarray(rows).view(np.uint8)
        some = slices(count, -(-count // _THREADS))
        list(self.copiers.map(lambda few: np.copyto(to[few], rows[few]), some))
        return buffer


def _bytes(tensor: Any) -> Any:
    """A tensor on the host as NumPy has it, whatever its numbers are."""
    return tensor.view(torch.uint8).numpy()
