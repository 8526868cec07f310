"""The files around the library say the same: pyproject.toml, environment.yml, constraints, Makefile."""

import json
import pkgutil
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import yaml
from packaging.requirements import Requirement
from scipy import stats

import setclr
from setclr.cli.parsing import command
from setclr.experiments.records import read_record, spread
from setclr.losses import capabilities
from setclr.recipes import PUBLISHED
from setclr_course.papers.tables import graph_curves, recorded
from setclr_course.search import comparing
from setclr_course.search.hyperparameters import HYPERPARAMETERS, RATES, WEIGHT
from setclr_course.search.statistics import paired
from setclr_course.teach.cards import CARDS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
TEXTS = ["site/text/library.md", "site/text/training.md"]
ASKED = [  # all packages from elsewhere
    line for line in sum(EXTRAS.values(), PROJECT["dependencies"]) if not line.startswith("setclr[")
]


def flat(name: str) -> str:
    """A page in one line, so that words are found wherever its lines end."""
    return " ".join((ROOT / name).read_text().split())


README, RESULTS = flat("README.md"), flat("site/text/results.md")


def pins(lines) -> dict[str, str]:
    return {r.name.lower(): str(r.specifier) for r in map(Requirement, lines)}


def test_environment_yml_has_the_bounds_of_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["channels"] == ["conda-forge"]
    *conda, last = environment["dependencies"]
    assert last["pip"].pop() == "-e ."
    assert {"torch", "torchvision"} <= set(pins(last["pip"]))
    found = pins([line for line in conda if line != "pip"]) | pins(last["pip"])
    assert found.pop("python") == PROJECT["requires-python"]
    assert found == pins(ASKED)


def test_everything_asked_for_is_constrained_and_within_its_bounds():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.strip()]
    assert not [line for line in lines if "/" in line or "http:" in line or "@" in line]
    constrained = {}
    for requirement in map(Requirement, lines):
        constrained.setdefault(requirement.name.lower(), []).append(requirement)
    for requirement in map(Requirement, ASKED):
        for pin in constrained[requirement.name.lower()]:
            (version,) = (s.version for s in pin.specifier)
            assert requirement.specifier.contains(version), f"{requirement} against {pin}"


def made(*words: str) -> str:
    """What make would do."""
    command = ["make", "-n", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_jupyterlab_listens_to_this_machine_alone_with_its_token():
    (command,) = [line for line in made("lab").splitlines() if "jupyter lab " in line]
    assert "--ip 127.0.0.1" in command and "notebooks/00_start_here.ipynb" in command
    assert "token" not in command and "password" not in command


def test_a_machine_without_python_gets_one_sentence(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    made = subprocess.run(["make", "-s", "test", "PYTHON="], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode != 0 and made.stdout.startswith("SetCLR needs Python 3.11 or newer")


def test_make_installs_every_extra():
    (asked,) = re.findall(r"-e '\.\[(.*)\]'", (ROOT / "Makefile").read_text())
    assert set(asked.split(",")) | {"train"} == set(EXTRAS)
    assert "setclr[train]" in EXTRAS["lab"]


def test_no_address_is_invented():
    """An address that is not ours can become anybody's: only those of [project.urls] may stand."""
    names = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "Makefile", "pyproject.toml",
             "data/README.md", "TEACHING.md"]  # fmt: skip
    patterns = "site/**/*.*", "notebooks/**/*.ipynb", "notebooks/**/*.md", "lib/**/*.py"
    for page in [ROOT / name for name in names] + [path for some in patterns for path in ROOT.glob(some)]:
        text = page.read_text()
        for address in PROJECT.get("urls", {}).values():
            text = text.replace(address, "")
        found = re.search(r"github(\.com)?/setclr|git\+http|/project/setclr|setclr\.(org|io|dev|com)\b", text)
        assert not found, f"{page}: {found}"


def test_the_tables_of_what_losses_take_are_made_from_them():
    made_of = capabilities()
    assert made_of in (ROOT / "site/text/library.md").read_text(), "print(setclr.losses.capabilities())"
    rows = [line.strip("| ").split(" | ") for line in made_of.splitlines()[2:]]
    takes = {name.strip("`"): marks[:4] for name, *marks in rows}
    table = (ROOT / "README.md").read_text()
    shown = re.findall(r"(?m)^\| \[(\w+)\]\(.*?\) \|.*?\|.*?\| (.) \| (.) \| (.) \| (.) \|", table)
    assert {name: list(marks) for name, *marks in shown} == {name: takes[name] for name in CARDS}


def test_the_readme_is_short_and_its_picture_light():
    assert len(README.split()) <= 900
    assert (ROOT / "TEACHING.md").stat().st_size <= 25_600
    (picture,) = re.findall(r"!\[[^\]]+\]\((.*?)\)", README)
    assert (ROOT / picture).stat().st_size < 1.5e6


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"(?m)^## (\S+),? ", (ROOT / "CHANGELOG.md").read_text()).group(1).strip(",")
    assert setclr.__version__ == citation["version"] == newest


def test_the_commands_of_the_pages_can_be_typed():
    """Read as the command line reads them, and not carried out."""
    found = []
    for page in ("README.md", "data/README.md", *TEXTS):
        for block in re.findall(r"```bash\n(.*?)```", (ROOT / page).read_text(), re.S):
            found += re.findall(r"(?m)^.*\bsetclr (\w+ .*)$", block.replace("\\\n", ""))
    for line in found:
        line = line.replace("pretrain $name", "pretrain photo-groco").replace("--seed $seed", "--seed 0")
        command(shlex.split(line, comments=True))
    assert len(found) > 12


def test_what_the_pages_import_is_there_and_so_are_the_new_places_in_the_changelog():
    unreleased, newest = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:3]
    rows = re.findall(r"(?m)^\| .*`.* \| (.*) \|$", unreleased + newest)
    names = [name for name in re.findall(r"`(setclr[\w.]*)`", " ".join(rows)) if "NAME" not in name]
    assert len(names) > 20
    for page in ("README.md", *TEXTS):
        found = re.findall(r"(?m)^from (setclr[\w.]*) import (.*)$", (ROOT / page).read_text())
        assert found
        names += [f"{module}.{name}" for module, some in found for name in some.split(", ")]
    for name in names:
        assert pkgutil.resolve_name(name) is not None


