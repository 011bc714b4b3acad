package ledger.cluster;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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

    /** Says to one broker that a client is there, over the operator's own connection. */
    private static HeartbeatData heartbeat(Told told) {
        ConsumerData group = new ConsumerData();
        group.setGroupName(told.text("group"));
        group.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        group.setMessageModel(MessageModel.CLUSTERING);
        group.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        for (String topic : told.texts("topics")) {
            group.getSubscriptionDataSet().add(new SubscriptionData(topic, "*"));
        }
        HeartbeatData heartbeat = new HeartbeatData();
        heartbeat.setClientID(told.text("client_id"));
        heartbeat.getConsumerDataSet().add(group);
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
