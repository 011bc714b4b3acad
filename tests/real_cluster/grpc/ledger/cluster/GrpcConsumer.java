package ledger.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Closeable;
import java.io.IOException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;

/** A push consumer, or a simple one with a thread that receives and acknowledges. */
final class GrpcConsumer {
    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(20);
    private static final Duration AWAIT = Duration.ofSeconds(2);
    private static final Duration INVISIBLE = Duration.ofSeconds(10);
    private static final int BATCH = 16;

    private final Map<String, Integer> consumed = new ConcurrentHashMap<>();
    private volatile boolean isOpen = true;
    private volatile boolean isHeld;
    private Closeable client;

    private GrpcConsumer() {
    }

    static GrpcConsumer start(JsonNode order) throws Exception {
        GrpcConsumer consumer = new GrpcConsumer();
        ClientConfiguration configuration = ClientConfiguration.newBuilder()
                .setEndpoints(order.path("endpoints").asText())
                .setRequestTimeout(REQUEST_TIMEOUT)
                .enableSsl(false)
                .build();
        Map<String, FilterExpression> topics = new LinkedHashMap<>();
        order.path("topics").forEach(topic -> topics.put(topic.asText(), FilterExpression.SUB_ALL));
        ClientServiceProvider provider = ClientServiceProvider.loadService();
        if (order.path("is_simple").asBoolean()) {
            SimpleConsumer simple = provider.newSimpleConsumerBuilder()
                    .setClientConfiguration(configuration)
                    .setConsumerGroup(order.path("group").asText())
                    .setAwaitDuration(AWAIT)
                    .setSubscriptionExpressions(topics)
                    .build();
            consumer.client = simple;
            Thread receiver = new Thread(() -> consumer.receive(simple), "receiver");
            receiver.setDaemon(true);
            receiver.start();
        } else {
            consumer.client = provider.newPushConsumerBuilder()
                    .setClientConfiguration(configuration)
                    .setConsumerGroup(order.path("group").asText())
                    .setSubscriptionExpressions(topics)
                    .setMessageListener(consumer::consume)
                    .build();
        }
        return consumer;
    }

    private ConsumeResult consume(MessageView message) {
        if (isHeld) {
            return ConsumeResult.FAILURE;
        }
        note(message);
        return ConsumeResult.SUCCESS;
    }

    private void receive(SimpleConsumer simple) {
        while (isOpen) {
            try {
                for (MessageView message : simple.receive(BATCH, INVISIBLE)) {
                    if (!isHeld) {
                        note(message);
                        simple.ack(message);
                    }
                }
            } catch (ClientException again) {
                System.err.println(again);
            }
        }
    }

    private void note(MessageView message) {
        consumed.merge(message.getTopic(), 1, Integer::sum);
    }

    /** Receives from now on without acknowledging messages. */
    void hold(boolean held) {
        isHeld = held;
    }

    /** The number of acknowledged messages, by topic. */
    Map<String, Integer> consumed() {
        return new TreeMap<>(consumed);
    }

    /** The id that the library generated; it has no public accessor. */
    String clientId() throws Exception {
        for (Class<?> type = client.getClass(); type != null; type = type.getSuperclass()) {
            for (Method method : type.getDeclaredMethods()) {
                if (method.getName().equals("getClientId") && method.getParameterCount() == 0) {
                    method.setAccessible(true);
                    return method.invoke(client).toString();
                }
            }
        }
        throw new IllegalStateException("this release of the client library does not name its client id");
    }

    void close() throws IOException {
        isOpen = false;
        client.close();
    }
}
