"""Findings about the export: unreadable answers and failed sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from rebalance_ledger.collectors.permissions import RESOURCES
from rebalance_ledger.exports.contract import NOT_ASKED
from rebalance_ledger.exports.payloads import CODES_THAT_ANSWER, NOT_ONLINE
from spark_jobs.day_key import DAY
from spark_jobs.findings.finding_builder import (
    SUBJECT,
    advice_for,
    collect_findings,
    counted,
    finding_when,
    first_n,
    join_first_n,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_UNSUPPORTED_BY_OLD_BROKERS = ("broker_message_request_mode", "broker_producer_table")
"""Kinds whose request old brokers do not support, because they have no such data."""

_REQUEST_CODE_NOT_SUPPORTED = 3
_NO_PERMISSION = 16
_REFUSING_EXCEPTIONS = "AclException|AuthenticationException|AuthorizationException"

_SKIPPED_AFTER_TIMEOUTS = "ServerNotAnswering"
"""`rebalance_ledger.collectors.live.NO_ANSWER`: the collector stopped sending requests to a broker that did not answer."""

_MEMBER_KIND = "consumer_running_info"
"""The kind that members answer; a member that does not is a finding of its group (`client_unreachable`)."""

_FILE_KINDS = ("broker_file",)
"""Kinds that are copied from a broker's disk, which does not prove that the broker answers."""


def failed_questions(records: DataFrame) -> DataFrame:
    """Return the lines whose source failed, with the likely cause; errors that are an answer are excluded.

    Columns: `DAY` and those of `silver.export_record`; likely_cause: `permission_denied`, `connection_failed`, `timed_out` or null.
    """
    is_too_old = F.col("kind").isin(*_UNSUPPORTED_BY_OLD_BROKERS) & (
        F.col("error_code") == _REQUEST_CODE_NOT_SUPPORTED
    )
    is_answer = (
        F.coalesce(F.col("error_code").isin(*CODES_THAT_ANSWER) | is_too_old, F.lit(col=False))
        | F.coalesce(F.col("error_message").contains(NOT_ONLINE), F.lit(col=False))
        | F.col("error_type").eqNullSafe(NOT_ASKED)
    )
    is_refused = (F.col("error_code") == _NO_PERMISSION) | F.col("error_message").rlike(_REFUSING_EXCEPTIONS)
    cause = (
        F.when(is_refused, "permission_denied")
        .when(_is_unconnected(), "connection_failed")
        .when(F.col("error_type").contains("Timeout"), "timed_out")
    )
    return records.where((F.col("state") == "error") & ~is_answer).withColumn("likely_cause", cause)


def unreachable_brokers(records: DataFrame) -> DataFrame:
    """Return the brokers that refused connections or timed out repeatedly, and did not answer after that.

    Columns: `DAY`; broker_name; is_unreachable: always true.
    """
    is_answer = (F.col("state") != "error") | F.col("error_code").isNotNull()
    return (
        records.where("broker_name is not null")
        .where(~F.col("kind").isin(*_FILE_KINDS))
        .groupBy(*DAY, "broker_name")
        .agg(
            F.max(F.when(_is_unconnected(), F.col("captured_at"))).alias("refused_at"),
            F.max(F.when(is_answer, F.col("captured_at"))).alias("answered_at"),
        )
        .where("refused_at >= coalesce(answered_at, refused_at)")
        .select(*DAY, "broker_name", F.lit(col=True).alias("is_unreachable"))
    )


def _is_unconnected() -> Column:
    return F.col("error_type").endswith("RemotingConnectException") | (
        F.col("error_type") == _SKIPPED_AFTER_TIMEOUTS
    )


