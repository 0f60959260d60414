"""Speed, memory and growth, side by side in one run: `python -m benchmarks` in a checkout."""
