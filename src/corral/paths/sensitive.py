"""Names that hold secrets: hidden in every jail that can hide, and refused to every file tool."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Key material and private history under home. One name a line of thought; whole directories where a directory
# is the unit. Shell start-up files are not here: commands need them.
KEY_MATERIAL: tuple[str, ...] = (
    # keys, wallets and agents
    *(".ssh", ".gnupg", ".password-store", ".pki", ".local/share/keyrings", ".local/share/kwalletd"),
    *(".config/Keybase", ".config/keepassxc", ".config/1Password", ".config/Bitwarden", ".config/sops"),
    *(".bitcoin", ".ethereum", ".config/solana"),
    # passwords that tools read
    *(
        ".env",
        ".netrc",
        ".authinfo",
        ".authinfo.gpg",
        ".git-credentials",
        ".config/git/credentials",
        ".pgpass",
    ),
    *(".my.cnf", ".mylogin.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".gem/credentials", ".bundle/config"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties"),
    *(".composer/auth.json", ".config/composer/auth.json", ".nuget/NuGet", ".condarc", ".vault-token"),
    *(".subversion/auth", ".sentryclirc", ".smbcredentials", ".cache/huggingface/token"),
    # clouds and clusters
    *(".aws", ".azure", ".config/gcloud", ".boto", ".oci", ".config/doctl", ".kube", ".config/kube"),
    *(".docker", ".config/containers/auth.json", ".terraform.d", ".terraformrc", ".config/rclone", ".s3cfg"),
    *(".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/helm", ".fly", ".netlify"),
    *(".config/github-copilot", ".config/stripe", ".config/.wrangler"),
    # agents: credentials, transcripts, and what they run at their next start
    *(".claude", ".claude.json", ".codex", ".gemini", ".aider", ".aider.conf.yml", ".config/opencode"),
    *(".local/share/opencode", ".copilot", ".cursor", ".qwen", ".config/goose"),
    # browsers, mail and messages
    *(".mozilla", ".config/mozilla", ".config/BraveSoftware", ".config/chromium", ".config/google-chrome"),
    *(".config/microsoft-edge", ".config/vivaldi", ".config/opera", "snap/firefox", "snap/chromium"),
    *(".thunderbird", ".local/share/evolution", ".config/Signal", ".config/Slack"),
    # what was typed before
    *(".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".local/share/atuin"),
    *(".python_history", ".psql_history", ".mysql_history", ".sqlite_history", ".node_repl_history"),
    *(".rediscli_history", ".irb_history", ".lesshst", ".viminfo", ".local/share/nvim/shada"),
    # the screen
    *(".Xauthority", ".ICEauthority"),
)

# What editors, and people, leave beside a file: what stands before its name, and after it. Vim puts no second dot
# before a name that has one.
BACKUPS: tuple[tuple[str, str], ...] = (
    *(("", "~"), (".#", ""), ("#", "#"), (".", ".swp"), ("", ".swp")),
    *(("", ".bak"), ("", ".backup"), ("", ".old"), ("", ".orig"), ("", ".save")),
)

# What kernel uid 0 can read although every capability is gone: it owns these files.
ROOT_KEY_MATERIAL: tuple[str, ...] = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd"),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
    *("/etc/krb5.keytab", "/etc/ssl/private", "/etc/letsencrypt", "/etc/wireguard", "/etc/sudoers"),
)

# Names that no file tool goes through, at any depth, whatever is allowed. The list can be added to, not shortened.
SEGMENTS = (".git", ".ssh", ".aws", ".gnupg", ".env")
FAMILY = ".env."

# What some file systems take for the same name: HFS+ does not see these, FAT and NTFS drop dots and blanks at the
# end and have a second, short name for everything.
_UNSEEN = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
_SHORT = tuple(name[1:] + "~" for name in SEGMENTS)
# File systems on Linux that do not tell cases apart: FAT, exFAT, NTFS, CIFS, SMB, HFS, HFS+.
_FOLDING = {0x4D44, 0x2011BAB0, 0x7366746E, 0x5346544E, 0xFF534D42, 0xFE534D42, 0x517B, 0x4244, 0x482B}
# And those that only pass on what something else holds, a Mac or a Windows it may be, or that are told when they are
# made: FUSE and virtiofs, 9p, NFS, ZFS, VirtualBox, VMware, Parallels.
_FOLDING |= {0x65735546, 0x01021997, 0x6969, 0x2FC12FC1, 0x786F4256, 0xBACBACBC, 0x7C7C6673}
FS_IOC_GETFLAGS, FS_CASEFOLD_FL = 0x80086601, 0x40000000
STATFS_BYTES = 256


def with_backups(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths, each followed by every name that a copy of it may have beside it."""
    found: dict[str, None] = {}
    for path in paths:
        found[path] = None
        above, slash, name = path.rpartition("/")
        for before, after in BACKUPS:
            found[f"{above}{slash}{before}{name}{after}"] = None
    return tuple(found)


def existing_backups(paths: Iterable[str]) -> list[str]:
    """The backups of these that are there. What is missing needs no mask, and each mask costs."""
    there: dict[str, bool] = {}
    found = []
    for path in paths:
        above, _, name = path.rpartition("/")
        if above not in there:
            there[above] = os.path.isdir(above or "/")
        if there[above]:
            # Not lexists: it raises and catches an error for each of a thousand names that are not there.
            copies = [f"{above}/{before}{name}{after}" for before, after in BACKUPS]
            found += [copy for copy in copies if os.access(copy, os.F_OK, follow_symlinks=False)]
    return found


def sensitive_rule(name: str, more: Iterable[str] = ()) -> str | None:
    """The rule that one name of a path falls under, or None."""
    if name in SEGMENTS:
        return name
    if name.startswith(FAMILY):
        return FAMILY + "*"
    if more and name not in ("", ".", ".."):
        from corral.paths.globs import matches_name

        for pattern in more:
            if matches_name(pattern, name):
                return pattern
    return None


def folded_rule(name: str, more: Iterable[str] = ()) -> str | None:
    """The rule for a name where cases are one, as are some other spellings."""
    plain = name.translate(_UNSEEN).casefold().rstrip(". ").partition(":")[0]
    if plain.startswith(_SHORT):
        return "." + plain.partition("~")[0]
    return sensitive_rule(plain, more)


def could_be_folded(name: str) -> bool:
    """Whether it is worth asking the file system at all."""
    return not name.isascii() or name[0] == "." or "~" in name


def folds_case(directory: int) -> bool:
    """Whether names in this directory (a descriptor) stand for others that differ in case. Where it cannot be
    told, it is taken to be so: the names it is asked for are rare."""
    import sys

    try:
        if sys.platform == "darwin":
            return os.fpathconf(directory, 11) == 0  # _PC_CASE_SENSITIVE
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return True
    try:
        kind = kind_of_file_system(fd)
        return not kind or kind in _FOLDING or _has_casefold_flag(fd)
    finally:
        os.close(fd)


def kind_of_file_system(fd: int) -> int:
    """Its magic number; 0 if it does not say."""
    import ctypes

    room = ctypes.create_string_buffer(STATFS_BYTES)
    if ctypes.CDLL(None).fstatfs(fd, room):
        return 0
    return int.from_bytes(room.raw[: ctypes.sizeof(ctypes.c_long)], "little") & 0xFFFFFFFF


def _has_casefold_flag(fd: int) -> bool:
    import fcntl

    try:
        flags = fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8))
    except OSError:
        return False  # a file system without such flags
    return bool(int.from_bytes(flags[:4], "little") & FS_CASEFOLD_FL)