def of_rejected_records(rejected: DataFrame, records: DataFrame) -> DataFrame:
    """Return records of the export that could not be read, by subject."""
    line_key = [*DAY, "file", "line_number"]
    problems = (
        rejected.join(records.select(*line_key, *SUBJECT), line_key, "left")
        .groupBy(*DAY, *SUBJECT)
        .agg(
            F.count("*").alias("count"),
            F.collect_set("kind").alias("kinds"),
            F.min(F.concat(_line(), F.lit(": "), F.col("reason"))).alias("reason"),
        )
    )
    return collect_findings(
        problems,
        SUBJECT,
        finding_when(
            "record_rejected",
            when=F.lit(col=True),
            severity="warning",
            evidence=(
                counted(F.col("count"), "record", "records"),
                " of kind ",
                join_first_n(F.col("kinds")),
                " could not be read: ",
                F.col("reason"),
            ),
            record_count=F.col("count"),
            seen_values=first_n(F.col("kinds")),
        ),
    )


def of_repeated_records(records: DataFrame) -> DataFrame:
    """Return lines that are ignored because another line answers the same question, by subject."""
    relation = F.when(F.col("is_repeat"), " equals line ").otherwise(" contradicts line ")
    problems = (
        records.where("counted_line is not null")
        .groupBy(*DAY, *SUBJECT)
        .agg(
            F.count("*").alias("count"),
            F.collect_set("kind").alias("kinds"),
            F.bool_and("is_repeat").alias("is_repeat"),
            # A pair with different answers takes precedence over a duplicate.
            F.min(
                F.struct(
                    "is_repeat",
                    F.concat(_line(), relation, F.col("counted_line").cast("string")).alias("pair"),
                )
            )["pair"].alias("pair"),
            F.collect_set(_line()).alias("lines"),
        )
    )
    return collect_findings(
        problems,
        SUBJECT,
        finding_when(
            "record_repeated",
            when=F.lit(col=True),
            severity=F.when(F.col("is_repeat"), "info").otherwise("warning"),
            evidence=(
                counted(F.col("count"), "record", "records"),
                " of kind ",
                join_first_n(F.col("kinds")),
                F.when(F.col("count") == 1, " does").otherwise(" do"),
                " not count beside another answer to the same question: ",
                F.col("pair"),
            ),
            record_count=F.col("count"),
            seen_values=first_n(F.col("kinds")),
            examples=first_n(F.col("lines")),
        ),
    )


def _line() -> Column:
    """Return the file and line number of a row, as text for a finding."""
    return F.concat(F.col("file"), F.lit(" line "), F.col("line_number").cast("string"))


def of_failed_sources(records: DataFrame) -> DataFrame:
    """Return sources that failed, by broker and cause."""
    is_of_silent_member = (F.col("kind") == _MEMBER_KIND) & ~F.col("likely_cause").eqNullSafe(
        "permission_denied"
    )
    resources = F.create_map(
        *(
            column
            for kind, names in RESOURCES.items()
            for column in (F.lit(kind), F.array(*map(F.lit, names)))
        )
    )
    problems = (
        failed_questions(records)
        .where(~is_of_silent_member)
        .groupBy(*DAY, "broker_name", "likely_cause")
        .agg(
            F.count("*").alias("count"),
            F.collect_set("kind").alias("kinds"),
            F.min("error_message").alias("message"),
            F.collect_set(F.coalesce("nameserver", "consumer_group")).alias("asked"),
            F.array_sort(
                F.array_distinct(F.flatten(F.collect_set(F.try_element_at(resources, F.col("kind")))))
            ).alias("resources"),
        )
    )
    message = F.coalesce("message", F.lit("no message"))
    missing = F.concat(
        F.lit("; these kinds need Get and List on "), join_first_n(F.col("resources")), F.lit(": "), message
    )
    is_refused = F.col("likely_cause").eqNullSafe("permission_denied")
    return collect_findings(
        problems,
        ("broker_name",),
        finding_when(
            "source_failed",
            when=F.lit(col=True),
            severity="warning",
            evidence=(
                counted(F.col("count"), "question", "questions"),
                F.when(is_refused, " refused (").otherwise(" failed ("),
                join_first_n(F.col("kinds")),
                ")",
                F.when(is_refused, missing).otherwise(F.concat(F.lit(": "), message)),
            ),
            advice=advice_for("source_failed", F.col("likely_cause")),
            likely_cause=F.col("likely_cause"),
            record_count=F.col("count"),
            seen_values=first_n(F.col("kinds")),
            examples=first_n(F.col("asked")),
        ),
    )
