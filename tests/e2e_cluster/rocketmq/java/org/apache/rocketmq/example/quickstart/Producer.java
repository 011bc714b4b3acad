package org.apache.rocketmq.example.quickstart;

import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/** A thousand messages to TopicTest, of the name servers that NAMESRV_ADDR tells. */
public final class Producer {
    private static final int MESSAGE_COUNT = 1000;

    private Producer() {
    }

    public static void main(String[] arguments) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("quickstart_producer");
        producer.start();
        for (int number = 0; number < MESSAGE_COUNT; number++) {
            byte[] body = ("message " + number).getBytes(StandardCharsets.UTF_8);
            producer.send(new Message("TopicTest", "TagA", body));
        }
        producer.shutdown();
    }
}
