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
 * A JVM with real consumers in it, told what to do by one JSON object a line. Each is answered by one line, with
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
        // What the clients print must not come between the answers.
        PrintStream answers = System.out;
        System.setOut(System.err);
        ClientHost host = new ClientHost();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> told = JSON.readValue(line, new TypeReference<>() { });
            Map<String, Object> said = new LinkedHashMap<>();
            try {
                said.put("answer", host.obey(new Told(told)));
            } catch (Throwable fault) {
                fault.printStackTrace();
                said.put("error", described(fault));
            }
            answers.write((JSON.writeValueAsString(said) + "\n").getBytes(StandardCharsets.UTF_8));
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

    private Object obey(Told told) throws Exception {
        switch (told.text("do")) {
            case "start_consumer":
                HostedConsumer started = started(told);
                consumers.put(told.text("key"), started);
                return started.clientId();
            case "stop_consumer":
                consumers.remove(told.text("key")).stop();
                return null;
            case "settle":
                for (String key : told.texts("keys")) {
                    consumers.get(key).settle();
                }
                return null;
            case "look":
                Map<String, Object> seen = new LinkedHashMap<>();
                for (String key : told.texts("keys")) {
                    seen.put(key, consumers.get(key).look());
                }
                return seen;
            case "running_info":
                return consumers.get(told.text("key")).runningInfo();
            case "persist":
                consumers.get(told.text("key")).persist();
                return null;
            case "consumed":
                return consumers.get(told.text("key")).consumed();
            default:
                return operator.obey(told);
        }
    }

    /** A consumer that has started. Like an application on a busy machine it tries again if a server did not answer. */
    private static HostedConsumer started(Told told) throws Exception {
        for (int attempt = 1;; attempt++) {
            HostedConsumer consumer = new HostedConsumer(told);
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

    /** What a line says, by name. */
    static final class Told {
        private final Map<String, Object> fields;

        Told(Map<String, Object> fields) {
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
        Told part(String name) {
            return new Told((Map<String, Object>) fields.get(name));
        }

        @SuppressWarnings("unchecked")
        List<Told> parts(String name) {
            return ((List<Map<String, Object>>) fields.get(name)).stream().map(Told::new).toList();
        }

        @SuppressWarnings("unchecked")
        List<Integer> numbers(String name) {
            return (List<Integer>) fields.get(name);
        }
    }
}
