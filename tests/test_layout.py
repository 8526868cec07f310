"""The library's structure: which part may import which, how long a file is, no hidden module."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import setclr
from setclr_course import panels

HOUSE = Path(setclr.__file__).parent
FILES = sorted(HOUSE.rglob("*.py"))
NAMES = ["setclr", *(found.name for found in pkgutil.walk_packages(setclr.__path__, "setclr."))]

# From the top down; an import leads to a lower floor, or stays within its package.
FLOORS = [
    {"__main__"},
    {"cli", "teach"},
    {"explore"},
    {"graphs", "video"},
    {"reports"},
    {"evaluation"},
    {"training"},
    {"recipes"},
    {"losses", "data"},
    {"inner", "models", "views"},
    {"checks", "extras", "palette"},
]


def part_of(module: str) -> str:
    """Package or single module directly under setclr, "" for setclr itself."""
    return f"{module}.".split(".")[1]


def module_of(path: Path) -> str:
    parts = ("setclr", *path.relative_to(HOUSE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """The modules of setclr that a file imports anywhere, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out from setclr on"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inside & set(NAMES)) or {node.module}
    return {name for name in found if part_of(name) and name.startswith("setclr.")}


@cache
def graph() -> dict[str, set[str]]:
    """Each part with the other parts it imports."""
    edges: dict[str, set[str]] = {}
    for path in FILES:
        part = part_of(module_of(path))
        if part:
            edges.setdefault(part, set()).update({part_of(name) for name in imports(path)} - {part})
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
        if part and part_of(name) != part:
            assert floor[part_of(name)] > floor[part], f"{module_of(path)} imports {name}"


def test_the_house_stays_small():
    """At most 16 parts beside what is not about images, and chains of imports of at most 11."""
    assert len(set(graph()) - {"graphs", "video"}) <= 16
    assert max(map(height, graph())) <= 11


@pytest.mark.parametrize("name", NAMES)
def test_no_module_is_hidden_behind_a_name(name):
    """After `import setclr.a.b`, `setclr.a.b` is that module."""
    module = importlib.import_module(name)
    found = setclr
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    assert found is module is sys.modules[name]


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_file_is_read_in_one_sitting(path):
    source = path.read_text()
    assert len(source.splitlines()) <= 300
    tree = ast.parse(source)
    assert ast.get_docstring(tree), "a file begins with what it is about"
    if part_of(module_of(path)) != "cli":
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert not [call for call in calls if getattr(call.func, "id", "") == "print"], "the library prints"


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_function_fits_on_a_screen(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            said = node.body[0] if ast.get_docstring(node) is not None else None
            docstring = said.end_lineno - said.lineno + 1 if said else 0
            length = node.end_lineno - node.lineno + 1 - docstring
            assert length <= 40, f"{module_of(path)}.{node.name} has {length} lines without its docstring"


@pytest.mark.parametrize("path", sorted((HOUSE / "explore").rglob("*.py")), ids=module_of)
def test_panels_share_through_the_kit_and_their_subjects_own_files(path):
    """Only `explore` itself imports a panel's file; the kit no subject, a subject only itself and the kit."""
    mine = module_of(path)
    if mine == "setclr_course.panels":
        return
    subject = mine.split(".")[2]
    for name in imports(path):
        if name.startswith("setclr_course.panels."):
            _, _, other, *file = name.split(".")
            assert other in ("kit", subject), f"{mine} imports {name}"
            assert not set(file) & set(panels.__all__), f"{mine} imports a panel's file, {name}"


SLOW = ("torch._dynamo", "scipy.stats", "scipy.optimize", "sklearn", "setclr.recipes.named")


def test_what_few_need_is_imported_by_those_alone():
    """Else every notebook and every process would wait for it as long as for torch. So do panels."""
    script = f"""
import sys
from setclr_course import panels
assert not any(name.startswith("setclr_course.panels.") for name in sys.modules)
import setclr.training.trainer, setclr.evaluation
assert panels.one_idea is sys.modules["setclr_course.panels.family.one_idea"].one_idea
assert "setclr_course.panels.sets.two_shapes" not in sys.modules and dir(explore) == panels.__all__
assert not (found := set(sys.modules) & set({SLOW})), found
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd="/")
    with pytest.raises(AttributeError, match="has no panel 'spreadin'"):
        getattr(panels, "spreadin")  # noqa: B009


def test_every_panel_has_a_type_for_those_who_check():
    tree = ast.parse((HOUSE / "explore" / "__init__.py").read_text())
    typed = [name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names
             if str(node.module).startswith("setclr_course.panels.")]  # fmt: skip
    assert sorted(typed) == panels.__all__ == sorted(set(typed))
