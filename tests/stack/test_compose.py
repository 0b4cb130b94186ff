"""compose.yaml: what it would start works together, and its services are as locked up as they should be."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from lienworker.settings import Settings
from lienworker.testing.county.site import DemoSite
from lienworker.testing.gateway import reference_gateway
from tests.harness.node import Node, repeats, wait_until
from tests.stack.containers import COMPOSE, ROOT, Machine, can_be_apart

OURS = {name: about for name, about in COMPOSE["services"].items() if name != "redis"}
FAST = {"LIENWORKER_ALLOW_PRIVATE_HOSTS": "127.0.0.1", "LIENWORKER_RETRY_DELAY": "0.2"}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    made: list[Machine] = []

    def make(profile: str, **dotenv: str) -> Machine:
        made.append(Machine(tmp_path / profile, profile, **dotenv))
        return made[-1]

    yield make
    for one in made:
        for service in one.services.values():
            if service.process is not None and service.process.poll() is None:
                service.kill()


def node_of(machine: Machine, volume: str = "data") -> Node:
    return Node(machine.volumes[volume])


def rows_in(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.slow
def test_standalone_works_dies_stops_and_goes_on(machine: Callable[..., Machine], site: DemoSite) -> None:
    here = machine("standalone", **FAST)
    node, site.latency = node_of(here), 0.2
    here.up()
    worker, web = here.services["worker"], here.services["web"]
    done = worker.exec("lienworker", "import", "-", "--format", "jsonl", stdin=rows_in(site.parcels(120)))
    assert done.returncode == 0, done.stderr

    wait_until(lambda: node.statuses().get("completed", 0) >= 10, what="the first results")
    worker.kill()
    worker.start(here._apart)
    wait_until(lambda: node.statuses().get("completed", 0) >= 60, what="it to go on after a kill")
    here.down()
    assert not node.processes()
    assert node.statuses().get("completed", 0) < 120, "too fast: nothing was left to go on with"

    here.up()
    beside = worker.exec("lienworker", "run", "-", "--format", "jsonl", stdin=rows_in(site.parcels(120)))
    assert "I watch" in beside.stderr, "a part counts as a stack: `run` hands its file over"
    wait_until(lambda: node.statuses() == {"completed": 120}, what="it to go on after down and up")
    assert repeats(site) <= 2 * 4 * 16, "a kill repeats at most what was in the air"
    assert worker.exec("lienworker", "doctor").returncode == 0

    address = web.exec("lienworker", "web", "--address").stdout.strip()
    token = address.partition("token=")[2]
    ready = urllib.request.Request(address.partition("?")[0] + "readyz", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(ready, timeout=10) as reply:
        assert reply.status == 200
    assert token not in web.log.read_text(), "the log says how to get it"
    here.down()
    assert not node.processes()


@pytest.mark.slow
def test_ondemand_delivers_to_the_gateway_of_the_settings(machine: Callable[..., Machine], site: DemoSite) -> None:
    with reference_gateway("secret") as gateway:
        gateway.enqueue(*site.tasks(20))
        gateway.configure(retry_with_tasks=0)
        here = machine("ondemand", **FAST, GATEWAY_URL=gateway.url, GATEWAY_TOKEN="secret")
        here.up()
        wait_until(lambda: len(gateway.state.history) == 22, what="all results at the Gateway")
        here.down()
    assert not node_of(here).processes()


@pytest.mark.slow
def test_ondemand_without_a_gateway_refuses_to_start(machine: Callable[..., Machine]) -> None:
    worker = machine("ondemand").services["ondemand-worker"]
    done = worker.exec(*worker.about["command"])
    assert done.returncode == 2
    assert "GATEWAY_URL: is not set, but GATEWAY_SYNC=required" in done.stderr


@pytest.mark.slow
def test_the_try_out_needs_nothing_but_itself(machine: Callable[..., Machine]) -> None:
    here = machine("tryout")
    here.up()
    received = f"http://127.0.0.1:{here.ports[8900]}/_control/received/tasks"

    def closed() -> int:
        with urllib.request.urlopen(received, timeout=10) as reply:
            return sum(task["state"] != "handed_out" for task in json.load(reply).values() if task["worker_id"])

    wait_until(lambda: node_of(here, "tryout").statuses() == {"completed": 62, "failed": 2})
    wait_until(lambda: closed() == 64, what="everything to be delivered or reported")
    here.down()


def test_this_machine_can_try_services_as_process_1() -> None:
    if not can_be_apart():
        pytest.skip("process namespaces are not allowed here: the services shared one in these tests")


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_service_is_locked_up_limited_and_looked_after(name: str) -> None:
    about = COMPOSE["services"][name]
    assert about["read_only"] is True
    assert about["cap_drop"] == ["ALL"]
    assert about["security_opt"] == ["no-new-privileges:true"]
    assert about["user"] not in {"root", "0", "0:0"}
    assert about["restart"] == "unless-stopped"
    assert about["healthcheck"]["test"]
    assert about["logging"]["options"]["max-size"]
    assert set(about["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert all(port.startswith("127.0.0.1:") for port in about.get("ports", []))
    assert about["profiles"]


def test_redis_can_be_reached_by_our_services_only() -> None:
    assert COMPOSE["services"]["redis"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def test_every_setting_in_compose_is_one() -> None:
    known = {item.metadata["env"] for item in fields(Settings)}
    for name, about in OURS.items():
        assert set(about.get("environment", {})) <= known, name


def test_the_three_profiles_differ_in_their_settings_only() -> None:
    for part in ("worker", "schedule", "web"):
        plain, *others = (OURS[f"{prefix}{part}"] for prefix in ("", "ondemand-", "tryout-"))
        for other in others:
            differing = {key for key in plain | other if plain.get(key) != other.get(key)}
            assert differing <= {"profiles", "environment", "volumes"}


def test_the_bind_mount_overrides_the_data_volume() -> None:
    override = yaml.safe_load((ROOT / "compose.bind.yaml").read_text())
    assert override["volumes"]["data"]["driver_opts"]["o"] == "bind"


def test_the_image_has_the_user_and_the_folder_that_compose_speaks_of() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert "USER 10001:10001" in text
    assert "--uid 10001 --gid 10001" in text
    assert {about["user"] for about in OURS.values()} == {"10001:10001"}
    assert "LIENWORKER_DATA_DIR=/data" in text


def test_what_the_image_is_built_from_reaches_the_builder() -> None:
    """Everything that the build reads is let through, and nothing private is."""
    let_in = re.findall(r"^!(\S+)", (ROOT / ".dockerignore").read_text(), re.M)
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"
    assert all((ROOT / name).exists() for name in let_in)
    assert not {".env", "data", ".git"} & set(let_in)
