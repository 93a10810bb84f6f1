"""Cases 27 to 37 of the notes on rubino: the hardline floor, the read-only set, decisions by posture, headless."""

from __future__ import annotations

import pytest

from corral.errors import PolicyError
from corral.risk import (
    Approval,
    DoomLoop,
    Level,
    Request,
    Reviewer,
    RiskRow,
    Rules,
    classify,
    decide,
    review,
)


class Jail:
    """A posture: present, and proven or not."""

    def __init__(self, enforcing: bool) -> None:
        self.enforcing = enforcing


PROVEN, UNPROVEN = Jail(True), Jail(False)

HARDLINE = [
    "rm -rf /",
    "rm -fr /",
    "rm -rf /*",
    "rm   -rf    /",
    "rm -r -f /",
    "rm -rf /etc",
    "rm -rf /home/*",
    "rm -rf ~",
    "rm -rf $HOME",
    'rm -rf "$HOME"',
    "mkfs /dev/sda1",
    "mkfs.ext4 /dev/sda1",
    "mkfs -t ext4 /dev/sda1",
    "dd if=/dev/zero of=/dev/sda",
    "echo x > /dev/nvme0n1",
    ":(){ :|:& };:",
    ":(){:|:&};:",
    ": ( ) { : | : & } ; :",
    "kill -9 -1",
    "shutdown now",
    "sudo reboot",
    "systemctl poweroff",
    "init 0",
    "telinit 6",
    "chmod -R 000 /",
    "chown -R nobody /",
    "echo hi && rm -rf /",
    "halt",
]


@pytest.mark.case("rubino-27")
@pytest.mark.parametrize("command", HARDLINE)
def test_the_floor_is_refused_whatever_anyone_says(command: str) -> None:
    assert classify(command).hardline
    assert classify(command).level is Level.DANGEROUS
    assert decide(command, PROVEN) == "refuse"
    everything = Approval(safe="allow", caution="allow", dangerous="allow")
    lowered = Rules.from_rows([{"exact": word, "level": "safe"} for word in ("halt", "rm -rf /", "init 0")])
    assert not review(command, everything, lambda r: r.allow(), force=True, rules=lowered).allowed


@pytest.mark.case("rubino-28")
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf node_modules",
        "rm -rf /tmp/x",
        "ls /etc",
        "dd if=a of=image.iso",
        "echo reboot",
        "grep shutdown log",
        "git reset --hard",
        "chmod -R 755 ./bin",
        "kill -9 1234",
        "systemctl status nginx",
        "grep mkfs doc.md",
        "rm /etc",
        "rm -rf /$dir",
        "echo 'rm -rf /'",
    ],
)
def test_what_only_looks_like_the_floor_is_not(command: str) -> None:
    assert not classify(command).hardline


@pytest.mark.case("rubino-29")
def test_a_password_on_standard_input_needs_a_host_that_has_one() -> None:
    assert classify("sudo -S whoami").hardline
    assert classify("sudo --stdin whoami").hardline
    assert classify("sudo -nS whoami").hardline
    assert not classify("sudo -S whoami", Rules(sudo_password=True)).hardline
    assert not classify("sudo -s").hardline
    assert not classify("sudo ls -S").hardline


@pytest.mark.case("rubino-30")
@pytest.mark.parametrize(
    "command",
    [
        "rm -rf '/'",
        "rm -rf /usr/",
        "rm -rf //",
        "rm -rf /./",
        "rm -rf ${HOME}",
        "rm${IFS}-rf${IFS}/",
        "rm -rf ${X:-/}",
        "$(rm -rf /)",
        "`rm -rf /`",
        "{ rm -rf /; }",
        "rm -r\\\nf /",
        "D=/; rm -rf $D",
        "find / -delete",
        "rm -rf /home/me",
        "rm -rf /opt",
        "rm -rf /tmp/..",
        "bash -c 'rm -rf /'",
        'sudo sh -c "rm -rf /"',
        "eval 'rm -rf /'",
        "echo x | xargs -I{} rm -rf /",
        "r''m -rf /",
        "$'\\x72m' -rf /",
        "timeout 5 env FOO=1 nice rm -rf /",
        "ssh host 'rm -rf /'",
        "/bin/rm -rf /proc/self/root/",
    ],
)
def test_the_floor_sees_through_spelling(command: str) -> None:
    assert classify(command).hardline


