package verifying

import (
	"testing"

	"cutroom/shared/service/api"
)

// The verifier gives up on a hostile file within one turn, so several such files cannot use up the
// waiting time of other accounts.
func TestVerifierGivesUpWithinOneTurn(t *testing.T) {
	if got := NewReader(Config{}).config.Time; got > api.MaxTurn {
		t.Errorf("a file may take %v, and a turn %v", got, api.MaxTurn)
	}
}
