package dynamo

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"cutroom/shared/domain/session"
)

// Each write of an item costs as much as the item is large, and one partition takes a thousand
// units a second. An account whose limit is high, or that has none, therefore has parts once it
// has some open slots. A part is an item with slots, and with room for so many (slot_room). All
// room of parts is among the open slots of the account's own item, so that one number remains
// what the limit is compared with, also by earlier versions, which know no parts. Room is moved
// to a part by the transaction that takes a slot there, for some more slots. Who finds none at
// the account looks for it in all parts before a session is refused (session_room.go). What
// limits parts have is in session_raise.go, and what they do while clients wait in
// session_closing.go.

// slotSpread says which accounts have parts.
type slotSpread struct {
	// above is the highest limit of an account that has none, and from how many slots are in
	// the account's own item before there are parts.
	above, from int
	// each is for how many slots of the limit there is a part, and parts how many there are at
	// most.
	each, parts int
	// block is for how many slots room is moved at once at most, and full for how many a part
	// has room at most.
	block, full int64
}

var usualSlotSpread = slotSpread{above: 250, from: 50, each: 64, parts: 64, block: 32, full: mostSlots}

const (
	// atAccount is the place of a slot that is in the account's own item; those in parts are
	// the numbers of the parts, from 1.
	atAccount = 0
	// noLimit stands for the limit of an account without one.
	noLimit = int64(1) << 50
	// writesAtOnce is how many parts, or sets of open jobs, are written at the same time.
	writesAtOnce = 8
)

// slotItem is what an account's item or a part has of slots. In the account's own, open includes
// the room of all parts, and it has no room itself.
type slotItem struct {
	slots            slots
	open, room, most int64
	closed           bool
}

func readSlots(i item) slotItem {
	return slotItem{
		slots: readAccount(i), open: numberOf(i["open_slots"]), room: numberOf(i["slot_room"]),
		most: numberOf(i["most_slots"]), closed: i["line_closed"] != nil,
	}
}

// spare returns for how many more slots the part has room.
func (i slotItem) spare() int64 { return i.room - i.open }

// slotHead is what an account's own item says of it and its parts.
type slotHead struct {
	open, most, waiting int64
	// parts is how many there are; it never decreases.
	parts int
	// raising is what most is being raised to, by the raise of that number.
	raising, raises int64
	// drains counts how often room was moved back from a part.
	drains, reopens int64
	closed          bool
}

func readHead(i item) slotHead {
	return slotHead{
		open: numberOf(i["open_slots"]), most: numberOf(i["most_slots"]), waiting: numberOf(i[waitingCount]),
		parts: int(numberOf(i["slot_parts"])), raising: numberOf(i["raising_to"]), raises: numberOf(i["raise_count"]),
		drains: numberOf(i["drain_count"]), reopens: numberOf(i["reopen_count"]), closed: i["line_closed"] != nil,
	}
}

// isLarge reports whether an account with the limit may have parts.
func (s *Sessions) isLarge(limit int) bool { return limit <= 0 || limit > s.spread.above }

// partsOf returns how many parts an account with the limit has at least.
func (s *Sessions) partsOf(limit int) int {
	if limit <= 0 {
		return s.spread.parts
	}
	return min((limit-1)/s.spread.each+1, s.spread.parts)
}

func capOf(limit int) int64 {
	if limit <= 0 {
		return noLimit
	}
	return min(int64(limit), noLimit)
}

// firstPart returns the part of so many in which a slot is tried first.
func firstPart(id string, parts int) int { return 1 + int(hashOf(id)%uint32(parts)) }

func hashOf(id string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id)) // a hash never fails
	return hash.Sum32()
}

// slotsKey returns the key of an account's own item or of a part.
func slotsKey(account string, at int) item {
	if at == atAccount {
		return accountKey(account)
	}
	// No account has the character in its name.
	return accountKey(fmt.Sprintf("%s#%d", account, at))
}

// startingPlace returns where a slot is tried first: where that was done before, so that a
// repetition finds what the first call has written.
func (s *Sessions) startingPlace(slot session.Slot, limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.places[slot.ID]; known {
		return at
	}
	if s.isLarge(limit) && s.parted[slot.Account] {
		return firstPart(slot.ID, s.partsOf(limit))
	}
	return atAccount
}

// note remembers where a slot is tried.
func (s *Sessions) note(id string, at, limit int) {
	if at == atAccount && !s.isLarge(limit) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[id] = at
}

func (s *Sessions) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.places, id)
}

func (s *Sessions) placeOf(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[id]
}

// noteParts remembers that an account has parts.
func (s *Sessions) noteParts(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parted[account] = true
}

// itemsOf returns what an account's own item has of slots, and its parts, which are read.
func (s *Sessions) itemsOf(ctx context.Context, account string, own item) ([]slotItem, error) {
	parts := readHead(own).parts
	items := make([]slotItem, 1+parts)
	items[atAccount] = readSlots(own)
	if parts == 0 {
		return items, nil
	}
	s.noteParts(account)
	keys, places := make([]item, parts), map[string]int{}
	for at := 1; at <= parts; at++ {
		keys[at-1] = slotsKey(account, at)
		places[(&reader{item: keys[at-1]}).text("id")] = at
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	found, err := readItems(ctx, s.client, s.table, keys)
	for _, i := range found {
		items[places[(&reader{item: i}).text("id")]] = readSlots(i)
	}
	return items, err
}

// takePart returns the write that takes a slot where a part has room.
func (s *Sessions) takePart(at int, slot session.Slot, limit int) types.TransactWriteItem {
	condition := "attribute_not_exists(#slot) AND open_slots < slot_room AND most_slots <= :limit"
	if limit > 0 {
		condition += " AND attribute_not_exists(line_closed)"
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: &s.table, Key: slotsKey(slot.Account, at),
		UpdateExpression: aws.String("SET #slot = :epoch ADD open_slots :one"), ConditionExpression: &condition,
		ExpressionAttributeNames: map[string]string{"#slot": slotPrefix + slot.ID},
		ExpressionAttributeValues: item{
			":epoch": text(slot.Epoch), ":one": number(1), ":limit": number(capOf(limit)),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
