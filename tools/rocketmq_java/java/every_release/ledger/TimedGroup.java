package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * One group, asked client by client with a clock around the calls and around nothing else.
 *
 * Everything is read before and shown after: neither JSON nor the way to Python is in the time.
 */
public final class TimedGroup {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final AllocateMessageQueueStrategy strategy;
    private final String group;
    private final List<MessageQueue> queues;
    private final List<String> clientIds;
    private final List<String> asked;
    private List<List<MessageQueue>> answers = List.of();

    /** @param described a case of the golden family `allocate`, as JSON */
    public TimedGroup(String described) throws Exception {
        JsonNode fields = JSON.readTree(described);
        strategy = Allocation.strategy(Form.text(fields.get("strategy")), fields.path("params"));
        group = Form.text(fields.get("group"));
        queues = Form.queues(fields.get("mq_all"));
        clientIds = Form.texts(fields.get("cid_all"));
        asked = Form.texts(fields.get("asked"));
    }

    /**
     * Asks some of the clients, one call each.
     *
     * @param from the first of them, a place in `asked`
     * @param to the place behind the last one
     * @return nanoseconds for all of these calls
     */
    public long ask(int from, int to) {
        List<String> now = new ArrayList<>(asked.subList(from, to));
        // Kept, so that no call can be optimised away.
        List<List<MessageQueue>> given = new ArrayList<>(now.size());
        long begin = System.nanoTime();
        for (String clientId : now) {
            given.add(strategy.allocate(group, clientId, queues, clientIds));
        }
        long took = System.nanoTime() - begin;
        answers = given;
        return took;
    }

    /** @return what the last `ask` was answered, a list of places in `mq_all` for each client, as JSON */
    public String answers() throws Exception {
        List<Object> places = new ArrayList<>(answers.size());
        for (List<MessageQueue> answer : answers) {
            places.add(Form.places(answer, queues));
        }
        return JSON.writeValueAsString(places);
    }
}
