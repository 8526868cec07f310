"""The structure of the two packages: who may import whom, how long things are, no hidden module or circle."""

import ast
import importlib
import io
import re
import subprocess
import sys
import tokenize
from functools import cache, reduce
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import setclr
import setclr_course
from setclr_course import panels

LIBRARY, COURSE = (Path(package.__file__).parent for package in (setclr, setclr_course))
TESTS = Path(__file__).parent
LINE_OF_JS = r"(?m)^\s*(?!//)\S"
FILES = sorted([*LIBRARY.rglob("*.py"), *COURSE.rglob("*.py")])
# From the top down; an import leads to a lower floor, or stays within its package.
OF_THE_COURSE = "teach / panels / at_once costs explore papers run_page / search / kit"
OF_THE_LIBRARY = (
    "__main__ / cli / experiments / evaluation / graphs video / training / recipes / losses data / "
    "inner models views / data_sets settings / checks extras seeding"
)
FLOORS = [
    {f"{package}.{part}" for part in floor.split()}
    for package, floors in (("setclr_course", OF_THE_COURSE), ("setclr", OF_THE_LIBRARY))
    for floor in floors.split("/")
]


def part_of(module: str) -> str:
    """Package or single module directly under setclr or setclr_course; "" for these two themselves."""
    return ".".join(module.split(".")[:2]) if "." in module else ""


def module_of(path: Path) -> str:
    parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


NAMES = list(map(module_of, FILES))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [x for x in ast.walk(tree_of(path)) if isinstance(x, ast.FunctionDef | ast.AsyncFunctionDef)]


@cache
def imports(path: Path, at_once: bool = False) -> set[str]:
    """The modules of ours that a file imports anywhere, inside functions too; or only those `at_once`."""
    nodes = run_at_once(tree_of(path).body) if at_once else ast.walk(tree_of(path))
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


def test_imports_lead_downwards_and_the_library_never_uses_the_course():
    floor = {part: i for i, parts in enumerate(FLOORS) for part in parts}
    assert set(map(part_of, NAMES)) == {"", *floor}
    for path in FILES:
        part = part_of(module_of(path))
        for name in imports(path):
            if part and part_of(name) and part_of(name) != part:
                assert floor[part_of(name)] > floor[part], f"{module_of(path)} imports {name}"
            assert path.is_relative_to(COURSE) or not name.startswith("setclr_course"), module_of(path)


def test_no_modules_import_one_another_in_a_circle():
    """Those that run an import at once; a package stands for its __init__ alone. The error has the circle."""
    edges = {module_of(path): imports(path, at_once=True) & set(NAMES) for path in FILES}
    TopologicalSorter(edges).prepare()


NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
           tokenize.ENDMARKER)  # fmt: skip


def code_lines(path: Path) -> int:
    """Lines of a file that are no docstring, comment or blank."""
    lines: set[int] = set()
    before = tokenize.INDENT
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type not in NO_CODE and (token.type, before) != (tokenize.STRING, tokenize.INDENT):
            lines |= set(range(token.start[0], token.end[0] + 1))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    return len(lines)


def test_the_house_stays_small():
    """Lines of code of the library, the course, its JavaScript and the tests; lines of the look. Nobody
    raises a limit (CONTRIBUTING.md)."""
    assert sum(map(code_lines, LIBRARY.rglob("*.py"))) <= 8000
    assert len(list((LIBRARY / "training").glob("*.py"))) <= 15
    assert sum(map(code_lines, COURSE.rglob("*.py"))) <= 9700
    site = TESTS.parent / "site"
    scripts = [*COURSE.rglob("*.js"), *site.rglob("*.js")]
    assert sum(len(re.findall(LINE_OF_JS, path.read_text())) for path in scripts) <= 2300
    assert sum(map(code_lines, TESTS.rglob("*.py"))) <= 14500
    looks = [*COURSE.rglob("*.css"), *site.glob("static/*.css"), *site.glob("templates/*")]
    assert sum(len(path.read_text().splitlines()) for path in looks) <= 600


def test_a_panels_file_is_short():
    """And so is its twin in JavaScript."""
    for path in (COURSE / "panels").glob("*/*.py"):
        assert code_lines(path) <= 150, path
        assert all(f.end_lineno - f.lineno + 1 <= 40 for f in functions(path)), path
        if (twin := path.with_suffix(".js")).exists():
            most = 150 if path.parent.name == "play" else 80  # the playground is a folder of files
            assert len(re.findall(LINE_OF_JS, twin.read_text())) <= most, path


