"""Compilers, builders, test runners: they run the project's own code, which is caution and no more."""

from __future__ import annotations

from collections.abc import Iterator

from corral.risk.levels import CAUTION, DANGEROUS, EXEC, SAFE, Finding
from corral.risk.table import Base, Call, Globals, Look, Sharp


def fetched_package(call: Call) -> Iterator[Finding]:
    if any("@" in word for word in call.operands()[:1]):
        yield Finding(DANGEROUS, "runs what it fetches", (EXEC,))


_PROJECT = (
    "make gmake ninja meson cmake ctest autoreconf autoconf automake configure scons bazel buck just task "
    "rake ant mvn mvnw gradle "
    "gradlew sbt lein kotlinc javac java gcc g++ cc c++ clang clang++ ld as strip objcopy rustc rustfmt "
    "rustup gofmt golangci-lint "
    "clang-format clang-tidy pytest tox nox ruff black isort flake8 pylint mypy pyright coverage pre-commit "
    "jupyter alembic gunicorn "
    "uvicorn flask django-admin celery tsc eslint prettier jest vitest vite webpack rollup esbuild parcel "
    "next nuxt playwright cypress "
    "mocha turbo nx lerna deno rails rspec rubocop jekyll hugo mkdocs sphinx-build pandoc latexmk pdflatex "
    "xelatex convert magick ffmpeg "
    "phpunit artisan dotnet msbuild swift swiftc xcodebuild zig nim crystal elixir erl iex ghc protoc buf "
    "dvc hg-git csvcut vale "
    "shellcheck shfmt yamllint markdownlint hadolint actionlint typos codespell gprof dot plantuml docutils "
    "aspell hunspell"
)

TABLE = (
    Globals("go", "-C=", depth=2),
    Base("go", SAFE, "reads the project", sub="version|list|doc|help"),
    Base("go", SAFE, "prints its settings", sub="env", only="-json -changed"),
    Base("go", SAFE, "reads the project", sub="mod graph"),
    Base("go", SAFE, "reads the project", sub="mod why"),
    Base("go", CAUTION, "builds or runs the project"),
    Sharp("go", CAUTION, "changes its settings", sub="env", options="-w -u"),
    Sharp(
        "go",
        DANGEROUS,
        "runs a program in every build step",
        sub="*",
        options="-toolexec --toolexec -exec --exec -vettool --vettool",
        forms=(EXEC,),
    ),
    Sharp("go", CAUTION, "builds", sub="list", options="-export -compiled -cgo"),
    Look("go", fetched_package, sub="run"),
    Base("gofmt", SAFE, "checks the format", needs="-l -d", only="-l -d -s -e"),
    Base("make gmake", CAUTION, "runs the project's build"),
    Base("make gmake", CAUTION, "runs the project's build", needs="-n --dry-run --just-print"),
    Sharp("make gmake", DANGEROUS, "runs text given in its arguments", options="--eval -E", forms=(EXEC,)),
    Sharp("make gmake", CAUTION, "reads its rules from elsewhere", options="-f --file --makefile"),
    Base("shellcheck yamllint hadolint actionlint", SAFE, "checks files"),
    Base("java", SAFE, "prints its version", needs="-version --version", only="-version --version", most=0),
    Base("javac", SAFE, "prints its version", needs="-version", only="-version", most=0),
    Base("mvn gradle", SAFE, "prints its version", needs="-v --version", only="-v --version", most=0),
    Base("jps jstack", SAFE, "lists Java processes"),
    Base("rustup", SAFE, "shows tool chains", sub="show"),
    Base("rustup", SAFE, "shows tool chains", sub="toolchain list"),
    Base("rustup", SAFE, "shows tool chains", sub="target list"),
    Base("rustup", SAFE, "shows tool chains", sub="component list"),
    Globals("rustup", "-v -q", depth=2),
    Sharp("rustup", DANGEROUS, "removes a tool chain", sub="toolchain uninstall"),
    Sharp("rustup", DANGEROUS, "removes a tool chain", sub="self uninstall"),
    Base(_PROJECT, CAUTION, "runs the project or its tools"),
    Sharp("java", DANGEROUS, "loads foreign code", args=r"-(?:javaagent|agentpath|agentlib):.*"),
    Sharp(
        "gcc g++ cc c++ clang clang++",
        DANGEROUS,
        "runs or loads a program of its own",
        options="-wrapper",
        forms=(EXEC,),
    ),
    Sharp(
        "gcc g++ cc c++ clang clang++",
        DANGEROUS,
        "loads foreign code",
        args=r"-f(?:plugin|pass-plugin)=.*|-specs=.*|-B.+",
    ),
    Sharp("deno", DANGEROUS, "runs program text or what it fetches", sub="eval", forms=(EXEC,)),
    Sharp(
        "deno", DANGEROUS, "runs what it fetches", sub="run", args=r"(?:https?|npm|jsr):.*|-", forms=(EXEC,)
    ),
    Globals("deno", "-q --quiet"),
    Sharp("pandoc", DANGEROUS, "runs a filter program", options="-F -L --filter --lua-filter", forms=(EXEC,)),
    Sharp("dot", DANGEROUS, "loads foreign code", options="-c"),
    Sharp(
        "pdflatex xelatex latexmk",
        DANGEROUS,
        "lets the document run commands",
        options="-shell-escape --shell-escape -e -pdflatex -latex",
        forms=(EXEC,),
    ),
    Sharp("rails", DANGEROUS, "destroys data", args=r"db:(?:drop|reset|purge)(?::.*)?"),
    Sharp("rake", DANGEROUS, "destroys data", args=r"db:(?:drop|reset|purge)(?::.*)?"),
    Sharp(
        "gdb",
        DANGEROUS,
        "runs a command",
        args=r"!.*|shell\b.*|python\b.*|source\b.*|.*\bsystem\b.*",
        forms=(EXEC,),
    ),
)
