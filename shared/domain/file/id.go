package file

import (
	"fmt"
	"io"
	"math/big"
	"sync"
	"time"
)

const (
	// idDigits is in ASCII order, so that ids sort by their digits.
	idDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// The time digits suffice for nanoseconds until after the year 2200, and the random digits hold 95 bits.
	timeDigits, randomDigits = 11, 16
)

// IDs generates file ids that sort by creation time. The time always increases from one id to the next.
type IDs struct {
	now    func() time.Time
	random io.Reader

	mu   sync.Mutex
	last int64
}

func NewIDs(now func() time.Time, random io.Reader) *IDs { return &IDs{now: now, random: random} }

func (s *IDs) New() (id string, created time.Time, err error) {
	limit := new(big.Int).Exp(big.NewInt(int64(len(idDigits))), big.NewInt(randomDigits), nil)
	var bytes [12]byte
	if _, err := io.ReadFull(s.random, bytes[:]); err != nil {
		return "", time.Time{}, fmt.Errorf("file: generate an id: %w", err)
	}
	random := new(big.Int).SetBytes(bytes[:])
	random.Mod(random, limit)

	s.mu.Lock()
	nanoseconds := max(s.now().UnixNano(), s.last+1)
	s.last = nanoseconds
	s.mu.Unlock()

	id = "file_" + digits(big.NewInt(nanoseconds), timeDigits) + digits(random, randomDigits)
	return id, time.Unix(0, nanoseconds).UTC(), nil
}

// digits formats n in base 62, padded to the given width.
func digits(n *big.Int, width int) string {
	text := make([]byte, width)
	base, rest := big.NewInt(int64(len(idDigits))), new(big.Int)
	n = new(big.Int).Set(n)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, rest)
		text[i] = idDigits[rest.Int64()]
	}
	return string(text)
}
