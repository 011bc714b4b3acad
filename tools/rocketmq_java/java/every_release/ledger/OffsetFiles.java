package ledger;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.consumer.store.OffsetSerializeWrapper;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.MessageQueue;
import sun.misc.Unsafe;

/**
 * The offset files of broadcasting clients: what `OffsetSerializeWrapper` makes of bytes, and what `LocalFileOffsetStore` does
 * with files in the home folder.
 */
public final class OffsetFiles {
    private static final String CLIENT_ID = "127.0.0.1@DEFAULT";
    private static final String GROUP = "G";
    private static final Path FOLDER =
        new File(LocalFileOffsetStore.LOCAL_OFFSET_STORE_DIR).toPath().resolve(CLIENT_ID).resolve(GROUP);
    private static final Comparator<String> NULLS_FIRST = Comparator.nullsFirst(Comparator.naturalOrder());
    /** Only ASCII leaves, because a lone surrogate would not survive as UTF-8 on its way. */
    private static final ObjectMapper JSON =
        JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
    private static final MQClientInstance CLIENT = client();

    private OffsetFiles() {
    }

    /**
     * Reads many files' content as the store would.
     *
     * @param contents each preceded by its length in four bytes
     * @return a JSON array: what each parses to, as `parse_main` of the golden files; "foreign" for a table of something else
     */
    public static String parse(byte[] contents) throws IOException {
        List<Object> results = new ArrayList<>();
        ByteBuffer left = ByteBuffer.wrap(contents);
        while (left.hasRemaining()) {
            byte[] content = new byte[left.getInt()];
            left.get(content);
            results.add(parsed(text(content)));
        }
        return JSON.writeValueAsString(results);
    }

    /**
     * Writes tables as the store does, each over a file that does not exist yet.
     *
     * @param tables a JSON array of tables
     * @return a JSON array: `table`, the entries in the order in which they are written, and `file`, in Base64
     */
    public static String write(String tables) throws Exception {
        List<Object> results = new ArrayList<>();
        for (JsonNode entries : JSON.readTree(tables)) {
            ConcurrentMap<MessageQueue, AtomicLong> table = new OffsetSerializeWrapper().getOffsetTable();
            for (JsonNode entry : entries) {
                table.put(Form.queue(entry), new AtomicLong(entry.get(3).longValue()));
            }
            OffsetSerializeWrapper wrapper = new OffsetSerializeWrapper();
            wrapper.setOffsetTable(table);
            Path file = Files.createTempFile("offsets", ".json");
            Files.delete(file);
            MixAll.string2File(wrapper.toJson(true), file.toString());
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("table", listed(table));
            result.put("file", Base64.getEncoder().encodeToString(Files.readAllBytes(file)));
            Files.delete(file);
            results.add(result);
        }
        return JSON.writeValueAsString(results);
    }

