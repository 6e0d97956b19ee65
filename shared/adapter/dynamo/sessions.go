package dynamo

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
)

// Sessions is a session.Store.
//
// An account is one item. It has an attribute for each open slot, whose value is the slot's epoch, and the number
// of open slots. The write that takes a slot has a condition on this number, so two callers cannot both take the
// last slot. The transaction that takes a slot requires that the slot's epoch is alive.
//
// A slot whose epoch is dead does not count. It stays in the item until its capacity is needed, so
// ending a lease takes only one write.
type Sessions struct {
	client *dynamodb.Client
	table  string
}

var _ session.Store = (*Sessions)(nil)

func NewSessions(client *dynamodb.Client, table string) *Sessions {
	return &Sessions{client: client, table: table}
}

const (
	// An item's id is accountPrefix plus an account, or leasePrefix plus an epoch. The name of a
	// slot's attribute is slotPrefix plus a session's id.
	accountPrefix = "account/"
	leasePrefix   = "lease/"
	slotPrefix    = "slot/"

	// mostSlots is the maximum number of slots of an account. With that many, the item is almost as
	// large as DynamoDB allows.
	mostSlots = 4000
	// takeTries is the maximum number of times that Take tries again after freeing slots.
	takeTries = 20
	// slotBatch is the maximum number of slots that one write removes.
	slotBatch = 50
)

type accountState struct {
	account string
	slots   slots
	// open is the item's stored number of open slots.
	open      int64
	queueText string
	queue     session.Queue
	leases    map[string]lease
	now       time.Duration // the store's time when this was read
}

func (a accountState) taken() (count int) {
	for _, epoch := range a.slots {
		if a.leases[epoch].alive() {
			count++
		}
	}
	return count
}

func (a accountState) slotEpochs() []string {
	epochs := slices.Sorted(maps.Values(a.slots))
	return slices.Compact(epochs)
}

// stateOf reads the leases of the epoch and of the account's slots with one consistent read.
func (s *Sessions) stateOf(ctx context.Context, account, epoch string, own item) (a accountState, err error) {
	a = accountState{account: account, slots: readAccount(own), open: numberOf(own["open_slots"])}
	if queue, ok := own[queueAttribute].(*types.AttributeValueMemberS); ok {
		a.queueText = queue.Value
	}
	if a.queue, err = session.ParseQueue(a.queueText); err != nil {
		return a, err
	}
	epochs := append(a.slotEpochs(), epoch)
	slices.Sort(epochs)
	a.leases, err = s.leases(ctx, slices.Compact(epochs))
	a.now = time.Duration(a.leases[epoch].now) * time.Second
	a.queue.Forget(a.now)
	return a, err
}

// Take takes a slot with one transaction. If the account is full or its queue has tickets, Take
// reads the leases of the account's slots, frees slots of dead leases, and repeats the transaction
// if it is this session's turn. A limit of 0 allows mostSlots slots and ignores the queue.
//
// Errors: fault.Limited if no slot is free or another ticket is next; fault.Conflict if the slot's
// epoch is dead or unknown.
func (s *Sessions) Take(ctx context.Context, slot session.Slot, limit int) error {
	var a accountState // assume an empty queue at first
	for range takeTries {
		err := transact(ctx, s.client, []types.TransactWriteItem{s.aliveCheck(slot.Epoch), s.takeWrite(slot, limit, a)})
		r := refused(err)
		switch {
		case r == nil:
			return storeError("take a slot", err)
		case r.failed[0]:
			return session.ErrLeaseOver
		case readAccount(r.items[1])[slot.ID] == slot.Epoch:
			return nil
		}
		expected := a.queueText
		if a, err = s.stateOf(ctx, slot.Account, slot.Epoch, r.items[1]); err != nil {
			return storeError("take a slot", err)
		}
		if limit > 0 && !session.Admits(a.queue.Tickets(a.now), slot.ID, limit-a.taken()) {
			return session.ErrNoSlot
		}
		freed, err := s.freeSome(ctx, a)
		if err != nil {
			return storeError("take a slot", err)
		}
		if !freed && a.queueText == expected {
			return session.ErrNoSlot
		}
	}
	return fault.New(fault.Unavailable, "The session store is busy. Try again.")
}

// freeSome frees slots that no longer count, and reports whether it found any.
func (s *Sessions) freeSome(ctx context.Context, a accountState) (bool, error) {
	freed, err := s.freeDead(ctx, a)
	if err != nil {
		return false, err
	}
	corrected, err := s.correct(ctx, a)
	return freed || corrected, err
}

// correct lowers the stored number of open slots if it is too high. Version 0.1.0 also counted
// slots that were in other items.
func (s *Sessions) correct(ctx context.Context, a accountState) (corrected bool, err error) {
	if a.open <= int64(len(a.slots)) {
		return false, nil
	}
	_, _, err = tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(a.account), UpdateExpression: aws.String("SET open_slots = :slots"),
		ConditionExpression:       aws.String("open_slots = :seen"),
		ExpressionAttributeValues: item{":slots": number(int64(len(a.slots))), ":seen": number(a.open)},
	})
	return true, err
}

