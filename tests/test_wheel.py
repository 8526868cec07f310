"""The wheel holds the whole library, and works with the packages of the losses alone as far as these go."""

import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
REST = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.ipynb")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built without a network from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "lib", folder / "lib", ignore=REST)
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "."], cwd=folder, check=True)
    (built,) = folder.glob("*.whl")
    return built


def needed(name: str, found: set[str]) -> set[str]:
    """The distributions that one asks for on this machine, its own name included."""
    found.add(name)
    for requirement in map(Requirement, distribution(name).requires or []):
        asked = not requirement.marker or requirement.marker.evaluate({"extra": ""})
        if asked and requirement.name.lower() not in {one.lower() for one in found}:
            needed(requirement.name, found)
    return found


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory) -> Path:
    """The Python of an environment that holds the wheel, torch, numpy, scipy and what these ask for."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    for name in needed("torch", set()) | needed("numpy", set()) | needed("scipy", set()):
        parts = {path.parts[0] for path in distribution(name).files or () if path.parts[0] != ".."}
        for part in parts - {"__pycache__"}:
            if not (site / part).exists():
                (site / part).symlink_to(Path(str(distribution(name).locate_file(part))).resolve())
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "--python", python, "install", *options, wheel]
    subprocess.run(command, check=True)
    return python


def said(python: Path, script: str) -> str:
    ended = subprocess.run([python, "-I", "-c", script], capture_output=True, text=True, cwd="/")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_file_of_the_library_and_nothing_of_the_course_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = {
            name for name in archive.namelist() if name.startswith("setclr") and "dist-info" not in name
        }
    sources = (path for path in (ROOT / "lib" / "setclr").rglob("*") if path.is_file())
    assert "setclr/py.typed" in inside
    assert inside == {
        str(path.relative_to(ROOT / "lib")) for path in sources if "__pycache__" not in path.parts
    }


def test_losses_gather_and_recipes_work_with_the_core_alone(bare):
    script = """
import sys
import torch
from setclr.losses import GroCo, InfoNCE, QARe
from setclr.recipes import ImageRecipe
from setclr.training.distributed import gather

z = torch.randn(2, 8, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
loss = InfoNCE() + 0.5 * GroCo(negatives=3) + QARe()
loss(gather(z)).backward()
assert z.grad.isfinite().all() and loss.assignment(z).shape == (16, 16)
assert ImageRecipe("InfoNCE()").encoder == "conv4" and "setclr.recipes.named" not in sys.modules
print(sorted({"torchvision", "sklearn", "skimage", "pandas", "PIL", "tqdm", "tyro"} & set(sys.modules)))
"""
    assert said(bare, script) == "[]\n"


def test_the_loop_of_the_readme_runs_with_the_core_alone(bare):
    """With two batches, a model and an optimiser as a reader has them."""
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    script = f"""
import torch
batches = [torch.randn(2, 16, 3, 8, 8).unbind() for _ in range(2)]
last = torch.nn.BatchNorm1d(8, affine=False)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 8), last)
optimiser, before = torch.optim.SGD(model.parameters(), 0.1), model[1].weight.clone()
{snippet}
print(tuple(loss.assignment(z).shape), torch.equal(model[1].weight, before))
"""
    assert said(bare, script) == "(32, 32) False\n"


LACKS = r"setclr needs \w+ for this, which is not installed: pip install 'setclr\[train\]'\n"


STATEMENTS = [
    "import setclr.data", "from setclr.evaluation import features", "import setclr.experiments",
    "from setclr import pretrain", "from setclr.training import Trainer",
    "from setclr.models import encoder; encoder('resnet18')",
]  # fmt: skip


def test_what_needs_more_says_so_in_a_sentence(bare):
    script = f"""
for statement in {STATEMENTS}:
    try:
        exec(statement)
    except ModuleNotFoundError as error:
        print(error)
"""
    assert re.fullmatch(f"({LACKS}){{{len(STATEMENTS)}}}", said(bare, script))


def test_the_command_is_installed_and_names_what_it_lacks(bare):
    command = bare.parent / "setclr"
    assert "pretrain RECIPE" in subprocess.run([command, "--help"], capture_output=True, text=True).stdout
    ended = subprocess.run([command, "recipes"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert re.fullmatch(f"setclr: {LACKS}", ended.stderr)
