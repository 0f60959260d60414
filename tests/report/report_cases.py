"""Small campaigns to report on, and a page read as a browser would."""

import csv
from html.parser import HTMLParser

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from stakes.campaign import Campaign
from stakes.tabular import LossSpec, ModelSpec

ROWS = 24
NUMBERS = {"loss": "squared-error", "model": ModelSpec("bayesian-ridge")}
COSTS = {"a&b": {"act": 0.0, "wait": 5.0}, "<i>no</i>": {"act": 1.0, "wait": 0.0}}
CLASSES = {
    "loss": LossSpec("cost-matrix", cost_matrix=COSTS),
    "model": ModelSpec("bootstrap", {"members": 8}),
}
VOID = {"meta", "link", "img", "br"}


def features():
    return np.random.default_rng(1).normal(size=(ROWS, 2))


def truths(kind):
    x = features()
    if kind == "numbers":
        return [f"{value:.3f}" for value in 10.0 + 3.0 * x[:, 0] + x[:, 1] ** 2]
    return ["a&b" if value > 0 else "<i>no</i>" for value in x[:, 0]]


def create(folder, kind, labelled, *, ids=None, target="yield", **more):
    """A campaign about a table whose first rows are labelled."""
    names, labels = ids or [f"r{row:02d}" for row in range(ROWS)], truths(kind)
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "u", "v", target])
        for row, (name, x) in enumerate(zip(names, features().tolist(), strict=True)):
            lines.writerow([name, *x, labels[row] if row < labelled else ""])
    settings = {**(NUMBERS if kind == "numbers" else CLASSES), **more}
    return Campaign.create(folder / "it.stakes", folder / "table.csv", target, id_column="id", **settings)


class Stubborn(RegressorMixin, BaseEstimator):
    """A model that cannot be fitted."""

    def fit(self, features, labels):
        raise RuntimeError("I do not <b>want</b> to")

    def belief(self, pool, contexts):
        raise NotImplementedError


class Page(HTMLParser):
    """The elements of a page with their attributes, its texts, and whether all that was opened was closed."""

    def __init__(self, text):
        HTMLParser.__init__(self)
        self.elements, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())
