package ledger.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A JVM with real gRPC consumers in it, controlled by one JSON object per line. Each is answered by one line, with
 * {@code answer} or with {@code error}. It ends when its input does.
 */
public final class GrpcHost {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, GrpcConsumer> consumers = new LinkedHashMap<>();

    private GrpcHost() {
    }

    public static void main(String[] arguments) throws Exception {
        // Output of the clients must not be mixed with the answers.
        PrintStream answers = System.out;
        System.setOut(System.err);
        GrpcHost host = new GrpcHost();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> answer = new LinkedHashMap<>();
            try {
                answer.put("answer", host.obey(JSON.readTree(line)));
            } catch (Throwable fault) {
                fault.printStackTrace();
                answer.put("error", fault.toString());
            }
            answers.write((JSON.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private Object obey(JsonNode order) throws Exception {
        String key = order.path("key").asText();
        switch (order.path("do").asText()) {
            case "start_consumer":
                consumers.put(key, GrpcConsumer.start(order));
                return consumers.get(key).clientId();
            case "stop_consumer":
                consumers.remove(key).close();
                return null;
            case "consumed":
                return consumers.get(key).consumed();
            case "hold":
                consumers.get(key).hold(order.path("is_held").asBoolean());
                return null;
            default:
                throw new IllegalArgumentException("unknown order " + order.path("do").asText());
        }
    }
}
