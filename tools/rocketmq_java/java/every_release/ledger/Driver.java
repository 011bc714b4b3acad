package ledger;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.util.ArrayList;
import java.util.List;

/**
 * What Python calls: many cases in, what this release's classes answer to each of them out.
 *
 * Belongs here: the text form, and which class asks about which family. Does not belong here: any rule of RocketMQ;
 * every answer comes from RocketMQ's own classes.
 */
public final class Driver {
    /** Only ASCII leaves, because a lone surrogate would not survive as UTF-8 on its way. */
    private static final ObjectMapper JSON =
        JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

    private Driver() {
    }

    /**
     * @param family the golden family that the cases belong to
     * @param cases a JSON array of cases
     * @return a JSON array of results in the same order, null where this release has nothing that could be asked
     */
    public static String answer(String family, String cases) throws Exception {
        List<Object> answers = new ArrayList<>();
        for (JsonNode asked : JSON.readTree(cases)) {
            answers.add(answer(family, asked));
        }
        return JSON.writeValueAsString(answers);
    }

    private static Object answer(String family, JsonNode asked) throws Exception {
        switch (family) {
            case "allocate":
                return Allocation.answer(asked);
            case "rebalance":
                return Round.answer(asked);
            case "queues_from_route":
                return Routes.answer(asked);
            case "producer_select":
                return Selection.answer(asked);
            case "pop":
                return Release.pop(asked);
            case "hash":
                return Primitives.answer(asked);
            case "offsets_file":
                return OffsetFiles.answer(asked);
            default:
                throw new IllegalArgumentException("no family " + family);
        }
    }
}
