"""The four papers: rows of tables as data, evaluation protocols, and code that only their tables need.

The rows are in TOML files, one for each paper, the weights of QARe among them (QARe, table 4). Names are
imported on first use, because the library's command reads the rows alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setclr_course.papers.fine_tuning import fine_tune
    from setclr_course.papers.landmarks import Landmarks, landmark_features, load_landmarks
    from setclr_course.papers.normals import fit_normals, load_normals, normal_errors
    from setclr_course.papers.shots import few_shot
    from setclr_course.papers.tables import graph_results, video_results
    from setclr_course.papers.transfers import few_shot_transfer, transfer

MODULES = {"Landmarks": "landmarks", "few_shot": "shots", "few_shot_transfer": "transfers",
           "fine_tune": "fine_tuning", "fit_normals": "normals", "graph_results": "tables",
           "landmark_features": "landmarks", "load_landmarks": "landmarks", "load_normals": "normals",
           "normal_errors": "normals", "transfer": "transfers", "video_results": "tables"}  # fmt: skip
__all__ = ["Landmarks", "few_shot", "few_shot_transfer", "fine_tune", "fit_normals", "graph_results",
           "landmark_features", "load_landmarks", "load_normals", "normal_errors", "transfer",
           "video_results"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return getattr(import_module(f"setclr_course.papers.{MODULES[name]}"), name)
    raise AttributeError(f"module 'setclr_course.papers' has no attribute {name!r}")
