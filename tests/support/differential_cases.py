"""Generates cases in the format of the golden files, with inputs that break a reimplementation.

Belongs here: random inputs. Every case has its own generator, seeded by run, family and number, so that a single case can
be generated again. Does not belong here: expected results.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INT_MIN, INT_MAX = -(2**31), 2**31 - 1

# Characters that sort, split, trim, escape or encode differently than they look: supplementary characters sort below
# U+E000, lone surrogates have no UTF-8 encoding, and Java trims only some spaces.
ODD = [
    *"aZz09-@#%{\\\"'./:;| \t\x01\x1f\x7f",
    *"\u0085\u00a0\u00df\u00e9\u0130\u03a9\u180e\u2003\u2007\u200b\u2028\u202f\u3000\u4e2d\u6587",
    *"\ud7ff\ue000\uff21\uffee\ufffd\uffff",
    *"\U00010000\U0001f600\U0010ffff",
    *"\ud800\udbff\udc00\udfff",
    "e\u0301",
]  # fmt: skip
BLANK = [
    "",
    " ",
    "  ",
    "\t",
    "\x1f",
    "\u0085",
    "\u00a0",
    "\u180e",
    "\u2003",
    "\u2007",
    "\u2028",
    "\u202f",
    "\u3000",
]
# Their hash codes collide, are 0, or are the minimum.
HASHING = ["Aa", "BB", "AaAa", "BBBB", "AaBB", "polygenelubricants", "", "\0", "null", "DESIGNING WORKHOUSES"]
BROKERS = ["broker-a", "broker-b", "broker-10", "broker-2", "Broker-a", "broker-1", "Z", "null"]
IN_ROOMS = [
    "room1@broker-a",
    "room1@broker-b",
    "room2@broker-a",
    "Room1@x",
    "room3@b",
    " @b",
    "room1 @b",
    "\u673a\u623f@b",
]
SPLITTING = ["a@b@", "@b", "@", "a@@b", "", "a@b@c", "a@", "@@", "@@b", "room1@b@@", "room1@@", "noroom"]
ROOMS = ["room1", "room2", "room3", "Room1", "a", "", " ", "\ue000", "\U0001f600", "\u673a\u623f"]
STRANGER = "absent@client"


def allocate(seed: int, count: int, strategy: str) -> Iterator[dict[str, Any]]:
    """`AllocateMessageQueueStrategy.allocate`, one strategy."""
    return _drawn(seed, count, f"allocate-{strategy}", lambda draw: _allocation(draw, strategy))


def rebalance(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Draw cases of one round of `RebalanceImpl`."""
    return _drawn(seed, count, "rebalance", _round)


