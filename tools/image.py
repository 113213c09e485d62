"""Build the manager's image: the interpreter, our dependencies, and our code, each in a layer of its own.

The interpreter is that of a base, an OCI layout in a folder; without one it is the interpreter that runs this, with the shared
libraries that it and our dependencies need, and nothing else. What is packed is what is installed here.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import clusterwright
from clusterwright.api.copying import replace
from tools.oci import Entry, Image, Layout, NotALayout

APP: Final = "app"
PREFIX: Final = "usr/local"
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
CONFIG: Final[dict[str, Any]] = {
    "User": "65532:65532",
    "ExposedPorts": {"8443/tcp": {}, "9440/tcp": {}, "9443/tcp": {}},
    "Entrypoint": ["python", "-m", "clusterwright"],
    "Cmd": ["manager"],
    "WorkingDir": "/",
}
"""As in the Containerfile; a test compares them."""
ENVIRONMENT: Final = ("PYTHONPATH=/app", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")
_OWN_INTERPRETER: Final = (f"PATH=/{PREFIX}/bin", f"LD_LIBRARY_PATH=/{PREFIX}/lib")
_USERS: Final = {
    "etc/passwd": b"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
    "etc/group": b"root:x:0:\nnonroot:x:65532:\n",
}
_NEEDLESS: Final = (
    "site-packages", "config-*", "test", "tests", "_test*", "_xx*", "xx*", "_ctypes_test*",
    "idlelib", "*tkinter*", "turtle*", "ensurepip", "lib2to3", "pydoc_data",
)  # fmt: skip
"""Of the interpreter: what tests, teaches, draws, or builds on it."""
_LIBRARY: Final = re.compile(r"^\s+(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def build(folder: Path, base: Path | None) -> str:
    """Write the layout; the manifest's digest. Raises NotALayout for a base that is none."""
    layout = Layout(folder)
    machine = platform.machine()
    architecture = ARCHITECTURES.get(machine, machine)
    dependencies = [entry for name in sorted(_needed(metadata.distribution("clusterwright"))) for entry in _installed(name)]
    if base is not None:
        image = layout.base(base, architecture)
        environment: list[str] = list(image.config.get("Env") or ())
    else:
        below = [*_interpreter(), *_libraries(dependencies)]
        image = Image(architecture, layers=(layout.add_layer(below, f"Python {platform.python_version()}"),))
        environment = list(_OWN_INTERPRETER)
    ours = layout.add_layer(_ours(), f"clusterwright {clusterwright.__version__}")
    layers = (*image.layers, layout.add_layer(dependencies, "dependencies of clusterwright"), ours)
    config = {**image.config, **CONFIG, "Env": [*environment, *ENVIRONMENT]}
    return layout.finish(replace(image, layers=layers, config=config), clusterwright.__version__)


def _interpreter() -> Iterator[Entry]:
    version, prefix = f"python{sys.version_info[0]}.{sys.version_info[1]}", Path(sys.base_prefix)
    yield Entry(f"{PREFIX}/bin/{version}", source=(prefix / "bin" / version).resolve())
    for name in ("python", "python3"):
        yield Entry(f"{PREFIX}/bin/{name}", target=version)
    library = prefix / "lib" / version
    for path in _files(library, _NEEDLESS):
        yield Entry(f"{PREFIX}/lib/{version}/{path.relative_to(library)}", source=path)
    for name, content in _USERS.items():
        yield Entry(name, content=content)
    yield Entry("tmp", mode=0o1777)


def _files(folder: Path, needless: Sequence[str] = ()) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name == "__pycache__" or any(fnmatch(path.name, pattern) for pattern in needless):
            continue
        if path.is_dir():
            yield from _files(path, needless)
        elif path.is_file():
            yield path


def _libraries(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the shared libraries of the system that the interpreter and these files are linked to; where the linker looks for them."""
    entries = [*_interpreter(), *entries]
    linked = [str(e.source) for e in entries if e.source is not None and (".so" in e.source.name or e.path.startswith(f"{PREFIX}/bin/"))]
    # it complains of files that are not programs, and goes on
    listed = subprocess.run(["ldd", *linked], capture_output=True, text=True, check=False).stdout  # noqa: S603, S607 - paths of this installation
    packed = {Path(e.source).resolve() for e in entries if e.source is not None}
    for found in sorted(set(_LIBRARY.findall(listed))):
        source = Path(found).resolve()
        if source in packed:
            continue
        # one that came with the interpreter is next to it there, too
        is_system = found.startswith(("/lib", "/usr/lib"))
        yield Entry(found.lstrip("/") if is_system else f"{PREFIX}/lib/{Path(found).name}", source=source)


def _needed(distribution: metadata.Distribution) -> set[str]:
    """Return the distributions that one needs, by name, as far as they are installed: what a marker excludes here is not."""
    found: set[str] = set()
    waiting = [distribution]
    while waiting:
        for requirement in waiting.pop().requires or ():
            name = _NAME.match(requirement)
            if name is None or "extra ==" in requirement or _normal(name[0]) in found:
                continue
            try:
                waiting.append(metadata.distribution(name[0]))
            except metadata.PackageNotFoundError:
                continue
            found.add(_normal(name[0]))
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(name: str) -> Iterator[Entry]:
    distribution = metadata.distribution(name)
    for file in distribution.files or ():
        # commands are next to the packages and are not copied; the image does not say who installed it by which command
        if ".." in file.parts or "__pycache__" in file.parts or file.name in {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"}:
            continue
        yield Entry(f"{APP}/{file.as_posix()}", source=Path(str(distribution.locate_file(file))))


def _ours() -> Iterator[Entry]:
    package = Path(clusterwright.__file__).parent
    for path in _files(package):
        yield Entry(f"{APP}/{package.name}/{path.relative_to(package)}", source=path)
    about = metadata.distribution("clusterwright").read_text("METADATA") or ""
    yield Entry(f"{APP}/{package.name}-{clusterwright.__version__}.dist-info/METADATA", content=about.encode())


def main(words: Sequence[str] | None = None) -> int:
    """Write the layout, print its digest and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.image", description="The manager's image as an OCI layout.")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="directory for the layout")
    parser.add_argument("--base", type=Path, metavar="DIR", help="an OCI layout with Python; default: this interpreter and its libraries")
    arguments = parser.parse_args(words)
    try:
        print(build(arguments.output, arguments.base))
    except NotALayout as error:
        print(f"{parser.prog}: --base {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
