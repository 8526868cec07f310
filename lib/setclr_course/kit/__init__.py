"""What every panel is made of: the panel itself, controls, pieces of pictures, a few patches to show."""
