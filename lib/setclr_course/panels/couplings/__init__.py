"""Optimal transport: Sinkhorn's rounds, its constraints, and IOT-CL's penalty."""
