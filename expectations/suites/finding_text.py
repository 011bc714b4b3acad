"""The evidence of every kind of finding: a sentence of fixed words and of the row's own numbers and names.

Belongs here: for each kind, the fixed words of its sentence and the columns between them. Does not belong here: the correctness of the
numbers (`finding.py`, and the suites of their source tables).
"""

from __future__ import annotations

from typing import Final

from expectations.suites.model import quoted
from expectations.suites.thresholds import MOST_LISTED

_QUOTE: Final = "\\Q"
_UNQUOTE: Final = "\\E"

_ANYTHING: Final = quoted(".*")
"""Text without a column in `finding`: a message of a source, a second list, a sum."""


def _words(text: str) -> str:
    return _column(quoted(text))


def _column(value: str) -> str:
    """Return SQL for a regular expression that matches exactly a text, for any characters in a name."""
    inner = f"replace({value}, {quoted(_UNQUOTE)}, {quoted(_UNQUOTE + chr(92) * 2 + 'E' + _QUOTE)})"
    return f"concat({quoted(_QUOTE)}, {inner}, {quoted(_UNQUOTE)})"


def _number(column: str) -> str:
    return _column(f"CAST({column} AS STRING)")


def _counted(column: str, singular: str, plural: str) -> str:
    # concat_ws skips a null number.
    noun = f"IF({column} = 1, {quoted(singular)}, {quoted(plural)})"
    return _column(f"concat_ws(' ', CAST({column} AS STRING), {noun})")


def _names(column: str, total: str) -> str:
    """Return SQL for the list, with its length and the total if it is truncated."""
    cut = f"IF({total} > {MOST_LISTED}, concat(' ({MOST_LISTED} of ', {total}, ')'), '')"
    return _column(f"concat(array_join({column}, ', '), {cut})")


def _first_names(column: str) -> str:
    """Return SQL for a list whose total length is not a column of the row."""
    return f"concat({_column(f'''array_join({column}, ', ')''')}, {quoted(f'( [(]{MOST_LISTED} of [0-9]+[)])?')})"


_CAUSE: Final = _column("coalesce(concat(' (', likely_cause, ')'), '')")
_QUEUES: Final = (_CAUSE, _words(": "), _names("examples", "queue_count"))
_OWNERS: Final = (_words(" by "), _ANYTHING, _words("."))
_MEMBERS_ASKING: Final = _counted("client_count", "member leaves", "members leave")
_WAITING: Final = _column(
    "IF(waiting_message_count IS NULL, 'How many messages wait there is unknown.', concat(waiting_message_count, "
    "IF(waiting_message_count = 1, ' message waits there.', ' messages wait there.')))"
)


def _of_broker(words: str) -> tuple[str, ...]:
    return (
        _words(words),
        _counted("topic_count", "topic", "topics"),
        _words(" ("),
        _names("examples", "topic_count"),
        _words("): "),
        _names("seen_values", "value_count"),
        _words("."),
    )


def _of_file(*words: str) -> tuple[str, ...]:
    return (
        *words,
        _words(" On "),
        _first_names("examples"),
        _words(": "),
        _first_names("seen_values"),
        _words("."),
    )


def _of_offsets(start: str, end: str) -> tuple[str, ...]:
    return (
        _words(start),
        quoted("([0-9]+ )?messages?"),
        _words(f"{end} in "),
        _counted("queue_count", "queue", "queues"),
        _words(": "),
        _names("examples", "queue_count"),
        _words("."),
    )


