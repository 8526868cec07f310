"""The course: panels, questions and the papers' rows. It uses the library `setclr`, which never uses it."""
