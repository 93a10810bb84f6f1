"""Names that hold secrets: hidden in every jail that can hide, and refused to every file tool."""

from __future__ import annotations

# Key material and private history under home. One name a line of thought; whole directories where a directory
# is the unit. Shell start-up files are not here: commands need them.
KEY_MATERIAL: tuple[str, ...] = (
    # keys and agents
    *(".ssh", ".gnupg", ".password-store", ".pki", ".local/share/keyrings", ".config/Keybase"),
    # passwords that tools read
    *(".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials", ".pgpass"),
    *(".my.cnf", ".mylogin.cnf", ".npmrc", ".yarnrc.yml", ".pypirc", ".gem/credentials", ".bundle/config"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gradle/gradle.properties"),
    *(".composer/auth.json", ".config/composer/auth.json", ".nuget/NuGet", ".condarc", ".vault-token"),
    # clouds and clusters
    *(".aws", ".azure", ".config/gcloud", ".boto", ".oci", ".config/doctl", ".kube", ".config/kube"),
    *(".docker", ".config/containers/auth.json", ".terraform.d", ".terraformrc", ".config/rclone", ".s3cfg"),
    *(".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/helm", ".fly", ".netlify"),
    # browsers
    *(".mozilla", ".config/mozilla", ".config/BraveSoftware", ".config/chromium", ".config/google-chrome"),
    *(".config/microsoft-edge", ".config/vivaldi", ".thunderbird", ".config/Signal"),
    # what was typed before
    *(".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".python_history", ".psql_history"),
    *(".mysql_history", ".sqlite_history", ".node_repl_history", ".lesshst", ".viminfo"),
    # the screen
    *(".Xauthority", ".ICEauthority"),
)

# What kernel uid 0 can read although every capability is gone: it owns these files.
ROOT_KEY_MATERIAL: tuple[str, ...] = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd"),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
    *("/etc/krb5.keytab", "/etc/ssl/private", "/etc/letsencrypt", "/etc/wireguard", "/etc/sudoers"),
)
