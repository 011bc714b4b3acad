package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.consistenthash.HashFunction;
import org.apache.rocketmq.common.message.MessageQueue;

/** The six strategies, built as a case describes them and asked once per client id. */
final class Allocation {
    private static final int DEFAULT_VIRTUAL_NODES = 10;

    private Allocation() {
    }

    static Object answer(JsonNode asked) {
        Map<String, Object> result = new LinkedHashMap<>();
        AllocateMessageQueueStrategy strategy;
        try {
            strategy = strategy(Form.text(asked.get("strategy")), asked.path("params"));
        } catch (RuntimeException thrown) {
            result.put("constructor", Form.error(thrown));
            return result;
        }
        List<MessageQueue> queues = Form.queues(asked.get("mq_all"));
        List<String> clientIds = Form.texts(asked.get("cid_all"));
        String group = Form.text(asked.get("group"));
        List<Object> byClient = new ArrayList<>();
        for (String clientId : Form.texts(asked.get("asked"))) {
            byClient.add(Form.outcome(() ->
                Form.places(strategy.allocate(group, clientId, queues, clientIds), queues)));
        }
        result.put("name", strategy.getName());
        result.put("by_cid", byClient);
        return result;
    }

    static AllocateMessageQueueStrategy strategy(String name, JsonNode params) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONFIG":
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                config.setMessageQueueList(Form.queues(params.get("queues")));
                return config;
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom rooms = new AllocateMessageQueueByMachineRoom();
                List<String> idcs = Form.texts(params.get("consumeridcs"));
                rooms.setConsumeridcs(idcs == null ? null : new HashSet<>(idcs));
                return rooms;
            case "CONSISTENT_HASH":
                return consistentHash(params);
            case "MACHINE_ROOM_NEARBY":
                return nearby(params);
            default:
                throw new AssertionError("no strategy " + name);
        }
    }

    private static AllocateMessageQueueStrategy consistentHash(JsonNode params) {
        JsonNode count = params.get("virtual_nodes");
        JsonNode hash = params.get("hash");
        if (Form.given(hash)) {
            int nodes = Form.given(count) ? count.intValue() : DEFAULT_VIRTUAL_NODES;
            return new AllocateMessageQueueConsistentHash(nodes, hashFunction(hash));
        }
        return Form.given(count)
            ? new AllocateMessageQueueConsistentHash(count.intValue())
            : new AllocateMessageQueueConsistentHash();
    }

    private static HashFunction hashFunction(JsonNode described) {
        switch (Form.text(described.get("kind"))) {
            case "md5mod":
                long modulus = described.get("mod").longValue();
                return key -> firstFourBytesOfMd5(key) % modulus;
            case "javahash":
                return String::hashCode;
            case "length":
                return String::length;
            case "const":
                long value = described.get("value").longValue();
                return key -> value;
            default:
                throw new AssertionError("no hash function " + described);
        }
    }

    private static long firstFourBytesOfMd5(String key) {
        try {
            byte[] digest = MessageDigest.getInstance("MD5").digest(key.getBytes(StandardCharsets.UTF_8));
            long value = 0;
            for (int place = 0; place < 4; place++) {
                value = value << 8 | digest[place] & 0xFF;
            }
            return value;
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static AllocateMessageQueueStrategy nearby(JsonNode params) {
        String inner = Form.text(params.get("inner"));
        JsonNode innerParams = Form.given(params.get("inner_params"))
            ? params.get("inner_params") : MissingNode.getInstance();
        return new AllocateMachineRoomNearby(
            inner == null ? null : strategy(inner, innerParams),
            Form.given(params.get("room_before")) ? resolver(Form.text(params.get("room_before")))
                : Form.given(params.get("broker_room")) ? resolver(params) : null);
    }

    /** The part of a broker's name or a client id that stands before a delimiter. */
    private static AllocateMachineRoomNearby.MachineRoomResolver resolver(String delimiter) {
        return new AllocateMachineRoomNearby.MachineRoomResolver() {
            @Override
            public String brokerDeployIn(MessageQueue queue) {
                return queue.getBrokerName().split(delimiter)[0];
            }

            @Override
            public String consumerDeployIn(String clientId) {
                return clientId.split(delimiter)[0];
            }
        };
    }

    private static AllocateMachineRoomNearby.MachineRoomResolver resolver(JsonNode params) {
        return new AllocateMachineRoomNearby.MachineRoomResolver() {
            @Override
            public String brokerDeployIn(MessageQueue queue) {
                return room(params.get("broker_room").get(queue.getBrokerName()));
            }

            @Override
            public String consumerDeployIn(String clientId) {
                return room(params.path("cid_room").get(clientId));
            }

            private String room(JsonNode room) {
                if (Form.given(room) && room.has("throw")) {
                    throw new IllegalStateException(Form.text(room.get("throw")));
                }
                return Form.text(room);
            }
        };
    }
}
