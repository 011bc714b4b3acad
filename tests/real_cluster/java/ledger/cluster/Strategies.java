package ledger.cluster;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import ledger.cluster.ClientHost.Told;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** RocketMQ's strategies, made from what the ledger's settings file says of a group. */
final class Strategies {
    private Strategies() {
    }

    static AllocateMessageQueueStrategy make(Told told, String clientId) {
        switch (told.text("strategy")) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash(told.number("virtual_node_count"));
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                byRoom.setConsumeridcs(new HashSet<>(told.texts("consumer_idcs")));
                return byRoom;
            case "MACHINE_ROOM_NEARBY":
                return new AllocateMachineRoomNearby(make(told.part("inner"), clientId), resolver(told));
            case "CONFIG":
                AllocateMessageQueueByConfig configured = new AllocateMessageQueueByConfig();
                configured.setMessageQueueList(queues(told.part("clients"), clientId));
                return configured;
            default:
                throw new IllegalArgumentException("no strategy is called " + told.text("strategy"));
        }
    }

    private static List<MessageQueue> queues(Told clients, String clientId) {
        List<MessageQueue> queues = new ArrayList<>();
        for (Told part : clients.has(clientId) ? clients.parts(clientId) : List.<Told>of()) {
            for (int queueId : part.numbers("queue_ids")) {
                queues.add(new MessageQueue(part.text("topic"), part.text("broker_name"), queueId));
            }
        }
        return queues;
    }

    private static AllocateMachineRoomNearby.MachineRoomResolver resolver(Told told) {
        return new AllocateMachineRoomNearby.MachineRoomResolver() {
            @Override
            public String brokerDeployIn(MessageQueue queue) {
                return room(told.part("broker_room"), queue.getBrokerName());
            }

            @Override
            public String consumerDeployIn(String consumer) {
                return room(told.part("consumer_room"), consumer);
            }
        };
    }

    private static String room(Told rule, String name) {
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