_SENTENCES: Final[dict[str, tuple[str, ...]]] = {
    "mixed_strategies": (
        _words("Members report "),
        _column("array_join(seen_values, ' and ')"),
        f"IF(value_count > {MOST_LISTED}, '.*', '')",
        _words("."),
    ),
    "mixed_request_modes": (
        (
            f"IF(startswith(evidence, 'Members that pop: '), concat({_words('Members that pop: ')}, {_number('client_count')}, "
            f"{_words(' (')}, {_names('examples', 'client_count')}, {_words('). Members that pull: ')}, '[0-9]+ .*', "
            f"{_words('). Both read the same queues.')}), concat({_words('Members at brokers: ')}, "
            f"{_number('client_total_count - client_count')}, {_words('. Members at proxies: ')}, {_number('client_count')}, "
            f"{_words('. They divide the queues by different lists of members.')}))"
        ),
    ),
    "server_load_balancer_off": (
        _MEMBERS_ASKING,
        _words(
            " the division to brokers with serverLoadBalancerEnable=false: they give every queue to each that asks."
        ),
    ),
    "request_modes_differ": (
        _words("The brokers of the topic have different request modes for "),
        _counted("client_count", "member that asks", "members that ask"),
        _words(" any of them."),
    ),
    "strategy_unknown_to_broker": (
        _MEMBERS_ASKING,
        _words(" the division to the broker, which does not have "),
        _column("array_join(seen_values, ', ')"),
        f"IF(size(seen_values) = {MOST_LISTED}, '.*', '')",
        _words(": they keep the queues that they hold, and take no new ones."),
    ),
    "duplicate_client_id": (
        _column(
            "coalesce(concat(process_count, ' processes share this client id.'), "
            "concat('Every broker that lists this client id lists it at least ', value_count, ' times: several processes share it, "
            "or one has connections that died unnoticed.'))"
        ),
    ),
    "subscriptions_differ": (
        _column(
            "IF(client_count = 0, "
            "concat(IF(client_total_count = 1, 'The only member subscribes', concat('The ', client_total_count, ' members subscribe')), "
            "' to the topic with ', value_count, ' filter expressions: '), "
            "concat(client_count, ' of ', client_total_count, IF(client_total_count = 1, ' member', ' members'), "
            "IF(client_count = 1, ' does', ' do'), ' not subscribe to the topic; the others use ', "
            "value_count, IF(value_count = 1, ' filter expression', ' filter expressions')))"
        ),
        f"IF(client_count = 0, {_names('seen_values', 'value_count')}, '')",
        _words("."),
    ),
    "unowned": (
        _counted("queue_count", "queue has no owner", "queues have no owner"),
        *_QUEUES,
        _words(". "),
        quoted("(At least )?"),
        _WAITING,
    ),
    "broadcast_queue_not_consumed": (
        _counted("queue_count", "queue is not read", "queues are not read"),
        _words(" by every member of this broadcasting group"),
        *_QUEUES,
        _words("."),
    ),
    "multiple_owners": (
        _counted("queue_count", "queue has", "queues have"),
        _words(" more than one owner"),
        *_QUEUES,
        *_OWNERS,
    ),
    "unexpected_owner": (
        _counted("queue_count", "queue is held", "queues are held"),
        _words(" by a client that the strategy would not have chosen"),
        *_QUEUES,
        *_OWNERS,
    ),
    "assignment_stale": (
        _counted("queue_count", "queue", "queues"),
        _words(" of a topic without a readable route "),
        _column("IF(queue_count = 1, 'is', 'are')"),
        _words(" still held: "),
        _names("examples", "queue_count"),
        *_OWNERS,
    ),
    "idle_clients": (
        _number("client_count"),
        _words(" of "),
        _counted("client_total_count", "client", "clients"),
        _column("IF(client_count = 1, ' owns none of ', ' own none of ')"),
        _counted("queue_total_count", "queue", "queues"),
        _words("."),
    ),
    "load_imbalanced": (
        _words("One client owns "),
        _counted("max_queues_per_client", "queue", "queues"),
        _words(", another "),
        _number("min_queues_per_client"),
        _words(", the mean is "),
        _column("format_number(mean_queues_per_client, 2)"),
        _words("."),
    ),
    "group_offline": (
        _words("No member is connected to any broker or proxy; the group has progress in "),
        _counted("topic_count", "topic", "topics"),
        _words("."),
        quoted("( It was offline on [0-9-]{10} too, and no offset of it has moved since[.])?"),
    ),
    "members_unknown": (
        _words("It is unknown whether members are connected: "),
        _ANYTHING,
        _words("."),
    ),
    "client_unreachable": (
        _number("client_count"),
        _words(" of "),
        _counted("client_total_count", "member", "members"),
        _words(" could not be asked what they hold: "),
        _names("examples", "client_count"),
        _words("."),
    ),
    "member_lists_differ": (
        _words("Brokers give "),
        _number("value_count"),
        _words(" different member lists."),
    ),
    "consumption_disabled": (
        quoted("(All|Some) brokers that have its configuration give its members no messages [(]"),
        _column("array_join(seen_values, ', ')"),
        _words("): "),
        _names("examples", "value_count"),
        _words("."),
    ),
    "settings_missing": (
        (
            "IF(client_total_count IS NULL, "
            "'(The rule of some members is known, that of others is not|Members report the strategy .+)[.]', "
            "concat(IF(client_total_count = 1, 'The only member answered, and reports no strategy', "
            "concat('All ', client_total_count, ' members answered, and none reports a strategy')), "
            "' [(]clients in Go and C[+][+] do not[)][.]'))"
        ),
    ),
    "strategy_unknown": (
        quoted(
            "(The members' release is not known, and releases divide differently|Members report the strategy .+|One client id reports the strategies .+)[.]"
        ),
    ),
    "strategy_changed": (
        _words("The strategy in effect is "),
        _column("array_join(seen_values, ' and ')"),
        f"IF(value_count > {MOST_LISTED}, '.*', '')",
        quoted(" on [0-9-]{10}[.] "),
        (
            f"IF(queue_total_count = 0, {_words('No owner was observed on both days.')}, "
            f"concat({_words('Of the ')}, {_counted('queue_total_count', 'queue', 'queues')}, "
            f"{_words(' whose owner was observed on both days, ')}, {_counted('queue_count', 'has', 'have')}, {_words(' another one.')}))"
        ),
    ),
    "consumption_stalled": (
        quoted("([0-9]+ messages wait|1 message waits|messages wait) in "),
        _counted("queue_count", "queue", "queues"),
        _words(", of which "),
        _ANYTHING,
        quoted(" has consumed nothing for [0-9]+ minutes: "),
        _names("examples", "queue_count"),
        _words("."),
    ),
    "order_queue_blocked": (
        _counted("queue_count", "FIFO queue waits", "FIFO queues wait"),
        quoted(
            " for a message that was handed out again, up to [0-9]+ times?, and is not acknowledged; behind it "
            "([0-9]+ )?messages? waits?: "
        ),
        _names("examples", "queue_count"),
        _words("."),
    ),
    "route_differs": (
        quoted("[0-9]+ name servers give different readable queues on "),
        _first_names("examples"),
        _words(": "),
        _names("seen_values", "value_count"),
        _words("."),
    ),
    "order_conf_differs": (
        _words("Name servers give different order configurations: "),
        _names("seen_values", "value_count"),
        _words("."),
    ),
    "route_missing": (
        _words("No name server has a route; subscribed by "),
        _names("examples", "group_count"),
        _words("."),
    ),
    "broker_missing_on_nameserver": _of_broker("Some name servers do not send clients to this broker, for "),
    "write_route_differs": _of_broker("Name servers give different write queues or permissions, for "),
    "broker_address_differs": _of_broker("Name servers give different addresses of this broker, seen with "),
    "route_config_differs": _of_broker(
        "The routes on the name servers differ from the broker's configuration, for "
    ),
    "broker_without_master": (
        _words("No name server lists a master (broker id 0) of this broker, only "),
        _names("seen_values", "value_count"),
        _words(". It takes no messages for "),
        _counted("topic_count", "topic", "topics"),
        _words("; whether a slave serves pulls is unknown: its release and slaveReadEnable decide."),
    ),
    "offset_files_corrupt": _of_file(_words("The client could not start from these files.")),
    "offset_file_shared": _of_file(
        _number("process_count"),
        _words(" processes have this client id, more than there are hosts with its files."),
    ),
    "offset_file_recovered": _of_file(_words("Only the .bak file is good.")),
    "offset_file_lost": _of_file(_words("The client has no stored offsets.")),
    "offset_file_undecided": _of_file(_words("Whether the client can read its file is not known.")),
    "offset_file_stale": _of_file(quoted("The client is online and has not written for -?[0-9,.]+ hours[.]")),
    "offset_file_unused": _of_file(
        quoted(
            "(No client uses this file any more|The group consumes in CLUSTERING mode, which keeps its offsets on the brokers)[.]"
        )
    ),
    "broadcast_messages_lost": _of_offsets("The brokers removed ", " past the stored offset,"),
    "broadcast_offset_ahead": _of_offsets("The client has stored offsets past the end of the log, by ", ","),
    "broadcast_offset_regressed": _of_offsets("The stored offset went back, by ", ""),
    "broadcast_client_stuck": _of_offsets(
        "The stored offset has not changed since the earlier day and is ", " behind"
    ),
    "record_rejected": (
        _counted("record_count", "record", "records"),
        _words(" of kind "),
        _first_names("seen_values"),
        _words(" could not be read: "),
        _ANYTHING,
    ),
    "record_repeated": (
        _counted("record_count", "record", "records"),
        _words(" of kind "),
        _first_names("seen_values"),
        _column("IF(record_count = 1, ' does', ' do')"),
        _words(" not count beside another answer to the same question: "),
        _ANYTHING,
    ),
    "order_conf_unreadable": (
        _words("Producers cannot read the order configuration: "),
        _names("seen_values", "value_count"),
        _words("."),
    ),
    "source_failed": (
        _counted("record_count", "question", "questions"),
        _column("IF(likely_cause <=> 'permission_denied', ' refused (', ' failed (')"),
        _first_names("seen_values"),
        _words(")"),
        _column("IF(likely_cause <=> 'permission_denied', '; these kinds need Get and List on ', ': ')"),
        _ANYTHING,
    ),
}
"""Kind -> SQL of the regular expressions that form its evidence, in order."""

KINDS_WITH_SENTENCE: Final = frozenset(_SENTENCES)

_PATTERN: Final = (
    "CASE kind "
    + " ".join(
        f"WHEN {quoted(kind)} THEN concat('(?s)^', {', '.join(parts)}, {quoted(chr(92) + 'z')})"
        for kind, parts in _SENTENCES.items()
    )
    + " END"
)

EVIDENCE_IS_OF_ROW: Final = f"coalesce(evidence RLIKE {_PATTERN}, FALSE)"
"""SQL boolean: the evidence is the sentence of the row's kind with the row's own numbers and names."""
