package ledger.cluster;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.remoting.exception.RemotingException;

/**
 * A JVM with real consumers in it, controlled by one JSON object per line. Each is answered by one line, with
 * {@code answer} or with {@code error}. It ends when its input does.
 */
public final class ClientHost {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int START_ATTEMPTS = 5;

    private final Map<String, HostedConsumer> consumers = new LinkedHashMap<>();
    private final Operator operator = new Operator();

    private ClientHost() {
    }

    public static void main(String[] arguments) throws Exception {
        // Output of the clients must not be mixed with the answers.
        PrintStream answers = System.out;
        System.setOut(System.err);
        ClientHost host = new ClientHost();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> request = JSON.readValue(line, new TypeReference<>() { });
            Map<String, Object> reply = new LinkedHashMap<>();
            try {
                reply.put("answer", host.handle(new Request(request)));
            } catch (Throwable fault) {
                fault.printStackTrace();
                reply.put("error", described(fault));
            }
            answers.write((JSON.writeValueAsString(reply) + "\n").getBytes(StandardCharsets.UTF_8));
            answers.flush();
        }
        // Consumers hold threads that would keep the JVM alive.
        Runtime.getRuntime().halt(0);
    }

    private static String described(Throwable fault) {
        StringBuilder text = new StringBuilder(fault.toString());
        for (Throwable cause = fault.getCause(); cause != null; cause = cause.getCause()) {
            text.append("; caused by ").append(cause);
        }
        return text.toString();
    }

    private Object handle(Request request) throws Exception {
        switch (request.text("do")) {
            case "start_consumer":
                HostedConsumer started = started(request);
                consumers.put(request.text("key"), started);
                return started.clientId();
            case "stop_consumer":
                consumers.remove(request.text("key")).stop();
                return null;
            case "settle":
                for (String key : request.texts("keys")) {
                    consumers.get(key).settle();
                }
                return null;
            case "look":
                Map<String, Object> seen = new LinkedHashMap<>();
                for (String key : request.texts("keys")) {
                    seen.put(key, consumers.get(key).look());
                }
                return seen;
            case "running_info":
                return consumers.get(request.text("key")).runningInfo();
            case "persist":
                consumers.get(request.text("key")).persist();
                return null;
            case "consumed":
                return consumers.get(request.text("key")).consumed();
            default:
                return operator.handle(request);
        }
    }

    /** Starts a consumer. Like an application on a busy machine, it retries if a server does not answer. */
    private static HostedConsumer started(Request request) throws Exception {
        for (int attempt = 1;; attempt++) {
            HostedConsumer consumer = new HostedConsumer(request);
            try {
                consumer.start();
                return consumer;
            } catch (IllegalStateException fault) {
                consumer.stop();
                if (attempt == START_ATTEMPTS || !(fault.getCause() instanceof RemotingException)) {
                    throw fault;
                }
            }
        }
    }

    /** The fields of a request, by name. */
    static final class Request {
        private final Map<String, Object> fields;

        Request(Map<String, Object> fields) {
            this.fields = fields;
        }

        boolean has(String name) {
            return fields.get(name) != null;
        }

        String text(String name) {
            return (String) fields.get(name);
        }

        int number(String name) {
            return (Integer) fields.get(name);
        }

        boolean is(String name) {
            return Boolean.TRUE.equals(fields.get(name));
        }

        @SuppressWarnings("unchecked")
        List<String> texts(String name) {
            return (List<String>) fields.get(name);
        }

        @SuppressWarnings("unchecked")
        Map<String, String> byName(String name) {
            return (Map<String, String>) fields.get(name);
        }

        @SuppressWarnings("unchecked")
        Request part(String name) {
            return new Request((Map<String, Object>) fields.get(name));
        }

        @SuppressWarnings("unchecked")
        List<Request> parts(String name) {
            return ((List<Map<String, Object>>) fields.get(name)).stream().map(Request::new).toList();
        }

        @SuppressWarnings("unchecked")
        List<Integer> numbers(String name) {
            return (List<Integer>) fields.get(name);
        }
    }
}
