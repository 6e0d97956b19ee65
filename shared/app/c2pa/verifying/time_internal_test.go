package verifying

import (
	"testing"

	"cutroom/shared/service/api"
)

// If a verification took longer than one turn, a few hostile files would make other accounts' requests time out.
func TestVerifierGivesUpWithinOneTurn(t *testing.T) {
	if got := NewReader(Config{}).config.Time; got > api.MaxTurn {
		t.Errorf("a file may take %v, and a turn %v", got, api.MaxTurn)
	}
}
