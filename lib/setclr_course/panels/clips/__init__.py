"""Clips: a camera over a photograph and its flow, two views of a clip, its nearest clips, the recorded
runs."""