    /** A case of the golden family `offsets_file`. */
    static Object answer(JsonNode asked) throws Exception {
        byte[] main = content(asked.get("main"));
        byte[] bak = content(asked.get("bak"));
        clear();
        put("offsets.json", main);
        put("offsets.json.bak", bak);
        if (asked.get("op").textValue().equals("write")) {
            return written(asked);
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("parse_main", main == null ? "missing" : sorted(parsed(text(main))));
        result.put("parse_bak", bak == null ? "missing" : sorted(parsed(text(bak))));
        Object stored = sorted(stored());
        result.put("store", stored);
        Object loaded = sorted(loaded());
        boolean empty = "none".equals(stored) || "null_table".equals(stored);
        if (!loaded.equals(empty ? List.of() : stored)) {
            result.put("load", loaded);
        }
        List<Object> offsets = new ArrayList<>();
        for (MessageQueue queue : Form.queues(asked.get("ask"))) {
            LocalFileOffsetStore store = new LocalFileOffsetStore(CLIENT, GROUP);
            offsets.add(Form.outcome(() -> store.readOffset(queue, ReadOffsetType.READ_FROM_STORE)));
        }
        result.put("read_from_store", offsets);
        return result;
    }

    private static Object written(JsonNode asked) throws IOException {
        LocalFileOffsetStore store = new LocalFileOffsetStore(CLIENT, GROUP);
        Map<String, Object> result = new LinkedHashMap<>();
        try {
            if (asked.path("load").asBoolean()) {
                store.load();
            }
            for (JsonNode update : asked.path("update")) {
                store.updateOffset(Form.queue(update), update.get(3).longValue(), update.path(4).asBoolean());
            }
            for (JsonNode queue : asked.path("remove")) {
                store.removeOffset(Form.queue(queue));
            }
            if (Form.given(asked.get("persist_all"))) {
                store.persistAll(new HashSet<>(Form.queues(asked.get("persist_all"))));
            }
            for (JsonNode queue : asked.path("persist")) {
                store.persist(Form.queue(queue));
            }
        } catch (Exception thrown) {
            result.put("error", thrown.getClass().getSimpleName());
        }
        Map<String, Path> files = new TreeMap<>();
        try (Stream<Path> left = Files.list(FOLDER)) {
            left.forEach(file -> files.put(file.getFileName().toString(), file));
        }
        result.put("main", field(files.remove("offsets.json")));
        result.put("bak", field(files.remove("offsets.json.bak")));
        if (!files.isEmpty()) {
            result.put("others", List.copyOf(files.keySet()));
        }
        return result;
    }

    private static Object parsed(String text) {
        if (text.isEmpty()) {
            return "empty";
        }
        try {
            OffsetSerializeWrapper wrapper = OffsetSerializeWrapper.fromJson(text, OffsetSerializeWrapper.class);
            if (wrapper == null) {
                return "null";
            }
            return wrapper.getOffsetTable() == null ? "null_table" : listed(wrapper.getOffsetTable());
        } catch (Exception | StackOverflowError thrown) {
            return failed(thrown);
        }
    }

    /** In the order of iteration; "foreign" if generics have let something else through. */
    private static Object listed(ConcurrentMap<MessageQueue, AtomicLong> table) {
        List<Object> entries = new ArrayList<>();
        try {
            for (Map.Entry<MessageQueue, AtomicLong> entry : table.entrySet()) {
                MessageQueue queue = entry.getKey();
                entries.add(Arrays.asList(
                    queue.getTopic(), queue.getBrokerName(), queue.getQueueId(), entry.getValue().get()));
            }
        } catch (ClassCastException foreign) {
            return "foreign";
        }
        return entries;
    }

    /** Messages are left out: most are the runtime's, and a reader is not held to them. */
    private static Map<String, Object> failed(Throwable thrown) {
        return Map.of("error", Map.of("type", thrown.getClass().getSimpleName()));
    }

    private static Object stored() throws ReflectiveOperationException {
        Method method = LocalFileOffsetStore.class.getDeclaredMethod("readLocalOffset");
        method.setAccessible(true);
        try {
            OffsetSerializeWrapper wrapper =
                (OffsetSerializeWrapper) method.invoke(new LocalFileOffsetStore(CLIENT, GROUP));
            if (wrapper == null) {
                return "none";
            }
            return wrapper.getOffsetTable() == null ? "null_table" : listed(wrapper.getOffsetTable());
        } catch (InvocationTargetException thrown) {
            return Form.error(thrown);
        }
    }

    /** What the store has in memory after `load()`, in the order of the table that it read. */
    private static Object loaded() throws ReflectiveOperationException {
        LocalFileOffsetStore store = new LocalFileOffsetStore(CLIENT, GROUP);
        Map<MessageQueue, Long> memory;
        try {
            store.load();
            memory = store.cloneOffsetTable(null);
        } catch (Exception thrown) {
            return Form.error(thrown);
        }
        Object stored = stored();
        if (!(stored instanceof List)) {
            return memory.isEmpty() ? List.of() : "memory differs";
        }
        List<Object> entries = new ArrayList<>();
        for (Object entry : (List<?>) stored) {
            List<?> fields = (List<?>) entry;
            MessageQueue queue =
                new MessageQueue((String) fields.get(0), (String) fields.get(1), (Integer) fields.get(2));
            entries.add(Arrays.asList(fields.get(0), fields.get(1), fields.get(2), memory.get(queue)));
        }
        return entries.size() == memory.size() ? entries : "memory differs";
    }

    private static void clear() throws IOException {
        Files.createDirectories(FOLDER);
        try (Stream<Path> left = Files.list(FOLDER)) {
            for (Path file : (Iterable<Path>) left::iterator) {
                Files.delete(file);
            }
        }
    }

    private static void put(String name, byte[] content) throws IOException {
        if (content != null) {
            Files.write(FOLDER.resolve(name), content);
        }
    }

    /** A table by topic, broker and queue id; anything else as it is. */
    private static Object sorted(Object result) {
        if (!(result instanceof List)) {
            return result;
        }
        List<List<?>> entries = new ArrayList<>();
        ((List<?>) result).forEach(entry -> entries.add((List<?>) entry));
        entries.sort(Comparator
            .comparing((List<?> entry) -> (String) entry.get(0), NULLS_FIRST)
            .thenComparing(entry -> (String) entry.get(1), NULLS_FIRST)
            .thenComparing(entry -> (Integer) entry.get(2)));
        return entries;
    }

    /** The other way round: what a file holds. */
    private static Object field(Path file) throws IOException {
        if (file == null) {
            return null;
        }
        byte[] content = Files.readAllBytes(file);
        String text = new String(content, StandardCharsets.UTF_8);
        return Arrays.equals(text.getBytes(StandardCharsets.UTF_8), content)
            ? text
            : Map.of("base64", Base64.getEncoder().encodeToString(content));
    }

    private static byte[] content(JsonNode field) {
        if (!Form.given(field)) {
            return null;
        }
        return field.isTextual()
            ? field.textValue().getBytes(StandardCharsets.UTF_8)
            : Base64.getDecoder().decode(field.get("base64").textValue());
    }

    /** As `MixAll.file2String` decodes; `answer` asks that method itself, through the store. */
    private static String text(byte[] content) {
        return Release.FILES_ARE_UTF_8 ? new String(content, StandardCharsets.UTF_8) : new String(content);
    }

    /** The constructor of a client starts threads; the store wants only its id. */
    private static MQClientInstance client() {
        try {
            Field theUnsafe = Unsafe.class.getDeclaredField("theUnsafe");
            theUnsafe.setAccessible(true);
            MQClientInstance client =
                (MQClientInstance) ((Unsafe) theUnsafe.get(null)).allocateInstance(MQClientInstance.class);
            Field clientId = MQClientInstance.class.getDeclaredField("clientId");
            clientId.setAccessible(true);
            clientId.set(client, CLIENT_ID);
            return client;
        } catch (ReflectiveOperationException gone) {
            throw new AssertionError(gone);
        }
    }
}
