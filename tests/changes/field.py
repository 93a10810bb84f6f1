"""A field for the tests of changes: a real overlay over a real directory, and programs that run in it."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from corral.changes import Layers, begin, seal

Picture = dict[str, tuple[object, ...]]


@dataclass
class Field:
    """``lower`` is what a person sees; ``run`` runs a shell line in the overlay, begun and sealed as a jail is."""

    base: Path
    attributes: str = "user"

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "work", "merged"):
            (self.base / name).mkdir(parents=True, exist_ok=True)

    @property
    def lower(self) -> Path:
        return self.base / "lower"

    @property
    def upper(self) -> Path:
        return self.base / "upper"

    @property
    def layers(self) -> Layers:
        return Layers(str(self.lower), str(self.upper), str(self.base / "sealed"), self.attributes)

    def file(self, path: str, content: str | bytes = "one\n", mode: int = 0o644) -> Path:
        made = self.lower / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(content.encode() if isinstance(content, str) else content)
        made.chmod(mode)
        return made

    def run(self, line: str, hidden: tuple[str, ...] = (), *, outside: str = "") -> None:
        """``outside``: a line that a person runs in the real directory after the program's own."""
        held = begin(self.layers, hidden)
        try:
            self.inside(line)
            if outside:
                subprocess.run(["sh", "-ec", outside], cwd=self.lower, check=True)
        finally:
            os.close(held)
        assert seal(self.layers)

    def inside(self, line: str) -> None:
        """In the overlay, neither begun nor sealed."""
        subprocess.run(self.argv(line), check=True, cwd=self.base, stdout=subprocess.DEVNULL)

    def argv(self, line: str) -> list[str]:
        marks = "userxattr" if self.attributes == "user" else "redirect_dir=on"
        options = f"{marks},lowerdir=lower,upperdir=upper,workdir=work"
        script = (
            f"mount -t overlay -o {options} overlay merged && cd merged && exec sh -ec {shlex.quote(line)}"
        )
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
        return [*unshare, "sh", "-c", script]


def can_mount(base: Path) -> bool:
    return subprocess.run(Field(base).argv("true"), cwd=base, stderr=subprocess.DEVNULL).returncode == 0


def picture(top: Path, *, times: bool = True) -> Picture:
    """Everything in a tree: kind, mode, content or target, attributes, and the time of the last change."""
    found: Picture = {}
    for path in [top, *sorted(top.rglob("*"))]:
        info = path.lstat()
        content: object = None
        if stat.S_ISREG(info.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(info.st_mode):
            content = os.readlink(path)
        attributes = {
            name: os.getxattr(path, name, follow_symlinks=False)
            for name in os.listxattr(path, follow_symlinks=False)
        }
        shown = info.st_mtime_ns if times else 0
        mode = 0 if stat.S_ISLNK(info.st_mode) else info.st_mode
        found[str(path.relative_to(top))] = (stat.S_IFMT(info.st_mode), mode, content, attributes, shown)
    return found