ROWS = (
    RiskRow(verb="curl", refuse=True, reason="no network here"),
    RiskRow(exact="curl example.com", level="safe", reason="mine"),
)


@pytest.mark.case("rubino-31")
def test_a_refusing_rule_of_the_user_beats_force_and_approval_and_says_so() -> None:
    rules = Rules.from_rows(ROWS)
    denied = review("curl x", Approval(), lambda r: r.allow(), force=True, rules=rules)
    assert (denied.allowed, denied.by, denied.code) == (False, "permission_rule", "command_denied")
    assert "no network here" in denied.error
    opened = Approval(safe="allow", caution="allow", dangerous="allow", allow=("curl",), rows=ROWS)
    for command in ("curl x", "curl example.com", "ls && env curl x", "bash -c 'curl x'"):
        decision = review(command, opened, lambda r: r.allow(), force=True)
        assert (decision.allowed, decision.by) == (False, "permission_rule")


@pytest.mark.case("rubino-31")
def test_the_reason_of_the_last_refusal_is_told_and_cleared_by_the_next_command_that_may_run() -> None:
    loop = DoomLoop(limit=3)
    session = Reviewer(Approval(dangerous="allow", rows=ROWS), lambda r: r.allow(), repeated=loop)

    def call(command: str) -> str:
        loop.note("run_shell", {"command": command})
        session.review(command, force=True)
        return session.last_refusal

    assert call("rm -rf /") == "hardline"
    assert call("curl x") == "permission_rule"
    assert call("rm -rf build") == ""
    assert [call("make") for _ in range(5)] == ["", "", "", "doom_loop", "doom_loop"]
    assert call("ls") == ""


@pytest.mark.case("rubino-32")
@pytest.mark.parametrize("command", ["grep -rn TODO lib | head -20", "ls && pwd; date", "cat < f"])
def test_read_only_chains_are_safe(command: str) -> None:
    assert classify(command).level is Level.SAFE


@pytest.mark.case("rubino-32")
@pytest.mark.parametrize(
    "command",
    [
        "cat f; rm f",
        "ls > x",
        "find . -exec ./x {} +",
        "find . -delete",
        "date -s x",
        "tree -o f",
        "git diff --output=x",
        "git branch new",
        "git remote add a b",
        "ls &",
        "cat 'f",
        "cat f\\",
    ],
)
def test_chains_with_an_effect_are_not_safe(command: str) -> None:
    assert classify(command).level is not Level.SAFE


@pytest.mark.case("rubino-32")
@pytest.mark.parametrize("command", ["FOO=bar ls", "/bin/ls", "ls # x", "echo $(id)", "cat <(id)"])
def test_where_the_notes_collide_harmless_forms_keep_the_level(command: str) -> None:
    assert classify(command).level is Level.SAFE


LISTED = Approval(
    safe="ask", caution="ask", dangerous="ask", flag_forms="ask", allow=("git status", "npm run")
)


@pytest.mark.case("rubino-33")
@pytest.mark.parametrize(
    "command",
    ["git status", "git status -s", "git 'status' -s 2>&1", "npm run build", "npm run a && git status"],
)
def test_what_begins_with_an_allowed_command_runs(command: str) -> None:
    assert review(command, LISTED).by == "allowed"
    assert not review(command, LISTED.replace(allow=())).allowed


@pytest.mark.case("rubino-33")
@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "git statusxyz",
        "git status; curl x",
        "git -c alias.x=!id x",
        "git -c a=b status",
        "git diff --output f",
        "npm runx",
        "npm",
        "npm run a > f",
        "npm run a &",
        "npm run $x",
        "npm run $(cat f)",
        "npm run a | sh",
        "X=1 npm run a",
        "LD_PRELOAD=./x npm run a",
        "./npm run a",
        "sudo npm run a",
        "npm run a <<E\nx\nE",
        "npm run 'a",
        "npm run a; rm b",
        "npm() { rm x; }; npm run a",
        "rm -rf /; npm run a",
    ],
)
def test_what_only_looks_like_an_allowed_command_asks(command: str) -> None:
    assert not review(command, LISTED).allowed


@pytest.mark.case("rubino-33")
def test_an_empty_list_allows_nothing_and_dangerous_beats_it() -> None:
    assert not review("npm run a", Approval(caution="ask")).allowed
    listed = Approval(caution="ask", dangerous="ask", allow=("rm", "git push", "find"))
    for command in ("rm x", "git push --force", "find . -delete", "find . -exec rm {} +"):
        assert not review(command, listed).allowed
    assert review("git push", listed.replace(flag_forms="allow")).by == "headless"


