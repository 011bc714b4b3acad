package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.impl.producer.TopicPublishInfo;
import org.apache.rocketmq.client.latency.MQFaultStrategy;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.route.QueueData;
import org.apache.rocketmq.remoting.protocol.route.TopicRouteData;

/** Which queue a producer takes: the round robin from a given index on, and the hash selector. */
final class Selection {
    private Selection() {
    }

    static Object answer(JsonNode asked) throws ReflectiveOperationException {
        switch (Form.text(asked.get("api"))) {
            case "select_by_hash":
                return byHash(asked);
            case "isolation":
                return isolations(asked);
            default:
                return roundRobin(asked);
        }
    }

    private static Object roundRobin(JsonNode asked) throws ReflectiveOperationException {
        boolean throughFaultStrategy = !"publish_info".equals(Form.text(asked.get("api")));
        boolean faultsOn = Form.given(asked.get("faults"));
        Faults faults = new Faults(asked.path("faults"));
        MQFaultStrategy strategy = strategy(faults);
        strategy.setSendLatencyFaultEnable(faultsOn);
        List<MessageQueue> queues = Form.queues(asked.get("queues"));
        TopicPublishInfo info = new TopicPublishInfo();
        info.setMessageQueueList(new ArrayList<>(queues));
        info.setTopicRouteData(writeQueueNums(asked.path("faults").path("write_queue_nums")));
        ThreadLocal<Integer> index = index(info);
        index.set(asked.get("start").intValue());
        List<Object> places = new ArrayList<>();
        List<Object> indexAfter = new ArrayList<>();
        for (String lastBroker : Form.texts(asked.get("calls"))) {
            places.add(Form.outcome(() -> {
                MessageQueue chosen;
                if (throughFaultStrategy) {
                    chosen = Release.select(strategy, info, lastBroker);
                } else if (lastBroker == null) {
                    chosen = info.selectOneMessageQueue();
                } else {
                    chosen = info.selectOneMessageQueue(lastBroker);
                }
                // With faults a choice may be written over later, so that its place says nothing.
                return faultsOn ? Form.place(chosen, null) : Form.place(chosen, queues);
            }));
            indexAfter.add(index.get());
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put(faultsOn ? "chosen" : "positions", places);
        result.put("index_after", indexAfter);
        if (faultsOn) {
            result.put("queues_after", Form.places(info.getMessageQueueList(), null));
        }
        return result;
    }

    /** With the case's faults in the place of the strategy's own measurements. */
    private static MQFaultStrategy strategy(Faults faults) throws ReflectiveOperationException {
        MQFaultStrategy strategy = Release.faultStrategy();
        Field field = MQFaultStrategy.class.getDeclaredField("latencyFaultTolerance");
        field.setAccessible(true);
        field.set(strategy, faults);
        return strategy;
    }

    private static TopicRouteData writeQueueNums(JsonNode counts) {
        List<QueueData> listed = new ArrayList<>();
        counts.properties().forEach(entry -> {
            QueueData data = new QueueData();
            data.setBrokerName(entry.getKey());
            data.setWriteQueueNums(entry.getValue().intValue());
            listed.add(data);
        });
        TopicRouteData route = new TopicRouteData();
        route.setQueueDatas(listed);
        return route;
    }

    private static Object isolations(JsonNode asked) throws ReflectiveOperationException {
        Faults faults = new Faults(asked.path("faults"));
        MQFaultStrategy strategy = strategy(faults);
        strategy.setSendLatencyFaultEnable(true);
        List<Object> millis = new ArrayList<>();
        for (JsonNode sent : asked.get("sent")) {
            Release.update(strategy, "b", sent.get(0).longValue(), sent.get(1).booleanValue());
            millis.add(faults.isolationMillis);
        }
        return Map.of("isolation_ms", millis);
    }

    /** Java draws the first index at random; a case that names it can be repeated. */
    @SuppressWarnings("unchecked")
    private static ThreadLocal<Integer> index(TopicPublishInfo info) throws ReflectiveOperationException {
        return (ThreadLocal<Integer>) hidden(hidden(info, "sendWhichQueue"), "threadLocalIndex");
    }

    private static Object hidden(Object owner, String name) throws ReflectiveOperationException {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static Object byHash(JsonNode asked) {
        List<MessageQueue> queues = new ArrayList<>();
        for (int number = 0; number < asked.get("queue_count").intValue(); number++) {
            queues.add(new MessageQueue("T", "b", number));
        }
        List<Object> places = new ArrayList<>();
        for (JsonNode argument : asked.get("args")) {
            places.add(Form.outcome(() ->
                Form.place(new SelectMessageQueueByHash().select(queues, null, value(argument)), queues)));
        }
        return Map.of("positions", places);
    }

    private static Object value(JsonNode argument) {
        JsonNode value = argument.get(1);
        switch (Form.text(argument.get(0))) {
            case "String":
                return Form.text(value);
            case "Integer":
                return value.intValue();
            case "Long":
                return value.longValue();
            default:
                return null;
        }
    }
}
