package dynamo_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/adapter/dynamo"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
	"cutroom/shared/testkit/conformance"
)

// slotTable is a table of sessions, with a clock that stands still.
type slotTable struct {
	*testing.T
	records *dynamodb.Client
	table   string
	clock   *storeClock
}

func newSlotTable(t *testing.T) *slotTable {
	cloud := local.Cloud(t)
	clock := &storeClock{now: time.Now()}
	config := cloud.Config()
	config.HTTPClient = &http.Client{Transport: clock}
	return &slotTable{t, dynamo.NewClient(config), cloud.MakeTable(t, "sessions"), clock}
}

// process returns what one process has of the table.
func (s *slotTable) process() *dynamo.Sessions { return dynamo.NewSessions(s.records, s.table) }

// items returns how many slots the items of accounts have, by their ids.
func (s *slotTable) items() map[string]int {
	s.Helper()
	found, err := s.records.Scan(s.Context(), &dynamodb.ScanInput{TableName: &s.table})
	conformance.OK(s, err)
	all := map[string]int{}
	for _, i := range found.Items {
		id := i["id"].(*types.AttributeValueMemberS).Value
		for name := range i {
			if strings.HasPrefix(name, "slot/") {
				all[id]++
			}
		}
	}
	return all
}

// An account with a high limit has its sessions in many items, of which none is large. Takers
// of several processes take exactly as many as the limit says, and any process frees them.
func TestSpreadSessionsAreExact(t *testing.T) {
	s := newSlotTable(t)
	const limit = 400
	processes := []*dynamo.Sessions{s.process(), s.process(), s.process()}
	for i, p := range processes {
		conformance.OK(t, p.Begin(t.Context(), fmt.Sprint("epoch", i), ""))
	}
	slotOf := func(i int) session.Slot {
		return session.Slot{ID: fmt.Sprint("session_", i), Account: "acme", Epoch: fmt.Sprint("epoch", i%3)}
	}
	take := func(from, n int) []int {
		t.Helper()
		won := conformance.Winners(t, conformance.Race(n, func(i int) error {
			return processes[(from+i)%3].Take(t.Context(), slotOf(from+i), limit)
		}), fault.Limited)
		for i := range won {
			won[i] += from
		}
		return won
	}
	won := take(0, limit+100)
	if len(won) != limit {
		t.Errorf("%d slots were taken, want %d", len(won), limit)
	}
	items := s.items()
	if most := slices.Max(slices.Collect(maps.Values(items))); len(items) < 8 || most > 150 {
		t.Errorf("the items have %v slots", items)
	}
	// The first hundred are freed by a process that has not taken them.
	stranger := s.process()
	for _, err := range conformance.Race(100, func(i int) error { return stranger.Free(t.Context(), slotOf(won[i])) }) {
		conformance.OK(t, err)
	}
	active, err := stranger.Active(t.Context(), "acme")
	conformance.OK(t, err)
	conformance.Same(t, "the slots after", active, limit-100)
	if again := take(1000, 150); len(again) != 100 {
		t.Errorf("%d slots were taken of 100 that were free", len(again))
	}
}

// An account without a limit is not ended by what one item takes.
func TestSessionsWithoutLimit(t *testing.T) {
	s := newSlotTable(t)
	p := s.process()
	conformance.OK(t, p.Begin(t.Context(), "epoch", ""))
	const n = 200
	for _, err := range conformance.Race(n, func(i int) error {
		return p.Take(t.Context(), session.Slot{ID: fmt.Sprint("session_", i), Account: "acme", Epoch: "epoch"}, 0)
	}) {
		conformance.OK(t, err)
	}
	active, err := p.Active(t.Context(), "acme")
	conformance.OK(t, err)
	conformance.Same(t, "the slots", active, n)
	if most := slices.Max(slices.Collect(maps.Values(s.items()))); most > 60 {
		t.Errorf("an item has %d of the slots", most)
	}
}

// earlier does what a version without parts does.
type earlier struct{ *slotTable }

func (s earlier) take(slot session.Slot, limit int) error {
	_, err := s.records.TransactWriteItems(s.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{
			{ConditionCheck: &types.ConditionCheck{
				TableName: &s.table, Key: keyed("lease/" + slot.Epoch),
				ConditionExpression: aws.String("attribute_exists(id) AND attribute_not_exists(dead)"),
			}},
			{Update: &types.Update{
				TableName: &s.table, Key: keyed("account/" + slot.Account),
				UpdateExpression: aws.String("SET #slot = :epoch ADD open_slots :one"),
				ConditionExpression: aws.String("attribute_not_exists(#slot) AND (attribute_not_exists(open_slots) OR " +
					"open_slots < :limit) AND (attribute_not_exists(#waiting) OR #waiting < :one)"),
				ExpressionAttributeNames: map[string]string{"#slot": "slot/" + slot.ID, "#waiting": "waiting"},
				ExpressionAttributeValues: map[string]types.AttributeValue{
					":epoch": &types.AttributeValueMemberS{Value: slot.Epoch},
					":one":   &types.AttributeValueMemberN{Value: "1"},
					":limit": &types.AttributeValueMemberN{Value: fmt.Sprint(limit)},
				},
			}},
		},
	})
	if err != nil {
		return session.ErrNoSlot
	}
	return nil
}

