package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;

/** What only 4.x has, or has otherwise. */
final class Release {
    /** `MixAll.file2String` and `string2File`. They are in the charset of the platform. */
    static final boolean FILES_ARE_UTF_8 = false;

    private Release() {
    }

    static MQFaultStrategy faultStrategy() {
        return new MQFaultStrategy();
    }

    static void update(MQFaultStrategy strategy, String broker, long latency, boolean isolation) {
        strategy.updateFaultItem(broker, latency, isolation);
    }

    static MessageQueue select(MQFaultStrategy strategy, TopicPublishInfo info, String lastBroker) {
        return strategy.selectOneMessageQueue(info, lastBroker);
    }

    /** No static topics yet. */
    static boolean setStaticTopic(TopicRouteData route, String topic, JsonNode mappings) {
        return false;
    }

    static Object endpoints(String topic, TopicRouteData route) {
        throw new UnsupportedOperationException("static topics came with 5.0.0");
    }

    /** No POP yet. */
    static Object pop(JsonNode asked) {
        return null;
    }
}
