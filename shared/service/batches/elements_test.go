package batches

import (
	"strings"
	"testing"

	"cutroom/shared/testkit/alloctest"
)

func TestLinesUseLittleMemory(t *testing.T) {
	const most = 1 << 20
	const head = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"small"`
	for name, line := range map[string]string{
		"members":                  alloctest.Numbered(most, head+`}`, `,"%x":0`, `}`),
		"objects with many names":  alloctest.Filled(most, head+`}`, `,"":0`, `}`),
		"escaped names":            alloctest.Filled(most, head+`}`, `,"\u0061":0`, `}`),
		"a body with many members": alloctest.Numbered(most, head, `,"%x":0`, `}}`),
		"a body with many names":   alloctest.Filled(most, head, `,"":0`, `}}`),
		"messages":                 alloctest.Filled(most, head+`,"messages":[`, `{},`, `{}]}}`),
		"numbers":                  alloctest.Filled(most, head+`,"messages":[`, `0,`, `0]}}`),
		"models":                   alloctest.Filled(most, head, `,"model":"a"`, `}}`),
		"an id with escapes":       alloctest.Filled(most, `{"custom_id":"`, `\u0061`, `"}`),
		"deep":                     strings.Repeat("[", most),
		"deep objects":             alloctest.Filled(most, "", `{"body":`, ""),
		"an array":                 alloctest.Filled(most, "[", "0,", "0]"),
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.Check(t, len(line), func() {
				c := &checker{endpoint: "/v1/chat/completions", model: "small", seen: map[[16]byte]struct{}{}}
				if _, ok := c.check([]byte(line)); ok {
					parsed([]byte(line))
				}
			})
		})
	}
	// Use many short lines, because the ids of all calls are kept in memory.
	c := &checker{endpoint: "/v1/chat/completions", model: "small", seen: map[[16]byte]struct{}{}}
	lines := strings.Split(alloctest.Numbered(most, "", `{"custom_id":"%x"}`+"\n", ""), "\n")
	alloctest.Check(t, most, func() {
		for _, line := range lines {
			c.check([]byte(line))
		}
	})
}