func (s earlier) free(slot session.Slot) {
	s.Helper()
	_, err := s.records.UpdateItem(s.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: keyed("account/" + slot.Account),
		UpdateExpression:         aws.String("REMOVE #slot ADD open_slots :less"),
		ConditionExpression:      aws.String("#slot = :epoch"),
		ExpressionAttributeNames: map[string]string{"#slot": "slot/" + slot.ID},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":epoch": &types.AttributeValueMemberS{Value: slot.Epoch}, ":less": &types.AttributeValueMemberN{Value: "-1"},
		},
	})
	conformance.OK(s, err)
}

func keyed(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
}

// During a deploy an earlier version takes slots of the same account: together they never take
// more than the limit, what it has taken goes on counting, and what it frees is free.
func TestSpreadSessionsBesideAnEarlierVersion(t *testing.T) {
	s := newSlotTable(t)
	old, p := earlier{s}, s.process()
	conformance.OK(t, p.Begin(t.Context(), "epoch", ""))
	slotOf := func(kind string, i int) session.Slot {
		return session.Slot{ID: fmt.Sprint("session_", kind, i), Account: "acme", Epoch: "epoch"}
	}
	active := func(want int) {
		t.Helper()
		n, err := p.Active(t.Context(), "acme")
		conformance.OK(t, err)
		conformance.Same(t, "the slots", n, want)
	}
	const limit, before = 300, 120
	for i := range before {
		conformance.OK(t, old.take(slotOf("before", i), limit))
	}
	active(before)
	kinds := []string{"old", "new"}
	errs := conformance.Race(260, func(i int) error {
		if slot := slotOf(kinds[i%2], i); i%2 == 1 {
			return p.Take(t.Context(), slot, limit)
		} else {
			return old.take(slot, limit)
		}
	})
	won := len(conformance.Winners(t, errs, fault.Limited))
	if before+won > limit {
		t.Fatalf("%d slots were taken, of %d", before+won, limit)
	}
	active(before + won)
	// The later version finds every slot that is left.
	for i := before + won; i < limit; i++ {
		conformance.OK(t, p.Take(t.Context(), slotOf("last", i), limit))
	}
	conformance.Fails(t, p.Take(t.Context(), slotOf("last", limit), limit), fault.Limited)
	if old.take(slotOf("last", limit), limit) == nil {
		t.Error("the earlier version took a slot of a full account")
	}
	active(limit)
	old.free(slotOf("before", 0))
	conformance.OK(t, p.Free(t.Context(), slotOf("before", 1)))
	active(limit - 2)
	for i := range 2 {
		conformance.OK(t, p.Take(t.Context(), slotOf("after", i), limit))
	}
	conformance.Fails(t, p.Take(t.Context(), slotOf("after", 2), limit), fault.Limited)
}

// slotModel is what an account is said to be.
type slotModel struct {
	open map[session.Slot]bool
	line []session.Slot
}

// step makes a random call, of which the model knows the outcome.
func (m *slotModel) step(s *slotTable, random *rand.Rand, number int, p *dynamo.Sessions, epochs []string) {
	s.Helper()
	limit := []int{4, 7, 7, 7, 9, 0}[random.IntN(6)]
	within := func(before int) bool { return limit == 0 || len(m.open)+before < limit }
	slot := session.Slot{ID: fmt.Sprint("session_", number), Account: "acme", Epoch: epochs[random.IntN(len(epochs))]}
	what, refused := "", false
	var err error
	switch draw := random.IntN(20); {
	case draw < 9:
		what, err = fmt.Sprint("take of ", limit), p.Take(s.Context(), slot, limit)
		if refused = !within(0) || limit > 0 && len(m.line) > 0; !refused {
			m.open[slot] = true
		}
	case draw < 14 && len(m.open) > 0:
		all := slices.SortedFunc(maps.Keys(m.open), func(a, b session.Slot) int { return strings.Compare(a.ID, b.ID) })
		freed := all[random.IntN(len(all))]
		what, err = "free", p.Free(s.Context(), freed)
		delete(m.open, freed)
	case draw < 15:
		what = "join"
		_, err = p.Join(s.Context(), slot, 0, 100)
		m.line = append(m.line, slot)
	case len(m.line) > 0:
		at := random.IntN(min(2, len(m.line)))
		ticket := m.line[at]
		if draw == 19 {
			what, err = "leave", p.Leave(s.Context(), ticket)
		} else {
			what, err = fmt.Sprint("redeem of ", limit), p.Redeem(s.Context(), ticket, limit)
			if refused = !within(at); !refused {
				m.open[ticket] = true
			}
		}
		if !refused {
			m.line = slices.Delete(m.line, at, at+1)
		}
	}
	if refused != fault.Is(err, fault.Limited) || err != nil && !refused {
		s.Fatalf("step %d: %s with %d open and %d in line: %v", number, what, len(m.open), len(m.line), err)
	}
	active, err := p.Active(s.Context(), "acme")
	conformance.OK(s, err)
	if active != len(m.open) {
		s.Fatalf("step %d: after %s %d slots are open, want %d", number, what, active, len(m.open))
	}
}

