"""The structure of the two packages: who may import whom, how long things are, no hidden module or circle."""

import ast
import importlib
import io
import pkgutil
import re
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import setclr
import setclr_course
from setclr_course import panels

LIBRARY, COURSE = (Path(package.__file__).parent for package in (setclr, setclr_course))
FILES = sorted([*LIBRARY.rglob("*.py"), *COURSE.rglob("*.py")])
NAMES = [
    name
    for package in (setclr, setclr_course)
    for name in (
        package.__name__,
        *(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    )
]

# From the top down; an import leads to a lower floor, or stays within its package.
FLOORS = [
    {"setclr_course.teach"},
    {"setclr_course.panels"},
    {"setclr_course.costs", "setclr_course.papers", "setclr_course.run_page"},
    {"setclr_course.search"},
    {"setclr_course.kit"},
    {"setclr.__main__"},
    {"setclr.cli"},
    {"setclr.experiments"},
    {"setclr.evaluation"},
    {"setclr.graphs", "setclr.video"},
    {"setclr.training"},
    {"setclr.recipes"},
    {"setclr.losses", "setclr.data"},
    {"setclr.inner", "setclr.models", "setclr.views"},
    {"setclr.checks", "setclr.extras", "setclr.seeding"},
]


def part_of(module: str) -> str:
    """Package or single module directly under setclr or setclr_course; "" for these two themselves."""
    return ".".join(module.split(".")[:2]) if "." in module else ""


def module_of(path: Path) -> str:
    parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imports(path: Path, at_once: bool = False) -> set[str]:
    """The modules of ours that a file imports anywhere, inside functions too; or only those `at_once`."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if not at_once else iter(run_at_once(tree.body))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out from the package on"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inside & set(NAMES)) or {node.module}
    return {name for name in found if name.split(".")[0] in ("setclr", "setclr_course")}


def run_at_once(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that run when a module is imported."""
    found = []
    for node in body:
        found.append(node)
        if isinstance(node, ast.With | ast.Try) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test)
        ):
            found += run_at_once(node.body)
    return found


@cache
def graph() -> dict[str, set[str]]:
    """Each part with the other parts it imports."""
    edges: dict[str, set[str]] = {}
    for path in FILES:
        part = part_of(module_of(path))
        if part:
            edges.setdefault(part, set()).update({part_of(name) for name in imports(path)} - {part, ""})
    return edges


def height(part: str) -> int:
    return 1 + max((height(other) for other in graph()[part]), default=0)


def test_every_part_has_its_floor():
    assert set(graph()) == set().union(*FLOORS)


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_lead_downwards(path):
    floor = {part: i for i, parts in enumerate(FLOORS) for part in parts}
    part = part_of(module_of(path))
    for name in imports(path):
        if part and part_of(name) and part_of(name) != part:
            assert floor[part_of(name)] > floor[part], f"{module_of(path)} imports {name}"


@pytest.mark.parametrize("path", sorted(LIBRARY.rglob("*.py")), ids=module_of)
def test_the_library_never_uses_the_course(path):
    assert not {name for name in imports(path) if name.startswith("setclr_course")}


def test_no_modules_import_one_another_in_a_circle():
    """Those that run an import at once; a package stands for its __init__ alone."""
    edges = {module_of(path): imports(path, at_once=True) & set(NAMES) for path in FILES}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " → ".join((*above[above.index(name) :], name))
        if name not in done:
            for other in edges[name]:
                visit(other, (*above, name))
            done.add(name)

    for name in edges:
        visit(name, ())


def code_lines(path: Path) -> int:
    """Lines of a file that are no docstring, comment or blank."""
    source = path.read_text()
    bodies = (node.body for node in ast.walk(ast.parse(source)) if hasattr(node, "body"))
    first = (body[0] for body in bodies if isinstance(body, list) and body)
    docstrings = {
        line
        for node in first
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    nothing = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
               tokenize.ENDMARKER)  # fmt: skip
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in nothing:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def test_the_library_stays_small():
    """At most 9,550 lines of code, 15 files in `training`, and chains of imports of at most 11 parts."""
    assert sum(map(code_lines, LIBRARY.rglob("*.py"))) <= 9550
    assert sum(map(code_lines, (COURSE / "panels").rglob("*.py"))) <= 5500
    forms = {COURSE / "kit" / name for name in ("inner.py", "losses.py")}  # the inner problems in numpy
    assert sum(map(code_lines, {*(COURSE / "kit").rglob("*.py")} - forms)) <= 1000
    assert len(list((LIBRARY / "training").glob("*.py"))) <= 15
    assert max(height(part) for part in graph() if part.startswith("setclr.")) <= 11