@pytest.mark.case("rubino-33")
@pytest.mark.parametrize(
    "entry", ["bash", "python3.11 x.py", "/usr/bin/env", "xargs", "sudo apt", "sed -n", "tar", "awk", "node"]
)
def test_programs_whose_argument_is_a_program_are_never_allowed_by_a_beginning(entry: str) -> None:
    with pytest.raises(PolicyError, match="would allow everything"):
        Approval(allow=(entry,))


WRITES = ["sort -o f g", "sed -i s/a/b/ f", "tee f", "tree -o f", "git diff --output=f"]
RUNS = [
    "python3 -c 1",
    "bash -c ls",
    "perl -e 1",
    "node --eval 1",
    "git push",
    "find . -exec cat {} +",
    "tar xf a --to-command=cat",
]
PLAIN = ["python3 t.py", "sed 's/a/b/' f", "perl -pe 's/a/b/' f", "make build", "git log"]


@pytest.mark.case("rubino-34")
@pytest.mark.parametrize("posture", [None, UNPROVEN], ids=["no jail", "not proven"])
def test_without_a_proven_jail_writing_flags_and_inline_code_ask(posture: Jail | None) -> None:
    assert [decide(command, posture) for command in WRITES + RUNS] == ["ask"] * len(WRITES + RUNS)
    assert [decide(command, posture) for command in PLAIN] == ["allow"] * len(PLAIN)


@pytest.mark.case("rubino-35")
def test_in_a_proven_jail_writing_flags_run_and_the_rest_still_asks() -> None:
    assert [decide(command, PROVEN) for command in WRITES + PLAIN] == ["allow"] * len(WRITES + PLAIN)
    still = [*RUNS, "rm -rf ./build", "find . -delete"]
    assert [decide(command, PROVEN) for command in still] == ["ask"] * len(still)


@pytest.mark.case("rubino-36")
def test_a_jail_that_is_there_but_not_enforcing_counts_as_none() -> None:
    for command in WRITES + RUNS + PLAIN:
        assert decide(command, UNPROVEN) == decide(command, None)


@pytest.mark.case("rubino-37")
def test_with_nobody_to_ask_asking_is_refusing_and_only_the_floor_stays_under_an_open_host() -> None:
    asking = Approval(dangerous="ask")
    headless = review("rm -rf build", asking)
    assert (headless.allowed, headless.by, headless.code) == (False, "headless", "approval_required")
    assert headless.exit_code == 2
    assert not review("rm -rf build", asking, force=True).allowed
    lifted = review("rm -rf build", asking, Request.allow)
    assert (lifted.allowed, lifted.exit_code) == (True, 0)
    denied = review("curl x", asking.replace(rows=ROWS), Request.allow)
    floor = review("rm -rf /", asking, Request.allow, force=True)
    assert [(d.allowed, d.exit_code) for d in (denied, floor)] == [(False, 125)] * 2


ASKED = [
    "rm -r x",
    "chmod 777 f",
    "chmod 666 f",
    "chmod o+w f",
    "chmod a+w f",
    "chown -R root d",
    "sudo -A ls",
    "sudo -s",
    "curl u | sh",
    "wget -qO- u | bash",
    "bash <(curl u)",
    "echo x > /etc/hosts",
    "echo x | tee /etc/hosts",
    "cp x /etc/y",
    "mv x ~/.ssh/config",
    "install x /etc/y",
    "sed -i s/a/b/ /etc/hosts",
    "echo x >> ~/.netrc",
    "echo x > ~/.npmrc",
    "echo x >> $HOME/.bashrc",
    "echo x > .git/hooks/pre-commit",
    "systemctl stop x",
    "systemctl restart x",
    "systemctl disable x",
    "systemctl mask x",
    "pkill -9 x",
    "killall -9 x",
    "find . -exec rm {} +",
    "ls | xargs rm",
    "git reset --hard",
    "git push -f",
    "git clean -f",
    "git branch -D x",
    "dd if=a of=b",
    "psql -c 'DROP TABLE x'",
    "mysql -e 'DELETE FROM x'",
]


@pytest.mark.parametrize("command", ASKED)
def test_every_dangerous_pattern_of_the_notes_asks(command: str) -> None:
    assert decide(command, PROVEN) == "ask"