def queues_from_route(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Draw routes for `MQClientInstance`, which reads queues from them."""
    return _drawn(seed, count, "queues_from_route", _route_case)


def producer_select(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """`TopicPublishInfo`, `MQFaultStrategy` and `SelectMessageQueueByHash`."""
    return _drawn(seed, count, "producer_select", _selection)


def pop(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """`QueryAssignmentProcessor.allocate4Pop`."""
    return _drawn(seed, count, "pop", _pop_share)


def hashes(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Draw strings and queues for hashes, order, text and splitting; a case contains many values."""
    return _drawn(seed, count, "hash", _primitives)


def _drawn(
    seed: int, count: int, family: str, case: Callable[[random.Random], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    for number in range(count):
        name = f"{family}-{seed}-{number}"
        # A round trip through JSON joins two adjacent surrogates into the one character that they are in Java.
        yield json.loads(json.dumps({"id": name, **case(random.Random(name))}))  # noqa: S311  repeatable


def _odd_text(draw: random.Random, most: int = 4) -> str:
    return "".join(draw.choices(ODD, k=draw.randint(0, most)))


def _often(draw: random.Random, share: float) -> bool:
    return draw.random() < share


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


# Clients ------------------------------------------------------------------------------------------------------------


def _client_id(draw: random.Random, style: int) -> str:
    number = draw.randint(1, 30)
    if style == 0:
        return f"10.0.{draw.randint(0, 1)}.{number}@{draw.choice([1, 7, 23, 3232])}"
    if style == 1:
        return f"192.168.0.{number}@{1000 + number}#{draw.randint(10**13, 10**14)}"
    if style == 2:
        return f"{draw.choice(ROOMS)}-c{number}"
    if style == 3:
        return draw.choice(HASHING) + draw.choice(HASHING)
    return f"c{_odd_text(draw)}{number}" if _often(draw, 0.5) else _odd_text(draw)


def _client_ids(draw: random.Random, *, missing: bool = True) -> list[str] | None:
    if missing and _often(draw, 0.03):
        return None
    size = draw.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 12, 25]) if _often(draw, 0.9) else 0
    style = draw.randint(0, 5)
    ids = [_client_id(draw, style if style < 5 else draw.randint(0, 4)) for _ in range(size)]
    if not _often(draw, 0.3):
        ids = list(dict.fromkeys(ids))
    elif ids:
        # The broker answers with an id per channel.
        ids += draw.choices(ids, k=draw.randint(1, 3))
    if _often(draw, 0.05):
        ids.append(draw.choice(BLANK))
    return ids


def _as_passed(draw: random.Random, ids: list[str] | None) -> list[str] | None:
    """Return the ids mostly sorted, as the client passes them; a strategy itself must not depend on their order."""
    if ids is None:
        return None
    return sorted(ids, key=_java_order) if _often(draw, 0.7) else draw.sample(ids, len(ids))


def _asked(draw: random.Random, ids: list[str] | None, *, nulls: bool = True) -> list[str | None]:
    members: list[str | None] = list(dict.fromkeys(ids or []))
    if len(members) > 10:
        members = draw.sample(members, 10)
    asked = [*members, STRANGER]
    if nulls and _often(draw, 0.3):
        asked += ["", None]
    if _often(draw, 0.2):
        asked.append(draw.choice(BLANK))
    return list(dict.fromkeys(asked))


# Queues -------------------------------------------------------------------------------------------------------------


def _broker(draw: random.Random, *, in_room: bool = False) -> str:
    kind = draw.random()
    if in_room and kind < 0.8:
        return draw.choice(IN_ROOMS)
    if kind < 0.45:
        return draw.choice(BROKERS)
    if kind < 0.7:
        return draw.choice(IN_ROOMS)
    return draw.choice(SPLITTING) if kind < 0.85 else _odd_text(draw)


def _topic(draw: random.Random) -> str:
    return (
        draw.choice(["T", "TopicTest", "%RETRY%G", "order_topic"]) if _often(draw, 0.85) else _odd_text(draw)
    )


def _queues(
    draw: random.Random, topic: str, most_brokers: int = 4, *, in_room: bool = False
) -> list[list[Any]]:
    count = 0 if _often(draw, 0.05) else draw.randint(1, most_brokers)
    brokers = list(dict.fromkeys(_broker(draw, in_room=in_room) for _ in range(count)))
    queues: list[list[Any]] = []
    for broker in brokers:
        ids = list(range(draw.choice([1, 1, 2, 3, 4, 4, 8, 16])))
        if _often(draw, 0.05):
            ids.append(INT_MAX)
        queues += [[topic, broker, number] for number in ids]
    return queues


def _queue_list(draw: random.Random, *, in_room: bool = False) -> list[list[Any]] | None:
    if _often(draw, 0.03):
        return None
    queues = _queues(draw, _topic(draw), in_room=in_room)
    if _often(draw, 0.05):
        queues += _queues(draw, _topic(draw), 1)
    if _often(draw, 0.05):
        queues.append(["T", draw.choice(BROKERS), draw.choice([-1, INT_MIN, INT_MAX])])
    if queues and _often(draw, 0.1):
        queues += draw.choices(queues, k=2)
    if _often(draw, 0.03):
        queues.append(draw.choice([[None, "broker-a", 0], ["T", None, 0], [None, None, 0]]))
    if _often(draw, 0.25):
        return draw.sample(queues, len(queues))
    return sorted(
        queues, key=lambda queue: (_java_order(queue[0] or ""), _java_order(queue[1] or ""), queue[2])
    )


# Strategies ---------------------------------------------------------------------------------------------------------


def _allocation(draw: random.Random, strategy: str) -> dict[str, Any]:
    queues = _queue_list(draw, in_room=strategy == "MACHINE_ROOM" and _often(draw, 0.8))
    ids = _as_passed(draw, _client_ids(draw))
    case: dict[str, Any] = {"strategy": strategy}
    params = _params(draw, strategy, queues or [], ids or [])
    if params is not None:
        case["params"] = params
    return case | {
        "group": draw.choice(["G", "GID_test", "", None]),
        "mq_all": queues,
        "cid_all": ids,
        "asked": _asked(draw, ids),
    }


def _params(
    draw: random.Random, strategy: str, queues: list[list[Any]], ids: list[str], *, nested: int = 0
) -> dict[str, Any] | None:
    if strategy == "CONFIG":
        return {"queues": _configured(draw, queues)}
    if strategy == "MACHINE_ROOM":
        return {"consumeridcs": _idcs(draw, queues)}
    if strategy == "CONSISTENT_HASH":
        return _ring(draw)
    if strategy == "MACHINE_ROOM_NEARBY":
        return _nearby(draw, queues, ids, nested)
    return None


def _configured(draw: random.Random, queues: list[list[Any]]) -> list[list[Any]] | None:
    if _often(draw, 0.1):
        return None
    configured = draw.sample(queues, draw.randint(0, len(queues)))
    if configured and _often(draw, 0.2):
        configured.append(draw.choice(configured))
    if _often(draw, 0.3):
        configured.append(
            [draw.choice(["T", "Foreign", "%RETRY%G"]), draw.choice(BROKERS), draw.randint(0, 9)]
        )
    return configured


def _idcs(draw: random.Random, queues: list[list[Any]]) -> list[str] | None:
    if _often(draw, 0.08):
        return None
    idcs = draw.choices(ROOMS, k=draw.randint(0, 2))
    if queues and _often(draw, 0.8):
        brokers = draw.choices([queue[1] or "" for queue in queues], k=draw.randint(1, 2))
        idcs += [broker.split("@")[0] for broker in brokers]
    return idcs


def _ring(draw: random.Random) -> dict[str, Any]:
    params: dict[str, Any] = {
        "virtual_nodes": draw.choice([None, None, 0, 1, 2, 3, 3, 10, 10, 20, -1, INT_MIN])
    }
    if _often(draw, 0.01):
        params["virtual_nodes"] = 100
    if _often(draw, 0.55):
        params["hash"] = draw.choice(
            [
                {"kind": "md5mod", "mod": draw.choice([1, 2, 7, 7, 29, 100, 1000, 2**32])},
                {"kind": "javahash"},
                {"kind": "length"},
                {"kind": "const", "value": draw.choice([0, -1, 2**32 - 1, 2**63 - 1, -(2**63)])},
            ]
        )
    return params


def _nearby(draw: random.Random, queues: list[list[Any]], ids: list[str], nested: int) -> dict[str, Any]:
    inners = ["AVG", "AVG", "AVG_BY_CIRCLE", "CONFIG", "CONSISTENT_HASH", "MACHINE_ROOM", None]
    inner = "MACHINE_ROOM_NEARBY" if nested < 1 and _often(draw, 0.04) else draw.choice(inners)
    rooms: list[Any] = draw.sample(ROOMS, draw.randint(1, 4))
    if _often(draw, 0.85):
        # Usually give every queue and client a room, because otherwise only errors would be compared.
        rooms = [room for room in rooms if room] or ["room1"]
    else:
        rooms += [None, "", {"throw": "no such room"}]
    params: dict[str, Any] = {"inner": inner}
    if inner is not None:
        inner_params = _params(draw, inner, queues, ids, nested=nested + 1)
        if inner_params is not None:
            params["inner_params"] = inner_params
    broker_room = {queue[1]: draw.choice(rooms) for queue in queues if queue[1] is not None}
    params["broker_room"] = None if _often(draw, 0.02) else broker_room
    if _often(draw, 0.3):
        # Create rooms without consumers, and consumers without queues.
        rooms = [draw.choice(rooms)]
    params["cid_room"] = {client_id: draw.choice(rooms) for client_id in [*ids, STRANGER]}
    return params


# Rounds -------------------------------------------------------------------------------------------------------------


def _round(draw: random.Random) -> dict[str, Any]:
    topic = _topic(draw)
    queues = None if _often(draw, 0.06) else _queues(draw, topic, in_room=_often(draw, 0.3))
    ids = _client_ids(draw)
    strategy = draw.choice(
        ["AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY"]
    )
    params = _params(draw, strategy, queues or [], ids or [])
    # A strategy that cannot be constructed never reaches a round.
    if strategy == "CONSISTENT_HASH" and params is not None and (params["virtual_nodes"] or 0) < 0:
        params["virtual_nodes"] = 5
    if strategy == "MACHINE_ROOM_NEARBY" and params is not None:
        params |= {"inner": "AVG_BY_CIRCLE", "broker_room": params["broker_room"] or {}}
        params.pop("inner_params", None)
    held = draw.sample(queues or [], draw.randint(0, len(queues or [])))
    if _often(draw, 0.4):
        held.append([topic, "gone-broker", draw.randint(0, 2)])
    if _often(draw, 0.3):
        held.append([draw.choice(["Unsubscribed", "%RETRY%G"]), "broker-a", 0])
    case: dict[str, Any] = {"strategy": strategy}
    if params is not None:
        case["params"] = params
    if _often(draw, 0.12):
        case["model"] = "BROADCASTING"
    return case | {
        "group": "G",
        "topic": topic,
        "mq_set": None if queues is None else draw.sample(queues, len(queues)),
        "cid_all": None if ids is None else draw.sample(ids, len(ids)),
        "held": [list(queue) for queue in dict.fromkeys(map(tuple, held))],
        "asked": _asked(draw, ids, nulls=False),
    }


# Routes -------------------------------------------------------------------------------------------------------------


def _route_case(draw: random.Random) -> dict[str, Any]:
    brokers = list(dict.fromkeys(_broker(draw) for _ in range(draw.randint(0, 5))))
    named = brokers or ["broker-a"]
    route: dict[str, Any] = {
        "orderTopicConf": _order_conf(draw, named) if _often(draw, 0.35) else None,
        "queueDatas": [_queue_data(draw, broker) for broker in brokers],
        "brokerDatas": [_broker_data(draw, broker) for broker in brokers if not _often(draw, 0.12)],
    }
    if brokers and _often(draw, 0.1):
        route["queueDatas"].append(_queue_data(draw, draw.choice(named)))
    if brokers and _often(draw, 0.1):
        route["brokerDatas"].insert(0, _broker_data(draw, draw.choice(named)))
    for listed in ("queueDatas", "brokerDatas"):
        draw.shuffle(route[listed])
        if _often(draw, 0.03):
            route[listed] = None
    if _often(draw, 0.3):
        # Up to 14 brokers, because more than 12 make Java's hash map grow.
        serving = list(dict.fromkeys(_broker(draw) for _ in range(draw.choice([0, 1, 2, 3, 5, 14]))))
        scopes: list[str | None] = draw.choice(
            [
                ["__global__"],
                ["__global__"],
                ["__global__", "a", "__x", ""],
                ["__global__", None],
                ["a__global__"],
            ]
        )
        route["topicQueueMappingByBroker"] = {broker: _mapping(draw, broker, scopes) for broker in serving}
    return {"topic": draw.choice(["T", "TopicTest", "\ue000\U0001f600"]), "route": route}


def _queue_data(draw: random.Random, broker: str) -> dict[str, Any]:
    read = draw.choice([-1, 0, 1, 2, 4, 5, 8])
    return {
        "brokerName": broker,
        "perm": draw.choice([*range(9), 6, 6, 6, 6, 14, 15, -1]),
        "readQueueNums": read,
        "writeQueueNums": read if _often(draw, 0.5) else draw.choice([-1, 0, 1, 3, 8]),
    }


def _broker_data(draw: random.Random, broker: str) -> dict[str, Any]:
    numbers = draw.choice([[0], [0], [0, 1], [0, 1, 2], [1], [2, 10], [-1], []])
    return {
        "brokerName": broker,
        "brokerAddrs": {str(number): f"10.0.{number % 9}.1:10911" for number in numbers},
    }


def _order_conf(draw: random.Random, brokers: list[str]) -> str:
    counts = [
        "0",
        "1",
        "2",
        "4",
        "8",
        "+2",
        "-3",
        "007",
        "2:3",
        "",
        " 1",
        "1 ",
        "x",
        "2147483648",
        "-2147483648",
    ]
    counts += ["\u0663", "\uff12", "\U0001d7da", "1_0", "0x2", "--1", "+", "\u0e53"]
    items = []
    for _ in range(draw.randint(0, 4)):
        # Usually draw valid counts, because otherwise only errors would be compared.
        count = draw.choice(counts[:5] if _often(draw, 0.85) else counts)
        broker = draw.choice([*brokers, "unknown", ""])
        items.append(draw.choice([f"{broker}:{count}"] * 12 + [broker, "", ":", f":{count}"]))
    return ";".join(items) + draw.choice(["", "", ";", ";;"])


def _mapping(draw: random.Random, broker: str, scopes: list[str | None]) -> dict[str, Any]:
    logical = draw.sample(range(-1, 12), draw.randint(0, 6))
    return {
        "bname": broker if _often(draw, 0.95) else draw.choice(BROKERS),
        "scope": draw.choice(scopes),
        "totalQueues": draw.choice([0, 1, 3, 7, 8, 8]),
        "epoch": draw.choice([0, 1, 1, 2, 2**40]),
        "currIdMap": {str(number): draw.randint(0, 5) for number in logical},
    }


# Producers ----------------------------------------------------------------------------------------------------------


def _selection(draw: random.Random) -> dict[str, Any]:
    if _often(draw, 0.25):
        return {
            "api": "select_by_hash",
            "queue_count": draw.choice([0, 1, 2, 3, 4, 7, 8, 16, 100, 1000]),
            "args": [_hash_argument(draw) for _ in range(12)],
        }
    if _often(draw, 0.05):
        edges_ms = [0, 49, 50, 100, 549, 550, 999, 1000, 1799, 1800, 2000, 3000, 5000, 14_999, 15_000, 2**62]
        return {
            "api": "isolation",
            "sent": [
                [draw.choice([*edges_ms, draw.randint(0, 20_000)]), _often(draw, 0.2)] for _ in range(12)
            ],
        }
    brokers = list(dict.fromkeys(draw.choices(BROKERS, k=draw.randint(1, 4))))
    queues = [["T", broker, number] for broker in brokers for number in range(draw.randint(0, 4))]
    if _often(draw, 0.4):
        draw.shuffle(queues)
    if queues and _often(draw, 0.1):
        queues.append(draw.choice(queues))
    edges = [INT_MIN, INT_MIN + 1, -2, -1, 0, 1, INT_MAX - 9, INT_MAX - 3, INT_MAX - 2, INT_MAX - 1, INT_MAX]
    case = {
        "api": draw.choice(["publish_info", "fault_strategy", "latency_faults"]),
        "queues": queues,
        "start": draw.choice(edges) if _often(draw, 0.7) else draw.randint(INT_MIN, INT_MAX),
        "calls": draw.choices([None, None, *brokers, "unknown", ""], k=draw.randint(1, 16)),
    }
    if case["api"] == "latency_faults":
        case["faults"] = _faults(draw, brokers)
    return case


def _faults(draw: random.Random, brokers: list[str]) -> dict[str, Any]:
    unavailable = draw.sample(brokers, draw.randint(0, len(brokers)))
    return {
        "unavailable": brokers if _often(draw, 0.4) else unavailable,
        "unreachable": draw.sample(unavailable, draw.randint(0, len(unavailable))),
        "least_bad": draw.choice([None, "gone", *brokers, *brokers]),
        "write_queue_nums": {broker: draw.choice([-1, 0, 1, 2, 4, 7]) for broker in brokers},
    }


def _hash_argument(draw: random.Random) -> list[Any]:
    kind = draw.choice(["String", "String", "Integer", "Long"])
    if _often(draw, 0.04):
        return ["null", None]
    if kind == "String":
        texts = [draw.choice(HASHING), _odd_text(draw, 12), f"order-{draw.randint(0, 10**6)}"]
        return [kind, draw.choice(texts)]
    bits = 32 if kind == "Integer" else 64
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    edges = [least, least + 1, -1, 0, 1, most, INT_MIN, INT_MAX]
    return [kind, draw.choice([*edges, draw.randint(least, most), draw.randint(least, most)])]


def _pop_share(draw: random.Random) -> dict[str, Any]:
    queues, ids = _queue_list(draw), _as_passed(draw, _client_ids(draw))
    size = len(ids or [])
    return {
        "strategy": draw.choice(["AVG", "AVG_BY_CIRCLE"]),
        "group": "G",
        "mq_all": queues,
        "cid_all": ids,
        "share": draw.choice([-1, 0, 1, 1, 2, 3, size - 2, size - 1, size, size + 1, INT_MAX, INT_MIN]),
        "asked": _asked(draw, ids),
    }


# Primitives ---------------------------------------------------------------------------------------------------------


def _primitives(draw: random.Random) -> dict[str, Any]:
    kind = draw.choice(["string", "queue", "compare_string", "compare_queue", "split"])
    if kind == "string":
        return {"kind": kind, "values": [_any_text(draw) for _ in range(20)]}
    if kind == "queue":
        return {"kind": kind, "values": [_any_queue(draw, nulls=True) for _ in range(20)]}
    if kind == "compare_string":
        return {"kind": kind, "pairs": [_alike(draw, _any_text) for _ in range(20)]}
    if kind == "compare_queue":
        return {"kind": kind, "pairs": [_alike(draw, _any_queue) for _ in range(20)]}
    regex = draw.choice("@;:")
    texts = [
        "".join(draw.choices(["a", "b", "", "\U0001f600", regex, regex], k=draw.randint(0, 8)))
        for _ in range(20)
    ]
    return {"kind": kind, "regex": regex, "values": texts}


def _any_text(draw: random.Random) -> str:
    texts = [draw.choice(HASHING), _odd_text(draw), _odd_text(draw, 40), _broker(draw)]
    return draw.choice([*texts, f"{_client_id(draw, draw.randint(0, 4))}-{draw.randint(0, 99)}"])


def _any_queue(draw: random.Random, *, nulls: bool = False) -> list[Any]:
    number = draw.choice([0, 1, 5, -1, -2, INT_MIN, INT_MIN + 1, INT_MAX])
    names = [None if nulls and _often(draw, 0.05) else name for name in (_topic(draw), _broker(draw))]
    return [*names, number]


def _alike(draw: random.Random, one: Callable[[random.Random], Any]) -> list[Any]:
    """Draw a pair of independent values or, often, a pair with a common prefix, which can be equal."""
    first, second = one(draw), one(draw)
    if _often(draw, 0.4):
        same = draw.randint(0, len(first))
        second = first[:same] + (draw.choice(["", *ODD]) if isinstance(first, str) else second[same:])
    return [first, second]
