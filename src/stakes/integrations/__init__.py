"""Adapters to other packages of the field: a thin file for each, imported by its own name and nowhere else.

`stakes` itself imports none of them, so that none of their packages is needed; each file says which extra
brings its own.
"""
