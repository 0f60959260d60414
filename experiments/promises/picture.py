"""A reliability picture: what was promised beside what came, a point for each case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.promises.summary import Case

_COLOURS = {"numbers": "#1f77b4", "classes": "#d95f02"}
_LEAST, _MOST = 3e-4, 2.0


def draw(cases: Sequence[Case], path: Path) -> None:
    """Before and now, side by side, as shares of the loss before the batch; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 4.6), sharex=True, sharey=True, layout="constrained")
    for axis, name, title in zip(axes, ("before", "promised"), ("said before", "promised now"), strict=True):
        for task, colour in _COLOURS.items():
            some = [case for case in cases if case.task == task]
            promised = [max(getattr(case, name), _LEAST) for case in some]
            came = [min(max(case.came, -1.0), 1.0) for case in some]
            axis.scatter(promised, came, s=9, color=colour, alpha=0.5, label=task, linewidths=0)
            medians = [_median_of(some, name, low) for low in (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)]
            known = [each for each in medians if each is not None]
            axis.plot([x for x, _ in known], [y for _, y in known], color=colour, lw=2)
        line = [_LEAST * 1.3**step for step in range(34) if _LEAST * 1.3**step <= _MOST]
        axis.plot(line, line, color="black", lw=1, label="as promised")
        axis.fill_between(
            line, [x / 2 for x in line], [2 * x for x in line], color="black", alpha=0.08, label="half to twice"
        )
        axis.set(
            xscale="log", title=title, xlabel="promised saving, over the loss", xlim=(_LEAST, _MOST), ylim=(-0.6, 1.0)
        )
        axis.axhline(0.0, color="grey", lw=0.8)
    axes[0].set_ylabel("what came, over the loss (mean over runs)")
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _median_of(cases: Sequence[Case], name: str, low: float) -> tuple[float, float] | None:
    """The middle of promises between low and about three times that, and the mean of what came; None for few."""
    some = [case for case in cases if low <= getattr(case, name) < 10**0.5 * low]
    if len(some) < 5:
        return None
    return sorted(getattr(case, name) for case in some)[len(some) // 2], sum(case.came for case in some) / len(some)
