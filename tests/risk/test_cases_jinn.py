"""Cases 90 to 98 of the notes on jinn, its tables, and every bypass listed in 17.10 and 17.11."""

from __future__ import annotations

import pytest

from corral.risk import classify

SAFE, CAUTION, DANGEROUS = "safe", "caution", "dangerous"


def level(command: str) -> str:
    return str(classify(command).level)


@pytest.mark.case("jinn-90")
@pytest.mark.parametrize("command", ["ls -la", "cat f", "grep a f | head", "FOO=bar ls"])
def test_reading_is_safe(command: str) -> None:
    assert level(command) == SAFE


@pytest.mark.case("jinn-91")
@pytest.mark.parametrize("command", ["cp a b", "sed -i s/x/y/ f", "curl u -o f", "chmod 644 f", "foobar --x"])
def test_changing_and_unknown_is_caution(command: str) -> None:
    assert level(command) == CAUTION


@pytest.mark.case("jinn-92")
@pytest.mark.parametrize(
    "command", ["rm f", "sudo apt install x", "dd if=/dev/zero of=/dev/sda", "kill -9 1", "shutdown -h now"]
)
def test_destroying_and_escalating_is_dangerous(command: str) -> None:
    assert level(command) == DANGEROUS


@pytest.mark.case("jinn-93")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls && cat f", SAFE),
        ("rm x && echo", DANGEROUS),
        ("cat x | sudo tee y", DANGEROUS),
        ("curl u | sh", DANGEROUS),
    ],
)
def test_the_worst_part_of_a_line_decides(command: str, expected: str) -> None:
    assert level(command) == expected


@pytest.mark.case("jinn-94")
@pytest.mark.parametrize(
    ("command", "expected"),
    [("echo $(rm f)", DANGEROUS), ("echo $(ls)", SAFE), ("echo '$(rm f)'", SAFE)],
)
def test_substitutions_count_and_quoted_text_does_not(command: str, expected: str) -> None:
    assert level(command) == expected


@pytest.mark.case("jinn-95")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("bash <<EOF\nrm x\nEOF", DANGEROUS),
        ("cat <<EOF\nhello\nEOF", CAUTION),
        ("cat <<EOF\nrm -rf is a command\nEOF", CAUTION),
        ("cat <<EOF | sh\nls\nEOF", DANGEROUS),
        ("cat <<EOF\n$(rm x)\nEOF", DANGEROUS),
        ("cat <<'EOF'\n$(rm x)\nEOF", CAUTION),
    ],
)
def test_a_here_document_is_text_unless_a_shell_reads_it(command: str, expected: str) -> None:
    assert level(command) == expected


@pytest.mark.case("jinn-96")
@pytest.mark.parametrize(
    ("command", "expected"),
    [("FOO=B VAR=z rm -rf /", DANGEROUS), ("", CAUTION), ("  \n\t ", CAUTION), ("FOO=bar", CAUTION)],
)
def test_assignments_hide_nothing_and_nothing_is_caution(command: str, expected: str) -> None:
    assert level(command) == expected


HIDDEN_RM = [
    "/bin/rm x",
    "\\rm x",
    "'rm' x",
    "env rm x",
    "timeout 5 rm x",
    "nice -n5 rm x",
    "(rm x)",
    "{ rm x; }",
    "if t; then rm x; fi",
    "f(){ rm x; }; f",
    "find . -delete",
    "find . -exec /bin/rm {} ;",
    "find . -exec /bin/rm {} \\;",
    "xargs rm",
    "eval 'rm x'",
    ". x.sh",
    "python3 -c x",
    "curl u | /bin/sh",
    "$X -rf y",
    "ls\nrm x",
    "ls & rm x",
]


@pytest.mark.case("jinn-97")
@pytest.mark.parametrize("command", HIDDEN_RM)
def test_a_hidden_rm_is_found(command: str) -> None:
    assert level(command) == DANGEROUS


@pytest.mark.case("jinn-98")
@pytest.mark.parametrize(
    ("command", "expected"),
    [("echo a > f", CAUTION), ("echo a > /dev/sda", DANGEROUS), ("ls # rm x", SAFE)],
)
def test_redirections_count_by_target_and_comments_do_not(command: str, expected: str) -> None:
    assert level(command) == expected


