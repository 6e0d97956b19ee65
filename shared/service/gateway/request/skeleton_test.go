package request_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/service/gateway/jsonedit"
	"cutroom/shared/service/gateway/request"
)

var long = strings.Repeat("Once upon a time. ", 500)

// Special characters may appear at any position in a word.
func TestLongTextsAreReadLikeShortOnes(t *testing.T) {
	who := caller(t)
	for _, special := range []string{`\n`, `\"`, `\\`, `\/`, `\t\b\f\r`, "é", "日本", "😀", `\u00e9`, `\ud83d\ude00`, "\u007f", " ", `\\\\\"`} {
		for shift := range 9 {
			text := strings.Repeat("x", shift) + special + long + special + strings.Repeat("y", shift)
			body := `{"model":"plain", "messages" : [ {"role":"user","content":"` + text + `"},{"role":"user","content":[{"type":"text","text":"` +
				text + `"}]}],"max_tokens":9000000,"user":"` + text + `","metadata":{"` + long + `1":"` + text + `","` + long + `2":5}}`
			r, problem := request.Parse(catalog.Chat, []byte(body), who)
			if problem != nil {
				t.Fatalf("%q after %d: %+v", special, shift, problem)
			}
			want := strings.Replace(strings.Replace(body, "9000000", "4096", 1), `"plain"`, `"other"`, 1)
			var got, wanted map[string]any
			sent := r.Body(jsonedit.Quote("other")).Bytes()
			if json.Unmarshal(sent, &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil {
				t.Fatalf("%q after %d became %s", special, shift, sent)
			}
			delete(got, "max_tokens")
			delete(wanted, "max_tokens")
			one, _ := json.Marshal(got)
			other, _ := json.Marshal(wanted)
			if string(one) != string(other) || strings.Count(string(sent), text) != 4 {
				t.Errorf("%q after %d became %s", special, shift, sent)
			}
			var counted []string
			r.PromptTexts(func(text []byte) { counted = append(counted, string(text)) })
			var plain string
			if err := json.Unmarshal([]byte(`"`+text+`"`), &plain); err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(counted, ""); strings.Count(all, plain) != 2 {
				t.Errorf("%q after %d: counted were %d texts", special, shift, len(counted))
			}
		}
	}
}

// If a body would still have much text after cutting, it is parsed without cuts.
func TestManyShortTextsAreRead(t *testing.T) {
	who := caller(t)
	short := strings.Repeat(`{"role":"user","content":"short"},`, 10000)
	for name, messages := range map[string]string{
		"first": `{"role":"user","content":"` + long + `"},` + short + `{"role":"user","content":"x"}`,
		"last":  short + `{"role":"user","content":"` + long + `"}`,
	} {
		r, problem := request.Parse(catalog.Chat, []byte(`{"model":"plain","max_tokens":9000000,"messages":[`+messages+`]}`), who)
		if problem != nil {
			t.Fatalf("%s: %+v", name, problem)
		}
		if sent := string(r.Body(jsonedit.Quote("other")).Bytes()); !strings.Contains(sent, messages) || !json.Valid([]byte(sent)) {
			t.Errorf("%s: the messages have changed", name)
		}
	}
}

// Errors have the same messages as in a small body, and correct positions.
func TestErrorsInLargeBodiesHavePositions(t *testing.T) {
	who := caller(t)
	begin := `{"model":"plain","messages":[{"role":"user","content":"` + long + `"},{"role":"user","content":"`
	for _, wrong := range []string{
		"\n", "\x00", "\x1f", "\xff", "\xc3(", "\xed\xa0\x80", `\x`, `\ud800`, `\u12`, `",`, `"}{`, `"]`,
	} {
		for _, text := range []string{wrong, long + wrong, wrong + long, long + wrong + long} {
			body := begin + text + `"}]}`
			_, problem := request.Parse(catalog.Chat, []byte(body), who)
			if problem == nil || problem.Code != "invalid_json" {
				t.Fatalf("%q: %+v", wrong, problem)
			}
			// The four-digit escape makes the parser check the same body without cuts.
			plain := strings.ReplaceAll(body, "Once", `\u004fnce`)
			_, want := request.Parse(catalog.Chat, []byte(plain), who)
			if want == nil || problem.Code != want.Code || problem.Param != want.Param ||
				strings.Contains(problem.Message, "at byte") != strings.Contains(want.Message, "at byte") {
				t.Errorf("%q: %+v, want %+v", wrong, problem, want)
			}
		}
	}
	twice := `{"model":"plain","messages":[{"role":"user","content":"` + long + `","content":"` + long + `"}]}`
	_, problem := request.Parse(catalog.Chat, []byte(twice), who)
	if problem == nil || problem.Param != "messages[0].content" {
		t.Errorf("a duplicate field: %+v", problem)
	}
	_, problem = request.Parse(catalog.Chat, []byte(strings.Replace(begin+`x"}]}`, `"}]}`, `"}]]`, 1)), who)
	if want := "at byte " + itoa(len(begin)+4) + "."; problem == nil || !strings.HasSuffix(problem.Message, want) {
		t.Errorf("%+v, want %q", problem, want)
	}
}

func itoa(n int) string { text, _ := json.Marshal(n); return string(text) }

// Reading a body gives the same values, positions and errors with and without cuts.
func FuzzSkeleton(f *testing.F) {
	for _, seed := range []string{
		`{"a":"b","c":["d\n","e\\",{"f" : "g"}]}`, `{"aaaaaaaaaaaa":"bbbbbbbbbbbbbbbb\"c","dd":5}`, `["éééé",""]`, `{"a":"\ud83d\ude00"}`,
		`{"a":"b","a":"c"}`, `"abc`, `{"a":"` + "\x01" + `"}`, `["\u0041"]`, `["` + "\xff" + `"]`, `{"a" "b"}`, `{"":"","c"""`, `{"":"","c","`, `{"a":"b"}"c"`, `[1,2,"x"`,
	} {
		f.Add([]byte(seed), 0)
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, long int) {
		got, want := request.Walk(body, max(long, 0)), request.Walk(body, -1)
		if got != want {
			t.Errorf("%q from %d on:\n%s\nwhole:\n%s", body, long, got, want)
		}
	})
}
