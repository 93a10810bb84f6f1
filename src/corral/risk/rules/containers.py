"""Containers, clusters and what describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from corral.risk import places
from corral.risk.levels import CAUTION, DANGEROUS, EXEC, SAFE, Finding
from corral.risk.table import Base, Call, Globals, Look, Sharp

_ENGINES = "docker podman nerdctl"
_SOCKET = re.compile(r"(?:/var)?/run/(?:docker|podman|containerd|crio).*|.*docker\.sock")
_GROUPS = (
    "container|image|volume|network|context|system|builder|buildx|manifest|node|service|stack|secret|config"
)


def mounts(call: Call) -> Iterator[Finding]:
    """A container that gets the host's root, its system or the engine's socket is no wall."""
    for value in call.values("-v --volume"):
        yield from _mounted(value.partition(":")[0])
    for value in call.values("--mount"):
        for field in value.split(","):
            name, _, path = field.partition("=")
            if name in ("src", "source"):
                yield from _mounted(path)
    for name in ("--pid", "--ipc", "--userns", "--uts", "--cgroupns"):
        if "host" in call.values(name):
            yield Finding(DANGEROUS, "shares a namespace with the host")


def _mounted(path: str) -> Iterator[Finding]:
    clean = places.tidy(path) if path else ""
    if places.is_root_or_home(path) or _SOCKET.fullmatch(clean) or places.written(path):
        yield Finding(DANGEROUS, f"gives the container {clean}")


TABLE = (
    Globals(
        _ENGINES,
        "-D --debug --tls --tlsverify -H= -c= -l= --host= --context= --config= --log-level= --connection= "
        "--url= --root=",
        depth=2,
    ),
    Base(
        _ENGINES,
        SAFE,
        "reads from the engine",
        sub="ps|images|logs|inspect|version|info|stats|history|top|port|events|diff|search",
    ),
    Base(
        _ENGINES,
        SAFE,
        "reads from the engine",
        sub=f"{_GROUPS} ls|list|inspect|history|logs|top|stats|port|show|df|info|ps|du",
    ),
    Base(
        _ENGINES,
        SAFE,
        "reads from the engine",
        sub="compose ps|logs|config|images|ls|top|version|port|events",
    ),
    Base(_ENGINES, DANGEROUS, "deletes containers", sub="rm"),
    Base(_ENGINES, DANGEROUS, "deletes containers", sub="remove"),
    Base(_ENGINES, DANGEROUS, "deletes images", sub="rmi"),
    Base(_ENGINES, DANGEROUS, "kills containers", sub="kill"),
    Base(_ENGINES, CAUTION, "changes containers"),
    Sharp(
        _ENGINES,
        DANGEROUS,
        "deletes what the engine keeps",
        sub=f"{_GROUPS} rm|remove|prune",
    ),
    Sharp(_ENGINES, DANGEROUS, "deletes volumes", sub="compose down", options="-v --volumes --rmi"),
    Sharp(_ENGINES, DANGEROUS, "deletes containers", sub="compose rm"),
    Sharp("docker-compose", DANGEROUS, "deletes volumes", sub="down", options="-v --volumes --rmi"),
    Sharp(
        _ENGINES,
        DANGEROUS,
        "gives the container the host's rights",
        sub="*",
        options="--privileged --cap-add --device --security-opt",
    ),
    Look(_ENGINES, mounts, sub="run|create|container|compose"),
    Globals("docker-compose", "-f= -p= --file= --project-name= --profile= --env-file= --project-directory="),
    Base(
        "docker-compose", SAFE, "reads from the engine", sub="ps|logs|config|images|top|version|port|events"
    ),
    Base("docker-compose", CAUTION, "changes containers"),
    Globals(
        "kubectl oc",
        "-n= -v= --namespace= --context= --kubeconfig= --cluster= --user= -s= --server= --token= --as=",
        depth=2,
    ),
    Base(
        "kubectl oc",
        SAFE,
        "reads from the cluster",
        sub="get|describe|logs|version|top|explain|api-resources|api-versions|cluster-info|diff|events",
    ),
    Base(
        "kubectl oc",
        SAFE,
        "reads from the cluster",
        sub="config view, config current-context, config get-contexts, config get-clusters, config "
        "get-users, auth can-i, auth whoami, rollout status, rollout history",
    ),
    Base("kubectl oc", CAUTION, "changes the cluster"),
    Sharp("kubectl oc", DANGEROUS, "deletes from the cluster", sub="delete"),
    Sharp("kubectl oc", DANGEROUS, "empties a node", sub="drain"),
    Sharp("kubectl oc", DANGEROUS, "replaces by force", sub="replace", options="--force"),
    Sharp("kubectl oc", CAUTION, "runs a plugin or an editor", sub="edit", forms=(EXEC,)),
    Sharp(
        "kubectl oc helm",
        CAUTION,
        "takes settings that may name programs",
        options="--kubeconfig",
        forms=(EXEC,),
    ),
    Sharp("kubectl oc", CAUTION, "writes files", options="--output-directory"),
    Sharp(
        _ENGINES, CAUTION, "writes a file", sub="compose config", options="-o --output --lock-image-digests"
    ),
    Globals("helm", "-n= --namespace= --kube-context= --kubeconfig=", depth=2),
    Base(
        "helm",
        SAFE,
        "reads from the cluster",
        sub="list|ls|status|get|template|show|search|version|history|lint|env, repo list, dependency list",
    ),
    Base("helm", CAUTION, "changes the cluster"),
    Sharp("helm", DANGEROUS, "deletes a release", sub="uninstall"),
    Sharp("helm", DANGEROUS, "deletes a release", sub="delete"),
    Sharp("helm", DANGEROUS, "runs a program on the output", options="--post-renderer", forms=(EXEC,)),
    Sharp("helm", CAUTION, "writes files", sub="template", options="--output-dir"),
    Base("skopeo crane dive", SAFE, "reads an image", sub="inspect"),
    Globals("skopeo crane dive", "--debug --insecure-policy"),
    Base(
        "skopeo crane dive buildah kind minikube k3d compose vagrant virsh lxc incus",
        CAUTION,
        "changes containers or machines",
    ),
    Sharp("skopeo crane", DANGEROUS, "deletes an image", sub="delete"),
    Sharp(
        "kind k3d minikube virsh lxc incus", DANGEROUS, "deletes a machine", args=r"delete|destroy|undefine"
    ),
    Sharp("vagrant", DANGEROUS, "deletes a machine", args=r"destroy"),
)
