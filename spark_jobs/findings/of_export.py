"""What is unwell in the export itself: answers that cannot be read, sources that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from spark_jobs.findings.case import SUBJECT, case, few, found, listed, text
from topology.contract import NOT_ASKED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ANSWERS_THAT_ARE_NO_FAULT = (17, 206, 213)
"""Response codes that answer the question: no route for the topic, group not online, group without progress."""

_NOT_KNOWN_TO_ALL = ("broker_message_request_mode", "broker_producer_table")
"""Kinds whose question older brokers do not know: they have nothing to tell."""

_REQUEST_CODE_NOT_SUPPORTED = 3


def of_rejected_records(rejected: DataFrame, records: DataFrame) -> DataFrame:
    """What came and could not be read, by subject."""
    of_line = ["file", "line_number"]
    seen = (
        rejected.join(records.select(*of_line, *SUBJECT), of_line, "left")
        .groupBy(*SUBJECT)
        .agg(
            F.count("*").alias("count"), F.collect_set("kind").alias("kinds"), F.min("reason").alias("reason")
        )
    )
    return found(
        seen,
        SUBJECT,
        case(
            "record_rejected",
            when=F.lit(col=True),
            severity="warning",
            evidence=(
                text("count"),
                " records of kind ",
                listed(F.col("kinds")),
                " could not be read: ",
                F.col("reason"),
            ),
            advice="See rejected_record for the text; what depends on it is unknown.",
            record_count=F.col("count"),
            seen_values=few(F.col("kinds")),
        ),
    )


def of_failed_sources(records: DataFrame) -> DataFrame:
    """Which sources failed, by broker; questions that a failure answers are left out."""
    is_too_old = F.col("kind").isin(*_NOT_KNOWN_TO_ALL) & (F.col("error_code") == _REQUEST_CODE_NOT_SUPPORTED)
    is_answer = (
        F.coalesce(F.col("error_code").isin(*_ANSWERS_THAT_ARE_NO_FAULT) | is_too_old, F.lit(col=False))
        | F.coalesce(F.col("error_message").contains("> not online"), F.lit(col=False))
        | F.col("error_type").eqNullSafe(NOT_ASKED)
    )
    seen = (
        records.where((F.col("state") == "error") & ~is_answer)
        .groupBy("broker_name")
        .agg(
            F.count("*").alias("count"),
            F.collect_set("kind").alias("kinds"),
            F.min("error_message").alias("message"),
        )
    )
    return found(
        seen,
        ("broker_name",),
        case(
            "source_failed",
            when=F.lit(col=True),
            severity="warning",
            evidence=(text("count"), " questions failed: ", F.coalesce("message", F.lit("no message"))),
            advice="What these sources would have said is unknown, not zero; see export_record where state is error.",
            record_count=F.col("count"),
            seen_values=few(F.col("kinds")),
        ),
    )
