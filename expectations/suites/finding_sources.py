"""Findings recomputed in plain SQL from silver and from gold tables that have their own expectations.

Belongs here: for each kind, the relation with one row per finding, and the numbers and lists of a row. Does not belong here: the
comparison with `gold.finding` (`finding_facts`), and the text of a finding (`finding_text`).
"""

# ruff: noqa: S608 - the SQL consists of this package's own constants and contains no external input.
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from expectations.suites.model import quoted, quoted_list
from expectations.suites.thresholds import GRPC_CLIENT_ID_PATTERN, MOST_LISTED

SUBJECT: Final = ("consumer_group", "topic", "broker_name", "client_id")
"""The subject columns of a finding."""

_UNEVEN_FROM: Final = 2.0
"""The minimum ratio of the largest load to the mean for a load imbalance."""

_STALLED_AFTER_MS: Final = 600_000
"""The time that messages wait without consumption by their client before its queues count as stalled."""

_RETRY: Final = "%RETRY%"

_OUTER_SPACE: Final = quoted(r"^[\x00-\x20]+|[\x00-\x20]+$")
"""What Java's `String.trim` removes, as a regular expression."""

_REASONS_OF_FETCHING: Final = (
    "pop_mode",
    "mixed_request_modes",
    "request_modes_differ",
    "request_mode_unknown",
    "server_off",
    "strategy_unknown_to_broker",
)
"""Reasons for undetermined owners of a topic whose members are known; one may take precedence over another."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The condition under which a row of a relation is a finding of one kind.

    Attributes:
        when: SQL boolean over the row.
        numbers: Column of `finding` -> SQL of the number.
        lists: Column of `finding` -> SQL of a set of texts, of which the finding has the first few in order.
        is_certain: SQL boolean: the finding must exist with these numbers and lists. Where it is false, the finding may exist.
        is_counted: SQL boolean: the numbers and lists are compared.
        severity: SQL of the severity, if the kind has several.
        likely_cause: SQL of the cause, if the kind has one finding per cause.
    """

    when: str
    numbers: dict[str, str]
    lists: dict[str, str] = field(default_factory=dict)
    is_certain: str = "TRUE"
    is_counted: str = "TRUE"
    severity: str = "CAST(NULL AS STRING)"
    likely_cause: str = "CAST(NULL AS STRING)"

    def struct_of(self, kind: str) -> str:
        """Return SQL of the finding; null if the row is no finding."""
        lists = {name: first_texts(texts) for name, texts in self.lists.items()}
        return (
            f"IF({self.when}, named_struct('kind', {quoted(kind)}, 'likely_cause', {self.likely_cause}, "
            f"'is_certain', {self.is_certain}, 'severity', {self.severity}, "
            f"'measures', IF({self.is_counted}, {measures_of(self.numbers, lists)}, NULL)), NULL)"
        )

    @property
    def published(self) -> str:
        """SQL of the measures in a row of `gold.finding`."""
        return measures_of({name: name for name in self.numbers}, {name: name for name in self.lists})


@dataclass(frozen=True, slots=True)
class Source:
    """A relation that is read once for all kinds of findings in its rows.

    Attributes:
        relation: Name of the relation, optionally with a condition.
        subject: Columns of `SUBJECT` that it has.
        facts: Kind -> condition for a finding of it.
    """

    relation: str
    subject: tuple[str, ...]
    facts: dict[str, Fact]

    def query(self) -> str:
        """Return a query with `SUBJECT`, kind, likely_cause, is_certain, severity and measures (JSON, in the order of their names)."""
        subject = ", ".join(
            name if name in self.subject else f"CAST(NULL AS STRING) AS {name}" for name in SUBJECT
        )
        facts = ", ".join(fact.struct_of(kind) for kind, fact in self.facts.items())
        return f"SELECT {subject}, inline(array_compact(array({facts}))) FROM {self.relation}"


def first_texts(texts: str) -> str:
    """Return SQL of the texts that a finding shows of a set: the first few in order."""
    return f"slice(array_sort({texts}), 1, {MOST_LISTED})"


