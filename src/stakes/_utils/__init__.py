"""What every room uses: arrays, compiled loops, tables, text, random numbers, workers."""
