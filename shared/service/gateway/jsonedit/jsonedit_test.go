package jsonedit_test

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"cutroom/shared/service/gateway/jsonedit"
)

// The length of an edited text is known before the text is read.
func TestEditedTextIsTheSameForEveryReader(t *testing.T) {
	for name, filling := range map[string]string{"short": "x", "long": strings.Repeat("x", 100<<10)} {
		t.Run(name, func(t *testing.T) {
			text := []byte(`{"a": 1, "b": "` + filling + `", "c": {}}`)
			object, ok := jsonedit.ParseObject(text)
			if !ok {
				t.Fatal("the text is not an object")
			}
			edits := []jsonedit.Edit{
				jsonedit.InsertMembers(object.Get("c"), `"d":2`, `"e":3`),
				jsonedit.Replace(object.Get("a"), []byte("null")),
				jsonedit.InsertMembers(object, `"z":0`),
			}
			want := `{"z":0,"a": null, "b": "` + filling + `", "c": {"d":2,"e":3}}`
			edited := jsonedit.New(text, edits)
			read, err := io.ReadAll(edited.Reader())
			if err != nil {
				t.Fatal(err)
			}
			for way, got := range map[string]string{
				"Bytes": string(edited.Bytes()), "Reader": string(read), "Append": string(jsonedit.Append(nil, text, edits)),
			} {
				if got != want || edited.Len() != len(want) {
					t.Errorf("%s: got %.80s of %d bytes, want %.80s of %d", way, got, edited.Len(), want, len(want))
				}
			}
		})
	}
}

func TestParseObjectLimitsDepth(t *testing.T) {
	deep := func(levels int) string { return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) }
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"an object":              {` {"a":1} `, true},
		"an array":               {`[1]`, false},
		"a truncated object":     {`{"a":`, false},
		"two objects":            {`{}{}`, false},
		"of the maximum depth":   {deep(jsonedit.MaxDepth), true},
		"over the maximum depth": {deep(jsonedit.MaxDepth + 1), false},
		"brackets within a text": {`{"a":"` + strings.Repeat("[", 1000) + `\""}`, true},
		"millions of brackets":   {strings.Repeat("[", 10<<20), false},
	} {
		t.Run(name, func(t *testing.T) {
			object, ok := jsonedit.ParseObject([]byte(c.text))
			if ok != c.ok || ok && object.Type != gjson.JSON {
				t.Errorf("got %v, %v", ok, object.Type)
			}
		})
	}
}

func TestValidUTF8ReplacesInvalidBytes(t *testing.T) {
	for text, want := range map[string]string{"a\u00e9": "a\u00e9", "a\xffb": "a\ufffdb"} {
		if got := string(jsonedit.ValidUTF8([]byte(text))); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestQuotedTextIsAtMostTwiceAsLong(t *testing.T) {
	for _, text := range []string{"<", ">&", "\u2028", `"`, `\`, `\"`, "é", "\xff"} {
		text = strings.Repeat(text, 1000)
		quoted := jsonedit.Quote(text)
		var read string
		if err := json.Unmarshal(quoted, &read); err != nil || read != strings.ToValidUTF8(text, strings.Repeat("\ufffd", 1000)) ||
			len(quoted) > 3*len(text)+2 || text[0] != '\xff' && len(quoted) > 2*len(text)+2 {
			t.Errorf("%.4q: %d bytes, %v", text, len(quoted), err)
		}
	}
}

func FuzzForEachVisitsLikeGJSON(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : [ 1 , -2.5e3 ] , "b\n\"\\" : "x\u00e9\"" , "c":{"d":[{}]} , "":null} `, `{"a":[true,false,[],"]}"]}`,
		`{"a":{"b":"\\"},"a":"\\\""}`, "{\"a\"\t:\r\n1}", `{"a":-0.10E+5,"b":01}`, `{"a":1.}`, `{"a":"\u00g0"}`, "{\"a\":\"12345678\x1f\"}",
		`{"a":"\x"}`, `{"a":[1,]}`, `{"a" "b"}`, `{"a":nul}`, `{"a":tru`, `{"a":-}`, `{"a":1e}`, "{\"a\":\"b\x00c\"}", `{"a":1]`, "\f{}",
		`{"a":{"\u0061\\":["\ud800",{"b":"a long text with \"quotes\" in it"},false]}}`, `{"a":[` + strings.Repeat("[0],", 2000) + `0]}`,
	} {
		f.Add([]byte(text))
	}
	var parser jsonedit.Parser
	f.Fuzz(func(t *testing.T, text []byte) {
		object, ok := jsonedit.ParseObject(text)
		recorded, same := parser.ParseObject(text)
		valid := gjson.ValidBytes(text) && gjson.ParseBytes(text).IsObject()
		if same != ok || ok != valid && strings.Count(string(text), "[")+strings.Count(string(text), "{") <= jsonedit.MaxDepth {
			t.Fatalf("%q: got %v and %v, want %v", text, ok, same, valid)
		}
		if ok {
			checkVisits(t, object)
			checkVisits(t, recorded)
		}
	})
}

func checkVisits(t *testing.T, value gjson.Result) {
	type visit struct {
		name, raw, text string
		kind            gjson.Type
		index           int
	}
	var want, got []visit
	var inner []gjson.Result
	plain := value
	plain.Indexes = nil // gjson uses it differently
	plain.ForEach(func(key, value gjson.Result) bool {
		want = append(want, visit{key.Str, value.Raw, value.Str, value.Type, value.Index})
		return true
	})
	jsonedit.ForEach(value, func(name string, value gjson.Result) bool {
		got = append(got, visit{name, value.Raw, value.Str, value.Type, value.Index})
		inner = append(inner, value)
		return true
	})
	if !slices.Equal(got, want) {
		t.Fatalf("of %q got %+v, want %+v", value.Raw, got, want)
	}
	for _, value := range inner {
		if value.IsObject() || value.IsArray() {
			checkVisits(t, value)
		}
	}
}
