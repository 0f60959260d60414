"""Kernels for a GPU, by Triton and torch; imported when a tensor on a GPU comes."""
