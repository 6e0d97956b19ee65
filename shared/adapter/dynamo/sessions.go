package dynamo

import (
	"context"
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
// An account is one item: an attribute for each open slot, whose value is the slot's
// epoch, and their number. So a slot is taken by one write on the condition of the number,
// and no two callers can take the last one. A lease is an item too; taking a slot is a
// transaction on the condition that the slot's epoch is alive.
//
// A slot whose epoch is dead no longer counts, and stays in the item until the space is
// needed: ending a lease is one write, however many sessions it had.
type Sessions struct {
	client *dynamodb.Client
	table  string
}

var _ session.Store = (*Sessions)(nil)

// NewSessions returns the leases and slots in the table.
func NewSessions(client *dynamodb.Client, table string) *Sessions { return &Sessions{client, table} }

const (
	// accountPrefix and an account's name are the id of an item, and so are leasePrefix
	// and an epoch; slotPrefix and a session's id are the name of a slot's attribute.
	accountPrefix = "account/"
	leasePrefix   = "lease/"
	slotPrefix    = "slot/"

	// mostSlots is how many slots an account without a limit can have: its item is then
	// as large as DynamoDB allows.
	mostSlots = 4000
	// takeTries is how often Take tries again after it has freed dead slots.
	takeTries = 10
	// slotBatch is how many slots one write removes.
	slotBatch = 50
)

// Take takes a slot: one transaction, and if the account is full one read of the leases of
// its slots, two writes for each dead one, and the transaction again; likewise if those
// who wait in its line are silent.
//
// Errors: fault.Limited if no slot is free, or others wait for one; fault.Conflict if the slot's epoch is dead or
// unknown; fault.Unavailable.
func (s *Sessions) Take(ctx context.Context, slot session.Slot, limit int) error {
	writes := []types.TransactWriteItem{s.aliveCheck(slot.Epoch), s.takeWrite(slot, limit)}
	for range takeTries {
		err := transact(ctx, s.client, writes)
		r := refused(err)
		if r == nil {
			return storeError("take a slot", err)
		}
		if r.failed[0] {
			return session.ErrLeaseOver
		}
		a, err := s.stateOf(ctx, slot.Account, slot.Epoch, r.items[1])
		if err != nil {
			return storeError("take a slot", err)
		}
		if a.slots[slot.ID] == slot.Epoch {
			return nil
		}
		freed, err := s.freeDead(ctx, slot.Account, a)
		if err != nil {
			return storeError("free the slots of dead leases", err)
		}
		cleared, err := s.clearLine(ctx, slot.Account, a)
		if err != nil {
			return storeError("clear a line", err)
		}
		if !freed && !cleared || len(a.line.waiting(a.leases)) > 0 {
			return session.ErrNoSlot
		}
	}
	return fault.New(fault.Unavailable, "The sessions are busy. Try again.")
}

// aliveCheck makes a transaction depend on the epoch being alive.
func (s *Sessions) aliveCheck(epoch string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &s.table, Key: leaseKey(epoch), ConditionExpression: aws.String(isAlive),
	}}
}

func (s *Sessions) takeWrite(slot session.Slot, limit int) types.TransactWriteItem {
	condition := "attribute_not_exists(#slot) AND (attribute_not_exists(open_slots) OR open_slots < :limit)"
	names := map[string]string{"#slot": slotPrefix + slot.ID}
	values := item{":epoch": text(slot.Epoch), ":one": number(1)}
	if limit > 0 {
		condition += " AND (attribute_not_exists(#waiting) OR #waiting < :one)"
		names["#waiting"] = waitingCount
	}
	if limit <= 0 || limit > mostSlots {
		limit = mostSlots
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
// taken over.
//
// Errors: fault.Unavailable.
func (s *Sessions) Free(ctx context.Context, slot session.Slot) error {
	_, err := s.remove(ctx, slot.Account, slot.Epoch, []string{slot.ID})
	return storeError("free a slot", err)
}

// Active returns the number of the account's open slots: one read of the account, and one
// of the leases if there are slots. Both are consistent.
//
// Errors: fault.Unavailable.
func (s *Sessions) Active(ctx context.Context, account string) (int, error) {
	found, err := s.account(ctx, account)
	if err != nil {
		return 0, storeError("count the slots of an account", err)
	}
	leases, err := s.leases(ctx, found.epochs())
	if err != nil {
		return 0, storeError("count the slots of an account", err)
	}
	active := 0
	for _, epoch := range found {
		if leases[epoch].alive() {
			active++
		}
	}
	return active, nil
}

// slots are the epochs of an account's slots, by session.
type slots map[string]string

func (s *Sessions) account(ctx context.Context, account string) (slots, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	got, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: accountKey(account), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, err
	}
	return readAccount(got.Item), nil
}

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

// epochs returns the epochs of the slots, each once.
func (s slots) epochs() []string {
	var epochs []string
	seen := map[string]bool{}
	for _, epoch := range s {
		if !seen[epoch] {
			seen[epoch] = true
			epochs = append(epochs, epoch)
		}
	}
	return epochs
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
func (s *Sessions) freeDead(ctx context.Context, account string, found accountState) (bool, error) {
	freed := false
	for _, epoch := range found.slots.epochs() {
		l := found.leases[epoch]
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
		for ids := found.slots.of(epoch); len(ids) > 0; {
			n := min(len(ids), slotBatch)
			if err := s.removeEach(ctx, account, epoch, ids[:n]); err != nil {
				return false, err
			}
			ids = ids[n:]
		}
	}
	return freed, nil
}

// removeEach removes slots, one by one if some of them are gone already.
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

// remove removes slots of an epoch: all, or none if one of them is missing.
func (s *Sessions) remove(ctx context.Context, account, epoch string, ids []string) (bool, error) {
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
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: accountKey(account),
		UpdateExpression:          aws.String("REMOVE " + strings.Join(removals, ", ") + " ADD open_slots :less"),
		ConditionExpression:       aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: item{":epoch": text(epoch), ":less": number(-int64(len(ids)))},
	})
	if _, failed := conditionFailed(err); failed {
		return false, nil
	}
	return err == nil, err
}

func accountKey(account string) item { return item{"id": text(accountPrefix + account)} }

// keptLeases is how long the item of a lease is kept after its last renewal.
const keptLeases = 24 * time.Hour