SEED_BYPASSES = {
    "env rm -rf x": DANGEROUS,
    "find . -delete": DANGEROUS,
    "find . -execdir rm {} +": DANGEROUS,
    "find . -exec sh -c 'rm x' \\;": DANGEROUS,
    "echo hi\nrm -rf x": DANGEROUS,
    "echo $(echo a) $(rm -rf x)": DANGEROUS,
    "cat <(rm -rf x)": DANGEROUS,
    "echo x > any/file": CAUTION,
    "cat /dev/null > important": CAUTION,
    "rg --pre ./evil x": DANGEROUS,
    "LD_PRELOAD=./e.so ls": DANGEROUS,
    "date -s 12:00": CAUTION,
    "/bin/rm -rf /": DANGEROUS,
    "\\rm x": DANGEROUS,
    "'rm' x": DANGEROUS,
    "(rm x)": DANGEROUS,
    "{ rm x; }": DANGEROUS,
    "if true; then rm x; fi": DANGEROUS,
    "xargs rm": DANGEROUS,
    "X=rm; $X y": DANGEROUS,
    "eval ls": DANGEROUS,
    "source x": DANGEROUS,
    "exec rm x": DANGEROUS,
    "timeout 5 rm x": DANGEROUS,
    "nohup rm x": DANGEROUS,
    "command rm x": DANGEROUS,
    "busybox rm x": DANGEROUS,
    "python3 -c 'print(1)'": DANGEROUS,
    "curl u | python3": DANGEROUS,
    "curl u | /bin/sh": DANGEROUS,
    "doas ls": DANGEROUS,
    "git reset --hard": DANGEROUS,
    "git clean -fdx": DANGEROUS,
    "truncate -s 0 f": DANGEROUS,
    "mkfs.btrfs /dev/sdb": DANGEROUS,
    "pkill node": DANGEROUS,
    "echo '$(rm x)'": SAFE,
    "cat <<EOF\nthe word rm\nEOF": CAUTION,
    "rm --help": SAFE,
    "bash script.sh": CAUTION,
    "kill %1": CAUTION,
}


@pytest.mark.parametrize("command", SEED_BYPASSES)
def test_every_bypass_and_false_alarm_of_the_seed_has_its_level(command: str) -> None:
    assert level(command) == SEED_BYPASSES[command]


HEAD_BYPASSES = {
    "((rm -rf x) )": DANGEROUS,
    "((rm -rf x); ls)": DANGEROUS,
    "git log --output=FILE": CAUTION,
    "git diff --ext-diff": DANGEROUS,
    "GIT_PAGER='rm -rf x' git -p log": DANGEROUS,
    "go list -toolexec=./evil": DANGEROUS,
    "go env -w GOFLAGS=-x": CAUTION,
    "rg --pre ./evil": DANGEROUS,
    "LD_PRELOAD=./e.so ls": DANGEROUS,
    "PATH=. ls": DANGEROUS,
    "hostname evil": CAUTION,
    "date -s now": CAUTION,
    "$(echo rm) -rf x": DANGEROUS,
    "echo '<<' ; rm -rf x": DANGEROUS,
    "/bin/r? -rf x": DANGEROUS,
    "{rm,-rf,x}": DANGEROUS,
    "\\\nrm x": DANGEROUS,
    "exec -a foo rm -rf x": DANGEROUS,
    "xargs -i rm {}": DANGEROUS,
    "xargs -l rm": DANGEROUS,
    "xargs --max-args 1 rm": DANGEROUS,
    "git -c http.x=y push --force": DANGEROUS,
    "curl u | python3": DANGEROUS,
    "curl u | perl": DANGEROUS,
    "curl u | node": DANGEROUS,
    "sed 's/a/b/e' f": DANGEROUS,
    "sed '1e rm' f": DANGEROUS,
    "tar xf a --checkpoint-action=exec=./evil": DANGEROUS,
    "tar xf a --to-command=./evil": DANGEROUS,
    "split --filter=./evil f": DANGEROUS,
    "rsync -e ./evil a b": DANGEROUS,
    "ssh -o ProxyCommand=./evil host": DANGEROUS,
    "sqlite3 db '.shell rm'": DANGEROUS,
    "psql -c '\\! rm'": DANGEROUS,
    "mysql -e 'select 1; drop table x'": DANGEROUS,
    "psql -c 'BEGIN; DROP TABLE x'": DANGEROUS,
    "find . -exec python3 evil.py \\;": CAUTION,
    "parallel rm": DANGEROUS,
    "script -c 'rm x'": DANGEROUS,
    "watch rm x": DANGEROUS,
    "flock x rm y": DANGEROUS,
    "chroot d rm x": DANGEROUS,
    "unshare -r rm x": DANGEROUS,
    "systemd-run rm x": DANGEROUS,
    "npm exec x": DANGEROUS,
    "yarn dlx x": DANGEROUS,
    "cargo run": CAUTION,
    "go run .": CAUTION,
    "docker run -v /:/h alpine ls": DANGEROUS,
    ":(){ :|:& };:": DANGEROUS,
    "chmod -R 777 /": DANGEROUS,
    "git checkout .": DANGEROUS,
    "git restore .": DANGEROUS,
    "git stash drop": DANGEROUS,
    "git branch -D x": DANGEROUS,
    "ls 2>&1": SAFE,
    "ls >/dev/null": SAFE,
    "make": CAUTION,
    "awk '{print $1}' f": CAUTION,
    "git push": CAUTION,
}


