"""Airflow's writers wait for each other in SQLite."""

from __future__ import annotations

from contextlib import nullcontext
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, event, func, insert, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from rebalance_ledger.pipeline.metadata_database import CONNECT_ARGS

if TYPE_CHECKING:
    from pathlib import Path
    from sqlite3 import Connection

TIMEOUT_S = 30


class Base(DeclarativeBase):
    """Tables of this test."""


class Row(Base):
    """A row that both writers insert."""

    __tablename__ = "row"
    id: Mapped[int] = mapped_column(primary_key=True)


@pytest.mark.parametrize("has_savepoint", [False, True])
def test_a_transaction_that_reads_and_then_writes_is_not_overtaken_by_another_writer(
    tmp_path: Path, *, has_savepoint: bool
) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'airflow.db'}", connect_args=CONNECT_ARGS)

    @event.listens_for(engine, "connect")
    def use_write_ahead_log(connection: Connection, _: object) -> None:
        # As Airflow does (`airflow.utils.orm_event_handlers`).
        connection.execute("PRAGMA journal_mode=WAL")

    Base.metadata.create_all(engine)
    has_read, begins = Event(), Event()

    def write_between() -> None:
        has_read.wait(TIMEOUT_S)
        with Session(engine) as session:
            begins.set()
            session.add(Row(id=2))
            session.commit()

    other = Thread(target=write_between)
    other.start()
    with Session(engine) as session:
        with session.begin_nested() if has_savepoint else nullcontext():
            count = session.scalar(select(func.count()).select_from(Row))
            has_read.set()
            begins.wait(TIMEOUT_S)
            # The other writer has finished by then, unless it waits for the lock.
            other.join(1)
            session.execute(insert(Row).values(id=1))
        session.commit()
    other.join(TIMEOUT_S)
    with Session(engine) as session:
        assert (count, session.scalar(text("SELECT count(*) FROM row"))) == (0, 2)
