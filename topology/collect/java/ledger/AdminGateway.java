package ledger;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.netty.TlsHelper;
import org.apache.rocketmq.remoting.netty.TlsSystemConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.remoting.protocol.body.Connection;
import org.apache.rocketmq.remoting.protocol.body.ConsumerConnection;
import org.apache.rocketmq.remoting.protocol.body.SubscriptionGroupWrapper;
import org.apache.rocketmq.remoting.protocol.body.TopicConfigSerializeWrapper;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import py4j.GatewayServer;

/**
 * Asks name servers and brokers through RocketMQ's admin client, and hands over what came, byte for byte.
 *
 * <p>The admin client gives objects, and writing them out again loses what its release does not know. So a hook, which it
 * calls with every request and every response, keeps the response's own bytes. The objects serve for the names of what is
 * to be asked next.
 *
 * <p>Written for Janino, which comes with Spark and sees no type arguments: hence the casts, and no lambdas.
 */
public final class AdminGateway implements RPCHook {

    /** What one question has brought. */
    private static final class Call {
        int opaque;
        volatile RemotingCommand response;
    }

    private final ThreadLocal current = new ThreadLocal();
    private final Map open = new ConcurrentHashMap();
    private final Map admins = new ConcurrentHashMap();
    private AclClientRPCHook signature;
    private boolean useTls;

    /** Prints the port, and lives until its input ends; the first line of that is the token that callers must know. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        GatewayServer server = new GatewayServer.GatewayServerBuilder(new AdminGateway())
            .javaPort(0)
            .javaAddress(InetAddress.getByName("127.0.0.1"))
            .authToken(input.readLine())
            .build();
        server.start();
        System.out.println(server.getListeningPort());
        while (input.readLine() != null) {
            // Whoever started us holds the other end, and lets it go when it ends, however it ends.
        }
        Runtime.getRuntime().halt(0);
    }

    /** Signs every request from now on. */
    public void authenticate(String accessKey, String secretKey) {
        signature = new AclClientRPCHook(new SessionCredentials(accessKey, secretKey));
    }

    /**
     * Encrypts every connection from now on. Paths and password may be null.
     *
     * @throws Exception if a certificate or key cannot be used: the client would go on without encryption.
     */
    public void encrypt(boolean verify, String trusted, String certificate, String key, String password) throws Exception {
        // Only what we are told counts, no file of the machine.
        TlsSystemConfig.tlsConfigFile = "";
        TlsSystemConfig.tlsTestModeEnable = false;
        TlsSystemConfig.tlsClientAuthServer = verify;
        TlsSystemConfig.tlsClientTrustCertPath = trusted;
        TlsSystemConfig.tlsClientCertPath = certificate;
        TlsSystemConfig.tlsClientKeyPath = key;
        TlsSystemConfig.tlsClientKeyPassword = password;
        TlsHelper.buildSslContext(true);
        useTls = true;
    }

