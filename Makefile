# `make` alone lists what there is. Everything Python lives in .venv.

# Debian's and Ubuntu's own interpreter first: the tests need one that every user can read.
PYTHON := $(firstword $(foreach candidate,/usr/bin/python3 python3 python3.13 python3.12 python3.11, \
	$(shell $(candidate) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(candidate))))

# What the tests call, as command:package. Nothing is installed where all these commands are there.
TEST_PROGRAMS := systemd-run:systemd dbus-daemon:dbus-daemon gcc:gcc git:git bwrap:bubblewrap setfattr:attr setfacl:acl patch:patch unshare:util-linux tmux:tmux zsh:zsh fish:fish
MISSING_PACKAGES = $(strip $(foreach pair,$(TEST_PROGRAMS), \
	$(if $(shell command -v $(firstword $(subst :, ,$(pair)))),,$(lastword $(subst :, ,$(pair))))))

# Peers that benchmarks/peers.py measures beside us. One that cannot be installed is left out, and the page says why.
PEER_PROGRAMS := firejail:firejail socat:socat rg:ripgrep npm:npm
MISSING_PEER_PACKAGES = $(strip $(foreach pair,$(PEER_PROGRAMS), \
	$(if $(shell command -v $(firstword $(subst :, ,$(pair)))),,$(lastword $(subst :, ,$(pair))))))

# What `make kernels` calls, in the same way.
KERNEL_PROGRAMS := qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs depmod:kmod cpio:cpio
MISSING_KERNEL_PACKAGES = $(strip $(foreach pair,$(KERNEL_PROGRAMS), \
	$(if $(shell PATH=$$PATH:/usr/sbin:/sbin; command -v $(firstword $(subst :, ,$(pair)))),,$(lastword $(subst :, ,$(pair))))))

VENV := .venv
# Where `make install` puts things, and the interpreter of its own that it makes there.
PREFIX := $(HOME)/.local
EXTRAS :=
OWN = $(PREFIX)/lib/corral
RUN := $(VENV)/bin/python
LAUNCHER := src/corral/_launcher/corral-launch

.PHONY: help demo install test check docs bench soak kernels stranger release launcher test-programs peer-programs kernel-programs clean

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/installed $(LAUNCHER) ## a short demonstration in a jail
	$(RUN) -m corral.demo

test: test-programs $(VENV)/installed-dev $(LAUNCHER) ## all tests; started by root, as an ordinary user too
	$(RUN) tests/run.py

install: ## for you alone, below ~/.local: corral, manual page, completion; PREFIX=DIR, EXTRAS=mcp,risk
	@[ -n "$(PYTHON)" ] || { echo "corral needs Python 3.11 or newer; apt install python3 python3-venv"; exit 1; }
	$(PYTHON) -m venv $(OWN)
	$(OWN)/bin/python -m pip install --quiet --upgrade '.$(if $(EXTRAS),[$(EXTRAS)])'
	@mkdir -p $(addprefix $(PREFIX)/,bin share/man/man1 share/bash-completion/completions share/zsh/site-functions \
		share/fish/vendor_completions.d)
	ln -sf $(OWN)/bin/corral $(PREFIX)/bin/corral
	ln -sf $(OWN)/share/man/man1/corral.1 $(PREFIX)/share/man/man1/corral.1
	$(OWN)/bin/corral completion bash > $(PREFIX)/share/bash-completion/completions/corral
	$(OWN)/bin/corral completion zsh > $(PREFIX)/share/zsh/site-functions/_corral
	$(OWN)/bin/corral completion fish > $(PREFIX)/share/fish/vendor_completions.d/corral.fish
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) echo "corral is installed; next: corral doctor" ;; \
		*) echo 'corral is installed; next: export PATH=$(PREFIX)/bin:$$PATH, then corral doctor' ;; esac

check: $(VENV)/installed-dev launcher docs ## lint, types, a test for every numbered case, and the documentation
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	$(RUN) tests/conformance/check_cases.py

docs: $(VENV)/installed-dev ## the site, in build/docs; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

bench: test-programs peer-programs $(VENV)/installed-dev $(LAUNCHER) ## what a jail costs, beside peers; writes docs/benchmarks; 20 minutes
	for bench in launch files streams risk tools changes peers; do $(RUN) benchmarks/$$bench.py || exit 1; done

soak: test-programs $(VENV)/installed-dev $(LAUNCHER) ## the heavy tests
	$(RUN) -m pytest -m soak --timeout 1800

kernels: kernel-programs $(LAUNCHER) ## probe, ladder, claims and modes on other kernels, emulated; some minutes
	PYTHONPATH=src:tests $(PYTHON) -m kernels.run_kernels $(KERNELS)

stranger: $(VENV)/installed-dev ## the README as a new user on a fresh Debian, with a stub as the agent; takes root, debootstrap and the network
	$(RUN) tools/stranger.py

release: $(VENV)/installed-dev ## source distribution and wheels in dist/, tried where there is no compiler
	$(RUN) tools/release.py

launcher: | $(VENV) ## compile launcher/ afresh; a warning is an error
	$(PYTHON) hatch_build.py -Werror

clean: ## remove all that was built
	rm -rf $(VENV) build dist $(LAUNCHER) .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(LAUNCHER): hatch_build.py $(wildcard launcher/*.[ch]) | $(VENV)
	$(PYTHON) hatch_build.py

$(VENV):
	@[ -n "$(PYTHON)" ] || { echo "corral needs Python 3.11 or newer; apt install python3 python3-venv"; exit 1; }
	$(PYTHON) -m venv $@ || { rm -rf $@; exit 1; }

$(VENV)/installed: pyproject.toml hatch_build.py src/bin/corral | $(VENV)
	$(RUN) -m pip install --quiet --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml hatch_build.py src/bin/corral | $(VENV)
	$(RUN) -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/installed

test-programs:
ifneq ($(MISSING_PACKAGES),)
	@[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || \
		{ echo "the tests need, and may not install: $(MISSING_PACKAGES)"; exit 1; }
	apt-get update --quiet --quiet
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends $(MISSING_PACKAGES)
endif

peer-programs:
ifneq ($(MISSING_PEER_PACKAGES),)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then for package in $(MISSING_PEER_PACKAGES); do \
		DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends $$package || true; done; fi
endif

kernel-programs:
ifneq ($(MISSING_KERNEL_PACKAGES),)
	@[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || \
		{ echo "this needs, and may not install: $(MISSING_KERNEL_PACKAGES)"; exit 1; }
	apt-get update --quiet --quiet
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends $(MISSING_KERNEL_PACKAGES)
endif
