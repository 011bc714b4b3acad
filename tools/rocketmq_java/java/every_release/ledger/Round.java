package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.impl.consumer.PullRequest;
import org.apache.rocketmq.client.impl.consumer.RebalancePushImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;

/**
 * One round of the push consumer's own rebalancing, with the network replaced by what the case gives.
 *
 * The client is not orderly, every start offset is 0 and every removal of a queue succeeds.
 */
final class Round {
    private static final DefaultMQPushConsumerImpl CONSUMER =
        new DefaultMQPushConsumerImpl(new DefaultMQPushConsumer("G"), null);
    private static final Network NETWORK = new Network();

    private Round() {
    }

    static Object answer(JsonNode asked) throws Exception {
        List<MessageQueue> given = Form.queues(asked.get("mq_set"));
        List<MessageQueue> sorted = given == null ? null : new ArrayList<>(new HashSet<>(given));
        List<String> clientIds = Form.texts(asked.get("cid_all"));
        List<String> sortedClientIds = clientIds == null ? null : new ArrayList<>(clientIds);
        if (sorted != null) {
            Collections.sort(sorted);
        }
        if (sortedClientIds != null) {
            Collections.sort(sortedClientIds);
        }
        List<Object> byClient = new ArrayList<>();
        for (String clientId : Form.texts(asked.get("asked"))) {
            byClient.add(ofClient(asked, clientId, given, clientIds, sorted));
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("sorted_mq", Form.places(sorted, given));
        result.put("sorted_cid", sortedClientIds);
        result.put("by_cid", byClient);
        return result;
    }

    private static Object ofClient(
        JsonNode asked, String clientId, List<MessageQueue> queues, List<String> clientIds, List<MessageQueue> sorted
    ) throws Exception {
        String topic = Form.text(asked.get("topic"));
        NETWORK.clientId = clientId;
        NETWORK.clientIds = clientIds == null ? null : new ArrayList<>(clientIds);
        Watched strategy = new Watched(
            Allocation.strategy(Form.text(asked.get("strategy")), asked.path("params")));
        boolean broadcasting = "BROADCASTING".equals(Form.text(asked.get("model")));
        Stubbed rebalance = new Stubbed(
            Form.text(asked.get("group")),
            broadcasting ? MessageModel.BROADCASTING : MessageModel.CLUSTERING,
            strategy);
        SubscriptionData subscription = new SubscriptionData();
        subscription.setTopic(topic);
        rebalance.getSubscriptionInner().put(topic, subscription);
        if (queues != null) {
            rebalance.getTopicSubscribeInfoTable().put(topic, new HashSet<>(queues));
        }
        for (MessageQueue held : Form.queues(asked.get("held"))) {
            rebalance.getProcessQueueTable().put(held, new ProcessQueue());
        }
        // Returns nothing before 5.0.0; only reflection asks for both alike.
        Object balanced = RebalancePushImpl.class.getMethod("doRebalance", boolean.class).invoke(rebalance, false);
        List<MessageQueue> table = new ArrayList<>(rebalance.getProcessQueueTable().keySet());
        Collections.sort(table);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("table", Form.places(table, sorted));
        result.put("listener", rebalance.heard);
        if (balanced != null) {
            result.put("balanced", balanced);
        }
        if (strategy.said != null) {
            result.put("strategy", strategy.said);
        }
        return result;
    }

    /** The client's connection, which knows one group of clients and sends nothing. */
    private static final class Network extends MQClientInstance {
        private String clientId;
        private List<String> clientIds;

        Network() {
            super(new ClientConfig(), 0, "differential");
        }

        @Override
        public String getClientId() {
            return clientId;
        }

        @Override
        public List<String> findConsumerIdList(String topic, String group) {
            return clientIds;
        }
    }

    /** The strategy under a round, with a note of whether it threw or returned null. */
    private static final class Watched implements AllocateMessageQueueStrategy {
        private final AllocateMessageQueueStrategy inner;
        private Object said;

        Watched(AllocateMessageQueueStrategy inner) {
            this.inner = inner;
        }

        @Override
        public List<MessageQueue> allocate(
            String group, String clientId, List<MessageQueue> queues, List<String> clientIds
        ) {
            try {
                List<MessageQueue> answer = inner.allocate(group, clientId, queues, clientIds);
                said = answer == null ? "null" : null;
                return answer;
            } catch (RuntimeException thrown) {
                said = Form.error(thrown);
                throw thrown;
            }
        }

        @Override
        public String getName() {
            return inner.getName();
        }
    }

    /** No `@Override` where a method came later than 4.7.1 or changed its parameters. */
    private static final class Stubbed extends RebalancePushImpl {
        private final List<List<Integer>> heard = new ArrayList<>();

        Stubbed(String group, MessageModel model, AllocateMessageQueueStrategy strategy) {
            super(group, model, strategy, NETWORK, CONSUMER);
        }

        @Override
        public void messageQueueChanged(String topic, Set<MessageQueue> all, Set<MessageQueue> divided) {
            heard.add(Arrays.asList(all.size(), divided.size()));
        }

        @Override
        public boolean removeUnnecessaryMessageQueue(MessageQueue queue, ProcessQueue process) {
            return true;
        }

        @Override
        public void removeDirtyOffset(MessageQueue queue) {
        }

        @Override
        public long computePullFromWhere(MessageQueue queue) {
            return 0;
        }

        public long computePullFromWhereWithException(MessageQueue queue) {
            return 0;
        }

        public void dispatchPullRequest(List<PullRequest> requests) {
        }

        public void dispatchPullRequest(List<PullRequest> requests, long delay) {
        }
    }
}
