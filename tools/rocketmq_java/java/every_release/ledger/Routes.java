package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;

/** The queues that a client reads out of a topic's route. */
final class Routes {
    private Routes() {
    }

    static Object answer(JsonNode asked) {
        String topic = Form.text(asked.get("topic"));
        JsonNode described = asked.get("route");
        TopicRouteData route = route(described);
        JsonNode mappings = described.get("topicQueueMappingByBroker");
        if (Form.given(mappings) && !Release.setStaticTopic(route, topic, mappings)) {
            return null;
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("subscribe", Form.outcome(() -> subscribed(topic, route)));
        result.put("publish", Form.outcome(() -> published(topic, route)));
        if (Form.given(mappings)) {
            result.put("endpoints", Form.outcome(() -> Release.endpoints(topic, route)));
        }
        return result;
    }

    private static TopicRouteData route(JsonNode described) {
        TopicRouteData route = new TopicRouteData();
        route.setOrderTopicConf(Form.text(described.get("orderTopicConf")));
        if (Form.given(described.get("queueDatas"))) {
            List<QueueData> listed = new ArrayList<>();
            for (JsonNode fields : described.get("queueDatas")) {
                QueueData data = new QueueData();
                data.setBrokerName(Form.text(fields.get("brokerName")));
                data.setPerm(fields.get("perm").intValue());
                data.setReadQueueNums(fields.get("readQueueNums").intValue());
                data.setWriteQueueNums(fields.get("writeQueueNums").intValue());
                listed.add(data);
            }
            route.setQueueDatas(listed);
        }
        if (Form.given(described.get("brokerDatas"))) {
            List<BrokerData> listed = new ArrayList<>();
            for (JsonNode fields : described.get("brokerDatas")) {
                HashMap<Long, String> addresses = new HashMap<>();
                fields.get("brokerAddrs").properties().forEach(entry ->
                    addresses.put(Long.valueOf(entry.getKey()), Form.text(entry.getValue())));
                BrokerData data = new BrokerData();
                data.setBrokerName(Form.text(fields.get("brokerName")));
                data.setBrokerAddrs(addresses);
                listed.add(data);
            }
            route.setBrokerDatas(listed);
        }
        return route;
    }

    private static Object subscribed(String topic, TopicRouteData route) {
        List<MessageQueue> queues =
            new ArrayList<>(MQClientInstance.topicRouteData2TopicSubscribeInfo(topic, route));
        Collections.sort(queues);
        return brokersAndIds(queues);
    }

    private static Object published(String topic, TopicRouteData route) {
        TopicPublishInfo info = MQClientInstance.topicRouteData2TopicPublishInfo(topic, route);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("order_topic", info.isOrderTopic());
        result.put("ok", info.ok());
        result.put("queues", brokersAndIds(info.getMessageQueueList()));
        return result;
    }

    private static Object brokersAndIds(List<MessageQueue> queues) {
        List<Object> pairs = new ArrayList<>();
        queues.forEach(queue -> pairs.add(Form.brokerAndId(queue)));
        return pairs;
    }
}
