"""Trained encoders: their features, neighbours and mistakes, films of training, recorded results."""
