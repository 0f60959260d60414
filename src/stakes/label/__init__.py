"""A page to label on: `stakes label`."""
