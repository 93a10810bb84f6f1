"""One row a tool and a thing it was refused: the command, and the denial that must come of it.

@O is the directory outside, @W the workspace. The messages themselves stand nowhere: the tools write them.
"""

from __future__ import annotations

from dataclasses import dataclass

from jail.world import BACKENDS, python

NAMESPACES = ("namespaces",)
LANDLOCK = ("landlock",)


@dataclass(frozen=True)
class Row:
    """``what``: the path, a * at its end for a random name. ``rw``: the place to grant; None: no grant, by that tier.
    ``tiers``: where it is refused at all. ``needs``: a program that may be missing."""

    command: tuple[str, ...]
    what: str
    operation: str = "write"
    rw: str | None = "@O"
    tiers: tuple[str, ...] = BACKENDS
    needs: str = ""

    def __str__(self) -> str:
        return " ".join(self.command).replace("@O", "OUT").replace("@W", "WORK")[:60]


def shell(line: str, **fields: object) -> Row:
    return Row(("bash", "-c", line), **fields)  # type: ignore[arg-type]


def snake(source: str, **fields: object) -> Row:
    return Row(tuple(python(source)), **fields)  # type: ignore[arg-type]


NODE = ("node", "-e")
RUBY = ("ruby", "-e")

FILES: tuple[Row, ...] = (
    # shells
    shell("echo hi > @O/x", what="@O/x"),
    shell("echo hi > '@O/sub dir/x'", what="@O/sub dir/x", rw="@O/sub dir"),
    shell("echo hi >> @O/victim", what="@O/victim", rw="@O/victim"),
    shell("cd @O && echo hi > relative", what="@O/relative"),
    Row(("bash", "script.sh"), what="@O/x"),
    Row(("dash", "-c", "echo hi > @O/x"), what="@O/x"),
    Row(("sh", "-c", "echo hi >> @O/victim"), what="@O/victim", rw="@O/victim"),
    # coreutils
    Row(("touch", "@O/x"), what="@O/x"),
    Row(("touch", "@O/it's x"), what="@O/it's x"),
    Row(("touch", "@O/caf\u00e9"), what="@O/caf\u00e9"),
    Row(("touch", "@O/a\nb"), what="@O/a\nb"),
    Row(("touch", "@O/a\udcffb"), what="@O/a\udcffb"),
    Row(("touch", "@O/victim"), what="@O/victim", rw="@O/victim", tiers=NAMESPACES),
    Row(("mkdir", "@O/d"), what="@O/d"),
    Row(("mkdir", "@O/\u00e9 \udcff"), what="@O/\u00e9 \udcff"),
    Row(("mkdir", "-p", "@O/d/e/f"), what="@O/d"),
    Row(("rm", "@O/victim"), what="@O/victim", operation="remove"),
    Row(("rmdir", "@O/empty"), what="@O/empty", operation="remove"),
    Row(("unlink", "@O/victim"), what="@O/victim", operation="remove"),
    Row(("cp", "mine", "@O/x"), what="@O/x"),
    Row(("cp", "mine", "@O/victim"), what="@O/victim", rw="@O/victim"),
    Row(("cp", "mine", "@O"), what="@O/mine"),
    Row(("cp", "-r", ".", "@O/new"), what="@O/new"),
    Row(("install", "mine", "@O/x"), what="@O/x"),
    Row(("mv", "mine", "@O/x"), what="@O/x", operation="rename"),
    Row(("mv", "-f", "mine", "@O/victim"), what="@O/victim", operation="rename"),
    Row(("mv", "@O/victim", "taken"), what="@O/victim", operation="remove", tiers=NAMESPACES),
    Row(("mv", "@O/victim", "taken"), what="@O/victim", operation="rename", tiers=LANDLOCK),
    Row(("mv", "@O/victim", "@O/other"), what="@O/victim", operation="rename"),
    Row(("ln", "mine", "@O/x"), what="@O/x", operation="link", rw=None, tiers=NAMESPACES),
    Row(("ln", "mine", "@O/x"), what="@O/x", operation="link", tiers=LANDLOCK),
    Row(("ln", "@O/victim", "x"), what="@O/victim", operation="link", rw=None, tiers=NAMESPACES),
    Row(("ln", "@O/victim", "x"), what="@O/victim", operation="link", tiers=LANDLOCK),
    Row(("ln", "-s", "mine", "@O/x"), what="@O/x"),
    Row(("ln", "-sf", "mine", "@O/victim"), what="@O/victim"),
    Row(("chmod", "600", "@O/victim"), what="@O/victim", rw="@O/victim", tiers=NAMESPACES),
    Row(("truncate", "-s0", "@O/victim"), what="@O/victim", rw="@O/victim"),
    Row(("mkfifo", "@O/p"), what="@O/p"),
    Row(("mktemp", "-p", "@O"), what="@O/tmp.*"),
    Row(("tee", "@O/x"), what="@O/x"),
    Row(("tee", "@O/sub dir/x"), what="@O/sub dir/x", rw="@O/sub dir"),
    Row(("dd", "if=/dev/zero", "count=1", "of=@O/x"), what="@O/x"),
    Row(("sort", "-o", "@O/x", "mine"), what="@O/x"),
    Row(("split", "mine", "@O/x"), what="@O/xaa"),
    # what else a small Debian has
    Row(("sed", "-i", "s/u/v/", "@O/victim"), what="@O/sed*"),
    Row(("gzip", "@O/victim"), what="@O/victim.gz"),
    Row(("awk", 'BEGIN { print 1 > "@O/x" }'), what="@O/x"),
    Row(("tar", "cf", "@O/x.tar", "mine"), what="@O/x.tar"),
    Row(("tar", "czf", "@O/x.tgz", "mine"), what="@O/x.tgz"),
    shell("tar cf a.tar mine && tar -C @O -xf a.tar", what="@O/mine"),
    # git, make, gcc
    Row(("git", "init", "-q", "@O/r"), what="@O/r"),
    Row(("git", "config", "--file", "@O/config", "a.b", "c"), what="@O/config"),
    Row(("git", "diff", "--no-index", "--output=@O/x", "mine", "mine"), what="@O/x"),
    Row(("make", "redirect"), what="@O/x"),
    Row(("make", "copy"), what="@O/x"),
    Row(("make", "-C", "@O", "-f", "@W/makefile", "relative"), what="@O/relative"),
    Row(("make", "-t", "@O/stamp"), what="@O/stamp"),
    Row(("gcc", "x.c", "-o", "@O/x"), what="@O/x"),
    Row(("gcc", "-c", "x.c", "-o", "@O/x.o"), what="@O/x.o"),
    Row(("gcc", "-S", "x.c", "-o", "@O/x.s"), what="@O/x.s"),
    Row(("gcc", "-M", "-MF", "@O/x.d", "x.c"), what="@O/x.d"),
    # Python
    snake("open('@O/x', 'w')", what="@O/x"),
    snake("open('@O/victim', 'w')", what="@O/victim", rw="@O/victim"),
    snake("open(b'@O/a\\xff', 'w')", what="@O/a\udcff"),
    snake("open(\"@O/it's\", 'w')", what="@O/it's"),
    snake("import os; os.mkdir('@O/d')", what="@O/d"),
    snake("import os; os.rename('mine', '@O/x')", what="@O/x", operation="rename", rw=None, tiers=NAMESPACES),
    snake("import os; os.rename('mine', '@O/x')", what="@O/x", tiers=LANDLOCK),
    snake("import os; os.symlink('mine', '@O/x')", what="@O/x"),
    snake("import shutil; shutil.copy('mine', '@O/x')", what="@O/x"),
    # Perl
    Row(("perl", "-e", "open(F, '>', '@O/x') or die \"Can't open @O/x: $!\""), what="@O/x"),
    Row(("perl", "-e", "mkdir('@O/d') or die \"mkdir @O/d: $!\\n\""), what="@O/d"),
    # Node
    Row((*NODE, "require('fs').writeFileSync('@O/x', '')"), what="@O/x", needs="node"),
    Row((*NODE, "require('fs').writeFile('@O/x', '', e => { if (e) throw e })"), what="@O/x", needs="node"),
    Row(
        (*NODE, "require('fs').mkdirSync('@O/sub dir/d')"), what="@O/sub dir/d", rw="@O/sub dir", needs="node"
    ),
    Row((*NODE, "require('fs').unlinkSync('@O/victim')"), what="@O/victim", operation="remove", needs="node"),
    Row(
        (*NODE, "require('fs').renameSync('mine', '@O/x')"),
        what="@O/x",
        operation="rename",
        rw=None,
        tiers=NAMESPACES,
        needs="node",
    ),
    # Ruby
    Row((*RUBY, "File.write('@O/x', '')"), what="@O/x", needs="ruby"),
    Row((*RUBY, "File.write('@O/sub dir/x', '')"), what="@O/sub dir/x", rw="@O/sub dir", needs="ruby"),
    Row((*RUBY, "Dir.mkdir('@O/d')"), what="@O/d", needs="ruby"),
    Row((*RUBY, "File.delete('@O/victim')"), what="@O/victim", operation="remove", needs="ruby"),
    Row((*RUBY, "File.symlink('mine', '@O/x')"), what="@O/x", needs="ruby"),
    # rsync, curl, wget
    Row(("rsync", "mine", "@O/x"), what="@O/.x.*", needs="rsync"),
    Row(("rsync", "-r", "./", "@O/new/"), what="@O/new", needs="rsync"),
)

IN_A_REPOSITORY: tuple[Row, ...] = (
    Row(("git", "-C", "@O/repo", "add", "file"), what="@O/repo/.git/index.lock", rw="@O/repo/.git"),
    Row(("git", "-C", "@O/repo", "config", "a.b", "c"), what="@O/repo/.git/config", rw="@O/repo/.git"),
    Row(
        ("git", "-C", "@O/repo", "commit", "-q", "--allow-empty", "-m", "x"),
        what="@O/repo/.git/index.lock",
        rw="@O/repo/.git",
    ),
)
