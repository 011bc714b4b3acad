package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.rocketmq.common.consistenthash.ConsistentHashRouter;
import org.apache.rocketmq.common.consistenthash.HashFunction;
import org.apache.rocketmq.common.consistenthash.Node;
import org.apache.rocketmq.common.message.MessageQueue;

/** Hashes, order, equality and splitting of strings and queues. */
final class Primitives {
    private static final HashFunction RING = ringHash();

    private Primitives() {
    }

    static Object answer(JsonNode asked) {
        Map<String, Object> result = new LinkedHashMap<>();
        JsonNode values = asked.get("values");
        JsonNode pairs = asked.get("pairs");
        switch (Form.text(asked.get("kind"))) {
            case "string":
                result.put("hash_code", each(values, item -> Form.text(item).hashCode()));
                result.put("ring_hash", each(values, item -> RING.hash(Form.text(item))));
                break;
            case "queue":
                result.put("hash_code", each(values, item -> Form.queue(item).hashCode()));
                result.put("to_string", each(values, item -> Form.queue(item).toString()));
                result.put("ring_hash", each(values, item -> RING.hash(Form.queue(item).toString())));
                break;
            case "compare_string":
                result.put("sign", each(pairs, pair ->
                    Integer.signum(Form.text(pair.get(0)).compareTo(Form.text(pair.get(1))))));
                break;
            case "compare_queue":
                result.put("sign_and_equals", each(pairs, pair -> {
                    MessageQueue one = Form.queue(pair.get(0));
                    MessageQueue other = Form.queue(pair.get(1));
                    return Arrays.asList(Integer.signum(one.compareTo(other)), one.equals(other));
                }));
                break;
            case "split":
                result.put("parts", each(values, item -> Form.text(item).split(Form.text(asked.get("regex")))));
                break;
            default:
                throw new AssertionError("no kind " + asked.get("kind"));
        }
        return result;
    }

    private static List<Object> each(JsonNode items, Function<JsonNode, Object> ask) {
        List<Object> answers = new ArrayList<>();
        items.forEach(item -> answers.add(ask.apply(item)));
        return answers;
    }

    /** The router's own hash is a private class; a router without nodes hands it out. */
    private static HashFunction ringHash() {
        try {
            Field field = ConsistentHashRouter.class.getDeclaredField("hashFunction");
            field.setAccessible(true);
            return (HashFunction) field.get(new ConsistentHashRouter<Node>(Collections.emptyList(), 1));
        } catch (ReflectiveOperationException gone) {
            throw new AssertionError(gone);
        }
    }
}
