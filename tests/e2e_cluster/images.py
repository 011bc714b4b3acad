"""Third-party images of the deployment: the official ones, or local replacements if none can be pulled."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from setup import java
from tests.e2e_cluster.compose_file import service
from tests.real_cluster.java_program import PINS

if TYPE_CHECKING:
    from tests.e2e_cluster.engine import Docker

LEDGER_IMAGE = "ledger-e2e:local"
"""The tests' name for the project's own image, so that it is built once."""

_HOME_MADE_POSTGRES = "ledger-e2e-postgres:bookworm"
_HOME_MADE_ROCKETMQ = "ledger-e2e-rocketmq:bookworm"
_HOME_MADE_OBJECT_STORE = "ledger-e2e-object-store:bookworm"
_HERE = Path(__file__).parent


def postgres_image(docker: Docker) -> str:
    """Return the Compose file's image of PostgreSQL, or one of Debian's server."""
    official: str = service("postgres")["image"]
    if docker.has(official):
        return official
    _build(docker, _HERE / "postgres", _HOME_MADE_POSTGRES)
    return _HOME_MADE_POSTGRES


def object_store_image(docker: Docker) -> str:
    """Return the Compose file's object store, or the same release built from Go's module registry."""
    official: str = service("object-store")["image"]
    if docker.has(official):
        return official
    release = official.rpartition(":")[2]
    _build(docker, _HERE / "object_store", _HOME_MADE_OBJECT_STORE, RELEASE=release)
    return _HOME_MADE_OBJECT_STORE


def rocketmq_image(docker: Docker, scratch: Path) -> str:
    """Return the Compose file's image of RocketMQ, or one of the same release's jars.

    Args:
        docker: The engine.
        scratch: A folder that does not exist yet, for the build context of such an image.

    Raises:
        SetUpError: There is no JDK, or the jars cannot be fetched.
    """
    official: str = service("rocketmq-broker-a")["image"]
    if docker.has(official):
        return official
    release = official.rpartition(":")[2]
    home = java.find_jdk("An image of RocketMQ")
    PINS.ensure(home, release)
    context = shutil.copytree(_HERE / "rocketmq", scratch)
    (context / "lib").mkdir()
    for jar in PINS.class_path(release):
        shutil.copy2(jar, context / "lib")
    sources = sorted((context / "java").rglob("*.java"))
    javac = [home / "bin" / "javac", "-d", context / "classes", "-cp", f"{context / 'lib'}/*"]
    subprocess.run([*javac, *sources], check=True)
    _build(docker, context, _HOME_MADE_ROCKETMQ)
    return _HOME_MADE_ROCKETMQ


def _build(docker: Docker, context: Path, tag: str, **more: str) -> None:
    arguments = {"BASE_IMAGE": docker.base_image, **more}
    words = [f"--build-arg={name}={value}" for name, value in arguments.items()]
    docker.run("build", *words, f"--tag={tag}", str(context), DOCKER_BUILDKIT="0")
