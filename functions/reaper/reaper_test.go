package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
)

// Events that AWS would never send cause an error, or their messages are returned as failed.
func TestBrokenEventsFail(t *testing.T) {
	invoke := lambda.NewHandler((&reaper{logger: slog.New(slog.DiscardHandler)}).handle).Invoke
	for _, event := range []string{
		`null`, `[]`, `{}`, `{"Records":null}`, `{"Records":{}}`, `{"Records":[1]}`, `{"Records":[{"body":1}]}`,
		`{"detail":null}`, `{"detail":1}`, `{"detail":{"name":1}}`, `{"detail":{"name":"a","status":"x"}}`,
		`{"detail":{"name":"` + strings.Repeat("a", 1<<20) + `"}}`, `{"detail":` + strings.Repeat("[", 1<<20),
	} {
		if got, err := invoke(context.Background(), []byte(event)); err == nil {
			t.Errorf("%.80s: %s", event, got)
		}
	}
	for _, body := range []string{``, `null`, `[]`, `{\"job\":1}`, `{\"job\":\"a\"}`, strings.Repeat("[", 1<<20)} {
		const records = 10
		event := `{"Records":[{}` + strings.Repeat(`,{"messageId":"m","body":"`+body+`"}`, records) + `]}`
		got, err := invoke(context.Background(), []byte(event))
		if err != nil || strings.Count(string(got), "itemIdentifier") != records+1 {
			t.Errorf("%.80s: %.100s, %v", body, got, err)
		}
	}
}
