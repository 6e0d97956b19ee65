package dynamo

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"
)

// The sum of what a spread account stores has parts, in partitions of their own. A part has
// room, which uploads take and deletes give back. All room of parts is counted in the account's
// own sum, so that what is stored is that sum less the room of all parts, and is within a limit
// if the sum is. Room is moved to a part by the transaction that takes of it. Before an upload is
// refused, the sum and all parts are read at one time; if some have room it is taken there, or
// moved back.
//
// Keys of one account may have different limits, and limits change. So the account's own item
// also has what its sum is within (most_bytes), as has each part, where it is no lower: only
// those take from a part whose limit is no lower. Who moves room under a lower limit, which the
// sum is within, lowers both. Before the account's is raised, that of each part is (raise),
// during which no room is moved.
//
// Pending files are limited in number, which is counted in the same way beside the bytes.

// partTries bounds how often a count is tried that others are in the way of.
const partTries = 40

// storageSum has the names of the attributes of one of the two sums. used and raising are those
// of the account's own item, room is that of parts, most that of both.
type storageSum struct{ used, room, most, raising string }

const (
	ofBytes = iota
	ofPromises
	sumCount
)

var storageSums = [sumCount]storageSum{
	ofBytes:    {"stored_bytes", "room_bytes", "most_bytes", "raising_bytes"},
	ofPromises: {"promises", "room_promises", "most_promises", "raising_promises"},
}

const (
	// partsAttribute is how many parts the sum has. Who does not know them may only subtract.
	partsAttribute = "storage_parts"
	raiseCount     = "raise_count"
)

// storageClaim is what a change adds to a sum, at most up to a limit, 0 for none.
type storageClaim struct{ amount, limit int64 }

// cap returns the limit, with a number for none.
func (c storageClaim) cap() int64 {
	if c.limit <= 0 {
		return noStorageLimit
	}
	return min(c.limit, noStorageLimit)
}

// noStorageLimit stands for the limit of an account without one: a thousand petabytes.
const noStorageLimit = int64(1) << 60

func (c tally) claims() [sumCount]storageClaim {
	return [sumCount]storageClaim{ofBytes: {c.bytes, c.limit}, ofPromises: {int64(c.promises), int64(c.most)}}
}

// storagePart is the account's own item of sums, or a part of it.
type storagePart struct {
	item item
	sums [sumCount]struct {
		used, room, most, raising int64
		// bounded says that there is a most.
		bounded bool
	}
}

func readStoragePart(i item) storagePart {
	p := storagePart{item: i}
	for n, sum := range storageSums {
		of := &p.sums[n]
		of.used, of.room, of.most = numberOf(i[sum.used]), numberOf(i[sum.room]), numberOf(i[sum.most])
		of.raising, of.bounded = numberOf(i[sum.raising]), i[sum.most] != nil
	}
	return p
}

// isParted reports whether the account's own item has parts.
func isParted(i item) bool { return i[partsAttribute] != nil }

// gives reports whether a claim can be taken from the room of a part.
func (p storagePart) gives(sum int, c storageClaim) bool {
	of := p.sums[sum]
	return c.amount <= 0 || of.room >= c.amount && of.bounded && of.most <= c.cap()
}

// bound returns what the account's own sum may become by a claim.
func (p storagePart) bound(sum int, c storageClaim) int64 {
	if of := p.sums[sum]; of.bounded {
		return min(c.cap(), of.most)
	}
	return c.cap()
}

// roomGrowth is the room that is moved to a part, and what the account's sums are within then.
type roomGrowth [sumCount]struct{ amount, most int64 }

// none reports whether nothing is moved.
func (g roomGrowth) none() bool { return g[ofBytes].amount == 0 && g[ofPromises].amount == 0 }

// commitParts makes writes, and counts them in parts.
//
// Errors: refusal if a condition of the writes failed.
func (s *Files) commitParts(ctx context.Context, p filePlace, writes []types.TransactWriteItem, c tally) (full, error) {
	if c.spare > 0 && c.bytes > 0 {
		if ample, err := s.isAmple(ctx, p.account, c); !ample || err != nil {
			return full{bytes: !ample, parted: true}, err
		}
	}
	at, g := p.part, roomGrowth{}
	for range partTries {
		all := writes[:len(writes):len(writes)]
		if !g.none() {
			all = append(all, s.growSums(p.account, g))
		}
		if c.bytes != 0 || c.promises != 0 {
			all = append(all, s.countPart(p.account, at, c, g))
		}
		err := transact(ctx, s.client, all)
		r := refused(err)
		if r == nil || slices.Contains(r.failed[:len(writes)], true) {
			return full{}, err
		}
		var f full
		if at, g, f, err = s.makeRoom(ctx, p.account, at, c); f.any() || err != nil {
			return f, err
		}
	}
	return full{}, busy(nil)
}

