"""run_shell: what may run, who says so, and what the jail says when the command goes too far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cases import case
from corral import Policy
from corral.approval import Approval
from corral.risk.approval import Answer, Request
from jail.world import World
from tools.room import Room, open_room

pytestmark = pytest.mark.jail


@case("jinn-80")
def test_a_dangerous_command_is_refused_and_force_runs_it(any_room: Room) -> None:
    target = any_room.file("x/y")
    response = any_room.call("run_shell", command="rm -rf x")
    assert response["ok"] is False
    assert response["error"].startswith("blocked by risk classifier: dangerous — ")
    assert response["suggestion"] == "pass force:true in args to override, or use a less-destructive command"
    assert (response["risk"], response["error_code"]) == ("dangerous", "command_blocked")
    assert target.exists()
    response = any_room.call("run_shell", command="rm -rf x", force=True)
    assert (response["ok"], response["risk"]) == (True, "dangerous")
    assert response["meta"]["risk"]["forced"]
    assert not target.exists()


def policy(**fields: Any) -> Policy:
    return Policy.workspace_write(approval=Approval(**fields))


def test_force_counts_only_where_the_host_allows_it(world: World) -> None:
    with open_room(world.workspace, policy(allow_force=False)) as room:
        target = room.file("x")
        response = room.call("run_shell", command="rm x", force=True)
        assert (response["ok"], response["error_code"]) == (False, "command_blocked")
        assert "force" not in response["suggestion"]
        assert target.exists()
        assert room.call("run_shell", command="cat x")["ok"]


@case("rubino-27")
@pytest.mark.parametrize("command", ["rm -rf /", "rm -rf ~", ":(){ :|:& };:", "echo hi && shutdown now"])
def test_force_never_lifts_what_would_wipe_or_halt(world: World, command: str) -> None:
    def yes(request: Request) -> Answer:
        return request.allow()

    with open_room(world.workspace, policy(dangerous="allow"), approver=yes) as room:
        response = room.call("run_shell", command=command, force=True)
        assert (response["ok"], response["error_code"], response["risk"]) == (
            False,
            "command_hardline",
            "dangerous",
        )
        assert response["meta"]["risk"]["hardline"]


@case("rubino-37")
def test_asking_asks_about_exactly_what_runs_and_with_nobody_there_it_is_a_refusal(world: World) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        return request.allow() if "yes" in request.command else request.deny()

    with open_room(world.workspace, policy(dangerous="ask"), approver=answer) as room:
        for name in ("yes", "no"):
            room.file(name)
        assert room.call("run_shell", command="rm yes")["ok"]
        response = room.call("run_shell", command="rm no", force=True)
        assert (response["ok"], response["error_code"]) == (False, "approval_required")
        assert [request.command for request in asked] == ["rm yes", "rm no"]
        assert {request.cwd for request in asked} == {str(room.root)}
        assert sorted(path.name for path in Path(room.root).iterdir() if path.name in ("yes", "no")) == ["no"]
    with open_room(world.workspace, policy(dangerous="ask")) as room:
        response = room.call("run_shell", command="rm no", force=True)
        assert (response["ok"], response["error_code"], response["risk"]) == (
            False,
            "approval_required",
            "dangerous",
        )


def test_an_answer_for_another_command_is_no_answer(world: World) -> None:
    def replayed(request: Request) -> Answer:
        return Answer("0" * 64, True)

    with open_room(world.workspace, policy(dangerous="ask"), approver=replayed) as room:
        room.file("x")
        assert room.refused("run_shell", command="rm x")[0] == "approval_required"


def test_an_approver_that_fails_has_not_said_yes(world: World) -> None:
    def broken(request: Request) -> Answer:
        raise OSError("the terminal is gone")

    with open_room(world.workspace, policy(dangerous="ask"), approver=broken) as room:
        kept = room.file("x")
        response = room.call("run_shell", command="rm x")
        assert (response["error_code"], response["risk"]) == ("approval_required", "dangerous")
        assert kept.exists()


def test_a_refusal_of_the_jail_is_told_with_its_rule_and_not_to_be_worked_around(
    world: World, backend: str
) -> None:
    with open_room(world.workspace, Policy.workspace_write(backend=backend)) as room:
        response = room.call("run_shell", command=f"echo inside > mine; echo x > {world.outside}/new")
        assert (room.root / "mine").read_text() == "inside\n"
        assert not (world.outside / "new").exists()
        assert response["ok"]
        assert response["classification"] == "error"
        assert "do not work around it" in response["result"]
        assert f"{world.outside}/new: write refused" in response["result"]
        assert "--rw" in response["result"]
        assert response["meta"]["denials"][0]["operation"] == "write"


def test_a_command_sees_neither_keys_nor_our_state(world: World, backend: str) -> None:
    with open_room(world.workspace, Policy.workspace_write(backend=backend)) as room:
        room.text("memory", action="save", key="k", value="the-remembered")
        shown = room.text(
            "run_shell",
            command="cat ~/.ssh/id_test ~/.netrc 2>&1; grep -r the-remembered ~ 2>/dev/null; true",
        )
        if backend == "namespaces":
            assert "the-secret" not in shown
            assert "the-remembered" not in shown
        wrote = "echo x >> ~/.local/state/corral/memory.db; test -s ~/.profile && echo fine"
        assert "\nfine\n" in room.text("run_shell", command=wrote, force=True)
        assert room.text("memory", action="recall", key="k") == "the-remembered"