// Calls of several processes one after another, under limits that differ, do to an account with
// parts exactly what they would do to one number and one line.
func TestSpreadSessionsAreOneAccount(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s, random := newSlotTable(t), rand.New(rand.NewPCG(seed, 1))
			processes := []*dynamo.Sessions{s.process().SpreadSoon(), s.process().SpreadSoon()}
			epochs := []string{"one", "two", "three"}
			for _, epoch := range epochs {
				conformance.OK(t, processes[0].Begin(t.Context(), epoch, ""))
			}
			m := &slotModel{open: map[session.Slot]bool{}}
			most := 0
			for number := range 300 {
				m.step(s, random, number, processes[random.IntN(2)], epochs)
				most = max(most, len(s.items()))
			}
			if most < 3 {
				t.Errorf("the slots were in %d items at most", most)
			}
		})
	}
}

// Whatever calls race, the account's number is that of its own slots and of the room of its
// parts, in which no more are taken, and all of the limit is free at the end.
func TestSpreadSessionsKeepTheirSums(t *testing.T) {
	s := newSlotTable(t)
	processes := []*dynamo.Sessions{s.process().SpreadSoon(), s.process().SpreadSoon(), s.process().SpreadSoon()}
	conformance.OK(t, processes[0].Begin(t.Context(), "epoch", ""))
	refusedOr := func(err error) error {
		if fault.Is(err, fault.Limited) || fault.Is(err, fault.Unavailable) {
			return nil
		}
		return err
	}
	for _, err := range conformance.Race(9, func(racer int) error {
		p, random := processes[racer%3], rand.New(rand.NewPCG(uint64(racer), 2))
		for turn := range 20 {
			slot := session.Slot{ID: fmt.Sprint("session_", racer, "x", turn), Account: "acme", Epoch: "epoch"}
			limit := []int{6, 9, 9, 12, 0}[random.IntN(5)]
			var err error
			if random.IntN(4) == 0 {
				if _, err = p.Join(t.Context(), slot, 0, 100); err == nil {
					err = refusedOr(p.Redeem(t.Context(), slot, limit))
				}
				if err == nil {
					err = p.Leave(t.Context(), slot)
				}
			} else {
				err = refusedOr(p.Take(t.Context(), slot, limit))
			}
			if err == nil && random.IntN(3) > 0 {
				err = p.Free(t.Context(), slot)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}) {
		conformance.OK(t, err)
	}
	s.checkSums()
	for racer := range 9 {
		for turn := range 20 {
			slot := session.Slot{ID: fmt.Sprint("session_", racer, "x", turn), Account: "acme", Epoch: "epoch"}
			conformance.OK(t, processes[0].Free(t.Context(), slot))
		}
	}
	for i := range 10 {
		slot := session.Slot{ID: fmt.Sprint("last_", i), Account: "acme", Epoch: "epoch"}
		if err := processes[i%3].Take(t.Context(), slot, 9); fault.Is(err, fault.Limited) != (i == 9) {
			t.Errorf("slot %d of 9: %v", i+1, err)
		}
	}
	s.checkSums()
}

// checkSums compares the numbers of the account's items with their slots.
func (s *slotTable) checkSums() {
	s.Helper()
	found, err := s.records.Scan(s.Context(), &dynamodb.ScanInput{TableName: &s.table})
	conformance.OK(s, err)
	slots, room, open := s.items(), 0, 0
	for _, i := range found.Items {
		id, at := i["id"].(*types.AttributeValueMemberS).Value, func(name string) (n int) {
			if value, there := i[name].(*types.AttributeValueMemberN); there {
				_, err := fmt.Sscan(value.Value, &n)
				conformance.OK(s, err)
			}
			return n
		}
		switch {
		case id == "account/acme":
			open = at("open_slots") - slots[id]
			if waiting := at("waiting"); waiting != 0 {
				s.Errorf("%d wait", waiting)
			}
		case strings.HasPrefix(id, "account/acme#"):
			room += at("slot_room")
			if at("open_slots") != slots[id] || slots[id] > at("slot_room") {
				s.Errorf("%s has %d slots, says %d, and has room for %d", id, slots[id], at("open_slots"), at("slot_room"))
			}
		}
	}
	if open != room {
		s.Errorf("the account has moved room for %d slots, and its parts have %d", open, room)
	}
}