def measures_of(numbers: dict[str, str], lists: dict[str, str]) -> str:
    """Return SQL of numbers and lists as JSON, null without any; integers have one type, so that they compare as text."""
    fields = [
        f"CAST({value} AS {'DOUBLE' if name.startswith('mean') else 'BIGINT'}) AS {name}"
        for name, value in sorted(numbers.items())
    ]
    fields += [f"{value} AS {name}" for name, value in sorted(lists.items())]
    return f"to_json(struct({', '.join(fields)}))" if fields else "CAST(NULL AS STRING)"


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _of_reason(
    reason: str, ids: str | None = None, lists: dict[str, str] | None = None, *, least_members: int = 1
) -> Fact:
    """Return a finding on how members fetch, if that is the reason for undetermined owners of a topic: on which members, if it is known."""
    return Fact(
        f"is_open AND (reason <=> {quoted(reason)} AND client_count >= {least_members} OR is_hidden)",
        {"client_total_count": "client_count", "client_count": f"size({ids})"} if ids else {},
        lists or {},
        is_certain=f"reason <=> {quoted(reason)} AND client_count >= {least_members}",
        # Members of another list may not be members of the topic.
        is_counted="is_one_list",
    )


_LISTS_OF_RULE: Final = {"seen_values": "array_compact(array(strategy))", "examples": "topics"}

_IN_GROUPS: Final = (
    "consumer_group IS NULL OR consumer_group NOT IN (SELECT consumer_group FROM excluded_group)"
)

