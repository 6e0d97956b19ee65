package verifying

import (
	"testing"

	"cutroom/shared/service/api"
)

// The verifier gives up on a hostile file within the time of one turn, so that several such
// files do not use up the wait of other accounts.
func TestOneFileDoesNotOutlastATurn(t *testing.T) {
	if got := NewReader(Config{}).config.Time; got > api.MaxTurn {
		t.Errorf("a file may take %v, and a turn %v", got, api.MaxTurn)
	}
}
