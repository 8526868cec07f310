"""The files around the library say the same: pyproject.toml, environment.yml, constraints, Makefile.

The wheel holds the whole library, and works with the packages of the losses alone as far as these go.
"""

import asyncio
import json
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from unittest import mock

import pytest
import yaml
from capabilities import capabilities
from features import FEATURES, LIBRARIES, features
from jupyter_client.session import Session
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from packaging.requirements import Requirement
from traitlets import import_item

import setclr
from setclr.cli.parsing import command
from setclr_course import at_once
from setclr_course.teach.cards import CARDS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ASKED = sum(EXTRAS.values(), PROJECT["dependencies"])
ASKED = [line for line in ASKED if not line.startswith("setclr[")]  # all packages from elsewhere
PAGES = ["README.md", "data/README.md", "site/text/library.md", "site/text/training.md"]
DOCUMENTS = [*ROOT.glob("*.md"), ROOT / "data" / "README.md"]
README = (ROOT / "README.md").read_text()


def pins(lines) -> dict[str, str]:
    return {r.name.lower(): str(r.specifier) for r in map(Requirement, lines)}


def test_environment_yml_has_the_bounds_of_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, last = environment["dependencies"]
    assert environment["channels"] == ["conda-forge"] and last["pip"].pop() == "-e ."
    assert {"torch", "torchvision"} <= set(pins(last["pip"]))
    found = pins([line for line in conda if line != "pip"]) | pins(last["pip"])
    assert found.pop("python") == PROJECT["requires-python"]
    assert found == pins(ASKED)


def test_what_a_package_of_the_lab_is_for_is_said_in_both_files_and_what_ships_uses_it():
    """The course and its pages import it; `make lab` opens JupyterLab, and papermill runs the pages."""
    texts = [(ROOT / name).read_text() for name in ("pyproject.toml", "environment.yml")]
    said = [dict(re.findall(r"(?m)^\W*([\w.-]+>=[\d.]+)\W* # (.+)$", text)) for text in texts]
    files = [*ROOT.glob("lib/setclr_course/**/*.py"), *ROOT.glob("notebooks/**/*.ipynb")]
    ships = "\n".join(path.read_text() for path in files)
    used = {"papermill": (ROOT / "tests/tools/notebook_tools.py").read_text()}
    used["jupyterlab"] = made("lab").replace("jupyter lab ", "import jupyterlab ")
    for line in EXTRAS["lab"][1:]:
        assert said[0][line] == said[1][line]
        name = Requirement(line).name
        assert re.search(rf"\b(import|from) {name}\b", used.get(name, ships)), line


def test_everything_asked_for_is_constrained_and_within_its_bounds():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.strip()]
    assert not [line for line in lines if "/" in line or "http:" in line or "@" in line]
    for requirement in map(Requirement, ASKED):
        pins_of_it = [pin for pin in map(Requirement, lines) if pin.name.lower() == requirement.name.lower()]
        assert pins_of_it, requirement
        for pin in pins_of_it:
            (version,) = (s.version for s in pin.specifier)
            assert requirement.specifier.contains(version), f"{requirement} against {pin}"


def ran(*command, **how) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, **how)


def made(*words: str) -> str:
    """What make would do."""
    return ran("make", "-n", *words, cwd=ROOT, check=True).stdout


def test_jupyterlab_listens_to_this_machine_alone_with_its_token():
    (command,) = [line for line in made("lab").splitlines() if "jupyter lab " in line]
    assert "--ip 127.0.0.1" in command and "notebooks/00_start_here.ipynb" in command
    assert "token" not in command and "password" not in command


@pytest.fixture
def connection():
    """JupyterLab's connection to a kernel, as `make lab` makes it."""
    (named,) = re.findall(r"--ServerApp.kernel_websocket_connection_class=(\S+)", made("lab"))
    return import_item(named)(websocket_handler=mock.Mock(spec=KernelWebsocketHandler), session=Session())


def test_jupyterlab_sends_a_kernels_answers_at_once(connection, monkeypatch):
    monkeypatch.setattr(type(connection).__base__, "connect", lambda self: "connected")
    assert connection.connect() == "connected"
    connection.websocket_handler.set_nodelay.assert_called_once_with(True)


