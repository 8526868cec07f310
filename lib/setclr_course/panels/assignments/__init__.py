"""Linear assignment: pairs, the best matching, and its softened form."""
