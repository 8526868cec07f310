"""Molecules: two views of one, six of them matched by every loss, the recorded column of MMCL's table 4."""
