// Command offsets answers the cases of go_offsets_file with the types of rocketmq-client-go and the library that its
// local offset store reads and writes with. It reads JSON lines, whose answers it does not look at:
//
//	gunzip -c ../go_offsets_file.jsonl.gz | go run ./offsets | gzip -9n > answered.gz
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	jsoniter "github.com/json-iterator/go"
)

// Names are bytes to Go, so they travel as such: in Base64.
type entry struct {
	Topic      []byte `json:"topic"`
	BrokerName []byte `json:"broker_name"`
	QueueID    int    `json:"queue_id"`
	Offset     int64  `json:"offset"`
}

// A case has a file that is to be read, or an entry that is to be written.
type goldenCase struct {
	ID      string  `json:"id"`
	Content []byte  `json:"content,omitempty"`
	Entry   *entry  `json:"entry,omitempty"`
	Table   []entry `json:"table,omitempty"`
	Refused bool    `json:"refused,omitempty"`
	Written []byte  `json:"written,omitempty"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var asked goldenCase
		check(json.Unmarshal(in.Bytes(), &asked))
		answer := goldenCase{ID: asked.ID, Content: asked.Content, Entry: asked.Entry}
		if asked.Entry == nil {
			answer.Table, answer.Refused = read(asked.Content)
		} else {
			answer.Written = write(*asked.Entry)
		}
		check(out.Encode(answer))
	}
	check(in.Err())
}

// As localFileOffsetStore.load does it: the map that is made before is the one that is kept.
func read(content []byte) ([]entry, bool) {
	table := make(map[consumer.MessageQueueKey]int64)
	wrapper := consumer.OffsetSerializeWrapper{OffsetTable: table}
	if jsoniter.Unmarshal(content, &wrapper) != nil {
		return nil, true
	}
	var entries []entry
	for queue, offset := range table {
		entries = append(entries, entry{[]byte(queue.Topic), []byte(queue.BrokerName), queue.QueueId, offset})
	}
	sort.Slice(entries, func(i, j int) bool {
		a, b := entries[i], entries[j]
		if string(a.Topic) != string(b.Topic) {
			return string(a.Topic) < string(b.Topic)
		}
		if string(a.BrokerName) != string(b.BrokerName) {
			return string(a.BrokerName) < string(b.BrokerName)
		}
		return a.QueueID < b.QueueID
	})
	return entries, false
}

func write(one entry) []byte {
	queue := consumer.MessageQueueKey{Topic: string(one.Topic), BrokerName: string(one.BrokerName), QueueId: one.QueueID}
	content, err := jsoniter.Marshal(consumer.OffsetSerializeWrapper{
		OffsetTable: map[consumer.MessageQueueKey]int64{queue: one.Offset},
	})
	check(err)
	return content
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
