"""Package managers of systems and languages."""

from __future__ import annotations

from corral.risk.levels import CAUTION, DANGEROUS, EXEC, NETWORK, SAFE
from corral.risk.table import Base, Globals, Sharp

_SYSTEM = "apt apt-get aptitude dnf yum zypper apk brew port snap flatpak pkg emerge nix nix-env rpm dpkg"
_NODE = "npm pnpm yarn bun"
_LANGUAGE = (
    "pip uv poetry pipx conda mamba gem bundle composer cargo pdm hatch pipenv rye mix cabal stack "
    "opam luarocks cpan cpanm"
)

TABLE = (
    Globals(
        "apt apt-get aptitude dnf yum zypper apk brew snap flatpak pkg",
        "-y -q -qq -v --yes --assume-yes --quiet --no-install-recommends -o= -c= -t= --installroot= "
        "--setopt= --root=",
    ),
    Base(
        "apt apt-get apt-cache aptitude dnf yum zypper apk brew snap flatpak pkg",
        SAFE,
        "reads the package lists",
        sub="list|search|show|policy|depends|rdepends|info|madison|showpkg|pkgnames|deps|leaves|"
        "outdated|config|doctor|desc|uses|--version|stats|cat|repolist|repoquery|provides",
    ),
    Base("apt-cache", SAFE, "reads the package lists"),
    Base(
        "dpkg",
        SAFE,
        "reads the package lists",
        needs="-l -L -s -S -p -V --list --listfiles --status --search --print-architecture --verify",
        only="-l -L -s -S -p -V --list --listfiles --status --search --print-architecture --verify "
        "--no-pager",
    ),
    Base(
        "rpm",
        SAFE,
        "reads the package lists",
        needs="-q -V --query --verify",
        only="-q -a -i -l -f -p -R -c -d -V --query --verify --all --info --list --file --requires "
        "--provides --changelog --scripts --qf= --queryformat=",
    ),
    Base(
        "pacman",
        SAFE,
        "reads the package lists",
        needs="-Q -Qs -Qi -Ql -Qo -Qe -Ss -Si",
        only="-Q -Qs -Qi -Ql -Qo -Qe -Ss -Si -Qm -Qdt",
    ),
    Base("pacman yay paru", CAUTION, "changes installed packages"),
    Sharp("pacman yay paru", DANGEROUS, "removes packages", args=r"-R[a-z]*|--remove"),
    Base(_SYSTEM, CAUTION, "changes installed packages"),
    Sharp(
        "apt apt-get aptitude dnf yum zypper apk brew snap flatpak pkg",
        DANGEROUS,
        "removes packages",
        sub="uninstall|remove|rm|purge|autoremove|autopurge|erase|un|unlink|r|delete|del|autoclean-all",
    ),
    Sharp("dpkg", DANGEROUS, "removes packages", options="-r -P --remove --purge"),
    Sharp("rpm", DANGEROUS, "removes packages", options="-e --erase"),
    Sharp("rpm", DANGEROUS, "runs a macro", options="--eval -E --pipe --define -D", forms=(EXEC,)),
    Sharp(
        "apt apt-get",
        DANGEROUS,
        "sets a hook that is run",
        options="-o --option",
        args=r".*(?:Invoke|Pre-Install|Post-).*",
        forms=(EXEC,),
    ),
    Sharp("nix-env emerge", DANGEROUS, "removes packages", options="-e -C --uninstall --unmerge --depclean"),
    Globals(
        _NODE,
        "-g -s -r -w -D --silent --global --recursive --offline --workspaces --prefix= --filter= -C= --dir= "
        "--cwd= --workspace= --registry= -F= --loglevel=",
        depth=2,
    ),
    Base(
        _NODE,
        SAFE,
        "reads the dependencies",
        sub="ls|list|ll|la|view|info|show|outdated|why|explain|root|prefix|bin|whoami|search|help|"
        "help-search|audit|ping|fund|--version|-v",
    ),
    Base(_NODE, SAFE, "reads a setting", sub="config get"),
    Base(_NODE, SAFE, "reads settings", sub="config list"),
    Base("npm pnpm", SAFE, "lists the scripts", sub="run", most=0),
    Base("npm pnpm", SAFE, "lists the scripts", sub="run-script", most=0),
    Base(_NODE, CAUTION, "runs scripts or changes dependencies"),
    Sharp(
        _NODE,
        DANGEROUS,
        "removes packages",
        sub="uninstall|remove|rm|purge|autoremove|autopurge|erase|un|unlink|r|delete",
    ),
    Sharp(_NODE, DANGEROUS, "takes a version back from everyone", sub="unpublish|deprecate"),
    Sharp(_NODE, CAUTION, "gives code to everyone", sub="publish", forms=(NETWORK,)),
    Sharp("npm", DANGEROUS, "runs what it fetches", sub="exec", forms=(EXEC,)),
    Sharp("npm", DANGEROUS, "runs what it fetches", sub="x", forms=(EXEC,)),
    Sharp("npm pnpm yarn bun", DANGEROUS, "runs what it fetches", sub="create", forms=(EXEC,)),
    Sharp("pnpm yarn", DANGEROUS, "runs what it fetches", sub="dlx", forms=(EXEC,)),
    Sharp("pnpm", DANGEROUS, "runs a program of a package", sub="exec", forms=(EXEC,)),
    Sharp("bun", DANGEROUS, "runs what it fetches", sub="x", forms=(EXEC,)),
    Sharp(
        "bun",
        DANGEROUS,
        "runs program text given in its arguments",
        options="-e --eval -p --print",
        forms=(EXEC,),
    ),
    Sharp("npm", CAUTION, "fixes by changing dependencies", sub="audit fix"),
    Base(
        "npx",
        CAUTION,
        "runs a program of an installed package",
        needs="--no-install --no",
        only="--no-install --no -q --quiet",
    ),
    Base("npx bunx pnpx uvx pipx-run", DANGEROUS, "runs what it fetches"),
    Globals(
        _LANGUAGE,
        "-q -v --quiet --verbose --offline --python= --proxy= --color= -C= --directory= --project= "
        "--manifest-path= +nightly +stable +beta -n= --name=",
        depth=2,
    ),
    Base(
        "pip pipenv pdm hatch rye",
        SAFE,
        "reads installed packages",
        sub="list|show|freeze|check|debug|help|index|inspect|graph",
    ),
    Base(
        "uv",
        SAFE,
        "reads installed packages",
        sub="tree|version|help, pip list, pip show, pip freeze, pip tree, pip check, python list, tool list",
    ),
    Base(
        "poetry", SAFE, "reads the project", sub="show|check|version|search|about|config, env info, env list"
    ),
    Base("conda mamba", SAFE, "reads installed packages", sub="list|info|search|config, env list"),
    Base("pipdeptree", SAFE, "reads installed packages"),
    Base(
        "gem",
        SAFE,
        "reads installed packages",
        sub="list|search|info|env|environment|which|outdated|contents|dependency|help",
    ),
    Base("bundle", SAFE, "reads the bundle", sub="list|show|info|outdated|check|platform|env|help"),
    Base(
        "composer",
        SAFE,
        "reads the project",
        sub="show|info|outdated|why|depends|licenses|search|validate|diagnose|about|help",
    ),
    Base("cargo", SAFE, "reads the project", sub="tree|search|version|help|locate-project|pkgid|--list"),
    Base("pipx", SAFE, "reads installed packages", sub="list"),
    Sharp("pipx", DANGEROUS, "runs what it fetches", sub="run", forms=(EXEC,)),
    Sharp("uv", DANGEROUS, "runs what it fetches", sub="tool run", forms=(EXEC,)),
    Sharp("composer conda mamba poetry", CAUTION, "changes settings", sub="config", args=r"[^-].*"),
    Sharp(
        "pip pipenv poetry uv pipx conda mamba gem bundle composer cargo pdm",
        DANGEROUS,
        "removes packages",
        sub="uninstall|remove|purge",
    ),
    Sharp("uv", DANGEROUS, "removes packages", sub="pip uninstall"),
    Sharp("conda mamba", DANGEROUS, "removes an environment", sub="env remove"),
    Sharp("cargo", DANGEROUS, "takes a version back from everyone", sub="yank"),
    Sharp("cargo gem poetry uv", CAUTION, "gives code to everyone", sub="publish", forms=(NETWORK,)),
    Sharp(
        "cargo",
        DANGEROUS,
        "sets a program that is run",
        options="--config",
        args=r".*(?:wrapper|runner|linker|rustc|credential|alias).*",
        forms=(EXEC,),
    ),
    Sharp("pip", CAUTION, "writes a file", options="--log --report"),
    Sharp(
        "apt apt-get apt-cache",
        CAUTION,
        "takes settings that may name programs",
        options="-o -c --option --config-file",
    ),
    Sharp("twine", CAUTION, "gives code to everyone", forms=(NETWORK,)),
    Base(_LANGUAGE + " twine", CAUTION, "changes packages or runs the project"),
)
