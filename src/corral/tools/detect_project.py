"""detect_project: which languages, tools and commands a project has, by the files that say so."""

from __future__ import annotations

import contextlib

from corral.record import Record
from corral.tools.arguments import Arguments, arg
from corral.tools.failures import invalid
from corral.tools.limits import MB
from corral.tools.reply import Reply
from corral.tools.tool import Tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from corral.files.scanning import Level, Scan
    from corral.tools.call import Call

    Read = Callable[[str], str]


class Row(Record):
    """A file, and what a project that has it is usually made with. Earlier rows win."""

    file: str
    language: str = ""
    build: str = ""
    test: str = ""
    lint: str = ""
    framework: str = ""


ROWS: tuple[Row, ...] = (
    Row("go.mod", "Go", "go build ./...", "go test ./...", "go vet ./..."),
    Row("Cargo.toml", "Rust", "cargo build", "cargo test", "cargo clippy"),
    Row("tsconfig.json", "TypeScript"),
    Row("package.json", "JavaScript"),
    Row("pyproject.toml", "Python", "python -m build", "pytest"),
    Row("setup.py", "Python", "python -m build", "pytest"),
    Row("setup.cfg", "Python", "", "pytest"),
    Row("requirements.txt", "Python", "pip install -r requirements.txt", "pytest"),
    Row("composer.json", "PHP", "composer install", "vendor/bin/phpunit"),
    Row("Gemfile", "Ruby", "bundle install", "bundle exec rake test"),
    Row("pom.xml", "Java", "mvn package", "mvn test"),
    Row("build.gradle", "Java", "gradle build", "gradle test"),
    Row("build.gradle.kts", "Kotlin", "gradle build", "gradle test"),
    Row("mix.exs", "Elixir", "mix compile", "mix test"),
    Row("Package.swift", "Swift", "swift build", "swift test"),
    Row("deno.json", "TypeScript", "", "deno test", "deno lint"),
    Row("CMakeLists.txt", "C/C++", "cmake --build build", "ctest --test-dir build"),
    Row("meson.build", "C/C++", "meson compile -C build", "meson test -C build"),
    *(Row(f".golangci.{end}", lint="golangci-lint run") for end in ("yml", "yaml", "toml")),
    Row("ruff.toml", lint="ruff check ."),
    *(Row(f"next.config.{end}", framework="Next.js") for end in ("js", "mjs", "ts")),
    *(
        Row(name)
        for name in ("Makefile", "justfile", "Justfile", "Taskfile.yml", "Taskfile.yaml", "Dockerfile")
    ),
    *(
        Row(name)
        for name in ("bun.lockb", "bun.lock", "pnpm-lock.yaml", "yarn.lock", "package-lock.json", "uv.lock")
    ),
)

# The lock file says who installs and runs the scripts of package.json.
RUNNERS = (("bun.lockb", "bun"), ("bun.lock", "bun"), ("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"))

# What stands among the dependencies, and what that is called.
FRAMEWORKS: dict[str, tuple[tuple[str, str], ...]] = {
    "package.json": (
        *(
            ("next", "Next.js"),
            ("react", "React"),
            ("vue", "Vue"),
            ("svelte", "Svelte"),
            ("express", "Express"),
        ),
        *(("@angular/core", "Angular"), ("@nestjs/core", "NestJS"), ("nuxt", "Nuxt"), ("astro", "Astro")),
    ),
    "python": (("django", "Django"), ("flask", "Flask"), ("fastapi", "FastAPI")),
    "composer.json": (("laravel/framework", "Laravel"), ("symfony/framework-bundle", "Symfony")),
    "go.mod": (("github.com/gin-gonic/gin", "Gin"), ("github.com/labstack/echo", "Echo")),
    "Gemfile": (("rails", "Rails"), ("sinatra", "Sinatra")),
    "Cargo.toml": (("actix-web", "Actix"), ("axum", "Axum"), ("rocket", "Rocket")),
}
PYTHON_FILES = ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg")
# Files with tasks in them, how a task begins there, and how it is run.
RECIPES = (
    ("Makefile", r"^([\w.-]+)\s*:(?!=)", "make"),
    ("justfile", r"^@?([\w-]+)[^:=\n]*:(?!=)", "just"),
    ("Justfile", r"^@?([\w-]+)[^:=\n]*:(?!=)", "just"),
    ("Taskfile.yml", r"^  ([\w-]+):\s*$", "task"),
    ("Taskfile.yaml", r"^  ([\w-]+):\s*$", "task"),
)
LONGEST_FILE = MB


