"""git and its many doors to other programs."""

from __future__ import annotations

from corral.risk import gitlooks
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, NETWORK, SAFE, WRITE
from corral.risk.table import Base, Globals, Look, Sharp

_LISTING = (
    "-a -r -v -vv --all --remotes --verbose --list -l --show-current --no-color --color --column "
    "--no-column -i --ignore-case"
)

TABLE = (
    Sharp(
        "git",
        CAUTION,
        "takes its settings from elsewhere",
        options="--git-dir --work-tree --namespace --attr-source",
    ),
    Globals(
        "git",
        "-p -P --paginate --no-pager --no-replace-objects --bare --literal-pathspecs --no-optional-locks "
        "--no-lazy-fetch -C= -c= --git-dir= --work-tree= --namespace= --super-prefix= --config-env= "
        "--attr-source= --exec-path --html-path --man-path --info-path --version --help -v -h",
        depth=2,
    ),
    Base("git", SAFE, "reads the repository", sub="status"),
    Base(
        "git",
        SAFE,
        "reads the repository",
        sub="log|show|diff|whatchanged|shortlog|blame|annotate|grep|rev-parse|rev-list|ls-files|"
        "ls-tree|ls-remote|describe|cat-file|merge-base|name-rev|check-ignore|check-attr|cherry|"
        "range-diff|for-each-ref|show-ref|show-branch|var|version|help|count-objects|diff-tree|"
        "diff-index|diff-files|verify-commit|verify-tag|fsck|merge-tree|get-tar-commit-id|"
        "check-ref-format|column|patch-id",
    ),
    Base(
        "git",
        SAFE,
        "lists branches",
        sub="branch",
        only=_LISTING
        + " --contains= --no-contains= --merged --no-merged --points-at= --sort= --format= --abbrev=",
        most=0,
    ),
    Base(
        "git",
        SAFE,
        "lists branches",
        sub="branch",
        needs="--list -l -a -r --merged --no-merged",
        only=_LISTING + " --contains= --merged --no-merged --sort= --format=",
    ),
    Base("git", CAUTION, "makes or changes a branch", sub="branch"),
    Base(
        "git",
        SAFE,
        "lists tags",
        sub="tag",
        only="-n -l --list --sort= --format= --contains= --merged --points-at= --column",
        most=0,
    ),
    Base(
        "git",
        SAFE,
        "lists tags",
        sub="tag",
        needs="-l --list",
        only="-n -l --list --sort= --format= --contains=",
    ),
    Base("git", SAFE, "lists remotes", sub="remote", only="-v --verbose", most=0),
    Base("git", SAFE, "shows a remote", sub="remote get-url"),
    Base("git", SAFE, "shows a remote", sub="remote show"),
    Base(
        "git",
        SAFE,
        "reads settings",
        sub="config",
        needs="-l --list --get --get-all --get-regexp --show-origin --get-urlmatch",
        only="-l -z --list --get --get-all --get-regexp --get-urlmatch --show-origin --show-scope --global "
        "--local --system --worktree --name-only --null --type= --bool --int --path --default=",
    ),
    Base(
        "git",
        SAFE,
        "reads a setting",
        sub="config",
        only="--global --local --system --worktree --bool --int --path --type=",
        most=1,
    ),
    Base("git", SAFE, "reads a setting", sub="config get"),
    Base("git", SAFE, "reads settings", sub="config list"),
    Base("git", SAFE, "lists stashes", sub="stash list"),
    Base("git", SAFE, "shows a stash", sub="stash show"),
    Base("git", DANGEROUS, "throws a stash away", sub="stash drop"),
    Base("git", DANGEROUS, "throws all stashes away", sub="stash clear"),
    Base("git", SAFE, "lists work trees", sub="worktree list"),
    Base("git", SAFE, "reads submodules", sub="submodule status"),
    Base("git", SAFE, "reads submodules", sub="submodule summary"),
    Base("git", SAFE, "reads notes", sub="notes list"),
    Base("git", SAFE, "reads notes", sub="notes show"),
    Base("git", SAFE, "reads the reference log", sub="reflog show"),
    Base("git", DANGEROUS, "throws the reference log away", sub="reflog expire"),
    Base("git", DANGEROUS, "throws the reference log away", sub="reflog delete"),
    Base("git", SAFE, "reads the reference log", sub="reflog"),
    Base("git", SAFE, "reads a reference", sub="symbolic-ref", only="-q --quiet --short", most=1),
    Base(
        "git",
        SAFE,
        "lists what would be deleted",
        sub="clean",
        needs="-n --dry-run",
        only="-n -d -x -X -q -f --dry-run --quiet --force",
    ),
    Base("git", DANGEROUS, "deletes files that are not in the repository", sub="clean"),
    Base(
        "git",
        CAUTION,
        "takes changes out of the index",
        sub="restore",
        needs="-S --staged",
        only="-S --staged -q --quiet -s= --source=",
    ),
    Base("git", DANGEROUS, "throws away changes that are not committed", sub="restore"),
    Base("git", CAUTION, "sends commits to another machine", sub="push"),
    Base("git", CAUTION, "bisects by running a command", sub="bisect run"),
    Base("git", DANGEROUS, "rewrites all history", sub="filter-branch"),
    Base("git", DANGEROUS, "rewrites all history", sub="filter-repo"),
    Base("git", SAFE, "prints its version", needs="--version", only="--version", most=0),
    Base("git", CAUTION, "changes the repository"),
    Sharp("git", CAUTION, "sends commits to another machine", sub="push", forms=(NETWORK,)),
    Sharp(
        "git",
        DANGEROUS,
        "rewrites or deletes what others have",
        sub="push",
        options="-f -d --force --force-with-lease --force-if-includes --mirror --delete --prune",
        forms=(NETWORK,),
    ),
    Sharp(
        "git",
        DANGEROUS,
        "runs a program at the other end",
        sub="push",
        options="--receive-pack --exec",
        forms=(EXEC,),
    ),
    Sharp(
        "git",
        DANGEROUS,
        "throws away changes that are not committed",
        sub="reset",
        options="--hard --merge --keep",
    ),
    Sharp(
        "git", DANGEROUS, "throws away changes that are not committed", sub="checkout", options="-f --force"
    ),
    Sharp(
        "git",
        DANGEROUS,
        "throws away changes that are not committed",
        sub="switch",
        options="-f --force --discard-changes",
    ),
    Sharp("git", DANGEROUS, "deletes a branch with its commits", sub="branch", options="-D"),
    Sharp("git", DANGEROUS, "moves or deletes a branch by force", sub="branch", options="-f -M -C --force"),
    Sharp("git", DANGEROUS, "throws a work tree away", sub="worktree remove", options="-f --force"),
    Sharp("git", DANGEROUS, "deletes a reference", sub="update-ref", options="-d --stdin"),
    Sharp("git", DANGEROUS, "deletes files", sub="rm", options="-f -r --force"),
    Sharp("git", DANGEROUS, "throws unreachable commits away", sub="gc", options="--prune --aggressive"),
    Sharp(
        "git", DANGEROUS, "runs a command for every commit", sub="rebase", options="-x --exec", forms=(EXEC,)
    ),
    Sharp("git", DANGEROUS, "runs a command", sub="bisect run", forms=(EXEC,)),
    Sharp("git", DANGEROUS, "runs a command in every submodule", sub="submodule foreach", forms=(EXEC,)),
    Sharp("git", DANGEROUS, "runs a program", sub="difftool", options="-x --extcmd", forms=(EXEC,)),
    Sharp(
        "git",
        DANGEROUS,
        "runs a program at the other end",
        sub="fetch",
        options="--upload-pack",
        forms=(EXEC,),
    ),
    Sharp(
        "git",
        DANGEROUS,
        "runs a program at the other end",
        sub="clone",
        options="-u --upload-pack",
        forms=(EXEC,),
    ),
    Sharp(
        "git",
        DANGEROUS,
        "runs a program at the other end",
        sub="ls-remote",
        options="--upload-pack --exec",
        forms=(EXEC,),
    ),
    Sharp("git", DANGEROUS, "runs a program at the other end", sub="*", args=r"ext::.*", forms=(EXEC,)),
    Sharp(
        "git",
        CAUTION,
        "writes a file",
        sub="log|show|diff|whatchanged|shortlog|blame|annotate|grep|reflog|stash|range-diff|cherry|"
        "format-patch",
        options="--output",
        forms=(WRITE,),
    ),
    Sharp(
        "git",
        DANGEROUS,
        "runs a program set in the repository",
        sub="log|show|diff|whatchanged|shortlog|blame|annotate|grep|reflog|stash|range-diff|cherry|"
        "format-patch",
        options="--ext-diff --textconv",
        forms=(EXEC,),
    ),
    Sharp(
        "git",
        DANGEROUS,
        "runs a program set in the repository",
        sub="cat-file",
        options="--textconv --filters",
        forms=(EXEC,),
    ),
    Sharp(
        "git",
        DANGEROUS,
        "opens files in a program",
        sub="grep",
        options="-O --open-files-in-pager",
        forms=(EXEC,),
    ),
    Sharp("git", CAUTION, "writes found objects", sub="fsck", options="--lost-found"),
    Sharp("git", CAUTION, "writes objects", sub="merge-tree", options="--write-tree"),
    Look("git", gitlooks.settings),
    Look("git", gitlooks.configured, sub="config"),
    Look("git", gitlooks.pushed, sub="push"),
    Look("git", gitlooks.checked_out, sub="checkout"),
    Look(
        "git",
        gitlooks.output,
        sub="log|show|diff|whatchanged|shortlog|blame|annotate|grep|reflog|stash|range-diff|cherry|"
        "format-patch",
    ),
)
