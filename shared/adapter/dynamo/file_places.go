package dynamo

import (
	"context"
	"fmt"
	"time"
)

// What one account stores was in one partition, with the sum of it in one item, which each
// upload writes by a transaction. Both end at some hundred files a second. So an account whose
// limit is high, or that has none, is spread over partitions: the first is that of every
// account, the others have names that no account has. A file's own item is in that of its id,
// where Get finds it. The entry of a stored file is in that of its MD5, and those of pending
// files and reservations in that of their ids, each beside a part of the sum (file_parts.go),
// which the transaction of an entry writes. Lists read all partitions in one order.
//
// An item says from when on an account is spread. That is spreadDelay after the first file
// under such a limit, because earlier versions look into the first partition alone. What is
// there stays and is found there. An account stays spread when its limit is lowered.

// fileSpread says which accounts are spread.
type fileSpread struct {
	// above is the highest limit of an account that is not, in bytes. At 160 files a second,
	// which one partition takes, files of some 10 MB fill a terabyte in ten minutes: who
	// uploads so much for longer has more, or deletes. And the part of such a limit that is
	// moved at once (portion) has room for many files until the account is nearly full.
	above int64
	// parts is how many partitions there are besides the first, and parts of the sum.
	parts uint32
	// most is for how many claims like the present one room is moved to a part at once at the
	// most, and portion the part of what remains that is moved at the most.
	most, portion int64
}

var usualFileSpread = fileSpread{above: 1 << 40, parts: 16, most: 4096, portion: 256}

// spreadItem is the id of the item that says from when on an account is spread, in a partition
// of its own.
const spreadItem = "spread"

func filesSpreadKey(account string) item { return fileKey(account+"#"+spreadItem, spreadItem) }

// filePlace is where an item of an account is, and which part of the sum counts it.
type filePlace struct {
	account string
	part    uint32
	// spread is false for what is in the first partition, and counted in the sum itself.
	spread bool
}

// placeOf returns the place of an item by what is hashed for it.
func (s *Files) placeOf(account, key string, spread bool) filePlace {
	return filePlace{account, hashOf(key) % s.spread.parts, spread}
}

// partition returns the partition of the place.
func (p filePlace) partition() string {
	if !p.spread {
		return p.account
	}
	return partPartition(p.account, p.part)
}

// partPartition names a partition besides the first.
func partPartition(account string, part uint32) string {
	// No account has the character in its name.
	return fmt.Sprintf("%s#%d", account, part)
}

// partitions returns all partitions of an account, of which the first is that of every account.
func (s *Files) partitions(account string, spread bool) []string {
	all := []string{account}
	for part := uint32(0); spread && part < s.spread.parts; part++ {
		all = append(all, partPartition(account, part))
	}
	return all
}

// spreadNow reports whether what an account now stores under a limit, 0 for none, is spread. For
// a low limit it asks nobody: the account may have been spread before, but need not go on.
func (s *Files) spreadNow(ctx context.Context, account string, limit int64) bool {
	if limit > 0 && limit <= s.spread.above {
		from, _ := s.spreads.remembers(account)
		return s.spreads.reached(from)
	}
	if s.results {
		from, err := s.spreads.spreadFrom(ctx, account)
		return err == nil && s.spreads.reached(from)
	}
	return s.spreads.isSpread(ctx, account)
}

// ForResults is for who records the results of batches. They are stored under no limit, also in
// accounts that have one, so Create and Reserve spread only accounts that others have decided to
// spread. And the id of a result is written down before its file is, so two may record one file,
// of which one knows that the account is spread and the other does not yet. Create checks that it
// is in neither place, by a condition in its transaction.
func (s *Files) ForResults() *Files {
	s.results = true
	return s
}

// everSpread reports whether something of an account may be in other partitions than the first.
func (s *Files) everSpread(ctx context.Context, account string) (bool, error) {
	from, err := s.spreads.spreadFrom(ctx, account)
	return !from.IsZero(), err
}

// search looks for an item of an account in the places where it can be. read reports whether it
// is in a partition. An account of which nothing is known is looked up only if the item is not
// in the first partition.
func (s *Files) search(ctx context.Context, account, key string, read func(partition string) (bool, error)) (filePlace,
	bool, error) {
	spread, plain := s.placeOf(account, key, true), s.placeOf(account, key, false)
	from, _ := s.spreads.remembers(account)
	known := !from.IsZero()
	if known {
		if found, err := read(spread.partition()); found || err != nil {
			return spread, found, err
		}
	}
	if found, err := read(account); found || err != nil || known {
		return plain, found, err
	}
	if ever, err := s.everSpread(ctx, account); !ever || err != nil {
		return plain, false, err
	}
	found, err := read(spread.partition())
	return spread, found, err
}

// SpreadFiles makes an account spread from a time on. Create and Reserve do it by themselves for
// accounts whose limit is high, for an hour later; who knows an account to be large can do it
// before.
//
// Errors: fault.Unavailable.
func (s *Files) SpreadFiles(ctx context.Context, account string, from time.Time) error {
	_, err := s.spreads.spread(ctx, account, from)
	return storeError("spread the files of an account", err)
}
