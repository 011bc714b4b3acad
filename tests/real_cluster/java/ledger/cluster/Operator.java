package ledger.cluster;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import ledger.cluster.ClientHost.Request;
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

/** Operations on a cluster; each name server is queried separately. */
final class Operator {
    private static final long PATIENCE_MS = 5_000;
    private static final String SET_MODE = "setMessageRequestMode";

    private final Map<String, DefaultMQAdminExt> admins = new HashMap<>();

    Object handle(Request request) throws Exception {
        switch (request.text("do")) {
            case "brokers":
                return brokers(request.text("name_server"));
            case "queues":
                return queues(request.text("name_server"), request.text("topic"));
            case "create_topic":
                TopicConfig topic = new TopicConfig(request.text("topic"));
                topic.setReadQueueNums(request.number("read_queues"));
                topic.setWriteQueueNums(request.number("write_queues"));
                topic.setPerm(request.number("perm"));
                admin(request.text("name_server")).createAndUpdateTopicConfig(request.text("broker"), topic);
                return null;
            case "delete_topic":
                api(request.text("name_server")).deleteTopicInBroker(request.text("broker"), request.text("topic"), PATIENCE_MS);
                return null;
            case "delete_route":
                // In 4.9 the topic precedes the cluster (here: all clusters); from 5.0 on it is the other way round.
                boolean topicFirst = MQVersion.getVersionDesc(MQVersion.CURRENT_VERSION).startsWith("V4");
                Late.call(api(request.text("name_server")), "deleteTopicInNameServer", request.text("name_server"),
                        topicFirst ? request.text("topic") : "", topicFirst ? "" : request.text("topic"), PATIENCE_MS);
                return null;
            case "members":
                return members(request);
            case "heartbeat":
                Late.call(api(request.text("name_server")), "sendHeartbeat", request.text("broker"), heartbeat(request), PATIENCE_MS);
                return null;
            case "request_mode":
                Late.call(api(request.text("name_server")), SET_MODE, request.text("broker"), request.text("topic"),
                        request.text("group"), Late.constant(api(request.text("name_server")), SET_MODE, 6, 3, request.text("mode")),
                        request.number("pop_share_queues"), PATIENCE_MS);
                return null;
            case "create_group":
                createGroup(request);
                return null;
            case "register":
                Late.call(connection(request).getMQClientAPIImpl(), "sendHeartbeat", request.text("broker"), heartbeat(request),
                        PATIENCE_MS);
                return null;
            case "configure_broker":
                Properties properties = new Properties();
                properties.putAll(request.byName("properties"));
                admin(request.text("name_server")).updateBrokerConfig(request.text("broker"), properties);
                return null;
            case "assignments":
                return assignments(request);
            case "send":
                return send(request);
            default:
                throw new IllegalArgumentException("unknown request: " + request.text("do"));
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

    /** A separate client with its own connection: a broker keeps one client id per group and connection. */
    private MQClientInstance connection(Request request) throws Exception {
        String name = request.text("connection");
        DefaultMQAdminExt admin = admins.get(name);
        if (admin == null) {
            admin = new DefaultMQAdminExt(PATIENCE_MS);
            admin.setNamesrvAddr(request.text("name_server"));
            admin.setInstanceName(name);
            admin.setVipChannelEnabled(false);
            admin.start();
            admins.put(name, admin);
        }
        return (MQClientInstance) Late.read(Late.read(admin, "defaultMQAdminExtImpl"), "mqClientInstance");
    }

    private void createGroup(Request request) throws Exception {
        DefaultMQAdminExt admin = admin(request.text("name_server"));
        // Its package differs between releases.
        Object group = Late.type(admin, "createAndUpdateSubscriptionGroupConfig", 2, 1)
                .getDeclaredConstructor().newInstance();
        Late.call(group, "setGroupName", request.text("group"));
        if (request.is("orderly")) {
            Late.call(group, "setConsumeMessageOrderly", true);
        }
        Late.call(admin, "createAndUpdateSubscriptionGroupConfig", request.text("broker"), group);
    }

    /** The answer of a broker to QUERY_ASSIGNMENT: a list of [topic, broker name, queue id, mode] per question, or null. */
    private List<Object> assignments(Request request) throws Exception {
        MQClientAPIImpl api = api(request.text("name_server"));
        List<Object> answers = new ArrayList<>();
        for (Request question : request.parts("questions")) {
            Object queues = Late.call(api, "queryAssignment", request.text("broker"), question.text("topic"),
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

    /** The number of read queues on each broker, by the route of a name server; empty without a route. */
    private Map<String, Integer> queues(String nameServer, String topic) throws Exception {
        Map<String, Integer> counts = new TreeMap<>();
        var route = api(nameServer).getTopicRouteInfoFromNameServer(topic, PATIENCE_MS, false);
        for (MessageQueue queue : MQClientInstance.topicRouteData2TopicSubscribeInfo(topic, route)) {
            counts.merge(queue.getBrokerName(), 1, Integer::sum);
        }
        return counts;
    }

    /** The client ids of a group as a broker returns them to its clients: one per connection. */
    private List<String> members(Request request) throws Exception {
        try {
            List<String> ids = api(request.text("name_server"))
                    .getConsumerIdListByGroup(request.text("broker"), request.text("group"), PATIENCE_MS);
            return ids.stream().sorted().toList();
        } catch (MQBrokerException nobody) {
            return List.of();
        }
    }

    /** A heartbeat of a client in each of its groups. */
    private static HeartbeatData heartbeat(Request request) {
        HeartbeatData heartbeat = new HeartbeatData();
        heartbeat.setClientID(request.text("client_id"));
        for (String name : request.texts("groups")) {
            ConsumerData group = new ConsumerData();
            group.setGroupName(name);
            group.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
            group.setMessageModel(MessageModel.CLUSTERING);
            group.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            for (String topic : request.texts("topics")) {
                group.getSubscriptionDataSet().add(new SubscriptionData(topic, "*"));
            }
            heartbeat.getConsumerDataSet().add(group);
        }
        return heartbeat;
    }

    private Object send(Request request) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("operator", Account.signature());
        producer.setNamesrvAddr(request.text("name_server"));
        producer.setInstanceName("operator-producer");
        producer.setVipChannelEnabled(false);
        producer.setSendMsgTimeout((int) PATIENCE_MS);
        producer.start();
        try {
            for (int number = 0; number < request.number("count"); number++) {
                producer.send(new Message(request.text("topic"), ("message " + number).getBytes(StandardCharsets.UTF_8)));
            }
        } finally {
            producer.shutdown();
        }
        return null;
    }
}
