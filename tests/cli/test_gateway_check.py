"""`lienworker gateway check` where something is wrong."""

from __future__ import annotations

from lienworker.testing.gateway import reference_gateway
from tests.harness.node import Node


def test_a_refused_token_does_not_hide_the_clock(node: Node) -> None:
    with reference_gateway() as gateway:
        done = node.cli("gateway", "check", GATEWAY_URL=gateway.url, GATEWAY_TOKEN="wrong")
    assert done.returncode == 1
    assert "HTTP 401" in done.stdout
    assert "clock  the same" in done.stdout


def test_a_password_in_the_address_is_not_shown(node: Node) -> None:
    for options in ([], ["--json"]):
        done = node.cli("gateway", "check", *options, GATEWAY_URL="http://me:geheim@127.0.0.1:9", GATEWAY_TOKEN="token")
        assert "http://127.0.0.1:9" in done.stdout
        assert "geheim" not in done.stdout + done.stderr


def test_a_connection_that_fails_is_said_once_in_our_words(node: Node) -> None:
    for url, words in (
        ("http://127.0.0.1:9", "nothing takes connections there"),
        ("http://no-such.invalid", "no such host name"),
    ):
        done = node.cli("gateway", "check", GATEWAY_URL=url, GATEWAY_TOKEN="worker-token")
        assert done.returncode == 1
        assert done.stdout.count(words) == 1, done.stdout
        assert "not tried" in done.stdout
        assert "ClientConnector" not in done.stdout + done.stderr
