"""What a loss, a training step and many processes cost."""
