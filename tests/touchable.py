"""The panels with points that can be dragged; test_explore.py holds the list to them."""

TOUCHABLE = (
    "beads",
    "downhill",
    "family_gradients",
    "hub",
    "machine_plane",
    "matching_game",
    "nearest_point",
    "one_idea",
    "pairings",
    "pushes",
    "ray",
    "sand",
    "side_by_side",
    "sinkhorn_rounds",
    "street",
    "support_images",
    "water",
    "who_is_it",
)
