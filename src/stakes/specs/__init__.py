"""Losses and models in words."""

__all__: list[str] = []
