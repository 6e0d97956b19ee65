package fakeaws

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// mostInFlight is the maximum number of messages in flight in a standard queue (SQS Developer
// Guide, "Message quotas").
const mostInFlight = 120_000

// SQS simulates standard queues that are fair to all message groups.
type SQS struct {
	clock  Clock
	random *rand.Rand
	queues map[string]*Queue
	// Twice is the fraction of messages that are delivered twice. Late is the fraction that arrives
	// with a delay of up to Lateness.
	Twice, Late float64
	Lateness    time.Duration
}

type Queue struct {
	// Ready, if not nil, is called when a message can be received.
	Ready func()
	// Empty, if not nil, is called when a receive finds no message.
	Empty func()

	groups   map[string]*group
	order    []*group // groups that have messages to receive
	inFlight map[string]*message
	waiting  int
	received int64
}

type group struct {
	name     string
	ready    []*message
	inFlight int
	served   int64
	listed   bool
}

type message struct {
	group    *group
	body     string
	receives int
	// receipt is the receipt handle of the last receive. until is when its lease ends.
	receipt string
	until   time.Time
}

// mostReceives is the number of receives after which a message moves to the dead-letter queue, as in the deployment.
const mostReceives = 10

func newSQS(clock Clock, random *rand.Rand) *SQS {
	return &SQS{clock: clock, random: random, queues: map[string]*Queue{}}
}

// Queue returns the queue with the given URL and creates it if necessary.
func (s *SQS) Queue(url string) *Queue {
	q := s.queues[url]
	if q == nil {
		q = &Queue{groups: map[string]*group{}, inFlight: map[string]*message{}}
		s.queues[url] = q
	}
	return q
}

// Waiting returns the number of messages that can be received now.
func (q *Queue) Waiting() int { return q.waiting }

func (s *SQS) Send(url, groupName, body string) {
	q := s.Queue(url)
	g := q.groups[groupName]
	if g == nil {
		g = &group{name: groupName}
		q.groups[groupName] = g
	}
	m := &message{group: g, body: body}
	if s.Late > 0 && s.random.Float64() < s.Late {
		s.clock.After(time.Duration(s.random.Int64N(int64(s.Lateness))), func() { q.offer(m) })
		return
	}
	q.offer(m)
}

func (q *Queue) offer(m *message) {
	m.receipt = ""
	m.group.ready = append(m.group.ready, m)
	if !m.group.listed {
		m.group.listed = true
		q.order = append(q.order, m.group)
	}
	q.waiting++
	if q.Ready != nil {
		q.Ready()
	}
}

// pick returns the group from which the next message is received: the group with the fewest
// messages in flight or, among several, the group that was served longest ago.
func (q *Queue) pick() *group {
	var best *group
	kept := q.order[:0]
	for _, g := range q.order {
		if len(g.ready) == 0 {
			g.listed = false
			continue
		}
		kept = append(kept, g)
		if best == nil || g.inFlight < best.inFlight || g.inFlight == best.inFlight && g.served < best.served {
			best = g
		}
	}
	q.order = kept
	return best
}

func (s *SQS) call(input any) (answer any, err error, known bool) {
	switch in := input.(type) {
	case *sqs.ReceiveMessageInput:
		answer = s.receive(s.Queue(*in.QueueUrl), time.Duration(in.VisibilityTimeout)*time.Second)
	case *sqs.ChangeMessageVisibilityInput:
		answer = &sqs.ChangeMessageVisibilityOutput{}
		err = s.change(s.Queue(*in.QueueUrl), *in.ReceiptHandle, time.Duration(in.VisibilityTimeout)*time.Second)
	case *sqs.DeleteMessageInput:
		s.Queue(*in.QueueUrl).end(*in.ReceiptHandle)
		answer = &sqs.DeleteMessageOutput{}
	case *sqs.GetQueueAttributesInput:
		answer = attributes(s.Queue(*in.QueueUrl))
	default:
		return nil, nil, false
	}
	return answer, err, true
}

func attributes(q *Queue) *sqs.GetQueueAttributesOutput {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		string(types.QueueAttributeNameApproximateNumberOfMessages):           strconv.Itoa(q.waiting),
		string(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible): strconv.Itoa(len(q.inFlight)),
		string(types.QueueAttributeNameApproximateNumberOfMessagesDelayed):    "0",
	}}
}

func (s *SQS) receive(q *Queue, lease time.Duration) *sqs.ReceiveMessageOutput {
	for {
		g := q.pick()
		if g == nil || len(q.inFlight) >= mostInFlight {
			if q.Empty != nil {
				q.Empty()
			}
			return &sqs.ReceiveMessageOutput{}
		}
		m := g.ready[0]
		g.ready = g.ready[1:]
		q.waiting--
		q.received++
		m.receives++
		if m.receives > mostReceives {
			continue
		}
		g.served = q.received
		g.inFlight++
		m.receipt = fmt.Sprintf("r%d", q.received)
		q.inFlight[m.receipt] = m
		s.lease(q, m, lease)
		if s.Twice > 0 && s.random.Float64() < s.Twice {
			copied := &message{group: g, body: m.body, receives: m.receives}
			s.clock.After(time.Second, func() { q.offer(copied) })
		}
		return &sqs.ReceiveMessageOutput{Messages: []types.Message{{
			Body: aws.String(m.body), ReceiptHandle: aws.String(m.receipt),
		}}}
	}
}

// lease makes a message available again after the given time, unless it has been deleted or leased again.
func (s *SQS) lease(q *Queue, m *message, length time.Duration) {
	m.until = s.clock.Now().Add(length)
	receipt, until := m.receipt, m.until
	s.clock.After(length, func() {
		if m.receipt == receipt && m.until.Equal(until) && q.inFlight[receipt] == m {
			q.end(receipt)
			q.offer(m)
		}
	})
}

func (q *Queue) end(receipt string) {
	if m := q.inFlight[receipt]; m != nil {
		delete(q.inFlight, receipt)
		m.group.inFlight--
	}
}

func (s *SQS) change(q *Queue, receipt string, visibleIn time.Duration) error {
	m := q.inFlight[receipt]
	if m == nil {
		return &types.MessageNotInflight{}
	}
	if visibleIn > 0 {
		s.lease(q, m, visibleIn)
		return nil
	}
	q.end(receipt)
	q.offer(m)
	return nil
}
