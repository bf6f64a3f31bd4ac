from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

import baton
from support import Model, Proxy, Script, Server, project


class Site:
    """A server with a scripted model, and clients for it."""

    def __init__(self, folder: Path, script: Script, extra: str = "", agents: Dict[str, str] | None = None, **env: str) -> None:
        self.model = Model(script)
        self.server = Server(project(folder, self.model, extra, agents), env=env)
        self._closed: List[Any] = [self.server, self.model]

    def client(self, api_key: str | None = None, url: str | None = None, **options: Any) -> baton.Client:
        options.setdefault("run_timeout", 150)
        client = baton.Client(url or self.server.url, api_key, backoff=0.01, **options)
        self._closed.insert(0, client)
        return client

    def proxy(self, limits: Callable[[int], int | None]) -> Proxy:
        proxy = Proxy(self.server.address, limits)
        self._closed.insert(0, proxy)
        return proxy

    def close(self) -> None:
        for one in self._closed:
            one.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    sites: List[Site] = []

    def start(script: Script, extra: str = "", agents: Dict[str, str] | None = None, **env: str) -> Site:
        folder = tmp_path / f"site{len(sites)}"
        folder.mkdir()
        sites.append(Site(folder, script, extra, agents, **env))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of the guides: `baton serve --demo`, which answers without a model."""
    server = Server(tmp_path_factory.mktemp("demo"), "--demo")
    yield server
    server.close()
