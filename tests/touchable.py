"""The panels with points that can be dragged; test_explore.py holds the list to them."""

TOUCHABLE = ("machine_plane", "one_idea", "ray", "street", "support_images")
