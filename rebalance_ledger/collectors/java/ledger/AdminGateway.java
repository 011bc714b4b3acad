package ledger;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.RemotingClient;
import org.apache.rocketmq.remoting.netty.TlsHelper;
import org.apache.rocketmq.remoting.netty.TlsSystemConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.ResponseCode;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import py4j.GatewayServer;

/**
 * Sends requests to name servers, brokers and proxies through RocketMQ's remoting client, and returns the bytes of each response.
 *
 * <p>Bodies are never decoded here: a release of RocketMQ cannot always read what another one writes.
 *
 * <p>Written for Janino, which comes with Spark and sees no type arguments: hence the casts, and no lambdas.
 */
public final class AdminGateway {

    private final Map admins = new ConcurrentHashMap();
    private RPCHook signature;
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
            // The process that started this one holds the other end, and closes it when it ends, however it ends.
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
        // Only these parameters count, no file of the machine.
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

    /** Starts an admin client of its own for a name server, so that no other one answers in its place. */
    public void connect(String nameServer) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(signature);
        admin.setNamesrvAddr(nameServer);
        admin.setInstanceName("rebalance-ledger-" + admins.size());
        admin.setVipChannelEnabled(false);
        admin.setUseTLS(useTls);
        admin.start();
        admins.put(nameServer, admin);
    }

    /**
     * Sends one request and waits for its response.
     *
     * @param code RocketMQ's request code.
     * @param nameServer whose admin client asks.
     * @param address the broker or proxy that is asked; null for the name server itself.
     * @param fields names and values of the request's header, see addFields.
     * @return flags whether there is a body and whether there was a response at all, the response code, exception class,
     *     message, body.
     */
    public byte[] ask(int code, String nameServer, String address, byte[] fields, int timeoutMs) throws Exception {
        RemotingCommand response = null;
        String failure = "";
        String message = "";
        try {
            RemotingCommand request = RemotingCommand.createRequestCommand(code, null);
            addFields(request, fields);
            DefaultMQAdminExt admin = (DefaultMQAdminExt) admins.get(nameServer);
            RemotingClient client = admin.getDefaultMQAdminExtImpl().getMqClientInstance().getMQClientAPIImpl().getRemotingClient();
            response = client.invokeSync(address, request, (long) timeoutMs);
            if (response.getCode() != ResponseCode.SUCCESS) {
                Exception refusal;
                if (address == null) {
                    refusal = new MQClientException(response.getCode(), response.getRemark());
                } else {
                    refusal = new MQBrokerException(response.getCode(), response.getRemark(), address);
                }
                failure = refusal.getClass().getName();
                message = refusal.getMessage();
            } else if (response.getBody() == null) {
                failure = "EmptyResponse";
                message = "The server responded with success and without a body.";
            }
        } catch (Exception error) {
            failure = error.getClass().getName();
            message = error.getMessage() == null ? "" : error.getMessage();
        }
        return encoded(response, failure, message);
    }

    /** Adds the fields of a header: pairs of texts, each a length of four bytes and so many bytes of UTF-8. */
    private static void addFields(RemotingCommand request, byte[] fields) {
        ByteBuffer rest = ByteBuffer.wrap(fields);
        while (rest.hasRemaining()) {
            String name = text(rest);
            request.addExtField(name, text(rest));
        }
    }

    private static String text(ByteBuffer rest) {
        byte[] bytes = new byte[rest.getInt()];
        rest.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static byte[] encoded(RemotingCommand response, String failure, String message) throws Exception {
        boolean isBody = response != null && response.getCode() == ResponseCode.SUCCESS && response.getBody() != null;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeBoolean(isBody);
        out.writeBoolean(response != null);
        out.writeInt(response == null ? 0 : response.getCode());
        write(out, failure);
        write(out, message == null ? "" : message);
        if (isBody) {
            out.write(response.getBody());
        }
        return bytes.toByteArray();
    }

    private static void write(DataOutputStream out, String text) throws Exception {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(bytes.length);
        out.write(bytes);
    }
}