@pytest.mark.parametrize("path", sorted((COURSE / "panels").glob("*/*.py")), ids=module_of)
def test_a_panels_file_is_short(path):
    """And so is its twin in JavaScript."""
    assert code_lines(path) <= 150
    functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
    assert max((f.end_lineno - f.lineno + 1 for f in functions), default=0) <= 40
    if (twin := path.with_suffix(".js")).exists():
        assert len(re.findall(r"(?m)^\s*(?!//)\S", twin.read_text())) <= 80


@pytest.mark.parametrize("name", NAMES)
def test_no_module_is_hidden_behind_a_name(name):
    """After `import setclr.a.b`, `setclr.a.b` is that module."""
    module = importlib.import_module(name)
    first, *rest = name.split(".")
    found = sys.modules[first]
    for part in rest:
        found = getattr(found, part)
    assert found is module is sys.modules[name]


def test_no_module_has_the_name_of_what_its_package_exports():
    """Panels excepted: one is a file of its name."""
    for name in NAMES:
        package, _, last = name.rpartition(".")
        exported = getattr(sys.modules.get(package), "__all__", ()) if package else ()
        assert last not in exported or package.startswith("setclr_course.panels"), name


def test_names_of_modules_say_something():
    """The same name in two packages is a subject that both are about, never one that says nothing."""
    count = Counter(name.rpartition(".")[2] for name in NAMES)
    for name in ("reading", "shown", "told", "kept", "utils", "helpers", "common", "misc", "memory"):
        assert count[name] == 0, name


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_file_is_read_in_one_sitting(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 450
    tree = ast.parse(source)
    assert ast.get_docstring(tree), "a file begins with what it is about"
    if part_of(module_of(path)) != "setclr.cli":
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert not [call for call in calls if getattr(call.func, "id", "") == "print"], "the library prints"


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_function_fits_on_a_screen(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            said = node.body[0] if ast.get_docstring(node) is not None else None
            docstring = said.end_lineno - said.lineno + 1 if said else 0
            length = node.end_lineno - node.lineno + 1 - docstring
            assert length <= 60, f"{module_of(path)}.{node.name} has {length} lines without its docstring"


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_function_changes_a_trainer_from_outside(path):
    """What happens to a Trainer stands in its class: no other function takes one first and sets its parts."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg == "trainer":
            for inner in ast.walk(node):
                targets = getattr(inner, "targets", [getattr(inner, "target", None)])
                names = [ast.unparse(target) for target in targets if target is not None]
                assert not [name for name in names if name.startswith("trainer.")], node.name


@pytest.mark.parametrize("path", sorted((COURSE / "panels").rglob("*.py")), ids=module_of)
def test_panels_share_through_the_kit_and_their_subjects_own_files(path):
    """Only `panels` itself imports a panel's file; a subject imports no other subject."""
    mine = module_of(path)
    if mine == "setclr_course.panels":
        return
    subject = mine.split(".")[2]
    for name in imports(path):
        if name.startswith("setclr_course.panels."):
            _, _, other, *file = name.split(".")
            assert other == subject, f"{mine} imports {name}"
            assert not set(file) & set(panels.__all__), f"{mine} imports a panel's file, {name}"


SLOW = ("torch._dynamo", "scipy.stats", "scipy.optimize", "sklearn", "setclr.recipes.named")


def test_what_few_need_is_imported_by_those_alone():
    """Else every notebook and every process would wait for it as long as for torch. So do panels."""
    script = f"""
import sys
import setclr
assert "torch" not in sys.modules
from setclr_course import panels
assert not any(name.startswith("setclr_course.panels.") for name in sys.modules)
import setclr.training.trainer, setclr.evaluation
assert panels.one_idea is sys.modules["setclr_course.panels.family.one_idea"].one_idea
assert "setclr_course.panels.sets.two_shapes" not in sys.modules and dir(panels) == panels.__all__
assert not (found := set(sys.modules) & set({SLOW})), found
assert callable(setclr.pretrain) and callable(setclr.gather) and setclr.InfoNCE(0.2)
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd="/")
    with pytest.raises(AttributeError, match="has no panel 'spreadin'"):
        getattr(panels, "spreadin")  # noqa: B009
    with pytest.raises(AttributeError, match="has no attribute 'InfoNCA'"):
        setclr.InfoNCA  # noqa: B018


DRAWING = ("matplotlib", "plotly", "ipywidgets", "IPython", "anywidget", "papermill", "setclr_course")


def test_the_library_draws_nothing():
    """All of its modules are imported where matplotlib, plotly, ipywidgets and the course cannot be."""
    names = [name for name in NAMES if name.startswith("setclr.") and not name.endswith("__main__")]
    script = f"""
import importlib, sys
for name in {DRAWING}:
    sys.modules[name] = None
for name in {names}:
    importlib.import_module(name)
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd="/")