@pytest.mark.parametrize("kind, moment, said", [
    ("comm_msg", 600, ["display_data", "idle"]), ("comm_msg", 0, ["display_data", "busy", "idle"]),
    ("execute_request", 600, ["busy", "display_data", "idle"]),
])  # fmt: skip
def test_a_busy_moment_of_a_widget_is_no_news(connection, kind, moment, said, monkeypatch):
    """JupyterLab would draw its toolbars anew in each step of a drag."""
    heard, session = [], connection.session
    base = type(connection).__base__
    monkeypatch.setattr(base, "handle_outgoing_message", lambda _, stream, message: heard.append(message))
    monkeypatch.setattr(at_once, "MOMENT", moment)
    request = session.msg(kind)
    busy, idle = (("status", {"execution_state": state}) for state in ("busy", "idle"))
    messages = (session.msg(*what, parent=request) for what in (busy, ("display_data",), idle))
    busy, shown, idle = map(session.serialize, messages)

    async def kernel() -> None:
        for message in (busy, shown):
            connection.handle_outgoing_message("iopub", message)
        await asyncio.sleep(0.01)
        connection.handle_outgoing_message("iopub", idle)

    asyncio.run(kernel())
    names = {id(busy): "busy", id(shown): "display_data", id(idle): "idle"}
    assert [names[id(message)] for message in heard] == said and connection.later is None


def test_a_machine_without_python_gets_one_sentence(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    ended = ran("make", "-s", "test", "PYTHON=", cwd=tmp_path)
    assert ended.returncode != 0 and ended.stdout.startswith("SetCLR needs Python 3.11 or newer")


def test_make_installs_every_extra():
    (asked,) = re.findall(r"-e '\.\[(.*)\]'", (ROOT / "Makefile").read_text())
    assert set(asked.split(",")) | {"train"} == set(EXTRAS)
    assert "setclr[train]" in EXTRAS["lab"]


def test_no_address_is_invented():
    """An address that is not ours can become anybody's: only those of [project.urls] may stand."""
    patterns = ["CITATION.cff", "Makefile", "pyproject.toml", "site/**/*.*", "notebooks/**/*.ipynb",
                "notebooks/**/*.md", "lib/**/*.py"]  # fmt: skip
    for page in [*DOCUMENTS, *(path for some in patterns for path in ROOT.glob(some))]:
        text = page.read_text(errors="replace")  # letters are no text
        for address in PROJECT.get("urls", {}).values():
            text = text.replace(address, "")
        found = re.search(r"github(\.com)?/setclr|git\+http|/project/setclr|setclr\.(org|io|dev|com)\b", text)
        assert not found, f"{page}: {found}"


def test_the_tables_of_what_losses_take_are_made_from_them():
    made_of = capabilities()
    assert made_of in (ROOT / "site/text/library.md").read_text(), "python tests/tools/capabilities.py"
    rows = [line.strip("| ").split(" | ") for line in made_of.splitlines()[2:]]
    takes = {name.strip("`"): marks[:4] for name, *marks in rows}
    shown = re.findall(r"(?m)^\| \[(\w+)\]\(.*?\) \|.*?\|.*?\| (.) \| (.) \| (.) \| (.) \|", README)
    assert {name: list(marks) for name, *marks in shown} == {name: takes[name] for name in CARDS}


PACKAGES = ("setclr", "lightly", "solo", "pytorch_metric_learning", "open_clip")  # of LIBRARIES


@pytest.mark.parametrize("library, package", [*zip(LIBRARIES, PACKAGES)])
def test_the_table_beside_other_libraries_has_names_that_are_there(library, package):
    pytest.importorskip(package)
    for names in FEATURES.values():
        assert library not in names or pkgutil.resolve_name(names[library])
    assert features() in (ROOT / "site/text/library.md").read_text(), "python tests/tools/features.py"


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"(?m)^## (\S+),? ", (ROOT / "CHANGELOG.md").read_text()).group(1).strip(",")
    assert setclr.__version__ == citation["version"] == newest


def test_the_commands_of_the_pages_can_be_typed():
    """Read as the command line reads them, and not carried out."""
    text = "".join((ROOT / page).read_text() for page in PAGES)
    blocks = "".join(re.findall(r"```bash\n(.*?)```", text, re.S))
    found = re.findall(r"(?m)^.*\bsetclr (\w+ .*)$", blocks.replace("\\\n", "").replace("$lr", "0.01"))
    for line in found:
        line = line.replace("pretrain $name", "pretrain photo-groco").replace("--seed $seed", "--seed 0")
        command(shlex.split(line, comments=True))
    assert len(found) > 12


def test_what_the_pages_import_is_there_and_so_are_the_new_places_in_the_changelog():
    newest = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1]  # or what is not released yet
    rows = re.findall(r"(?m)^\| .*`.* \| (.*) \|$", newest)
    names = [name for name in re.findall(r"`(setclr[\w.]*)`", " ".join(rows)) if "NAME" not in name]
    assert len(names) > 20
    for page in PAGES:
        found = re.findall(r"(?m)^from (setclr[\w.]*) import (.*)$", (ROOT / page).read_text())
        assert found
        names += [f"{module}.{name}" for module, some in found for name in some.split(", ")]
    for name in names:
        assert pkgutil.resolve_name(name) is not None


