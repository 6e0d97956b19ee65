package dynamo

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/session"
)

// Sessions is a session.Store.
//
// An account is one item: an attribute for each open slot, whose value is the slot's
// epoch, and their number. So a slot is taken by one write on the condition of the number,
// and no two callers can take the last one. A lease is an item too; taking a slot is a
// transaction on the condition that the slot's epoch is alive. An account with many sessions
// has parts, which are items of the same kind (session_parts.go).
//
// A slot whose epoch is dead no longer counts, and stays in the item until the space is
// needed: ending a lease is one write, however many sessions it had.
type Sessions struct {
	client *dynamodb.Client
	table  string
	spread slotSpread

	mu sync.Mutex
	// places are where slots of this process are, or were tried last, by session, for
	// those of accounts that may have parts. It is only a hint.
	places map[string]int
	// parted are the accounts that are known to have parts, which they keep.
	parted map[string]bool
}

var _ session.Store = (*Sessions)(nil)

// NewSessions returns the leases and slots in the table.
func NewSessions(client *dynamodb.Client, table string) *Sessions {
	return &Sessions{
		client: client, table: table, spread: usualSlotSpread, places: map[string]int{}, parted: map[string]bool{},
	}
}

const (
	// accountPrefix and an account's name are the id of an item, and so are leasePrefix
	// and an epoch; slotPrefix and a session's id are the name of a slot's attribute.
	accountPrefix = "account/"
	leasePrefix   = "lease/"
	slotPrefix    = "slot/"

	// mostSlots is how many slots one item can have: it is then about as large as DynamoDB
	// allows.
	mostSlots = 4000
	// takeTries is how often Take tries again after it has found or freed slots.
	takeTries = 20
	// slotBatch is how many slots one write removes.
	slotBatch = 50
)

// Take takes a slot: one transaction, and if the account is full one read of the leases of
// its slots, two writes for each dead one, and the transaction again; likewise if those
// who wait in its line are silent. Of an account with parts the transaction is that of one
// part; if that has no room left, some is moved there by the transaction that takes the slot,
// after a read; and before the account is found full all parts are read.
//
// Errors: fault.Limited if no slot is free, or others wait for one; fault.Conflict if the slot's epoch is dead or
// unknown; fault.Unavailable.
func (s *Sessions) Take(ctx context.Context, slot session.Slot, limit int) error {
	at := s.startingPlace(slot, limit)
	for range takeTries {
		s.note(slot.ID, at, limit)
		err := transact(ctx, s.client, []types.TransactWriteItem{s.aliveCheck(slot.Epoch), s.takeWrite(at, slot, limit)})
		r := refused(err)
		switch {
		case r == nil:
			return storeError("take a slot", err)
		case r.failed[0]:
			s.forget(slot.ID)
			return session.ErrLeaseOver
		case readAccount(r.items[1])[slot.ID] == slot.Epoch:
			return nil
		}
		next, taken := at, false
		if at == atAccount && !s.isLarge(limit) && readHead(r.items[1]).parts == 0 {
			err = s.freeSome(ctx, slot, r.items[1])
		} else {
			next, taken, err = s.makeRoom(ctx, slot, limit, at)
		}
		if taken && err == nil {
			return nil
		}
		if err != nil {
			if fault.Is(err, fault.Limited) || fault.Is(err, fault.Conflict) {
				s.forget(slot.ID)
			}
			return storeError("take a slot", err)
		}
		at = next
	}
	return fault.New(fault.Unavailable, "The sessions are busy. Try again.")
}

// freeSome frees what no longer counts of an account without parts that was found full.
//
// Errors: fault.Limited if all of it counts.
func (s *Sessions) freeSome(ctx context.Context, slot session.Slot, full item) error {
	a, err := s.stateOf(ctx, slot.Account, slot.Epoch, full)
	if err != nil {
		return err
	}
	freed, err := s.freeDead(ctx, a)
	if err != nil {
		return err
	}
	cleared, err := s.clearLine(ctx, slot.Account, a)
	if err != nil {
		return err
	}
	if !freed && !cleared || len(a.line.waiting(a.leases)) > 0 {
		return session.ErrNoSlot
	}
	return nil
}

// aliveCheck makes a transaction depend on the epoch being alive.
func (s *Sessions) aliveCheck(epoch string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &s.table, Key: leaseKey(epoch), ConditionExpression: aws.String(isAlive),
	}}
}

