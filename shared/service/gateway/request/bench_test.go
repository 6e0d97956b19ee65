package request_test

import (
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/request"
)

// BenchmarkRequest parses a streaming chat of about 2 KB whose limit is
// clamped.
func BenchmarkRequest(b *testing.B) {
	body := []byte(`{"model":"plain","messages":[{"role":"system","content":"` +
		strings.Repeat(`You are a helpful assistant.\n`, 20) +
		`"},{"role":"user","content":"` + strings.Repeat("Say something kind. ", 65) +
		`"}],"temperature":0.7,"stream":true,"max_tokens":4096,"user":"u-1","metadata":{"a":1}}`)
	who := caller(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r, problem := request.Parse(catalog.Chat, body, who)
		if problem != nil {
			b.Fatal(problem)
		}
		if len(r.Body("upstream/name").Bytes()) == 0 {
			b.Fatal("no body")
		}
	}
}
