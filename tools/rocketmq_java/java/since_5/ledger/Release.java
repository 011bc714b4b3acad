package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.broker.processor.QueryAssignmentProcessor;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;
import org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingInfo;
import org.apache.rocketmq.remoting.rpc.ClientMetadata;
import sun.misc.Unsafe;

/** What only 5.x has, or has otherwise. */
final class Release {
    /** `MixAll.file2String` and `string2File`. Whatever the charset of the platform. */
    static final boolean FILES_ARE_UTF_8 = true;
    private static final QueryAssignmentProcessor BROKER = broker();

    private Release() {
    }

    static MQFaultStrategy faultStrategy() {
        return new MQFaultStrategy(new ClientConfig(), null, null);
    }

    static void update(MQFaultStrategy strategy, String broker, long latency, boolean isolation) {
        strategy.updateFaultItem(broker, latency, isolation, true);
    }

    static MessageQueue select(MQFaultStrategy strategy, TopicPublishInfo info, String lastBroker) {
        return strategy.selectOneMessageQueue(info, lastBroker, false);
    }

    static boolean setStaticTopic(TopicRouteData route, String topic, JsonNode mappings) {
        Map<String, TopicQueueMappingInfo> byBroker = new HashMap<>();
        mappings.properties().forEach(entry -> {
            JsonNode fields = entry.getValue();
            TopicQueueMappingInfo info = new TopicQueueMappingInfo(
                topic, fields.get("totalQueues").intValue(), Form.text(fields.get("bname")),
                fields.get("epoch").longValue());
            info.setScope(Form.text(fields.get("scope")));
            fields.get("currIdMap").properties().forEach(ids ->
                info.getCurrIdMap().put(Integer.valueOf(ids.getKey()), ids.getValue().intValue()));
            byBroker.put(entry.getKey(), info);
        });
        route.setTopicQueueMappingByBroker(byBroker);
        return true;
    }

    static Object endpoints(String topic, TopicRouteData route) {
        Map<MessageQueue, String> sorted =
            new TreeMap<>(ClientMetadata.topicRouteData2EndpointsForStaticTopic(topic, route));
        List<Object> listed = new ArrayList<>();
        sorted.forEach((queue, broker) ->
            listed.add(Arrays.asList(queue.getBrokerName(), queue.getQueueId(), broker)));
        return listed;
    }

    static Object pop(JsonNode asked) {
        AllocateMessageQueueStrategy strategy =
            Allocation.strategy(Form.text(asked.get("strategy")), asked.path("params"));
        List<MessageQueue> queues = Form.queues(asked.get("mq_all"));
        List<String> clientIds = Form.texts(asked.get("cid_all"));
        int share = asked.get("share").intValue();
        List<Object> byClient = new ArrayList<>();
        for (String clientId : Form.texts(asked.get("asked"))) {
            byClient.add(Form.outcome(() -> Form.places(
                BROKER.allocate4Pop(strategy, Form.text(asked.get("group")), clientId, queues, clientIds, share),
                queues)));
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("by_cid", byClient);
        return result;
    }

    /** The processor's constructor wants a running broker; the rule itself needs no field of it. */
    private static QueryAssignmentProcessor broker() {
        try {
            Field field = Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (QueryAssignmentProcessor)
                ((Unsafe) field.get(null)).allocateInstance(QueryAssignmentProcessor.class);
        } catch (ReflectiveOperationException gone) {
            throw new AssertionError(gone);
        }
    }
}
