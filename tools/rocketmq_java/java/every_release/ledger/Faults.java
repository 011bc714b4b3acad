package ledger;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.latency.LatencyFaultTolerance;

/**
 * What a case says of the brokers, in place of a producer's measurements.
 *
 * The interface grew in 5.1.4; without `@Override` one class serves both forms.
 */
final class Faults implements LatencyFaultTolerance<String> {
    /** For how long the last update said that a broker is to be avoided. */
    long isolationMillis;
    private final Set<String> unavailable;
    private final Set<String> unreachable;
    private final String leastBad;

    Faults(JsonNode described) {
        unavailable = named(described.get("unavailable"));
        unreachable = named(described.get("unreachable"));
        leastBad = Form.text(described.get("least_bad"));
    }

    private static Set<String> named(JsonNode field) {
        List<String> names = Form.texts(field);
        return names == null ? new HashSet<>() : new HashSet<>(names);
    }

    public boolean isAvailable(String broker) {
        return !unavailable.contains(broker);
    }

    public boolean isReachable(String broker) {
        return !unreachable.contains(broker);
    }

    public String pickOneAtLeast() {
        return leastBad;
    }

    public void updateFaultItem(String broker, long latency, long isolation) {
        isolationMillis = isolation;
    }

    public void updateFaultItem(String broker, long latency, long isolation, boolean reachable) {
        isolationMillis = isolation;
    }

    public void remove(String broker) {
    }

    public void startDetector() {
    }

    public void shutdown() {
    }

    public void detectByOneRound() {
    }

    public void setDetectTimeout(int millis) {
    }

    public void setDetectInterval(int millis) {
    }

    public void setStartDetectorEnable(boolean enabled) {
    }

    public boolean isStartDetectorEnable() {
        return false;
    }
}
