"""Sorting five numbers, networks of swaps, and GroCo's order of groups."""
