"""The guest: a small Debian on a disk image, and for each kernel an initial file system that gets it there.

Packages are unpacked, never configured: no mount, no chroot and no privilege on this host. What is made here is kept; a
newer kernel of a series is taken when its directory in the cache is removed.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from kernels.packages import cache_directory, download, download_closure, find

HERE = Path(__file__).parent
SBIN = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}

# Series and the package that has it. "Cloud" kernels differ in drivers only, and are a third of the size.
KERNELS = {
    "5.10": r"linux-image-5\.10\.0-[0-9]+-cloud-amd64",
    "6.1": r"linux-image-6\.1\.0-[0-9]+-cloud-amd64",
    "6.12": r"linux-image-6\.12\.[0-9]+\+deb13-cloud-amd64",
    "7.2": r"linux-image-7\.2\.[0-9]+\+deb13-cloud-amd64",
}
MODULES = ("virtio_pci", "virtio_blk", "ext4", "overlay")
FAR_HOME_MODULES = (
    "nfsd",
    "nfsv4",
)  # loaded only where `corral.far_home` stands on the kernel's command line
PACKAGES = (
    *("python3", "bash", "coreutils", "findutils", "grep", "sed", "tar", "mount", "procps", "util-linux"),
    *("busybox-static", "usr-is-merged"),  # the latter instead of usrmerge, which needs perl
)
USERS = "root:x:0:0::/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n"
GROUPS = "root:x:0:\nuser:x:1000:\n"
SPARE_MEGABYTES = 128


def root_image() -> Path:
    """An ext4 image with Python and a few tools, the same for all kernels."""
    image = cache_directory() / f"root-{_digest('guest.py', 'guest-init.sh', 'guest-far-home.sh')}.ext4"
    if image.exists():
        return image
    archives = download_closure(PACKAGES)
    with tempfile.TemporaryDirectory(dir=cache_directory()) as name:
        top = Path(name, "root")
        _lay_out(top)
        for archive in archives:
            _unpack(archive, top)
        _finish(top)
        _compile_library(top)
        made = Path(name, "image")
        size = sum(f.lstat().st_size + 4096 for f in top.rglob("*")) // (1 << 20) + SPARE_MEGABYTES
        command = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(top), str(made), f"{size}M"]
        subprocess.run(command, check=True, env=SBIN, stdout=subprocess.DEVNULL)
        for outdated in cache_directory().glob("root-*.ext4"):
            outdated.unlink()
        made.rename(image)
    return image


def _lay_out(top: Path) -> None:
    top.mkdir(mode=0o755)
    for directory in ("bin", "sbin", "lib", "lib64"):
        (top / "usr" / directory).mkdir(parents=True)
        (top / directory).symlink_to(f"usr/{directory}")
    for directory in ("dev", "etc", "home/user", "opt", "proc", "root", "run", "sys", "tmp", "var/tmp"):
        (top / directory).mkdir(parents=True)
    (top / "var/run").symlink_to("/run")
    for directory in ("tmp", "var/tmp"):
        (top / directory).chmod(0o1777)
    (top / "root").chmod(0o700)


def _unpack(archive: Path, top: Path) -> None:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as package:
        into = [
            "tar",
            "-x",
            "-C",
            str(top),
            "--keep-directory-symlink",
            "--no-same-owner",
            "--skip-old-files",
        ]
        unwanted = [f"--exclude=./usr/share/{name}" for name in ("doc", "info", "locale", "man", "zoneinfo")]
        subprocess.run([*into, *unwanted], stdin=package.stdout, check=True)
    if package.returncode:
        raise SystemExit(f"{archive} cannot be unpacked")


def _finish(top: Path) -> None:
    (top / "etc/passwd").write_text(USERS)
    (top / "etc/group").write_text(GROUPS)
    (top / "usr/bin/sh").unlink(missing_ok=True)
    (top / "usr/bin/sh").symlink_to("bash")
    for name in ("guest-init", "guest-far-home"):
        shutil.copy(HERE / f"{name}.sh", top / "usr/sbin" / name)
        (top / "usr/sbin" / name).chmod(0o755)


def _compile_library(top: Path) -> None:
    """By the guest's own interpreter, run here by its own loader. Emulated, every start would compile it anew."""
    usr = top / "usr"
    (python,) = usr.glob("bin/python3.*[0-9]")
    loader = [str(usr / "lib64/ld-linux-x86-64.so.2"), "--library-path", str(usr / "lib/x86_64-linux-gnu")]
    compiling = ["-m", "compileall", "-q", "-s", str(top), "-p", "/", "--invalidation-mode", "unchecked-hash"]
    command = [*loader, str(python), *compiling, str(usr / "lib" / python.name)]
    environment = {"PYTHONHOME": str(usr), "PATH": "/usr/bin:/bin"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)