def test_no_module_is_hidden_behind_a_name_or_has_that_of_what_its_package_exports():
    """After `import setclr.a.b`, `setclr.a.b` is that module. A panel is a file of its name."""
    modules = {name: importlib.import_module(name) for name in NAMES}
    for name, module in modules.items():
        first, *parts = name.split(".")
        assert reduce(getattr, parts, modules[first]) is module is sys.modules[name], name
        package, _, last = name.rpartition(".")
        if package and not package.startswith("setclr_course.panels"):
            assert last not in getattr(modules[package], "__all__", ()), name


def test_names_of_modules_say_something():
    """The same name in two packages is a subject that both are about, never one that says nothing."""
    nothing = {"reading", "shown", "told", "kept", "utils", "helpers", "common", "misc", "memory"}
    assert not [name for name in NAMES if name.rpartition(".")[2] in nothing]


def test_a_file_is_read_in_one_sitting_and_a_function_fits_on_a_screen():
    """And what happens to a Trainer stands in its class: no function takes one first and sets its parts."""
    for path in FILES:
        tree, name = tree_of(path), module_of(path)
        assert len(path.read_text().splitlines()) <= 450, name
        assert ast.get_docstring(tree), f"{name}: a file begins with what it is about"
        if part_of(name) != "setclr.cli" and name != "setclr_course.run_page.commands":
            called = [getattr(node.func, "id", "") for node in ast.walk(tree) if isinstance(node, ast.Call)]
            assert "print" not in called, f"{name}: the library prints"
        for function in functions(path):
            docstring = (ast.get_docstring(function, clean=False) or "").splitlines()
            length = function.end_lineno - function.lineno + 1 - len(docstring)
            assert length <= 60, f"{name}.{function.name} has {length} lines without its docstring"
            if function.args.args and function.args.args[0].arg == "trainer":
                for node in ast.walk(function):
                    stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
                    assert not (stored and ast.unparse(node).startswith("trainer.")), function.name


def test_panels_share_through_the_kit_and_their_subjects_own_files():
    """Only `panels` itself imports a panel's file; a subject imports no other subject."""
    for path in (COURSE / "panels").glob("*/*.py"):
        mine = module_of(path)
        for name in imports(path):
            if name.startswith("setclr_course.panels."):
                _, _, other, *file = name.split(".")
                assert other == mine.split(".")[2], f"{mine} imports {name}"
                assert not set(file) & set(panels.__all__), f"{mine} imports a panel's file, {name}"


SLOW = ("torch._dynamo", "torchvision", "tyro", "scipy.stats", "scipy.optimize", "sklearn",
        "setclr.recipes.named")  # fmt: skip
DRAWING = ("matplotlib", "plotly", "ipywidgets", "IPython", "anywidget", "papermill", "setclr_course")


def test_what_few_need_is_imported_by_those_alone_and_the_library_draws_nothing():
    """Else every notebook and every process would wait for it as long as for torch. So do panels, and the
    front page needs no torch. At last all modules of the library are imported where what draws cannot be."""
    library = [name for name in NAMES if name.startswith("setclr.") and not name.endswith("__main__")]
    script = f"""
import importlib, sys
import setclr
assert "torch" not in sys.modules
from setclr_course import panels
assert not any(name.startswith("setclr_course.panels.") for name in sys.modules)
assert panels.one_idea is sys.modules["setclr_course.panels.family.one_idea"].one_idea
assert "setclr_course.panels.sets.two_shapes" not in sys.modules and dir(panels) == panels.__all__
panel = panels.one_idea(way="sort")
panel.controls["step"].value = 2
panel._repr_mimebundle_()
assert "torch" not in sys.modules
for name in [*sys.modules, *{DRAWING}]:
    if name.split(".")[0] in {DRAWING}:
        sys.modules[name] = None
import setclr.training.trainer, setclr.evaluation
assert not (found := set(sys.modules) & set({SLOW})), found
assert callable(setclr.pretrain) and callable(setclr.gather) and setclr.InfoNCE(0.2)
for name in {library}:
    importlib.import_module(name)
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd="/")
    with pytest.raises(AttributeError, match="has no panel 'spreadin'"):
        getattr(panels, "spreadin")  # noqa: B009
    with pytest.raises(AttributeError, match="has no attribute 'InfoNCA'"):
        setclr.InfoNCA  # noqa: B018
