"""Clouds and infrastructure as code."""

from __future__ import annotations

from corral.risk.levels import CAUTION, DANGEROUS, EXEC, SAFE
from corral.risk.table import Base, Globals, Sharp

_DESTROYS = r"delete|remove|terminate|destroy|purge|rm|rb|deprovision|force-delete|kill"

TABLE = (
    Globals("terraform tofu", "-chdir= -version -help", depth=2),
    Base(
        "terraform tofu",
        SAFE,
        "reads the plan or the state",
        sub="version|validate|show|output|graph|providers|metadata|get-help, state list, state show, "
        "workspace list, workspace show",
    ),
    Base(
        "terraform tofu",
        SAFE,
        "checks the format",
        sub="fmt",
        needs="-check",
        only="-check -diff -recursive -list",
    ),
    Base("terraform tofu", CAUTION, "changes infrastructure or its state"),
    Sharp("terraform tofu", DANGEROUS, "destroys infrastructure", sub="destroy"),
    Sharp("terraform tofu", DANGEROUS, "destroys infrastructure", sub="apply", options="-destroy --destroy"),
    Sharp("terraform tofu", DANGEROUS, "destroys infrastructure", sub="plan", options="-destroy --destroy"),
    Sharp("terraform tofu", DANGEROUS, "removes from the state", sub="state rm"),
    Sharp("terraform tofu", DANGEROUS, "removes a workspace", sub="workspace delete"),
    Globals("pulumi", "-C= -s= --cwd= --stack=", depth=2),
    Base(
        "pulumi", SAFE, "reads the stack", sub="version|whoami|about|logs, stack ls, stack output, config get"
    ),
    Base("pulumi", CAUTION, "changes infrastructure or its state"),
    Sharp("pulumi", DANGEROUS, "destroys infrastructure", sub="destroy"),
    Sharp("pulumi", DANGEROUS, "destroys infrastructure", sub="stack rm"),
    Sharp("pulumi", DANGEROUS, "removes from the state", sub="state delete"),
    Globals(
        "aws",
        "--no-verify-ssl --no-paginate --debug --profile= --region= --output= --endpoint-url= --query= "
        "--cli-read-timeout= --color=",
        depth=2,
    ),
    Base("aws", SAFE, "lists files", sub="s3 ls"),
    Base("aws", SAFE, "reads from the cloud", sub="* describe-*"),
    Base("aws", SAFE, "reads from the cloud", sub="* list-*"),
    Base("aws", SAFE, "reads from the cloud", sub="sts get-caller-identity"),
    Base("aws", SAFE, "reads settings", sub="configure list"),
    Base("aws", CAUTION, "changes something in the cloud"),
    Sharp("aws", DANGEROUS, "deletes in the cloud", sub="s3 rm"),
    Sharp("aws", DANGEROUS, "deletes in the cloud", sub="s3 rb"),
    Sharp(
        "aws",
        DANGEROUS,
        "deletes in the cloud",
        sub="* delete-*|remove-*|terminate-*|purge-*|deregister-*|destroy-*|batch-delete-*|"
        "schedule-key-deletion-*",
    ),
    Sharp("aws", DANGEROUS, "deletes at the target", sub="s3 sync", options="--delete"),
    Sharp("aws", DANGEROUS, "removes the source", sub="s3 mv"),
    Globals(
        "gcloud az",
        "-q --quiet --project= --account= --format= --subscription= --region= --zone= -o= -g= "
        "--resource-group=",
        depth=4,
    ),
    Base(
        "gcloud az",
        SAFE,
        "reads from the cloud",
        sub="list|show|describe, * list|show|describe, * * list|show|describe, * * * list|show|describe",
    ),
    Base("gcloud az", SAFE, "reads settings", sub="version"),
    Base("gcloud az", SAFE, "reads settings", sub="info"),
    Base("gcloud az", CAUTION, "changes something in the cloud"),
    Sharp("gcloud az", DANGEROUS, "deletes in the cloud", args=_DESTROYS),
    Sharp("gsutil", DANGEROUS, "deletes in the cloud", args=r"rm|rb"),
    Base("gsutil", CAUTION, "changes something in the cloud"),
    Base(
        "ansible ansible-playbook ansible-galaxy salt puppet chef packer vault consul nomad",
        CAUTION,
        "changes machines",
    ),
    Base(
        "vercel netlify heroku fly flyctl wrangler firebase doctl hcloud linode-cli eb sam cdk serverless "
        "sls",
        CAUTION,
        "changes something in the cloud",
    ),
    Sharp(
        "vercel netlify heroku fly flyctl wrangler firebase doctl hcloud cdk serverless sls eb sam",
        DANGEROUS,
        "deletes in the cloud",
        args=_DESTROYS + r"|\w+:(?:destroy|delete)",
    ),
    Sharp("vault", DANGEROUS, "deletes secrets", args=r"delete|destroy"),
    Sharp(
        "ansible",
        DANGEROUS,
        "runs a command on many machines",
        options="-a",
        args=r"shell|command|raw|script|-m",
        forms=(EXEC,),
    ),
)
