"""What every room uses: arrays, compiled loops and workers, tables, text, best k, and arguments that many share."""
