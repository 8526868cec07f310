"""Slider panels, one in each file: each name in `__all__` is a function that returns a `Panel`.

A panel's file is imported when the panel is first asked for: all of them take as long as torch does.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setclr_course.panels.assignments.assignment_plane import assignment_plane
    from setclr_course.panels.assignments.matching_game import matching_game
    from setclr_course.panels.assignments.matching_pools import matching_pools
    from setclr_course.panels.assignments.pair_curves import pair_curves
    from setclr_course.panels.assignments.pairings import pairings
    from setclr_course.panels.assignments.softened_assignment import softened_assignment
    from setclr_course.panels.assignments.who_is_it import who_is_it
    from setclr_course.panels.clips.clip_strips import clip_strips
    from setclr_course.panels.clips.moving_camera import moving_camera
    from setclr_course.panels.clips.nearest_clips import nearest_clips
    from setclr_course.panels.clips.video_column import video_column
    from setclr_course.panels.costs.loss_costs import loss_costs
    from setclr_course.panels.costs.step_shares import step_shares
    from setclr_course.panels.costs.training_costs import training_costs
    from setclr_course.panels.couplings.constraint_family import constraint_family
    from setclr_course.panels.couplings.coupled_patches import coupled_patches
    from setclr_course.panels.couplings.even_negatives import even_negatives
    from setclr_course.panels.couplings.hub import hub
    from setclr_course.panels.couplings.matching_lines import matching_lines
    from setclr_course.panels.couplings.sand import sand
    from setclr_course.panels.couplings.sinkhorn_rounds import sinkhorn_rounds
    from setclr_course.panels.family.anchor_list import anchor_list
    from setclr_course.panels.family.family_gradients import family_gradients
    from setclr_course.panels.family.family_matrices import family_matrices
    from setclr_course.panels.family.one_idea import one_idea
    from setclr_course.panels.family.side_by_side import side_by_side
    from setclr_course.panels.family.sphere import sphere
    from setclr_course.panels.family.trap_pushes import trap_pushes
    from setclr_course.panels.graphs.graph_column import graph_column
    from setclr_course.panels.graphs.molecule_matching import molecule_matching
    from setclr_course.panels.graphs.molecule_views import molecule_views
    from setclr_course.panels.machines.machine_plane import machine_plane
    from setclr_course.panels.machines.ray import ray
    from setclr_course.panels.machines.solver_race import solver_race
    from setclr_course.panels.machines.street import street
    from setclr_course.panels.machines.support_images import support_images
    from setclr_course.panels.sets.qare_descent import qare_descent
    from setclr_course.panels.sets.quadratic_histogram import quadratic_histogram
    from setclr_course.panels.sets.same_pairs import same_pairs
    from setclr_course.panels.sets.spectra import spectra
    from setclr_course.panels.sets.spreading import spreading
    from setclr_course.panels.sets.two_lists import two_lists
    from setclr_course.panels.sets.two_shapes import two_shapes
    from setclr_course.panels.sorting.beads import beads
    from setclr_course.panels.sorting.downhill import downhill
    from setclr_course.panels.sorting.first_places import first_places
    from setclr_course.panels.sorting.five_numbers import five_numbers
    from setclr_course.panels.sorting.group_order import group_order
    from setclr_course.panels.sorting.photo_wires import photo_wires
    from setclr_course.panels.sorting.soft_swap import soft_swap
    from setclr_course.panels.sorting.sorting_wires import sorting_wires
    from setclr_course.panels.sparse.pushes import pushes
    from setclr_course.panels.sparse.share_triangle import share_triangle
    from setclr_course.panels.sparse.simplex_triangle import simplex_triangle
    from setclr_course.panels.sparse.support_drag import support_drag
    from setclr_course.panels.sparse.water import water
    from setclr_course.panels.trained.class_confusions import class_confusions
    from setclr_course.panels.trained.crop_pair import crop_pair
    from setclr_course.panels.trained.feature_maps import feature_maps
    from setclr_course.panels.trained.found_again import found_again
    from setclr_course.panels.trained.holm_steps import holm_steps
    from setclr_course.panels.trained.knob_curves import knob_curves
    from setclr_course.panels.trained.multi_crop import multi_crop
    from setclr_course.panels.trained.normal_map import normal_map
    from setclr_course.panels.trained.paired_gaps import paired_gaps
    from setclr_course.panels.trained.recorded_curves import recorded_curves
    from setclr_course.panels.trained.small_figures import small_figures
    from setclr_course.panels.trained.temperature_and_beta import temperature_and_beta
    from setclr_course.panels.trained.training_film import training_film

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
        raise AttributeError(f"module 'setclr_course.panels' has no panel {name!r}")


def __dir__() -> list[str]:
    return __all__