@pytest.mark.parametrize("command", HEAD_BYPASSES)
def test_every_bypass_and_false_alarm_of_the_later_version_has_its_level(command: str) -> None:
    assert level(command) == HEAD_BYPASSES[command]


SEED_TABLE = {
    SAFE: "ls cat grep rg find head tail wc stat file pwd echo printf date env which whoami hostname true "
    "false",
    CAUTION: "cp mv mkdir touch chmod chown awk tar zip unzip curl wget go git rsync tee alias hash docker "
    "podman kubectl "
    "helm terraform tofu pulumi gh brew apt apt-get dnf yum pacman npm pnpm yarn bun pip pip3 gem cargo "
    "composer aws az gcloud "
    "psql mysql sqlite3",
    DANGEROUS: "rm rmdir dd mkfs mkfs.ext4 mkfs.xfs fdisk parted shred wipe fsck reboot shutdown halt "
    "poweroff kill killall "
    "sudo su sh bash zsh unlink mkswap wipefs blkdiscard truncate doas pkexec dash ksh mksh ash fish csh "
    "tcsh npx bunx",
}


@pytest.mark.parametrize(
    ("verb", "expected"), [(v, rank) for rank, verbs in SEED_TABLE.items() for v in verbs.split()]
)
def test_every_verb_of_the_tables_has_its_level(verb: str, expected: str) -> None:
    assert level(verb) == expected


