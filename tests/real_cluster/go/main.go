// Command goclients runs push consumers of rocketmq-client-go for a test: its argument is a JSON list of them.
//
// When all have started it prints a line, and then for each line of its input what was consumed since the line before: a
// JSON list of [group, instance, topic, store host, queue id]. It ends with its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type member struct {
	NameServers      []string `json:"name_servers"`
	Group            string   `json:"group"`
	Topic            string   `json:"topic"`
	Instance         string   `json:"instance"`
	Strategy         string   `json:"strategy"`
	VirtualNodeCount int      `json:"virtual_node_count"`
	ConsumerIdcs     []string `json:"consumer_idcs"`
}

type read struct {
	group, instance, topic, storeHost string
	queueID                           int
}

func (m member) strategy() consumer.AllocateStrategy {
	switch m.Strategy {
	case "AVG":
		return consumer.AllocateByAveragely
	case "CONSISTENT_HASH":
		return consumer.AllocateByConsistentHash(m.VirtualNodeCount)
	case "MACHINE_ROOM":
		return consumer.AllocateByMachineRoom(m.ConsumerIdcs)
	case "MACHINE_ROOM_NEARBY":
		return consumer.AllocateByMachineNearby
	}
	panic("no strategy " + m.Strategy)
}

func main() {
	rlog.SetLogLevel("error")
	var members []member
	fail(json.Unmarshal([]byte(os.Args[1]), &members))
	var lock sync.Mutex
	consumed := map[read]bool{}
	for _, m := range members {
		m := m
		started, err := rocketmq.NewPushConsumer(
			consumer.WithGroupName(m.Group),
			consumer.WithInstance(m.Instance),
			consumer.WithNameServer(m.NameServers),
			consumer.WithStrategy(m.strategy()),
			consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		)
		fail(err)
		fail(started.Subscribe(m.Topic, consumer.MessageSelector{},
			func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
				lock.Lock()
				defer lock.Unlock()
				for _, message := range messages {
					consumed[read{m.Group, m.Instance, message.Topic, message.StoreHost, message.Queue.QueueId}] = true
				}
				return consumer.ConsumeSuccess, nil
			}))
		fail(started.Start())
	}
	fmt.Println("started")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		answer := [][]interface{}{}
		lock.Lock()
		for one := range consumed {
			answer = append(answer, []interface{}{one.group, one.instance, one.topic, one.storeHost, one.queueID})
		}
		consumed = map[read]bool{}
		lock.Unlock()
		fail(json.NewEncoder(os.Stdout).Encode(answer))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
