"""The four papers: rows of tables as data, evaluation protocols, and code that only their tables need.

The rows are in TOML files, one for each paper, the weights of QARe among them (QARe, table 4).
"""