def kernel(series: str) -> Path:
    """A directory with `vmlinuz` and `initrd` for this series."""
    made = cache_directory() / f"kernel-{series}-{_digest('guest.py', 'initrd-init.sh')}"
    if made.exists():
        return made
    cache_directory().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_directory()) as name:
        files, result = Path(name, "files"), Path(name, "result")
        _unpack_kernel(find(KERNELS[series]), files)
        result.mkdir()
        shutil.copy(next(path for path in files.rglob("vmlinuz*") if path.is_file()), result / "vmlinuz")
        _make_initrd(files, Path(name, "initrd"), result / "initrd")
        for outdated in cache_directory().glob(f"kernel-{series}-*"):
            shutil.rmtree(outdated)
        result.rename(made)
    return made


def _unpack_kernel(package: str, into: Path) -> None:
    """The image, and from 7.0 on the packages that it is split into."""
    (archive,) = download(package)
    field = subprocess.run(["dpkg-deb", "-f", archive, "Depends"], capture_output=True, text=True, check=True)
    needed = [alternative.split()[0] for alternative in field.stdout.split(",") if alternative.strip()]
    parts = [name for name in needed if name.startswith(("linux-base-", "linux-binary-", "linux-modules-"))]
    for part in (archive, *download(*parts)) if parts else (archive,):
        subprocess.run(["dpkg-deb", "-x", part, into], check=True)


def _make_initrd(files: Path, tree: Path, initrd: Path) -> None:
    for directory in ("bin", "dev", "lib/modules", "proc", "root", "sys"):
        (tree / directory).mkdir(parents=True)
    modules, more = _needed_modules(files, MODULES), _needed_modules(files, FAR_HOME_MODULES)
    for name, listed in (("modules", modules), ("far-home-modules", [m for m in more if m not in modules])):
        for module in listed:
            content = module.read_bytes()
            (tree / "lib/modules" / module.name.removesuffix(".xz")).write_bytes(
                lzma.decompress(content) if module.suffix == ".xz" else content
            )
        (tree / name).write_text("".join(f"{module.name.removesuffix('.xz')}\n" for module in listed))
    (busybox,) = download("busybox-static")
    subprocess.run(["dpkg-deb", "-x", busybox, tree / "unpacked"], check=True)
    next((tree / "unpacked").rglob("bin/busybox")).rename(tree / "bin/busybox")
    shutil.rmtree(tree / "unpacked")
    shutil.copy(HERE / "initrd-init.sh", tree / "init")
    (tree / "init").chmod(0o755)
    listing = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    command = ["cpio", "--create", "--quiet", "--format=newc", "--owner=+0:+0"]
    packed = subprocess.run(command, cwd=tree, input=listing.encode(), capture_output=True, check=True).stdout
    initrd.write_bytes(gzip.compress(packed, 1))


def _needed_modules(files: Path, wanted: tuple[str, ...]) -> list[Path]:
    """Those that are wanted and what they need, in the order to load them; built-in ones are not among them."""
    modules = next(path for path in files.rglob("modules") if path.parent.name == "lib")
    (version,) = (path.name for path in modules.iterdir())
    base = modules.parent.parent
    subprocess.run(["depmod", "-b", base, version], check=True, env=SBIN)
    found: dict[Path, None] = {}
    for module in wanted:
        command = ["modprobe", "-d", str(base), "-S", version, "--show-depends", module]
        shown = subprocess.run(command, check=True, env=SBIN, capture_output=True, text=True).stdout
        words = [line.split() for line in shown.splitlines()]
        found |= {Path(line[1]): None for line in words if line[0] == "insmod"}
    return list(found)


def _digest(*names: str) -> str:
    """Of the recipe: when it changes, what was made by it is made again."""
    return hashlib.sha256(b"".join((HERE / name).read_bytes() for name in names)).hexdigest()[:12]
