package main_test

import (
	"strings"
	"testing"

	"cutroom/shared/testkit/servertest"
)

// Neither service accepts a request that is hidden in another one.
func TestNoRequestIsSmuggled(t *testing.T) {
	server := start(t, t.TempDir())
	for path, url := range map[string]string{
		"/v1/jobs/gen-2.5": server.URL(), "/v1/files": server.URL(), "/v1/chat/completions": server.InferenceURL(),
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			for _, attack := range servertest.FramingAttacks(path) {
				if err := attack.Try(bounded(t), strings.TrimPrefix(url, "http://"), 0); err != nil {
					t.Errorf("%s: %v", attack.Name, err)
				}
			}
		})
	}
}