COLUMN = {
    "random weights": "table2 random", "SimCLR": "table2 simclr", "SimCLR + QARe": "table2 simclr+qare",
    "SparseCLR": "table3 sparseclr", "SparseCLR + QARe": "table3 sparseclr+qare",
    "supervised": "table2 supervised", "Deep InfoMax": "table2 deepinfomax",
    "RotationNet": "table2 rotationnet", "DeepCluster": "table2 deepcluster",
}  # fmt: skip
CLAIM = ("SimCLR", "SimCLR + QARe", "SparseCLR", "SparseCLR + QARe")  # in the README


def of_column(title: str, folder: str) -> dict[int, float]:
    """What was published of a row of COLUMN, measured, by seed; of the records in that folder."""
    name = f"qare-{COLUMN[title].replace(' ', '-conv4-cifar10-')}"
    (metric,) = PUBLISHED[name].numbers  # "linear", or "classifier" where one was trained
    records = map(read_record, (ROOT / "data/results" / folder).glob(f"{name}-seed*.json"))
    return {one["recipe"]["seed"]: one["accuracy_percent"]["trained"][metric] for one in records}


def gap(a: dict[int, float], b: dict[int, float]) -> str:
    """The difference a − b, paired by seed: a mean with its interval, or that of one seed."""
    both = sorted(a.keys() & b.keys())
    if len(both) == 1:
        return f"{a[both[0]] - b[both[0]]:.1f}".replace("-", "−")
    mean, low, high, _ = paired([a[seed] for seed in both], [b[seed] for seed in both])
    return f"{mean + 0.0:.1f} (95 %: {low:.1f} to {high:.1f})".replace("-", "−")


def test_the_column_is_the_recorded_one():
    """Means, spreads and differences of QARe's column: on original pixels in the README and on the page of
    results, on JPEG where there is no other; the gain with its interval; what JPEG costs."""
    for title, name in COLUMN.items():
        row = PUBLISHED[f"qare-{name.replace(' ', '-conv4-cifar10-')}"]
        own, jpeg = (of_column(title, folder) for folder in ("original", "jpeg75"))
        ours, ((metric, printed),) = own or jpeg, row.numbers.items()
        seeds, mean = ", ".join(map(str, sorted(ours))), np.mean(list(ours.values()))
        shown, off = str(row).removeprefix(f"{metric} "), f"{mean - printed:.1f}".replace("-", "−")
        line = f"| {title} | {shown} | {spread(list(ours.values()))} | {seeds} | {off} |"
        assert line in RESULTS and (line in README) == (title in CLAIM)
        if own:
            short, cost = title.replace("supervised", "supervised training"), gap(own, jpeg)
            assert f"{short} loses {cost}" in RESULTS or f"{short} {cost}" in RESULTS
    qare, plain = (
        [of_column(f"{loss}{more}", "original") for loss in CLAIM[::2]] for more in (" + QARe", "")
    )
    first, second = map(gap, qare, plain)
    assert f"the gain on SimCLR is {first.replace(' (', ' here (')}, that on SparseCLR {second}" in RESULTS
    assert f"{first} on SimCLR and {second} on SparseCLR" in README


def trained_as(folder: str, metric: str) -> list[float]:
    """A measure of all records of a folder of data/results, seed by seed."""
    paths = sorted((ROOT / "data/results" / folder).glob("*-seed*.json"))
    assert [path.stem[-1] for path in paths] == ["0", "1", "2"]
    return [read_record(path)["accuracy_percent"]["trained"][metric] for path in paths]


