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

/** Which queue a producer takes: the round robin from a given index on, and the hash selector. */
final class Selection {
    private static final MQFaultStrategy FAULTS_OFF = Release.faultStrategy();

    private Selection() {
    }

    static Object answer(JsonNode asked) throws ReflectiveOperationException {
        return "select_by_hash".equals(Form.text(asked.get("api"))) ? byHash(asked) : roundRobin(asked);
    }

    private static Object roundRobin(JsonNode asked) throws ReflectiveOperationException {
        boolean throughFaultStrategy = "fault_strategy".equals(Form.text(asked.get("api")));
        List<MessageQueue> queues = Form.queues(asked.get("queues"));
        TopicPublishInfo info = new TopicPublishInfo();
        info.setMessageQueueList(new ArrayList<>(queues));
        ThreadLocal<Integer> index = index(info);
        index.set(asked.get("start").intValue());
        List<Object> places = new ArrayList<>();
        List<Object> indexAfter = new ArrayList<>();
        for (String lastBroker : Form.texts(asked.get("calls"))) {
            places.add(Form.outcome(() -> {
                MessageQueue chosen;
                if (throughFaultStrategy) {
                    chosen = Release.select(FAULTS_OFF, info, lastBroker);
                } else if (lastBroker == null) {
                    chosen = info.selectOneMessageQueue();
                } else {
                    chosen = info.selectOneMessageQueue(lastBroker);
                }
                return Form.place(chosen, queues);
            }));
            indexAfter.add(index.get());
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("positions", places);
        result.put("index_after", indexAfter);
        return result;
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