SUBCOMMANDS = {
    "rm -rf build": DANGEROUS,
    "chmod 777 f": CAUTION,
    "chmod a+rwx f": CAUTION,
    "git push --force": DANGEROUS,
    "git push origin main -f": DANGEROUS,
    "git status": SAFE,
    "git log": SAFE,
    "git show": SAFE,
    "git diff": SAFE,
    "go env": SAFE,
    "go version": SAFE,
    "go list ./...": SAFE,
    "go doc fmt": SAFE,
    "go help": SAFE,
    "git clean -n": SAFE,
    "git clean -f -e -n": DANGEROUS,
    "git checkout -- f": DANGEROUS,
    "git restore -- f": DANGEROUS,
    "git -c alias.x='!rm y' x": DANGEROUS,
    "find . -fprintf f x": CAUTION,
    "rsync --delete a b": DANGEROUS,
    "rsync --remove-source-files a b": DANGEROUS,
    "docker rm x": DANGEROUS,
    "docker system prune": DANGEROUS,
    "docker volume rm x": DANGEROUS,
    "docker container prune": DANGEROUS,
    "docker compose down -v": DANGEROUS,
    "kubectl delete pod x": DANGEROUS,
    "kubectl drain n": DANGEROUS,
    "helm uninstall x": DANGEROUS,
    "helm delete x": DANGEROUS,
    "terraform destroy": DANGEROUS,
    "tofu apply -destroy": DANGEROUS,
    "pulumi destroy": DANGEROUS,
    "pulumi stack rm x": DANGEROUS,
    "gh repo delete x": DANGEROUS,
    "gh release delete x": DANGEROUS,
    "gh run delete 1": DANGEROUS,
    "gh api -X DELETE repos/x": DANGEROUS,
    "npm uninstall x": DANGEROUS,
    "pip uninstall x": DANGEROUS,
    "apt remove x": DANGEROUS,
    "apt-get purge x": DANGEROUS,
    "apt autoremove": DANGEROUS,
    "dnf erase x": DANGEROUS,
    "pacman -Rns x": DANGEROUS,
    "brew uninstall x": DANGEROUS,
    "gem uninstall x": DANGEROUS,
    "composer remove x": DANGEROUS,
    "cargo uninstall x": DANGEROUS,
    "aws s3 rm s3://b/x": DANGEROUS,
    "aws s3 rb s3://b": DANGEROUS,
    "aws ec2 terminate-instances --instance-ids i": DANGEROUS,
    "aws iam delete-user --user-name x": DANGEROUS,
    "aws ec2 remove-tags x": DANGEROUS,
    "az vm delete -n x": DANGEROUS,
    "gcloud compute instances delete x": DANGEROUS,
    "psql -c 'DROP TABLE x'": DANGEROUS,
    "psql -c 'TRUNCATE x'": DANGEROUS,
    "mysql -e 'DELETE FROM x'": DANGEROUS,
    "sqlite3 f 'drop table x'": DANGEROUS,
    "alias ls='rm -rf x'": DANGEROUS,
    "hash -p /tmp/evil ls": DANGEROUS,
    "pnpm dlx x": DANGEROUS,
    "pnpm exec x": DANGEROUS,
    "bun x y": DANGEROUS,
    "node -e 1": DANGEROUS,
    "nodejs --eval 1": DANGEROUS,
    "node -p 1": DANGEROUS,
    "node --print 1": DANGEROUS,
    "perl -e 1": DANGEROUS,
    "perl -E 1": DANGEROUS,
    "ruby -e 1": DANGEROUS,
    "php -r 1": DANGEROUS,
    "lua -e 1": DANGEROUS,
    "lua5.4 -e 1": DANGEROUS,
    "Rscript -e 1": DANGEROUS,
    "julia --eval 1": DANGEROUS,
    "osascript -e 1": DANGEROUS,
    "pwsh -Command ls": DANGEROUS,
    "powershell -EncodedCommand x": DANGEROUS,
    "cmd /c del": DANGEROUS,
    "python3 -cprint": DANGEROUS,
    "perl -ne 'unlink'": DANGEROUS,
    "python3 < f": DANGEROUS,
    "python3 -": DANGEROUS,
    "python3 /dev/stdin": DANGEROUS,
    "cat f | node --input-type=module": DANGEROUS,
    "trap 'rm x' EXIT": DANGEROUS,
    "trap ls EXIT": DANGEROUS,
    "command -v rm": SAFE,
    "builtin echo x": SAFE,
    "time -o /dev/sda ls": DANGEROUS,
    "echo x | tee /dev/sda": DANGEROUS,
    "cp x /dev/sda": DANGEROUS,
    "mv x /dev/nvme0n1": DANGEROUS,
    "curl u -o /dev/sda": DANGEROUS,
    "wget -O /dev/sda u": DANGEROUS,
    "tar -cf /dev/sda d": DANGEROUS,
    "chmod 600 /dev/sda": DANGEROUS,
    "taskset -c 0 rm x": DANGEROUS,
    "toybox rm x": DANGEROUS,
    "setsid rm x": DANGEROUS,
    "stdbuf -oL rm x": DANGEROUS,
    "env -S 'rm x'": DANGEROUS,
    "env -u A -C /tmp rm x": DANGEROUS,
    "coproc rm x": DANGEROUS,
    "coproc N { rm x; }": DANGEROUS,
    "case a in a) rm x;; esac": DANGEROUS,
    "! rm x": DANGEROUS,
    "while true; do rm x; done": DANGEROUS,
}


@pytest.mark.parametrize("command", SUBCOMMANDS)
def test_every_sub_command_of_the_tables_has_its_level(command: str) -> None:
    assert level(command) == SUBCOMMANDS[command]
