"""The panels that are still drawn as pixels. It goes when the last of them is a scene (kit/)."""
