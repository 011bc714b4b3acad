package ledger.cluster;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import ledger.cluster.ClientHost.Told;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumeType;
import org.apache.rocketmq.remoting.protocol.heartbeat.ConsumerData;
import org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.heartbeat.SubscriptionData;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What an operator does to a cluster, each name server seen by itself. */
final class Operator {
    private static final long PATIENCE_MS = 5_000;
    private static final String SET_MODE = "setMessageRequestMode";

    private final Map<String, DefaultMQAdminExt> admins = new HashMap<>();

    Object obey(Told told) throws Exception {
        switch (told.text("do")) {
            case "brokers":
                return brokers(told.text("name_server"));
            case "queues":
                return queues(told.text("name_server"), told.text("topic"));
            case "create_topic":
                TopicConfig topic = new TopicConfig(told.text("topic"));
                topic.setReadQueueNums(told.number("read_queues"));
                topic.setWriteQueueNums(told.number("write_queues"));
                topic.setPerm(told.number("perm"));
                admin(told.text("name_server")).createAndUpdateTopicConfig(told.text("broker"), topic);
                return null;
            case "delete_topic":
                api(told.text("name_server")).deleteTopicInBroker(told.text("broker"), told.text("topic"), PATIENCE_MS);
                return null;
            case "delete_route":
                // In 4.9 the topic comes first, and then the cluster, here all of them; from 5.0 on it is the other way.
                boolean topicFirst = MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION).startsWith("V4");
                Late.call(api(told.text("name_server")), "deleteTopicInNameServer", told.text("name_server"),
                        topicFirst ? told.text("topic") : "", topicFirst ? "" : told.text("topic"), PATIENCE_MS);
                return null;
            case "members":
                return members(told);
            case "heartbeat":
                Late.call(api(told.text("name_server")), "sendHeartbeat", told.text("broker"), heartbeat(told), PATIENCE_MS);
                return null;
            case "request_mode":
                Late.call(api(told.text("name_server")), SET_MODE, told.text("broker"), told.text("topic"),
                        told.text("group"), Late.constant(api(told.text("name_server")), SET_MODE, 6, 3, told.text("mode")),
                        told.number("pop_share_queues"), PATIENCE_MS);
                return null;
            case "create_group":
                createGroup(told);
                return null;
            case "register":
                Late.call(connection(told).getMQClientAPIImpl(), "sendHeartbeat", told.text("broker"), heartbeat(told),
                        PATIENCE_MS);
                return null;
            case "configure_broker":
                Properties properties = new Properties();
                properties.putAll(told.byName("properties"));
                admin(told.text("name_server")).updateBrokerConfig(told.text("broker"), properties);
                return null;
            case "assignments":
                return assignments(told);
            case "send":
                return send(told);
            default:
                throw new IllegalArgumentException("nobody knows how to do " + told.text("do"));
        }
    }

    private DefaultMQAdminExt admin(String nameServer) throws Exception {
        DefaultMQAdminExt admin = admins.get(nameServer);
        if (admin == null) {
            admin = new DefaultMQAdminExt(Account.signature(), PATIENCE_MS);
            admin.setNamesrvAddr(nameServer);
            admin.setInstanceName("operator-" + nameServer);
            admin.setVipChannelEnabled(false);
            admin.start();
            admins.put(nameServer, admin);
        }
        return admin;
    }

    private MQClientAPIImpl api(String nameServer) throws Exception {
        Object implementation = Late.read(admin(nameServer), "defaultMQAdminExtImpl");
        return ((MQClientInstance) Late.read(implementation, "mqClientInstance")).getMQClientAPIImpl();
    }

    /** A client of its own, with a connection of its own: a broker keeps one client id a group and connection. */
    private MQClientInstance connection(Told told) throws Exception {
        String name = told.text("connection");
        DefaultMQAdminExt admin = admins.get(name);
        if (admin == null) {
            admin = new DefaultMQAdminExt(PATIENCE_MS);
            admin.setNamesrvAddr(told.text("name_server"));
            admin.setInstanceName(name);
            admin.setVipChannelEnabled(false);
            admin.start();
            admins.put(name, admin);
        }
        return (MQClientInstance) Late.read(Late.read(admin, "defaultMQAdminExtImpl"), "mqClientInstance");
    }

    private void createGroup(Told told) throws Exception {
        DefaultMQAdminExt admin = admin(told.text("name_server"));
        // Its class is in other packages in other releases.
        Object group = Late.type(admin, "createAndUpdateSubscriptionGroupConfig", 2, 1)
                .getDeclaredConstructor().newInstance();
        Late.call(group, "setGroupName", told.text("group"));
        if (told.is("orderly")) {
            Late.call(group, "setConsumeMessageOrderly", true);
        }
        Late.call(admin, "createAndUpdateSubscriptionGroupConfig", told.text("broker"), group);
    }

    /** What a broker answers to QUERY_ASSIGNMENT: a list of [topic, broker name, queue id, mode] a question, or null. */
    private List<Object> assignments(Told told) throws Exception {
        MQClientAPIImpl api = api(told.text("name_server"));
        List<Object> answers = new ArrayList<>();
        for (Told question : told.parts("questions")) {
            Object queues = Late.call(api, "queryAssignment", told.text("broker"), question.text("topic"),
                    question.text("group"), question.text("client_id"), question.text("strategy"),
                    MessageModel.valueOf(question.text("message_model")), PATIENCE_MS);
            answers.add(queues == null ? null : plain((Collection<?>) queues));
        }
        return answers;
    }

    private static List<Object> plain(Collection<?> assignments) throws Exception {
        List<Object> queues = new ArrayList<>();
        for (Object assignment : assignments) {
            MessageQueue queue = (MessageQueue) Late.call(assignment, "getMessageQueue");
            String mode = Late.call(assignment, "getMode").toString();
            queues.add(queue == null ? null : List.of(queue.getTopic(), queue.getBrokerName(), queue.getQueueId(), mode));
        }
        return queues;
    }

    /** The masters that a name server knows: name to address. */
    private Map<String, String> brokers(String nameServer) throws Exception {
        Map<String, String> addresses = new TreeMap<>();
        admin(nameServer).examineBrokerClusterInfo().getBrokerAddrTable().forEach(
                (name, broker) -> addresses.put(name, broker.getBrokerAddrs().get(0L)));
        return addresses;
    }

    /** How many queues can be read on each broker, by the route that a name server gives; empty without a route. */
    private Map<String, Integer> queues(String nameServer, String topic) throws Exception {
        Map<String, Integer> counts = new TreeMap<>();
        var route = api(nameServer).getTopicRouteInfoFromNameServer(topic, PATIENCE_MS, false);
        for (MessageQueue queue : MQClientInstance.topicRouteData2TopicSubscribeInfo(topic, route)) {
            counts.merge(queue.getBrokerName(), 1, Integer::sum);
        }
        return counts;
    }

    /** The client ids of a group as a broker gives them to its clients: one a connection. */
    private List<String> members(Told told) throws Exception {
        try {
            List<String> ids = api(told.text("name_server"))
                    .getConsumerIdListByGroup(told.text("broker"), told.text("group"), PATIENCE_MS);
            return ids.stream().sorted().toList();
        } catch (MQBrokerException nobody) {
            return List.of();
        }
    }

    /** Says to one broker that a client is there, in each of its groups. */
    private static HeartbeatData heartbeat(Told told) {
        HeartbeatData heartbeat = new HeartbeatData();
        heartbeat.setClientID(told.text("client_id"));
        for (String name : told.texts("groups")) {
            ConsumerData group = new ConsumerData();
            group.setGroupName(name);
            group.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
            group.setMessageModel(MessageModel.CLUSTERING);
            group.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            for (String topic : told.texts("topics")) {
                group.getSubscriptionDataSet().add(new SubscriptionData(topic, "*"));
            }
            heartbeat.getConsumerDataSet().add(group);
        }
        return heartbeat;
    }

    private Object send(Told told) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("operator", Account.signature());
        producer.setNamesrvAddr(told.text("name_server"));
        producer.setInstanceName("operator-producer");
        producer.setVipChannelEnabled(false);
        producer.setSendMsgTimeout((int) PATIENCE_MS);
        producer.start();
        try {
            for (int number = 0; number < told.number("count"); number++) {
                producer.send(new Message(told.text("topic"), ("message " + number).getBytes(StandardCharsets.UTF_8)));
            }
        } finally {
            producer.shutdown();
        }
        return null;
    }
}