SOURCES: Final = (
    Source(
        "state_of_group",
        ("consumer_group",),
        {
            "group_offline": Fact("states = array('offline')", _same("topic_count")),
            "members_unknown": Fact(
                "array_contains(states, 'unknown')", _same("topic_count"), {"seen_values": "reasons"}
            ),
        },
    ),
    Source(
        "load_of_topic",
        ("consumer_group", "topic"),
        {
            "idle_clients": Fact(
                "idle_client_count > 0 AND queue_count IS NOT NULL",
                {
                    "client_count": "idle_client_count",
                    "client_total_count": "client_count",
                    "queue_total_count": "queue_count",
                },
                {"seen_values": "array(strategy)"},
                likely_cause="IF(client_count > queue_count, 'more_clients_than_queues', NULL)",
            ),
            "load_imbalanced": Fact(
                f"max_over_mean >= {_UNEVEN_FROM} AND max_queues_per_client - min_queues_per_client > 1",
                _same("max_queues_per_client", "min_queues_per_client", "mean_queues_per_client")
                | {"client_total_count": "client_count", "queue_total_count": "queue_count"},
                {"seen_values": "array(strategy)"},
            ),
        },
    ),
    Source(
        "shared_id",
        ("consumer_group", "client_id"),
        {
            "duplicate_client_id": Fact(
                "TRUE",
                _same("process_count") | {"value_count": "IF(process_count IS NULL, connection_count, NULL)"},
                # If lists differ, only the members of one of them count.
                is_certain="is_on_each_list",
                severity="IF(process_count > 1 AND array_contains(states, 'online'), 'critical', 'warning')",
            )
        },
    ),
    Source(
        "changed_strategy",
        ("consumer_group",),
        {
            "strategy_changed": Fact(
                "TRUE",
                _same("topic_count")
                | {
                    "queue_count": "moved_count",
                    "queue_total_count": "observed_count",
                    "value_count": "size(changes)",
                },
                {"seen_values": "changes", "examples": "topics"},
            )
        },
    ),
    Source(
        "members_of_group",
        ("consumer_group",),
        {
            "mixed_strategies": Fact(
                "is_connected AND NOT is_broadcasting AND size(strategies) > 1",
                {"value_count": "size(strategies)", "client_total_count": "member_count"},
                {"seen_values": "strategies"},
                is_certain="is_one_list AND is_divided AND NOT is_ambiguous",
            ),
            "client_unreachable": Fact(
                "is_connected AND size(unasked_ids) > 0",
                {"client_count": "size(unasked_ids)", "client_total_count": "member_count"},
                {"examples": "unasked_ids"},
                is_certain="is_one_list AND NOT is_proxied",
            ),
            "member_lists_differ": Fact(
                "broker_list_count > 1",
                {"value_count": "broker_list_count"},
                is_certain="broker_list_count <=> route_list_count",
            ),
        },
    ),
    Source(
        "refused_group",
        ("consumer_group",),
        {
            "consumption_disabled": Fact(
                "size(refusing) > 0",
                {"value_count": "size(refusing)"},
                {"seen_values": "settings", "examples": "refusing"},
                severity="IF(is_everywhere, 'critical', 'warning')",
            )
        },
    ),
    Source(
        "members_of_topic",
        ("consumer_group", "topic"),
        {
            "subscriptions_differ": Fact(
                "group_state IN ('online', 'broadcasting') AND (size(expressions) > 1 "
                "OR size(unsubscribed_ids) > 0 AND (size(unsubscribed_ids) < member_count OR NOT is_one_list))",
                {
                    "client_count": "size(unsubscribed_ids)",
                    "client_total_count": "member_count",
                    "value_count": "greatest(coalesce(size(expressions), 1), 1)",
                },
                {
                    "seen_values": "IF(size(expressions) > 1, expressions, array())",
                    "examples": "unsubscribed_ids",
                },
                is_certain="is_one_list",
                severity="IF(group_state = 'online', 'critical', 'warning')",
            ),
            "server_load_balancer_off": _of_reason(
                "server_off", "asking_ids", {"examples": "asking_ids"}, least_members=2
            ),
            "strategy_unknown_to_broker": _of_reason(
                "strategy_unknown_to_broker",
                "odd_ids",
                {"seen_values": "odd_strategies", "examples": "odd_ids"},
            ),
            "request_modes_differ": _of_reason("request_modes_differ", "asking_ids"),
            # Proxies may list such members in addition to the brokers.
            "mixed_request_modes": _of_reason("mixed_request_modes"),
        },
    ),
    Source(
        "undetermined_rule",
        ("consumer_group",),
        {
            "settings_missing": Fact(
                "NOT is_of_strategy", _same("queue_count", "topic_count"), _LISTS_OF_RULE
            ),
            "strategy_unknown": Fact("is_of_strategy", _same("queue_count", "topic_count"), _LISTS_OF_RULE),
        },
    ),
    Source(
        "stalled_topic",
        ("consumer_group", "topic"),
        {
            "consumption_stalled": Fact(
                "TRUE", _same("client_count") | {"queue_count": "size(queues)"}, {"examples": "queues"}
            )
        },
    ),
    Source(
        "lost_topic",
        ("topic",),
        # Quarantined groups may also subscribe to it.
        {
            "route_missing": Fact(
                "TRUE",
                {"group_count": "size(consumer_groups)"},
                {"examples": "consumer_groups"},
                is_certain="NOT has_left_out_groups",
            )
        },
    ),
    Source(
        "broker_difference",
        ("broker_name",),
        {
            kind: Fact(
                f"size({kind}_topics) > 0",
                {"topic_count": f"size({kind}_topics)"},
                {"examples": f"{kind}_topics"},
            )
            for kind in (
                "broker_missing_on_nameserver",
                "write_route_differs",
                "broker_address_differs",
                "route_config_differs",
            )
        }
        | {
            "broker_without_master": Fact(
                "is_headless",
                {"topic_count": "size(routed_topics)", "value_count": "size(slaves)"},
                {"seen_values": "slaves", "examples": "IF(size(routed_topics) > 0, routed_topics, NULL)"},
            )
        },
    ),
    Source(
        f"unread_line WHERE {_IN_GROUPS}",
        ("consumer_group", "topic", "broker_name", "client_id"),
        {"record_rejected": Fact("TRUE", _same("record_count"), {"seen_values": "kinds"})},
    ),
    Source(
        f"uncounted_line WHERE {_IN_GROUPS}",
        ("consumer_group", "topic", "broker_name", "client_id"),
        {
            "record_repeated": Fact(
                "TRUE",
                _same("record_count"),
                {"seen_values": "kinds", "examples": "lines"},
                severity="IF(is_repeat, 'info', 'warning')",
            )
        },
    ),
    Source(
        "unreadable_order_conf",
        ("topic",),
        {"order_conf_unreadable": Fact("TRUE", {"value_count": "size(confs)"}, {"seen_values": "confs"})},
    ),
    Source(
        "unanswered",
        ("broker_name",),
        {
            "source_failed": Fact(
                "TRUE",
                _same("record_count"),
                {"seen_values": "kinds", "examples": "asked"},
                likely_cause="cause",
            )
        },
    ),
)
"""The sources of all findings of their kinds."""

