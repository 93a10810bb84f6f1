"""Runs later: changes that would execute something outside after they are applied, and why. One table.

A plain `apply` leaves them behind; they must be named, or allowed. Only what would stand there afterwards counts: to
delete a hook runs nothing.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from corral.changes.change import DIRECTORY, FILE, Change, Flag
from corral.changes.latercontent import BY_CONTENT
from corral.changes.trees import Tree
from corral.changes.upper import Upper

LARGEST_READ = 4 << 20

# A pattern matches the last names of a path, at any depth: "a/*" is any entry of any directory called a. A pattern
# that ends in /** takes everything below such a directory, and the name itself where it is no directory (a link).
# Each rule has its reason and its patterns.
TABLE: dict[str, tuple[str, tuple[str, ...]]] = {
    "git-hook": (
        "git runs it as a hook",
        (
            *(".git/hooks/**", "hooks/pre-*", "hooks/post-*", "hooks/commit-msg"),
            *("hooks/prepare-commit-msg", "hooks/applypatch-msg", "hooks/update"),
            *("hooks/reference-transaction", "hooks/push-to-checkout", "hooks/fsmonitor-watchman"),
            *("hooks/sendemail-validate", "hooks/proc-receive", ".husky/**", ".githooks/**"),
            *(".pre-commit-config.yaml", ".pre-commit-hooks.yaml", "lefthook.yml", "lefthook.yaml"),
            *(".lefthook.yml", ".lintstagedrc*", ".overcommit.yml", ".git/modules/**/hooks/*"),
        ),
    ),
    "git-pointer": (
        "it says which repository, and so whose hooks and settings, git uses here",
        (
            *(".git", "worktrees/*/gitdir", "worktrees/*/commondir", ".git/commondir", ".git/gitdir"),
            *("info/alternates",),
        ),
    ),
    "environment": (
        "a shell hook or a version manager runs it on entering the directory",
        (
            *(".envrc", ".direnvrc", ".config/direnv/**", ".tool-versions", "mise.toml", ".mise.toml"),
            *(".mise.*.toml", "mise.*.toml", ".mise/**", ".config/mise/**", ".rtx.toml", ".asdfrc"),
            *(".nvmrc", ".node-version", ".python-version", ".ruby-version", ".java-version"),
            *(".go-version", ".terraform-version", ".sdkmanrc", "rust-toolchain", "rust-toolchain.toml"),
            *("devbox.json", "flake.nix", "shell.nix", "default.nix", ".rvmrc", ".autoenv", ".autoenv.zsh"),
            *(".env.fish", ".venv/bin/*", "venv/bin/*", "pyvenv.cfg"),
        ),
    ),
    "editor": (
        "an editor runs tasks or loads programs from it",
        (
            *(".vscode/**", "*.code-workspace", ".idea/**", "*.iml", ".zed/**", ".fleet/**", ".helix/**"),
            *(".theia/**", ".devcontainer/**", ".devcontainer.json", "*.sublime-project"),
            *("*.sublime-build", ".exrc", ".nvimrc", ".vimrc", ".gvimrc", ".nvim.lua", ".lvimrc"),
            *(".vim/**", ".config/nvim/**", ".dir-locals.el", ".emacs", ".dir-locals-2.el", ".emacs.d/**"),
            *(".config/emacs/**", ".config/helix/**", ".config/zed/**", ".projectile"),
            *(".config/Code/User/**", ".config/Cursor/User/**", ".config/VSCodium/User/**"),
            *(".vscode-server/**",),
        ),
    ),
    "agent": (
        "an agent takes orders, tools or servers from it",
        (
            *(".claude/**", ".claude.json", "CLAUDE.md", "CLAUDE.local.md", "AGENTS.md"),
            *("AGENTS.override.md", ".mcp.json", "mcp.json", ".mcp/**", ".cursor/**", ".cursorrules"),
            *(".codex/**", ".gemini/**", "GEMINI.md", ".agents/**", ".aider*", ".windsurf/**"),
            *(".windsurfrules", ".continue/**", ".opencode/**", "opencode.json", "opencode.jsonc"),
            *(".roo/**", ".roomodes", ".roorules*", ".cline/**", ".clinerules", ".clinerules/**"),
            *(".kiro/**", ".goose/**", ".goosehints", ".config/goose/**", ".amp/**", ".crush/**"),
            *(".crush.json", ".github/copilot-instructions.md", ".github/instructions/**"),
            *(".github/prompts/**", ".junie/**", "QWEN.md", ".qwen/**", ".config/opencode/**"),
            *("corral.toml", ".corral/**", ".config/corral/**"),
        ),
    ),
    "ci": (
        "the next push runs it on the build service",
        (
            *(".github/workflows/**", ".github/actions/**", "action.yml", "action.yaml"),
            *(".github/dependabot.yml", ".gitlab-ci.yml", ".gitlab/**", ".circleci/**", ".travis.yml"),
            *("Jenkinsfile", "Jenkinsfile.*", "azure-pipelines.yml", "azure-pipelines.yaml"),
            *(".azure-pipelines/**", ".drone.yml", ".woodpecker.yml", ".woodpecker/**"),
            *("bitbucket-pipelines.yml", ".buildkite/**", ".forgejo/**", ".gitea/**", "appveyor.yml"),
            *(".appveyor.yml", ".builds/**", ".build.yml", ".cirrus.yml", ".cirrus.star", ".teamcity/**"),
            *(".semaphore/**", "cloudbuild.yaml", "buildspec.yml", "renovate.json", ".tekton/**"),
            *("netlify.toml", "vercel.json"),
        ),
    ),
    "build": (
        "a build or a test runs it",
        (
            *("Makefile", "makefile", "GNUmakefile", "Makefile.*", "*.mk", "*.mak", "BSDmakefile"),
            *("configure", "CMakeLists.txt", "*.cmake", "CMakePresets.json", "meson.build", "SConstruct"),
            *("SConscript", "wscript", "BUILD", "BUILD.bazel", "WORKSPACE", "MODULE.bazel", "*.bzl"),
            *(".bazelrc", "*.ninja", "Justfile", "justfile", ".justfile", "Taskfile.y*ml", "Tiltfile"),
            *("Vagrantfile", "Dockerfile*", "Containerfile*", "*.dockerfile", "docker-compose*.y*ml"),
            *("compose*.y*ml", "Procfile*", "Earthfile", "Rakefile", "Gemfile", "*.gemspec", "Podfile"),
            *("Fastfile", "Guardfile", "build.rs", ".cargo/config", ".cargo/config.toml", "build.gradle*"),
            *("settings.gradle*", "gradlew*", "gradle/wrapper/**", "gradle.properties", "pom.xml", "mvnw*"),
            *(".mvn/**", "build.sbt", "project/*.sbt", "build.sc", "build.xml", "*.csproj", "*.vbproj"),
            *("*.fsproj", "*.targets", "*.props", "Directory.Build.*", "nuget.config", "mix.exs"),
            *("rebar.config*", "dune", "build.zig", "*.nimble", "Package.swift", "Setup.hs", "*.rockspec"),
            *("Makefile.PL", "Build.PL", "deno.json*", "go.work", "tools.go", "gulpfile.*", "Gruntfile.*"),
            *("*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.mts", ".eslintrc.js"),
            *(".eslintrc.cjs", ".prettierrc.js", ".prettierrc.cjs", ".babelrc.js", ".mocharc.*"),
            *("binding.gyp", ".pnpmfile.cjs", ".pnp.cjs", ".pnp.loader.mjs", ".yarn/**", ".yarnrc"),
            *(".yarnrc.yml", ".npmrc", "node_modules/.bin/*", "turbo.json", "nx.json", "project.json"),
            *("lerna.json", "bunfig.toml"),
        ),
    ),
    "python": (
        "python or its tools load it unasked",
        (
            *("conftest.py", "setup.py", "setup.cfg", "*.pth", "*.egg-link", "sitecustomize.py"),
            *("usercustomize.py", "noxfile.py", "tox.ini", "tasks.py", "fabfile.py", "dodo.py"),
            *("pytest.ini", ".pytest.ini", "pip.conf", ".config/pip/**", ".pip/**", "__editable__*"),
            *(".pdbrc", ".pythonrc", ".pythonrc.py", ".pythonstartup", ".ipython/**", ".jupyter/**"),
            *("jupyter_*config.py", "ipython_config.py", "manage.py", "hatch_build.py"),
        ),
    ),
    "shell": (
        "a shell, a login or a tool runs it when it starts",
        (
            *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases"),
            *(".bash_completion", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"),
            *(".zsh/**", ".oh-my-zsh/**", ".config/zsh/**", ".config/fish/**", ".config/nushell/**"),
            *(".cshrc", ".tcshrc", ".login", ".logout", ".kshrc", ".mkshrc", ".xonshrc"),
            *(".config/xonsh/**", ".inputrc", ".xinitrc", ".xsession", ".xsessionrc", ".xprofile"),
            *(".xserverrc", ".pam_environment", ".config/environment.d/**", ".tmux.conf"),
            *(".config/tmux/**", ".screenrc", ".gdbinit", ".config/gdb/**", ".lldbinit", ".irbrc"),
            *(".pryrc", ".Rprofile", ".Renviron", ".sqliterc", ".psqlrc", ".mailcap", ".lesskey"),
            *(".lessfilter", ".curlrc", ".wgetrc", ".ackrc", ".rgrc", ".ripgreprc", ".ctags", ".ssh/**"),
            *(".gnupg/**", ".config/starship.toml", ".sdkman/**", ".nvm/**", ".pyenv/**", ".rbenv/**"),
        ),
    ),
    "service": (
        "it is started with the session, by a timer, or found first on the search path",
        (
            *(".config/systemd/**", ".local/share/systemd/**", ".config/autostart/**"),
            *(".config/autostart-scripts/**", ".local/share/applications/**", ".local/share/dbus-1/**"),
            *(".config/plasma-workspace/**", ".config/i3/**", ".config/sway/**", ".config/hypr/**"),
            *(".i3/**", ".config/upstart/**", ".crontab", "crontab", "Library/LaunchAgents/**"),
            *("Library/LaunchDaemons/**", ".local/bin/*", ".cargo/bin/*", ".npm-global/bin/*"),
            *(".local/share/flatpak/**", ".config/pulse/**", ".config/user-dirs.dirs"),
            *(".docker/cli-plugins/**", "go/bin/*", ".local/lib/python*/site-packages/**", ".bun/bin/*"),
            *(".deno/bin/*", ".config/containers/**"),
        ),
    ),
}

# Names that look like the above and are run by nobody.
EXEMPT = (".git/**/hooks/*.sample", "hooks/*.sample")
# Of packages that were installed nobody runs the build, the tests or the workflows of their authors.
INSTALLED = ("node_modules/*/**",)
NOT_IN_INSTALLED = ("build", "python", "ci", "editor", "package-scripts", "python-build", "composer-scripts")


_EVERY_PATTERN = tuple(pattern for _, patterns in TABLE.values() for pattern in patterns)


def flagged(change: Change, lower: Tree, upper: Upper) -> Change:
    """The change with what would run later."""
    if change.after is None or change.after.kind == DIRECTORY or change.kind in ("times", "attributes"):
        return replace(change, flags=())
    flags = [Flag(rule, reason) for rule, reason in rules_for(change.path)]
    for rule, (patterns, look) in BY_CONTENT.items():
        if _matches(change.path, patterns) and not _is_exempt(rule, change.path):
            reason = _look(look, change, lower, upper)
            is_told = reason in [flag.reason for flag in flags]
            flags += [Flag(rule, reason)] if reason and not is_told else []
    return replace(change, flags=tuple(flags))


def rules_for(path: str) -> list[tuple[str, str]]:
    """Rule and reason of every row that a path falls under by its name."""
    if _matches(path, EXEMPT):
        return []
    if not _matches(path, _EVERY_PATTERN):
        return []
    return [
        (rule, reason)
        for rule, (reason, patterns) in TABLE.items()
        if _matches(path, patterns) and not _is_exempt(rule, path)
    ]


def _is_exempt(rule: str, path: str) -> bool:
    if rule not in NOT_IN_INSTALLED or not _matches(path, INSTALLED):
        return False
    return not _matches(path, ("node_modules/.bin/*",))


def _look(look: Callable[[bytes, bytes], str], change: Change, lower: Tree, upper: Upper) -> str:
    after = change.after
    assert after is not None
    if after.kind != FILE:
        return "it leads to another file, whose content may be anything"
    if after.size > LARGEST_READ or not after.digest:
        return "it is too large to be looked at"
    before = b""
    if change.before is not None and change.before.kind == FILE and change.before.size <= LARGEST_READ:
        info = lower.look(change.path)
        before = lower.content(change.path) if info is not None and stat.S_ISREG(info.st_mode) else b""
    return look(before, (upper if after.layer == "upper" else lower).content(after.at))


def _expression(pattern: str) -> str:
    parts = ["(?:.*/)?" if name == "**" else _name_expression(name) + "/" for name in pattern.split("/")]
    if parts[-1] == "(?:.*/)?":
        return "".join(parts[:-1])[:-1] + "(?:/.*)?"
    return "".join(parts)[:-1]


def _name_expression(pattern: str) -> str:
    return "".join("[^/]*" if char == "*" else re.escape(char) for char in pattern.casefold())


@cache
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"(?:^|/)(?:{'|'.join(map(_expression, patterns))})$", re.DOTALL)


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Cases are one: on some file systems they are, and there is no harm in a flag too many."""
    return _compiled(patterns).search(path.casefold()) is not None
