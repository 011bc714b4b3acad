"""The answers of a simulated cluster's servers, in the wire format of RocketMQ 5.3.3.

Belongs here: the text of each kind of payload, and the errors. Does not belong here: the cluster itself (`layout`).

Names need no escapes: `layout` creates them from letters, digits and `%@#_-`. Numbers that only show the cluster's load
are computed from names, so that two answers about one queue agree.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rebalance_ledger.collectors.admin import Answer
from tools.simulated_cluster.layout import BROADCASTING, POP, RELEASE_5

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from rebalance_ledger.collectors.admin import Question
    from strategies import MessageQueue
    from tools.simulated_cluster.layout import Broker, Group, Layout, Topic

_CONSUMER_NOT_ONLINE: Final = 206
_BROKER_ERROR: Final = "org.apache.rocketmq.client.exception.MQBrokerException"
_MORE_ABOUT_ERRORS: Final = (
    "For more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"
)
_STRATEGY_PACKAGE: Final = "org.apache.rocketmq.client.consumer.rebalance."
_STRATEGY_CLASSES: Final = {
    "AVG": "AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": "AllocateMessageQueueAveragelyByCircle",
    "CONFIG": "AllocateMessageQueueByConfig",
    "CONSISTENT_HASH": "AllocateMessageQueueConsistentHash",
    "MACHINE_ROOM": "AllocateMessageQueueByMachineRoom",
    "MACHINE_ROOM_NEARBY": "AllocateMachineRoomNearby",
}
_SYSTEM_GROUPS: Final = (
    "CID_ONSAPI_OWNER",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_PULL",
    "CID_ONS-HTTP-PROXY",
    "CID_RMQ_SYS_TRANS",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "TOOLS_CONSUMER",
)
_ANY_QUEUE: Final = -1
"""The queue id under which a client pops every queue of a broker."""

# Properties that are equal for all push consumers. Those that differ are written before them.
_PROPERTIES_OF_ALL: Final = ",".join(
    f'"{name}":"{value}"'
    for name, value in {
        "accessChannel": "LOCAL",
        "adjustThreadPoolNumsThreshold": "100000",
        "awaitTerminationMillisWhenShutdown": "0",
        "clientCallbackExecutorThreads": "2",
        "consumeConcurrentlyMaxSpan": "2000",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeMessageBatchMaxSize": "1",
        "consumeThreadMax": "20",
        "consumeThreadMin": "20",
        "consumeTimeout": "15",
        "decodeDecompressBody": "true",
        "decodeReadBody": "true",
        "enableStreamRequestType": "false",
        "heartbeatBrokerInterval": "30000",
        "language": "JAVA",
        "maxReconsumeTimes": "-1",
        "mqClientApiTimeout": "3000",
        "namespaceInitialized": "true",
        "persistConsumerOffsetInterval": "5000",
        "pollNameServerInterval": "30000",
        "popBatchNums": "32",
        "popInvisibleTime": "60000",
        "popThresholdForQueue": "96",
        "postSubscriptionWhenPull": "false",
        "pullBatchSize": "32",
        "pullBatchSizeInBytes": "262144",
        "pullInterval": "0",
        "pullThresholdForQueue": "1000",
        "pullThresholdForTopic": "-1",
        "pullThresholdSizeForQueue": "100",
        "pullThresholdSizeForTopic": "-1",
        "pullTimeDelayMillsWhenException": "1000",
        "sendLatencyEnable": "false",
        "socksProxyConfig": "{}",
        "startDetectorEnable": "false",
        "subscription": "{}",
        "suspendCurrentQueueTimeMillis": "1000",
        "traceMsgBatchNum": "10",
        "unitMode": "false",
        "useHeartbeatV2": "false",
        "useTLS": "false",
        "vipChannelEnabled": "false",
        "PROP_CONSUMEORDERLY": "false",
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "PROP_THREADPOOL_CORE_SIZE": "20",
    }.items()
)
_BROKER_SETTINGS: Final = {
    "autoCreateSubscriptionGroup": "true",
    "autoCreateTopicEnable": "false",
    "brokerPermission": "6",
    "brokerRole": "ASYNC_MASTER",
    "channelExpiredTimeout": "120000",
    "deleteWhen": "04",
    "fileReservedTime": "72",
    "flushDiskType": "ASYNC_FLUSH",
    "mappedFileSizeCommitLog": "1073741824",
    "maxMessageSize": "4194304",
    "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "notifyConsumerIdsChangedEnable": "true",
    "pullMessageThreadPoolNums": "32",
    "registerBrokerTimeoutMills": "24000",
    "registerNameServerPeriod": "30000",
    "sendMessageThreadPoolNums": "16",
    "serverLoadBalancerEnable": "true",
    "slaveReadEnable": "false",
    "traceTopicEnable": "false",
    "useReentrantLockWhenPutMessage": "true",
}


class HealthyCluster:
    """An admin client that answers every request of the collector like the servers and clients of a layout.

    It stores only the layout and the owners of the last requested group, so that measurements exclude its own memory.
    """

    def __init__(self, layout: Layout, at: datetime) -> None:
        """Index the layout.

        Args:
            layout: The cluster.
            at: The time of the requests. Clients have run for hours and pulled within the last seconds.
        """
        self._layout = layout
        self._now_ms = int(at.timestamp() * 1000)
        self._topics = {topic.name: topic for topic in layout.all_topics}
        self._groups = {group.name: group for group in layout.groups}
        self._brokers = {broker.name: broker for broker in layout.brokers}
        self._topics_on: dict[str, list[Topic]] = defaultdict(list)
        self._groups_on: dict[str, list[Group]] = defaultdict(list)
        self._sees = {(broker.name, group.name) for group in layout.groups for broker in group.retry.brokers}
        for topic in layout.all_topics:
            for broker in topic.brokers:
                self._topics_on[broker.name].append(topic)
        for group in layout.groups:
            for broker in group.retry.brokers:
                self._groups_on[broker.name].append(group)
        self._owners_of = lru_cache(maxsize=1)(lambda group: group.owners())

    def ask(self, question: Question, _timeout_ms: int) -> Answer:
        """Answer one request immediately.

        Raises:
            ValueError: No simulated server supports this request of the collector.
        """
        kind = question.kind
        if kind.startswith("nameserver_"):
            return self._of_nameserver(question)
        if question.group:
            return self._of_group(question)
        broker = self._brokers[question.broker]
        match kind:
            case "broker_topic_config":
                return _said(self._topic_configs(self._topics_on[broker.name]))
            case "broker_subscription_group":
                return _said(self._group_configs(self._groups_on[broker.name]))
            case "broker_runtime_info":
                return _said('{"table":{"brokerVersion":"479","brokerVersionDesc":"V5_3_3"}}')
            case "broker_config":
                return _said(_broker_settings(self._layout.cluster, broker))
            case "broker_message_request_mode":
                return _said(self._request_modes(broker))
            case "broker_producer_table":
                return _said(self._producers(broker))
            case "broker_topic_stats":
                return _said(self._topic_stats(broker, self._topics[question.topic]))
        raise ValueError(f"No simulated server can be asked for {kind}; teach it.")

    def _of_nameserver(self, question: Question) -> Answer:
        match question.kind:
            case "nameserver_topic_list":
                return _said('{"topicList":[' + ",".join(f'"{name}"' for name in self._topics) + "]}")
            case "nameserver_cluster_info":
                return _said(self._cluster_info(self._layout.brokers))
            case "nameserver_route":
                return _said(self._route(self._topics[question.topic]))
        raise ValueError(f"No simulated name server can be asked for {question.kind}; teach it.")

    def _of_group(self, question: Question) -> Answer:
        group, broker = self._groups[question.group], self._brokers[question.broker]
        if question.kind == "consumer_running_info":
            return _said(self._running_info(group, question.client_id))
        if question.kind == "consumer_status":
            return _said(self._status(group, question.client_id, question.topic))
        if question.kind == "consume_stats":
            return _said(self._consume_stats(group, broker))
        if question.kind == "consumer_connection":
            if (broker.name, group.name) in self._sees:
                return _said(self._connections(group))
            message = f"the consumer group[{group.name}] not online BROKER: {broker.address}"
            return Answer(
                error_type=_BROKER_ERROR,
                error_message=f"CODE: {_CONSUMER_NOT_ONLINE}  DESC: {message}\n{_MORE_ABOUT_ERRORS}",
                response_code=_CONSUMER_NOT_ONLINE,
            )
        raise ValueError(f"No simulated broker can be asked for {question.kind}; teach it.")

    def _broker_data(self, broker: Broker, quote: str) -> str:
        return (
            f'{{"brokerAddrs":{{{quote}0{quote}:"{broker.address}",{quote}1{quote}:"{broker.slave_address}"}},'
            f'"brokerName":"{broker.name}","cluster":"{self._layout.cluster}","enableActingMaster":false}}'
        )

    def _cluster_info(self, brokers: Iterable[Broker]) -> str:
        table = ",".join(f'"{broker.name}":{self._broker_data(broker, "")}' for broker in brokers)
        names = ",".join(f'"{broker.name}"' for broker in brokers)
        return f'{{"brokerAddrTable":{{{table}}},"clusterAddrTable":{{"{self._layout.cluster}":[{names}]}}}}'

    def _route(self, topic: Topic) -> str:
        # A name server sends plain JSON to clients from 4.9.4 on.
        brokers = ",".join(self._broker_data(broker, '"') for broker in topic.brokers)
        queues = ",".join(
            f'{{"brokerName":"{broker.name}","perm":{topic.perm},"readQueueNums":{topic.queues_on_broker},'
            f'"topicSysFlag":0,"writeQueueNums":{topic.queues_on_broker}}}'
            for broker in topic.brokers
        )
        return f'{{"brokerDatas":[{brokers}],"filterServerTable":{{}},"queueDatas":[{queues}]}}'

    def _topic_configs(self, topics: Iterable[Topic]) -> str:
        table = ",".join(
            f'"{topic.name}":{{"attributes":{{}},"order":false,"perm":{topic.perm},'
            f'"readQueueNums":{topic.queues_on_broker},"topicFilterType":"SINGLE_TAG","topicName":"{topic.name}",'
            f'"topicSysFlag":0,"writeQueueNums":{topic.queues_on_broker}}}'
            for topic in topics
        )
        return (
            f'{{"dataVersion":{self._data_version()},"mappingDataVersion":{self._data_version()},'
            f'"topicConfigTable":{{{table}}},"topicQueueMappingDetailMap":{{}},"topicQueueMappingInfoMap":{{}}}}'
        )

    def _group_configs(self, groups: Iterable[Group]) -> str:
        names = (*_SYSTEM_GROUPS, *(group.name for group in groups))
        table = ",".join(
            f'"{name}":{{"attributes":{{}},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,'
            f'"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"{name}",'
            '"groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,'
            '"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}'
            for name in names
        )
        return f'{{"dataVersion":{self._data_version()},"forbiddenTable":{{}},"subscriptionGroupTable":{{{table}}}}}'

    def _data_version(self) -> str:
        return f'{{"counter":24,"stateVersion":0,"timestamp":{self._now_ms - 86_400_000}}}'

    def _request_modes(self, broker: Broker) -> str:
        groups_of: dict[str, list[str]] = defaultdict(list)
        for group in self._groups_on[broker.name]:
            if group.sharing == POP:
                for topic in group.topics:
                    groups_of[topic.name].append(group.name)
        table = ",".join(
            f'"{topic}":{{'
            + ",".join(
                f'"{group}":{{"consumerGroup":"{group}","mode":"POP","popShareQueueNum":-1,"topic":"{topic}"}}'
                for group in groups
            )
            + "}"
            for topic, groups in groups_of.items()
        )
        return f'{{"messageRequestModeMap":{{{table}}}}}'

    def _producers(self, broker: Broker) -> str:
        """Return one producer for each domain, and the inner producer of each consumer, which sends messages back."""
        inner = ",".join(
            _producer(client_id, group.release.ordinal, self._now_ms)
            for group in self._groups_on[broker.name]
            for client_id in group.client_ids
        )
        domains = sorted({topic.name.partition("-")[0] for topic in self._layout.topics})
        gateways = "".join(
            f'"{domain}-gateway":[{_producer(f"10.1.250.{number}@gateway", RELEASE_5.ordinal, self._now_ms)}],'
            for number, domain in enumerate(domains, start=1)
        )
        return f'{{"data":{{{gateways}"CLIENT_INNER_PRODUCER":[{inner}]}}}}'

    def _topic_stats(self, broker: Broker, topic: Topic) -> str:
        entries = []
        for queue_id in range(topic.queues_on_broker):
            end = self._end_offset(topic.name, broker.name, queue_id)
            wrote_at = self._now_ms - end % 1000 if end else 0
            entries.append(
                f'{_queue_text(topic.name, broker.name, queue_id)}:{{"lastUpdateTimestamp":{wrote_at},"maxOffset":{end},'
                '"minOffset":0}'
            )
        return f'{{"offsetTable":{{{",".join(entries)}}},"topicPutTps":12.5}}'

    def _end_offset(self, topic: str, broker: str, queue_id: int) -> int:
        """Return the number of messages ever written to a queue."""
        if not self._topics[topic].has_messages:
            return 0
        return 1_000_000 + _number_of(topic) % 900_000 + _number_of(broker) % 5_000 + queue_id * 17

    def _connections(self, group: Group) -> str:
        connections = ",".join(
            f'{{"clientAddr":"{client_id.partition("@")[0]}:{40_000 + _number_of(client_id) % 20_000}",'
            f'"clientId":"{client_id}","language":"JAVA","version":{group.release.ordinal}}}'
            for client_id in group.client_ids
        )
        subscriptions = ",".join(f'"{topic.name}":{self._subscription(topic)}' for topic in group.subscribed)
        return (
            f'{{"connectionSet":[{connections}],"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
            f'"consumeType":"CONSUME_PASSIVELY","messageModel":"{_message_model(group)}",'
            f'"subscriptionTable":{{{subscriptions}}}}}'
        )

    def _subscription(self, topic: Topic) -> str:
        return (
            '{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*",'
            f'"subVersion":{self._now_ms - 18_000_000},"tagsSet":[],"topic":"{topic.name}"}}'
        )

    def _consume_stats(self, group: Group, broker: Broker) -> str:
        """Return the progress of a group on a broker. Brokers have no progress of a broadcasting group."""
        entries = []
        has_progress = group.sharing != BROADCASTING
        for topic in (topic for topic in group.subscribed if has_progress and broker in topic.brokers):
            for queue_id in range(topic.queues_on_broker):
                end = self._end_offset(topic.name, broker.name, queue_id)
                read = _read_offset(end)
                read_at = self._now_ms - end % 1000 if end else 0
                entries.append(
                    f'{_queue_text(topic.name, broker.name, queue_id)}:{{"brokerOffset":{end},"consumerOffset":{read},'
                    f'"lastTimestamp":{read_at},"pullOffset":{read}}}'
                )
        return f'{{"consumeTps":{12.5 if entries else 0.0},"offsetTable":{{{",".join(entries)}}}}}'

    def _running_info(self, group: Group, client_id: str) -> str:
        owners: Mapping[str, list[MessageQueue]] = self._owners_of(group)
        held = ",".join(
            self._process_queue(str(queue.topic), str(queue.broker_name), queue.queue_id)
            for queue in owners[client_id]
        )
        is_new = group.release == RELEASE_5
        popped = ""
        if group.sharing == POP:
            popped = ",".join(
                f'{_queue_text(topic.name, broker.name, _ANY_QUEUE)}:{{"droped":false,'
                f'"lastPopTimestamp":{self._now_ms - 3_000},"waitAckCount":0}}'
                for topic in group.topics
                for broker in topic.brokers
            )
        status = ",".join(
            f'"{topic.name}":{{"consumeFailedMsgs":0,"consumeFailedTPS":0.0,"consumeOKTPS":12.5,"consumeRT":1.75,'
            '"pullRT":14.2,"pullTPS":12.5}'
            for topic in group.subscribed
        )
        subscriptions = ",".join(self._subscription(topic) for topic in group.subscribed)
        pop_table, user_info = (
            (f'"mqPopTable":{{{popped}}},', ',"userConsumerInfo":{}') if is_new else ("", "")
        )
        return (
            f'{{{pop_table}"mqTable":{{{held}}},"properties":{{{self._properties(group, client_id)}}},'
            f'"statusTable":{{{status}}},"subscriptionSet":[{subscriptions}]{user_info}}}'
        )

    def _status(self, group: Group, client_id: str, topic: str) -> str:
        held = ",".join(
            f"{_queue_text(topic, str(queue.broker_name), queue.queue_id)}:"
            f"{_read_offset(self._end_offset(topic, str(queue.broker_name), queue.queue_id))}"
            for queue in self._owners_of(group)[client_id]
            if queue.topic == topic
        )
        return f'{{"consumerTable":{{"{client_id}":{{{held}}}}},"messageQueueTable":{{}}}}'

    def _process_queue(self, topic: str, broker: str, queue_id: int) -> str:
        read = _read_offset(self._end_offset(topic, broker, queue_id))
        pulled_at = self._now_ms - 1_000 - read % 15_000
        return (
            f'{_queue_text(topic, broker, queue_id)}:{{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,'
            f'"cachedMsgSizeInMiB":0,"commitOffset":{read},"droped":false,"lastConsumeTimestamp":{pulled_at - 20},'
            f'"lastLockTimestamp":{self._now_ms - 18_000_000},"lastPullTimestamp":{pulled_at},"locked":true,'
            '"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,"tryUnlockTimes":0}'
        )

    def _properties(self, group: Group, client_id: str) -> str:
        address, _, instance = client_id.partition("@")
        identity = f"{_number_of(client_id):x}"
        nameservers = ";".join(self._layout.nameservers)
        properties = {
            "clientIP": address,
            "instanceName": instance,
            "consumerGroup": group.name,
            "namesrvAddr": nameservers,
            "messageModel": _message_model(group),
            "allocateMessageQueueStrategy": f"{_STRATEGY_PACKAGE}{_STRATEGY_CLASSES[group.strategy]}@{identity}",
            "messageListener": f"com.example.Listener@{identity}",
            "PROP_NAMESERVER_ADDR": f"{nameservers};",
            "PROP_CLIENT_VERSION": group.release.constant,
            "PROP_CONSUMER_START_TIMESTAMP": str(
                self._now_ms - 18_000_000 - _number_of(client_id) % 3_600_000
            ),
        }
        if group.release == RELEASE_5:
            properties["clientRebalance"] = "false" if group.sharing == POP else "true"
        return (
            ",".join(f'"{name}":"{value}"' for name, value in properties.items()) + "," + _PROPERTIES_OF_ALL
        )


def _said(text: str) -> Answer:
    return Answer(payload=text.encode(), response_code=0)


def _queue_text(topic: str, broker: str, queue_id: int) -> str:
    return f'{{"brokerName":"{broker}","queueId":{queue_id},"topic":"{topic}"}}'


def _message_model(group: Group) -> str:
    return "BROADCASTING" if group.sharing == BROADCASTING else "CLUSTERING"


def _read_offset(end: int) -> int:
    """Return the offset of the consumers, a few messages behind the end."""
    return max(0, end - end % 7)


def _producer(client_id: str, ordinal: int, now_ms: int) -> str:
    address = f"/{client_id.partition('@')[0]}:{30_000 + _number_of(client_id) % 10_000}"
    return (
        f'{{"clientId":"{client_id}","language":"JAVA","lastUpdateTimestamp":{now_ms - 9_000},"remoteIP":"{address}",'
        f'"version":{ordinal}}}'
    )


def _broker_settings(cluster: str, broker: Broker) -> str:
    own = {
        "brokerClusterName": cluster,
        "brokerIP1": broker.address.partition(":")[0],
        "brokerId": "0",
        "brokerName": broker.name,
        "listenPort": broker.address.partition(":")[2],
    }
    return "".join(f"{name}={value}\n" for name, value in sorted((_BROKER_SETTINGS | own).items()))


@lru_cache(maxsize=100_000)
def _number_of(name: str) -> int:
    return zlib.crc32(name.encode())
