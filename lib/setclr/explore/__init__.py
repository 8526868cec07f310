"""Slider panels, one in each file: each name in `__all__` is a function that returns a `Panel`.

A panel's file is imported when the panel is first asked for: all of them take as long as torch does.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setclr.explore.assignments.assignment_plane import assignment_plane
    from setclr.explore.assignments.matching_game import matching_game
    from setclr.explore.assignments.matching_pools import matching_pools
    from setclr.explore.assignments.pair_curves import pair_curves
    from setclr.explore.assignments.pairings import pairings
    from setclr.explore.assignments.softened_assignment import softened_assignment
    from setclr.explore.assignments.who_is_it import who_is_it
    from setclr.explore.clips.clip_strips import clip_strips
    from setclr.explore.clips.moving_camera import moving_camera
    from setclr.explore.clips.nearest_clips import nearest_clips
    from setclr.explore.clips.video_column import video_column
    from setclr.explore.costs.loss_costs import loss_costs
    from setclr.explore.costs.step_shares import step_shares
    from setclr.explore.costs.training_costs import training_costs
    from setclr.explore.couplings.constraint_family import constraint_family
    from setclr.explore.couplings.coupled_patches import coupled_patches
    from setclr.explore.couplings.even_negatives import even_negatives
    from setclr.explore.couplings.hub import hub
    from setclr.explore.couplings.matching_lines import matching_lines
    from setclr.explore.couplings.sand import sand
    from setclr.explore.couplings.sinkhorn_rounds import sinkhorn_rounds
    from setclr.explore.family.anchor_list import anchor_list
    from setclr.explore.family.family_gradients import family_gradients
    from setclr.explore.family.family_matrices import family_matrices
    from setclr.explore.family.one_idea import one_idea
    from setclr.explore.family.side_by_side import side_by_side
    from setclr.explore.family.sphere import sphere
    from setclr.explore.family.trap_pushes import trap_pushes
    from setclr.explore.graphs.graph_column import graph_column
    from setclr.explore.graphs.molecule_matching import molecule_matching
    from setclr.explore.graphs.molecule_views import molecule_views
    from setclr.explore.machines.machine_plane import machine_plane
    from setclr.explore.machines.ray import ray
    from setclr.explore.machines.solver_race import solver_race
    from setclr.explore.machines.street import street
    from setclr.explore.machines.support_images import support_images
    from setclr.explore.sets.qare_descent import qare_descent
    from setclr.explore.sets.quadratic_histogram import quadratic_histogram
    from setclr.explore.sets.same_pairs import same_pairs
    from setclr.explore.sets.spectra import spectra
    from setclr.explore.sets.spreading import spreading
    from setclr.explore.sets.two_lists import two_lists
    from setclr.explore.sets.two_shapes import two_shapes
    from setclr.explore.sorting.beads import beads
    from setclr.explore.sorting.downhill import downhill
    from setclr.explore.sorting.first_places import first_places
    from setclr.explore.sorting.five_numbers import five_numbers
    from setclr.explore.sorting.group_order import group_order
    from setclr.explore.sorting.photo_wires import photo_wires
    from setclr.explore.sorting.soft_swap import soft_swap
    from setclr.explore.sorting.sorting_wires import sorting_wires
    from setclr.explore.sparse.pushes import pushes
    from setclr.explore.sparse.share_triangle import share_triangle
    from setclr.explore.sparse.simplex_triangle import simplex_triangle
    from setclr.explore.sparse.support_drag import support_drag
    from setclr.explore.sparse.water import water
    from setclr.explore.trained.class_confusions import class_confusions
    from setclr.explore.trained.crop_pair import crop_pair
    from setclr.explore.trained.feature_maps import feature_maps
    from setclr.explore.trained.found_again import found_again
    from setclr.explore.trained.holm_steps import holm_steps
    from setclr.explore.trained.knob_curves import knob_curves
    from setclr.explore.trained.multi_crop import multi_crop
    from setclr.explore.trained.normal_map import normal_map
    from setclr.explore.trained.paired_gaps import paired_gaps
    from setclr.explore.trained.recorded_curves import recorded_curves
    from setclr.explore.trained.small_figures import small_figures
    from setclr.explore.trained.temperature_and_beta import temperature_and_beta
    from setclr.explore.trained.training_film import training_film

__all__ = [
    "anchor_list",
    "assignment_plane",
    "beads",
    "class_confusions",
    "clip_strips",
    "constraint_family",
    "coupled_patches",
    "crop_pair",
    "downhill",
    "even_negatives",
    "family_gradients",
    "family_matrices",
    "feature_maps",
    "first_places",
    "five_numbers",
    "found_again",
    "graph_column",
    "group_order",
    "holm_steps",
    "hub",
    "knob_curves",
    "loss_costs",
    "machine_plane",
    "matching_game",
    "matching_lines",
    "matching_pools",
    "molecule_matching",
    "molecule_views",
    "moving_camera",
    "multi_crop",
    "nearest_clips",
    "normal_map",
    "one_idea",
    "pair_curves",
    "paired_gaps",
    "pairings",
    "photo_wires",
    "pushes",
    "qare_descent",
    "quadratic_histogram",
    "ray",
    "recorded_curves",
    "same_pairs",
    "sand",
    "share_triangle",
    "side_by_side",
    "simplex_triangle",
    "sinkhorn_rounds",
    "small_figures",
    "soft_swap",
    "softened_assignment",
    "solver_race",
    "sorting_wires",
    "spectra",
    "sphere",
    "spreading",
    "step_shares",
    "street",
    "support_drag",
    "support_images",
    "temperature_and_beta",
    "training_costs",
    "training_film",
    "trap_pushes",
    "two_lists",
    "two_shapes",
    "video_column",
    "water",
    "who_is_it",
]


if not TYPE_CHECKING:  # or every name would pass for a panel

    def __getattr__(name: str) -> Any:
        if name in __all__:
            for folder in iter_modules(__path__, f"{__name__}."):
                if find_spec(place := f"{folder.name}.{name}"):
                    return globals().setdefault(name, getattr(import_module(place), name))
        raise AttributeError(f"module 'setclr.explore' has no panel {name!r}")


def __dir__() -> list[str]:
    return __all__
