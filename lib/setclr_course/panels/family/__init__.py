"""Every loss on one batch: whom each matches, and where it pushes."""