_USUAL_ANSWERS: Final = (
    "(coalesce(error_code IN (17, 26, 206, 213), FALSE) "
    "OR coalesce(error_code = 3, FALSE) AND kind IN ('broker_message_request_mode', 'broker_producer_table') "
    "OR coalesce(contains(error_message, '> not online'), FALSE) OR error_type <=> 'NotAsked')"
)

# A slave that acts as master has a route without write permission: that is a finding of the broker.
_DIFFERS_FROM_CONFIG: Final = (
    "NOT (coalesce(is_headless, FALSE) AND size(array_except(differences, array('config_perm', 'config_write_queues'))) = 0) "
    "AND (array_contains(differences, 'not_configured') "
    "OR array_contains(differences, 'not_routed') AND NOT array_contains(differences, 'broker_missing') "
    "OR array_contains(differences, 'config_perm') AND NOT array_contains(differences, 'perm') "
    "OR array_contains(differences, 'config_read_queues') AND NOT array_contains(differences, 'read_queues') "
    "OR array_contains(differences, 'config_write_queues') AND NOT array_contains(differences, 'write_queues'))"
)

_IS_GRPC: Final = f"(client_id RLIKE {quoted(GRPC_CLIENT_ID_PATTERN)} AND size(strategies) = 0)"

_PARTS_OF_EXPRESSION: Final = (
    f"transform(split(expression, '[|][|]'), part -> regexp_replace(part, {_OUTER_SPACE}, ''))"
)
"""SQL of the tags in an expression, as RocketMQ splits it; parts may be empty."""

