"""The course's notebooks, as tests/tools/notebook_tools.py lists them."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

sys.path.insert(0, str(ROOT / "tests" / "tools"))
from notebook_tools import FOLDER, HANGS, chosen, every_notebook, joined, name_of, notebooks  # noqa: E402

__all__ = ["FOLDER", "HANGS", "HERE", "ROOT", "chosen", "every_notebook", "joined", "name_of", "notebooks"]
