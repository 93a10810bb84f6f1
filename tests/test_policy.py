"""Policy: a checked value that can be printed, carried around and tightened."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral import claims
from corral.errors import CorralError, PolicyError
from corral.policy import LIMITS, MODES, OUTPUT_LIMIT, Grant, Limits, Policy
from corral.variables import EnvRule, default_rules, scrub

if TYPE_CHECKING:
    from corral.policy import Mode

PATHS = ("/a", "/b", "/a/c")
NAMES = ("X", "XY", "PATH")

grants = st.builds(Grant, st.sampled_from(PATHS), st.sampled_from(("rw", "ro", "hide", "none")))
rules = st.builds(EnvRule, st.sampled_from(("drop", "keep")), st.sampled_from((*NAMES, "X*", "*")))
bounds = st.none() | st.integers(1, 9)
limits = st.builds(Limits, bounds, bounds, bounds, bounds, bounds, bounds)
MODES_HERE: tuple[Mode, ...] = ("off", "read-only", "workspace-write")
globs = st.lists(st.sampled_from(("out/**", "src/*.py", "docs/**")), min_size=1, max_size=3, unique=True)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    mode = draw(st.sampled_from(MODES_HERE))
    return Policy(
        mode=mode,
        roots=tuple(draw(st.lists(st.sampled_from(PATHS), max_size=2, unique=True))),
        writable=None if mode == "read-only" else draw(st.none() | globs.map(tuple)),
        grants=tuple(draw(st.lists(grants, max_size=4))),
        unhide=tuple(draw(st.lists(st.sampled_from((".netrc", ".aws")), max_size=2, unique=True))),
        environment=tuple(draw(st.lists(rules, max_size=4))),
        network=draw(st.sampled_from((None, "off", "open"))),
        limits=draw(limits),
        require=draw(st.booleans()),
        backend=draw(st.sampled_from(("auto", "namespaces", "landlock"))),
        demands=tuple(draw(st.lists(st.sampled_from(tuple(claims.CLAIMS)), max_size=3, unique=True))),
        unix_sockets=draw(st.booleans()),
        shared_memory=draw(st.booleans()),
        output_limit=draw(st.integers(1, 1 << 30)),
    )


def both(a: Policy, b: Policy) -> Policy | None:
    """The tighter of the two, or None where they have nothing in common and that is said."""
    try:
        return a & b
    except PolicyError:
        return None


# ---- building ----


def test_the_default_of_the_library_is_workspace_write_without_a_network() -> None:
    policy = Policy()
    assert (policy.mode, policy.network, policy.require, policy.backend) == (
        "workspace-write",
        "off",
        True,
        "auto",
    )
    assert policy.environment == default_rules()
    assert policy.output_limit == OUTPUT_LIMIT == 10 * 1024 * 1024


@pytest.mark.parametrize("mode", MODES)
def test_there_is_a_constructor_for_every_mode(mode: str) -> None:
    policy: Policy = getattr(Policy, mode.replace("-", "_"))(require=False)
    assert (policy.mode, policy.network, policy.require) == (mode, MODES[mode][0], False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "workspace-rite"}, r"unknown mode 'workspace-rite'.*did you mean workspace-write\?"),
        ({"mode": "readonly"}, r"did you mean read-only\?"),
        ({"mode": "quux"}, r"there is off, read-only, workspace-write, casual, bare, strict$"),
        ({"backend": "landlok"}, r"unknown backend.*did you mean landlock\?"),
        ({"network": "on"}, r"unknown network 'on'"),
        ({"network": ""}, r"unknown network ''"),
        ({"demands": ["write"]}, r"unknown claim 'write'.*did you mean writes\?"),
        ({"output_limit": 0}, "output_limit must be above 0"),
        ({"roots": "/a"}, r"roots is a list, not one string: \['/a'\]"),
        ({"grants": "/a"}, "grants is a list"),
        ({"mode": "read-only", "writable": ["out/**"]}, "read-only has no writable globs"),
        ({"writable": []}, "empty"),
    ],
)
def test_a_wrong_field_is_refused_with_the_nearest_right_word(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        Policy(**fields)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, CorralError)


def test_an_unknown_field_is_a_type_error_like_any_function() -> None:
    with pytest.raises(TypeError, match="no field 'netwrk'"):
        Policy(netwrk="off")  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [0, -1, True, False, "5", float("nan"), float("inf")])
@pytest.mark.parametrize("name", Limits._fields)
def test_a_limit_is_a_finite_number_above_zero(name: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=f"limit {name.replace('_', '-')} must be a number above 0"):
        Limits(**{name: value})


def test_limits_stand_in_one_table() -> None:
    assert [name.replace("_", "-") for name in Limits._fields] == list(LIMITS)
    assert Limits() == Limits(**{name.replace("-", "_"): library for name, (_, library, _) in LIMITS.items()})


@pytest.mark.parametrize("fields", [("", "rw"), ("/a\0", "rw"), ("/a", "rx"), ("/a", "rw", "maybe")])
def test_a_wrong_grant_is_refused(fields: tuple[Any, ...]) -> None:
    with pytest.raises(PolicyError):
        Grant(*fields)


def test_grants_have_short_constructors() -> None:
    assert Grant.rw("/a") == Grant("/a", "rw", "refuse")
    assert Grant.ro("/a", missing="skip") == Grant("/a", "ro", "skip")
    assert Grant.hide("/a") == Grant("/a", "hide", "skip")


# ---- as a value ----


@given(policies())
def test_a_policy_survives_dict_json_and_pickle(policy: Policy) -> None:
    assert Policy.from_dict(policy.to_dict()) == policy
    assert Policy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    copy = pickle.loads(pickle.dumps(policy))
    assert copy == policy
    assert hash(copy) == hash(policy)
    assert len({policy, copy}) == 1


def test_from_dict_takes_a_part_and_refuses_what_it_does_not_know() -> None:
    assert Policy.from_dict({}) == Policy()
    assert Policy.from_dict({"mode": "read-only"}) == Policy.read_only()
    with pytest.raises(PolicyError, match=r"unknown field 'writeable'.*did you mean writable\?"):
        Policy.from_dict({"writeable": ["a"]})


@pytest.mark.parametrize(
    "fields",
    [
        {"limits": {"wal": 3}},
        {"grants": [{"pth": "/a", "access": "rw"}]},
        {"grants": [{"path": "/a"}]},
        {"environment": [{"verb": "drop", "nam": "X"}]},
    ],
)
def test_from_dict_refuses_an_unknown_or_missing_part_as_a_policy_error(fields: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        Policy.from_dict(fields)


def test_to_dict_is_plain_data_and_names_every_field() -> None:
    policy = Policy(grants=(Grant.rw("/a"),), writable=("out/**",))
    assert list(policy.to_dict()) == list(Policy._fields)
    assert policy.to_dict()["grants"] == [{"path": "/a", "access": "rw", "missing": "refuse"}]


def test_a_policy_does_not_change_and_replace_checks() -> None:
    policy = Policy()
    with pytest.raises(AttributeError):
        policy.mode = "off"  # type: ignore[misc]
    assert policy.replace(network="open").network == "open"
    assert policy.network == "off"
    with pytest.raises(PolicyError):
        policy.replace(mode="of")


def test_allow_adds_grants_at_the_end_of_a_new_policy() -> None:
    policy = Policy(grants=(Grant.ro("/a"),))
    wider = policy.allow(Grant.rw("/b"), Grant("/a", "none"))
    assert wider.grants == (Grant.ro("/a"), Grant.rw("/b"), Grant("/a", "none"))
    assert policy.grants == (Grant.ro("/a"),)


# ---- what must hold ----


def test_off_demands_nothing_and_a_closed_network_demands_that_it_is() -> None:
    assert Policy.off().demanded == ()
    assert set(Policy.read_only().demanded) == {*claims.ALWAYS, *claims.NETWORK_OFF}
    assert set(Policy.read_only(network="open").demanded) == set(claims.ALWAYS)


def test_a_hidden_path_demands_that_it_is_hidden() -> None:
    assert "hidden" not in Policy().demanded
    assert "hidden" in Policy(grants=(Grant.hide("/a"),)).demanded


@given(policies())
def test_demands_come_in_the_order_of_the_table_once_each(policy: Policy) -> None:
    order = list(claims.CLAIMS)
    assert list(policy.demanded) == sorted(set(policy.demanded), key=order.index)
    if policy.mode != "off":
        assert set(policy.demands) <= set(policy.demanded)


# ---- the tighter of two ----

# Tighter first.
CHAINS = [("read-only", "workspace-write", "off"), ("strict", "bare", "off"), ("strict", "casual", "off")]


@pytest.mark.parametrize("chain", CHAINS)
def test_the_tighter_mode_wins_from_both_sides(chain: tuple[str, ...]) -> None:
    for position, tight in enumerate(chain):
        for loose in chain[position:]:
            a, b = Policy.from_dict({"mode": tight}), Policy.from_dict({"mode": loose})
            assert (a & b).mode == (b & a).mode == tight


@pytest.mark.parametrize(
    ("a", "b"), [("read-only", "casual"), ("workspace-write", "strict"), ("bare", "casual")]
)
def test_modes_that_cannot_be_compared_are_refused(a: str, b: str) -> None:
    for first, second in ((a, b), (b, a)):
        with pytest.raises(PolicyError, match="neither is the tighter"):
            Policy.from_dict({"mode": first}) & Policy.from_dict({"mode": second})


def test_globs_without_one_in_common_are_refused_and_not_forgotten() -> None:
    with pytest.raises(PolicyError, match="none in common"):
        Policy(writable=("a/**",)) & Policy(writable=("b/**",))
    assert (Policy(writable=("a/**", "b/**")) & Policy(writable=("b/**",))).writable == ("b/**",)
    assert (Policy(writable=("a/**",)) & Policy()).writable == ("a/**",)


@given(policies())
def test_a_policy_and_itself_is_itself(policy: Policy) -> None:
    same = policy & policy
    assert granted(same) == granted(policy)
    assert same.replace(grants=(), environment=()) == policy.replace(grants=(), environment=())
    environment = dict.fromkeys(NAMES, "x")
    assert scrub(same.environment, environment) == scrub(policy.environment, environment)


def granted(policy: Policy) -> dict[str, str]:
    """What each path ends up as: a later grant of the same path replaces the earlier; hiding stays."""
    found: dict[str, str] = {}
    for grant in policy.grants:
        if grant.access == "none":
            found.pop(grant.path, None)
        elif grant.access != "hide":
            found[grant.path] = grant.access
    return found


def hidden(policy: Policy) -> set[str]:
    return {grant.path for grant in policy.grants if grant.access == "hide"}


@given(policies(), policies())
def test_every_plain_field_is_at_least_as_tight_as_on_either_side(a: Policy, b: Policy) -> None:
    tight = both(a, b)
    if tight is None:
        return
    for side in (a, b):
        assert set(tight.roots) <= set(side.roots)
        assert set(tight.unhide) <= set(side.unhide)
        assert set(tight.demands) >= set(side.demands)
        assert tight.network == "off" or side.network == "open"
        assert tight.require or not side.require
        assert side.unix_sockets or not tight.unix_sockets
        assert side.shared_memory or not tight.shared_memory
        assert tight.output_limit <= side.output_limit
        for name in Limits._fields:
            ours, theirs = getattr(tight.limits, name), getattr(side.limits, name)
            assert theirs is None or (ours is not None and ours <= theirs)
        if tight.mode != "read-only" and side.writable is not None:
            assert tight.writable is not None
            assert set(tight.writable) <= set(side.writable)


@given(policies(), policies())
def test_nothing_is_granted_for_writing_that_one_side_does_not_grant(a: Policy, b: Policy) -> None:
    tight = both(a, b)
    if tight is None:
        return
    for path, access in granted(tight).items():
        if access == "rw":
            assert granted(a).get(path) == granted(b).get(path) == "rw"
    assert hidden(tight) == hidden(a) | hidden(b)


@given(policies(), policies())
def test_a_read_only_place_of_one_side_stays_read_only(a: Policy, b: Policy) -> None:
    """Inside a writable root such a grant is a restriction."""
    tight = both(a, b)
    if tight is None:
        return
    for side in (a, b):
        for path, access in granted(side).items():
            if access == "ro":
                assert granted(tight).get(path) == "ro"


@given(policies(), policies())
def test_a_variable_that_one_side_drops_is_dropped(a: Policy, b: Policy) -> None:
    tight = both(a, b)
    if tight is None:
        return
    environment = dict.fromkeys(NAMES, "x")
    left = set(scrub(tight.environment, environment).variables)
    for side in (a, b):
        assert left <= set(scrub(side.environment, environment).variables)


def test_the_defaults_twice_keep_the_identity_of_git() -> None:
    environment = {"GIT_AUTHOR_NAME": "A", "GIT_DIR": "d", "PATH": "/bin"}
    assert set(scrub((Policy() & Policy()).environment, environment).variables) == {"GIT_AUTHOR_NAME", "PATH"}
    without = Policy(environment=(EnvRule("drop", "GIT_*"),))
    for tight in (Policy() & without, without & Policy()):
        assert set(scrub(tight.environment, environment).variables) == {"PATH"}


def test_a_named_backend_is_kept_and_two_different_ones_do_not_step_down() -> None:
    automatic, landlock, full = (Policy(backend=b) for b in ("auto", "landlock", "namespaces"))
    assert (automatic & landlock).backend == (landlock & automatic).backend == "landlock"
    for a, b in ((full, landlock), (landlock, full)):
        tight = both(a, b)
        assert tight is None or tight.backend == "namespaces"


@given(policies(), policies())
def test_which_side_comes_first_makes_no_difference_to_what_is_allowed(a: Policy, b: Policy) -> None:
    one, other = both(a, b), both(b, a)
    assert (one is None) == (other is None)
    if one is None or other is None:
        return
    assert (one.mode, one.network, one.limits) == (other.mode, other.network, other.limits)
    assert granted(one) == granted(other)
    assert set(one.roots) == set(other.roots)
    assert set(one.writable or ()) == set(other.writable or ())


def test_further_sensitive_names_are_only_added_to() -> None:
    one, two = Policy(sensitive=("*.pem",)), Policy(sensitive=("own", "*.pem"))
    assert (one & two).sensitive == ("*.pem", "own")
    assert Policy.from_dict(two.to_dict()) == two
    assert hash(two) != hash(one)


@pytest.mark.parametrize("wrong", ["*.pem", ["a/b"], [""], [".."], ["x["], ["a\0"]])
def test_a_sensitive_name_is_one_name(wrong: Any) -> None:
    with pytest.raises(PolicyError):
        Policy(sensitive=wrong)
