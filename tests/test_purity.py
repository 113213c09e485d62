"""A module that calls itself pure, or decides by its name, is pure: it imports nothing that reads, writes, waits, logs or tells the time, and asks for neither time nor chance."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import clusterwright

SOURCES = Path(clusterwright.__file__).parent
IMPURE = {
    "aiohttp", "asyncio", "glob", "http", "logging", "multiprocessing", "os", "secrets", "selectors", "shutil", "signal", "socket",
    "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time", "urllib.request", "uuid",
}  # fmt: skip
ASKED = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today"), ("random", "random"), ("random", "choice")}


def calls_itself_pure(tree: ast.Module) -> bool:
    said = (ast.get_docstring(tree) or "").replace("(pure)", "Pure.")
    return any(sentence.strip() == "Pure" or sentence.strip().startswith("Pure,") for sentence in said.replace("\n", " ").split("."))


def decides(path: Path) -> bool:
    package, *_ = path.relative_to(SOURCES).parts
    return package in PACKAGES or (package == "controllers" and path.stem in {"guards", "plan", "conditions", "status"})


PACKAGES = {"tables", "conditions", "conversion", "cel", "gotemplate", "golang", "topology", "kubeadm"}


EDGES = {"topology/extensions.py"}
"""Carries the questions that a computation yields to whoever answers them."""


@cache
def modules() -> dict[str, ast.Module]:
    """Every module; read when a test asks, not by all who only collect tests."""
    return {path.relative_to(SOURCES).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCES.rglob("*.py"))}


@cache
def pure() -> dict[str, ast.Module]:
    """Those that must be pure."""
    found = {name: tree for name, tree in modules().items() if calls_itself_pure(tree) or decides(SOURCES / name)}
    return {name: tree for name, tree in found.items() if name not in EDGES}


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


def faults(tree: ast.Module) -> set[str]:
    found = set()
    promised = {part for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _is_protocol(node) for part in node.body}
    for node in ast.walk(tree):
        if node in promised:
            continue  # what others do
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names if alias.name in IMPURE or alias.name.partition(".")[0] in IMPURE}
            case ast.ImportFrom(module=str(module), level=0) if module in IMPURE or module.partition(".")[0] in IMPURE:
                found.add(module)
            case ast.AsyncFunctionDef(name=name) | ast.AsyncFor(target=ast.Name(id=name)):
                found.add(f"async {name}")
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=attribute)) if (owner, attribute) in ASKED:
                found.add(f"{owner}.{attribute}()")
            case ast.Call(func=ast.Name(id="open" | "print" | "input" as name)):
                found.add(f"{name}()")
    return found


def test_impure_code_is_found() -> None:
    text = "import time\nfrom os.path import join\nasync def f(): pass\nnow = datetime.now(UTC)\nprint(open('x'))\n"
    assert faults(ast.parse(text)) == {"time", "os.path", "async f", "datetime.now()", "print()", "open()"}
    assert calls_itself_pure(ast.parse('"""Chooses. Pure."""'))
    assert not calls_itself_pure(ast.parse('"""Pure functions are elsewhere."""'))


def test_many_modules_are_checked() -> None:
    assert len(pure()) > 150
    assert {"controllers/machine/plan.py", "controllers/cluster/guards.py", "controllers/kit/conditions.py"} <= pure().keys()


def test_deciding_modules_are_pure() -> None:
    found = {name: faults(tree) for name, tree in pure().items()}

    assert {name: wrong for name, wrong in found.items() if wrong} == {}


# ------------------------------------------------------------------------------------------------- time and chance are given, everywhere

ASKING = {
    "runtime/clock.py": "the one that reads the machine's clock",
    "provider/running.py": "runs a provider as a program",
    "offline/bundle.py": "a bundle that names no time, read by who gives no clock, is of now",
    "testing/servers.py": "a server that is tested over the network runs in real time, as a program does",
}
"""Modules that may ask, with why; and the programs of `cli`."""
CALLS = {
    ("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today"), ("uuid", "uuid1"), ("uuid", "uuid4"),
    ("os", "urandom"), ("os", "getrandom"),
}  # fmt: skip
NAMES = {"SystemClock", "SystemRandom", "uuid1", "uuid4", "urandom"}
IMPORTS = {"time", "secrets"}
STATE = {
    "betavariate",
    "choice",
    "choices",
    "gauss",
    "getrandbits",
    "randbytes",
    "randint",
    "random",
    "randrange",
    "sample",
    "shuffle",
    "uniform",
}


def asked(tree: ast.Module) -> set[str]:
    """What a module asks the machine for."""
    found = set()
    has_module = any(isinstance(n, ast.Import) and any(a.name == "random" for a in n.names) for n in ast.walk(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names if alias.name in IMPORTS}
            case ast.ImportFrom(module=str(module)) if module in IMPORTS:
                found.add(module)
            case ast.ImportFrom(module="random", names=names):
                found |= {f"random.{alias.name}" for alias in names if alias.name in STATE}
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=attribute)) if (owner, attribute) in CALLS:
                found.add(f"{owner}.{attribute}()")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="random"), attr=attribute)) if has_module and attribute in STATE:
                found.add(f"random.{attribute}()")
            case ast.Call(func=ast.Name(id=name)) if name in NAMES or (name == "Random" and not node.args and not node.keywords):
                found.add(f"{name}()")
            case ast.Call(func=ast.Name(id="field"), keywords=keywords):
                values = [k.value for k in keywords if k.arg == "default_factory"]
                found |= {f"{v.id}()" for v in values if isinstance(v, ast.Name) and v.id in NAMES}
    return found


def test_reads_of_time_and_chance_are_found() -> None:
    text = (
        "import time\nimport random\nfrom random import choice\na = random.random(), datetime.now(UTC), Random(), SystemRandom(), uuid4()"
    )
    assert asked(ast.parse(text)) == {
        "time", "random.choice", "random.random()", "datetime.now()", "Random()", "SystemRandom()", "uuid4()",
    }  # fmt: skip
    assert asked(ast.parse("from random import Random\nr = Random(7)\nr.random()\nself.random.choice(x)")) == set()


def test_time_and_randomness_are_injected_everywhere() -> None:
    found = {name: asked(tree) for name, tree in modules().items() if not name.startswith("cli/")}

    assert {name for name, asks in found.items() if asks} == ASKING.keys(), {name: asks for name, asks in found.items() if asks}