def test_what_was_tried_to_explain_the_column_is_recorded():
    """Both means and spreads, and the interval of the difference."""
    one, other = (trained_as(f"deepcluster/{folder}", "linear") for folder in ("recipe", "program"))
    less, low, high, _ = paired(one, other)
    said = f"{spread(one)} against {spread(other)}, {less:.1f} less (95 %: {low:.1f} to {high:.1f})"
    assert said.replace("-", "−") in RESULTS


def test_the_authors_supervised_training_is_the_recorded_one():
    """Both means and spreads, and Welch's interval: their seeds are not ours."""
    kept = json.loads((ROOT / "data/results/supervised/program.json").read_text())
    theirs, ours = list(kept["classifier_percent"].values()), trained_as("supervised/ours", "classifier")
    assert kept["epochs"] == 50 and len(theirs) == 3
    low, high = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    said = f"has {spread(theirs)} (`tests/tools/supervised_program.py`); ours has {spread(ours)} "
    said += f"(their difference, 95 %, Welch: {low:.1f} to {high:.1f})"
    assert said.replace("-", "−") in RESULTS


def test_the_searched_comparison_is_the_recorded_one():
    """Settings, means and spreads of all losses; which pairs are told apart; which settings are at an end."""
    runs = comparing.read(ROOT / "data/results/search")
    runs["name"] = runs["name"].str.removeprefix("compare-photo-")
    ends = set()
    for name, of in runs.groupby("name"):
        lr, parameter, value = of[["lr", "hyperparameter", "value"]].iloc[0]
        line = f"| {name} | {lr:g} | {parameter} {value:g} | {spread(of.knn)} | {spread(of.linear)} |"
        assert line in RESULTS and len(of) == 5
        values = next(one.values for one in [*HYPERPARAMETERS.values(), WEIGHT] if one.name == parameter)
        if {lr, value} & {values[0], values[-1], RATES[0], RATES[-1]}:
            ends.add(name)
    assert not runs["collapsed"].any()
    assert ends == {"infonce+qare", "sparseclr+qare", "iot-rows", "mmcl-exact"}
    pairs = comparing.pairs(runs)
    kept = pairs[pairs["holm"] <= 0.05]
    assert set(kept["metric"]) == {"linear"} and len(pairs) == 2 * 36
    better = {pair.a if pair.difference > 0 else pair.b for pair in kept.itertuples()}
    worse = {pair.b if pair.difference > 0 else pair.a for pair in kept.itertuples()}
    assert (better, worse) == ({"infonce", "iot-rows-uniform", "mmcl-exact"}, {"sparseclr"})
    assert all(of.median() >= 7 for _, of in ((pairs["high"] - pairs["low"]) / 2).groupby(pairs["metric"]))


MUTAG = {  # the row that the paper printed, and ours; which of MMCL's two solvers it took it does not say
    "GraphCL, MUTAG": ("mmcl-table4-mutag-graphcl", "mmcl-table4-mutag-graphcl"),
    "MMCL, MUTAG": ("mmcl-table4-mutag-mmcl", "mmcl-table4-mutag-mmcl"),
    "MMCL exact, MUTAG": ("mmcl-table4-mutag-mmcl", "graphs-mutag-mmcl-exact"),
}


def test_the_mutag_column_is_the_recorded_one():
    """Its printed rows in the README, all of it on the page of results, beside the untrained encoder."""
    found = recorded(ROOT / "data/results", "graph", "mutag")
    kept = {name: [(x[-1], max(x)) for x in graph_curves(runs)] for name, runs in found.items()}
    last, best = ({name: [pair[i] for pair in pairs] for name, pairs in kept.items()} for i in (0, 1))
    for title, (row, name) in MUTAG.items():
        off = f"{np.mean(last[name]) - PUBLISHED[row].numbers['svm']:.1f}".replace("-", "−")
        shown = str(PUBLISHED[row]).removeprefix("svm ")
        assert f"| {title} | {shown} | {spread(last[name])} | 0–4 | {off} |" in README
    for name in kept:
        method, printed = name.split("-mutag-")[1], PUBLISHED.get(name)
        shown = str(printed).removeprefix("svm ") if printed else "–"
        assert f"| {method} | {shown} | {spread(last[name])} | {spread(best[name])} |" in RESULTS
    assert f"untrained has {spread(last['graphs-mutag-untrained'])}" in README


def test_links_of_the_readme_lead_somewhere():
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "TEACHING.md", "data/README.md"):
        text = (ROOT / page).read_text()
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", text) + re.findall(r"(?m)^\[.*\]: (.*)$", text):
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_the_containers_use_what_make_uses():
    """Their commands, as far as a machine without Docker can tell: `make` knows each of them."""
    docker = (ROOT / "Dockerfile").read_text()
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).samefile(ROOT / "Dockerfile")
    (started,) = re.findall(r"(?m)^CMD (.*)$", docker)
    commands = [*re.findall(r"(?m)^RUN (make .*)$", docker), container["postCreateCommand"]]
    for line in [*map(shlex.split, commands), json.loads(started)]:
        made(*(word.replace("$INDEX", "1") for word in line[1:]))
    user, *_ = re.findall(r"(?m)^USER (.*)$", docker)
    assert user == container["remoteUser"] != "root"
