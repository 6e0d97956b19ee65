package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
)

// Events that AWS would not send are rejected with an error, or their records are reported as failed.
func TestBrokenEventsFail(t *testing.T) {
	h := &handler{now: time.Now, logger: slog.New(slog.DiscardHandler)}
	invoke := lambda.NewHandler(h.handle).Invoke
	const good = `{"dynamodb":{}}`
	none, one := `{"batchItemFailures":null}`, `{"batchItemFailures":[{"itemIdentifier":"m"}]}`
	for event, want := range map[string]string{
		`null`: none, `{}`: none, `{"Records":null}`: none,
		`{"Records":[{"dynamodb":{}}]}`:                                                            none,
		`{"Records":[{"dynamodb":{"NewImage":null}}]}`:                                             none,
		`{"Records":[{"dynamodb":{"NewImage":{"part":{"N":"1"}}}}]}`:                               none,
		`{"Records":[` + good + `,{"messageId":"m"}]}`:                                             one,
		`{"Records":[` + good + `,{"messageId":"m","body":"null"}]}`:                               one,
		`{"Records":[` + good + `,{"messageId":"m","body":"[1]"}]}`:                                one,
		`{"Records":[` + good + `,{"messageId":"m","body":"` + strings.Repeat("[", 1<<20) + `"}]}`: one,
	} {
		got, err := invoke(context.Background(), []byte(event))
		if err != nil || string(got) != want {
			t.Errorf("%.80s: %s, %v", event, got, err)
		}
	}
	for _, event := range []string{
		`[]`, `1`, `{"Records":{}}`, `{"Records":[1]}`, `{"Records":[{"body":{}}]}`, `{"Records":[{"attributes":[]}]}`,
		`{"Records":[{"dynamodb":[]}]}`, `{"Records":[{"dynamodb":{"NewImage":{"part":{"S":1}}}}]}`,
		`{"Records":[{"dynamodb":{"NewImage":{"part":null}}}]}`,
		`{"Records":[{"dynamodb":{"NewImage":{"part":{}}}}]}`,
		`{"Records":[{"dynamodb":{"NewImage":{"part":{"L":[{"M":{"x":{"B":"%"}}}]}}}}]}`,
		`{"Records":[{"messageId":"m"}]}`, // Lambda counts no error if only some messages failed
	} {
		if got, err := invoke(context.Background(), []byte(event)); err == nil {
			t.Errorf("%s: %s", event, got)
		}
	}
	many, err := invoke(context.Background(), []byte(`{"Records":[`+good+strings.Repeat(",{}", 100_000)+`]}`))
	if err != nil || strings.Count(string(many), "itemIdentifier") != 100_000 {
		t.Errorf("of 100,000 empty messages: %.100s, %v", many, err)
	}
}
