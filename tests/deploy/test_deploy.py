"""What the examples of deployments say of the server is true. Nothing is built or started."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import yaml
from click.testing import CliRunner

from moorage._app.flags import name_of, variable_of
from moorage._app.options import ServerOptions
from moorage._cli.options import server_options

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
CONTAINERFILE: Final = DEPLOY / "Containerfile"
OPTIONS: Final = {name_of(field): field for field in attrs.fields(ServerOptions)}
Node = dict[str, Any]


def documents(file: Path) -> list[Node]:
    return [one for one in yaml.safe_load_all(file.read_text()) if one]


def containers() -> list[Node]:
    found: list[Node] = []
    for file in sorted(DEPLOY.rglob("*.yaml")):
        for document in documents(file):
            spec = document["spec"]
            found += spec.get("template", {}).get("spec", spec).get("containers", [])
    return found


@pytest.mark.parametrize("file", sorted(DEPLOY.rglob("*.yaml")), ids=lambda file: file.name)
def test_a_manifest_names_what_it_describes(file: Path) -> None:
    for document in documents(file):
        assert {"apiVersion", "kind", "metadata", "spec"} <= set(document)
        assert document["metadata"]["name"]


def options(arguments: list[str]) -> ServerOptions:
    """The options that `moorage serve` makes of these arguments."""
    import click

    made: list[ServerOptions] = []

    @server_options
    @click.command()
    def command(**given: Any) -> None:
        made.append(ServerOptions(**{name: value for name, value in given.items() if value is not None}))

    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    return made[0]


@pytest.mark.parametrize("container", containers(), ids=lambda one: one["name"])
def test_a_container_starts_a_server_with_flags_that_there_are(container: Node) -> None:
    first, *flags = container["args"]
    assert first == "serve"
    chosen = options(flags)
    by_name = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert by_name.pop("http", by_name.pop("http1", None)) == chosen.http_port
    assert set(by_name.values()) <= {chosen.grpc_port, chosen.metrics_port}
    for probe in (name for name in container if name.endswith("Probe")):
        asked = container[probe]["httpGet"]
        assert asked["path"] in ("/v2/health/live", "/v2/health/ready")
        assert asked["port"] in ("http", chosen.http_port)


def test_a_pod_is_given_the_time_that_its_server_takes_to_end() -> None:
    deployment = documents(DEPLOY / "kubernetes" / "moorage.yaml")[0]
    pod = deployment["spec"]["template"]["spec"]
    chosen = options(pod["containers"][0]["args"][1:])
    assert pod["terminationGracePeriodSeconds"] > chosen.shutdown_grace_secs + chosen.exit_timeout_secs
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels


def test_the_image_sets_variables_that_there_are() -> None:
    variables = {variable_of(field) for field in OPTIONS.values()}
    named = set(re.findall(r"\bMOORAGE_\w+", CONTAINERFILE.read_text()))
    assert named
    assert named <= variables


def test_the_image_takes_what_is_in_the_checkout() -> None:
    text = CONTAINERFILE.read_text()
    for source in re.findall(r"^COPY (?!--from)(\S+) ", text, re.MULTILINE):
        assert (DEPLOY.parent / source).exists()
    packages = re.findall(r"\./[\w/]+", text.partition("pip install")[2].partition("\n\n")[0])
    assert "./core" in packages
    assert all((DEPLOY.parent / package / "pyproject.toml").exists() for package in packages)
