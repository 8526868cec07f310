"""What each page of the course asks: a file a page, with QUESTIONS and EXERCISES by number."""