// takeWrite returns the write that takes a slot in the account's item or a part.
func (s *Sessions) takeWrite(at int, slot session.Slot, limit int) types.TransactWriteItem {
	if at != atAccount {
		return s.takePart(at, slot, limit)
	}
	condition := "attribute_not_exists(#slot) AND (attribute_not_exists(open_slots) OR open_slots < :limit)"
	names := map[string]string{"#slot": slotPrefix + slot.ID}
	values := item{":epoch": text(slot.Epoch), ":one": number(1)}
	if limit > 0 {
		condition += " AND (attribute_not_exists(#waiting) OR #waiting < :one)"
		names["#waiting"] = waitingCount
	}
	if s.isLarge(limit) {
		condition += " AND attribute_not_exists(slot_parts)"
		limit = s.spread.from
	}
	values[":limit"] = number(int64(limit))
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: accountKey(slot.Account),
		UpdateExpression:         aws.String("SET #slot = :epoch ADD open_slots :one"),
		ConditionExpression:      aws.String(condition),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// Free frees a slot by one write. It does nothing if the slot is free already, or was
// taken over. Of an account with parts it reads all of them first, if another process took
// the slot.
//
// Errors: fault.Unavailable.
func (s *Sessions) Free(ctx context.Context, slot session.Slot) error {
	at := s.placeOf(slot.ID)
	after, removed, err := s.remove(ctx, slot.Account, at, slot.Epoch, []string{slot.ID})
	if err == nil && !removed {
		at, after, err = s.freeElsewhere(ctx, slot, at, after)
	}
	if err == nil && at != atAccount {
		err = s.giveBack(ctx, slot.Account, at, after)
	}
	if err == nil {
		s.forget(slot.ID)
	}
	return storeError("free a slot", err)
}

// Active returns the number of the account's open slots: one read of the account, one of its
// parts if it has some, and one of the leases if there are slots. All are consistent.
//
// Errors: fault.Unavailable.
func (s *Sessions) Active(ctx context.Context, account string) (int, error) {
	reading, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	got, err := s.client.GetItem(reading, &dynamodb.GetItemInput{
		TableName: &s.table, Key: accountKey(account), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, storeError("count the slots of an account", err)
	}
	items, err := s.itemsOf(ctx, account, got.Item)
	if err != nil {
		return 0, storeError("count the slots of an account", err)
	}
	a := accountState{account: account, items: items}
	if a.leases, err = s.leases(ctx, a.slotEpochs()); err != nil {
		return 0, storeError("count the slots of an account", err)
	}
	return a.taken(), nil
}

// slots are the epochs of an account's slots, by session.
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

// of returns the sessions of an epoch.
func (s slots) of(epoch string) []string {
	var ids []string
	for id, owner := range s {
		if owner == epoch {
			ids = append(ids, id)
		}
	}
	return ids
}

// freeDead frees slots whose leases are dead, or old enough to be marked as dead. It
// reports whether there were any, whoever freed them.
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
				continue // renewed meanwhile
			}
		}
		freed = true
		for at := range a.items {
			for ids := a.items[at].slots.of(epoch); len(ids) > 0; {
				n := min(len(ids), slotBatch)
				if err := s.removeEach(ctx, a.account, at, epoch, ids[:n]); err != nil {
					return false, err
				}
				ids = ids[n:]
			}
		}
	}
	return freed, nil
}

// removeEach removes slots, one by one if some of them are gone already.
func (s *Sessions) removeEach(ctx context.Context, account string, at int, epoch string, ids []string) error {
	_, removed, err := s.remove(ctx, account, at, epoch, ids)
	if err != nil || removed || len(ids) == 1 {
		return err
	}
	for _, id := range ids {
		if _, _, err := s.remove(ctx, account, at, epoch, []string{id}); err != nil {
			return err
		}
	}
	return nil
}

// remove removes slots of an epoch from the account's item or a part: all, or none if one of
// them is missing. It returns the item as it is then.
func (s *Sessions) remove(
	ctx context.Context, account string, at int, epoch string, ids []string,
) (after item, removed bool, err error) {
	names, conditions := map[string]string{}, []string{}
	var removals []string
	for i, id := range ids {
		name := "#slot" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		names[name] = slotPrefix + id
		removals = append(removals, name)
		conditions = append(conditions, name+" = :epoch")
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	written, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: slotsKey(account, at),
		UpdateExpression:                    aws.String("REMOVE " + strings.Join(removals, ", ") + " ADD open_slots :less"),
		ConditionExpression:                 aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           item{":epoch": text(epoch), ":less": number(-int64(len(ids)))},
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if old, failed := conditionFailed(err); failed {
		return old, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return written.Attributes, true, nil
}

func accountKey(account string) item { return item{"id": text(accountPrefix + account)} }

// keptLeases is how long the item of a lease is kept after its last renewal.
const keptLeases = 24 * time.Hour