// countPart returns the write that counts a change at a part to which room is moved.
func (s *Files) countPart(account string, part uint32, c tally, g roomGrowth) types.TransactWriteItem {
	var set, add, conditions []string
	values := item{}
	for n, claim := range c.claims() {
		sum, grown := storageSums[n], g[n]
		if claim.amount == 0 && n != ofBytes {
			continue // there has to be something to add, be it nothing
		}
		add = append(add, sum.room+" :"+sum.room)
		values[":"+sum.room] = number(grown.amount - claim.amount)
		switch {
		case grown.amount > 0:
			set = append(set, sum.most+" = :"+sum.most)
			values[":"+sum.most] = number(grown.most)
		case claim.amount > 0:
			conditions = append(conditions, sum.room+" >= :least_"+sum.room+" AND "+sum.most+" <= :"+sum.most)
			values[":least_"+sum.room], values[":"+sum.most] = number(claim.amount), number(claim.cap())
		}
	}
	return s.sumWrite(partPartition(account, part), set, add, conditions, values)
}

// growSums returns the write to the account's own item that moves room to a part.
func (s *Files) growSums(account string, g roomGrowth) types.TransactWriteItem {
	set, add, conditions := []string{partsAttribute + " = :parts"}, []string(nil), []string(nil)
	values := item{":parts": number(int64(s.spread.parts))}
	for n, grown := range g {
		if grown.amount == 0 {
			continue
		}
		sum := storageSums[n]
		set, add = append(set, sum.most+" = :"+sum.most), append(add, sum.used+" :"+sum.used)
		values[":"+sum.most], values[":"+sum.used] = number(grown.most), number(grown.amount)
		values[":free_"+sum.used] = number(grown.most - grown.amount)
		conditions = append(conditions, "attribute_not_exists("+sum.raising+")",
			"(attribute_not_exists("+sum.used+") OR "+sum.used+" <= :free_"+sum.used+")",
			"(attribute_not_exists("+sum.most+") OR "+sum.most+" >= :"+sum.most+")")
	}
	return s.sumWrite(account, set, add, conditions, values)
}

// sumWrite returns a write of an item of sums.
func (s *Files) sumWrite(partition string, set, add, conditions []string, values item) types.TransactWriteItem {
	update := &types.Update{
		TableName: &s.table, Key: fileKey(partition, storageItem), ExpressionAttributeValues: values,
		UpdateExpression: aws.String("ADD " + strings.Join(add, ", ")),
	}
	if len(set) > 0 {
		*update.UpdateExpression = "SET " + strings.Join(set, ", ") + " " + *update.UpdateExpression
	}
	if len(conditions) > 0 {
		update.ConditionExpression = aws.String(strings.Join(conditions, " AND "))
	}
	return types.TransactWriteItem{Update: update}
}

// makeRoom is called when a change could not be counted at a part. It returns where to try next,
// and what room to move there, or that the account is full.
func (s *Files) makeRoom(ctx context.Context, account string, at uint32, c tally) (next uint32, g roomGrowth, f full,
	err error) {
	own, err := s.readSums(ctx, account)
	if err != nil {
		return at, g, f, err
	}
	part, err := s.readSums(ctx, partPartition(account, at))
	if err != nil {
		return at, g, f, err
	}
	for n, claim := range c.claims() {
		if part.gives(n, claim) {
			continue
		}
		of, most := own.sums[n], own.bound(n, claim)
		if of.raising == 0 && most-of.used >= claim.amount {
			g[n].amount, g[n].most = s.portionOf(claim.amount, most-of.used), most
			continue
		}
		if of.raising > 0 || of.bounded && of.most < claim.cap() {
			return at, roomGrowth{}, f, s.raise(ctx, account, n, own, claim.cap())
		}
		next, f, err = s.findRoom(ctx, account, at, c)
		return next, roomGrowth{}, f, err
	}
	return at, g, f, nil
}

// portionOf returns how much room to move for a claim, of what is free.
func (s *Files) portionOf(claim, free int64) int64 {
	most := free
	if claim < free/s.spread.most {
		most = claim * s.spread.most
	}
	return max(claim, min(free/s.spread.portion, most))
}

// findRoom looks for room in all parts of an account that has none itself. It returns a part that
// has it, or moves some of it back; or it returns that the account is full.
func (s *Files) findRoom(ctx context.Context, account string, at uint32, c tally) (next uint32, f full, err error) {
	own, parts, err := s.readAllSums(ctx, account)
	if err != nil {
		return at, f, err
	}
	var isFull [sumCount]bool
	for n, claim := range c.claims() {
		isFull[n] = claim.amount > 0 && claim.limit > 0 && storedOf(n, own, parts) > claim.limit-claim.amount
	}
	if f = (full{bytes: isFull[ofBytes], promises: isFull[ofPromises], parted: true}); f.any() {
		return at, f, nil
	}
	for n := range s.spread.parts {
		next := (at + n) % s.spread.parts
		if parts[next].gives(ofBytes, c.claims()[ofBytes]) && parts[next].gives(ofPromises, c.claims()[ofPromises]) {
			return next, full{}, nil
		}
	}
	for n, claim := range c.claims() {
		if claim.amount <= 0 {
			continue
		}
		if err := s.moveBack(ctx, account, n, claim.amount-(own.bound(n, claim)-own.sums[n].used), parts); err != nil {
			return at, full{}, err
		}
	}
	return at, full{}, nil
}

