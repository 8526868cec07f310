"""The playground: a set of points, two losses, and training that one looks at."""
