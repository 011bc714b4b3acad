"""A lease on a warehouse in an object store, held by conditional writes.

One small object, `<warehouse>/publishing.json`, names the writer. It is made by a put that succeeds only where there is none, and
replaced by one that succeeds only over the content that was read. Its writer renews it; who waits watches it by its own clock, and takes
over a lease that has not been renewed for long, so machines do not need synchronised clocks.

Belongs here: acquiring, renewing and releasing the lease. Does not belong here: what is written (`commits`).
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError
from obstore.store import S3Store

from rebalance_ledger.storage.location import ObjectPath, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from obstore import UpdateVersion
    from obstore.store import S3Config

_NAME: Final = "publishing.json"
_RENEW_INTERVAL_S: Final = 10.0
_LEASE_TTL_S: Final = 60.0
_POLL_INTERVAL_S: Final = 1.0
_OF_NO_VERSION: Final = '"00000000000000000000000000000000"'


class LeaseLostError(OSError):
    """The lease has expired without renewal, so another writer may hold it."""


class Lease:
    """The lease of this process.

    Args:
        store: The bucket.
        name: The object in it.
    """

    def __init__(self, store: S3Store, name: str) -> None:
        self._store = store
        self._name = name
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._renewals = 0
        self._tag: str | None = None
        self._renewed_at = 0.0
        self._is_over = Event()

    def acquire(self) -> None:
        """Wait until the lease is acquired, however long that takes."""
        last_tag: str | None = None
        since = time.monotonic()
        while not self._put("create"):
            tag = self._stored_tag()
            if tag is None:
                continue  # It was released just now.
            if tag != last_tag:
                last_tag, since = tag, time.monotonic()
            elif time.monotonic() - since > _LEASE_TTL_S and self._put({"e_tag": tag}):
                return
            time.sleep(_POLL_INTERVAL_S)

    def check_conditional_writes(self) -> None:
        """Check that the store refuses a conditional put whose condition does not hold.

        A store that ignores conditions accepts every writer, and loses commits.

        Raises:
            OSError: The store ignores a condition.
        """
        forbidden: dict[str, Literal["create"] | UpdateVersion] = {
            "If-None-Match": "create",
            "If-Match": {"e_tag": _OF_NO_VERSION},
        }
        for header, condition in forbidden.items():
            if self._put(condition):
                self._release()
                raise OSError(
                    f"the store ignores {header} when an object is put, so nothing keeps two writers apart; "
                    "use a store, or a release of it, that honours conditional puts"
                )

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Hold the lease for the block, then release it."""
        renewing = Thread(target=self._renew, daemon=True)
        renewing.start()
        try:
            yield
        finally:
            self._is_over.set()
            renewing.join()
            self._release()

    def check(self) -> None:
        """Check that this process still holds the lease.

        Raises:
            LeaseLostError: Another process may hold it.
        """
        if not self.is_ours:
            raise LeaseLostError("the lease was not renewed in time, so another process may write now")

    @property
    def is_ours(self) -> bool:
        """Whether no other process can hold the lease."""
        return self._tag is not None and time.monotonic() - self._renewed_at < _LEASE_TTL_S / 2

    def _renew(self) -> None:
        while not self._is_over.wait(_RENEW_INTERVAL_S):
            try:
                if not self._put({"e_tag": self._tag}):
                    self._tag = None  # Another process holds it.
                    return
            except (BaseError, OSError):
                continue  # The store may respond at the next renewal.

    def _put(self, mode: Literal["create"] | UpdateVersion) -> bool:
        """Put the object under a condition; return whether the condition held."""
        self._renewals += 1
        content = json.dumps({"writer": self._holder, "renewals": self._renewals}).encode()
        asked_at = time.monotonic()
        try:
            done = obstore.put(self._store, self._name, content, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            return False
        self._tag, self._renewed_at = done["e_tag"], asked_at
        return True

    def _stored_tag(self) -> str | None:
        try:
            return obstore.head(self._store, self._name)["e_tag"]
        except (FileNotFoundError, NotFoundError):
            return None

    def _release(self) -> None:
        if self._tag is not None and self._stored_tag() == self._tag:
            obstore.delete(self._store, self._name)


@contextmanager
def hold_lease(root: str) -> Iterator[Lease]:
    """Hold the lease on a warehouse for the block; wait for other holders.

    Args:
        root: The warehouse's root in an object store.

    Raises:
        OSError: The store cannot be reached, refuses access, or ignores conditions.
    """
    bucket, _, prefix = ObjectPath.of(root).key.partition("/")
    environment = variables()
    config: S3Config = {"region": environment["AWS_REGION"]}
    if "AWS_ENDPOINT_URL" in environment:
        config["endpoint"] = environment["AWS_ENDPOINT_URL"]
    try:
        store = S3Store(
            bucket,
            config=config,
            client_options={"allow_http": environment.get("AWS_ENDPOINT_URL", "").startswith("http://")},
        )
        lease = Lease(store, f"{prefix}/{_NAME}".lstrip("/"))
        lease.acquire()
        lease.check_conditional_writes()
    except BaseError as error:
        # The rest repeats the error for developers of the library.
        raise OSError(" ".join(str(error).partition("Debug source:")[0].split())) from error
    with lease.renewed():
        yield lease
