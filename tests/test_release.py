"""What `make release` makes of this checkout: whole, and able to run where there is no compiler."""

from __future__ import annotations

import importlib.util
import platform
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from hostfacts import skip_unless_host

ROOT = Path(__file__).resolve().parents[1]
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools/release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def source(release: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = release.build_source(ROOT, tmp_path_factory.mktemp("dist"))
    return made


def test_the_wheel_runs_in_a_clean_environment_without_a_compiler(
    release: ModuleType, source: Path, tmp_path: Path
) -> None:
    wheel = release.build_wheel(source, tmp_path, platform.machine())
    said = release.try_wheel(wheel)
    assert "every demanded claim proven on this host" in said
    assert carried_launcher(wheel) == ELF_MACHINES[platform.machine()]


def test_the_wheel_for_the_other_machine_carries_its_launcher(
    release: ModuleType, source: Path, tmp_path: Path
) -> None:
    skip_unless_host("no-cross-compiler")
    skip_unless_host("x86-64")
    wheel = release.build_wheel(source, tmp_path, "aarch64")
    assert "manylinux2014_aarch64" in wheel.name
    assert carried_launcher(wheel) == ELF_MACHINES["aarch64"]


def test_the_source_distribution_has_what_a_packager_needs(source: Path) -> None:
    import tarfile

    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "README.md", "ROADMAP.md"}
    assert {*wanted, "launcher/start.c", "mkdocs.yml", "docs/index.md", "tools/reference.py"} <= names
    assert not [name for name in names if name.endswith(("corral-launch", ".pyc"))]


def carried_launcher(wheel: Path) -> int:
    """The machine of the launcher in it, as ELF counts them."""
    with zipfile.ZipFile(wheel) as archive:
        return int.from_bytes(archive.read("corral/_launcher/corral-launch")[18:20], "little")
