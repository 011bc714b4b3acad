package ledger.cluster;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import ledger.cluster.ClientHost.Request;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** RocketMQ's strategies, created from a group's entry in the ledger's settings file. */
final class Strategies {
    private Strategies() {
    }

    static AllocateMessageQueueStrategy make(Request request, String clientId) {
        switch (request.text("strategy")) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash(request.number("virtual_node_count"));
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                byRoom.setConsumeridcs(new HashSet<>(request.texts("consumer_idcs")));
                return byRoom;
            case "MACHINE_ROOM_NEARBY":
                return new AllocateMachineRoomNearby(make(request.part("inner"), clientId), resolver(request));
            case "CONFIG":
                AllocateMessageQueueByConfig configured = new AllocateMessageQueueByConfig();
                configured.setMessageQueueList(queues(request.part("clients"), clientId));
                return configured;
            default:
                throw new IllegalArgumentException("no strategy is called " + request.text("strategy"));
        }
    }

    private static List<MessageQueue> queues(Request clients, String clientId) {
        List<MessageQueue> queues = new ArrayList<>();
        for (Request part : clients.has(clientId) ? clients.parts(clientId) : List.<Request>of()) {
            for (int queueId : part.numbers("queue_ids")) {
                queues.add(new MessageQueue(part.text("topic"), part.text("broker_name"), queueId));
            }
        }
        return queues;
    }

    private static AllocateMachineRoomNearby.MachineRoomResolver resolver(Request request) {
        return new AllocateMachineRoomNearby.MachineRoomResolver() {
            @Override
            public String brokerDeployIn(MessageQueue queue) {
                return room(request.part("broker_room"), queue.getBrokerName());
            }

            @Override
            public String consumerDeployIn(String consumer) {
                return room(request.part("consumer_room"), consumer);
            }
        };
    }

    private static String room(Request rule, String name) {
        if (rule.has("names")) {
            return rule.byName("names").get(name);
        }
        if (rule.has("separator")) {
            int end = name.indexOf(rule.text("separator"));
            return end < 0 ? null : name.substring(0, end);
        }
        String longest = "";
        String room = null;
        for (Map.Entry<String, String> prefix : rule.byName("prefixes").entrySet()) {
            if (name.startsWith(prefix.getKey()) && prefix.getKey().length() >= longest.length()) {
                longest = prefix.getKey();
                room = prefix.getValue();
            }
        }
        return room;
    }
}
