package verifying

import (
	"testing"

	"cutroom/shared/service/api"
)

// Otherwise, requests of other accounts would time out while a few hostile files are verified.
func TestVerifierGivesUpWithinOneTurn(t *testing.T) {
	if got := NewReader(Config{}).config.Time; got > api.MaxTurn {
		t.Errorf("a file may take %v, and a turn %v", got, api.MaxTurn)
	}
}