FACT_TABLES: Final = f"""state_of_group AS (
  SELECT
    consumer_group, collect_set(group_state) AS states, collect_set(group_state_reason) AS reasons, count(DISTINCT topic) AS topic_count,
    -- Where the numbers of a topic are known, its owners are determined.
    bool_or(is_effective AND group_state = 'online' AND strategy <> 'POP' AND max_queues_per_client IS NOT NULL) AS is_divided
  FROM gold_assignment_fairness
  GROUP BY consumer_group
),
load_of_topic AS (
  SELECT *
  FROM gold_assignment_fairness
  WHERE is_effective AND strategy <> 'BROADCASTING' AND NOT startswith(topic, '%RETRY%')
),
processes_of_id AS (
  SELECT consumer_group, client_id, count(DISTINCT process) AS process_count
  FROM silver_client_process
  WHERE state = 'online'
  GROUP BY consumer_group, client_id
),
connections_of_id AS (
  SELECT consumer_group, client_id, min(connection_count) AS connection_count, count(*) = any_value(list_count) AS is_on_each_list
  FROM (
    SELECT consumer_group, broker_name, client_id, count(*) AS connection_count
    FROM silver_consumer_connection
    GROUP BY consumer_group, broker_name, client_id
  )
  JOIN (
    SELECT consumer_group, count(DISTINCT broker_name) AS list_count FROM silver_consumer_connection GROUP BY consumer_group
  ) USING (consumer_group)
  GROUP BY consumer_group, client_id
),
shared_id AS (
  SELECT consumer_group, client_id, is_on_each_list, IF(process_count > 1, process_count, NULL) AS process_count, connection_count, states
  FROM connections_of_id
  LEFT JOIN processes_of_id USING (consumer_group, client_id)
  JOIN state_of_group USING (consumer_group)
  WHERE arrays_overlap(states, array('online', 'broadcasting'))
    AND (process_count > 1 OR coalesce(process_count, 0) = 0 AND connection_count > 1)
),
changed_strategy AS (
  SELECT
    consumer_group, sum(observed_moved_queue_count) AS moved_count, sum(observed_queue_count) AS observed_count,
    count(DISTINCT topic, baseline_effective_strategy, strategy) AS topic_count, collect_set(topic) AS topics,
    collect_set(concat(strategy, ' instead of ', baseline_effective_strategy)) AS changes
  FROM gold_assignment_churn
  WHERE is_effective AND baseline_effective_strategy <> strategy
  GROUP BY consumer_group
),
refused_group AS (
  SELECT
    consumer_group, collect_set(IF(size(settings) > 0, broker_name, NULL)) AS refusing, bool_and(size(settings) > 0) AS is_everywhere,
    array_distinct(flatten(collect_list(settings))) AS settings
  FROM (
    SELECT
      consumer_group, broker_name, filter(array(
        IF(is_consume_enabled = FALSE, 'consumeEnable=false', NULL),
        IF(is_broadcast_enabled = FALSE AND broadcast_at IS NOT NULL, 'consumeBroadcastEnable=false', NULL)
      ), setting -> setting IS NOT NULL) AS settings
    FROM silver_subscription_group
    LEFT JOIN (
      -- Lite pull consumers send their subscription with each pull: the broker then does not look at its second setting.
      SELECT DISTINCT consumer_group, broker_name, TRUE AS broadcast_at
      FROM silver_group_presence
      WHERE state = 'online' AND message_model = 'BROADCASTING' AND consume_type = 'CONSUME_PASSIVELY'
    ) USING (consumer_group, broker_name)
  )
  JOIN state_of_group USING (consumer_group)
  WHERE arrays_overlap(states, array('online', 'broadcasting'))
  GROUP BY consumer_group
),
broker_difference AS (
  SELECT
    broker_name, any_value(is_headless) AS is_headless, any_value(slaves) AS slaves, collect_set(topic) FILTER (WHERE is_routed) AS routed_topics,
    collect_set(topic) FILTER (WHERE state = 'differs' AND array_contains(differences, 'broker_missing') AND NOT is_routed)
      AS broker_missing_on_nameserver_topics,
    collect_set(topic) FILTER (
      WHERE state = 'differs' AND arrays_overlap(differences, array('perm', 'write_queues')) AND NOT is_read_affected
    ) AS write_route_differs_topics,
    collect_set(topic) FILTER (WHERE state = 'differs' AND array_contains(differences, 'addresses'))
      AS broker_address_differs_topics,
    collect_set(topic) FILTER (WHERE state = 'differs' AND {_DIFFERS_FROM_CONFIG}) AS route_config_differs_topics
  FROM gold_route_divergence
  FULL JOIN (
    SELECT
      broker_name, TRUE AS is_headless, collect_set(concat('id ', CAST(broker_id AS STRING), ' at ', broker_addr)) AS slaves
    FROM silver_broker GROUP BY broker_name HAVING min(broker_id) > 0
  ) USING (broker_name)
  GROUP BY broker_name
),
unread_line AS (
  SELECT e.consumer_group, e.topic, e.broker_name, e.client_id, count(*) AS record_count, collect_set(r.kind) AS kinds
  FROM silver_rejected_record AS r
  LEFT JOIN silver_export_record AS e USING (file, line_number)
  GROUP BY e.consumer_group, e.topic, e.broker_name, e.client_id
),
uncounted_line AS (
  SELECT
    consumer_group, topic, broker_name, client_id,
    count(*) AS record_count, bool_and(is_repeat) AS is_repeat, collect_set(kind) AS kinds,
    collect_set(concat(file, ' line ', CAST(line_number AS STRING))) AS lines
  FROM silver_export_record
  WHERE counted_line IS NOT NULL
  GROUP BY consumer_group, topic, broker_name, client_id
),
-- Java drops empty parts at the end only, and throws where a part has no count.
unreadable_order_conf AS (
  SELECT topic, collect_set(concat(nameserver, ' ', order_topic_conf)) AS confs
  FROM silver_topic_route
  WHERE order_topic_conf RLIKE '[^;]' AND exists(
    split(regexp_replace(order_topic_conf, ';+$', ''), ';'),
    part -> NOT coalesce(
      split_part(part, ':', 2) RLIKE '^[+-]?[0-9]+$' AND try_cast(split_part(part, ':', 2) AS INT) IS NOT NULL, FALSE))
  GROUP BY topic
),
unanswered AS (
  SELECT
    broker_name, cause, count(*) AS record_count, collect_set(kind) AS kinds, collect_set(coalesce(nameserver, consumer_group)) AS asked
  FROM (
    SELECT
      broker_name, kind, nameserver, consumer_group,
      CASE
        WHEN error_code = 16 OR error_message RLIKE 'AclException|AuthenticationException|AuthorizationException'
          THEN 'permission_denied'
        WHEN endswith(error_type, 'RemotingConnectException') OR error_type = 'ServerNotAnswering' THEN 'connection_failed'
        WHEN contains(error_type, 'Timeout') THEN 'timed_out'
      END AS cause
    FROM silver_export_record
    WHERE state = 'error' AND NOT {_USUAL_ANSWERS}
  )
  WHERE kind <> 'consumer_running_info' OR cause <=> 'permission_denied'
  GROUP BY broker_name, cause
),
-- The reports of members; each process of a client id counts.
report AS (
  SELECT
    consumer_group, client_id, collect_set(strategy) AS strategies,
    CASE WHEN bool_or(state = 'online') THEN 'online' WHEN bool_or(state = 'offline') THEN 'offline' ELSE 'unknown' END AS state,
    bool_or(is_asking) AS is_asking, bool_or(is_following) AS is_following,
    bool_or(is_following AND NOT strategy IN ('AVG', 'AVG_BY_CIRCLE')) AS is_odd
  FROM (
    SELECT
      consumer_group, client_id, state, NOT is_client_rebalance AS is_asking,
      NOT is_client_rebalance AND NOT coalesce(is_orderly, FALSE) AS is_following,
      IF(coalesce(reports_queues, TRUE) AND NOT (consume_type <=> 'CONSUME_ACTIVELY' AND subscription_count <=> 0),
        coalesce(strategy, strategy_class), NULL) AS strategy
    FROM (
      SELECT consumer_group, client_id, state, strategy, strategy_class, reports_queues, consume_type, subscription_count,
        is_client_rebalance, is_orderly
      FROM silver_consumer_client
      UNION ALL
      SELECT consumer_group, client_id, state, strategy, strategy_class, reports_queues, consume_type, subscription_count,
        is_client_rebalance, is_orderly
      FROM silver_client_process
    )
  )
  GROUP BY consumer_group, client_id
),
listed_id AS (
  SELECT consumer_group, broker_name, client_id FROM silver_consumer_connection
  UNION ALL
  -- Proxies synchronise their client lists, so their lists count as one.
  SELECT DISTINCT consumer_group, CAST(NULL AS STRING), client_id FROM silver_proxy_connection
),
list_of_group AS (
  SELECT
    consumer_group, count(DISTINCT ids) = 1 AS is_one_list, bool_or(broker_name IS NULL) AS is_proxied,
    count(DISTINCT IF(broker_name IS NULL, NULL, ids)) AS broker_list_count, any_value(route_list_count) AS route_list_count
  FROM (
    SELECT consumer_group, broker_name, array_sort(collect_list(client_id)) AS ids
    FROM listed_id
    GROUP BY consumer_group, broker_name
  )
  LEFT JOIN (
    SELECT consumer_group, max(member_list_count) AS route_list_count FROM gold_ownership_drift GROUP BY consumer_group
  ) USING (consumer_group)
  GROUP BY consumer_group
),
-- Each member of a list once; if the lists differ, every member of any list.
member AS (
  SELECT
    consumer_group, client_id, is_one_list, is_proxied, broker_list_count, route_list_count,
    coalesce(strategies, array()) AS strategies, coalesce(state, 'unknown') AS state, coalesce(is_asking, FALSE) AS is_asking,
    coalesce(is_following, FALSE) AS is_following,
    -- Which strategy a client id follows that reports several is unknown.
    coalesce(is_odd AND size(strategies) = 1, FALSE) AS is_odd
  FROM (SELECT DISTINCT consumer_group, client_id FROM listed_id)
  JOIN list_of_group USING (consumer_group)
  LEFT JOIN report USING (consumer_group, client_id)
),
members_of_group AS (
  SELECT
    *, coalesce(arrays_overlap(states, array('online', 'broadcasting')), FALSE) AS is_connected,
    array_contains(states, 'broadcasting') AS is_broadcasting
  FROM (
    SELECT
      consumer_group, any_value(is_one_list) AS is_one_list, any_value(is_proxied) AS is_proxied,
      any_value(broker_list_count) AS broker_list_count, any_value(route_list_count) AS route_list_count,
      count(*) AS member_count, collect_set(IF(state = 'unknown' AND NOT {_IS_GRPC}, client_id, NULL)) AS unasked_ids,
      bool_or(size(strategies) > 1) AS is_ambiguous,
      array_distinct(flatten(collect_list(strategies))) AS strategies
    FROM member
    GROUP BY consumer_group
  )
  JOIN state_of_group USING (consumer_group)
),
members_of_topic AS (
  SELECT
    *, group_state = 'online' AND NOT startswith(topic, '{_RETRY}') AS is_open,
    -- Another reason may take precedence, and a topic without a queue or a known strategy has no reason.
    topic_of_drift IS NULL OR reason IN {quoted_list(_REASONS_OF_FETCHING)}
      OR (reason IS NULL OR has_no_strategy) AND is_reported_by_others AS is_hidden
  FROM (
    SELECT
      consumer_group, topic, any_value(group_state) AS group_state, any_value(is_one_list) AS is_one_list,
      -- A member that could not be queried counts as subscribed; gRPC clients subscribe only to what they read.
      collect_set(IF(NOT array_contains(topics, topic) AND NOT {_IS_GRPC}, client_id, NULL)) AS unsubscribed_ids,
      count(client_id) AS member_count,
      collect_set(IF(is_following, client_id, NULL)) AS asking_ids, collect_set(IF(is_odd, client_id, NULL)) AS odd_ids,
      array_distinct(flatten(collect_list(IF(is_odd, strategies, array())))) AS odd_strategies,
      coalesce(bool_or(is_asking OR is_proxied OR {_IS_GRPC}), FALSE) AS is_reported_by_others
    FROM (
      SELECT consumer_group, topic, any_value(group_state) AS group_state FROM gold_assignment_fairness GROUP BY consumer_group, topic
    )
    LEFT JOIN member USING (consumer_group)
    LEFT JOIN (
      SELECT consumer_group, client_id, collect_set(topic) AS topics FROM silver_client_subscription GROUP BY consumer_group, client_id
    ) USING (consumer_group, client_id)
    GROUP BY consumer_group, topic
  )
  LEFT JOIN (
    SELECT consumer_group, topic, collect_list(shown) AS expressions
    FROM (
      -- Members with equal sets of tags receive the same messages. A tag named `*` is not every tag.
      SELECT DISTINCT consumer_group, topic, is_every_tag, CASE
        WHEN is_every_tag THEN '*'
        WHEN is_of_tags THEN array_join(sort_array(array_except({_PARTS_OF_EXPRESSION}, array(''))), ' || ')
        ELSE concat_ws(' ', expression_type, expression) END AS shown
      FROM (
        SELECT *, is_of_tags AND nullif(nullif(expression, ''), '*') IS NULL AS is_every_tag
        FROM (SELECT *, coalesce(nullif(expression_type, ''), 'TAG') = 'TAG' AS is_of_tags FROM silver_client_subscription)
      )
    )
    GROUP BY consumer_group, topic
  ) USING (consumer_group, topic)
  LEFT JOIN (
    SELECT consumer_group, topic, topic AS topic_of_drift, max(coalesce(expected_reason, unknown_reason)) AS reason,
      max(client_count) AS client_count, bool_and(strategy IS NULL) AS has_no_strategy
    FROM gold_ownership_drift
    GROUP BY consumer_group, topic
  ) USING (consumer_group, topic)
),
undetermined_rule AS (
  SELECT
    consumer_group, reason IN ('strategy_unknown', 'release_unknown') AS is_of_strategy, count(*) AS queue_count,
    count(DISTINCT topic) AS topic_count, collect_set(topic) AS topics, max(strategy) AS strategy
  FROM (
    SELECT
      consumer_group, topic, strategy,
      CASE
        WHEN strategy IS NULL AND group_state = 'online' AND is_routed
          AND (unknown_reason <=> 'strategy_not_reported' OR state = 'unowned' AND unasked_client_count = 0)
          THEN 'strategy_not_reported'
        -- Mixed strategies have their own finding.
        WHEN expected_reason = 'member_strategy_unknown' AND coalesce(strategy, 'MIXED') = 'MIXED' THEN NULL
        WHEN expected_reason IN (
          'settings_missing', 'strategy_unknown', 'release_unknown', 'strategy_not_reported', 'member_strategy_unknown'
        ) THEN expected_reason
      END AS reason
    FROM gold_ownership_drift
  )
  WHERE reason IS NOT NULL
  GROUP BY consumer_group, reason
),
held_queue AS (
  SELECT consumer_group, client_id, topic, broker_name, queue_id, commit_offset, last_pull_at, last_consumed_at
  FROM silver_observed_owner
  LEFT ANTI JOIN (SELECT consumer_group, client_id FROM silver_client_process WHERE state = 'online')
    USING (consumer_group, client_id)
  WHERE NOT is_pop AND NOT coalesce(is_dropped, FALSE)
  UNION ALL
  SELECT consumer_group, client_id, topic, broker_name, queue_id, commit_offset, last_pull_at, last_consumed_at
  FROM silver_process_owner
  WHERE NOT is_pop AND NOT coalesce(is_dropped, FALSE)
),
-- Times of a client are compared with its own last pull, those of a broker with the capture.
stalled_topic AS (
  SELECT
    consumer_group, topic, collect_set(concat(broker_name, '/', CAST(queue_id AS STRING))) AS queues,
    count(DISTINCT client_id) AS client_count
  FROM (
    SELECT *, max(last_pull_at) OVER (PARTITION BY consumer_group, client_id) AS client_now FROM held_queue
  )
  JOIN (
    SELECT consumer_group, client_id, captured_at
    FROM silver_consumer_client
    WHERE state = 'online' AND consume_type = 'CONSUME_PASSIVELY' AND coalesce(message_model, 'CLUSTERING') = 'CLUSTERING'
  ) USING (consumer_group, client_id)
  JOIN (SELECT topic, broker_name, queue_id, max_offset, last_stored_at FROM silver_queue_offset) USING (topic, broker_name, queue_id)
  WHERE commit_offset >= 0 AND max_offset > commit_offset
    AND unix_millis(client_now) - unix_millis(last_consumed_at) >= {_STALLED_AFTER_MS}
    AND unix_millis(captured_at) - unix_millis(last_stored_at) >= {_STALLED_AFTER_MS}
  GROUP BY consumer_group, topic
),
lost_topic AS (
  SELECT topic, collect_set(consumer_group) AS consumer_groups, any_value(has_left_out_groups) AS has_left_out_groups
  FROM gold_assignment_fairness
  JOIN (
    SELECT DISTINCT topic FROM silver_export_record WHERE kind = 'nameserver_route' AND (state = 'payload' OR error_code = 17)
  ) USING (topic)
  LEFT ANTI JOIN (SELECT topic FROM silver_topic_route WHERE is_in_route) USING (topic)
  CROSS JOIN (SELECT count(*) > 0 AS has_left_out_groups FROM excluded_group)
  -- POP retry topics have subscriptions and may never have been created.
  WHERE NOT (startswith(topic, '{_RETRY}') AND topic <> concat('{_RETRY}', consumer_group))
  GROUP BY topic
)"""
"""The relations that `SOURCES` reads, as `name AS (…), …` for a WITH clause."""