    /** Starts an admin client of its own for a name server, so that nobody else answers in its place. */
    public void connect(String nameServer) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(this);
        admin.setNamesrvAddr(nameServer);
        admin.setInstanceName("rebalance-ledger-" + admins.size());
        admin.setVipChannelEnabled(false);
        admin.setUseTLS(useTls);
        admin.start();
        admins.put(nameServer, admin);
    }

    /**
     * Asks one question.
     *
     * @param kind of the export contract.
     * @param nameServer whose admin client asks; it is the one who is asked where there is no broker.
     * @param broker address of the broker that is asked, or null.
     * @return flags whether there is a payload and whether there was a response at all, the response code, exception class,
     *     message, names in the answer, payload.
     */
    public byte[] ask(
        String kind, String nameServer, String broker, String group, String topic, String clientId, int timeoutMs
    ) throws Exception {
        Call call = new Call();
        current.set(call);
        Collection names = new ArrayList();
        String failure = "";
        String message = "";
        try {
            DefaultMQAdminExt admin = (DefaultMQAdminExt) admins.get(nameServer);
            MQClientAPIImpl api = admin.getDefaultMQAdminExtImpl().getMqClientInstance().getMQClientAPIImpl();
            names = namesIn(kind, api, broker, group, topic, clientId, timeoutMs);
        } catch (Exception error) {
            failure = error.getClass().getName();
            message = error.getMessage() == null ? "" : error.getMessage();
        } finally {
            current.remove();
            open.remove(Integer.valueOf(call.opaque));
        }
        return encoded(call.response, failure, message, names);
    }

    private Collection namesIn(
        String kind, MQClientAPIImpl api, String broker, String group, String topic, String clientId, int timeoutMs
    ) throws Exception {
        List names = new ArrayList();
        if (kind.equals("nameserver_topic_list")) {
            return api.getTopicListFromNameServer(timeoutMs).getTopicList();
        } else if (kind.equals("nameserver_cluster_info")) {
            Iterator brokers = api.getBrokerClusterInfo(timeoutMs).getBrokerAddrTable().values().iterator();
            while (brokers.hasNext()) {
                BrokerData data = (BrokerData) brokers.next();
                Iterator addresses = data.getBrokerAddrs().entrySet().iterator();
                while (addresses.hasNext()) {
                    Map.Entry address = (Map.Entry) addresses.next();
                    names.add(data.getBrokerName());
                    names.add(address.getKey().toString());
                    names.add(address.getValue());
                }
            }
        } else if (kind.equals("nameserver_route")) {
            api.getTopicRouteInfoFromNameServer(topic, timeoutMs);
        } else if (kind.equals("broker_topic_config")) {
            // The client's own method takes pages since 5.4; without a header a broker of any release answers whole.
            byte[] body = bodyOf(api, RequestCode.GET_ALL_TOPIC_CONFIG, broker, timeoutMs);
            return ((TopicConfigSerializeWrapper) TopicConfigSerializeWrapper.decode(body, TopicConfigSerializeWrapper.class))
                .getTopicConfigTable().keySet();
        } else if (kind.equals("broker_subscription_group")) {
            byte[] body = bodyOf(api, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, broker, timeoutMs);
            Iterator groups =
                ((SubscriptionGroupWrapper) SubscriptionGroupWrapper.decode(body, SubscriptionGroupWrapper.class))
                    .getSubscriptionGroupTable().keySet().iterator();
            while (groups.hasNext()) {
                String name = (String) groups.next();
                if (!MixAll.isSysConsumerGroup(name) && !MixAll.isPredefinedGroup(name)) {
                    names.add(name);
                }
            }
        } else if (kind.equals("broker_config")) {
            api.getBrokerConfig(broker, timeoutMs);
        } else if (kind.equals("broker_topic_stats")) {
            api.getTopicStatsInfo(broker, topic, timeoutMs);
        } else if (kind.equals("broker_producer_table")) {
            api.getAllProducerInfo(broker, timeoutMs);
        } else if (kind.equals("broker_message_request_mode")) {
            // The client has a method to set the modes, and none to get them.
            bodyOf(api, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, broker, timeoutMs);
        } else if (kind.equals("consumer_connection")) {
            ConsumerConnection found = api.getConsumerConnectionList(broker, group, timeoutMs);
            Iterator connections = found.getConnectionSet().iterator();
            while (connections.hasNext()) {
                names.add(((Connection) connections.next()).getClientId());
            }
            names.add("");
            names.addAll(found.getSubscriptionTable().keySet());
        } else if (kind.equals("consumer_running_info")) {
            api.getConsumerRunningInfo(broker, group, clientId, false, timeoutMs);
        } else if (kind.equals("consumer_status")) {
            api.invokeBrokerToGetConsumerStatus(broker, topic, group, clientId, timeoutMs);
        } else if (kind.equals("consume_stats")) {
            api.getConsumeStats(broker, group, timeoutMs);
        } else {
            throw new IllegalArgumentException("nobody can be asked for " + kind);
        }
        return names;
    }

    private static byte[] bodyOf(MQClientAPIImpl api, int code, String broker, int timeoutMs) throws Exception {
        RemotingCommand request = RemotingCommand.createRequestCommand(code, null);
        RemotingCommand response = api.getRemotingClient().invokeSync(broker, request, (long) timeoutMs);
        if (response.getCode() != ResponseCode.SUCCESS) {
            throw new MQBrokerException(response.getCode(), response.getRemark(), broker);
        }
        return response.getBody();
    }

    private static byte[] encoded(RemotingCommand response, String failure, String message, Collection names)
        throws Exception {
        boolean isPayload =
            response != null && response.getCode() == ResponseCode.SUCCESS && response.getBody() != null;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeBoolean(isPayload);
        out.writeBoolean(response != null);
        out.writeInt(response == null ? 0 : response.getCode());
        write(out, failure);
        write(out, message);
        out.writeInt(names.size());
        Iterator each = names.iterator();
        while (each.hasNext()) {
            write(out, (String) each.next());
        }
        if (isPayload) {
            out.write(response.getBody());
        }
        return bytes.toByteArray();
    }

    private static void write(DataOutputStream out, String text) throws Exception {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    /** Runs in the thread that asks. */
    public void doBeforeRequest(String address, RemotingCommand request) {
        if (signature != null) {
            signature.doBeforeRequest(address, request);
        }
        Call call = (Call) current.get();
        if (call != null) {
            call.opaque = request.getOpaque();
            open.put(Integer.valueOf(call.opaque), call);
        }
    }

    /** Runs in a thread of the client's; whoever asked is woken up after it. */
    public void doAfterResponse(String address, RemotingCommand request, RemotingCommand response) {
        Call call = (Call) open.remove(Integer.valueOf(request.getOpaque()));
        if (call != null) {
            call.response = response;
        }
    }
}
