"""The paper's experiments, one file each: `python -m experiments` in a checkout."""