// storedOf returns what is stored by sums that were read at one time.
func storedOf(sum int, own storagePart, parts []storagePart) int64 {
	stored := own.sums[sum].used
	for _, part := range parts {
		stored -= part.sums[sum].room
	}
	return stored
}

// moveBack moves as much room from parts to the account's own sum, those with the most first,
// unless others take it.
func (s *Files) moveBack(ctx context.Context, account string, sum int, need int64, parts []storagePart) error {
	order := make([]int, len(parts))
	for n := range order {
		order[n] = n
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(parts[b].sums[sum].room, parts[a].sums[sum].room) })
	names := storageSums[sum]
	for _, n := range order {
		room := parts[n].sums[sum].room
		if need <= 0 || room <= 0 {
			return nil
		}
		err := transact(ctx, s.client, []types.TransactWriteItem{
			s.sumWrite(account, nil, []string{names.used + " :less"}, nil, item{":less": number(-room)}),
			s.sumWrite(partPartition(account, uint32(n)), nil, []string{names.room + " :less"},
				[]string{names.room + " >= :room"}, item{":less": number(-room), ":room": number(room)}),
		})
		if err != nil && refused(err) == nil {
			return err
		}
		if err == nil {
			need -= room
		}
	}
	return nil
}

// isAmple reports whether as much as the tally says remains beside what it counts. What others
// store meanwhile does not matter: it decides only how much is reserved ahead.
func (s *Files) isAmple(ctx context.Context, account string, c tally) (bool, error) {
	room := c.limit - c.spare - c.bytes
	own, err := s.readSums(ctx, account)
	if err != nil || own.sums[ofBytes].used <= room {
		return err == nil, err
	}
	own, parts, err := s.readAllSums(ctx, account)
	return err == nil && storedOf(ofBytes, own, parts) <= room, err
}

// readSums reads the sums of a partition.
func (s *Files) readSums(ctx context.Context, partition string) (storagePart, error) {
	got, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: fileKey(partition, storageItem), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return storagePart{}, err
	}
	return readStoragePart(got.Item), nil
}

// readAllSums reads the account's own sums and all parts as they are at one time.
func (s *Files) readAllSums(ctx context.Context, account string) (own storagePart, parts []storagePart, err error) {
	var keys []item
	for _, partition := range s.partitions(account, true) {
		keys = append(keys, fileKey(partition, storageItem))
	}
	items, err := transactGet(ctx, s.client, s.table, keys)
	if err != nil {
		return own, nil, err
	}
	for _, i := range items[1:] {
		parts = append(parts, readStoragePart(i))
	}
	return readStoragePart(items[0]), parts, nil
}

// raise raises what a sum of an account, as it was read, is within; or it ends a raise that
// another has begun.
func (s *Files) raise(ctx context.Context, account string, sum int, own storagePart, most int64) error {
	names, of, was := storageSums[sum], own.sums[sum], own.item
	if of.raising == 0 {
		begun, err := s.writeSums(ctx, account, "SET "+names.raising+" = :to ADD "+raiseCount+" :one",
			names.most+" = :seen AND attribute_not_exists("+names.raising+")",
			item{":to": number(most), ":one": number(1), ":seen": number(of.most)})
		if err != nil || begun == nil {
			return err
		}
		was = begun
	}
	to := was[names.raising]
	all, within := errgroup.WithContext(ctx)
	all.SetLimit(writesAtOnce)
	for part := range s.spread.parts {
		all.Go(func() error {
			_, err := s.writeSums(within, partPartition(account, part), "SET "+names.most+" = :to",
				"attribute_not_exists("+names.most+") OR "+names.most+" < :to", item{":to": to})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	_, err := s.writeSums(ctx, account, "SET "+names.most+" = :to REMOVE "+names.raising,
		names.raising+" = :to AND "+raiseCount+" = :no", item{":to": to, ":no": was[raiseCount]})
	return err
}

// writeSums writes the sums of a partition, and returns them, or nil if the condition is false.
func (s *Files) writeSums(ctx context.Context, partition, update, condition string, values item) (item, error) {
	written, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: fileKey(partition, storageItem), UpdateExpression: &update,
		ConditionExpression: &condition, ExpressionAttributeValues: values, ReturnValues: types.ReturnValueAllNew,
	})
	if _, failed := conditionFailed(err); failed {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return written.Attributes, nil
}
