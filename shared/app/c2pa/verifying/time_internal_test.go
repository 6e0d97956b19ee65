package verifying

import (
	"testing"

	"cutroom/shared/service/api"
)

// Otherwise a few hostile files could use up the time for which other accounts wait.
func TestVerifierGivesUpWithinOneTurn(t *testing.T) {
	if got := NewReader(Config{}).config.Time; got > api.MaxTurn {
		t.Errorf("a file may take %v, and a turn %v", got, api.MaxTurn)
	}
}
