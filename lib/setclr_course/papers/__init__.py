"""The four papers: their rows as data, how they measure, and what only their tables need."""