def test_links_of_the_documents_lead_somewhere():
    for page in DOCUMENTS:
        text = page.read_text()
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", text) + re.findall(r"(?m)^\[.*\]: (.*)$", text):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_the_containers_use_what_make_uses():
    """Their commands, as far as a machine without Docker can tell: `make` knows each of them."""
    docker = (ROOT / "Dockerfile").read_text()
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).samefile(ROOT / "Dockerfile")
    (started,) = re.findall(r"(?m)^CMD (.*)$", docker)
    commands = [*re.findall(r"(?m)^RUN (make .*)$", docker), container["postCreateCommand"]]
    for line in [*map(shlex.split, commands), json.loads(started)]:
        said = made(*(word.replace("$INDEX", "1") for word in line[1:]))
    assert re.findall(r"--ip\S* (\S+)", said) == ["0.0.0.0"], "Jupyter refuses an option that is given twice"
    assert f"AS {container['build']['target']}\n" in docker, "a clone's container installs once"
    user, *_ = re.findall(r"(?m)^USER (.*)$", docker)
    assert user == container["remoteUser"] != "root"


# The wheel

REST = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.ipynb")
PIP = [sys.executable, "-m", "pip"]
OFFLINE = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built without a network from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "lib", folder / "lib", ignore=REST)
    subprocess.run([*PIP, "wheel", *OFFLINE, "--no-build-isolation", "."], cwd=folder, check=True)
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
    subprocess.run([*PIP, "--python", python, "install", *OFFLINE, wheel], check=True)
    return python


def said(python: Path, script: str) -> str:
    ended = ran(python, "-I", "-c", script, cwd="/")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_every_file_of_the_library_and_nothing_of_the_course_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if re.match("setclr(?!.*dist-info)", name)}
    files = {path.relative_to(ROOT / "lib") for path in ROOT.glob("lib/setclr/**/*") if path.is_file()}
    assert inside == {str(path) for path in files if "__pycache__" not in path.parts} >= {"setclr/py.typed"}


def test_recipes_and_the_loop_of_the_readme_work_with_the_core_alone(bare):
    """The loop with two batches, a model and an optimiser as a reader has them."""
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    script = f"""
import sys
import torch
from setclr.recipes import ImageRecipe

batches = [torch.randn(2, 16, 3, 8, 8).unbind() for _ in range(2)]
last = torch.nn.BatchNorm1d(8, affine=False)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 8), last)
optimiser, before = torch.optim.SGD(model.parameters(), 0.1), model[1].weight.clone()
{snippet}
assert ImageRecipe("InfoNCE()").encoder == "conv4" and "setclr.recipes.named" not in sys.modules
print(tuple(loss.assignment(z).shape), torch.equal(model[1].weight, before))
"""
    assert said(bare, script) == "(32, 32) False\n"


MODULES = ("setclr", "setclr.losses", "setclr.inner", "setclr.evaluation", "setclr.training")
LACKS = r"setclr needs \w+ for this, which is not installed: pip install 'setclr\[train\]'\n"
STATEMENTS = [
    "import setclr.data", "from setclr.evaluation import features", "import setclr.experiments",
    "from setclr import pretrain", "from setclr.training import Trainer",
    "from setclr.models import encoder; encoder('resnet18')",
]  # fmt: skip


def test_what_needs_more_says_so_in_a_sentence_and_all_else_needs_torch_alone(bare):
    """What reads images or writes tables, and trains; of the public names these alone."""
    names = [f"{module} import {name}" for module in MODULES for name in import_module(module).__all__]
    script = f"""
for statement in {[*STATEMENTS, *(f"from {name}" for name in names)]}:
    try:
        exec(statement)
    except ModuleNotFoundError as error:
        print(statement.split()[-1], "|", error)
"""
    lines = [line.partition(" | ") for line in said(bare, script).splitlines(keepends=True)]
    assert all(re.fullmatch(LACKS, sentence) for *_, sentence in lines)
    of_images = {"Batching", "ImageViews", "LoaderViews", "Source", "Step", "features", "pixels"}
    assert {name for name, *_ in lines[len(STATEMENTS) :]} == of_images | {"Trainer", "pretrain"}


def test_the_command_is_installed_and_names_what_it_lacks(bare):
    command = bare.parent / "setclr"
    assert "pretrain RECIPE" in ran(command, "--help").stdout
    ended = ran(command, "recipes")
    assert ended.returncode == 1 and re.fullmatch(f"setclr: {LACKS}", ended.stderr)
