package ledger.cluster;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import ledger.cluster.ClientHost.Request;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/** One push consumer, and its own view of its state. */
final class HostedConsumer {
    private static final long PATIENCE_MS = 5_000;

    private final DefaultMQPushConsumer consumer;
    private final List<String> topics = new ArrayList<>();
    private final Map<MessageQueue, long[]> consumed = new ConcurrentHashMap<>();
    private final boolean isRebalancedByServer;

    HostedConsumer(Request request) throws Exception {
        consumer = new DefaultMQPushConsumer(
                request.text("group"), Account.signature(), new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(request.text("name_servers"));
        consumer.setClientIP(request.text("client_ip"));
        consumer.setInstanceName(request.text("instance"));
        consumer.setVipChannelEnabled(false);
        consumer.setAllocateMessageQueueStrategy(Strategies.make(request.part("strategy"), clientId()));
        consumer.setMessageModel(request.is("broadcasting") ? MessageModel.BROADCASTING : MessageModel.CLUSTERING);
        consumer.setConsumeFromWhere(ConsumeFromWhere.valueOf(request.text("consume_from")));
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        // The defaults are half a minute each, on which a test would spend most of its time.
        consumer.setPollNameServerInterval(request.number("interval_ms"));
        consumer.setHeartbeatBrokerInterval(request.number("interval_ms"));
        consumer.setPersistConsumerOffsetInterval(request.number("persist_interval_ms"));
        isRebalancedByServer = request.is("server_rebalance");
        if (isRebalancedByServer) {
            Late.call(consumer, "setClientRebalance", false);
        }
        if (request.is("orderly")) {
            consumer.setMessageListener((MessageListenerOrderly) (messages, context) -> {
                note(context.getMessageQueue(), messages);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.setMessageListener((MessageListenerConcurrently) (messages, context) -> {
                note(context.getMessageQueue(), messages);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        for (Map.Entry<String, String> subscribed : request.byName("topics").entrySet()) {
            consumer.subscribe(subscribed.getKey(), subscribed.getValue());
            topics.add(subscribed.getKey());
        }
        if (!request.is("broadcasting")) {
            topics.add("%RETRY%" + request.text("group"));
        }
    }

    void start() throws Exception {
        consumer.start();
    }

    private void note(MessageQueue queue, List<MessageExt> messages) {
        for (MessageExt message : messages) {
            long offset = message.getQueueOffset();
            consumed.merge(queue, new long[] {offset, offset}, (range, offsets) ->
                    new long[] {Math.min(range[0], offsets[0]), Math.max(range[1], offsets[1])});
        }
    }

    /** The first and the last offset that the listener received from each queue. */
    List<List<Object>> consumed() {
        List<List<Object>> ranges = new ArrayList<>();
        consumed.forEach((queue, range) -> ranges.add(
                List.of(queue.getTopic(), queue.getBrokerName(), queue.getQueueId(), range[0], range[1])));
        return ranges;
    }

    String clientId() {
        return consumer.buildMQClientId();
    }

    void stop() {
        consumer.shutdown();
    }

    /** Writes its offsets now, as the client's own timer does. */
    void persist() {
        consumer.getDefaultMQPushConsumerImpl().persistConsumerOffset();
    }

    /** Runs the periodic tasks of the client's threads now. */
    void settle() {
        var factory = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory();
        for (String topic : topics) {
            factory.updateTopicRouteInfoFromNameServer(topic);
        }
        factory.sendHeartbeatToAllBrokerWithLock();
        consumer.getDefaultMQPushConsumerImpl().doRebalance();
    }

    Map<String, Object> look() throws Exception {
        var rebalance = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl();
        Map<String, Object> seen = new LinkedHashMap<>();
        seen.put("owned", plain(rebalance.getProcessQueueTable().keySet()));
        seen.put("popped", plain(popped(rebalance)));
        Collection<MessageQueue> readable = new ArrayList<>();
        rebalance.getTopicSubscribeInfoTable().values().forEach(readable::addAll);
        seen.put("readable", plain(readable));
        seen.put("brokers", brokers());
        seen.put("assigned", isRebalancedByServer ? assigned() : Map.of());
        return seen;
    }

    /** The answer of each broker to a query for this client's queues: broker name to queues, as text. */
    private Map<String, List<String>> assigned() throws Exception {
        Map<String, List<String>> answers = new TreeMap<>();
        for (Map.Entry<String, String> broker : brokers().entrySet()) {
            List<String> queues = new ArrayList<>();
            for (String topic : topics) {
                queues.add(topic + ": " + assigned(broker.getValue(), topic));
            }
            answers.put(broker.getKey(), queues);
        }
        return answers;
    }

    private List<String> assigned(String broker, String topic) {
        var api = consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getMQClientAPIImpl();
        try {
            Object queues = Late.call(api, "queryAssignment", broker, topic, consumer.getConsumerGroup(), clientId(),
                    consumer.getAllocateMessageQueueStrategy().getName(), consumer.getMessageModel(), PATIENCE_MS);
            return queues == null ? List.of() : ((Collection<?>) queues).stream().map(Object::toString).sorted().toList();
        } catch (Exception refused) {
            return List.of(refused.toString());
        }
    }

    String runningInfo() {
        return consumer.getDefaultMQPushConsumerImpl().consumerRunningInfo().toJson();
    }

    /** The brokers that this client sends heartbeats to: name to address. */
    @SuppressWarnings("unchecked")
    private Map<String, String> brokers() throws Exception {
        Object table = Late.read(consumer.getDefaultMQPushConsumerImpl().getmQClientFactory(), "brokerAddrTable");
        Map<String, String> addresses = new TreeMap<>();
        ((Map<String, Map<Long, String>>) table).forEach((name, ids) -> addresses.put(name, ids.get(0L)));
        return addresses;
    }

    /** Releases before 5.0 cannot pop. The queue id is -1 for every queue of a broker. */
    @SuppressWarnings("unchecked")
    private static Collection<MessageQueue> popped(RebalanceImpl rebalance) throws Exception {
        String table = "getPopProcessQueueTable";
        return Late.has(rebalance, table) ? ((Map<MessageQueue, Object>) Late.call(rebalance, table)).keySet() : List.of();
    }

    private static List<List<Object>> plain(Collection<MessageQueue> queues) {
        return queues.stream()
                .sorted()
                .map(queue -> List.<Object>of(queue.getTopic(), queue.getBrokerName(), queue.getQueueId()))
                .toList();
    }
}
