"""A Docker engine with Compose v2 and base images: those of this machine, otherwise the distribution's packages.

An engine that answers is used as it is. Otherwise root starts one from Debian's `docker.io` with a data folder of the test.
Compose v2 comes from Docker's plugin folders, or else from Debian's next release. A base image that cannot be pulled is
built from the distribution's packages. Nothing is simulated: Docker and Compose run the real Compose file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from setup import system_packages
from setup.steps import SetUpError
from tests.e2e_cluster.compose_file import service
from tests.real_cluster.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_cluster.processes import Processes

_HOME_MADE_BASE = "ledger-e2e-base:bookworm"
_START_SECONDS = 60
_PULL_SECONDS = 120
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_NEXT_RELEASE = "trixie"


class Docker:
    """The client of an engine.

    Args:
        environment: The variables by which it finds engine and Compose.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def run(self, *words: str, **more: str) -> str:
        """Run `docker` with these arguments and additional variables, and return its output.

        Raises:
            AssertionError: It failed.
        """
        answer = subprocess.run(
            ["docker", *words],
            check=False,
            capture_output=True,
            text=True,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
        )
        assert answer.returncode == 0, (
            f"docker {words}: {answer.returncode}\n{answer.stdout[-4000:]}\n{answer.stderr[-4000:]}"
        )
        return answer.stdout

    def succeeds(self, *words: str) -> bool:
        """Return whether a command succeeds."""
        command = ["docker", *words]
        try:
            answer = subprocess.run(
                command, check=False, capture_output=True, env=self.environment, timeout=_PULL_SECONDS
            )
        except (FileNotFoundError, subprocess.TimeoutExpired):
            return False
        return answer.returncode == 0

    def has(self, image: str) -> bool:
        """Return whether an image exists or can be pulled."""
        return self.succeeds("image", "inspect", image) or self.succeeds("pull", "--quiet", image)

    @cached_property
    def base_image(self) -> str:
        """An image of Debian 12 that this engine has, pulls or builds from packages; determined once."""
        official: str = service("secrets-init")["build"]["args"]["BASE_IMAGE"]
        if self.has(official):
            return official
        if not self.succeeds("image", "inspect", _HOME_MADE_BASE):
            self._make_base_image()
        return _HOME_MADE_BASE

    def _make_base_image(self) -> None:
        if shutil.which("debootstrap") is None:
            system_packages.install(
                "debootstrap", why="No base image can be pulled, so one is made of packages."
            )
        with tempfile.TemporaryDirectory(prefix="ledger-base-") as scratch:
            root = Path(scratch) / "root"
            subprocess.run(
                ["debootstrap", "--variant=minbase", "bookworm", root, _archive()],
                check=True,
                stdout=subprocess.DEVNULL,
            )
            _hand_authorities_to(root)
            with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as archive:
                subprocess.run(
                    ["docker", "import", "-", _HOME_MADE_BASE],
                    check=True,
                    stdin=archive.stdout,
                    stdout=subprocess.DEVNULL,
                    env=self.environment,
                )


@contextmanager
def docker_engine(processes: Processes, folder: Path) -> Iterator[Docker]:
    """Yield an engine with Compose; an engine that was started here ends here.

    Raises:
        SetUpError: There is none and none can be started; the message states the reason and the remedy.
    """
    with ExitStack() as ends:
        docker = Docker(dict(os.environ))
        if not docker.succeeds("info"):
            docker = ends.enter_context(_own_engine(processes, folder))
        if not docker.succeeds("compose", "version"):
            docker.environment["DOCKER_CONFIG"] = str(_compose_plugin(folder))
        yield docker


@contextmanager
def _own_engine(processes: Processes, folder: Path) -> Iterator[Docker]:
    if os.geteuid() != 0:
        raise SetUpError(
            "No Docker engine answers here, and only root can start one: start Docker, or run this as root."
        )
    for program, package in (("dockerd", "docker.io"), ("iptables", "iptables")):
        if shutil.which(program) is None:
            system_packages.install(package, why="The containers of the deployment need a Docker engine.")
    data = Path(tempfile.mkdtemp(prefix="ledger-docker-"))
    socket = data / "docker.sock"
    engine = processes.start(
        [
            "dockerd",
            f"--data-root={data / 'data'}",
            f"--exec-root={data / 'exec'}",
            f"--pidfile={data / 'docker.pid'}",
            f"--host=unix://{socket}",
        ],
        folder / "dockerd",
    )
    docker = Docker({**os.environ, "DOCKER_HOST": f"unix://{socket}"})

    def missing() -> str | None:
        if not engine.is_alive():
            raise SetUpError(
                f"dockerd does not run on this machine; its last output:\n{engine.last_output()}"
            )
        return None if docker.succeeds("info") else "the engine does not answer"

    try:
        wait_until(missing, _START_SECONDS)
        yield docker
    finally:
        # Terminate it cleanly, so that it unmounts its file systems, and ends its containers and containerd.
        engine.process.terminate()
        engine.process.wait(timeout=_START_SECONDS)
        shutil.rmtree(data, ignore_errors=True)


def _compose_plugin(folder: Path) -> Path:
    """Return a folder for `DOCKER_CONFIG` that contains Compose v2 from the package of Debian's next release."""
    apt = folder / "apt"
    for place in ("lists/partial", "cache/archives/partial"):
        (apt / place).mkdir(parents=True)
    (apt / "sources.list").write_text(
        f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {_archive()} {_NEXT_RELEASE} main\n"
    )
    options = [
        f"-oDir::Etc::sourcelist={apt / 'sources.list'}",
        "-oDir::Etc::sourceparts=-",
        f"-oDir::State::lists={apt / 'lists'}",
        f"-oDir::Cache={apt / 'cache'}",
        "-oAPT::Sandbox::User=root",
    ]
    for words in (["update"], ["download", "docker-compose"]):
        subprocess.run(["apt-get", *options, *words], check=True, cwd=apt, stdout=subprocess.DEVNULL)
    package = next(apt.glob("docker-compose_*.deb"))
    subprocess.run(["dpkg-deb", "--extract", package, apt / "unpacked"], check=True)
    plugins = folder / "docker-config" / "cli-plugins"
    plugins.mkdir(parents=True)
    shutil.copy2(apt / "unpacked" / "usr/libexec/docker/cli-plugins/docker-compose", plugins)
    return plugins.parent


def _archive() -> str:
    """Return the address of Debian's archive from this machine's apt configuration."""
    lines = subprocess.run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(REPO_URI) $(RELEASE) $(COMPONENT)",
            "Created-By: Packages",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    for line in lines:
        address, release, component = line.split()
        if (release, component) == ("bookworm", "main"):
            return address
    raise SetUpError("apt knows no archive of Debian 12 here, so no base image can be made from packages.")


def _hand_authorities_to(root: Path) -> None:
    """Add this machine's certificate authorities to an image, including those of its own networks."""
    folder = root / "usr/local/share/ca-certificates"
    folder.mkdir(parents=True, exist_ok=True)
    begin = "-----BEGIN CERTIFICATE-----"
    for number, certificate in enumerate(_AUTHORITIES.read_text().split(begin)[1:]):
        (folder / f"machine-{number:03}.crt").write_text(begin + certificate)
