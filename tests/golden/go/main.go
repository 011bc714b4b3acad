// Command goldengo writes golden vectors of the Go client's allocation strategies to standard output: seeded
// random groups, each asked for every client, answered by the functions of rocketmq-client-go themselves.
//
//	go run . | gzip -9n > ../go_allocate.jsonl.gz
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const (
	seed      = 20261121
	caseCount = 900
)

type answer struct {
	Positions []int  `json:"positions"`
	Panic     string `json:"panic,omitempty"`
}

type goldenCase struct {
	ID           string          `json:"id"`
	Strategy     string          `json:"strategy"`
	VirtualNodes int             `json:"virtual_nodes"`
	ConsumerIdcs []string        `json:"consumeridcs"`
	MqAll        [][]interface{} `json:"mq_all"`
	CidAll       []string        `json:"cid_all"`
	Asked        []string        `json:"asked"`
	Answers      []answer        `json:"answers"`
}

var (
	brokers = []string{"broker-a", "broker-10", "broker-2", "room1@broker-a", "room1@c", "room2@b", "room1@b@", "@b", "@", "\uff21\U0001f600"}
	rooms   = []string{"room1", "room1", "room1", "room2", "", "@"}
	clients = []string{"10.0.0.%d@1", "10.0.0.%d@1#%d00", "\U0001f600%d", "\uffee%d"}
)

func main() {
	rlog.SetLogLevel("fatal")
	random := rand.New(rand.NewSource(seed))
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for number := 0; number < caseCount; number++ {
		if err := out.Encode(makeCase(random, number)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func makeCase(random *rand.Rand, number int) goldenCase {
	names := []string{"AVG", "AVG_BY_CIRCLE", "MACHINE_ROOM", "MACHINE_ROOM", "MACHINE_ROOM_NEARBY", "CONSISTENT_HASH", "CONSISTENT_HASH"}
	result := goldenCase{
		ID:           fmt.Sprintf("go-%04d", number),
		Strategy:     names[random.Intn(len(names))],
		VirtualNodes: []int{10, 10, 1, 3, 50, 0, -1}[random.Intn(7)],
		ConsumerIdcs: []string{},
		MqAll:        [][]interface{}{},
		CidAll:       []string{},
	}
	for count := random.Intn(6); count > 0; count-- {
		result.ConsumerIdcs = append(result.ConsumerIdcs, rooms[random.Intn(len(rooms))])
	}
	queues := []*primitive.MessageQueue{}
	for _, at := range random.Perm(len(brokers))[:random.Intn(5)] {
		for id := random.Intn(7); id >= 0; id-- {
			queues = append(queues, &primitive.MessageQueue{Topic: "TopicTest", BrokerName: brokers[at], QueueId: id})
		}
	}
	sort.SliceStable(queues, func(i, j int) bool {
		if queues[i].BrokerName != queues[j].BrokerName {
			return queues[i].BrokerName < queues[j].BrokerName
		}
		return queues[i].QueueId < queues[j].QueueId
	})
	position := map[*primitive.MessageQueue]int{}
	for at, queue := range queues {
		position[queue] = at
		result.MqAll = append(result.MqAll, []interface{}{queue.Topic, queue.BrokerName, queue.QueueId})
	}
	for count := random.Intn(9); count > 0; count-- {
		pattern := clients[random.Intn(len(clients))]
		id := fmt.Sprintf(pattern, random.Intn(12))
		if pattern == clients[1] {
			id = fmt.Sprintf(pattern, random.Intn(12), random.Intn(3))
		}
		result.CidAll = append(result.CidAll, id)
		if random.Intn(8) == 0 {
			result.CidAll = append(result.CidAll, id)
		}
	}
	sort.Strings(result.CidAll)
	for at, id := range result.CidAll {
		if at == 0 || result.CidAll[at-1] != id {
			result.Asked = append(result.Asked, id)
		}
	}
	result.Asked = append(result.Asked, "absent@client", "")
	for _, id := range result.Asked {
		result.Answers = append(result.Answers, ask(result, id, queues, position))
	}
	return result
}

func ask(asked goldenCase, id string, queues []*primitive.MessageQueue, position map[*primitive.MessageQueue]int) (got answer) {
	got.Positions = []int{}
	defer func() {
		if thrown := recover(); thrown != nil {
			got = answer{Positions: []int{}, Panic: fmt.Sprint(thrown)}
		}
	}()
	for _, queue := range strategyOf(asked)("G", id, queues, asked.CidAll) {
		got.Positions = append(got.Positions, position[queue])
	}
	return got
}

func strategyOf(asked goldenCase) consumer.AllocateStrategy {
	switch asked.Strategy {
	case "AVG":
		return consumer.AllocateByAveragely
	case "AVG_BY_CIRCLE":
		return consumer.AllocateByAveragelyCircle
	case "MACHINE_ROOM":
		return consumer.AllocateByMachineRoom(asked.ConsumerIdcs)
	case "MACHINE_ROOM_NEARBY":
		return consumer.AllocateByMachineNearby
	default:
		return consumer.AllocateByConsistentHash(asked.VirtualNodes)
	}
}