func (s *Sessions) aliveCheck(epoch string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &s.table, Key: leaseKey(epoch), ConditionExpression: aws.String(isAlive),
	}}
}

// takeWrite returns the write that takes a slot. It also removes the session's ticket from the queue.
func (s *Sessions) takeWrite(slot session.Slot, limit int, a accountState) types.TransactWriteItem {
	names := map[string]string{"#slot": slotPrefix + slot.ID}
	values := item{":epoch": text(slot.Epoch), ":one": number(1), ":limit": number(slotsWithin(limit))}
	condition := "attribute_not_exists(#slot) AND (attribute_not_exists(open_slots) OR open_slots < :limit)"
	update := "SET #slot = :epoch"
	if limit > 0 {
		names["#queue"] = queueAttribute
		a.queue.Remove(slot.ID)
		unchanged, set, remove := a.changeQueue(values)
		if set != "" {
			set = ", " + set
		}
		condition, update = condition+" AND "+unchanged, update+set+remove
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: accountKey(slot.Account),
		UpdateExpression:    aws.String(update + " ADD open_slots :one"),
		ConditionExpression: aws.String(condition), ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// slotsWithin converts a limit, where 0 means mostSlots.
func slotsWithin(limit int) int64 {
	if limit <= 0 {
		return mostSlots
	}
	return int64(min(limit, mostSlots))
}

func (s *Sessions) Free(ctx context.Context, slot session.Slot) error {
	_, err := s.remove(ctx, slot.Account, slot.Epoch, []string{slot.ID})
	return storeError("free a slot", err)
}

func (s *Sessions) Active(ctx context.Context, account string) (int, error) {
	got, err := readItem(ctx, s.client, s.table, accountKey(account))
	if err != nil {
		return 0, storeError("count the slots of an account", err)
	}
	a := accountState{account: account, slots: readAccount(got)}
	if a.leases, err = s.leases(ctx, a.slotEpochs()); err != nil {
		return 0, storeError("count the slots of an account", err)
	}
	return a.taken(), nil
}

// slots maps session ids to the epochs of their slots.
type slots map[string]string

func readAccount(i item) slots {
	found := slots{}
	for name, value := range i {
		if id, isSlot := strings.CutPrefix(name, slotPrefix); isSlot {
			if epoch, ok := value.(*types.AttributeValueMemberS); ok {
				found[id] = epoch.Value
			}
		}
	}
	return found
}

func (s slots) of(epoch string) []string {
	var ids []string
	for id, owner := range s {
		if owner == epoch {
			ids = append(ids, id)
		}
	}
	return ids
}

// freeDead frees slots of dead leases. It reports whether it found any, even if another process freed them.
func (s *Sessions) freeDead(ctx context.Context, a accountState) (bool, error) {
	freed := false
	for _, epoch := range a.slotEpochs() {
		l := a.leases[epoch]
		if l.alive() {
			continue
		}
		if !l.dead {
			if dead, err := s.kill(ctx, l); err != nil || !dead {
				if err != nil {
					return false, err
				}
				continue // its instance has just renewed it
			}
		}
		freed = true
		for ids := range slices.Chunk(a.slots.of(epoch), slotBatch) {
			if err := s.removeEach(ctx, a.account, epoch, ids); err != nil {
				return false, err
			}
		}
	}
	return freed, nil
}

// removeEach removes slots, one by one if some of them no longer exist.
func (s *Sessions) removeEach(ctx context.Context, account, epoch string, ids []string) error {
	removed, err := s.remove(ctx, account, epoch, ids)
	if err != nil || removed || len(ids) == 1 {
		return err
	}
	for _, id := range ids {
		if _, err := s.remove(ctx, account, epoch, []string{id}); err != nil {
			return err
		}
	}
	return nil
}

// remove removes all of the slots, or none of them if one is missing.
func (s *Sessions) remove(ctx context.Context, account, epoch string, ids []string) (removed bool, err error) {
	names, conditions := map[string]string{}, []string{}
	var removals []string
	for i, id := range ids {
		name := "#slot" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		names[name] = slotPrefix + id
		removals = append(removals, name)
		conditions = append(conditions, name+" = :epoch")
	}
	_, missing, err := tryUpdate(ctx, s.client, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(account),
		UpdateExpression:    aws.String("REMOVE " + strings.Join(removals, ", ") + " ADD open_slots :less"),
		ConditionExpression: aws.String(strings.Join(conditions, " AND ")), ExpressionAttributeNames: names,
		ExpressionAttributeValues: item{":epoch": text(epoch), ":less": number(-int64(len(ids)))},
	})
	return err == nil && !missing, err
}

func accountKey(account string) item { return item{"id": text(accountPrefix + account)} }

const keptLeases = 24 * time.Hour // counted from the last renewal
