"""Studies with stakes as any user would run them: `python -m experiments.NAME` in a checkout."""