class DetectProject(Arguments):
    path: str = arg("the project's directory", ".")


class Found:
    def __init__(self) -> None:
        self.languages: list[str] = []
        self.frameworks: list[str] = []
        self.commands = {"build": "", "test": "", "lint": ""}

    def add(self, row: Row) -> None:
        for many, one in ((self.languages, row.language), (self.frameworks, row.framework)):
            if one and one not in many:
                many.append(one)
        for name in self.commands:
            self.commands[name] = self.commands[name] or getattr(row, name)


def run(call: Call, args: DetectProject) -> Reply:
    scan = call.files.scan(args.path)
    if scan.is_file:
        raise invalid(f"not a directory: {args.path}")
    with contextlib.closing(scan.levels()) as levels:
        return _detected(scan, next(levels))


def _detected(scan: Scan, level: Level) -> Reply:
    there = [row for row in ROWS if row.file in level.files]
    texts: dict[str, str] = {}

    def read(name: str) -> str:
        """Its text; empty if it is not there, too large or not to be read."""
        if name not in texts:
            content = scan.content(level, name, LONGEST_FILE) if name in level.files else None
            texts[name] = (content or b"").decode("utf-8", "replace")
        return texts[name]

    found = Found()
    _from_package(found, read, level.files)
    _from_pyproject(found, read)
    for row in sorted(there, key=lambda row: not row.file.startswith(".golangci")):
        found.add(row)
    if "TypeScript" in found.languages and "JavaScript" in found.languages:
        found.languages.remove("JavaScript")
    _from_dependencies(found, read)
    _from_recipes(found, read)
    return Reply.json(
        {
            "languages": found.languages,
            "build_tool": found.commands["build"],
            "test_command": found.commands["test"],
            "linter": found.commands["lint"],
            "config_files": sorted(row.file for row in there),
            "frameworks": found.frameworks,
        }
    )


def _from_package(found: Found, read: Read, files: list[str]) -> None:
    package = _json(read("package.json"))
    if not package and "package.json" not in files:
        return
    runner = next((name for lock, name in RUNNERS if lock in files), "npm")
    scripts = package.get("scripts")
    for name in found.commands:
        if isinstance(scripts, dict) and isinstance(scripts.get(name), str):
            found.commands[name] = f"{runner} run {name}"


def _from_pyproject(found: Found, read: Read) -> None:
    import tomllib

    try:
        tools = tomllib.loads(read("pyproject.toml")).get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    if isinstance(tools, dict) and "ruff" in tools:
        found.add(Row("", lint="ruff check ."))


def _from_dependencies(found: Found, read: Read) -> None:
    import re

    for file, rows in FRAMEWORKS.items():
        if file in ("package.json", "composer.json"):
            data = _json(read(file))
            tables = [data.get(key) for key in ("dependencies", "devDependencies", "require", "require-dev")]
            names = {name for table in tables if isinstance(table, dict) for name in table}
        else:
            text = "\n".join(read(name) for name in (PYTHON_FILES if file == "python" else (file,))).lower()
            names = {word for word, _ in rows if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)}
        for word, framework in rows:
            if word in names:
                found.add(Row("", framework=framework))


def _from_recipes(found: Found, read: Read) -> None:
    """Where no language says how, a task of that name does."""
    import re

    for file, begins, runner in RECIPES:
        tasks = set(re.findall(begins, read(file), re.MULTILINE))
        found.add(Row("", "", *(f"{runner} {name}" if name in tasks else "" for name in found.commands)))


def _json(text: str) -> dict[str, Any]:
    import json

    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


TOOL = Tool(
    "detect_project",
    "Languages, frameworks and the commands to build, test and lint, from a project's config files.",
    DetectProject,
    run,
    read_only=True,
    idempotent=True,
)
