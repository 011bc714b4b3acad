package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.rocketmq.common.message.MessageQueue;

/** Queues, lists and errors in the form of the golden files (tests/golden/README.md). */
final class Form {
    private Form() {
    }

    /** Whether a field holds something; absent and null both stand for a Java null. */
    static boolean given(JsonNode field) {
        return field != null && !field.isNull();
    }

    static String text(JsonNode field) {
        return given(field) ? field.textValue() : null;
    }

    static List<String> texts(JsonNode field) {
        if (!given(field)) {
            return null;
        }
        List<String> texts = new ArrayList<>();
        field.forEach(item -> texts.add(text(item)));
        return texts;
    }

    static MessageQueue queue(JsonNode fields) {
        return new MessageQueue(text(fields.get(0)), text(fields.get(1)), fields.get(2).intValue());
    }

    static List<MessageQueue> queues(JsonNode field) {
        if (!given(field)) {
            return null;
        }
        List<MessageQueue> queues = new ArrayList<>();
        field.forEach(item -> queues.add(queue(item)));
        return queues;
    }

    static List<Object> brokerAndId(MessageQueue queue) {
        return Arrays.asList(queue.getBrokerName(), queue.getQueueId());
    }

    /** Each queue by its place in a list: the very element's, else the first equal one's, else written out. */
    static List<Object> places(Collection<MessageQueue> queues, List<MessageQueue> listed) {
        if (queues == null) {
            return null;
        }
        List<Object> places = new ArrayList<>();
        for (MessageQueue queue : queues) {
            places.add(place(queue, listed));
        }
        return places;
    }

    static Object place(MessageQueue queue, List<MessageQueue> listed) {
        if (listed != null) {
            for (int place = 0; place < listed.size(); place++) {
                if (listed.get(place) == queue) {
                    return place;
                }
            }
            int place = listed.indexOf(queue);
            if (place >= 0) {
                return place;
            }
        }
        return Arrays.asList(queue.getTopic(), queue.getBrokerName(), queue.getQueueId());
    }

    /** What a call returns, or what it throws. */
    static Object outcome(Callable<?> call) {
        try {
            return call.call();
        } catch (Exception thrown) {
            return error(thrown);
        }
    }

    static Map<String, Object> error(Throwable thrown) {
        Throwable cause = thrown instanceof InvocationTargetException ? thrown.getCause() : thrown;
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("type", cause.getClass().getSimpleName());
        fields.put("message", cause.getMessage());
        return Map.of("error", fields);
    }
}
