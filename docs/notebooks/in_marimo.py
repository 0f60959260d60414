"""Results and the card for labels in marimo: marimo edit docs/notebooks/in_marimo.py."""

import marimo

app = marimo.App()


@app.cell
def _():
    import numpy as np
    import pandas as pd
    from sklearn.linear_model import BayesianRidge

    from stakes import Campaign, SquaredError, outlook, simulate
    from stakes.integrations.notebook import label

    return BayesianRidge, Campaign, SquaredError, label, np, outlook, pd, simulate


@app.cell
def _(Campaign, np, pd):
    rng = np.random.default_rng(0)
    length, width = rng.normal(5, 1, 60).round(2), rng.normal(3, 1, 60).round(2)
    leaves = pd.DataFrame({"length": length, "width": width}, index=[f"leaf {number}" for number in range(60)])
    leaves["kind"] = ["oak" if each > 5 else "elm" for each in length[:8]] + [None] * 52
    campaign = Campaign.create(None, leaves, "kind", "zero-one", label_cost=0.5, decisions=500)
    return campaign, leaves


@app.cell
def _(campaign):
    campaign.rank(5)
    return


@app.cell
def _(campaign):
    campaign
    return


@app.cell
def _(BayesianRidge, SquaredError, leaves, outlook):
    known = leaves.assign(height=3.0 * leaves["length"] + leaves["width"] ** 2)
    model = BayesianRidge().fit(known[["length", "width"]][:10], known["height"][:10])
    outlook(model, SquaredError(), known[["length", "width"]][10:], costs=0.1, decisions=100)
    return (known,)


@app.cell
def _(BayesianRidge, SquaredError, known, simulate):
    simulate(BayesianRidge(), SquaredError(), known[["length", "width"]], known["height"], n=3, runs=2)
    return


@app.cell
def _(campaign, label):
    card = label(campaign, "anna")
    card
    return (card,)


if __name__ == "__main__":
    app.run()
